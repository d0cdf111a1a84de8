"""The ten tasks of docs/benchmarks.md, and a chart of how their cost grows: in some minutes.

`make bench-summary` writes the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import report
from bandits import LinUCB
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray
from river.linear_model import BayesianLinearRegression as RiverRegression
from river.linear_model import LogisticRegression as RiverLogistic
from run import caveats
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from statsmodels.tsa.holtwinters import ExponentialSmoothing
from timing import Bystanders, Figure, Run, Task, alternate

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.bandits import Bandit
from posterity.forecasting import Forecaster

Array = NDArray[np.float64]

HOW = """\
One run of one build measures these ten tasks. Our call and those of its peers take turns, after a
warm-up, and the table has the medians. posterity runs with its defaults: it learns the noise and
the prior from the data, and each answer comes with its uncertainty. The peer is the fastest of
those that were timed. Of the peers only river's linear regression gives an uncertainty. A ratio
above 1 says how many times as fast posterity is; below 1 the peer is faster. `make bench-summary`
repeats the run in some minutes; on a busy machine times are longer than on the front page.
[All benchmarks](benchmarks_all.md) has other peers, other sizes, targets, and the slowest call of
each kind of model."""

FULL, QUICK = Run(5, 1, 1.0), Run(3, 1, 0.05)


def problem(n: int, p: int) -> tuple[Array, Array]:
    """Rows (n, p), and linear predictors (n,) of standard deviation 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) / np.sqrt(p)


def tasks(run: Run) -> dict[str, tuple[int, dict[str, Task]]]:
    """By name: how many steps it has, ours, and those of the peers."""
    return {
        f"{name} {size}": made
        for make in (_rows, _fits, _labels_and_counts, _more)
        for name, (size, *made) in make(run).items()
    }


def _rows(run: Run) -> dict[str, tuple[str, int, dict[str, Task]]]:
    n, few = run.rows(100_000), run.rows(4_000)
    X, eta = problem(n, 10)
    rng = np.random.default_rng(1)
    y, labels = eta + rng.normal(size=n), eta + rng.logistic(size=n) > 0.0
    rows = [{f"x{j}": x for j, x in enumerate(row)} for row in X[:few].tolist()]

    def loop(make: Callable[[], object], targets: Array) -> Task:
        return lambda: play(make(), rows, targets[:few].tolist())

    def stream() -> None:
        told = BayesianLinearRegression().predict_then_learn(X, y)
        told.mean(), told.std()

    return {
        "Predict each row of an array, then learn it": (
            "(p = 10)",
            n,
            {"ours": stream, "NumPy, a covariance": lambda: update_covariance(X, y)},
        ),
        "`predict_one` and `learn_one`": (
            "(dictionaries, p = 10)",
            few,
            {"ours": loop(BayesianLinearRegression, y), "river": loop(RiverRegression, y)},
        ),
        "The same of labels": (
            "(p = 10)",
            few,
            {
                "ours": loop(BayesianLogisticRegression, labels),
                "river": loop(RiverLogistic, labels),
            },
        ),
    }


def play(model, rows: list[dict[str, float]], targets: list) -> None:
    for x, y in zip(rows, targets, strict=True):
        model.predict_one(x)
        model.learn_one(x, y)


def update_covariance(X: Array, y: Array) -> Array:
    """Predict and learn row after row as Sherman and Morrison do, the noise known."""
    mean, covariance = np.zeros(X.shape[1]), np.eye(X.shape[1])
    told = np.empty((len(X), 2))
    for i, (x, target) in enumerate(zip(X, y.tolist(), strict=True)):
        gain = covariance @ x
        told[i] = x @ mean, 1.0 + x @ gain
        mean += gain * ((target - told[i, 0]) / told[i, 1])
        covariance -= np.outer(gain, gain / told[i, 1])
    return told


