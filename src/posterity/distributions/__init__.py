"""Normal and Student-t distributions, one per row, counts, labels, joint ones, and mixtures.

They speak scipy's language (``mean var std interval pdf logpdf cdf sf ppf rvs``) and add ``crps``.
Making one only stores arrays; every formula runs over all rows at once.
"""

from __future__ import annotations

from posterity.distributions.categorical import Categorical
from posterity.distributions.joint_prediction import JointPrediction
from posterity.distributions.log_normal_counts import LogNormalCounts
from posterity.distributions.mixture import Mixture
from posterity.distributions.multivariate import MultivariateNormal, MultivariateT
from posterity.distributions.multivariate_mixture import MultivariateMixture
from posterity.distributions.negative_binomial_log_normal import NegativeBinomialLogNormal
from posterity.distributions.normal import Normal
from posterity.distributions.poisson_log_normal import PoissonLogNormal
from posterity.distributions.student_t import StudentT
from posterity.distributions.transformed import Transformed

__all__ = [
    "Categorical",
    "JointPrediction",
    "LogNormalCounts",
    "Mixture",
    "MultivariateMixture",
    "MultivariateNormal",
    "MultivariateT",
    "NegativeBinomialLogNormal",
    "Normal",
    "PoissonLogNormal",
    "StudentT",
    "Transformed",
]
