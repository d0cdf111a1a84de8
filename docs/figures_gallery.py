"""Draw the figures of the gallery into docs/_static (``python docs/figures_gallery.py [NAME]``)."""

from __future__ import annotations

import csv
import gzip
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import BayesianRidge
from sklearn.preprocessing import PolynomialFeatures

from posterity import BayesianLinearRegression, Forecaster
from posterity.basis import Polynomial
from posterity.calibration import Conformal
from posterity.cli.drift import CHANGE, compare, drift_stream
from posterity.evaluation import follow_coefficients, progressive_validation
from posterity.evidence import Maximized
from posterity.forgetting import Adaptive, Changepoint
from posterity.plots import (
    plot_changepoints,
    plot_coefficients_along_time,
    plot_components,
    plot_coverage_along_time,
    plot_forecast,
    plot_posterior_density,
    plot_predictions,
    plot_residuals,
)
from posterity.plots.drift import plot_errors

FOLDER = Path(__file__).parent / "_static"
STRETCH = 500


def row_by_row() -> Figure:
    """The posterior of a row is the next one's prior: a line after 0 to 7 rows."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.0, 1.0, size=(7, 1))
    y = -0.3 + 0.5 * x[:, 0] + rng.normal(scale=0.2, size=7)
    line = BayesianLinearRegression(
        prior_precision=2.0, noise_precision=25.0, fit_intercept=False, basis=PolynomialFeatures(1)
    )
    line.learn_one(x[0], y[0], weight=0.0)
    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    for n, panel in enumerate(figure.subplots(2, 4, sharex=True, sharey=True).ravel()):
        if n:
            line.learn_one(x[n - 1], y[n - 1])
        panel.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))
        plot_posterior_density(line, panel, truth=(-0.3, 0.5))
        panel.set(xlabel="intercept" if n > 3 else "", ylabel="" if n % 4 else "slope")
        panel.set_title(f"{n} row{'s' * (n != 1)}", loc="left", fontsize=10)
        if n:
            panel.get_legend().remove()
    return figure


def maximised() -> Figure:
    """Evidence maximisation for degree 4 on 30 points, beside scikit-learn's BayesianRidge."""
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(30, 1))
    y = 0.5 + np.sin(2.0 * np.pi * x[:, 0]) + rng.normal(scale=0.2, size=30)
    places = np.linspace(0.0, 1.0, 201)
    truth = 0.5 + np.sin(2.0 * np.pi * places)
    basis = Polynomial(degree=4, domain=(0.0, 1.0))
    model = BayesianLinearRegression(prior_precision=Maximized(), basis=basis).fit(x, y)
    ridge = BayesianRidge(max_iter=10_000, tol=1e-10).fit(basis.fit_transform(x), y)
    mean, std = ridge.predict(basis.transform(places[:, None]), return_std=True)
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    plot_predictions(model, places, left, data=(x, y), truth=truth, levels=(0.95,))
    left.set_title("evidence maximised by posterity", loc="left", fontsize=11)
    right.fill_between(places, mean - 1.96 * std, mean + 1.96 * std, color="0.8", label="95%")
    right.plot(places, mean, color="black", label="mean")
    right.plot(places, truth, color="black", linestyle="--", linewidth=1.0, label="truth")
    right.plot(x[:, 0], y, "k.")
    right.set_title("scikit-learn's BayesianRidge", loc="left", fontsize=11)
    right.legend(frameon=False, fontsize=9)
    for panel in (left, right):
        panel.set(xlabel="x", ylabel="y" if panel is left else "")
    return figure


