"""Draw the figures of the pages on outliers, classes, counts and likelihoods (`make figures`)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from figures import save
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.likelihoods import (
    Beta,
    BetaBinomial,
    Binomial,
    Censored,
    Gamma,
    InverseGaussian,
    LogLogistic,
    LogNormal,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Tweedie,
    VonMises,
    Weibull,
)

Array = NDArray[np.float64]
BLUE, ORANGE, GREEN, GREY = "C0", "C1", "C2", "0.45"

SAMPLES = 40
SIZES = (10, 20, 40, 80, 160, 320)


def outliers() -> Figure:
    """A line among outliers, and nine quantiles of noise that grows."""
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 10.0, size=(60, 1))
    y = 1.0 + 0.5 * x[:, 0] + 0.4 * rng.normal(size=60)
    y[x[:, 0] > 8.3] += rng.uniform(4.0, 12.0, size=int(np.sum(x[:, 0] > 8.3)))
    places = np.linspace(0.0, 10.0, 101)[:, None]
    models = (
        (BayesianLinearRegression(), "least squares", ORANGE),
        (BayesianRobustRegression(), "BayesianRobustRegression", BLUE),
    )
    for model, name, color in models:
        model.fit(x, y)
        low, high = model.predict_interval(places).T
        left.plot(places[:, 0], model.predict(places), color=color, label=name)
        left.fill_between(places[:, 0], low, high, color=color, alpha=0.15, lw=0)
    left.plot(x[:, 0], y, ".", color=GREY)
    left.set(xlabel="x", ylabel="y")
    left.set_title("A line among outliers, with 95% intervals", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=9, loc="upper left")

    x = rng.uniform(size=(2000, 1))
    y = 1.0 + x[:, 0] + (0.3 + 1.5 * x[:, 0]) * rng.gumbel(size=2000)
    right.plot(x[:, 0], y, ".", color=GREY, ms=2, alpha=0.4)
    ends = np.array([[0.0], [1.0]])
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        model = BayesianQuantileRegression(quantile=q).fit(x, y)
        low, high = model.predict_interval(ends).T
        right.plot(ends[:, 0], model.predict(ends), color=BLUE)
        right.fill_between(ends[:, 0], low, high, color=BLUE, alpha=0.3, lw=0)
        right.annotate(f"{q:.0%}", (1.01, model.predict(ends)[1]), va="center", fontsize=9)
    right.set(xlabel="x", ylabel="y", xlim=(0.0, 1.08), ylim=(-3.0, 9.5))
    right.set_title("Quantiles, each with its own interval", loc="left", fontsize=11)
    return figure


def classes() -> Figure:
    """Probabilities that draw back where nothing is known: one feature, and two."""
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    rng = np.random.default_rng(1)
    x = rng.normal(scale=1.5, size=(25, 1))
    y = (1.2 * x[:, 0] + rng.logistic(size=25) > 0.0).astype(int)
    model = BayesianLogisticRegression().fit(x, y)
    places = np.linspace(-12.0, 12.0, 301)[:, None]
    low, high = model.predict_interval(places).T
    eta = places[:, 0] * model.coef_[0, 0] + model.intercept_[0]
    left.fill_between(places[:, 0], low, high, color=BLUE, alpha=0.15, lw=0)
    left.plot(places[:, 0], model.predict_proba(places)[:, 1], color=BLUE, label="predict_proba")
    left.plot(places[:, 0], 1.0 / (1.0 + np.exp(-eta)), "--", color=ORANGE, label="at the mode")
    left.plot(x[:, 0], y, "|", color=GREY, ms=9)
    left.set(xlabel="x", ylabel="probability of yes")
    left.set_title("25 rows: probability and its 95% interval", loc="left", fontsize=11)
    left.legend(frameon=False, fontsize=9, loc="center right")

    iris = load_iris()
    X, y = iris.data[:, 2:], iris.target
    model = BayesianLogisticRegression().fit(X, y)
    a, b = np.meshgrid(np.linspace(0.0, 8.0, 161), np.linspace(-0.5, 3.5, 121))
    shares = model.predict_proba(np.column_stack([a.ravel(), b.ravel()]))
    colors = np.array([[0.12, 0.47, 0.71], [1.0, 0.5, 0.05], [0.17, 0.63, 0.17]])
    image = (1.0 - 0.6 * (1.0 - shares @ colors)).reshape(*a.shape, 3)
    right.imshow(image, origin="lower", extent=(0.0, 8.0, -0.5, 3.5), aspect="auto")
    for k, name in enumerate(iris.target_names):
        right.plot(X[y == k, 0], X[y == k, 1], ".", color=colors[k], mec="w", mew=0.4, ms=9)
        right.annotate(
            name, X[y == k].mean(axis=0) + np.array([0.0, 0.55]), ha="center", fontsize=9
        )
    right.set(xlabel="petal length (cm)", ylabel="petal width (cm)")
    right.set_title("Three classes: probabilities as shades", loc="left", fontsize=11)
    return figure


def counts() -> Figure:
    """Deaths of British doctors: rates by age, of smokers and of others."""
    age = np.tile(np.arange(5.0), 2)
    smokes = np.repeat([1.0, 0.0], 5)
    X = np.column_stack([smokes, age, age**2, smokes * age])
    deaths = np.array([32, 104, 206, 186, 102, 2, 12, 28, 28, 31])
    years = np.array([52407, 43248, 28612, 12663, 5317, 18790, 10673, 5710, 2585, 1462])
    model = BayesianPoissonRegression().fit(X, deaths, exposure=years)
    places = np.linspace(-0.3, 4.3, 101)
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    ax = figure.subplots()
    for who, name, color in ((1.0, "smokers", ORANGE), (0.0, "others", BLUE)):
        Z = np.column_stack([np.full(101, who), places, places**2, who * places])
        low, high = model.predict_interval(Z, exposure=1000.0, of="rate").T
        ax.plot(places, model.predict(Z, exposure=1000.0), color=color, label=name)
        ax.fill_between(places, low, high, color=color, alpha=0.2, lw=0)
        rows = smokes == who
        ax.plot(age[rows], 1000.0 * deaths[rows] / years[rows], "o", color=color, ms=5)
    ax.set_xticks(range(5), ["35-44", "45-54", "55-64", "65-74", "75-84"])
    ax.set(yscale="log", xlabel="age", ylabel="deaths per 1,000 person-years")
    ax.set_title("Coronary deaths, with 95% intervals of the rates", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    return figure


def families() -> Figure:
    """A picture of each family: the target at three values of eta."""
    shown: list[tuple[str, Any, Array]] = [
        ("Weibull(2)", Weibull(2.0), np.linspace(0.01, 8.0, 400)),
        ("LogLogistic(3)", LogLogistic(3.0), np.linspace(0.01, 8.0, 400)),
        ("LogNormal(0.6)", LogNormal(0.6), np.linspace(0.01, 8.0, 400)),
        ("Gamma(2)", Gamma(2.0), np.linspace(0.01, 8.0, 400)),
        ("InverseGaussian(0.5)", InverseGaussian(0.5), np.linspace(0.01, 8.0, 400)),
        ("Tweedie(1.5, 0.8): also 0", Tweedie(1.5, 0.8), np.linspace(0.0, 8.0, 400)),
        ("Beta(6)", Beta(6.0), np.linspace(0.005, 0.995, 400)),
        ("VonMises(4)", VonMises(4.0), np.linspace(-np.pi, np.pi, 400)),
        ("Poisson", Poisson(), np.arange(12.0)),
        ("NegativeBinomial(1)", NegativeBinomial(1.0), np.arange(12.0)),
        ("BetaBinomial(10, 4)", BetaBinomial(10, 4.0), np.arange(11.0)),
        ("Ordinal(5, gaps of 1)", Ordinal(5, (1.0, 1.0, 1.0)), np.arange(5.0)),
    ]
    figure = Figure(figsize=(10.5, 7.0), layout="constrained")
    for ax, (name, likelihood, y) in zip(figure.subplots(3, 4).ravel(), shown, strict=True):
        for eta, color in ((-0.5, BLUE), (0.4, ORANGE), (1.3, GREEN)):
            density = np.exp(likelihood.log_density(y, np.full(len(y), eta)))
            style = "o-" if y[1] == np.round(y[1]) else "-"
            first = int(style == "-" and y[0] == 0.0)  # the probability of 0 is no density
            ax.plot(y[:first], density[:first], "o", color=color, ms=4)
            ax.plot(y[first:], density[first:], style, color=color, ms=3, label=f"eta = {eta}")
        ax.set_title(name, loc="left", fontsize=10)
        ax.set_yticks([])
        ax.set_ylim(bottom=0.0)
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def lifetimes() -> Figure:
    """Rented machines of two kinds of customers: who is alive, with bands, and Kaplan-Meier."""
    rng = np.random.default_rng(0)
    building, hours = rng.integers(0, 2, 400), rng.uniform(1.0, 8.0, 400)
    life = np.exp(3.7 - 0.6 * building - 0.1 * hours) * rng.weibull(1.8, 400)
    contract = rng.uniform(6.0, 36.0, 400)
    months, broke = np.minimum(life, contract), life < contract
    y = np.column_stack([months, np.where(broke, months, np.inf)])
    model = BayesianGeneralizedLinear(Censored(Weibull())).fit(building[:, None], y)
    times = np.linspace(0.0, 36.0, 145)
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    ax = figure.subplots()
    for kind, name, color in ((0, "workshops", BLUE), (1, "building sites", ORANGE)):
        low, high = model.predict_survival_interval([[kind]], times)[0].T
        ax.plot(times, model.predict_survival([[kind]], times)[0], color=color, label=name)
        ax.fill_between(times, low, high, color=color, alpha=0.2, lw=0)
        rows = building == kind
        ends = np.sort(months[rows & broke])
        at_risk = np.array([np.sum(months[rows] >= end) for end in ends])
        steps = np.concatenate([[1.0], np.cumprod(1.0 - 1.0 / at_risk)])
        ax.step(np.concatenate([[0.0], ends]), steps, where="post", color=GREY, lw=0.9)
    ax.set(xlabel="months", ylabel="probability to be alive", ylim=(0.0, 1.02), xlim=(0.0, 36.0))
    ax.set_title("400 rentals, four in ten censored, with 95% intervals", loc="left", fontsize=11)
    ax.legend(frameon=False, fontsize=9)
    return figure


def shares() -> Figure:
    """Opened letters of 20: Binomial and BetaBinomial, and their 90% intervals."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, size=(300, 1))
    mean = 1.0 / (1.0 + np.exp(-0.3 - 0.8 * x[:, 0]))
    opened = rng.binomial(20, rng.beta(6.0 * mean, 6.0 * (1.0 - mean)))
    places = np.linspace(-2.0, 2.0, 101)[:, None]
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    for ax, likelihood in zip(figure.subplots(1, 2), (Binomial(20), BetaBinomial(20)), strict=True):
        model = BayesianGeneralizedLinear(likelihood).fit(x, opened)
        low, high = model.predict_interval(places, level=0.9).T / 20.0
        ax.plot(x[:, 0], opened / 20.0 + rng.uniform(-0.01, 0.01, 300), ".", color=GREY, ms=4)
        ax.plot(places[:, 0], model.predict(places) / 20.0, color=BLUE)
        ax.fill_between(places[:, 0], low, high, step="mid", color=BLUE, alpha=0.2, lw=0)
        ends = model.predict_interval(x, level=0.9).T
        held = np.mean((ends[0] <= opened) & (opened <= ends[1]))
        name = type(likelihood).__name__
        ax.set_title(f"{name}(20): 90% intervals hold {held:.0%}", loc="left", fontsize=11)
        ax.set(xlabel="x", ylabel="share opened", ylim=(-0.03, 1.03))
    return figure


