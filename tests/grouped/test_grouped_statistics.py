"""The shared prior is that of a mixed model, and groups that learn from each other predict best."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from posterity import BayesianLinearRegression, GroupedRegression
from posterity.evidence._group_frame import MEAN_VARIANCE
from posterity.likelihoods import Gaussian

Array = NDArray[np.float64]
Report = Callable[[str], None]


def hierarchy(
    rng: np.random.Generator, groups: int, n: int, p: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Return n rows for each of so many groups, whose coefficients are drawn around a mean."""
    mean = np.linspace(-1.0, 2.0, p + 1)
    spread = rng.normal(size=(p + 1, p + 1)) * 0.4
    coefficients = mean + rng.normal(size=(groups, p + 1)) @ spread.T
    keys = np.repeat(np.arange(groups), n)
    X = rng.normal(size=(len(keys), p))
    y = coefficients[keys, 0] + np.sum(X * coefficients[keys, 1:], axis=1)
    return X, y + 0.7 * rng.normal(size=len(y)), keys


@pytest.mark.parametrize(("groups", "n"), [(40, 10), (60, 12), (200, 8)])
def test_variance_components_are_those_of_a_mixed_model(
    groups: int, n: int, report: Report
) -> None:
    pytest.importorskip("statsmodels", reason="compares with statsmodels' MixedLM")
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng = np.random.default_rng(groups)
    keys, x = np.repeat(np.arange(groups), n), np.tile(np.linspace(-1.0, 1.0, n), groups)
    true = np.array([[1.0, 0.3], [0.3, 0.6]])
    w = rng.multivariate_normal([2.0, -1.0], true, size=groups)
    y = w[keys, 0] + w[keys, 1] * x + 0.7 * rng.normal(size=len(x))
    ours = GroupedRegression().fit(x[:, None], y, groups=keys)
    design = np.column_stack([np.ones_like(x), x])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = MixedLM(y, design, keys, exog_re=design).fit(reml=True)
    off = np.abs(ours.shared_covariance_ / np.asarray(theirs.cov_re) - 1.0).max()
    report(f"grouped: {groups} groups of {n}, variance components off MixedLM's by {off:.1%}")
    assert off < 0.1
    assert np.allclose(ours.shared_mean_, theirs.fe_params, atol=1e-4)
    assert 1.0 / ours.noise_precision_ == pytest.approx(theirs.scale, rel=0.02)
    effects = np.array([theirs.random_effects[key] for key in range(groups)]) + theirs.fe_params
    assert np.abs(np.column_stack([ours.intercept_, ours.coef_]) - effects).max() < 0.05


def test_evidence_is_that_of_the_marginal_normal() -> None:
    rng = np.random.default_rng(1)
    X, y, keys = hierarchy(rng, 12, 4, 1)
    model = GroupedRegression(noise_precision=2.0, prior_mean=[0.5]).fit(X, y, groups=keys)
    # With everything but the intercept's mean known: y ~ Normal(H m, 1/beta + x D x').
    design = np.column_stack([np.ones(len(y)), X])
    fixed, ones = 0.5 * X[:, 0], np.ones(len(y))

    def marginal(D: Array) -> tuple[float, Array, Array]:
        covariance = np.eye(len(y)) / 2.0 + (design @ D @ design.T) * (keys[:, None] == keys)
        weight = np.linalg.solve(covariance, ones)
        return float(weight @ (y - fixed) / (weight @ ones)), weight, covariance

    root = (
        model._posterior.learn_exact_prior().prior.root
    )  # of the D that groups are predicted with
    mean = marginal(np.linalg.inv(root.T @ root) / 2.0)[0]
    assert model.shared_mean_ == pytest.approx([mean, 0.5])
    mean, weight, covariance = marginal(model.shared_covariance_)
    # A flat mean is integrated: density * sqrt(2 pi) / |S|, the 2 pi and the noise left out.
    exact = multivariate_normal(fixed + mean * ones, covariance).logpdf(y)
    exact -= 0.5 * np.log(weight @ ones / 2.0) - 0.5 * np.log(2 * np.pi / 2.0)
    assert model.log_evidence_ == pytest.approx(exact)


