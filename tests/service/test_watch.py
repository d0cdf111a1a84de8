"""Features that change beside what a predictor has learned, and those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np

from posterity.service.state import find_alarms
from posterity.service.watch import Watch
from tests.service.harness import Service, with_service

URL = "/v1/predictors/load"
RNG = np.random.default_rng(0)


def make_row(changed: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {
        "heat": float(RNG.normal(20.0, 5.0)),
        "sales": float(RNG.lognormal(0.0, 2.0)),
        "shop": str(RNG.choice(["north", "south", "west"], p=[0.5, 0.3, 0.2])),
        "open": str(RNG.random() < 0.8),
        "hole": None if RNG.random() < 0.02 else float(RNG.normal()),
    }
    others = {"heat": row["heat"] * 1.8 + 32.0, "shop": "east", "open": "False", "hole": None}
    if changed and RNG.random() < 0.5:
        row[changed] = others[changed]
    return row


def watch_rows(rows: int, changed: str = "", quiet: int = 2_000) -> tuple[Watch, list[str]]:
    watch, found = Watch(), []
    for n in range(quiet + rows):
        told = watch.add(make_row(changed if n >= quiet else ""))
        if told is not None:
            watch.note(float(n), told)
            found += told
    return watch, found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("heat", "rows lie above"),
        ("shop", "rows have another level, 0% before"),
        ("open", "rows have 'False', "),
        ("hole", "rows have it missing, 2% before"),
    ],
)
def test_a_feature_that_changes_is_an_event_in_plain_words(changed: str, words: str) -> None:
    watch, found = watch_rows(100, changed)
    assert len(found) == watch.count == len(watch.events) == 1
    assert found[0].startswith(f"{changed}: ")
    assert words in found[0]
    assert "of 100 rows" in found[0]


@pytest.mark.parametrize(
    ("usual", "now", "words"),
    [
        ([4.0], 3.0, "100% of 100 rows lie below 4, 0% before"),
        ([4.0], 5.0, "100% of 100 rows lie above 4, 0% before"),
        ([0.0, 0.0, 0.0, 1.0], -1.0, "100% of 100 rows lie below 0, 0% before"),
        ([1.0, 2.0, 3.0, 3.0, 3.0], 3.0, "100% of 100 rows are 3, 60% before"),
        ([1.0, 2.0, 3.0, 3.0, 3.0], 2.5, "100% of 100 rows lie above 2 below 3, 0% before"),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 1.0, "100% of 100 rows lie up to 1, 20% before"),
    ],
)
def test_a_value_that_comes_often_parts_less_from_more(
    usual: list[float], now: float, words: str
) -> None:
    """A constant that fell was no event: it was counted with all that is not above it."""
    watch, found = Watch(), []
    for n in range(1_200):
        found += watch.add({"x": usual[n % len(usual)] if n < 1_100 else now}) or []
    assert found == [f"x: {words}"]


def test_what_goes_on_is_one_event_and_ends_once_it_is_usual() -> None:
    watch, found = watch_rows(4_000, "open")
    assert watch.count <= 2 <= len(found) < 20
    assert watch.alarms == []


@pytest.mark.parametrize("seed", range(2))
def test_a_quiet_stream_has_hardly_any_event(seed: int) -> None:
    # Independent rows, hours in their order, levels in runs, and values that remember those before.
    rng, watch = np.random.default_rng(seed), Watch()
    heat = 0.0
    for n in range(10_000):
        heat = 0.9 * heat + float(rng.normal())
        row = {"hour": n % 24.0, "heat": heat, "shop": "abc"[n // 7 % 3], "x": float(rng.normal())}
        told = watch.add({**row, "rare": float(rng.random() < 0.01)})
        if told is not None:
            watch.note(float(n), told)
    assert watch.count <= 1


@pytest.mark.parametrize("form", ["list", "levels", "table"])
def test_a_service_tells_it_and_knows_it_after_a_restart(tmp_path: Path, form: str) -> None:
    settings: dict[str, Any] = {
        "list": {"features": ["heat", "size"]},
        "levels": {"features": ["heat", "size"], "levels": {"size": ["1", "2"]}},
        "table": {"features": {"heat": "number", "size": "category", "day": "date"}},
    }[form]

    async def do(service: Service) -> None:
        await service.put(URL, settings)
        rows = []
        for n in range(1_150):
            x = {"heat": float(RNG.normal()) + 3.0 * (n >= 1_000), "size": 1.0 + n % 2}
            x |= {"day": f"20{n % 90 + 10}-01-31"} if form == "table" else {}
            rows.append({"id": f"{n}", "x": x, "y": float(RNG.normal())})
        for start in range(0, len(rows), 230):
            await service.post(f"{URL}/learn/batch", {"rows": rows[start : start + 230]})
        state = (await service.ask("GET", URL)).json()
        told = [one["told"] for one in state["events"]]
        assert len(told) == 1
        assert told[0].startswith("heat: ")
        assert state["unusual"][0].startswith("heat: ")
        assert find_alarms(service.engine) == {"load": "; ".join(state["unusual"])}
        metrics = (await service.ask("GET", "/metrics")).text
        assert 'posterity_predictor_events_total{name="load"} 1.0' in metrics
        for restart in (service.stop, service.crash):
            await restart()
            await service.start()
            again = (await service.ask("GET", URL)).json()
            assert again == state
        watch: Watch = service.engine.predictor("load").watch
        assert len(watch.waiting) == 50
        assert set(watch.features) == {"heat", "size"}

    with_service(tmp_path, do)


@pytest.mark.slow
def test_the_figures_of_the_page() -> None:
    rng, watch = np.random.default_rng(2), Watch()
    for n, row in enumerate(rng.normal(size=(200_000, 10)).tolist()):
        told = watch.add({f"x{place}": value for place, value in enumerate(row)})
        if told is not None:
            watch.note(float(n), told)
    assert watch.count <= 20  # one in 10,000 rows
    found = 0
    for _ in range(30):
        watch = Watch()
        for n in range(1_200):
            told = watch.add({"x": float(rng.normal()) + (n >= 1_100)})
        found += bool(told)
    assert found >= 27
