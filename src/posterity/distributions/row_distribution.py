"""The methods that all distributions of rows have, named as in SciPy."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions._limits import check_level
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.guesses import TellsNames

# Names in other libraries, and ours.
OUR_NAMES = {
    "hdi": "interval(level), which is central",
    "quantile": "ppf(0.9)",
    "quantiles": "ppf([0.1, 0.9])",
    "sample": "rvs((size, n)), for n rows",
}
# Probabilities that the score is integrated over, on either side of the target's own.
POINTS, SHARES = np.polynomial.legendre.leggauss(48)
POINTS, SHARES = 0.5 * (POINTS + 1.0), 0.5 * SHARES


class RowDistribution(TellsNames):
    """One distribution per row; see :class:`Normal`, :class:`StudentT` and :class:`Mixture`.

    What is public is here; what differs between families is in the methods of the same name with
    an underscore.
    """

    __slots__ = ()

    # The reason why a flat row can't be drawn from.
    _KNOWS_NOTHING: ClassVar[str] = "nothing is known about it yet"

    _our_names = OUR_NAMES

    # ---- rows ----

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows: (n,), or () for a single distribution."""
        raise NotImplementedError

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("a single distribution has no rows and no length; leave out len()")
        return shape[0]

    def __getitem__(self, index: Any) -> Self:
        if not self.shape:
            raise TypeError("a single distribution has no rows to select; leave out the index")
        return self._rows(index)

    def is_flat(self) -> NDArray[np.bool_]:
        """True for each row of which nothing is known; of a mixture, by any component.

        Returns
        -------
        ndarray of shape (n,), bool
        """
        return np.broadcast_to(self._flat() > 0.0, self.shape)

    # ---- moments ----

    def mean(self) -> FloatArray:
        """Location of every row, the weighted mean of them in a mixture.

        It is given also where the mean does not exist (df <= 1, or flat).

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._mean()

    def median(self) -> FloatArray:
        """Median of every row; that of a flat row is its mean.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._median()

    def var(self) -> FloatArray:
        """Variance of every row, in squared units of the target.

        Infinite for flat rows and where a Student-t of at most two degrees of freedom takes part,
        never NaN.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._var()

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
            Natural logarithms; 0 for flat rows, and a flat component counts with density 1.
        """
        return self._logpdf(self._targets(y))

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
        return self._cdf(self._targets(y))

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
        return self._sf(self._targets(y))

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
            the mean at it, inf above.
        """
        return self._ppf(as_floats(q))

    def interval(self, level: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Central interval that holds a new target with probability ``level``.

        The target is below it and above it with equal probability.

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
        return self._interval(check_level(level))

    def expected_shortfall(self, level: float = 0.95) -> FloatArray:
        """Mean of the largest targets: of the share 1 - ``level`` of them.

        What a bad year costs on average, where ``ppf(level)`` is what it costs at least (Acerbi
        and Tasche 2002, On the coherence of expected shortfall).

        Parameters
        ----------
        level : float, default 0.95
            Between 0 and 1.

        Returns
        -------
        ndarray of shape (n,)
            In units of the target; infinite for flat rows. To some four digits.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.

        Examples
        --------
        >>> from posterity.distributions import Normal
        >>> Normal([0.0], [1.0]).expected_shortfall(0.95).round(3)
        array([2.063])
        """
        return self._shortfall(check_level(level))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score at y: the integral of (cdf(t) - [t >= y])^2 dt.

        Parameters
        ----------
        y : array_like
            Targets; broadcast against the rows.

        Returns
        -------
        ndarray
            In units of the target, smaller is better. Infinite where it does not exist: flat rows,
            and where a Student-t of at most one degree of freedom takes part.

        References
        ----------
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation;
        Jordan, Krueger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules;
        Grimit, Gneiting, Berrocal and Johnson (2006), The continuous ranked probability score for
        circular variables and its application to mesoscale forecast ensemble verification, eq. 5.
        """
        return self._crps(self._targets(y))

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Independent draws: of a mixture, first of the component, then from it.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the result; must end in the shape of the rows: ``(m, n)`` gives m draws of
            each of n rows. Default: one draw of each row.
        random_state, rng : int, numpy.random.Generator or None
            As :func:`numpy.random.default_rng` takes it; two names of one thing.

        Returns
        -------
        ndarray of shape ``size``

        Raises
        ------
        ValueError
            If a row is flat, or if ``size`` does not fit the rows.
        """
        rows, flat = self.shape, self.is_flat()
        if flat.any():
            where = f"row {np.flatnonzero(flat)[0]}" if rows else "this distribution"
            raise ValueError(
                f"cannot draw: {where} is improper, for {self._KNOWS_NOTHING} (its scale is "
                "infinite); learn more rows or use a proper prior"
            )
        full = rows if size is None else tuple(np.atleast_1d(size).tolist())
        if full[max(len(full) - len(rows), 0) :] != rows:
            many = full[0] if len(full) == 1 else 1000
            raise ValueError(
                f"size {full} does not end in the shape {rows} of the rows; "
                f"for {many} draws of each row give size={(many, *rows)}"
            )
        return self._draw(np.random.default_rng(random_state if rng is None else rng), full)

    # ---- what families say of themselves ----

    def _rows(self, index: Any) -> Self:
        raise NotImplementedError

    def _flat(self) -> Any:
        raise NotImplementedError

    def _mean(self) -> FloatArray:
        raise NotImplementedError

    def _median(self) -> FloatArray:
        return self._ppf(np.asarray(0.5))

    def _var(self) -> FloatArray:
        raise NotImplementedError

    def _logpdf(self, y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _cdf(self, y: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _targets(self, y: ArrayLike) -> FloatArray:
        given = as_floats(y)
        try:
            np.broadcast_shapes(given.shape, self.shape)
        except ValueError as error:
            raise ValueError(
                f"targets have shape {given.shape}, and there are distributions of {self.shape}: "
                "give one number for each row, or a column (m, 1) for all rows; targets with a "
                "lower and an upper end are scored by posterity.evaluation.score_survival"
            ) from error
        return given

    def _sf(self, y: FloatArray) -> FloatArray:
        return 1.0 - self._cdf(y)

    def _ppf(self, q: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _interval(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._ppf(0.5 - 0.5 * levels), self._ppf(0.5 + 0.5 * levels)

    def _shortfall(self, level: FloatArray) -> FloatArray:
        """By 48 quantiles."""
        # With the cube of the tail's share, nodes are dense where quantiles grow fast.
        nodes, shares = (each.reshape(-1, *(1,) * len(self.shape)) for each in (POINTS, SHARES))
        quantiles = self.ppf(1.0 - (1.0 - level) * nodes**3)
        beyond: FloatArray = np.sum(3.0 * shares * nodes**2 * quantiles, axis=0)
        return beyond

    def _crps(self, y: FloatArray) -> FloatArray:
        """Twice the integral of the check loss over all quantiles (Gneiting and Ranjan 2011).

        Below F(y), t (y - Q(t)), and (1 - t) (Q(t) - y) above: each is smooth but for its end.
        """
        y = np.broadcast_to(y, np.broadcast_shapes(np.shape(y), self.shape))
        below, above = self._cdf(y), self._sf(y)
        # With the square of the tail's share, nodes are dense where quantiles grow fast.
        nodes, shares = (each.reshape(-1, *(1,) * y.ndim) for each in (POINTS, SHARES))
        with np.errstate(invalid="ignore"):
            short = np.square(below) * np.abs(y - self._ppf(below * np.square(nodes)))
            far = np.square(above) * np.abs(self._ppf(1.0 - above * np.square(nodes)) - y)
        total: FloatArray = np.sum(4.0 * shares * nodes**3 * (short + far), axis=0)
        return np.where(self.is_flat() & ~np.isnan(y), np.inf, total)

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        raise NotImplementedError


class CountDistribution(RowDistribution):
    """The same of whole numbers, or of labels: their densities are probabilities."""

    __slots__ = ()

    def logpmf(self, y: ArrayLike) -> FloatArray:
        """Log probability of y, broadcast against the rows."""
        return self.logpdf(y)

    def pmf(self, y: ArrayLike) -> FloatArray:
        """Probability of y, broadcast against the rows."""
        return self.pdf(y)
