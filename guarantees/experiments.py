"""Intervals of effects and of policies' values at all times: looked at again and again."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from guarantees.check import Check
from posterity.experiments import Experiment
from posterity.off_policy import Log, evaluate

Array = NDArray[np.float64]
TOPIC = "Effects in experiments, at every one of 100 looks"


def _none(X: Array, count: int) -> Array:
    return np.zeros((len(X), count))


def effects(
    rng: np.random.Generator, *, rewards: str, arms: int, rows: int, shares: tuple[float, ...] = ()
) -> tuple[int, int]:
    """Count if no effect of equal arms was ever outside its interval (an A/A test)."""
    allocation = dict(enumerate(shares)) or None
    test = Experiment(range(arms), partial(_none, count=arms), allocation=allocation)
    for _ in range(100):
        some = {
            "normal": lambda: rng.normal(size=rows),
            "2% of buyers": lambda: 1.0 * (rng.random(rows) < 0.02),
            "log-normal": lambda: np.exp(1.5 * rng.normal(size=rows)),
        }[rewards]()
        chosen = rng.choice(arms, size=rows, p=shares) if shares else rng.integers(2, size=rows)
        test = test.observe_rows(chosen, some)
        if any(not low <= 0.0 <= high for low, high in test.interval_.values()):
            return 0, 1
    return 1, 1


# Rewards of mean 1: a price that this share of visitors pays, or log-normal with this sd of logs.
REWARDS = {
    "5% pay 20": lambda rng, n: 20.0 * (rng.random(n) < 0.05),
    "0.5% pay 200": lambda rng, n: 200.0 * (rng.random(n) < 0.005),
    "50% pay 2": lambda rng, n: 2.0 * (rng.random(n) < 0.5),
    "0.2% pay 500": lambda rng, n: 500.0 * (rng.random(n) < 0.002),
    "1% pay 100": lambda rng, n: 100.0 * (rng.random(n) < 0.01),
    "log-normal, sd 0.3": lambda rng, n: np.exp(0.3 * rng.normal(size=n) - 0.045),
    "log-normal, sd 1": lambda rng, n: np.exp(rng.normal(size=n) - 0.5),
    "log-normal, sd 2": lambda rng, n: np.exp(2.0 * rng.normal(size=n) - 2.0),
    "5% pay log-normal, sd 0.5": lambda rng, n: (
        20.0 * (rng.random(n) < 0.05) * np.exp(0.5 * rng.normal(size=n) - 0.125)
    ),
    "1% pay log-normal, sd 1.5": lambda rng, n: (
        100.0 * (rng.random(n) < 0.01) * np.exp(1.5 * rng.normal(size=n) - 1.125)
    ),
    "1% refund 100": lambda rng, n: 2.0 - 100.0 * (rng.random(n) < 0.01),
    "normal": lambda rng, n: 1.0 + 0.1 * rng.normal(size=n),
    "log-normal, sd 2.5": lambda rng, n: np.exp(2.5 * rng.normal(size=n) - 3.125),
}
UNEQUAL = [
    ("5% pay 20", "0.5% pay 200", 200),
    ("5% pay 20", "1% pay 100", 200),
    ("50% pay 2", "0.2% pay 500", 500),
    ("50% pay 2", "1% pay 100", 100),
    ("log-normal, sd 0.3", "log-normal, sd 2.5", 200),
    ("log-normal, sd 0.3", "log-normal, sd 2", 200),
    ("log-normal, sd 1", "log-normal, sd 2", 100),
    ("5% pay log-normal, sd 0.5", "1% pay log-normal, sd 1.5", 300),
    ("1% refund 100", "normal", 300),
]


def daily(rng: np.random.Generator, *, lift: float, rows: int) -> tuple[int, int]:
    """Count if 30 looks at 1.2% of buyers, and more in arm 1, end as they should."""
    test = Experiment(range(2), planned_rows=rows)
    for _ in range(30):
        chosen = rng.integers(2, size=rows // 30)
        bought = rng.random(rows // 30) < 0.012 * np.where(chosen == 1, 1.0 + lift, 1.0)
        test = test.observe_rows(chosen, bought)
    found = test.decision_
    return int((found and found.arm) == (1 if lift else None)), 1


def revenue(rng: np.random.Generator) -> tuple[int, int]:
    """Count if 20 looks at capped revenue held an effect of 30% more buyers, 97% of zeros."""
    cap, lift = np.exp(3.0 + 1.5 * 1.645), 1.3
    below = np.exp(4.125) * ndtr(1.645 - 1.5) + cap * 0.05  # mean of a capped purchase
    test = Experiment(range(2), planned_rows=20_000, cap=cap)
    for _ in range(20):
        arms = rng.integers(2, size=1000)
        buys = rng.random(1000) < 0.03 * np.where(arms == 1, lift, 1.0)
        test = test.observe_rows(arms, buys * np.exp(rng.normal(3.0, 1.5, size=1000)))
        low, high = test.interval_[1]
        if not low <= 0.03 * (lift - 1.0) * below <= high:
            return 0, 1
    return 1, 1


def draw_users(
    rng: np.random.Generator, rows: int, more: float
) -> tuple[NDArray[np.intp], Array, Array]:
    """Arms, clicks and sessions of users, with so many more sessions in arm 1 and alike clicks."""
    arms, often = rng.integers(2, size=rows), np.exp(0.5 * rng.normal(size=rows))
    sessions = 1.0 + rng.poisson(2.0 * often * (1.0 + more * arms))
    clicks = rng.binomial(sessions.astype(int), 0.8 * rng.beta(0.5, 2.0, rows))
    return arms, clicks.astype(float), sessions


def ratios(rng: np.random.Generator, *, more: float) -> tuple[int, int]:
    """Count if 20 looks at clicks per session held that there is no effect on them."""
    test = Experiment(range(2), planned_rows=4000)
    for _ in range(20):
        arms, clicks, sessions = draw_users(rng, 200, more)
        test = test.observe_rows(arms, clicks, per=sessions)
        low, high = test.interval_[1]
        if not low <= 0.0 <= high:
            return 0, 1
    return 1, 1


def sessions_as_rows(rng: np.random.Generator) -> tuple[int, int]:
    """Count if one look held the same, at the usual interval of sessions as rows."""
    arms, clicks, sessions = draw_users(rng, 4000, 0.0)
    counts = [sessions[arms == arm].sum() for arm in (0, 1)]
    shares = [clicks[arms == arm].sum() / counts[arm] for arm in (0, 1)]
    error = sum(share * (1.0 - share) / n for share, n in zip(shares, counts, strict=True))
    return int(abs(shares[1] - shares[0]) <= 1.96 * np.sqrt(error)), 1


def segments(
    rng: np.random.Generator, *, count: int, spread: float, one: float = 0.0, sign: bool = False
) -> tuple[int, int]:
    """Count if effects in segments were all inside their intervals; or if none was said to differ.

    20,000 rows of 10% of buyers, looked at ten times; effects with this standard deviation, and one
    that differs from the others by ``one``.
    """
    effects = 0.01 + spread * rng.normal(size=count)
    effects[-1] += one
    shares, test = rng.dirichlet(np.full(count, 2.0)), Experiment(range(2))
    for _ in range(10):
        arms, places = rng.integers(2, size=2000), rng.choice(count, size=2000, p=shares)
        bought = rng.random(2000) < 0.1 + arms * effects[places]
        test = test.observe_rows(arms, bought, segments=places)
        if sign and test.segments_[0].differ:
            return 0, 1
    (found,) = test.segments_
    off = np.abs(found.means - effects[np.array(found.names, dtype=int)])
    return int(sign or np.all(off <= found.half_widths)), 1


def unequal_tails(rng: np.random.Generator, *, one: str, other: str, rows: int) -> tuple[int, int]:
    """Count if 20 looks found no winner between arms of one mean, whose rewards differ."""
    test = Experiment(range(2), partial(_none, count=2))
    for _ in range(20):
        first = rng.random(rows) < 0.5
        earned = np.where(first, REWARDS[one](rng, rows), REWARDS[other](rng, rows))
        test = test.observe_rows(np.where(first, 0, 1), earned)
    return int(test.decision_ is None), 1


def adaptive(rng: np.random.Generator) -> tuple[int, int]:
    """The same of two arms that a bandit chooses, after each of 50 looks; an effect of 0.2."""
    test = Experiment(range(2), partial(_none, count=2), allocation="given")
    shares = np.array([0.5, 0.5])
    for _ in range(50):
        arms = rng.choice(2, size=20, p=shares)
        test = test.observe_rows(
            arms, 0.2 * arms + rng.normal(size=20), None, np.tile(shares, (20, 1))
        )
        low, high = test.interval_[1]
        if not low <= 0.2 <= high:
            return 0, 1
        best = test.probability_best_[1]
        shares = 0.9 * np.array([1.0 - best, best]) + 0.05
    return 1, 1


def values(rng: np.random.Generator, *, exact: bool) -> tuple[int, int]:
    """Count if the value of an arm of 10% was inside at each of 20 looks at a growing log."""
    arms = (rng.random(4000) < 0.1).astype(int)
    rewards = 1.0 * (rng.random(4000) < 0.3)
    every = np.tile([0.9, 0.1], (4000, 1))
    for n in range(200, 4001, 200):
        log = Log.of(np.zeros((n, 0)), arms[:n], rewards[:n], None, every[:n], names=[0, 1])
        predictive = evaluate(log, {"one": 1}, ["ips"], reward_range=(0.0, 1.0) if exact else None)
        estimate = predictive["one", "ips"]
        if not estimate.anytime_low <= 0.3 <= estimate.anytime_high:
            return 0, 1
    return 1, 1


def checks() -> list[Check]:
    """A/A tests, rows of a bandit, and values from a log."""
    settings = [
        ("normal", 2, 20),
        ("2% of buyers", 2, 50),
        ("log-normal", 2, 20),
        ("normal", 3, 30),
    ]
    made = [
        Check(
            TOPIC,
            f"{arms} arms alike, {rewards} rewards, {rows} rows a look",
            0.95,
            partial(effects, rewards=rewards, arms=arms, rows=rows),
            replicates=150,
            lowest=0.95,
        )
        for rewards, arms, rows in settings
    ]
    made += [
        Check(
            TOPIC,
            f"{len(shares)} arms alike, shares {', '.join(map(str, shares))}, {rewards} rewards",
            0.95,
            partial(effects, rewards=rewards, arms=len(shares), rows=100, shares=shares),
            replicates=150,
            lowest=0.95,
        )
        for shares, rewards in [
            ((0.9, 0.1), "2% of buyers"),
            ((0.7, 0.1, 0.2), "2% of buyers"),
            ((0.9, 0.1), "log-normal"),
        ]
    ]
    made += [
        Check(
            "Experiments without a false winner, where arms of one mean have unequal tails",
            f"{one}; {other}; {rows} rows a look",
            0.95,
            partial(unequal_tails, one=one, other=other, rows=rows),
            replicates=150,
            lowest=0.95,
        )
        for one, other, rows in UNEQUAL
    ]
    made += [
        Check(
            "Experiments of 1.2% of buyers, planned, with 30 looks",
            f"{rows:,} rows, " + (f"a lift of {lift:.0%} is found" if lift else "no lift is found"),
            0.95,
            partial(daily, lift=lift, rows=rows),
            replicates,
            lowest,
        )
        # Designs of O'Brien and Fleming with as many looks find 96% of that lift.
        for rows, lift, replicates, lowest in ((30_000, 0.0, 500, 0.95), (90_000, 0.25, 200, 0.9))
    ]
    made.append(
        Check(TOPIC, "revenue of 3% of buyers, capped, 1,000 rows a look", 0.95, revenue, 150, 0.95)
    )
    made += [
        Check(TOPIC, f"clicks per session, 200 users a look{said}", 0.95, check, replicates, lowest)
        for said, check, replicates, lowest in (
            ("", partial(ratios, more=0.0), 150, 0.95),
            (", 30% more sessions in one arm", partial(ratios, more=0.3), 150, 0.95),
            # Too narrow, as it should be.
            (" (sessions as rows, one look)", sessions_as_rows, 150, 0.0),
        )
    ]
    made += [
        Check(
            "Effects in segments, all of them together",
            f"{count} segments, {said}",
            0.95,
            partial(segments, count=count, **how),
            replicates=100,
            lowest=lowest,
        )
        for count in (3, 8)
        for said, how, lowest in (
            ("alike", {"spread": 0.0}, 0.95),
            ("alike, none is said to differ at ten looks", {"spread": 0.0, "sign": True}, 0.95),
            ("sd 1 point", {"spread": 0.01}, 0.9),
            ("sd 3 points", {"spread": 0.03}, 0.85),
            ("one differs by 4 points", {"spread": 0.0, "one": 0.04}, 0.85),
        )
    ]
    made.append(Check(TOPIC, "2 arms, chosen by a bandit", 0.95, adaptive, 100, lowest=0.95))
    made += [
        Check(
            "Values of policies from a log, at every one of 20 looks",
            "IPS, weights of 10, " + ("any number of rows" if exact else "asymptotic"),
            0.95,
            partial(values, exact=exact),
            replicates=150,
            lowest=0.95,
        )
        for exact in (True, False)
    ]
    return made
