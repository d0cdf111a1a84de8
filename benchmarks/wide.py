"""Models of many features: POSTERITY_WIDE=FOLDER python benchmarks/wide.py.

FOLDER has amazon.csv, the training data of the Amazon employee access challenge, which may not be
distributed: its text comes from elsewhere. Without it simulated clicks alone are measured, of which
the true probabilities are known.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from posterity.sparse import DiagonalLogisticRegression, SparseLogisticRegression

Array = NDArray[np.float64]
# The same title under another code.
LEFT_OUT = ["ACTION", "ROLE_CODE"]


def relative_calibration_error(probability: Array, y: Array, bins: int = 20) -> float:
    """Mean distance between probability and share, in equal bins, by that of the rarer label."""
    order = np.argsort(probability)
    ends = np.linspace(0, len(y), bins + 1).astype(int)
    parts = [order[low:high] for low, high in pairwise(ends)]
    off = sum(abs(float(np.sum(probability[part] - y[part]))) for part in parts)
    return off / len(y) / min(float(y.mean()), 1.0 - float(y.mean()))


def clicks(n: int, seed: int = 0) -> tuple[pd.DataFrame, Array, Array]:
    """Twenty columns of 10 to ten million levels, most of them rare; labels, and probabilities.

    Weights of small columns have a standard deviation of 0.62, those of large ones of 0.15.
    """
    rng = np.random.default_rng(seed)
    eta, columns = np.full(n, -1.75), {}
    for place, levels in enumerate(np.geomspace(10, 1e7, 20).astype(int)):
        # Ranks with density proportional to rank^-0.95.
        rank = (((levels + 1.0) ** 0.05 - 1.0) * rng.random(n) + 1.0) ** 20.0
        level = np.minimum(rank.astype(int) - 1, levels - 1)
        eta += (0.62 if levels < 3000 else 0.15) * rng.normal(size=levels)[level]
        columns[f"column {place}"] = level
    probability = expit(eta)
    return pd.DataFrame(columns), (rng.random(n) < probability).astype(float), probability


def measured(name: str, X: pd.DataFrame, y: Array, probability: Array | None, **how: Any) -> None:
    """One pass at the defaults: log loss, calibration, time; intervals where the truth is known."""
    model = DiagonalLogisticRegression(categorical_features="all", **how)
    held, start = [], time.process_time()
    logs = []
    for low in range(0, len(y), 50_000):
        some = slice(low, low + 50_000)
        if probability is not None and low:
            ends = model.predict_interval(X[some])
            held.append((ends[:, 0] <= probability[some]) & (probability[some] <= ends[:, 1]))
        logs.append(model.predict_then_learn(X[some], y[some]).log_probabilities)
    seconds = time.process_time() - start
    predictive = np.concatenate(logs)
    loss = -np.mean(np.where(y > 0.5, predictive[:, 1], predictive[:, 0]))
    error = relative_calibration_error(np.exp(predictive[:, 1]), y)
    line = f"{name}: {model.n_features_:,} features, log loss {loss:.4f}, calibration {error:.3f}"
    line += f", {seconds / len(y) * 1e6:.2f} us a row with reading"
    if probability is not None:
        truth = -np.mean(np.log(np.where(y > 0.5, probability, 1.0 - probability)))
        line += f", truth {truth:.4f}, 95% intervals hold {np.mean(np.concatenate(held)):.3f}"
    print(line, flush=True)


def last_fifth(name: str, X: pd.DataFrame, y: Array, model: Any) -> None:
    """Log loss of the last fifth of the rows, of a model that has learned the others."""
    n = len(y) * 4 // 5
    start = time.process_time()
    model.fit(X[:n], y[:n]).predict_proba(X[:1])
    seconds = time.process_time() - start
    loss = -model.predict_distribution(X[n:]).logpmf(y[n:]).mean()
    print(f"{name}, last fifth: log loss {loss:.4f}, fit {seconds:.1f} s", flush=True)


def main() -> None:
    """Print a line for each data set."""
    folder = os.environ.get("POSTERITY_WIDE")
    if folder:
        rows = pd.read_csv(Path(folder) / "amazon.csv")
        X, y = rows.drop(columns=LEFT_OUT), rows["ACTION"].to_numpy(np.float64)
        measured("Amazon access", X, y, None)
        measured("Amazon access, pairs", X, y, None, interactions=2)
        for kind in (DiagonalLogisticRegression, SparseLogisticRegression):
            last_fifth(kind.__name__, X, y, kind(categorical_features="all"))
    X, y, probability = clicks(1_000_000)
    measured("simulated clicks", X, y, probability)


if __name__ == "__main__":
    main()
