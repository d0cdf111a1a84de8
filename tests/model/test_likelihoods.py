"""Models of formulas under any likelihood, beside glmmTMB and ordinal, whose figures stand here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mixed_tables import make_epileptics, make_sleep, make_wine
from scipy import stats
from scipy.special import expit, logsumexp
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from posterity import BayesianGeneralizedLinear, Model
from posterity.files import dumps, loads
from posterity.likelihoods import (
    Censored,
    Gamma,
    Gaussian,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    Tweedie,
)
from posterity.likelihoods.words import NAMED

# Estimates and standard errors of fixed effects, then estimates of standard deviations and
# parameters: glmmTMB 1.1.5 (nbinom2, Gamma(log)), and clmm() of ordinal 2022.11 with 10 nodes.
ELSEWHERE: dict[str, tuple[Callable[[], pd.DataFrame], Any, list[float], list[float], list[float]]]
ELSEWHERE = {
    "y ~ treated * base + age + last + (1 | subject)": (
        make_epileptics,
        NegativeBinomial(),
        [-1.31447, -0.93227, 0.88369, 0.47980, -0.11732, 0.33805],
        [1.17603, 0.39841, 0.13038, 0.34544, 0.08712, 0.20201],
        [0.46401, 1.0 / 7.41795],
    ),
    "y ~ days + (1 | subject)": (
        make_sleep,
        "gamma",
        [5.53394, 0.033845],
        [0.032271, 0.0025065],
        [0.12459, 0.0966417**-2.0],
    ),
    "y ~ temp + contact + (1 | judge)": (
        make_wine,
        Ordinal(5),
        [-0.5 * (1.5128 + 4.2271), 3.0619, 1.8334],
        [0.7, 0.5951, 0.5122],
        [1.135, 1.5128 + 1.6235, 4.2271 - 1.5128, 6.0862 - 4.2271],
    ),
}


@pytest.mark.parametrize("formula", ELSEWHERE)
def test_estimates_are_near_those_of_other_programs(formula: str) -> None:
    """Fixed effects within .1 standard errors; others are likeliest, and so somewhat smaller."""
    make, likelihood, fixed, errors, others = ELSEWHERE[formula]
    model = Model(formula, likelihood).fit(make())
    found, components = model.summary(), model.variance_components()
    assert (np.abs(found["mean"] - fixed) < 0.1 * np.array(errors)).all()
    assert components["reml"].to_numpy() == pytest.approx(others, rel=0.12)
    assert ((components["low"] < others) & (others < components["high"])).all()


def test_a_parameter_is_integrated_over() -> None:
    """Constant, dispersion and evidence of 30 counts, by a grid over both."""
    y = np.random.default_rng(3).negative_binomial(2.0, 0.4, size=30).astype(float)
    model = Model("y ~ 1", NegativeBinomial()).fit({"y": y})
    eta, t = np.linspace(-1.0, 3.0, 101), np.linspace(-11.0, 4.5, 201)
    logs = NegativeBinomial.parameter.log_density(t) + stats.norm(0.0, 10.0).logpdf(eta)[:, None]
    for place, dispersion in enumerate(np.exp(t)):
        each = NegativeBinomial(float(dispersion)).log_density(y[:, None], eta)
        logs[:, place] += each.sum(axis=0)
    evidence = logsumexp(logs) + np.log((eta[1] - eta[0]) * (t[1] - t[0]))
    assert model.log_evidence_ == pytest.approx(evidence, abs=0.01)
    shares = np.exp(logs - logsumexp(logs))
    for found, values in (
        (model.summary().iloc[0], eta @ shares.sum(axis=1)),
        (model.variance_components().loc["dispersion"], shares.sum(axis=0) @ np.exp(t)),
    ):
        assert found["mean"] == pytest.approx(values, abs=0.05 * found["sd"])


@dataclass(frozen=True)
class Waiting(Likelihood):
    """Times until something happens, by their distribution alone."""

    def distribution(self, eta: Any) -> Any:
        """Exponential of the mean exp(eta)."""
        return stats.expon(scale=np.exp(eta))


def make_rows(seed: int, draw: Callable[[Any, Any], Any]) -> pd.DataFrame:
    """Forty rows of eight groups."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, 8, 40), rng.normal(size=40)
    eta = 0.5 * x + 0.5 * rng.normal(size=8)[group]
    return pd.DataFrame({"y": draw(rng, eta), "x": x, "g": group})


