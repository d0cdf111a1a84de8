"""Ordinal: ratings whose cut points are learned together with the coefficients."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from posterity import BayesianGeneralizedLinear
from posterity.files import load, save
from posterity.forgetting import Stabilized
from posterity.likelihoods import Bernoulli, Levels, Ordinal

TRUE = np.array([1.0, -0.5])


def simulate(n: int, levels: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    felt = X @ TRUE + rng.logistic(size=n)
    return X, np.digitize(felt, np.linspace(-2.0, 2.0, levels - 1)).astype(float)


def read(model: BayesianGeneralizedLinear) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of intercept, coefficients and log gaps."""
    gaps = model.likelihood_parameters_.values()
    means = [model.intercept_, *model.coef_, *(np.log(one.median()) for one in gaps)]
    return np.array(means), np.array([*model.posterior_.std(), *(one.args[0] for one in gaps)])


def test_it_agrees_with_maximum_likelihood_where_rows_are_many() -> None:
    ordinal = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    X, y = simulate(2000)
    mean, sd = read(BayesianGeneralizedLinear(Ordinal(5), prior_precision=0.0).fit(X, y))
    model = ordinal.OrderedModel(y.astype(int), X, distr="logit")
    peer = model.fit(method="bfgs", disp=False)
    cuts = model.transform_threshold_params(peer.params)[1:-1]
    expected = np.concatenate([[-np.median(cuts)], peer.params[:2], peer.params[3:]])
    np.testing.assert_allclose((mean - expected) / sd, 0.0, atol=0.1)
    np.testing.assert_allclose(sd[1:3], peer.bse[:2], rtol=0.02)
    np.testing.assert_allclose(sd[3:], peer.bse[3:], rtol=0.02)


def test_it_agrees_with_quadrature_where_rows_are_few() -> None:
    """Thirty rows, three levels: coefficient, intercept and log gap on a lattice."""
    X, y = simulate(30, levels=3, seed=1)
    X = X[:, :1]
    model = BayesianGeneralizedLinear(Ordinal(3), prior_precision=1.0).fit(X, y)
    mean, sd = read(model)
    axes = [centre + spread * np.linspace(-5.0, 5.0, 41) for centre, spread in zip(mean, sd)]  # noqa: B905
    a, b, t = (one.ravel() for one in np.meshgrid(*axes, indexing="ij"))
    (gap,) = Ordinal(3).parameters
    log = -0.5 * b**2 - 0.5 * ((t - gap.mean) / gap.sd) ** 2
    known = Ordinal(3, np.exp(t)[:, None])
    for x, target in zip(X[:, 0], y, strict=True):
        log += known.log_density(np.full(len(a), target), a + b * x)
    mass = np.exp(log - log.max())
    mass /= mass.sum()
    exact = np.array([mass @ one for one in (a, b, t)])
    exact_sd = np.sqrt([mass @ (one - m) ** 2 for one, m in zip((a, b, t), exact, strict=True)])
    np.testing.assert_allclose((mean - exact) / exact_sd, 0.0, atol=0.15)
    np.testing.assert_allclose(sd / exact_sd, 1.0, atol=0.1)
    shares = mass @ known.predictive(a + 0.5 * b, np.zeros(len(a))).probabilities
    found = model.predict_distribution([[0.5]]).probabilities[0]
    np.testing.assert_allclose(found, shares, atol=0.01)


def test_batches_rows_merging_unlearning_and_files_agree(tmp_path: Path) -> None:
    X, y = simulate(200)
    whole = BayesianGeneralizedLinear(Ordinal(5)).fit(X, y)
    mean, sd = read(whole)
    first = BayesianGeneralizedLinear(Ordinal(5)).fit(X[:140], y[:140])
    save(first, tmp_path / "ratings")
    again = load(tmp_path / "ratings")
    np.testing.assert_array_equal(again.predict(X), first.predict(X))
    np.testing.assert_array_equal(read(again), read(first))
    rest = BayesianGeneralizedLinear(Ordinal(5)).fit(X[140:], y[140:])
    for other in (again.merge(rest), load(tmp_path / "ratings").partial_fit(X[140:], y[140:])):
        np.testing.assert_allclose((read(other)[0] - mean) / sd, 0.0, atol=0.2)
        np.testing.assert_allclose(read(other)[1] / sd, 1.0, atol=0.05)
    rows = load(tmp_path / "ratings")
    predicted = rows.predict_then_learn(X[140:], y[140:])
    np.testing.assert_allclose((read(rows)[0] - mean) / sd, 0.0, atol=0.5)
    assert predicted.probabilities.shape == (60, 5)
    left = whole.unlearn(X[140:], y[140:])
    np.testing.assert_allclose((read(left)[0] - read(first)[0]) / sd, 0.0, atol=0.3)


def test_a_stream_that_forgets_learns_ratings() -> None:
    X, y = simulate(100, levels=3)
    model = BayesianGeneralizedLinear(Ordinal(3), forgetting=Stabilized(0.99)).fit(X, y)
    whole = BayesianGeneralizedLinear(Ordinal(3)).fit(X, y)
    mean, sd = read(whole)
    # Its first rows are met when nothing is known of the gap.
    np.testing.assert_allclose((read(model)[0] - mean) / sd, 0.0, atol=3.0)
    shares = [one.predict_distribution(X).probabilities for one in (model, whole)]
    assert np.abs(shares[0] - shares[1]).mean() < 0.1


