"""What is expected of a target, where its mean may be infinite."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.distributions._rows import FloatArray


def expect(predictive: Any) -> FloatArray:
    """(n,) means, or medians where these are infinite; of a single distribution ().

    Examples
    --------
    >>> from posterity.distributions import PoissonLogNormal
    >>> expect(PoissonLogNormal([0.0, 1.0], [0.1, 20.0])).round(2)
    array([1.05, 3.  ])
    """
    expected = np.array(predictive.mean())
    lost = np.isinf(expected)
    if lost.any():
        expected[lost] = (predictive[lost] if expected.ndim else predictive).median()
    return expected
