"""PyArrow, which is imported when it is first used: nothing else of this package needs it."""

from __future__ import annotations

from importlib import import_module

# Not from typing: see posterity's own __init__.
TYPE_CHECKING = False

if TYPE_CHECKING:
    import pyarrow as pa
else:

    class _Arrow:
        def __getattr__(self, name: str) -> object:
            return getattr(import_module("pyarrow"), name)

    pa = _Arrow()

__all__ = ["pa"]
