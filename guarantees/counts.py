"""Poisson and negative binomial regression: coefficients and predictions, fitted and by rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity import BayesianNegativeBinomialRegression, BayesianPoissonRegression

KINDS = {
    "Poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
}
# A prior that is known to be weak: how well "auto" does is another question.
WEAK = 0.1
NEW = 20


def _drawn(
    rng: np.random.Generator, n: int, dispersion: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, counts and coefficients; rates of about 3."""
    X, coefficients = rng.normal(size=(n, 3)), 0.4 * rng.normal(size=3)
    rate = np.exp(1.0 + X @ coefficients)
    if dispersion > 0.0:
        rate = rate * rng.gamma(1.0 / dispersion, dispersion, size=n)
    return X, rng.poisson(rate).astype(float), coefficients


def coefficients(
    rng: np.random.Generator, *, kind: str, way: str, n: int, dispersion: float
) -> tuple[int, int]:
    """95% intervals of three coefficients."""
    X, y, truth = _drawn(rng, n, dispersion)
    posterior = _learned(kind, way, X, y).posterior_
    off = np.abs(posterior.mean[1:] - truth) / posterior.std()[1:]
    return int(np.sum(off <= 1.959964)), 3


def predictions(
    rng: np.random.Generator, *, kind: str, way: str, n: int, dispersion: float
) -> tuple[int, int]:
    """95% intervals of new counts: whole numbers, which hold a little more."""
    X, y, _ = _drawn(rng, n + NEW, dispersion)
    low, high = _learned(kind, way, X[:n], y[:n]).predict_interval(X[n:]).T
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), NEW


def _learned(kind: str, way: str, X: np.ndarray, y: np.ndarray):  # type: ignore[no-untyped-def]
    model = KINDS[kind](prior_precision=WEAK)
    if way == "rows":
        model.predict_then_learn(X, y)
        return model
    return model.fit(X, y)


def checks() -> list[Check]:
    """Rows few and many, counts as Poisson has them and counts in bursts."""
    found = []
    cases = [("Poisson", 0.0), *(("negative binomial", a) for a in (0.0, 0.1, 0.5, 2.0))]
    for kind, dispersion in cases:
        for way, sizes in (("fit", (50, 5000)), ("rows", (50, 500))):
            for n in sizes:
                few = n == 50
                common = {"kind": kind, "way": way, "n": n, "dispersion": dispersion}
                setting = f"{way}, n = {n:,}, dispersion {dispersion}"
                found.append(
                    Check(
                        f"Coefficients of {kind} regression",
                        setting,
                        0.95,
                        partial(coefficients, **common),
                        replicates=(400 if few else 100) // (1 if way == "fit" else 2),
                        lowest=0.93,
                        highest=0.99,
                    )
                )
                if n != 5000:
                    found.append(
                        Check(
                            f"Predictions of {kind} regression",
                            setting,
                            0.95,
                            partial(predictions, **common),
                            replicates=(200 if few else 60) // (1 if way == "fit" else 2),
                            lowest=0.94,
                            highest=0.985,
                        )
                    )
    return found
