"""A contextual bandit: which arm to choose in a context, learned from the rewards of choices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from posterity.bandits.beliefs import Beliefs, JointBeliefs
from posterity.bandits.chances import Mask
from posterity.bandits.decisions import Decisions, picked
from posterity.bandits.policies import Policy, ThompsonSampling
from posterity.bandits.sharing import Arms, Grouped, Rewards, Separate, Together
from posterity.grouped import GroupedRegression
from posterity.linear.inputs import read_weights
from posterity.linear.regression import BayesianLinearRegression
from posterity.transaction import all_or_nothing

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class Bandit(BaseEstimator):
    """Chooses an arm in each context, and learns from the rewards of the arms that were chosen.

    Every decision comes with the probability that its arm was picked with: keep it with the
    reward, and any other policy can be judged from the log.

    Parameters
    ----------
    arms : sequence of names
        At least one; text, numbers, anything hashable.
    model : estimator, optional
        What rewards are learned by: any estimator of this package that has
        ``predict_mean_distribution``, not fitted. Default: :class:`BayesianLinearRegression`.
    sharing : "learned", "none" or "all"
        What arms have in common. "learned": a prior and a noise, learned over all arms; a new arm
        starts from them. It needs rewards with normal noise: ``model`` None. "none": nothing.
        "all": all coefficients, of one model over the context, ``arm_features`` and their
        products. Default: "learned" where ``model`` is None, else "none".
    arm_features : (K, a) array, optional
        For "all"; default one column for each arm.
    policy : Policy
        How beliefs become probabilities; default :class:`ThompsonSampling`.
    rng : int or numpy.random.Generator, optional
        Where decisions are drawn from.

    Attributes
    ----------
    arms_ : list
        Names of the arms, in the order of all columns.
    retired_ : set
        Names of arms that are not chosen any more.
    n_features_in_ : int
        Number of features of a context.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bandit = Bandit(["red", "blue"], rng=0)
    >>> for _ in range(200):
    ...     context = rng.normal(size=(1, 1))
    ...     decision = bandit.decide(context)
    ...     slope = 1.0 if decision.arms[0] == "red" else -1.0
    ...     bandit = bandit.learn(context, decision.arms, slope * context[:, 0])
    >>> bandit.decide([[2.0], [-2.0]]).expected.argmax(axis=1).tolist()
    [0, 1]
    """

    arms_: list[Any]
    retired_: frozenset[Any]
    n_features_in_: int
    _arms: Arms
    _generator: np.random.Generator

    def __init__(
        self,
        arms: Sequence[Any],
        model: Any = None,
        *,
        sharing: Literal["learned", "none", "all"] | None = None,
        arm_features: ArrayLike | None = None,
        policy: Policy | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.arms = arms
        self.model = model
        self.sharing = sharing
        self.arm_features = arm_features
        self.policy = policy
        self.rng = rng

    # ---- deciding --------------------------------------------------------------------------------

    def decide(
        self, X: Any, *, allowed: ArrayLike | None = None, k: int | None = None
    ) -> Decisions:
        """Choose an arm, or a ranking of ``k`` arms, for each context.

        Nothing is learned. Arms of which nothing is known yet come first, all alike.

        Parameters
        ----------
        X : (n, m) array or data frame
            Contexts.
        allowed : (n, K) or (K,) array of bool, optional
            Which arms may be chosen.
        k : int, optional
            Length of a ranking.

        Raises
        ------
        ValueError
            If no arm is allowed in a context, or fewer than ``k``.
        """
        self._start()
        X = self._contexts(X)
        mask = self._allowed(allowed, len(X))
        if k is not None and not 1 <= k <= int(mask.sum(axis=1).min()):
            raise ValueError(f"k is {k}: it must be at least 1, and no more than the arms allowed")
        beliefs, propensities = self._judged(X, mask)
        places, propensity = picked(propensities, k or 1, self._generator)
        names = self._names[places]
        return Decisions(names if k else names[:, 0], propensity, propensities, beliefs.mean)

    def propensities(self, X: Any, *, allowed: ArrayLike | None = None) -> Array:
        """(n, K) probabilities that the policy would pick from in each context."""
        self._start()
        X = self._contexts(X)
        return self._judged(X, self._allowed(allowed, len(X)))[1]

    def probability_best(self, X: Any, *, allowed: ArrayLike | None = None) -> Array:
        """(n, K) probabilities that each arm has the largest expected reward in each context.

        By quadrature where arms have models of their own, from draws where they share one.
        """
        self._start()
        X = self._contexts(X)
        beliefs = self._arms.beliefs(X, self._allowed(allowed, len(X)), self._generator)
        return beliefs.chances()

    # ---- learning --------------------------------------------------------------------------------

    @all_or_nothing
    def learn(
        self,
        X: Any,
        arms: ArrayLike,
        rewards: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn the rewards of arms in contexts, in any order, whoever chose them.

        Parameters
        ----------
        X : (n, m) array or data frame
        arms : (n,) names
        rewards : (n,) array
        sample_weight : (n,) array, optional
        times : (n,) array, optional
            For models that forget by time.

        Raises
        ------
        ValueError
            If an arm is unknown, or a value can't be used; nothing was learned then.
        """
        self._start()
        rows = self._rewards(X, arms, rewards, sample_weight, times)
        self._arms.learn(rows)
        return self

    @all_or_nothing
    def unlearn(
        self, X: Any, arms: ArrayLike, rewards: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Take rewards back that were learned with the same contexts, arms and weights."""
        self._start()
        self._arms.unlearn(self._rewards(X, arms, rewards, sample_weight, None))
        return self

    @all_or_nothing
    def merge(self, other: Self) -> Self:
        """Learn all that another bandit of the same arms has learned."""
        self._start()
        other._start()
        if self.arms_ != other.arms_:
            raise ValueError(
                f"the other bandit's arms are {other.arms_}, this one's {self.arms_}: merge "
                "bandits of the same arms in the same order"
            )
        self._arms.merge(other._arms)
        return self

    # ---- arms that come and go ------------------------------------------------------------------

    @all_or_nothing
    def add_arm(self, name: Any) -> Self:
        """Add an arm, or bring one back that was retired."""
        self._start()
        if name in self.retired_:
            self.retired_ = self.retired_ - {name}
            return self
        if name in self.arms_:
            raise ValueError(f"there is an arm {name!r} already: arms need names of their own")
        self._arms.grow(len(self.arms_) + 1)
        self.arms_ = [*self.arms_, name]
        return self

    @all_or_nothing
    def retire_arm(self, name: Any) -> Self:
        """Choose an arm no more; late rewards of it can still be learned."""
        self._start()
        self._places([name])
        if len(self.retired_ | {name}) == len(self.arms_):
            raise ValueError(f"{name!r} is the last arm: add another one before it is retired")
        self.retired_ = self.retired_ | {name}
        return self

    # ---- inner -----------------------------------------------------------------------------------

    def _start(self) -> None:
        if hasattr(self, "_arms"):
            return
        names = list(self.arms)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"arms are {names}: give at least one, each with a name of its own")
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise TypeError(f"policy is {self.policy!r}: it must be one of posterity.bandits")
        arms = self._sharing(len(names))
        arms.grow(len(names))
        self._arms, self.arms_, self.retired_ = arms, names, frozenset()
        self._generator = np.random.default_rng(self.rng)

    def _sharing(self, count: int) -> Arms:
        sharing = self.sharing or ("learned" if self.model is None else "none")
        model = BayesianLinearRegression() if self.model is None else self.model
        if sharing == "none":
            return Separate(model)
        if sharing == "learned":
            if self.model is not None:
                raise ValueError(
                    'sharing is "learned", which has a model of its own: leave model out, or take '
                    '"none" or "all"'
                )
            return Grouped(GroupedRegression())
        if sharing == "all":
            features = np.eye(count) if self.arm_features is None else self.arm_features
            return Together(copy.deepcopy(model), check_array(features, dtype=np.float64))
        raise ValueError(f'sharing is {sharing!r}: it must be "learned", "none" or "all"')

    def _branch(self) -> Self:
        branch = copy.copy(self)
        if hasattr(self, "_arms"):
            branch._arms = self._arms.branch()
        return branch

    @property
    def _names(self) -> NDArray[Any]:
        names = np.array(self.arms_)
        if names.ndim == 1 and names.tolist() == self.arms_:
            return names
        names = np.empty(len(self.arms_), dtype=object)
        names[:] = self.arms_
        return names

    def _contexts(self, X: Any) -> Array:
        X = check_array(X, dtype=np.float64)
        known = getattr(self, "n_features_in_", X.shape[1])
        if X.shape[1] != known:
            raise ValueError(f"X has {X.shape[1]} features, but contexts have had {known}")
        return X

    def _allowed(self, allowed: ArrayLike | None, n: int) -> Mask:
        mask = np.ones(len(self.arms_), dtype=bool) if allowed is None else np.asarray(allowed)
        if mask.dtype != bool or mask.shape not in ((len(self.arms_),), (n, len(self.arms_))):
            raise ValueError(
                f"allowed has shape {mask.shape} and type {mask.dtype}: give true or false for "
                f"each of {len(self.arms_)} arms, or for each context and arm"
            )
        mask = np.broadcast_to(mask, (n, len(self.arms_))).copy()
        mask[:, [self.arms_.index(name) for name in self.retired_]] = False
        none = np.flatnonzero(~mask.any(axis=1))
        if len(none):
            raise ValueError(f"no arm is allowed in row {none[0]}: allow at least one")
        return mask

    def _judged(self, X: Array, allowed: Mask) -> tuple[Beliefs | JointBeliefs, Array]:
        beliefs = self._arms.beliefs(X, allowed, self._generator)
        unknown = allowed & ~np.isfinite(beliefs.std)
        propensities = unknown / np.maximum(unknown.sum(axis=1, keepdims=True), 1)
        known = np.asarray(~unknown.any(axis=1))
        if known.any():
            policy = self.policy or ThompsonSampling()
            propensities[known] = policy.probabilities(beliefs.of(known), self._generator)
        return beliefs, propensities

    def _rewards(
        self,
        X: Any,
        arms: ArrayLike,
        rewards: ArrayLike,
        sample_weight: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Rewards:
        X, places = self._contexts(X), self._places(arms)
        values = np.asarray(rewards, dtype=np.float64)
        if not len(X) == len(places) == len(values):
            raise ValueError(
                f"there are {len(X)} contexts, {len(places)} arms and {len(values)} rewards: give "
                "one of each for each row"
            )
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            raise ValueError(f"the reward in row {bad[0]} is {values[bad[0]]}: it must be finite")
        self.n_features_in_ = X.shape[1]
        weights = read_weights(sample_weight, len(X))
        moments = None if times is None else np.asarray(times, dtype=np.float64)
        return Rewards(X, places, values, weights, moments)

    def _places(self, arms: Any) -> Index:
        known = {name: place for place, name in enumerate(self.arms_)}
        names = arms.tolist() if isinstance(arms, np.ndarray) else list(arms)
        for row, name in enumerate(names):
            if name not in known:
                raise ValueError(
                    f"the arm in row {row} is {name!r}: the arms are {self.arms_}; add_arm adds one"
                )
        return np.array([known[name] for name in names], dtype=np.intp)
