"""How many decimals of an estimate its interval tells of."""

from __future__ import annotations

import math

_DECIMALS_OF_NONE = 3


def count_decimals(low: float, high: float) -> int:
    """Decimals with which the width of an interval has two digits; three where it has none.

    Examples
    --------
    >>> count_decimals(0.0797, 0.605), count_decimals(-120.0, 480.0), count_decimals(1.0, 1.0)
    (2, 0, 3)
    """
    width = high - low
    if not 0.0 < width < math.inf:
        return _DECIMALS_OF_NONE
    return max(1 - math.floor(math.log10(width)), 0)


def round_rows(rows: float) -> int:
    """To two digits: what is expected is not known better."""
    return int(float(f"{rows:.2g}"))


__all__ = ["count_decimals"]
