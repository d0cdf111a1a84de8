"""A precision for each feature, beside scikit-learn's ARDRegression."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ARDRegression

from posterity.evidence import Relevance
from posterity.factor import Factor
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.priors import GaussianPrior

SIMULATED = {
    "100 x 5": (100, 5, 1.0, 5),
    "1000 x 20, weak": (1000, 20, 0.1, 8),
    "2000 x 50, sparse": (2000, 50, 1.0, 10),
    "30 x 20, sparse": (30, 20, 2.0, 4),
    "100 x 60": (100, 60, 1.0, 60),
    "60 x 10, no signal": (60, 10, 0.0, 10),
    "300 x 30, correlated": (300, 30, 1.0, 6),
}


def posterior(data: Factor, precisions: np.ndarray, noise: Noise) -> LinearPosterior:
    """The posterior without intercept for fixed precisions, in units of the noise."""
    belief = GaussianPrior(0.0, precisions)
    prior = belief.factor(data.n_coefficients, intercept=False)
    factor = prior.copy()
    factor.merge(data)
    return LinearPosterior(belief, noise, False, prior, factor)


def check(
    name: str, X: np.ndarray, y: np.ndarray, make_factor: Callable, report: Callable[[str], None]
) -> None:
    """Same answer as ARDRegression on standardised features, or a higher evidence."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = y - y.mean()
    ard = ARDRegression(
        alpha_1=0.0,
        alpha_2=0.0,
        lambda_1=0.0,
        lambda_2=0.0,
        tol=1e-10,
        max_iter=3000,
        threshold_lambda=1e10,
        fit_intercept=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ard.fit(X, y)
    data = make_factor(X, y, intercept=False)
    choice = Relevance().choose(data, LearnedNoise(), intercept=False, mean=np.zeros(X.shape[1]))
    ours = posterior(data, choice.precisions[0], LearnedNoise())
    pruned = ard.coef_ == 0.0
    theirs = np.where(pruned, 1e13, np.minimum(ard.lambda_ / ard.alpha_, 1e13))
    score = posterior(data, theirs, LearnedNoise()).log_evidence
    report(
        f"{name:20s} log evidence {choice.log_evidence:13.6f} with {np.sum(~choice.pinned)} kept, "
        f"ARDRegression {score:13.6f} with {np.sum(~pruned)}; slope {choice.slope:.0e}"
    )
    assert choice.slope < 1e-6
    assert choice.log_evidence == pytest.approx(ours.log_evidence, rel=1e-9)
    assert choice.log_evidence > score - 1e-6
    if choice.log_evidence < score + 1e-6:
        largest = np.abs(ard.coef_).max()
        assert np.allclose(ours.coefficients(), ard.coef_, atol=1e-5 * largest)


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_designs_agree_with_ard_regression(
    name: str, make_rows, make_factor, report
) -> None:
    n, m, signal, kept = SIMULATED[name]
    X, y = make_rows(n, m, seed=1, signal=signal, kept=kept)
    if "correlated" in name:
        y = y + (np.cumsum(X, axis=1) - X) @ np.ones(m) / m
        X = np.cumsum(X, axis=1)
    check(name, X, y, make_factor, report)


def test_diabetes_agrees_with_ard_regression(make_factor, report) -> None:
    check("diabetes", *load_diabetes(return_X_y=True), make_factor, report)


def test_california_agrees_with_ard_regression(data_folder: Path, make_factor, report) -> None:
    stored = np.load(data_folder / "housing" / "california_sklearn_form.npz")
    check("California", stored["X"], stored["y"], make_factor, report)


@pytest.mark.parametrize("noise", [LearnedNoise(), LearnedNoise(2.0, 1.0), KnownNoise(1.3)])
def test_the_maximum_is_stationary_and_pruning_is_right(
    noise: Noise, make_rows, make_factor
) -> None:
    X, y = make_rows(80, 8, seed=2, signal=1.0, kept=3)
    data = make_factor(X, y, intercept=False)
    choice = Relevance().choose(data, noise, intercept=False, mean=np.zeros(8))
    assert 0 < choice.pinned.sum() < 8
    best = posterior(data, choice.precisions[0], noise).log_evidence
    assert choice.log_evidence == pytest.approx(best, rel=1e-9)
    for feature in range(8):
        for factor in (0.5, 0.999, 1.001, 2.0) if not choice.pinned[feature] else (1e-10, 1e-12):
            other = choice.precisions[0].copy()
            other[feature] *= factor
            assert posterior(data, other, noise).log_evidence <= best + 1e-9
    kept = ~choice.pinned
    if isinstance(noise, LearnedNoise):
        known = posterior(data, choice.precisions[0], noise)
        beta = known.noise_precision
        sigma = known.factor.covariance()
        mean = known.coefficients()
        assert np.allclose(
            1.0 / choice.precisions[0][kept], (np.diag(sigma) + beta * mean**2)[kept], rtol=1e-6
        )


def test_nothing_is_relevant_to_noise_alone(make_factor) -> None:
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] * 5)
    y = np.tile([1.0, -1.0, -1.0, 1.0], 5)  # orthogonal to both features
    choice = Relevance().choose(
        make_factor(X, y, intercept=True), LearnedNoise(), intercept=True, mean=np.zeros(2)
    )
    assert choice.pinned.all()
    assert choice.found == "no signal"
    assert choice.n_parameters == 0.0


def test_few_rows_share_one_precision(make_rows, make_factor) -> None:
    """Two rows fit two features perfectly: which of six they are is not to be known."""
    data = make_factor(*make_rows(3, 6), intercept=True)
    choice = Relevance().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(6))
    assert choice.found == "undetermined"
    assert len(choice.weights) == 1
    assert not choice.pinned.any()
