"""Evidence for the prior from rows that have faded: as much as rows of full weight would give.

A row of weight w < 1 has the noise of any other, not one of the variance sigma^2 / w. Along a
direction that the data tell, with singular value d of the weighted rows, the weighted targets so
have the variance sigma^2 (omega + d^2 / ratio), omega = sum w^2 / sum w, where the evidence of rows
of full weight expects 1 + d^2 / ratio. With few rows a coefficient the evidence then takes effects
for noise. Divided by omega, the data have the number of rows that Kish (1965) calls effective,
(sum w)^2 / sum w^2, and the evidence is that of such rows.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from posterity.factor import Factor


def restore_weight(factor: Factor, total: float) -> Factor:
    """The data with the weight that rows had, ``total``, before they faded at a steady pace.

    Examples
    --------
    >>> import numpy as np
    >>> factor = Factor(1)
    >>> factor.append(np.array([[1.0], [1.0], [1.0]]), np.zeros((3, 1)), np.array([0.25, 0.5, 1.0]))
    >>> restored = restore_weight(factor, total=3.0)
    >>> round(factor.count, 3), round(restored.count, 3), 1.75**2 / (1 + 1 / 4 + 1 / 16)
    (1.75, 2.333, 2.3333333333333335)
    """
    share = compute_mean_weight(total, factor.count)
    if share == 1.0:
        return factor
    restored = Factor(factor.n_coefficients, factor.n_targets)
    restored.set_triangle(factor.triangle / math.sqrt(share), factor.count / share, factor.seen)
    return restored


def compute_mean_weight(total: float, left: float) -> float:
    """Mean of weights, each counted by itself: sum w^2 / sum w, for w = discount^age.

    ``total`` is how many rows there are, and ``left`` their sum of weights. A row of weight two is
    as good as two rows.

    Examples
    --------
    >>> round(compute_mean_weight(2.0, 1.5), 6)  # weights 1 and 1/2
    0.833333
    >>> compute_mean_weight(10.0, 10.0)
    1.0
    >>> round(compute_mean_weight(4e30, 2e30), 6)  # rows of weight 1e30
    0.601594
    """
    if not 1.0 < left < total * (1.0 - 1e-9):
        return 1.0

    def compute_excess(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return math.expm1(-total * rate) / math.expm1(-rate) - left

    # At the first end hardly any row has faded, at the other all but the last have.
    rate = math.exp(brentq(compute_excess, math.log(1e-10 / total), math.log(50.0)))
    return (1.0 + math.exp(-total * rate)) / (1.0 + math.exp(-rate))


__all__ = ["compute_mean_weight", "restore_weight"]
