"""Rows learned one by one: the mean call, and the slowest."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timing import Calls, Run

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
)
from posterity.bandits import Bandit
from posterity.forgetting import Adaptive, Exponential
from posterity.likelihoods import Gamma, LaplaceNoise, Ordinal

NAME = "slowest_calls"
TITLE = "Rows learned one by one: the slowest call"
HOW = """\
Processor time of `learn_one` of each row, an array, with the defaults but for what is named: the
mean call of 3,000 rows, the one that 1% and .1% are slower than, all after the first 100, and the
slowest of all. Of bandits, `decide` and `learn_one` together; of groups, rows of 10,000 that have
five rows each. The last columns say what the mean and the slowest call may be at most."""

# Microseconds that the mean and the slowest call may take at most, by features.
MAY_BE: dict[int, dict[str, tuple[float, float]]] = {
    10: {
        "linear": (4.0, 500.0),
        "linear, Adaptive": (30.0, 1e3),
        "logistic": (15.0, 1e3),
        "Poisson": (15.0, 1e3),
        "negative binomial": (30.0, 1e3),
        "Student-t": (30.0, 1e3),
        "quantile": (30.0, 1e3),
        "three classes": (50.0, 2e3),
        "bandit of ten": (15.0, 1e3),
        "bandit of ten, logistic": (40.0, 2e3),
        "bandit of two, Adaptive, p = 3": (100.0, 2e3),
        "groups": (10.0, 2e3),
    },
    50: {
        "linear": (12.0, 2e3),
        "linear, Adaptive": (150.0, 3e3),
        "logistic": (40.0, 3e3),
        "Poisson": (40.0, 3e3),
        "negative binomial": (80.0, 3e3),
        "Student-t": (80.0, 3e3),
        "quantile": (80.0, 3e3),
        "three classes": (150.0, 5e3),
        "bandit of ten": (50.0, 2e3),
        "bandit of ten, logistic": (150.0, 4e3),
    },
}

Array = NDArray[np.float64]
Step = Callable[[int], object]


def one_by_one(model: Any, X: Array, y: Any, **named: Any) -> Step:
    """The call that learns row i."""
    learn, rows, targets = model.learn_one, list(X), list(y)
    values = {name: list(each) for name, each in named.items()}
    if not values:
        return lambda i: learn(rows[i], targets[i])
    return lambda i: learn(rows[i], targets[i], **{name: each[i] for name, each in values.items()})


def one_bandit(bandit: Bandit, X: Array, rewards: Array) -> Step:
    """The call that decides in context i, and learns its reward."""
    rows, values = list(X), rewards.tolist()

    def step(i: int) -> None:
        decision = bandit.decide(rows[i])
        bandit.learn_one(decision, values[i][decision.arm])

    return step


def learners(n: int, p: int) -> dict[str, Callable[[], Step]]:
    """Each kind of model, about to learn rows."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, p)), rng.normal(size=p) / np.sqrt(p)
    eta = X @ w
    numbers, labels = eta + rng.normal(size=n), rng.random(n) < 1.0 / (1.0 + np.exp(-eta))
    counts = rng.poisson(np.exp(0.5 * eta)).astype(float)
    levels = np.digitize(eta + rng.logistic(size=n), [-1.0, 1.0])
    classes = np.argmax(X @ rng.normal(size=(p, 3)) / 2.0 + rng.gumbel(size=(n, 3)), axis=1)
    days = np.exp(0.5 * eta) * rng.gamma(3.0, 1.0 / 3.0, size=n)
    overdispersed = rng.poisson(np.exp(0.5 * eta) * rng.gamma(3.0, 1.0 / 3.0, size=n)).astype(float)
    rewards = X @ rng.normal(size=(p, 10)) / np.sqrt(p) + rng.normal(size=(n, 10))
    wins = (rewards > 0.0).astype(float)
    logistic, linear = BayesianLogisticRegression, BayesianLinearRegression
    ard: dict[str, Any] = {"prior_precision": "ard"}
    adaptive, fading = Adaptive(), Exponential(0.999)
    models: dict[str, tuple[Any, Any]] = {
        "linear": (linear(), numbers),
        "linear, Adaptive": (linear(forgetting=adaptive), numbers),
        "linear, Exponential": (linear(forgetting=fading), numbers),
        "linear, ard": (linear(**ard), numbers),
        "logistic": (logistic(), labels.astype(int)),
        "logistic, Adaptive": (logistic(forgetting=adaptive), labels.astype(int)),
        "logistic, Exponential": (logistic(forgetting=fading), labels.astype(int)),
        "logistic, ard": (logistic(**ard), labels.astype(int)),
        "Poisson": (BayesianPoissonRegression(), counts),
        "negative binomial": (BayesianNegativeBinomialRegression(), overdispersed),
        "Gamma": (BayesianGeneralizedLinear(Gamma()), days),
        "Ordinal(3)": (BayesianGeneralizedLinear(Ordinal(3)), levels),
        "Student-t": (BayesianRobustRegression(), numbers),
        "Laplace": (BayesianGeneralizedLinear(LaplaceNoise()), numbers),
        "quantile": (BayesianQuantileRegression(), numbers),
        "three classes": (logistic(), classes),
    }
    steps = {name: partial(one_by_one, model, X, y) for name, (model, y) in models.items()}
    arms = list(range(10))
    steps["bandit of ten"] = partial(one_bandit, Bandit(arms=arms), X, rewards)
    steps["bandit of ten, logistic"] = partial(one_bandit, Bandit(logistic(), arms), X, wins)
    forgetful = Bandit(linear(forgetting=adaptive), arms[:2])
    steps["bandit of two, Adaptive, p = 3"] = partial(one_bandit, forgetful, X[:, :3], rewards)
    return steps | _grouped(n, p)


def _grouped(n: int, p: int) -> dict[str, Callable[[], Step]]:
    """Models of 10,000 groups with five rows each, about to learn more."""
    rng = np.random.default_rng(1)
    groups = np.concatenate([np.tile(np.arange(10_000), 5), rng.integers(10_000, size=n)])
    X = rng.normal(size=(len(groups), p))
    eta = 0.3 * X[:, 0] + 0.3 * rng.normal(size=10_000)[groups]
    targets = {
        "groups": (GroupedRegression, eta + rng.normal(size=len(X))),
        "groups of counts": (
            partial(GroupedRegression, likelihood="poisson"),
            rng.poisson(np.exp(eta)),
        ),
    }

    def begin(kind: Any, y: Array) -> Step:
        model = kind().fit(X[:-n], y[:-n], groups=groups[:-n])
        return one_by_one(model, X[-n:], y[-n:], group=groups[-n:])

    return {name: partial(begin, kind, y) for name, (kind, y) in targets.items()}


def processor_times(step: Step, n: int) -> Array:
    """(n,) microseconds of processor time of each call."""
    clock = time.process_time_ns
    times = np.zeros(n)
    gc.collect()
    gc.disable()
    for i in range(n):
        start = clock()
        step(i)
        times[i] = clock() - start
    gc.enable()
    empty = np.median([-(clock() - clock()) for _ in range(1_000)])
    return (times - empty) / 1e3


def measure(run: Run) -> list[Calls]:
    n = run.rows(3_000)
    return [
        Calls(f"p = {p}, {name}", processor_times(begin(), n), targets.get(name))
        for p, targets in MAY_BE.items()
        for name, begin in learners(n, p).items()
    ]
