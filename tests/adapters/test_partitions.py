"""Partitions that are learned apart and merged: the core that engines of many machines share."""

from __future__ import annotations

import copy
import itertools
import pickle
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
    files,
)
from posterity.basis import Fourier
from posterity.calibration import Conformal
from posterity.evaluation import merge_validations as merged_results
from posterity.evaluation import progressive_validation
from posterity.forgetting import Exponential

pa: Any = pytest.importorskip("pyarrow")

from posterity.adapters import _partitions as core  # noqa: E402
from posterity.adapters._survey import merge_answers, survey  # noqa: E402
from posterity.io import ColumnMeans, TableError, learn_stream, open_table  # noqa: E402
from posterity.io.learning import name_columns  # noqa: E402
from posterity.io.reading import ReadSettings  # noqa: E402

MODELS = {
    "learned": BayesianLinearRegression(),
    "relevance": BayesianLinearRegression(prior_precision="ard"),
    "given": BayesianLinearRegression(prior_mean=0.5, prior_precision=2.0, noise_prior=(1.0, 1.0)),
    "flat": BayesianLinearRegression(prior_precision=0.0),
    "known noise": BayesianLinearRegression(noise_precision=2.0),
}


def table_of(n: int = 400, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    size, age = rng.normal(size=n), 100.0 + rng.normal(size=n)
    zone = rng.choice(["north", "south", "west"], size=n)
    y = 2.0 + 3.0 * size - age + (zone == "south") + rng.normal(size=n)
    weight = rng.integers(0, 3, size=n).astype(float)
    return pa.table({"size": size, "age": age, "zone": zone, "weight": weight, "y": y})


def cut(table: Any, borders: list[int]) -> list[Any]:
    """Partitions between the borders, of several batches each; some may be empty."""
    edges = [0, *sorted(borders), table.num_rows]
    pairs = itertools.pairwise(edges)
    return [table.slice(a, b - a).to_batches(max_chunksize=50) for a, b in pairs]


def planned(model: Any, table: Any, parts: list[Any], **columns: Any) -> core.Task:
    chosen = core.Columns(target="y", **columns)
    asked = core.questions(model, table.schema, chosen)
    predictive = [survey(asked, part) for part in parts] if asked.columns else []
    return core.plan(model, table.schema, chosen, predictive)


def learned(model: Any, table: Any, borders: list[int], **columns: Any) -> Any:
    parts = cut(table, borders)
    task = pickle.loads(pickle.dumps(planned(model, table, parts, **columns)))
    contents = [core.learn(task, part) for part in parts]
    predictive = as_tree([content for content in contents if content is not None])
    assert files.loads_with_notes(predictive)[1] == {"rows": table.num_rows}
    return core.continue_from(model, predictive)


def as_tree(contents: list[bytes]) -> bytes:
    """Merge by four, and what that gives by four again."""
    while len(contents) > 1:
        contents = [core.merge_contents(contents[i : i + 4]) for i in range(0, len(contents), 4)]
    return contents[0]


def agree(one: Any, other: Any, tolerance: float = 1e-10) -> None:
    for name in ("coef_", "intercept_", "noise_precision_", "log_evidence_", "n_observations_"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance, err_msg=name
        )
    assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()


# ---- one machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n_parts", [1, 2, 17, 64])
def test_any_number_of_partitions_is_one_machine(name: str, n_parts: int) -> None:
    table, model = table_of(), MODELS[name]
    borders = [i * table.num_rows // n_parts for i in range(1, n_parts)]
    agree(
        learned(model, table, borders, weight="weight"),
        learn_stream(copy.deepcopy(model), table, "y", weight="weight"),
    )


@settings(max_examples=25)
@given(st.lists(st.integers(0, 400), max_size=40), st.sampled_from(sorted(MODELS)))
def test_empty_and_skewed_partitions_too(borders: list[int], name: str) -> None:
    table, model = table_of(), MODELS[name]
    agree(learned(model, table, borders), learn_stream(copy.deepcopy(model), table, "y", drop=()))


@settings(max_examples=25)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=20), st.randoms(use_true_random=False))
def test_the_order_of_partitions_makes_no_difference(borders: list[int], random: Any) -> None:
    table, model = table_of(), MODELS["learned"]
    parts = cut(table, borders)
    task = planned(model, table, parts)
    contents = [content for part in parts if (content := core.learn(task, part)) is not None]
    shuffled = random.sample(contents, len(contents))
    agree(files.loads(core.merge_contents(shuffled)), files.loads(as_tree(contents)))


