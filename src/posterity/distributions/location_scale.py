"""Base of Normal and Student-t: one distribution per row, given by a location and a scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._family import StandardFamily
from posterity.distributions._limits import is_flat, is_ordinary, write_limits
from posterity.distributions._rows import FloatArray, as_floats, rowwise
from posterity.distributions.row_distribution import RowDistribution


class LocationScale(RowDistribution):
    """One distribution per row; see :class:`Normal` and :class:`StudentT`.

    Nothing is checked when one is made: that would cost more than making it.

    Three kinds of rows:

    * ordinary ones, with a finite positive scale;
    * *flat* ones, about which nothing is known yet: an infinite scale (or df <= 0). They are
      improper, with Lebesgue density one: ``pdf`` is 1 and ``logpdf`` is 0 everywhere, for such is
      the predictive density of a row that a flat prior has given nothing to go by, and so the sum
      of log predictive densities remains the log evidence. ``mean()`` is the location, ``std()``
      and ``crps`` are infinite, ``interval`` is (-inf, inf), ``cdf`` is 1/2, ``rvs`` raises;
    * *point masses*, of scale 0 (a perfect fit): ``logpdf`` is inf at the location and -inf
      elsewhere, ``cdf`` is a step, ``crps`` is the absolute error.

    A NaN among the targets gives NaN. No method warns.
    """

    __slots__ = ("loc", "scale")

    loc: FloatArray
    scale: FloatArray

    # ---- what the two kinds say of themselves ----

    def _family(self) -> StandardFamily:
        raise NotImplementedError

    def _shape_parameters(self) -> tuple[FloatArray, ...]:
        return ()

    def _take(self, index: Any) -> tuple[FloatArray, ...]:
        """The parameters of some rows; a parameter that all rows share stays one number."""
        shape = self.shape
        parameters = (*self._shape_parameters(), self.loc, self.scale)
        return tuple(
            p if p.ndim == 0 else (p if p.shape == shape else np.broadcast_to(p, shape))[index]
            for p in parameters
        )

    # ---- rows ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        parameters = (*self._shape_parameters(), self.loc, self.scale)
        shapes = {p.shape for p in parameters if p.ndim}
        if len(shapes) == 1:  # as of predictions
            return shapes.pop()
        return np.broadcast_shapes(*shapes)

    def _rows(self, index: Any) -> Self:
        return type(self)(*self._take(index))

    def __repr__(self) -> str:
        names = ("df", "loc", "scale")[-2 - len(self._shape_parameters()) :]
        with np.printoptions(precision=6, threshold=6, edgeitems=2):
            values = ", ".join(
                f"{n}={p:.6g}" if p.ndim == 0 else f"{n}={p}"
                for n, p in zip(names, (getattr(self, n) for n in names), strict=True)
            )
        return f"{type(self).__name__}({values})"

    def _flat(self) -> Any:
        return is_flat(self.scale, self._shape_parameters())

    def widen(self, variance: ArrayLike) -> Self:
        """The same with ``variance`` (n,) added to each squared scale.

        Examples
        --------
        >>> from posterity.distributions import Normal
        >>> Normal([0.0, 1.0], [3.0, 1.0]).widen([16.0, 0.0]).std()
        array([5., 1.])
        """
        scale = np.sqrt(np.square(self.scale) + as_floats(variance))
        return type(self)(*(*self._shape_parameters(), self.loc, scale))

    # ---- moments ----

    def _mean(self) -> FloatArray:
        filled: FloatArray = np.array(np.broadcast_to(self.loc, self.shape))[()]
        return filled

    def _median(self) -> FloatArray:
        return self._mean()

    def _var(self) -> FloatArray:
        variance = self._family().variance
        return self._evaluate(
            lambda _, loc, scale, *shape: np.square(scale) * variance(*shape),
            np.zeros(()),
            lambda _, loc: (math.inf, 0.0),
        )

    # ---- densities and probabilities ----

    def _logpdf(self, y: FloatArray) -> FloatArray:
        logpdf = self._family().logpdf
        return self._evaluate(
            lambda y, loc, scale, *shape: logpdf((y - loc) / scale, *shape) - np.log(scale),
            y,
            lambda y, loc: (0.0, np.where(y == loc, math.inf, -math.inf)),
        )

    def _cdf(self, y: FloatArray) -> FloatArray:
        cdf = self._family().cdf
        return self._evaluate(
            lambda y, loc, scale, *shape: cdf((y - loc) / scale, *shape),
            y,
            lambda y, loc: (0.5, y >= loc),
        )

    def _sf(self, y: FloatArray) -> FloatArray:
        cdf = self._family().cdf
        return self._evaluate(
            lambda y, loc, scale, *shape: cdf((loc - y) / scale, *shape),
            y,
            lambda y, loc: (0.5, y < loc),
        )

    def _ppf(self, q: FloatArray) -> FloatArray:
        ppf = self._family().ppf
        return self._evaluate(
            lambda q, loc, scale, *shape: loc + scale * ppf(q, *shape),
            np.where((q >= 0.0) & (q <= 1.0), q, math.nan),
            lambda q, loc: (np.select([q < 0.5, q > 0.5], [-math.inf, math.inf], loc), loc),
        )

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        ppf = self._family().ppf
        half = self._evaluate(
            lambda tail, loc, scale, *shape: -scale * ppf(tail, *shape),
            0.5 * (1.0 - levels),
            lambda _, loc: (math.inf, 0.0),
        )
        with np.errstate(all="ignore"):
            return self.loc - half, self.loc + half

    def _crps(self, y: FloatArray) -> FloatArray:
        crps = self._family().crps
        return self._evaluate(
            lambda y, loc, scale, *shape: scale * crps((y - loc) / scale, *shape),
            y,
            lambda y, loc: (math.inf, np.abs(y - loc)),
        )

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        standard = self._family().draw(rng, size, *self._shape_parameters())
        draws: FloatArray = self.loc + self.scale * standard
        return draws

    # ---- helpers ----

    def _evaluate(
        self,
        formula: Callable[..., FloatArray],
        first: FloatArray,
        limits: Callable[[FloatArray, FloatArray], tuple[Any, Any]],
    ) -> FloatArray:
        """``formula(first, loc, scale, *shape)`` of all rows.

        ``limits(first, loc)`` are what takes its place in flat rows, and in point masses.
        """

        def write(*block: FloatArray) -> FloatArray:
            first, loc, scale, *shape = block
            value = formula(*block)
            if is_ordinary(scale, shape):
                return value
            flat, point = limits(first, loc)
            return write_limits(value, scale, shape, flat=flat, point=point, given=first)

        return rowwise(write, first, self.loc, self.scale, *self._shape_parameters())
