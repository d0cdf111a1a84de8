"""A contextual bandit: which arm to choose in a context, learned from the rewards of choices."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import check_array

from posterity.bandits.beliefs import Beliefs, JointBeliefs, student_beliefs
from posterity.bandits.decisions import Decision, Decisions, picked
from posterity.bandits.inputs import (
    is_among,
    is_row,
    read_allowed,
    read_arms,
    read_contexts,
    read_rewards,
)
from posterity.bandits.policies import Policy, ThompsonSampling
from posterity.bandits.roster import Roster
from posterity.bandits.sharing import Arms, GroupedArms, Rewards, SeparateArms, SharedArms
from posterity.grouped import GroupedRegression
from posterity.kernel import ArmsPath
from posterity.linear import BayesianLinearRegression
from posterity.linear.inputs import check_same_features, read_weights
from posterity.transaction import all_or_nothing, one_at_a_time

Array = NDArray[np.float64]

# Half as wide as what is believed: on public data regret is a tenth lower than with all of it.
_DEFAULT = ThompsonSampling(width=0.5)


class Bandit(BaseEstimator):
    """Chooses an arm in each context, and learns from the rewards of the arms that were chosen.

    Every decision comes with the probability that its arm was picked with: keep it with the
    reward, and any other policy can be judged from the log.

    Parameters
    ----------
    model : estimator, optional
        What rewards are learned by: any estimator of this package that has
        ``predict_mean_distribution``, not fitted. Default: :class:`BayesianLinearRegression`.
    arms : sequence of names
        At least one; text, numbers, anything hashable.
    sharing : "learned", "none" or "all"
        What arms have in common. "learned": a prior and a noise, learned over all arms; a new arm
        starts from them. It needs rewards with normal noise: ``model`` is None, for the noise, the
        scales of the features and the mean of the intercepts; or with many more arms than features
        ``GroupedRegression()``, for means and covariances of all coefficients. "none": nothing.
        "all": all coefficients, of one model over the context, ``arm_features`` and their
        products. Default: "learned" where ``model`` allows it, else "none".
    arm_features : (K, a) array, optional
        For "all"; default one column for each arm.
    policy : Policy
        How beliefs become probabilities; default :class:`ThompsonSampling` of half the width.
    rng : int or numpy.random.Generator, optional
        Where decisions are drawn from: the same number, the same decisions.

    Attributes
    ----------
    arms_ : list
        Names of the arms, in the order of all columns.
    retired_ : list
        Names of arms that are not chosen any more.
    n_features_in_, feature_names_in_
        Of contexts, as in scikit-learn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bandit = Bandit(arms=["red", "blue"], rng=0)
    >>> for _ in range(200):
    ...     decision = bandit.decide(rng.normal(size=1))
    ...     slope = 1.0 if decision.arm == "red" else -1.0
    ...     bandit = bandit.learn_one(decision.context, decision.arm, slope * decision.context[0])
    >>> bandit.decide([[2.0], [-2.0]]).expected.argmax(axis=1).tolist()
    [0, 1]
    >>> bandit.decide([2.0]).propensities.round(3)
    array([0.99, 0.01])
    """

    n_features_in_: int
    _arms: Arms
    _roster: Roster
    _seed: int
    _decided: int
    _binary: bool

    def __init__(
        self,
        model: Any = None,
        arms: Sequence[Any] = (),
        *,
        sharing: Literal["learned", "none", "all"] | None = None,
        arm_features: ArrayLike | None = None,
        policy: Policy | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        self.model = model
        self.arms = arms
        self.sharing = sharing
        self.arm_features = arm_features
        self.policy = policy
        self.rng = rng

    @property
    def arms_(self) -> list[Any]:
        """Names of the arms."""
        self._start()
        return list(self._roster.names)

    @property
    def retired_(self) -> list[Any]:
        """Names of the arms that have retired."""
        self._start()
        return list(self._roster.retired)

    # ---- deciding --------------------------------------------------------------------------------

    def decide(self, X: Any, *, allowed: ArrayLike | None = None, k: int | None = None) -> Any:
        """Choose an arm, or a ranking of ``k`` arms, for each context. Nothing is learned.

        Arms of which nothing is known yet come first, all alike.

        Parameters
        ----------
        X : (n, m) array or data frame, or one context: (m,) array or mapping of names
        allowed : (n, K) or (K,) array of bool, optional
            Which arms may be chosen.
        k : int, optional
            Length of a ranking.

        Returns
        -------
        Decisions, or Decision of one context

        Raises
        ------
        ValueError
            If no arm is allowed in a context, or fewer than ``k``.
        """
        lean = self._lean() if k is None else None
        if lean is not None and allowed is None and is_row(X):
            policy, number, roster = self._policy, self._decided, self._roster
            place, mean, scale = lean.decide(
                X, roster.open, policy.floor, self._width, self._seed, number
            )
            self._decided = number + 1

            def picked_from() -> Array:
                told = student_beliefs(lean.df, mean[None], scale[None], roster.open[None] > 0)
                return policy.propensities(told, np.random.default_rng(0))

            return Decision(number, X, roster.names[place], place, mean, picked_from)
        return self._decide(X, allowed, k, lean)

    @one_at_a_time
    def _decide(self, X: Any, allowed: ArrayLike | None, k: int | None, lean: Any) -> Any:
        self._start()
        contexts = read_contexts(self, X, learns=False)
        n = len(contexts)
        mask = read_allowed(allowed, n, self._roster.open)
        if k is not None and not 1 <= k <= int(mask.sum(axis=1).min()):
            raise ValueError(f"k is {k}: it must be at least 1, and no more than the arms allowed")
        ids = np.arange(self._decided, self._decided + n)
        policy, told = self._policy, None
        if lean is not None:
            may = mask.view(np.uint8)
            places, mean, scale = lean.decide_rows(
                contexts, may, policy.floor, self._width, self._seed, self._decided
            )
            beliefs: Beliefs | JointBeliefs = student_beliefs(lean.df, mean, scale, mask)
        else:
            rng = self._draws()
            beliefs = self._arms.beliefs(contexts, mask, rng)
            mean = beliefs.mean
            if k is None:
                places, told = policy.choose(beliefs, rng)
            else:
                told = policy.propensities(beliefs, rng)
                places = picked(told, k, rng)
        self._decided += n

        def picked_from() -> Array:
            return policy.propensities(beliefs, np.random.default_rng(0)) if told is None else told

        names = self._roster.names
        if is_row(X):
            arm = [names[place] for place in places[0]] if k else names[places[0]]
            return Decision(int(ids[0]), X, arm, places[0], mean[0], picked_from)
        return Decisions(ids, contexts, self._roster.labels, places, mean, picked_from)

    def beliefs(self, X: Any, *, allowed: ArrayLike | None = None) -> Beliefs | JointBeliefs:
        """What is believed of the expected rewards of all arms in each context: means and more."""
        lean = self._lean()
        if lean is None:
            return self._beliefs(X, allowed)[0]
        contexts = read_contexts(self, X, learns=False)
        mask = read_allowed(allowed, len(contexts), self._roster.open)
        may = mask.view(np.uint8)
        _, mean, scale = lean.decide_rows(contexts, may, 0.0, 1.0, self._seed, self._decided)
        return student_beliefs(lean.df, mean, scale, mask)

    def propensities(self, X: Any, *, allowed: ArrayLike | None = None) -> Array:
        """(n, K) probabilities that the policy would pick from in each context."""
        beliefs, rng = self._beliefs(X, allowed)
        return self._policy.propensities(beliefs, rng)

    def probability_best(self, X: Any, *, allowed: ArrayLike | None = None) -> Array:
        """(n, K) probabilities that each arm has the largest expected reward in each context.

        By quadrature where arms have models of their own, from draws where they share one; arms of
        which nothing is known are all alike, and come before all others.
        """
        beliefs, rng = self._beliefs(X, allowed)
        return ThompsonSampling(floor=0.0).propensities(beliefs, rng)

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
            Of decisions their ``contexts``.
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
        self._arms.learn(self._rewards(X, arms, rewards, sample_weight, times))
        return self

    @one_at_a_time
    def learn_one(self, x: Any, arm: Any, reward: float, weight: float = 1.0) -> Self:
        """Learn one reward: of a context (m,), or a mapping of names."""
        if "n_features_in_" not in self.__dict__:
            return self.learn(x, [arm], [reward], None if weight == 1.0 else [weight])
        places = self._roster.places
        place = places[arm] if is_among(arm, places) else int(read_arms([arm], places)[0])
        if self._binary:
            read_rewards([reward], 1, 1, binary=True)
        if type(x) is not np.ndarray or x.ndim != 1:
            lean = self._lean()
            read = read_contexts(self, x, learns=False) if lean is None else lean.values(x)
            x = read[0]
        self._arms.learn_one(x, place, reward, weight)
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
    def correct(self, X: Any, arms: Any, *, former: ArrayLike, rewards: ArrayLike) -> Self:
        """Learn rewards in the place of the former ones, which are unlearned; NaN is none."""
        arms, before, after = list(arms), np.asarray(former), np.asarray(rewards)
        for values, change in ((before, self.unlearn), (after, self.learn)):
            some = np.flatnonzero(~np.isnan(values))
            if len(some):
                change(np.asarray(X)[some], [arms[row] for row in some], values[some])
        return self

    @all_or_nothing
    def merge(self, other: Self) -> Self:
        """Learn all that another bandit of the same arms has learned."""
        self._start()
        other._start()
        if self._roster.names != other._roster.names:
            raise ValueError(
                f"the other bandit's arms are {other.arms_}, this one's {self.arms_}: merge "
                "bandits of the same arms in the same order"
            )
        if hasattr(self, "n_features_in_") and hasattr(other, "n_features_in_"):
            check_same_features(self, other)
        self._arms.merge(other._arms)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        return self

    # ---- arms that come and go ------------------------------------------------------------------

    @all_or_nothing
    def add_arm(self, name: Any, features: ArrayLike | None = None) -> Self:
        """Add an arm, with its ``arm_features`` if it has any, or bring one back that was retired.

        It starts from what arms share.
        """
        self._start()
        roster = self._roster.added(name)
        if len(roster) > len(self._roster):
            self._arms.grow(len(roster), features)
        self._roster = roster
        return self

    @all_or_nothing
    def retire_arm(self, name: Any) -> Self:
        """Choose an arm no more; late rewards of it can still be learned."""
        self._start()
        self._roster = self._roster.without(name)
        return self

    # ---- inner -----------------------------------------------------------------------------------

    def _start(self) -> None:
        if "_arms" in self.__dict__:
            return
        roster = Roster.of(self.arms)
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise TypeError(f"policy is {self.policy!r}: it must be one of posterity.bandits")
        arms = self._sharing(len(roster))
        arms.grow(len(roster), None)
        self._roster, self._decided = roster, 0
        self._seed = int(np.random.default_rng(self.rng).integers(2**63))
        self._binary = self.model is not None and is_classifier(self.model)
        self._arms = arms

    def _sharing(self, count: int) -> Arms:
        model, grouped = self.model, isinstance(self.model, GroupedRegression)
        sharing = self.sharing or ("learned" if model is None or grouped else "none")
        if sharing == "learned":
            if not (model is None or grouped):
                raise ValueError(
                    'sharing is "learned", which needs rewards with normal noise: leave model out, '
                    'give a GroupedRegression, or take "none" or "all"'
                )
            few = GroupedRegression(prior_mean=0.0, prior_precision="unit information")
            return GroupedArms(clone(model) if grouped else few)
        model = BayesianLinearRegression() if model is None else model
        if grouped or not hasattr(model, "predict_mean_distribution"):
            raise TypeError(
                f'model is {model!r}: with sharing="{sharing}" it must be an estimator of '
                "posterity's that has predict_mean_distribution"
            )
        if sharing == "none":
            return SeparateArms(clone(model))
        if sharing == "all":
            features = np.eye(count) if self.arm_features is None else self.arm_features
            return SharedArms(clone(model), check_array(features, dtype=np.float64))
        raise ValueError(f'sharing is {sharing!r}: it must be "learned", "none" or "all"')

    def _branch(self) -> Self:
        branch = copy.copy(self)
        if "_arms" in self.__dict__:
            branch._arms = self._arms.branch()
        return branch

    @property
    def _policy(self) -> Policy:
        return _DEFAULT if self.policy is None else self.policy

    @property
    def _width(self) -> float:
        """How far draws lie from the mean."""
        return getattr(self._policy, "width", 1.0)

    def _lean(self) -> ArmsPath | None:
        """The lean way to a decision, where there is one."""
        state = self.__dict__
        if "_arms" not in state or type(self._policy) is not ThompsonSampling:
            return None
        arms: Arms = state["_arms"]
        return arms.path(state.get("feature_names_in_"))

    def _draws(self) -> np.random.Generator:
        """Random numbers of the next decision, and of no other."""
        return np.random.Generator(
            np.random.Philox(key=self._seed, counter=[0, 0, 0, self._decided])
        )

    def _beliefs(
        self, X: Any, allowed: ArrayLike | None
    ) -> tuple[Beliefs | JointBeliefs, np.random.Generator]:
        self._start()
        contexts = read_contexts(self, X, learns=False)
        mask = read_allowed(allowed, len(contexts), self._roster.open)
        rng = self._draws()
        return self._arms.beliefs(contexts, mask, rng), rng

    def _rewards(
        self,
        X: Any,
        arms: Any,
        rewards: ArrayLike,
        sample_weight: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Rewards:
        """What was given, checked; the features are taken over."""
        places = read_arms(arms, self._roster.places)
        X = read_contexts(self, X, learns=True)
        values = read_rewards(rewards, len(X), len(places), binary=self._binary)
        weights = read_weights(sample_weight, len(X))
        moments = None if times is None else np.asarray(times, dtype=np.float64)
        return Rewards(X, places, values, weights, moments)
