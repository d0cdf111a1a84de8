"""Spark's data frames: any partitioning is one machine, and tasks that fail change nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    GroupedRegression,
    files,
)
from posterity.evaluation import progressive_validation
from posterity.forgetting import Exponential

pa: Any = pytest.importorskip("pyarrow")
if os.environ.get("POSTERITY_SPARK") != "required":
    pytest.importorskip("pyspark", reason="needs PySpark: pip install 'posterity[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: there is none on PATH", allow_module_level=True)

SLOW = pytest.mark.slow
# PySpark of the pandas that it finds, newer than it knows; and its sockets.
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support pandas:FutureWarning",
    "ignore:unclosed <socket:ResourceWarning",
)

from posterity.adapters import spark  # noqa: E402
from posterity.io import ColumnMeans, TableError, learn_stream, open_table  # noqa: E402
from posterity.io.learning import name_columns  # noqa: E402


def session_on(master: str, folder: Path) -> Any:
    """Return a session of Spark that talks to this machine alone."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("posterity")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.shuffle.partitions": "8",
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Have Spark use this Python and the loopback; leave the environment as it was."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_HOSTNAME", "localhost")
        patch.setenv("SPARK_LOCAL_DIRS", str(folder))
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def session(surroundings: Path) -> Iterator[Any]:
    running = session_on("local[2,3]", surroundings)
    yield running
    running.stop()