# ---- generative versus discriminative ------------------------------------------------------------


def problems() -> Iterator[tuple[str, Array, NDArray[np.int64]]]:
    """Name, features and labels 0 and 1 of four sets."""
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes, 10 features", X, (y > np.median(y)).astype(np.int64)
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer, 10 means", X[:, :10], y
    yield "breast cancer, 30 features", X, y
    X, y = load_iris(return_X_y=True)
    yield "iris, the two that overlap, 4 features", X[y > 0], y[y > 0] - 1


def errors_by_size(X: Array, y: NDArray[np.int64], samples: int = SAMPLES) -> dict[int, Array]:
    """Training size -> mean (4, 3) of test error and log loss, and how often no mode exists."""
    rng = np.random.default_rng(0)
    found = {}
    for n in SIZES:
        if n <= 0.8 * len(y):
            found[n] = np.mean([_one_split(X, y, n, rng) for _ in range(samples)], axis=0)
    return found


def _one_split(X: Array, y: NDArray[np.int64], n: int, rng: np.random.Generator) -> Array:
    """Naive Bayes, maximum likelihood twice (ours, lbfgs), and the learned prior, on one split."""
    order = rng.permutation(len(y))
    while np.bincount(y[order[:n]], minlength=2).min() < 2:
        order = rng.permutation(len(y))
    rows, rest = order[:n], order[n:]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        likely = BayesianLogisticRegression(prior_precision=0.0).fit(X[rows], y[rows])
    separated = any("mode was not reached" in str(one.message) for one in said)
    lbfgs = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lbfgs.fit(X[rows], y[rows])
    odds = [
        np.subtract(*GaussianNB().fit(X[rows], y[rows]).predict_joint_log_proba(X[rest]).T[::-1]),
        # Maximum likelihood integrates over nothing: the log odds at the mode.
        X[rest] @ likely.coef_[0] + likely.intercept_[0],
        lbfgs.decision_function(X[rest]),
        BayesianLogisticRegression().fit(X[rows], y[rows]).decision_function(X[rest]),
    ]
    signed = np.where(y[rest] == 1, odds, -np.asarray(odds))
    wrong = np.mean((np.asarray(odds) > 0.0) != (y[rest] == 1), axis=1)
    return np.stack([wrong, np.mean(np.logaddexp(0.0, -signed), axis=1), [0, separated, 0, 0]], 1)