def test_a_task_run_twice_tells_the_same_bytes() -> None:
    table = table_of()
    (part,) = cut(table, [])
    task = planned(MODELS["learned"], table, [part])
    assert core.learn(task, part) == core.learn(task, part)


def test_a_task_has_no_rows_and_its_answer_none_either() -> None:
    sizes = []
    for n in (400, 40000):
        table = table_of(n)
        (part,) = cut(table, [])
        task = planned(MODELS["learned"], table, [part])
        sizes.append((len(pickle.dumps(task)), len(core.learn(task, part) or b"")))
    assert sizes[0][0] == sizes[1][0]
    assert abs(sizes[0][1] - sizes[1][1]) < 100  # digits of counts


def test_levels_are_those_of_all_partitions() -> None:
    zones = ["a"] * 30 + ["b"] * 30 + ["c"] * 30
    table = pa.table({"zone": zones, "x": np.arange(90.0) % 7, "y": np.arange(90.0) % 11})
    model = learned(BayesianLinearRegression(), table, [30, 60])
    assert model.feature_names_in_.tolist() == ["zone=b", "zone=c", "x"]
    agree(model, learn_stream(BayesianLinearRegression(), table, "y"))
    given_levels = {"zone": ["c", "a"]}
    agree(
        learned(BayesianLinearRegression(), table, [30, 60], levels=given_levels),
        learn_stream(BayesianLinearRegression(), table, "y", levels=given_levels),
    )


@pytest.mark.parametrize("columns", [{"features": ["zone", "size"]}, {"drop": ["age", "weight"]}])
def test_columns_are_chosen_as_on_one_machine(columns: dict[str, Any]) -> None:
    table, model = table_of(), BayesianLinearRegression()
    parts = cut(table, [100])
    task = planned(model, table, parts, **columns)
    assert task.columns(table.schema.names) == ["size", "zone", "y"]
    agree(learned(model, table, [100], **columns), learn_stream(model, table, "y", **columns))


def test_a_partition_with_a_single_row_and_more_columns_than_rows() -> None:
    table = table_of(5)
    for name in ("learned", "given", "flat"):
        agree(
            learned(MODELS[name], table, [1, 2, 3, 4]),
            learn_stream(copy.deepcopy(MODELS[name]), table, "y"),
        )


def test_learning_goes_on_from_what_a_model_knows() -> None:
    table = table_of()
    model = learn_stream(BayesianLinearRegression(), table[:100], "y")
    before = files.dumps(model)
    more = learned(model, table[100:], [50, 200])
    assert files.dumps(model) == before
    agree(more, learn_stream(BayesianLinearRegression(), table, "y"))


# ---- missing values ------------------------------------------------------------------------------


def with_holes() -> Any:
    table, rng = table_of(), np.random.default_rng(1)
    for name in ("size", "zone", "y"):
        column = table.column(name).to_pylist()
        holes = rng.random(len(column)) < 0.1
        values = [None if hole else value for hole, value in zip(holes, column, strict=True)]
        table = table.set_column(table.schema.names.index(name), name, [values])
    return table


def test_rows_with_missing_values_are_skipped() -> None:
    table, model = with_holes(), BayesianLinearRegression()
    agree(
        learned(model, table, [10, 200], missing="skip"),
        learn_stream(model, table, "y", missing="skip"),
    )