def table_of(n: int = 600, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    size, age = rng.normal(size=n), 100.0 + rng.normal(size=n)
    zone = rng.choice(["north", "south", "west"], size=n)
    y = 2.0 + 3.0 * size - age + (zone == "south") + rng.normal(size=n)
    weight = rng.integers(0, 3, size=n).astype(float)
    shop = rng.integers(0, 3, size=n)
    return pa.table(
        {"size": size, "age": age, "zone": zone, "weight": weight, "shop": shop, "y": y}
    )


def agree(one: Any, other: Any, tolerance: float = 1e-10) -> None:
    for name in ("coef_", "intercept_", "noise_precision_", "log_evidence_", "n_observations_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()


# ---- learning ------------------------------------------------------------------------------------


def partitioned(session: Any, table: Any, n_parts: int) -> Any:
    return session.createDataFrame(table).repartition(n_parts)


@pytest.mark.parametrize(
    ("n_parts", "precision"), [(1, "auto"), (7, 2.0), pytest.param(64, "auto", marks=SLOW)]
)
def test_spark_is_one_machine(session: Any, n_parts: int, precision: Any) -> None:
    table = table_of()
    columns: dict[str, Any] = {"drop": ["shop"], "weight": "weight"}
    model = BayesianLinearRegression(prior_precision=precision)
    frame = partitioned(session, table, n_parts)
    predictive = spark.fit(model, frame, "y", **columns)
    assert not hasattr(model, "coef_")  # it stays as it is
    agree(predictive, learn_stream(model, table, "y", **columns))


def test_empty_and_skewed_partitions_change_nothing(session: Any) -> None:
    """Three shops hashed to twelve partitions leave most of them empty."""
    table, columns = table_of(), {"drop": ["shop", "zone"]}
    frame = session.createDataFrame(table).repartition(12, "shop")
    predictive = spark.fit(BayesianLinearRegression(), frame, "y", **columns)
    agree(predictive, learn_stream(BayesianLinearRegression(), table, "y", **columns))


def test_learning_goes_on_from_what_a_model_knows(session: Any) -> None:
    table = table_of()
    model = learn_stream(BayesianLinearRegression(), table[:100], "y", drop=["shop"])
    before = files.dumps(model)
    more = spark.partial_fit(model, partitioned(session, table[100:], 3), "y")
    assert files.dumps(model) == before
    agree(more, learn_stream(BayesianLinearRegression(), table, "y", drop=["shop"]))


def test_missing_values_become_means_that_predictions_use_too(session: Any) -> None:
    table = table_of()
    sizes = [None if i % 7 == 0 else size for i, size in enumerate(table["size"].to_pylist())]
    table = table.set_column(0, "size", [sizes]).drop_columns(["shop"])
    frame, means = partitioned(session, table, 5), ColumnMeans()
    predictive = spark.fit(BayesianLinearRegression(), frame, "y", missing=means)
    agree(predictive, learn_stream(BayesianLinearRegression(), table, "y", missing=means.fixed))
    skipped = spark.fit(BayesianLinearRegression(), frame, "y", missing="skip")
    agree(skipped, learn_stream(BayesianLinearRegression(), table, "y", missing="skip"))
    with pytest.raises(TableError, match=r"partition \d: .*row \d+, column 'size' is missing"):
        spark.fit(BayesianLinearRegression(), frame, "y")
    filled = spark.predict(predictive, frame, missing=means.fixed).select("mean").toArrow()
    assert filled["mean"].null_count == 0
    left = spark.predict(predictive, frame, missing="skip").select("size", "mean").toArrow()
    assert left["mean"].is_null().to_pylist() == left["size"].is_null().to_pylist()


def test_names_may_have_dots_and_backticks(session: Any) -> None:
    table = table_of().rename_columns(["si.ze", "a`ge", "zone", "weight", "shop", "y"])
    predictive = spark.fit(BayesianLinearRegression(), session.createDataFrame(table), "y")
    agree(predictive, learn_stream(BayesianLinearRegression(), table, "y"))


def test_a_classifier_learns_all_labels(session: Any) -> None:
    table = table_of().append_column("warm", pa.array(table_of()["size"].to_numpy() > 0.3))
    frame = session.createDataFrame(table.sort_by("warm"))
    predictive = spark.fit(BayesianLogisticRegression(), frame, "warm", features=["age", "weight"])
    assert predictive.classes_.tolist() == [False, True]
    labels = spark.predict(predictive, frame).select("label", "p=True").toArrow()
    assert set(labels["label"].to_pylist()) <= {False, True}


# ---- predictions and scores ----------------------------------------------------------------------


def test_predictions_are_columns_beside_the_others(session: Any) -> None:
    table = table_of()
    model = learn_stream(BayesianLinearRegression(), table, "y", drop=["shop", "zone"])
    predictive = spark.predict(model, partitioned(session, table, 3), level=0.9, quantiles=[0.25])
    assert predictive.columns == [*table.column_names, "mean", "std", "lower", "upper", "q0.25"]
    rows = predictive.toArrow()
    X = pa.table({name: rows[name] for name in model.feature_names_in_})
    wanted = model.predict_distribution(X)
    np.testing.assert_allclose(rows["mean"], wanted.mean(), rtol=1e-12)
    np.testing.assert_allclose(rows["upper"], wanted.interval(0.9)[1], rtol=1e-12)
    np.testing.assert_allclose(rows["q0.25"], wanted.ppf(0.25), rtol=1e-12)


def test_predictions_of_what_does_not_fit_are_refused_at_once(session: Any) -> None:
    table = table_of()
    model = learn_stream(BayesianLinearRegression(), table, "y", features=["size"])
    frame = session.createDataFrame(table)
    with pytest.raises(
        TableError, match=r"has a column 'std', which is a name used for predictions: rename it"
    ):
        spark.predict(model, frame.withColumnRenamed("age", "std"))
    with pytest.raises(ValueError, match="give the means of the rows that were learned"):
        spark.predict(model, frame, missing="mean")
    with pytest.raises(TableError, match="feature 'size' is not a column"):
        spark.predict(model, frame.drop("size"))
    with pytest.raises(TableError, match="has no feature names"):
        spark.predict(BayesianLinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), frame)


def test_scores_are_those_of_one_machine(session: Any) -> None:
    frame = session.createDataFrame(table_of()).repartition(5, "shop").persist()
    table = frame.toArrow()  # in the order of partitions
    model = BayesianLinearRegression(prior_precision=2.0, noise_prior=(1.0, 1.0))
    columns: dict[str, Any] = {"drop": ["shop"], "weight": "weight"}
    predictive = spark.evaluate(model, frame, "y", intervals=(0.5, 0.9), **columns)
    stream = open_table(table, "y", **columns)
    names = stream.feature_names
    rows = ((name_columns(X, names), y, weight) for X, y, weight in stream)
    whole = progressive_validation(model, rows, levels=(0.5, 0.9))
    assert predictive.n_rows == whole.n_rows == table.num_rows
    assert predictive.coverage == pytest.approx(whole.coverage)
    for name in ("mae", "rmse", "log_score", "crps"):
        np.testing.assert_allclose(getattr(predictive, name), getattr(whole, name), rtol=1e-9)
    assert predictive.pit is not None
    np.testing.assert_array_equal(predictive.pit.counts, whole.pit.counts)  # type: ignore[union-attr]
    frame.unpersist()


def test_scores_of_rows_that_change_between_the_passes_are_refused(
    session: Any, tmp_path: Path
) -> None:
    def fewer_later(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            later = (tmp_path / "read").exists()
            (tmp_path / "read").touch()
            yield batch.slice(0, batch.num_rows // 2) if later else batch

    table = table_of(30).drop_columns(["zone"])
    frame = session.createDataFrame(table).coalesce(1)
    frame = frame.mapInArrow(fewer_later, frame.schema)
    with pytest.raises(TableError, match="gave other rows the second time: persist it"):
        spark.evaluate(BayesianLinearRegression(), frame, "y")


def test_a_model_for_each_key(session: Any) -> None:
    table = table_of()
    predictive = spark.fit_by_key(
        BayesianLinearRegression(), partitioned(session, table, 3), "y", "shop", weight="weight"
    )
    assert predictive.columns == ["shop", "model", "error"]
    found = {row.shop: files.loads(bytes(row.model)) for row in predictive.collect()}
    assert sorted(found) == [0, 1, 2]
    for shop, model in found.items():
        rows = table.filter(pa.compute.equal(table["shop"], shop))
        wanted = learn_stream(BayesianLinearRegression(), rows, "y", drop=["shop"], weight="weight")
        agree(model, wanted)


def test_a_key_that_can_not_be_learned_says_why(session: Any) -> None:
    table = pa.table({"key": ["a", "a", "b"], "x": [1.0, 2.0, None], "y": [1.0, 2.0, 3.0]})
    frame = session.createDataFrame(table)
    strict = spark.fit_by_key(BayesianLinearRegression(), frame, "y", ["key"]).collect()
    assert {row.key: row.model is None for row in strict} == {"a": False, "b": True}
    assert "column 'x' is missing" in next(row.error for row in strict if row.key == "b")
    with pytest.raises(TableError, match="key 'shop' is not a column"):
        spark.fit_by_key(BayesianLinearRegression(), frame, "y", "shop", features=["x"])
    skipped = spark.fit_by_key(BayesianLinearRegression(), frame, "y", "key", missing="skip")
    assert {row.key: row.error for row in skipped.collect()} == {
        "a": None,
        "b": "every row was left out",
    }


def test_groups_that_learn_from_each_other(session: Any) -> None:
    table = table_of().drop_columns(["zone"])
    model = GroupedRegression(by="shop", prior_mean=0.0, prior_precision=1.0)
    predictive = spark.fit(model, partitioned(session, table, 4), "y")
    X, y = table.drop_columns(["y"]), table["y"].to_numpy()
    whole = GroupedRegression(by="shop", prior_mean=0.0, prior_precision=1.0).fit(X, y)
    np.testing.assert_allclose(predictive.predict(X), whole.predict(X), rtol=1e-10)
    assert predictive.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    rows = spark.predict(predictive, session.createDataFrame(table)).toArrow()
    np.testing.assert_allclose(rows["mean"], whole.predict(X), rtol=1e-10)


# ---- failures ------------------------------------------------------------------------------------


def dying_once(frame: Any, marker: Path, parent: bool = False) -> Any:
    """Return the frame; the first task that reads it is killed half way through its rows."""

    def pass_on(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch.slice(0, batch.num_rows // 2)
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                yield batch.slice(batch.num_rows // 2)
                continue
            daemon = os.getppid()
            with open(f"/proc/{daemon}/stat") as stat:
                executor = int(stat.read().rsplit(")", 1)[1].split()[1])
            os.kill(executor if parent else os.getpid(), signal.SIGKILL)

    return frame.mapInArrow(pass_on, frame.schema)


def test_a_killed_worker_changes_nothing(session: Any, tmp_path: Path) -> None:
    table = table_of()
    frame = dying_once(partitioned(session, table, 4), tmp_path / "died")
    predictive = spark.fit(BayesianLinearRegression(), frame, "y", drop=["shop", "zone"])
    assert (tmp_path / "died").exists()
    agree(predictive, learn_stream(BayesianLinearRegression(), table, "y", drop=["shop", "zone"]))


def test_what_is_wrong_is_told_before_anything_runs(session: Any) -> None:
    frame = session.createDataFrame(table_of())
    with pytest.raises(TableError, match="target 'z' is not a column"):
        spark.fit(BayesianLinearRegression(), frame, "z")
    with pytest.raises(ValueError, match="depends on the order of the rows"):
        spark.fit(BayesianLinearRegression(forgetting=Exponential(0.9)), frame, "y")
    with pytest.raises(TypeError, match=r"a dict is not a Spark data frame"):
        spark.fit(BayesianLinearRegression(), {"y": [1.0]}, "y")
    with pytest.raises(TableError, match="has no row to learn"):
        spark.fit(BayesianLinearRegression(), frame.limit(0), "y", drop=["zone"])
    with pytest.raises(TypeError, match="progressive_classification"):
        spark.evaluate(BayesianLogisticRegression(), frame, "zone")


# ---- streams -------------------------------------------------------------------------------------


def streamed(session: Any, folder: Path, learn: Any, checkpoint: Path) -> None:
    schema = session.read.parquet(str(folder)).schema
    stream = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    writer = stream.parquet(str(folder)).writeStream.foreachBatch(learn)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()


def test_a_stream_is_learned_exactly_once(session: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    table = table_of(90).drop_columns(["zone"])
    rows = tmp_path / "rows"
    rows.mkdir()
    for i in range(3):
        parquet.write_table(table[30 * i : 30 * i + 30], rows / f"{i}.parquet")
    path = tmp_path / "model.posterity"
    learn = spark.learn_micro_batches(BayesianLinearRegression(), path, "y", drop=["shop"])
    kept: list[tuple[Any, int]] = []
    n_calls = 0

    def failing_once(frame: Any, batch: int) -> None:
        """Fail after the second micro-batch was learned, and before Spark knows."""
        nonlocal n_calls
        n_calls += 1
        learn(frame, batch)
        learn(frame, batch)  # again: passed over
        kept.append((frame, batch))
        if n_calls == 2:
            raise RuntimeError("the driver is lost")

    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match="the driver is lost"):
        streamed(session, rows, failing_once, tmp_path / "checkpoint")
    streamed(session, rows, failing_once, tmp_path / "checkpoint")
    model, notes = files.load_with_notes(path)
    assert [batch for _, batch in kept] == [0, 1, 1, 2]
    agree(model, learn_stream(BayesianLinearRegression(), table, "y", drop=["shop"]))
    ((_, last),) = notes["micro_batches"].items()
    assert last == 2


def test_an_empty_micro_batch_is_counted_and_notes_stay(session: Any, tmp_path: Path) -> None:
    path, table = tmp_path / "model.posterity", table_of().drop_columns(["zone"])
    files.save(BayesianLinearRegression(), path, notes={"owner": "me"})
    learn = spark.learn_micro_batches(BayesianLinearRegression(), path, "y", missing="skip")
    frame = session.createDataFrame(table)
    learn(frame.limit(0), 0)
    assert files.load_with_notes(path)[1] == {"owner": "me", "micro_batches": {"": 0}}
    learn(frame, 1)
    learn(frame, 1)
    learn(frame, 0)
    learn(session.createDataFrame(table[:5].set_column(0, "size", [[None] * 5])), 2)
    agree(files.load(path), learn_stream(BayesianLinearRegression(), table, "y"))
    with pytest.raises(ValueError, match="the means of a stream are unknown while it runs"):
        spark.learn_micro_batches(BayesianLinearRegression(), path, "y", missing="mean")


# ---- processes -----------------------------------------------------------------------------------


@SLOW
def test_a_cluster_that_loses_an_executor_is_one_machine(
    surroundings: Path, session: Any, tmp_path: Path
) -> None:
    """Two executors, each a process of its own; one is killed while it learns."""
    import pyspark

    session.stop()
    cluster = session_on("local-cluster[2,1,1024]", surroundings)
    try:
        table = table_of()
        frame = partitioned(cluster, table, 6)
        columns: dict[str, Any] = {"drop": ["shop"], "weight": "weight"}
        dying = dying_once(frame.drop("zone"), tmp_path / "died", parent=True)
        predictive = spark.fit(BayesianLinearRegression(), dying, "y", **columns)
        assert (tmp_path / "died").exists()
        whole = learn_stream(
            BayesianLinearRegression(), table.drop_columns(["zone"]), "y", **columns
        )
        agree(predictive, whole)
        agree(
            spark.fit(BayesianLinearRegression(), frame, "y", **columns),
            learn_stream(BayesianLinearRegression(), table, "y", **columns),
        )
    finally:
        cluster.stop()
        # Where workers write is fixed: beside Spark itself.
        shutil.rmtree(Path(pyspark.__file__).parent / "work", ignore_errors=True)
