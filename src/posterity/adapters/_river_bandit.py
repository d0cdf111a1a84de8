"""A bandit as river's contextual policy: arms come with each pull, contexts are dictionaries."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from river.bandit.base import ContextualPolicy
from sklearn.base import BaseEstimator

from posterity.bandits import Bandit as Core
from posterity.bandits import Decision, Policy


class Bandit(ContextualPolicy):
    """A contextual bandit for river: pull, update, and the probability of each pull.

    Arms are those that were ever pulled from; a new one starts from what arms share. Features are
    those of the first context: one that is absent later is 0, one that is new is refused.

    Parameters
    ----------
    model, sharing, policy
        As of :class:`posterity.bandits.Bandit`.
    reward_obj
        By what river ranks the arms; default their mean rewards.
    burn_in
        How often each arm is pulled first, by river and without a probability.
    seed
        The same number, the same pulls.

    Attributes
    ----------
    bandit : posterity.bandits.Bandit or None
        What decides and learns; None before the first pull or update.
    decision : posterity.bandits.Decision or None
        The last pull, with its ``propensity``; None in the burn-in.

    Examples
    --------
    >>> policy = Bandit(seed=0)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(200):
    ...     context = {"age": rng.normal()}
    ...     arm = policy.pull(["old", "new"], context)
    ...     policy.update(arm, context, context["age"] if arm == "old" else -context["age"])
    >>> policy.pull(["old", "new"], {"age": 2.0}), policy.decision.propensities.round(3)
    ('old', array([0.99, 0.01]))
    """

    def __init__(
        self,
        model: BaseEstimator = None,
        sharing: Literal["learned", "none", "all"] | None = None,
        policy: Policy | None = None,
        reward_obj: Any = None,
        burn_in: int = 0,
        seed: int | None = None,
    ) -> None:
        super().__init__(reward_obj=reward_obj, burn_in=burn_in)
        self.model, self.sharing, self.policy, self.seed = model, sharing, policy, seed
        self.bandit: Core | None = None
        self.decision: Decision | None = None
        self._names: tuple[Hashable, ...] | None = None

    def pull(self, arm_ids: list[Any], context: dict[Any, Any] | None = None) -> Any:
        """The arm to pull, of these, in a context."""
        self.decision = None
        return super().pull(arm_ids, context)

    def _pull(self, arm_ids: list[Any], context: dict[Any, Any] | None = None) -> Any:
        values, bandit = self._values(context), self._get_bandit(arm_ids)
        some = set(arm_ids)
        may = None
        if len(some) < len(bandit.arms_):
            may = np.array([arm in some for arm in bandit.arms_])
        self.decision = bandit.decide(values, allowed=may)
        return self.decision.arm

    def update(
        self, arm_id: object, context: Mapping[Any, float] | None, reward: float, *more: Any
    ) -> None:
        """Learn the reward of an arm in a context."""
        values = self._values(context)
        self._get_bandit([arm_id]).learn_one(values, arm_id, reward)
        self._names = self._names if context is None else self._names or tuple(context)
        count: Any = super().update
        count(arm_id, context, reward, *more)

    def _get_bandit(self, arms: Sequence[Any]) -> Core:
        """The bandit, which knows these arms."""
        if self.bandit is None:
            self.bandit = Core(
                self.model, list(arms), sharing=self.sharing, policy=self.policy, rng=self.seed
            )
        for arm in arms:
            if arm not in self._find_arm_indices(self.bandit):
                self.bandit.add_arm(arm)
        return self.bandit

    @staticmethod
    def _find_arm_indices(bandit: Core) -> Mapping[Any, int]:
        bandit._start()
        return bandit._roster.places

    def _values(self, context: Mapping[Any, float] | None) -> np.ndarray[Any, Any]:
        """The context in the order of the features, those that are absent 0."""
        if not context:
            raise ValueError(
                f"the context is {context!r}: this policy needs features: give a dictionary "
                "with at least one"
            )
        names = self._names or tuple(context)
        new = [name for name in context if name not in names]
        if new:
            raise ValueError(
                f"the context has features that the first one lacked: {new}; give the first "
                "context all features, 0 where one is absent"
            )
        return np.array([context.get(name, 0.0) for name in names], dtype=np.float64)
