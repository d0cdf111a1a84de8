"""Description of a model file, in words or in JSON."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from posterity.aliases import Document, Estimator, Mask
from posterity.cli import text
from posterity.cli.formula import describe_formula_model
from posterity.cli.model_files import ModelFile, read_model
from posterity.cli.text import escape
from posterity.cli.wide import describe_wide
from posterity.distributions.row_distribution import RowDistribution
from posterity.io.reading import ROLES
from posterity.kernel.values import is_word
from posterity.linear.categories import OTHER
from posterity.linear.contrasts import Base, Term, contrast_model
from posterity.linear.named import list_feature_names
from posterity.words import COUNTS

# Settings of the prior that say that it is learned; models whose mean is an exponential.
LEARNED_PRIORS = ("auto", "ard")


def run(model: str, *, level: float, base: tuple[str, ...] = (), as_json: bool) -> None:
    """Show a model file, in words or in JSON."""
    kept = read_model(model)
    try:
        document = _make_document(kept, level, _read_base(base))
    except NotFittedError:
        raise ValueError(
            f"{kept.path} contains a model that has not learned any rows: run posterity update "
            "first"
        ) from None
    if as_json:
        text.print_json(document)
    else:
        _print(document)


def _make_document(kept: ModelFile, level: float, base: Base) -> Document:
    model = kept.model
    document: Document = {
        "file": kept.path,
        "class": type(model).__name__,
        **{name: _read_text(kept, name) for name in ("target", "missing", *ROLES)},
        "settings": {
            name: value if isinstance(value, int | float | str | None) else repr(value)
            for name, value in model.get_params(deep=False).items()
        },
        "features": list(map(str, list_feature_names(model))),
        "columns": _list_names(kept.notes.get("columns")),
        "left_out": _list_names(kept.notes.get("left_out")),
        "level": level,
        "coefficients_of": _name_quantity(model, _find_learned_target(kept)),
        **_describe_coefficients(kept, level, base),
    }
    for name in ("n_observations", "n_effective", "noise_precision", "log_evidence"):
        document[name] = _number(_read_attribute(model, f"{name}_"))
    precision = document["noise_precision"]
    document["noise_std"] = None if not precision else _number(1.0 / math.sqrt(precision))
    return document


def _read_text(kept: ModelFile, name: str) -> str | None:
    noted = kept.notes.get(name)
    return noted if isinstance(noted, str) else None


def _list_names(noted: object) -> list[str]:
    return [str(name) for name in noted] if isinstance(noted, list | tuple) else []


def _read_attribute(model: Estimator, name: str) -> Any:
    """What a model says, or the model inside it; None where neither says it."""
    for one in (model, getattr(model, "model_", None)):
        with contextlib.suppress(AttributeError, ValueError):
            return getattr(one, name)
    return None


def _read_base(given: tuple[str, ...]) -> Base:
    """What levels are compared with, as the option says."""
    if given in (("mean",), ("first",)):
        return "mean" if given == ("mean",) else "first"
    bases = {}
    for one in given:
        column, mark, level = one.rpartition("=")
        if not mark:
            raise ValueError(
                f"--base is {one!r}: give mean, first, or a column and a level of it, as in --base "
                "zone=a"
            )
        bases[column] = level
    return bases or None


def _describe_coefficients(kept: ModelFile, level: float, base: Base) -> Document:
    """The table of coefficients, of a model that has one."""
    model = kept.model
    kind = type(model)
    if kept.has_formula:
        return describe_formula_model(model, level)
    if hasattr(kind, "coef_std_"):
        return describe_wide(model, level)
    if hasattr(kind, "posterior_"):
        return _describe_full(kept, level, base)
    return {"coefficients": [], "prior_std_learned": []}


def _describe_full(kept: ModelFile, level: float, base: Base) -> Document:
    contrasts = contrast_model(kept.model, base, _list_named_terms(kept))
    joint, each = kept.model._compare(contrasts)
    return {
        "coefficients": _coefficients(joint, each, level),
        "prior_std_learned": _format_learned_prior(kept.model),
    }


def _list_named_terms(kept: ModelFile) -> list[Term]:
    """Features that are levels of the table's columns by their names, as zone=a."""
    columns, left_out = (set(_list_names(kept.notes.get(one))) for one in ("columns", "left_out"))
    offset = int(kept.model.fit_intercept)
    features = list(map(str, list_feature_names(kept.model)))
    found: dict[str, list[tuple[str, str, int]]] = {}
    for place, name in [*((-1, one) for one in sorted(left_out)), *enumerate(features, offset)]:
        stems = [name[:i] for i, mark in enumerate(name) if mark == "="]
        # A column, or a part of a date: when.hour=7.
        stem = next((s for s in stems if {s, s.rpartition(".")[0]} & columns), None)
        if stem is not None and name not in columns:
            found.setdefault(stem, []).append((name[len(stem) + 1 :], name, place))
    terms = []
    for stem, each in found.items():
        levels, labels, places = zip(*each, strict=True)
        if max(places) >= 0:
            terms.append(Term(stem, levels, labels, np.array(places, dtype=np.intp)))
    return terms


def _find_learned_target(kept: ModelFile) -> str:
    target = _read_text(kept, "target") or "the target"
    return f"the log of {target}" if kept.notes.get("log_target") is True else target


