"""A prior scale that coefficients share: all alike, or Cauchy around it.

Scales are points of a lattice of their logs. How their posteriors follow is told in
:mod:`posterity.evidence._local_turns`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import log_expit

from posterity.aliases import Array
from posterity.evidence.hyperprior import EXPONENT

# Probability that all scales are alike.
ALIKE = 0.2
LOG_SHARES = np.log([[ALIKE], [1.0 - ALIKE]])
# As WEAK_SIGNAL_A_DIRECTION of the hyperprior: where all are alike, and where most may be weak
# beside a few strong ones.
WEAK_SIGNALS = 0.02, 0.002
# Few rows can't show so many squared standard errors over the number of other features, which tell
# how strong effects are. At most such a part of the noise is weak, and of the first rows, which
# can't tell signal from noise, in proportion less, or first predictions run off.
UNSHOWN, MOST_UNSHOWN, FIRST_ROWS = 5.0, 0.1, 30.0
HYPERPRIOR = WEAK_SIGNALS, UNSHOWN, MOST_UNSHOWN, FIRST_ROWS, EXPONENT
LONGEST_LATTICE = 90
BEFORE = 5  # so far below the shared scale a Cauchy's own has no density
TINY = np.finfo(float).tiny


class SharedScale(NamedTuple):
    """A scale (g,) that members share: all alike, or Cauchy around it; ``smooth`` is for these.

    ``likelihood`` (g,) is relative to exp(``log_top``), ``parts`` (2, g) what each of both gives.
    """

    members: Array
    smooth: Array
    parts: Array
    log_top: float

    @classmethod
    def of(cls, likelihood: Array, log_prior: Array) -> Self:
        members = np.maximum(likelihood, TINY)
        smooth = np.maximum(members @ _make_table(members.shape[1]).T, TINY)
        logs = log_prior + np.array([np.log(members).sum(axis=0), np.log(smooth).sum(axis=0)])
        top = float(logs.max())
        return cls(members, smooth, np.exp(logs - top), top)

    @property
    def likelihood(self) -> Array:
        return np.asarray(self.parts.sum(axis=0))

    def find_posteriors(self, weight: Array | float = 1.0) -> Array:
        """(k, g) posteriors of the members' scales, under a prior of the shared one."""
        alike, apart = self.parts * weight
        messages = alike / self.members + (apart / self.smooth) @ _make_table(len(alike))
        posterior = self.members * messages
        return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def compute_log_hyperprior(lattice: Array, lengths: Array) -> Array:
    """(2, g) log prior of the shared scale, where all are alike and where each has its own."""
    told = float(lengths.max())
    unshown = min(UNSHOWN / told, MOST_UNSHOWN, MOST_UNSHOWN * told / FIRST_ROWS)
    least = unshown / (len(lengths) - 1)
    corners = np.log(np.clip(WEAK_SIGNALS, least, None).clip(max=1.0 / len(lengths)))
    above = corners[:, None] - lattice
    log_share = log_expit(above)
    return np.asarray((EXPONENT + 1.0) * log_share - above + LOG_SHARES + np.log(EXPONENT))


@lru_cache(maxsize=1)
def make_local_prior() -> Array:
    """(g + 5,) density of the log of a coefficient's variance over the shared one."""
    off = np.arange(-BEFORE, LONGEST_LATTICE)
    density = np.exp(-0.5 * off - 0.5 * np.exp(-off)) / np.sqrt(2.0 * np.pi)
    density.setflags(write=False)
    return density


@lru_cache(maxsize=8)
def _make_table(size: int) -> Array:
    """(g, g) that density of each variance of the lattice, under each as the shared one."""
    off = np.arange(size)[None, :] - np.arange(size)[:, None] + BEFORE
    table = np.where(off >= 0, make_local_prior()[np.maximum(off, 0)], 0.0)
    table.setflags(write=False)
    return table
