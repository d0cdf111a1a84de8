"""Standard errors of means over time, where neighbouring rows go together."""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array

# Waves that the variance is taken from, and those that stand against the slowest of them.
FEWEST_COSINES, MOST_COSINES, ALL_COSINES = 4, 12, 36


def estimate_standard_error(sums: Array, rows: Array) -> tuple[float, int]:
    r"""Return the standard error of a mean over time, and its degrees of freedom.

    Values that go together over a long time move a mean as slow waves do. So its variance is taken
    from the slowest waves: cosines of 1/2, 1, ... B/2 periods, each of which has one degree of
    freedom (Lazarus, Lewis, Stock and Watson 2018, J. Bus. Econ. Stat. 36, 541-559). B is
    .4 n^(2/3), at most 12; and 4 if these have twice the variance of faster ones, for then values
    go together for a large part of the stream.

    Parameters
    ----------
    sums, rows : (s,) arrays
        Sum of the values over each of consecutive stretches of the stream, and how many there are.

    Returns
    -------
    standard_error : float
        Infinite with fewer than two stretches.
    degrees_of_freedom : int

    Examples
    --------
    >>> values = np.random.default_rng(0).normal(size=1000)
    >>> error, degrees_of_freedom = estimate_standard_error(values, np.ones(1000))
    >>> round(error, 3), degrees_of_freedom  # 1 / sqrt(1000) is 0.032
    (0.028, 12)
    """
    sums, rows = sums[rows > 0], rows[rows > 0]
    n = float(rows.sum())
    if len(rows) < 2:
        return np.inf, 1
    variances = _compute_wave_variances(sums, rows, min(ALL_COSINES, len(rows) // 2))
    count = min(int(0.4 * n ** (2.0 / 3.0)), MOST_COSINES, len(variances))
    slow, fast = variances[:FEWEST_COSINES], variances[FEWEST_COSINES:]
    if count > FEWEST_COSINES and slow.mean() > 2.0 * fast.mean():
        count = FEWEST_COSINES
    count = max(count, 1)
    return float(np.sqrt(variances[:count].mean() / n)), count


def _compute_wave_variances(sums: Array, rows: Array, count: int) -> Array:
    """(count,) variance of a row's value as each cosine has it."""
    n = rows.sum()
    middle = (np.cumsum(rows) - 0.5 * rows) / n
    waves = np.cos(np.pi * np.arange(1, count + 1)[:, None] * middle)
    waves -= (waves @ rows / n)[:, None]
    off = sums - rows * (sums.sum() / n)
    return np.asarray(np.square(waves @ off) / (np.square(waves) @ rows))