def test_means_are_those_of_all_partitions() -> None:
    table, means = with_holes(), ColumnMeans()
    apart = learned(BayesianLinearRegression(), table, [10, 200], missing=means)
    agree(apart, learned(BayesianLinearRegression(), table, [300], missing="mean"))
    running = ColumnMeans()
    learn_stream(BayesianLinearRegression(), table, "y", missing=running)
    assert means.fixed.keys() == running.fixed.keys()
    np.testing.assert_allclose(list(means.fixed.values()), list(running.fixed.values()))
    agree(apart, learn_stream(BayesianLinearRegression(), table, "y", missing=means.fixed))


def test_a_missing_value_is_refused_with_its_row_and_column() -> None:
    with pytest.raises(TableError, match=r"row \d+, column '(size|zone|y)' is missing"):
        learned(BayesianLinearRegression(), with_holes(), [200])


def test_a_partition_whose_rows_are_all_left_out_tells_nothing() -> None:
    table = pa.table({"x": [1.0, 2.0, None, None], "y": [1.0, 2.0, 3.0, 4.0]})
    parts = cut(table, [2])
    task = planned(MODELS["given"], table, parts, missing="skip")
    assert core.learn(task, parts[1]) is None
    assert core.learn(task, []) is None


# ---- other models --------------------------------------------------------------------------------


def test_a_basis_has_the_domain_of_all_partitions() -> None:
    table = table_of()
    model = BayesianLinearRegression(basis=Fourier(n_frequencies=3))
    apart = learned(model, table, [100, 300], features=["size", "age"])
    sizes = table.column("size").to_numpy()
    assert apart.basis_.domain_[0].tolist() == [sizes.min(), sizes.max()]
    whole = learn_stream(model, table, "y", features=["size", "age"])  # one batch holds all rows
    agree(apart, whole)
    agree(learned(apart, table, [50]), learn_stream(whole, table, "y"))


def test_classes_are_those_of_all_partitions_and_the_fit_is_near() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=20000)
    label = np.where(x + rng.logistic(size=20000) > 0.0, "yes", "no")
    table = pa.table({"x": x, "y": label})[:200].sort_by("y")
    model = learned(BayesianLogisticRegression(prior_precision=1.0), table, [30, 60, 160])
    assert model.classes_.tolist() == ["no", "yes"]
    mixed = pa.table({"x": x, "y": label})
    near = learned(BayesianLogisticRegression(), mixed, [3000, 6000, 16000])
    whole = BayesianLogisticRegression().fit(x[:, None], label)
    sd = np.sqrt(whole.posterior_.cov[1, 1])
    assert abs(near.coef_[0, 0] - whole.coef_[0, 0]) < 0.1 * sd


def test_counts_are_near_one_machine() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=20000)
    table = pa.table({"x": x, "y": rng.poisson(np.exp(0.5 + 0.3 * x))})
    near = learned(BayesianPoissonRegression(), table, [3000, 6000, 16000])
    whole = BayesianPoissonRegression().fit(x[:, None], table.column("y").to_numpy())
    assert abs(near.coef_[0] - whole.coef_[0]) < 0.1 * np.sqrt(whole.posterior_.cov[1, 1])


