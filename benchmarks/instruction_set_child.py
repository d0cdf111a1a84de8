"""Processor time of each piece of work, in ns a row, on the instruction set of this process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import peers

from posterity import BayesianLinearRegression


def main() -> None:
    asked = json.loads(sys.argv[1])
    found = {}
    for p, n in asked["sizes"].items():
        X, y = peers.problem(n, int(p))
        known = BayesianLinearRegression(prior_precision=1.0).fit(X, y)
        work = {
            "fit": lambda X=X, y=y: BayesianLinearRegression(prior_precision=1.0).fit(X, y),
            "row by row": lambda X=X, y=y: BayesianLinearRegression(
                prior_precision=1.0
            ).predict_then_learn(X, y),
            "predict": lambda X=X, known=known: known.predict_distribution(X),
        }
        for name, task in work.items():
            found[f"p = {p}, {name}"] = _least(task, asked["passes"]) / n * 1e9
    print(json.dumps(found))


def _least(task: Callable[[], object], passes: int) -> float:
    least = float("inf")
    for _ in range(passes):
        start = time.process_time()
        task()
        least = min(least, time.process_time() - start)
    return least


if __name__ == "__main__":
    main()
