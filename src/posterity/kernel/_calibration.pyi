import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def normal_scores(
    y: Array,
    loc: Array,
    scale: Array,
    df: Array | None = None,
    weights: Array | None = None,
) -> Array: ...
def targets_at(scores: Array, loc: Array, scale: Array, df: Array | None = None) -> Array: ...
def track(
    scores: Array,
    tails: Array,
    steps: Array,
    integrator: tuple[float, float],
    forgetting_rate: float,
    bounds: Array,
    integrals: Array,
    scale: Array,
    return_predictions: bool,
) -> Array | None: ...
def adapt(
    scores: Array,
    tails: Array,
    rates: Array,
    temperatures: Array,
    share: float,
    aims: Array,
    weights: Array,
    sorted_scores: Array,
    recent: Array,
    count: NDArray[np.int64],
    return_predictions: bool,
) -> Array | None: ...
