"""Models of the arms' rewards: they share nothing, a prior, or all coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_array

from posterity.bandits.beliefs import JointBeliefs, StudentBeliefs, get_beliefs
from posterity.bandits.probability_best import Mask
from posterity.bandits.rising import AnyBeliefs, RisingBeliefs
from posterity.distributions import Normal
from posterity.generalized.base import GeneralizedModel
from posterity.grouped import GroupedRegression
from posterity.kernel import ArmsPath
from posterity.kernel.values import read_floats
from posterity.linear import BayesianLinearRegression
from posterity.transaction import make_branch

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

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> AnyBeliefs:
        """Return the posteriors of expected rewards in contexts X (n, m)."""

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """Make room for so many arms, the last with these features."""

    def path(self, names: NDArray[Any] | None) -> ArmsPath | None:
        """Return the compiled path of all arms, or None where there is none."""
        return None


def refuse_features(features: ArrayLike | None) -> None:
    """Raise ``ValueError`` for features of arms that share no coefficients."""
    if features is not None:
        raise ValueError('arms have features with sharing="all" only: leave features out')


@dataclass
class SeparateArms(Arms):
    """A model of its own for each arm."""

    prototype: Any
    models: list[Any] = field(default_factory=list)

    def branch(self) -> SeparateArms:
        """See :class:`Arms`."""
        return SeparateArms(self.prototype, [make_branch(model) for model in self.models])

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """See :class:`Arms`."""
        refuse_features(features)
        self.models += [clone(self.prototype) for _ in range(count - len(self.models))]

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            learn(self.models[arm], some.X, some)

    def learn_one(self, x: Any, arm: int, reward: float, weight: float) -> None:
        """See :class:`Arms`."""
        learn_one(self.models[arm], x, reward, weight)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            self.models[arm].unlearn(some.X, some.rewards, some.weights)

    def merge(self, other: SeparateArms) -> None:
        """See :class:`Arms`."""
        for model, its in zip(self.models, other.models, strict=True):
            if is_known(its):
                model.merge(its)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> AnyBeliefs:
        """See :class:`Arms`."""
        eta = self._believe_predictors(X)
        if eta is None:
            return get_beliefs([predict_rewards(model, X) for model in self.models], allowed)
        normal = eta[..., 0], np.sqrt(eta[..., 1]), np.full(allowed.shape, np.inf)
        believed = StudentBeliefs(*map(np.ascontiguousarray, (*normal, allowed)))
        return RisingBeliefs(believed, self.prototype._likelihood())

    def _believe_predictors(self, X: Array) -> Array | None:
        """Means and variances (n, K, 2) of eta, with which rewards rise; None where these do not.

        Nor where the eta of an arm is not normal, or arms learn parameters apart.
        """
        if not isinstance(self.prototype, GeneralizedModel) or self.prototype._likelihood().learned:
            return None
        nothing = np.broadcast_to([0.0, np.inf], (len(X), 2))
        arms = [model._believe_rows(X) if is_known(model) else nothing for model in self.models]
        return None if any(arm is None for arm in arms) else np.stack(arms, axis=1)


@dataclass
class GroupedArms(Arms):
    """A model for each arm, under a prior and noises that are learned over all arms.

    Only caches are ``arms_path``, the arms' posteriors as they are now, and their ``slots`` in the
    model.
    """

    model: GroupedRegression
    count: int = 0
    arms_path: ArmsPath | None = None
    slots: Index = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"arms_path": None}

    def branch(self) -> GroupedArms:
        """See :class:`Arms`."""
        if self.arms_path is not None:
            self.arms_path.close()  # what others learn meanwhile waits until the branch has learned
        return GroupedArms(make_branch(self.model), self.count)

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """See :class:`Arms`."""
        refuse_features(features)
        self.count = count

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        if rows.times is not None:
            raise ValueError(
                "a prior shared by the arms does not support times: leave times out, or use "
                'sharing="none"'
            )
        self.model.partial_fit(rows.X, rows.rewards, rows.weights, groups=rows.arms)

    def learn_one(self, x: Any, arm: int, reward: float, weight: float) -> None:
        """See :class:`Arms`."""
        posterior, arms_path = self.model._posterior_or_none, self.arms_path
        if posterior is not None and arms_path is not None and arms_path.is_of(posterior):
            span = None if posterior.row_space is None else posterior.row_space.triangle
            arms_path.open(self.model._path, posterior.next_update_at(), span)
            if arms_path.learn_row(arm, x, reward, weight):
                return
        slot = int(self.slots[arm]) if arm < len(self.slots) else -1
        if (
            posterior is None
            or slot < 0
            or not posterior.learn_row(self.model._path, slot, x, reward, weight)
        ):
            self.model.learn_one(x, reward, weight, group=arm)

    def learn_single_row(self, x: Any, arm: int, reward: float, weight: float) -> bool:
        """See :class:`Arms`."""
        return self.arms_path is not None and self.arms_path.learn_row(arm, x, reward, weight)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.model.unlearn(rows.X, rows.rewards, rows.weights, groups=rows.arms)

    def merge(self, other: GroupedArms) -> None:
        """See :class:`Arms`."""
        if is_known(other.model):
            self.model.merge(other.model)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> AnyBeliefs:
        """See :class:`Arms`."""
        if not is_known(self.model):
            return get_beliefs([make_flat_normals(X)] * self.count, allowed)
        arms = np.tile(np.arange(self.count), len(X))
        rows = np.repeat(X, self.count, axis=0)
        means = self.model.predict_mean_distribution(rows, groups=arms)
        return get_beliefs([means[arm :: self.count] for arm in range(self.count)], allowed)

    def path(self, names: NDArray[Any] | None) -> ArmsPath | None:
        """See :class:`Arms`."""
        posterior = self.model._posterior_or_none
        if posterior is None:
            return None
        arms_path = self.arms_path
        if arms_path is None or not arms_path.is_of(posterior):
            self.slots = self.model.places(range(self.count))
            self.arms_path = arms_path = posterior.arms_path(self.slots, names)
        return arms_path


@dataclass
class SharedArms(Arms):
    """One model of rows that contain both context and arm: ``features`` (K, a) of each arm.

    A row is the context, the arm's features, and the product of each of one with each of the other.
    """

    model: Any
    features: Array

    def branch(self) -> SharedArms:
        """See :class:`Arms`."""
        return SharedArms(make_branch(self.model), self.features)

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """See :class:`Arms`."""
        if features is not None:
            row = read_floats(features, "features").reshape(1, -1)
            if row.shape[1] != self.features.shape[1] or not np.isfinite(row).all():
                raise ValueError(
                    f"features are {features!r}: give {self.features.shape[1]} finite numbers, "
                    "as for the other arms"
                )
            self.features = np.concatenate([self.features, row])
        if count != len(self.features):
            raise ValueError(
                f"arm_features has {len(self.features)} rows for {count} arms: give one for each"
            )

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        learn(self.model, self._columns(rows), rows)

    def learn_one(self, x: Any, arm: int, reward: float, weight: float) -> None:
        """See :class:`Arms`."""
        learn_one(self.model, combine_features(x[None], self.features[[arm]])[0], reward, weight)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.model.unlearn(self._columns(rows), rows.rewards, rows.weights)

    def merge(self, other: SharedArms) -> None:
        """See :class:`Arms`."""
        if not np.array_equal(self.features, other.features):
            raise ValueError(
                "the arms of the two bandits have different features: merge bandits whose arms "
                "have the same features"
            )
        if is_known(other.model):
            self.model.merge(other.model)

    def beliefs(self, X: Array, allowed: Mask, rng: np.random.Generator) -> AnyBeliefs:
        """See :class:`Arms`."""
        n, k = allowed.shape
        columns = combine_features(np.repeat(X, k, axis=0), np.tile(self.features, (n, 1)))
        means = predict_rewards(self.model, columns)
        if means.is_flat().any():
            return get_beliefs([means[arm::k] for arm in range(k)], allowed)
        draws = self.model.sample_mean(columns, DRAWS, rng).reshape(DRAWS, n, k)
        return JointBeliefs(draws, means.mean().reshape(n, k), allowed)

    def _columns(self, rows: Rewards) -> Array:
        return combine_features(rows.X, self.features[rows.arms])


def make_arms(
    sharing: str | None, model: Any, count: int, features: ArrayLike | None
) -> GroupedArms | SeparateArms | SharedArms:
    """Return ``count`` arms before data, which share as much as a bandit's parameters say."""
    grouped = isinstance(model, GroupedRegression)
    sharing = sharing or ("learned" if model is None or grouped else "none")
    arms: GroupedArms | SeparateArms | SharedArms
    if sharing == "learned":
        if not (model is None or grouped):
            raise ValueError(
                'sharing is "learned", which needs rewards with normal noise: leave model out, '
                'give a GroupedRegression, or use "none" or "all"'
            )
        if grouped and model.likelihood != "gaussian":
            raise ValueError(
                f'sharing is "learned", which needs rewards with normal noise, and model is '
                f"{model!r}: leave its likelihood out"
            )
        few = GroupedRegression(prior_mean=0.0, prior_precision="unit information")
        arms = GroupedArms(clone(model) if grouped else few)
    else:
        model = BayesianLinearRegression() if model is None else model
        if grouped or not hasattr(model, "predict_mean_distribution"):
            raise TypeError(
                f'model is {model!r}: with sharing="{sharing}" it must be an estimator of '
                "posterity's that has predict_mean_distribution"
            )
        if sharing == "none":
            arms = SeparateArms(clone(model))
        elif sharing == "all":
            table = np.eye(count) if features is None else features
            arms = SharedArms(clone(model), check_array(table, dtype=np.float64))
        else:
            raise ValueError(f'sharing is {sharing!r}: it must be "learned", "none" or "all"')
    arms.grow(count, None)
    return arms


def combine_features(X: Array, features: Array) -> Array:
    """(n, m + a + m a) contexts (n, m), features (n, a) of arms, and their products.

    Examples
    --------
    >>> combine_features(np.array([[2.0, 3.0]]), np.array([[5.0]]))
    array([[ 2.,  3.,  5., 10., 15.]])
    """
    products = (X[:, :, None] * features[:, None, :]).reshape(len(X), -1)
    return np.concatenate([X, features, products], axis=1)


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
    """Learn one row, the first as one of many: it may have to say what others can be."""
    if is_known(model):
        model.learn_one(x, reward, weight)
    else:
        weights = None if weight == 1.0 else np.array([weight])
        one = Rewards(x[None], np.zeros(1, dtype=np.intp), np.array([reward]), weights)
        learn(model, one.X, one)


def predict_rewards(model: Any, X: Array) -> Any:
    """Predict expected rewards; before any row, flat distributions."""
    return model.predict_mean_distribution(X) if is_known(model) else make_flat_normals(X)


def make_flat_normals(X: Array) -> Normal:
    """Distributions of which nothing is known."""
    return Normal(np.zeros(len(X)), np.full(len(X), np.inf))
