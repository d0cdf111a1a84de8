"""Where groups are found by their keys, and when their prior is learned."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import GroupedRegression
from posterity.files import dumps, loads
from posterity.grouped.index import KeyIndex
from posterity.linear.keys import read_keys
from posterity.posteriors import _group_belief as beliefs
from posterity.posteriors._group_turns import find_updates_around


def places(index: KeyIndex, keys: list[object] | np.ndarray, *, new: bool = False) -> list[int]:
    read = read_keys([keys], ["key"])
    return index.places(read, new=new)[read.numbers].tolist()


def test_whole_numbers_and_what_equals_them_are_one_key() -> None:
    index = KeyIndex()
    assert places(index, np.array([5, -3, 5, 2**60]), new=True) == [0, 1, 0, 2]
    assert isinstance(index.labels, np.ndarray)
    assert places(index, [5.0, 7.5, -3]) == [0, -1, 1]
    assert places(index, [True, 2**70]) == [-1, -1]
    assert (index.place(5), index.place(np.int64(-3)), index.place(7)) == (0, 1, None)
    assert (index.place("5"), index.place(2**70)) == (None, None)
    image = index.take_snapshot()
    assert places(index, [8, 7.5, 5], new=True) == [3, 4, 0]
    assert places(index, [7.5, 8.0, 2**60]) == [4, 3, 2]
    assert index.list_keys().tolist() == [5.0, -3.0, 2.0**60, 8.0, 7.5]
    image.restore()
    assert places(index, [8, 7.5, 5]) == [-1, -1, 0]
    assert index.list_keys().tolist() == [5, -3, 2**60]
    assert places(index.keep(np.array([False, True, True])), np.array([5, -3])) == [-1, 0]


@pytest.mark.parametrize("keys", [[3, 1, 2], ["c", "a", "b"], [1.5, 2, 3], [(1, "a"), (2, "b")]])
def test_copies_find_the_same(keys: list[object]) -> None:
    index = KeyIndex()
    read = read_keys([keys], ["key"])
    expected = index.places(read, new=True)
    for twin in (copy.deepcopy(index), pickle.loads(pickle.dumps(index)), index.copy()):
        assert np.array_equal(twin.places(read), expected)
        assert twin.is_distinct
        places(twin, [*keys[:1], keys[-1]], new=True)
        assert list(twin.list_keys()) == list(index.list_keys())


@pytest.mark.parametrize("groups", [4, 300])
def test_the_prior_is_learned_at_turns_alone(groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = []

    def counting(*arguments: object, **keywords: object) -> object:
        learned.append(1)
        return original(*arguments, **keywords)  # type: ignore[arg-type]

    original = beliefs.learn_prior
    monkeypatch.setattr(beliefs, "learn_prior", counting)
    rng = np.random.default_rng(0)
    X, keys = rng.normal(size=(400, 2)), rng.integers(0, groups, size=400)
    y = X[:, 0] * (1.0 + keys % 3) + rng.normal(size=400)
    model = GroupedRegression()
    turns = set()
    for i in range(400):
        if i:
            one = model.predict_one(X[i], group=int(keys[i]))
            many = model.predict(X[i : i + 1], groups=keys[i : i + 1])
            assert one == pytest.approx(many[0], rel=1e-9, abs=1e-9)
        model.learn_one(X[i], y[i], group=int(keys[i]))
        turns.add(find_updates_around(i + 1, 3)[0])
    assert len(learned) <= len(turns) + 3  # rows that open a direction are turns of their own
    assert np.allclose(loads(dumps(model)).predict(X, groups=keys), model.predict(X, groups=keys))


def test_a_row_that_cannot_be_learned_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    X, keys = rng.normal(size=(60, 2)), rng.integers(0, 3, size=60)
    model = GroupedRegression().partial_fit(X, X[:, 0] + rng.normal(size=60), groups=keys)
    before = dumps(model)
    for x, y, weight in [
        ([np.nan, 1.0], 1.0, 1.0),
        ([1.0, 1.0], np.inf, 1.0),
        ([1e200, 1.0], 1.0, 1.0),
        ([1.0], 1.0, 1.0),
        ([1.0, 1.0], 1.0, -1.0),
    ]:
        with pytest.raises(ValueError, match=r"x |y |weight"):
            model.learn_one(x, y, weight, group=0)
        assert dumps(model) == before


@given(keys=st.lists(st.integers(-3, 12), min_size=1) | st.lists(st.text(max_size=2), min_size=1))
def test_single_keys_are_placed_as_many_are(keys: list[Any]) -> None:
    one, many = KeyIndex(), KeyIndex()
    for index in (one, many):
        index.places(read_keys([keys[:1]], ["key"]), new=True)
    added = [one.add(key) for key in keys]
    read = read_keys([keys], ["key"])
    assert added == many.places(read, new=True)[read.numbers].tolist()
    assert [one.look_up(key) for key in keys] == added
    image = one.take_snapshot()
    other = 99 if isinstance(keys[0], int) else "other"
    assert one.look_up(other) == -1
    assert one.add(other) == len(many.labels)
    image.restore()
    assert one.look_up(other) == -1
    assert one.look_up(None) is one.add(None) is one.add(2.5) is None
