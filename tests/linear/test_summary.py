"""What was learned, as a table, by names, and of one row: the same as what many rows are told."""

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.distributions import MultivariateMixture, MultivariateNormal
from posterity.files import dumps
from posterity.forgetting import Adaptive, Changepoint, Exponential, Window
from posterity.likelihoods import Bernoulli, Poisson

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = pandas.DataFrame(RNG.normal(size=(120, 2)) * [1.0, 10.0], columns=["age", "income"])
LINE = 1.0 + X.to_numpy() @ [1.0, 0.1]
Y = LINE + RNG.normal(size=120)
YES = RNG.random(120) < 1.0 / (1.0 + np.exp(-LINE))
LABELS = np.where(YES, "yes", "no")
THREE = np.where(RNG.random(120) < 0.2, "maybe", LABELS)
COUNTS = RNG.poisson(np.exp(0.2 * LINE))
ROW = {"age": 0.3, "income": 2.0}
MODELS = {
    "linear": (BayesianLinearRegression(), Y),
    "a given prior": (BayesianLinearRegression(prior_precision=1.0), Y),
    "a known noise": (BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0), Y),
    "several targets": (BayesianLinearRegression(), np.column_stack([Y, -Y])),
    "noise of its own": (BayesianLinearRegression(noise="linear"), Y),
    "exponential": (BayesianLinearRegression(forgetting=Exponential(0.99)), Y),
    "window": (BayesianLinearRegression(forgetting=Window(50)), Y),
    "adaptive": (BayesianLinearRegression(forgetting=Adaptive()), Y),
    "changepoint": (BayesianLinearRegression(forgetting=Changepoint()), Y),
    "two classes": (BayesianLogisticRegression(), LABELS),
    "three classes": (BayesianLogisticRegression(), THREE),
    "poisson": (BayesianPoissonRegression(), COUNTS),
    "negative binomial": (BayesianNegativeBinomialRegression(), COUNTS),
    "robust": (BayesianRobustRegression(), Y),
    "quantile": (BayesianQuantileRegression(quantile=0.9), Y),
    "any likelihood": (BayesianGeneralizedLinear(Poisson()), COUNTS),
}
COLUMNS = ["name", "mean", "sd", "low", "high", "probability_positive", "effect_per_sd"]


def fitted(name):
    model, y = MODELS[name]
    return model.__class__(**model.get_params(deep=False)).fit(X, y)


