"""Priors by name: the same as arrays, of all models; and what can't be read says what can."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.basis import Spline
from posterity.distributions import Normal
from posterity.files import dumps, loads
from posterity.likelihoods import Poisson

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
# Of "unsold" no row tells: what is known of it is its prior.
X = pandas.DataFrame(
    {"price": RNG.normal(size=80), "size": RNG.normal(size=80), "unsold": np.zeros(80)}
)
LINE = 0.5 - 0.8 * X["price"].to_numpy() + 0.3 * X["size"].to_numpy()
Y = LINE + 0.5 * RNG.normal(size=80)
YES = (RNG.random(80) < 1.0 / (1.0 + np.exp(-LINE))).astype(int)
COUNTS = RNG.poisson(np.exp(LINE))
MODELS = {
    "linear": (BayesianLinearRegression(noise_precision=4.0), Y),
    "labels": (BayesianLogisticRegression(), YES),
    "poisson": (BayesianPoissonRegression(), COUNTS),
    "negative binomial": (BayesianNegativeBinomialRegression(), COUNTS),
    "any likelihood": (BayesianGeneralizedLinear(Poisson()), COUNTS),
    "robust": (BayesianRobustRegression(noise_scale=0.4), Y),
    "laplace": (BayesianRobustRegression(likelihood="laplace", noise_scale=0.4), Y),
    "quantile": (BayesianQuantileRegression(noise_scale=0.2), Y),
}


def model_of(name, **parameters):
    return clone(MODELS[name][0]).set_params(**parameters)


@pytest.mark.parametrize("name", MODELS)
class TestEveryModel:
    def test_names_are_places(self, name):
        y = MODELS[name][1]
        by_name = model_of(
            name,
            prior_mean={"price": -1.0},
            prior_precision={"unsold": 1.0, "price": 4.0, "size": 2.0},
        )
        by_place = model_of(name, prior_mean=[-1.0, 0.0, 0.0], prior_precision=[4.0, 2.0, 1.0])
        ours, theirs = by_name.fit(X, y).posterior_, by_place.fit(X, y).posterior_
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.std(), theirs.std())

    def test_a_distribution_is_what_it_says(self, name):
        prior = {"price": Normal(-1.0, 0.5), "unsold": Normal(3.0, 0.25)}
        model = model_of(name, prior=prior).fit(X, MODELS[name][1])
        unsold = model.posterior_["unsold"]
        np.testing.assert_allclose(unsold.mean(), 3.0)
        np.testing.assert_allclose(unsold.std(), 0.25)
        numbers = model_of(
            name,
            prior_mean={"price": -1.0, "unsold": 3.0},
            prior_precision={"price": 4.0, "unsold": 16.0},
        ).fit(X, MODELS[name][1])
        np.testing.assert_array_equal(model.posterior_.mean, numbers.posterior_.mean)
        assert np.isfinite(model.posterior_["size"].std())

    def test_it_is_kept_in_a_file(self, name):
        one, y = X[["price"]], MODELS[name][1]
        model = model_of(name, prior={"price": Normal(-1.0, 0.5)}).fit(one, y)
        again = loads(dumps(model))
        assert repr(again.prior) == repr(model.prior)
        assert dumps(again) == dumps(model)
        np.testing.assert_array_equal(again.posterior_.mean, model.posterior_.mean)
        assert dumps(clone(again).fit(one, y)) == dumps(model)

    def test_names_that_are_none(self, name):
        for parameter in ("prior_mean", "prior_precision"):
            model = model_of(name, **{parameter: {"prise": 1.0}})
            message = f"{parameter} names 'prise', which is no feature: the features are 'price', "
            with pytest.raises(ValueError, match=message):
                model.fit(X, MODELS[name][1])
            model.set_params(**{parameter: {"intercept": 1.0}}, fit_intercept=False)
            with pytest.raises(ValueError, match=f"{parameter} names the intercept, but fit_inter"):
                model.fit(X, MODELS[name][1])

    def test_an_intercept_is_a_feature_that_is_1(self, name):
        y = MODELS[name][1]
        prior = {"intercept": Normal(2.0, 0.1), "price": Normal(-1.0, 0.5)}
        ours = model_of(name, prior=prior).fit(X[["price"]], y)
        theirs = model_of(name, prior=prior, fit_intercept=False)
        theirs.fit(X[["price"]].assign(intercept=1.0)[["intercept", "price"]], y)
        np.testing.assert_allclose(ours.posterior_.mean, theirs.posterior_.mean, rtol=1e-6)
        np.testing.assert_allclose(ours.posterior_.std(), theirs.posterior_.std(), rtol=1e-6)
        again = loads(dumps(ours))
        assert dumps(again) == dumps(ours)
        np.testing.assert_array_equal(again.posterior_.mean, ours.posterior_.mean)


class TestWhatIsSaid:
    @pytest.mark.parametrize(
        ("model", "parameter"),
        [
            (BayesianLinearRegression(), "noise_precision"),
            (BayesianRobustRegression(), "noise_scale"),
            (BayesianQuantileRegression(), "noise_scale"),
        ],
    )
    def test_where_noise_is_learned(self, model, parameter):
        model.set_params(prior={"price": Normal(-1.0, 0.5)})
        with pytest.raises(ValueError, match=f"are then relative to it: give {parameter}, or"):
            model.fit(X, Y)
        assert not hasattr(model, "n_features_in_")

    def test_prior_alone(self):
        model = BayesianPoissonRegression(prior={"price": Normal(-1, 0.5)}, prior_precision=1.0)
        with pytest.raises(ValueError, match="prior_mean or prior_precision too: give prior alone"):
            model.fit(X, COUNTS)

    @pytest.mark.parametrize("one", [1.0, (-1.0, 0.5), Normal(0.0, 0.0), Normal([0.0, 1.0], 1.0)])
    def test_what_is_no_prior(self, one):
        with pytest.raises(ValueError, match=r"prior\['price'\] is .* with Normal from posterity"):
            BayesianPoissonRegression(prior={"price": one}).fit(X, COUNTS)

    def test_a_distribution_for_all(self):
        with pytest.raises(TypeError, match="give a distribution for each named feature"):
            BayesianPoissonRegression(prior=Normal(0.0, 1.0)).fit(X, COUNTS)

    def test_what_is_no_number(self):
        with pytest.raises(ValueError, match=r"prior_precision\['price'\] is 'ard'"):
            BayesianLinearRegression(prior_precision={"price": "ard"}).fit(X, Y)
        with pytest.raises(ValueError, match="prior_precision is negative"):
            BayesianLinearRegression(prior_precision={"price": -1.0}).fit(X, Y)


def test_means_by_name_beside_a_precision_that_is_learned():
    by_name = BayesianLinearRegression(prior_mean={"price": -1.0}).fit(X, Y)
    by_place = BayesianLinearRegression(prior_mean=[-1.0, 0.0, 0.0]).fit(X, Y)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)


def test_features_without_names_are_x0_x1():
    by_name = BayesianLinearRegression(prior_precision={"x1": 2.0}).fit(X.to_numpy()[:, :2], Y)
    by_place = BayesianLinearRegression(prior_precision=[0.0, 2.0]).fit(X.to_numpy()[:, :2], Y)
    np.testing.assert_array_equal(by_name.coef_, by_place.coef_)


def test_functions_of_a_basis_have_names_too():
    names = BayesianLinearRegression(basis={"price": Spline()}).fit(X, Y).posterior_.names
    numbers = dict.fromkeys(names[1:], 3.0)
    by_name = BayesianLinearRegression(basis={"price": Spline()}, prior_precision=numbers).fit(X, Y)
    alike = BayesianLinearRegression(
        basis={"price": Spline()}, prior_precision=np.full(len(numbers), 3.0)
    ).fit(X, Y)
    np.testing.assert_array_equal(by_name.coef_, alike.coef_)


def test_several_classes_and_targets():
    three = np.arange(80) % 3
    by_name = BayesianLogisticRegression(prior_precision={"price": 2.0, "size": 2.0, "unsold": 2.0})
    np.testing.assert_array_equal(
        by_name.fit(X, three).coef_,
        BayesianLogisticRegression(prior_precision=[2.0] * 3).fit(X, three).coef_,
    )
    both = BayesianLinearRegression(prior_precision={"price": 2.0}).fit(X, np.column_stack([Y, -Y]))
    np.testing.assert_allclose(both.coef_[0], -both.coef_[1])


def test_one_row_at_a_time():
    model = BayesianLinearRegression(prior={"price": Normal(-1.0, 0.5)}, noise_precision=1.0)
    model.learn_one({"price": 0.0, "size": 1.0}, 2.0)
    assert float(model.posterior_["price"].mean()) == -1.0


FINITE = st.floats(-5.0, 5.0)
PRECISION = st.floats(0.01, 1e4)


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 12), mean=FINITE, precision=PRECISION)
def test_intercepts_are_conjugate(seed, n, mean, precision):
    """Bishop (2006), equations 3.50 and 3.51, with the intercept as the first coefficient."""
    rng = np.random.default_rng(seed)
    rows, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    prior = {
        "intercept": Normal(mean, precision**-0.5),
        "x0": Normal(0.5, 2.0),
        "x1": Normal(-0.5, 0.5),
    }
    one = np.column_stack([np.ones(n), rows])
    before, noise = np.diag([precision, 0.25, 4.0]), 2.0
    after = before + noise * one.T @ one
    expected = np.linalg.solve(after, before @ [mean, 0.5, -0.5] + noise * one.T @ y)
    fresh = BayesianLinearRegression(prior=prior, noise_precision=noise)

    together = clone(fresh).fit(rows, y)
    in_rows = clone(fresh)
    for row, target in zip(rows, y, strict=True):
        in_rows.learn_one(row, target)
    merged = clone(fresh).fit(rows[: n // 2 or 1], y[: n // 2 or 1])
    if n > 1:
        merged = merged.merge(clone(fresh).fit(rows[n // 2 :], y[n // 2 :]))
    for model in (together, in_rows, merged, loads(dumps(together))):
        posterior = model.posterior_
        np.testing.assert_allclose(posterior.mean, expected, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(posterior.cov, np.linalg.inv(after), rtol=1e-7, atol=1e-12)
    if n > 1:
        merged.unlearn(rows[n // 2 :], y[n // 2 :])
        half = clone(fresh).fit(rows[: n // 2], y[: n // 2])
        np.testing.assert_allclose(merged.posterior_.mean, half.posterior_.mean, atol=1e-6)
    predictive = 0.5 * np.log(noise / (2.0 * np.pi)) * n
    gap = y - one @ expected
    off = expected - [mean, 0.5, -0.5]
    evidence = (
        predictive
        + 0.5 * (np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1])
        - 0.5 * (noise * gap @ gap + off @ before @ off)
    )
    np.testing.assert_allclose(together.log_evidence_, evidence, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("noise_precision", [None, 4.0])
def test_intercepts_beside_a_full_matrix(noise_precision):
    model = BayesianLinearRegression(
        prior_mean={"intercept": 3.0},
        prior_precision={"intercept": 1e12, "price": 1.0},
        noise_precision=noise_precision,
    ).fit(X, Y)
    np.testing.assert_allclose(model.intercept_, 3.0, atol=1e-6)
    both = clone(model).fit(X, np.column_stack([Y, -Y]))
    np.testing.assert_allclose(both.intercept_, 3.0, atol=1e-6)


def test_a_column_that_is_called_intercept():
    named = X[["price"]].rename(columns={"price": "intercept"})
    prior = {"intercept": Normal(-1.0, 0.5)}
    model = BayesianPoissonRegression(prior=prior).fit(named, COUNTS)
    other = BayesianPoissonRegression(prior={"price": prior["intercept"]}).fit(X[["price"]], COUNTS)
    np.testing.assert_array_equal(model.posterior_.mean, other.posterior_.mean)


def test_where_an_intercept_can_have_no_prior():
    learned = BayesianLinearRegression(prior_mean={"intercept": 3.0})
    with pytest.raises(ValueError, match="give prior_precision by name too"):
        learned.fit(X, Y)
    labels = BayesianLogisticRegression(prior={"intercept": Normal(0.0, 1.0)})
    with pytest.raises(ValueError, match="with more than two classes there is one for each"):
        labels.fit(X, np.arange(80) % 3)


def test_an_intercept_is_believed_before_any_label():
    model = BayesianLogisticRegression(prior={"intercept": Normal(-4.0, 0.1)})
    model.learn_one({"price": 0.0}, 0).learn_one({"price": 0.0}, 1)
    assert model.predict_proba_one({"price": 0.0})[1] < 0.05
