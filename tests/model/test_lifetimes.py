"""Formulas whose response has two ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianGeneralizedLinear, Model
from posterity.files import dumps, loads
from posterity.likelihoods import Censored, Weibull


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, cut = rng.normal(size=60), rng.uniform(2.0, 20.0, 60)
    life = np.exp(2.0 + 0.5 * x) * rng.weibull(2.0, 60)
    ended = life < cut
    time = np.minimum(life, cut)
    ends = {"low": time, "high": np.where(ended, time, np.inf)}
    return pd.DataFrame({"time": time, "ended": ended, "x": x, **ends})


def test_both_ways_to_write_ends_are_the_regression_of_censored_lifetimes(frame):
    known = Censored(Weibull(2.0))
    one = Model("Surv(time, ended) ~ x", "weibull:2").fit(frame)
    other = Model("cens(low, high) ~ x", known).fit(frame)
    assert_allclose(one.summary()["mean"], other.summary()["mean"])
    ends = frame[["low", "high"]].to_numpy()
    plain = BayesianGeneralizedLinear(known, prior_precision=0.0, approximation="moments")
    plain.fit(frame[["x"]], ends)
    means = [plain.intercept_, *plain.coef_]
    assert_allclose(one.summary()["mean"], means, atol=0.05 * plain.posterior_.std()[1])


def test_lifetimes_in_batches_unlearned_and_from_a_file_are_those_of_fit(frame):
    whole = Model("Surv(time, ended) ~ x", "weibull").fit(frame)
    parts = Model("Surv(time, ended) ~ x", "weibull").partial_fit(frame[:40])
    parts = loads(dumps(parts)).partial_fit(frame[40:])
    assert_allclose(parts.summary()["mean"], whole.summary()["mean"], rtol=1e-6)
    assert_allclose(parts.score(frame), whole.score(frame), rtol=1e-6)
    fewer = Model("Surv(time, ended) ~ x", "weibull").fit(frame[:40])
    assert_allclose(parts.unlearn(frame[40:]).summary()["mean"], fewer.summary()["mean"], rtol=1e-4)
    assert 0.0 < whole.explained_variance().loc["R2 marginal", "mean"] < 1.0


def test_a_stream_may_begin_with_a_lifetime_that_goes_on():
    # Nothing holds the shape of one such row, which is tried up to a thousand.
    first = {"time": [1010.0, 306.0, 455.0], "ended": [0.0, 1.0, 1.0], "age": [56.0, 74.0, 68.0]}
    rows = pd.DataFrame(first)
    model = Model("Surv(time, ended) ~ age", "weibull")
    for n in range(3):
        model.partial_fit(rows[n : n + 1])
        assert np.isfinite(model.predict_interval(rows[:1], 0.5)).all()


@pytest.mark.parametrize(
    ("formula", "likelihood", "what"),
    [
        ("Surv(time) ~ x", "weibull", r"Surv\(time, ended\) or cens"),
        ("Surv(time, x) ~ 1", "weibull", "in row 0 is .*: 1 says that the time ended"),
        ("cens(high, low) ~ x", "weibull", "lower end must not be above"),
        ("time ~ x", Censored(Weibull()), r"Surv\(time, ended\) ~"),
        ("Surv(time, ended) ~ x", "normal", "likelihood is 'normal'"),
    ],
)
def test_ends_that_are_none_are_refused(frame, formula, likelihood, what):
    with pytest.raises(ValueError, match=what):
        Model(formula, likelihood).fit(frame)
