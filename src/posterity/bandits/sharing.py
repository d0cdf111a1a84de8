"""What arms have in common: nothing, a prior, or all coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from posterity.bandits.beliefs import Beliefs, JointBeliefs
from posterity.bandits.chances import Mask
from posterity.distributions import Normal
from posterity.grouped import GroupedRegression
from posterity.transaction import branch_of

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Joint draws of arms that share coefficients.
DRAWS = 64


@dataclass(frozen=True)
class Rewards:
    """Contexts X (n, m), the arm that each was given (n,), its reward (n,) and weight (n,)."""

    X: Array
    arms: Index
    rewards: Array
    weights: Array | None
    times: Array | None = None

    def of(self, rows: NDArray[Any]) -> Rewards:
        """Some of them."""
        weights = None if self.weights is None else self.weights[rows]
        times = None if self.times is None else self.times[rows]
        return Rewards(self.X[rows], self.arms[rows], self.rewards[rows], weights, times)

    @property
    def how(self) -> dict[str, Any]:
        """Times, where there are any."""
        return {} if self.times is None else {"times": self.times}


class Arms(Protocol):
    """Models of all arms."""

    def branch(self) -> Self:
        """A copy that can learn without this one's knowing."""

    def learn(self, rows: Rewards) -> None:
        """Learn rewards."""

    def unlearn(self, rows: Rewards) -> None:
        """Unlearn rewards."""

    def merge(self, other: Self) -> None:
        """Learn what another one learned."""

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> Beliefs | JointBeliefs:
        """What is believed of expected rewards in contexts X (n, m)."""

    def grow(self, count: int) -> None:
        """Make room for so many arms."""


@dataclass
class Separate:
    """A model of its own for each arm."""

    prototype: Any
    models: list[Any] = field(default_factory=list)

    def branch(self) -> Separate:
        """See :class:`Arms`."""
        return Separate(self.prototype, [branch_of(model) for model in self.models])

    def grow(self, count: int) -> None:
        """See :class:`Arms`."""
        self.models += [clone(self.prototype) for _ in range(count - len(self.models))]

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            self.models[arm].partial_fit(some.X, some.rewards, some.weights, **some.how)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            self.models[arm].unlearn(some.X, some.rewards, some.weights)

    def merge(self, other: Separate) -> None:
        """See :class:`Arms`."""
        for model, its in zip(self.models, other.models, strict=True):
            if hasattr(its, "n_features_in_"):
                model.merge(its)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> Beliefs:
        """See :class:`Arms`."""
        return Beliefs([_expected(model, X) for model in self.models], allowed)


@dataclass
class Grouped:
    """A model for each arm, under a prior and a noise that are learned over all arms."""

    model: GroupedRegression
    count: int = 0

    def branch(self) -> Grouped:
        """See :class:`Arms`."""
        return Grouped(branch_of(self.model), self.count)

    def grow(self, count: int) -> None:
        """See :class:`Arms`."""
        self.count = count

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        if rows.times is not None:
            raise ValueError(
                "a prior that is learned over arms knows no times: leave times out, or take "
                'sharing="none"'
            )
        self.model.partial_fit(rows.X, rows.rewards, rows.weights, groups=rows.arms)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.model.unlearn(rows.X, rows.rewards, rows.weights, groups=rows.arms)

    def merge(self, other: Grouped) -> None:
        """See :class:`Arms`."""
        self.model.merge(other.model)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> Beliefs:
        """See :class:`Arms`."""
        if not hasattr(self.model, "n_features_in_"):
            return Beliefs([_nothing(X)] * self.count, allowed)
        arms = np.tile(np.arange(self.count), len(X))
        rows = np.repeat(X, self.count, axis=0)
        told = self.model.predict_mean_distribution(rows, groups=arms)
        return Beliefs([told[arm :: self.count] for arm in range(self.count)], allowed)


@dataclass
class Together:
    """One model of rows that say both context and arm: ``features`` (K, a) of each arm.

    A row is the context, the arm's features, and the product of each of one with each of the other.
    """

    model: Any
    features: Array

    def branch(self) -> Together:
        """See :class:`Arms`."""
        return Together(branch_of(self.model), self.features)

    def grow(self, count: int) -> None:
        """See :class:`Arms`."""
        if count > len(self.features):
            raise ValueError(
                f"arm_features has {len(self.features)} rows for {count} arms: give one for each"
            )

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.model.partial_fit(self._columns(rows), rows.rewards, rows.weights, **rows.how)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.model.unlearn(self._columns(rows), rows.rewards, rows.weights)

    def merge(self, other: Together) -> None:
        """See :class:`Arms`."""
        self.model.merge(other.model)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> JointBeliefs:
        """See :class:`Arms`."""
        n, k = allowed.shape
        columns = crossed(np.repeat(X, k, axis=0), np.tile(self.features, (n, 1)))
        draws = self.model.sample_mean(columns, DRAWS, rng).reshape(DRAWS, n, k)
        mean = self.model.predict_mean_distribution(columns).mean().reshape(n, k)
        return JointBeliefs(draws, mean, allowed)

    def _columns(self, rows: Rewards) -> Array:
        return crossed(rows.X, self.features[rows.arms])


def crossed(X: Array, features: Array) -> Array:
    """(n, m + a + m a) contexts (n, m), features (n, a) of arms, and their products.

    Examples
    --------
    >>> crossed(np.array([[2.0, 3.0]]), np.array([[5.0]]))
    array([[ 2.,  3.,  5., 10., 15.]])
    """
    products = (X[:, :, None] * features[:, None, :]).reshape(len(X), -1)
    return np.concatenate([X, features, products], axis=1)


def _expected(model: Any, X: Array) -> Any:
    """What a model believes of expected rewards; before any row, that nothing is known."""
    known = hasattr(model, "n_features_in_")
    return model.predict_mean_distribution(X) if known else _nothing(X)


def _nothing(X: Array) -> Normal:
    return Normal(np.zeros(len(X)), np.full(len(X), np.inf))