@pytest.mark.parametrize("unit", [1.0, 10.0])
def test_evidence_is_that_of_all_rows_in_the_units_of_the_coefficients(unit: float) -> None:
    X, y, keys = hierarchy(np.random.default_rng(3), 12, 5, 1)
    X = unit * X
    same, ones = keys[:, None] == keys, np.column_stack([np.ones(len(X)), X])
    models = [
        GroupedRegression(noise_precision=4.0),
        GroupedRegression(likelihood=Gaussian(4.0)),
        GroupedRegression(noise_precision=4.0, prior_mean=0.0, prior_precision="unit information"),
    ]
    for model in models:
        model.fit(X, y, groups=keys)
        spread, scale = model.shared_covariance_, model._posterior._scale
        covariance = np.eye(len(y)) / 4.0 + np.where(same, ones @ spread @ ones.T, 0.0)
        centre, vague = np.zeros(2), np.diag([1e5, 1e5 if model.prior_mean == "shared" else 0.0])
        if scale is not None:  # a shared mean of eta has a prior of its own
            centre = scale.centre
            vague = 0.5 * MEAN_VARIANCE * np.linalg.inv(scale.root.T @ scale.root)
        exact = multivariate_normal(ones @ centre, covariance + ones @ vague @ ones.T).logpdf(y)
        flat = 0 if scale is not None else np.count_nonzero(vague)
        exact += 0.5 * flat * np.log(2.0 * np.pi * 1e5)
        assert model.log_evidence_ == pytest.approx(exact, abs=1e-3)


def test_new_and_known_groups_are_predicted_best_by_all(report: Report) -> None:
    rng = np.random.default_rng(2)
    X, y, keys = hierarchy(rng, 300, 8, 3)
    old = keys < 200
    lines = []
    for name, rows in {"known": 3, "new": 0, "new, after a row": 1}.items():
        place = np.arange(len(y)) % 8
        seen = old & (place < 4) if name == "known" else old | (place < rows)
        asked = old & (place >= 4) if name == "known" else ~old & (place >= rows)
        together = GroupedRegression().fit(X[seen], y[seen], groups=keys[seen])
        pooled = BayesianLinearRegression().fit(X[seen], y[seen])
        ours = together.predict_distribution(X[asked], groups=keys[asked])
        theirs = pooled.predict_distribution(X[asked])
        apart_log, apart_error = _apart(X, y, keys, seen, asked)
        scores = [
            (one.logpdf(y[asked]).mean(), float(np.sqrt(np.mean((one.mean() - y[asked]) ** 2))))
            for one in (ours, theirs)
        ] + [(apart_log, apart_error)]
        shown = "; ".join(f"{log:.3f}, {error:.3f}" for log, error in scores)
        lines.append(f"grouped: {name} groups, log score and RMSE of all, pooled, apart: {shown}")
        # All know a new group's mean by the pooled rows alone: there the errors agree.
        others = (scores[1][1], scores[2][1])
        assert scores[0][0] > max(scores[1][0], scores[2][0])
        assert scores[0][1] < min(others) * (1.01 if rows == 0 and name == "new" else 1.0)
    report("\n".join(lines))


def _apart(
    X: Array, y: Array, keys: NDArray[np.int64], seen: NDArray[np.bool_], asked: NDArray[np.bool_]
) -> tuple[float, float]:
    """Score of a model for each group by itself; where it knows nothing, Normal(0, 10)."""
    scores, errors = [], []
    for key in np.unique(keys[asked]):
        mine, them = seen & (keys == key), asked & (keys == key)
        prior = {"prior_precision": 0.1, "noise_prior": (1.0, 1.0)}
        model = BayesianLinearRegression(**prior)
        if np.count_nonzero(mine):
            predictive = model.fit(X[mine], y[mine]).predict_distribution(X[them])
            known = np.isfinite(predictive.std())
        if not np.count_nonzero(mine) or not known.all():
            model = BayesianLinearRegression(**prior, fit_intercept=False)
            model.partial_fit(X[them][:1] * 0.0, [0.0])
            predictive = model.predict_distribution(X[them])
        scores.append(predictive.logpdf(y[them]))
        errors.append(predictive.mean() - y[them])
    error = np.concatenate(errors)
    return float(np.concatenate(scores).mean()), float(np.sqrt(np.mean(error**2)))


