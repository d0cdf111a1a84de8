"""Mixtures of distributions of any kind, one per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from posterity.distributions._mixture_weights import check_weights, draw_components
from posterity.distributions._rows import FloatArray
from posterity.distributions.known_by_cdf import CountsKnownByCdf, KnownByCdf, solved_quantile

# Numbers of components that are asked for in one call: they fit into memory.
MOST_AT_ONCE = 1_000_000


class AnyMixture(KnownByCdf):
    """Mixtures, one per row, of any distributions with SciPy's methods; see :class:`Mixture`.

    Densities and probabilities are the components' own, weighed. Quantiles are solved for; the CRPS
    is an integral of probabilities, to about five digits.

    Parameters
    ----------
    components : sequence of distributions
        K of them, each over the same n rows.
    weights : array_like of shape (K,) or (n, K)
        Probabilities of the components, of each row to sum to 1.

    Examples
    --------
    >>> from scipy import stats
    >>> predictive = AnyMixture([stats.laplace([0.0]), stats.norm([4.0])], [0.75, 0.25])
    >>> predictive.mean(), predictive.logpdf([0.0]).round(3)
    (array([1.]), array([-0.981]))
    """

    __slots__ = ("components", "weights")
    # The name of the method of their density.
    _density: ClassVar[str] = "logpdf"
    _KNOWS_NOTHING = "a component knows nothing about it yet"

    components: tuple[Any, ...]
    weights: FloatArray

    def __init__(self, components: Sequence[Any], weights: ArrayLike) -> None:
        self.components = tuple(components)
        self.weights = check_weights(weights, len(self.components))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.components)} components, {len(self)} rows)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (n,) of the rows."""
        return np.shape(self.components[0].mean())

    def _rows(self, index: Any) -> Self:
        weights = self.weights if self.weights.ndim == 1 else self.weights[index]
        return type(self)([one[index] for one in self.components], weights)

    def _flat(self) -> Any:
        flat = [np.asarray(flat_rows(one), dtype=np.float64) for one in self.components]
        return self._average(np.stack(flat, axis=-1))

    # ---- moments ----

    def _mean(self) -> FloatArray:
        return self._average(self._ask("mean"))

    def _var(self) -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            off = self._ask("mean") - self._mean()[..., None]
            spread = self._average(self._ask("var") + np.square(off))
        return np.where(np.isnan(spread), np.inf, spread)

    # ---- densities and probabilities ----

    def _logpdf(self, y: FloatArray) -> FloatArray:
        return np.asarray(logsumexp(self._ask(self._density, y), b=self.weights, axis=-1))

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._average(self._ask("cdf", y))

    def _sf(self, y: FloatArray) -> FloatArray:
        if all(hasattr(one, "sf") for one in self.components):
            return self._average(self._ask("sf", y))
        return 1.0 - self._cdf(y)

    def _solve(self, q: FloatArray, slack: float) -> FloatArray:
        ends = self._ask("ppf", q)
        counts = np.broadcast_to(self.weights > 0.0, ends.shape)
        least = np.where(counts, ends, np.inf).min(axis=-1)
        most = np.where(counts, ends, -np.inf).max(axis=-1)
        levels = np.broadcast_to(q, least.shape)
        found = solved_quantile(self._cdf, levels, least, most, self._unit, slack)
        flat = np.broadcast_to(self.is_flat(), found.shape)
        return np.where(flat, np.where(q == 0.5, self._mean(), 0.5 * (least + most)), found)

    def _guess(self, q: FloatArray) -> FloatArray:
        guesses = [getattr(one, "_guess", one.ppf)(q) for one in self.components]
        each = np.stack(np.broadcast_arrays(*guesses), axis=-1)
        counts, outer = self.weights > 0.0, np.where(q < 0.5, -1.0, 1.0)
        farthest = np.max(np.where(counts, outer[..., None] * each, -np.inf), axis=-1)
        return np.where(q == 0.5, self._average(each), outer * farthest)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        chosen = draw_components(rng, self.weights, size)
        draws = np.empty(size)
        for k, component in enumerate(self.components):
            here = np.asarray(chosen == k)
            if here.any():
                drawn = np.asarray(component.rvs(size=size, random_state=rng), dtype=np.float64)
                draws[here] = drawn[here]
        return draws

    # ---- helpers ----

    def _ask(self, name: str, *values: FloatArray) -> FloatArray:
        """What the method of each component answers, (..., K)."""
        answers = [getattr(one, name)(*values) for one in self.components]
        return np.stack(np.broadcast_arrays(*answers), axis=-1)

    def _average(self, answers: FloatArray) -> FloatArray:
        """Return the weighted sum of the components' answers; weights of 0 never count."""
        with np.errstate(invalid="ignore"):
            parts = np.where(self.weights > 0.0, self.weights * answers, 0.0)
        return np.asarray(parts.sum(axis=-1))


class AskedTogether(AnyMixture):
    """Mixtures of one family, whose ``stack`` is all components, (n, K): few are asked at once."""

    __slots__ = ("together",)
    _block_rows = 1024

    def __init__(self, components: Sequence[Any], weights: ArrayLike) -> None:
        super().__init__(components, weights)
        self.together = components[0].stack(components)

    def _ask(self, name: str, *values: FloatArray) -> FloatArray:
        columns = [np.asarray(value)[..., None] for value in values]
        shape = np.broadcast_shapes(self.together.shape, *(column.shape for column in columns))
        if math.prod(shape) > MOST_AT_ONCE:
            return super()._ask(name, *values)
        return np.asarray(np.broadcast_to(getattr(self.together, name)(*columns), shape))


class AnyCounts(CountsKnownByCdf, AnyMixture):
    """The same of whole numbers.

    Examples
    --------
    >>> from posterity.distributions import PoissonLogNormal
    >>> quiet, busy = PoissonLogNormal([0.0], [0.1]), PoissonLogNormal([3.0], [0.1])
    >>> predictive = AnyCounts([quiet, busy], [0.5, 0.5])
    >>> predictive.mean().round(2), predictive.interval(0.9)
    (array([11.08]), (array([0.]), array([32.])))
    """

    __slots__ = ()
    _density = "logpmf"


def any_mixture(parts: Sequence[Any], weights: ArrayLike) -> AnyMixture:
    """The mixture of distributions of any kind: of whole numbers where all are."""
    counts = all(hasattr(part, "logpmf") for part in parts)
    return (AnyCounts if counts else AnyMixture)(parts, weights)


def flat_rows(predictive: Any) -> Any:
    """Return True for rows whose prediction is flat; False of kinds that can't tell."""
    return (
        predictive.is_flat()
        if hasattr(predictive, "is_flat")
        else np.zeros(np.shape(predictive.mean()), bool)
    )
