"""The verb that forecasts series."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="needs click (posterity[cli])")
pytest.importorskip("rich", reason="needs rich (posterity[cli])")
pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from posterity.cli.commands import posterity as command
from posterity.forecasting import Forecaster

N = 70


def invoke(*arguments: object, **keywords: Any) -> Result:
    return CliRunner().invoke(command, ["forecast", *map(str, arguments)], **keywords)


def rows_of(result: Result) -> list[dict[str, str]]:
    assert result.exit_code == 0, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def complaint(*arguments: object) -> str:
    result = invoke(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("posterity: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def sold() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    week = 10.0 * np.sin(2.0 * np.pi * np.arange(N) / 7.0)
    return {shop: (50.0 + week + rng.normal(size=N)).round(3) for shop in ("Bern", "Lyon")}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two shops, their days out of order."""
    days = np.datetime64("2026-01-01") + np.arange(N)
    lines = [f"{d},{shop},{y}" for shop, each in sold().items() for d, y in zip(days, each)]  # noqa: B905
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(["day,shop,sold", *lines[::-1]]) + "\n")
    return path


def test_it_says_what_the_forecaster_says(table: Path) -> None:
    options = ("--target", "sold", "--time", "day", "--series", "shop", "--horizon", 3)
    rows = rows_of(invoke(table, *options, "--level", 0.8, "--quantile", 0.25))
    expected = Forecaster(seasonality=7).fit(sold()).forecast(3)
    assert list(rows[0]) == ["shop", "day", "median", "mean", "std", "lower", "upper", "q0.25"]
    assert [row["shop"] for row in rows] == ["Bern"] * 3 + ["Lyon"] * 3
    assert [row["day"] for row in rows[:3]] == ["2026-03-12", "2026-03-13", "2026-03-14"]
    for name, values in {
        "median": expected.median(),
        "lower": expected.interval(0.8)[0],
        "q0.25": expected.quantile(0.25),
    }.items():
        np.testing.assert_allclose([float(row[name]) for row in rows], values.ravel(), rtol=1e-9)
    seasonal = rows_of(invoke(table, *options, "--seasonality", 5))
    assert seasonal[0]["median"] != rows[0]["median"]


def test_without_times_rows_are_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    pairs = zip(*sold().values(), strict=True)
    lines = [f"{1 + shop},{y}" for pair in pairs for shop, y in enumerate(pair)]
    path.write_text("\n".join(["shop,sold", *lines]) + "\n")
    options = ("--target", "sold", "--series", "shop", "--horizon", 2, "--seasonality", 7)
    rows = rows_of(invoke(path, *options))
    expected = Forecaster(seasonality=7).fit(sold()).forecast(2)
    assert [(row["shop"], row["row"]) for row in rows[:3]] == [
        ("1", "70"),
        ("1", "71"),
        ("2", "70"),
    ]
    medians = [float(row["median"]) for row in rows]
    np.testing.assert_allclose(medians, expected.median().ravel(), rtol=1e-9)
    single = "sold\n" + "\n".join(map(str, sold()["Bern"])) + "\n"
    alone = rows_of(invoke("-", "--target", "sold", "--horizon", 2, input=single))
    assert list(alone[0])[:2] == ["row", "median"]