def _fits(run: Run) -> dict[str, tuple[str, int, dict[str, Task]]]:
    made = {}
    for full, p in ((1_000_000, 10), (50_000, 200)):
        X, eta = problem(run.rows(full), p)
        y = eta + np.random.default_rng(1).normal(size=len(X))
        made[f"`fit`, {len(X):,} x {p}"] = (
            "",
            1,
            {
                "ours": lambda X=X, y=y: BayesianLinearRegression().fit(X, y).coef_,
                "Ridge": lambda X=X, y=y: Ridge(solver="cholesky").fit(X, y),
                "LinearRegression": lambda X=X, y=y: LinearRegression().fit(X, y),
            },
        )
    return made


def _labels_and_counts(run: Run) -> dict[str, tuple[str, int, dict[str, Task]]]:
    n = run.rows(100_000)
    X, eta = problem(n, 10)
    rng = np.random.default_rng(1)
    labels, counts = eta + rng.logistic(size=n) > 0.0, rng.poisson(np.exp(0.5 * eta))

    def fits(ours: type, peer: type, y: Array) -> dict[str, Task]:
        kinds = {f"scikit-learn, {name}": name for name in ("lbfgs", "newton-cholesky")}
        theirs = {key: lambda name=name: peer(solver=name).fit(X, y) for key, name in kinds.items()}
        return {"ours": lambda: ours().fit(X, y).coef_, **theirs}

    return {
        "Logistic `fit`": (
            f"({n:,} x 10)",
            1,
            fits(BayesianLogisticRegression, LogisticRegression, labels),
        ),
        "Poisson `fit`": (
            f"({n:,} x 10)",
            1,
            fits(BayesianPoissonRegression, PoissonRegressor, counts),
        ),
    }


def _more(run: Run) -> dict[str, tuple[str, int, dict[str, Task]]]:
    groups, rounds = run.rows(2_000), run.rows(2_000)
    X, eta = problem(50 * groups, 8)
    rng = np.random.default_rng(1)
    y, keys = eta + rng.normal(size=len(X)), np.repeat(np.arange(groups), 50)
    rewards = rng.normal(size=(rounds, 10))
    days = 50.0 + 10.0 * np.sin(np.arange(400) * (2.0 * np.pi / 7.0)) + rng.normal(size=400)

    def one_by_one() -> None:
        for rows, targets in zip(X.reshape(groups, 50, 8), y.reshape(groups, 50), strict=True):
            Ridge().fit(rows, targets)

    def decide() -> None:
        bandit = Bandit(arms=list(range(10)), rng=0)
        for x, reward in zip(X[:rounds], rewards.tolist(), strict=True):
            decision = bandit.decide(x)
            bandit.learn_one(decision, reward[decision.arm])

    def decide_by_bounds() -> None:
        player, draws = LinUCB(10, 8, 0.25), np.random.default_rng(0)
        for x, reward in zip(X[:rounds], rewards, strict=True):
            player.play(x, reward, draws)

    def smooth() -> object:
        known = ExponentialSmoothing(days, trend="add", seasonal="add", seasonal_periods=7)
        return known.fit().forecast(28)

    return {
        f"`fit` of {groups:,} groups of 50 rows": (
            "(p = 8; a group)",
            groups,
            {
                "ours": lambda: GroupedRegression().fit(X, y, groups=keys).shared_mean_,
                "Ridge, one a group": one_by_one,
            },
        ),
        "A decision and its reward, of ten arms": (
            "(p = 8)",
            rounds,
            {
                "ours": decide,
                "LinUCB in NumPy": decide_by_bounds,
            },
        ),
        "Forecast 28 of 400 days": (
            "(ours: by thirty forms, weighed)",
            1,
            {
                "ours": lambda: Forecaster(seasonality=7).fit(days).forecast(28).median(),
                "statsmodels, one form": smooth,
            },
        ),
    }


