"""Draw figures of curves, groups, noise and the first page into docs/_static (`make figures`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.preprocessing import PolynomialFeatures

from posterity import Averaged, BayesianLinearRegression, GroupedRegression, Model
from posterity.basis import HilbertSpaceGP, Polynomial, RadialBasis
from posterity.evaluation import compare
from posterity.plots import (
    plot_coefficients,
    plot_evidence,
    plot_explanation,
    plot_groups,
    plot_posterior_density,
    plot_predictions,
    plot_sampled_lines,
)

FOLDER = Path(__file__).parent / "_static"


def save(figures: dict[str, Callable[[], Figure]]) -> None:
    """Draw each figure into its file."""
    for name, draw in figures.items():
        path = FOLDER / f"{name}.png"
        # Without the version of Matplotlib in it the file is the same until the figure changes.
        draw().savefig(path, dpi=100, metadata={"Software": None})
        print(f"{path.relative_to(FOLDER.parent)}: {path.stat().st_size / 1e3:.0f} kB")


def straight_line() -> Figure:
    """Bishop (2006), figure 3.7: a line is learned from 0, 1, 3 and 20 rows."""
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.0, 1.0, size=(20, 1))
    y = -0.3 + 0.5 * x[:, 0] + rng.normal(scale=0.2, size=20)
    line = BayesianLinearRegression(
        prior_precision=2.0, noise_precision=25.0, fit_intercept=False, basis=PolynomialFeatures(1)
    )
    line.learn_one(x[0], y[0], weight=0.0)
    places = np.linspace(-1.0, 1.0, 101)
    figure = Figure(figsize=(10.5, 11.5), layout="constrained")
    seen = 0
    for panels, n in zip(figure.subplots(4, 3), (0, 1, 3, 20), strict=True):
        line.partial_fit(x[seen:n], y[seen:n]) if n > seen else None
        seen, rows = n, (x[:n], y[:n])
        panels[0].set(xlim=(-1.8, 1.8), ylim=(-1.8, 1.8))
        plot_posterior_density(line, panels[0], truth=(-0.3, 0.5))
        panels[0].set(xlabel="intercept", ylabel="slope")
        plot_sampled_lines(line, (-1.0, 1.0), 5, panels[1], rng=n, data=rows)
        plot_predictions(line, places, panels[2], data=rows, truth=-0.3 + 0.5 * places)
        for panel in panels[1:]:
            panel.set(ylim=(-2.0, 2.0), ylabel="y", xlabel="x")
        for panel, what in zip(panels, ("posterior density", "draws", "predictions"), strict=True):
            panel.set_title(f"{_rows(n)}: {what}", loc="left", fontsize=10)
        for panel in panels[::2]:
            _legend(panel, shown=n == 0)
        _legend(panels[1], shown=False)
    return figure


def sinusoid() -> Figure:
    """Bishop (2006), figures 3.8 and 3.9: nine bumps learn a curve from 3, 8 and 20 rows."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(20, 1))
    y = 0.5 + np.sin(2.0 * np.pi * x[:, 0]) + rng.normal(scale=0.2, size=20)
    bumps = RadialBasis(centers=np.linspace(0.0, 1.0, 9), width=0.1)
    curve = BayesianLinearRegression(prior_precision=2.0, noise_precision=25.0, basis=bumps)
    places = np.linspace(0.0, 1.0, 301)
    truth = 0.5 + np.sin(2.0 * np.pi * places)
    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    for n, (above, below) in zip((3, 8, 20), figure.subplots(2, 3).T, strict=True):
        curve.fit(x[:n], y[:n])
        plot_predictions(curve, places, above, data=(x[:n], y[:n]), truth=truth)
        plot_sampled_lines(curve, (0.0, 1.0), 5, below, rng=n, data=(x[:n], y[:n]), truth=truth)
        for panel in (above, below):
            panel.set(ylim=(-2.6, 3.4), xlabel="x", ylabel="y")
            what = "predictions" if panel is above else "draws"
            panel.set_title(f"{_rows(n)}: {what}", loc="left", fontsize=10)
            _legend(panel, shown=panel is above and n == 3)
    return figure


