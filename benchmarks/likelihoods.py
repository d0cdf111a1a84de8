"""Yes or no: rows of a logistic regression, one after another and all at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import peers
from bayesianbandits import BayesianGLM, LaplaceApproximator
from numpy.typing import NDArray
from river.compose import Pipeline
from river.linear_model import LogisticRegression as RiverLogistic
from river.preprocessing import StandardScaler
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from timing import Figure, Run, alternate

from posterity import BayesianLinearRegression, BayesianLogisticRegression

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

NAME = "likelihoods"
TITLE = "Yes or no"
HOW = """\
Streams: one call of `predict_then_learn`, p = 10, prior precision 1, no intercept, including the
probabilities of every row. Peers are the same call of `BayesianLinearRegression` (noise known,
with `mean()` and `std()`), and loops over fewer rows: river's
`StandardScaler | LogisticRegression` with its defaults, from dicts that are made beforehand, and
bayesianbandits' `BayesianGLM` of the same prior, with its defaults (five steps of Newton's method
a row) and with one step, `predict` and `partial_fit` for each row. Fits: all rows at once with an
intercept and C = 1. lbfgs with its defaults stops earlier (at 1e-4) than ours, which converges to
all digits. "auto" learns the prior precision as well, which no peer does."""

PAUSE = 0.1
N_FEATURES = 10
STREAM, FEW, FEWEST = 200_000, 2_000, 200
APPROXIMATIONS = ("laplace", "moments")


def labels_of(X: Array, seed: int = 0) -> Labels:
    """Labels (n,) whose log odds are linear in the rows."""
    rng = np.random.default_rng(seed)
    odds = X @ rng.normal(size=X.shape[1])
    return (odds + rng.logistic(size=len(X)) > 0.0).astype(np.int64)


def ours(approximation: str, prior_precision: float | str, X: Array, y: Labels) -> object:
    model = BayesianLogisticRegression(
        prior_precision=prior_precision, fit_intercept=False, approximation=approximation
    )
    return model.predict_then_learn(X, y).probabilities


def gaussian(X: Array, y: Array) -> object:
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0, fit_intercept=False)
    predictive = model.predict_then_learn(X, y)
    return predictive.mean(), predictive.std()


def river_loop(rows: list[dict[str, float]], labels: list[bool]) -> Pipeline:
    """Predict, then learn, each row."""
    model = StandardScaler() | RiverLogistic()
    predict, learn = model.predict_proba_one, model.learn_one
    for x, y in zip(rows, labels, strict=True):
        predict(x)
        learn(x, y)
    return model


def bandits_loop(X: Array, y: Array, n_steps: int) -> BayesianGLM:
    """Predict, then learn, each row."""
    model = BayesianGLM(alpha=1.0, approximator=LaplaceApproximator(n_iter=n_steps))
    for i in range(len(X)):
        model.predict(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return model


def check_agreement() -> None:
    """Raise unless ours and bayesianbandits', row by row, are near the mode of all rows.

    Ours learns the first rows together, and is nearer.
    """
    X = peers.problem(200, N_FEATURES)[0]
    y = labels_of(X)
    model = BayesianLogisticRegression(
        prior_precision=1.0, fit_intercept=False, approximation="laplace"
    )
    together = clone(model).fit(X, y)
    model.predict_then_learn(X, y)
    theirs = bandits_loop(X, y.astype(np.float64), n_steps=50).coef_
    sd = np.sqrt(np.diag(together.posterior_.cov))
    for who, found, most in (("ours", model.coef_[0], 0.2), ("theirs", theirs, 1.0)):
        off = float(np.abs((found - together.coef_[0]) / sd).max())
        if off > most:
            raise RuntimeError(f"another problem is solved: {who} is {off:.2g} sd off")


def measure(run: Run) -> list[Figure]:
    check_agreement()
    return [*_streams(run), *_fits(run)]


def _streams(run: Run) -> list[Figure]:
    n, few, fewest = (run.rows(full) for full in (STREAM, FEW, FEWEST))
    X, targets = peers.problem(n, N_FEATURES)
    y = labels_of(X)
    rows, truths = peers.as_dicts(X[:few]), (y[:few] > 0).tolist()
    glm = X[:fewest], y[:fewest].astype(np.float64)
    mine: dict[str, tuple[Callable[[], object], int]] = {
        name: (partial(ours, name, 1.0, X, y), n) for name in APPROXIMATIONS
    }
    mine["moments, auto"] = partial(ours, "moments", "auto", X, y), n
    others: dict[str, tuple[Callable[[], object], int]] = {
        "a Gaussian row": (lambda: gaussian(X, targets), n),
        "river": (lambda: river_loop(rows, truths), few),
        "BayesianGLM": (lambda: bandits_loop(*glm, n_steps=5), fewest),
        "BayesianGLM, one step": (lambda: bandits_loop(*glm, n_steps=1), fewest),
    }
    tasks = mine | others
    seconds = alternate({name: task for name, (task, _) in tasks.items()}, run.rounds)
    a_row = {name: seconds[name] / count * 1e9 for name, (_, count) in tasks.items()}
    goals = {"river": 30.0, "BayesianGLM": 50.0}
    figures = []
    for name in mine:
        given = "auto" not in name
        for peer in others:
            within = peer == "a Gaussian row"
            goal = (3.0 if within else goals.get(peer)) if given else None
            sense = "within" if within else "faster"
            what = f"stream, {name}"
            figures.append(Figure(what, peer, a_row[name], a_row[peer], "ns/row", sense, goal))
    return figures


def _fits(run: Run) -> list[Figure]:
    X = peers.problem(run.rows(1_000_000), N_FEATURES)[0]
    y = labels_of(X)
    tasks = {
        "ours": lambda: BayesianLogisticRegression(prior_precision=1.0).fit(X, y).coef_,
        "auto": lambda: BayesianLogisticRegression().fit(X, y).coef_,
        "lbfgs": lambda: LogisticRegression(C=1.0).fit(X, y).coef_,
        "newton-cholesky": lambda: (
            LogisticRegression(C=1.0, solver="newton-cholesky").fit(X, y).coef_
        ),
    }
    seconds = alternate(tasks, run.rounds, PAUSE)
    milliseconds = {name: value * 1e3 for name, value in seconds.items()}
    solvers = ("lbfgs", "newton-cholesky")
    faster = min(solvers, key=milliseconds.__getitem__)
    what = {"ours": f"{len(X):,} x {N_FEATURES}", "auto": f"{len(X):,} x {N_FEATURES}, auto"}
    return [
        Figure(
            what[name],
            f"scikit-learn, {solver}",
            milliseconds[name],
            milliseconds[solver],
            "ms",
            "faster",
            1.5 if name == "ours" and solver == faster else None,
        )
        for name in what
        for solver in solvers
    ]
