"""Doors to other people's software, each with the extra of its name.

``posterity.adapters.river``, ``.arviz``, ``.mlflow``, ``.nixtla``, ``.onnx``, ``.skops``,
``.sktime``, ``.spark`` and ``.dask``; importing this package imports none of them.
"""

from __future__ import annotations

# Not from typing: see posterity's own __init__.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from posterity.adapters.arviz import to_arviz
    from posterity.adapters.onnx import to_onnx

__all__ = ["to_arviz", "to_onnx"]

_HOMES = {"to_arviz": "posterity.adapters.arviz", "to_onnx": "posterity.adapters.onnx"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'posterity.adapters' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
