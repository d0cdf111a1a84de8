"""Floor 3: linear models of targets without Gaussian noise."""

from posterity.generalized.generalized_linear import BayesianGeneralizedLinear
from posterity.generalized.logistic import BayesianLogisticRegression
from posterity.generalized.negative_binomial import BayesianNegativeBinomialRegression
from posterity.generalized.poisson import BayesianPoissonRegression
from posterity.generalized.quantile import BayesianQuantileRegression
from posterity.generalized.robust import BayesianRobustRegression
from posterity.generalized.varying_features import VaryingFeatures
from posterity.other_names import find_former_name

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
    former = {"RobustBayesianRegression": "BayesianRobustRegression"}  # for one version more
    return globals()[find_former_name(__name__, name, former)]
