"""Nodes of few features are chosen in the kernel: as by the formulas in NumPy, its twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evidence import Choice, Integrated
from posterity.evidence.integration import _IntegratedForObservations
from posterity.factor import Factor
from posterity.kernel import MOST_COLUMNS, choose_ratios
from posterity.noise import KnownNoise, LearnedNoise, Noise


class Slow(Integrated):
    """Coefficients measure what one node would lose."""

    def _integrate_in_kernel(self, *_: object) -> None:
        return None

    def _integrate_one_shape(self, *_: object) -> None:
        return None


class SlowOfObservations(_IntegratedForObservations):
    """Observations measure it."""

    def _integrate_in_kernel(self, *_: object) -> None:
        return None

    def _integrate_one_shape(self, *_: object) -> None:
        return None


NOISES: list[Noise] = [LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(1.3)]


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, MOST_COLUMNS),
    more=st.sampled_from([2, 5, 40, 1000]),
    intercept=st.booleans(),
    noise=st.sampled_from(NOISES),
    of_observations=st.booleans(),
    related=st.sampled_from([None, 1.0, 1e-3, 1e-6]),
)
def test_it_is_what_the_formulas_say(
    seed: int,
    m: int,
    more: int,
    intercept: bool,
    noise: Noise,
    of_observations: bool,
    related: float | None,
) -> None:
    rng = np.random.default_rng(seed)
    n = m + more
    X = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-3.0, 3.0, size=m)
    if related is not None and m > 1:
        X[:, 0] = X[:, -1] + related * rng.normal(size=n)
    signal = X @ (rng.normal(size=m) / X.std(axis=0)) * 10.0 ** rng.uniform(-3.0, 2.0)
    data = Factor(m + intercept)
    data.append(X, (signal + rng.normal(size=n) + 5.0)[:, None], intercept=intercept)
    mean = rng.normal(size=m) * (seed % 2)

    fast = Integrated().for_stream if of_observations else Integrated()
    slow = SlowOfObservations() if of_observations else Slow()
    assert fast._integrate_in_kernel(data, noise, intercept, mean) is not None
    predictive = fast.choose(data, noise, intercept=intercept, mean=mean)
    twin = slow.choose(data, noise, intercept=intercept, mean=mean)
    agree(predictive, twin)


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(2, MOST_COLUMNS),
    missing=st.integers(0, 20),
    intercept=st.booleans(),
    noise=st.sampled_from(NOISES),
    of_observations=st.booleans(),
)
def test_fewer_rows_than_features(
    seed: int, m: int, missing: int, intercept: bool, noise: Noise, of_observations: bool
) -> None:
    rng = np.random.default_rng(seed)
    n = max(m - missing, 2)
    X = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-3.0, 3.0, size=m)
    data = Factor(m + intercept)
    data.append(X, X[:, :1] + rng.normal(size=(n, 1)), intercept=intercept)
    mean = rng.normal(size=m) * (seed % 2)
    fast = Integrated().for_stream if of_observations else Integrated()
    slow = SlowOfObservations() if of_observations else Slow()
    predictive = fast.choose(data, noise, intercept=intercept, mean=mean)
    agree(predictive, slow.choose(data, noise, intercept=intercept, mean=mean))


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 60),
    n=st.integers(1, 80),
    constant=st.booleans(),
    noise=st.sampled_from(NOISES),
    of_observations=st.booleans(),
)
def test_any_number_of_features_by_their_singular_values(
    seed: int, m: int, n: int, constant: bool, noise: Noise, of_observations: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    X[:, : m // 2] *= 1.0 - constant
    data = Factor(m + 1)
    data.append(X, X[:, -1:] + rng.normal(size=(n, 1)), intercept=True)
    fast = Integrated().for_stream if of_observations else Integrated()
    slow = SlowOfObservations() if of_observations else Slow()
    nodes = fast._choose_by_spectrum(data, noise, True, np.zeros(m), None, None)
    twin = slow._choose_by_spectrum(data, noise, True, np.zeros(m), None, None)
    agree(nodes, twin)


def test_streams_of_few_rows_are_plain() -> None:
    X = np.array([[1.0, 2.0, 0.0, 1.0], [2.0, 0.0, 1.0, 3.0], [0.0, 1.0, 2.0, 2.0]])
    data = Factor(5)
    data.append(X, np.array([[1.0], [4.0], [2.0]]), intercept=True)
    assert (
        Integrated()._integrate_in_kernel(data, LearnedNoise(1.0, 1.0), True, np.zeros(4))
        is not None
    )


def agree(predictive: Choice, twin: Choice) -> None:
    np.testing.assert_allclose(predictive.ratios, twin.ratios, rtol=1e-7)
    np.testing.assert_allclose(predictive.precisions, twin.precisions, rtol=1e-7)
    np.testing.assert_allclose(predictive.weights, twin.weights, atol=1e-9)
    np.testing.assert_allclose(predictive.log_evidence, twin.log_evidence, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(predictive.disagreement, twin.disagreement, rtol=1e-2, atol=1e-12)
    np.testing.assert_allclose(predictive.n_parameters, twin.n_parameters, atol=1e-9)


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],  # one row, in which nothing varies
        [[1.0, 3.0], [2.0, 3.0], [4.0, 3.0], [5.0, 3.0]],  # a constant
        [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]],  # one feature twice
    ],
)
def test_what_is_not_plain_goes_the_other_way(X: list[list[float]]) -> None:
    rows = np.array(X)
    data = Factor(3)
    data.append(rows, rows[:, :1] + [[0.1]], intercept=True)
    if choose(data) is not None:  # rounding may leave something of the feature that came twice
        assert np.linalg.cond(data.root) > 1e12


def test_noise_that_is_none_goes_the_other_way() -> None:
    X = np.arange(8.0).reshape(4, 2) ** 2
    model = BayesianLinearRegression().fit(X, np.full(4, 2.0))
    assert np.isfinite(model.predict(X)).all()


def choose(data: Factor) -> object:
    grid = (np.linspace(-3.0, 3.0, 7), np.zeros(7))
    noise = (0.0, 0.0, 0.0)
    predictive = choose_ratios(
        data.triangle, data.count, True, np.zeros(2), noise, grid, 5, 0.01, False
    )
    return predictive


def test_what_does_not_fit_is_refused() -> None:
    data, grid = Factor(3), (np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="columns and 9 nodes"):
        choose_ratios(data.triangle, 1.0, True, np.zeros(2), (0.0, 0.0, 0.0), grid, 9, 0.0, False)
    with pytest.raises(ValueError, match="not that of so many columns"):
        choose_ratios(data.triangle, 1.0, False, np.zeros(2), (0.0, 0.0, 0.0), grid, 5, 0.0, False)
    with pytest.raises(ValueError, match="no weight for each"):
        choose_ratios(
            data.triangle, 1.0, True, np.zeros(2), (0.0, 0.0, 0.0), (grid[0], grid[1][:1]),
            5, 0.0, False,
        )  # fmt: skip
