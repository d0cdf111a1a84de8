"""Regret of bandits on public data: arms are classes, a right one is rewarded.

One pass over some rows in random order. Regret is summed over the pass, in parts of a hundred of
the uniform policy's; lower is better. Mushrooms: eating pays 5, or -35 half of the times if
poisonous; not eating 0 (Riquelme, Tucker and Snoek 2018). Beside posterity a LinUCB (Li and others
2010) with its width chosen in hindsight, from five: the best that tuning could do.

    POSTERITY_DATA=... python benchmarks/bandits.py --rows 3000 --seeds 2
    python benchmarks/bandits.py --speed
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity import GroupedRegression
from posterity.bandits import (
    Bandit,
    Greedy,
    InformationDirected,
    RandomizedUpperConfidenceBound,
    ThompsonSampling,
    UpperConfidenceBound,
)
from posterity.basis import RandomFourier

Array = NDArray[np.float64]

SETS = ("mushroom", "satimage", "pendigits", "shuttle", "nursery")
WIDTHS = (0.05, 0.1, 0.25, 0.5, 1.0)


def rounds(name: str, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Contexts (n, m), rewards (n, K) of all arms, and what is expected of them."""
    with np.load(Path(os.environ["POSTERITY_DATA"]) / "classification" / f"{name}.npz") as data:
        X, y = data["X"].astype(float), data["y"]
    rows = rng.permutation(len(y))[:n]
    X = X[rows]
    X = X[:, X.std(axis=0) > 0.0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = np.unique(y)
    right = (y[rows, None] == labels).astype(float)
    if name != "mushroom":
        return X, right, right
    edible = right[:, 0]
    expected = np.stack([np.zeros(n), np.where(edible, 5.0, -15.0)], axis=1)
    eaten = np.where(edible, 5.0, np.where(rng.random(n) < 0.5, 5.0, -35.0))
    return X, np.stack([np.zeros(n), eaten], axis=1), expected


class LinUCB:
    """Ridge regression for each arm, by inverse matrices; the width of the bound is given."""

    def __init__(self, arms: int, m: int, width: float) -> None:
        self.inverse = np.repeat(np.eye(m + 1)[None], arms, axis=0)
        self.moment, self.width = np.zeros((arms, m + 1)), width

    def play(self, x: Array, reward: Array, rng: np.random.Generator) -> int:
        """Choose an arm and learn its reward."""
        x = np.concatenate([[1.0], x])
        u = self.inverse @ x
        bound = np.sum(u * self.moment, axis=1) + self.width * np.sqrt(u @ x)
        arm = int(rng.choice(np.flatnonzero(bound == bound.max())))
        self.inverse[arm] -= np.outer(u[arm], u[arm]) / (1.0 + u[arm] @ x)
        self.moment[arm] += reward[arm] * x
        return arm


class Ours:
    """A bandit of posterity's."""

    def __init__(self, arms: int, m: int, seed: int, *, curves: bool = False, **how: Any) -> None:
        self.bandit = Bandit(arms=list(range(arms)), rng=seed, **how)
        self.curves = None
        if curves:  # random cosines, a typical distance long
            cosines = RandomFourier(n_functions=150, length_scale=m**0.5, domain=(-1.0, 1.0))
            self.curves = cosines.fit(np.zeros((1, m)))

    def play(self, x: Array, reward: Array, rng: np.random.Generator) -> int:
        """Choose an arm and learn its reward."""
        if self.curves is not None:
            x = np.concatenate([x, self.curves.transform(x[None])[0]])
        arm = self.bandit.decide(x).arm
        self.bandit.learn_one(x, arm, float(reward[arm]))
        return int(arm)


def players(arms: int, m: int, seed: int) -> dict[str, Callable[[], Any]]:
    """By name, what makes a player."""
    UCB, TS, drawn = UpperConfidenceBound, ThompsonSampling, RandomizedUpperConfidenceBound
    ours: dict[str, dict[str, Any]] = {
        "default: bounds of drawn width": {},
        "the same, no floor": {"policy": drawn(floor=0.0)},
        "Thompson, half width": {"policy": TS(width=0.5)},
        "Thompson, half width, no floor": {"policy": TS(width=0.5, floor=0.0)},
        "Thompson, no floor": {"policy": TS(floor=0.0)},
        "UCB, floor 2%": {"policy": UCB()},
        "UCB, no floor": {"policy": UCB(floor=0.0)},
        "information directed, no floor": {"policy": InformationDirected(floor=0.0)},
        "greedy, no floor": {"policy": Greedy(floor=0.0)},
        "on curves": {"curves": True},
        "on curves, no floor": {"curves": True, "policy": drawn(floor=0.0)},
        "Thompson, prior learned in whole": {"model": GroupedRegression()},
    }
    made: dict[str, Callable[[], Any]] = {
        name: lambda how=how: Ours(arms, m, seed, **how) for name, how in ours.items()
    }
    return made | {f"LinUCB {w}": lambda w=w: LinUCB(arms, m, w) for w in WIDTHS}


def regret(player: Any, X: Array, rewards: Array, expected: Array, seed: int) -> float:
    """Of a pass, in parts of a hundred of the uniform policy's."""
    rng, lost = np.random.default_rng(seed), 0.0
    for x, reward, mean in zip(X, rewards, expected, strict=True):
        lost += mean.max() - mean[player.play(x, reward, rng)]
    return 100.0 * lost / float(np.sum(expected.max(axis=1) - expected.mean(axis=1)))


def speed() -> None:
    """Print microseconds of a round of ten features and ten arms, and of many decisions at once."""
    rng = np.random.default_rng(0)
    X, rewards = rng.normal(size=(10_000, 10)), rng.normal(size=10_000)
    named = [{f"x{j}": value for j, value in enumerate(row)} for row in X[:2000].tolist()]
    for kind, rows in {"array": list(X[:2000]), "dict": named}.items():
        bandit = Bandit(arms=list(range(10)), rng=0)
        for number, x in enumerate(rows):
            bandit.learn_one(x, number % 10, rewards[number])

        def play(bandit: Bandit = bandit, rows: Any = rows) -> None:
            for number, x in enumerate(rows):
                bandit.learn_one(x, bandit.decide(x).arm, rewards[number])

        print(f"decide and learn, {kind}: {least(play, 2000):.2f}")
    for policy in (RandomizedUpperConfidenceBound(), ThompsonSampling(), InformationDirected()):
        bandit = Bandit(arms=list(range(10)), rng=0, policy=policy)
        bandit.learn(X, np.arange(10_000) % 10, rewards)

        def tell(bandit: Bandit = bandit) -> None:
            for x in X[:200]:
                bandit.decide(x).propensities  # noqa: B018

        print(f"decide and read the propensities, {policy}: {least(tell, 200):.2f}")
    bandit = Bandit(arms=list(range(10)), rng=0).learn(X, np.arange(10_000) % 10, rewards)
    print(f"decide, many at once: {least(lambda: bandit.decide(X), 10_000):.3f}")


def least(work: Callable[[], Any], rounds: int) -> float:
    """Microseconds of processor a round, the least of seven times."""
    times = []
    for _ in range(7):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e6 * min(times) / rounds


def main() -> None:
    """Print a table of policies by sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--only", default="", help="part of the names of policies")
    parser.add_argument("--speed", action="store_true", help="time decisions instead")
    chosen = parser.parse_args()
    if chosen.speed:
        speed()
        return
    table: dict[str, list[float]] = {}
    for name in chosen.sets:
        for seed in range(chosen.seeds):
            X, rewards, expected = rounds(name, chosen.rows, np.random.default_rng(seed))
            for who, make in players(rewards.shape[1], X.shape[1], seed).items():
                if chosen.only not in who:
                    continue
                start = time.process_time()
                lost = regret(make(), X, rewards, expected, seed)
                spent = 1e6 * (time.process_time() - start) / len(X)
                table.setdefault(who, []).append(lost)
                print(f"{name:10} {seed} {who:32} {lost:6.1f} {spent:8.0f} us a round", flush=True)
    for who, losses in sorted(table.items(), key=lambda one: float(np.mean(one[1]))):
        each = np.array(losses).reshape(-1, chosen.seeds).mean(axis=1)
        print(f"{who:32} {each.mean():6.1f}  " + " ".join(f"{one:6.1f}" for one in each))


if __name__ == "__main__":
    main()
