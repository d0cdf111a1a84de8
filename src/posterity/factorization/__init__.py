"""Factorization machines for users, items and the like."""

from posterity.factorization.classifier import BayesianFactorizationClassifier
from posterity.factorization.machine import BayesianFactorizationMachine

__all__ = ["BayesianFactorizationClassifier", "BayesianFactorizationMachine"]