def _name_quantity(model: Estimator, target: str) -> str:
    """The name of the quantity that the coefficients predict."""
    if hasattr(model, "classes_"):
        first, *others = [str(label) for label in model.classes_]
        label = repr(others[0]) if len(others) == 1 else "each other label"
        return f"the log odds of {label} against {first!r}"
    quantile = getattr(model, "quantile", None)
    if quantile is not None:
        each = [f"{one:g}" for one in np.ravel(quantile)]
        return f"the {', '.join(each)} quantile{'s' * (len(each) > 1)} of {target}"
    counts = type(model).__name__ in COUNTS
    return f"the log of the expected {target}" if counts else target


def _format_learned_prior(model: Estimator) -> list[float | None]:
    """Prior standard deviation of each coefficient, where it is learned."""
    given = model.get_params(deep=False)
    precision = given.get("prior_precision")
    learned = is_word(precision, *LEARNED_PRIORS)
    if not learned or given.get("prior") is not None:
        return []
    relative_to = np.reshape(getattr(model, "noise_precision_", 1.0), (-1, 1))
    precisions = np.reshape(model.prior_precision_, (len(relative_to), -1)) * relative_to
    known = np.isfinite(np.ravel(model.posterior_.std()))[-precisions.shape[1] :]
    shown = _find_shown(model, precisions.shape[1])
    precisions, known = precisions[:, shown], known[shown]
    return [
        _number(1.0 / math.sqrt(value)) if value and varies else None
        for value, varies in zip(precisions.ravel(), np.resize(known, precisions.size), strict=True)
    ]


def _find_shown(model: Estimator, count: int) -> Mask:
    """(count,) which coefficients are shown: all but those of levels that never came."""
    categories = getattr(model, "categories_", None)
    if categories is None or count == 1:  # one for all
        return np.ones(count, dtype=bool)
    others = [f"{one.name}={OTHER}" for one in categories.each]
    return np.array([name not in others for name in model._column_names(count)], dtype=bool)


def _coefficients(joint: Any, each: list[RowDistribution], level: float) -> list[Document]:
    labels = [f"{label}: " for label in getattr(joint, "labels", ())] or [""]
    return [
        {
            "name": label + name,
            **dict(zip(("mean", "std", "lower", "upper"), map(_number, numbers), strict=True)),
        }
        for label, one in zip(labels, each, strict=True)
        for name, *numbers in zip(
            joint.names, one.mean(), one.std(), *one.interval(level), strict=True
        )
    ]


def _number(value: Any) -> float | None:
    """A number for JSON; None where it is infinite, for an undetermined coefficient."""
    if value is None or np.ndim(value) or not math.isfinite(value):
        return None
    return float(value)


def _print(document: Document) -> None:
    console = text.console()
    target = "" if document["target"] is None else f", predicts {document['target']}"
    console.print(f"[bold]{escape(document['file'] + target)}[/bold]")
    for name, value in _collect_facts(document):
        console.print(f"{name:<24}{escape(value)}")
    if not document["coefficients"]:
        for name, value in document["settings"].items():
            if value is not None and name not in ("prior_precision", "forgetting"):
                console.print(f"{escape(name):<24}{escape(str(value))}")
        console.print("\nThis kind of model has no table of coefficients.")
        return
    share = f"{100 * document['level']:g}%"
    table = text.table("coefficient", "mean", "std", f"{share} from", "to")
    for one in document["coefficients"]:
        cells = [_format_value(one[key]) for key in ("mean", "std", "lower", "upper")]
        table.add_row(escape(one["name"]), *cells)
    console.print()
    console.print(table)
    if document.get("n_features", 0) > len(document["coefficients"]):
        console.print(
            f"\nOf {document['n_features']:,} features, those furthest from 0 in units of their "
            "std."
        )
    if any(one["std"] is None for one in document["coefficients"]):
        console.print("\n?: not known yet; the rows learned so far leave it open.")


def _collect_facts(document: Document) -> list[tuple[str, str]]:
    settings = document["settings"]
    forgets = bool(settings.get("forgetting"))
    facts = [
        ("model", document["class"]),
        ("formula", str(settings.get("formula") or "")),
        ("likelihood", str(settings.get("likelihood") or "") if "formula" in settings else ""),
        ("coefficients of", document["coefficients_of"] if document["coefficients"] else ""),
        ("rows learned", _format_value(document["n_observations"], "{:,.6g}")),
        (
            "rows not forgotten",
            _format_value(document["n_effective"], "{:,.6g}") if forgets else "",
        ),
        ("noise, std", _format_value(document["noise_std"])),
        ("log evidence", _format_value(document["log_evidence"], "{:.6g}")),
        ("prior precision", _prior(document)),
        ("forgetting", str(settings.get("forgetting") or "none")),
        ("missing values", document["missing"] or ""),
        ("weights", document["weight"] or ""),
        ("times", document["time"] or ""),
        ("offsets", document["offset"] or ""),
        ("exposures", document["exposure"] or ""),
        ("columns", ", ".join(document["columns"] or document["features"])),
        ("levels left out", ", ".join(document["left_out"])),
    ]
    return [(name, value) for name, value in facts if value not in ("", "?")]


def _prior(document: Document) -> str:
    """The prior as set, and the learned values in increasing order."""
    given = str(document["settings"].get("prior_precision", ""))
    learned = [value for value in document["prior_std_learned"] if value is not None]
    if not learned:
        return given
    ends = [_format_value(end(learned)) for end in (min, max)]
    return f"{given}: coefficients within about {' to '.join(dict.fromkeys(ends))} of 0 (std)"


def _format_value(value: float | None, how: str = "{:.4g}") -> str:
    return "?" if value is None else how.format(value)
