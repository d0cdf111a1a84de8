"""Forecasts n steps ahead: exact Bayesian autoregressions, averaged by how they have forecast."""

from posterity.forecasting.checks import ForecastWarning
from posterity.forecasting.components import Components
from posterity.forecasting.forecast import Forecast
from posterity.forecasting.forecaster import Forecaster
from posterity.forecasting.forms import Form
from posterity.forecasting.hierarchy import CoherentForecast, reconcile
from posterity.forecasting.progress import Progress
from posterity.forecasting.reading import GapWarning
from posterity.forecasting.steps import StepDistribution
from posterity.forecasting.vector import VectorAutoregression
from posterity.forecasting.vector_forecast import ImpulseResponses, VectorForecast

__all__ = [
    "CoherentForecast",
    "Components",
    "Forecast",
    "ForecastWarning",
    "Forecaster",
    "Form",
    "GapWarning",
    "ImpulseResponses",
    "Progress",
    "StepDistribution",
    "VectorAutoregression",
    "VectorForecast",
    "reconcile",
]
