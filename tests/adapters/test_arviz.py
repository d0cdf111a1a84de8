"""Draws for ArviZ: their moments are the posterior's, and ArviZ's functions run on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from posterity import BayesianLinearRegression, BayesianLogisticRegression, forgetting
from posterity.adapters import to_arviz

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
    told = model.predict_distribution(X)
    predicted = data.posterior_predictive["y"].values.reshape(-1, 80)
    np.testing.assert_allclose(predicted.mean(axis=0), told.mean(), atol=0.03)
    np.testing.assert_allclose(predicted.std(axis=0), told.std(), rtol=0.05)


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
    with pytest.raises(TypeError, match="to_arviz draws from a BayesianLinearRegression, not from"):
        to_arviz(BayesianLogisticRegression(), X, y)
    averaged = BayesianLinearRegression(forgetting=forgetting.Adaptive()).fit(X, y)
    with pytest.raises(ValueError, match="to_arviz needs a posterior that is one factor, and"):
        to_arviz(averaged, X, y)
    short = BayesianLinearRegression(prior_precision=0.0).fit(X[:2], y[:2])
    with pytest.raises(ValueError, match="to_arviz needs a proper posterior, and a direction"):
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
    tree = adapted._container(base, groups, coords, dims, {"improper_prior": ""})
    assert tree["posterior"]["coef"].dims == ("chain", "draw", "feature")
    assert tree.attrs["improper_prior"] == ""
