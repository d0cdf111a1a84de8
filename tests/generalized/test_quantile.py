"""Quantile regression."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats
from scipy.optimize import linprog
from sklearn.utils.estimator_checks import check_estimator

import posterity
from posterity.forgetting import Stabilized
from posterity.generalized import BayesianQuantileRegression
from posterity.generalized.asymmetric_laplace import AsymmetricLaplace

Array = NDArray[np.float64]


def read(model: BayesianQuantileRegression) -> Array:
    return np.append(model.intercept_, model.coef_)


def loss(y: Array, fit: Array, q: float) -> float:
    return float(np.sum((y - fit) * (q - (y < fit))))


def uneven(seed: int, n: int, p: int = 3) -> tuple[Array, Array]:
    """Skewed noise that grows with the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, p))
    return X, 1.0 + X @ np.arange(1.0, p + 1) + (0.5 + X[:, 0]) * rng.gamma(2.0, size=n)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(BayesianQuantileRegression(), marks=pytest.mark.slow),
        BayesianQuantileRegression(quantile=0.9, prior_precision=0.0),
    ],
)
def test_scikit_learn_accepts_it(model: BayesianQuantileRegression) -> None:
    check_estimator(model, on_skip=None)


# ---- outside truth -------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.75, 0.9])
def test_stackloss_is_quantreg(q: float, report: Callable[[str], None]) -> None:
    sm = pytest.importorskip("statsmodels.api")
    data = sm.datasets.stackloss.load_pandas()
    X, y = data.exog.to_numpy(), data.endog.to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it reports a cycle at its solution
        theirs = sm.QuantReg(y, sm.add_constant(X)).fit(q=q, max_iter=10_000, p_tol=1e-10).params
    ours = read(BayesianQuantileRegression(quantile=q, prior_precision=0.0).fit(X, y))
    report(f"stackloss, quantile {q}: from QuantReg by {np.abs(ours - theirs).max():.1e}")
    assert np.allclose(ours, theirs, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.8])
def test_a_flat_prior_gives_the_linear_programme(q: float) -> None:
    X, y = uneven(1, 101)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, size=101)
    rows = np.column_stack([np.ones(101), X])
    cost = np.concatenate([np.zeros(4), q * weights, (1.0 - q) * weights])
    equal = np.column_stack([rows, np.eye(101), -np.eye(101)])
    bounds = [(None, None)] * 4 + [(0.0, None)] * 202
    best = linprog(cost, A_eq=equal, b_eq=y, bounds=bounds).x[:4]
    model = BayesianQuantileRegression(quantile=q, prior_precision=0.0)
    assert np.allclose(read(model.fit(X, y, sample_weight=weights)), best, atol=1e-6)


def test_the_mode_under_a_prior() -> None:
    """rho / b + alpha w^2 / 2 has no better point nearby, in any direction."""
    X, y = uneven(3, 60)
    model = BayesianQuantileRegression(quantile=0.7, prior_precision=2.0, noise_scale=0.4)
    w = read(model.fit(X, y))
    rows = np.column_stack([np.ones(60), X])

    def cost(w: Array) -> float:
        return loss(y, rows @ w, 0.7) / 0.4 + float(w[1:] @ w[1:])

    rng = np.random.default_rng(4)
    for size in (1e-1, 1e-2, 1e-3, 1e-4):
        for step in rng.normal(size=(50, 4)):
            assert cost(w + size * step) > cost(w) - 1e-8


def test_share_below_is_the_quantile() -> None:
    X, y = uneven(5, 1000)
    for q in (0.1, 0.5, 0.95):
        below = y < BayesianQuantileRegression(quantile=q).fit(X, y).predict(X)
        assert abs(below.mean() - q) < 0.006


