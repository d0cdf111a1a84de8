from numpy import float64, uint8
from numpy.typing import NDArray

Array = NDArray[float64]
Mask = NDArray[uint8]

def best_arms(
    location: Array, scale: Array, df: Array, allowed: Mask
) -> tuple[Array, Array]: ...
def informed_shares(
    location: Array, scale: Array, df: Array, allowed: Mask
) -> tuple[Array, Array, Array]: ...
def cheapest_pairs(regret: Array, told: Array, allowed: Mask) -> Array: ...
def envelope_shares(mean: Array, width: Array, allowed: Mask, stretch: float) -> Array: ...
