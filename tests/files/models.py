"""Models of every kind that a file can hold, each with data to learn and a way to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from posterity import (
    Averaged,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.basis import (
    AutoBasis,
    ByColumn,
    Fourier,
    HilbertSpaceGP,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Spline,
)
from posterity.calibration import Conformal, Recalibrated
from posterity.evidence import Maximized
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)

N = 240
RNG = np.random.default_rng(7)
X = RNG.normal(size=(N, 3))
ETA = X @ [1.0, -0.5, 0.25] + 0.5
Y = np.where(np.arange(N) < N // 2, ETA, 1.0 - ETA) + RNG.normal(size=N)
LABELS = np.where(Y > 0.5, "yes", "no")
THREE = np.digitize(Y, [-0.5, 1.0])
COUNTS = RNG.poisson(np.exp(np.clip(ETA, -3.0, 3.0))).astype(float)

FORGETTING = [
    None,
    Adaptive(discounts=(1.0, 0.98, 0.8)),
    Changepoint(hazard=0.02, max_runs=20),
    Directional(discount=0.99),
    Exponential(half_life=60.0),
    RandomWalk(variance=0.01),
    Smoothing(gamma=0.9),
    Stabilized(discount=0.98),
    Window(size=50),
    Window(duration=30.0),
]
BASES = [
    ByColumn({0: Spline(n_knots=4), (1,): Fourier(n_frequencies=2)}),
    Fourier(n_frequencies=2),
    HilbertSpaceGP(n_functions=4),
    Polynomial(degree=2),
    RadialBasis(n_centers=4),
    RandomFourier(n_functions=20),
    AutoBasis(n_functions=20),
    Spline(n_knots=4, knots="quantiles"),
    Spline(n_knots=4, smooth=False),
]


@dataclass(frozen=True)
class Case:
    """A model that knows nothing, and targets for the rows of ``X``."""

    name: str
    make: Callable[[], Any]
    y: Any

    def __str__(self) -> str:
        return self.name


def _linear(**parameters: Any) -> Callable[[], Any]:
    return lambda: BayesianLinearRegression(**parameters)


def cases() -> list[Case]:
    return list(_cases())


def parameters() -> list[Any]:
    """The cases as pytest's parameters; those that take seconds are slow tests."""
    return [
        pytest.param(
            case,
            id=case.name,
            marks=pytest.mark.slow if case.name.endswith(") ard") else (),
        )
        for case in cases()
    ]


def _cases() -> Iterator[Case]:
    for forgetting in FORGETTING:
        few = forgetting is None or isinstance(forgetting, Window | Stabilized)
        for precision in ("auto", "ard", 1.0) if few else ("auto", 1.0):
            make = _linear(forgetting=forgetting, prior_precision=precision)
            yield Case(f"linear {forgetting} {precision}", make, Y)
    for basis in BASES:
        yield Case(f"linear {basis}", _linear(basis=basis), Y)
    yield Case("linear known noise", _linear(noise_precision=1.0, prior_mean=0.3), Y)
    yield Case("linear flat", _linear(prior_precision=0.0, fit_intercept=False), Y)
    yield Case("linear full", _linear(prior_precision=np.diag([1.0, 2.0, 3.0])), Y)
    yield Case("linear maximized", _linear(prior_precision=Maximized()), Y)
    for way in (None, Adaptive(discounts=(1.0, 0.9)), Stabilized(discount=0.98), Window(size=50)):
        yield Case(
            f"logistic {way}", lambda w=way: BayesianLogisticRegression(forgetting=w), LABELS
        )
        yield Case(f"poisson {way}", lambda w=way: BayesianPoissonRegression(forgetting=w), COUNTS)
        yield Case(
            f"negative binomial {way}",
            lambda w=way: BayesianNegativeBinomialRegression(forgetting=w),
            COUNTS,
        )
    known = {"dispersion": 0.5}
    yield Case("dispersion", lambda: BayesianNegativeBinomialRegression(**known), COUNTS)
    yield Case("softmax", BayesianLogisticRegression, THREE)
    yield Case("robust", BayesianRobustRegression, Y)
    yield Case("robust window", lambda: BayesianRobustRegression(forgetting=Window(size=50)), Y)
    yield Case("quantile", lambda: BayesianQuantileRegression(quantile=0.3), Y)
    yield Case("averaged", averaged, Y)
    for method in ("pid", "aci", "dtaci"):
        make = _calibrated(Conformal, method=method, memory=60 if method == "aci" else None)
        yield Case(f"conformal {method}", make, Y)
    yield Case("recalibrated", _calibrated(Recalibrated), Y)


def _calibrated(wrapper: Callable[..., Any], **parameters: Any) -> Callable[[], Any]:
    return lambda: wrapper(BayesianLinearRegression(), **parameters)


def averaged() -> Averaged:
    members = {p: BayesianLinearRegression(prior_precision=p) for p in (0.1, 10.0)}
    return Averaged([(f"precision {p}", model) for p, model in members.items()])


def taught(case: Case) -> Any:
    """The model after 150 rows, learned in each of the ways there are."""
    model = case.make()
    model.fit(X[:80], case.y[:80])
    model.predict_then_learn(X[80:120], case.y[80:120])
    return one_by_one(model, case.y, range(120, 150))


def one_by_one(model: Any, y: Any, rows: range) -> Any:
    if hasattr(model, "learn_one"):
        for i in rows:
            model.learn_one(X[i], y[i])
    return model


def numbers(predictive: Any, y: Any) -> np.ndarray:
    """All that a distribution says, as numbers."""
    if hasattr(predictive, "probabilities"):
        return np.asarray(predictive.probabilities)
    if hasattr(predictive, "interval") and not hasattr(predictive, "logpdf"):
        return np.concatenate(predictive.interval(0.9))
    parts = [predictive.mean(), predictive.std()]
    parts.append(predictive.logpmf(y) if hasattr(predictive, "logpmf") else predictive.logpdf(y))
    return np.concatenate(parts)
