"""The forecaster as one of sktime's: ``fh``, intervals, quantiles, and updates that learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from posterity.adapters._extras import require_module
from posterity.aliases import DataFrame, Indices
from posterity.forecasting import Forecast, Forecaster, Form

require_module("sktime", "sktime")
import pandas as pd  # noqa: E402  (the line above says how to get it)
from sktime.forecasting.base import BaseForecaster  # noqa: E402

__all__ = ["SktimeForecaster"]


class SktimeForecaster(BaseForecaster):
    """A :class:`posterity.Forecaster` in sktime's interface.

    Parameters
    ----------
    seasonality, forms, n_draws, holidays, events, forgetting, lower_bound, upper_bound, outliers,
    capacity, floor
        As of :class:`posterity.Forecaster`.
    censored
        The same: a column of ``X``, of which the values in the next steps do not matter.

    Notes
    -----
    Several series at once are learned each by itself, by sktime's own loop. In-sample horizons
    are refused: a forecast is of what is to come. Where exogenous columns come for the steps of
    ``fh`` only, each step in between takes the values of the one before.

    Examples
    --------
    >>> y = pd.Series(np.sin(np.arange(60) * 2 * np.pi / 12))
    >>> forecaster = SktimeForecaster(seasonality=12).fit(y, fh=[1, 2, 12])
    >>> forecaster.predict().index.tolist()
    [60, 61, 71]
    """

    _tags: ClassVar[dict[str, Any]] = {
        "authors": "posterity",
        "maintainers": "posterity",
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:exogenous": True,
        "requires-fh-in-fit": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
    }

    def __init__(
        self,
        seasonality: int | Sequence[int] | None = None,
        forms: Sequence[Form] | None = None,
        n_draws: int = 32,
        holidays: str | Sequence[str] | None = None,
        events: Any = None,
        forgetting: Any = None,
        lower_bound: float | str | None = "auto",
        upper_bound: float | str | None = "auto",
        outliers: Literal["ignore", "learn"] = "ignore",
        censored: str | None = None,
        capacity: float | None = None,
        floor: float = 0.0,
    ) -> None:
        self.seasonality = seasonality
        self.forms = forms
        self.n_draws = n_draws
        self.holidays = holidays
        self.events = events
        self.forgetting = forgetting
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.outliers = outliers
        self.censored = censored
        self.capacity = capacity
        self.floor = floor
        super().__init__()

    def _fit(self, y: Any, X: Any, fh: Any) -> SktimeForecaster:
        options = {name: getattr(self, name) for name in Forecaster().get_params()}
        self.forecaster_ = Forecaster(**options).fit(*_read(y, X))
        self._learned = y.index
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> SktimeForecaster:
        new = y.index > self._learned[-1]  # sktime may give rows again
        if new.any():
            self.forecaster_.partial_fit(*_read(y[new], None if X is None else X[new]))
            self._learned = self._learned.append(y.index[new])
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        forecast, steps = self._forecast_to_last_step(fh, X)
        index = fh.to_absolute_index(self.cutoff)
        return pd.Series(forecast.median()[steps], index=index, name=self._y.name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: Sequence[float]) -> DataFrame:
        forecast, steps = self._forecast_to_last_step(fh, X)
        names = self._get_varnames()
        return pd.DataFrame(
            np.column_stack([forecast.quantile(one)[steps] for one in alpha]),
            index=fh.to_absolute_index(self.cutoff),
            columns=pd.MultiIndex.from_product([names, alpha]),
        )

    def _forecast_to_last_step(self, fh: Any, X: Any) -> tuple[Forecast, Indices]:
        """The forecast up to the farthest step, and which steps were asked for."""
        steps = np.asarray(fh.to_relative(self.cutoff), dtype=np.intp)
        h = int(steps.max())
        planned = {*self.forecaster_.exogenous_} - {self.censored}
        future = _fill_all_steps(X.rename(columns=str), steps) if planned else None
        # sktime may set the cutoff back, to see what it would have predicted.
        forecaster = self.forecaster_.before(int((self._learned > self.cutoff[-1]).sum()))
        return forecaster.forecast(h, future), steps - 1

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters that sktime's own checks try."""
        return [{"n_draws": 8, "seasonality": 4}, {"forms": [Form(1, (1,))], "n_draws": 4}]


def _fill_all_steps(X: Any, steps: Indices) -> Any:
    """Columns of h steps; those that are not among the given ones are as the one before."""
    if len(X) != len(steps):
        return X.reset_index(drop=True)
    known = X.set_axis(steps)
    return known.reindex(range(1, int(steps.max()) + 1)).ffill().bfill().reset_index(drop=True)


def _read(y: Any, X: Any) -> tuple[Any, Any]:
    """Series and columns as the forecaster reads them: periods are times."""
    if isinstance(y.index, pd.PeriodIndex):
        y = y.set_axis(y.index.to_timestamp())
    elif not isinstance(y.index, pd.DatetimeIndex):
        y = y.to_numpy(dtype=np.float64)
    columns = None if X is None or not X.shape[1] else X.rename(columns=str)
    return y, columns
