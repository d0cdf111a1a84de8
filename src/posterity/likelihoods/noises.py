"""Likelihoods of a target that is eta plus noise of a known scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from scipy.special import gammaln, logsumexp

from posterity.aliases import Array
from posterity.distributions import Mixture, Normal
from posterity.likelihoods.frozen import freeze
from posterity.likelihoods.kinked import kinked_moments
from posterity.likelihoods.likelihood import Kernel, Likelihood, named_row

Moments = tuple[Array, Array, Array]

LOG_2PI = float(np.log(2.0 * np.pi))
# Where nothing is known of eta, the target tells: eta is believed to lie around it, this many
# scales of the noise away.
VAGUE_SCALES = 1e3
# Of smaller ones, weights of rows have no inverse.
SMALLEST_QUANTILE = 1e-100
# Nodes over the log of the scale of a mixture of Gaussians.
N_SCALES = 64


def check_scale(name: str, value: float) -> None:
    """Raise ``ValueError`` unless it is positive and finite."""
    if not 0.0 < value < np.inf:
        raise ValueError(f"{name} is {value}: it must be positive and finite")


class AddedNoise(Likelihood):
    """A target that is eta plus noise: any finite number."""

    is_noise: ClassVar[bool] = True

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are finite."""
        named_row(y, np.isfinite(y), "a target must be finite")


@dataclass(frozen=True)
class Gaussian(AddedNoise):
    """Normal noise of a known precision: sites are exact.

    Examples
    --------
    >>> from posterity.likelihoods import laplace_sites
    >>> sites = laplace_sites(Gaussian(4.0), [1.0], [0.0], [2.0])
    >>> sites.precision, sites.target
    (array([4.]), array([1.]))
    """

    is_gaussian: ClassVar[bool] = True

    precision: float = 1.0

    def __post_init__(self) -> None:
        check_scale("precision", self.precision)

    @property
    def vague_variance(self) -> float:
        """Variance of eta around the target under a vague prior."""
        return VAGUE_SCALES**2 / self.precision

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(5, (self.precision, 0.0, 0.0))

    def log_density(self, y: Array, eta: Array) -> Array:
        """Normal(eta, 1 / precision)."""
        off = y - eta
        return 0.5 * (np.log(self.precision) - LOG_2PI - self.precision * off * off)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """precision (y - eta), and precision."""
        off = y - eta
        return self.precision * off, np.full_like(off, self.precision)

    def moments(self, y: Array, mean: Array, variance: Array, weights: Array) -> Moments:
        """Exact: log Z, the mean's move, and the ratio of the variances."""
        share = weights * self.precision * variance
        off = y - mean
        log_normalizer = 0.5 * (
            weights * (np.log(self.precision) - LOG_2PI)
            - np.log1p(share)
            - weights * self.precision * off * off / (1.0 + share)
        )
        return log_normalizer, share / (1.0 + share) * off, 1.0 / (1.0 + share)

    def distribution(self, eta: Array) -> Any:
        """Normal(eta, 1 / precision)."""
        return freeze(stats.norm, eta, self.precision**-0.5)

    def predictive(self, mean: Array, variance: Array) -> Normal:
        """Normal, of both variances."""
        return Normal(np.asarray(mean), np.sqrt(np.asarray(variance) + 1.0 / self.precision))