@pytest.mark.parametrize(
    ("precision", "tolerance"), [({"prior_mean": 0.0, "prior_precision": 1.0}, 1e-10), ({}, 1e-6)]
)
def test_models_of_groups_are_one_machine(precision: dict[str, Any], tolerance: float) -> None:
    pytest.importorskip("pandas")
    table = with_holes()
    shop = np.random.default_rng(2).integers(0, 20, size=table.num_rows)
    table = table.append_column("shop", pa.array(shop)).append_column("day", pa.array(shop // 7))
    model = GroupedRegression(by=["day", "shop"], **precision)
    apart = learned(model, table, [150, 151, 290], missing="skip", drop=["weight"])
    assert apart.feature_names_in_.tolist() == ["size", "age", "zone=south", "zone=west"]
    rows = table.to_pandas().dropna()
    keys = rows[["day", "shop"]]
    X = np.column_stack(
        [rows["size"], rows["age"], rows["zone"] == "south", rows["zone"] == "west"]
    )
    plain = GroupedRegression(**precision).fit(X.astype(float), rows["y"], groups=keys)
    assert dict(zip(apart.groups_, apart.counts_, strict=True)) == dict(
        zip(plain.groups_, plain.counts_, strict=True)
    )
    wanted = plain.predict_distribution(X.astype(float), groups=keys)
    batch = table.filter(pa.compute.is_valid(table["y"])).combine_chunks().to_batches()[0]
    predictive = core.predict_batch(apart, batch, level=0.5, missing="skip").to_pandas().dropna()
    assert list(predictive) == ["mean", "std", "lower", "upper"]
    np.testing.assert_allclose(predictive["mean"], wanted.mean(), rtol=tolerance)
    np.testing.assert_allclose(predictive["upper"], wanted.interval(0.5)[1], rtol=tolerance)
    empty = core.predict_batch(apart, batch.slice(0, 0), level=0.5)
    assert empty.schema == core.prediction_schema(apart, level=0.5)


def test_scores_of_groups_are_those_of_one_machine() -> None:
    table = table_of().append_column("shop", pa.array(np.arange(400) % 9)).drop_columns(["zone"])
    model = GroupedRegression(by="shop", prior_mean=0.0, prior_precision=1.0)
    parts = cut(table, [90, 200])
    task = planned(model, table, parts)
    begun = core.find_start_models(model, task, [core.learn(task, part) for part in parts])
    predictive = [core.score(task, *pair)[1] for pair in zip(begun, parts, strict=True)]
    X, y = table.drop_columns(["y"]), table["y"].to_numpy()
    whole = progressive_validation(model, X, y)
    # How far the noises of groups differ is learned again on a schedule, which each part begins.
    np.testing.assert_allclose(merged_results(predictive).log_score, whole.log_score, rtol=1e-3)


def test_models_of_groups_have_to_name_their_keys() -> None:
    schema, columns = table_of().schema, core.Columns(target="y")
    with pytest.raises(ValueError, match="give them, as in by='shop'"):
        core.questions(GroupedRegression(), schema, columns)
    with pytest.raises(TableError, match="key 'shop' is not a column"):
        core.questions(GroupedRegression(by="shop"), schema, columns)


def test_models_that_can_not_be_merged_are_refused() -> None:
    schema, columns = table_of().schema, core.Columns(target="y")
    with pytest.raises(TypeError, match=r"Conformal can't be learned in partitions: it has no mer"):
        core.questions(Conformal(BayesianLinearRegression()), schema, columns)
    fading = BayesianLinearRegression(forgetting=Exponential(0.9))
    with pytest.raises(
        ValueError, match=r"depends on the order of the rows, and partitions have no order"
    ):
        core.questions(fading, schema, columns)


def test_columns_of_a_model_that_knows_its_own_are_refused() -> None:
    table = table_of()
    model = learn_stream(BayesianLinearRegression(), table, "y")
    for columns, message in (
        ({"features": ["age"]}, "leave out features and drop"),
        ({"missing": "mean"}, "give the means that were used then"),
    ):
        with pytest.raises(TableError, match=message):
            core.plan(model, table.schema, core.Columns(target="y", **columns))
    curve = learn_stream(
        BayesianLinearRegression(basis=Fourier(n_frequencies=2)), table, "y", features=["age"]
    )
    with pytest.raises(TableError, match="give the basis a domain"):
        core.plan(curve, table.schema, core.Columns(target="y"))


def test_columns_that_can_not_be_used_are_refused_before_anything_runs() -> None:
    table = table_of()
    for columns, message in (
        ({"target": "z"}, "target 'z' is not a column"),
        ({"target": "zone"}, "the target 'zone' holds text"),
        ({"target": "y", "weight": "w"}, "weight 'w' is not a column"),
        ({"target": "y", "missing": "often"}, "missing must be one of error, skip, mean"),
    ):
        with pytest.raises(ValueError, match=message):
            core.plan(BayesianLinearRegression(), table.schema, core.Columns(**columns))
    many = pa.table({"id": [str(i) for i in range(300)], "y": np.arange(300.0)})
    with pytest.raises(TableError, match="'id' has more than 256 different values"):
        learned(BayesianLinearRegression(), many, [])
    with pytest.raises(
        TableError,
        match="'zone' has no values, or the table has no rows: drop the column, or give a table "
        "with rows",
    ):
        learned(BayesianLinearRegression(), table[:0], [])


# ---- scores --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.lists(st.integers(0, 400), max_size=20))
def test_scores_of_partitions_are_those_of_one_machine(borders: list[int]) -> None:
    table, model = table_of(), MODELS["given"]
    parts = cut(table, borders)
    task = planned(model, table, parts, weight="weight")
    begun = core.find_start_models(model, task, [core.learn(task, part) for part in parts])
    predictive = [core.score(task, *pair, levels=(0.5,)) for pair in zip(begun, parts, strict=True)]
    assert [rows for rows, _ in predictive] == [sum(map(len, part)) for part in parts]
    apart = merged_results([result for _, result in predictive if result is not None])
    stream = open_table(table, "y", weight="weight")
    names = stream.feature_names
    whole = progressive_validation(
        copy.deepcopy(model), ((name_columns(X, names), y, w) for X, y, w in stream), levels=(0.5,)
    )
    for name in ("mae", "rmse", "log_score", "crps"):
        np.testing.assert_allclose(getattr(apart, name), getattr(whole, name), rtol=1e-9)
    assert (apart.n_rows, apart.coverage) == (whole.n_rows, pytest.approx(whole.coverage))


def test_scores_are_near_those_of_one_machine_where_the_prior_is_learned() -> None:
    """The prior is chosen anew at other rows."""
    table, model = table_of(), MODELS["learned"]
    parts = cut(table, [100, 200, 300])
    task = planned(model, table, parts)
    begun = core.find_start_models(model, task, [core.learn(task, part) for part in parts])
    predictive = [core.score(task, *pair)[1] for pair in zip(begun, parts, strict=True)]
    stream = open_table(table, "y")
    rows = ((name_columns(X, stream.feature_names), y) for X, y in stream)
    whole = progressive_validation(copy.deepcopy(model), rows)
    assert abs(merged_results(predictive).log_score - whole.log_score) < 1e-3


# ---- predictions ---------------------------------------------------------------------------------


def test_predictions_have_a_row_for_each_row() -> None:
    table = table_of(20)
    model = learn_stream(BayesianLinearRegression(), table, "y", drop=["weight"])
    (batch,) = table.to_batches()
    predictive = core.predict_batch(model, batch, level=0.9, quantiles=(0.1,))
    assert predictive.schema.names == ["mean", "std", "lower", "upper", "q0.1"]
    assert predictive.schema == core.prediction_schema(model, level=0.9, quantiles=(0.1,))
    X = np.column_stack([table.column("size"), table.column("age")])
    for level in ("south", "west"):
        X = np.column_stack([X, np.equal(table.column("zone").to_pylist(), level)])
    wanted = model.predict_distribution(name_columns(X, model.feature_names_in_))
    np.testing.assert_array_equal(predictive.column("mean"), wanted.mean())
    np.testing.assert_array_equal(predictive.column("lower"), wanted.interval(0.9)[0])
    assert core.predict_batch(model, batch.slice(0, 0)).num_rows == 0


def test_a_large_batch_is_predicted_in_pieces_and_told_whole() -> None:
    model = learn_stream(MODELS["given"], pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), "y")
    x = np.arange(70_000.0)
    predictive = core.predict_batch(model, pa.record_batch({"x": x}))
    np.testing.assert_allclose(
        predictive.column("mean"), model.predict(pa.table({"x": x})), rtol=1e-12
    )


def test_a_row_that_is_left_out_has_null_for_a_prediction() -> None:
    model = learn_stream(MODELS["given"], pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), "y")
    batch = pa.record_batch({"x": [1.0, None, 2.0]})
    assert core.predict_batch(model, batch, missing="skip").column(
        "mean"
    ).is_null().to_pylist() == [
        False,
        True,
        False,
    ]
    alone = core.predict_batch(model, batch.slice(1, 1), missing="skip")
    assert alone.to_pylist() == [{"mean": None, "std": None}]


