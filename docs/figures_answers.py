"""Draw what models of groups, many features, targets and decisions answer (`make figures`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from figures import save
from matplotlib.figure import Figure

from posterity import BayesianLinearRegression, BayesianPoissonRegression, Model
from posterity.bandits import Bandit
from posterity.experiments import Experiment
from posterity.factorization import BayesianFactorizationMachine
from posterity.plots import plot_intervals
from posterity.plots._frame import finish
from posterity.plots.decisions import plot_decisions
from posterity.plots.effects import draw_band
from posterity.sparse import SparseLinearRegression


def mixed() -> Figure:
    """Slopes of subjects, and the predicted means of a subject and of a new one."""
    rng = np.random.default_rng(0)
    subject, day = np.repeat(np.arange(18), 10), np.tile(np.arange(10.0), 18)
    slope = 10.0 + 6.0 * rng.normal(size=18)
    ms = 250.0 + 25.0 * rng.normal(size=18)[subject] + slope[subject] * day
    ms += 25.0 * rng.normal(size=180)
    frame = pd.DataFrame({"ms": ms, "day": day, "subject": subject})
    model = Model("ms ~ day + (1 + day | subject)").fit(frame)
    effects = model.group_effects()
    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_intervals(effects[effects["effect"] == "day"], left, label="level")
    left.set_title("slope of each subject, less the mean", loc="left", fontsize=11)
    left.set(xlabel="ms a day", ylabel="subject")
    days = np.arange(10.0)
    for place, (who, name) in enumerate(((3, "subject 3"), (999, "a new subject"))):
        asked = pd.DataFrame({"day": days, "subject": who})
        ends = model.predict_interval(asked, of="mean").T
        draw_band(right, days, model.predict(asked), ends, 0.95, place=place, name=name)
    right.plot(days, ms[subject == 3], "o", color="black", markersize=4, label="rows of subject 3")
    finish(right, "expected time", x="day", y="ms")
    return figure


def wide() -> Figure:
    """Effects of 25 of the items on the page of many features, and what they were drawn with."""
    rng = np.random.default_rng(0)
    clicks = pd.DataFrame({"user": rng.integers(0, 300, 6000), "item": rng.integers(0, 100, 6000)})
    likes, quality = rng.normal(size=300), rng.normal(size=100)
    rating = 3.0 + likes[clicks["user"]] + quality[clicks["item"]] + 0.5 * rng.normal(size=6000)
    table = SparseLinearRegression(categorical_features="all").fit(clicks, rating).summary()
    items = [f"item={item}" for item in range(25)]
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    ax = plot_intervals(table.loc[items], figure.subplots())
    truth = quality[:25] - quality.mean()
    ax.plot(truth, np.arange(25), "x", color="C1", markersize=6, markeredgewidth=2, label="truth")
    ax.set_title("25 of 100 items", loc="left", fontsize=11)
    ax.set_xlabel("stars more than the mean item")
    ax.legend(frameon=False, fontsize=9, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return figure


def targets() -> Figure:
    """Gas and power of one row: draws of both, and power before and after gas is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    weather = rng.normal(size=300)
    noise = weather[:, None] * [1.0, 0.8, 0.0] + 0.3 * rng.normal(size=(300, 3))
    y = pd.DataFrame(
        X @ [[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]] + noise, columns=["gas", "power", "water"]
    )
    predicted = BayesianLinearRegression().fit(X, y).predict_distribution(X[:1])
    knowing = predicted.given({"gas": y["gas"][0]})
    figure = Figure(figsize=(10.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    draws = predicted.rvs(1000, rng=0)[:, 0]
    left.plot(*draws[:, :2].T, ".", markersize=3, alpha=0.5, label="1,000 draws")
    left.axvline(y["gas"][0], color="C1", linestyle="--", label="gas as it came")
    finish(left, "predicted together", x="gas", y="power")
    places = np.linspace(-2.5, 3.5, 301)
    for one, label in ((predicted, "gas unknown"), (knowing, "gas known")):
        density = [one.marginal("power").pdf(np.array([place]))[0] for place in places]
        right.plot(places, density, label=label, linestyle="-" if one is knowing else "--")
    right.axvline(y["power"][0], color="black", linewidth=1.0, label="power as it came")
    finish(right, "predicted density of power", x="power", y="density")
    return figure


def recommendations() -> Figure:
    """Ten films for one user and for a new one, with intervals of the stars."""
    rng = np.random.default_rng(0)
    user, film = rng.integers(80, size=3000), rng.integers(40, size=3000)
    tastes, kinds = rng.normal(size=(80, 2)), rng.normal(size=(40, 2))
    stars = 3.0 + (tastes[user] * kinds[film]).sum(axis=1) + 0.3 * rng.normal(size=3000)
    ratings = pd.DataFrame({"user": user, "film": film}).astype(str)
    model = BayesianFactorizationMachine(rank=2).fit(ratings, stars)
    best = model.recommend("7", 10)
    figure = Figure(figsize=(10.5, 3.9), layout="constrained")
    for ax, who in zip(figure.subplots(1, 2, sharex=True), ("7", "ann"), strict=True):
        rows = [[who, str(one)] for one in best]
        ends = model.predict_interval(rows)
        table = pd.DataFrame(
            {"mean": model.predict(rows), "low": ends[:, 0], "high": ends[:, 1]},
            index=[f"film {one}" for one in best],
        )
        plot_intervals(table, ax, reference=None)
        ax.set_title("user 7" if who == "7" else "ann, who is new", loc="left", fontsize=11)
        ax.set_xlabel("stars")
    return figure


def tariff() -> Figure:
    """Relativities of the frequency on the page of insurance."""
    rng = np.random.default_rng(0)
    policies = pd.DataFrame(
        {
            "zone": rng.choice(["city", "country", "suburb"], 3000),
            "fuel": rng.choice(["diesel", "petrol"], 3000),
        }
    )
    years = rng.uniform(0.2, 1.0, size=3000)
    in_city = (policies.zone == "city").to_numpy()
    claims = rng.poisson(years * np.exp(-1.5 + 0.5 * in_city))
    table = BayesianPoissonRegression().fit(policies, claims, exposure=years)
    table = table.relativities(policies, years)
    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    named = table.assign(name=table["factor"] + " = " + table["level"])
    ax = figure.subplots()
    plot_intervals(named, ax, estimate="relativity", label="name", reference=1.0)
    ax.set_title("Claims a year, relative to the base level", loc="left", fontsize=11)
    return figure


def bandit() -> Figure:
    """Rewards and propensities of the first example of the page of bandits."""
    rng = np.random.default_rng(0)
    model = Bandit(arms=["old", "new"], rng=1)
    rewards, largest = np.zeros(500), np.zeros(500)
    for round in range(500):
        x = {"age": rng.normal()}
        decision = model.decide(x)
        rewards[round] = (x["age"] if decision.arm == "old" else -x["age"]) + rng.normal()
        largest[round] = max(decision.propensities)
        model = model.learn_one(x, decision.arm, rewards[round])
    return plot_decisions(rewards, largest, 0.0, "")


def experiment() -> Figure:
    """Effects of two arms beside the first, as visitors came."""
    shops = np.random.default_rng(2)
    arm = shops.choice(["A", "B", "C"], size=90_000)
    bought = shops.random(90_000) < np.select([arm == "A", arm == "B"], [0.012, 0.016], 0.013)
    test = Experiment(["A", "B", "C"], planned_rows=90_000).observe_rows(arm, bought)
    table = test.effects_over_time().dropna()
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for place, (name, own) in enumerate(table.groupby("arm")):
        points = 100.0 * own[["effect", "low", "high"]].to_numpy().T
        draw_band(ax, own["rows"], points[0], points[1:], 0.95, place=place, name=f"{name} less A")
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.axvline(test.decision_.rows, color="black", linestyle=":", label="decided: B")
    ax.set_ylim(-2.0, 2.0)
    finish(ax, "Effect beside A", x="visitors", y="percentage points", columns=2)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "mixed": mixed,
    "wide": wide,
    "targets": targets,
    "recommendations": recommendations,
    "tariff": tariff,
    "bandit": bandit,
    "experiment": experiment,
}

if __name__ == "__main__":
    save(FIGURES)
