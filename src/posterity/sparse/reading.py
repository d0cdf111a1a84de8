"""Reading rows of any kind for a model of many features, and predictions of their eta."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from posterity.aliases import Array
from posterity.posteriors._centres import Centres
from posterity.posteriors._sparse_rows import Row, SparseRows
from posterity.posteriors._wide import Pairs, match_moments
from posterity.sparse.checks import WideParameters
from posterity.sparse.index import FeatureIndex
from posterity.sparse.parts import read_parts
from posterity.sparse.rows import add_pairs, number_parts, read_matrix
from posterity.sparse.single import read_known_row


class RowReader(WideParameters):
    """Rows as numbered features, by the model's index."""

    _posterior: Any
    _index: FeatureIndex

    def _read(self, X: Any) -> tuple[int, Any]:
        """Number of rows, and a sparse matrix or parts; nothing of the model changes."""
        if issparse(X):
            return X.shape[0], X
        numeric = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
        if numeric and self.categorical_features == "auto":
            return len(X), csr_array(np.asarray(X, dtype=np.float64))
        return read_parts(X, self.categorical_features, self.missing, self._is_category)

    def _is_category(self, name: str) -> bool | None:
        """Whether levels of this column were learned, or numbers; None of one that is new."""
        index: FeatureIndex | None = self.__dict__.get("_index")
        column = -1 if index is None else index.column(name, new=False)
        if index is None or column not in index.levels.keys() | index.numbers.keys():
            return None
        return column in index.levels

    def _check_kind(self, read: Any) -> None:
        """Raise ``ValueError`` where a matrix comes for names, or one of another width."""
        given = self._index.given
        if issparse(read) != (given is not None):
            raise ValueError(
                "rows so far came as a matrix: give these as one too"
                if given is not None
                else "rows so far came with names: give these with names, too, not as a matrix"
            )
        if given is not None and read.shape[1] != given:
            raise ValueError(
                f"X has {read.shape[1]} features, but {type(self).__name__} is expecting {given} "
                "features as input"
            )
        if given is None:
            self._index.check_kinds(read)

    def _number(self, n: int, read: Any, *, new: bool) -> SparseRows:
        """Rows as they came, with their features numbered; no pairs yet."""
        if issparse(read):
            return read_matrix(read, own_columns=self._index.has_own_columns)
        return number_parts(n, read, self._index, new=new)

    def _add_pairs(self, rows: SparseRows, centres: Centres, *, new: bool) -> SparseRows:
        """The rows, whose numbers are centred, with pairs of what is active."""
        chosen = None if isinstance(self.interactions, int) else self.interactions
        return add_pairs(rows, self._index, chosen, centres if new else None)

    @property
    def _known_pairs(self) -> Pairs | None:
        """What adds pairs that were learned to rows that are read; None without any."""
        return None if self.interactions is None else partial(self._add_pairs, new=False)

    def _read_known(self, x: Any) -> Row | None:
        """One row whose features are all known; None of one to be read as many are."""
        if self.interactions is not None or self._index.given:
            return None
        return read_known_row(x, self._index)

    def _eta(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance (n, members) of eta at rows, in units of the noise."""
        posterior = self._posterior
        row = self._read_known(X[0]) if type(X) is list and len(X) == 1 else None
        if row is not None:
            return posterior.row_moments(row)
        n, read = self._read(X)
        self._check_kind(read)
        if not issparse(read):
            self._index.check_complete(read)
        return posterior.moments(self._number(n, read, new=False), self._known_pairs)

    def _match_eta(self, X: Any) -> tuple[Array, Array]:
        return match_moments(*self._eta(X), self._posterior.weights)
