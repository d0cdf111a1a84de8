from numpy import float64, intp
from numpy.typing import NDArray

Array = NDArray[float64]

def judge_rows(
    chances: Array, expected: Array | None, logged: Array | None, chosen: NDArray[intp]
) -> tuple[Array, Array, Array, Array, Array, int]: ...
def moderated_sums(
    weight: Array, error: Array, direct: Array, thresholds: Array, shrinks: bool
) -> Array: ...
