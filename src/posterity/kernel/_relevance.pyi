from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

class SetWalkers:
    members: Indices
    sizes: Indices
    places: Indices
    def __init__(
        self,
        evidence: Any,
        slabs: Array,
        log_priors: tuple[Array, Array],
        random: np.random.BitGenerator,
        count: int,
        longest: int,
    ) -> None: ...
    def move(self, rounds: int) -> tuple[NDArray[np.uint64], Array]: ...
    def take(self, which: Indices) -> None: ...
