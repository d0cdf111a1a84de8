"""What a bandit is given: rows, mappings, frames; and what it refuses, with nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import BayesianLogisticRegression, BayesianPoissonRegression, GroupedRegression
from posterity.bandits import Bandit, ThompsonSampling
from posterity.files import dumps

NAMED = pd.DataFrame({"age": [1.0, 2.0, 3.0], "cost": [0.0, 1.0, 0.5]})


def test_frames_and_mappings() -> None:
    bandit = Bandit(arms=["a", "b"], rng=0).learn(NAMED, ["a", "b", "a"], [1.0, 2.0, 0.0])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        row = {"cost": rng.normal(), "age": rng.normal()}
        bandit.learn_one(row, "a" if seed % 2 else "b", rng.normal())
    here = {"cost": 1.0, "age": 2.0}
    by_name = bandit.decide(here)
    np.testing.assert_allclose(by_name.expected, bandit.decide([2.0, 1.0]).expected)
    np.testing.assert_allclose(by_name.expected, bandit.decide(NAMED).expected[1])
    np.testing.assert_allclose(by_name.expected, bandit.decide(NAMED.iloc[1]).expected)
    assert bandit.feature_names_in_.tolist() == ["age", "cost"]
    with pytest.raises(ValueError, match="missing 'age'"):
        bandit.decide({"cost": 1.0})
    with pytest.raises(ValueError, match="features"):
        bandit.learn_one({"cost": 1.0}, "a", 1.0)


def test_mappings_from_the_start() -> None:
    bandit = Bandit(arms=["a", "b"])
    assert bandit.decide({"x": 1.0}).arm in ("a", "b")
    bandit.learn_one({"x": 1.0, "z": 2.0}, "a", 1.0)
    assert bandit.feature_names_in_.tolist() == ["x", "z"]
    with pytest.raises(TypeError, match="mapping"):
        Bandit(arms=["a", "b"]).learn([[1.0]], ["a"], [1.0]).learn_one({"x": 1.0}, "a", 1.0)


def test_names_of_arms_may_be_anything() -> None:
    names = ["a", 1, ("x", 2)]
    bandit = Bandit(arms=names, rng=0)
    decisions = bandit.decide(np.ones((50, 1)))
    assert set(decisions.arms) == set(names)
    bandit.learn(decisions.contexts, decisions.arms, np.arange(50.0))
    assert bandit.decide([1.0]).arm in names
    assert Bandit(arms=np.arange(3)).decide([[1.0]]).arms.dtype.kind == "i"


Change = Callable[[Bandit], Any]
BAD: list[tuple[str, type[Exception], Change]] = [
    ("row 1 is 'c'", ValueError, lambda b: b.learn([[1.0], [2.0]], ["a", "c"], [1.0, 2.0])),
    ("is 'c'", ValueError, lambda b: b.learn_one([1.0], "c", 1.0)),
    (r"is \['a'\]", ValueError, lambda b: b.learn([[1.0]], [["a"]], [1.0])),
    ("row 0 is nan", ValueError, lambda b: b.learn([[1.0]], ["a"], [np.nan])),
    ("not a number", ValueError, lambda b: b.learn([[1.0]], ["a"], ["much"])),
    ("not finite", ValueError, lambda b: b.learn_one([1.0], "a", np.inf)),
    ("one of each", ValueError, lambda b: b.learn([[1.0]], ["a", "b"], [1.0])),
    ("one of each", ValueError, lambda b: b.learn([[1.0]], ["a"], [1.0, 2.0])),
    ("2 features", ValueError, lambda b: b.learn([[1.0, 2.0]], ["a"], [1.0])),
    ("NaN", ValueError, lambda b: b.learn([[np.nan]], ["a"], [1.0])),
    ("negative", ValueError, lambda b: b.learn([[1.0]], ["a"], [1.0], [-1.0])),
    ("never learned", ValueError, lambda b: b.unlearn([[7.0]], ["a"], [1.0])),
    ("no arm is allowed in row 0", ValueError, lambda b: b.decide([[1.0]], allowed=[False, False])),
    ("allowed has shape", ValueError, lambda b: b.decide([[1.0]], allowed=[1, 0])),
    ("k is 3", ValueError, lambda b: b.decide([[1.0]], k=3)),
    ("k is 0", ValueError, lambda b: b.decide([1.0], k=0)),
    ("2 features", ValueError, lambda b: b.decide([[1.0, 2.0]])),
    ("shape", ValueError, lambda b: b.decide([1.0, 2.0])),
    ("finite", ValueError, lambda b: b.decide([np.nan])),
    ("contains NaN", ValueError, lambda b: b.decide([[np.nan]])),
    ("other bandit's arms", ValueError, lambda b: b.merge(Bandit(arms=["b", "a"]))),
    (
        "features",
        ValueError,
        lambda b: b.merge(Bandit(arms=["a", "b"]).learn([[1.0, 2.0]], ["a"], [1.0])),
    ),
]


@pytest.mark.parametrize(("message", "kind", "change"), BAD, ids=[message for message, *_ in BAD])
def test_what_is_refused_changes_nothing(
    message: str, kind: type[Exception], change: Change
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 1))
    bandit = Bandit(arms=["a", "b"], rng=0).learn(X, ["a", "b"] * 15, rng.normal(size=30))
    before = dumps(bandit)
    with pytest.raises(kind, match=message):
        change(bandit)
    assert dumps(bandit) == before


def test_rewards_of_the_wrong_kind() -> None:
    for rewards in ([2.0], [0.5]):
        bandit = Bandit(BayesianLogisticRegression(), arms=["a", "b"])
        with pytest.raises(ValueError, match="0 or 1"):
            bandit.learn([[1.0]], ["a"], rewards)
        bandit.learn([[1.0]], ["a"], [1.0])
        with pytest.raises(ValueError, match="0 or 1"):
            bandit.learn_one([1.0], "a", rewards[0])
    with pytest.raises(ValueError, match="count"):
        Bandit(BayesianPoissonRegression(), arms=["a", "b"]).learn([[1.0]], ["a"], [-1.0])


def test_parameters_that_are_refused() -> None:
    for bandit, message in (
        (Bandit(arms=[]), "at least one"),
        (Bandit(arms=["a", "a"]), "of its own"),
        (Bandit(arms=["a"], sharing="some"), "sharing is 'some'"),  # type: ignore[arg-type]
        (Bandit(BayesianLogisticRegression(), arms=["a"], sharing="learned"), "normal noise"),
        (Bandit(arms=["a", "b"], sharing="all", arm_features=[[1.0]]), "1 rows for 2 arms"),
    ):
        with pytest.raises(ValueError, match=message):
            bandit.decide([1.0])
    for bandit, message in (
        (Bandit(arms=["a"], policy="greedy"), "posterity.bandits"),  # type: ignore[arg-type]
        (Bandit(GroupedRegression(), arms=["a"], sharing="all"), "sharing"),
        (Bandit(object(), arms=["a"]), "predict_mean_distribution"),
    ):
        with pytest.raises(TypeError, match=message):
            bandit.decide([1.0])
    with pytest.raises(ValueError, match="width"):
        ThompsonSampling(width=0.0)