def ten_points() -> tuple[np.ndarray, np.ndarray]:
    """A sinusoid at ten places, with noise of variance 0.09."""
    x = np.linspace(0.0, 1.0, 10)[:, None]
    noise = np.random.default_rng(1).normal(scale=0.3, size=10)
    return x, 0.5 + np.sin(2.0 * np.pi * x[:, 0]) + noise


def polynomials_of() -> dict[str, Any]:
    """Models of degree 0 to 9, of the same precisions."""
    return {
        str(degree): BayesianLinearRegression(
            prior_precision=0.005,
            noise_precision=1.0 / 0.09,
            basis=Polynomial(degree=degree, family="monomial"),
        )
        for degree in range(10)
    }


def polynomials() -> Figure:
    """Bands of ten polynomials on ten points, and of their average."""
    x, y = ten_points()
    places = np.linspace(-0.05, 1.05, 301)
    truth = 0.5 + np.sin(2.0 * np.pi * places)
    models = polynomials_of()
    result = compare(models, x, y)
    figure = Figure(figsize=(10.5, 8.4), layout="constrained")
    panels = figure.subplots(3, 4, sharex=True, sharey=True).ravel()
    for k, (name, model) in enumerate(models.items()):
        panel = plot_predictions(model.fit(x, y), places, panels[k], data=(x, y), truth=truth)
        evidence = f"log evidence {result.log_scores[k]:.1f}".replace("-", "\N{MINUS SIGN}")
        panel.set_title(f"degree {name}: {evidence}", loc="left", fontsize=9.5)
    average = Averaged(list(models.items())).fit(x, y)
    plot_predictions(average, places, panels[10], data=(x, y), truth=truth)
    panels[10].set_title("all ten, averaged", loc="left", fontsize=9.5, fontweight="bold")
    for k, panel in enumerate(panels[:11]):
        panel.set(ylim=(-2.0, 3.0), xlabel="x" if k > 7 else "", ylabel="y" if k % 4 == 0 else "")
        panel.tick_params(labelbottom=k > 7)
        _legend(panel, shown=False)
    panels[11].axis("off")
    panels[11].legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="center")
    return figure


def evidence() -> Figure:
    """Log evidence of the ten polynomials."""
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    ax = plot_evidence(compare(polynomials_of(), *ten_points()), figure.subplots())
    ax.set(title="", xlabel="degree")
    ax.set_title("Log evidence of polynomials on ten points", loc="left", fontsize=11)
    return figure


def relevance() -> Figure:
    """Twelve features of which three matter: one precision for all, and one for each."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(100, 12)), np.zeros(12)
    w[[1, 4, 7]] = 2.0, -1.0, 0.5
    y = X @ w + rng.normal(size=100)
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    for panel, learned in zip(figure.subplots(1, 2, sharex=True), ("auto", "ard"), strict=True):
        model = BayesianLinearRegression(prior_precision=learned).fit(X, y)
        plot_coefficients(model, panel, truth=w)
        panel.set_title(f'prior_precision="{learned}"', loc="left", fontsize=11)
        panel.set_xlabel("coefficient")
        _legend(panel, shown=learned == "auto")
    return figure


def process() -> Figure:
    """A Gaussian process by a few dozen sines, of 20 and of 300 rows."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 10.0, size=(300, 1))
    places = np.linspace(0.0, 10.0, 401)
    wave = np.sin(places) + 0.5 * np.sin(3.0 * places)
    y = np.sin(x[:, 0]) + 0.5 * np.sin(3.0 * x[:, 0]) + rng.normal(scale=0.3, size=300)
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    model = BayesianLinearRegression(basis=HilbertSpaceGP(domain=(0.0, 10.0)))
    for n, panel in zip((20, 300), figure.subplots(1, 2, sharey=True), strict=True):
        model.fit(x[:n], y[:n])
        plot_predictions(model, places, panel, data=(x[:n], y[:n]), truth=wave)
        panel.set(xlabel="x", ylabel="y" if n == 20 else "")
        panel.set_title(f"HilbertSpaceGP(), nothing chosen, {_rows(n)}", loc="left", fontsize=11)
        _legend(panel, shown=n == 20)
    return figure