def generative() -> Figure:
    """Test error against training size (Ng and Jordan 2001)."""
    figure = Figure(figsize=(10.5, 7.4), layout="constrained")
    styles = (
        ("naive Bayes", GREEN, "-"),
        ("maximum likelihood", ORANGE, "-"),
        ("maximum likelihood, as lbfgs leaves it", ORANGE, ":"),
        ("learned prior", BLUE, "-"),
    )
    for panel, (name, X, y) in zip(figure.subplots(2, 2).ravel(), problems(), strict=True):
        found = errors_by_size(X, y)
        print(f"\n{name}: error of each; log loss of each; samples without a maximum")
        for n, scores in found.items():
            print(f"{n:5d} {scores[:, 0].round(3)} {scores[:, 1].round(2)} {scores[1, 2]:.0%}")
        for k, (label, color, line) in enumerate(styles):
            values = [scores[k, 0] for scores in found.values()]
            panel.plot(list(found), values, line, color=color, marker=".", label=label)
        panel.set(xscale="log", xlabel="rows learned", ylabel="test error", ylim=(0.0, 0.5))
        panel.set_xticks(list(found), [str(n) for n in found])
        panel.minorticks_off()
        panel.set_title(name, loc="left", fontsize=11)
    figure.axes[1].legend(frameon=False, fontsize=9)
    return figure


FIGURES: dict[str, Callable[[], Any]] = {
    "outliers": outliers,
    "classes": classes,
    "counts": counts,
    "families": families,
    "lifetimes": lifetimes,
    "shares": shares,
    "generative": generative,
}

if __name__ == "__main__":
    save(FIGURES)
