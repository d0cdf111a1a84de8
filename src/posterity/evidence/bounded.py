"""A prior scale that is learned within bounds, for predictors whose size is known beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from posterity.evidence.choice import Choice
from posterity.evidence.columns import (
    LARGEST,
    FeatureScales,
    RunningScales,
    pinning_precisions,
    prior_shapes,
)
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.noise import Noise

Array = NDArray[np.float64]

STEPS = 60
# A feature's size is its root mean square, or this part of its reach squared where that is more.
PART = 30.0


@dataclass
class ReachingScales(RunningScales):
    """Scales of features that are rare, or rarely large, are those of the rows where they are.

    A level that came once among n rows has the mean square 1 / n, and a prior in units of that
    would believe anything of it. Where the predictor is a logarithm that will not do. Rows count
    one each, whatever they weigh.

    Examples
    --------
    >>> scales = ReachingScales.before_data(1)
    >>> scales.learn(np.array([[0.0]] * 299 + [[1.0]]), None)
    >>> scales.read(intercept=True).squares.round(4)
    array([0.0331])
    """

    low: Array
    high: Array

    @classmethod
    def before_data(cls, n_features: int) -> Self:
        """No rows yet."""
        nothing = np.zeros(n_features)
        return cls(0.0, nothing, nothing, np.full(n_features, np.inf), np.full(n_features, -np.inf))

    def copy(self) -> Self:
        """The same, to go its own way."""
        return type(self)(self.count, self.mean, self.squares, self.low, self.high)

    def learn(self, X: Array, weights: Array | None) -> None:
        """Take in rows ``X`` (n, m) that weigh anything."""
        rows = X if weights is None else X[weights > 0.0]
        super().learn(rows, None)
        self.low = np.minimum(self.low, rows.min(axis=0, initial=np.inf))
        self.high = np.maximum(self.high, rows.max(axis=0, initial=-np.inf))

    def merge(self, other: RunningScales) -> None:
        """Take in all that another one has."""
        super().merge(other)
        if isinstance(other, ReachingScales):
            self.low = np.minimum(self.low, other.low)
            self.high = np.maximum(self.high, other.high)

    def read(self, *, intercept: bool) -> FeatureScales:
        """As :func:`posterity.evidence.columns.mean_squares`."""
        squares, pinned = super().read(intercept=intercept)
        if self.count == 0.0:
            return FeatureScales(squares, pinned)
        centre = self.mean if intercept else 0.0
        reach = np.maximum(np.abs(self.low - centre), np.abs(self.high - centre))
        return FeatureScales(np.maximum(squares, reach * reach / PART), pinned)


@dataclass(frozen=True)
class Bounded:
    """Integrate the evidence over the predictor's prior variance, within bounds: one node.

    The coefficients have the prior w_j ~ N(m_j, sigma^2 / (ratio s_j^2)) as under
    :class:`Integrated`. That gives the predictor x.w a variance over the rows, which is believed to
    be log-uniform between ``smallest`` and ``largest``; the node is its geometric mean given the
    data. A log variance is of such a kind: that noise should differ by e^10 is not to be believed
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
                f"the bounds are {self.smallest} and {self.largest}: they must be positive, finite "
                "and rise"
            )

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: bool,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """One node; parameters as in :class:`Strategy`. Of several shapes the likeliest is used."""
        shapes, pinned = prior_shapes(data, shapes, scales, intercept=intercept)
        variances = np.geomspace(self.smallest, self.largest, STEPS)
        found: list[tuple[float, float, float]] = []
        for shape in shapes:
            spectrum = Spectrum.of(data, intercept=intercept, mean=mean, shape=shape)
            ratios = spectrum.signal / variances
            values = spectrum.log_evidence(ratios, noise)
            top = float(values.max())
            weights = np.exp(values - top)
            total = float(weights.sum())
            ratio = float(np.exp(weights @ np.log(ratios) / total))
            gamma = float(spectrum.n_parameters(ratio)[0])
            found.append((top + float(np.log(total / STEPS)), ratio, gamma))
        which = int(np.argmax([evidence for evidence, _, _ in found]))
        log_evidence, ratio, gamma = found[which]
        precisions = np.minimum(ratio * shapes[which], LARGEST)
        if pinned.any():
            precisions[pinned] = pinning_precisions(data, intercept=intercept)[pinned]
        return Choice(
            precisions[None],
            np.ones(1),
            noise,
            pinned,
            log_evidence,
            np.array([ratio]),
            np.array([which]),
            n_parameters=gamma,
            found="integrated within bounds",
        )
