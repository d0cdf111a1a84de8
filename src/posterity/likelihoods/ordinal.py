"""The likelihood of ratings: ordered levels, of which nobody knows how far apart they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from posterity.aliases import Array
from posterity.distributions.mixing import get_mixer
from posterity.distributions.row_distribution import CountDistribution
from posterity.kernel import average_softplus
from posterity.kernel.values import read_scalar
from posterity.likelihoods.averages import FEW_NODES
from posterity.likelihoods.classes import LOG_ROOT_2PI, check_link
from posterity.likelihoods.likelihood import Kernel, Likelihood, named_row
from posterity.likelihoods.moderation import log_odds_averaged
from posterity.likelihoods.parameter import LogNormalParameter

# Standard deviation of the log of a gap before data.
SD = 1.5
LEAST_PROBABILITY = 1e-300
# The log odds of what is certain.
FARTHEST = 1e4
# Compiled code has room for so many cut points.
MOST_CUTS = 15


@dataclass(frozen=True)
class Ordinal(Likelihood):
    """A rating 0, 1, ... or ``levels`` - 1; all odds of a higher one are multiplied by exp(eta).

    The cumulative logit, or proportional odds, model (McCullagh 1980): P(y >= j) =
    sigmoid(eta - cut_j); with the link "probit" the normal distribution function of that.
    Neighbouring cut points lie gaps apart, and the middle of the cut points is 0; the intercept
    places them all.

    Parameters
    ----------
    levels : int
        Number of levels, at least 2; also those that never came count.
    gaps : sequence of levels - 2 floats, optional
        Positive distances between neighbouring cut points. None: they are learned; before data
        their logs are Normal(mean, 1.5^2), where exp(mean) is the average gap between levels that
        are equally likely.
    link : "logit" or "probit", default "logit"

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> felt = X[:, 0] + rng.logistic(size=500)
    >>> y = np.digitize(felt, [-1.0, 0.0, 2.0])
    >>> model = BayesianGeneralizedLinear(Ordinal(4)).fit(X, y)
    >>> model.coef_.round(1)
    array([1.])
    >>> model.predict_distribution([[0.0]]).probabilities.round(1)
    array([[0.3, 0.2, 0.4, 0.1]])
    """

    without_maximum: ClassVar[str] = "ratings that are all the lowest, or all the highest"

    levels: int
    gaps: Any = None
    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        levels = read_scalar(self.levels, "levels")
        if not (levels >= 2 and levels % 1 == 0):
            raise ValueError(f"levels is {self.levels}: it must be a whole number, 2 or more")
        check_link(self.link)
        object.__setattr__(self, "levels", int(levels))
        if self.gaps is None:
            return
        gaps = np.asarray(self.gaps, dtype=np.float64)
        if gaps.shape[-1:] != (self.levels - 2,) or not np.all((gaps > 0.0) & (gaps < np.inf)):
            raise ValueError(
                f"gaps is {self.gaps}: {self.levels} levels have {self.levels - 2} gaps between "
                "their cut points, which must be positive and finite; None: they are learned"
            )
        if gaps.ndim == 1:  # so that equal ones are equal
            object.__setattr__(self, "gaps", tuple(gaps.tolist()))

    @property
    def kernel_code(self) -> Kernel | None:
        """The kernel has it built in, for up to 16 levels whose gaps are those of all rows."""
        if self.levels > MOST_CUTS + 1 or np.ndim(self.gaps) > 1:
            return None
        cuts = () if self.learns_parameter else self.cut_points.tolist()
        return Kernel(17, (self.levels, float(self.link == "probit"), 0.0, *cuts))

    @property
    def parameters(self) -> tuple[LogNormalParameter, ...]:
        """The gaps; gap_j is the width of level j."""
        n = self.levels - 2
        ends = np.log(n + 1.0) if self.link == "logit" else ndtri((n + 1.0) / (n + 2.0))
        mean = float(np.log(2.0 * ends / n)) if n else 0.0
        return tuple(LogNormalParameter(f"gap_{j + 1}", mean, SD) for j in range(n))

    @property
    def learns_parameter(self) -> bool:
        """True if its gaps are not given."""
        return self.gaps is None and self.levels > 2

    def with_parameter(self, value: Any) -> Ordinal:
        """The same with these gaps (levels - 2,), or those of each row (n, levels - 2)."""
        return replace(self, gaps=value)

    @property
    def ratio(self) -> str:
        """Eta is the log of the odds of a higher rating, but for a constant, with "logit"."""
        return "odds_ratio" if self.link == "logit" else ""

    @property
    def cut_points(self) -> Array:
        """(levels - 1,), or of each row (n, levels - 1): where a higher rating is as likely."""
        if self.learns_parameter:
            raise ValueError("the gaps of Ordinal(levels) are learned by a model: give gaps here")
        gaps = np.asarray(() if self.gaps is None else self.gaps, dtype=np.float64)
        cuts = np.zeros((*gaps.shape[:-1], self.levels - 1))
        np.cumsum(gaps, axis=-1, out=cuts[..., 1:])
        last = self.levels - 2
        middle = 0.5 * (cuts[..., last // 2] + cuts[..., (last + 1) // 2])
        return np.asarray(cuts - middle[..., None])

    def log_density(self, y: Array, eta: Array) -> Array:
        """Log of the difference of two distribution functions, at the ends less eta."""
        low, high = (end - eta for end in self._ends(y))
        if self.link == "logit":
            return np.asarray(log_expit(high) + log_expit(-low) + np.log(-np.expm1(low - high)))
        # Above 0 the smaller tails are those on the other side.
        flipped = low > 0.0
        low, high = np.where(flipped, -high, low), np.where(flipped, -low, high)
        with np.errstate(invalid="ignore"):  # the lowest level has no lower end
            return log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """With a = sigmoid(high - eta), b = sigmoid(low - eta): a + b - 1 and their variances.

        With "probit" the difference of the densities a and b at these ends, over the probability.
        """
        low, high = (end - eta for end in self._ends(y))
        if self.link == "logit":
            a, b = expit(high), expit(low)
            return a + b - 1.0, a * (1.0 - a) + b * (1.0 - b)
        log = self.log_density(y, eta)
        with np.errstate(invalid="ignore", over="ignore"):
            b, a = (np.exp(-0.5 * end * end - LOG_ROOT_2PI - log) for end in (low, high))
            bend = np.where(a > 0.0, high * a, 0.0) - np.where(b > 0.0, low * b, 0.0)
            slope = b - a
            return slope, np.clip(slope * slope + bend, 0.0, 1.0)

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature, of those of two logistics.

        Compiled code needs few nodes where eta is known well.
        """
        narrow = self.compiled is not None and variance.max(initial=0.0) <= FEW_NODES[-1][0]
        if narrow or self.link != "logit":
            return super().average(y, mean, variance)
        low, high = (np.clip(mean - end, -FARTHEST, FARTHEST) for end in self._ends(y))
        value, slope, bend = np.add(
            average_softplus(low, variance), average_softplus(high, variance)
        )
        return low - value + np.log(-np.expm1(high - low)), 1.0 - slope, bend

    def mean(self, eta: Array) -> Array:
        """The mean rating."""
        above = expit if self.link == "logit" else ndtr
        return np.asarray(above(np.asarray(eta)[..., None] - self.cut_points).sum(axis=-1))

    def is_open(self, y: Array) -> bool:
        """Never: the gaps between cut points are not, and ratings have a lowest and a highest."""
        return False

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError`` unless all are whole numbers from 0 to levels - 1."""
        top = self.levels - 1
        good = (y >= 0.0) & (y <= top) & (y == np.floor(y))
        named_row(y, good, f"a rating of {self.levels} levels must be a whole number, 0 to {top}")

    def predictive(self, mean: Array, variance: Array) -> Levels:
        """Probabilities averaged over eta."""
        off = np.asarray(mean, dtype=np.float64)[..., None] - self.cut_points
        spread = np.broadcast_to(np.asarray(variance, dtype=np.float64)[..., None], off.shape)
        if self.link == "logit":
            logs = log_odds_averaged(off, np.ascontiguousarray(spread))
            above, below = (np.exp(log) for log in logs)
        else:
            above, below = (ndtr(side * off / np.sqrt(1.0 + spread)) for side in (1.0, -1.0))
        ends = np.ones_like(above[..., :1])
        above = np.concatenate([ends, above, 0.0 * ends], axis=-1)
        below = np.concatenate([0.0 * ends, below, ends], axis=-1)
        # Of both differences the one of smaller numbers has more digits.
        shares = np.where(above[..., :-1] < 0.5, -np.diff(above), np.diff(below))
        return Levels(np.maximum(shares, LEAST_PROBABILITY))

    def _ends(self, y: Array) -> tuple[Array, Array]:
        """The cut points below and above each rating, which may be infinite."""
        cuts, level = self.cut_points, np.asarray(y).astype(np.intp)
        ends = np.full((*cuts.shape[:-1], 1), np.inf)
        cuts = np.concatenate([-ends, cuts, ends], axis=-1)
        if cuts.ndim == 1:
            return cuts[level], cuts[level + 1]
        places = np.stack([level, level + 1], axis=-1)
        low, high = np.moveaxis(np.take_along_axis(cuts, places, axis=-1), -1, 0)
        return low, high


class Levels(CountDistribution):
    """Predictive distributions of ratings 0 to K - 1, by their ``probabilities`` (n, K).

    Examples
    --------
    >>> ratings = Levels(np.array([[0.1, 0.2, 0.7]]))
    >>> ratings.mean(), ratings.pmf([1]), ratings.interval(0.5)
    (array([1.6]), array([0.2]), (array([1.]), array([2.])))
    """

    __slots__ = ("probabilities",)

    def __init__(self, probabilities: Array) -> None:
        self.probabilities = probabilities

    def __repr__(self) -> str:
        return f"Levels({self.probabilities.shape[-1]} levels, {self.shape} rows)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        return self.probabilities.shape[:-1]

    @property
    def _levels(self) -> Array:
        return np.arange(self.probabilities.shape[-1], dtype=np.float64)

    def _rows(self, index: Any) -> Levels:
        return Levels(self.probabilities[index])

    def _flat(self) -> Any:
        return np.zeros(self.shape)

    def _mean(self) -> Array:
        return np.asarray(self.probabilities @ self._levels)

    def _var(self) -> Array:
        away = self._levels - self._mean()[..., None]
        return np.asarray((self.probabilities * np.square(away)).sum(axis=-1))

    def _sum(self, y: Array, counts: Any) -> Array:
        """Probability of the levels that ``counts(levels, y)`` says; NaN of NaN."""
        asked = np.asarray(y)[..., None]
        total = (self.probabilities * counts(self._levels, asked)).sum(axis=-1)
        return np.where(np.isnan(y), np.nan, np.minimum(total, 1.0))

    def _logpdf(self, y: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._sum(y, np.equal)))

    def _cdf(self, y: Array) -> Array:
        return self._sum(y, np.less_equal)

    def _sf(self, y: Array) -> Array:
        return self._sum(y, np.greater)

    def _ppf(self, q: Array) -> Array:
        below = np.cumsum(self.probabilities, axis=-1)[..., :-1]
        level = (np.asarray(q)[..., None] > below).sum(axis=-1).astype(np.float64)
        return np.where((q >= 0.0) & (q <= 1.0), level, np.nan)

    def _crps(self, y: Array) -> Array:
        """The ranked probability score (Epstein 1969): sum over levels of (cdf - [y <= j])^2."""
        below = np.cumsum(self.probabilities, axis=-1)[..., :-1]
        came = np.asarray(y)[..., None] <= self._levels[:-1]
        return np.where(np.isnan(y), np.nan, np.square(below - came).sum(axis=-1))

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        return self._ppf(rng.random(size))


@get_mixer.register
def _mix_levels(first: Levels, parts: Sequence[Any], weights: Array) -> Levels:
    columns = weights.T if weights.ndim == 2 else weights[:, None]
    return Levels(
        np.sum(columns[..., None] * np.stack([one.probabilities for one in parts]), axis=0)
    )
