"""Predictors of columns of all kinds: categories, dates, what is missing, groups and formulas."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the service needs posterity[service]")
pytest.importorskip("httpx")

import numpy as np
import pandas as pd
from sklearn.base import clone

from posterity import BayesianLinearRegression, GroupedRegression, Model
from posterity.io.calendar import MONTHS, WEEKDAYS
from tests.service.harness import Service, with_service

URL = "/v1/predictors/load"
RNG = np.random.default_rng(0)
KINDS = {"at": "time", "shop": "category", "open": "boolean", "heat": "number"}
ROWS = [
    {
        "at": (datetime(2026, 1, 1) + timedelta(hours=7 * n)).isoformat(),
        "shop": "abc"[n % 3],
        "open": n % 5 > 0,
        "heat": float(RNG.normal()),
    }
    for n in range(30)
]
Y = [2.0 * (one["shop"] == "b") + float(one["heat"]) + 0.3 * RNG.normal() for one in ROWS]


async def learn(service: Service, rows: list[Any], targets: Any = Y) -> list[Any]:
    return [
        await service.post(f"{URL}/learn", {"id": f"{n}", "x": x, "y": float(y)})
        for n, (x, y) in enumerate(zip(rows, targets, strict=True))
    ]


def open_dates(row: dict[str, Any]) -> dict[str, Any]:
    """The row as a model in Python takes it."""
    left = dict(row)
    at = datetime.fromisoformat(left.pop("at"))
    parts = {
        "at.hour": str(at.hour),
        "at.weekday": at.strftime("%a"),
        "at.month": at.strftime("%b"),
    }
    return {**parts, **left}


CALENDAR = {
    "at.hour": [*map(str, range(24))],
    "at.weekday": [*WEEKDAYS],
    "at.month": [*MONTHS],
}


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        ({}, BayesianLinearRegression(categorical_features=CALENDAR)),
        ({"features": KINDS}, BayesianLinearRegression(categorical_features=CALENDAR)),
        (
            {"model": "linear+stabilized:0.9", "features": {**KINDS, "shop": ["a", "b", "c"]}},
            BayesianLinearRegression(
                categorical_features={**CALENDAR, "shop": [*"abc"]}, forgetting="stabilized:0.9"
            ),
        ),
        (
            {"groups": "shop"},
            GroupedRegression(by="shop", categorical_features=CALENDAR),
        ),
        (
            {"formula": "y ~ heat + at.weekday + (1 | shop)"},
            Model("y ~ heat + at.weekday + (1 | shop)"),
        ),
    ],
    ids=["learned", "given", "forgetting", "groups", "formula"],
)
def test_rows_are_handed_to_the_model(tmp_path: Path, settings: dict[str, Any], model: Any) -> None:
    async def do(service: Service) -> tuple[Any, ...]:
        await service.put(URL, settings)
        await learn(service, ROWS)
        told = await service.post(f"{URL}/predict", {"x": ROWS[0]})
        await service.crash()
        await service.start()
        assert await service.post(f"{URL}/predict", {"x": ROWS[0]}) == told
        state = (await service.ask("GET", URL)).json()
        await service.post(f"{URL}/unlearn", {"id": "3"})
        return told, state["schema"], await service.post(f"{URL}/predict", {"x": ROWS[0]})

    told, schema, left = with_service(tmp_path, do)
    assert schema == settings.get("features", KINDS)
    fresh = clone(model)
    for x, y in zip(ROWS, Y, strict=True):
        model.learn_one(open_dates(x), y)
    first = pd.DataFrame([open_dates(ROWS[0])])
    assert told["mean"] == pytest.approx(float(model.predict(first)[0]), rel=1e-6)
    if "model" in settings:  # what fades can't be subtracted: all others are learned again
        model = fresh
        for x, y in zip(ROWS[:3] + ROWS[4:], Y[:3] + Y[4:], strict=True):
            model.learn_one(open_dates(x), y)
    else:
        model.unlearn(pd.DataFrame([open_dates(ROWS[3])]), [Y[3]])
    assert left["mean"] == pytest.approx(float(model.predict(first)[0]), rel=1e-4)


def test_missing_values_are_filled_in(tmp_path: Path) -> None:
    holes = [
        ROWS[0],
        *({**row, ["at", "shop", "heat"][n % 3]: None} for n, row in enumerate(ROWS[1:])),
    ]

    async def do(service: Service) -> None:
        await service.put(URL, {"features": KINDS, "missing": "fill"})
        await learn(service, holes)
        told = await service.post(f"{URL}/predict", {"x": {"shop": "b", "open": True}})
        heat = np.mean([one["heat"] for one in holes if one["heat"] is not None])
        same = {"at": None, "shop": "b", "open": True, "heat": float(heat)}
        assert (await service.post(f"{URL}/predict", {"x": same}))["mean"] == pytest.approx(
            told["mean"]
        )
        # The same row is a duplicate, although its mean has moved since; another is refused.
        row = {"id": "3", "x": holes[3], "y": Y[3]}
        assert (await service.post(f"{URL}/learn", row))["status"] == "duplicate"
        row["x"] = {**holes[3], "heat": 0.0}
        assert (await service.ask("POST", f"{URL}/learn", row)).status_code == 409
        await service.crash()
        await service.start()
        await service.post(f"{URL}/unlearn", {"id": "3"})
        left = await service.post(f"{URL}/predict", {"x": same})
        assert left["mean"] == pytest.approx(told["mean"], abs=0.3)

    with_service(tmp_path, do)


@pytest.mark.parametrize(
    "settings", [{"missing": "fill"}, {"formula": "y ~ a + b"}, {"groups": "b"}]
)
def test_a_list_of_names_is_of_numbers(tmp_path: Path, settings: dict[str, Any]) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {"features": ["a", "b"], **settings})
        await learn(service, [[float(RNG.normal()), float(n % 3)] for n in range(12)], Y[:12])
        asked = [None if "missing" in settings else 0.0, 1.0]
        told = await service.post(f"{URL}/predict", {"x": asked})
        assert np.isfinite(told["mean"])

    with_service(tmp_path, do)


def test_the_only_row_of_a_level_is_unlearned_without_loss(tmp_path: Path) -> None:
    async def do(service: Service) -> tuple[bytes, bytes]:
        rows = [{"shop": "abcab"[n], "heat": n / 4.0} for n in range(5)]
        await service.put(URL, {"features": {"shop": [*"abc"], "heat": "number"}})
        await learn(service, rows, Y[:5])
        await service.post(f"{URL}/unlearn", {"id": "2"})
        left = (await service.ask("GET", f"{URL}/model")).content
        await service.put(f"{URL}2", {"features": {"shop": [*"abc"], "heat": "number"}})
        for n in (0, 1, 3, 4):
            row = {"id": f"{n}", "x": rows[n], "y": Y[n]}
            await service.post(f"{URL}2/learn", row)
        return left, (await service.ask("GET", f"{URL}2/model")).content

    left, never = with_service(tmp_path, do)
    assert left == never


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        ("logistic", np.array(Y) > 1.0),
        ("gamma+stabilized:0.99", np.exp(Y)),
        ("negative binomial", np.rint(np.exp(Y))),
        ("spline", Y),
        ("linear + adaptive", Y),
    ],
)
def test_words_of_the_command_make_the_model(tmp_path: Path, model: str, targets: Any) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {"model": model, "features": {**KINDS, "shop": [*"abc"]}})
        told = await learn(service, ROWS, targets)
        if model == "logistic":  # true is 1
            row = {"id": "1", "x": ROWS[1], "y": bool(targets[1])}
            assert (await service.post(f"{URL}/learn", row))["status"] == "duplicate"
        assert np.isfinite(told[-1]["mean"])
        assert np.isfinite((await service.post(f"{URL}/predict", {"x": ROWS[0]}))["std"])

    with_service(tmp_path, do)


REFUSED_SETTINGS = [
    ({"model": "cubic"}, "model", "does not describe a model"),
    ({"model": "linear+spline+hsgp"}, "model", "two settings for its basis"),
    ({"formula": "y ~ (x"}, "formula", ""),
    ({"formula": "y ~ s(x)"}, "formula", "PUT its file"),
    ({"formula": "Surv(t, ended) ~ x", "model": "weibull"}, "formula", "one target"),
    ({"formula": "y ~ np.log(x)"}, "formula", "write log(...)"),
    ({"formula": "y ~ x + foo(x)"}, "formula", "there is no function 'foo': use one of C,"),
    ({"formula": "y ~ poly(x, 2)"}, "formula", "poly(...) can't begin with one row"),
    ({"formula": "y ~ (scale(x) | g)"}, "formula", "scale(...) can't begin with one row"),
    ({"formula": "log(y) ~ x"}, "formula", "write y in place of log(y)"),
    ({"formula": "y ~ x", "features": {"z": "number"}}, "formula", "has 'x', which is not a feat"),
    ({"formula": "y ~ x + (1 | g)", "features": ["x"]}, "formula", "has 'g', which is not a feat"),
    ({"formula": "y ~ day", "features": {"day": "date"}}, "formula", "day.weekday, day.month"),
    ({"formula": "y ~ s(g)", "features": {"g": "category"}}, "formula", "PUT its file"),
    ({"formula": "y ~ log(g)", "features": {"g": "category"}}, "formula", "holds no numbers"),
    ({"formula": "y ~ log(g)", "features": ["x"]}, "formula", "has 'g', which is not a feature"),
    ({"formula": "k / n ~ x", "model": "logistic"}, "formula", "each trial as a row"),
    ({"formula": "y ~ x", "model": "linear+adaptive"}, "formula", "forgetting is 'adaptive'"),
    ({"formula": "y ~ x", "model": "quantile:0.9"}, "formula", "likelihood is 'quantile:0.9'"),
    ({"features": {"g": "category"}, "groups": "g"}, "features", "no feature is left beside g"),
    ({"formula": "y ~ x", "groups": "g"}, "groups", "write (1 | g) there"),
    ({"formula": "y ~ x", "model": "linear+spline"}, "formula", "does not go with formula"),
    ({"features": {"x": "float"}}, "features.x", "give number, boolean, category, date, time"),
    ({"features": {"x": ["a", "a"]}}, "levels.x", "a level twice"),
    ({"features": {"x": 3}}, "features", "give text or an array"),
    ({"features": KINDS, "levels": {"shop": ["a"]}}, "levels", "go with the kinds"),
    ({"model": "adaptive", "features": KINDS}, "features.shop", "list all of them, as in"),
    ({"model": "hsgp", "features": {"x": "number"}}, "parameters", "no row could be learned"),
    ({"missing": "skip"}, "missing", "give 'error' or 'fill'"),
    ({"parameters": {"bass": 1}}, "parameters.bass", "there is no parameter"),
    ({"features": {"x": "number"}, "parameters": {"prior_precision": -1.0}}, "parameters", ""),
]
REFUSED_ROWS = [
    ({**ROWS[0], "heat": "warm"}, "x.heat", "'heat' is 'warm': it must be a number"),
    ({**ROWS[0], "heat": 1e200}, "x.heat", "it must be a number within"),
    ({**ROWS[0], "open": 1}, "x.open", "it must be true or false"),
    ({**ROWS[0], "at": "yesterday"}, "x.at", "it must be a time such as"),
    ({**ROWS[0], "at": 3}, "x.at", "it must be a time such as"),
    ({**ROWS[0], "shop": None}, "x.shop", '"missing": "fill"'),
    ({**ROWS[0], "shop": "d"}, "x.shop", "give one of a, b, c"),
    ({**ROWS[0], "wind": 1.0}, "x.wind", "unknown feature 'wind': give at, shop, open, heat"),
    ({"heat": 1.0}, "x.at", "feature 'at' is missing"),
    ([1.0, 2.0], "x", "expected 4 values, got 2"),
]


def test_what_is_refused(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        async def refuse(method: str, path: str, body: Any) -> tuple[str, str]:
            answer = await service.ask(method, path, body)
            assert answer.status_code == 422, answer.text
            return answer.json()["field"], answer.json()["error"]

        for settings, field, words in REFUSED_SETTINGS:
            told = await refuse("PUT", URL, settings)
            assert (told[0], words in told[1]) == (field, True), told
        await service.put(URL, {"features": {**KINDS, "shop": [*"abc"]}})
        for x, field, words in REFUSED_ROWS:
            told = await refuse("POST", f"{URL}/learn", {"id": "1", "x": x, "y": 1.0})
            assert (told[0], words in told[1]) == (field, True), told
        assert (await service.ask("GET", URL)).json()["scores"]["n"] == 0
        # Where the schema is learned, the first row must say it.
        await service.put("/v1/predictors/learned", {})
        for x in ({"a": None}, {}, [1.0]):
            row = {"id": "1", "x": x, "y": 1.0}
            assert (await refuse("POST", "/v1/predictors/learned/learn", row))[0].startswith("x")
        await service.post("/v1/predictors/learned/learn", {"id": "1", "x": {"a": "red"}, "y": 1.0})
        row = {"id": "2", "x": {"b": 1.0}, "y": 1.0}
        told = await refuse("POST", "/v1/predictors/learned/learn", row)
        assert told == ("x.b", "unknown feature 'b': give a")

    with_service(tmp_path, do)


@pytest.mark.parametrize("call", ["log(x)", "log(1 - x)", "log(x - 5)", "sqrt(x)", "I(1 / x)"])
@pytest.mark.parametrize("settings", [{}, {"features": {"x": "number"}}, {"features": ["x"]}])
def test_a_function_that_some_numbers_have_is_no_mistake(
    tmp_path: Path, call: str, settings: Any
) -> None:
    async def do(service: Service) -> None:
        await service.put(URL, {"formula": f"y ~ {call}", **settings})
        answer = await service.ask("POST", f"{URL}/learn", {"id": "1", "x": {"x": -1.0}, "y": 1.0})
        named = {200} if call in ("log(1 - x)", "I(1 / x)") else {422}
        assert {answer.status_code} == named, answer.text

    with_service(tmp_path, do)


def test_groups_that_are_no_feature_are_named(tmp_path: Path) -> None:
    async def do(service: Service) -> None:
        asked = {"features": {"shop": "category", "heat": "number"}, "groups": "shopp"}
        answer = await service.ask("PUT", URL, asked)
        assert (answer.status_code, answer.json()["field"]) == (422, "groups"), answer.text
        assert "give one of shop, heat" in answer.json()["error"]

    with_service(tmp_path, do)
