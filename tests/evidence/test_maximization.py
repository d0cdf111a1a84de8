"""The maximum of the evidence, beside scikit-learn's BayesianRidge."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge

from posterity.evidence import Maximized, Spectrum, maximize
from posterity.noise import KnownNoise, LearnedNoise

# name: (rows, features, signal, features kept); those with fewer rows than features are as they
# came, the rest are centred: BayesianRidge centres and then counts n, and centred data that have
# no more rows than features fit perfectly in n - 1 of n directions, which no evidence survives.
SIMULATED = {
    "100 x 5": (100, 5, 1.0, 5),
    "20 x 50": (20, 50, 1.0, 50),
    "50 x 5, no signal": (50, 5, 0.0, 5),
    "1000 x 20, weak": (1000, 20, 0.1, 20),
    "15 x 10": (15, 10, 1.0, 10),
    "200 x 3, strong": (200, 3, 100.0, 3),
    "30 x 29": (30, 29, 0.5, 29),
    "40 x 200": (40, 200, 0.3, 200),
    "60 x 10, sparse": (60, 10, 1.0, 2),
    "100 x 5, collinear": (100, 5, 1.0, 5),
}


def reference(X: np.ndarray, y: np.ndarray) -> BayesianRidge:
    """BayesianRidge without hyperpriors, iterated until it stands still."""
    ridge = BayesianRidge(
        alpha_1=0.0,
        alpha_2=0.0,
        lambda_1=0.0,
        lambda_2=0.0,
        tol=1e-13,
        max_iter=20_000,
        compute_score=True,
        fit_intercept=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ridge.fit(X, y)


def raw_spectrum(X: np.ndarray, y: np.ndarray, make_factor: Callable) -> Spectrum:
    data = make_factor(X, y, intercept=False)
    ones = np.ones(X.shape[1])
    return Spectrum.of(data, intercept=False, mean=0.0 * ones, shape=ones)


def check(
    name: str, X: np.ndarray, y: np.ndarray, make_factor: Callable, report: Callable[[str], None]
) -> None:
    theirs = reference(X, y)
    spectrum = raw_spectrum(X, y, make_factor)
    ours = maximize(spectrum, LearnedNoise())
    score = theirs.scores_[-1]
    report(
        f"{name:20s} log evidence {ours.log_evidence:14.6f}, BayesianRidge {score:14.6f} after "
        f"{theirs.n_iter_} iterations; alpha {ours.alpha:.5g} {theirs.lambda_:.5g}, "
        f"beta {ours.beta:.5g} {theirs.alpha_:.5g}; {ours.found}, {len(ours.others)} others"
    )
    assert abs(ours.slope) < 1e-8
    if ours.log_evidence > score + 1e-5 or ours.found == "no signal":
        assert ours.log_evidence > score - 1e-8
        return
    information = X.T @ X + ours.ratio * np.eye(X.shape[1])
    coefficients = np.linalg.solve(information, X.T @ y)
    leverage = np.einsum("ij,ji->i", X[:20], np.linalg.solve(information, X[:20].T))
    std = np.sqrt((1.0 + leverage) / ours.beta)
    assert np.allclose(
        coefficients, theirs.coef_, rtol=1e-5, atol=1e-5 * np.abs(coefficients).max()
    )
    assert ours.alpha == pytest.approx(theirs.lambda_, rel=1e-5)
    assert ours.beta == pytest.approx(theirs.alpha_, rel=1e-5)
    assert ours.log_evidence == pytest.approx(score, rel=1e-9, abs=1e-5)
    assert np.allclose(std, theirs.predict(X[:20], return_std=True)[1], rtol=1e-5)


@pytest.mark.parametrize("name", SIMULATED)
def test_simulated_designs_agree_with_bayesian_ridge(
    name: str, make_rows, make_factor, report
) -> None:
    n, m, signal, kept = SIMULATED[name]
    X, y = make_rows(n, m, seed=3, signal=signal, kept=kept)
    if "collinear" in name:
        X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    if n > m + 1:
        X, y = X - X.mean(axis=0), y - y.mean()
    check(name, X, y, make_factor, report)


@pytest.mark.parametrize("scaled", [True, False])
def test_diabetes_agrees_with_bayesian_ridge(scaled: bool, make_factor, report) -> None:
    X, y = load_diabetes(return_X_y=True, scaled=scaled)
    name = "diabetes" if scaled else "diabetes, unscaled"
    check(name, X - X.mean(axis=0), y - y.mean(), make_factor, report)


def test_california_agrees_with_bayesian_ridge(data_folder: Path, make_factor, report) -> None:
    stored = np.load(data_folder / "housing" / "california_sklearn_form.npz")
    X, y = stored["X"], stored["y"]
    check("California", X - X.mean(axis=0), y - y.mean(), make_factor, report)


def test_the_maximum_is_one(make_rows, make_factor) -> None:
    """No alpha and beta nearby, nor on a coarse grid, have more evidence."""
    spectrum = raw_spectrum(*make_rows(40, 6), make_factor)
    best = maximize(spectrum, LearnedNoise())
    for a in np.concatenate([np.logspace(-6, 6, 25), [0.999, 1.001]]):
        for b in np.concatenate([np.logspace(-6, 6, 25), [0.999, 1.001]]):
            beta, ratio = b * best.beta, best.ratio * a / b
            value = spectrum.log_evidence(ratio, KnownNoise(beta))[0]
            assert value <= best.log_evidence + 1e-10


def test_alpha_alone_for_known_noise(make_rows, make_factor) -> None:
    spectrum = raw_spectrum(*make_rows(40, 6), make_factor)
    best = maximize(spectrum, KnownNoise(0.7))
    assert best.beta == 0.7
    assert best.alpha == pytest.approx(0.7 * best.ratio)
    grid = spectrum.log_evidence(best.ratio * np.logspace(-8, 8, 101), KnownNoise(0.7))
    assert grid.max() == pytest.approx(best.log_evidence, abs=1e-12)
    assert abs(best.slope) < 1e-10


def spectrum_of(
    squares: list[float], projections: list[float], residual: float, residual_df: float
):
    r = len(squares)
    return Spectrum(
        np.array(squares),
        np.array(projections),
        np.eye(r),
        residual,
        residual_df,
        residual_df,
        0.0,
    )


def test_several_maxima_are_named(make_rows, make_factor) -> None:
    """Two features all but alike that differ by what matters: a huge slope, or a lot of noise."""
    X, y = make_rows(100, 5, seed=3)
    X[:, 1] = X[:, 0] + 1e-4 * X[:, 1]
    spectrum = raw_spectrum(X - X.mean(axis=0), y - y.mean(), make_factor)
    best = maximize(spectrum, LearnedNoise())
    (other,) = best.others
    assert best.found == other.found == "interior"
    assert best.log_evidence > other.log_evidence + 1.0
    assert best.ratio < 1e-3 * other.ratio
    assert max(abs(best.slope), abs(other.slope)) < 1e-8


def test_no_signal_and_no_noise_are_named() -> None:
    no_signal = maximize(spectrum_of([10.0, 20.0], [0.0, 0.0], 8.0, 9.0), LearnedNoise())
    assert no_signal.found == "no signal"
    assert no_signal.alpha == np.inf
    assert no_signal.beta == pytest.approx(9.0 / 8.0)
    assert no_signal.n_parameters == pytest.approx(0.0, abs=1e-8)
    no_noise = maximize(spectrum_of([10.0, 20.0], [3.0, 4.0], 0.0, 9.0), LearnedNoise())
    assert no_noise.found == "no noise"
    assert no_noise.n_parameters == pytest.approx(2.0)
    nothing = maximize(spectrum_of([10.0], [0.0], 0.0, 9.0), LearnedNoise())
    assert nothing.found == "undetermined"


def test_a_perfect_fit_of_few_rows_is_not_believed(make_rows, make_factor) -> None:
    for seed in range(20):
        data = make_factor(*make_rows(4, 6, seed), intercept=True)
        choice = Maximized().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(6))
        assert choice.found in {"interior", "no signal", "undetermined"}
        if choice.found == "undetermined":
            assert choice.noise == LearnedNoise()
        else:
            assert choice.noise.known_precision < 1e6


def test_the_best_shape_is_chosen(make_rows, make_factor) -> None:
    X, y = make_rows(100, 6, signal=3.0, kept=3)
    data = make_factor(X, y, intercept=True)
    shapes = np.ones((3, 6))
    shapes[1, 3:] = 1e6  # says that the last three are nothing, as they are
    shapes[2, :3] = 1e6
    kwargs = {"intercept": True, "mean": np.zeros(6)}
    choice = Maximized().choose(data, LearnedNoise(), **kwargs, shapes=shapes)
    assert choice.shapes.tolist() == [1]
    assert np.allclose(choice.precisions[0], choice.ratios[0] * shapes[1])
