"""Expected rewards of all arms in a context, learned from the arm that each context was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from posterity.grouped import GroupedRegression

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class RewardModel(Protocol):
    """The interface of a model of each arm's expected reward."""

    learns: bool  # whether rows change what is expected

    def predict(self, X: Array) -> Array:
        """(n, K) expected rewards in contexts X (n, m)."""
        ...

    def learn(self, X: Array, arms: Index, rewards: Array) -> None:
        """Learn rewards (n,) of the arms (n,) that were given to contexts X (n, m)."""
        ...


class SharedRewards:
    """A linear model for each arm, under the prior of a bandit's arms.

    The noise, the scales of the features and the mean of the intercepts are learned over all arms;
    two arms do not show a covariance of the coefficients.
    """

    learns = True

    def __init__(self, n_arms: int) -> None:
        self._n_arms = n_arms
        self._model: Any = GroupedRegression(prior_mean=0.0, prior_precision="unit information")
        self._has_rewards = False

    def predict(self, X: Array) -> Array:
        """See :class:`RewardModel`; 0 before any row."""
        if not self._has_rewards:
            return np.zeros((len(X), self._n_arms))
        # The rows that say a line: its height at 0 and at 1 of each feature.
        corners = np.vstack([np.zeros(X.shape[1] or 1), np.eye(X.shape[1] or 1)])
        lines = self._model.predict(
            np.tile(corners, (self._n_arms, 1)),
            groups=np.repeat(np.arange(self._n_arms), len(corners)),
        ).reshape(self._n_arms, -1)
        slopes = lines[:, 1:] - lines[:, :1]
        return np.asarray(_add_constant_column(X) @ slopes.T + lines[:, 0])

    def learn(self, X: Array, arms: Index, rewards: Array) -> None:
        """See :class:`RewardModel`."""
        if len(X):
            self._model.partial_fit(_add_constant_column(X), rewards, groups=arms)
            self._has_rewards = True


class SeparateRewards:
    """Any estimator, a copy for each arm."""

    learns = True

    def __init__(self, model: Any, n_arms: int) -> None:
        self._models = [clone(model) for _ in range(n_arms)]
        self._has_rewards = np.zeros(n_arms, dtype=bool)

    def predict(self, X: Array) -> Array:
        """See :class:`RewardModel`; an arm without rows has the average of all others."""
        expected = np.zeros((len(X), len(self._models)))
        for arm in np.flatnonzero(self._has_rewards):
            means = self._models[arm].predict_mean_distribution(_add_constant_column(X))
            expected[:, arm] = means.mean()
        if self._has_rewards.any() and not self._has_rewards.all():
            expected[:, ~self._has_rewards] = expected[:, self._has_rewards].mean(
                axis=1, keepdims=True
            )
        return expected

    def learn(self, X: Array, arms: Index, rewards: Array) -> None:
        """See :class:`RewardModel`."""
        for arm in np.unique(arms):
            rows = arms == arm
            self._models[arm].partial_fit(_add_constant_column(X[rows]), rewards[rows])
            self._has_rewards[arm] = True


class RewardsWithin:
    """A model whose predictions are cut to what rewards can be, or else to the rewards so far.

    The past alone decides, so what is unbiased with any predictions stays so.
    """

    learns = True

    def __init__(self, model: RewardModel, ends: tuple[float, float] | None) -> None:
        self._model, self._is_given = model, ends is not None
        self._ends = ends or (np.inf, -np.inf)

    def predict(self, X: Array) -> Array:
        """See :class:`RewardModel`."""
        expected, (low, high) = self._model.predict(X), self._ends
        return np.clip(expected, low, high) if low <= high else expected

    def learn(self, X: Array, arms: Index, rewards: Array) -> None:
        """See :class:`RewardModel`."""
        if len(rewards) and not self._is_given:
            low, high = self._ends
            self._ends = min(low, float(rewards.min())), max(high, float(rewards.max()))
        self._model.learn(X, arms, rewards)


class GivenRewards:
    """A function X (n, m) -> (n, K), which learns nothing."""

    learns = False

    def __init__(self, function: Callable[[Array], Any], n_arms: int) -> None:
        self._function, self._n_arms = function, n_arms

    def predict(self, X: Array) -> Array:
        """See :class:`RewardModel`."""
        expected = np.asarray(self._function(X), dtype=np.float64)
        # A sum is finite only if all numbers are, and is quicker found.
        finite = np.isfinite(expected.sum()) or np.isfinite(expected).all()
        if expected.shape != (len(X), self._n_arms) or not finite:
            raise ValueError(
                f"reward_model gave an array of shape {expected.shape} for {len(X)} contexts and "
                f"{self._n_arms} arms: it must give a finite number for each of them"
            )
        return expected

    def learn(self, X: Array, arms: Index, rewards: Array) -> None:
        """Do nothing."""


def reward_model(
    model: Any, n_arms: int, reward_range: tuple[float, float] | None = None
) -> RewardModel:
    """None for linear models that share a prior, an estimator, or a function X -> (n, K).

    What is learned predicts within ``reward_range``, or else within the rewards learned so far.

    Examples
    --------
    >>> model = reward_model(None, 2)
    >>> X, arms = np.linspace(0.0, 1.0, 40)[:, None], np.arange(40) % 2
    >>> model.learn(X, arms, 1.0 * arms)
    >>> model.predict(X[:1]).round(1).tolist()
    [[0.0, 1.0]]
    """
    if model is None:
        return RewardsWithin(SharedRewards(n_arms), reward_range)
    if callable(model):
        return GivenRewards(model, n_arms)
    if not hasattr(model, "predict_mean_distribution"):
        raise TypeError(
            f"reward_model is {model!r}: give an estimator of posterity, a function of "
            "contexts X, or None"
        )
    return RewardsWithin(SeparateRewards(model, n_arms), reward_range)


def _add_constant_column(X: Array) -> Array:
    """Replace contexts without features by a constant column."""
    return X if X.shape[1] else np.zeros((len(X), 1))


__all__ = ["RewardModel", "reward_model"]
