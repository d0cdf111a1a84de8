"""A column that varies by less than rounding of its values: taken as constant, with a warning."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.forgetting import Adaptive, Exponential, Window

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
STEPS = np.arange(60.0)
LINE = 2.0 * STEPS + RNG.normal(size=60)
NOISE = RNG.normal(size=60)
COUNTS = RNG.poisson(np.exp(0.5 * NOISE)).astype(float)
MODELS = [
    (BayesianLinearRegression(), LINE),
    (BayesianLinearRegression(prior_precision="ard"), LINE),
    (BayesianLinearRegression(forgetting=Adaptive()), LINE),
    (BayesianLinearRegression(forgetting=Exponential(0.99)), LINE),
    (BayesianLinearRegression(noise="linear"), LINE),
    (BayesianLinearRegression(), np.column_stack([LINE, -LINE])),
    (BayesianRobustRegression(), LINE),
    (BayesianRobustRegression(forgetting=Window(size=40)), LINE),
    (BayesianQuantileRegression(), LINE),
    (BayesianQuantileRegression(quantile=[0.2, 0.8]), LINE),
    (BayesianLogisticRegression(), LINE > 60.0),
    (BayesianPoissonRegression(), COUNTS),
    (BayesianNegativeBinomialRegression(), COUNTS),
]


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize(("fresh", "y"), MODELS, ids=lambda value: repr(value)[:60])
def test_a_timestamp_is_named_once_on_the_line_of_the_user(fresh, y, way):
    X = pandas.DataFrame({"other": NOISE, "micros": 1.7e15 + 27.0 * STEPS})
    with pytest.warns(UserWarning, match=r"column 'micros' varies by only .* is taken as") as got:
        model = getattr(clone(fresh), way)(X, y)
    assert len(got) == 1
    assert got[0].filename == __file__
    assert "Subtract a number near 1.7e+15" in str(got[0].message)
    assert np.isinf(np.atleast_2d(model.posterior_.std())[:, 2]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)
        nearer = getattr(clone(fresh), way)(X.assign(micros=27.0 * STEPS), y)
    assert np.isfinite(np.atleast_2d(nearer.posterior_.std())).all()


@pytest.mark.parametrize("offset", [0.0, 5.0, 1e9, 1e10])
def test_columns_that_count_or_are_constant_do_not_warn(offset):
    X = np.column_stack([offset + NOISE, np.full(60, 1e15), np.zeros(60)])
    model = BayesianLinearRegression().fit(X, NOISE)
    assert model.coef_[0] == pytest.approx(1.0, rel=1e-3)


def test_a_given_prior_finds_the_effect_and_does_not_warn():
    x = 1.7e15 + 27.0 * STEPS[:, None]
    model = BayesianLinearRegression(prior_precision=0.0).fit(x, LINE)
    assert model.coef_[0] == pytest.approx(2.0 / 27.0, rel=0.01)
