"""Prior scales that are learned within bounds, for predictors whose size is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.evidence.choice import Choice
from posterity.evidence.columns import (
    SMALLEST,
    FeatureScales,
    RunningScales,
    compute_prior_shapes,
)
from posterity.evidence.local_scales import LocalScales
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.noise import Noise

STEPS = 60
# Where the rows tell of so large a share of the coefficients, no prior holds one of them down.
WELL_TOLD = 0.97
# A feature's mean square is at least the square of its largest deviation, divided by this.
REACH_DIVISOR = 30.0
# Grid of log scales of log odds.
LOG_SCALES = np.arange(-20.0, 20.05, 0.1)


@dataclass
class RareFeatureScales(RunningScales):
    """Scales of features; that of a rare feature is its scale in the rows where it is not zero.

    A level that came once among n rows has the mean square 1 / n, and a prior in units of that
    would believe anything of it. Where the predictor is a logarithm that will not do. Rows count
    one each, whatever they weigh.

    Examples
    --------
    >>> scales = RareFeatureScales.before_data(1)
    >>> scales.learn(np.array([[0.0]] * 299 + [[1.0]]), None)
    >>> scales.read(intercept=True).squares.round(4)
    array([0.0331])
    """

    low: Array
    high: Array

    @classmethod
    def before_data(cls, n_features: int) -> Self:
        """Return the scales of no rows."""
        nothing = np.zeros(n_features)
        return cls(0.0, nothing, nothing, np.full(n_features, np.inf), np.full(n_features, -np.inf))

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.count, self.mean, self.squares, self.low, self.high)

    def learn(self, X: Array, weights: Array | None) -> None:
        """Take in rows ``X`` (n, m) that weigh anything."""
        rows = X if weights is None else X[weights > 0.0]
        super().learn(rows, None)
        self.low = np.minimum(self.low, rows.min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, rows.max(axis=0, initial=-np.inf))

    def merge(self, other: Self) -> None:  # type: ignore[override]
        """Merge another one into this one."""
        super().merge(other)
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)

    def read(self, *, intercept: bool) -> FeatureScales:
        """Return mean squares as :func:`posterity.evidence.columns.mean_squares`."""
        squares, pinned = super().read(intercept=intercept)[:2]
        if self.count == 0.0:
            return FeatureScales(squares, pinned)
        centre = self.mean if intercept else 0.0
        reach = np.maximum(np.abs(self.low - centre), np.abs(self.high - centre))
        larger = np.maximum(squares, reach * reach / REACH_DIVISOR)
        return FeatureScales(larger, pinned, squares / np.maximum(larger, SMALLEST))


@dataclass(frozen=True)
class Bounded:
    """Integrate the evidence over the predictor's prior variance, within bounds: one node.

    The coefficients have the prior w_j ~ N(m_j, sigma^2 / (ratio s_j^2)) as under
    :class:`Integrated`. That gives the predictor x.w a variance over the rows, which is believed to
    be log-uniform between ``smallest`` and ``largest``; the node is its geometric mean given the
    data. Where the evidence prefers it, coefficients have scales of their own, by which
    :class:`LocalScales` divides the same variance: a strong feature is not held down by many weak
    ones. A log variance is of such a kind: that noise should differ by e^10 is not to be believed
    of a few rows, and mostly it does not depend on the features.

    Parameters
    ----------
    smallest, largest
        Bounds of the prior variance of the predictor, in units of the noise's variance.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.noise import KnownNoise
    >>> data = Factor(2)
    >>> data.append(np.array([[-1.0], [0.0], [1.0]]), np.zeros((3, 1)), intercept=True)
    >>> choice = Bounded().choose(data, KnownNoise(1.0), intercept=True, mean=np.zeros(1))
    >>> choice.weights, choice.found
    (array([1.]), 'integrated within bounds')
    """

    smallest: float = 1e-6
    largest: float = 4.0

    def __post_init__(self) -> None:
        if not 0.0 < self.smallest < self.largest < np.inf:
            raise ValueError(
                f"the bounds are {self.smallest} and {self.largest}: they must be positive, "
                "finite and increasing"
            )

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """Choose one node, of the likeliest shape; parameters as in :class:`Strategy`."""
        prior = compute_prior_shapes(data, shapes, scales, intercept=intercept)
        variances = np.geomspace(self.smallest, self.largest, STEPS)
        shares = None if scales is None else scales.shares
        # Rows that weigh nothing have no spread, but the bounds are for such rows, too.
        least = 0.0 if shares is None else float(shares[~prior[1]].sum())

        def average(spectrum: Spectrum) -> Average:
            ratios = max(least, spectrum.signal) / variances
            logs = spectrum.log_evidence(ratios, noise) - np.log(STEPS)
            return Average.from_logs(np.log(ratios), logs, [spectrum])

        choice = _choose_one_node(average, data, noise, prior, intercept=intercept, mean=mean)
        choice = replace(choice, found="integrated within bounds")
        free = ~prior[1]
        if choice.n_parameters >= WELL_TOLD * np.count_nonzero(free):
            return choice
        local = LocalScales(most_nodes=1).find_local(
            data, noise, intercept=intercept, mean=mean, shapes=shapes, scales=scales
        )
        if local is None or local.log_evidence <= choice.log_evidence:
            return choice
        own, of_one = ((prior[0][0] / one.precisions[0])[free].sum() for one in (local, choice))
        divided = local.scale(float(np.sqrt(own / of_one)))
        return replace(divided, ratios=choice.ratios, found=choice.found)


@dataclass(frozen=True)
class OddsScale:
    """Integrate the evidence over the scale of coefficients of log odds: one node.

    The coefficients have the prior w_j ~ N(m_j, 1 / (scale s_j^2)), s_j^2 the mean square of
    feature j, with a Normal prior of the log of the scale; the node is its geometric mean given the
    data. Log odds have a scale of their own: a feature that is one sd larger seldom changes odds by
    more than e^5 (Gelman et al. 2008, "A weakly informative default prior distribution for logistic
    and other regression models"), which few rows of separated classes would not say.

    Parameters
    ----------
    sd
        Standard deviation of what is believed of the log of the scale, about 0.

    Examples
    --------
    >>> from posterity.noise import KnownNoise
    >>> data = Factor(1)
    >>> data.append(np.array([[10.0]]), np.array([[10.0]]))
    >>> choice = OddsScale().choose(data, KnownNoise(1.0), intercept=0, mean=np.zeros(1))
    >>> choice.weights, bool(choice.ratios[0] < 20.0)
    (array([1.]), True)
    """

    sd: float = 2.0

    def log_scale_prior(self, log_scales: Array) -> Array:
        """Log density of the log of the scale, up to a constant."""
        return np.asarray(-0.5 * np.square(np.asarray(log_scales) / self.sd))

    def average(self, spectra: list[Spectrum], noise: Noise) -> Average:
        """Average over the scale of a prior that several data share, each given by its spectrum."""
        logs = self.log_scale_prior(LOG_SCALES)
        logs = logs - np.log(np.exp(logs).sum())
        for spectrum in spectra:
            logs = logs + spectrum.log_evidence(np.exp(LOG_SCALES), noise)
        return Average.from_logs(LOG_SCALES, logs, spectra)

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """Choose one node, of the likeliest shape; parameters as in :class:`Strategy`."""
        prior = compute_prior_shapes(data, shapes, scales, intercept=intercept)

        def average(spectrum: Spectrum) -> Average:
            return self.average([spectrum], noise)

        return _choose_one_node(average, data, noise, prior, intercept=intercept, mean=mean)


class Average(NamedTuple):
    """Log evidence of an integral over the log ratio, its mean there, and gamma at that."""

    log_evidence: float
    log_ratio: float
    n_parameters: float

    @classmethod
    def from_logs(cls, log_ratios: Array, logs: Array, spectra: list[Spectrum]) -> Average:
        """Return the average whose integrands have these logs."""
        top = float(logs.max())
        weights = np.exp(logs - top)
        total = float(weights.sum())
        log_ratio = float(weights @ log_ratios / total)
        gamma = sum(float(one.n_parameters(np.exp(log_ratio))[0]) for one in spectra)
        return cls(top + float(np.log(total)), log_ratio, gamma)


def _choose_one_node(
    average: Callable[[Spectrum], Average],
    data: Factor,
    noise: Noise,
    prior: tuple[Array, Mask],
    *,
    intercept: int,
    mean: Array,
) -> Choice:
    """The node of the likeliest shape: the mean of the log ratio."""
    found = [
        average(Spectrum.of(data, intercept=intercept, mean=mean, shape=shape))
        for shape in prior[0]
    ]
    which = int(np.argmax([one.log_evidence for one in found]))
    log_evidence, log_ratio, gamma = found[which]
    return Choice.of_ratios(
        np.exp([log_ratio]),
        np.array([which]),
        np.ones(1),
        noise,
        prior,
        data,
        intercept=intercept,
        log_evidence=log_evidence,
        n_parameters=gamma,
        found="integrated",
    )
