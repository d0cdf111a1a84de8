"""One Python call a row."""

from __future__ import annotations

from typing import Any

import peers
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression

NAME = "calls"
TITLE = "One Python call a row"
HOW = """\
`predict_one` and `learn_one` of each row, p = 10, no intercept, the time of the two together. Ours
checks every value. river takes only dicts, and is asked for the mean alone, as ours is."""

TARGETS = {"arrays": 10.0, "dicts": 8.0}


def ours(rows: list[Any], targets: list[float]) -> object:
    model = BayesianLinearRegression(fit_intercept=False)
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
    tasks = {form: lambda rows=rows: ours(rows, targets) for form, rows in forms.items()}
    tasks["river"] = lambda: peers.river_loop(forms["dicts"], targets, with_dist=False)
    seconds = alternate(tasks, run.rounds)
    a_row = {name: value / n * 1e6 for name, value in seconds.items()}
    return [
        Figure(
            f"p = 10, {form}",
            "river, dicts",
            a_row[form],
            a_row["river"],
            "us/row",
            "faster",
            TARGETS[form],
        )
        for form in forms
    ]
