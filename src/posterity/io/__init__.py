"""Tables on disk as streams of batches, never the whole file at once (needs PyArrow)."""

from __future__ import annotations

from posterity.io.errors import TableError
from posterity.io.table import TableStream, open_table

__all__ = ["TableError", "TableStream", "open_table"]
