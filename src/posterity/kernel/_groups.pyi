import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Keys = NDArray[np.int64]
Numbers = NDArray[np.int32]
Slots = NDArray[np.intp]
Share = tuple[int, int]
Tallies = tuple[FloatArray, FloatArray, Keys, int]

def number_keys(keys: Keys) -> tuple[Numbers, Keys]: ...
def number_range(keys: Keys, low: int, length: int) -> tuple[Numbers, Keys]: ...
def count_rows(numbers: Numbers, first: int, last: int, groups: int) -> Slots: ...

class KeyTable:
    keys: Keys
    is_distinct: bool

    def __init__(self, keys: Keys) -> None: ...
    def __len__(self) -> int: ...
    def place(self, key: int) -> int: ...
    def places(self, keys: Keys, new: bool) -> Slots: ...
    def cut(self, size: int) -> None: ...

class SortedRows:
    groups: int
    order: Numbers

    def __init__(self, counts: Slots, slots: Slots) -> None: ...
    def place(self, numbers: Numbers, first: int, last: int, part: int) -> None: ...
    def shares(self, count: int) -> list[Share]: ...

def learn_groups(
    bank: FloatArray,
    order: SortedRows,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    intercept: bool,
    discount: float,
    tallies: Tallies,
    share: Share,
) -> None: ...
def predict_then_learn_groups(
    bank: FloatArray,
    priors: FloatArray,
    order: SortedRows,
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray | None,
    intercept: bool,
    discount: float,
    tallies: Tallies,
    share: Share,
    outputs: FloatArray,
) -> None: ...
def stack_groups(
    bank: FloatArray, slots: Slots, priors: FloatArray, share: Share, posterior: FloatArray
) -> None: ...
def merge_groups(bank: FloatArray, other: FloatArray, slots: Slots, p: int) -> None: ...
def predict_groups(
    posterior: FloatArray,
    newcomer: FloatArray,
    X: FloatArray,
    places: Slots,
    intercept: bool,
    share: Share,
    mean: FloatArray,
    leverage: FloatArray,
) -> None: ...
def solve_groups(bank: FloatArray, p: int) -> FloatArray: ...
def whiten_groups(
    root: FloatArray,
    rows: FloatArray,
    share: Share,
    white: FloatArray,
    log_determinants: FloatArray,
) -> None: ...
