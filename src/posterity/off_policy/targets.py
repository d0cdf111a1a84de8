"""Policies to evaluate, by their choices in the contexts of a log."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices
from posterity.bandits.roster import as_labels
from posterity.io.rounds import Rounds
from posterity.kernel import judge_rows
from posterity.kernel.values import is_word, read_floats
from posterity.linear.named import list_feature_names
from posterity.off_policy.expectations import mix_numbers


@dataclass(frozen=True)
class EvaluatedDecisions:
    """Decisions of a log as a policy would have made them.

    Attributes
    ----------
    rounds : Rounds
    match : (n,)
        Probability that the policy gives to the arm that was chosen.
    own, expected : (n,)
        Rewards that the reward model expects of that arm, and of the policy's arms.
    mass, unsupported : (K + 1,)
        Sums of the policy's probabilities of each arm, and last of arms that the log lacks; and
        the same of rows where the log could not have chosen the arm.
    chances : (n, K), optional
        Its probabilities of all arms; none where it is the policy that made the log.
    """

    rounds: Rounds
    match: Array
    own: Array
    expected: Array
    mass: Array
    unsupported: Array
    chances: Array | None = None

    @property
    def is_logged(self) -> bool:
        """Whether this is the policy that made the log."""
        return self.chances is None

    @property
    def rewards(self) -> Array:
        """(n,) what was earned."""
        return self.rounds.rewards

    @cached_property
    def weight(self) -> Array | None:
        """(n,) ``match`` over the propensity; none where this is not known."""
        if self.is_logged:
            return self.match
        propensity = self.rounds.propensity
        return None if propensity is None else self.match / propensity

    @cached_property
    def numbers(self) -> NDArray[np.uint64]:
        """(n,) numbers of the rows, mixed."""
        return mix_numbers(self.rounds)

    def compute_parts(self, count: int) -> Indices:
        """(n,) the part of the log that each row is in, of so many."""
        return np.asarray(self.numbers % np.uint64(count), dtype=np.intp)

    def expecting(self, expected: Array) -> EvaluatedDecisions:
        """The same decisions, of which these rewards (n, K) are expected."""
        own = _take_chosen(expected, self.rounds)
        direct = own if self.chances is None else np.einsum("nk,nk->n", self.chances, expected)
        changed = replace(self, own=own, expected=direct)
        changed.__dict__.update(weight=self.weight, numbers=self.numbers)
        return changed


def evaluate_decisions(
    rounds: Rounds, expected: Array | None, chances: Array, *, complete: bool = True
) -> EvaluatedDecisions:
    """Decisions as a policy with probabilities ``chances`` (n, K) would have made them.

    Parameters
    ----------
    rounds
    expected
        (n, K) rewards by the reward model; none where no method asks for them.
    chances
        (n, K).
    complete
        Whether probabilities that do not sum to 1 are refused: those of a bandit that has arms
        which the log lacks need not.
    """
    rewards = None if expected is None else _side_by_side(expected)
    logged = None if rounds.propensities is None else _side_by_side(rounds.propensities)
    match, own, direct, mass, unsupported, bad = judge_rows(
        _side_by_side(chances), rewards, logged, np.ascontiguousarray(rounds.arms)
    )
    if complete and bad >= 0:
        raise ValueError(
            f"the policy's probabilities in row {rounds.first + bad} are {chances[bad].tolist()}: "
            "none may be negative, and they must sum to 1"
        )
    rest = len(rounds) - mass.sum()
    return EvaluatedDecisions(
        rounds, match, own, direct, np.append(mass, rest), np.append(unsupported, 0.0), chances
    )


def _side_by_side(values: Array) -> Array:
    """The same, with the numbers of a row side by side."""
    return values if values.strides[1] == values.itemsize else np.ascontiguousarray(values)


class Target(Protocol):
    """A policy that is to be judged."""

    def judge(self, rounds: Rounds, expected: Array | None) -> EvaluatedDecisions:
        """Return the policy's decisions, given the rewards (n, K) that the reward model expects."""
        ...


@dataclass(frozen=True)
class Logged:
    """The policy that made the log: what it did is what it would do."""

    def judge(self, rounds: Rounds, expected: Array | None) -> EvaluatedDecisions:
        """See :class:`Target`."""
        own = np.zeros(len(rounds)) if expected is None else _take_chosen(expected, rounds)
        nothing = np.zeros(1)
        return EvaluatedDecisions(rounds, np.ones(len(rounds)), own, own, nothing, nothing)


