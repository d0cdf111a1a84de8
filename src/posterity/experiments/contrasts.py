"""Means of arms and their differences, from scores that are unbiased whoever chose the arms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.moments import compute_moments, count_effective_errors, merge_moments
from posterity.sequential import sequence_radius

# Draws that probabilities of being the best are shares of.
_DRAWS = 20_000
# Rows of each arm, in effect, before which nothing is estimated.
_FEWEST = 20.0
# Errors as large as the largest of any arm that the spread of an arm rests on, before it is
# believed: of rare rewards the rows that have one. Those that are missing are added.
FEWEST_ERRORS = 8.0
# Rewards in effect, of each of two arms, before which their difference is not estimated: the
# largest reward of an arm that shows one in a thousand rows may be any, whatever the others show.
# Fewer tell enough where both arms have shown rewards that are about as large.
FEWEST_EFFECTIVE_REWARDS = 20.0
_FEWEST_ALIKE = 5.0
_ALIKE = 2.0
# Of the rows so far, by which a verdict is looked for.
_GROWTH = 2.0 ** np.arange(0.0, 14.0, 0.125)


@dataclass
class Contrasts:
    r"""Sums over rows of differences between the scores of arms, and of their squares.

    The score of arm :math:`a` in a row, expected :math:`q_a` and chosen with probability
    :math:`p_a`, is :math:`q_a + 1(A = a) (r - q_a) / p_a`. A difference is weighted by
    :math:`h = (1 / p_a + 1 / p_b)^{-1/2}`, so that rows in which an arm was rare do not drown all
    others (Hadad, Hirshberg, Zhan, Wager and Athey 2021). One arm more, the last one, has score 0
    and :math:`1 / p = 0`: differences from it are means.
    """

    n_arms: int
    rows: int = 0
    pivot: float = 0.0  # taken from all rewards
    # (5, K + 1, K + 1) sums of h, h d, h^2, h^2 d and h^2 d^2
    sums: Array = field(default_factory=lambda: np.zeros((5, 0, 0)))
    # (K,) sums of each arm's squared errors
    errors: Array = field(default_factory=lambda: np.zeros(0))
    # (5, K) number, mean, and sums of the second to fourth power of each arm's rewards about it
    moments: Array = field(default_factory=lambda: np.zeros((5, 0)))
    # (K,) the largest error of each arm, and whether it is known how large one may be.
    largest: Array = field(default_factory=lambda: np.zeros(0))
    is_bounded: bool = False
    # (K, K + 1) sums, over each arm's rows, of h^2 / p^2: what its squared error counts
    counted: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        self.sums = np.zeros((5, self.n_arms + 1, self.n_arms + 1))
        self.errors = np.zeros(self.n_arms)
        self.moments = np.zeros((5, self.n_arms))
        self.largest = np.zeros(self.n_arms)
        self.counted = np.zeros((self.n_arms, self.n_arms + 1))

    def add(self, arms: Indices, rewards: Array, expected: Array, shares: Array) -> None:
        """Rows: arms (n,), rewards (n,), expected rewards and propensities (n, K)."""
        n = np.arange(len(arms))
        errors = rewards - expected[n, arms]
        scores = np.zeros((len(arms), self.n_arms + 1))
        scores[:, :-1] = expected - self.pivot
        scores[n, arms] += errors / shares[n, arms]
        inverse = np.zeros_like(scores)
        with np.errstate(divide="ignore"):
            inverse[:, :-1] = 1.0 / shares
            weight = 1.0 / np.sqrt(inverse[:, :, None] + inverse[:, None, :])
        weight[:, -1, -1] = 0.0
        weighted = weight * (scores[:, :, None] - scores[:, None, :])
        more = [
            weight.sum(axis=0),
            weighted.sum(axis=0),
            np.einsum("nab,nab->ab", weight, weight),
            np.einsum("nab,nab->ab", weight, weighted),
            np.einsum("nab,nab->ab", weighted, weighted),
        ]
        # Not in place, so that a shallow copy is a branch.
        self.sums = self.sums + np.stack(more)
        self.rows += len(arms)
        chosen = (arms[:, None] == np.arange(self.n_arms)).astype(np.float64)
        self.errors = self.errors + np.square(errors) @ chosen
        self.moments = merge_moments(self.moments, compute_moments(rewards, arms, self.n_arms))
        self.largest = np.maximum(
            self.largest, np.max(np.abs(errors[:, None]) * chosen, axis=0, initial=0.0)
        )
        own = np.square(weight[n, arms] / shares[n, arms][:, None])
        self.counted = self.counted + chosen.T @ own

    @property
    def differences(self) -> Array:
        """(K + 1, K + 1) of each row's arm from each column's; nan where nothing is known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            means = self.sums[1] / self.sums[0]
        means[:-1, -1] += self.pivot
        means[-1, :-1] -= self.pivot
        return np.asarray(means)

    @property
    def squares(self) -> Array:
        """(K + 1, K + 1) sums of squared errors of the weighted differences."""
        _, _, hh, hhd, hhdd = self.sums
        with np.errstate(divide="ignore", invalid="ignore"):
            means = self.sums[1] / self.sums[0]
            squares = np.maximum(hhdd - 2.0 * means * hhd + np.square(means) * hh, 0.0)
        return np.asarray(squares + self._missing_squares())

    def _missing_squares(self) -> Array:
        """(K + 1, K + 1) what arms add of whose errors too few were seen to tell their spread.

        An arm without any of its rare rewards has no spread that could be estimated: an interval
        from it would have no width.
        """
        missing = np.maximum(FEWEST_ERRORS * self.largest.max() ** 2 - self.errors, 0.0)
        each = self.counted / np.maximum(self.moments[0], 1.0)[:, None]
        more = np.zeros((self.n_arms + 1, self.n_arms + 1))
        more[:-1] = missing[:, None] * each
        return np.asarray(more + more.T)

    @property
    def effective_rewards(self) -> Array:
        """(K,) rewards in effect that differ from the arm's mean (Kish 1965).

        Where few buy, and all pay alike, the number of buyers.
        """
        return count_effective_errors(self.moments)

    @property
    def needed_rewards(self) -> Array:
        """(K, K) rewards in effect that each of two arms has to show."""
        are_alike = self.largest[:, None] <= _ALIKE * self.largest
        return np.where(are_alike & are_alike.T, _FEWEST_ALIKE, FEWEST_EFFECTIVE_REWARDS)

    @property
    def shown_rewards(self) -> Array:
        """(K, K) rewards in effect that each of two arms has shown."""
        return np.minimum(self.effective_rewards[:, None], self.effective_rewards)

    @property
    def has_told_spread(self) -> Mask:
        """(K + 1, K + 1) True where two arms have shown how large their rewards may be."""
        told = np.ones((self.n_arms + 1, self.n_arms + 1), dtype=bool)
        told[:-1, :-1] = self.shown_rewards >= self.needed_rewards
        told[:-1, -1] = told[-1, :-1] = self.effective_rewards >= _FEWEST_ALIKE
        return np.asarray(told | self.is_bounded)

    @property
    def variances(self) -> Array:
        """(K + 1, K + 1) of the differences, as estimated."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.squares / np.square(self.sums[0]))

    def compute_half_widths(self, level: float, planned_rows: float | None = None) -> Array:
        """(K + 1, K + 1) half widths that hold at all times; infinite while rows are few.

        The sum of h^2 is half the rows of each of two arms that come alike often, and less where
        one is rare.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = sequence_radius(self.squares, self.rows, level, planned_rows) / self.sums[0]
        known = (self.sums[2] >= _FEWEST / 2.0) & (self.largest.max() > 0.0) & self.has_told_spread
        return np.where(known, radius, np.inf)

    def expect_rows(self, widths: Array, level: float, planned_rows: float | None = None) -> Array:
        """(K, K) rows by which half widths fall below these, if sums go on as they did."""
        growth = _GROWTH[:, None, None]
        radius = sequence_radius(self.squares * growth, self.rows * growth, level, planned_rows)
        mass = self.sums[0] * growth
        with np.errstate(invalid="ignore"):
            reached = radius[:, :-1, :-1] < widths * mass[:, :-1, :-1]
        first = np.where(reached.any(axis=0), _GROWTH[reached.argmax(axis=0)], np.inf)
        if not self.is_bounded:
            first = np.maximum(first, self.needed_rewards / np.maximum(self.shown_rewards, 1e-300))
        return np.where(self.rows > 0, max(self.rows, 1) * first, np.inf)

    def draws(self) -> Array:
        """(draws, K) of the means, normal with their covariance; none while it isn't known."""
        known = self.compute_half_widths(0.95)[:-1, :]
        if not np.isfinite(known[~np.eye(self.n_arms, self.n_arms + 1, dtype=bool)]).all():
            return np.zeros((0, self.n_arms))
        variances = self.variances[:-1]
        own = variances[:, -1]
        between = np.where(np.eye(self.n_arms, dtype=bool), 0.0, variances[:, :-1])
        values, vectors = np.linalg.eigh((own[:, None] + own[None, :] - between) / 2.0)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        normal = np.random.default_rng(0).normal(size=(_DRAWS // 2, self.n_arms))
        spread = np.concatenate([normal, -normal]) @ root.T
        return np.asarray(self.differences[:-1, -1] + spread)
