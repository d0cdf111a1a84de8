"""MovieLens-100k: accuracy and intervals of the factorization machine, a random tenth held out.

Reads ``ml_100k.csv`` (tabs; user, item, rating first) from the folder POSTERITY_MOVIELENS. The data
may not be passed on: fetch them yourself.
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


if __name__ == "__main__":
    main()
