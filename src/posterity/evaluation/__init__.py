"""Honest scores of models on streams: every row is predicted before it is learned."""

from __future__ import annotations

from posterity.distributions.pit import PIT
from posterity.evaluation.baselines import Baseline
from posterity.evaluation.classification import ClassificationResult, progressive_classification
from posterity.evaluation.coefficient_path import CoefficientPath, follow_coefficients
from posterity.evaluation.compare import compare
from posterity.evaluation.comparison import Comparison
from posterity.evaluation.drift import DriftPeriod
from posterity.evaluation.merging import merge_validations
from posterity.evaluation.paired import compare_predictions
from posterity.evaluation.paired_result import PairedComparison, PairedDifference
from posterity.evaluation.progressive import progressive_validation
from posterity.evaluation.result import ValidationResult
from posterity.evaluation.slices import SlicedLevels, SlicedNumbers, Slices
from posterity.evaluation.stretches import Stretches
from posterity.evaluation.survival import (
    RiskGroup,
    SurvivalScores,
    progressive_survival,
    score_survival,
)

__all__ = [
    "PIT",
    "Baseline",
    "ClassificationResult",
    "CoefficientPath",
    "Comparison",
    "DriftPeriod",
    "PairedComparison",
    "PairedDifference",
    "RiskGroup",
    "SlicedLevels",
    "SlicedNumbers",
    "Slices",
    "Stretches",
    "SurvivalScores",
    "ValidationResult",
    "compare",
    "compare_predictions",
    "follow_coefficients",
    "merge_validations",
    "progressive_classification",
    "progressive_survival",
    "progressive_validation",
    "score_survival",
]
