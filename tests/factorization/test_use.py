"""What users pass, streams, recommendations, and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from posterity import files
from posterity.factorization import BayesianFactorizationMachine
from tests.factorization.test_laws import rated


def test_frames_arrays_and_lists_are_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = rated(n=300)
    frame = pandas.DataFrame({"user": X[:, 0].astype(str), "item": X[:, 1]})
    frame["user"] = frame["user"].astype("category")
    expected = BayesianFactorizationMachine(2).fit(X, y).predict(X)
    model = BayesianFactorizationMachine(2).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["user", "item"]
    np.testing.assert_array_equal(model.predict(frame[["item", "user"]]), expected)
    listed = [[str(u), int(i)] for u, i in X]
    np.testing.assert_array_equal(
        BayesianFactorizationMachine(2).fit(listed, y).predict(listed), expected
    )
    polars = pytest.importorskip("polars")
    other = polars.DataFrame({"user": [str(u) for u in X[:, 0]], "item": X[:, 1]})
    np.testing.assert_array_equal(
        BayesianFactorizationMachine(2).fit(other, y).predict(other), expected
    )


def test_a_stream_learns_nearly_what_a_fit_does() -> None:
    X, y = rated(n=2400)
    stream = BayesianFactorizationMachine(2)
    for start in range(0, 2000, 100):
        stream.partial_fit(X[start : start + 100], y[start : start + 100])
    whole = BayesianFactorizationMachine(2).fit(X[:2000], y[:2000])
    test = slice(2000, None)
    errors = [np.sqrt(np.mean((m.predict(X[test]) - y[test]) ** 2)) for m in (stream, whole)]
    assert errors[0] < errors[1] + 0.03
    assert stream.n_observations_ == 2000


def test_a_new_user_is_learned_from_single_rows() -> None:
    X, y = rated()
    model = BayesianFactorizationMachine(2).fit(X, y)
    before = model.predict_distribution([[99, 0]])
    for item in range(10):
        model.learn_one([99, item], 9.0)
    after = model.predict_distribution([[99, 0]])
    assert after.std()[0] < before.std()[0]
    assert after.mean()[0] > before.mean()[0] + 1.0


def test_what_is_refused_changes_nothing() -> None:
    X, y = rated(n=300)
    model = BayesianFactorizationMachine(1).fit(X, y)
    before = model.predict(X)
    refused: list[tuple[Any, Any, str]] = [
        ([[0, 0, 0]], [1.0], "X has 3 features, but BayesianFactorizationMachine is expecting 2"),
        ([[0, 0]], [np.nan], "y is nan in row 0"),
        ([[0, 0]], [1.0, 2.0], "y has shape"),
        ([["new", None]], [1.0], "the keys are|missing"),
    ]
    for rows, targets, message in refused:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(rows, targets)
    assert np.array_equal(model.predict(X), before)
    assert len(model.levels_[0]) == 40


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rank": -1}, "rank is -1"),
        ({"rank": "most"}, "rank is 'most'"),
        ({"noise_precision": 0.0}, "noise_precision is 0.0"),
        ({"max_sweeps": 0}, "max_sweeps is 0"),
        ({"numeric": ["age"]}, "numeric names 'age'"),
    ],
)
def test_parameters_out_of_range(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianFactorizationMachine(**parameters).fit([[0, 1]], [1.0])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows(n: int) -> None:
    X, y = rated(n=n)
    for rank in (0, 8, "auto"):
        model = BayesianFactorizationMachine(rank).fit(X, y)
        assert np.isfinite(model.predict([[0, 0], [99, 99]])).all()
    model.fit(X, np.zeros(n))
    assert np.isfinite(model.predict(X)).all()


def test_recommendations() -> None:
    X, y = rated()
    model = BayesianFactorizationMachine(2).fit(X, y)
    items = model.levels_[1]
    means = model.predict(np.stack([np.full(30, 3), items], axis=1))
    expected = items[np.argsort(-means)]
    assert model.recommend(3, 5, seen=True).tolist() == expected[:5].tolist()
    seen = set(X[X[:, 0] == 3, 1].tolist())
    assert not seen & set(model.recommend(3, 30).tolist())
    assert len(model.recommend(99, 4, policy=0.9)) == 4
    draws = [model.recommend(99, 1, policy="draw", random_state=seed)[0] for seed in range(20)]
    assert len(set(draws)) > 3
    with pytest.raises(ValueError, match="policy is 'best'"):
        model.recommend(3, policy="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two columns of levels"):
        BayesianFactorizationMachine(1).fit(X[:, :1], y).recommend(3)


def test_mappings_are_read_by_their_keys() -> None:
    X, y = rated(n=300)
    rows = [{"user": int(user), "item": f"item {item}"} for user, item in X]
    turned = [{"age": 3, "item": row["item"], "user": row["user"]} for row in rows]
    one, other = BayesianFactorizationMachine(2), BayesianFactorizationMachine(2)
    for row, again, target in zip(rows, turned, y.tolist(), strict=True):
        one.learn_one(row, target)
        assert one.predict_one(row) == one.predict_one(again)
    other.partial_fit(rows[:1], y[:1]).partial_fit(turned[1:], y[1:])
    assert one.feature_names_in_.tolist() == ["user", "item"]
    np.testing.assert_array_equal(one.predict_interval(turned), other.predict_interval(rows))
    with pytest.raises(ValueError, match="row 0 of X lacks the key 'item'"):
        one.learn_one({"user": 3}, 1.0)
    with pytest.raises(TypeError, match="row 1 of X is a list"):
        one.partial_fit([rows[0], [1, 2]], [1.0, 2.0])


@pytest.mark.parametrize("numeric", [None, [1]])
def test_a_row_that_is_refused_leaves_no_new_level(numeric: list[int] | None) -> None:
    model = BayesianFactorizationMachine(2, numeric=numeric)
    model.fit([["ann", 1], ["bob", 2]] * 20, [4.0, 2.0] * 20)
    before = files.dumps(model)
    for row, target in ((["new", 3], 1e308), (["new", None], 1.0), (["new", "tea"], 1.0)):
        with pytest.raises((ValueError, TypeError)):
            model.learn_one(row, target)
    assert files.dumps(model) == before
    model.learn_one(["new", 3], 1.0)
    assert model.levels_[0].tolist() == ["ann", "bob", "new"]


def test_a_copy_goes_its_own_way() -> None:
    X, y = rated(n=300)
    model = BayesianFactorizationMachine(2).fit(X[:100], y[:100])
    for row in range(100, 130):
        model.learn_one(X[row].tolist(), y[row])
    other = deepcopy(model)
    for row in range(130, 140):
        model.learn_one(X[row].tolist(), y[row])
    before = model.predict(X)
    for row in range(140, 150):
        other.learn_one([99, 1000 + row], 5.0)
    assert np.array_equal(model.predict(X), before)
    assert model.n_observations_ == other.n_observations_ == 140
    np.testing.assert_array_equal(model._posterior.y, y[:140])


@pytest.mark.parametrize("name", ["merge", "unlearn", "predict_then_learn"])
def test_what_a_machine_lacks_names_what_does(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': use .*fit\(X, y\)"):
        getattr(BayesianFactorizationMachine(), name)
    assert not hasattr(BayesianFactorizationMachine(), name)
