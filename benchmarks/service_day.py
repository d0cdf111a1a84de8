"""A day of traffic in a few minutes: does memory stay, does the database grow by its log alone?

    python benchmarks/service_day.py [--hours 24] [--rate 6] [--folder FOLDER]

The service's engine runs on a clock of its own, ten seconds a step. Decisions come in waves along
the day; seven of ten are rewarded some minutes later, the others get their default at the horizon;
one feature is erased after two hours; a predictor learns rows and unlearns them after an hour.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import math
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from posterity.service.catalog import put
from posterity.service.engine import Engine
from posterity.service.messages import Decide, ExperimentSettings, PredictorSettings, Reward, Row
from posterity.service.state import build_overview, format_metrics
from posterity.service.store import Store

STEP, DAY = 10.0, 86_400.0
ARMS, FEATURES = 10, 10
SETTINGS = ExperimentSettings(
    arms=[f"a{n}" for n in range(ARMS)],
    features=[f"x{n}" for n in range(FEATURES)],
    horizon=1800.0,
    erase_after={"x0": 7200.0},
)
ROWS = PredictorSettings(features=["a", "b"], forget_after=3600.0)


class Day:
    """Traffic of an engine along a simulated clock."""

    def __init__(self, folder: str, rate: float) -> None:
        self.folder, self.rate, self.now = folder, rate, 1.7e9
        self.rng = np.random.default_rng(0)
        self.engine = Engine(Store(f"sqlite:///{folder}/posterity.db"), lambda: self.now)
        self.due: list[tuple[float, str, float]] = []
        self.made = self.rows = 0

    async def step(self) -> None:
        """Ten seconds: decisions, rewards whose time has come, and rows."""
        self.now += STEP
        wave = 1.0 + 0.8 * math.sin(2.0 * math.pi * self.now / DAY)
        count = int(self.rng.poisson(self.rate * STEP * wave))
        X = self.rng.normal(size=(count, FEATURES)).tolist()
        if count:
            decided = await self.engine.decide("e", [Decide(context=x) for x in X])
            delays = self.rng.exponential(300.0, count)
            for one, x, delay in zip(decided, X, delays, strict=True):
                if self.rng.random() < 0.7:
                    value = x[int(one.arm[1:])] + float(self.rng.normal())
                    heapq.heappush(self.due, (self.now + delay, one.id, value))
        self.made += count
        works = []
        while self.due and self.due[0][0] <= self.now:
            _, id, value = heapq.heappop(self.due)
            asked = Reward(decision_id=id, value=value)
            works.append(self.engine.record_event("e", "reward", asked))
        for a, b in self.rng.normal(size=(2, 2)).tolist():
            self.rows += 1
            row = Row(id=str(self.rows), x=[a, b], y=a - b + float(self.rng.normal()))
            works.append(self.engine.record_row("p", "learn", row))
        await asyncio.gather(*works)

    async def keep(self) -> None:
        """Run what is due by the clock, and answer a page and Prometheus."""
        upkeep = self.engine.upkeep
        await upkeep.expire("e")
        await upkeep.erase("e")
        await upkeep.forget("p")
        format_metrics(self.engine)

    def tell(self, hour: int) -> None:
        """A line of the table."""
        store, size = self.engine.store, os.path.getsize(f"{self.folder}/posterity.db")
        with store.engine.connect() as connection:
            asked = "SELECT sum(length(file)), count(*) FROM snapshot"
            snapshots, kept = connection.exec_driver_sql(asked).one()
        print(
            f"{hour:4d} {self.made:10,d} {resident():8.1f} {size / 1e6:10.1f} "
            f"{size / max(self.made, 1):10.0f} {(snapshots or 0) / 1e6:10.2f} {kept:6d}",
            flush=True,
        )


def resident() -> float:
    """Megabytes of memory that the process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


async def run(folder: str, hours: int, rate: float) -> None:
    day = Day(folder, rate)
    await day.engine.start()
    await put(day.engine, "e", SETTINGS, "day")
    await put(day.engine, "p", ROWS, "day")
    print("hour  decisions  MB now  MB on disk  bytes each  snapshots  count")
    for minute in range(hours * 60):
        for _ in range(round(60.0 / STEP)):
            await day.step()
        await day.keep()
        if minute % 60 == 59:
            await day.engine.read(build_overview, day.engine)
            day.tell((minute + 1) // 60)
    await day.engine.stop()
    begun = time.process_time()
    Engine(Store(f"sqlite:///{folder}/posterity.db"))._restore_all()
    print(f"opened again in {time.process_time() - begun:.3f} s of processor")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rate", type=float, default=6.0)
    parser.add_argument("--folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or made
        Path(folder).mkdir(exist_ok=True)
        asyncio.run(run(folder, given.hours, given.rate))
    print(f"{time.process_time():.0f} s of processor; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