def draw_gamma(rng: Any, eta: Any) -> Any:
    """Amounts of the shape 4."""
    return rng.gamma(4.0, np.exp(eta) / 4.0)


@pytest.mark.parametrize(
    ("likelihood", "draw"),
    [
        (Gamma(), draw_gamma),
        (NegativeBinomial(), lambda rng, eta: rng.poisson(draw_gamma(rng, eta + 1.0))),
        (Ordinal(3), lambda rng, eta: np.digitize(eta + rng.logistic(size=40), [-0.5, 0.5])),
        (Waiting(), lambda rng, eta: rng.exponential(np.exp(eta))),
    ],
    ids=["gamma", "negative binomial", "ordinal", "own"],
)
def test_batches_rows_and_merged_models_agree(likelihood: Likelihood, draw: Any) -> None:
    frame, formula = make_rows(0, draw), "y ~ x + (1 | g)"
    whole = Model(formula, likelihood).fit(frame)
    parts = [Model(formula, likelihood).partial_fit(part) for part in (frame[:15], frame[15:])]
    more = Model(formula, likelihood).fit(pd.concat([frame, frame[:5]])).unlearn(frame[:5])
    expected = whole.predict_interval(frame, of="mean")
    for model in (parts[0].merge(parts[1]), more):
        assert model.predict_interval(frame, of="mean") == pytest.approx(expected, rel=2e-3)
    observed = whole.predict_interval(frame, 0.9)
    assert (observed[:, 1] >= expected[:, 0]).all()
    assert (observed[:, 0] <= expected[:, 1]).all()
    assert np.isfinite(whole.predict(frame)).all()
    assert whole.explained_variance()["mean"].between(0.0, 1.0).all()
    assert "mixed model" in whole.report()


@pytest.mark.parametrize("word", sorted(set(NAMED) - {"bernoulli", "student t", "skew normal"}))
def test_every_word_is_taken(word: str) -> None:
    """Also where one value of a parameter stands for all by its logs, and in files."""
    frame = make_rows(7, lambda rng, eta: rng.poisson(np.exp(eta + 1.0)) + 1)
    frame["y"] *= 0.05 if word in ("beta", "von mises") else 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model("y ~ x + (1 | g)", word).fit(frame)
        ends = model.predict_interval(frame[:2])
    assert (np.isfinite(ends).all(axis=1) & (ends[:, 0] < ends[:, 1])).all()
    assert (loads(dumps(model)).predict(frame) == model.predict(frame)).all()


def test_two_numbers_a_row_are_refused() -> None:
    frame = make_rows(8, draw_gamma)
    with pytest.raises(ValueError, match="several columns"):
        Model("y ~ x", Censored(Gamma())).fit(frame, np.stack([frame["y"], frame["y"]], axis=1))


def test_evidence_of_groups_is_an_integral() -> None:
    """Over logs of standard deviations; the constant is integrated by formula."""
    rng, k, n = np.random.default_rng(3), 6, 5
    group = np.repeat(np.arange(k), n)
    y = (3.0 + rng.normal(size=k)[group] + rng.normal(size=k * n)).reshape(k, n)
    model = Model("y ~ 1 + (1 | g)").fit({"y": y.ravel(), "g": group})
    log_sd, log_noise = np.linspace(-9.0, 5.0, 200)[:, None], np.linspace(-3.0, 3.0, 200)
    noise, between = np.exp(2.0 * log_noise), np.exp(2.0 * log_sd)
    spread, means = noise + n * between, y.mean(axis=1)
    logs = stats.t(3.0, scale=2.5 * y.std()).logpdf(np.exp(log_sd)) + np.log(2.0) + log_sd
    logs = logs + np.log(2.0) - 0.5 * (k * n - 1) * np.log(2.0 * np.pi) - 0.5 * np.log(k * n)
    logs = logs - k * (n - 1) * log_noise - 0.5 * (k - 1) * np.log(spread)
    logs -= 0.5 * np.square(y - means[:, None]).sum() / noise
    logs -= 0.5 * n * np.square(means - means.mean()).sum() / spread
    step = (log_sd[1, 0] - log_sd[0, 0]) * (log_noise[1] - log_noise[0])
    assert model.log_evidence_ == pytest.approx(logsumexp(logs) + np.log(step), abs=0.01)