def simulated_coverage() -> Figure:
    """Coverage of 95% intervals along 5,000 rows of a world that is as the model believes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 5))
    y = X @ [1.0, -1.0, 0.5, 2.0, 0.0] + rng.normal(scale=0.5, size=5000)
    result = progressive_validation(BayesianLinearRegression(), X, y)
    figure = Figure(figsize=(8.5, 4.0), layout="constrained")
    ax = plot_coverage_along_time(result, figure.subplots())
    ax.set(ylim=(0.85, 1.0), yticks=[0.85, 0.9, 0.95, 1.0])
    return figure


def california() -> Figure:
    """Coverage of 95% intervals along California housing, plain and wrapped."""
    with np.load(
        Path(os.environ["POSTERITY_DATA"]) / "housing/california_sklearn_form.npz"
    ) as file:
        X, y = file["X"], file["y"]
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=5.0, fit_intercept=False)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    ax = figure.subplots()
    drawn = ((model, "plain", "#d55e00", "--"), (Conformal(model), "Conformal", "#0072b2", "-"))
    for estimator, name, color, line in drawn:
        low, high = estimator.predict_then_learn(X, y).interval(0.95)
        held = (low <= y) & (y <= high)
        stretches = held[: len(y) // STRETCH * STRETCH].reshape(-1, STRETCH).mean(axis=1)
        label = f"{name}: {held.mean():.1%} of all rows"
        rows = STRETCH * (0.5 + np.arange(len(stretches)))
        ax.plot(rows, stretches, line, color=color, label=label)
    ax.axhline(0.95, color="black", linewidth=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.set(ylim=(0.4, 1.0), xlabel="row, in file order", ylabel=f"rows held, of {STRETCH}")
    ax.set_title("California housing: 95% intervals", loc="left", fontsize=11)
    ax.legend(loc="lower right", frameon=False)
    return figure


def drift() -> Figure:
    """Errors along the drift stream of a tutorial, the figure of `posterity demo drift`."""
    errors = {trial.name: trial.errors for trial in compare(*drift_stream())}
    return plot_errors(errors, CHANGE, "A line turns into another")


def drifting() -> tuple[np.ndarray, np.ndarray]:
    """A slope that changes at once after 300 of 600 rows."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, size=(600, 1))
    slope = np.where(np.arange(600) < 300, 1.0, -1.0)
    return X, slope * X[:, 0] + rng.normal(scale=0.3, size=600)


def change() -> Figure:
    """Coefficients along time, and where the regression changed."""
    X, y = drifting()
    figure = Figure(figsize=(9.0, 8.0), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True, height_ratios=[2.0, 2.0, 1.3])
    for panel, forgetting in zip(panels, (None, Adaptive()), strict=False):
        path = follow_coefficients(BayesianLinearRegression(forgetting=forgetting), X, y)
        truth = np.where(path.row_end <= 300, 1.0, -1.0)[:, None]
        plot_coefficients_along_time(path, panel, truth=truth)
        how = "nothing forgotten" if forgetting is None else "forgetting=Adaptive()"
        panel.set(title="", xlabel="", ylim=(-1.6, 1.6))
        panel.set_title(how, loc="left", fontsize=11)
    model = BayesianLinearRegression(forgetting=Changepoint())
    model.predict_then_learn(X, y)
    plot_changepoints(model.change_probability_, panels[2])
    return figure


def residuals() -> Figure:
    """A straight line through a bend with heavy tails: what residuals say."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(1500, 1))
    y = X[:, 0] + X[:, 0] ** 2 + 0.2 * rng.standard_t(3, size=1500)
    told = BayesianLinearRegression().predict_then_learn(X, y)
    figure = Figure(figsize=(11.0, 4.0), layout="constrained")
    for panel, against in zip(figure.subplots(1, 2), ("mean", "quantiles"), strict=True):
        plot_residuals(told, y, panel, against=against)
    return figure


def validated() -> Figure:
    """A result, drawn by one call."""
    X, y = drifting()
    result = progressive_validation(BayesianLinearRegression(), X, y)
    return result.plot("A slope that changes after 300 rows")


def next_week() -> Figure:
    """Sales of a shop, and the fan of the two weeks that follow."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2026-01-01") + np.arange(126)
    sold = 130.0 + 20.0 * np.sin(2.0 * np.pi * np.arange(126) / 7.0) + 9.0 * rng.normal(size=126)
    forecast = Forecaster(seasonality=7).fit(sold[:112]).forecast(14)
    dated = replace(forecast, times=days[112:])
    figure = Figure(figsize=(8.0, 3.6), layout="constrained")
    axes = plot_forecast(
        dated, figure.subplots(), history=sold[77:112], outcomes=sold[112:], unit="pieces sold"
    )
    axes.set_title("What comes in the next two weeks, and what came", loc="left", fontsize=10)
    axes.legend(loc="upper left", ncols=3, fontsize=8)
    return figure