@dataclass(frozen=True)
class StochasticPolicy:
    """Any policy that has probabilities (n, K) in contexts X (n, m)."""

    probabilities: Callable[[Array], Array]
    complete: bool = True

    def judge(self, rounds: Rounds, expected: Array | None) -> EvaluatedDecisions:
        """See :class:`Target`."""
        chances = self.probabilities(rounds.X)
        return evaluate_decisions(rounds, expected, chances, complete=self.complete)


@dataclass(frozen=True)
class GivenProbabilities:
    """Probabilities (n, K) for all rows of a log."""

    probabilities: Array

    def judge(self, rounds: Rounds, expected: Array | None) -> EvaluatedDecisions:
        """See :class:`Target`."""
        last = rounds.first + len(rounds)
        if last > len(self.probabilities):
            raise ValueError(
                f"the policy has probabilities of {len(self.probabilities)} rows, but the log has "
                "more: give them for all of its rows, in their order"
            )
        return evaluate_decisions(rounds, expected, self.probabilities[rounds.first : last])


def _take_chosen(values: Array, rounds: Rounds) -> Array:
    """(n,) what (n, K) values say of the arms that were chosen."""
    return np.asarray(values[np.arange(len(values)), rounds.arms])


@dataclass(frozen=True)
class Always:
    """The policy that always chooses the same arm.

    Examples
    --------
    >>> Always("red")
    Always(arm='red')
    """

    arm: Any


def target_of(policy: Any, arms: Sequence[Hashable], features: Sequence[str] = ()) -> Target:
    """A bandit, an arm, "uniform", "logged", probabilities, or a function X (n, m) -> (n, K).

    A bandit that knows its features by name finds them among ``features``, the columns of X.

    Raises
    ------
    TypeError
        For what is none of these.
    """
    computes = callable(policy) or hasattr(policy, "propensities")
    given = isinstance(policy, np.ndarray)
    if isinstance(policy, Always) or (not computes and not given and policy in arms):
        arm = policy.arm if isinstance(policy, Always) else policy
        chosen = np.array([1.0 if arm == other else 0.0 for other in arms])
        return StochasticPolicy(_same(chosen), complete=False)
    if is_word(policy, "logged"):
        return Logged()
    if is_word(policy, "uniform"):
        return StochasticPolicy(_same(np.full(len(arms), 1.0 / len(arms))))
    if hasattr(policy, "propensities") and hasattr(policy, "arms_"):
        columns = _columns(policy, features)
        return StochasticPolicy(lambda X: _in_order(policy, X[:, columns], arms), complete=False)
    if callable(policy):
        return StochasticPolicy(
            lambda X: _check_propensities(_as_chances(policy(X), arms), len(X), len(arms))
        )
    if given and policy.shape[1:] in ((len(arms),), (len(arms), 1)):
        return GivenProbabilities(
            _check_propensities(policy.reshape(len(policy), -1), len(policy), len(arms))
        )
    raise TypeError(
        f"{policy!r} is not a policy: give a Bandit, one of the arms {list(arms)}, "
        '"uniform", "logged", probabilities (n, K), or a function of contexts X'
    )


def _columns(bandit: Any, features: Sequence[str]) -> slice | list[int]:
    """Return the columns of a bandit's features; all, where names don't tell."""
    names = list_feature_names(bandit)
    lacking = [name for name in names if name not in features]
    if not names or (lacking and len(names) == len(features)):
        return slice(None)
    if lacking:
        raise ValueError(
            f"the bandit has learned from {lacking[0]!r}, which is not a feature of the log: "
            "its features are "
            f"{', '.join(map(repr, features))}"
        )
    return [list(features).index(name) for name in names]


def _same(chances: Array) -> Callable[[Array], Array]:
    return lambda X: np.broadcast_to(chances, (len(X), len(chances)))


def _in_order(bandit: Any, X: Array, arms: Sequence[Hashable]) -> Array:
    """Probabilities of a bandit in the log's order; arms that the log lacks are left out."""
    chances = bandit.propensities(X)
    places = {name: place for place, name in enumerate(bandit.arms_)}
    columns = [places.get(arm, -1) for arm in arms]
    padded = np.concatenate([chances, np.zeros((len(X), 1))], axis=1)
    return np.asarray(padded[:, columns])


def _as_chances(estimate: Any, arms: Sequence[Hashable]) -> Any:
    """Probabilities (n, K) as they are, or of names (n,) of arms that are chosen."""
    names = np.asarray(estimate)
    if names.ndim != 1 or not np.isin(names, as_labels(arms)).all():
        return estimate
    return (names[:, None] == as_labels(arms)).astype(np.float64)


def _check_propensities(propensities: Any, n: int, k: int) -> Array:
    chances = read_floats(propensities, "propensities")
    if chances.shape != (n, k):
        raise ValueError(f"the policy gave probabilities of shape {chances.shape}, not {(n, k)}")
    return chances
