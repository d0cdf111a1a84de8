"""Columns of weights and of times, beside the features."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
import pyarrow.parquet  # noqa: E402

from posterity import BayesianLinearRegression  # noqa: E402
from posterity.evaluation import progressive_validation  # noqa: E402
from posterity.forgetting import Exponential  # noqa: E402
from posterity.io import TableError, learn_stream, open_table  # noqa: E402

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, -2.0] + RNG.normal(size=N)
WEIGHT = RNG.integers(0, 4, size=N).astype(float)
TIME = np.cumsum(RNG.exponential(size=N))
TABLE = pa.table({"a": X[:, 0], "w": WEIGHT, "b": X[:, 1], "t": TIME, "y": Y})
NAMES = ["a", "b"]


def assert_same(model: Any, other: Any) -> None:
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.n_effective_, other.n_effective_, rtol=1e-9)
    np.testing.assert_allclose(model.noise_precision_, other.noise_precision_, rtol=1e-9)


def test_weights_reach_the_model() -> None:
    model = learn_stream(BayesianLinearRegression(), TABLE, "y", weight="w", drop=["t"])
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_observations_ == WEIGHT.sum()
    assert_same(model, BayesianLinearRegression().fit(X, Y, WEIGHT))


def test_a_weight_of_two_is_the_row_twice() -> None:
    twice = pa.concat_tables([TABLE, TABLE]).select([*NAMES, "y"])
    plain = learn_stream(BayesianLinearRegression(), twice, "y")
    weighted = TABLE.select([*NAMES, "y"]).append_column("w", pa.array(np.full(N, 2)))
    assert_same(learn_stream(BayesianLinearRegression(), weighted, "y", weight="w"), plain)


def test_times_reach_the_model_and_go_on() -> None:
    forgetting = Exponential(0.999)
    whole = BayesianLinearRegression(forgetting=forgetting).fit(X, Y, WEIGHT, times=TIME)
    model = BayesianLinearRegression(forgetting=forgetting)
    for part in (TABLE.slice(0, 9000), TABLE.slice(9000)):
        learn_stream(model, part, "y", weight="w", time="t", batch_rows=1000)
    assert model.feature_names_in_.tolist() == NAMES
    assert_same(model, whole)


def test_dates_are_times_in_days() -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    stamps = [start + dt.timedelta(seconds=float(s)) for s in TIME]
    days = TABLE.select([*NAMES, "y"]).append_column("when", pa.array(stamps))
    model = BayesianLinearRegression(forgetting=Exponential(0.5))
    expected = BayesianLinearRegression(forgetting=Exponential(0.5))
    learn_stream(model, days, "y", time="when")
    exact = np.array([(stamp - start) / dt.timedelta(days=1) for stamp in stamps])
    np.testing.assert_allclose(model.coef_, expected.fit(X, Y, times=exact).coef_, rtol=1e-7)


def test_streams_have_them_in_their_batches() -> None:
    (batch,) = open_table(TABLE, "y", weight="w", drop=["t"])
    assert [part.shape for part in batch] == [(N, 2), (N,), (N,)]
    (batch,) = open_table(TABLE, "y", weight="w", time="t")
    assert np.array_equal(batch[2], WEIGHT)
    assert np.array_equal(batch[3], TIME)
    (batch,) = open_table(TABLE, "y", time="t", drop=["w"])
    assert batch[2] is None
    assert np.array_equal(batch[3], TIME)


def test_rows_that_are_left_out_take_theirs_along() -> None:
    a = X[:, 0].copy()
    a[[3, 70, 9999]] = np.nan
    holes = TABLE.set_column(0, "a", pa.array(a))
    keep = ~np.isnan(a)
    parts = list(open_table(holes, "y", weight="w", time="t", missing="skip", batch_rows=5000))
    assert np.array_equal(np.concatenate([part[2] for part in parts]), WEIGHT[keep])
    assert np.array_equal(np.concatenate([part[3] for part in parts]), TIME[keep])


def test_they_may_be_features_when_named() -> None:
    stream = open_table(TABLE, "y", features=["t", "a"], time="t")
    (batch,) = stream
    assert stream.feature_names == ("t", "a")
    assert np.array_equal(batch[0][:, 0], batch[3])


def test_validation_learns_by_weights() -> None:
    model = BayesianLinearRegression()
    stream = open_table(TABLE, "y", weight="w", drop=["t"])
    result = progressive_validation(model, stream)
    expected = progressive_validation(BayesianLinearRegression(), X, Y, sample_weight=WEIGHT)
    assert result.n_rows == N
    assert result.log_score == pytest.approx(expected.log_score, rel=1e-9)
    assert model.n_observations_ == WEIGHT.sum()


def with_value(name: str, row: int, value: float | None) -> Any:
    place = TABLE.schema.get_field_index(name)
    values = TABLE[name].to_pylist()
    values[row] = value
    return TABLE.set_column(place, name, pa.array(values, pa.float64()))


@pytest.mark.parametrize("missing", ["error", "skip", "mean"])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("w", -1.0, "the table: row 12345, column 'w' is -1: weights must be finite and not "
         "negative (0 leaves a row out)"),
        ("w", None, "the table: row 12345, column 'w' is missing: weights must be finite"),
        ("w", np.inf, "the table: row 12345, column 'w' is inf: weights must be finite"),
        ("t", -2.5, "the table: row 12345, column 't' is -2.5, and 12"),
        ("t", -2.5, "came before it: times must be finite and must not decrease; sort the rows by "
         "time"),
        ("t", None, "the table: row 12345, column 't' is missing: times must be finite"),
        ("t", np.inf, "the table: row 12345, column 't' is inf: times must be finite"),
    ],
)  # fmt: skip
def test_values_that_cannot_be(name: str, value: float, message: str, missing: Any) -> None:
    table = with_value(name, 12345, value)
    model = BayesianLinearRegression()
    with pytest.raises(TableError, match=re.escape(message)):
        learn_stream(model, table, "y", weight="w", time="t", missing=missing, batch_rows=1000)


def test_times_before_those_that_were_learned() -> None:
    model = learn_stream(BayesianLinearRegression(), TABLE, "y", time="t", drop=["w"])
    with pytest.raises(TableError, match=r"the table: row 0, column 't' is .* and .* came before"):
        learn_stream(model, TABLE, "y", time="t")
    with pytest.raises(ValueError, match="earlier rows had times: give times"):
        learn_stream(model, TABLE, "y")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"weight": "v"}, "weight 'v' is not a column of the file"),
        ({"time": "tt"}, "time 'tt' is not a column of the file; did you mean 't'?"),
        ({"weight": "y"}, "'y' is the target, and can't also be the weight"),
        ({"weight": "word"}, "the weight 'word' holds text; it must contain numbers"),
        ({"time": "word"}, "the time 'word' holds text; it must contain numbers"),
    ],
)
def test_columns_that_cannot_be(keywords: Any, message: str) -> None:
    table = TABLE.append_column("word", pa.array(["a", "b"] * (N // 2)))
    with pytest.raises(TableError, match=re.escape(message)):
        open_table(table, "y", **keywords)


def test_from_files(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(TABLE, path)
    model = learn_stream(BayesianLinearRegression(), path, "y", weight="w", time="t")
    assert_same(model, BayesianLinearRegression().fit(X, Y, WEIGHT, times=TIME))
