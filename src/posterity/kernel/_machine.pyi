from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Codes = NDArray[np.intp]

class MachineRows:
    def __init__(
        self,
        means: list[FloatArray],
        covariances: list[FloatArray],
        precisions: list[FloatArray],
        products: list[FloatArray],
        prior_means: FloatArray,
        prior_precisions: FloatArray,
        offset: float,
        offset_variance: float,
        noise_precision: float,
        labels: bool = False,
    ) -> None: ...
    def learn(
        self, codes: Codes, values: FloatArray, y: FloatArray, weights: FloatArray
    ) -> int: ...
    def learn_one(
        self,
        codes: list[int],
        values: list[float],
        y: float,
        unit: float,
        weight: float,
        room: tuple[Codes, FloatArray, FloatArray, FloatArray],
        state: dict[str, Any],
    ) -> bool: ...
    def mean_of_one(self, codes: list[int], values: list[float]) -> float: ...
    def moments_of_one(self, codes: list[int], values: list[float]) -> tuple[float, float]: ...
