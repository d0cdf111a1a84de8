"""Tasks that newcomers bring, as they would type them from the README alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import posterity

pd = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)


def run(*words: Any) -> str:
    """What the command prints, which must not fail."""
    pytest.importorskip("pyarrow")
    testing = pytest.importorskip("click.testing")
    from posterity.cli.commands import posterity as command

    result = testing.CliRunner().invoke(command, [str(word) for word in words])
    assert result.exit_code == 0, result.stderr
    return str(result.stdout)


# ---- a file of sales from a German till, and totals by region ------------------------------------

SHOPS = {"Köln": "Nord", "Bonn": "Nord", "Ulm": "Süd", "Hof": "Süd"}


def write_till(path: Path) -> None:
    lines = ["Filiale;Region;Datum;Umsatz"]
    for day in pd.date_range("2024-01-01", periods=70):
        for shop, region in SHOPS.items():
            sold = RNG.gamma(20.0, 60.0 + 20.0 * (day.day_of_week > 4))
            value = "k.A." if RNG.random() < 0.01 else f"{sold:,.2f}".translate({44: 46, 46: 44})
            lines.append(f"{shop};{region};{day:%d.%m.%Y};{value}")
    path.write_text("\n".join([*lines, "Summe;;;1,00"]), encoding="utf-8-sig")


def test_sales_of_28_days_and_totals_by_region(tmp_path: Path) -> None:
    write_till(tmp_path / "umsatz.csv")
    reading = ("--decimal", ",", "--thousands", ".", "--na", "k.A.", "--date-format", "%d.%m.%Y")
    how = ("--target", "Umsatz", "--time", "Datum", "--series", "Filiale", "--horizon", 28)
    how += ("--sum", "Region", "--drop-total", *reading)
    run("forecast", tmp_path / "umsatz.csv", *how, "--output", tmp_path / "next.csv")
    table = pd.read_csv(tmp_path / "next.csv").set_index("Filiale")
    names = {*SHOPS, "Nord", "Süd"}
    assert names <= set(table.index)
    totals = table.groupby(level=0)["mean"].sum()
    assert totals["Nord"] == pytest.approx(totals["Köln"] + totals["Bonn"])


# ---- clicks with a million levels ----------------------------------------------------------------


def make_clicks(n: int, levels: int) -> tuple[Any, Any]:
    site, advert = RNG.integers(levels, size=n), RNG.integers(50, size=n)
    logit = RNG.normal(-2.0, 0.7, levels)[site] + RNG.normal(0.0, 0.5, 50)[advert]
    table = pd.DataFrame({"site": site.astype(str), "advert": advert.astype(str)})
    return table, (RNG.random(n) < 1.0 / (1.0 + np.exp(-logit))).astype(int)


@pytest.mark.parametrize(
    ("n", "levels"), [(5_000, 500), pytest.param(1_500_000, 1_000_000, marks=pytest.mark.slow)]
)
def test_clicks_in_pieces_as_they_come(n: int, levels: int) -> None:
    from posterity.sparse import DiagonalLogisticRegression

    table, clicked = make_clicks(n, levels)
    model, said = DiagonalLogisticRegression(), []
    for start in range(0, n, n // 10):
        rows = slice(start, start + n // 10)
        said.append(model.predict_then_learn(table[rows], clicked[rows]).probabilities[:, 1])
    expected = np.concatenate(said)[n // 2 :]
    assert expected.mean() == pytest.approx(clicked[n // 2 :].mean(), abs=0.03)
    low, high = model.predict_interval(table[:1])[0]
    assert 0.0 < low < high < 1.0


# ---- repeated measures, and what lme4 calls them -------------------------------------------------


def test_reaction_times_by_formula() -> None:
    subject = np.repeat([f"S{k:02d}" for k in range(24)], 20)
    condition = np.tile(["congruent", "incongruent"], 240)
    own = RNG.normal(0.0, 60.0, 24).repeat(20)
    rt = 600.0 + own + 40.0 * (condition == "incongruent") + 30.0 * RNG.normal(size=480)
    trials = pd.DataFrame({"rt": rt, "condition": condition, "subject": subject})
    model = posterity.Model("rt ~ condition + (1 + condition | subject)").fit(trials)
    effect = model.summary().loc["condition[incongruent]"]
    assert 20.0 < effect["low"] < effect["high"] < 60.0
    assert model.variance_components()["high"].notna().all()
    assert "incongruent" in model.report()
    again = posterity.Model(model.formula).fit(trials[:240]).partial_fit(trials[240:])
    assert again.predict(trials[:3]) == pytest.approx(model.predict(trials[:3]), rel=1e-6)


# ---- insurance: frequency times severity ---------------------------------------------------------


def test_a_tariff_from_policies_and_claims() -> None:
    rng = np.random.default_rng(0)  # of its own: other tests change what comes next
    zone, fuel = rng.choice(["city", "country"], 4000), rng.choice(["diesel", "petrol"], 4000)
    policies = pd.DataFrame({"zone": zone, "fuel": fuel})
    years = rng.uniform(0.2, 1.0, 4000)
    claims = rng.poisson(years * np.where(policies["zone"] == "city", 0.3, 0.15))
    frequency = posterity.BayesianPoissonRegression().fit(policies, claims, exposure=years)
    table = frequency.relativities(policies, years).set_index(["factor", "level"])["relativity"]
    assert table["zone", "city"] / table["zone", "country"] == pytest.approx(2.0, rel=0.2)
    hit = claims > 0
    cost = rng.gamma(2.0, 500.0, hit.sum())
    severity = posterity.BayesianGeneralizedLinear("gamma").fit(
        policies[hit], cost, sample_weight=claims[hit]
    )
    premium = frequency.predict(policies, exposure=1.0) * severity.predict(policies)
    assert premium.mean() == pytest.approx(0.225 * 1000.0, rel=0.15)


# ---- from river ----------------------------------------------------------------------------------


def test_in_a_pipeline_of_river_a_coefficient_turns() -> None:
    pytest.importorskip("river")
    from river import metrics, preprocessing

    from posterity.adapters.river import BayesianLinearRegression

    model = preprocessing.StandardScaler() | BayesianLinearRegression(forgetting="adaptive")
    early, late = metrics.MAE(), metrics.MAE()
    for k in range(1200):
        x = {"a": RNG.normal(), "b": RNG.normal()}
        y = 3.0 * x["a"] + (2.0 if k < 600 else -2.0) * x["b"] + 0.5 * RNG.normal()
        (early if k < 600 else late).update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert late.get() < 1.5 * early.get() < 1.5


# ---- two hundred features along ten years --------------------------------------------------------


@pytest.mark.parametrize("p", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_returns_that_are_predicted_before_they_come(p: int) -> None:
    X = RNG.normal(size=(12 * p, p))
    drifting = np.cumsum(0.02 * RNG.normal(size=X.shape), axis=0)
    y = (X * drifting).sum(axis=1) + 0.3 * RNG.normal(size=len(X))
    scores = {
        memory: posterity.BayesianLinearRegression(forgetting=memory)
        .predict_then_learn(X, y)
        .logpdf(y)[2 * p :]
        .mean()
        for memory in (None, "exponential:0.99", "adaptive")
    }
    assert scores["adaptive"] > scores[None]
    assert scores["exponential:0.99"] > scores[None]


# ---- three pages, 1.2% of whose visitors buy, looked at every day -------------------------------


def test_rare_purchases_that_are_looked_at_every_day(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({"variant": rng.choice(["A", "B", "C"], size=20_000)})
    bought = rng.random(20_000) < np.where(visits["variant"] == "B", 0.03, 0.012)
    visits["bought"] = np.where(bought, "yes", "no")
    visits["device"] = rng.choice(["phone", "desk", None], size=20_000, p=[0.7, 0.29, 0.01])
    plan = run("plan", "--baseline", 0.012, "--effect", 0.018, "--arms", 3)
    planned = int(plan.split()[0].replace(",", ""))
    assert 4_000 < planned < 20_000
    how = ("--arm", "variant", "--reward", "bought", "--planned-rows", planned)
    file, days = tmp_path / "visits.csv", []
    for last in (100, 2000, 20_000):
        visits[:last].to_csv(file, index=False)
        days.append(run("experiment", file, *how, "--covariates", "device", "--missing", "level"))
    assert "What to do next: go on; there are too few rows yet to tell anything." in days[0]
    assert "Nothing is decided" in days[1]
    assert "What to do next: go on" in days[1]
    assert "B is better than all others." in days[2]
    assert "What to do next: take B." in days[2]
    assert all(f"B beats {other}: +" in days[2] for other in "AC")
    assert "A against C: not decided" in days[2] or "C against A: not decided" in days[2]
    assert "best" not in days[1]  # a probability beside "nothing is decided" misleads
    alike = visits.assign(bought=rng.random(20_000) < 0.012)
    alike.to_csv(file, index=False)
    assert "Nothing is decided" in run("experiment", file, *how)
