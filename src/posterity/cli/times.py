"""Scores of models that are told when each row came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from posterity.io import TableStream


class TimedModel:
    """A model whose rows have their times behind the features, as of :class:`TimedRows`."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """As the model's own, of rows X (n, p + 1)."""
        return self._model.predict_then_learn(X[:, :-1], y, sample_weight, times=X[:, -1])

    @property
    def quantile(self) -> float:
        """The model's own."""
        return float(self._model.quantile)

    @property
    def posterior_(self) -> Any:
        """The model's own."""
        return self._model.posterior_


class TimedRows:
    """Batches of a stream (X, y, weight, time) as (X and time, y, weight)."""

    def __init__(self, stream: Iterable[tuple[Any, ...]], table: TableStream) -> None:
        self._stream, self._table = stream, table

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for X, y, weight, time in self._stream:
            yield np.column_stack([X, time]), y, weight

    @property
    def fraction(self) -> float:
        """Share of the table read so far."""
        return float(self._table.fraction)

    @property
    def n_rows_read(self) -> int:
        """Rows of the table so far."""
        return int(self._table.n_rows_read)
