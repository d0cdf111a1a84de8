"""Dask's collections: any partitioning is one machine, and workers that are lost change nothing."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.evaluation import progressive_validation
from posterity.forgetting import Exponential

dask: Any = pytest.importorskip("dask", reason="needs Dask: pip install 'posterity[dask]'")
pa: Any = pytest.importorskip("pyarrow")
pd: Any = pytest.importorskip("pandas")
da: Any = pytest.importorskip("dask.array")
dd: Any = pytest.importorskip("dask.dataframe")

from posterity.adapters import dask as on_dask  # noqa: E402
from posterity.io import ColumnMeans, TableError, learn_stream, open_table  # noqa: E402

MODELS = {
    "learned": BayesianLinearRegression(),
    "given": BayesianLinearRegression(prior_mean=0.5, prior_precision=2.0, noise_prior=(1.0, 1.0)),
    "flat": BayesianLinearRegression(prior_precision=0.0),
}
LEVELS = ["north", "south", "west"]
NAMES = ["size", "age", "zone=south", "zone=west"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Run without a cluster, but where a test has one."""
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, with a nanny each."""
    distributed = pytest.importorskip("distributed")
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": None}
    quiet = {"dashboard_address": ":0", "silence_logs": 60, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(**workers, **quiet) as running,
        distributed.Client(running, set_as_default=False) as client,
    ):
        yield client


def rides(n: int = 400, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    size, age = rng.normal(size=n), 100.0 + rng.normal(size=n)
    zone = rng.choice(LEVELS, size=n)
    y = 2.0 + 3.0 * size - age + (zone == "south") + rng.normal(size=n)
    weight = rng.integers(0, 3, size=n)
    columns = {"size": size, "age": age, "zone": zone, "weight": weight, "y": y}
    return pd.DataFrame(columns, index=pd.RangeIndex(1000, 1000 + n, name="ride"))


def cut(frame: Any, borders: list[int]) -> Any:
    """A Dask data frame of partitions between the borders; some may be empty."""
    edges = [0, *sorted(borders), len(frame)]
    parts = [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]
    return dd.from_map(lambda place: parts[place], range(len(parts)), meta=frame.iloc[:0])


def arrays_of(frame: Any, chunks: Any) -> tuple[Any, Any, Any]:
    X = da.from_array(frame[["size", "age"]].to_numpy(), chunks=(chunks, 1))
    beside = (da.from_array(frame[name].to_numpy(), chunks=chunks) for name in ("y", "weight"))
    return X, *beside


def agree(one: Any, other: Any, tolerance: float = 1e-10) -> None:
    for name in ("coef_", "intercept_", "noise_precision_", "log_evidence_", "n_observations_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    names = [getattr(model, "feature_names_in_", np.array([])).tolist() for model in (one, other)]
    assert names[0] == names[1]


def alone(name: str, frame: Any, **columns: Any) -> Any:
    return learn_stream(copy.deepcopy(MODELS[name]), frame, "y", **columns)


# ---- data frames ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_parts", [1, 2, 17, 64])
def test_any_number_of_partitions_is_one_machine(name: str, n_parts: int) -> None:
    frame = rides()
    model = on_dask.fit(
        MODELS[name], dd.from_pandas(frame, npartitions=n_parts), "y", weight="weight"
    )
    agree(model, alone(name, frame, weight="weight"))
    assert model.feature_names_in_.tolist() == NAMES
    assert not hasattr(MODELS[name], "coef_")


def test_threads_are_one_machine() -> None:
    frame = rides()
    with dask.config.set(scheduler="threads", num_workers=4):
        model = on_dask.fit(MODELS["learned"], dd.from_pandas(frame, npartitions=24), "y")
    agree(model, alone("learned", frame))


@settings(max_examples=8)
@given(st.lists(st.integers(0, 400), max_size=24))
def test_empty_and_skewed_partitions_too(borders: list[int]) -> None:
    frame = rides()
    agree(on_dask.fit(MODELS["learned"], cut(frame, borders), "y"), alone("learned", frame))


def test_partitions_emptied_by_a_filter() -> None:
    frame = rides().sort_values("size")
    parts = cut(frame, list(range(50, 400, 50)))
    some = parts[parts["size"] > 1.0]
    agree(on_dask.fit(MODELS["learned"], some, "y"), alone("learned", frame[frame["size"] > 1.0]))


@pytest.mark.parametrize("kind", ["object", "category", "string[pyarrow]"])
def test_text_of_every_kind_is_categories(kind: str) -> None:
    frame = rides()
    with dask.config.set({"dataframe.convert-string": False}):
        parts = dd.from_pandas(frame.astype({"zone": kind}), npartitions=5)
    agree(on_dask.fit(MODELS["learned"], parts, "y"), alone("learned", frame))


def test_levels_given_need_no_look_beforehand() -> None:
    frame, reads = rides(), []

    def part(place: int) -> Any:
        reads.append(place)
        return frame.iloc[place * 100 : place * 100 + 100]

    parts = dd.from_map(part, range(4), meta=frame.iloc[:0])
    levels = {"zone": LEVELS}
    agree(on_dask.fit(MODELS["given"], parts, "y", levels=levels), alone("given", frame))
    assert sorted(reads) == [0, 1, 2, 3]
    on_dask.fit(MODELS["given"], parts, "y")
    assert sorted(reads) == sorted([0, 1, 2, 3] * 3)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask's own
def test_only_the_columns_that_are_used_are_read(tmp_path: Path) -> None:
    frame = rides().assign(extra=[[1]] * 400).reset_index(drop=True)
    for place in range(3):
        frame.iloc[place::3].to_parquet(tmp_path / f"{place}.parquet", index=False)
    parts = dd.read_parquet(tmp_path)
    columns = {"features": ["age", "size"], "weight": "weight"}
    agree(on_dask.fit(MODELS["given"], parts, "y", **columns), alone("given", frame, **columns))


def test_missing_values_become_the_means_of_all_rows() -> None:
    frame = rides()
    frame.loc[frame.index % 7 == 0, "size"] = np.nan
    frame.loc[frame.index % 11 == 0, "y"] = np.nan
    parts, means = cut(frame, [10, 10, 300]), ColumnMeans()
    model = on_dask.fit(MODELS["learned"], parts, "y", drop=["zone"], missing=means)
    assert means.fixed["size"] == pytest.approx(frame["size"].mean())
    agree(model, alone("learned", frame, drop=["zone"], missing=means.fixed))
    skipping = on_dask.fit(MODELS["learned"], parts, "y", missing="skip")
    agree(skipping, alone("learned", frame, missing="skip"))


def test_text_of_frames_put_together() -> None:
    frame = rides()
    halves = pd.concat([frame.iloc[:210], frame.iloc[210:]])
    agree(on_dask.fit(MODELS["learned"], cut(halves, [200]), "y"), alone("learned", frame))


def test_a_column_that_is_all_missing_in_one_partition() -> None:
    frame = rides().astype({"zone": object})
    frame.iloc[:100, frame.columns.get_loc("zone")] = None
    with dask.config.set({"dataframe.convert-string": False}):
        model = on_dask.fit(MODELS["learned"], cut(frame, [100, 200]), "y", missing="skip")
    agree(model, alone("learned", frame.iloc[100:]))


def test_learning_goes_on_from_what_is_known() -> None:
    frame = rides()
    first = alone("learned", frame.iloc[:150])
    before = first.n_observations_
    agree(on_dask.partial_fit(first, cut(frame.iloc[150:], [30]), "y"), alone("learned", frame))
    assert first.n_observations_ == before


def test_a_partition_without_some_of_the_classes() -> None:
    frame = rides(600)
    frame["y"] = np.where(frame["y"] > -98.0, "high", "low")
    frame = pd.concat([frame[frame["y"] == "low"][:20], frame]).drop(columns="weight")
    together = on_dask.fit(BayesianLogisticRegression(), cut(frame, [20, 150, 400]), "y")
    one = learn_stream(
        BayesianLogisticRegression(), pa.Table.from_pandas(frame, preserve_index=False), "y"
    )
    assert together.classes_.tolist() == ["high", "low"]
    rows = frame[["size", "age"]].assign(zone="north")
    predictive = on_dask.predict(together, cut(rows, [5])).compute()
    assert set(predictive["label"]) == {"high", "low"}
    wanted = on_dask.predict(one, cut(rows, [5])).compute()
    assert (predictive["label"] == wanted["label"]).mean() > 0.97


def test_many_models_by_key() -> None:
    frame = rides()
    model = GroupedRegression(by="zone", prior_mean=0.0, prior_precision=1.0)
    parts = cut(frame, [0, 33, 150])
    predictive = on_dask.fit(model, parts, "y", drop=["weight"])
    one = GroupedRegression(by="zone", prior_mean=0.0, prior_precision=1.0)
    one.fit(frame[["size", "age", "zone"]], frame["y"])
    assert sorted(predictive.groups_) == sorted(one.groups_) == ["north", "south", "west"]
    order = [list(one.groups_).index(group) for group in predictive.groups_]
    np.testing.assert_allclose(predictive.coef_, one.coef_[order], rtol=1e-10)
    assert predictive.log_evidence_ == pytest.approx(one.log_evidence_, rel=1e-10)
    rows = frame[["zone", "age", "size"]].assign(zone=frame["zone"].replace("west", "new"))
    mean = on_dask.predict(predictive, cut(rows, [7]), level=0.5).compute()["mean"]
    np.testing.assert_allclose(mean, one.predict(rows[["size", "age", "zone"]]), rtol=1e-9)
    scores = on_dask.evaluate(model, parts, "y", drop=["weight"])
    stream = progressive_validation(copy.deepcopy(model), frame[["size", "age", "zone"]], frame.y)
    # How far the noises of groups differ is learned again on a schedule, which each part begins.
    assert scores.log_score == pytest.approx(stream.log_score, rel=1e-3)


# ---- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunks", [400, 7, (0, 100, 0, 299, 1)], ids=str)
def test_arrays_are_one_machine(chunks: Any) -> None:
    frame = rides()
    X, y, weight = arrays_of(frame, chunks)
    model = on_dask.fit(MODELS["learned"], X, y.rechunk(33), weight=weight)
    values = (frame[name].to_numpy() for name in ("y", "weight"))
    one = copy.deepcopy(MODELS["learned"]).fit(frame[["size", "age"]].to_numpy(), *values)
    agree(model, one)
    again = on_dask.partial_fit(model, X, y, weight=weight)
    assert again.n_observations_ == 2 * model.n_observations_
    assert not hasattr(again, "feature_names_in_")


def test_chunks_whose_lengths_are_not_known() -> None:
    frame = rides()
    X, y, _ = arrays_of(frame, 50)
    kept = X[:, 0] > 0.0
    model = on_dask.fit(MODELS["learned"], X[kept], y[kept])
    some = frame[frame["size"] > 0.0]
    agree(model, copy.deepcopy(MODELS["learned"]).fit(some[["size", "age"]].to_numpy(), some["y"]))
    predictive = on_dask.predict(model, X[kept]).compute()
    np.testing.assert_allclose(predictive[:, 0], model.predict(some[["size", "age"]].to_numpy()))


def test_arrays_of_a_data_frame() -> None:
    parts = dd.from_pandas(rides(), npartitions=4)
    model = on_dask.fit(MODELS["given"], parts[["size", "age"]].values, parts["y"].values)
    assert model.n_observations_ == 400.0


def test_missing_values_of_arrays() -> None:
    frame = rides()
    frame.loc[frame.index % 5 == 0, "size"] = np.nan
    X, y, _ = arrays_of(frame, 60)
    model = on_dask.fit(MODELS["learned"], X, y, missing={"x0": 0.25})
    filled = frame.fillna({"size": 0.25})
    agree(model, copy.deepcopy(MODELS["learned"]).fit(filled[["size", "age"]].to_numpy(), frame.y))
    predictive = on_dask.predict(model, X, missing="skip").compute()
    np.testing.assert_array_equal(np.isnan(predictive[:, 0]), frame["size"].isna())


@pytest.mark.parametrize("dtype", [np.float32, np.int16, bool])
def test_arrays_of_other_numbers(dtype: Any) -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(60, 2)).astype(dtype)
    y = np.arange(60)
    model = on_dask.fit(MODELS["learned"], da.from_array(X, chunks=20), da.from_array(y, chunks=20))
    agree(model, copy.deepcopy(MODELS["learned"]).fit(X.astype(float), y))


# ---- predictions ---------------------------------------------------------------------------------


def test_predictions_keep_names_index_and_divisions() -> None:
    frame = rides()
    model = alone("learned", frame, drop=["weight"])
    parts = dd.from_pandas(frame, npartitions=5)
    predictive = on_dask.predict(model, parts, level=0.9, quantiles=[0.1])
    wanted = ["mean", "std", "lower", "upper", "q0.1"]
    assert predictive.divisions == parts.divisions
    assert list(predictive.columns) == [*frame.columns, *wanted]
    found = predictive.compute()
    pd.testing.assert_frame_equal(found[frame.columns], parts.compute())
    rows = np.vstack([X for X, _ in open_table(frame, "y", drop=["weight"])])
    np.testing.assert_allclose(found["mean"], model.predict(named(rows)))
    low, high = model.predict_distribution(named(rows)).interval(0.9)
    np.testing.assert_allclose(found[["lower", "upper"]], np.column_stack([low, high]))
    assert found.dtypes.astype(str)[wanted].tolist() == ["float64"] * 5
    assert predictive.dtypes.tolist() == found.dtypes.tolist()


def named(rows: np.ndarray) -> Any:
    return pd.DataFrame(rows, columns=NAMES)


def test_rows_left_out_stay_and_partitions_may_be_empty() -> None:
    frame = rides()
    model = alone("learned", frame, drop=["weight"])
    gaps = frame.drop(columns="y")
    gaps.iloc[3, 0] = np.nan
    predictive = on_dask.predict(model, cut(gaps, [3, 3, 4]), missing="skip").compute()
    assert predictive.index.equals(frame.index)
    assert predictive["mean"].isna().to_numpy().nonzero()[0].tolist() == [3]


def test_predictions_for_arrays() -> None:
    frame = rides()
    X, y, _ = arrays_of(frame, 90)
    model = on_dask.fit(MODELS["learned"], X, y)
    predictive = on_dask.predict(model, X, level=0.8)
    assert (predictive.shape, predictive.chunks[0]) == ((400, 4), X.chunks[0])
    mean, std = model.predict(X.compute(), return_std=True)
    np.testing.assert_allclose(predictive[:, :2].compute(), np.column_stack([mean, std]))
    labels = da.from_array(np.where(frame["y"] > -98.0, "high", "low"), chunks=90)
    classifier = on_dask.fit(BayesianLogisticRegression(), X, labels)
    shares = on_dask.predict(classifier, X).compute()
    np.testing.assert_allclose(shares, classifier.predict_proba(X.compute()))


# ---- scores --------------------------------------------------------------------------------------


def test_exposures_are_those_of_one_machine() -> None:
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"size": rng.normal(size=900), "years": rng.uniform(0.2, 3.0, size=900)})
    table["hits"] = rng.poisson(table.years * np.exp(0.5 + 0.4 * table["size"]))
    model = BayesianPoissonRegression(prior_precision=1.0)
    whole = BayesianPoissonRegression(prior_precision=1.0)
    whole.fit(table[["size"]], table.hits, exposure=table.years)
    frame = dd.from_pandas(table, npartitions=3)
    found = on_dask.fit(model, frame, "hits", exposure="years")
    np.testing.assert_allclose(found.coef_, whole.coef_, atol=0.03)
    predicted = on_dask.predict(whole, frame, exposure="years").compute()
    expected = whole.predict_distribution(table[["size"]], exposure=table.years)
    np.testing.assert_allclose(predicted["mean"], expected.mean())
    more = on_dask.partial_fit(found, frame, "hits", exposure="years")
    assert more.n_observations_ == 1800.0
    assert np.isfinite(on_dask.evaluate(model, frame, "hits", exposure="years").log_score)
    X, y, years = (
        da.from_array(table[one].to_numpy(), chunks=300) for one in ("size", "hits", "years")
    )
    for beside in ({"exposure": years}, {"offset": da.log(years)}):
        of_arrays = on_dask.fit(model, X[:, None], y, **beside)
        np.testing.assert_allclose(of_arrays.coef_, found.coef_, rtol=1e-9)
    with pytest.raises(TableError, match="offset= and exposure= name columns, and an array has no"):
        on_dask.predict(of_arrays, X[:, None], exposure="years")
    with pytest.raises(TypeError, match="exposure is for models of counts"):
        on_dask.fit(BayesianLinearRegression(), frame, "hits", exposure="years")


def test_scores_are_those_of_one_machine() -> None:
    frame, model = rides(), copy.deepcopy(MODELS["given"])
    stream = open_table(frame, "y", weight="weight")
    one = progressive_validation(model, stream, levels=(0.5, 0.9))
    parts = cut(frame, [0, 37, 37, 310])
    predictive = on_dask.evaluate(
        MODELS["given"], parts, "y", weight="weight", intervals=(0.5, 0.9)
    )
    for score in ("n_rows", "mae", "rmse", "log_score", "crps"):
        np.testing.assert_allclose(getattr(predictive, score), getattr(one, score), rtol=1e-10)
    assert predictive.coverage == one.coverage


def test_scores_begin_with_what_the_model_knows() -> None:
    frame = rides()
    X, y, _ = arrays_of(frame, 45)
    values = frame[["size", "age"]].to_numpy()
    model = copy.deepcopy(MODELS["given"]).fit(values[:200], frame["y"].to_numpy()[:200])
    one = progressive_validation(copy.deepcopy(model), values[200:], frame["y"].to_numpy()[200:])
    predictive = on_dask.evaluate(model, X[200:], y[200:])
    assert predictive.log_score == pytest.approx(one.log_score, rel=1e-10)
    assert model.n_observations_ == 200.0


def test_other_rows_in_the_second_pass_are_noticed() -> None:
    frame, reads = rides(), []

    def part(place: int) -> Any:
        reads.append(place)
        return frame.iloc[: 100 + len(reads)]

    parts = dd.from_map(part, range(2), meta=frame.iloc[:0])
    with pytest.raises(TableError, match="partition 0: the collection gave other rows the second"):
        on_dask.evaluate(MODELS["given"], parts, "y", drop=["zone"])


def test_classifiers_are_scored_elsewhere() -> None:
    X, y, _ = arrays_of(rides(), 90)
    with pytest.raises(TypeError, match="is a classifier: score it on one machine with posterity"):
        on_dask.evaluate(BayesianLogisticRegression(), X, y > 0.0)


# ---- what travels ----


def test_nothing_but_a_factor_comes_to_the_client() -> None:
    def brought(n: int) -> int:
        predictive: list[Any] = []

        def get(graph: Any, keys: Any, **options: Any) -> Any:
            predictive.append(dask.get(graph, keys, **options))
            return predictive[-1]

        parts = dd.from_pandas(rides(n), npartitions=40)
        with dask.config.set(scheduler=get):
            on_dask.fit(MODELS["given"], parts, "y", levels={"zone": LEVELS})
        return len(pickle.dumps(predictive))

    assert brought(400) == pytest.approx(brought(8000), abs=64)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": np.nan}, "partition 2: the stream: row 5, column 'size' is missing"),
        ({"y": np.inf}, "partition 2: the stream: row 5, column 'y' is infinite"),
        ({"weight": -1.0}, "partition 2: the stream: row 5, column 'weight' is -1"),
    ],
)
def test_a_bad_value_is_named_with_its_partition(change: dict[str, float], message: str) -> None:
    frame = rides().astype({"weight": float})
    for name, value in change.items():
        frame.loc[frame.index[205], name] = value
    parts = cut(frame, [100, 200, 300])
    for task in (on_dask.fit, on_dask.evaluate):
        with pytest.raises(TableError, match=message):
            task(MODELS["given"], parts, "y", weight="weight")


def test_the_first_of_many_bad_partitions_is_named() -> None:
    frame = rides()
    frame.loc[frame.index >= 1300, "size"] = np.nan
    with pytest.raises(TableError, match="partition 30: the stream: row 0, column 'size'"):
        on_dask.fit(MODELS["given"], cut(frame, list(range(10, 400, 10))), "y")


def test_what_cannot_be_is_said_before_anything_is_read() -> None:
    frame = rides()
    parts = dd.from_pandas(frame, npartitions=2)
    X, y, _ = arrays_of(frame, 90)
    model = MODELS["given"]
    refused: list[tuple[type[Exception], str, Any]] = [
        (TableError, "target 'z' is not a column", lambda: on_dask.fit(model, parts, "z")),
        (TypeError, "a DataFrame is not a Dask collection", lambda: on_dask.fit(model, frame, "y")),
        (TypeError, "is the name of a column", lambda: on_dask.fit(model, parts, parts["y"])),
        (TypeError, "dask.array.Array of shape", lambda: on_dask.fit(model, X, "y")),
        (
            TableError,
            "X has 400 rows, but target has 399",
            lambda: on_dask.fit(model, X, y[1:]),
        ),
        (TableError, "it must be", lambda: on_dask.fit(model, y, y)),
        (TableError, "no column names", lambda: on_dask.fit(model, X, y, features=["size"])),
        (
            ValueError,
            "depends on the order of the rows",
            lambda: on_dask.fit(BayesianLinearRegression(forgetting=Exponential(0.99)), parts, "y"),
        ),
    ]
    for kind, message, ask in refused:
        with pytest.raises(kind, match=message):
            ask()


def test_what_a_model_has_learned_must_fit() -> None:
    frame = rides()
    parts = dd.from_pandas(frame, npartitions=2)
    X, y, _ = arrays_of(frame, 90)
    known = alone("given", frame, drop=["weight"])
    with pytest.raises(TableError, match="the model learned features by name"):
        on_dask.predict(known, X)
    unnamed = on_dask.fit(MODELS["given"], X, y)
    with pytest.raises(TableError, match="X has 3 columns, and the model has learned 2"):
        on_dask.predict(unnamed, da.ones((5, 3)))
    for ask in (on_dask.predict, lambda *predictive: on_dask.partial_fit(*predictive, "y")):
        with pytest.raises(TableError, match="the model learned without feature names"):
            ask(unnamed, parts)
    with pytest.raises(TableError, match="the model has no feature names"):
        on_dask.predict(BayesianLinearRegression(), parts)
    with pytest.raises(TableError, match="feature 'size' is not a column"):
        on_dask.predict(known, parts.drop(columns="size"))
    with pytest.raises(
        TableError, match="has a column 'std', which is a name used for predictions: rename it"
    ):
        on_dask.predict(known, parts.assign(std=0.0))


def test_chunks_that_do_not_match() -> None:
    X, y, _ = arrays_of(rides(), 100)
    kept = X[:, 0] > 0.0
    with pytest.raises(TableError, match="X has 4 chunks of rows, and the target 8"):
        on_dask.fit(MODELS["given"], X[kept], y.rechunk(50)[kept.rechunk(50)])
    with pytest.raises(TableError, match="use the same chunks"):
        on_dask.fit(MODELS["given"], X[kept], y)


def test_no_rows() -> None:
    parts = dd.from_pandas(rides().iloc[:0], npartitions=1)
    for task in (on_dask.fit, on_dask.evaluate):
        with pytest.raises(TableError, match="the table has no row to learn: it is empty"):
            task(MODELS["given"], parts, "y", drop=["zone"])


def test_dask_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, posterity.adapters.dask\n"
        "print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_dask_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = dd.from_pandas(rides(), npartitions=2)
    monkeypatch.setitem(sys.modules, "dask", None)
    with pytest.raises(ImportError, match=r'pip install "posterity\[dask\]"'):
        on_dask.fit(MODELS["given"], parts, "y")


# ---- a cluster -----------------------------------------------------------------------------------


def test_worker_processes_are_one_machine(cluster: Any) -> None:
    frame = rides()
    parts = dd.from_pandas(frame, npartitions=20)
    with cluster.as_current(), dask.config.set(scheduler="distributed"):
        agree(on_dask.fit(MODELS["learned"], parts, "y"), alone("learned", frame))
        X, y, _ = arrays_of(frame, 50)
        by_place = on_dask.fit(MODELS["learned"], X, y)
        predictive = on_dask.evaluate(MODELS["given"], parts, "y", weight="weight")
        means = on_dask.predict(by_place, X).compute()[:, 0]
    one = progressive_validation(
        copy.deepcopy(MODELS["given"]), open_table(frame, "y", weight="weight")
    )
    assert predictive.log_score == pytest.approx(one.log_score, rel=1e-10)
    np.testing.assert_allclose(means, by_place.predict(X.compute()))


def test_a_worker_that_is_killed_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    frame, mark = rides(), tmp_path / "killed"
    cluster.wait_for_workers(2)

    def part(place: int) -> Any:
        # Half of the partitions are done when one takes its worker along, with what that knew.
        if place == 10 and not mark.exists():
            time.sleep(0.3)
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return frame.iloc[place * 20 : place * 20 + 20]

    parts = dd.from_map(part, range(20), meta=frame.iloc[:0])
    with cluster.as_current(), dask.config.set(scheduler="distributed"):
        quiet = on_dask.fit(MODELS["learned"], dd.from_pandas(frame, npartitions=20), "y")
        disturbed = on_dask.fit(MODELS["learned"], parts, "y", levels={"zone": LEVELS})
    cluster.wait_for_workers(2, timeout=60)  # the nanny has started another by then
    assert mark.exists()
    agree(disturbed, alone("learned", frame))
    np.testing.assert_array_equal(disturbed.coef_, quiet.coef_)