def daily_sales() -> Figure:
    """What the next four weeks of a shop are the sum of, with its holidays and promotions."""
    import pandas as pd

    from posterity.forecasting.holidays import Events
    from posterity.forecasting.reading import read

    rng = np.random.default_rng(0)
    days = pd.date_range("2023-01-01", "2026-01-31")
    panel = read(pd.DataFrame({"ds": days, "y": rng.normal(size=len(days))}))
    known = Events.of("DE", None, panel)
    free, eve = (
        known.add_to(panel).columns[0, :, known.names.index(name)] > 0
        for name in ("any holiday", "day before a holiday")
    )
    week = np.array([1.0, 0.95, 0.95, 1.0, 1.25, 1.45, 0.8])[days.day_of_week]
    year = 1.0 + 0.15 * np.sin(2 * np.pi * (days.day_of_year - 100) / 365.25)
    discount = rng.random(len(days)) < 0.08
    sold = 180.0 * week * year * np.where(discount, 1.4, 1.0) * np.where(eve, 1.3, 1.0)
    sold = np.where(free, 0.4, 1.0) * sold * np.exp(0.08 * rng.normal(size=len(days)))
    table = pd.DataFrame({"ds": days, "y": sold, "discount": discount.astype(float)})
    past, plan = table[days <= "2025-12-17"], table[days > "2025-12-17"][:28]
    forecast = Forecaster(holidays="DE").fit(past).forecast(28, X_future=plan)
    return plot_components(forecast, unit="euros")


def read_series(file: str, row: int) -> np.ndarray:
    """The numbers in a row of a table of series."""
    with gzip.open(Path(os.environ["POSTERITY_DATA"]) / "forecasting" / file, "rt") as table:
        words = list(csv.reader(table))[row][1:]
    words = words[-1].split() if words[0] in {"train", "test"} else words
    return np.array([word for word in words if word not in {"", "NA"}], dtype=np.float64)


def competitions() -> Figure:
    """A series of each of three competitions, drawn at random, its fan, and what came."""
    rng, figure = np.random.default_rng(2026), Figure(figsize=(8.0, 9.0), layout="constrained")
    hourly, weekly, monthly = (int(rng.integers(1, n + 1)) for n in (414, 359, 1428))
    panels = [
        (f"M4 hourly, H{hourly}", "m4_hourly_{}.csv.gz", (hourly, hourly), (24, 168), 120),
        (f"M4 weekly, W{weekly}", "m4_weekly_{}.csv.gz", (weekly, weekly), (52,), 104),
        ("M3 monthly", "m3_monthly.csv.gz", (2 * monthly - 1, 2 * monthly), (12,), 60),
    ]
    for panel, (name, file, rows, periods, n) in zip(figure.subplots(3, 1), panels, strict=True):
        known, came = (
            read_series(file.format(part), row)
            for part, row in zip(("train", "test"), rows, strict=True)
        )
        forecast = Forecaster(seasonality=periods).fit(known).forecast(len(came))
        axes = plot_forecast(forecast, panel, history=known[-n:], outcomes=came)
        axes.set(xlabel="", ylabel="")
        axes.set_title(f"{name}, {len(came)} steps", loc="left", fontsize=10)
        axes.legend(loc="lower left", ncols=3, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "row_by_row": row_by_row,
    "maximised": maximised,
    "simulated_coverage": simulated_coverage,
    "california": california,
    "drift": drift,
    "change": change,
    "residuals": residuals,
    "validated": validated,
    "next_week": next_week,
    "daily_sales": daily_sales,
    "competitions": competitions,
}
NEED_DATA = {"california", "competitions"}

if __name__ == "__main__":
    for name in sys.argv[1:] or FIGURES:
        if name in NEED_DATA and not os.environ.get("POSTERITY_DATA"):
            print(f"_static/{name}.png: left as it is, POSTERITY_DATA is unset")
            continue
        path = FOLDER / f"{name}.png"
        # Without the version of Matplotlib in it the file is the same until the figure changes.
        FIGURES[name]().savefig(path, dpi=90, metadata={"Software": None})
        print(f"{path.relative_to(FOLDER.parent)}: {path.stat().st_size / 1e3:.0f} kB")
