"""What Normal and Student-t share: one distribution per row, given by a location and a scale."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._family import StandardFamily
from posterity.distributions._limits import checked_level, is_flat, is_ordinary, settle
from posterity.distributions._rows import FloatArray, as_floats, rowwise


class LocationScale:
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
        return tuple(p if p.ndim == 0 else np.broadcast_to(p, shape)[index] for p in parameters)

    # ---- rows ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        parameters = (*self._shape_parameters(), self.loc, self.scale)
        return np.broadcast_shapes(*(p.shape for p in parameters))

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a single distribution has no length; it has no rows to count")
        return shape[0]

    def __getitem__(self, index: Any) -> Self:
        if not self.shape:
            raise TypeError("a single distribution has no rows to choose from")
        return type(self)(*self._take(index))

    def __repr__(self) -> str:
        names = ("df", "loc", "scale")[-2 - len(self._shape_parameters()) :]
        with np.printoptions(precision=6, threshold=6, edgeitems=2):
            values = ", ".join(
                f"{n}={p:.6g}" if p.ndim == 0 else f"{n}={p}"
                for n, p in zip(names, (getattr(self, n) for n in names), strict=True)
            )
        return f"{type(self).__name__}({values})"

    # ---- moments ----

    def mean(self) -> FloatArray:
        """Location of every row, also where the mean does not exist (df <= 1, or flat).

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._filled(self.loc)

    def median(self) -> FloatArray:
        """Median of every row: its location.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._filled(self.loc)

    def var(self) -> FloatArray:
        """Variance of every row, in squared units of the target.

        Infinite for flat rows and for a Student-t of at most two degrees of freedom, never NaN.

        Returns
        -------
        ndarray of shape (n,)
        """
        family = self._family()

        def formula(scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = np.square(scale) * family.variance(*shape)
            if is_ordinary(scale, shape):
                return (value,)
            return (settle(value, scale, shape, flat=math.inf, point=0.0),)

        return self._filled(rowwise(formula, 1, self.scale, *self._shape_parameters())[0])

    def std(self) -> FloatArray:
        """Standard deviation of every row; see :meth:`var`.

        Returns
        -------
        ndarray of shape (n,)
        """
        root: FloatArray = np.sqrt(self.var())
        return root

    # ---- densities and probabilities ----

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Log density at y.

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
            Natural logarithms; 0 for flat rows.
        """
        family = self._family()

        def formula(y: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = family.logpdf((y - loc) / scale, *shape) - np.log(scale)
            if is_ordinary(scale, shape):
                return (value,)
            at_loc = np.where(y == loc, math.inf, -math.inf)
            return (settle(value, scale, shape, flat=0.0, point=at_loc, given=y),)

        return self._evaluate(formula, y)

    def pdf(self, y: ArrayLike) -> FloatArray:
        """Density at y, in inverse units of the target; 1 for flat rows.

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
        """
        with np.errstate(all="ignore"):
            density: FloatArray = np.exp(self.logpdf(y))
        return density

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of a target of at most y; 1/2 for flat rows.

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
        """
        family = self._family()

        def formula(y: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = family.cdf((y - loc) / scale, *shape)
            if is_ordinary(scale, shape):
                return (value,)
            return (settle(value, scale, shape, flat=0.5, point=y >= loc, given=y),)

        return self._evaluate(formula, y)

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability of a target above y (1 - cdf, without its loss of digits).

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
        """
        family = self._family()

        def formula(y: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = family.cdf((loc - y) / scale, *shape)
            if is_ordinary(scale, shape):
                return (value,)
            return (settle(value, scale, shape, flat=0.5, point=y < loc, given=y),)

        return self._evaluate(formula, y)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """Quantile: the y whose cdf is q.

        Parameters
        ----------
        q : array_like
            Probabilities; broadcast against the rows, so a column (m, 1) gives (m, n).

        Returns
        -------
        ndarray
            In units of the target; NaN where q is not in [0, 1]. Flat rows: -inf below q = 1/2,
            the location at it, inf above.
        """
        family = self._family()

        def formula(q: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = loc + scale * family.ppf(q, *shape)
            if is_ordinary(scale, shape):
                return (value,)
            ends = np.where(q == 0.5, loc, np.where(q < 0.5, -math.inf, math.inf))
            given = np.where((q >= 0.0) & (q <= 1.0), q, math.nan)
            return (settle(value, scale, shape, flat=ends, point=loc, given=given),)

        return self._evaluate(formula, q)

    def interval(self, level: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Central interval that holds a new target with probability ``level``.

        Parameters
        ----------
        level : float or array_like
            Between 0 and 1; broadcast against the rows.

        Returns
        -------
        low, high : ndarray
            In units of the target; (-inf, inf) for flat rows.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        """
        levels = checked_level(level)
        family = self._family()

        def formula(tail: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray, FloatArray]:
            half = -scale * family.ppf(tail, *shape)
            if not is_ordinary(scale, shape):
                half = settle(half, scale, shape, flat=math.inf, point=0.0)
            return loc - half, loc + half

        parameters = (self.loc, self.scale, *self._shape_parameters())
        low, high = rowwise(formula, 2, 0.5 * (1.0 - levels), *parameters)
        return low, high

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score at y: the integral of (cdf(t) - [t >= y])^2 dt.

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
            In units of the target, smaller is better. Infinite where it does not exist: flat rows
            and a Student-t of at most one degree of freedom.

        References
        ----------
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation;
        Jordan, Krueger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules.
        """
        family = self._family()

        def formula(y: Any, loc: Any, scale: Any, *shape: Any) -> tuple[FloatArray]:
            value = scale * family.crps((y - loc) / scale, *shape)
            if is_ordinary(scale, shape):
                return (value,)
            error = np.abs(y - loc)
            return (settle(value, scale, shape, flat=math.inf, point=error, given=y),)

        return self._evaluate(formula, y)

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Independent draws.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result; must end in the shape of the rows: ``(m, n)`` gives m draws of
            each of n rows. Default: one draw of each row.
        random_state : int, numpy.random.Generator or None
            As :func:`numpy.random.default_rng` takes it.

        Returns
        -------
        ndarray of shape ``size``

        Raises
        ------
        ValueError
            If a row is flat, or if ``size`` does not fit the rows.
        """
        shape = self._shape_parameters()
        rows = self.shape
        flat = np.broadcast_to(is_flat(self.scale, shape), rows)
        if flat.any():
            where = f"row {np.flatnonzero(flat)[0]}" if rows else "this distribution"
            raise ValueError(
                f"cannot draw: {where} is improper, for nothing is known about it yet (its scale "
                "is infinite); learn more rows or use a proper prior"
            )
        full = rows if size is None else tuple(np.atleast_1d(size).tolist())
        if full[max(len(full) - len(rows), 0) :] != rows:
            raise ValueError(
                f"size {full} does not end in the shape {rows} of the rows; "
                f"for 1000 draws of each row give size={(1000, *rows)}"
            )
        rng = np.random.default_rng(random_state)
        draws: FloatArray = self.loc + self.scale * self._family().draw(rng, full, *shape)
        return draws

    # ---- helpers ----

    def _evaluate(self, formula: Any, first: ArrayLike) -> FloatArray:
        parameters = (self.loc, self.scale, *self._shape_parameters())
        return rowwise(formula, 1, as_floats(first), *parameters)[0]

    def _filled(self, values: FloatArray) -> FloatArray:
        filled: FloatArray = np.array(np.broadcast_to(values, self.shape))[()]
        return filled
