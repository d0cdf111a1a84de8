"""Vector autoregressions: least squares, formulas, evidence, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from posterity import BayesianLinearRegression
from posterity.files import dumps, loads
from posterity.forecasting import ForecastWarning, VectorAutoregression
from posterity.forecasting.minnesota import NOISE_ROWS, Nodes

FLAT = (np.inf, np.inf)
A = np.array([[0.5, 0.1, 0.0], [0.3, 0.4, 0.0], [0.0, 0.2, 0.6]])
ROOT = np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.3, 2.0]])


def simulated(n: int = 150, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    y = np.zeros((n + 50, 3))
    for t in range(1, n + 50):
        y[t] = 1.0 + A @ y[t - 1] + ROOT @ rng.normal(size=3)
    return y[50:]


def test_a_flat_prior_is_least_squares() -> None:
    api = pytest.importorskip("statsmodels.tsa.api")
    y = simulated()
    for lags in (1, 3):
        ours = VectorAutoregression(lags=lags, tightness=FLAT).fit(y)
        theirs = api.VAR(y).fit(lags)
        assert np.allclose(ours.coef_, theirs.coefs, atol=1e-10)
        assert np.allclose(ours.intercept_, theirs.intercept, atol=1e-10)


def test_a_tight_prior_is_a_walk_or_the_mean() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=(200, 2)), axis=0)
    walk = VectorAutoregression(lags=2, tightness=(1e-6, 1e-6)).fit(y)
    assert np.allclose(walk.coef_[0], np.eye(2), atol=1e-6)
    assert np.allclose(walk.coef_[1], 0.0, atol=1e-6)
    noise = VectorAutoregression(lags=2, tightness=(1e-6, 1e-6)).fit(np.diff(y, axis=0))
    assert np.allclose(noise.coef_, 0.0, atol=1e-6)


def test_one_signal_in_closed_form() -> None:
    """With coefficients that are known, as nearly as 20,000 rows tell, of an AR(1)."""
    rng = np.random.default_rng(0)
    phi, y = 0.7, np.zeros(20_000)
    for t in range(1, len(y)):
        y[t] = phi * y[t - 1] + 2.0 * rng.normal()
    model = VectorAutoregression(lags=1).fit(y[:, None])
    forecast = model.forecast(12)
    step = np.arange(1, 13)
    known = float(model.coef_[0, 0, 0])
    sigma = np.sqrt(forecast.covariance()[0, 0, 0])
    variance = np.square(sigma) * (1.0 - known ** (2 * step)) / (1.0 - known**2)
    assert known == pytest.approx(phi, abs=0.02)
    assert sigma == pytest.approx(2.0, rel=0.02)
    assert np.allclose(forecast.var()[0], variance, rtol=2e-3)
    level = float(model.intercept_[0] / (1.0 - known))
    assert np.allclose(forecast.mean()[0], level + (y[-1] - level) * known**step, atol=0.02)
    # The sum has the variance of all covariances together.
    responses = known ** np.arange(12)
    sums = np.cumsum(responses)
    assert forecast.total().var()[0, 0] == pytest.approx(
        np.square(sigma) * np.square(sums).sum(), rel=2e-3
    )


def test_links_are_regressions_of_the_library() -> None:
    y = simulated(60)
    model = VectorAutoregression(lags=2).fit(y)
    signals = model._get_signals()
    unit, centre = signals.unit, signals.centre
    scaled = (y - centre) / unit
    X, now = np.hstack([scaled[1:-1], scaled[:-2]]), scaled[2:]
    nodes = Nodes(np.array([0.3]), np.array([0.1]), np.array([1.0]))
    for j in range(3):
        lag, signal = np.divmod(np.arange(6), 3)
        precision = np.square((lag + 1.0) / np.where(signal == j, 0.3, 0.1))
        steps = now - scaled[1:-1]
        twin = BayesianLinearRegression(
            prior_precision=np.append(precision, np.ones(j)),
            noise_prior=(0.5 * (NOISE_ROWS + 1.0 + j), 0.5),
        ).fit(np.hstack([X, steps[:, :j]]), steps[:, j])
        link = model._get_system().link(j, nodes)
        assert link.log_evidence[0] == pytest.approx(twin.log_evidence_, rel=1e-10)
        triangle = link.triangles[0]
        assert np.allclose(np.linalg.solve(triangle[:-1, :-1], triangle[:-1, -1])[1:], twin.coef_)


def test_sums_paths_and_densities_agree() -> None:
    forecast = VectorAutoregression(lags=2, n_draws=16).fit(simulated()).forecast(4)
    paths = forecast.rvs(40_000, random_state=0)
    assert np.allclose(paths.mean(axis=0), forecast.mean(), atol=0.06)
    assert np.allclose(paths.std(axis=0), forecast.std(), rtol=0.03)
    assert np.allclose(paths.sum(axis=2).std(axis=0), forecast.total().std()[:, 0], rtol=0.03)
    some = forecast.total(slice(1, 3)).std()[:, 0]
    assert np.allclose(paths[:, :, 1:3].sum(axis=2).std(axis=0), some, rtol=0.03)
    for step in range(4):
        assert np.allclose(np.cov(paths[:, :, step].T), forecast.covariance()[step], atol=0.3)
    # The density of a path, from the covariance of all steps of each draw.
    y, logs = paths[0], []
    for mean, responses in zip(forecast.paths, forecast.responses, strict=True):
        root = np.zeros((4, 3, 4, 3))
        for step in range(4):
            for back in range(step + 1):
                root[step, :, step - back] = responses[back]
        root = root.reshape(12, 12)
        logs.append(stats.multivariate_normal(mean.ravel(), root @ root.T).logpdf(y.T.ravel()))
    assert forecast.joint_logpdf(y) == pytest.approx(np.log(np.mean(np.exp(logs))), rel=1e-9)


def test_impulse_responses_are_powers_of_the_coefficients() -> None:
    y = simulated(4000)
    predictive = (
        VectorAutoregression(lags=1).fit(dict(zip("abc", y.T, strict=True))).impulse_responses(3)
    )
    for step in range(4):
        truth = np.linalg.matrix_power(A, step) @ ROOT
        assert np.allclose(predictive.median()[step], truth, atol=0.12)
    low, high = predictive.interval(0.9)
    assert (low <= predictive.median()).all()
    assert (predictive.median() <= high).all()
    assert predictive.ids == ("a", "b", "c")


def test_which_signal_helps_which() -> None:
    helps = VectorAutoregression(lags=2).fit(simulated(600)).helps()
    assert helps[0, 1] > 10.0
    assert helps[1, 2] > 0.0
    assert helps[2, 0] < 0.0
    assert helps[2, 1] < 0.0
    assert helps[0, 2] < 1.0
    assert len(helps) == 6


def test_units_and_order_of_rows() -> None:
    pd = pytest.importorskip("pandas")
    y = simulated(80)
    plain = VectorAutoregression(lags=2).fit(y).forecast(5)
    other = VectorAutoregression(lags=2).fit(y * [1e3, 1.0, 1e-4] + [5.0, 0.0, -7.0]).forecast(5)
    moved = plain.median() * [[1e3], [1.0], [1e-4]] + [[5.0], [0.0], [-7.0]]
    assert np.allclose(other.median(), moved, rtol=1e-7)
    frame = pd.DataFrame(y, columns=list("abc"))
    frame.insert(0, "ds", pd.date_range("2001-01-01", periods=80, freq="MS"))
    shuffled = frame.sample(frac=1.0, random_state=0)
    one, two = (VectorAutoregression().fit(f).forecast(3) for f in (frame, shuffled))
    assert np.array_equal(one.median(), two.median())
    assert one.times[0, 0] == np.datetime64("2007-09-01")


def test_later_rows_and_pickles() -> None:
    y = simulated(80)
    whole = VectorAutoregression().fit(y)
    parts = VectorAutoregression().partial_fit(y[:50]).partial_fit(y[50:])
    whole.forecast(3)
    again = pickle.loads(pickle.dumps(parts))
    for one in (parts, again, loads(dumps(whole))):
        assert np.array_equal(one.forecast(3).median(), whole.forecast(3).median())


def test_rows_with_a_value_missing_are_not_learned() -> None:
    y = simulated(80)
    y[40, 1] = np.nan
    model = VectorAutoregression(lags=2).fit(y)
    assert model._get_system().n == 80 - 2 - 3
    y[-1, 2] = np.nan
    assert np.isfinite(VectorAutoregression(lags=2).fit(y).forecast(3).median()).all()


def test_a_constant_signal_stays_where_it_is() -> None:
    """It is said, and the others are forecast as if it was not there."""
    y = simulated(60)
    fixed = np.full(60, 5.3)
    alone = VectorAutoregression(lags=2).fit({"a": y[:, 0], "c": y[:, 2]})
    beside = VectorAutoregression(lags=2).fit({"a": y[:, 0], "b": fixed, "c": y[:, 2]})
    with pytest.warns(ForecastWarning, match="series 'b' is constant"):
        forecast = beside.forecast(4)
    expected = alone.forecast(4)
    for mine, theirs in zip(forecast.interval(0.8), expected.interval(0.8), strict=True):
        np.testing.assert_array_equal(mine[[0, 2]], theirs)
        np.testing.assert_array_equal(mine[1], 5.3)
    assert (forecast.rvs(20, random_state=0)[:, 1] == 5.3).all()
    assert beside.helps()["b", "a"] == beside.helps()["c", "b"] == 0.0
    assert beside.helps()["a", "c"] == alone.helps()["a", "c"]
    np.testing.assert_array_equal(beside.coef_[:, [0, 2]][:, :, [0, 2]], alone.coef_)
    np.testing.assert_allclose(
        beside.intercept_[[0, 1, 2]], [alone.intercept_[0], 5.3, alone.intercept_[1]]
    )
    assert not beside.impulse_responses(3).median()[:, 1].any()
    with pytest.raises(ValueError, match=r"series 'b' was constant.*no density"):
        forecast.joint_logpdf(np.zeros((3, 4)))
    with pytest.warns(ForecastWarning, match="are constant"):
        both = VectorAutoregression().fit({"a": fixed, "b": -fixed}).forecast(3)
    np.testing.assert_array_equal(both.interval(), [[[5.3] * 3, [-5.3] * 3]] * 2)


def test_what_is_refused() -> None:
    y = simulated(30)
    with pytest.raises(ValueError, match=r"series 'a' \(and 1 more\) has 0 values"):
        VectorAutoregression().fit({"a": np.full(30, np.nan), "b": np.full(30, np.nan)})
    with pytest.raises(ValueError, match="lags is 0"):
        VectorAutoregression(lags=0).fit(y)
    with pytest.raises(ValueError, match="tightness is"):
        VectorAutoregression(tightness=(0.0, 1.0)).fit(y)
    with pytest.raises(
        ValueError, match=r"of 4 rows 1 can be learned, .* of the 3 signals or of their 3"
    ):
        VectorAutoregression(lags=3).fit(y[:4])
    with pytest.raises(ValueError, match="end at different times"):
        VectorAutoregression().fit({"a": y[:, 0], "b": y[:20, 1]})
    with pytest.raises(ValueError, match="the horizon must be a whole number"):
        VectorAutoregression().fit(y).forecast(0)
    with pytest.raises(ValueError, match="steps is 0, but 2 were forecast"):
        VectorAutoregression().fit(y).forecast(2).total(0)


@pytest.mark.slow
def test_intervals_hold() -> None:
    """Few rows of several signals: the guarantees' simulation, small."""
    held = []
    for seed in range(60):
        y = simulated(44, seed)
        low, high = VectorAutoregression().fit(y[:40]).forecast(4).interval(0.9)
        held.append((low < y[40:].T) & (high > y[40:].T))
    assert np.mean(held) == pytest.approx(0.9, abs=0.05)


def test_signals_missing_at_the_end_are_drawn_given_the_others() -> None:
    rng = np.random.default_rng(3)
    shocks = rng.normal(size=(300, 2)) @ [[1.0, 0.95], [0.0, 0.3]]
    y = np.cumsum(shocks, axis=0)
    cut = y.copy()
    cut[-8:, 1] = np.nan
    alone = y.copy()
    alone[-8:] = np.nan
    whole, some, none = (
        VectorAutoregression(lags=1).fit(each).forecast(2) for each in (y, cut, alone)
    )
    width = [np.diff(each.interval(0.95), axis=0)[0][1, 0] for each in (whole, some, none)]
    assert width[0] < 0.8 * width[1] < 0.8 * width[2]
    assert abs(some.median()[1, 0] - y[-1, 1]) < width[1]
