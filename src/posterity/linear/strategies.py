"""Strategies that models are given: how the prior is learned, and how rows are forgotten."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike

from posterity import evidence
from posterity.forgetting import Forgetting
from posterity.forgetting.words import read_forgetting

# Names of strategies that learn the prior precision.
PRIOR_STRATEGIES: dict[str, evidence.Strategy] = {
    "auto": evidence.LocalScales(),
    "ard": evidence.Relevance(),
}


NO_STRATEGY = (
    "forgetting is {!r}: it must be None or a strategy from posterity.forgetting, as in Adaptive() "
    "or Stabilized(discount=0.99), or words for one, as in 'adaptive' or 'stabilized:0.99'"
)


def begin_forgetting(posterior: Any, forgetting: Forgetting | str | None) -> Any:
    """The posterior, which has seen nothing, under a strategy; ``TypeError`` for what is none."""
    try:
        strategy = read_forgetting(forgetting)
    except ValueError as error:
        a_strategy = (
            "else it must be None or a strategy from posterity.forgetting, as in Adaptive()"
        )
        raise TypeError(f"{error}; {a_strategy}") from error
    if strategy is None:
        return posterior
    if isinstance(strategy, type) or not hasattr(strategy, "begin"):
        raise TypeError(NO_STRATEGY.format(strategy))
    return strategy.begin(posterior)


def choose_strategy(
    prior_precision: ArrayLike | str | evidence.Strategy, named: dict[str, evidence.Strategy]
) -> evidence.Strategy | None:
    """The strategy that learns the prior precision, or None where it is given in numbers."""
    if isinstance(prior_precision, str):
        if prior_precision not in named:
            raise ValueError(
                f"prior_precision is {prior_precision!r}: it must be "
                f"{' or '.join(map(repr, named))}, a strategy from posterity.evidence, or numbers "
                "(0.0 is flat)"
            )
        return named[prior_precision]
    if isinstance(prior_precision, type):
        raise TypeError(
            f"prior_precision is the class {prior_precision.__name__}: give an instance, as in "
            f"{prior_precision.__name__}()"
        )
    # NumPy's arrays and numbers have a method of that name, too.
    learns = hasattr(prior_precision, "choose") and not hasattr(prior_precision, "dtype")
    return cast(evidence.Strategy, prior_precision) if learns else None
