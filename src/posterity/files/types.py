"""Checks of values from a file against the types that a class declares."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike


@cache
def get_type_hints_of(kind: type) -> dict[str, Any]:
    """The declared types of the attributes of a class, those of its parents included."""
    return typing.get_type_hints(kind)


def check_type(hint: object, value: object, where: str) -> None:
    """Raise ``TypeError`` unless ``value`` is of the declared type.

    Examples
    --------
    >>> check_type(float | None, 3, "scale")
    >>> check_type(tuple[float, ...], (1.0, "two"), "rates")
    Traceback (most recent call last):
    TypeError: rates is (1.0, 'two'), which is not a tuple[float, ...]
    """
    if not _fits(hint, value):
        shown = repr(value) if len(repr(value)) < 80 else f"a {type(value).__name__}"
        name = getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint)
        raise TypeError(f"{where} is {shown}, which is not a {name}")


def _fits(hint: object, value: object) -> bool:
    if hint is Any:
        return True
    if hint == ArrayLike:  # a union of protocols that a string would fit as well
        return isinstance(value, int | float | list | tuple | np.ndarray | np.generic)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (typing.Union, UnionType):
        return any(_fits(one, value) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is np.ndarray:
        return _is_array_of(inner[1], value)
    if origin in (tuple, list):
        return _is_sequence_of(origin, inner, value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            _fits(inner[0], key) and _fits(inner[1], one) for key, one in value.items()
        )
    if origin is not None:
        plain = list | tuple if origin is Sequence else origin
        return not isinstance(origin, type) or isinstance(value, plain)
    return _is_a(hint, value)


def _is_array_of(dtype: object, value: object) -> bool:
    (scalar,) = get_args(dtype) or (np.generic,)
    kind = np.generic if scalar is Any else scalar
    return isinstance(value, np.ndarray) and issubclass(value.dtype.type, kind)


def _is_sequence_of(kind: type[Any], inner: tuple[Any, ...], value: object) -> bool:
    if not isinstance(value, kind):
        return False
    if kind is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        return len(value) == len(inner) and all(map(_fits, inner, value))
    return all(_fits(inner[0], one) for one in value)


def _is_a(kind: object, value: object) -> bool:
    if kind in (None, NoneType):
        return value is None
    if kind is float:
        return isinstance(value, float | int | np.floating) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in _resolve_annotation(kind))
    return not isinstance(kind, type) or isinstance(value, kind)


@cache
def _resolve_annotation(protocol: type) -> tuple[str, ...]:
    names = {name for one in protocol.__mro__ for name in vars(one) if not name.startswith("_")}
    return tuple(sorted(names))
