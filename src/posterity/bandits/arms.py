"""What all models of arms can do, and how one arm's model learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.bandits.decisions import Numbers
from posterity.bandits.rising import AnyBeliefs
from posterity.distributions import Normal
from posterity.kernel import ArmsPath


@dataclass(frozen=True)
class Rewards:
    """Contexts X (n, m), the arm that each was given (n,), its reward (n,) and weight (n,)."""

    X: Array
    arms: Indices
    rewards: Array
    weights: Array | None
    times: Array | None = None

    def of(self, rows: AnyArray) -> Rewards:
        """Return some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        times = None if self.times is None else self.times[rows]
        return Rewards(self.X[rows], self.arms[rows], self.rewards[rows], weights, times)


class Arms(Protocol):
    """Models of all arms."""

    def branch(self) -> Self:
        """A copy that can learn without this one's knowing."""

    def learn(self, rows: Rewards) -> None:
        """Learn rewards."""

    def learn_one(self, x: Any, arm: int, reward: float, weight: float) -> None:
        """Learn one reward, or nothing at all: this is not done on a copy."""

    def learn_single_row(self, x: Any, arm: int, reward: float, weight: float) -> bool:
        """The same where it takes no time that others must wait for; False: nothing happened."""
        return False

    def unlearn(self, rows: Rewards) -> None:
        """Unlearn rewards."""

    def merge(self, other: Self) -> None:
        """Learn what another one learned."""

    def beliefs(self, X: Array, allowed: Mask, numbers: Numbers) -> AnyBeliefs:
        """Return the posteriors of expected rewards in contexts X (n, m)."""

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """Make room for so many arms, the last with these features."""

    def path(self, names: AnyArray | None) -> ArmsPath | None:
        """Return the compiled path of all arms, or None where there is none."""
        return None


def refuse_features(features: ArrayLike | None) -> None:
    """Raise ``ValueError`` for features of arms that share no coefficients."""
    if features is not None:
        raise ValueError('arms have features with sharing="all" only: leave features out')


def is_known(model: Any) -> bool:
    """Return True if a model has learned any row."""
    return model._posterior_or_none is not None


def learn(model: Any, X: Array, rows: Rewards) -> None:
    """Learn rows of X; of a classifier they are 0 or 1."""
    how: dict[str, Any] = {} if rows.times is None else {"times": rows.times}
    if is_classifier(model):
        how["classes"] = [0.0, 1.0]
    model.partial_fit(X, rows.rewards, rows.weights, **how)


def learn_one(model: Any, x: Array, reward: float, weight: float) -> None:
    """Learn one row; the first of a classifier has to say what others can be."""
    if is_known(model) or not is_classifier(model):
        model.learn_one(x, reward, weight)
    else:
        weights = None if weight == 1.0 else [weight]
        model.predict_then_learn(x[None], [reward], weights, classes=[0.0, 1.0])


def predict_rewards(model: Any, X: Array) -> Any:
    """Predict expected rewards; before any row, flat distributions."""
    return model.predict_mean_distribution(X) if is_known(model) else make_flat_normals(X)


def make_flat_normals(X: Array) -> Normal:
    """Distributions of which nothing is known."""
    return Normal(np.zeros(len(X)), np.full(len(X), np.inf))
