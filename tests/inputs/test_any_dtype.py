"""Rows of any type of number and any layout give the answer of float64, by every door."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from learners import LEARNERS, X

# Whole numbers within the range of one byte: every type holds them.
WHOLE = np.round(X[:4] * 4.0)


def _unaligned(values: np.ndarray) -> np.ndarray:
    room = np.zeros(values.nbytes + 1, dtype=np.uint8)[1:]
    moved = room.view(np.float64).reshape(values.shape)
    moved[...] = values
    return moved


def _locked(values: np.ndarray) -> np.ndarray:
    values = values.copy()
    values.flags.writeable = False
    return values


def _spread(values: np.ndarray) -> np.ndarray:
    room = np.full((*values.shape[:-1], 2 * values.shape[-1]), np.nan)
    room[..., ::2] = values
    return room[..., ::2]


def _reversed(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values[..., ::-1])[..., ::-1]


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{
        kind: lambda values, kind=kind: values.astype(kind)
        for kind in ("f2", "f4", "g", ">f8", ">f4", ">i4", ">i8", "<i2", "i1", "O")
    },
    "swapped twice": lambda values: values.byteswap().view(values.dtype.newbyteorder()),
    "unaligned": _unaligned,
    "read only": _locked,
    "spread": _spread,
    "reversed": _reversed,
    "in Fortran's order": np.asfortranarray,
    "of masks that hide nothing": np.ma.array,
}
DOORS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "partial_fit": lambda model, X, y, w: model.partial_fit(X, y, sample_weight=w),
    "fit": lambda model, X, y, w: model.fit(X, y, sample_weight=w),
    "predict_then_learn": lambda model, X, y, w: model.predict_then_learn(X, y, sample_weight=w),
    "learn_one": lambda model, X, y, w: [model.learn_one(X[i], y[i]) for i in range(4)],
    "predict": lambda model, X, y, w: model.predict(X),
    "predict_interval": lambda model, X, y, w: model.predict_interval(X),
    "predict_proba": lambda model, X, y, w: model.predict_proba(X),
    "predict_one": lambda model, X, y, w: [model.predict_one(x) for x in X],
    "predict_proba_one": lambda model, X, y, w: [model.predict_proba_one(x) for x in X],
    "predict_interval_one": lambda model, X, y, w: [model.predict_interval_one(x) for x in X],
    "predict_then_learn_one": lambda model, X, y, w: [model.predict_then_learn_one(X[0], y[0])],
}
QUICK = ("linear", "several targets", "logistic")


def as_learned(answer: Any, model: Any) -> np.ndarray:
    """What was answered, and what the model says then, as numbers."""
    if isinstance(answer, list) and answer and isinstance(answer[0], dict):
        answer = [list(one.values()) for one in answer]
    plain = (int, float, tuple, list, np.ndarray, np.generic)
    listed = isinstance(answer, list) and all(isinstance(one, plain) for one in answer)
    numbers = listed or isinstance(answer, np.ndarray)
    said = np.asarray(answer, dtype=np.float64).ravel() if numbers else np.empty(0)
    return np.concatenate([said, np.asarray(model.predict(X[:5]), dtype=np.float64).ravel()])


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LEARNERS]
)
def test_every_layout_is_read_as_float64(name: str) -> None:
    make, y = LEARNERS[name]
    model = make().partial_fit(X, y)
    targets, weights, failed = y[:4], np.array([1.0, 2.0, 3.0, 1.0]), []
    if name not in ("logistic", "logistic that forgets", "three classes"):
        targets = np.abs(np.round(targets))
    for door, call in DOORS.items():
        if not hasattr(model, door) or (name, door) in BEYOND:
            continue
        plain = copy.deepcopy(model)
        expected = as_learned(call(plain, WHOLE, targets, weights), plain)
        for layout, convert in LAYOUTS.items():
            twin = copy.deepcopy(model)
            given = convert(WHOLE), convert(targets), convert(weights)
            try:
                found = as_learned(call(twin, *given), twin)
            except (TypeError, ValueError):
                continue
            if not np.allclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True):
                failed.append((door, layout))
    assert not failed


# Doors that these learners do not have, though their classes do.
BEYOND = {("three classes", "predict_interval_one")}


@pytest.mark.parametrize("name", ["linear", "logistic", "grouped", "several targets"])
def test_what_learns_rows_takes_every_layout(name: str) -> None:
    make, y = LEARNERS[name]
    model = make().partial_fit(X, y)
    for convert in LAYOUTS.values():
        model.partial_fit(convert(WHOLE), y[:4])
        model.predict(convert(WHOLE))
        model.predict_one(convert(WHOLE)[1])