@pytest.mark.parametrize("q", [0.2, 0.5, 0.9])
def test_intervals_hold_the_quantile_whatever_the_noise(
    q: float, report: Callable[[str], None]
) -> None:
    """The working posterior's own would not: its noise is not that of the data."""
    held, new = [], np.full((1, 3), 0.5)
    truth = 4.0 + stats.gamma.ppf(q, 2.0)
    for seed in range(60):
        X, y = uneven(seed, 400)
        model = BayesianQuantileRegression(quantile=q, prior_precision=0.0).fit(X, y)
        low, high = model.predict_interval(new, level=0.9)[0]
        held.append(low <= truth <= high)
    report(f"quantile {q}: 90% intervals held it in {np.mean(held):.0%} of 60 samples")
    assert 0.8 <= np.mean(held) <= 0.99


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_intervals_of_fifty_rows_of_skewed_targets(q: float) -> None:
    """In the tail few rows tell the density there, and all rows together tell another one."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng([50, seed])
        X, new = rng.normal(size=(50, 2)), rng.normal(size=(10, 2))
        y = X @ [1.0, 2.0] + rng.exponential(size=50)
        model = BayesianQuantileRegression(quantile=q, prior_precision=0.0).fit(X, y)
        low, high = model.predict_interval(new, 0.95).T
        truth = new @ [1.0, 2.0] - np.log1p(-q)
        held.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(held) > 0.90


def test_the_adjusted_covariance_is_quantregs() -> None:
    sm = pytest.importorskip("statsmodels.api")
    X, y = uneven(6, 3000)
    theirs = sm.QuantReg(y, sm.add_constant(X)).fit(q=0.4, vcov="robust").bse
    model = BayesianQuantileRegression(quantile=0.4, prior_precision=0.0).fit(X, y)
    assert np.allclose(np.sqrt(np.diag(model.posterior_.cov)), theirs, rtol=0.15)


# ---- online --------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_one_pass_is_near_the_answer_from_all_rows(q: float, report: Callable[[str], None]) -> None:
    X, y = uneven(7, 5000)
    online = BayesianQuantileRegression(quantile=q, prior_precision=0.0)
    online.predict_then_learn(X, y)
    batch = BayesianQuantileRegression(quantile=q, prior_precision=0.0).fit(X, y)
    sd = np.sqrt(np.diag(batch.posterior_.cov))
    apart = np.abs(read(online) - read(batch)) / sd
    report(f"quantile {q} in one pass: within {apart.max():.2f} sd of the fit to all rows")
    assert apart.max() < 2.0
    assert np.allclose(np.sqrt(np.diag(online.posterior_.cov)), sd, rtol=0.2)
    assert abs(np.mean(y < online.predict(X)) - q) < 0.01
    assert loss(y, online.predict(X), q) < 1.002 * loss(y, batch.predict(X), q)


def test_how_rows_are_handed_over_does_not_matter() -> None:
    X, y = uneven(8, 200)
    together = BayesianQuantileRegression(quantile=0.8).partial_fit(X, y)
    apart = BayesianQuantileRegression(quantile=0.8).partial_fit(X[:100], y[:100])
    for row in range(100, 200):
        apart.learn_one(X[row], y[row])
    assert np.allclose(read(together), read(apart), rtol=1e-7)
    assert np.allclose(together.posterior_.cov, apart.posterior_.cov, rtol=1e-6)


def test_it_follows_a_change() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(2000, 1))
    y = np.where(np.arange(2000) < 1000, 0.0, 5.0) + X[:, 0] + rng.normal(size=2000)
    model = BayesianQuantileRegression(quantile=0.9, forgetting=Stabilized(discount=0.99))
    model.predict_then_learn(X, y)
    assert model.intercept_ == pytest.approx(5.0 + stats.norm.ppf(0.9), abs=0.5)


def test_merging_is_learning_all_rows() -> None:
    X, y = uneven(10, 4000)
    half = BayesianQuantileRegression(quantile=0.7).fit(X[:2000], y[:2000])
    half.merge(BayesianQuantileRegression(quantile=0.7).fit(X[2000:], y[2000:]))
    whole = BayesianQuantileRegression(quantile=0.7).fit(X, y)
    sd = np.sqrt(np.diag(whole.posterior_.cov))
    assert (np.abs(read(half) - read(whole)) < 0.5 * sd).all()
    assert np.allclose(np.sqrt(np.diag(half.posterior_.cov)), sd, rtol=0.1)


def test_predictions_and_their_score() -> None:
    X, y = uneven(11, 300)
    model = BayesianQuantileRegression(quantile=0.9).fit(X[:200], y[:200])
    predictive = model.predict_distribution(X[200:])
    assert isinstance(predictive, AsymmetricLaplace)
    assert np.allclose(predictive.ppf(0.9), model.predict(X[200:]))
    mean, std = model.predict(X[200:], return_std=True)
    low, high = model.predict_interval(X[200:], level=0.95).T
    assert np.allclose((low + high) / 2.0, mean)
    assert np.allclose(high - mean, stats.norm.ppf(0.975) * std)
    assert 0.0 < model.score(X[200:], y[200:]) < 1.0


@pytest.mark.parametrize("q", [0.0, 1.0, 1.5])
def test_a_quantile_out_of_range(q: float) -> None:
    with pytest.raises(ValueError, match=f"quantile is {q}: it must lie between 0 and 1"):
        BayesianQuantileRegression(quantile=q).fit([[0.0], [1.0]], [0.0, 1.0])


# ---- the distribution ----------------------------------------------------------------------------


@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
def test_the_asymmetric_laplace_against_integrals(q: float) -> None:
    one = AsymmetricLaplace(q, 1.0, 0.7)
    theirs = stats.laplace_asymmetric(np.sqrt(q / (1.0 - q)), 1.0, 0.7 / np.sqrt(q * (1.0 - q)))
    y = np.array([-4.0, 0.3, 1.0, 1.2, 9.0])
    assert np.allclose(one.logpdf(y), theirs.logpdf(y))
    assert np.allclose(one.cdf(y), theirs.cdf(y))
    assert np.allclose(one.sf(y), theirs.sf(y))
    assert np.allclose(one.ppf([0.01, q, 0.97]), theirs.ppf([0.01, q, 0.97]))
    assert np.isclose(one.mean(), theirs.mean())
    assert np.isclose(one.var(), theirs.var())
    assert np.isclose(one.cdf(one.median()), 0.5)
    for target in (-1.0, 1.0, 2.5):
        below = integrate.quad(lambda t: one.cdf(t) ** 2, -60.0, target)[0]
        above = integrate.quad(lambda t: one.sf(t) ** 2, target, 60.0)[0]
        assert np.isclose(one.crps(target), below + above, rtol=1e-5)
    draws = one.rvs(20_000, random_state=0)
    assert abs(np.mean(draws < 1.0) - q) < 0.01


def test_where_nothing_is_known() -> None:
    flat = AsymmetricLaplace(0.9, [0.0, 1.0], [np.inf, 1.0])
    assert flat.is_flat().tolist() == [True, False]
    assert flat.logpdf(5.0)[0] == 0.0
    assert flat.cdf(5.0)[0] == 0.5
    assert np.isinf(flat.interval(0.9)[1][0])
    with pytest.raises(ValueError, match="row 0 is improper"):
        flat.rvs(random_state=0)
    assert len(flat[1:]) == 1


SEVERAL = (0.1, 0.5, 0.9)


@pytest.mark.parametrize("forgetting", [None, Stabilized(discount=0.99)])
def test_several_quantiles_are_models_of_their_own(forgetting: Stabilized | None) -> None:
    X, y = uneven(0, 150)
    several = BayesianQuantileRegression(quantile=SEVERAL, forgetting=forgetting).fit(X, y)
    several.partial_fit(X[:20], y[:20]).learn_one(X[0], y[0])
    assert several.coef_.shape == (3, 3)
    assert several.intercept_.shape == several.noise_scale_.shape == (3,)
    for place, q in enumerate(SEVERAL):
        one = BayesianQuantileRegression(quantile=q, forgetting=forgetting).fit(X, y)
        one.partial_fit(X[:20], y[:20]).learn_one(X[0], y[0])
        np.testing.assert_allclose(several.coef_[place], one.coef_, rtol=1e-9)
        np.testing.assert_allclose(read(several.model_of(q)), read(one), rtol=1e-9)
        np.testing.assert_allclose(
            several.posterior_.marginal(f"{q:g}").std(), one.posterior_.std(), rtol=1e-9
        )


def test_several_quantiles_do_not_cross() -> None:
    X, y = uneven(1, 40)
    model = BayesianQuantileRegression(quantile=SEVERAL).fit(X, y)
    far = np.vstack([X, 20.0 * (X - 0.5)])
    apart = np.column_stack([model.model_of(q).predict(far) for q in SEVERAL])
    assert (np.diff(apart, axis=1) < 0.0).any()  # there is something to mend
    found, std = model.predict(far, return_std=True)
    np.testing.assert_allclose(found, np.sort(apart, axis=1))
    np.testing.assert_allclose(model.predict(far), found)
    np.testing.assert_allclose(model.predict_one(far[-1]), found[-1])
    ends = model.predict_interval(far)
    assert ends.shape == (80, 3, 2)
    assert (np.diff(ends, axis=1) >= 0.0).all()
    assert (ends[..., 0] < ends[..., 1]).all()
    crossed = (np.diff(apart, axis=1) < 0.0).any(axis=1)
    np.testing.assert_allclose(
        std[~crossed, 2], model.model_of(0.9).predict(far[~crossed], return_std=True)[1]
    )


@pytest.mark.slow
def test_rearranged_quantiles_are_no_further_from_the_true_ones() -> None:
    rng = np.random.default_rng(5)
    quantiles = np.linspace(0.1, 0.9, 9)
    for seed in range(4):
        X, y = uneven(seed, 40)
        model = BayesianQuantileRegression(quantile=quantiles).fit(X, y)
        new = rng.uniform(-1.0, 2.0, size=(50, 3))
        line, unit = 1.0 + new @ [1.0, 2.0, 3.0], np.maximum(0.5 + new[:, 0], 0.0)
        truth = line[:, None] + unit[:, None] * stats.gamma(2.0).ppf(quantiles)
        apart = np.column_stack([model.model_of(q).predict(new) for q in quantiles])
        assert np.abs(model.predict(new) - truth).sum() <= np.abs(apart - truth).sum() + 1e-9


def test_several_quantiles_learn_rows_merge_and_unlearn() -> None:
    X, y = uneven(2, 100)
    settings = {"quantile": list(SEVERAL), "prior_precision": 1.0}
    whole = BayesianQuantileRegression(**settings).partial_fit(X, y)
    single = BayesianQuantileRegression(**settings)
    for row, target in zip(X, y, strict=True):
        single.learn_one(row, target)
    np.testing.assert_allclose(single.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(single.posterior_.std(), whole.posterior_.std(), rtol=1e-9)
    first, second = (BayesianQuantileRegression(**settings).fit(X[a], y[a])
                     for a in (slice(30), slice(30, 60)))  # fmt: skip
    both = BayesianQuantileRegression(**settings).fit(X[:60], y[:60])
    np.testing.assert_allclose(first.merge(second).coef_, both.coef_, rtol=1e-6)
    both.unlearn(X[30:60], y[30:60])
    np.testing.assert_allclose(both.coef_, BayesianQuantileRegression(**settings).fit(
        X[:30], y[:30]).coef_, rtol=1e-6)  # fmt: skip
    assert both.unlearn(X[:30], y[:30]).n_observations_ == 0.0


def test_draws_of_several_quantiles_belong_together() -> None:
    """Quantiles of plain noise have the covariance of Koenker (2005), section 4.3."""
    quantiles, n, found = (0.3, 0.7), 200, []
    for seed in range(300):
        y = np.random.default_rng(seed).normal(size=n)
        found.append(np.quantile(y, quantiles))
    X, y = np.random.default_rng(1).normal(size=(n, 1)), np.random.default_rng(2).normal(size=n)
    model = BayesianQuantileRegression(quantile=quantiles, prior_precision=0.0).fit(X, y)
    draws = model.posterior_.rvs(4000, random_state=0)[:, :, 0]
    told, truth = (np.corrcoef(np.asarray(one).T)[0, 1] for one in (draws, found))
    assert abs(told - 3.0 / 7.0) < 0.05
    assert abs(told - truth) < 0.15
    assert model.sample_mean(X[:2], 5, rng=0).shape == (5, 2, 2)


def test_tables_of_several_quantiles() -> None:
    pytest.importorskip("pandas")
    X, y = uneven(3, 100)
    model = BayesianQuantileRegression(quantile=SEVERAL).fit(X, y)
    table = model.summary()
    assert table["quantile"].tolist() == [q for q in ("0.1", "0.5", "0.9") for _ in range(4)]
    assert np.isfinite(table.loc["x0", "effect_per_sd"].astype(float)).all()
    effects = model.average_effects(X)
    np.testing.assert_allclose(effects.loc["x1", "mean"].astype(float), model.coef_[:, 1])
    each = [model.model_of(q).score(X, y) for q in SEVERAL]
    assert model.score(X, y) == pytest.approx(np.mean(each), abs=1e-3)


@pytest.mark.parametrize(
    ("quantile", "message"),
    [
        ([0.9, 0.1], "must increase"),
        ([0.1, 0.1], "must increase"),
        ([0.1, 2.0], "quantile is 2.0: it must lie between 0 and 1"),
        ([], "a number, as in 0.9, or a list of them"),
        ("median", "a number, as in 0.9, or a list of them"),
        ([[0.1], [0.5]], "a number, as in 0.9, or a list of them"),
    ],
)
def test_what_are_no_quantiles(quantile: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianQuantileRegression(quantile=quantile).fit([[0.0], [1.0]], [0.0, 1.0])  # type: ignore[arg-type]


def test_what_several_quantiles_refuse() -> None:
    X, y = uneven(4, 50)
    model = BayesianQuantileRegression(quantile=SEVERAL).fit(X, y)
    before = model.coef_.copy()
    for ask in (model.predict_distribution, model.predict_quantile):
        with pytest.raises(ValueError, match=r"model_of\(0.9\)"):
            ask(X)
    with pytest.raises(ValueError, match="each has a distribution of its own"):
        model.predict_then_learn(X, y)
    with pytest.raises(AttributeError, match=r"model_of\(0.9\).log_evidence_"):
        model.log_evidence_  # noqa: B018
    with pytest.raises(ValueError, match=r"has learned, 0.1, 0.5, 0.9"):
        model.model_of(0.3)
    with pytest.raises(ValueError, match="differ in prior"):
        model.merge(BayesianQuantileRegression().fit(X, y))
    with pytest.raises(ValueError, match="not finite"):
        model.learn_one([np.nan, 0.0, 0.0], 1.0)
    assert np.array_equal(model.coef_, before)


def test_a_file_of_several_quantiles(tmp_path: Path) -> None:
    X, y = uneven(7, 90)
    model = BayesianQuantileRegression(quantile=SEVERAL, basis="auto").fit(X, y)
    posterity.save(model, tmp_path / "m.posterity")
    again = posterity.load(tmp_path / "m.posterity")
    for one in (model, again):
        one.learn_one(X[0], y[0]).partial_fit(X[1:9], y[1:9])
    assert np.array_equal(again.predict_interval(X), model.predict_interval(X))


def test_unlearning_takes_the_features_out_of_the_width_too() -> None:
    X, y = uneven(6, 50)
    model = BayesianQuantileRegression(prior_precision=1.0).fit(X, y).unlearn(X[30:], y[30:])
    again = BayesianQuantileRegression(prior_precision=1.0).fit(X[:30], y[:30])
    np.testing.assert_allclose(model.posterior_.std(), again.posterior_.std(), rtol=1e-6)
    long = BayesianQuantileRegression().fit(X, y).partial_fit(X, y)
    assert long.unlearn(np.tile(X, (2, 1)), np.tile(y, 2)).n_observations_ == 0.0


@pytest.mark.parametrize("quantile", [0.02, 0.95, 0.99])
def test_extreme_quantiles_in_a_stream_are_as_in_a_fit(quantile: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(500, 3))
    targets = 1.0 + rows @ [1.0, -1.0, 0.5] + rng.normal(size=500)
    fitted = BayesianQuantileRegression(quantile=quantile).fit(rows, targets)
    stream = BayesianQuantileRegression(quantile=quantile)
    for first in range(0, 500, 50):
        stream.partial_fit(rows[first : first + 50], targets[first : first + 50])
    sd = fitted.posterior_.std()
    assert (np.abs(stream.posterior_.mean - fitted.posterior_.mean) < 1.5 * sd).all()
    assert (stream.posterior_.std() > 0.3 * sd).all()
    assert abs(np.mean(targets <= stream.predict(rows)) - quantile) < 0.01


def test_intervals_are_as_wide_after_a_level_has_joined() -> None:
    rng = np.random.default_rng(0)
    shop = np.repeat(["a", "b", "c"], 200)
    frame = pd.DataFrame({"shop": shop, "size": rng.normal(size=600)})
    y = rng.normal(size=600) + 2.0 * (shop == "c")
    models = [
        BayesianQuantileRegression(quantile=0.8, categorical_features="auto") for _ in range(2)
    ]
    stream = models[0].partial_fit(frame[:400], y[:400]).partial_fit(frame[400:], y[400:])
    whole = models[1].fit(frame, y)
    widths = [np.diff(one.predict_interval(frame[::200]))[:, 0] for one in (stream, whole)]
    np.testing.assert_allclose(*widths, rtol=0.3)
