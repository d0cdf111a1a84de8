"""Valid settings, and valid changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from posterity.model.formula import read_formula
from posterity.service.decoding import explain_value
from posterity.service.errors import RefusedError
from posterity.service.inputs import list_names
from posterity.service.messages import ExperimentSettings, Named, PredictorSettings
from posterity.service.rows import name_kinds
from posterity.service.tables import KINDS, list_parts

# Bytes of the covariances of a model, at most: every decision reads them, and all wait for it.
LARGEST_MODEL = 256_000_000


def refuse_other(before: Any, kind: str, settings: Any) -> None:
    """Refuse settings that a model which is there can't take over."""
    if before.kind != kind:
        message = f"there is {before.kind} {before.name!r} already: use another name"
        raise RefusedError(409, message, "name")
    if kind == "predictor":
        raise RefusedError(409, f"{before.name!r} exists with other settings: use another name")
    for name in ("features", "model"):
        if getattr(before.settings, name) != getattr(settings, name):
            raise RefusedError(409, f"{name} can't change: create one with another name", name)
    if getattr(before.settings, "arms", None) != settings.arms:
        raise RefusedError(
            409, "the arms of an experiment can't change: create one with another name", "arms"
        )


def check_name(name: str, field: str) -> None:
    """Refuse a name, or an id, that a body could not have: a database can't hold it.

    Raises
    ------
    RefusedError
        422, with the field.
    """
    try:
        msgspec.convert({"name": name}, Named)
    except msgspec.ValidationError as error:
        what = str(error).partition(" - at `$")[0]
        raise RefusedError(422, explain_value(what), field) from error


def check_features(settings: Any) -> None:
    """Refuse two features of one name, levels and kinds of none, and models that are too large."""
    features = settings.features or ()
    if len(set(features)) < len(features):
        raise RefusedError(422, "two features have the same name: rename one", "features")
    levels: dict[str, list[str]] = dict(getattr(settings, "levels", {}))
    if levels and not isinstance(features, list):
        message = 'levels go with the kinds of features, as in {"shop": ["a", "b"]}'
        raise RefusedError(422, message, "levels")
    for name in levels:
        _check_feature(name, "levels", settings)
    for name, kind in features.items() if isinstance(features, dict) else ():
        if isinstance(kind, list):
            levels[name] = kind
        elif kind not in KINDS:
            message = f"{name!r} is of kind {kind!r}: give {list_names(KINDS)}, or a list of levels"
            raise RefusedError(422, message, f"features.{name}")
    for name, each in levels.items():
        if len(set(each)) < len(each):
            raise RefusedError(422, f"{name!r} has a level twice: name each once", f"levels.{name}")
    more = sum(map(len, levels.values()))
    columns, models = len(features) + 1 + more, len(getattr(settings, "arms", ())) or 1
    size = 8 * models * columns**2
    if size > LARGEST_MODEL:
        what = f"{models:,} arms with " if models > 1 else ""
        message = (
            f"{what}{columns - 1:,} features take {size / 1e6:,.0f} MB, and "
            f"{LARGEST_MODEL / 1e6:,.0f} MB is the most: leave features out, or combine them"
        )
        raise RefusedError(422, message, "features")


def check_predictor(settings: PredictorSettings) -> None:
    """Refuse features, levels and kinds that are none, and a formula that no row could follow."""
    check_features(settings)
    if settings.formula is None:
        return
    try:
        formula = read_formula(settings.formula)
    except ValueError as error:
        raise RefusedError(422, str(error), "formula") from error
    if settings.groups is not None:
        message = f"groups are part of a formula: write (1 | {settings.groups}) there instead"
        raise RefusedError(422, message, "groups")
    if formula.has_ends:
        message = "a row has one target y: times with an end, Surv or cens, have two"
    elif formula.trials is not None:
        message = "a row has one target y: write y ~ ..., and send each trial as a row, 1 or 0"
    elif formula.response.kind != "name":
        message = f"y is learned as it is sent: write y in place of {formula.response}, and send "
        message += "rows with the target that you mean"
    elif formula.needs_rows:
        called = formula.needs_rows[0]
        message = f"{called}(...) can't begin with one row: fit the model, and PUT its file"
    else:
        return _check_columns(formula.predictors, name_kinds(settings))
    raise RefusedError(422, message, "formula")


def _check_columns(named: Sequence[str], kinds: Mapping[str, Any]) -> None:
    """Refuse columns of a formula that rows of these kinds do not have."""
    parts = {name: list_parts(name, kind) for name, kind in kinds.items()}
    there = [column for columns in parts.values() for column in columns]
    for name in named if kinds else ():
        if name in there:
            continue
        message = f"the formula has {name!r}, which is not a feature: name one of "
        if name in parts:
            message = f"{name!r} is a {kinds[name]}: name one of its "
        raise RefusedError(422, message + list_names(parts.get(name, there)), "formula")


def check_ranges(settings: ExperimentSettings) -> None:
    """Refuse arms, features and ranges that do not go together."""
    if len(set(settings.arms)) < len(settings.arms):
        raise RefusedError(422, "two arms have the same name: rename one", "arms")
    check_features(settings)
    for name, (low, high) in settings.ranges.items():
        _check_feature(name, "ranges", settings)
        if not low < high:
            message = (
                f"the range of {name!r} is ({low:g}, {high:g}): the first number must be smaller"
            )
            raise RefusedError(422, message, f"ranges.{name}")
    for name, seconds in settings.erase_after.items():
        _check_feature(name, "erase_after", settings)
        if seconds < (settings.horizon or 0.0):
            message = (
                f"{name!r} would be erased before the horizon: give {settings.horizon:g} or more"
            )
            raise RefusedError(422, message, f"erase_after.{name}")


def _check_feature(name: str, where: str, settings: Any) -> None:
    if name not in (settings.features or ()):
        message = f"{where} has {name!r}, which is not a feature: use names of features"
        raise RefusedError(422, message, f"{where}.{name}")
