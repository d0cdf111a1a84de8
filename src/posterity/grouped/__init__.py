"""One small model for each of many groups, which learn from each other."""

from posterity.grouped.regression import GroupedRegression

__all__ = ["GroupedRegression"]
