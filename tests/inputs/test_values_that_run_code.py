"""Values whose conversion to a number runs code: other threads, or the model itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
Y = (FRAME @ [1.0, 2.0, -1.0] + 0.1 * RNG.normal(size=60)).to_numpy()
ROWS: list[dict[str, float]] = FRAME.iloc[:20].to_dict("records")  # type: ignore[assignment]
MODELS: dict[type, np.ndarray] = {
    BayesianLinearRegression: Y,
    BayesianLogisticRegression: Y > 0.0,
    BayesianPoissonRegression: np.round(np.abs(Y)),
    BayesianRobustRegression: Y,
}


class Slow:
    """A number during whose conversion other threads run."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        time.sleep(0.0)
        return self.value


class Learns:
    """A number that has something done when it is converted."""

    def __init__(self, value: float, do: Callable[[], Any]) -> None:
        self.value, self.do = value, do

    def __float__(self) -> float:
        self.do()
        return self.value


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None]) -> None:
    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("kind", MODELS)
def test_threads_read_rows_of_their_own(kind: type) -> None:
    model = kind().fit(FRAME, MODELS[kind])
    predict = getattr(model, "predict_proba_one", model.predict_one)
    right, wrong = [predict(row) for row in ROWS], []

    def ask(number: int) -> None:
        for turn in range(50):
            i = (7 * turn + number) % 20
            if predict({name: Slow(value) for name, value in ROWS[i].items()}) != right[i]:
                wrong.append(i)

    in_threads(ask)
    assert not wrong


def test_threads_learn_rows_of_their_own() -> None:
    model, twin = (BayesianLinearRegression().fit(FRAME, Y) for _ in range(2))
    for row, target in zip(ROWS, Y, strict=False):
        twin.learn_one(row, target)

    def learn(number: int) -> None:
        for i in range(number, 20, 4):
            model.learn_one(
                {name: Slow(value) for name, value in ROWS[i].items()}, Slow(float(Y[i]))
            )

    in_threads(learn)
    assert model.n_observations_ == 80.0
    np.testing.assert_allclose(model.coef_, twin.coef_, rtol=1e-10)


@pytest.mark.parametrize("kind", MODELS)
def test_a_value_that_learns_comes_first(kind: type) -> None:
    targets = MODELS[kind]
    # The first row that comes alone chooses the prior anew; the next ones are learned in one go.
    model, twin = (kind().fit(FRAME, targets).learn_one(ROWS[2], targets[2]) for _ in range(2))
    learns = Learns(ROWS[0]["b"], lambda: model.learn_one(ROWS[1], targets[1]))
    model.learn_one({**ROWS[0], "b": learns}, targets[0])
    twin.learn_one(ROWS[1], targets[1]).learn_one(ROWS[0], targets[0])
    assert np.array_equal(model.coef_, twin.coef_)
    assert model.n_observations_ == twin.n_observations_ == 63.0


@pytest.mark.parametrize("kind", MODELS)
def test_a_batch_whose_values_use_the_model_is_refused(kind: type) -> None:
    targets = MODELS[kind]
    model = kind().fit(FRAME, targets)
    before = model.coef_.copy()
    for use in (
        lambda: model.learn_one(ROWS[1], targets[1]),
        lambda: model.partial_fit(FRAME[1:2], targets[1:2]),
    ):
        rows = FRAME[:2].astype(object)
        rows.iloc[1, 1] = Learns(0.5, use)
        with pytest.raises(ValueError, match="convert them to numbers first"):
            model.partial_fit(rows, targets[:2])
    assert np.array_equal(model.coef_, before)
    assert model.n_observations_ == 60.0


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("1", ValueError, "'1' is text, and not a number"),
        (b"1", ValueError, "b'1' is text"),
        (10**400, ValueError, "beyond 1.8e308"),
        (pd.Timestamp("2024-02-29"), TypeError, "is a date or time"),
        (np.timedelta64(3, "D"), TypeError, "is a date or time"),
        (1.0 + 1.0j, ValueError, "is complex"),
    ],
    ids=repr,
)
def test_single_rows_with_no_numbers(value: Any, error: type[Exception], message: str) -> None:
    model = BayesianLinearRegression().fit(FRAME, Y)
    before = model.coef_.copy()
    with pytest.raises((TypeError, ValueError)):
        model.learn_one(ROWS[0], value)
    with pytest.raises(error, match=f"x in column 'b' is .*{message}"):
        model.learn_one({**ROWS[0], "b": value}, 1.0)
    with pytest.raises(error, match="x in column 'b'"):
        model.predict_one({**ROWS[0], "b": value})
    assert np.array_equal(model.coef_, before)


def test_plain_rows_of_every_kind_are_the_same_row() -> None:
    model = BayesianLinearRegression().fit(FRAME, Y)
    for row in ROWS:
        values = list(row.values())
        copied = {"".join(name): value for name, value in reversed(row.items())}
        kinds = [copied, values, tuple(values), np.array(values), np.array(values, dtype=object)]
        kinds += [[np.float64(value) for value in values], {**row, "b": Slow(row["b"])}]
        assert {model.predict_one(kind) for kind in kinds} == {model.predict_one(row)}
    ones = {model.predict_one(kind) for kind in ([1, 1, 1], (True, 1.0, np.int32(1)), np.ones(3))}
    assert len(ones) == 1
