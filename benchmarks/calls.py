"""One Python call a row."""

from __future__ import annotations

from typing import Any

import peers
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression

NAME = "calls"
TITLE = "One Python call a row"
HOW = """\
The time of `predict_one` and `learn_one` of each row together, p = 10, without an intercept: once
with the default prior, which is learned (chosen 27 times along the way), and once with a given
prior, like river's. Ours checks every value. river takes only dicts. Both return only the mean."""

TARGETS = {"arrays": 10.0, "dicts": 8.0}
PRIORS: dict[str, Any] = {"prior learned": "auto", "prior given": 1.0}


def ours(rows: list[Any], targets: list[float], prior: Any) -> object:
    model = BayesianLinearRegression(prior_precision=prior, fit_intercept=False)
    predict, learn = model.predict_one, model.learn_one
    for x, y in zip(rows, targets, strict=True):
        predict(x)
        learn(x, y)
    return model


def measure(run: Run) -> list[Figure]:
    n = run.rows(10_000)
    X, y = peers.problem(n, 10)
    targets = y.tolist()
    forms: dict[str, list[Any]] = {"arrays": list(X), "dicts": peers.as_dicts(X)}
    tasks = {
        f"p = 10, {form}, {name}": lambda rows=rows, prior=prior: ours(rows, targets, prior)
        for form, rows in forms.items()
        for name, prior in PRIORS.items()
    }
    tasks["river"] = lambda: peers.river_loop(forms["dicts"], targets, with_dist=False)
    seconds = alternate(tasks, run.rounds)
    a_row = {name: value / n * 1e6 for name, value in seconds.items()}
    return [
        Figure(
            f"p = 10, {form}, {name}",
            "river, dicts",
            a_row[f"p = 10, {form}, {name}"],
            a_row["river"],
            "us/row",
            "faster",
            TARGETS[form],
        )
        for form in forms
        for name in PRIORS
    ]
