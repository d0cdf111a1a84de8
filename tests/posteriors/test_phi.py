"""What is learned of a likelihood's parameter: the laws of a Gaussian, and quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from posterity import BayesianGeneralizedLinear
from posterity.likelihoods import NegativeBinomial, Ordinal, Poisson, VonMises, ZeroInflated
from posterity.posteriors.phi import BelievedRows, LearnedParameter

Array = np.ndarray[Any, Any]
COUNTS = NegativeBinomial()
NOTHING = LearnedParameter.before_data(COUNTS)


def make_rows(n: int, dispersion: float, seed: int) -> BelievedRows:
    """Counts whose log rates are known."""
    rng = np.random.default_rng(seed)
    eta = rng.normal(1.0, 0.5, size=n)
    y = rng.poisson(np.exp(eta) * rng.gamma(1.0 / dispersion, dispersion, size=n)).astype(float)
    return BelievedRows(y, eta, np.zeros(n), np.ones(n))


def part(rows: BelievedRows, which: slice) -> BelievedRows:
    return BelievedRows(*(one[which] for one in rows))


def learn_each(rows: BelievedRows) -> LearnedParameter:
    now = NOTHING
    for i in range(len(rows.y)):
        now = now.learn(COUNTS, part(rows, slice(i, i + 1)))
    return now.settle(COUNTS)


def compute_truth(rows: BelievedRows) -> tuple[float, float]:
    """Mean and standard deviation of the log dispersion, on a grid."""
    prior = COUNTS.parameter
    assert prior is not None
    t = np.linspace(*prior.ends, 3001)
    logs = rows.log_densities(COUNTS, np.exp(t))
    logs = logs + prior.log_density(t)
    shares = np.exp(logs - logsumexp(logs))
    mean = float(shares @ t)
    return mean, float(shares @ np.square(t - mean)) ** 0.5


@settings(max_examples=10, deadline=None)
@given(st.sampled_from([0.5, 2.0]), st.sampled_from([100, 400]), st.integers(0, 1000))
def test_rows_and_batches_know_what_quadrature_does(dispersion: float, n: int, seed: int) -> None:
    """A batch to a tenth of a standard deviation, rows that come one by one to 0.6 of it."""
    rows = make_rows(n, dispersion, seed)
    mean, sd = compute_truth(rows)
    together = NOTHING.learn_together(COUNTS, NOTHING, rows)[0]
    for one, close in ((together, 0.1), (learn_each(rows), 0.6)):
        assert abs(one.mean - mean) < close * sd
        assert one.sd == pytest.approx(sd, rel=3.0 * min(close, 0.1))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_merging_is_learning_all_and_unlearning_undoes_it(seed: int) -> None:
    rows = make_rows(400, 0.5, seed)
    first, second = part(rows, slice(0, 250)), part(rows, slice(250, 400))
    whole, one, two = (
        NOTHING.learn_together(COUNTS, NOTHING, some)[0] for some in (rows, first, second)
    )
    merged, left = one.merge(two, COUNTS), whole.unlearn(COUNTS, second)
    for found, expected in ((merged, whole), (left, one)):
        assert abs(found.mean - expected.mean) < 0.4 * expected.sd
        assert found.sd == pytest.approx(expected.sd, rel=0.2)
        assert found.rows == expected.rows
    assert one.merge(NOTHING, COUNTS) == one
    assert NOTHING.merge(one, COUNTS) == one


def test_only_what_a_likelihood_names_can_be_learned() -> None:
    with pytest.raises(TypeError, match="Poisson has no parameter that can be learned"):
        LearnedParameter.before_data(Poisson())


def test_a_stream_of_angles_finds_their_concentration() -> None:
    """Few rows leave it wide; a search that began there found that nothing is known for ever."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(42, 2))
    y = rng.vonmises(2.0 * np.arctan(X @ [0.2, -0.2]), 3.0)
    model, fitted = (BayesianGeneralizedLinear(VonMises()) for _ in range(2))
    for x, angle in zip(X, y, strict=True):
        model.learn_one(x, angle)
    both = (one.likelihood_parameters_["concentration"] for one in (model, fitted.fit(X, y)))
    known, exact = (one.median() for one in both)
    assert known == pytest.approx(exact, rel=0.1)


@pytest.mark.parametrize("likelihood", [ZeroInflated(Poisson()), Ordinal(4)], ids=str)
def test_batches_under_several_parameters_stay_near_their_fit(likelihood: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(98, 10))
    y = np.minimum(rng.poisson(np.exp(0.7 + 0.5 * X[:, 0])) * (rng.random(98) < 0.7), 3)
    model, fitted = (BayesianGeneralizedLinear(likelihood) for _ in range(2))
    for first in range(0, 98, 7):
        model.partial_fit(X[first : first + 7], y[first : first + 7])
    fitted.fit(X, y)
    assert_allclose(model.coef_, fitted.coef_, atol=0.1)
    for name, exact in fitted.likelihood_parameters_.items():
        known = model.likelihood_parameters_[name]
        assert abs(np.log(known.median() / exact.median())) < 0.3


@pytest.mark.parametrize("likelihood", [ZeroInflated(Poisson()), Ordinal(4)], ids=str)
@pytest.mark.parametrize("forgetting", [None, "exponential:0.98"])
def test_compiled_rows_are_those_of_the_general_path(likelihood: Any, forgetting: Any) -> None:
    """So is a first row that weighs nothing, under several parameters."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.minimum(rng.poisson(1.0, 40), 3).astype(float)
    weights = np.where(np.arange(40) % 9 == 0, 0.0, 1.0 + (np.arange(40) % 5 == 0))
    one, other = (BayesianGeneralizedLinear(likelihood, forgetting=forgetting) for _ in range(2))
    for i in range(40):
        one.learn_one(X[i], y[i], weights[i])
        other.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
    assert_allclose(one.coef_, other.coef_, rtol=1e-9)
    for name, known in one.likelihood_parameters_.items():
        assert_allclose(known.median(), other.likelihood_parameters_[name].median(), rtol=1e-9)
