"""sktime's interface."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas", reason="needs pandas")
pytest.importorskip("sktime", reason="needs sktime (posterity[sktime])")

import pandas

from posterity import Forecaster
from posterity.adapters.sktime import SktimeForecaster

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def series() -> pandas.Series:
    index = pandas.period_range("2020-01", periods=72, freq="M")
    rng = np.random.default_rng(0)
    wave = np.sin(2.0 * np.pi * np.arange(72) / 12.0)
    return pandas.Series(10.0 + wave + 0.1 * rng.normal(size=72), index=index, name="sold")


def test_it_says_what_the_forecaster_says() -> None:
    y = series()
    model = SktimeForecaster().fit(y[:60], fh=[1, 3, 12])
    expected = Forecaster(seasonality=12).fit(y[:60].to_numpy()).forecast(12)
    assert model.forecaster_.periods_ == (12,)
    predictive = model.predict()
    np.testing.assert_allclose(predictive, expected.median()[[0, 2, 11]])
    assert predictive.index.tolist() == [y.index[60], y.index[62], y.index[71]]
    ends = model.predict_interval(coverage=0.9).to_numpy()
    np.testing.assert_allclose(ends.T, np.array(expected.interval(0.9))[:, [0, 2, 11]])


def test_it_has_the_parameters_of_the_forecaster() -> None:
    assert set(SktimeForecaster.get_param_names()) == set(Forecaster().get_params())
    y = series().to_timestamp().resample("D").ffill()[:200]
    model = SktimeForecaster(n_draws=4, holidays="DE", upper_bound=12.0).fit(y, fh=[1, 2])
    expected = Forecaster(n_draws=4, holidays="DE", upper_bound=12.0).fit(y).forecast(2)
    np.testing.assert_array_equal(model.predict(), expected.median())


def test_text_and_censored_columns() -> None:
    y = series()
    X = pandas.DataFrame({"sale": ["no", "yes", "no"] * 24, "empty": [0.0, 0.0, 1.0] * 24}, y.index)
    model = SktimeForecaster(censored="empty", n_draws=4).fit(y[:60], X[:60], fh=[1, 3])
    expected = Forecaster(censored="empty", n_draws=4, seasonality=12).fit(
        y[:60].to_numpy(), X[:60].reset_index(drop=True)
    )
    future = pandas.DataFrame({"sale": ["no", "no", "no"]})  # the second is as the first
    np.testing.assert_allclose(
        model.predict(X=X.iloc[[60, 62]]), expected.forecast(3, future).median()[[0, 2]]
    )


def test_updates_learn() -> None:
    y = series()
    parts = SktimeForecaster().fit(y[:60], fh=[1]).update(y[60:])
    whole = SktimeForecaster().fit(y, fh=[1])
    np.testing.assert_allclose(parts.predict(), whole.predict())


def test_the_checks_of_sktime() -> None:
    from sktime.utils.estimator_checks import check_estimator

    chosen = ["test_predict_time_index", "test_predict_time_index_with_X", "test_predict_quantiles"]
    check_estimator(SktimeForecaster, tests_to_run=chosen, raise_exceptions=True, verbose=False)
