"""Expected rewards of all arms in a context, learned from the arm that each context was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from posterity.aliases import Array, Indices
from posterity.grouped import GroupedRegression

# Parts of the rows, for linear models, and for others, of which there is a copy for each part.
_PARTS = 20
_COPIES = 10


class RewardModel(Protocol):
    """The interface of a model of each arm's expected reward."""

    learns: bool  # whether rows change what is expected
    parts: int  # of the rows, without each of which it says what it would expect; 0 where none

    def predict(self, X: Array) -> Array:
        """(n, K) expected rewards in contexts X (n, m)."""
        ...

    def predict_without(self, X: Array) -> Iterator[Array]:
        """The same for each part of the rows, by a model that has not learned that part."""
        ...

    def learn(self, X: Array, arms: Indices, rewards: Array, parts: Indices | None = None) -> None:
        """Learn rewards (n,) of the arms (n,) that were given to contexts X (n, m).

        ``parts`` are numbers (n,) of the parts that rows are in, where a model was made with any.
        """
        ...


class SharedRewards:
    """A linear model for each arm, under the prior of a bandit's arms.

    The noise, the scales of the features and the mean of the intercepts are learned over all arms;
    two arms do not show a covariance of the coefficients.
    """

    learns = True

    def __init__(self, n_arms: int, parts: int = 0) -> None:
        self._n_arms, self.parts = n_arms, parts
        self._model: Any = GroupedRegression(prior_mean=0.0, prior_precision="unit information")
        self._sums = PartSums(n_arms, parts)
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

    def predict_without(self, X: Array) -> Iterator[Array]:
        """See :class:`RewardModel`; the prior is that of all rows."""
        if not self._has_rewards:
            yield from (np.zeros((len(X), self._n_arms)) for _ in range(self.parts))
        elif self.parts:
            prior = self._model._posterior.reading().prior
            yield from self._sums.predict(_add_constant_column(X), prior.root, prior.mean)

    def learn(self, X: Array, arms: Indices, rewards: Array, parts: Indices | None = None) -> None:
        """See :class:`RewardModel`."""
        if len(X):
            self._model.partial_fit(_add_constant_column(X), rewards, groups=arms)
            self._has_rewards = True
            if parts is not None:
                self._sums.add(_add_constant_column(X), arms, rewards, parts)


class PartSums:
    """Products of the rows of each arm in each part: all that linear models without a part need.

    Rows are taken less the first ones' means, so that an offset costs no digits.
    """

    def __init__(self, n_arms: int, count: int) -> None:
        self._n_arms, self.count = n_arms, count
        self._centre: Array | None = None  # (m + 1,) of contexts, and of rewards
        self._products = np.zeros((0, 0, 0, 0))  # (parts, K, m + 2, m + 2) of [1, x, r]

    def add(self, X: Array, arms: Indices, rewards: Array, parts: Indices) -> None:
        """Add more rows, at least one."""
        rows = np.column_stack([X, rewards])
        if self._centre is None:
            self._centre = rows.mean(axis=0)
            width = rows.shape[1] + 1
            self._products = np.zeros((self.count, self._n_arms, width, width))
        rows = np.column_stack([np.ones(len(rows)), rows - self._centre])
        cells = parts * self._n_arms + arms
        order = np.argsort(cells, kind="stable")
        found, first = np.unique(cells[order], return_index=True)
        for cell, some in zip(found, np.split(rows[order], first[1:]), strict=True):
            self._products[divmod(int(cell), self._n_arms)] += some.T @ some

    def predict(self, X: Array, root: Array, mean: Array) -> Iterator[Array]:
        """(n, K) of each part, under a prior: root (w - mean) = noise, where w are coefficients."""
        assert self._centre is not None
        centre, offset = self._centre[:-1], self._centre[-1]
        root, mean = root.copy(), mean.copy()
        # The intercept is the height at the centre.
        mean[0] += centre @ mean[1:] - offset
        root[:, 1:] -= np.outer(root[:, 0], centre)
        information, moments = root.T @ root, root.T @ (root @ mean)
        total, points = self._products.sum(axis=0), X - centre
        for part in self._products:
            rest = total - part
            left = rest[:, :-1, :-1] + information
            scale = np.sqrt(np.maximum(np.diagonal(left, axis1=1, axis2=2), 1e-300))
            # A feature that never varied has neither rows nor a prior.
            left = left / scale[:, :, None] / scale[:, None, :] + 1e-12 * np.eye(len(mean))
            right = (rest[:, :-1, -1] + moments) / scale
            lines = np.linalg.solve(left, right[:, :, None])[:, :, 0] / scale
            yield np.asarray(points @ lines[:, 1:].T + lines[:, 0] + offset)


