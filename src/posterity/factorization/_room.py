"""Arrays that grow at their end; their capacity doubles."""

from __future__ import annotations

import numpy as np

from posterity.aliases import AnyArray


def copy_with_room(array: AnyArray, size: int) -> AnyArray:
    """A copy (m, ...), m > 2 ``size``, of an array (n, ...) with room behind its rows."""
    room = np.empty((2 * size + 16, *array.shape[1:]), dtype=array.dtype)
    room[: len(array)] = array
    return room


def extend(array: AnyArray, size: int, start: AnyArray) -> AnyArray:
    """The array (n, ...) with rows ``start`` behind it, up to ``size``.

    In its own memory where :func:`extend` has made that: no two arrays may share it.
    """
    room = array.base
    if not isinstance(room, np.ndarray) or room.shape[1:] != array.shape[1:] or len(room) < size:
        room = copy_with_room(array, size)
    room[len(array) : size] = start
    return room[:size]