def test_two_levels_are_labels() -> None:
    X, y = simulate(100, levels=2)
    ratings = BayesianGeneralizedLinear(Ordinal(2)).fit(X, y)
    labels = BayesianGeneralizedLinear(Bernoulli()).fit(X, y)
    np.testing.assert_allclose(ratings.coef_, labels.coef_, rtol=1e-4)
    assert ratings.likelihood_parameters_ == {}


@pytest.mark.parametrize("y", [np.zeros(20), np.full(20, 4.0), np.arange(20) % 2 * 4.0])
def test_levels_that_never_came_are_expected_to_be_rare(y: np.ndarray) -> None:
    X = np.random.default_rng(0).normal(size=(20, 1))
    shares = BayesianGeneralizedLinear(Ordinal(5)).fit(X, y).predict_distribution([[0.0]])
    came = np.isin(np.arange(5), y)
    assert shares.probabilities[0, came].sum() > 0.75
    assert (shares.probabilities[0, ~came] > 1e-5).all()


def test_derivatives_are_those_of_the_log_density() -> None:
    known, y, eta = Ordinal(4, (0.5, 2.0)), np.array([0.0, 1.0, 2.0, 3.0]), np.linspace(-3, 3, 4)
    slope, curvature = known.derivatives(y, eta)
    step = 1e-4
    above, here, below = (known.log_density(y, eta + by) for by in (step, 0.0, -step))
    np.testing.assert_allclose(slope, (above - below) / (2.0 * step), atol=1e-7)
    np.testing.assert_allclose(curvature, (2.0 * here - above - below) / step**2, atol=1e-6)
    shares = np.exp([known.log_density(np.full(4, level), eta) for level in range(4)])
    np.testing.assert_allclose(shares.sum(axis=0), 1.0)
    found = known.predictive(eta, np.zeros(4)).probabilities
    np.testing.assert_allclose(found, shares.T, atol=1e-8)


def test_levels_are_distributions() -> None:
    ratings = Levels(np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))
    np.testing.assert_allclose(ratings.cdf(1), [0.3, 0.6])
    np.testing.assert_allclose(ratings.sf(1), [0.7, 0.4])
    np.testing.assert_array_equal(ratings.ppf([[0.05], [0.95]]), [[0, 0], [2, 2]])
    np.testing.assert_allclose(ratings.var(), [0.44, 0.69])
    np.testing.assert_allclose(ratings.crps([0, 2]), [0.9**2 + 0.7**2, 0.3**2 + 0.6**2])
    assert ratings.logpmf([5, 0]).tolist() == [-np.inf, np.log(0.3)]
    assert ratings.rvs((100, 2), 0).mean(axis=0) == pytest.approx(ratings.mean(), abs=0.3)


def test_what_is_no_rating_is_refused() -> None:
    with pytest.raises(ValueError, match="y in row 1 is 5: a rating of 5 levels must be"):
        BayesianGeneralizedLinear(Ordinal(5)).fit([[0.0], [1.0]], [1.0, 5.0])
    with pytest.raises(ValueError, match="levels is 1"):
        Ordinal(1)
    with pytest.raises(ValueError, match="4 levels have 2 gaps"):
        Ordinal(4, (1.0,))
    with pytest.raises(ValueError, match="are learned by a model"):
        Ordinal(4).cut_points  # noqa: B018
    X, y = simulate(40)
    known = BayesianGeneralizedLinear(Ordinal(5, (1.0, 1.0, 1.0))).fit(X, y)
    assert known.likelihood_parameters_ == {}
    assert known.merge(BayesianGeneralizedLinear(Ordinal(5, np.ones(3))).fit(X, y)).coef_[0] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize("levels", [3, 5, 7])
@pytest.mark.parametrize("n", [30, 100, 400])
def test_intervals_hold(levels: int, n: int) -> None:
    held = []
    cuts = np.linspace(-2.0, 2.0, levels - 1)
    for seed in range(20):
        X, y = simulate(n + 40, levels, seed)
        model = BayesianGeneralizedLinear(Ordinal(levels)).fit(X[:n], y[:n])
        low, high = np.array(model.posterior_.interval(0.9))[1:].T
        known = model.likelihood_parameters_.values()
        ends = np.array([(one.ppf(0.05), one.ppf(0.95)) for one in known])
        least, most = model.predict_interval(X[n:], 0.9).T
        held.append(
            [
                np.mean((low <= TRUE) & (high >= TRUE)),
                np.mean((ends[:, 0] <= np.diff(cuts)) & (ends[:, 1] >= np.diff(cuts))),
                np.mean((least <= y[n:]) & (y[n:] <= most)),
            ]
        )
    shares = np.mean(held, axis=0)
    # Thirty rows shrink an effect of two standard errors, as under any likelihood.
    assert (shares > [0.7 if n == 30 else 0.8, 0.8, 0.88]).all(), shares


def test_levels_that_are_no_whole_number() -> None:
    X, y = simulate(20, 4, 0)
    same = BayesianGeneralizedLinear(Ordinal(4.0)).fit(X, y)
    np.testing.assert_array_equal(same.coef_, BayesianGeneralizedLinear(Ordinal(4)).fit(X, y).coef_)
    for levels in ("x", None, float("nan"), 2.5, 1):
        with pytest.raises((TypeError, ValueError), match="levels"):
            Ordinal(levels)
