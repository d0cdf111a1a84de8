"""Tables from other libraries: learned from and predicted in batches, by the names of columns."""

from __future__ import annotations

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs Polars")
import pyarrow.parquet  # noqa: E402

from posterity import BayesianLinearRegression, BayesianLogisticRegression  # noqa: E402
from posterity.evaluation import progressive_validation  # noqa: E402
from posterity.io import TableError, learn_stream, open_table, predict_stream  # noqa: E402

N = 25_000


def table(n: int = N) -> Any:
    rng = np.random.default_rng(0)
    km, zone = rng.gamma(2.0, 2.0, size=n), rng.integers(0, 3, size=n)
    night = rng.random(n) < 0.3
    fare = 3.0 + 1.5 * km + zone + 2.0 * night + rng.normal(size=n)
    return pa.table(
        {
            "km": km,
            "zone": [("a", "b", "c")[z] for z in zone],
            "night": night,
            "stops": rng.integers(0, 4, size=n),
            "fare": fare,
        }
    )


TABLE = table()
WHOLE = np.column_stack(
    [
        TABLE["km"].to_numpy(),
        np.array(TABLE["zone"].to_pylist()) == "b",
        np.array(TABLE["zone"].to_pylist()) == "c",
        TABLE["night"].to_numpy(),
        TABLE["stops"].to_numpy(),
    ]
).astype(float)
NAMES = ["km", "zone=b", "zone=c", "night", "stops"]
EXPECTED = BayesianLinearRegression().fit(WHOLE, TABLE["fare"].to_numpy())

SOURCES = {
    "Arrow table": lambda: TABLE,
    "Arrow reader": lambda: TABLE.to_reader(max_chunksize=1000),
    "Arrow record batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "pandas": lambda: TABLE.to_pandas(),
    "pandas categories": lambda: TABLE.to_pandas().astype({"zone": "category"}),
    "Polars": lambda: pl.from_arrow(TABLE),
    "Polars lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "Polars categories": lambda: pl.from_arrow(TABLE).with_columns(
        pl.col("zone").cast(pl.Categorical)
    ),
    "pieces": lambda: (TABLE.slice(i, 777) for i in range(0, N, 777)),
    "pandas pieces": lambda: (TABLE.slice(i, 5000).to_pandas() for i in range(0, N, 5000)),
}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("batch_rows", [1000, 65536])
def test_every_table_teaches_the_same(name: str, batch_rows: int) -> None:
    model = BayesianLinearRegression()
    assert learn_stream(model, SOURCES[name](), "fare", batch_rows=batch_rows) is model
    assert model.feature_names_in_.tolist() == NAMES
    assert model.n_observations_ == N
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, EXPECTED.intercept_, rtol=1e-9)


def test_a_file_teaches_the_same(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "rides.parquet")
    model = learn_stream(BayesianLinearRegression(), tmp_path / "rides.parquet", "fare")
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-9)


@pytest.mark.parametrize("name", SOURCES)
def test_progressive_validation_over_every_table(name: str) -> None:
    result = progressive_validation(
        BayesianLinearRegression(), open_table(SOURCES[name](), "fare", batch_rows=5000)
    )
    assert result.n_rows == N
    assert 0.93 < result.coverage[0.95] < 0.97


def test_tables_that_can_be_read_again() -> None:
    for name in ("Arrow table", "pandas", "Polars"):
        stream = open_table(SOURCES[name](), "fare")
        assert sum(len(y) for _, y in stream) == sum(len(y) for _, y in stream) == N


def test_a_reader_is_read_once() -> None:
    stream = open_table(SOURCES["Arrow reader"](), "fare")
    assert sum(len(y) for _, y in stream) == N
    with pytest.raises(
        TableError, match="the reader can be read only once, and was read already: give a new"
    ):
        next(iter(stream))


def test_pieces_are_drawn_as_they_are_needed() -> None:
    drawn = []

    def pieces() -> Any:
        for i in range(0, N, 1000):
            drawn.append(i)
            yield TABLE.slice(i, 1000)

    stream = iter(open_table(pieces(), "fare", batch_rows=1000))
    next(stream)
    assert len(drawn) < 12


def test_columns_may_come_in_another_order_later() -> None:
    model = learn_stream(BayesianLinearRegression(), TABLE.slice(0, 10_000), "fare")
    turned = TABLE.slice(10_000).select(["stops", "fare", "night", "zone", "km"])
    learn_stream(model, turned, "fare")
    np.testing.assert_allclose(model.coef_, EXPECTED.coef_, rtol=1e-9)


def test_progress_is_told() -> None:
    predictive: list[tuple[int, float]] = []
    learn_stream(
        BayesianLinearRegression(),
        TABLE,
        "fare",
        batch_rows=10_000,
        progress=lambda stream: predictive.append((stream.n_rows_read, stream.fraction)),
    )
    assert predictive == [(10_000, 0.4), (20_000, 0.8), (25_000, 1.0)]


