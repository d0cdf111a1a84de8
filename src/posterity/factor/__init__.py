"""Floor 1: the factor and its algebra."""

from posterity.factor.factor import Before, Factor, NotInFactorError

__all__ = ["Before", "Factor", "NotInFactorError"]