def test_chicks(data_folder: Path, report: Report) -> None:
    table = np.genfromtxt(data_folder / "streams" / "chick-weights.csv", delimiter=",", names=True)
    keys, time = table["chick"].astype(int), table["time"]
    X, y = np.column_stack([time, time**2]), table["weight"]
    known = np.isin(keys, np.random.default_rng(0).permutation(np.unique(keys))[:25])
    flock = GroupedRegression().fit(X[known], y[known], groups=keys[known])
    pooled = BayesianLinearRegression().fit(X[known], y[known])
    scores = []
    for key in np.unique(keys[~known]):
        rows = np.flatnonzero(keys == key)
        # A chick by itself predicts nothing at first: only the rows are compared where it does.
        alone = BayesianLinearRegression().predict_then_learn(X[rows], y[rows])
        proper = np.isfinite(alone.std()) & (np.arange(len(rows)) > 2)
        first = flock.predict_then_learn(X[rows], y[rows], groups=keys[rows])
        flock.unlearn(X[rows], y[rows], groups=keys[rows])
        both = pooled.predict_then_learn(X[rows], y[rows])
        pooled.unlearn(X[rows], y[rows])
        predictive = [one.logpdf(y[rows])[proper] for one in (first, both, alone)]
        scores.append(np.array(predictive))
    ours, together, apart = np.concatenate(scores, axis=1).mean(axis=1)
    report(
        f"grouped: new chicks, row by row, log score {ours:.3f}; pooled {together:.3f}, "
        f"apart {apart:.3f}"
    )
    assert ours > max(together, apart) + 0.1


@pytest.mark.slow
def test_the_mean_of_few_groups_is_uncertain() -> None:
    rng = np.random.default_rng(3)
    ratios = []
    for groups in (2, 4, 8, 64):
        scores = []
        for _ in range(60):
            X, y, keys = hierarchy(rng, groups + 1, 12, 1)
            some = keys < groups
            model = GroupedRegression().fit(X[some], y[some], groups=keys[some])
            predictive = model.predict_distribution(X[~some], groups=keys[~some])
            scores.append((predictive.mean() - y[~some]) ** 2 / predictive.std() ** 2)
        ratios.append(float(np.mean(scores)))
    # The covariance is taken for certain, so that two groups are a little sure of themselves.
    assert max(ratios) < 2.5
    assert 0.8 < ratios[-1] < 1.25


@pytest.mark.parametrize("groups", [1, 2, 40])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_awkward_groups_are_learned(groups: int, noise: float) -> None:
    rng = np.random.default_rng(4)
    X, y, keys = hierarchy(rng, groups, 3, 6)  # fewer rows than coefficients
    X[:, 2] = 1.0  # constant
    X[:, 3] = X[:, 1]  # and twice the same
    y = X @ np.arange(6.0) + noise * y
    model = GroupedRegression()
    predictive = model.predict_then_learn(X, y, groups=keys)
    assert np.isfinite(predictive.mean()).all()
    assert np.isfinite(model.predict(X, groups=keys)).all()
    assert not np.isnan(model.predict_distribution(X, groups=keys + 1).std()).any()
    one = GroupedRegression().fit(X[:1], y[:1], groups=keys[:1])
    assert np.isfinite(one.predict(X, groups=keys)).all()


def test_no_variance_between_groups_is_found_small() -> None:
    rng = np.random.default_rng(5)
    X, keys = rng.normal(size=(4000, 2)), np.repeat(np.arange(200), 20)
    y = 1.0 + X @ [1.0, -1.0] + rng.normal(size=4000)
    model = GroupedRegression().fit(X, y, groups=keys)
    assert np.diag(model.shared_covariance_).max() < 0.02
    assert np.allclose(model.coef_, [1.0, -1.0], atol=0.15)
