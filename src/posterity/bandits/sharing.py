"""Models of the arms' rewards: they share nothing, a prior, or all coefficients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_array

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.bandits.arms import (
    Arms,
    Rewards,
    is_known,
    learn,
    learn_one,
    make_flat_normals,
    predict_rewards,
    refuse_features,
)
from posterity.bandits.beliefs import JointBeliefs, get_beliefs
from posterity.bandits.decisions import Numbers
from posterity.bandits.rising import AnyBeliefs
from posterity.bandits.separate import SeparateArms
from posterity.grouped import GroupedRegression
from posterity.kernel import ArmsPath
from posterity.kernel.values import read_floats
from posterity.linear import BayesianLinearRegression
from posterity.transaction import make_branch

# Joint draws of arms that share coefficients.
DRAWS = 64


@dataclass
class GroupedArms(Arms):
    """A model for each arm, under a prior and noises that are learned over all arms.

    Only caches are ``arms_path``, the arms' posteriors as they are now, and their ``slots`` in the
    model.
    """

    model: GroupedRegression
    count: int = 0
    arms_path: ArmsPath | None = None
    slots: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))

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

    def beliefs(self, X: Array, allowed: Mask, numbers: Numbers) -> AnyBeliefs:
        """See :class:`Arms`."""
        if not is_known(self.model):
            return get_beliefs([make_flat_normals(X)] * self.count, allowed)
        arms = np.tile(np.arange(self.count), len(X))
        rows = np.repeat(X, self.count, axis=0)
        means = self.model.predict_mean_distribution(rows, groups=arms)
        return get_beliefs([means[arm :: self.count] for arm in range(self.count)], allowed)

    def path(self, names: AnyArray | None) -> ArmsPath | None:
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
                f"arm_features has {len(self.features)} rows for {count} arms: give one for each, "
                'a new one as in add_arm(name, features); with sharing="learned" arms have none'
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

    def beliefs(self, X: Array, allowed: Mask, numbers: Numbers) -> AnyBeliefs:
        """See :class:`Arms`."""
        n, k = allowed.shape
        columns = combine_features(np.repeat(X, k, axis=0), np.tile(self.features, (n, 1)))
        means = predict_rewards(self.model, columns)
        if means.is_flat().any():
            return get_beliefs([means[arm::k] for arm in range(k)], allowed)
        draws = self.model.sample_mean(columns, DRAWS, numbers.rng).reshape(DRAWS, n, k)
        return JointBeliefs(draws, means.mean().reshape(n, k), allowed)

    def _columns(self, rows: Rewards) -> Array:
        return combine_features(rows.X, self.features[rows.arms])


def make_arms(
    sharing: str | None, model: Any, names: Sequence[Any], features: Any
) -> GroupedArms | SeparateArms | SharedArms:
    """Return arms before data, which share as much as a bandit's parameters say."""
    count, grouped = len(names), isinstance(model, GroupedRegression)
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
            table = np.eye(count) if features is None else order_features(features, names)
            arms = SharedArms(clone(model), check_array(table, dtype=np.float64))
        else:
            raise ValueError(f'sharing is {sharing!r}: it must be "learned", "none" or "all"')
    if sharing != "all":
        refuse_features(features)
    arms.grow(count, None)
    return arms


def order_features(features: Any, names: Sequence[Any]) -> Any:
    """Features (K, a) of arms in their order, also where they are a mapping of names."""
    if not isinstance(features, Mapping):
        return features
    if set(features) != set(names):
        raise ValueError(
            f"arm_features has the arms {list(features)}, and the arms are {list(names)}: give "
            "features of each"
        )
    if len(shapes := {np.shape(features[name]) for name in names}) > 1 or shapes == {()}:
        raise ValueError(
            f"arm_features are {dict(features)}: give a list of as many numbers for each arm, as "
            "in {'red': [1.0, 0.5], 'blue': [0.0, 2.0]}"
        )
    return [features[name] for name in names]


def combine_features(X: Array, features: Array) -> Array:
    """(n, m + a + m a) contexts (n, m), features (n, a) of arms, and their products.

    Examples
    --------
    >>> combine_features(np.array([[2.0, 3.0]]), np.array([[5.0]]))
    array([[ 2.,  3.,  5., 10., 15.]])
    """
    products = (X[:, :, None] * features[:, None, :]).reshape(len(X), -1)
    return np.concatenate([X, features, products], axis=1)
