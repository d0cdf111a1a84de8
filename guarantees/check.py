"""One promise of an interval, checked by simulation."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

# One data set: draws it, fits, and returns how many truths the intervals held, of how many.
Simulation = Callable[[np.random.Generator], tuple[int, int]]


@dataclass(frozen=True)
class Check:
    """A simulation, and the share of truths that its intervals must hold.

    ``simulate`` is a function of a module, or a ``functools.partial`` of one, so that it can be
    sent to another process.
    """

    topic: str  # heading of the table: "Coefficients of linear regression"
    setting: str  # "p = 10, n = 1,000, effects of 1.5 standard errors"
    level: float
    simulate: Simulation
    replicates: int  # data sets; the whole check should take seconds
    lowest: float
    highest: float = 1.0


@dataclass(frozen=True)
class Result:
    """Share held, and its standard error over data sets (those of one set are not independent)."""

    check: Check
    held: float
    error: float

    @property
    def passed(self) -> bool:
        """True if the share is inside the bounds, up to three standard errors."""
        slack = 3.0 * self.error
        return self.check.lowest - slack <= self.held <= self.check.highest + slack


def run(check: Check, replicates: int | None = None) -> Result:
    """Simulate ``replicates`` data sets, each from a seed of its own."""
    seed = zlib.crc32(f"{check.topic}: {check.setting}, {check.level}".encode())
    counts = np.array(
        [
            check.simulate(np.random.default_rng([seed, replicate]))
            for replicate in range(replicates or check.replicates)
        ],
        dtype=float,
    )
    held, of = counts.sum(axis=0)
    share = held / of
    # The standard error of a ratio of sums (the delta method).
    error = np.sqrt(np.sum(np.square(counts[:, 0] - share * counts[:, 1]))) / of
    # A share of exactly 0 or 1 has an error, too: that of one truth more.
    return Result(check, float(share), float(max(error, np.sqrt(share * (1 - share) / of), 1 / of)))


def run_all(checks: list[Check], workers: int) -> list[Result]:
    """All of them, in their order."""
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(run, checks))
