import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]
Starts = NDArray[np.int64]

MEMBERS: int

class DiagonalState:
    shape: float
    faded: float
    def __init__(
        self,
        beliefs: Array,
        clocks: Array | None,
        precision: Array,
        information: Array,
        squares: Array,
        scores: Array,
        rates: Array,
        shape: float,
        faded: float,
        members: int,
        learns: bool,
        relative: bool,
        intercept: bool,
    ) -> None: ...
    def learn(
        self,
        code: int,
        parameters: tuple[float, float, float],
        starts: Starts,
        features: Numbers,
        columns: Numbers | None,
        values: Array | None,
        y: Array,
        weights: Array | None,
        discounts: Array | None,
        tell: bool,
    ) -> Array | None: ...
    def predict_then_learn_rows(
        self, starts: Starts, features: Numbers, columns: Numbers | None, values: Array | None
    ) -> Array: ...

def mix_labels(mean: Array, variance: Array, shares: Array) -> Array: ...
