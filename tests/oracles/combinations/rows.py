"""The rows that models of the table learn, by the kind of target and of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Array = np.ndarray
N = 40
RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
ETA = X @ [0.8, -0.5] + 0.2
GROUPS = np.arange(N) % 4
FRAME = pd.DataFrame(
    {
        "user": np.array(list("abcdef"))[RNG.integers(6, size=N)],
        "item": np.array(list("uvw"))[GROUPS % 3],
    }
)
NUMBERS = ETA + 0.3 * RNG.normal(size=N)
TARGETS: dict[str, Array] = {
    "numbers": NUMBERS,
    "labels": (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int),
    "classes": np.argmax(np.column_stack([ETA, -ETA, 0.0 * ETA]) + RNG.gumbel(size=(N, 3)), axis=1),
    "counts": RNG.poisson(np.exp(ETA)).astype(float),
    "waits": RNG.gamma(3.0, np.exp(ETA) / 3.0),
    "two": np.column_stack([NUMBERS, 1.0 - ETA + 0.5 * RNG.normal(size=N)]),
    "ratings": np.digitize(ETA + RNG.logistic(size=N), [-1.5, 0.0, 1.5]).astype(float),
}


@dataclass(frozen=True)
class Rows:
    """Features and targets, and the groups of rows where a model has them."""

    X: Any
    y: Array
    groups: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> Rows:
        """These rows."""
        X = self.X.iloc[rows] if isinstance(self.X, pd.DataFrame) else self.X[rows]
        return Rows(X, self.y[rows], None if self.groups is None else self.groups[rows])

    @property
    def beside(self) -> dict[str, Array]:
        """What rows come with."""
        return {} if self.groups is None else {"groups": self.groups}

    def one(self, i: int) -> tuple[Any, dict[str, Any]]:
        """Features of a single row, and what it comes with."""
        x = self.X.iloc[i].to_dict() if isinstance(self.X, pd.DataFrame) else self.X[i]
        return x, {} if self.groups is None else {"group": self.groups[i]}


def rows_of(target: str, information: str) -> Rows:
    """All rows of a target, for a model whose information has this form."""
    if information == "levels":
        return Rows(FRAME, TARGETS[target])
    return Rows(X, TARGETS[target], GROUPS if information == "bank" else None)
