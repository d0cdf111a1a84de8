"""Average effects, R^2 and what is practically nothing, against formulas and sampling."""

import math

import numpy as np
import pytest
from scipy.special import expit

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
from posterity.files import dumps
from posterity.likelihoods import Poisson

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(3)
N = 300
COLOUR = RNG.integers(0, 3, N)
X = pandas.DataFrame(
    {
        "age": RNG.normal(40.0, 10.0, N),
        "member": RNG.integers(0, 2, N),
        "colour=red": (COLOUR == 1) * 1.0,
        "colour=blue": (COLOUR == 2) * 1.0,
    }
)
LINE = 0.03 * X["age"].to_numpy() - 1.0 + X["member"].to_numpy() + 0.5 * (COLOUR == 1)
Y = LINE + RNG.normal(size=N)
YES = (RNG.random(N) < expit(LINE)).astype(int)
COUNTS = RNG.poisson(np.exp(LINE))


def changed(**values):
    return X.assign(**values)


class TestAverageEffects:
    def test_of_a_line_they_are_its_coefficients(self):
        model = BayesianLinearRegression().fit(X, Y)
        effects, table = model.average_effects(X), model.summary()
        for column in ("mean", "sd", "low", "high", "probability_positive"):
            np.testing.assert_allclose(effects[column], table[column].iloc[1:], rtol=1e-9)

    def test_per_sd(self):
        model = BayesianLinearRegression().fit(X, Y)
        one, sd = model.average_effects(X), model.average_effects(X, per="sd")
        np.testing.assert_allclose(
            sd.loc["age", "mean"], one.loc["age", "mean"] * X["age"].std(ddof=0)
        )
        np.testing.assert_allclose(sd.loc["member", "mean"], one.loc["member", "mean"])

    @pytest.mark.parametrize(
        ("model", "y"),
        [
            (BayesianLogisticRegression(), YES),
            (BayesianPoissonRegression(), COUNTS),
            (BayesianNegativeBinomialRegression(), COUNTS),
            (BayesianGeneralizedLinear(Poisson()), COUNTS),
        ],
    )
    def test_they_are_differences_of_expected_targets(self, model, y):
        model.fit(X, y)
        before = dumps(model)
        effects = model.average_effects(X, size=4000)
        assert dumps(model) == before
        pairs = {
            "age": (X, changed(age=X["age"] + 1.0)),
            "member": (changed(member=0), changed(member=1)),
            "colour=red": (
                changed(**{"colour=red": 0, "colour=blue": 0}),
                changed(**{"colour=red": 1, "colour=blue": 0}),
            ),
        }
        for name, (low, high) in pairs.items():
            draws = (model.sample_mean(high, 4000, 7) - model.sample_mean(low, 4000, 7)).mean(1)
            error = 5.0 * draws.std() / math.sqrt(4000)
            assert abs(effects.loc[name, "mean"] - draws.mean()) < error
            assert abs(effects.loc[name, "low"] - np.quantile(draws, 0.025)) < 3.0 * error
            assert abs(effects.loc[name, "probability_positive"] - (draws > 0).mean()) < 0.05

    def test_a_category_with_a_column_for_each_level(self):
        full = X.assign(**{"colour=green": (COLOUR == 0) * 1.0})[
            ["age", "colour=green", "colour=red", "colour=blue"]
        ]
        model = BayesianLinearRegression(prior_precision=1e-3).fit(full, Y)
        effects = model.average_effects(full)
        assert effects.index.tolist() == ["age", "colour=red", "colour=blue"]
        expected = model.posterior_.contrast({"colour=red": 1.0, "colour=green": -1.0})
        np.testing.assert_allclose(effects.loc["colour=red", "mean"], expected.mean())
        np.testing.assert_allclose(effects.loc["colour=red", "sd"], expected.std())

    def test_columns_that_are_not_levels_though_named_like_them(self):
        both = X.assign(**{"colour=blue": 1.0})
        model = BayesianLinearRegression().fit(X, Y)
        assert model.average_effects(both).shape == (4, 6)

    def test_through_a_basis(self):
        model = BayesianLinearRegression(basis={"age": Spline()}).fit(X, Y)
        effects = model.average_effects(X)
        last = X["age"].max()
        before = X["age"] - (X["age"] + 1.0 > last)  # no step leaves the domain
        low, high = changed(age=before), changed(age=before + 1.0)
        difference = model.predict(high) - model.predict(low)
        np.testing.assert_allclose(effects.loc["age", "mean"], difference.mean())
        assert effects.index.tolist() == X.columns.tolist()

    def test_of_several_classes_they_add_up_to_nothing(self):
        model = BayesianLogisticRegression().fit(X, np.array(["a", "b", "c"])[COLOUR])
        effects = model.average_effects(X, size=200)
        assert effects["class"].tolist() == ["a", "b", "c"] * 4
        np.testing.assert_allclose(effects.loc["age", "mean"].sum(), 0.0, atol=1e-12)

    def test_of_several_targets(self):
        model = BayesianLinearRegression().fit(X, np.column_stack([Y, -Y]))
        effects = model.average_effects(X, size=200).loc["age"]
        assert effects["target"].tolist() == ["y0", "y1"]
        np.testing.assert_allclose(effects["mean"].to_numpy(), model.coef_[:, 0], atol=2e-3)

    def test_many_rows_are_averaged_some_at_a_time(self, monkeypatch):
        model = BayesianPoissonRegression().fit(X, COUNTS, exposure=1.0 + COLOUR)
        whole = model.average_effects(X, size=50, exposure=1.0 + COLOUR)
        monkeypatch.setattr("posterity.linear.effects._DRAWN_AT_ONCE", 50 * 7)
        some = model.average_effects(X, size=50, exposure=1.0 + COLOUR)
        pandas.testing.assert_frame_equal(whole, some)

    def test_what_is_refused(self):
        model = BayesianLinearRegression().fit(X, Y)
        with pytest.raises(ValueError, match="per is 'SD': it must be 'unit' or 'sd'"):
            model.average_effects(X, per="SD")
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            BayesianLinearRegression().fit([[0.0], [1.0]], [0, 1]).average_effects(np.zeros((0, 1)))
        with pytest.raises(ValueError, match="size is 0"):
            model.average_effects(X, size=0)


