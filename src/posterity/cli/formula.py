"""Models of formulas: the option --formula, and what their files are read with and say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from posterity.aliases import Document
from posterity.cli.options import READING_OPTIONS
from posterity.forgetting.words import parse
from posterity.io.reading import ReadSettings
from posterity.io.text_format import TextFormat
from posterity.io.wide import WideStream, open_wide
from posterity.likelihoods.words import is_name
from posterity.model import Model
from posterity.model.formula import read_formula
from posterity.words import LIKELIHOODS, parse_one

# Options that go with a formula, which says itself what is learned from what.
KEPT = {
    "file", "output", "formula", "model", "forgetting", "weight", "missing", "batch_rows", "memory",
    "quiet",
}  # fmt: skip
# Likelihoods whose predictions are probabilities.
SHARES = ("bernoulli", "binomial")


def make_formula_model(formula: str, words: str, forgetting: str) -> Model:
    """The model of a formula; ``ValueError`` for options that do not go with one."""
    context = click.get_current_context()
    for option in context.command.params:
        name = option.name or ""
        given = context.get_parameter_source(name) is not ParameterSource.DEFAULT
        if given and name not in KEPT.union(READING_OPTIONS):
            raise ValueError(f"{option.opts[0]} does not go with --formula: leave it out")
    parsed = parse_one(words)
    family = parsed.family or "linear"
    likelihood = LIKELIHOODS.get(family, family)
    known = family in LIKELIHOODS or is_name(family.partition(":")[0])
    if not known or parsed.basis or parsed.prior or parsed.forgetting:
        raise ValueError(
            f"--model {words} does not go with --formula: take linear, logistic or poisson, or "
            "another likelihood, as gamma or ordinal:5; memories have the option --forgetting"
        )
    trials = read_formula(formula).trials is not None
    return Model(formula, "binomial" if trials else likelihood, forgetting=parse(forgetting))


def open_formula_table(
    model: Model, path: str, reading: ReadSettings, text: TextFormat, *, learns: bool
) -> WideStream:
    """The columns of a table that a formula names; where it ``learns``, those of the response."""
    formula = read_formula(model.formula)
    names = formula.columns if learns else formula.predictors
    return open_wide(path, None, reading, columns=(names, ()), text=text)


def learning_rows(learn: Callable[..., object]) -> Callable[..., object]:
    """A method of a model of a formula, which finds the targets among the columns."""
    return lambda X, y, **how: learn(X, **how)


def predict_shares(model: Model, X: Any, level: float) -> Document:
    """Columns of the probability of the second label, or of a success, with its interval."""
    lower, upper = model.predict_interval(X, level).T
    return {"mean": model.predict(X), "lower": lower, "upper": upper}


def describe_formula_model(model: Model, level: float) -> Document:
    """Fixed effects, and standard deviations and correlations of groups, as one table."""
    columns = {"name": "name", "mean": "mean", "sd": "std", "low": "lower", "high": "upper"}
    rows = [
        row
        for table in (model.summary(level), model.variance_components(level))
        for row in table[list(columns)].rename(columns=columns).to_dict("records")
    ]
    response = model.formula.partition("~")[0].strip()
    return {
        "coefficients_of": response + model._engine.scale,
        "coefficients": rows,
        "prior_std_learned": [],
    }
