"""What is known of linear predictors beforehand: offsets, and exposures of rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.linear.inputs import expand_to_rows


def compute_log_exposure(exposure: ArrayLike | None, n: int) -> Array | None:
    """Log exposures (n,), or None for ones. Raises ``ValueError`` naming the row.

    Examples
    --------
    >>> compute_log_exposure([1.0, 2.0], 2).round(3)
    array([0.   , 0.693])
    """
    if exposure is None:
        return None
    values = expand_to_rows("exposure", exposure, n)
    bad = ~((values > 0.0) & np.isfinite(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"exposure is {values[row]} in row {row}: it must be positive and finite; leave out "
            "rows without exposure"
        )
    return np.log(values)


def read_offset(offset: ArrayLike | None, n: int) -> Array | None:
    """Offsets (n,), or None for zeros. Raises ``ValueError`` naming the row."""
    if offset is None:
        return None
    values = expand_to_rows("offset", offset, n)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"offset is {values[bad[0]]} in row {bad[0]}: it must be finite")
    return values


class RateOffsets(NamedTuple):
    """What is added to log rates: offsets, and the logs of exposures; None where not given."""

    offset: Any = None
    exposure: Any = None

    @classmethod
    def of_row(cls, how: Mapping[str, Any]) -> RateOffsets:
        """Those of one row, by name; raises ``TypeError`` for another name."""
        other = next((name for name in how if name not in cls._fields), None)
        if other is not None:
            raise TypeError(f"unknown keyword {other!r}: a row of counts has offset and exposure")
        return cls(**how)

    def read(self, n: int) -> Array | None:
        """Their sum for ``n`` rows, (n,), or None for zeros.

        Raises ``ValueError`` naming the row of one that is not finite, or of no exposure.

        Examples
        --------
        >>> RateOffsets(1.0, [1.0, 2.0]).read(2).round(3)
        array([1.   , 1.693])
        """
        offsets, logs = read_offset(self.offset, n), compute_log_exposure(self.exposure, n)
        if offsets is None or logs is None:
            return logs if offsets is None else offsets
        return offsets + logs

    def read_one(self) -> float | None:
        """The same of one row, or None of numbers that need to be looked at closer."""
        offset = 0.0 if self.offset is None else self.offset
        exposure = 1.0 if self.exposure is None else self.exposure
        plain = isinstance(offset, float | int) and isinstance(exposure, float | int)
        if not (plain and abs(offset) <= LARGEST and 0.0 < exposure <= LARGEST):
            return None
        return offset + math.log(exposure)