def test_given_parameters_are_not_learned() -> None:
    frame = make_rows(1, draw_gamma)
    given, learned = (Model("y ~ x + (1 | g)", Gamma(shape)).fit(frame) for shape in (4.0, None))
    assert given.variance_components().index.tolist() == ["sd(1 | g)"]
    assert learned.variance_components().index.tolist() == ["sd(1 | g)", "shape"]
    word = Model("y ~ x + (1 | g)", "gamma").fit(frame)
    assert word.summary().equals(learned.summary())


def test_noise_that_is_known() -> None:
    """Of studies, each with an effect of its own, as in a meta-analysis: DerSimonian's setting."""
    rng = np.random.default_rng(0)
    effect = 2.0 + 0.3 * rng.normal(size=20)
    frame = pd.DataFrame({"y": effect + 0.2 * rng.normal(size=20), "study": np.arange(20)})
    model = Model("y ~ 1 + (1 | study)", Gaussian(25.0)).fit(frame)
    found = model.variance_components()
    assert found.index.tolist() == ["sd(1 | study)"]
    assert found["low"].iloc[0] < 0.3 < found["high"].iloc[0]
    spread = model.predict_distribution({"study": [-1]}).var() - model.summary()["sd"].iloc[0] ** 2
    assert spread[0] == pytest.approx(0.04 + found["mean"].iloc[0] ** 2, rel=0.2)


def test_equal_words_and_values_are_equal_models() -> None:
    frame = make_rows(2, lambda rng, eta: rng.poisson(np.exp(eta)))
    one, other = (Model("y ~ x + (1 | g)", kind).fit(frame) for kind in ("poisson", Poisson()))
    assert one.summary().equals(other.summary())


def test_scikit_learn_takes_a_formula() -> None:
    """Labels have probabilities and strata, and a pipeline may end in a model."""
    frame = make_rows(4, lambda rng, eta: np.where(rng.random(40) < expit(2.0 * eta), "yes", "no"))
    labels = Model("y ~ x + (1 | g)", "bernoulli")
    assert is_classifier(labels)
    assert is_regressor(Model("y ~ x", "gamma"))
    scores = cross_val_score(labels, frame, frame["y"], cv=2)
    expected = cross_val_score(labels, frame, frame["y"], cv=2, scoring="neg_log_loss")
    assert scores == pytest.approx(expected)
    ends = make_pipeline(FunctionTransformer(), labels).fit(frame).predict_proba(frame)
    assert ends[:, 1] == pytest.approx(labels.fit(frame).predict(frame))
    trials = pd.DataFrame({"good": [2, 3, 0], "of": [4, 4, 1], "g": [0, 0, 1]})
    model = Model("good / of ~ 1 + (1 | g)", "binomial").fit(trials)
    shares = np.log([model.predict(trials), 1.0 - model.predict(trials)])
    counts = np.array([trials["good"], trials["of"] - trials["good"]])
    assert model.score(trials) == pytest.approx((shares * counts).sum() / counts.sum())


@pytest.mark.parametrize("likelihood", ["normal", "gamma"])
def test_old_rows_are_forgotten(likelihood: str) -> None:
    """Under both strategies alike, as a prior that is found anew does not fade."""
    before, after = (make_rows(seed, draw_gamma) for seed in (5, 6))
    frame, formula = pd.concat([before, after]), "y ~ x + (1 | g)"
    found = [
        Model(formula, likelihood, forgetting=memory).partial_fit(before).partial_fit(after)
        for memory in ("exponential:0.9", "stabilized:0.9")
    ]
    whole = Model(formula, likelihood, forgetting="exponential:0.9").fit(frame)
    for model in (found[1], whole):
        assert model.predict(frame) == pytest.approx(found[0].predict(frame), rel=1e-3)
    assert found[0]._engine.n_effective_ < 10.0


def test_the_dispersion_of_tweedie_is_learned_by_formula_too():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    y = Tweedie(1.5, 2.0).distribution(1.0 + 0.5 * x).rvs(random_state=rng)
    model = Model("y ~ x", likelihood="tweedie:1.5").fit(pd.DataFrame({"x": x, "y": y}))
    plain = BayesianGeneralizedLinear("tweedie:1.5").fit(x[:, None], y)
    np.testing.assert_allclose(
        model.predict(pd.DataFrame({"x": x})), plain.predict(x[:, None]), rtol=0.1
    )
