"""The forecaster with the methods of Nixtla's libraries: frames in, frames out, levels in percent.

Frames have the columns ``unique_id``, ``ds``, ``y`` and exogenous ones, and may be of pandas or
Polars; what comes back is of the same library. It needs nothing of Nixtla's.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Self

import numpy as np

from posterity.aliases import AnyArray, DataFrame
from posterity.forecasting import Forecast, Forecaster
from posterity.forecasting.frames import columns_of
from posterity.forecasting.reading import TARGET
from posterity.forecasting.steps import as_lists

__all__ = ["NixtlaForecaster"]

Columns = dict[str, AnyArray]


class NixtlaForecaster:
    """A :class:`posterity.Forecaster` that is called as ``StatsForecast`` and ``MLForecast`` are.

    Parameters
    ----------
    **options
        Of :class:`posterity.Forecaster`.

    Attributes
    ----------
    forecaster_ : Forecaster
        What has learned the series.

    Examples
    --------
    >>> import pandas as pd
    >>> y = np.sin(np.arange(60) * 2 * np.pi / 7) + np.arange(60) / 20
    >>> days = pd.date_range("2026-01-01", periods=60)
    >>> frame = pd.DataFrame({"unique_id": "a", "ds": days, "y": y})
    >>> next_week = NixtlaForecaster().fit(frame).predict(7, level=[80, 95])
    >>> next_week.columns.tolist()[2:]
    ['Forecaster', 'Forecaster-lo-80', 'Forecaster-hi-80', 'Forecaster-lo-95', 'Forecaster-hi-95']
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._module = "pandas"
        self.forecaster_ = Forecaster(**options)

    def fit(self, df: Any) -> Self:
        """Learn the series of a long frame."""
        if columns_of(df) is None or TARGET not in df.columns:
            raise ValueError("df must be a data frame with the columns unique_id, ds and y")
        self._module = "polars" if type(df).__module__.startswith("polars") else "pandas"
        self.forecaster_ = Forecaster(**self._options).fit(df)
        return self

    def update(self, df: Any) -> Self:
        """Learn later rows; unlike those of Nixtla's, it learns parameters, too."""
        self.forecaster_.partial_fit(df)
        return self

    def predict(self, h: int, X_df: Any = None, level: Sequence[float] | None = None) -> DataFrame:
        """The next ``h`` steps: a row each series and step, with interval ends at each ``level``.

        Levels are in percent. The point forecast, in the column ``Forecaster``, is the median.
        """
        return self._make_frame(_columns(self.forecaster_.forecast(h, X_df), level))

    def forecast(
        self, h: int, df: Any, X_df: Any = None, level: Sequence[float] | None = None
    ) -> DataFrame:
        """:meth:`fit` and :meth:`predict` in one."""
        return self.fit(df).predict(h, X_df, level)

    def cross_validation(
        self,
        h: int,
        df: Any,
        n_windows: int = 1,
        step_size: int | None = None,
        level: Sequence[float] | None = None,
    ) -> DataFrame:
        """Forecasts of the last windows of ``h`` steps from the values before, beside ``y``.

        ``cutoff`` is the time of the last row that was known.
        """
        forecaster = self.fit(df).forecaster_
        future = df if forecaster.exogenous_ else None
        each = []
        for window in range(n_windows - 1, -1, -1):
            behind = h + window * (h if step_size is None else step_size)
            then = forecaster.before(behind)
            forecast = then.forecast(h, future)
            columns = _columns(forecast, level)
            last = then.times_[:, -1]
            came = forecaster.values_[:, forecaster.values_.shape[1] - behind :][:, :h]
            columns["cutoff"] = np.repeat(forecast.calendar.write(last), h)
            columns[TARGET] = came.reshape(-1)
            each.append(columns)
        return self._make_frame(
            {name: np.concatenate([one[name] for one in each]) for name in each[0]}
        )

    def _make_frame(self, columns: Columns) -> DataFrame:
        return import_module(self._module).DataFrame(as_lists(columns))


def _columns(forecast: Forecast, level: Sequence[float] | None) -> Columns:
    for percent in level or ():
        if not 0.0 < percent < 100.0:
            raise ValueError(f"level has {percent}: levels are in percent, as in [80, 95]")
    return forecast.to_columns([percent / 100.0 for percent in level or ()])
