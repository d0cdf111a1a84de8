"""Floor 1: the factor and its algebra."""

from posterity.factor.factor import Before, Factor, NotInFactorError
from posterity.factor.rows import Rows

__all__ = ["Before", "Factor", "NotInFactorError", "Rows"]
