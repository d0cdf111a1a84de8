"""Floor 7: users, items and their like, each level with a few factors that meet the others'."""

from posterity.factorization.classifier import BayesianFactorizationClassifier
from posterity.factorization.machine import BayesianFactorizationMachine

__all__ = ["BayesianFactorizationClassifier", "BayesianFactorizationMachine"]
