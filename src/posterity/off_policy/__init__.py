"""Estimate from a log what another policy would have earned, and learn a better one."""

from __future__ import annotations

from posterity.off_policy.evaluation import evaluate
from posterity.off_policy.learning import NotBetterError, learn
from posterity.off_policy.log import Log
from posterity.off_policy.result import Estimate, Evaluation
from posterity.off_policy.support import Support
from posterity.off_policy.targets import Always
from posterity.off_policy.what_if import WhatIf, what_if

__all__ = [
    "Always",
    "Estimate",
    "Evaluation",
    "Log",
    "NotBetterError",
    "Support",
    "WhatIf",
    "evaluate",
    "learn",
    "what_if",
]
