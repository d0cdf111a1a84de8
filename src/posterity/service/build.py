"""Models of predictors: made of the words of the settings, or read from the file that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from posterity import words
from posterity.files import ModelFileError, loads_with_notes
from posterity.grouped import GroupedRegression
from posterity.grouped.inputs import key_names
from posterity.io.calendar import find_calendar_part
from posterity.io.learning import get_categories
from posterity.linear.named import list_feature_names
from posterity.model import Model
from posterity.service.decoding import explain_invalid
from posterity.service.errors import RefusedError
from posterity.service.messages import ExperimentSettings, PredictorSettings
from posterity.service.rows import NumberRows, Rows, name_kinds
from posterity.service.tables import TableRows, list_levels

# Families of groups that likelihoods have another name for.
_OF_GROUPS = {**words.LIKELIHOODS, "linear": "gaussian"}
_METHODS = ("predict_distribution", "learn_one")


def begin(
    settings: PredictorSettings, kinds: Mapping[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """A model as it is before the first row of the log, and what a file notes with it.

    ``kinds`` of columns are those of the settings, unless a first row says what they are.

    Raises
    ------
    RefusedError
        422, with the field: words that describe no model, or a parameter that it does not have.
    """
    if settings.file is not None:
        return read_file(settings.file)
    try:
        model = _build_words(settings)
    except ValueError as error:
        raise RefusedError(422, str(error), "formula" if settings.formula else "model") from error
    known = model.get_params(deep=False)
    for name in settings.parameters:
        if name not in known:
            message = f"there is no parameter {name!r}: give one of {', '.join(sorted(known))}"
            raise RefusedError(422, message, f"parameters.{name}")
    model.set_params(**settings.parameters)
    if settings.formula is None:
        columns = kinds or name_kinds(settings)
        coded = _code_levels(settings) if _is_plain(settings) else list_levels(columns)
        if coded:
            model.set_params(categorical_features=coded)
        if columns and settings.groups not in (None, *columns):
            message = f"groups is {settings.groups!r}, which is not a feature: give one of "
            raise RefusedError(422, message + ", ".join(columns), "groups")
        _refuse_open(model, columns, settings)
    return model, {}


def _refuse_open(model: Any, kinds: Mapping[str, Any], settings: PredictorSettings) -> None:
    """Refuse categories whose levels may come later, for a model that compares with the first."""
    for name, kind in kinds.items() if model._leaves_out_first else ():
        if kind == "category" and name != settings.groups:
            message = f"no level of {name!r} may come later in this model: list all of them, "
            message += f'as in "features": {{"{name}": ["a", "b"]}}'
            raise RefusedError(422, message, f"features.{name}")


def _code_levels(settings: PredictorSettings) -> dict[str, list[Any]]:
    """Levels as numbers, of categories in rows that are arrays of numbers."""
    roles = (settings.offset, settings.exposure)
    learned = [name for name in settings.features or () if name not in roles]
    return {
        f"x{learned.index(name)}": list(range(1, len(each) + 1))
        for name, each in settings.levels.items()
    }


def get_family(settings: ExperimentSettings | PredictorSettings) -> str:
    """The word for what targets are, "linear" by default.

    Raises
    ------
    RefusedError
        422: the words describe no model.
    """
    try:
        family, _, _ = words.parse_one(settings.model).family.partition(":")
    except ValueError as error:
        raise RefusedError(422, str(error), "model") from error
    return family.replace("-", " ") or "linear"


def make_rows(settings: PredictorSettings, model: Any, notes: Mapping[str, Any]) -> Rows:
    """What reads the rows of a model, with what was noted of them."""
    if _is_plain(settings):
        return NumberRows(settings)
    learned = list_feature_names(model) if settings.file is not None else ()
    return TableRows(settings, notes, [*_list_keys(model), *learned] if learned else ())


def _is_plain(settings: PredictorSettings) -> bool:
    """Whether rows are arrays of numbers, without names."""
    named = settings.formula is not None or settings.groups is not None
    return isinstance(settings.features, list) and settings.missing == "error" and not named


def _list_keys(model: Any) -> list[str]:
    """The columns that hold the groups of a model."""
    return key_names(getattr(model, "by", None))


def _build_words(settings: PredictorSettings) -> Any:
    parsed = words.parse_one(settings.model)
    if settings.formula is None and settings.groups is None:
        return words.build_model(parsed)
    if parsed.basis or parsed.prior:
        word, place = parsed.basis or parsed.prior, "formula" if settings.formula else "groups"
        raise ValueError(f"{word!r} does not go with {place}: leave it out")
    forgetting, family = parsed.forgetting or None, parsed.family or "linear"
    if settings.formula is not None:
        likelihood = words.LIKELIHOODS.get(family, family)
        return Model(settings.formula, likelihood, forgetting=forgetting)
    likelihood = _OF_GROUPS.get(family, family)
    return GroupedRegression(by=settings.groups, likelihood=likelihood, forgetting=forgetting)


def read_file(content: bytes) -> tuple[Any, dict[str, Any]]:
    """A model file's model, and its notes.

    Raises
    ------
    RefusedError
        422: it is no model file, is damaged or too new, or holds nothing that learns rows.
    """
    try:
        model, notes = loads_with_notes(content)
    except ModelFileError as error:
        raise RefusedError(422, str(error), "file") from error
    kind = type(model).__name__
    if not all(callable(getattr(model, method, None)) for method in _METHODS):
        message = f"the file holds a {kind}, which does not learn rows: upload a regression"
        raise RefusedError(422, message, "file")
    if notes.get("log_target"):
        message = f"the file holds a {kind} of the log of its target: fit one without --log-target"
        raise RefusedError(422, message, "file")
    return model, notes


def read_upload(content: bytes, given: Mapping[str, str]) -> PredictorSettings:
    """The settings of a predictor that goes on with a model file.

    Raises
    ------
    RefusedError
        As :func:`read_file`; or a setting that is none, or has no such value.
    """
    model, notes = read_file(content)
    filled = "fill" if notes.get("missing") in ("mean", "level") else "error"
    known = {"missing": filled, **given, "features": describe_features(model), "file": content}
    try:
        return msgspec.convert(known, PredictorSettings, strict=False)
    except msgspec.ValidationError as error:
        raise explain_invalid(PredictorSettings, str(error)) from error


def describe_features(model: Any) -> Any:
    """The features of a fitted model as settings have them: kinds by name, or names of numbers."""
    names = list_feature_names(model)
    if not names:
        count = getattr(model, "n_features_in_", 0)
        return [f"x{place}" for place in range(count)] or None
    kinds: dict[str, str] = dict.fromkeys(_list_keys(model), "category")
    levels = get_categories(model).levels
    for name in map(str, names):
        dated = find_calendar_part(name) if name in levels else None
        if dated is None:
            kinds.setdefault(name, "category" if name in levels else "number")
        elif dated[1] == "hour" or kinds.get(dated[0]) != "time":
            kinds[dated[0]] = "time" if dated[1] == "hour" else "date"
    return kinds
