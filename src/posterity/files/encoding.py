"""A model as a document of plain values, and arrays.

The document is a list of objects, each after those it refers to, and values:

    null, true, 3, 0.5, "text"      themselves
    {"float": "nan"}                what JSON has no number for: nan, inf, -inf
    {"scalar": "F64", "of": 0.5}    a NumPy scalar
    {"list": [...]}, {"tuple": [...]}, {"dict": [[key, value], ...]}
    {"object": 7}                   the object number 7 of the list

and an object is one of

    {"class": "LearnedNoise", "fields": {"shape": 0.0, "rate": 0.0}}
    {"factor": "3", "targets": 1, "counts": [8.0, 8.0]}     see :mod:`posterity.files.triangles`
    {"bank": "3", "capacity": 52}
    {"groups": "3", "posterior": "4" or null, "tallies": ["5", "6", "7"], "coefficients": 3,
        "clock": 8}
    {"array": "3"}, also with "order": "F" or "spread": shape (one number for all places of an axis)
    {"labels": [...], "dtype": "O", "shape": [3]}           an array of Python's own values, or text

An object that two others share is one object in the file, and is shared again when it is loaded. So
are frozen dataclasses whose fields are the same: learning makes new ones that are equal to the old,
and the file must not tell a model that was loaded from one that was not.
"""

from __future__ import annotations

import json
import math
from importlib import import_module
from typing import Any

import numpy as np

from posterity.aliases import AnyArray
from posterity.factor import Factor
from posterity.factor.bank import FactorBank
from posterity.factor.grouped import GroupBank
from posterity.files import triangles
from posterity.files.container import NAMES
from posterity.files.errors import ModelFileError
from posterity.files.registry import CACHES, DERIVED, WRITTEN, fields_of, name_of

Node = Any


