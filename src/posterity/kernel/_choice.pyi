import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

MOST_COLUMNS: int
MOST_NODES: int
MOST_SCALES: int

def integrate_ratios(
    squares: FloatArray,
    projections: FloatArray,
    residual: float,
    residual_df: float,
    log_information: float,
    count: float,
    noise: tuple[float, float, float],
    grid: tuple[FloatArray, FloatArray],
    most: int,
    tolerance: float,
    of_observations: bool,
) -> tuple[FloatArray, FloatArray, float, float, float] | None: ...
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
) -> tuple[FloatArray, FloatArray, float, float, float, FloatArray] | None: ...
def find_local_precisions(
    matrix: FloatArray,
    target: FloatArray,
    ends: NDArray[np.intp],
    noise: tuple[float, float, float, float],
    shares: FloatArray,
    hyperprior: FloatArray,
    local: FloatArray,
    alike: tuple[float, float],
    lattice: tuple[float, float],
    ending: tuple[int, float, float, float],
) -> tuple[FloatArray, FloatArray, float, float, float, float, float]: ...
def choose_scales(
    triangle: FloatArray,
    count: float,
    intercept: bool,
    mean: FloatArray,
    noise: tuple[float, float, float],
    shares: FloatArray,
    local: FloatArray,
    alike: tuple[float, float],
    hyperprior: tuple[tuple[float, float], float, float, float, float],
    lattice: tuple[int, float],
    ending: tuple[int, float, float, float, float],
) -> (
    tuple[
        tuple[FloatArray, FloatArray, float, float, float, float, float],
        FloatArray,
        float,
        float,
    ]
    | None
): ...
