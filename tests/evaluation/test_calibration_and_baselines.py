"""PIT, baselines, slices and drift of a validated stream, against the same things done at once."""

from __future__ import annotations

import json
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from posterity import BayesianLinearRegression, BayesianPoissonRegression
from posterity.distributions import StudentT
from posterity.evaluation import PIT, ValidationResult, progressive_validation


def stream(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 5.0 + X @ [1.0, -2.0] + rng.normal(size=n)


class Says:
    """Predicts N(0, scale^2) whatever it is shown."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        from posterity.distributions import Normal

        return Normal(np.zeros(len(y)), np.full(len(y), self.scale))


def said(y: np.ndarray, scale: float = 1.0, **options: Any) -> ValidationResult:
    return progressive_validation(Says(scale), np.zeros((len(y), 1)), y, **options)


@pytest.mark.parametrize(
    ("noise", "side"),
    [
        (stats.norm(), 0),
        (stats.t(3), 0),
        (stats.norm(0.7, 1.3), 0),  # predictions too low, intervals too narrow
        (stats.expon(-1.0), 1),
        (stats.lognorm(1.0, -1.6, 0.7), 1),
        (stats.gumbel_l(0.5, 0.8), -1),
    ],
)
def test_skewed_noise_is_said(noise: Any, side: int) -> None:
    y = noise.rvs(2000, random_state=np.random.default_rng(0))
    result = said(y, 1.0, batch_rows=500)
    assert result.pit is not None
    assert result.pit.longer_tail == side
    assert ("The noise is skewed" in repr(result)) == (side != 0)
    if side:
        assert f"lie {'above' if side > 0 else 'below'} their intervals" in repr(result)


def test_pit_counts_are_those_of_scipy() -> None:
    y = np.random.default_rng(1).normal(size=5000)
    pit = said(y, 1.5, batch_rows=700).pit
    assert pit is not None
    u = stats.norm.cdf(y, scale=1.5)
    expected = np.histogram(u, bins=100, range=(0.0, 1.0))[0]
    assert pit.counts.tolist() == expected.tolist()
    inside = np.mean(np.abs(2.0 * u - 1.0) <= 0.9)
    assert pit.coverage(0.9) == pytest.approx(inside, abs=1e-12)
    assert pit.histogram(20) == pytest.approx(np.histogram(u, 20, (0, 1), density=True)[0])
    assert pit.distance <= stats.kstest(u, "uniform").statistic + 1e-12


def test_coverage_of_the_curve_is_that_of_the_intervals() -> None:
    result = progressive_validation(
        BayesianLinearRegression(), *stream(), levels=(0.5, 0.8, 0.9), batch_rows=411
    )
    assert result.pit is not None
    assert result.pit.n_rows == result.n_rows - result.n_unscored
    for level, share in result.coverage.items():
        assert result.pit.coverage(level) == pytest.approx(share, abs=2e-3)
    assert result.pit.error < 0.02


def test_pit_says_too_narrow_and_too_wide() -> None:
    y = np.random.default_rng(2).normal(size=2000)
    narrow, wide = said(y, 0.5).pit, said(y, 2.0).pit
    assert narrow is not None
    assert wide is not None
    ends, middle = narrow.histogram(10)[[0, -1]], narrow.histogram(10)[4:6]
    assert ends.min() > 1.5 > 1.0 > middle.max()
    assert wide.histogram(10)[[0, -1]].max() < 0.5 < 1.5 < wide.histogram(10)[4:6].min()


def test_pit_bins_must_divide() -> None:
    with pytest.raises(ValueError, match="bins must divide 100, as 10, 20 and 25 do; got 30"):
        PIT(np.ones(100, dtype=np.int64)).histogram(30)


@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("batch_rows", [1, 97, 10_000])
def test_baselines_are_those_of_pandas(delay: int, batch_rows: int) -> None:
    X, y = stream(400)
    result = progressive_validation(
        BayesianLinearRegression(), X, y, delay=delay, period=7, batch_rows=batch_rows
    )
    predictive = pd.Series(y)
    lag = 7 * (delay // 7 + 1)
    forecasts = {
        "mean so far": predictive.expanding().mean().shift(1 + delay),
        "last value": predictive.shift(1 + delay),
        "value one season ago": predictive.shift(lag),
    }
    assert list(result.baselines) == list(forecasts)
    for name, forecast in forecasts.items():
        error = (predictive - forecast).dropna()
        baseline = result.baselines[name]
        assert baseline.n_rows == len(error)
        assert baseline.mae == pytest.approx(error.abs().mean(), rel=1e-12)
        assert baseline.rmse == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)
        assert baseline.skill == pytest.approx(1.0 - baseline.model_mae / baseline.mae)
        assert baseline.skill > 0.2
    assert result.skill["last value"] == result.baselines["last value"].skill


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("batch_rows", [1, 97, 10_000])
def test_baselines_have_the_distributions_of_scipy(delay: int, batch_rows: int) -> None:
    X, y = stream(400)
    result = progressive_validation(
        BayesianLinearRegression(noise_precision=1.0),
        X,
        y,
        delay=delay,
        period=7,
        batch_rows=batch_rows,
    )
    predictive = pd.Series(y)
    known = predictive.shift(1 + delay)
    count = known.expanding().count()
    spread = known.expanding().std() * np.sqrt(1.0 + 1.0 / count)
    expected = {"mean so far": (count - 1.0, known.expanding().mean(), spread)}
    for name, lag in (("last value", 1 + delay), ("value one season ago", 7)):
        steps = (predictive - predictive.shift(lag)).shift(1 + delay)
        size = np.sqrt((steps**2).expanding().mean())
        expected[name] = (steps.expanding().count(), predictive.shift(lag), size)
    for name, (df, loc, scale) in expected.items():
        rows = (df > 1.0) & loc.notna()
        t = StudentT(df[rows], loc[rows], scale[rows])
        baseline = result.baselines[name]
        assert baseline.n_scored == rows.sum()
        log_density = stats.t.logpdf(predictive[rows], df[rows], loc[rows], scale[rows])
        assert baseline.log_score == pytest.approx(log_density.mean(), rel=1e-11)
        assert baseline.crps == pytest.approx(t.crps(predictive[rows]).mean(), rel=1e-11)
        assert baseline.skill_crps == pytest.approx(1.0 - baseline.model_crps / baseline.crps)
        assert 0.2 < baseline.skill_crps < 1.0
        assert baseline.log_score_gain > 0.5
        said = result.to_dict()["baselines"][name]
        assert said["log_score_gain"] == pytest.approx(
            baseline.model_log_score - baseline.log_score
        )


def test_a_model_like_its_baseline_gains_nothing() -> None:
    y = np.random.default_rng(5).normal(3.0, 2.0, size=2000)

    class Sample:
        """The mean so far, with its spread: what the baseline is."""

        def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            predictive = pd.Series(y).shift(1)
            n = predictive.expanding().count()
            scale = (predictive.expanding().std() * np.sqrt(1.0 + 1.0 / n)).fillna(np.inf)
            return StudentT(n - 1.0, predictive.expanding().mean().fillna(0.0), scale)

    result = progressive_validation(Sample(), np.zeros((2000, 1)), y)
    baseline = result.baselines["mean so far"]
    assert baseline.n_scored == 1997
    assert baseline.log_score_gain == pytest.approx(0.0, abs=1e-12)
    assert baseline.skill_crps == pytest.approx(0.0, abs=1e-12)


def test_baselines_of_counts_are_rates_times_the_exposure() -> None:
    rng = np.random.default_rng(3)
    X, years = rng.normal(size=(300, 1)), rng.uniform(0.1, 5.0, size=300)
    y = rng.poisson(years * np.exp(0.5 + 0.3 * X[:, 0])).astype(float)
    runs = [
        progressive_validation(BayesianPoissonRegression(), X, y, exposure=years, **how)
        for how in ({}, {"batch_rows": 1}, {"batch_rows": 71})
    ]
    result = runs[0]
    for other in runs[1:]:
        crps = other.baselines["mean so far"].crps
        assert crps == pytest.approx(result.baselines["mean so far"].crps)
    counts, total = pd.Series(y).cumsum().shift(1), pd.Series(years).cumsum().shift(1)
    errors = {
        "mean so far": y - counts / total * years,
        "last value": y - pd.Series(y / years).shift(1) * years,
    }
    for name, error in errors.items():
        assert result.baselines[name].n_rows == 299
        assert result.baselines[name].mae == pytest.approx(error.abs().mean())
    # The regression of y / sqrt(e) on sqrt(e), whose predictions are Student-t.
    line = BayesianLinearRegression(prior_precision=0.0, fit_intercept=False)
    root = np.sqrt(years)
    ahead = line.predict_then_learn(root[:, None], y / root)
    t = StudentT(ahead.df[3:], ahead.loc[3:] * root[3:], ahead.scale[3:] * root[3:])
    assert result.baselines["mean so far"].n_scored == 297  # the CRPS takes 2 degrees of freedom
    score = t.logpdf(y[3:]).mean()
    assert result.baselines["mean so far"].log_score == pytest.approx(score)
    without = progressive_validation(BayesianPoissonRegression(), X, y)
    assert result.baselines["mean so far"].mae < 0.7 * without.baselines["mean so far"].mae


def test_baselines_of_equal_exposures_are_those_of_none() -> None:
    X, y = stream(200)
    y = np.round(np.abs(y))
    model = BayesianPoissonRegression
    with_ones, without = (
        progressive_validation(model(), X, y, delay=2, period=7, **how)
        for how in ({"exposure": np.ones(200)}, {})
    )
    for name, one in without.baselines.items():
        np.testing.assert_allclose(astuple(with_ones.baselines[name])[1:], astuple(one)[1:])


def test_targets_that_never_change_leave_baselines_without_density() -> None:
    y = np.ones(300)
    result = progressive_validation(
        BayesianLinearRegression(noise_precision=1.0), np.zeros((300, 1)), y
    )
    for baseline in result.baselines.values():
        assert baseline.n_rows == 299
        assert baseline.mae == 0.0
        assert baseline.n_scored == 0
        assert np.isnan(baseline.log_score)
    assert "nan" not in json.dumps(result.to_dict()).lower()


def test_last_value_has_no_skill_over_itself() -> None:
    y = np.cumsum(np.random.default_rng(3).normal(size=500))

    class Last:
        before = 0.0

        def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            from posterity.distributions import Normal

            mean = np.concatenate([[self.before], y[:-1]])
            self.before = y[-1]
            return Normal(mean, np.ones(len(y)))

    result = progressive_validation(Last(), np.zeros((500, 1)), y, batch_rows=64)
    assert result.skill["last value"] == pytest.approx(0.0, abs=1e-12)


def test_slices_are_those_of_a_groupby() -> None:
    X, y = stream(2000)
    frame = pd.DataFrame(X, columns=["a", "b"])
    result = progressive_validation(
        BayesianLinearRegression(), frame, y, slices={"a": [-1.0, 0.0, 1.0], "b": 4}
    )
    model = BayesianLinearRegression()
    predictive = model.predict_then_learn(frame, y)
    low, high = predictive.interval(0.95)
    scored = ~predictive.is_flat()
    error = np.abs(y - predictive.mean())
    place = pd.cut(frame["a"], [-np.inf, -1.0, 0.0, 1.0, np.inf], labels=False)
    by_a = result.slices["a"]
    assert by_a.names == ("up to -1", "-1 to 0", "0 to 1", "above 1")
    for k in range(4):
        assert by_a.n_rows[k] == np.sum(place == k)
        assert by_a.mae[k] == pytest.approx(error[place == k].mean())
        inside = ((low <= y) & (y <= high))[(place == k) & scored].mean()
        assert by_a.coverage[0.95][k] == pytest.approx(inside)
    assert result.slices["b"].n_rows.tolist() == [500, 500, 500, 500]
    assert by_a.n_rows.sum() == result.n_rows


def test_slices_by_number_and_their_messages() -> None:
    X, y = stream(100)
    result = progressive_validation(BayesianLinearRegression(), X, y, slices={1: 2})
    assert len(result.slices["1"]) == 2
    with pytest.raises(ValueError, match="there is no feature 'a' among the 2 of X"):
        progressive_validation(BayesianLinearRegression(), X, y, slices={"a": 2})
    with pytest.raises(ValueError, match="slices of 0: give a number of slices, or their edges"):
        progressive_validation(BayesianLinearRegression(), X, y, slices={0: [1.0, 0.0]})
    with pytest.raises(ValueError, match="period must be at least 1, got 0"):
        progressive_validation(BayesianLinearRegression(), X, y, period=0)


def test_drift_is_found_where_it_is() -> None:
    y = np.random.default_rng(4).normal(size=20_000)
    assert said(y).drift_periods() == []
    y[8000:10_000] += 3.0
    (period,) = said(y).drift_periods()
    assert abs(period.row_start - 8000) < 400
    assert abs(period.row_end - 10_000) < 400
    assert 2.0 < period.ratio < 5.0
    assert period.usual == pytest.approx(np.sqrt(2.0 / np.pi), rel=0.05)


def test_extremes_are_kept_whatever_the_length() -> None:
    y = np.random.default_rng(5).normal(size=50_000)
    y[31_234] = 99.0
    along = said(y, batch_rows=777).along
    assert along.max_error.max() == 99.0
    k = int(np.argmax(along.max_error))
    assert along.row_end[k] - along.n_rows[k] <= 31_234 < along.row_end[k]


def test_memory_does_not_grow() -> None:
    short, long = said(np.zeros(1000)), said(np.zeros(100_000))
    assert len(short.along) <= 128
    assert len(long.along) <= 128


def test_frames() -> None:
    result = progressive_validation(
        BayesianLinearRegression(), *stream(1000), levels=(0.5, 0.95), slices={0: 3}
    )
    by_time = result.to_frame()
    assert by_time.index.name == "row_end"
    assert by_time["mae"].tolist() == result.along.mae.tolist()
    assert {"coverage_0.95", "width_0.5", "max_error"} <= set(by_time.columns)
    by_level = result.to_frame("level")
    assert by_level.loc[0.95, "coverage"] == result.coverage[0.95]
    assert len(by_level) == 50
    assert len(result.to_frame("0")) == 3
    with pytest.raises(ValueError, match="'x': give one of 'time', 'level', '0'"):
        result.to_frame("x")


def test_repr_and_notebook() -> None:
    result = progressive_validation(BayesianLinearRegression(), *stream(200))
    assert "skill over last value" in repr(result)
    page = result._repr_html_()
    assert page.startswith("<div><table><caption>Progressive validation of 200 rows</caption>")
    assert "calibration error" in page


def test_plot_has_four_panels() -> None:
    pytest.importorskip("matplotlib")
    result = progressive_validation(BayesianLinearRegression(), *stream(200))
    assert len(result.plot("A title").axes) == 4
