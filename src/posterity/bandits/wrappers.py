"""Policies under a watch: one that keeps to a budget, and one that does not do much worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.bandits.decisions import Numbers, draw_rankings
from posterity.bandits.policies import Policy
from posterity.bandits.rising import AnyBeliefs

# Contexts of the last decisions, by which costs are weighed.
RECENT = 256
_HALVINGS = 50


@dataclass(frozen=True)
class Ledger:
    """Counts and costs of the decisions of a bandit under :class:`Budget` or :class:`Baseline`.

    Attributes
    ----------
    decisions : int
    spent : float
        Of a budget; of a baseline, the bound of what was lost beside it.
    agreed : float
        Sum over decisions of the probability that the watched policy alone had chosen their arm.
    recent : (M, K) array
        What was expected of the arms in the last contexts, minus infinity where not allowed.
    """

    decisions: int = 0
    spent: float = 0.0
    agreed: float = 0.0
    recent: Array = field(default_factory=lambda: np.empty((0, 0)))


@dataclass(frozen=True, kw_only=True)
class Wrapper:
    """A policy under a watch.

    Parameters
    ----------
    policy
        What is watched: a policy, or a name of one; default that of a bandit.
    """

    policy: Any = None
    floor: ClassVar[float] = 0.0

    def find_kernel_policy(self, df: float) -> None:
        """Return None: a wrapper needs the posteriors of all arms."""

    def decision_probabilities(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> Array:
        """(n, K) probabilities of each context, were it the next one."""
        raise NotImplementedError

    def decide(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> tuple[Indices, Array, Ledger]:
        """Arms (n,) of contexts one after the other, the probabilities (n, K), and the ledger."""
        raise NotImplementedError


@dataclass
class WrappedPolicy:
    """A wrapper with what has been decided: it decides as a policy does, and keeps the ledger."""

    wrapper: Wrapper
    ledger: Ledger
    names: Sequence[Any]

    def find_kernel_policy(self, df: float) -> None:
        """See :class:`Wrapper`."""

    def propensities(self, beliefs: AnyBeliefs, rng: np.random.Generator) -> Array:
        """See :class:`Policy`."""
        return self.wrapper.decision_probabilities(beliefs, self, rng)

    def choose(self, beliefs: AnyBeliefs, numbers: Numbers) -> tuple[Indices, Array]:
        """See :class:`Policy`."""
        places, propensities, self.ledger = self.wrapper.decide(beliefs, self, numbers.rng)
        return places, propensities


@dataclass(frozen=True, kw_only=True)
class Budget(Wrapper):
    """A policy that never spends more than a budget (Agrawal and Devanur 2016).

    An arm counts with its reward less a price times its cost. The price is the lowest at which the
    best arms of the last contexts, by what was expected of them, cost no more than what is left
    for each decision to come: it needs no rate, and follows what is learned and spent. Arms that
    cost more than what is left are not chosen, whatever the floor.

    Parameters
    ----------
    costs
        Of a decision for an arm, by its name; arms that are not named cost nothing.
    total
        What may be spent.
    decisions
        How many decisions it is to last for.

    Examples
    --------
    >>> from posterity.bandits import Bandit
    >>> watched = Budget(costs={"call": 5.0}, total=50.0, decisions=100)
    >>> bandit = Bandit(arms=["call", "mail"], policy=watched, rng=0)
    >>> for _ in range(100):
    ...     decision = bandit.decide([1.0])
    ...     bandit = bandit.learn_one(decision, 1.0 if decision.arm == "call" else 0.5)
    >>> bandit.ledger_.spent
    50.0
    """

    costs: Mapping[Any, float]
    total: float
    decisions: int

    def __post_init__(self) -> None:
        bad = [name for name, cost in self.costs.items() if not 0.0 <= cost < np.inf]
        if bad:
            raise ValueError(
                f"the cost of {bad[0]!r} is {self.costs[bad[0]]}: costs must be 0 or more"
            )
        if not 0.0 <= self.total < np.inf or not self.decisions >= 1:
            raise ValueError(
                f"total is {self.total} and decisions {self.decisions}: give a positive budget, "
                "and the number of decisions that it is for"
            )

    def decision_probabilities(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> Array:
        """See :class:`Wrapper`."""
        costs, left = self._costs(past.names), self.total - past.ledger.spent
        affordable = beliefs.allowed & (costs <= left)
        self._refuse_none(affordable, left)
        worth = beliefs.shift(-self._price(past.ledger, costs) * costs, affordable)
        return np.asarray(self.policy.propensities(worth, rng))

    def decide(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> tuple[Indices, Array, Ledger]:
        """See :class:`Wrapper`."""
        propensities, ledger = self.decision_probabilities(beliefs, past, rng), past.ledger
        costs, left = self._costs(past.names), self.total - ledger.spent
        n = len(propensities)
        if n * costs.max() <= left:
            places = draw_rankings(propensities, 1, rng)[:, 0]
        else:
            places = np.empty(n, dtype=np.intp)
            for row in range(n):
                affordable = beliefs.allowed[row] & (costs <= left)
                self._refuse_none(affordable[None], left, row)
                some = propensities[row] * affordable
                propensities[row] = (
                    some / some.sum() if some.any() else affordable / affordable.sum()
                )
                places[row] = draw_rankings(propensities[row : row + 1], 1, rng)[0, 0]
                left -= costs[places[row]]
        spent = ledger.spent
        for place in places:  # in the order in which what is left was found
            spent += float(costs[place])
        known = ~beliefs.unknown.any(axis=1)
        shown = np.where(beliefs.allowed, beliefs.mean, -np.inf)[known]
        before = ledger.recent if ledger.recent.shape[1] == len(costs) else shown[:0]
        recent = np.concatenate([before, shown])[-RECENT:]
        return (
            places,
            propensities,
            replace(ledger, decisions=ledger.decisions + n, spent=spent, recent=recent),
        )

    def _costs(self, names: Sequence[Any]) -> Array:
        return _list_by_arm(self.costs, names, "costs has", "costs for some")

    def _price(self, ledger: Ledger, costs: Array) -> float:
        """Reward that a unit of cost must bring; 0 where all can be paid for."""
        expected = ledger.recent
        if expected.shape[1] != len(costs) or not len(expected):
            return 0.0
        share = (self.total - ledger.spent) / max(self.decisions - ledger.decisions, 1)
        floor = self.policy.floor

        def expected_cost(price: float) -> float:
            best = np.argmax(expected - price * costs, axis=1)
            return float((1.0 - floor) * costs[best].mean() + floor * costs.mean())

        if expected_cost(0.0) <= share:
            return 0.0
        steps = np.diff(np.unique(costs))
        spread = np.ptp(expected[np.isfinite(expected)])
        low, high = 0.0, float(spread / steps.min()) if len(steps) else 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if expected_cost(middle) <= share else (middle, high)
        return high

    def _refuse_none(self, affordable: Mask, left: float, first: int = 0) -> None:
        none = np.flatnonzero(~affordable.any(axis=1))
        if len(none):
            raise ValueError(
                f"{left:g} is left of the budget of {self.total:g}, and every arm allowed in "
                f"row {first + none[0]} costs more: allow an arm that costs nothing"
            )


@dataclass(frozen=True, kw_only=True)
class Baseline(Wrapper):
    """A policy that earns not much less than a given arm, or shares of arms (Kazerouni 2017).

    The policy's probabilities and the baseline's are mixed, with as large a share of the policy's
    as keeps the bound of what all decisions together have lost beside the baseline, in
    expectation, at ``allowance`` a decision. The bound is a quantile of what is believed; where
    the policy is sure to earn more, it earns allowance for others.

    Parameters
    ----------
    arm
        A name, or a mapping of names to shares: what would be done otherwise.
    allowance
        What may be lost, in units of reward, a decision.
    level
        Of the quantile.
    largest_loss
        What a decision can lose at most. Without it arms of which nothing is known are not tried:
        with ``sharing="none"`` none would ever be.
    apprentice
        The baseline alone acts, and the policy learns: ``agreed`` in ``Bandit.ledger_`` says how
        often it would have done the same, and ``Bandit.propensities(X, policy=...)`` what.

    Examples
    --------
    >>> from posterity.bandits import Bandit
    >>> bandit = Bandit(arms=["old", "new"], policy=Baseline(arm="old", allowance=0.05), rng=0)
    >>> bandit.decide([1.0]).propensities
    array([1., 0.])
    """

    arm: Any
    allowance: float = 0.0
    level: float = 0.95
    largest_loss: float = np.inf
    apprentice: bool = False

    def __post_init__(self) -> None:
        if not (0.0 <= self.allowance < np.inf and self.largest_loss > 0.0):
            raise ValueError(
                f"allowance is {self.allowance} and largest_loss {self.largest_loss}: both must "
                "be 0 or more"
            )
        if not 0.5 <= self.level < 1.0:
            raise ValueError(f"level is {self.level}: it must be at least 0.5, and below 1")

    def decision_probabilities(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> Array:
        """See :class:`Wrapper`."""
        wished, base, loss = self._compare_with_baseline(beliefs, past.names, rng)
        decisions, spent = past.ledger.decisions, past.ledger.spent
        share = np.array([self._share(one, decisions, spent) for one in loss])
        return np.asarray(share[:, None] * wished + (1.0 - share)[:, None] * base)

    def decide(
        self, beliefs: AnyBeliefs, past: WrappedPolicy, rng: np.random.Generator
    ) -> tuple[Indices, Array, Ledger]:
        """See :class:`Wrapper`."""
        wished, base, loss = self._compare_with_baseline(beliefs, past.names, rng)
        ledger, n, share = past.ledger, len(loss), np.zeros(len(loss))
        spent = ledger.spent
        for row in range(n):
            share[row] = self._share(loss[row], ledger.decisions + row, spent)
            if share[row] > 0.0:
                spent += float(share[row] * loss[row])
        propensities = share[:, None] * wished + (1.0 - share)[:, None] * base
        places = draw_rankings(propensities, 1, rng)[:, 0]
        agreed = ledger.agreed + float(wished[np.arange(n), places].sum())
        after = replace(ledger, decisions=ledger.decisions + n, spent=spent, agreed=agreed)
        return places, propensities, after

    def _share(self, loss: float, decisions: int, spent: float) -> float:
        """Return the share of the policy in a decision whose expected loss is ``loss``."""
        if self.apprentice:
            return 0.0
        left = self.allowance * (decisions + 1) - spent
        return 1.0 if loss <= left else max(left, 0.0) / loss

    def _compare_with_baseline(
        self, beliefs: AnyBeliefs, names: Sequence[Any], rng: np.random.Generator
    ) -> tuple[Array, Array, Array]:
        """Probabilities (n, K) of policy and baseline, and what the first loses at most (n,)."""
        wished = self.policy.propensities(beliefs, rng)
        base = self._shares(names) * beliefs.allowed
        total = base.sum(axis=1, keepdims=True)
        # Where nothing of the baseline is allowed, there is nothing to compare with.
        base = np.where(total > 0.0, base / np.where(total > 0.0, total, 1.0), wished)
        loss = beliefs.bound(base - wished, self.level)
        return wished, base, np.minimum(loss, self.largest_loss)

    def _shares(self, names: Sequence[Any]) -> Array:
        given = self.arm if isinstance(self.arm, Mapping) else {self.arm: 1.0}
        shares = _list_by_arm(given, names, "the baseline is", "one")
        if not (shares.min() >= 0.0 and abs(shares.sum() - 1.0) < 1e-6):
            raise ValueError(f"the baseline's shares are {dict(given)}: they must sum to 1")
        return shares


def _list_by_arm(given: Mapping[Any, float], names: Sequence[Any], what: str, some: str) -> Array:
    """(K,) numbers of the arms, 0 of those that have none."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{what} {unknown[0]!r}, which is not an arm: give {some} of {list(names)}"
        )
    return np.array([given.get(name, 0.0) for name in names], dtype=np.float64)


def wrap_policy(
    policy: Policy | Wrapper, ledger: Ledger, names: Sequence[Any]
) -> Policy | WrappedPolicy:
    """A policy that can decide: as it is, or with what has been decided under its watch."""
    return WrappedPolicy(policy, ledger, names) if isinstance(policy, Wrapper) else policy
