"""Import of optional packages, or an error that names the extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require_module(module: str, extra: str) -> Any:
    """The module; raises ``ImportError`` naming the extra that installs it.

    Examples
    --------
    >>> require_module("no_such_module", "onnx")
    Traceback (most recent call last):
        ...
    ImportError: this needs no_such_module: pip install "posterity[onnx]"
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        library = module.split(".")[0]
        if error.name not in (library, module):
            raise
        raise ImportError(f'this needs {library}: pip install "posterity[{extra}]"') from error
