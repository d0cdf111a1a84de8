import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_COLUMNS: int
MOST_NODES: int

def choose_ratios(
    triangle: FloatArray,
    count: float,
    intercept: bool,
    mean: FloatArray,
    noise: tuple[float, float, float],
    grid: tuple[FloatArray, FloatArray],
    most: int,
    tolerance: float,
    of_observations: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None, float, float, float] | None: ...
