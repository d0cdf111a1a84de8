"""Rank, reward and activate as clients of Azure Personalizer send them (its REST API, v1.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from posterity.off_policy.dsjson import flatten_features
from posterity.service.errors import RefusedError
from posterity.service.experiments import Experiment
from posterity.service.inputs import list_names
from posterity.service.messages import Activate, Decide, RankedAction, Ranking, Reward

# Requests without an experiment in their path mean the one of this name.
DEFAULT_EXPERIMENT = "personalizer"


def read_features(context: Any, features: Sequence[str]) -> list[float]:
    """The numbers (m,) of features in order: a word is 1 in the feature ``name=word``.

    Raises
    ------
    RefusedError
        422, with the name of a feature that the experiment does not have.
    """
    try:
        named = list(flatten_features(context))
    except (RecursionError, OverflowError) as error:
        raise RefusedError(422, f"no features: {error}", "contextFeatures") from error
    return to_vector(named, features, "contextFeatures")


def to_vector(
    named: Sequence[tuple[str, float]], features: Sequence[str], field: str
) -> list[float]:
    """Numbers (m,) in the order of the features, where those that are missing are 0.

    Raises
    ------
    RefusedError
        422, with the name of a feature that the experiment does not have.
    """
    places = {name: place for place, name in enumerate(features)}
    values = [0.0] * len(features)
    for name, value in named:
        if name not in places:
            message = f"unknown feature {name!r}: give {list_names(features)}"
            raise RefusedError(422, message, f"{field}.{name}")
        values[places[name]] = value
    return values


async def rank(call: Any) -> Any:
    """Rank actions for a context, as Personalizer does."""
    asked, experiment = call.body, call.engine.experiment(call.name)
    offered = [action.id for action in asked.actions]
    _check(offered, experiment)
    allowed = [name for name in offered if name not in set(asked.excluded_actions)]
    if not allowed:
        field = "excludedActions" if offered else "actions"
        raise RefusedError(422, "there is no action to choose: leave at least one", field)
    decide = Decide(
        context=read_features(asked.context_features, experiment.settings.features),
        id=asked.event_id,
        arms=None if set(allowed) == set(experiment.settings.arms) else allowed,
        activate=not asked.defer_activation,
    )
    made = (await call.engine.decide(call.name, [decide]))[0]
    others = sorted(offered, key=lambda name: (name != made.arm, -made.propensities[name]))
    ranking = [RankedAction(name, made.propensities[name]) for name in others]
    return Ranking(ranking, made.id, made.arm)


def _check(offered: list[str], experiment: Experiment) -> None:
    arms = experiment.settings.arms
    if len(set(offered)) < len(offered):
        raise RefusedError(422, "two actions have the same id: rename one", "actions")
    for place, name in enumerate(offered):
        if name not in arms:
            message = f"there is no arm {name!r}: give {list_names(arms)}"
            raise RefusedError(422, message, f"actions[{place}].id")


async def reward_event(call: Any) -> Any:
    """Learn what an event earned; the same value again is the same reward."""
    value = call.body.value
    asked = Reward(decision_id=call.named[-1], value=value, event_id=f"reward {value!r}")
    await call.engine.record_event(call.name, "reward", asked)
    return Response(status_code=204)


async def activate_event(call: Any) -> Any:
    """Say that an event was shown after all: its rewards are learned."""
    await call.engine.record_event(call.name, "activate", Activate(decision_id=call.named[-1]))
    return Response(status_code=204)
