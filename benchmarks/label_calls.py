"""One Python call a row, of labels, counts and noise with heavy tails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import peers
from river import linear_model, optim
from timing import Figure, Run, alternate

from posterity import (
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.forgetting import Exponential

NAME = "label_calls"
TITLE = "One Python call a row: labels, counts, heavy tails"
HOW = """\
The time of `predict_one` and `learn_one` of each row together, from dicts, p = 10, with an
intercept and the other defaults. river's models of the same kind follow a gradient and have no
uncertainty. 4,000 rows: most of the time of labels and counts goes to the first 500, which are
fitted together again as their number grows, and a row after these takes 2 microseconds (two
classes, prior given). With several classes, up to 200 rows together are sometimes learned again."""

GIVEN: dict[str, Any] = {"prior_precision": 1.0}
Make = Callable[[], Any]


def loop(make: Make, rows: list[dict[str, float]], targets: list[Any]) -> object:
    """Predict and learn every row."""
    model = make()
    for x, y in zip(rows, targets, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)
    return model


def drawn(X: np.ndarray, n_classes: int) -> list[int]:
    """Labels whose logarithms of odds are linear in the rows."""
    rng = np.random.default_rng(n_classes)
    eta = X @ rng.normal(size=(X.shape[1], n_classes)) / 2.0
    labels: list[int] = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1).tolist()
    return labels


def measure(run: Run) -> list[Figure]:
    n = run.rows(4_000)
    X, y = peers.problem(n, 10)
    rows, numbers = peers.as_dicts(X), y.tolist()
    counts = np.random.default_rng(1).poisson(np.exp(np.clip(0.3 * X[:, 0], -3, 3))).tolist()
    labels = {n_classes: drawn(X, n_classes) for n_classes in (2, 3, 5)}
    kinds: dict[str, tuple[dict[str, Make], tuple[str, Make], list[Any]]] = {
        "logistic": (
            {
                "prior given": partial(BayesianLogisticRegression, **GIVEN),
                "prior learned": BayesianLogisticRegression,
                "Exponential": partial(
                    BayesianLogisticRegression, **GIVEN, forgetting=Exponential(0.999)
                ),
            },
            ("river logistic", linear_model.LogisticRegression),
            labels[2],
        ),
        "Poisson": (
            {
                "prior given": partial(BayesianPoissonRegression, **GIVEN),
                "prior learned": BayesianPoissonRegression,
            },
            ("river, Poisson loss", _river(optim.losses.Poisson())),
            counts,
        ),
        "robust": (
            {
                "prior given": partial(BayesianRobustRegression, **GIVEN),
                "prior learned": BayesianRobustRegression,
            },
            ("river, Huber loss", _river(optim.losses.Huber())),
            numbers,
        ),
        "quantile": (
            {
                "prior given": partial(BayesianQuantileRegression, **GIVEN),
                "prior learned": BayesianQuantileRegression,
            },
            ("river, quantile loss", _river(optim.losses.Quantile(0.5))),
            numbers,
        ),
    }
    for n_classes in (3, 5):
        kinds[f"{n_classes} classes"] = (
            {
                "prior given": partial(BayesianLogisticRegression, **GIVEN),
                "prior learned": BayesianLogisticRegression,
            },
            ("river softmax", linear_model.SoftmaxRegression),
            labels[n_classes],
        )
    tasks: dict[str, Callable[[], object]] = {}
    for kind, (ours, (peer, theirs), targets) in kinds.items():
        for name, make in ours.items():
            tasks[f"{kind}, {name}"] = partial(loop, make, rows, targets)
        tasks[f"{kind}, {peer}"] = partial(loop, theirs, rows, targets)
    a_row = {name: value / n * 1e6 for name, value in alternate(tasks, run.rounds).items()}
    return [
        Figure(
            f"{kind}, {name}",
            peer,
            a_row[f"{kind}, {name}"],
            a_row[f"{kind}, {peer}"],
            "us/row",
            "faster",
        )
        for kind, (ours, (peer, _), _) in kinds.items()
        for name in ours
    ]


def _river(loss: Any) -> Make:
    return partial(linear_model.LinearRegression, optim.SGD(0.01), loss=loss)
