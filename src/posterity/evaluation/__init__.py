"""Honest scores of models on streams: every row is predicted before it is learned."""

from __future__ import annotations

from posterity.evaluation.progressive import progressive_validation
from posterity.evaluation.result import Stretches, ValidationResult

__all__ = ["Stretches", "ValidationResult", "progressive_validation"]