class TestShareExplained:
    def test_of_a_line_it_is_that_of_draws_by_hand(self):
        model = BayesianLinearRegression(prior_precision=0.0).fit(X, Y)
        ours = model.sample_r2(X, 4000, rng=0)
        design, rng = np.column_stack([np.ones(N), X]), np.random.default_rng(1)
        least, rss, *_ = np.linalg.lstsq(design, Y)
        variances = rss[0] / rng.chisquare(N - 5, 4000)
        root = np.linalg.cholesky(np.linalg.inv(design.T @ design))
        steps = np.sqrt(variances)[:, None] * (rng.normal(size=(4000, 5)) @ root.T)
        means = (least + steps) @ design.T
        theirs = means.var(axis=1) / (means.var(axis=1) + variances)
        np.testing.assert_allclose(ours.mean(), theirs.mean(), atol=0.004)
        np.testing.assert_allclose(ours.std(), theirs.std(), rtol=0.08)

    def test_of_labels_and_counts(self):
        model = BayesianLogisticRegression().fit(X, YES)
        means = model.sample_mean(X, 500, 0)
        expected = means.var(1) / (means.var(1) + (means * (1.0 - means)).mean(1))
        np.testing.assert_allclose(model.sample_r2(X, 500, 0), expected)
        model = BayesianPoissonRegression().fit(X, COUNTS)
        means = model.sample_mean(X, 500, 0)
        expected = means.var(1) / (means.var(1) + means.mean(1))
        np.testing.assert_allclose(model.sample_r2(X, 500, 0), expected)

    def test_of_a_negative_binomial_with_the_dispersion_that_was_learned(self):
        model = BayesianNegativeBinomialRegression().fit(X, COUNTS)
        means = model.sample_mean(X, 500, 0)
        around = (means + model.dispersion_ * np.square(means)).mean(1)
        np.testing.assert_allclose(
            model.sample_r2(X, 500, 0), means.var(1) / (means.var(1) + around), rtol=1e-6
        )

    def test_of_heavy_tails(self):
        share = BayesianRobustRegression(df=50.0).fit(X, Y).sample_r2(X, rng=0)
        gaussian = BayesianLinearRegression().fit(X, Y).sample_r2(X, rng=0)
        assert abs(share.mean() - gaussian.mean()) < 0.03

    @pytest.mark.parametrize(
        ("model", "y", "message"),
        [
            (BayesianLinearRegression(noise="linear"), Y, "noise is 'linear'"),
            (BayesianRobustRegression(df=2.0), Y, "noise of df=2 has no variance"),
            (BayesianQuantileRegression(), Y, "R\\^2 is of means"),
            (BayesianLogisticRegression(), COLOUR, "there are 3 classes"),
        ],
    )
    def test_what_has_none(self, model, y, message):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y).sample_r2(X)


