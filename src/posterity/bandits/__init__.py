"""Contextual bandits: decisions with the probabilities that they were picked with."""

from posterity.bandits.bandit import Bandit
from posterity.bandits.chances import chances_of_best
from posterity.bandits.decisions import Decisions
from posterity.bandits.policies import (
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    Policy,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)

__all__ = [
    "Bandit",
    "Decisions",
    "EpsilonGreedy",
    "Greedy",
    "InformationDirected",
    "InverseGap",
    "Policy",
    "Softmax",
    "ThompsonSampling",
    "TopTwo",
    "UpperConfidenceBound",
    "chances_of_best",
]
