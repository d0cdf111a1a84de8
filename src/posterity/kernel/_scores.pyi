import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

def t_scores(
    y: FloatArray, loc: FloatArray, scale: FloatArray, df: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]: ...
def t_half_widths(n: int, scale: FloatArray, df: FloatArray, quantile: float) -> FloatArray: ...
def running_mean(
    news: FloatArray, known: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]: ...
def running_steps(news: FloatArray, known: FloatArray) -> tuple[FloatArray, FloatArray]: ...
def mixture_scores(
    y: FloatArray,
    which: NDArray[np.intp],
    weight: FloatArray,
    mean: FloatArray,
    precision: FloatArray,
) -> tuple[FloatArray, FloatArray]: ...
def mixture_quantiles(tables: FloatArray, level: float) -> FloatArray: ...
