"""Floor 3: linear models of what has no Gaussian noise."""

import warnings

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


def __getattr__(name: str) -> object:
    if name == "RobustBayesianRegression":  # its name for one version more
        warnings.warn(f"{name} is called BayesianRobustRegression now", FutureWarning, stacklevel=2)
        return BayesianRobustRegression
    raise AttributeError(f"module 'posterity.generalized' has no attribute {name!r}")
