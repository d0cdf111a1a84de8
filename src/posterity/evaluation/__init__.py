"""Honest scores of models on streams: every row is predicted before it is learned."""

from __future__ import annotations

from posterity.evaluation.compare import compare
from posterity.evaluation.comparison import Comparison
from posterity.evaluation.progressive import progressive_validation
from posterity.evaluation.result import Stretches, ValidationResult

__all__ = ["Comparison", "Stretches", "ValidationResult", "compare", "progressive_validation"]