class TestPracticallyNothing:
    def test_between_two_numbers(self):
        posterior = BayesianLinearRegression().fit(X, Y).posterior_
        age = posterior["age"]
        np.testing.assert_allclose(
            posterior.probability("0.02 < age < 0.03"), age.cdf(0.03) - age.cdf(0.02)
        )
        assert posterior.probability("0.03 > age >= 0.02") == posterior.probability(
            "0.02 < age < 0.03"
        )
        difference = posterior.contrast({"colour=red": 1.0, "colour=blue": -2.0})
        np.testing.assert_allclose(
            posterior.probability("-1 < colour=red - 2 * colour=blue + 0.5 < 1"),
            difference.cdf(0.5) - difference.cdf(-1.5),
        )
        assert posterior.probability("1 < age < 0") == 0.0

    @pytest.mark.parametrize("statement", ["0 < age > 1", "0 < age < member", "0 < 1 < age < 2"])
    def test_what_can_t_be_read(self, statement):
        with pytest.raises(ValueError, match=r"or '-0\.1 < age < 0\.1'; the coefficients are"):
            BayesianLinearRegression().fit(X, Y).posterior_.probability(statement)


class TestRowWeights:
    def test_they_are_those_of_gibbs_sampling(self):
        rng, df, scale = np.random.default_rng(5), 4.0, 0.5
        x = np.column_stack([np.ones(30), rng.normal(size=30)])
        y = x @ [1.0, 2.0] + scale * rng.standard_t(df, 30)
        y[:2] += 6.0
        total, weights = np.zeros(30), np.ones(30)
        for turn in range(4200):
            root = np.linalg.cholesky(x.T @ (weights[:, None] * x))
            mean = np.linalg.solve(x.T @ (weights[:, None] * x), x.T @ (weights * y))
            line = mean + scale * np.linalg.solve(root.T, rng.normal(size=2))
            squares = np.square((y - x @ line) / scale)
            weights = rng.gamma(0.5 * (df + 1.0), 2.0 / (df + squares))
            total += weights * (turn >= 200)
        model = BayesianRobustRegression(df=df, prior_precision=0.0, noise_scale=scale)
        ours = model.fit(x[:, 1:], y).row_weights(x[:, 1:], y)
        np.testing.assert_allclose(ours, total / 4000, atol=0.06)
        assert set(np.argsort(ours)[:2]) == {0, 1}

    def test_under_laplace_noise(self):
        model = BayesianRobustRegression(likelihood="laplace").fit(
            [[0], [1], [2], [3]], [0, 1, 2, 3.1]
        )
        weights = model.row_weights([[1.0], [1.0]], [1.0, 1e6])
        assert weights[0] <= 1.0
        np.testing.assert_allclose(weights[1], model.noise_scale_ / 1e6, rtol=1e-3)

    def test_of_a_frame_and_in_a_stream(self):
        model = BayesianRobustRegression().partial_fit(X, Y)
        before = dumps(model)
        weights = model.row_weights(X, np.where(np.arange(N) == 7, 50.0, Y))
        assert weights.argmin() == 7
        assert weights[7] < 0.01
        assert dumps(model) == before

    def test_there_is_no_attribute(self):
        model = BayesianRobustRegression().fit(X, Y)
        assert not hasattr(model, "weights_")
        with pytest.raises(AttributeError, match=r"row_weights\(X, y\) computes them"):
            _ = model.weights_

    def test_of_a_line_that_is_not_known(self):
        model = BayesianRobustRegression(prior_precision=0.0).fit([[0.0], [0.0]], [1.0, 1.5])
        np.testing.assert_allclose(model.row_weights([[3.0]], [100.0]), 1.0)