# ---- predicting ----------------------------------------------------------------------------------

MODEL = learn_stream(BayesianLinearRegression(), TABLE, "fare")


@pytest.mark.parametrize(
    ("name", "kind"),
    [("pandas", pd.DataFrame), ("Polars", pl.DataFrame), ("Arrow table", pa.RecordBatch)],
)
def test_predictions_come_in_the_container_that_came(name: str, kind: type) -> None:
    batches = list(predict_stream(MODEL, SOURCES[name](), level=0.9, quantiles=(0.1,)))
    assert {type(batch) for batch in batches} == {kind}
    first = batches[0]
    columns = first.schema.names if kind is pa.RecordBatch else list(first.columns)
    assert [c for c in columns if c != "row"] == ["mean", "std", "lower", "upper", "q0.1"]
    predictive = EXPECTED.predict_distribution(WHOLE[: len(first)])
    for column, values in [
        ("mean", predictive.mean()),
        ("std", predictive.std()),
        ("lower", predictive.interval(0.9)[0]),
        ("upper", predictive.interval(0.9)[1]),
        ("q0.1", predictive.ppf(0.1)),
    ]:
        np.testing.assert_allclose(np.asarray(first[column]), values, rtol=1e-9)


def test_the_index_comes_back_where_rows_are_left_out() -> None:
    frame = TABLE.slice(0, 6).to_pandas().drop(columns="fare")
    frame.index = pd.date_range("2024-01-01", periods=6)
    frame.loc[frame.index[2], "km"] = np.nan
    (predictive,) = predict_stream(MODEL, frame, missing="skip")
    assert predictive.index.tolist() == frame.index.delete(2).tolist()
    (predictive,) = predict_stream(MODEL, frame, missing="skip", output="numpy")
    assert predictive["row"].tolist() == [0, 1, 3, 4, 5]


def test_every_output_on_request() -> None:
    few = TABLE.slice(0, 3)
    for output, kind in [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("numpy", dict)]:
        (predictive,) = predict_stream(MODEL, few, output=output)  # type: ignore[arg-type]
        assert isinstance(predictive, kind)
    with pytest.raises(
        ValueError, match="output must be one of same, arrow, pandas, polars, numpy"
    ):
        next(predict_stream(MODEL, few, output="csv"))  # type: ignore[arg-type]


def test_a_classifier_learns_labels_and_tells_probabilities() -> None:
    labels = pa.array(np.where(TABLE["fare"].to_numpy() > 10.0, "dear", "cheap"))
    rides = TABLE.drop_columns("fare").append_column("kind", labels)
    model = learn_stream(BayesianLogisticRegression(), rides, "kind", batch_rows=2000)
    assert model.classes_.tolist() == ["cheap", "dear"]
    first = next(predict_stream(model, rides.to_pandas()))
    assert list(first.columns) == ["label", "p=cheap", "p=dear"]
    right = first["label"].to_numpy() == labels.to_numpy(zero_copy_only=False)[: len(first)]
    assert right.mean() > 0.9


def test_a_model_without_names_cannot_predict_a_table() -> None:
    model = BayesianLinearRegression().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.5])
    with pytest.raises(TableError, match="the model has no feature names: learn with"):
        next(predict_stream(model, TABLE))


# ---- what columns mean ---------------------------------------------------------------------------


def test_dates_are_days() -> None:
    start = dt.datetime(2024, 1, 1, 12)
    rows = pa.table(
        {
            "when": [start, start + dt.timedelta(days=1)],
            "zoned": pa.array([start, None], pa.timestamp("ms", tz="America/New_York")),
            "day": [dt.date(1970, 1, 3), dt.date(1970, 1, 1)],
            "at": [dt.time(6), dt.time(18)],
            "long": [dt.timedelta(hours=36), dt.timedelta(0)],
            "y": [1.0, 2.0],
        }
    )
    with pytest.raises(TableError, match="column 'when' holds dates or times"):
        open_table(rows, "y")
    stream = open_table(rows, "y", dates="days", missing="mean")
    ((X, _),) = stream
    assert stream.feature_names == ("when", "zoned", "day", "at", "long")
    noon = (start - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1)
    np.testing.assert_array_equal(
        X, [[noon, noon, 2.0, 0.25, 1.5], [noon + 1.0, noon, 0.0, 0.75, 0.0]]
    )


