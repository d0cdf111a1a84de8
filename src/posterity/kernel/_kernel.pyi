import numpy as np
from numpy.typing import NDArray

from posterity.kernel.columns import Columns

Array = NDArray[np.float64]

def add_products(total: Array, rows: Array) -> None: ...
def leading_dimension(q: int) -> int: ...
def empty_triangle(q: int) -> Array: ...
def learn_rows(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array | None = None,
) -> tuple[Array, Array, Array]: ...
def learn_stabilized(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array,
    prior: Array,
) -> tuple[Array, Array, Array]: ...
def learn_directional(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    discounts: Array,
    prior: Array,
) -> tuple[Array, Array, Array]: ...
def learn_random_walk(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    elapsed: Array,
    variance: Array,
    slope: int = -1,
) -> tuple[Array, Array, Array]: ...
def slide(
    triangle: Array,
    n_targets: int,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    start: int,
    leave: NDArray[np.intp],
    prior: Array,
) -> tuple[Array, Array, Array]: ...
def learn_bank(
    bank: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> tuple[Array, Array, Array]: ...
def predict_by_nodes(
    triangle: Array,
    X: Array,
    Y: Array,
    weights: Array | None,
    intercept: bool,
    mean: Array,
    precisions: Array,
    shares: Array,
    count: float,
    noise: tuple[float, float, float],
) -> tuple[Array, Array, Array]: ...
def stack_nodes(triangle: Array, mean: Array, precisions: Array) -> tuple[Array, Array]: ...
def append_block(
    triangle: Array,
    n_targets: int,
    X: Array | Columns,
    Y: Array,
    weights: Array | None,
    intercept: bool,
) -> None: ...
def remove_rows(
    triangle: Array, n_targets: int, X: Array, Y: Array, weights: Array | None, intercept: bool
) -> tuple[int, float]: ...
def predict_rows(
    triangle: Array, n_targets: int, X: Array | Columns, intercept: bool
) -> tuple[Array, Array]: ...
def average_members(
    densities: Array,
    ranks: NDArray[np.uint8],
    scores: Array,
    outer: Array,
    persistence: Array,
    outer_persistence: float,
) -> tuple[Array, float]: ...
def fading_counts(count: float, n: int, weights: Array | None, discounts: Array) -> Array: ...