class SeparateRewards:
    """Any estimator, a copy for each arm."""

    learns = True

    def __init__(self, model: Any, n_arms: int, parts: int = 0) -> None:
        self._models = [clone(model) for _ in range(n_arms)]
        self._has_rewards = np.zeros(n_arms, dtype=bool)
        self.parts = parts
        self._without = [SeparateRewards(model, n_arms) for _ in range(parts)]

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

    def predict_without(self, X: Array) -> Iterator[Array]:
        """See :class:`RewardModel`."""
        return (model.predict(X) for model in self._without)

    def learn(self, X: Array, arms: Indices, rewards: Array, parts: Indices | None = None) -> None:
        """See :class:`RewardModel`."""
        for arm in np.unique(arms):
            rows = arms == arm
            self._models[arm].partial_fit(_add_constant_column(X[rows]), rewards[rows])
            self._has_rewards[arm] = True
        for part, model in enumerate(self._without):
            rows = parts != part
            model.learn(X[rows], arms[rows], rewards[rows])


class RewardsWithin:
    """A model whose predictions are cut to what rewards can be, or else to the rewards so far.

    The past alone decides, so what is unbiased with any predictions stays so.
    """

    learns = True

    def __init__(self, model: RewardModel, ends: tuple[float, float] | None) -> None:
        self._model, self._is_given = model, ends is not None
        self.parts = model.parts
        self._ends = (np.inf, -np.inf) if ends is None else ends

    def predict(self, X: Array) -> Array:
        """See :class:`RewardModel`."""
        return self._cut(self._model.predict(X))

    def predict_without(self, X: Array) -> Iterator[Array]:
        """See :class:`RewardModel`."""
        return map(self._cut, self._model.predict_without(X))

    def _cut(self, expected: Array) -> Array:
        low, high = self._ends
        return np.clip(expected, low, high) if low <= high else expected

    def learn(self, X: Array, arms: Indices, rewards: Array, parts: Indices | None = None) -> None:
        """See :class:`RewardModel`."""
        if len(rewards) and not self._is_given:
            low, high = self._ends
            self._ends = min(low, float(rewards.min())), max(high, float(rewards.max()))
        self._model.learn(X, arms, rewards, parts)


class GivenRewards:
    """A function X (n, m) -> (n, K), which learns nothing."""

    learns = False
    parts = 0

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

    def predict_without(self, X: Array) -> Iterator[Array]:
        """None: no row changes what the function gives."""
        return iter(())

    def learn(self, X: Array, arms: Indices, rewards: Array, parts: Indices | None = None) -> None:
        """Do nothing."""


def reward_model(
    model: Any,
    n_arms: int,
    reward_range: tuple[float, float] | None = None,
    *,
    with_parts: bool = False,
) -> RewardModel:
    """None for linear models that share a prior, an estimator, or a function X -> (n, K).

    What is learned predicts within ``reward_range``, or else within the rewards learned so far.
    ``with_parts`` it can also say what it would expect without each part of the rows: a jackknife.

    Examples
    --------
    >>> model = reward_model(None, 2)
    >>> X, arms = np.linspace(0.0, 1.0, 40)[:, None], np.arange(40) % 2
    >>> model.learn(X, arms, 1.0 * arms)
    >>> model.predict(X[:1]).round(1).tolist()
    [[0.0, 1.0]]
    """
    if model is None:
        return RewardsWithin(SharedRewards(n_arms, _PARTS if with_parts else 0), reward_range)
    if callable(model):
        return GivenRewards(model, n_arms)
    if not hasattr(model, "predict_mean_distribution"):
        raise TypeError(
            f"reward_model is {model!r}: give an estimator of posterity, a function of "
            "contexts X, or None"
        )
    return RewardsWithin(SeparateRewards(model, n_arms, _COPIES if with_parts else 0), reward_range)


def _add_constant_column(X: Array) -> Array:
    """Replace contexts without features by a constant column."""
    return X if X.shape[1] else np.zeros((len(X), 1))
