"""Tables as streams of batches, never the whole at once; models that learn from them (PyArrow)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posterity.io.errors import Cure, TableError
from posterity.io.folders import open_source
from posterity.io.missing import ColumnMeans
from posterity.io.table import TableStream, open_table
from posterity.io.text_format import TextFormat

if TYPE_CHECKING:
    from posterity.io.formulas import FormulaStream, open_formula
    from posterity.io.learning import learn_stream, predict_stream

__all__ = [
    "ColumnMeans",
    "Cure",
    "FormulaStream",
    "TableError",
    "TableStream",
    "TextFormat",
    "learn_stream",
    "open_formula",
    "open_source",
    "open_table",
    "predict_stream",
]


def __getattr__(name: str) -> object:
    # ReadSettings a table needs no model: scikit-learn is imported when one learns.
    if name in ("learn_stream", "predict_stream"):
        from posterity.io import learning as home
    elif name in ("FormulaStream", "open_formula"):
        from posterity.io import formulas as home  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module 'posterity.io' has no attribute {name!r}")
    return getattr(home, name)
