"""Experiments with several arms that may be looked at, and stopped, at any time."""

from __future__ import annotations

from posterity.experiments.experiment import Experiment
from posterity.experiments.metrics import Guardrail, Metrics
from posterity.experiments.pairs import Pair
from posterity.experiments.planning import plan
from posterity.experiments.segments import Segments
from posterity.experiments.stopping import AnytimeValid, Decision, ExpectedLoss, Rows, Stop

__all__ = [
    "AnytimeValid",
    "Decision",
    "ExpectedLoss",
    "Experiment",
    "Guardrail",
    "Metrics",
    "Pair",
    "Rows",
    "Segments",
    "Stop",
    "plan",
]
