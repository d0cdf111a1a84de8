"""Mixtures of distributions of any kind, one per row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from posterity.distributions._mixture_weights import check_weights, draw_components
from posterity.distributions._rows import FloatArray
from posterity.distributions.row_distribution import CountDistribution, RowDistribution

# Brackets of quantiles are bisected to this width, relative to the quantile.
TOLERANCE = 1e-13
MOST_HALVINGS = 200
# Scores of counts are sums over so many at most, between these probabilities of the tails.
MOST_COUNTS, LEAST_TAIL = 10_000, 1e-13
# Numbers of components that are asked for in one call: they fit into memory.
MOST_AT_ONCE = 1_000_000


class AnyMixture(RowDistribution):
    """Mixtures, one per row, of any distributions with SciPy's methods; see :class:`Mixture`.

    Densities and probabilities are the components' own, weighed. Quantiles are solved for by
    bisection; the CRPS is an integral over quantiles, to about 0.2%.

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
    # The smallest distance of targets, and the name of their density's method.
    _unit: ClassVar[float] = 0.0
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

    def _ppf(self, q: FloatArray) -> FloatArray:
        ends = self._ask("ppf", q)
        counts = np.broadcast_to(self.weights > 0.0, ends.shape)
        least = np.where(counts, ends, np.inf).min(axis=-1)
        most = np.where(counts, ends, -np.inf).max(axis=-1)
        found = solved_quantile(self._cdf, np.broadcast_to(q, least.shape), least, most, self._unit)
        flat = np.broadcast_to(self.is_flat(), found.shape)
        return np.where(flat, np.where(q == 0.5, self._mean(), 0.5 * (least + most)), found)

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

    def __init__(self, components: Sequence[Any], weights: ArrayLike) -> None:
        super().__init__(components, weights)
        self.together = components[0].stack(components)

    def _ask(self, name: str, *values: FloatArray) -> FloatArray:
        columns = [np.asarray(value)[..., None] for value in values]
        shape = np.broadcast_shapes(self.together.shape, *(column.shape for column in columns))
        if math.prod(shape) > MOST_AT_ONCE:
            return super()._ask(name, *values)
        return np.asarray(np.broadcast_to(getattr(self.together, name)(*columns), shape))


class AnyCounts(CountDistribution, AnyMixture):
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
    _unit = 1.0
    _density = "logpmf"

    def _crps(self, y: FloatArray) -> FloatArray:
        """The sum over counts of (cdf - [count >= y])^2, of rows of which so many are likely.

        Of all others by quantiles, as for numbers.
        """
        y = np.broadcast_to(y, np.broadcast_shapes(np.shape(y), self.shape))
        low, high = self._ppf(np.asarray(LEAST_TAIL)), self._ppf(np.asarray(1.0 - LEAST_TAIL))
        few = np.isfinite(low) & (high - low < MOST_COUNTS)
        result = np.empty(y.shape)
        for row in np.ndindex(self.shape):
            one, of_row = self[row] if row else self, (..., *row)
            if few[row]:
                counts = low[row] + np.arange(float(high[row] - low[row]) + 1.0)
                result[of_row] = one._sum_over_counts(y[of_row], counts)
            else:
                result[of_row] = super(AnyCounts, one)._crps(y[of_row])
        return result[()]

    def _sum_over_counts(self, y: FloatArray, counts: FloatArray) -> FloatArray:
        """The same of one row, of which these are all counts that are likely."""
        below = self._cdf(counts)
        past, to_come = np.square(below), np.square(1.0 - below)
        steps = np.clip(y - counts[0], 0.0, len(counts))
        so_far = np.concatenate([[0.0], np.cumsum(past)])
        left = np.concatenate([np.cumsum(to_come[::-1])[::-1], [0.0]])
        # Between two counts the score is linear.
        places = np.arange(len(counts) + 1.0)
        inside = np.interp(steps, places, so_far) + np.interp(steps, places, left)
        return inside + np.maximum(counts[0] - y, 0.0) + np.maximum(y - counts[-1] - 1.0, 0.0)


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


def solved_quantile(
    cdf: Callable[[FloatArray], FloatArray],
    q: FloatArray,
    least: FloatArray,
    most: FloatArray,
    unit: float = 0.0,
    close: float = TOLERANCE,
) -> FloatArray:
    """Least number whose probability is at least q, by bisection between ``least`` and ``most``.

    With ``unit`` 1 among whole numbers.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> low, high = np.array([-9.0]), np.array([9.0])
    >>> solved_quantile(norm.cdf, np.array([0.975]), low, high).round(6)
    array([1.959964])
    """
    with np.errstate(invalid="ignore"):
        low, high, inside = least - unit, most, (q > 0.0) & (q < 1.0)
        for _ in range(MOST_HALVINGS):
            middle = 0.5 * low + 0.5 * high
            middle = np.floor(middle) if unit else middle
            below = cdf(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            near = np.maximum(unit, close * np.maximum(np.abs(low), np.abs(high)))
            if not np.any(inside & (high - low > near)):
                break
    return np.where(inside, high, np.select([q == 0.0, q == 1.0], [least, most], np.nan))
