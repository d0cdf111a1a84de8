"""A contextual bandit: which arm to choose in a context, learned from the rewards of choices."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier

from posterity.aliases import Array
from posterity.bandits.arms import Arms, Rewards, is_known
from posterity.bandits.choosing import choose_arms, compute_beliefs
from posterity.bandits.decisions import Decision, Decisions, Numbers
from posterity.bandits.inputs import (
    check_ranking_length,
    is_row,
    read_allowed,
    read_arms,
    read_contexts,
    read_correction,
    read_decided,
    read_reward,
    read_rewards,
)
from posterity.bandits.naming import make_policy
from posterity.bandits.policies import (
    Policy,
    RandomizedUpperConfidenceBound,
    ThompsonSampling,
    compute_student_propensities,
)
from posterity.bandits.rising import AnyBeliefs
from posterity.bandits.roster import Roster, is_among
from posterity.bandits.sharing import make_arms
from posterity.bandits.wrappers import Ledger, WrappedPolicy, Wrapper, wrap_policy
from posterity.distributions.guesses import TellsCalls, TellsNames, tell_call
from posterity.kernel import ArmsPath
from posterity.kernel.values import read_floats
from posterity.linear.inputs import check_same_features, read_weights
from posterity.linear.named import has_learned
from posterity.transaction import Undo, atomic, hold_model_lock

_DEFAULT = RandomizedUpperConfidenceBound()

# What other libraries call it.
_DECIDE_HINT = "decide(X), which gives the arms and their propensities"
_LEARN_HINT = "learn(X, arms, rewards), or learn_one(x, arm, reward)"
OUR_NAMES = {
    **dict.fromkeys(("act", "choose", "predict", "pull", "recommend", "select"), _DECIDE_HINT),
    **dict.fromkeys(("fit", "observe", "partial_fit", "reward", "tell", "update"), _LEARN_HINT),
}


class Bandit(TellsCalls, TellsNames, BaseEstimator):
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
        What arms have in common. "learned": a prior and a noise, learned over all arms (where the
        evidence tells noises apart, each arm has its own); a new arm starts from them. It needs
        rewards with normal noise: ``model`` is None, for the noise, the scales of the features and
        the mean of the intercepts; or with many more arms than features ``GroupedRegression()``,
        for means and covariances of all coefficients. "none": nothing.
        "all": all coefficients, of one model over the context, ``arm_features`` and their
        products. Default: "learned" where ``model`` allows it, else "none".
    arm_features : (K, a) array, or mapping of arm to (a,) numbers, optional
        For "all"; default one column for each arm.
    policy : Policy, Budget, Baseline or str, optional
        How beliefs become probabilities, or the name of a policy, as "ucb"; default
        :class:`RandomizedUpperConfidenceBound`.
    rng : int or numpy.random.Generator, optional
        Where decisions are drawn from: the same number, the same decisions.

    Attributes
    ----------
    arms_ : list
        Names of the arms, in the order of all columns.
    retired_ : list
        Names of arms that are not chosen any more.
    n_observations_ : float
        Weight of all rewards learned.
    ledger_ : Ledger
        What was decided and spent under a :class:`Budget` or a :class:`Baseline`.
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
    _ledger: Ledger
    _our_names = OUR_NAMES

    def __init__(
        self,
        model: Any = None,
        arms: Sequence[Any] = (),
        *,
        sharing: Literal["learned", "none", "all"] | None = None,
        arm_features: ArrayLike | Mapping[Any, ArrayLike] | None = None,
        policy: Policy | Wrapper | str | None = None,
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

    @property
    def n_observations_(self) -> float:
        """Weight of all rewards learned."""
        self._start()
        models = getattr(self._arms, "models", None) or [getattr(self._arms, "model", None)]
        return float(sum(model.n_observations_ for model in models if is_known(model)))

    @property
    def ledger_(self) -> Ledger:
        """Losses allowed and spent by a policy under a budget or baseline."""
        return self.__dict__.get("_ledger", Ledger())

    # ---- deciding --------------------------------------------------------------------------------

    @tell_call
    def decide(self, X: Any, *, allowed: Any = None, k: int | None = None) -> Any:
        """Choose an arm, or a ranking of ``k`` arms, for each context. Nothing is learned.

        Arms of which nothing is known yet come first, all alike; with normal rewards an arm comes
        first until two of them differ, but five times at most.

        Parameters
        ----------
        X : (n, m) array, data frame or mappings, or one context: (m,) array or mapping of names
        allowed : (n, K) or (K,) array of bool, or names of arms, optional
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
        arms_path, policy = self._open_arms_path(), self._policy
        how = None if arms_path is None else policy.find_kernel_policy(arms_path.df)
        plain = allowed is None and k is None and is_row(X)
        if arms_path is None or how is None or not plain:
            return self._decide(X, allowed, k)
        number, names, may = self._decided, self._roster.names, self._roster.open
        place, mean, scale = arms_path.decide(X, may, how, policy.floor, self._seed, number)
        self._decided = number + 1
        about = arms_path.df, mean, scale, may, arms_path.first
        source = compute_student_propensities, policy, *about
        return Decision(number, X, names[place], place, mean, source)

    @hold_model_lock
    def _decide(self, X: Any, allowed: Any, k: int | None) -> Any:
        with Undo() as undo:
            undo.keep_attributes(self)
            return self._decide_all(X, allowed, k)

    def _decide_all(self, X: Any, allowed: Any, k: int | None) -> Any:
        self._start()
        contexts = read_contexts(self, X, learns=False)
        n = len(contexts)
        mask = read_allowed(allowed, n, self._roster)
        check_ranking_length(k, mask)
        ids = np.arange(self._decided, self._decided + n)
        policy: Any = wrap_policy(self._policy, self.ledger_, self._roster.names)
        if k is not None and isinstance(policy, WrappedPolicy):
            raise ValueError("a budget or a baseline watches single arms: leave k out")
        places, mean, source = choose_arms(
            contexts,
            mask,
            self._arms,
            self._open_arms_path(),
            policy=policy,
            k=k,
            numbers=Numbers(self._seed, self._decided),
        )
        self._decided += n
        if isinstance(policy, WrappedPolicy):
            self._ledger = policy.ledger
        names = self._roster.names
        if is_row(X):
            arm = [names[place] for place in places[0]] if k else names[places[0]]
            return Decision(int(ids[0]), X, arm, places[0], mean[0], source)
        return Decisions(ids, contexts, self._roster.labels, places, mean, source)

    def beliefs(self, X: Any, *, allowed: Any = None) -> AnyBeliefs:
        """Posterior distributions of the expected rewards of all arms in each context."""
        return self._beliefs(X, allowed)[0]

    def propensities(self, X: Any, *, allowed: Any = None, policy: Any = None) -> Array:
        """(n, K) probabilities that the policy, or another one, would pick from in each context."""
        beliefs, numbers = self._beliefs(X, allowed)
        acting = wrap_policy(make_policy(policy, self._policy), self.ledger_, self._roster.names)
        return acting.propensities(beliefs, numbers.rng)

    def probability_best(self, X: Any, *, allowed: Any = None) -> Array:
        """(n, K) probabilities that each arm has the largest expected reward in each context.

        By quadrature where arms have models of their own, from draws where they share one; arms of
        which nothing is known, as in :meth:`decide`, are all alike, and come before all others.
        """
        beliefs, numbers = self._beliefs(X, allowed)
        return ThompsonSampling(floor=0.0).propensities(beliefs, numbers.rng)

    # ---- learning --------------------------------------------------------------------------------

    @tell_call
    @atomic
    def learn(
        self,
        X: Any,
        arms: Any = None,
        rewards: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn the rewards of arms in contexts, in any order, whoever chose them.

        Parameters
        ----------
        X : (n, m) array, data frame or mappings; or Decisions
            Decisions bring their arms: ``learn(decisions, rewards)``.
        arms : (n,) names
        rewards : (n,) array
            Of rankings (n, k), one for each place.
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

    def learn_one(self, x: Any, arm: Any, reward: Any = None, weight: float = 1.0) -> Self:
        """Learn one reward: of a context (m,), a mapping of names, or a decision and its reward."""
        if reward is None and type(x) is Decision and np.ndim(x._place) == 0:
            x, arm, reward = x.context, x.arm, arm
        arms = self.__dict__.get("_arms")
        if arms is not None and reward is not None and not self._binary:
            try:
                place = self._roster.places.get(arm)
                if place is not None and arms.learn_single_row(x, place, reward, weight):
                    return self
            except (TypeError, ValueError):  # nothing was learned: the call below says why
                pass
        if reward is None or "n_features_in_" not in self.__dict__:
            if reward is not None:
                read_reward(reward)
            return self.learn(x, arm, reward, None if weight == 1.0 else [weight])
        return self._learn_one(x, arm, reward, weight)

    @hold_model_lock
    def _learn_one(self, x: Any, arm: Any, reward: Any, weight: float) -> Self:
        places = self._roster.places
        place = places[arm] if is_among(arm, places) else int(read_arms([arm], places)[0])
        if self._binary:
            read_reward(reward, binary=True)
        if type(x) is not np.ndarray or x.ndim != 1:
            arms_path = self._open_arms_path()
            read = (
                read_contexts(self, x, learns=False) if arms_path is None else arms_path.values(x)
            )
            x = read[0]
        try:
            self._arms.learn_one(x, place, reward, weight)
        except (TypeError, ValueError, OverflowError):
            read_reward(reward)  # which says what is wrong with it, if that is what was wrong
            raise
        return self

    @atomic
    def unlearn(
        self, X: Any, arms: Any = None, rewards: Any = None, sample_weight: Any = None
    ) -> Self:
        """Unlearn rewards that were learned with the same contexts, arms and weights."""
        self._start()
        self._arms.unlearn(self._rewards(X, arms, rewards, sample_weight, None))
        return self

    @atomic
    def correct(self, X: Any, arms: Any, *, former: ArrayLike, rewards: ArrayLike) -> Self:
        """Replace learned rewards by corrected ones; NaN removes a reward."""
        arms, before, after = read_correction(X, arms, former, rewards)
        for values, change in ((before, self.unlearn), (after, self.learn)):
            some = np.flatnonzero(~np.isnan(values))
            if len(some):
                change(np.asarray(X)[some], [arms[row] for row in some], values[some])
        return self

    @atomic
    def merge(self, other: Self) -> Self:
        """Learn all that another bandit of the same arms has learned."""
        if not isinstance(other, Bandit):
            raise TypeError(f"other is {other!r}: merge a bandit of the same arms")
        self._start()
        other._start()
        self._roster.check_same_arms(other._roster)
        if has_learned(self) and has_learned(other):
            check_same_features(self, other)
        self._arms.merge(other._arms)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        return self

    # ---- arms that come and go ------------------------------------------------------------------

    @atomic
    def add_arm(self, name: Any, features: ArrayLike | None = None) -> Self:
        """Add an arm, with its ``arm_features`` if it has any, or reactivate a retired one.

        It starts from what arms share.
        """
        self._start()
        roster = self._roster.with_arm(name)
        if len(roster) > len(self._roster):
            self._arms.grow(len(roster), features)
        self._roster = roster
        return self

    @atomic
    def retire_arm(self, name: Any) -> Self:
        """Stop choosing an arm; its late rewards can still be learned."""
        self._start()
        self._roster = self._roster.without(name)
        return self

    # ---- inner -----------------------------------------------------------------------------------

    def _start(self) -> None:
        if "_arms" in self.__dict__:
            return
        roster = Roster.of(self.arms)
        make_policy(self.policy, _DEFAULT)
        arms = make_arms(self.sharing, self.model, roster.names, self.arm_features)
        self._roster, self._decided = roster, 0
        self._seed = int(np.random.default_rng(self.rng).integers(2**63))
        self._binary = self.model is not None and is_classifier(self.model)
        self._arms = arms

    def _branch(self) -> Self:
        branch = copy.copy(self)
        if "_arms" in self.__dict__:
            branch._arms = self._arms.branch()
        return branch

    @property
    def _policy(self) -> Policy | Wrapper:
        given = self.policy
        return _DEFAULT if given is None else make_policy(given, _DEFAULT)

    def _open_arms_path(self) -> ArmsPath | None:
        """Return the compiled path of all arms, or None where there is none."""
        state = self.__dict__
        arms: Arms | None = state.get("_arms")
        return None if arms is None else arms.path(state.get("feature_names_in_"))

    def _beliefs(self, X: Any, allowed: Any) -> tuple[AnyBeliefs, Numbers]:
        with Undo() as undo:
            undo.keep_attributes(self)
            self._start()
            contexts = read_contexts(self, X, learns=False)
            mask = read_allowed(allowed, len(contexts), self._roster)
        numbers = Numbers(self._seed, self._decided)
        path = self._open_arms_path()
        return compute_beliefs(contexts, mask, self._arms, path, numbers), numbers

    def _rewards(
        self,
        X: Any,
        arms: Any,
        rewards: Any,
        sample_weight: ArrayLike | None,
        times: ArrayLike | None,
    ) -> Rewards:
        """Check the contexts, arms and rewards given, and take over the names of the features."""
        X, arms, rewards = read_decided(X, arms, rewards)
        X = read_contexts(self, X, learns=True)
        places = read_arms(arms, self._roster.places, len(X))
        values = read_rewards(rewards, len(X), len(places), binary=self._binary)
        weights = read_weights(sample_weight, len(X))
        moments = None if times is None else read_floats(times, "times")
        if moments is not None and moments.shape != (len(X),):
            raise ValueError(f"times has shape {moments.shape}: give one for each of {len(X)} rows")
        return Rewards(X, places, values, weights, moments)
