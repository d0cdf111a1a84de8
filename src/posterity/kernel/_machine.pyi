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
        codes: Codes,
        values: FloatArray,
        y: float,
        weight: float,
        state: dict[str, Any],
        after: dict[str, Any],
    ) -> bool: ...
    def mean_of_one(self, codes: Codes, values: FloatArray) -> float: ...
