"""What nodes tell of rows in one call of the kernel: as posteriors do, their slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evidence import Integrated
from posterity.kernel import predict_by_nodes, stack_nodes
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.posteriors._nodes import Nodes, predict_nodes
from posterity.priors import GaussianPrior

NOISES: list[Noise] = [LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(1.3)]


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 8),
    known=st.integers(2, 30),
    intercept=st.booleans(),
    noise=st.sampled_from(NOISES),
    weighted=st.booleans(),
)
def test_it_is_what_posteriors_tell(
    seed: int, m: int, known: int, intercept: bool, noise: Noise, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X, mean = rng.normal(size=(known + 20, m)), rng.normal(size=m) * (seed % 2)
    y = X @ rng.normal(size=(m, 1)) + rng.normal(size=(known + 20, 1))
    weights = rng.integers(0, 3, size=20).astype(float) if weighted else None
    data = LinearPosterior.before_data(GaussianPrior(0.0, 0.0), noise, m, intercept=intercept)
    data.append(X[:known], y[:known], None, np.ones(known))
    choice = Integrated().choose(data.factor, noise, intercept=intercept, mean=mean)
    before = data.factor.triangle.copy()
    predictive = predict_nodes(choice, mean, data, X[known:], y[known:], weights)
    np.testing.assert_array_equal(data.factor.triangle, before)
    nodes = Nodes.of(choice, mean, data)
    rows = X[known:], y[known:], weights, np.ones(20)
    twin = nodes.predict(lambda one: one.predict_then_learn(*rows))
    assert type(predictive) is type(twin)
    np.testing.assert_allclose(predictive.loc, twin.loc, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(predictive.scale, twin.scale, rtol=1e-8)
    np.testing.assert_array_equal(getattr(predictive, "df", 0.0), getattr(twin, "df", 0.0))


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 50),
    known=st.integers(0, 60),
    intercept=st.booleans(),
)
def test_stacked_nodes_are_priors_that_have_learned(
    seed: int, m: int, known: int, intercept: bool
) -> None:
    rng = np.random.default_rng(seed)
    data = LinearPosterior.before_data(
        GaussianPrior(0.0, 0.0), LearnedNoise(), m, intercept=intercept
    )
    data.append(rng.normal(size=(known, m)), rng.normal(size=(known, 1)), None, np.ones(known))
    mean = rng.normal(size=m)
    choice = Integrated().choose(data.factor, LearnedNoise(), intercept=intercept, mean=mean)
    nodes = Nodes.of(choice, mean, data)
    for node, precision in zip(nodes.posteriors, choice.precisions, strict=True):
        prior = GaussianPrior(mean, precision).factor(m, intercept=intercept)
        both = prior.combine(data.factor)
        np.testing.assert_allclose(node.prior.triangle, prior.triangle, rtol=1e-14)
        np.testing.assert_allclose(node.factor.triangle, both.triangle, rtol=1e-12, atol=1e-12)
        assert (node.factor.count, node.factor.seen) == (both.count, both.seen)
        assert (node.prior.count, node.prior.seen) == (0.0, 0.0)


@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_batches_are_the_stream(size: int) -> None:
    rng = np.random.default_rng(size)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 0.0, 0.5] + rng.normal(size=100)
    whole, parts = BayesianLinearRegression(), BayesianLinearRegression()
    predictive = whole.predict_then_learn(X, y)
    each = [parts.predict_then_learn(X[i : i + size], y[i : i + size]) for i in range(0, 100, size)]
    np.testing.assert_allclose(np.concatenate([one.loc for one in each]), predictive.loc, rtol=1e-7)
    np.testing.assert_allclose(
        np.concatenate([one.scale for one in each]), predictive.scale, rtol=1e-7
    )
    assert parts.predict_one(X[0]) == pytest.approx(whole.predict_one(X[0]), rel=1e-9)


def test_nodes_of_another_model_are_refused() -> None:
    data = LinearPosterior.before_data(GaussianPrior(), LearnedNoise(), 2, intercept=True)
    rows = data.factor.triangle, np.zeros((1, 2)), np.zeros((1, 1)), None, True
    with pytest.raises(ValueError, match="not those of nodes"):
        predict_by_nodes(*rows, np.zeros(2), np.ones((1, 3)), np.ones(1), 0.0, (0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="not those of nodes"):
        stack_nodes(data.factor.triangle, np.zeros(2), np.ones((1, 3)))
