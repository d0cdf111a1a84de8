"""Time us and the peers in turn, and hold what came out."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

Task = Callable[[], object]
REACHED = {None: "", True: "yes", False: "**no**"}


@dataclass(frozen=True)
class Run:
    """Length of a measurement: `rounds` of every task, on `scale` times the full number of rows.

    Whole processes take seconds to start, and get `process_rounds`.
    """

    rounds: int
    process_rounds: int
    scale: float

    def rows(self, full: int) -> int:
        """Rows to use where a full run takes `full`."""
        return max(int(full * self.scale), 100)


FULL = Run(rounds=9, process_rounds=7, scale=1.0)
QUICK = Run(rounds=3, process_rounds=1, scale=0.2)


@dataclass(frozen=True)
class Figure:
    """Ours beside a peer's, in the same unit, and the ratio asked for.

    With "faster" the ratio is the peer's over ours, and has to be at least `target`; with
    "within" it is ours over the peer's, and has to be at most `target`.
    """

    what: str
    peer_name: str
    ours: float
    peer: float
    unit: str
    sense: Literal["faster", "within"]
    target: float | None = None

    HEADER: ClassVar = ("what", "ours", "peer", "theirs", "ratio", "target", "reached")
    NUMBERS: ClassVar = (1, 3, 4, 5)

    @property
    def ratio(self) -> float:
        return self.peer / self.ours if self.sense == "faster" else self.ours / self.peer

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.ratio >= self.target if self.sense == "faster" else self.ratio <= self.target

    @property
    def cells(self) -> tuple[str, ...]:
        sign = "×" if self.sense == "faster" else "≤"
        return (
            self.what,
            f"{number(self.ours)} {self.unit}",
            self.peer_name,
            f"{number(self.peer)} {self.unit}",
            number(self.ratio),
            "" if self.target is None else f"{sign} {self.target:g}",
            REACHED[self.reached],
        )


@dataclass(frozen=True)
class Calls:
    """Microseconds (n,) of each of many calls, and what the mean and the slowest may be at most.

    The mean, p99 and p99.9 are those of the calls after the first 100.
    """

    what: str
    times: NDArray[np.float64]
    targets: tuple[float, float] | None = None

    HEADER: ClassVar = ("what", "mean", "p99", "p99.9", "slowest", "may be", "reached")
    NUMBERS: ClassVar = (1, 2, 3, 4, 5)

    @property
    def cells(self) -> tuple[str, ...]:
        later, slowest = self.times[100:], float(self.times.max())
        found = (float(later.mean()), *np.quantile(later, (0.99, 0.999)), slowest)
        told = [f"{number(float(one))} us" for one in found]
        if self.targets is None:
            return (self.what, *told, "", "")
        mean, most = self.targets
        reached = found[0] <= mean and slowest <= most
        return (self.what, *told, f"{mean:,g} us, {most:,g} us", REACHED[reached])


def number(value: float) -> str:
    """Three digits, and no exponent."""
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{decimals}f}"


def alternate(tasks: Mapping[str, Task], rounds: int, pause: float = 0.0) -> dict[str, float]:
    """Median seconds of each task: every round runs them all, starting with another each time.

    Right before it is timed, each runs once untimed: its caches and its memory are its own, as
    they would be without the others. `pause` seconds pass before that, so that idle threads of the
    task before, which spin for a while, do not take a core from the next.
    """
    seconds = rounds_of({name: _timed(task) for name, task in tasks.items()}, rounds, pause)
    return {name: median(values) for name, values in seconds.items()}


def rounds_of(
    measures: Mapping[str, Callable[[], float]], rounds: int, pause: float = 0.0
) -> dict[str, list[float]]:
    """Results of each measure in each round."""
    names = list(measures)
    values: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(pause)
            values[name].append(measures[name]())
    return values


def _timed(task: Task) -> Callable[[], float]:
    def seconds() -> float:
        task()
        gc.collect()
        gc.disable()
        try:
            start = time.perf_counter()
            result = task()
            stop = time.perf_counter()
        finally:
            gc.enable()
        del result  # freed outside the measured time, for everyone
        return stop - start

    return seconds


class Bystanders:
    """Share of the machine that other programs took during a measurement (Linux; else None)."""

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float | None:
        """Share of all cores, from 0 to 1, that went to other programs since the start."""
        now = self._now()
        if now is None or self._start is None:
            return None
        elapsed, busy, own = (b - a for a, b in zip(self._start, now, strict=True))
        return max(busy - own, 0.0) / elapsed

    @staticmethod
    def _now() -> tuple[float, float, float] | None:
        stat = Path("/proc/stat")
        if not stat.exists():
            return None
        # user nice system idle iowait irq softirq steal, in ticks, summed over the cores
        ticks = [int(field) for field in stat.read_text().split("\n", 1)[0].split()[1:9]]
        tick = os.sysconf("SC_CLK_TCK")
        own = sum(os.times()[:4])
        return sum(ticks) / tick, (sum(ticks) - ticks[3] - ticks[4]) / tick, own
