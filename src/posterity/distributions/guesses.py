"""Names that are not ours: what other libraries call it, and what is nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """The end of a message about an unknown name: the nearest known one, or nothing.

    Examples
    --------
    >>> did_you_mean("prcie", ["age", "price"])
    "; did you mean 'price'?"
    >>> did_you_mean("humidity", ["age", "price"])
    ''
    """
    folded = {str(one).casefold(): one for one in known}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    return f"; did you mean {str(folded[near[0]])!r}?" if near else ""
