"""Intervals and distributions calibrated to outcomes, even if the model is wrong."""

from __future__ import annotations

from posterity.calibration.conformal import Conformal
from posterity.calibration.forecasts import ConformalForecaster
from posterity.calibration.prediction import ConformalPrediction
from posterity.calibration.recalibrated import Recalibrated
from posterity.calibration.recalibrated_distribution import RecalibratedDistribution

__all__ = [
    "Conformal",
    "ConformalForecaster",
    "ConformalPrediction",
    "Recalibrated",
    "RecalibratedDistribution",
]
