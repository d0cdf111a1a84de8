"""Linear models with Gaussian noise."""

from posterity.linear.regression import BayesianLinearRegression

__all__ = ["BayesianLinearRegression"]
