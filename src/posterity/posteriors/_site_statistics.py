"""What is known of the rows under a likelihood beside their sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posterity.posteriors._site_start import StartRows
from posterity.posteriors._skewed import SkewedRows


@dataclass
class SiteStatistics:
    """Statistics of the rows learned that their sites do not contain.

    ``log_sites`` sums the logs of the sites' constants, ``log_predictive`` the log predictive
    densities of rows that came one after another; ``seen`` and ``effective`` sum weights, as they
    came and as they faded. ``together`` is what ``seen`` was when all rows so far were fitted at
    once, so that their sites agree, ``at_mode`` whether that was at their mode, and ``averaged``
    whether over their posterior. ``start`` are the first rows, as long as they are kept, and
    ``skewed`` those of rows fitted together that make the posterior skewed. ``phi`` is what is
    known of the likelihood's parameter, where it is learned.
    """

    log_sites: float = 0.0
    log_predictive: float = 0.0
    seen: float = 0.0
    effective: float = 0.0
    together: float = -1.0
    at_mode: bool = False
    averaged: bool = False
    start: StartRows | None = None
    phi: Any = None  # a LearnedParameter or JointParameters
    skewed: SkewedRows | None = None

    def copy_from(self, other: SiteStatistics) -> None:
        """Take over all of another one."""
        self.__dict__.update(other.__dict__)