def test_dates_are_days_again_when_predicted() -> None:
    days = [dt.date(2024, 1, d) for d in range(1, 11)]
    frame = pl.DataFrame({"day": days, "y": [float(d) for d in range(10)]})
    model = learn_stream(BayesianLinearRegression(prior_precision=0.0), frame, "y", dates="days")
    (predictive,) = predict_stream(model, frame)
    np.testing.assert_allclose(predictive["mean"].to_numpy(), np.arange(10.0), atol=1e-6)


def test_levels_given_beforehand() -> None:
    first, later = TABLE.slice(0, 100), TABLE.slice(100, 100)
    only_a = first.filter(pa.compute.equal(first["zone"], "a"))
    model = BayesianLinearRegression()
    learn_stream(model, only_a, "fare", levels={"zone": ["a", "b", "c"]})
    learn_stream(model, later, "fare")
    assert model.feature_names_in_.tolist() == NAMES
    assert model.coef_[1] != 0.0


def test_levels_that_grow() -> None:
    zones = np.array(TABLE["zone"].to_pylist())
    order = np.argsort(zones, kind="stable")
    rows = TABLE.take(order).select(["km", "zone", "fare"])
    model = BayesianLinearRegression(prior_precision=1.0)
    learn_stream(model, rows, "fare", levels="growing", batch_rows=2000)
    assert model.feature_names_in_.tolist() == ["km", "zone=a", "zone=b", "zone=c"]
    X = np.column_stack([WHOLE[:, 0], zones == "a", zones == "b", zones == "c"]).astype(float)
    whole = BayesianLinearRegression(prior_precision=1.0).fit(X, TABLE["fare"].to_numpy())
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.log_evidence_, whole.log_evidence_, rtol=1e-8)
    more = rows.slice(0, 2).set_column(1, "zone", pa.array(["d", "a"]))
    learn_stream(model, more, "fare", levels="growing")
    assert model.feature_names_in_[-1] == "zone=d"


def test_levels_that_are_fixed_are_counted_when_others_come() -> None:
    stream = open_table(TABLE, "fare", levels={"zone": ["a", "b"]})
    for _ in stream:
        pass
    zones = TABLE["zone"].to_pylist()
    assert stream.unseen_levels == {"zone": {"c": zones.count("c")}}


def test_warnings_are_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in predict_stream(MODEL, TABLE.slice(0, 10)):
            pass


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "a int is not a table: give a path, a data frame"),
        (iter([]), "the stream of tables is empty: give at least one table"),
        (
            pd.DataFrame({0: [1.0], "y": [1.0]}),
            "column 0 of the data frame has a name that is not text",
        ),
        (pd.DataFrame({"x": [1, "a"], "y": [1.0, 2.0]}), "has a column of mixed types"),
        (pa.table({"x": [1.0], "z": [1.0]}), "target 'y' is not a column"),
        (pa.table({"x": [1.0], "y": ["a"]}), "the target 'y' holds text; it must contain numbers"),
        (pa.table({"x": [None, 1.0], "y": [1.0, 2.0]}), "the table: row 0, column 'x' is missing"),
        (
            iter([pa.table({"x": [1.0], "y": [1.0]}), pa.table({"z": [1.0], "y": [1.0]})]),
            "table 1 of the stream does not have the columns of the first",
        ),
    ],
)
def test_what_is_refused(data: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        learn_stream(BayesianLinearRegression(), data, "y")


def test_what_a_model_needs_must_be_there() -> None:
    with pytest.raises(TableError, match="feature 'zone=b' is not a column"):
        next(predict_stream(MODEL, TABLE.drop_columns("zone")))
    text = TABLE.slice(0, 3).set_column(0, "km", pa.array(["1", "2", "3"]))
    with pytest.raises(TableError, match="column 'km' holds text, and was numbers or dates when"):
        next(predict_stream(MODEL, text))
    with pytest.raises(TableError, match="the model has learned its features by name already"):
        learn_stream(MODEL, TABLE, "fare", drop=["km"])


def test_models_of_other_libraries_learn_too() -> None:
    from sklearn.linear_model import SGDRegressor

    model = learn_stream(SGDRegressor(random_state=0), TABLE, "fare", batch_rows=1000)
    assert model.feature_names_in_.tolist() == NAMES


def test_rows_of_other_names_are_refused() -> None:
    from posterity.linear.named import NamedRows

    model = learn_stream(BayesianLinearRegression(), TABLE.slice(0, 100), "fare")
    with pytest.raises(ValueError, match="the rows have columns 'a'; the model has learned 'km', "):
        model.predict(NamedRows(np.zeros((1, 1)), ("a",)))


def test_frames_that_were_joined() -> None:
    frame = TABLE.to_pandas()
    joined = pd.concat([frame.iloc[:10_000], frame.iloc[10_000:]])
    model = learn_stream(BayesianLinearRegression(), joined, "fare")
    whole = learn_stream(BayesianLinearRegression(), TABLE, "fare")
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
