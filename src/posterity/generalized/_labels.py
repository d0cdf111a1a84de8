"""Labels as users have them, and their places among the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from posterity.distributions.categorical import positions

Labels = NDArray[Any]


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
    labels = column_or_1d(y, warn=True)
    if labels.dtype.kind == "f":
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
    elif labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels are whole numbers or text")
    elif labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if label is None or label != label:
                raise ValueError(
                    f"Input y contains {label!r} in row {row}: every row needs a label: drop "
                    "the row"
                )
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError(
                "Unknown label type: y mixes text and numbers; make them all text, or all numbers"
            )
    return labels


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
        parts.append(known)
    if named is not None:
        listed = np.unique(np.asarray(named))
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
    if len({part.dtype.kind in "US" or part.dtype.kind == "O" for part in parts}) > 1:
        raise ValueError(
            f"y has labels like {parts[0][:1].tolist()}, but earlier labels are like "
            f"{parts[-1][:1].tolist()}: give only text, or only numbers"
        )
    return np.unique(np.concatenate(parts))


__all__ = ["join_classes", "positions", "read_labels"]
