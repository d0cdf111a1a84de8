"""The bytes of a model file: safetensors, with a checksum in a place of its own.

A safetensors file is the length of its header (8 bytes, little-endian), the header (JSON: for each
array its type, shape and place; ``__metadata__`` are strings by name) and the arrays, without gaps.
Written here and not by its library, for two reasons: the same model must give the same bytes, and
the checksum covers every byte of the file, so it needs a place that is known beforehand. It is the
first entry of the metadata; where it stands, zeros are hashed.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from posterity.aliases import AnyArray, Document
from posterity.files.errors import ModelFileError
from posterity.safety import check_memory

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}

_BEGINNING = b'{"__metadata__":{"sha256":"'
_DIGITS = 64
# Bytes by which a model file is known.
BEGINNING = 8 + len(_BEGINNING) + _DIGITS
# A header of more bytes, lists or entries is not ours, or is not read in reasonable time.
_LARGEST_HEADER, _MOST_OBJECTS, _MOST_ENTRIES = 100_000_000, 500_000, 5_000_000


def pack(document: str, arrays: Mapping[str, AnyArray]) -> bytes:
    """The file of a document (JSON) and of arrays, C-contiguous and of a type in ``DTYPES``."""
    # Wide types first, as safetensors does: every array is aligned to its own type.
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header: Document = {"__metadata__": {"sha256": "0" * _DIGITS, "posterity": document}}
    end = 0
    for name in names:
        start, end = end, end + arrays[name].nbytes
        header[name] = {
            "dtype": NAMES[arrays[name].dtype],
            "shape": list(arrays[name].shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode("ascii")
    text += b" " * (-len(text) % 8)
    if not _is_readable(text):
        raise ModelFileError(
            "the model has too many names, labels or keys of groups for one file: evict some "
            "groups first, and save them separately"
        )
    content = bytearray().join(
        [
            struct.pack("<Q", len(text)),
            text,
            *(arrays[name].data.cast("B") if arrays[name].size else b"" for name in names),
        ]
    )
    first = 8 + len(_BEGINNING)
    content[first : first + _DIGITS] = hashlib.sha256(content).hexdigest().encode("ascii")
    return bytes(content)


def check_beginning(start: bytes, size: int) -> int:
    """Length of the header of a file of ``size`` bytes that begins with ``start``.

    Raises
    ------
    ModelFileError
        If it is no model file, is cut off, or has no room in memory.
    """
    first = 8 + len(_BEGINNING)
    if len(start) < BEGINNING or start[8:first] != _BEGINNING:
        raise ModelFileError(
            "this is not a model file of posterity, or its beginning is damaged: give a file that "
            "posterity.save wrote"
        )
    (length,) = struct.unpack_from("<Q", start)
    if length > min(size - 8, _LARGEST_HEADER):
        raise ModelFileError(
            f"the file is damaged: its header should be {length:,} bytes long, and the file ends "
            f"after {size:,}; was it cut off? Copy it anew, or save the model again"
        )
    try:
        check_memory(size, "the file")
    except ValueError as error:
        raise ModelFileError(str(error)) from None
    return int(length)


def _is_readable(header: bytes) -> bool:
    return (
        len(header) <= _LARGEST_HEADER
        and header.count(b"{") <= _MOST_OBJECTS
        and header.count(b",") <= _MOST_ENTRIES
    )


def unpack(content: bytes) -> tuple[str, dict[str, AnyArray]]:
    """The document and the arrays (views, read-only) of a file.

    Raises
    ------
    ModelFileError
        If the bytes are no model file, or not those that were written.
    """
    first = 8 + len(_BEGINNING)
    last = first + _DIGITS
    length = check_beginning(content[:last], len(content))
    sha256 = hashlib.sha256(memoryview(content)[:first])
    sha256.update(b"0" * _DIGITS)
    sha256.update(memoryview(content)[last:])
    if sha256.hexdigest().encode("ascii") != content[first:last]:
        raise ModelFileError(
            "the file is damaged: its checksum does not match; copy it anew, or save the model "
            "again"
        )
    header = content[8 : 8 + length]
    if not _is_readable(header):
        raise ModelFileError(
            "the file's header has more entries than any model of posterity has: it is not "
            "a model file; give another"
        )
    try:
        return _read(header, memoryview(content)[8 + length :])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFileError(f"the file's header can't be read: {error}") from error


def _read(header: bytes, data: memoryview) -> tuple[str, dict[str, AnyArray]]:
    entries = json.loads(header, parse_constant=_refuse_constant)
    document = entries.pop("__metadata__")["posterity"]
    if not isinstance(document, str):
        raise TypeError("its document is not text")
    return document, {name: _array(entry, data) for name, entry in entries.items()}


def _array(entry: Any, data: memoryview) -> AnyArray:
    start, end = entry["data_offsets"]
    shape = entry["shape"]
    numbers = [start, end, *shape]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("an array's place or shape is not made of whole numbers")
    dtype = np.dtype(DTYPES[entry["dtype"]])
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size != end - start or end > len(data):
        raise ValueError("an array's place does not fit its shape")
    return np.frombuffer(data[start:end], dtype).reshape(shape)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
