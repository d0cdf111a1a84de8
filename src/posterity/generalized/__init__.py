"""Floor 3: linear models of what has no Gaussian noise."""

from posterity.generalized.logistic import BayesianLogisticRegression
from posterity.generalized.poisson import BayesianPoissonRegression
from posterity.generalized.quantile import BayesianQuantileRegression
from posterity.generalized.robust import RobustBayesianRegression

__all__ = [
    "BayesianLogisticRegression",
    "BayesianPoissonRegression",
    "BayesianQuantileRegression",
    "RobustBayesianRegression",
]