def test_a_survey_adds_up_in_any_order() -> None:
    table = table_of()
    asked = core.Questions(levels=("zone",), numbers=("size",))
    parts = [survey(asked, part) for part in cut(table, [3, 100, 100])]
    forth, back = merge_answers(parts), merge_answers(reversed(parts))
    assert forth.levels == back.levels
    np.testing.assert_allclose(forth.numbers["size"], back.numbers["size"], rtol=1e-13)
    assert forth.get_range("size") == back.get_range("size")


# ---- counts with exposures -----------------------------------------------------------------------


def make_counts(n: int) -> Any:
    rng = np.random.default_rng(7)
    size, years = rng.normal(size=n), rng.uniform(0.2, 3.0, size=n)
    counts = rng.poisson(years * np.exp(0.5 + 0.4 * size))
    return pa.table({"size": size, "years": years, "shift": np.log(years), "hits": counts})


def test_exposures_and_offsets_reach_every_partition() -> None:
    table = make_counts(2000)
    model = BayesianPoissonRegression(prior_precision=1.0)
    whole = learn_stream(
        BayesianPoissonRegression(prior_precision=1.0),
        table.select(["size", "years", "hits"]), "hits", exposure="years",
    )  # fmt: skip
    for role, name, dropped in (("exposure", "years", "shift"), ("offset", "shift", "years")):
        columns = core.Columns(target="hits", drop=[dropped], **{role: name})
        task = core.plan(model, table.schema, columns)
        assert task.names == ("size",)
        parts = [table[:900].to_batches(), table[900:].to_batches()]
        found = files.loads(core.merge_contents([core.learn(task, part) for part in parts]))
        np.testing.assert_allclose(found.coef_, whole.coef_, atol=0.02)
        np.testing.assert_allclose(found.intercept_, whole.intercept_, atol=0.02)
        (batch,) = table[:50].combine_chunks().to_batches()
        predicted = core.predict_batch(whole, batch, level=0.9, **{role: name})
        years = np.asarray(batch["years"])
        expected = whole.predict_distribution(table.select(["size"])[:50], exposure=years)
        np.testing.assert_allclose(predicted["mean"], expected.mean())
        np.testing.assert_allclose(predicted["upper"], expected.interval(0.9)[1])
        start = core.find_start_models(model, task, [None])[0]
        rows, scores = core.score(task, start, parts[0])
        assert rows == 900
        assert scores is not None
        assert scores.baselines == {} or scores.log_score > -3.0


def test_exposures_are_for_counts_and_must_be_there() -> None:
    table = make_counts(20)
    with pytest.raises(TypeError, match="exposure is for models of counts, not for BayesianLinear"):
        core.plan(
            BayesianLinearRegression(), table.schema, core.Columns(target="hits", exposure="size")
        )
    with pytest.raises(TableError, match=r"'yeers' is not a column .* did you mean 'years'"):
        core.plan(
            BayesianPoissonRegression(), table.schema, core.Columns(target="hits", exposure="yeers")
        )
    model = BayesianPoissonRegression().fit(table.select(["size"]), table["hits"])
    with pytest.raises(TableError, match="offset 'shft' is not a column of the file"):
        core.check_features(model, table.schema, ReadSettings(offset="shft"))
    columns = core.Columns(target="hits", exposure="size")
    task = core.plan(BayesianPoissonRegression(), table.schema, columns)
    with pytest.raises(TableError, match="an exposure must be positive and finite"):
        core.learn(task, table.to_batches())
