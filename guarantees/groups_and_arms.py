"""Groups that differ in their noise, or of which one lies far off, and arms whose rewards do."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from guarantees.check import Check
from posterity import GroupedRegression
from posterity.bandits import Bandit

Array = NDArray[np.float64]
GROUPS = 20


def noise_that_differs(
    rng: np.random.Generator, *, rows: int, noise: tuple[float, float], of: str, way: str, odd: int
) -> tuple[int, int]:
    """20 new rows in each of the even groups, or the odd ones, whose noise has another sd."""
    level = 1.0 + 0.5 * rng.normal(size=GROUPS)
    sd = np.where(np.arange(GROUPS) % 2 == 0, *noise)

    def draw(each: int) -> tuple[NDArray[np.intp], Array, Array, Array]:
        groups = rng.permutation(np.repeat(np.arange(GROUPS), each))
        X = rng.normal(size=(len(groups), 1))
        expected = level[groups] + 0.5 * X[:, 0]
        return groups, X, expected, expected + sd[groups] * rng.normal(size=len(groups))

    groups, X, _, y = draw(rows)
    model = GroupedRegression()
    learn = model.fit if way == "fit" else model.predict_then_learn
    learn(X, y, groups=groups)
    groups, X, expected, y = draw(20)
    asked = groups % 2 == odd
    low, high = model.predict_interval(X, groups=groups, of=of).T
    truth = y if of == "observation" else expected
    return int(np.sum(((low <= truth) & (truth <= high))[asked])), int(asked.sum())


def outlying_group(
    rng: np.random.Generator, *, by: float, rows: int, others: bool, way: str
) -> tuple[int, int]:
    """The level of a group far off 19 others of ten rows, or the levels of these."""
    level = 0.3 * rng.normal(size=GROUPS)
    level[0] = by
    groups = rng.permutation(np.repeat(np.arange(GROUPS), [rows] + [10] * (GROUPS - 1)))
    X, y = np.ones((len(groups), 1)), level[groups] + rng.normal(size=len(groups))
    model = GroupedRegression(fit_intercept=False)
    learn = model.fit if way == "fit" else model.predict_then_learn
    learn(X, y, groups=groups)
    some = np.arange(1, GROUPS) if others else np.arange(1)
    low, high = model.predict_interval(np.ones((len(some), 1)), groups=some, of="mean").T
    return int(np.sum((low <= level[some]) & (level[some] <= high))), len(some)


def rare_rewards(rng: np.random.Generator) -> Array:
    """Two arms pay 1 in 95%, and one 10 in 12%."""
    return np.array([1.0, 1.0, 10.0]) * (rng.random(3) < [0.95, 0.95, 0.12])


def best_arm(
    rng: np.random.Generator, *, sd: tuple[float, ...], rounds: int = 1000
) -> tuple[int, int]:
    """The expected reward of the best of three arms, after rounds by the default policy."""
    bandit = Bandit(arms=[0, 1, 2], rng=rng)
    for _ in range(rounds):
        rewards = [0.0, 0.0, 0.3] + np.array(sd) * rng.normal(size=3) if sd else rare_rewards(rng)
        arm = bandit.decide([1.0]).arm
        bandit = bandit.learn_one([1.0], arm, float(rewards[arm]))
    told = bandit.beliefs([[1.0]])
    low, high = told.quantile(0.025)[0, 2], told.quantile(0.975)[0, 2]
    return int(low <= (0.3 if sd else 1.2) <= high), 1


def checks() -> list[Check]:
    """One row for each kind."""
    kinds = [
        (f"{name} groups of {rows} rows, {what}, {way}",
         partial(noise_that_differs, rows=rows, noise=noise, of=of, way=way, odd=odd), 40, 0.92)
        for rows, way in ((10, "fit"), (10, "rows"), (100, "fit"))
        for name, noise, odd in (("quiet (sd 0.3)", (0.3, 3.0), 0), ("loud (sd 3)", (0.3, 3.0), 1),
                                 ("alike (sd 1)", (1.0, 1.0), 0))
        for of, what in (("observation", "new rows"), ("mean", "expected values"))
    ]  # fmt: skip
    kinds += [
        (f"{who} by {by:g} with {rows} rows among 19 of ten, levels, {way}",
         partial(outlying_group, by=by, rows=rows, others=others, way=way), 100, 0.9)
        for by, rows in ((5.0, 3), (3.0, 10))
        for others, who in ((False, "the one that is off"), (True, "all but the one that is off"))
        for way in ("fit", "rows")
    ]  # fmt: skip
    kinds += [
        (f"expected reward of the best of three arms, {name}", partial(best_arm, sd=sd), 60, lowest)
        for sd, name, lowest in (
            ((0.1, 0.1, 3.0), "rewards with sd 0.1, 0.1 and 3", 0.9),
            ((0.3, 0.3, 1.0), "rewards with sd 0.3, 0.3 and 1", 0.9),
            ((1.0, 1.0, 1.0), "rewards with sd 1", 0.9),
            ((), "1 in 95% twice, and 10 in 12%", 0.65),
        )
    ]
    return [
        Check("Groups and arms", setting, 0.95, simulate, replicates, lowest, 1.0)
        for setting, simulate, replicates, lowest in kinds
    ]
