"""Names of types that signatures share; those of other packages are for type checkers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from sklearn.base import BaseEstimator as Estimator
else:
    Axes = Figure = DataFrame = Estimator = Any

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]
AnyArray = NDArray[Any]  # of any kind: labels, keys, a column of a frame
Document = dict[str, Any]  # what JSON holds: text, numbers, lists and documents by name

__all__ = [
    "AnyArray",
    "Array",
    "Axes",
    "DataFrame",
    "Document",
    "Estimator",
    "Figure",
    "Indices",
    "Mask",
]
