"""Policies by the names that papers and other packages have for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from posterity.bandits.policies import (
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    Policy,
    RandomizedUpperConfidenceBound,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.bandits.wrappers import Wrapper

NAMES: dict[str, type[Policy]] = {
    "thompson": ThompsonSampling,
    "ucb": UpperConfidenceBound,
    "upper confidence bound": UpperConfidenceBound,
    "randomized ucb": RandomizedUpperConfidenceBound,
    "randomized upper confidence bound": RandomizedUpperConfidenceBound,
    "greedy": Greedy,
    "epsilon greedy": EpsilonGreedy,
    "softmax": Softmax,
    "inverse gap": InverseGap,
    "squarecb": InverseGap,
    "top two": TopTwo,
    "information directed": InformationDirected,
}


def find_policy(name: str) -> type[Policy] | None:
    """The class of a policy by a name of it, however that is spelled; None where it is none."""
    return NAMES.get(name.lower().replace("_", " ").replace("-", " "))


def make_policy(given: Any, default: Policy | Wrapper) -> Policy | Wrapper:
    """A policy: as it is, by its class, or by a name of it; of a wrapper its own, too.

    Examples
    --------
    >>> make_policy("ucb", Greedy())
    UpperConfidenceBound(floor=0.02, level=0.841)
    """
    if given is None:
        return default
    if isinstance(given, Policy):
        return given
    if isinstance(given, Wrapper):
        inner = make_policy(given.policy, default)
        if isinstance(inner, Wrapper):
            raise TypeError(
                f"policy is {given!r}: Budget and Baseline can't be nested: give a plain policy"
            )
        return given if inner is given.policy else replace(given, policy=inner)
    if isinstance(given, str):
        called = find_policy(given)
        if called is not None:
            return called()
    elif isinstance(given, type) and issubclass(given, Policy) and given in NAMES.values():
        return given()
    kind = ValueError if isinstance(given, str) else TypeError
    raise kind(
        f"policy is {given!r}: give one of posterity.bandits, as ThompsonSampling(floor=0.05), or "
        f"one of the names {', '.join(map(repr, NAMES))}"
    )
