"""The factor and its algebra."""

from posterity.factor.factor import Factor, NotInFactorError, OneStepPredictions
from posterity.factor.rows import Rows

__all__ = ["Factor", "NotInFactorError", "OneStepPredictions", "Rows"]
