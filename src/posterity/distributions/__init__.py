"""Normal and Student-t distributions, one per row, and the joint ones of coefficients.

They speak scipy's language (``mean var std interval pdf logpdf cdf sf ppf rvs``) and add ``crps``.
Making one only stores arrays; every formula runs over all rows at once.
"""

from __future__ import annotations

from posterity.distributions.multivariate import MultivariateNormal, MultivariateT
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT

__all__ = ["MultivariateNormal", "MultivariateT", "Normal", "StudentT"]
