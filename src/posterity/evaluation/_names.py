"""Names for models that were given without: what they are, and in what they differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from posterity.aliases import Estimator


def name_models(models: Mapping[str, Any] | Sequence[Any]) -> tuple[tuple[str, ...], list[Any]]:
    """Names and models, of a mapping or of a list."""
    if isinstance(models, Mapping):
        return tuple(models), list(models.values())
    if not isinstance(models, list | tuple):
        raise TypeError(
            "models must be a mapping of names to models, or a list of models; got "
            f"{type(models).__name__}"
        )
    return list_names(models), list(models)


def list_names(models: Sequence[Any]) -> tuple[str, ...]:
    """The class, and the parameters in which models of one class differ, as one would write them.

    What is still alike gets a number.
    """
    kinds = [type(model).__name__ for model in models]
    settings = [_format_parameters(model) for model in models]
    names = []
    for kind, own in zip(kinds, settings, strict=True):
        alike = [s for s, other in zip(settings, kinds, strict=True) if other == kind]
        differing = [key for key in own if len({s.get(key) for s in alike}) > 1]
        last_parts = Counter(key.rpartition("__")[2] for key in differing)
        words = []
        for key in differing:
            short = key.rpartition("__")[2]
            words.append(f"{short if last_parts[short] == 1 else key}={own[key]}")
        names.append(f"{kind}({', '.join(words)})" if words else kind)
    count, used = Counter(names), Counter[str]()
    for i, name in enumerate(names):
        if count[name] > 1:
            used[name] += 1
            names[i] = f"{name} #{used[name]}"
    return tuple(names)


def _format_parameters(model: Estimator) -> dict[str, str]:
    """Parameters as text, those of nested estimators by their own names."""
    if not hasattr(model, "get_params"):
        return {}
    parameters = model.get_params(deep=True)
    nested = {key.rpartition("__")[0] for key in parameters} - {""}
    return {
        key: repr(value)
        for key, value in parameters.items()
        if key not in nested and not _holds_estimators(value)
    }


def _holds_estimators(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_estimators(item) for item in value)
    return hasattr(value, "get_params")
