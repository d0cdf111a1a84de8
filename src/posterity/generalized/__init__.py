"""Linear models of targets without Gaussian noise."""

from posterity.generalized.generalized_linear import BayesianGeneralizedLinear
from posterity.generalized.logistic import BayesianLogisticRegression
from posterity.generalized.negative_binomial import BayesianNegativeBinomialRegression
from posterity.generalized.poisson import BayesianPoissonRegression
from posterity.generalized.quantile import BayesianQuantileRegression
from posterity.generalized.robust import BayesianRobustRegression
from posterity.generalized.varying_features import VaryingFeatures

__all__ = [
    "BayesianGeneralizedLinear",
    "BayesianLogisticRegression",
    "BayesianNegativeBinomialRegression",
    "BayesianPoissonRegression",
    "BayesianQuantileRegression",
    "BayesianRobustRegression",
    "VaryingFeatures",
]