class Encoder:
    """Collects the objects and the arrays of one model."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Node]] = []
        self.arrays: dict[str, AnyArray] = {}
        self._sparse = triangles.MOST_SPARSE - 17 * triangles.LARGEST_SPARSE**2
        # By identity, with the object itself, so that no other gets its place in memory meanwhile.
        self._numbers: dict[int, tuple[int, object]] = {}
        self._frozen: dict[str, int] = {}

    def value(self, value: Any, where: str) -> Node:
        """A value as it stands in the document; ``where`` it was found is for the message."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, np.generic):
            return self._encode_scalar(value, where)
        if kind in (list, tuple):
            inner = [self.value(one, f"{where}[{i}]") for i, one in enumerate(value)]
            return {kind.__name__: inner}
        if kind is dict:
            pairs = [
                [self.value(key, f"a key of {where}"), self.value(one, f"{where}[{key!r}]")]
                for key, one in value.items()
            ]
            return {"dict": pairs}
        return {"object": self._object(value, where)}

    def _encode_scalar(self, value: np.generic, where: str) -> Node:
        if isinstance(value, np.str_):
            return str(value)
        if value.dtype not in NAMES:
            raise _make_refusal(value, where)
        return {"scalar": NAMES[value.dtype], "of": self.value(value.item(), where)}

    def _object(self, value: object, where: str) -> int:
        known = self._numbers.get(id(value))
        if known is not None:
            return known[0]
        if type(value) is np.ndarray:
            entry = self._array(value, where)
        elif type(value) is Factor:
            entry = self._factor(value)
        elif type(value) is FactorBank:
            entry = {"bank": self._store(value.triangles), "capacity": len(value._triangles)}
        elif type(value) is GroupBank:
            entry = self._groups(value)
        else:
            entry = self._instance(value, where)
        number = self._number(entry, value)
        self._numbers[id(value)] = number, value
        return number

    def _number(self, entry: dict[str, Node], value: object) -> int:
        """The number of an object: that of an equal one where neither can change."""
        parameters = getattr(type(value), "__dataclass_params__", None)
        if parameters is None or not parameters.frozen:
            self.objects.append(entry)
            return len(self.objects) - 1
        number = self._frozen.setdefault(json.dumps(entry), len(self.objects))
        if number == len(self.objects):
            self.objects.append(entry)
        return number

    def _instance(self, value: object, where: str) -> dict[str, Node]:
        kind = type(value)
        name = name_of(kind)
        if name is None:
            raise _make_refusal(value, where)
        self._chain(value, where)
        names = fields_of(kind)
        if names is None:
            names = tuple(sorted(vars(value)))
        attributes = {field: getattr(value, field) for field in names}
        for key in attributes:
            if (name, key) in WRITTEN:
                module, function = WRITTEN[name, key]
                attributes[key] = getattr(import_module(module), function)(attributes[key])
        caches = CACHES.get(name, {})
        return {
            "class": name,
            "fields": {
                key: self.value(caches.get(key, one), f"{where}.{key}" if where else key)
                for key, one in attributes.items()
                if key not in DERIVED
            },
        }

    def _chain(self, value: object, where: str) -> None:
        """Encode a chain of changes from the oldest: a long one would be too deep to follow."""
        links = []
        earlier = getattr(value, "earlier", None)
        while earlier is not None and id(earlier) not in self._numbers:
            links.append(earlier)
            earlier = earlier.earlier
        for link in reversed(links):
            self._object(link, where)

    def _factor(self, factor: Factor) -> dict[str, Node]:
        entry: dict[str, Node] = {
            key: self._store(array)
            for key, array in triangles.packed(factor.triangle, sparse=self._sparse > 0).items()
        }
        if "size" in entry:
            self._sparse -= 2 * factor.triangle.nbytes
        counts = [self.value(factor.count, "count"), self.value(factor.seen, "seen")]
        return entry | {"targets": factor.n_targets, "counts": counts}

    def _groups(self, bank: GroupBank) -> dict[str, Node]:
        tallies = [self._store(array) for array in (bank.count, bank.seen, bank.last)]
        return {
            "groups": self._store(bank.packed),
            "tallies": tallies,
            "coefficients": bank.n_coefficients,
            "clock": bank.clock,
        }

    def _array(self, array: AnyArray, where: str) -> dict[str, Node]:
        if array.dtype.kind in "OUT":
            labels = [
                self.value(one, f"{where}[{i}]") for i, one in enumerate(array.ravel().tolist())
            ]
            code = "O" if array.dtype.kind != "U" else array.dtype.str
            return {"labels": labels, "dtype": code, "shape": list(array.shape)}
        if array.dtype.newbyteorder("=") not in NAMES:
            raise _make_refusal(array, where)
        still = tuple(  # strides of an array without numbers say nothing
            slice(0, 1) if stride == 0 and length > 1 and array.size else slice(None)
            for stride, length in zip(array.strides, array.shape, strict=True)
        )
        if any(part.stop == 1 for part in still):
            return {"array": self._store(array[still]), "spread": list(array.shape)}
        if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"array": self._store(array.T), "order": "F"}
        return {"array": self._store(array)}

    def _store(self, array: AnyArray) -> str:
        name = str(len(self.arrays))
        native = array.dtype.newbyteorder("=")
        # Not ascontiguousarray, which makes a number an array of one.
        self.arrays[name] = np.asarray(array, dtype=native, order="C")
        return name


def _make_refusal(value: object, where: str) -> ModelFileError:
    kind = type(value)
    what = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, np.ndarray | np.generic):
        what = f"of the type {value.dtype}" if kind is np.ndarray else f"a {what}"
    elif callable(value) and hasattr(value, "__qualname__"):
        what = f"the function or class {value.__qualname__}"
    else:
        what = f"a {what}"
    if hasattr(value, "steps"):
        return ModelFileError(
            f"{where or 'the model'} is {what}: save(pipeline[-1], path) saves its model alone. "
            "Models learn columns of text themselves and need no scaling: model.fit(frame, y) may "
            "do without other steps. skops.io.dump keeps whole pipelines without pickle (see "
            "posterity.adapters.skops.trusted_types)"
        )
    return ModelFileError(
        f"{where or 'the model'} is {what}: a model file holds numbers, text, arrays and "
        "posterity's own models, bases, strategies and likelihoods, and runs no code when it is "
        "loaded; use one of these, or joblib.dump, which is for files that you trust"
    )
