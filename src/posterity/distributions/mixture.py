"""Mixtures of normal and Student-t distributions, one per row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._mixture_crps import crps
from posterity.distributions._mixture_quantile import quantile
from posterity.distributions._mixture_terms import (
    MixtureComponents,
    all_ordinary,
    density,
    has_flat_component,
    list_terms,
    log_density,
    lower_tail,
    over_rows,
    total,
)
from posterity.distributions._mixture_weights import (
    check_components,
    check_weights,
    draw_components,
)
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.student_t import StudentT

# A smaller sum of densities may have lost digits to underflow.
_LEAST_DENSITY = 1e-280
# The argument for formulas of the parameters alone.
_NO_ARGUMENT = np.zeros(())


class Mixture(RowDistribution):
    """Mixtures, one per row, of normal or Student-t distributions: predictions of several models.

    Parameters
    ----------
    components : sequence of Normal or StudentT
        K of them, each over the same n rows, or a single distribution that all rows share.
    weights : array_like of shape (K,) or (n, K)
        Probabilities of the components, of each row to sum to 1. A component of weight 0 never
        counts, whatever its parameters.

    Raises
    ------
    TypeError
        If a component is neither Normal nor StudentT.
    ValueError
        If there are no components, if their rows do not fit, or if weights are negative or do not
        sum to 1.

    Notes
    -----
    A row is *flat* if a component of positive weight is (nothing is known about it yet): its
    ``std()`` and ``crps`` are infinite, ``interval`` is (-inf, inf), ``cdf`` is 1/2, ``rvs``
    raises, as for a flat :class:`StudentT`; ``mean()`` and ``median()`` are the weighted locations.
    Only the log density goes on as a sum over components, the flat one with density 1, so that sums
    of log predictive densities remain log evidences.

    ``ppf`` and ``interval`` solve for the quantile to about 1e-13 of the spread. ``crps`` is exact
    for normal components (Grimit et al. 2006); with Student-t among them it is an integral done to
    about 1e-6 relative, and the dearest of all methods by far.

    Examples
    --------
    >>> from posterity.distributions import Mixture, Normal, StudentT
    >>> steady, quick = StudentT(100.0, [0.0, 0.0], 1.0), StudentT(5.0, [1.0, 3.0], 1.0)
    >>> prediction = Mixture([steady, quick], [[0.5, 0.5], [0.9, 0.1]])
    >>> prediction.mean()
    array([0.5, 0.3])
    >>> prediction.std().round(4)
    array([1.2624, 1.3766])
    >>> low, high = prediction.interval(0.95)
    >>> high.round(4)
    array([3.0392, 3.7318])
    >>> prediction.logpdf([0.5, 3.0]).round(4)
    array([-1.0807, -3.1565])
    >>> prediction[0]
    Mixture(2 components, 1 distribution)
    """

    __slots__ = ("_single", "components", "weights")
    _KNOWS_NOTHING = "a component knows nothing about it yet"

    components: tuple[LocationScale, ...]
    weights: FloatArray

    def __init__(self, components: Sequence[LocationScale], weights: ArrayLike) -> None:
        self.components = tuple(components)
        self.weights = check_weights(weights, len(self.components))
        check_components(self.components, self.weights)
        self._single: MixtureComponents | None = None  # of one row, once they were asked for

    @classmethod
    def of(cls, parts: Sequence[LocationScale | Mixture], weights: ArrayLike) -> Self:
        """Mixture of distributions by weights (K,) or (n, K); one that is a mixture is opened.

        Examples
        --------
        >>> from posterity.distributions import Mixture, Normal
        >>> half = Mixture([Normal([0.0], 1.0), Normal([1.0], 1.0)], [0.5, 0.5])
        >>> Mixture.of([half, Normal([4.0], 1.0)], [0.5, 0.5]).weights
        array([0.25, 0.25, 0.5 ])
        """
        weights = as_floats(weights)
        components = [part for part in parts if not isinstance(part, Mixture)]
        if len(components) == len(parts):
            return cls(components, weights)
        components = []
        columns: list[FloatArray] = []
        for k, part in enumerate(parts):
            column = weights[..., k : k + 1]
            if isinstance(part, Mixture):
                components += part.components
                column = column * part.weights
            else:
                components.append(part)
            columns.append(column)
        lead = np.broadcast_shapes(*(column.shape[:-1] for column in columns))
        columns = [np.broadcast_to(each, (*lead, each.shape[-1])) for each in columns]
        return cls(components, np.concatenate(columns, axis=-1))

    def widen(self, variance: ArrayLike) -> Self:
        """The same with ``variance`` (n,) added to each component's squared scale.

        Examples
        --------
        >>> from posterity.distributions import Mixture, Normal
        >>> mixture = Mixture([Normal([0.0], 3.0), Normal([0.0], 0.0)], [0.5, 0.5])
        >>> mixture.widen([16.0]).components[0].std()
        array([5.])
        """
        return type(self)([one.widen(variance) for one in self.components], self.weights)

    # ---- rows ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        shapes = (self.weights.shape[:-1], *(c.shape for c in self.components))
        return next((shape for shape in shapes if shape), ())

    def _rows(self, index: Any) -> Self:
        components = [c[index] if c.shape else c for c in self.components]
        weights = self.weights if self.weights.ndim == 1 else self.weights[index]
        return type(self)(components, weights)

    def __repr__(self) -> str:
        shape = self.shape
        rows = "1 distribution" if not shape else f"{shape[0]} row{'s' * (shape[0] != 1)}"
        count = len(self.components)
        return f"Mixture({count} component{'s' * (count != 1)}, {rows})"

    def _flat(self) -> Any:
        return self._evaluate_rows(lambda _, terms: has_flat_component(terms), _NO_ARGUMENT)

    # ---- moments ----

    def _mean(self) -> FloatArray:
        return self._evaluate_rows(
            lambda _, terms: total(terms, lambda term: term.loc), _NO_ARGUMENT
        )

    def _var(self) -> FloatArray:
        def formula(_: Any, terms: MixtureComponents) -> Any:
            mean = total(terms, lambda term: term.loc)
            ordinary = all_ordinary(terms)

            def square(term: Any) -> Any:
                between = np.square(term.loc - mean)
                if not ordinary:
                    return term.distribution().var() + between
                unit = term.family().variance(*term.shape_parameters())
                return np.square(term.scale) * unit + between

            return total(terms, square)

        return self._evaluate_rows(formula, _NO_ARGUMENT)

    # ---- densities and probabilities ----

    def _logpdf(self, y: FloatArray) -> FloatArray:
        def formula(y: Any, terms: MixtureComponents) -> Any:
            if not all_ordinary(terms):
                return log_density(y, terms)
            value = np.atleast_1d(density(y, terms))
            lost = ~(value > _LEAST_DENSITY)
            log = np.log(value)
            if lost.any():
                some = y if y.ndim == 0 else y[lost]
                wide = [t.take(lost) if lost.size > 1 else t for t in terms]
                log[lost] = log_density(some, wide)
            return log

        return self._evaluate_rows(formula, y)

    def _cdf(self, y: FloatArray) -> FloatArray:
        return self._probability(y, "cdf", 1.0)

    def _sf(self, y: FloatArray) -> FloatArray:
        return self._probability(y, "sf", -1.0)

    def _ppf(self, q: FloatArray) -> FloatArray:
        sign = np.asarray(np.where(q > 0.5, -1.0, 1.0))
        lower = np.where(q > 0.5, 1.0 - q, q)
        lower = np.asarray(np.where(lower >= 0.0, lower, math.nan))
        # Values that all rows share are shared in the block: one side and one probability.
        if q.size and (sign == sign.flat[0]).all():
            return self._compute_lower_quantile(lower, float(sign.flat[0]))
        below, above = (
            self._compute_lower_quantile(lower, 1.0),
            self._compute_lower_quantile(lower, -1.0),
        )
        value: FloatArray = np.where(sign > 0.0, below, above)[()]
        return value

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        tail = 0.5 * (1.0 - levels)
        low, high = (
            self._compute_lower_quantile(tail, 1.0),
            self._compute_lower_quantile(tail, -1.0),
        )
        flat = np.broadcast_to(self.is_flat(), low.shape)
        if not flat.any():
            return low, high
        return np.where(flat, -math.inf, low)[()], np.where(flat, math.inf, high)[()]

    def _crps(self, y: FloatArray) -> FloatArray:
        return self._evaluate_rows(crps, y)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        chosen = draw_components(rng, self.weights, size)
        draws = np.empty(size)
        for k, component in enumerate(self.components):
            here = chosen == k
            if here.any():
                names = (
                    ("df", "loc", "scale") if isinstance(component, StudentT) else ("loc", "scale")
                )
                some = [np.broadcast_to(getattr(component, name), size)[here] for name in names]
                draws[here] = type(component)(*some).rvs(random_state=rng)
        drawn: FloatArray = draws[()]
        return drawn

    # ---- helpers ----

    def _evaluate_rows(self, formula: Callable[..., Any], first: FloatArray) -> FloatArray:
        return over_rows(formula, self._list_terms, first, self.shape)

    def _list_terms(self, rows: slice, single: bool) -> MixtureComponents:
        if self._single is not None:
            return self._single
        terms = list_terms(self.components, self.weights, rows, single)
        self._single = terms if single else None
        return terms

    def _probability(self, y: FloatArray, method: str, sign: float) -> FloatArray:
        def formula(y: Any, terms: MixtureComponents) -> Any:
            if all_ordinary(terms):
                side = np.asarray(sign)
                return lower_tail(side * y, [term.reflect(side) for term in terms])
            value = total(terms, lambda term: getattr(term.distribution(), method)(y))
            value = np.where(has_flat_component(terms), 0.5, value)
            return np.where(np.isnan(y), math.nan, value)

        return self._evaluate_rows(formula, y)

    def _compute_lower_quantile(self, p: FloatArray, sign: float) -> FloatArray:
        """Quantiles of the lower tail (sign 1), or of the upper one (sign -1), p <= 1/2."""
        side = np.asarray(sign)

        def formula(p: Any, terms: MixtureComponents) -> Any:
            mirrored = terms if sign > 0.0 else [term.reflect(side) for term in terms]
            return side * quantile(p, mirrored)

        return self._evaluate_rows(formula, p)
