"""Generalized posteriors that forget at different rates, averaged by how well each predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from posterity.distributions import Normal
from posterity.evidence import matched
from posterity.factor.parallel import take_turns
from posterity.likelihoods import Labels
from posterity.posteriors.averaged import KNOWS, MOST_TELLING, VARIES, AveragedPosterior, Standing
from posterity.posteriors.generalized import GeneralizedPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GeneralizedAverage(AveragedPosterior):
    """As :class:`AveragedPosterior`, of members that learn through a likelihood.

    Labels are predicted by the mixture of the members' probabilities; other targets by the
    likelihood under one Gaussian for eta, of the mean and variance of the members' mixture.
    """

    @property
    def members(self) -> tuple[GeneralizedPosterior, ...]:
        """The posteriors that are averaged."""
        return cast(tuple[GeneralizedPosterior, ...], self.runs)

    def fit(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed, offsets)

    def append(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> None:
        """Learn rows in order."""
        self.predict_then_learn(X, y, weights, elapsed, offsets)

    def predict_then_learn(
        self,
        X: Array,
        y: Array,
        weights: Array | None,
        elapsed: Array,
        offsets: Array | None = None,
    ) -> Any:
        """Learn row after row; returns the distribution of each target before its row."""
        before = self.copy()
        count = len(self.runs)
        densities, means, variances = (np.zeros((count, len(X))) for _ in range(3))

        def learn(i: int) -> None:
            member = self.members[i]
            learned = member.learn_in_order(X, y, weights, elapsed.copy(), offsets)
            densities[i] = np.clip(learned.sites.log_normalizer, -MOST_TELLING, MOST_TELLING)
            means[i], variances[i] = learned.mean, learned.variance

        try:
            take_turns(learn, range(count - 1, -1, -1))
        except BaseException:
            self.become(before)
            raise
        ranks = np.where(np.isfinite(variances), VARIES, KNOWS).astype(np.uint8)
        shares, log_density = self._average(densities, ranks, self.standing)
        self.standing.log_evidence += log_density
        return self._mixed(means, variances, np.ascontiguousarray(shares.T))

    def predictive(self, X: Array, offsets: Array | None = None) -> Any:
        """Distribution of new targets at the rows of ``X``."""
        told = [member.linear_predictor(X, offsets) for member in self.members]
        means = np.array([one.loc for one in told])
        variances = np.square([one.scale for one in told])
        return self._mixed(means, variances, self.weights[:, None])

    def linear_predictor(self, X: Array, offsets: Array | None = None) -> Normal:
        """Distribution of eta at the rows of ``X``, with the mixture's mean and variance."""
        told = [member.linear_predictor(X, offsets) for member in self.members]
        scales = np.array([one.scale for one in told])
        return Normal(*matched(np.array([one.loc for one in told]), scales, self.weights))

    @property
    def pearson(self) -> tuple[float, float]:
        """Of the member that predicts best."""
        return self.members[int(np.argmax(self.weights))].pearson

    @property
    def weights(self) -> Array:
        """Weights (k,) of the members for the next row."""
        count = len(self.runs)
        ranks = np.full((count, 1), VARIES, dtype=np.uint8)
        standing = Standing(self.standing.members.copy(), self.standing.rates.copy())
        return self._average(np.zeros((count, 1)), ranks, standing)[0][0]

    def _mixed(self, means: Array, variances: Array, shares: Array) -> Any:
        """Predictions by members (k, n) of these shares (k, n or 1)."""
        told = [
            member.predicted(mean, variance)
            for member, mean, variance in zip(self.members, means, variances, strict=True)
        ]
        if all(isinstance(one, Labels) for one in told):
            yes = logsumexp([one.log_yes for one in told], b=shares, axis=0)
            no = logsumexp([one.log_no for one in told], b=shares, axis=0)
            return Labels(yes, no)
        mean, scale = matched(means, np.sqrt(variances), shares * np.ones_like(means))
        return self.members[0].predicted(mean, scale * scale)
