"""Draws for ArviZ: their moments are the posterior's, and ArviZ's functions run on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    forgetting,
)
from posterity.adapters import to_arviz
from posterity.calibration import Conformal, Recalibrated

pd: Any = pytest.importorskip("pandas")
az: Any = pytest.importorskip("arviz", reason="needs ArviZ: pip install 'posterity[arviz]'")

pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning",  # ArviZ of its next version, Matplotlib of what ArviZ calls
    "ignore:Passing a dict or None as alias_mapping",
)


@pytest.fixture(scope="module")
def frame() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    X.index = [f"row {i}" for i in range(80)]
    return X, 1.0 + X.to_numpy() @ [1.0, -2.0, 0.0] + rng.normal(scale=0.5, size=80)


SETTINGS = [
    {},
    {"prior_precision": 0.0},
    {"prior_precision": 2.0, "noise_prior": (3.0, 1.0)},
    {"prior_precision": 2.0, "noise_precision": 4.0, "fit_intercept": False},
    {"forgetting": forgetting.Stabilized(discount=0.95)},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_draws_have_the_moments_of_the_posterior(settings: dict[str, Any], frame: Any) -> None:
    X, y = frame
    model = BayesianLinearRegression(**settings).fit(X, y)
    data = to_arviz(model, X, y, n_draws=5000, rng=1)
    drawn = data.posterior["coef"].values.reshape(-1, 3)
    if model.fit_intercept:
        drawn = np.column_stack([data.posterior["intercept"].values.ravel(), drawn])
    exact = model.posterior_
    sd = np.sqrt(np.diag(exact.cov))
    np.testing.assert_allclose(drawn.mean(axis=0), exact.mean, atol=5 * sd.max() / np.sqrt(20_000))
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.05)
    predictive = model.predict_distribution(X)
    predicted = data.posterior_predictive["y"].values.reshape(-1, 80)
    np.testing.assert_allclose(predicted.mean(axis=0), predictive.mean(), atol=0.03)
    np.testing.assert_allclose(predicted.std(axis=0), predictive.std(), rtol=0.05)


def test_log_likelihood_is_that_of_each_draw(frame: Any) -> None:
    X, y = frame
    data = to_arviz(BayesianLinearRegression().fit(X, y), X, y, n_draws=10, rng=1)
    posterior = data.posterior
    mean = posterior["intercept"].values[..., None] + posterior["coef"].values @ X.to_numpy().T
    wanted = stats.norm.logpdf(y, mean, posterior["sigma"].values[..., None])
    np.testing.assert_allclose(data.log_likelihood["y"].values, wanted)


def test_arviz_runs_on_it(frame: Any) -> None:
    X, y = frame
    data = to_arviz(BayesianLinearRegression().fit(X, y), X, y, rng=0)
    summary = az.summary(data)
    assert summary.index.tolist() == ["coef[a]", "coef[b]", "coef[c]", "intercept", "sigma"]
    assert (summary["r_hat"] < 1.01).all()
    loo = az.loo(data)
    density = BayesianLinearRegression(prior_precision=0.0)
    exact = sum(
        density.fit(X.drop(index=row), np.delete(y, i))
        .predict_distribution(X.loc[[row]])
        .logpdf(y[[i]])[0]
        for i, row in enumerate(X.index)
    )
    assert loo.elpd_loo == pytest.approx(exact, abs=1.0)
    assert az.plot_ppc(data, num_pp_samples=20) is not None
    import matplotlib.pyplot as plt

    plt.close("all")


def test_names_and_rows_are_coordinates(frame: Any) -> None:
    X, y = frame
    data = to_arviz(BayesianLinearRegression().fit(X, y), X, y, n_draws=5, n_chains=2, rng=0)
    assert data.posterior["coef"].coords["feature"].values.tolist() == ["a", "b", "c"]
    assert data.observed_data["y"].coords["observation"].values.tolist() == X.index.tolist()
    assert data.posterior["coef"].shape == (2, 5, 3)
    np.testing.assert_array_equal(data.observed_data["y"].values, y)
    np.testing.assert_array_equal(data.constant_data["X"].values, X.to_numpy())


def test_the_prior_is_there_as_far_as_it_is_proper(frame: Any) -> None:
    X, y = frame
    improper = to_arviz(BayesianLinearRegression().fit(X, y), X, y, n_draws=5)
    assert "prior" not in improper.groups()
    assert improper.attrs["improper_prior"] == "intercept, coef, sigma"

    model = BayesianLinearRegression(prior_mean=1.0, prior_precision=4.0, noise_prior=(3.0, 2.0))
    partly = to_arviz(model.fit(X, y), X, y, n_draws=20_000, rng=0)
    assert partly.attrs["improper_prior"] == "intercept"
    assert set(partly.prior.data_vars) == {"coef", "sigma"}
    assert "prior_predictive" not in partly.groups()
    # coef is a Student-t: variance E[sigma^2] / 4 = (2 / (3 - 1)) / 4
    np.testing.assert_allclose(partly.prior["coef"].values.mean((0, 1)), 1.0, atol=0.02)
    np.testing.assert_allclose(partly.prior["coef"].values.var((0, 1)), 0.25, rtol=0.05)

    model = BayesianLinearRegression(
        prior_precision=4.0, noise_precision=1.0, fit_intercept=False
    ).fit(X, y)
    whole = to_arviz(model, X, y, n_draws=20_000, rng=0)
    assert whole.attrs["improper_prior"] == ""
    spread = np.sqrt(1.0 + np.square(X.to_numpy()).sum(axis=1) / 4.0)
    drawn = whole.prior_predictive["y"].values.std((0, 1))
    np.testing.assert_allclose(drawn, spread, rtol=0.03)


def test_the_same_seed_draws_the_same(frame: Any) -> None:
    X, y = frame
    model = BayesianLinearRegression().fit(X, y)
    one, other = (to_arviz(model, X, y, n_draws=5, rng=3) for _ in range(2))
    np.testing.assert_array_equal(one.posterior["coef"], other.posterior["coef"])


def test_what_cannot_be_drawn_says_so(frame: Any) -> None:
    X, y = frame
    for model, words in (
        (BayesianQuantileRegression().fit(X, y), "linear, logistic, Poisson and robust regres"),
        (Conformal(BayesianLinearRegression()), "a Conformal, which corrects another model's"),
        (Recalibrated(BayesianLinearRegression()).partial_fit(X, y), "give the BayesianLinearRe"),
    ):
        with pytest.raises(TypeError, match=words):
            to_arviz(model, X, y)
    with pytest.raises(
        TypeError, match="exposure is for models of counts, not for BayesianLinearRegression"
    ):
        to_arviz(BayesianLinearRegression().fit(X, y), X, y, exposure=2.0)
    labels = BayesianLogisticRegression().partial_fit(X, np.full(80, "a"))
    with pytest.raises(ValueError, match="needs two classes, and all labels so far are 'a'"):
        to_arviz(labels, X, np.full(80, "a"))
    with pytest.raises(
        ValueError, match="y is 'c' in row 0, which is not among the learned classes"
    ):
        to_arviz(labels.fit(X, np.where(y > 1.0, "a", "b")), X, np.full(80, "c"))
    counts = BayesianPoissonRegression().fit(X, np.ones(80))
    with pytest.raises(ValueError, match=r"y in row 0 is 0\.5"):
        to_arviz(counts, X, np.full(80, 0.5))
    averaged = BayesianLinearRegression(forgetting=forgetting.Adaptive()).fit(X, y)
    with pytest.raises(ValueError, match="to_arviz needs a posterior that is one factor, and"):
        to_arviz(averaged, X, y)
    short = BayesianLinearRegression(prior_precision=0.0).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match="to_arviz needs a proper posterior, and a combination"):
        to_arviz(short, X, y)
    model = BayesianLinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN in row 3"):
        to_arviz(model, X, np.where(np.arange(80) == 3, np.nan, y))


def test_newer_arviz_gets_a_tree(frame: Any) -> None:
    base = pytest.importorskip("arviz_base", reason="needs arviz-base, a part of ArviZ 1")
    from posterity.adapters import arviz as adapted

    X, y = frame
    groups = {"posterior": {"coef": np.zeros((2, 5, 3))}, "observed_data": {"y": y}}
    dims = {"coef": ["feature"], "y": ["observation"]}
    coords = {"feature": list("abc"), "observation": list(X.index)}
    tree = adapted._container(base, groups, coords, dims, ["coef"])
    assert tree["posterior"]["coef"].dims == ("chain", "draw", "feature")
    assert tree.attrs["improper_prior"] == "coef"


# ---- other likelihoods -----------------------------------------------------------------------


def labelled(X: Any, classes: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    eta = X.to_numpy() @ rng.normal(size=(3, len(classes)))
    return np.array(list(classes))[np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)]


def counted(X: Any, exposure: Any) -> np.ndarray:
    rate = exposure * np.exp(0.3 + X.to_numpy() @ [0.4, -0.3, 0.0])
    return np.random.default_rng(4).poisson(rate)


def design(data: Any, X: Any) -> np.ndarray:
    """Predictors (chains, draws, n), or (chains, draws, K, n)."""
    posterior = data.posterior
    return posterior["intercept"].values[..., None] + posterior["coef"].values @ X.to_numpy().T


@pytest.mark.parametrize("how", [{}, {"forgetting": forgetting.Adaptive()}], ids=str)
def test_two_classes(frame: Any, how: dict[str, Any]) -> None:
    X, _ = frame
    y = labelled(X, "nv")
    model = BayesianLogisticRegression(**how).fit(X, y)
    data = to_arviz(model, X, y, n_draws=5000, rng=0)
    drawn = data.posterior["coef"].values.reshape(-1, 3)
    exact = model.posterior_
    sd = np.sqrt(np.diag(exact.cov))[1:]
    np.testing.assert_allclose(drawn.mean(axis=0), exact.mean[1:], atol=0.05 * sd.max())
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.05)
    predicted = data.posterior_predictive["y"].values.mean((0, 1))
    np.testing.assert_allclose(predicted, model.predict_proba(X)[:, 1], atol=0.02)
    wanted = stats.bernoulli.logpmf(y == "v", 1.0 / (1.0 + np.exp(-design(data, X))))
    np.testing.assert_allclose(data.log_likelihood["y"].values, wanted, rtol=1e-7, atol=1e-9)
    assert data.attrs["classes"] == "n, v"
    assert data.observed_data["y"].values.tolist() == (y == "v").astype(int).tolist()
    assert data.attrs["improper_prior"] == "intercept, coef"


def test_a_class_that_came_first_though_it_is_sorted_last(frame: Any) -> None:
    X, _ = frame
    y = labelled(X, "nv")
    y[0] = "v"
    late = BayesianLogisticRegression(prior_precision=2.0, fit_intercept=False)
    late.partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    data = to_arviz(late, X, y, n_draws=5000, rng=0)
    predicted = data.posterior_predictive["y"].values.mean((0, 1))
    np.testing.assert_allclose(predicted, late.predict_proba(X)[:, 1], atol=0.02)
    assert data.attrs["improper_prior"] == ""
    np.testing.assert_allclose(data.prior["coef"].values.std((0, 1)), 0.5**0.5, rtol=0.03)
    assert abs(data.prior_predictive["y"].values.mean() - 0.5) < 0.02


def test_many_classes(frame: Any) -> None:
    X, _ = frame
    y = labelled(X, "abcd")
    model = BayesianLogisticRegression().fit(X, y)
    data = to_arviz(model, X, y, n_draws=5000, rng=0)
    posterior = data.posterior
    assert posterior["coef"].dims == ("chain", "draw", "class", "feature")
    assert posterior["coef"].coords["class"].values.tolist() == list("abcd")
    np.testing.assert_allclose(posterior["coef"].values.mean((0, 1)), model.coef_, atol=0.05)
    np.testing.assert_allclose(posterior["coef"].values.sum(axis=2), 0.0, atol=1e-9)
    eta = design(data, X)
    logs = eta - np.log(np.exp(eta).sum(axis=2, keepdims=True))
    places = np.searchsorted(list("abcd"), y)
    wanted = np.take_along_axis(logs, places[None, None, None], axis=2)[:, :, 0]
    np.testing.assert_allclose(data.log_likelihood["y"].values, wanted)
    drawn = data.posterior_predictive["y"].values
    shares = np.stack([(drawn == k).mean((0, 1)) for k in range(4)], axis=1)
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=0.025)


def test_counts_of_an_exposure(frame: Any) -> None:
    X, _ = frame
    exposure = np.random.default_rng(0).uniform(0.5, 4.0, 80)
    y = counted(X, exposure)
    model = BayesianPoissonRegression().fit(X, y, exposure=exposure)
    data = to_arviz(model, X, y, exposure=exposure, n_draws=5000, rng=0)
    wanted = stats.poisson.logpmf(y, exposure * np.exp(design(data, X)))
    np.testing.assert_allclose(data.log_likelihood["y"].values, wanted, rtol=1e-9)
    predictive = model.predict_distribution(X, exposure=exposure)
    drawn = data.posterior_predictive["y"].values.reshape(-1, 80)
    np.testing.assert_allclose(drawn.mean(axis=0), predictive.mean(), rtol=0.03)
    np.testing.assert_allclose(drawn.std(axis=0), predictive.std(), rtol=0.05)
    np.testing.assert_allclose(data.constant_data["exposure"].values, exposure)
    offset = np.log(exposure)
    added = to_arviz(model, X, y, offset=offset, n_draws=5000, rng=0)
    np.testing.assert_allclose(added.log_likelihood["y"].values, data.log_likelihood["y"].values)
    np.testing.assert_allclose(added.constant_data["offset"].values, offset)
    both = to_arviz(model, X, y, offset=offset, exposure=2.0, n_draws=10, rng=0)
    np.testing.assert_allclose(both.constant_data["exposure"].values, 2.0)
    wanted = stats.poisson.logpmf(y, 2.0 * exposure * np.exp(design(both, X)))
    np.testing.assert_allclose(both.log_likelihood["y"].values, wanted, rtol=1e-9)
    with pytest.raises(TypeError, match="offset is for models of counts, not for BayesianLinear"):
        to_arviz(BayesianLinearRegression().fit(X, y), X, y, offset=1.0)


@pytest.mark.parametrize("likelihood", ["student_t", "laplace"])
def test_heavy_tails(frame: Any, likelihood: str) -> None:
    X, y = frame
    y = y.copy()
    y[::20] += 30.0
    model = BayesianRobustRegression(likelihood=likelihood, df=4.0).fit(X, y)
    data = to_arviz(model, X, y, n_draws=5000, rng=0)
    errors, scale = y - design(data, X), model.noise_scale_
    noise = stats.t(4.0, scale=scale) if likelihood == "student_t" else stats.laplace(scale=scale)
    np.testing.assert_allclose(data.log_likelihood["y"].values, noise.logpdf(errors))
    drawn = data.posterior_predictive["y"].values.reshape(-1, 80)
    ends = np.quantile(drawn, [0.1, 0.9], axis=0).T
    np.testing.assert_allclose(
        ends, model.predict_interval(X, 0.8, outliers=True), atol=0.1 * scale
    )
    assert "prior" not in data.groups()


def test_the_noise_has_the_degrees_of_freedom_that_were_learned(frame: Any) -> None:
    X, y = frame
    y = y.copy()
    y[::20] += 30.0
    model = BayesianRobustRegression().fit(X, y)
    assert model.df_ < 4.0
    data = to_arviz(model, X, y, n_draws=100, rng=0)
    wanted = stats.t(model.df_, scale=model.noise_scale_).logpdf(y - design(data, X))
    np.testing.assert_allclose(data.log_likelihood["y"].values, wanted)


def test_arviz_runs_on_other_likelihoods() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    y = 1.0 + X["a"].to_numpy() + rng.standard_t(4.0, size=400)
    labels, counts = labelled(X, "abc"), counted(X, 2.0)
    for model, target, more in (
        (BayesianLogisticRegression().fit(X, labels == "a"), labels == "a", {}),
        (BayesianLogisticRegression().fit(X, labels), labels, {}),
        (BayesianPoissonRegression().fit(X, counts, exposure=2.0), counts, {"exposure": 2.0}),
        (BayesianRobustRegression().fit(X, y), y, {}),
    ):
        data = to_arviz(model, X, target, rng=0, **more)
        assert (az.summary(data)["r_hat"] < 1.01).all()
        # Leaving a row out costs about one coefficient's worth for each coefficient.
        loo, n_free = az.loo(data), model.coef_.size + 1
        inside = float(data.log_likelihood["y"].values.mean((0, 1)).sum())
        assert inside - 2.0 * n_free < loo.elpd_loo < inside + 1.0
        assert 0.3 * n_free < loo.p_loo < 1.7 * n_free
