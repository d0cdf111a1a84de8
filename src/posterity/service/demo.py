"""An example to look at: an experiment and a predictor, and traffic that is simulated."""

from __future__ import annotations

import asyncio
import contextlib
import math
from typing import Any

import numpy as np

from posterity.service.catalog import put
from posterity.service.engine import Engine
from posterity.service.errors import RefusedError
from posterity.service.messages import Decide, ExperimentSettings, PredictorSettings, Reward, Row

EXPERIMENT, PREDICTOR = "checkout page", "delivery time"
ARMS = ["short form", "long form", "one click", "with pictures"]
FEATURES = ["returning", "hour", "basket"]
# What arms earn: of a new visitor, more of a returning one, by the hour, by the basket.
EARNED = np.array(
    [[1.0, 0.2, 0.1, 0.0], [0.7, 0.6, 0.0, 0.2], [0.9, 0.9, -0.2, 0.1], [1.1, -0.3, 0.2, 0.3]]
)
NOISE = 0.5
ROWS = ["distance", "weight", "rain"]
TIMES = np.array([2.0, 0.5, 0.8])
# Seconds: what lies behind when it begins, how often something happens, and until a reward comes.
BEFORE, EVERY, DELAY = 900.0, 1.0, 3.0
# From so many seconds before on deliveries are harder to foretell: a drift to be seen.
DRIFT_SECONDS, DRIFT_NOISE = 180.0, 1.3
DELIVERIES = 0.5


async def demo_traffic(engine: Engine) -> None:
    """Visitors and deliveries: a quarter of an hour at once, then as time goes, until cancelled."""
    rng = np.random.default_rng()
    clock, begins = engine.clock, not engine.models
    waiting: set[asyncio.Task[None]] = set()
    if begins:
        settings = ExperimentSettings(arms=ARMS, features=FEATURES)
        await put(engine, EXPERIMENT, settings, "demo")
        await put(
            engine, PREDICTOR, PredictorSettings(features=ROWS, model="robust", level=0.9), "demo"
        )
        try:
            await _past(engine, rng, clock())
        finally:
            engine.clock = clock
    while EXPERIMENT in engine.models and PREDICTOR in engine.models:
        # The database may be away for a while: that is part of what can be looked at.
        with contextlib.suppress(RefusedError):
            made, value = await _visit(engine, rng)
            task = asyncio.create_task(_later(engine, made.id, value, _delay(rng)))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            if rng.random() < DELIVERIES:
                await _deliver(engine, rng, noise=DRIFT_NOISE)
        await asyncio.sleep(rng.exponential(EVERY))


async def _past(engine: Engine, rng: np.random.Generator, now: float) -> None:
    """Traffic that is dated back."""
    late: list[tuple[float, str, float]] = []
    for at in np.arange(now - BEFORE, now, EVERY).tolist():
        engine.clock = lambda at=at: at  # type: ignore[misc]
        made, value = await _visit(engine, rng)
        if rng.random() < 0.9:
            late.append((at + _delay(rng), made.id, value))
        for due, id, earned in [one for one in late if one[0] <= at]:
            engine.clock = lambda due=due: due  # type: ignore[misc]
            await engine.record_event(EXPERIMENT, "reward", Reward(decision_id=id, value=earned))
        late = [one for one in late if one[0] > at]
        if rng.random() < DELIVERIES:
            await _deliver(engine, rng, noise=DRIFT_NOISE if at > now - DRIFT_SECONDS else 0.3)


def _delay(rng: np.random.Generator) -> float:
    return float(rng.lognormal(math.log(DELAY), 1.0))


async def _visit(engine: Engine, rng: np.random.Generator) -> tuple[Any, float]:
    """A decision, and what it will have earned."""
    context = [float(rng.random() < 0.4), float(rng.normal()), float(rng.normal())]
    made = (await engine.decide(EXPERIMENT, [Decide(context=context)]))[0]
    earned = EARNED[ARMS.index(made.arm)] @ [1.0, *context]
    return made, float(earned + NOISE * rng.normal())


async def _later(engine: Engine, id: str, value: float, seconds: float) -> None:
    await asyncio.sleep(seconds)
    with contextlib.suppress(RefusedError):
        await engine.record_event(EXPERIMENT, "reward", Reward(decision_id=id, value=value))


async def _deliver(engine: Engine, rng: np.random.Generator, noise: float) -> None:
    """A row whose target is learned; one of 200 is far off."""
    x = rng.gamma(2.0, 1.0, 3)
    far = 6.0 * (rng.random() < 0.005)
    y = float(TIMES @ x + 3.0 + far + noise * rng.normal())
    row = Row(id=f"{rng.integers(2**62):x}", x=x.tolist(), y=y)
    await engine.record_row(PREDICTOR, "learn", row)
