"""Series that tests share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture
def monthly() -> NDArray[np.float64]:
    """Twelve years of months, with growth, a season and noise, all positive."""
    rng = np.random.default_rng(0)
    t = np.arange(144)
    return 100.0 * np.exp(
        0.01 * t + 0.2 * np.sin(2.0 * np.pi * t / 12.0) + 0.05 * rng.normal(size=144)
    )
