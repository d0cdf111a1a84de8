"""Floor 3: linear models with Gaussian noise."""

from posterity.linear.regression import BayesianLinearRegression

__all__ = ["BayesianLinearRegression"]
