"""What other libraries have, by their names: the message says what it is called here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def refuse_guess(owner: Any, name: str, here: Mapping[str, str]) -> Any:
    """Raise ``AttributeError`` for an attribute that is not there, with what there is.

    As the ``__getattr__`` of a class; ``here`` says what is used instead, by name.

    Examples
    --------
    >>> class Model:
    ...     def __getattr__(self, name):
    ...         return refuse_guess(self, name, {"save": "posterity.save(model, path)"})
    >>> Model().save
    Traceback (most recent call last):
    AttributeError: Model has no attribute 'save': use posterity.save(model, path)
    """
    if name in here:
        raise AttributeError(
            f"{type(owner).__name__} has no attribute {name!r}: use {here[name]}",
            name=name,
            obj=owner,
        )
    # A property that raised says so again.
    return object.__getattribute__(owner, name)
