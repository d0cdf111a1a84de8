"""Labels as users have them, and their places among the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import column_or_1d

from posterity.aliases import AnyArray
from posterity.distributions.categorical import positions
from posterity.kernel.values import refuse_masked

Labels = AnyArray


def read_labels(y: Any) -> Labels:
    """Labels (n,): whole numbers, truth values or text.

    Raises ``ValueError`` for numbers that are no labels, naming the first row.

    Examples
    --------
    >>> read_labels(["b", "a"])
    array(['b', 'a'], dtype='<U1')
    """
    if y is None:
        raise ValueError("This model requires y to be passed, but the target y is None")
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] == 2:
        raise ValueError(
            f"y has shape {shape}: it must be (n,), a label for each row; successes and failures "
            "of trials are two rows each, of weights: see Successes and trials in the documentation"
        )
    labels = column_or_1d(_convert_to_numpy(y), warn=True)
    if isinstance(y, list | tuple) and labels.dtype.kind in "US":  # of which NumPy makes text
        _check_objects(np.array(y, dtype=object))
    if labels.dtype.kind == "f":
        _check_numbers(labels)
    elif labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels are whole numbers or text")
    elif labels.dtype.kind not in "biuUSO":
        raise ValueError(
            f"Unknown label type: y holds values of type {labels.dtype}; labels are whole numbers, "
            "truth values or text: of dates make text, as by astype(str)"
        )
    elif labels.dtype.kind == "O":
        return _check_objects(labels)
    return labels


def _convert_to_numpy(y: Any) -> Any:
    """The labels with the type that they have, where pandas keeps them in types of its own."""
    refuse_masked(y, "y")
    if hasattr(y, "iloc") and len(y.shape) == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if not hasattr(getattr(y, "dtype", None), "construct_array_type"):
        return y
    missing = np.asarray(y.isna())
    if missing.any():
        raise ValueError(
            f"Input y contains NaN in row {int(np.argmax(missing))}: every row needs a label: drop "
            "the row"
        )
    kind = getattr(y.dtype, "categories", y).dtype  # a category's labels are of the type of all
    plain = getattr(kind, "numpy_dtype", kind)
    return np.asarray(y, dtype=plain if isinstance(plain, np.dtype) else object)


def _check_numbers(labels: Labels) -> None:
    bad = ~np.isfinite(labels)
    if bad.any():
        row = int(np.argmax(bad))
        kind = "NaN" if np.isnan(labels[row]) else "infinity"
        raise ValueError(
            f"Input y contains {kind} in row {row}: every row needs a label: drop the row"
        )
    broken = labels != np.floor(labels)
    if broken.any():
        row = int(np.argmax(broken))
        raise ValueError(
            f"Unknown label type: y is {labels[row]:g} in row {row}: labels are whole numbers, "
            "truth values or text; for numbers use a regression"
        )


def _check_objects(labels: Labels) -> Labels:
    """Labels that are Python's objects: text as it is, numbers as an array of their own type."""
    for row, label in enumerate(labels):
        if label is None or label is np.ma.masked or type(label).__name__ in ("NAType", "NaTType"):
            raise ValueError(
                f"Input y contains {label!r} in row {row}: every row needs a label: drop the row"
            )
        if not isinstance(label, str | bytes | int | float | np.bool_ | np.integer | np.floating):
            raise ValueError(
                f"Unknown label type: y is {label!r} in row {row}: labels are whole numbers, truth "
                "values or text: of dates make text, as by str"
            )
    if not len(labels):
        return labels
    if len({isinstance(label, str | bytes) for label in labels}) > 1:
        raise ValueError(
            "Unknown label type: y mixes text and numbers; make them all text, or all numbers"
        )
    if isinstance(labels[0], str | bytes):
        return labels
    numbers = np.array(labels.tolist())
    if numbers.dtype.kind == "O":
        raise ValueError(
            "Unknown label type: y has whole numbers beyond 64 bits; make them text, as by str"
        )
    if numbers.dtype.kind == "f":
        _check_numbers(numbers)
    return numbers


def join_classes(known: Labels | None, named: ArrayLike | None, labels: Labels) -> Labels:
    """Classes known, named in the call, or met in it: sorted.

    Raises ``ValueError`` when a label is not among the classes that were named in this call, or is
    of another kind than those known.

    Examples
    --------
    >>> join_classes(np.array([0, 2]), None, np.array([1, 1]))
    array([0, 1, 2])
    """
    parts = [np.unique(labels)] if len(labels) else []
    if known is not None:
        if named is None and len(parts) and _is_text(parts[0]) == _is_text(known):
            _, there = positions(known, parts[0])
            if there.all():  # they keep the type that they came with
                return known
        parts.append(known)
    if named is not None:
        listed = np.unique(read_labels(named))
        allowed = listed if known is None else _concatenate_labels([listed, known])
        _, there = (
            positions(allowed, labels) if len(allowed) else (None, np.zeros(len(labels), bool))
        )
        if not there.all():
            row = int(np.argmin(there))
            raise ValueError(
                f"y is {labels[row]!r} in row {row}, which is not in classes: name every class"
            )
        parts.append(listed)
    return _concatenate_labels(parts)


def _concatenate_labels(parts: list[Labels]) -> Labels:
    if not parts:
        raise ValueError("X and y have no rows: give at least one row, with its label")
    if len({_is_text(part) for part in parts}) > 1:
        raise ValueError(
            f"y has labels like {parts[0][:1].tolist()}, but earlier labels are like "
            f"{parts[-1][:1].tolist()}: give only text, or only numbers"
        )
    return np.unique(np.concatenate(parts))


def _is_text(labels: Labels) -> bool:
    """Return True for labels that are text: numbers among objects were made an array of numbers."""
    return labels.dtype.kind in "USO"


__all__ = ["join_classes", "positions", "read_labels"]
