"""The model again, from a document and arrays; see :mod:`posterity.files.encoding`.

Only classes of the registry are made. Every field must be there, of the type that its class
declares, and pass the checks of the class itself and of :mod:`posterity.files.checks`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import AnyArray, Document
from posterity.basis.spline import make_spline
from posterity.factor import Factor
from posterity.factor.bank import FactorBank
from posterity.factor.grouped import GroupBank
from posterity.factor.usable import check_usable
from posterity.files import checks, relations, triangles
from posterity.files.container import DTYPES
from posterity.files.ranges import LARGEST, check_numbers
from posterity.files.registry import DERIVED, HOMES, POSTERIORS, class_of, fields_of, name_of
from posterity.files.types import check_type, get_type_hints_of
from posterity.kernel import leading_dimension

_FLOATS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
# Fields that some files were written before, and what they are in these.
_CAME_LATER = {"terms": None, "_reading": None, "between": None, "link": "logit"}


class Decoder:
    """Makes the objects of a document, one after the other.

    Raises ``ValueError``, ``TypeError``, ``KeyError`` and the like for a document that
    :class:`posterity.files.encoding.Encoder` would not write; who calls it knows the file's name.
    """

    def __init__(self, objects: list[Any], arrays: Mapping[str, AnyArray]) -> None:
        self._arrays = arrays
        # Bytes that may be made beyond those of the file.
        self._room = triangles.MOST_SPARSE + 64 * sum(array.nbytes for array in arrays.values())
        self._restored: list[Any] = []
        for node in objects:
            self._restored.append(self._object(node))

    def value(self, node: Any) -> Any:
        """The value that a node stands for."""
        if node is None or isinstance(node, bool | int | float | str):
            return node
        ((what, inner), *rest) = node.items()
        if what == "object":
            if type(inner) is not int or not 0 <= inner < len(self._restored):
                raise ValueError(f"object {inner!r} is used before it is defined")
            return self._restored[inner]
        if what == "list":
            return [self.value(one) for one in inner]
        if what == "tuple":
            return tuple(self.value(one) for one in inner)
        if what == "dict":
            return {self.value(key): self.value(one) for key, one in inner}
        if what == "float":
            return float(_FLOATS[inner])
        if what == "scalar":
            return np.dtype(DTYPES[inner]).type(self.value(dict(rest)["of"]))
        raise ValueError(f"{what!r} is not a kind of value")

    def _object(self, node: Document) -> Any:
        if "class" in node:
            return self._instance(node["class"], node["fields"])
        if "factor" in node:
            return self._factor(node)
        if "bank" in node:
            return self._decode_bank(node)
        if "groups" in node:
            return self._groups(node)
        if "labels" in node:
            return self._labels(node)
        return self._array(node)

    def _instance(self, name: str, fields: Document) -> Any:
        if name not in HOMES:
            raise ValueError(f"{name!r} is not a class that a model file may contain")
        kind = class_of(name)
        values = {key: self.value(node) for key, node in fields.items()}
        check_numbers(kind, name, values)
        made = _instantiate(kind, values)
        checks.check(name, made)
        if name == "Spline" and "knots_" in values:
            _make_splines(made)
        return made

    def _factor(self, node: Document) -> Factor:
        values = self._arrays[node["values"]] if "values" in node else None
        size = int(self._arrays[node["size"]]) if "size" in node else None
        triangle = triangles.unpacked(self._arrays[node["factor"]], values, size, self._take)
        n_targets = node["targets"]
        if type(n_targets) is not int or not 1 <= n_targets <= len(triangle):
            raise ValueError(f"a factor can't have {n_targets!r} targets")
        count, seen = (float(self.value(one)) for one in node["counts"])
        if not (0.0 <= count <= LARGEST and 0.0 <= seen <= LARGEST):
            raise ValueError(f"a factor can't have learned {count} of {seen} rows")
        factor = Factor(len(triangle) - n_targets, n_targets)
        if triangle.dtype != np.float64 or triangle.shape != factor.triangle.shape:
            raise ValueError("a factor is not a triangle of numbers")
        triangles.check_solvable(triangle, n_targets)
        factor.set_triangle(triangle, count, seen)
        return factor

    def _take(self, n_bytes: int) -> None:
        """Refuse a document that makes much of a few bytes."""
        self._room -= n_bytes
        if self._room < 0:
            raise ValueError("it needs far more memory than the file has bytes")

    def _decode_bank(self, node: Document) -> FactorBank:
        stack, capacity = self._arrays[node["bank"]], node["capacity"]
        if stack.dtype != np.float64 or stack.ndim != 3 or stack.shape[1] < 1:
            raise ValueError("a bank contains no triangles")
        if type(capacity) is not int or not len(stack) <= capacity <= checks.MOST_RUNS:
            raise ValueError(f"a bank of {len(stack)} triangles has room for {capacity!r}")
        check_usable(stack)
        triangles.check_solvable(stack, 1)
        self._take(8 * capacity * stack.shape[1] * leading_dimension(stack.shape[1]))
        bank = FactorBank(stack.shape[1] - 1, capacity)
        for triangle in stack:
            bank.push(triangle)
        return bank

    def _groups(self, node: Document) -> GroupBank:
        p, clock = node["coefficients"], node["clock"]
        if type(p) is not int or not 0 <= p <= triangles.LARGEST_SPARSE or type(clock) is not int:
            raise ValueError(f"groups can't have {p!r} coefficients and a clock of {clock!r}")
        packed = triangles.unpack_triangles(self._arrays[node["groups"]], p + 1)
        tallies = [self._arrays[name] for name in node["tallies"]]
        kinds = [np.float64, np.float64, np.int64]
        same = all(
            array.shape == (len(packed),) and array.dtype == kind
            for array, kind in zip(tallies, kinds, strict=True)
        )
        if not same:
            raise ValueError("the parts of a bank of groups do not have matching shapes")
        count, seen, last = tallies
        if not (_is_count(count) and _is_count(seen) and (last <= clock).all() and clock >= 0):
            raise ValueError("a bank of groups contains counts of rows that can't be")
        bank = GroupBank(p)
        bank.__setstate__({"arrays": [packed, *tallies], "coefficients": p, "clock": clock})
        return bank

    def _labels(self, node: Document) -> AnyArray:
        labels = [self.value(one) for one in node["labels"]]
        code = node["dtype"]
        if code == "O":
            array = np.empty(len(labels), dtype=object)
            array[:] = labels
        else:
            if not (isinstance(code, str) and code[1:2] == "U"):
                raise ValueError(f"labels can't be of the type {code!r}")
            self._take(np.dtype(code).itemsize * len(labels))
            array = np.array([str(label) for label in labels], dtype=np.dtype(code))
        return array.reshape(node["shape"])

    def _array(self, node: Document) -> AnyArray:
        array = self._arrays[node["array"]]
        if node.get("order") == "F":
            return array.copy().T
        if "spread" in node:
            self._take(array.itemsize * math.prod(node["spread"]))
            return np.broadcast_to(array.copy(), node["spread"])
        return array.copy()


def _is_count(array: AnyArray) -> bool:
    return bool((array >= 0.0).all() and (array <= LARGEST).all())


def _instantiate(kind: type, values: dict[str, Any]) -> Any:
    expected = fields_of(kind)
    if expected is None:
        return _restore_object(kind, values)
    # What was kept of an answer may have gone since.
    late = {key: value for key, value in _CAME_LATER.items() if key in expected}
    gone = {key for key in values.keys() - set(expected) if key[0] == "_" and values[key] is None}
    values = late | {key: value for key, value in values.items() if key not in gone}
    if odd := sorted(values.keys() ^ set(expected)):
        raise ValueError(f"{kind.__name__} has fields too few or too many: {odd}")
    for key, value in values.items():
        check_type(get_type_hints_of(kind)[key], value, f"{kind.__name__}.{key}")
    return kind(**values)


def _restore_object(kind: type, values: dict[str, Any]) -> Any:
    """An object as it was, without its ``__init__``; an estimator needs its parameters at least."""
    hints = get_type_hints_of(kind)
    needed: set[str] = set()
    if issubclass(kind, BaseEstimator):
        needed = set(kind._get_param_names())  # type: ignore[attr-defined]
    # A class has a value for a parameter that came later than some files.
    if missing := sorted(one for one in needed - values.keys() if not hasattr(kind, one)):
        raise ValueError(f"{kind.__name__} lacks {missing}")
    relations.check_parameters(kind.__name__, values)
    made: Any = object.__new__(kind)
    for key, value in values.items():
        behaviour = hasattr(kind, key) and key not in hints and key not in needed
        if not key.isidentifier() or key.startswith("__") or key in DERIVED or behaviour:
            raise ValueError(f"{kind.__name__} has no attribute {key!r}")
        if key == "_posterior_or_none":  # declared as one kind of posterior, which stands for all
            if value is not None and (name_of(type(value)) or "") not in POSTERIORS:
                raise TypeError(f"a {type(value).__name__} is not part of a model")
        elif key not in needed and key in hints:
            check_type(hints[key], value, f"{kind.__name__}.{key}")
        made.__dict__[key] = value
    return made


def _make_splines(basis: Any) -> None:
    """Rebuild scikit-learn's splines, of which a file has the knots."""
    for places in basis.knots_:
        if places.ndim != 1 or len(places) < 1 or not (np.diff(places) > 0.0).all():
            raise ValueError("the knots of a spline do not increase")
    if len(basis.knots_) != len(basis.domain_):
        raise ValueError("a spline does not have knots for each feature")
    splines = [make_spline(places, basis.degree) for places in basis.knots_]
    shapes = [(one.n_features_out_, one.n_features_out_ - 2) for one in splines]
    if basis.smooth and [one.shape for one in basis.bends_] != shapes:
        raise ValueError("the bends of a spline are not those of its knots")
    if basis.smooth and not all(np.isfinite(one).all() for one in basis.bends_):
        raise ValueError("the bends of a spline are not finite")
    basis._use(splines)