def measure(run: Run) -> list[Figure]:
    """Ours beside the fastest peer, of each task."""
    figures = []
    for name, (steps, each) in tasks(run).items():
        seconds = alternate(each, run.rounds, pause=0.05)
        ours = seconds.pop("ours") / steps
        best = min(seconds, key=lambda one: seconds[one])
        theirs = seconds[best] / steps
        unit, scale = ("us", 1e6) if max(ours, theirs) < 1e-3 else ("ms", 1e3)
        figures.append(Figure(name.strip(), best, scale * ours, scale * theirs, unit, "faster"))
        print(report.table(figures[-1:], columns=5).splitlines()[-1], flush=True)
    return figures


def draw(run: Run) -> Drawing:
    """Microseconds of a step as rows, features, groups and series grow."""
    drawing = Drawing(figsize=(6.4, 5.2), layout="constrained")  # read on a phone, too
    panels = drawing.subplots(2, 2).ravel()
    for panel, (title, sizes, make) in zip(panels, growth(run), strict=True):
        steps, each = zip(*map(make, sizes), strict=True)
        seconds = alternate({str(size): task for size, task in enumerate(each)}, run.rounds)
        panel.loglog(
            sizes, [1e6 * s / n for s, n in zip(seconds.values(), steps, strict=True)], "o-"
        )
        what, by = title.split(" by ")
        panel.set_title(what, loc="left", fontsize=10)
        panel.set_xlabel(by)
        panel.set_ylabel("microseconds")
        panel.grid(alpha=0.3)
    return drawing


def growth(run: Run) -> list[tuple[str, list[int], Callable[[int], tuple[int, Task]]]]:
    """Title with the name of what grows, its sizes, and of each how many steps the task has."""
    X, eta = problem(run.rows(1_000_000), 10)
    wide, _ = problem(2_000, 200)
    keys = np.arange(len(X))
    walks = np.random.default_rng(0).normal(size=(100, 200))

    def fit(n: int) -> tuple[int, Task]:
        return n, lambda: BayesianLinearRegression().fit(X[:n], eta[:n]).coef_

    def stream(p: int) -> tuple[int, Task]:
        rows, y = np.ascontiguousarray(wide[:, :p]), wide[:, -1]
        return len(rows), lambda: BayesianLinearRegression().predict_then_learn(rows, y)

    def groups(n: int) -> tuple[int, Task]:
        rows, y, some = X[: 10 * n, :3], eta[: 10 * n], keys[: 10 * n] % n
        return n, lambda: GroupedRegression().fit(rows, y, groups=some).shared_mean_

    def series(n: int) -> tuple[int, Task]:
        names = np.repeat([f"series {k}" for k in range(n)], 200)
        steps, values = np.tile(np.arange(200), n), walks[:n].ravel()
        table = pd.DataFrame({"unique_id": names, "ds": steps, "y": values})
        return n, lambda: Forecaster().fit(table).forecast(14)

    sizes = [10**k for k in range(2, 7) if 10**k <= len(X)]
    return [
        ("a row of fit, ten features by rows", sizes, fit),
        ("a row of a stream of 2,000 by features", [5, 10, 20, 50, 100, 200], stream),
        ("a group of ten rows by groups", [n for n in sizes if 10 * n <= len(X)], groups),
        ("a series of 200 steps by series", [1, 3, 10, 30, 100], series),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a rough answer in a minute")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the page here")
    options = parser.parse_args()
    run = QUICK if options.quick else FULL
    bystanders, installed = Bystanders(), report.installed_files()
    figures, drawing = measure(run), draw(run)
    replaced = report.installed_files() != installed
    notes = report.machine() + caveats(options.quick, replaced, bystanders.share())
    page = "\n\n".join(
        [
            "# Benchmarks",
            HOW,
            report.table(figures, columns=5),
            "![Microseconds as rows, features, groups and series grow](_static/benchmarks.svg)",
            "\n".join(f"- {note}" for note in notes),
            "```{toctree}\n:hidden:\n\nbenchmarks_all\n```",
        ]
    )
    if options.output:
        options.output.write_text(page + "\n", encoding="utf-8")
        drawing.savefig(options.output.parent / "_static" / "benchmarks.svg")
    print(page)


if __name__ == "__main__":
    main()
