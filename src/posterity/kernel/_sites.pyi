import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def find_sites(
    code: int,
    parameters: tuple[float, ...],
    moments: bool,
    y: Array,
    mean: Array,
    variance: Array,
    weights: Array | None = None,
) -> tuple[Array, Array, Array]: ...
def find_moments(
    code: int,
    parameters: tuple[float, ...],
    y: Array,
    mean: Array,
    variance: Array,
    weights: Array,
) -> tuple[Array, Array, Array]: ...
def match_rows(
    code: int,
    parameters: tuple[float, ...],
    y: Array,
    fit: Array,
    leverage: Array,
    weights: Array,
    weight: Array,
    target: Array,
    scale: float,
    bold: float,
) -> tuple[Array, Array, Array, float, float, float]: ...
def expected_labels(mean: Array, variance: Array) -> tuple[Array, Array]: ...
def learn_sites(
    triangle: Array,
    code: int,
    parameters: tuple[float, ...],
    moments: bool,
    X: Array,
    y: Array,
    weights: Array | None,
    intercept: bool,
    offsets: Array | None = None,
    discounts: Array | None = None,
    prior: Array | None = None,
    variance: Array | None = None,
    elapsed: Array | None = None,
    slope: int = -1,
) -> tuple[Array, Array, Array, Array, Array]: ...

class SiteSweeps:
    triangle: Array
    def __init__(
        self,
        before: Array,
        code: int,
        parameters: tuple[float, ...],
        X: Array,
        y: Array,
        weights: Array,
        offsets: Array,
        intercept: bool,
    ) -> None: ...
    def start(self, precision: Array, target: Array) -> Array: ...
    def advance(self, now: Array, step: float) -> tuple[Array, float]: ...

def working_rows(
    code: int,
    parameters: tuple[float, ...],
    y: Array,
    eta: Array,
    weights: Array | None,
    precision: Array,
    pull: Array,
) -> tuple[float, float]: ...
def total_density(
    code: int,
    parameters: tuple[float, ...],
    y: Array,
    eta: Array,
    weights: Array | None,
) -> float: ...
def find_digammas(x: Array) -> Array: ...
def average_densities(
    code: int,
    parameters: tuple[float, float, float],
    y: Array,
    mean: Array,
    sd: Array,
    nodes: Array,
    shares: Array,
    vague: float,
) -> tuple[Array, Array, Array]: ...
def average_softplus(mean: Array, variance: Array) -> tuple[Array, Array, Array]: ...