def mixed_curve() -> Figure:
    """The curve of the page on smooth terms."""
    rng = np.random.default_rng(0)
    x = rng.random(300)
    frame = {"x": x, "y": np.sin(6.0 * x) + 0.3 * rng.normal(size=300)}
    figure = Figure(figsize=(7.5, 3.6), layout="constrained")
    Model("y ~ s(x)").fit(frame).plot_curve("x", figure.subplots())
    return figure


def shops() -> Figure:
    """How sales of thirty shops answer to the price, as on the page of groups."""
    rng = np.random.default_rng(0)
    slopes = -1.0 + 0.5 * rng.normal(size=30)
    shop = np.repeat(np.arange(30), rng.integers(3, 40, 30))
    price = rng.normal(size=len(shop))
    sales = 3.0 + slopes[shop] * price + 0.5 * rng.normal(size=len(shop))
    model = GroupedRegression().fit(price[:, None], sales, groups=shop)
    figure = Figure(figsize=(7.5, 6.5), layout="constrained")
    ax = plot_groups(model, "x0", figure.subplots())
    ax.set_title("Effect of the price by shop", loc="left", fontsize=11)
    ax.set_xlabel("change of sales as the price rises by 1")
    return figure


def loud_rows() -> Figure:
    """The same noise for all rows, and noise that is learned, as on the page of noise."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(400, 1))
    y = 1.0 + 2.0 * x[:, 0] + np.exp(0.6 * x[:, 0]) * rng.normal(size=400)
    figure = Figure(figsize=(10.5, 3.8), layout="constrained")
    for noise, panel in zip(
        ("constant", "linear"), figure.subplots(1, 2, sharey=True), strict=True
    ):
        plot_predictions(BayesianLinearRegression(noise=noise).fit(x, y), x, y, panel)
        panel.set_title(f"noise={noise!r}", loc="left", fontsize=11)
        _legend(panel, shown=noise == "constant")
    return figure


def explanation() -> Figure:
    """What each feature adds to one prediction, as on the first page."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = 4.0 + X @ [1.0, -2.0, 0.5] + rng.normal(scale=0.3, size=1000)
    model = BayesianLinearRegression().fit(X, y)
    figure = Figure(figsize=(7.5, 2.8), layout="constrained")
    ax = plot_explanation(model, [1.0, -0.5, 2.0], figure.subplots())
    names = zip(("age", "size", "floor"), ("1", "-0.5", "2"), strict=True)
    ax.set_yticklabels([f"{name} = {value}" for name, value in names])
    return figure


def _rows(n: int) -> str:
    return f"{n} row" if n == 1 else f"{n} rows"


def _legend(ax: Any, *, shown: bool) -> None:
    legend = ax.get_legend()
    if legend is not None and not shown:
        legend.remove()
    elif legend is not None:
        ax.legend(frameon=False, fontsize=8, loc="best")


FIGURES: dict[str, Callable[[], Figure]] = {
    "straight_line": straight_line,
    "sinusoid": sinusoid,
    "polynomials": polynomials,
    "evidence": evidence,
    "relevance": relevance,
    "process": process,
    "mixed_curve": mixed_curve,
    "shops": shops,
    "loud_rows": loud_rows,
    "explanation": explanation,
}

if __name__ == "__main__":
    save(FIGURES)
