"""Rows that are odd in any way are learned, so that the model can be used, or refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from learners import LEARNERS, Batch, X, odd_batches

from posterity.files import dumps

QUICK = ("linear", "several targets", "conformal")


def find_fault(model: Any, batch: Batch, y: np.ndarray, before: bytes) -> str | None:
    """What is wrong with a model that was given these rows; None if nothing."""
    _, rows, targets, weights = batch
    try:
        model.partial_fit(rows, targets, sample_weight=weights)
    except (TypeError, ValueError) as error:
        if not str(error):
            return "refused without a word"
        return None if dumps(model) == before else "refused, and changed"
    said = [model.predict(X[:3]), model.predict_one(X[0])]
    said += [model.predict_interval(X[:3])] if hasattr(model, "predict_interval") else []
    if hasattr(model, "learn_one"):
        model.learn_one(X[0], y[0])
    model.partial_fit(X[:3], y[:3])
    said.append(model.predict(X[:3]))
    dumps(model)
    finite = all(np.isfinite(np.asarray(one, dtype=np.float64)).all() for one in said)
    return None if finite else "answers are not finite"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in LEARNERS]
)
def test_what_is_learned_can_be_used(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    make, y = LEARNERS[name]
    model = make().partial_fit(X, y)
    before, faults = dumps(model), {}
    for batch in odd_batches(y):
        fault = find_fault(copy.deepcopy(model), batch, y, before)
        if fault is not None:
            faults[batch[0]] = fault
    assert not faults
    said = capfd.readouterr()
    assert not said.err  # LAPACK writes there of values that it can't take
    assert not said.out


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ("X 1e+149", r"X is 1e\+149 in row 1, column 1: beyond 1e\+75 products overflow"),
        ("y 1e+76", r"y is 1e\+76 in row 1: beyond 1e\+75"),
        ("large, of more weight", r"X is .* in row 0, column 0, with the weight 1e\+60: beyond"),
        ("weight 1e+150", r"sample_weight is 1e\+150 in row 1: .* at most 1e\+100"),
        ("X whole beyond floats", "a whole number.*: row 1, column 1.*beyond 1.8e308"),
        ("y whole beyond floats", "y has a value that is not a number: in row 1, .*1.8e308"),
        ("X text with underscores", "could not convert '1_000' to a number: row 1, column 1"),
        ("y text with spaces", "y has a value that is not a number: in row 1, ' 2 ' is text"),
        ("X of bytes", "could not convert b'.*' to a number: row 0, column 0"),
        ("y of dates", "y holds dates or times"),
        ("masked X", "X is masked in row .*, column .*: drop such rows, or fill them in"),
        ("masked y", "y is masked in row 1"),
        ("masked weights", "sample_weight is masked in row 0"),
    ],
)
def test_what_is_said_of_them(batch: str, message: str) -> None:
    make, y = LEARNERS["linear"]
    model = make().partial_fit(X, y)
    rows = next(one for one in odd_batches(y) if one[0] == batch)
    with pytest.raises((TypeError, ValueError), match=message):
        model.partial_fit(*rows[1:])


def test_small_weights_beside_others_are_none() -> None:
    make, y = LEARNERS["linear"]
    weights = np.where(np.arange(len(y)) < 25, 1.0, 5e-324)
    some, none = make().fit(X, y, weights), make().fit(X, y, np.where(weights < 1.0, 0.0, 1.0))
    assert np.array_equal(some.coef_, none.coef_)
    with pytest.raises(ValueError, match="no sample_weight is larger"):
        make().fit(X, y, np.full(len(y), 5e-324))
    with pytest.raises(ValueError, match="weight is 1e-150"):
        make().fit(X, y).learn_one(X[0], 1.0, 1e-150)


def test_points_are_within_the_same_bound() -> None:
    make, y = LEARNERS["linear"]
    model = make().fit(X, y)
    assert np.isfinite(model.predict_interval(np.full((1, 3), 1e75))).all()
    for call in (model.predict, model.predict_interval, model.predict_distribution):
        with pytest.raises(ValueError, match=r"X is 1e\+76 in row 0, column 0: beyond 1e\+75"):
            call(np.full((1, 3), 1e76))
    with pytest.raises(ValueError, match=r"x in column 0 is 1e\+76: beyond 1e\+75"):
        model.predict_one(np.full(3, 1e76))
