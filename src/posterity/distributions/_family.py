"""The interface of a family of distributions: functions of its standard member."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from posterity.distributions._rows import FloatArray


class StandardFamily(Protocol):
    """A symmetric distribution at location 0 and scale 1; ``shape`` is () or (df,).

    The modules ``_standard_normal`` and ``_standard_t`` are the two there are.
    """

    def variance(self, *shape: Any) -> Any: ...
    def logpdf(self, z: FloatArray, *shape: Any) -> FloatArray: ...
    def cdf(self, z: FloatArray, *shape: Any) -> FloatArray: ...
    def ppf(self, q: FloatArray, *shape: Any) -> FloatArray: ...
    def crps(self, z: FloatArray, *shape: Any) -> FloatArray: ...
    def draw(self, rng: np.random.Generator, size: tuple[int, ...], *shape: Any) -> FloatArray: ...
