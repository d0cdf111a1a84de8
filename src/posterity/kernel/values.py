"""Numbers as users pass them, as float64; what would be a number by accident is refused."""

from __future__ import annotations

import datetime
import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# More draws of a single number would not fit into memory.
MOST_DRAWS = 10**12
TEXT = str, bytes, bytearray
TIMES = datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64


def read_float(value: Any) -> float:
    """One number.

    Raises ``TypeError`` for what is none, as dates, and ``ValueError`` for text, for what is
    masked or complex, and for a whole number beyond all floats.

    Examples
    --------
    >>> read_float(np.float32(0.5))
    0.5
    >>> read_float("1_000")
    Traceback (most recent call last):
    ValueError: '1_000' is text, and not a number
    >>> read_float("5%")
    Traceback (most recent call last):
    ValueError: '5%' is text, and not a number: write 5% as 0.05
    """
    if isinstance(value, TEXT):
        how = ": write 5% as 0.05" if str(value).endswith("%") else ""
        raise ValueError(f"{value!r} is text, and not a number{how}")
    if isinstance(value, TIMES):
        raise TypeError(f"{value!r} is a date or time, and not a number")
    if value is np.ma.masked:
        raise ValueError("the value is masked, and so not known")
    if isinstance(value, complex | np.complexfloating):
        raise ValueError(f"{value!r} is complex, and not a real number")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("the value is a whole number beyond 1.8e308, the largest float") from None
    except TypeError:
        # The check of estimators of scikit-learn looks for these words.
        said = "give one number; the argument must be a string or a real number"
        raise TypeError(f"{value!r} is not a number: {said}") from None


def read_floats(values: Any, name: str) -> Array:
    """An array of numbers, of any shape; raises as :func:`read_float`, with the ``name`` and place.

    Examples
    --------
    >>> read_floats([1, True, 0.5], "y")
    array([1. , 1. , 0.5])
    >>> read_floats(np.array([1, 10**400], dtype=object), "y")
    Traceback (most recent call last):
    ValueError: y has a value that is not a number: in row 1, the value is a whole number beyond ...
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    refuse_masked(values, name)
    array = np.asarray(values)
    if array.dtype.kind in "mM":
        raise TypeError(
            f"{name} holds dates or times ({array.dtype}), which are not numbers: take numbers "
            "from them first, as the days since a day"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers")
    if array.dtype.kind not in "biuf":
        return _read_each(np.asarray(values, dtype=object), name)
    return np.asarray(array, dtype=np.float64)


def read_scalar(value: Any, name: str) -> float:
    """One number, which an error calls by its ``name``."""
    if type(value) is float:
        return value
    try:
        return read_float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} can't be used: {error}") from None


def read_size(size: Any, name: str = "size") -> int:
    """How many draws, or what has this name: a whole number.

    Examples
    --------
    >>> read_size(np.int64(3))
    3
    >>> read_size(-1)
    Traceback (most recent call last):
    ValueError: size is -1: it must be 0 or more
    """
    try:
        number = operator.index(size)
    except TypeError:
        raise TypeError(f"{name} is {size!r}: it must be a whole number, as in 10") from None
    if number < 0:
        raise ValueError(f"{name} is {number}: it must be 0 or more")
    if number > MOST_DRAWS:
        raise ValueError(f"{name} is beyond {MOST_DRAWS:,}: draw in parts")
    return number


def is_word(value: object, *words: str) -> bool:
    """Return True for text that is one of these words; an array would compare each of its values.

    Examples
    --------
    >>> is_word("auto", "auto", "all"), is_word(np.array(["auto", "b"]), "auto")
    (True, False)
    """
    return isinstance(value, str) and value in words


def is_label(value: Any) -> bool:
    """Return True for what can be found again by an equal value, as text, numbers and dates.

    Examples
    --------
    >>> is_label("a"), is_label((1, "b")), is_label(object()), is_label([1])
    (True, True, False, False)
    """
    try:
        hash(value)
    except TypeError:
        return False
    return value is None or getattr(type(value), "__hash__", None) is not object.__hash__


def refuse_masked(values: Any, name: str) -> None:
    """Raise ``ValueError`` where entries of a masked array are masked: its values hide below."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        place = np.argwhere(np.ma.getmaskarray(values))[0]
        raise ValueError(
            f"{name} is masked in {_describe(place)}: drop such rows, or fill them in, as by "
            "numpy.ma.filled"
        )


def _read_each(values: NDArray[Any], name: str) -> Array:
    """The same of objects, each read once: what is missing is NaN, as in arrays of floats."""
    floats = np.full(values.shape, np.nan)
    for place, value in np.ndenumerate(values):
        if value is None or type(value).__name__ == "NAType":
            continue
        try:
            floats[place] = read_float(value)
        except (TypeError, ValueError) as error:
            where = f"in {_describe(place)}, " if place else ""
            raise type(error)(f"{name} has a value that is not a number: {where}{error}") from None
    return floats


def _describe(place: Any) -> str:
    words = "row", "column"
    return ", ".join(f"{word} {int(at)}" for word, at in zip(words, place, strict=False))


__all__ = [
    "is_label",
    "is_word",
    "read_float",
    "read_floats",
    "read_scalar",
    "read_size",
    "refuse_masked",
]