@dataclass(frozen=True)
class StudentT(AddedNoise):
    """Noise with heavy tails: Student-t of ``df`` degrees of freedom and known scale.

    Far out an observation says less and less, and an outlier nothing. As curvature the weight of
    the normal scale mixture is used, (df + 1) / (df scale^2 + e^2), as iteratively reweighted
    least squares does (Lange, Little and Taylor 1989): it is positive everywhere, unlike minus the
    second derivative.

    Parameters
    ----------
    df, scale
        Positive.

    Examples
    --------
    >>> noise = StudentT(df=4.0, scale=1.0)
    >>> noise.derivatives(np.array([0.0, 9.0]), np.zeros(2))[1].round(4)
    array([1.25  , 0.0588])
    """

    df: float = 4.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("df", self.df)
        check_scale("scale", self.scale)

    @property
    def vague_variance(self) -> float:
        """Variance of eta around the target under a vague prior."""
        return (VAGUE_SCALES * self.scale) ** 2

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(6, (self.df, self.scale, self._log_constant))

    @property
    def _log_constant(self) -> float:
        half = 0.5 * (self.df + 1.0)
        constant = gammaln(half) - gammaln(0.5 * self.df) - 0.5 * np.log(np.pi * self.df)
        return float(constant - np.log(self.scale))

    def log_density(self, y: Array, eta: Array) -> Array:
        """Student-t around eta."""
        off = (y - eta) / self.scale
        return self._log_constant - 0.5 * (self.df + 1.0) * np.log1p(off * off / self.df)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """u (y - eta) and u, the weight (df + 1) / (df scale^2 + (y - eta)^2)."""
        off = y - eta
        weight = (self.df + 1.0) / (self.df * self.scale**2 + off * off)
        return weight * off, weight

    def modes(self, y: Array, mean: Array, variance: Array, weights: Array) -> Array:
        """(n,) the highest mode of likelihood times Normal(mean, variance): roots of a cubic.

        With e = y - eta, D = y - mean, c = df scale^2 and k = weight variance (df + 1):
        e^3 - D e^2 + (c + k) e - c D = 0.
        """
        off = y - mean
        squared = self.df * self.scale**2
        pull = weights * variance * (self.df + 1.0)
        # Start at both ends, the target and the mean: all roots lie between them.
        candidates = np.stack([np.zeros(len(off)), off])
        for _ in range(100):
            # Fixed point of the scale mixture's weight, which climbs at every step.
            share = pull / (squared + candidates * candidates)
            candidates = off / (1.0 + share)
        objective = -0.5 * (self.df + 1.0) * weights * np.log1p(candidates**2 / squared)
        with np.errstate(divide="ignore", invalid="ignore"):
            away = np.where(off == candidates, 0.0, (off - candidates) ** 2 / variance)
        best = np.argmax(objective - 0.5 * away, axis=0)
        return y - np.take_along_axis(candidates, best[None], axis=0)[0]

    def moments(self, y: Array, mean: Array, variance: Array, weights: Array) -> Moments:
        """log Z, the mean's move, and the ratio of the variances, by the normal scale mixture.

        (1 + x)^-a, a = weight (df + 1) / 2, is the integral of e^(a t - e^t (1 + x)) / Gamma(a)
        over t, so that given t the likelihood is Gaussian in eta, of precision
        2 e^t / (df scale^2). The trapezoidal rule; what is left of it is e^(a t) / a.
        """
        squared, a = self.df * self.scale**2, np.maximum(0.5 * weights * (self.df + 1.0), 1e-300)
        square = (y - mean) ** 2
        low = np.log(a) - np.log1p(square / squared) - 7.0 / np.sqrt(a + 0.1) - 23.0 / (a + 1.0)
        high = np.log(a + 7.0 * np.sqrt(a) + 30.0)
        step = (high - low) / (N_SCALES - 1)
        t = low + step * np.arange(N_SCALES)[:, None]
        precision = np.concatenate([np.zeros((1, len(a))), 2.0 * np.exp(t) / squared])
        mass = np.concatenate([(a * low - np.log(a))[None], a * t - np.exp(t) + np.log(step)])
        spread = 1.0 + precision * variance
        terms = mass - 0.5 * np.log(spread) - 0.5 * precision * square / spread
        top = terms.max(axis=0)
        share = np.exp(terms - top)
        mass = share.sum(axis=0)
        share /= mass
        total = top + np.log(mass)
        gain = precision * variance / spread
        pulled = (share * gain).sum(axis=0)
        wider = (share * (gain - pulled) ** 2).sum(axis=0) * square
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (share / spread).sum(axis=0) + np.where(variance > 0.0, wider / variance, 0.0)
        log_normalizer = weights * self._log_constant + total - gammaln(a)
        return log_normalizer, pulled * (y - mean), ratio

    def distribution(self, eta: Array) -> Any:
        """Student-t around eta."""
        return freeze(stats.t, self.df, eta, self.scale)

    def predictive(self, mean: Array, variance: Array) -> Mixture:
        """A mixture of 24 Normals over the noise's own scale, matched in mass."""
        half = 0.5 * self.df
        t = np.linspace(-23.0 / half - 7.0 / np.sqrt(half), np.log1p(30.0 / half), 24)
        log_share = half * (t - np.exp(t))
        return _scale_mixture(mean, variance, self.scale**2 * np.exp(-t), log_share)


