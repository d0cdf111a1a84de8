from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.kernel._paths import RowPath

Array = NDArray[np.float64]

class FadingMember:
    def __init__(self, triangle: Array, counts: Array, prior: Array, discount: float) -> None: ...

class LearnedPrior:
    def __init__(
        self,
        data: FadingMember,
        known: Any,
        stream: Any,
        next_turn: Callable[[int], int],
        ready: bool,
    ) -> None: ...
    def before(self, node: FadingMember) -> FadingMember: ...

class MemberNoises:
    def __init__(
        self,
        states: list[Array],
        rates: Array,
        caps: Array,
        grace: float,
        persistence: float,
        prior: tuple[float, float],
    ) -> None: ...
    def score(
        self, y: Array, loc: Array, scale: Array, weights: Array | None
    ) -> tuple[Array, Array, NDArray[np.uint8]]: ...

class ReadingPath:
    names: tuple[str, ...] | None
    reader: RowPath
    def close(self) -> None: ...
    def values(self, x: ArrayLike | Any) -> Array: ...

class WeighedPath(ReadingPath):
    def learn(self, x: ArrayLike | Any, y: float, weight: float = 1.0) -> bool: ...
    def told(self) -> Array: ...
    def tabulate(self, x: ArrayLike | Any) -> Array | None: ...

class AveragePath(WeighedPath):
    averaged: Any
    paths: list[Any]
    told_apart: dict[int, Any]
    def __init__(self, reader: RowPath, averaged: Any) -> None: ...

class MembersPath(WeighedPath):
    def __init__(
        self,
        reader: RowPath,
        n_coefficients: int,
        intercept: bool,
        count: int,
        open_members: Callable[[], list[FadingMember]],
        noises: MemberNoises | None,
        precision: float,
        standing: Any,
        rules: tuple[Sequence[float], float],
    ) -> None: ...
    def predict_mean(self, x: ArrayLike | Any) -> float: ...

class RunsKernel:
    def __init__(
        self,
        runs: Any,
        trace: Any,
        bank: Array,
        X: Array,
        Y: Array,
        weights: Array | None,
        hazards: Array,
        intercept: bool,
        noise: tuple[float, float, float],
        rules: tuple[float, float, float, float, int, int, float, float, float],
    ) -> None: ...
    def learn(self, i: int, start: Any) -> int: ...
    def again(self) -> None: ...
    def serves(self, start: Any) -> bool: ...
    def predict_mean(self, values: Array, start: Any, hazard: float) -> float: ...
    def tabulate(self, values: Array, start: Any, hazard: float) -> Array: ...
    def changes(self) -> tuple[list[int], NDArray[np.int64], NDArray[np.int64]]: ...

class RunsPath(ReadingPath):
    runs: Any
    history: Any
    row: tuple[Array, Array, Array, Array]
    hazard: float
    def __init__(
        self,
        reader: RowPath,
        runs: Any,
        columns: int,
        open_kernel: Callable[[Any], tuple[RunsKernel, Any]],
    ) -> None: ...
    def learn(self, x: ArrayLike | Any, y: float, weight: float = 1.0) -> bool: ...
    def predict_mean(self, x: ArrayLike | Any) -> float: ...
    def tabulate(self, x: ArrayLike | Any) -> Array | None: ...
