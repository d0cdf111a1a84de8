"""Test of the sample ratio: did arms come as often as they should?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posterity.aliases import Array, Indices

# What counts and their expectations start from: rows' worth of agreement.
_START = 100.0


@dataclass
class SampleRatio:
    r"""A test that may be looked at after any row (Lindon and Malek 2022).

    Arm :math:`a` has come :math:`n_a` times before a row, and was to come :math:`e_a` times. A
    gambler who expects it now with probability :math:`q_a \propto p_a (c_a + n_a) / (c_a + e_a)`
    wins :math:`q_A / p_A`, by which no one gets richer on average if the arms come with
    probabilities :math:`p`. With the same :math:`p` in all rows this is the Bayes factor of a
    multinomial distribution whose prior is Dirichlet's.

    Examples
    --------
    >>> test = SampleRatio(2)
    >>> test.add(np.tile([0, 0, 1], 400), np.full((1200, 2), 0.5))
    >>> test.p_value < 1e-6
    True
    """

    n_arms: int
    log_wealth: float = 0.0  # log of the gambler's capital
    largest_log_wealth: float = 0.0
    start: Array | None = None
    counts: Array = field(default_factory=lambda: np.zeros(0))
    expected: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        self.counts, self.expected = np.zeros(self.n_arms), np.zeros(self.n_arms)

    def add(self, arms: Indices, shares: Array) -> None:
        """Rows: arms (n,), and the probabilities (n, K) that they had."""
        if not len(arms):
            return
        if self.start is None:
            alike = np.full(self.n_arms, 1.0 / self.n_arms)
            self.start = _START * (shares[0] if shares[0].min() > 0.0 else alike)
        n = np.arange(len(arms))
        came = np.zeros_like(shares)
        came[n, arms] = 1.0
        counts = self.counts + np.cumsum(came, axis=0)
        expected = self.expected + np.cumsum(shares, axis=0)
        tilt = (self.start + counts - came) / (self.start + expected - shares)
        odds = tilt[n, arms] / np.einsum("ij,ij->i", tilt, shares)
        log_wealth = self.log_wealth + np.cumsum(np.log(odds))
        self.log_wealth, self.largest_log_wealth = (
            float(log_wealth[-1]),
            max(self.largest_log_wealth, float(log_wealth.max())),
        )
        self.counts, self.expected = counts[-1], expected[-1]

    @property
    def p_value(self) -> float:
        """The smallest so far; below 0.05 at any time in at most 5% of right allocations."""
        return float(np.exp(-self.largest_log_wealth))