class Kinked(AddedNoise):
    """Asymmetric Laplace noise: the log density falls by one slope on each side of its kink.

    It has no curvature, so that both approximations match its moments, which are those of two
    truncated normals, exactly.
    """

    kinked: ClassVar[bool] = True

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes of the log density in eta: up to the target, and down from there."""
        raise NotImplementedError

    @property
    def smooth(self) -> Likelihood:
        """Student-t noise of the same scale."""
        return StudentT(4.0, 1.0 / sum(self.slopes))

    @property
    def vague_variance(self) -> float:
        """Variance of eta around the target under a vague prior."""
        return (VAGUE_SCALES / sum(self.slopes)) ** 2

    @property
    def kernel_code(self) -> Kernel:
        """The kernel has it built in."""
        return Kernel(7, (*self.slopes, self._log_constant))

    @property
    def _log_constant(self) -> float:
        up, down = self.slopes
        return float(np.log(up) + np.log(down) - np.log(up + down))

    def log_density(self, y: Array, eta: Array) -> Array:
        """The log of the constant, less slope times distance."""
        up, down = self.slopes
        off = y - eta
        return self._log_constant - np.maximum(up * off, -down * off)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """The slope of the side, 0 at the kink; no curvature."""
        up, down = self.slopes
        slope = np.where(np.asarray(y) < eta, -down, up)
        return np.where(np.asarray(y) == eta, 0.0, slope), np.zeros(slope.shape)

    def moments(self, y: Array, mean: Array, variance: Array, weights: Array) -> Moments:
        """Exact: log Z, the mean's move, and the ratio of the variances."""
        up, down = self.slopes
        log_mass, moved, ratio = kinked_moments(mean - y, variance, weights * up, weights * down)
        return weights * self._log_constant + log_mass, moved, ratio

    def predictive(self, mean: Array, variance: Array) -> Mixture:
        """A mixture of 24 Normals, moved and scaled (Kozumi and Kobayashi 2011, eq. 3).

        The noise is scale (theta z + tau sqrt(z) e), z exponential and e standard normal, with
        theta = (1 - 2 q) / (q (1 - q)) and tau^2 = 2 / (q (1 - q)).
        """
        scale = 1.0 / sum(self.slopes)
        q = scale * self.slopes[0]
        both = q * (1.0 - q)
        theta, tau_squared = (1.0 - 2.0 * q) / both, 2.0 / both
        t = np.linspace(-12.0, np.log(40.0), 24)
        z = np.exp(t)
        return _scale_mixture(mean, variance, scale**2 * tau_squared * z, t - z, scale * theta * z)


@dataclass(frozen=True)
class Quantile(Kinked):
    """Asymmetric Laplace noise, whose q-quantile is eta: a working likelihood of quantiles.

    Its mode under a flat prior is quantile regression (Koenker and Bassett 1978; Yu and Moyeed
    2001).

    Parameters
    ----------
    q
        Between 0 and 1.
    scale
        Positive; of the check function: log p = log(q (1 - q) / scale) - check((y - eta) / scale),
        check(u) = u (q - [u < 0]).

    Examples
    --------
    >>> Quantile(0.9, 1.0).log_density(np.array([1.0, -1.0]), np.zeros(2)).round(3)
    array([-3.308, -2.508])
    """

    q: float = 0.5
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not SMALLEST_QUANTILE < self.q < 1.0:
            raise ValueError(f"q is {self.q}: it must lie between 0 and 1, as in 0.9")
        check_scale("scale", self.scale)

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes of the log density in eta: up to the target, and down from there."""
        return self.q / self.scale, (1.0 - self.q) / self.scale


@dataclass(frozen=True)
class LaplaceNoise(Kinked):
    """Laplace noise of a known scale: its mode is least absolute deviations.

    The density is ``exp(-|y - eta| / scale) / (2 scale)``.

    Examples
    --------
    >>> LaplaceNoise(2.0).log_density(np.array([2.0]), np.zeros(1)).round(4)
    array([-2.3863])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_scale("scale", self.scale)

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes of the log density in eta: up to the target, and down from there."""
        return 1.0 / self.scale, 1.0 / self.scale


def _scale_mixture(
    mean: Array, variance: Array, added: Array, log_share: Array, moved: Array | None = None
) -> Mixture:
    """Normal(mean + moved_k, variance + added_k) with shares k."""
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    shares = np.exp(log_share - logsumexp(log_share))
    moved = np.zeros(len(added)) if moved is None else moved
    parts = [
        Normal(mean + off, np.sqrt(variance + extra))
        for off, extra in zip(moved, added, strict=True)
    ]
    return Mixture(parts, shares)
