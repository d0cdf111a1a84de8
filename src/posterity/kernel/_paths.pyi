from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Row = ArrayLike | Mapping[str, float]
# Places and values of the features that were constant so far.
Constant = tuple[NDArray[np.intp], Array]

class RowPath:
    names: tuple[str, ...] | None
    def __init__(
        self,
        triangle: Array,
        counts: Array,
        intercept: bool,
        names: Sequence[str] | None = None,
    ) -> None: ...
    def learn(self, x: Row, y: float, weight: float = 1.0) -> bool: ...
    def close(self) -> None: ...
    def fade(self, discount: float, prior: Array | None = None) -> None: ...
    def wander(self, variance: ArrayLike, slope: int = -1) -> None: ...
    def go_together(
        self,
        companion: RowPath | None,
        clock: NDArray[np.int64],
        waiting: Callable[[], Constant],
        known: Any = None,
        stream: Any = None,
    ) -> None: ...
    def values(self, x: Row) -> Array: ...
    def predict_mean(self, x: Row) -> float: ...
    def predict(self, x: Row) -> tuple[float, float]: ...

class ForgettingPath(RowPath):
    def keep_tally(
        self, tally: Array, noise: tuple[float, float, float], n_flat: float
    ) -> None: ...
    def told(self) -> Array: ...
    def tabulate(self, x: ArrayLike | Mapping[str, float]) -> Array | None: ...

class DirectionalPath(ForgettingPath):
    def __init__(
        self,
        triangle: Array,
        counts: Array,
        intercept: bool,
        names: Sequence[str] | None,
        discount: float,
        prior: Array,
    ) -> None: ...

class WindowPath(RowPath):
    def __init__(
        self,
        triangle: Array,
        counts: Array,
        intercept: bool,
        names: Sequence[str] | None,
        prior: Array,
        kept: Any,
        size: int,
        duration: float,
    ) -> None: ...

class NodesPath:
    names: tuple[str, ...] | None
    data: RowPath
    def __init__(
        self,
        data: RowPath,
        known: Any,
        forgets: bool,
        open_nodes: Callable[[], tuple[Any, Sequence[RowPath], Array]],
        begin_turn: Callable[[int], tuple[Any, RowPath | None, int]],
        tallies: bool = False,
    ) -> None: ...
    def learn(self, x: Row, y: float, weight: float = 1.0) -> bool: ...
    def close(self) -> None: ...
    def values(self, x: Row) -> Array: ...
    def predict_mean(self, x: Row) -> float: ...

class TargetsPath(RowPath):
    target_names: tuple[str, ...] | None
    def __init__(
        self,
        triangle: Array,
        counts: Array,
        intercept: bool,
        names: Sequence[str] | None,
        n_targets: int,
    ) -> None: ...
    def name_targets(self, names: Sequence[str]) -> None: ...
    def learn(self, x: Row, y: Row, weight: float = 1.0) -> bool: ...
    def predict_mean(self, x: Row) -> Any: ...
    def predict(self, x: Row) -> tuple[Array, float]: ...  # type: ignore[override]

class GroupPath(RowPath):
    def __init__(self, p: int, intercept: bool, names: Sequence[str] | None = None) -> None: ...
    def learn_in(self, bank: Any, slot: int, x: Row, y: float, weight: float) -> None: ...
    def predict_in(self, bank: Any, slot: int, x: Row, prior: Array) -> tuple[float, float]: ...

def choose_arms(
    means: Array,
    widths: Array,
    allowed: NDArray[np.uint8],
    first: NDArray[np.uint8],
    values: int,
    floor: float,
    seed: int,
    number: int,
) -> NDArray[np.intp]: ...
def believe_arms(arms: list[tuple[SitePath | None, float]], X: Array) -> Array: ...

class ArmsPath(RowPath):
    arms: int
    df: float
    first: NDArray[np.bool_]
    def __init__(
        self,
        posteriors: Array,
        intercept: bool,
        names: Sequence[str] | None,
        df: float,
        scale: Array,
        own_noise: Array,
        slots: NDArray[np.intp],
        first: NDArray[np.bool_],
    ) -> None: ...
    def use_prior_precision(self, known: Any) -> None: ...
    def is_of(self, known: Any) -> bool: ...
    def open(self, path: GroupPath, until: int, span: Array | None = None) -> None: ...
    def close(self) -> None: ...
    def learn_row(self, arm: int, x: Row, y: float, weight: float) -> bool: ...
    def decide(
        self,
        x: Row,
        allowed: NDArray[np.uint8],
        how: tuple[int, float],
        floor: float,
        seed: int,
        number: int,
    ) -> tuple[int, Array, Array]: ...
    def decide_rows(
        self,
        X: Array,
        allowed: NDArray[np.uint8],
        how: tuple[int, float],
        floor: float,
        seed: int,
        number: int,
    ) -> tuple[NDArray[np.intp], Array, Array]: ...

class SitePath(RowPath):
    def __init__(
        self,
        triangle: Array,
        counts: Array,
        intercept: bool,
        names: Sequence[str] | None,
        likelihood: tuple[int, tuple[float, ...], bool],
        statistics: Any,
        of_targets: Any,
        nodes: Array | None = None,
    ) -> None: ...
    def believe(self, x: Row) -> tuple[float, float]: ...
    def name_labels(self, labels: Sequence[Hashable], flipped: bool) -> None: ...
    def learn_label(self, x: Row, label: Hashable, weight: float = 1.0) -> bool: ...
    def probabilities(self, x: Row) -> dict[Any, float] | None: ...

class SoftmaxPath(RowPath):
    def __init__(
        self,
        intercept: bool,
        names: Sequence[str] | None,
        data: Array,
        counts: Array,
        prior: Array,
        basis: Array,
        near: Array | None,
        wide: Array,
        statistics: Any,
        limit: int,
        due: float,
    ) -> None: ...
    def name_labels(self, labels: Sequence[Hashable], flipped: bool = False) -> None: ...
    def learn_label(self, x: Row, label: Hashable, weight: float = 1.0) -> bool: ...
    def probabilities(self, x: Row) -> dict[Any, float]: ...
    def log_probabilities(self, x: Row) -> Array: ...

def look_at_labels(
    labels: NDArray[np.intp], places: Array, basis: Array, moved: Array | None = None
) -> tuple[Array, Array, Array]: ...
