"""One Python call a row, in every way to forget and with a basis."""

from __future__ import annotations

from typing import Any

import peers
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression
from posterity import forgetting as ways
from posterity.basis import Spline

NAME = "single_rows"
TITLE = "One Python call a row: forgetting, and curves"
HOW = """\
The time of `predict_one` and `learn_one` of each row together, a dict, once with a given prior and
once with the default, which is learned. The peer is the plain model under the given prior, which
does not forget. The spline has nine functions of each feature: a model of ninety."""

# p -> rows
SIZES = {10: 4_000, 50: 1_000}
STRATEGIES: dict[str, ways.Forgetting | None] = {
    "plain": None,
    "Exponential": ways.Exponential(0.99),
    "Stabilized": ways.Stabilized(0.99),
    "Adaptive": ways.Adaptive(),
    "Window(500)": ways.Window(size=500),
    "RandomWalk": ways.RandomWalk(0.01),
    "Directional": ways.Directional(0.99),
    "Changepoint": ways.Changepoint(),
}
PRIORS: dict[str, Any] = {"prior given": 1.0, "prior learned": "auto"}


def ours(rows: list[Any], targets: list[float], settings: dict[str, Any]) -> object:
    model = BayesianLinearRegression(**settings)
    predict, learn = model.predict_one, model.learn_one
    for x, y in zip(rows, targets, strict=True):
        predict(x)
        learn(x, y)
    return model


def measure(run: Run) -> list[Figure]:
    return [figure for p in SIZES for figure in _measure(p, run)]


def _measure(p: int, run: Run) -> list[Figure]:
    n = run.rows(SIZES[p])
    X, y = peers.problem(n, p)
    rows, targets = peers.as_dicts(X), y.tolist()
    settings: dict[str, dict[str, Any]] = {
        f"{name}, {of}": {"forgetting": strategy, "prior_precision": prior}
        for of, prior in PRIORS.items()
        for name, strategy in STRATEGIES.items()
    }
    if p == 10:
        for of, prior in PRIORS.items():
            spline = {
                "basis": Spline(n_knots=8, domain=(-4.0, 4.0), smooth=False),
                "prior_precision": prior,
            }
            settings[f"spline, {of}"] = spline
    tasks = {
        name: lambda given=given: ours(rows, targets, given) for name, given in settings.items()
    }
    seconds = alternate(tasks, run.rounds)
    a_row = {name: value / n * 1e6 for name, value in seconds.items()}
    plain = "plain, prior given"
    return [
        Figure(f"p = {p}, {name}", plain, a_row[name], a_row[plain], "us/row", "within", None)
        for name in tasks
        if name != plain
    ]
