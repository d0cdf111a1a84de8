from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = NDArray[np.int32]
Starts = NDArray[np.int64]

Entry = tuple[int, int, float]  # feature, column and value

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
        offsets: Array | None,
        tell: bool,
    ) -> Array | None: ...
    source: tuple[Any, ...] | None
    def resume(self, arrays: tuple[Any, ...], shape: float, faded: float) -> bool: ...
    def learn_given(
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
        offsets: Array | None,
        tell: bool,
        owners: Numbers,
        posterior: dict[str, Any],
        centres: dict[str, Any],
    ) -> Array | None: ...
    def learn_row(
        self,
        code: int,
        parameters: tuple[float, float, float],
        row: list[Entry],
        y: float,
        discount: float,
        offset: float,
        owners: Numbers,
        posterior: dict[str, Any],
        centres: dict[str, Any],
    ) -> None: ...
    def predict_given(
        self,
        starts: Starts,
        features: Numbers,
        columns: Numbers | None,
        values: Array | None,
        owners: Numbers,
        centres: dict[str, Any],
    ) -> Array: ...
    def predict_row(self, row: list[Entry], owners: Numbers, centres: dict[str, Any]) -> Array: ...
    def predict_then_learn_rows(
        self, starts: Starts, features: Numbers, columns: Numbers | None, values: Array | None
    ) -> Array: ...

def mix_labels(mean: Array, variance: Array, shares: Array) -> Array: ...
