"""Factorization machines: new observations of known and of new levels."""

from __future__ import annotations

from functools import partial

import numpy as np

from guarantees.check import Check
from posterity.factorization import BayesianFactorizationMachine


def observations(rng: np.random.Generator, *, rank: int, n: int, new: bool) -> tuple[int, int]:
    """Intervals of 200 further rows, of users that were seen or not."""
    users, items = rng.normal(size=(60, rank)), rng.normal(size=(40, rank))
    own, liked = rng.normal(size=60), rng.normal(size=40)
    known = 40
    X = np.stack([rng.integers(0, known, n + 200), rng.integers(0, 40, n + 200)], axis=1)
    if new:
        X[n:, 0] = rng.integers(known, 60, 200)
    u, i = X.T
    y = own[u] + liked[i] + (users[u] * items[i]).sum(axis=1) + rng.normal(size=n + 200)
    model = BayesianFactorizationMachine(4).fit(X[:n], y[:n])
    low, high = model.predict_interval(X[n:]).T
    return int(np.sum((low <= y[n:]) & (y[n:] <= high))), 200


def checks() -> list[Check]:
    """Ranks of the truth below the model's, rows from 8 to 50 a user."""
    found = []
    for rank, n in ((0, 400), (1, 800), (2, 2000)):
        for new in (False, True):
            setting = f"{'new' if new else 'known'} users, {n:,} rows, {rank} true factors of 4"
            simulate = partial(observations, rank=rank, n=n, new=new)
            topic = "Factorization machines"
            found.append(Check(topic, setting, 0.95, simulate, 40, LOWEST[n], 0.97))
    return found


# Sides are taken as independent, which makes intervals of few rows somewhat too narrow.
LOWEST = {400: 0.93, 800: 0.92, 2000: 0.93}
