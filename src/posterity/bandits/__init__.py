"""Floor 7, contextual bandits: decisions with the probabilities that they were picked with."""

from posterity.bandits.bandit import Bandit
from posterity.bandits.decisions import Decision, Decisions
from posterity.bandits.delayed import DelayedRewards
from posterity.bandits.policies import (
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    InverseGap,
    Policy,
    RandomizedUpperConfidenceBound,
    Softmax,
    ThompsonSampling,
    TopTwo,
    UpperConfidenceBound,
)
from posterity.bandits.probability_best import probability_best
from posterity.bandits.wrappers import Baseline, Budget, Ledger

__all__ = [
    "Bandit",
    "Baseline",
    "Budget",
    "Decision",
    "Decisions",
    "DelayedRewards",
    "EpsilonGreedy",
    "Greedy",
    "InformationDirected",
    "InverseGap",
    "Ledger",
    "Policy",
    "RandomizedUpperConfidenceBound",
    "Softmax",
    "ThompsonSampling",
    "TopTwo",
    "UpperConfidenceBound",
    "probability_best",
]
