"""A model of every kind that a file can hold, taught, and all the ways to use each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from files_models import COUNTS, LABELS, THREE, X, Y, cases, taught
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
    Model,
)
from posterity import evidence as strategies
from posterity import likelihoods as families
from posterity.bandits import (
    Bandit,
    Baseline,
    Budget,
    DelayedRewards,
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    RandomizedUpperConfidenceBound,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.calibration import ConformalForecaster
from posterity.distributions import Normal
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine
from posterity.files import dumps
from posterity.forecasting import Forecaster, Form, VectorAutoregression
from posterity.forgetting import Adaptive, Changepoint, Stabilized, Window
from posterity.generalized import VaryingFeatures
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

Use = Callable[[Any], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of model: one that has learned, and calls of it that change it or do not."""

    name: str
    make: Callable[[], Any]
    uses: tuple[Use, ...]

    def __str__(self) -> str:
        return self.name

    def content(self) -> bytes:
        """The file of the model."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return dumps(self.make())


# ---- uses ----------------------------------------------------------------------------------------


def _numbers(answer: Any) -> Any:
    """What an answer says, as numbers or nested sequences of them."""
    if hasattr(answer, "mean") and hasattr(answer, "std") and not isinstance(answer, np.ndarray):
        return [answer.mean(), answer.std()]
    return answer


def _call(method: str, *given: Any, **named: Any) -> Use:
    def use(model: Any) -> Any:
        if not hasattr(type(model), method):
            return None
        return _numbers(getattr(model, method)(*given, **named))

    return use


def _summary(model: Any) -> Any:
    if not hasattr(type(model), "summary"):
        return None
    return model.summary().filter(["mean", "std", "low", "high"]).to_numpy(dtype=np.float64)


def _reading(rows: Any, row: Any, **named: Any) -> tuple[Use, ...]:
    one = {"group": named["groups"][0]} if named else {}
    return (
        _call("predict", rows, **named),
        _call("predict_distribution", rows, **named),
        _call("predict_interval", rows, **named),
        _call("predict_one", row, **one),
    )


def _learning(rows: Any, row: Any, y: Any, **named: Any) -> tuple[Use, ...]:
    reading = _reading(rows, row, **named)
    one = {"group": named["groups"][0]} if named else {}
    return (
        *reading,
        _call("predict_then_learn", rows, y, **named),
        _call("learn_one", row, y[0], **one),
        _call("partial_fit", rows, y, **named),
        *reading,
        _summary,
        _call("unlearn", rows, y, **named),
        dumps,
    )


def _dense(y: Any) -> tuple[Use, ...]:
    return _learning(X[150:156], X[156], y[150:156])


# ---- kinds ---------------------------------------------------------------------------------------


def kinds() -> list[Kind]:
    """All kinds, those of ``files_models`` first."""
    return [
        *(Kind(case.name, lambda case=case: taught(case), _dense(case.y)) for case in cases()),
        *_targets_and_noises(),
        *_many_features(),
        *_formulas(),
        *_groups_and_series(),
        *_bandits(),
    ]


def _fit(model: Any, y: Any, *more: Any) -> Callable[[], Any]:
    def make() -> Any:
        made = model.fit(X[:80], y[:80]).partial_fit(X[80:120], y[80:120])
        return made.learn_one(X[120], y[120]) if hasattr(made, "learn_one") else made

    return make


def _targets_and_noises() -> Iterator[Kind]:
    two = np.column_stack([Y, X[:, 0] - Y])
    some = two.copy()
    some[::7, 1] = np.nan
    whole = np.round(np.abs(Y))
    linear, prior = BayesianLinearRegression, Normal(1.0, 0.5)
    positive = np.exp(0.1 * Y)
    censored = np.column_stack([positive, np.where(COUNTS > 1.0, positive, np.inf)])
    generalized, binary = BayesianGeneralizedLinear, (LABELS == "yes") * 1.0
    logistic, shared = BayesianLogisticRegression, strategies.SharedScale()
    slow, fast = Stabilized(discount=0.98), Adaptive(discounts=(1.0, 0.9))
    each: list[tuple[str, Any, Any]] = [
        ("targets", linear(), two),
        ("targets given", linear(prior_precision=1.0), two),
        ("targets window", linear(forgetting=Window(size=50)), two),
        ("missing targets", linear(), some),
        ("varying noise", linear(noise="linear"), Y),
        ("varying noise forgotten", linear(noise="linear", forgetting=slow), Y),
        ("given prior", linear(prior={"x0": prior}, noise_precision=1.0), Y),
        ("shared scale", logistic(prior_precision=shared), THREE),
        ("one scale", linear(prior_precision=strategies.Integrated()), Y),
        ("changing labels", BayesianLogisticRegression(forgetting=Changepoint(max_runs=8)), LABELS),
        ("changing counts", BayesianPoissonRegression(forgetting=Changepoint(max_runs=8)), COUNTS),
        ("adaptive classes", logistic(forgetting=fast), THREE),
        ("classes window", BayesianLogisticRegression(forgetting=Window(size=50)), THREE),
        ("classes each", BayesianLogisticRegression(prior_precision=1.0), THREE),
        ("changing quantile", BayesianQuantileRegression(forgetting=Changepoint(max_runs=3)), Y),
        ("changing robust", BayesianRobustRegression(forgetting=Changepoint(max_runs=3)), Y),
        ("robust laplace", BayesianRobustRegression(likelihood="laplace"), Y),
        ("robust adaptive", BayesianRobustRegression(forgetting=fast), Y),
        ("quantiles", BayesianQuantileRegression(quantile=[0.1, 0.5, 0.9]), Y),
        ("bernoulli", generalized(families.Bernoulli()), binary),
        ("gaussian", generalized(families.Gaussian(2.0)), Y),
        ("laplace", generalized(families.LaplaceNoise(1.0)), Y),
        ("student t", generalized(families.StudentT(4.0, 1.0)), Y),
        ("skew normal", generalized(families.SkewNormal(3.0, 1.0)), Y),
        ("quantile likelihood", generalized(families.Quantile(0.5, 1.0)), Y),
        ("poisson likelihood", generalized(families.Poisson()), whole),
        ("negative binomial likelihood", generalized(families.NegativeBinomial(0.5)), whole),
        ("clustered counts", generalized(families.LinearNegativeBinomial(0.5)), whole),
        ("geometric", generalized(families.Geometric()), whole),
        ("binomial", generalized(families.Binomial(9)), whole % 9.0),
        ("beta binomial", generalized(families.BetaBinomial(9, 2.0)), whole % 9.0),
        ("weibull", generalized(families.Weibull(2.0)), positive),
        ("exponential", generalized(families.Exponential()), positive),
        ("log logistic", generalized(families.LogLogistic(2.0)), positive),
        ("log normal", generalized(families.LogNormal(0.5)), positive),
        ("inverse gaussian", generalized(families.InverseGaussian(0.1)), positive),
        ("tweedie", generalized(families.Tweedie(1.5, 1.0)), whole),
        ("beta", generalized(families.Beta(4.0)), positive / (1.0 + positive)),
        ("von mises", generalized(families.VonMises(4.0)), np.tanh(Y)),
        ("ratings", generalized(families.Ordinal(3)), THREE * 1.0),
        ("walks", linear(forgetting=Adaptive()), Y),
        ("censored", generalized(families.Censored(families.Weibull(2.0))), censored),
        ("truncated", generalized(families.Truncated(families.Poisson(), low=0.0)), whole + 1.0),
        ("zero inflated", generalized(families.ZeroInflated(families.Poisson(), 0.5)), whole),
        ("hurdle", generalized(families.Hurdle(families.Poisson(), 0.5)), whole),
    ]  # fmt: skip
    for name, model, y in each:
        yield Kind(name, _fit(model, y), _dense(y))
    yield _categories()
    yield _varying_features()


def _categories() -> Kind:
    frame = pd.DataFrame({"x": X[:60, 0], "zone": [*"abc"] * 20})

    def make() -> Any:
        return BayesianLinearRegression().fit(frame[:50], Y[:50]).partial_fit(frame[50:], Y[50:60])

    return Kind("categories", make, _learning(frame[:6], {"x": 0.5, "zone": "b"}, Y[:6]))


def _varying_features() -> Kind:
    rows = [{"a": x[0], "bc"[i % 2]: x[1]} for i, x in enumerate(X[:60].tolist())]

    def make() -> Any:
        model = VaryingFeatures(BayesianLogisticRegression())
        for row, y in zip(rows, LABELS.tolist(), strict=False):
            model.learn_one(row, y)
        return model

    reading = (_call("predict_one", rows[0]), _call("predict_proba_one", {**rows[1], "d": 1.0}))
    return Kind(
        "varying features", make, (*reading, _call("learn_one", {"e": 1.0}, "yes"), *reading, dumps)
    )


def _many_features() -> Iterator[Kind]:
    mappings = [
        {"site": "abcd"[i % 4], "hour": float(i % 5), "kind": "xyz"[i % 3]} for i in range(60)
    ]
    tokens = [["abcd"[i % 4], "xyz"[i % 3]] for i in range(60)]
    y = np.arange(60.0) % 7.0
    matrix = np.where(X[:60] > 0.5, X[:60], 0.0)
    forgetting = Stabilized(discount=0.98)
    each: list[tuple[str, type[Any], Any]] = [
        ("linear", DiagonalLinearRegression, y),
        ("logistic", DiagonalLogisticRegression, y > 3),
        ("poisson", DiagonalPoissonRegression, y),
        ("sparse linear", SparseLinearRegression, y),
        ("sparse logistic", SparseLogisticRegression, y > 3),
        ("sparse poisson", SparsePoissonRegression, y),
    ]
    for name, kind, values in each:
        diagonal: dict[str, Any] = {"hash_size": 50} if "sparse" not in name else {}
        for what, rows, how in (
            ("mappings", mappings, {}),
            ("tokens", tokens, {"forgetting": forgetting}),
            ("matrix", csr_array(matrix), {"prior_precision": 1.0}),
            ("pairs", mappings, {"interactions": 2, **diagonal}),
        ):
            yield _sparse_kind(f"{name} of {what}", kind(**how), rows, values)


def _sparse_kind(name: str, model: Any, rows: Any, y: Any) -> Kind:
    first, more = slice(0, 40), slice(40, 46)

    def make() -> Any:
        made = model.__class__(**model.get_params(deep=False))
        return made.fit(rows[first], y[first]).partial_fit(rows[more], y[more])

    row = None if issparse(rows) else rows[46]
    return Kind(name, make, _learning(rows[more], row, y[more]))


def _formulas() -> Iterator[Kind]:
    columns = {"x": X[:60, 0], "g": np.arange(60) % 7, "c": np.array(list("abc") * 20)}
    whole = np.arange(60) % 4
    each: list[tuple[str, str, Any]] = [
        ("normal", "y ~ poly(x, 2) + c + (1 + x | g)", Y[:60]),
        ("bernoulli", "y ~ x + (1 | g)", whole > 1),
        ("poisson", "y ~ s(x, k=6) + (1 | g)", whole),
        ("gamma", "y ~ x + (1 | g)", 1.0 + whole),
    ]
    for likelihood, formula, y in each:
        yield _formula(Model(formula, likelihood), columns, y)


def _formula(model: Model, columns: dict[str, Any], y: Any) -> Kind:
    def take(rows: slice) -> dict[str, Any]:
        return {name: column[rows] for name, column in columns.items()}

    def make() -> Any:
        made = Model(model.formula, model.likelihood).fit(take(slice(40)), y[:40])
        return made.partial_fit(take(slice(40, 46)), y[40:46])

    row = {name: column[46].item() for name, column in columns.items()}
    uses = _learning(take(slice(40, 46)), row, y[40:46])
    return Kind(f"formula {model.likelihood}", make, uses)


def _groups_and_series() -> Iterator[Kind]:
    groups = np.array(["north", "south", "east", "west"])[np.arange(len(X)) % 4]
    each = {
        "grouped": GroupedRegression(),
        "grouped given": GroupedRegression(prior_mean=0.0, prior_precision=1.0),
        "grouped units": GroupedRegression(prior_mean=0.0, prior_precision="unit information"),
        "grouped fading": GroupedRegression(forgetting=Stabilized(discount=0.98)),
    }
    for name, model in each.items():
        yield _grouped(name, model, groups)
    yield _grouped("grouped numbers", GroupedRegression(), np.arange(len(X)) % 5)
    keys = np.empty(len(X), dtype=object)
    keys[:] = list(zip(groups.tolist(), (np.arange(len(X)) % 2).tolist(), strict=True))
    yield _grouped("grouped by two", GroupedRegression(), keys)
    yield _grouped("grouped counts", GroupedRegression(likelihood="poisson"), groups, COUNTS)
    ids = np.column_stack([np.arange(len(X)) % 7, np.arange(len(X)) % 11])
    pairs = ids.astype(object)
    numbered = np.column_stack([ids[:, 0], X[:, 0]])
    binary = (Y > 0.5) * 1
    machine, classifier = BayesianFactorizationMachine, BayesianFactorizationClassifier
    yield _factorization("machine", machine(2, max_sweeps=5), pairs, Y)
    yield _factorization("machine auto", machine("auto", max_sweeps=5), pairs, Y)
    yield _factorization("machine numeric", machine(2, numeric=[1], max_sweeps=5), numbered, Y)
    yield _factorization("classifier", classifier(2, max_sweeps=5), pairs, binary)
    yield from _forecasters()


def _grouped(name: str, model: Any, groups: Any, y: Any = Y) -> Kind:
    def make() -> Any:
        made = clone(model).fit(X[:120], y[:120], groups=groups[:120])
        return made.partial_fit(X[120:140], y[120:140], groups=groups[120:140])

    rows = slice(140, 146)
    return Kind(name, make, _learning(X[rows], X[146], y[rows], groups=groups[rows]))


def _factorization(name: str, model: Any, rows: Any, y: Any) -> Kind:
    def make() -> Any:
        return clone(model).fit(rows[:80], y[:80]).partial_fit(rows[80:90], y[80:90])

    return Kind(name, make, _learning(rows[90:96], rows[96], y[90:96]))


def _forecasters() -> Iterator[Kind]:
    walk = np.cumsum(Y)
    months = np.arange("2020-01", "2025-01", dtype="datetime64[M]").astype("datetime64[D]")
    days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
    series = {"a": walk[:40], "b": 50.0 + walk[40:75]}
    forms = [Form(1, (1, 2)), Form(1)]
    few: dict[str, Any] = {"n_draws": 4}
    yield _forecaster("series", Forecaster(forms=forms, **few), series, {"a": [1.0], "b": [52.0]})
    yield _forecaster("one series", Forecaster(**few), walk[:40], walk[40:42])
    recent = Forecaster(forms=forms, forgetting=Adaptive(discounts=(1.0, 0.9)), **few)
    yield _forecaster("series that forget", recent, walk[:60], walk[60:62])
    for name, times in (("months", months), ("days", days)):
        table = {"value": walk[: len(times)], "time": times}
        yield _dated(f"series of {name}", Forecaster(forms=forms, **few), table)
    two = {"a": walk[:60], "b": walk[1:61] + X[:60, 0]}
    later = {"a": walk[60:62], "b": walk[61:63]}
    vector = VectorAutoregression(lags=2, n_draws=8)
    yield _forecaster("vector", vector, two, later)
    uses = (_call("interval"), _call("forecast_then_learn", walk[60:63]), _call("interval"), dumps)

    def calibrated() -> Any:
        known = Forecaster(forms=forms, **few).fit(walk[:40])
        conformal = ConformalForecaster(known, horizon=2)
        conformal.forecast_then_learn(walk[40:60])
        return conformal

    yield Kind("conformal forecaster", calibrated, uses)


def _forecaster(name: str, model: Any, series: Any, more: Any) -> Kind:
    forecast = (_call("predict", 3), _call("forecast_then_learn", more, 2))
    uses = (*forecast, _call("partial_fit", more), _call("predict", 2), dumps)
    return Kind(name, lambda: clone(model).fit(series), uses)


def _dated(name: str, model: Any, table: dict[str, Any]) -> Kind:

    whole = pd.Series(table["value"], index=pd.DatetimeIndex(table["time"]))
    return _forecaster(name, model, whole[:-2], whole[-2:])


# ---- bandits -------------------------------------------------------------------------------------


def _bandits() -> Iterator[Kind]:
    linear = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)
    arms = ["a", "b", "c"]
    policies: list[Any] = [
        EpsilonGreedy(), Greedy(), InformationDirected(), InverseGap(), Softmax(),
        ThompsonSampling(), TopTwo(), UpperConfidenceBound(), RandomizedUpperConfidenceBound(),
        Baseline(arm="a", allowance=0.5), Budget(costs={"a": 1.0}, total=500.0, decisions=900),
    ]  # fmt: skip
    for policy in policies:
        name = type(policy).__name__
        yield _bandit(f"bandit {name}", lambda p=policy: Bandit(arms=arms, policy=p, rng=0))
    for sharing, model in (
        ("none", linear),
        ("all", linear),
        ("none", BayesianLogisticRegression()),
        ("all", BayesianPoissonRegression()),
        ("learned", GroupedRegression()),
    ):
        yield _bandit(
            f"bandit {sharing} {type(model).__name__}",
            lambda m=model, s=sharing: Bandit(m, arms=arms, sharing=s, rng=0),
        )

    def delayed() -> Any:
        made = DelayedRewards(Bandit(linear, arms=arms, rng=0), horizon=5.0)
        for i in range(20):
            made.decide(X[i], at=float(i), ids=f"id {i}")
        made.reward(["id 1", "id 2"], [1.0, 0.0])
        made.expire(10.0)
        return made

    uses = (
        lambda model: _decide(model.bandit, X[:2]),
        _call("reward", ["id 2", "id 12"], [0.5, 1.0]),
        _call("expire", 18.0),
        _call("take_back", ["id 2"]),
        lambda model: _decide(model.bandit, X[:2]),
        _call("release", 3.0),
        dumps,
    )
    yield Kind("delayed rewards", delayed, uses)


def _decide(bandit: Any, rows: Any) -> Any:
    return bandit.decide(rows).propensities


def _bandit(name: str, make: Callable[[], Any]) -> Kind:
    rewards = (Y[:40] > 0.5) * 1.0

    def taught_bandit() -> Any:
        made = make()
        for i in range(40):
            decision = made.decide(X[i])
            made.learn_one(X[i], decision.arm, rewards[i])
        return made.learn(X[:12], ["a", "b", "c"] * 4, rewards[:12])

    uses = (
        lambda bandit: _decide(bandit, X[:2]),
        lambda bandit: bandit.decide(X[2]).propensities,
        _call("probability_best", X[:2]),
        _call("learn_one", X[3], "a", 1.0),
        _call("learn", X[:3], ["a", "b", "c"], rewards[:3]),
        _call("unlearn", X[:3], ["a", "b", "c"], rewards[:3]),
        lambda bandit: _decide(bandit, X[:2]),
        lambda bandit: bandit.add_arm("d").decide(X[:2]).propensities,
        lambda bandit: bandit.retire_arm("b").decide(X[:2]).propensities,
        dumps,
    )
    return Kind(name, taught_bandit, uses)
