"""Rows of several distributions, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._rows import FloatArray
from posterity.distributions.any_mixture import flat_rows
from posterity.distributions.categorical import Categorical
from posterity.distributions.row_distribution import CountDistribution, RowDistribution


class InSequence(RowDistribution):
    """The rows of the first distribution, then those of the second, and so on, of whatever kind.

    Parameters
    ----------
    parts : sequence of distributions
        Each over its rows.

    Examples
    --------
    >>> from posterity.distributions import Normal, StudentT
    >>> predictive = InSequence([Normal([0.0, 1.0], 1.0), StudentT(3.0, [5.0], 2.0)])
    >>> predictive.mean(), predictive.logpdf([0.0, 1.0, 5.0]).round(3)
    (array([0., 1., 5.]), array([-0.919, -0.919, -1.694]))
    >>> predictive[1:].mean()
    array([1., 5.])
    """

    __slots__ = ("parts", "starts")

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)
        self.starts = np.cumsum([0, *map(len, self.parts)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.parts)} parts, {len(self)} rows)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n,) of the rows."""
        return (int(self.starts[-1]),)

    def _rows(self, index: Any) -> Any:
        places = np.arange(len(self))[index]
        owner = np.searchsorted(self.starts, places, side="right") - 1
        if places.ndim == 0:
            return self.parts[owner][places - self.starts[owner]]
        ends = np.flatnonzero(np.diff(owner)) + 1
        pieces = zip(np.split(owner, ends), np.split(places, ends), strict=True)
        return type(self)([self.parts[o[0]][p - self.starts[o[0]]] for o, p in pieces if len(o)])

    def _flat(self) -> Any:
        return np.concatenate([np.asarray(flat_rows(part), dtype=float) for part in self.parts])

    def _mean(self) -> FloatArray:
        return self._each("mean")

    def _median(self) -> FloatArray:
        return self._each("median")

    def _var(self) -> FloatArray:
        return self._each("var")

    def _logpdf(self, y: FloatArray) -> FloatArray:
        return self._each("logpdf", y)

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._each("cdf", y)

    def _sf(self, y: FloatArray) -> FloatArray:
        return self._each("sf", y)

    def _ppf(self, q: FloatArray) -> FloatArray:
        return self._each("ppf", q)

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        ends = [part.interval(level) for part, level in self._split(levels)]
        low, high = zip(*ends, strict=True)
        return np.concatenate(low, axis=-1), np.concatenate(high, axis=-1)

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._each("crps", y)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        lengths = np.diff(self.starts).tolist()
        draws = [
            part.rvs(size=(*size[:-1], n), random_state=rng)
            for part, n in zip(self.parts, lengths, strict=True)
        ]
        return np.concatenate(draws, axis=-1)

    # ---- helpers ----

    def _split(self, values: ArrayLike) -> list[tuple[Any, FloatArray]]:
        """Yield each part with its values, of values that broadcast against all rows."""
        array = np.asarray(values, dtype=np.float64)
        array = np.broadcast_to(array, np.broadcast_shapes(array.shape, self.shape))
        spans = zip(self.starts[:-1], self.starts[1:], strict=True)
        pieces = (array[..., first:end] for first, end in spans)
        return list(zip(self.parts, pieces, strict=True))

    def _each(self, name: str, *values: ArrayLike) -> FloatArray:
        if not values:
            return np.concatenate([getattr(part, name)() for part in self.parts])
        values_of_parts = [getattr(part, name)(some) for part, some in self._split(*values)]
        return np.concatenate(values_of_parts, axis=-1)


class CountsInSequence(CountDistribution, InSequence):
    """The same of labels, or of whole numbers."""

    __slots__ = ()


def in_sequence(parts: Sequence[Any]) -> Any:
    """The rows of all parts; a single one as it is."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, Categorical) for part in parts):
        logs = np.concatenate([part.log_probabilities for part in parts])
        return Categorical(parts[0].classes, logs)
    counts = all(hasattr(part, "logpmf") for part in parts)
    return (CountsInSequence if counts else InSequence)(parts)
