"""MovieLens-100k: the factorization machine, with a random tenth held out, and row by row in time.

Reads ``ml_100k.csv`` (tabs; user, item, rating first; in the order of time) from the folder
POSTERITY_MOVIELENS. The data may not be passed on: fetch them yourself.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from posterity.factorization import BayesianFactorizationMachine


def ratings(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Users and items (n, 2), and stars (n,)."""
    lines = (folder / "ml_100k.csv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.lstrip('"').split("\t")[:3] for line in lines]
    return np.array([[int(user), int(item)] for user, item, _ in rows]), np.array(
        [float(stars) for _, _, stars in rows]
    )


def stream(X: NDArray[np.int64], y: NDArray[np.float64], rank: int) -> None:
    """Predict each row, then learn it, as they came: a line."""
    rows, stars = X.tolist(), y.tolist()
    start = time.process_time()
    model = BayesianFactorizationMachine(rank).learn_one(rows[0], stars[0])
    squares = 0.0
    for row, target in zip(rows[1:], stars[1:], strict=True):
        squares += (model.predict_one(row) - target) ** 2
        model.learn_one(row, target)
    micros = (time.process_time() - start) / len(y) * 1e6
    print(f"{rank:4d} {micros:8.1f}  {np.sqrt(squares / (len(y) - 1)):.4f}", flush=True)


def main() -> None:
    """Print a line for each rank."""
    folder = os.environ.get("POSTERITY_MOVIELENS")
    if folder is None:
        sys.exit("set POSTERITY_MOVIELENS to the folder that holds ml_100k.csv")
    X, y = ratings(Path(folder))
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 10], order[len(y) // 10 :]
    print("rank  seconds    RMSE  log score  held of 95%")
    for rank in (0, 4, 8):
        start = time.process_time()
        model = BayesianFactorizationMachine(rank).fit(X[train], y[train])
        seconds = time.process_time() - start
        predictive = model.predict_distribution(X[test])
        low, high = predictive.interval(0.95)
        error = np.sqrt(np.mean((predictive.mean() - y[test]) ** 2))
        held = np.mean((low <= y[test]) & (y[test] <= high))
        score = predictive.logpdf(y[test]).mean()
        print(f"{rank:4d} {seconds:8.1f}  {error:.4f}  {score:9.3f}  {held:.3f}", flush=True)
    print("rank  us a row  RMSE, each row predicted before it is learned")
    for rank in (0, 4, 8):
        stream(X, y, rank)


if __name__ == "__main__":
    main()
