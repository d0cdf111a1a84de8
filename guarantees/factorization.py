"""Factorization machines: new observations of known and of new levels, and means of pairs."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from guarantees.check import Check
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine

TOPIC = "Factorization machines"


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


def pairs(rng: np.random.Generator, *, size: int, clicks: bool, rows: bool) -> tuple[int, int]:
    """Log odds of clicks, or means of ratings, of 80 users and items that came ``size`` times."""
    sizes = np.repeat([1, 10, 100, 1000], [40, 30, 10, 2])
    users, items = 0.5 * rng.normal(size=80), 0.5 * rng.normal(size=82)
    tastes, styles = 0.7 * rng.normal(size=(80, 2)), 0.7 * rng.normal(size=(82, 2))

    def expect(X: NDArray[np.intp]) -> NDArray[np.float64]:
        u, i = X.T
        return np.asarray(users[u] + items[i] + (tastes[u] * styles[i]).sum(axis=1))

    item = rng.permutation(np.repeat(np.arange(82), sizes))
    X = np.stack([rng.integers(0, 80, len(item)), item], axis=1)
    eta, n = expect(X), 100 if rows else len(X)
    met = np.flatnonzero(sizes == size)
    Z = np.stack([np.repeat(np.arange(80), len(met)), np.tile(met, 80)], axis=1)
    if clicks:
        y = (rng.random(len(X)) < expit(eta)).astype(int)
        model = BayesianFactorizationClassifier().fit(X[:n], y[:n])
        model.partial_fit(X[n:], y[n:])
        low, high = logit(model.predict_interval(Z)).T
    else:
        y = eta + rng.normal(size=len(X))
        known = BayesianFactorizationMachine(noise_precision=1.0).fit(X[:n], y[:n])
        known.partial_fit(X[n:], y[n:])
        mean, sd = known.predict(Z, return_std=True)
        half = 1.96 * np.sqrt(sd**2 - 1.0)
        low, high = mean - half, mean + half
    return int(np.sum((low <= expect(Z)) & (expect(Z) <= high))), len(Z)


def checks() -> list[Check]:
    """Items of 10 and of 100 rows; ranks of the truth below the model's, 8 to 50 rows a user."""
    found = [
        Check(
            TOPIC,
            f"{'log odds' if clicks else 'means'} of items of {size:,} rows, 2 true factors of 8, "
            + ("rows" if rows else "fit"),
            0.95,
            partial(pairs, size=size, clicks=clicks, rows=rows),
            12,
            0.9,
        )
        for clicks in (True, False)
        for size in (10, 100)
        for rows in (False, True)
    ]
    for rank, n in ((0, 400), (1, 800), (2, 2000)):
        for new in (False, True):
            setting = f"{'new' if new else 'known'} users, {n:,} rows, {rank} true factors of 4"
            simulate = partial(observations, rank=rank, n=n, new=new)
            found.append(Check(TOPIC, setting, 0.95, simulate, 40, LOWEST[n], 0.97))
    return found


# Sides are taken as independent, which makes intervals of few rows somewhat too narrow.
LOWEST = {400: 0.93, 800: 0.92, 2000: 0.93}