class TestSummary:
    @pytest.mark.parametrize("name", MODELS)
    def test_it_says_what_the_posterior_does(self, name):
        model = fitted(name)
        table = model.summary(0.9)
        assert [one for one in COLUMNS if one in table] == COLUMNS
        # The summary of these knows how skewed their posterior is, and of other parameters.
        skewed = name in ("two classes", "negative binomial")
        near = {"atol": 0.1 * model.posterior_.std().max()} if skewed else {}
        np.testing.assert_allclose(table["mean"], np.ravel(model.posterior_.mean), **near)
        np.testing.assert_allclose(table["sd"], np.ravel(model.posterior_.std()), **near)
        ends = np.reshape(model.posterior_.interval(0.9), (-1, 2))
        np.testing.assert_allclose(table[["low", "high"]], ends, **near)
        assert ((table["mean"] > 0.0) == (table["probability_positive"] > 0.5)).all()

    @pytest.mark.parametrize("name", ["linear", "a given prior", "several targets"])
    def test_effects_by_the_features_that_were_learned(self, name):
        model = fitted(name)
        mine, given = model.summary()["effect_per_sd"], model.summary(X=X)["effect_per_sd"]
        np.testing.assert_allclose(mine, given, rtol=1e-9)
        slopes = np.ravel(np.reshape(model.coef_, (-1, 2)) * X.std(ddof=0).to_numpy())
        np.testing.assert_allclose(mine.dropna(), slopes)

    def test_effects_of_weighted_and_of_recent_rows(self):
        weights = RNG.integers(0, 3, size=120)
        model = BayesianLinearRegression().fit(X, Y, weights)
        again = BayesianLinearRegression().fit(X.loc[X.index.repeat(weights)], Y.repeat(weights))
        np.testing.assert_allclose(
            model.summary()["effect_per_sd"], again.summary()["effect_per_sd"], rtol=1e-6
        )
        recent = BayesianLinearRegression(forgetting=Window(50), prior_precision=1.0).fit(X, Y)
        np.testing.assert_allclose(
            recent.summary().loc["income", "effect_per_sd"],
            recent.coef_[1] * X["income"].iloc[-50:].std(ddof=0),
        )

    def test_without_an_intercept_they_are_asked_with_rows(self):
        model = BayesianLinearRegression(fit_intercept=False).fit(X, Y)
        assert model.summary()["effect_per_sd"].isna().all()
        np.testing.assert_allclose(
            model.summary(X=X)["effect_per_sd"], model.coef_ * X.std(ddof=0).to_numpy()
        )

    @pytest.mark.parametrize(
        ("name", "ratio"),
        [
            ("two classes", "odds_ratio"),
            ("three classes", "odds_ratio"),
            ("poisson", "rate_ratio"),
            ("negative binomial", "rate_ratio"),
            ("any likelihood", "rate_ratio"),
        ],
    )
    def test_ratios(self, name, ratio):
        table = fitted(name).summary()
        np.testing.assert_allclose(table[ratio], np.exp(table["mean"]))
        np.testing.assert_allclose(table[ratio + "_high"], np.exp(table["high"]))

    def test_no_ratio_where_it_means_nothing(self):
        probit = BayesianGeneralizedLinear(Bernoulli("probit")).fit(X, YES)
        for model in (probit, fitted("linear")):
            assert not any("ratio" in column for column in model.summary())

    def test_before_any_row(self):
        with pytest.raises(Exception, match="has learned nothing yet"):
            BayesianLinearRegression().summary()

    def test_a_flat_direction(self):
        model = BayesianLinearRegression(prior_precision=0.0).fit(X[["age"]].assign(same=1.0), Y)
        assert np.isinf(model.summary().loc["same", "sd"])

    def test_without_pandas(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        model = BayesianLinearRegression().fit(X.to_numpy(), Y)
        with pytest.raises(ImportError, match="needs pandas: install it"):
            model.summary()


class TestByName:
    def test_one_coefficient(self):
        posterior = fitted("linear").posterior_
        assert float(posterior["age"].mean()) == posterior.mean[1]
        assert float(posterior.marginal("income").std()) == posterior.std()[2]

    def test_contrasts(self):
        posterior = fitted("a given prior").posterior_
        row = np.array([0.0, -1.0, 2.0])
        predictive = posterior.contrast({"income": 2.0, "age": -1.0})
        np.testing.assert_allclose(predictive.mean(), row @ posterior.mean)
        np.testing.assert_allclose(predictive.var(), row @ posterior.cov @ row)

    @pytest.mark.parametrize(
        ("statement", "weights", "above"),
        [
            ("age > 0.9", {"age": 1.0}, 0.9),
            ("0.9 < age", {"age": 1.0}, 0.9),
            ("age >= 0.9", {"age": 1.0}, 0.9),
            ("age - 9 * income > 0", {"age": 1.0, "income": -9.0}, 0.0),
            ("age > 8 * income + 0.1", {"age": 1.0, "income": -8.0}, 0.1),
            ("income < age", {"age": 1.0, "income": -1.0}, 0.0),
        ],
    )
    def test_statements(self, statement, weights, above):
        posterior = fitted("linear").posterior_
        predictive = posterior.probability(statement)
        np.testing.assert_allclose(predictive, posterior.contrast(weights).sf(above))
        turned = statement.translate(str.maketrans("<>", "><"))
        np.testing.assert_allclose(posterior.probability(turned), 1.0 - predictive, atol=1e-12)

    def test_names_that_look_like_sums(self):
        posterior = MultivariateNormal([1.0, 5.0], np.eye(2), names=["a", "a - b < 3"])
        np.testing.assert_allclose(
            posterior.probability("a - b < 3 > a"),
            posterior.contrast({"a - b < 3": 1, "a": -1}).sf(0),
        )

    @pytest.mark.parametrize(
        "statement", ["age", "agee > 0", "age > 0 > 1", "> 0", "age > income *"]
    )
    def test_what_can_t_be_read(self, statement):
        with pytest.raises(ValueError, match="is not a comparison: write one"):
            fitted("linear").posterior_.probability(statement)

    def test_a_name_that_is_none(self):
        with pytest.raises(
            ValueError, match="no coefficient 'agee': give one of 'intercept', 'age'"
        ):
            fitted("linear").posterior_["agee"]

    def test_repr_names_the_first(self):
        predictive = repr(MultivariateNormal(np.arange(8.0), np.eye(8), names=list("abcdefgh")))
        assert predictive == (
            "MultivariateNormal(a=0 ± 1, b=1 ± 1, c=2 ± 1, d=3 ± 1, e=4 ± 1, f=5 ± 1, 2 more; "
            "scale=1)"
        )
        one = MultivariateNormal([1.0], [[2.0]], names=["a"])
        assert repr(MultivariateMixture([one, one], [0.5, 0.5])) == (
            "MultivariateMixture(a=1 ± 0.5; 2 components)"
        )


class TestOneRow:
    @pytest.mark.parametrize("name", MODELS)
    def test_it_is_told_what_many_are(self, name):
        model, frame = fitted(name), pandas.DataFrame([ROW])
        before = dumps(model)
        low, high = model.predict_interval_one(ROW, 0.9)
        ends = model.predict_interval(frame, 0.9)[0]
        np.testing.assert_allclose(np.stack([low, high], axis=-1), ends)
        one, many = model.predict_distribution_one(ROW), model.predict_distribution(frame)
        if hasattr(many, "probabilities"):
            np.testing.assert_allclose(np.ravel(one.probabilities), many.probabilities[0])
        else:
            np.testing.assert_allclose(np.ravel(one.mean()), np.ravel(many.mean()))
        assert dumps(model) == before

    @pytest.mark.parametrize("name", MODELS)
    def test_predicted_then_learned(self, name):
        y = MODELS[name][1]
        one, many = fitted(name), fitted(name)
        predictive = one.predict_then_learn_one(ROW, y[0])
        before = many.predict_then_learn(pandas.DataFrame([ROW]), y[:1])
        np.testing.assert_allclose(
            np.ravel(
                predictive.logpmf(y[0])
                if hasattr(predictive, "logpmf")
                else predictive.logpdf(y[0])
            ),
            np.ravel(
                before.logpmf(y[:1]) if hasattr(predictive, "logpmf") else before.logpdf(y[:1])
            ),
        )
        np.testing.assert_array_equal(one.coef_, many.coef_)

    def test_the_first_row(self):
        model = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)
        predictive = model.predict_then_learn_one(ROW, 1.0)
        assert float(predictive.mean()) == 0.0
        assert model.n_observations_ == 1.0

    @pytest.mark.parametrize("name", ["linear", "poisson", "robust", "any likelihood"])
    def test_the_mean_is_known_better_than_an_observation(self, name):
        model = fitted(name)
        mean, wide = (model.predict_interval(X, 0.9, of=of) for of in ("mean", "observation"))
        # Of counts the normal eta nearest to a mixture, there: its parts differ in their scales.
        predictive = np.stack(model.predict_mean_distribution(X).interval(0.9), axis=1)
        near = 4e-2 if name == "poisson" else 1e-2
        np.testing.assert_allclose(mean, predictive, rtol=near, atol=1e-6)
        assert (np.ptp(mean, axis=1) < np.ptp(wide, axis=1)).all()

    @pytest.mark.parametrize("name", [name for name in MODELS if name != "several targets"])
    def test_of_something_else(self, name):
        with pytest.raises(ValueError, match="of is 'line'"):
            fitted(name).predict_interval(X, of="line")

    @pytest.mark.parametrize(
        ("value", "predictive"),
        [(None, r"is not finite \(nan\)"), ("x", "is 'x', which is not a number"),
         (float("nan"), r"is not finite \(nan\)")],
    )  # fmt: skip
    def test_a_value_that_is_no_number_is_named(self, value, predictive):
        model = fitted("linear")
        row = {**ROW, "age": value}
        calls = model.predict_one, model.predict_distribution_one, lambda x: model.learn_one(x, 1.0)
        for call in calls:
            with pytest.raises((TypeError, ValueError), match=f"x in column 'age' {predictive}"):
                call(row)


@pytest.mark.parametrize("name", ["linear", "two classes", "poisson", "exponential"])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_what_never_varied_is_not_known(name, value):
    model, y = MODELS[name]
    model = model.__class__(**model.get_params(deep=False)).fit(X.assign(same=value), y)
    table = model.summary()
    assert np.isinf(table.loc["same", ["sd", "high"]].astype(float)).all()
    assert table.loc["same", "probability_positive"] == 0.5
    assert np.isfinite(table.loc[["age", "income"], "sd"]).all()


def test_effects_are_right_however_far_a_feature_is_from_zero() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = X @ [2.0, 1.0] + rng.normal(size=200)
    near = BayesianLinearRegression().fit(X, y).summary()["effect_per_sd"]
    far = BayesianLinearRegression().fit(X + 1e8, y).summary()["effect_per_sd"]
    np.testing.assert_allclose(far[1:], near[1:], rtol=1e-6)
