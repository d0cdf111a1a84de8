"""Forecasts n steps ahead: exact Bayesian autoregressions, averaged by how they have forecast."""

from posterity.forecasting.checks import ForecastWarning
from posterity.forecasting.forecast import Forecast, StepDistribution
from posterity.forecasting.forecaster import Forecaster
from posterity.forecasting.forms import Form
from posterity.forecasting.progress import Progress
from posterity.forecasting.reading import GapWarning

__all__ = [
    "Forecast",
    "ForecastWarning",
    "Forecaster",
    "Form",
    "GapWarning",
    "Progress",
    "StepDistribution",
]
