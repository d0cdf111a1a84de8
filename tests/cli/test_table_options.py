"""How tables are read, as options: calendar, lags, categories, commas, missing values, --keep."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

from posterity import BayesianLinearRegression
from posterity.cli.commands import posterity
from posterity.cli.log_target import DistributionOfExp
from posterity.distributions import Normal, Transformed

HOURS = pd.date_range("2024-01-01", periods=1500, freq="h")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(posterity, list(map(str, arguments)))


def complaint(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    """Cars an hour: rush hours, and none at weekends; the weather as a number."""
    rng = np.random.default_rng(0)
    rush = np.isin(HOURS.hour, [7, 8, 16, 17]) * 400.0 - (HOURS.day_of_week > 4) * 300.0
    weather = rng.integers(1, 4, size=len(HOURS))
    cars = 1000.0 + rush + np.array([0, 90, -60, 30])[weather] + rng.normal(0.0, 40.0, len(HOURS))
    frame = pd.DataFrame({"id": range(len(HOURS)), "when": HOURS, "weather": weather, "cars": cars})
    path = tmp_path / "traffic.csv"
    frame.to_csv(path, index=False)
    return path


def skill(path: Path, *options: object) -> float:
    result = invoke("evaluate", path, "--target", "cars", "--drop", "id", "--json", *options)
    assert result.exit_code == 0, result.output
    return float(json.loads(result.stdout)["baselines"]["mean so far"]["skill"])


def test_hours_and_weekdays_make_the_difference(traffic: Path) -> None:
    days = skill(traffic, "--dates", "days")
    calendar = skill(traffic, "--dates", "calendar")
    both = skill(traffic, "--dates", "calendar", "--categories", "weather")
    assert days < 0.1
    assert calendar > 0.6
    assert both > calendar + 0.02
    given = skill(traffic, "--dates", "calendar", "--levels", "weather=1,2,3")
    assert given == pytest.approx(both)


def test_american_dates(traffic: Path) -> None:
    frame = pd.read_csv(traffic, parse_dates=["when"])
    frame["when"] = frame["when"].dt.strftime("%m/%d/%y %H:%M")
    path = traffic.with_name("american.csv")
    frame.to_csv(path, index=False)
    line = complaint(invoke("evaluate", path, "--target", "cars"))
    assert "column 'when' looks like dates, as in '01/01/24 00:00'" in line
    assert '(--date-format "%m/%d/%y %H:%M"), or leave it out (--drop when)' in line
    options = ("--dates", "calendar", "--date-format", "%m/%d/%y %H:%M")
    assert skill(path, *options) == pytest.approx(skill(traffic, "--dates", "calendar"))


def test_lags_are_known_when_a_row_is_predicted(traffic: Path) -> None:
    result = invoke("evaluate", traffic, "--target", "cars", "--drop", "id,when", "--lag", "1, 24")
    assert "24 rows at the start were used as the past of the others only" in result.stderr
    assert "predicted from 3 features" in result.stdout
    line = complaint(
        invoke("evaluate", traffic, "--target", "cars", "--drop", "when", "--lag", 3, "--delay", 3)
    )
    assert "--lag 3 is too short" in line
    assert "not a number of rows from 1 up" in complaint(
        invoke("evaluate", traffic, "--target", "cars", "--lag", "1,x")
    )
    one = traffic.with_name("one.csv")
    one.write_text("cars\n1\n2\n")
    assert "has 2 rows: --lag needs more than 24" in complaint(
        invoke("fit", one, "--target", "cars", "--lag", 24, "--output", one.with_suffix(".p"))
    )


def test_a_model_reads_later_tables_alike(traffic: Path) -> None:
    model = traffic.with_name("cars.posterity")
    fitted = invoke(
        "fit", traffic, "--target", "cars", "--dates", "calendar", "--lag", 1, "--drop", "id",
        "--categories", "weather", "--output", model,
    )  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    assert "1,499 rows learned" in fitted.stderr
    result = invoke("predict", model, traffic, "--keep", "id,when")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [rows[0][name] for name in ("row", "id", "when")] == ["1", "1", "2024-01-01 01:00:00"]
    mean = np.array([float(row["mean"]) for row in rows])
    cars = pd.read_csv(traffic)["cars"].to_numpy()[1:]
    assert np.sqrt(np.mean((mean - cars) ** 2)) < 50.0
    assert invoke("update", model, traffic).exit_code == 0
    assert "--keep mean: predictions have a column of that name" in complaint(
        invoke("predict", model, _renamed(traffic, "id", "mean"), "--keep", "mean")
    )
    assert "column to keep 'ids' is not a column of the file; did you mean 'id'" in complaint(
        invoke("predict", model, traffic, "--keep", "ids")
    )


def _renamed(path: Path, old: str, new: str) -> Path:
    other = path.with_name("renamed.csv")
    pd.read_csv(path).rename(columns={old: new}).to_csv(other, index=False)
    return other


def test_commas_before_fractions(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("n;price\n" + "".join(f"1.{i:03};{i},25\n" for i in range(40)))
    line = complaint(invoke("evaluate", path, "--target", "price"))
    assert "the target 'price' holds text in 40 of 40 rows, first '0,25' in line 2" in line
    assert "if the comma is the decimal point, say so (--decimal ,)" in line
    line = complaint(invoke("evaluate", path, "--target", "n"))
    assert "column 'price' holds text in 40 of 40 rows, first '0,25' in line 2: if the" in line
    model = tmp_path / "m.posterity"
    options = ("--target", "price", "--decimal", ",", "--thousands", ".")
    assert invoke("fit", path, *options, "--output", model).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(invoke("predict", model, path).stdout)))
    assert float(rows[7]["mean"]) == pytest.approx(7.25, abs=0.1)


def test_commas_between_thousands(tmp_path: Path) -> None:
    path = tmp_path / "prices.csv"
    path.write_text('n,price\n"1,000",2\n"2,000",4\n"3,500",7\n')
    line = complaint(invoke("evaluate", path, "--target", "price"))
    assert "if the comma is between thousands, say so (--thousands ,)" in line
    line = complaint(invoke("evaluate", path, "--target", "n"))
    assert "thousands, say so (--thousands ,), if the comma is the decimal point, say so" in line
    assert invoke("evaluate", path, "--target", "n", "--thousands", ",").exit_code == 0


def test_labels_and_names_with_commas(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('"Item, name",x,bought\nred,1,yes\nblue,2,no\n')
    line = complaint(invoke("evaluate", path, "--target", "bought"))
    assert line.endswith(
        "the target 'bought' holds text (as 'yes'); it must contain numbers: to predict labels, "
        "say --model logistic"
    )
    result = invoke("evaluate", path, "--target", "x", "--drop", '"Item, name",bought')
    assert "no feature columns are left" in complaint(result)
    lots = tmp_path / "lots.csv"
    lots.write_text('"Item, name",x\n' + "".join(f"i{i},{i}\n" for i in range(50)))
    line = complaint(invoke("evaluate", lots, "--target", "x"))
    assert "leave it out (--drop '\"Item, name\"')" in line


def test_missing_values_are_counted_by_column(tmp_path: Path) -> None:
    path = tmp_path / "homes.csv"
    rows = "".join(f",{i},{i}\n" for i in range(9))
    path.write_text(f"pool,size,price\n{rows}ex,,9\nfa,8,8\n")
    line = complaint(invoke("evaluate", path, "--target", "price"))
    assert line.endswith("missing in the 11 rows from there: 'pool' 9, 'size' 1")
    result = invoke("evaluate", path, "--target", "price", "--missing", "mean")
    assert "9 rows were left out because a value was missing (column, holes: 'pool' 9)" in (
        result.stderr
    )
    result = invoke("evaluate", path, "--target", "price", "--missing", "level")
    assert result.stderr == (
        "note: 1 row had missing values filled in with the mean so far (column, holes: 'size' 1)\n"
    )
    assert "predicted from 4 features" in result.stdout
    model = tmp_path / "m.posterity"
    options = ("--target", "price", "--missing", "level", "--output", model)
    assert invoke("fit", path, *options).exit_code == 0
    assert invoke("predict", model, path).stdout.count("\n") == 12
    path.write_text("pool,price\n,1\n,2\n")
    line = complaint(invoke("evaluate", path, "--target", "price", "--missing", "skip"))
    assert "(column, holes in 2 rows: 'pool' 2)" in line
    assert "--drop" in line
    assert "--missing" not in line  # a column without a value has no mean


def test_a_folder_without_tables(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    assert "holds no table: give a file" in complaint(invoke("evaluate", tmp_path, "--target", "y"))


class TestLogTarget:
    """The log is learned, and everything that is said is of the target itself."""

    @pytest.fixture
    def prices(self, tmp_path: Path) -> Path:
        rng = np.random.default_rng(0)
        size, noise = rng.normal(size=600), rng.normal(size=600)
        price = np.exp(2.0 + 0.5 * size + 0.2 * noise)
        lines = [f"{a!r},{b!r}" for a, b in zip(size.tolist(), price.tolist(), strict=True)]
        path = tmp_path / "prices.csv"
        path.write_text("size,price\n" + "\n".join(lines) + "\n")
        return path

    def test_it_scores_the_target(self, prices: Path, tmp_path: Path) -> None:
        given = ("--target", "price", "--json", "--quiet")
        plain, logged = (
            json.loads(invoke("evaluate", prices, *given, *more).stdout)
            for more in ((), ("--log-target",))
        )
        assert logged["log_score"] > plain["log_score"] + 0.3
        assert logged["mae"] < 0.8 * plain["mae"]
        assert logged["crps"] < 0.8 * plain["crps"]
        assert logged["coverage"]["0.95"] == pytest.approx(0.95, abs=0.02)
        table = np.loadtxt(prices, delimiter=",", skiprows=1)
        model = BayesianLinearRegression()
        of_logs = model.predict_then_learn(table[:, :1], np.log(table[:, 1]))[50:]
        scores = of_logs.logpdf(np.log(table[50:, 1])) - np.log(table[50:, 1])
        assert logged["log_score"] == pytest.approx(scores.mean(), abs=0.1)

    def test_a_model_of_logs_predicts_the_target(self, prices: Path, tmp_path: Path) -> None:
        model, other = tmp_path / "m.posterity", tmp_path / "other.posterity"
        done = invoke("fit", prices, "--target", "price", "--log-target", "--output", model)
        assert done.exit_code == 0, done.stderr
        predicted = np.genfromtxt(
            io.StringIO(invoke("predict", model, prices, "--quantile", "0.5").stdout),
            delimiter=",",
            names=True,
        )
        table = np.loadtxt(prices, delimiter=",", skiprows=1)
        twin = BayesianLinearRegression().partial_fit(table[:, :1], np.log(table[:, 1]))
        of_log = twin.predict_distribution(table[:, :1])
        np.testing.assert_allclose(predicted["q05"], np.exp(of_log.ppf(0.5)), rtol=1e-6)
        np.testing.assert_allclose(predicted["upper"], np.exp(of_log.interval(0.95)[1]), rtol=1e-6)
        np.testing.assert_allclose(predicted["median"], predicted["q05"])
        assert "mean" not in predicted.dtype.names
        assert "the log of price" in invoke("show", model).stdout
        assert invoke("update", model, prices, "--output", other).exit_code == 0
        coefficients = json.loads(invoke("show", other, "--json").stdout)["coefficients"]
        assert coefficients[1]["mean"] == pytest.approx(0.5, abs=0.05)
        unlearned = invoke("unlearn", other, prices)
        assert unlearned.exit_code == 0, unlearned.stderr
        plain = tmp_path / "plain.posterity"
        invoke("fit", prices, "--target", "price", "--output", plain)
        merged = invoke("merge", model, plain, "--output", tmp_path / "both.posterity")
        assert "differ in their --log-target" in merged.stderr

    def test_the_report_says_so(self, prices: Path, tmp_path: Path) -> None:
        pytest.importorskip("vl_convert")
        page = tmp_path / "report.html"
        done = invoke("evaluate", prices, "--target", "price", "--log-target", "--report", page)
        assert done.exit_code == 0, done.stderr
        text = page.read_text()
        assert "coefficient (log of price per sd of the feature)" in text
        assert "the log of price" in text

    def test_what_has_no_log(self, prices: Path, tmp_path: Path) -> None:
        for model in ("logistic", "poisson", "quantile:0.9"):
            line = invoke("evaluate", prices, "--target", "price", "--log-target", "--model", model)
            assert "--log-target is for models of numbers" in line.stderr
        prices.write_text("size,price\n1.0,2.0\n2.0,0.0\n3.0,1.0\n")
        line = invoke("evaluate", prices, "--target", "price", "--log-target")
        assert "a target is 0, and --log-target takes its log: all must be above 0" in line.stderr

    def test_the_score_of_a_log_normal(self) -> None:

        base, y = Normal([0.5, 1.0, 2.0], [0.2, 0.5, 1.0]), np.array([1.0, 3.0, 20.0])
        by_integral = Transformed(base, np.exp, np.log).crps(y)
        np.testing.assert_allclose(DistributionOfExp(base).crps(y), by_integral, rtol=2e-3)
        assert np.isnan(DistributionOfExp(Normal([0.0], [3.0])).crps(y[:1])).all()
