"""The joint distribution of coefficients: multivariate Normal and Student-t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import _standard_t
from posterity.distributions._precision_root import PrecisionRoot
from posterity.distributions._rows import FloatArray
from posterity.distributions.joint_distribution import Index, JointDistribution
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT

_LOG_2PI = math.log(2.0 * math.pi)


class _Joint(JointDistribution):
    """Coefficients with covariance scale^2 (R'R)^-1, up to the factor a Student-t adds."""

    def __init__(
        self,
        mean: ArrayLike,
        precision_root: ArrayLike,
        scale: float = 1.0,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        # Copies, as the factor that these came from continues to learn.
        self.mean: FloatArray = np.array(mean, dtype=np.float64)
        self.precision_root: FloatArray = np.array(precision_root, dtype=np.float64)
        self.scale = float(scale)
        self.names = None if names is None else tuple(names)
        p = self.mean.size
        if self.mean.shape != (p,) or self.precision_root.shape != (p, p):
            raise ValueError(
                f"mean has shape {self.mean.shape} and precision_root {self.precision_root.shape}; "
                "give shapes (p,) and (p, p)"
            )
        if self.names is not None and len(self.names) != p:
            raise ValueError(
                f"there are {len(self.names)} names for {p} coefficients: give one for each"
            )
        self._root = PrecisionRoot(self.precision_root)

    # ---- what the two kinds say of themselves ----

    def _size(self) -> int:
        return self.mean.size

    def _law(self, loc: ArrayLike, scale: ArrayLike) -> Any:
        """Normal or StudentT of each coefficient, or sum of them."""
        raise NotImplementedError

    def _log_kernel(self, squared: FloatArray) -> FloatArray:
        """Log density of the unit-scale distribution at squared distances from the mean."""
        raise NotImplementedError

    def _radii(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray | float:
        raise NotImplementedError

    def _noise_unknown(self) -> bool:
        return self.scale == math.inf

    def _project(self, X: FloatArray, shift: FloatArray) -> LocationScale:
        scales = self._scale_root(self._root.scales_along(X))
        return self._law(X @ self.mean + shift, scales)

    def _tabulate(self, X: FloatArray, shift: FloatArray) -> FloatArray:
        """(4, 1, n) weight, degrees of freedom, location and scale of ``X @ w + shift``."""
        law = self._project(X, shift)
        df = law._shape_parameters() or (math.inf,)
        return np.stack(np.broadcast_arrays(1.0, *df, law.loc, law.scale))[:, None]

    def without_knowledge(self, places: NDArray[np.bool_]) -> Self:
        """The same of the other coefficients; of those at ``places`` (p,) nothing is known.

        Each then has an infinite standard deviation. The others are as given those.
        """
        places = np.resize(places, self.mean.size)
        other = copy(self)
        other.precision_root = np.where(places | places[:, None], 0.0, self.precision_root)
        other._root = PrecisionRoot(other.precision_root)
        return other

    # ---- moments ----

    @property
    def cov(self) -> FloatArray:
        """Covariance, shape (p, p); where it is infinite, the limit of ever vaguer priors."""
        return self._root.covariance(float(self._law(0.0, self.scale).var()))

    # ---- density and draws ----

    def _logpdf(self, w: FloatArray) -> FloatArray:
        if self._noise_unknown():
            return np.zeros(w.shape[:-1])[()]
        deviations = (w - self.mean) @ self.precision_root.T
        squared = np.square(deviations).sum(axis=-1)
        if self.scale == 0.0 and self._root.rank:
            return np.where(squared == 0.0, math.inf, -math.inf)[()]
        unit = self._root.log_det - (self._root.rank * math.log(self.scale or 1.0))
        density: FloatArray = unit + self._log_kernel(squared / (self.scale or 1.0) ** 2)
        return density

    def _draw_with_noise(
        self, rng: np.random.Generator, size: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        from posterity.distributions.triangles import solve_triangle

        self._refuse_improper()
        p = self.mean.size
        directions = rng.standard_normal((math.prod(size), p))
        steps = solve_triangle(self.precision_root, directions.T).T.reshape(*size, p)
        noise = np.broadcast_to(self.scale * self._radii(rng, size), (*size, 1))
        return self.mean + noise * steps, noise[..., 0]

    # ---- helpers ----

    def _take(self, index: Index | str) -> Any:
        places = self._resolve_index(index)
        return self._law(self.mean[places], self._scale_root(self._root.scales())[places])

    def _scale_root(self, scales: FloatArray) -> FloatArray:
        if self._noise_unknown():
            return np.full(scales.shape, math.inf)
        # 0 * inf: a perfect fit leaves a coefficient without information undetermined.
        with np.errstate(over="ignore"):
            return np.where(np.isinf(scales), math.inf, self.scale * np.minimum(scales, 1e308))

    def _refuse_improper(self) -> None:
        advice = "learn more rows or use a proper prior"
        if self._root.free.any():
            first = int(np.flatnonzero(self._root.free)[0])
            name = "" if self.names is None else f" ({self.names[first]})"
            raise ValueError(
                f"the posterior is improper: coefficient {first}{name} is not determined yet; "
                f"{advice}"
            )
        if self._noise_unknown():
            raise ValueError(
                f"the posterior is improper: the noise is not determined yet; {advice}"
            )


class MultivariateNormal(_Joint):
    """Joint normal distribution of coefficients, for known noise.

    Parameters
    ----------
    mean : array_like of shape (p,)
        Mean.
    precision_root : array_like of shape (p, p)
        Upper-triangular R; the covariance is ``scale**2 (R'R)^-1`` and is formed only by ``cov``.
        A row of zeros is a coefficient without any information: it has infinite variance, and so
        have those that depend on it.
    scale : float, default 1
        Standard deviation of the noise.
    names : sequence of str, optional
        Names of the coefficients, for messages.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> from posterity.distributions import MultivariateNormal
    >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 1.0], [0.0, 4.0]], scale=0.5)
    >>> posterior.cov.round(6)
    array([[ 0.066406, -0.007812],
           [-0.007812,  0.015625]])
    >>> posterior.interval(0.95).round(3)
    array([[0.495, 1.505],
           [1.755, 2.245]])
    >>> posterior.rvs(3, random_state=0).shape
    (3, 2)
    """

    def _describe_rest(self) -> str:
        return f"scale={self.scale:.6g}"

    def marginal(self, index: Index | str = slice(None)) -> Normal:
        """Marginal distributions of one or some coefficients.

        Parameters
        ----------
        index : int, slice, array or name, default all
            Which coefficients.

        Returns
        -------
        Normal
        """
        return self._take(index)

    def _law(self, loc: ArrayLike, scale: ArrayLike) -> Normal:
        return Normal(loc, scale)

    def _log_kernel(self, squared: FloatArray) -> FloatArray:
        return -0.5 * self._root.rank * _LOG_2PI - 0.5 * squared

    def _radii(self, rng: np.random.Generator, size: tuple[int, ...]) -> float:
        return 1.0


class MultivariateT(_Joint):
    """Joint Student-t distribution of coefficients, for learned noise.

    Parameters
    ----------
    df : float
        Degrees of freedom. At most 2: infinite variances; at most 0: the noise is unknown and the
        distribution improper.
    mean : array_like of shape (p,)
        Location.
    precision_root : array_like of shape (p, p)
        Upper-triangular R; the shape matrix is ``scale**2 (R'R)^-1``, the covariance that times
        ``df/(df - 2)``. A row of zeros is a coefficient without any information: it has infinite
        variance, and so have those that depend on it.
    scale : float, default 1
        Estimate of the standard deviation of the noise.
    names : sequence of str, optional
        Names of the coefficients, for messages.

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> from posterity.distributions import MultivariateT
    >>> posterior = MultivariateT(4.0, [1.0, 2.0], [[2.0, 1.0], [0.0, 4.0]], scale=0.5)
    >>> posterior.std().round(4)
    array([0.3644, 0.1768])
    >>> posterior.interval(0.95).round(3)
    array([[0.285, 1.715],
           [1.653, 2.347]])
    >>> posterior.marginal(1)
    StudentT(df=4, loc=2, scale=0.125)
    """

    def __init__(
        self,
        df: float,
        mean: ArrayLike,
        precision_root: ArrayLike,
        scale: float = 1.0,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(mean, precision_root, scale, names=names)
        self.df = float(df)

    def _describe_rest(self) -> str:
        return f"df={self.df:.6g}, scale={self.scale:.6g}"

    def marginal(self, index: Index | str = slice(None)) -> StudentT:
        """Marginal distributions of one or some coefficients.

        Parameters
        ----------
        index : int, slice, array or name, default all
            Which coefficients.

        Returns
        -------
        StudentT
        """
        return self._take(index)

    def _law(self, loc: ArrayLike, scale: ArrayLike) -> StudentT:
        return StudentT(self.df, loc, scale)

    def _noise_unknown(self) -> bool:
        return self.scale == math.inf or self.df <= 0.0

    def _log_kernel(self, squared: FloatArray) -> FloatArray:
        rank = self._root.rank
        df = min(self.df, _standard_t.MOST_DF)
        constant = -0.5 * rank * _LOG_2PI + float(log_gamma_ratio(df, rank))
        return constant - 0.5 * (df + rank) * np.log1p(squared / df)

    def _radii(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        df = min(self.df, _standard_t.MOST_DF)
        radii: FloatArray = np.sqrt(df / rng.chisquare(df, (*size, 1)))
        return radii


def log_gamma_ratio(df: ArrayLike, rank: int) -> FloatArray:
    """Log of Gamma((df + rank)/2) / (Gamma(df/2) (df/2)^(rank/2)): small, so not a difference.

    By steps of one, Gamma(x + 1) = x Gamma(x), after half a step if the rank is odd.

    Examples
    --------
    >>> log_gamma_ratio([2.0, 1e15], 4).round(9)
    array([0.69314718, 0.        ])
    """
    df = np.asarray(df, dtype=np.float64)
    odd = rank % 2
    steps = 0.5 * odd + np.arange(rank // 2)
    ratio: FloatArray = np.log1p(steps / (0.5 * df[..., None])).sum(axis=-1)
    if odd:
        ratio = ratio + (_standard_t.log_constant(df).reshape(df.shape) + 0.5 * _LOG_2PI)
    return ratio