def test_features_of_text_are_levels(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    offers = np.where(rng.random(N + 2) < 0.3, "half price", "none")
    y = 30.0 + 20.0 * (offers == "half price") + 0.1 * rng.normal(size=N + 2)
    days = np.datetime64("2026-01-01") + np.arange(N + 2)
    lines = [f"{day},{offer},{v:.3f}" for day, offer, v in zip(days, offers, y, strict=True)]
    past, plan = tmp_path / "past.csv", tmp_path / "plan.csv"
    past.write_text("\n".join(["day,offer,sold", *lines[:N]]) + "\n")
    plan.write_text("\n".join(["day,offer,sold", *lines[N:]]) + "\n")
    options = ("--target", "sold", "--time", "day", "--horizon", 2, "--features", "offer")
    rows = rows_of(invoke(past, *options, "--future", plan))
    np.testing.assert_allclose([float(row["median"]) for row in rows], y[N:], atol=1.5)


def test_features_and_their_future(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    price = rng.integers(1, 4, size=N + 2)
    y = 30.0 - 5.0 * price + 0.1 * rng.normal(size=N + 2)
    hours = np.datetime64("2026-01-01T00") + np.arange(N + 2)
    lines = [f"{h}:00,{p},{v}" for h, p, v in zip(hours, price, y, strict=True)]
    past, plan = tmp_path / "past.csv", tmp_path / "plan.csv"
    past.write_text("\n".join(["hour,price,sold", *lines[:N]]) + "\n")
    plan.write_text("\n".join(["hour,price,sold", *lines[N:]]) + "\n")
    output = tmp_path / "next.parquet"
    options = ("--target", "sold", "--time", "hour", "--horizon", 2, "--features", "price")
    result = invoke(past, *options, "--future", plan, "--output", output)
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    found = pq.read_table(output).to_pydict()
    np.testing.assert_allclose(found["median"], y[N:], atol=1.5)
    assert str(found["hour"][0]) == "2026-01-03 22:00:00"
    assert "--features needs --future FILE" in complaint(past, *options)
    plan.write_text("\n".join(["hour,price,sold", lines[N]]) + "\n")
    assert "no value of 'price'" in complaint(past, *options, "--future", plan)


def test_holidays_and_events_have_effects(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("holidays", reason="needs posterity[holidays]")
    own = tmp_path / "own.csv"
    own.write_text("ds,event\n2026-01-20,sale\n2026-02-10,sale\n2026-03-13,sale\n")
    options = ("--target", "sold", "--time", "day", "--series", "shop", "--horizon", 3)
    plain = rows_of(invoke(table, *options))
    rows = rows_of(invoke(table, *options, "--holidays", "DE", "--events", own))
    assert [row["median"] for row in rows] != [row["median"] for row in plain]
    assert "no such country" in complaint(table, *options, "--holidays", "Atlantis")


def test_sold_out_days_and_a_capacity(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    asked, stock = rng.normal(60.0, 10.0, size=N), 60.0
    users = 1000.0 / (1.0 + np.exp(2.0 - 0.06 * np.arange(N) + 0.05 * rng.normal(size=N)))
    path = tmp_path / "sales.csv"
    lines = [
        f"{min(one, stock)},{int(one >= stock)},{n}" for one, n in zip(asked, users, strict=True)
    ]
    path.write_text("\n".join(["sold,empty,users", *lines]) + "\n")
    options = ("--target", "sold", "--horizon", 2)
    found = float(rows_of(invoke(path, *options, "--censored", "empty"))[0]["median"])
    sold_out = (asked >= stock)[:, None] * 1.0
    model = Forecaster(censored="x0").fit(np.minimum(asked, stock), sold_out)
    np.testing.assert_allclose(found, model.predict(2)[0], rtol=1e-9)
    assert found > float(rows_of(invoke(path, *options))[0]["median"]) + 1.0
    assert "did you mean 'empty'" in complaint(path, *options, "--censored", "empti")
    options = ("--target", "users", "--horizon", 40)
    rows = rows_of(invoke(path, *options, "--capacity", 1000))
    assert max(float(row["upper"]) for row in rows) < 1000.0
    assert "capacity is 500, and the series has" in complaint(path, *options, "--capacity", 500)
    assert "and the floor, 2000" in complaint(path, *options, "--capacity", 1000, "--floor", 2000)


def test_sums_by_a_column(tmp_path: Path) -> None:
    days = np.datetime64("2026-01-01") + np.arange(N)
    lines = [
        f"{day},{shop},{'south' if shop == 'Lyon' else 'north'},{y}"
        for shop, each in (*sold().items(), ("Oslo", sold()["Bern"][::-1]))
        for day, y in zip(days, each, strict=True)
    ]
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(["day,shop,region,sold", *lines]) + "\n")
    options = ("--target", "sold", "--time", "day", "--series", "shop", "--horizon", 2)
    rows = rows_of(invoke(path, *options, "--sum", "region"))
    assert [row["shop"] for row in rows[::2]] == ["Bern", "Lyon", "Oslo", "north", "south"]
    assert rows[:6] == rows_of(invoke(path, *options))  # the series' own rows stay as they are
    mean = {(row["shop"], row["day"]): float(row["mean"]) for row in rows}
    day = rows[0]["day"]
    np.testing.assert_allclose(mean["north", day], mean["Bern", day] + mean["Oslo", day])
    alone = ("--target", "sold", "--time", "day", "--horizon", 2)
    assert "--sum needs --series" in complaint(path, *alone, "--sum", "region")
    path.write_text(path.read_text().replace("2026-01-05,Bern,north", "2026-01-05,Bern,south"))
    assert "series 'Bern' has several values" in complaint(path, *options, "--sum", "region")


def test_the_report(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs posterity[report]")
    page = tmp_path / "next.html"
    options = ("--target", "sold", "--time", "day", "--series", "shop", "--horizon", 3)
    result = invoke(table, *options, "--report", page, "--output", tmp_path / "next.csv")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == f"The report is in {page}\n"
    html = page.read_text()
    for words in (
        "What comes?",
        "95% intervals held",
        "Bern: what came",
        "Bern: season 7",
        "--horizon 3",
    ):
        assert words in html


def test_the_report_of_days_with_a_year(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason="needs posterity[report]")
    rng = np.random.default_rng(0)
    days = np.datetime64("2023-01-01") + np.arange(800)
    sold = 50.0 + 10.0 * np.sin(2.0 * np.pi * np.arange(800) / 365.25) + rng.normal(size=800)
    path, page = tmp_path / "sales.csv", tmp_path / "next.html"
    sold[[100, 465]] += 20.0
    sold[300] += 80.0
    sold[600:] += 40.0
    lines = [f"{day},{y:.2f}" for day, y in zip(days, sold, strict=True)]
    path.write_text("\n".join(["day,sold", *lines]) + "\n")
    fairs = tmp_path / "fairs.csv"
    fairs.write_text(f"ds,event\n{days[100]},fair\n{days[465]},fair\n")
    options = ("--target", "sold", "--time", "day", "--horizon", 7, "--report", page)
    result = invoke(path, *options, "--events", fairs)
    assert result.exit_code == 0, result.stderr
    html = page.read_text()
    for words in ("season 365.243", ">fair<", "is left out", "a new level begins"):
        assert words in html


def test_gaps_are_noted(table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    del lines[10]
    table.write_text("\n".join(lines) + "\n")
    options = ("--target", "sold", "--time", "day", "--series", "shop", "--horizon", 3)
    result = invoke(table, *options)
    assert result.stderr.startswith("note: times are 1 day apart, and there are gaps: after 2026")
    assert len(rows_of(result)) == 6


@pytest.mark.parametrize(
    "time_type",
    [
        pa.timestamp("ns"),
        pa.timestamp("us", tz="UTC"),
        pa.date32(),
        pa.int32(),
    ],
    ids=str,
)
def test_times_keep_their_type(tmp_path: Path, time_type: pa.DataType) -> None:
    times = (
        np.arange(N) if pa.types.is_integer(time_type) else np.datetime64("2026-01-01") + range(N)
    )
    column = pa.array(times).cast(time_type)
    pq.write_table(pa.table({"day": column, "sold": sold()["Bern"]}), tmp_path / "in.parquet")
    options = ("--target", "sold", "--time", "day", "--horizon", 3)
    result = invoke(tmp_path / "in.parquet", *options, "--output", tmp_path / "out.parquet")
    assert result.exit_code == 0, result.stderr
    ahead = pq.read_table(tmp_path / "out.parquet")["day"]
    assert ahead.type == time_type
    assert ahead.to_pylist() == pa.array(times[-1] + np.arange(1, 4)).cast(time_type).to_pylist()
    assert rows_of(invoke(tmp_path / "in.parquet", *options))[0]["day"] in ("2026-03-12", "70")


@pytest.mark.parametrize(
    ("options", "both"),
    [
        (("--target", "day", "--time", "day"), "--target and --time both name the column 'day'"),
        (("--series", "day", "--time", "day"), "--time and --series both"),
        (("--time", "day", "--features", "day", "--future", "f.csv"), "--time and --features both"),
    ],
)
def test_options_name_different_columns(table: Path, options: tuple[str, ...], both: str) -> None:
    assert both in complaint(table, "--target", "sold", *options, "--horizon", 3)


def test_what_is_refused(table: Path, tmp_path: Path) -> None:
    shops = ("--target", "sold", "--time", "day", "--horizon", 3)
    assert "name the series of each row (--series)" in complaint(table, *shops)
    lost = ("--target", "sold", "--time", "dya", "--horizon", 3)
    assert "column 'dya' is not a column of the file; did you mean 'day'?" in complaint(
        table, *lost
    )
    text = ("--target", "shop", "--time", "day", "--horizon", 3)
    assert "column 'shop' holds text (as 'Lyon'); it must contain numbers: give a" in complaint(
        table, *text
    )
    words = ("--target", "sold", "--time", "shop", "--horizon", 3)
    assert "times such as 'Lyon' can't be read" in complaint(table, *words)
    table.write_text("day,sold\n2026-01-01,1\n2026-01-02,\n")
    assert "has 1 value: a forecast needs at least 4" in complaint(table, *shops)


@pytest.mark.parametrize(
    ("first", "wanted"), [("1975-08", ["1976-08", "1976-09"]), ("3-08", ["4-08", "4-09"])]
)
def test_months_come_back_as_they_are_written(
    first: str, wanted: list[str], tmp_path: Path
) -> None:
    year = int(first.partition("-")[0])
    months = [f"{year + (7 + i) // 12}-{(7 + i) % 12 + 1:02d}" for i in range(12)]
    table = tmp_path / "sales.csv"
    table.write_text("month,y\n" + "".join(f"{month},{i % 5}\n" for i, month in enumerate(months)))
    result = CliRunner().invoke(
        command, ["forecast", str(table), "--target", "y", "--time", "month", "--horizon", "2"]
    )
    assert result.exit_code == 0, result.stderr
    assert [row["month"] for row in csv.DictReader(io.StringIO(result.stdout))] == wanted
