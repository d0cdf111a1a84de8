"""Rows that need no reading, for those who make them: a table's batches, thousands of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class NamedRows:
    """Rows (n, m), n >= 1, C-contiguous float64, with the names of their columns.

    Models take it for ``X`` once they have learned features of these names. They then keep from
    copying it, which is what they do with a data frame.
    """

    values: NDArray[np.float64]
    names: tuple[str, ...]

    def read_by(self, model: Any) -> NDArray[np.float64]:
        """The rows; raises ``ValueError`` unless the model has these features in this order."""
        known = tuple(getattr(model, "feature_names_in_", ()))
        if known != self.names:
            raise ValueError(
                f"the rows have columns {', '.join(map(repr, self.names))}; the model has learned "
                f"{', '.join(repr(str(name)) for name in known) or 'no names'}"
            )
        return self.values


def wrap_read_rows(model: Any, X: NDArray[np.float64]) -> NDArray[np.float64] | NamedRows:
    """Rows that were read already, as the methods of ``model`` take them."""
    if not (hasattr(model, "feature_names_in_") or hasattr(model, "categories_")):
        return X
    return NamedRows(np.ascontiguousarray(X), tuple(getattr(model, "feature_names_in_", ())))
