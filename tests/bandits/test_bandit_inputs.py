"""What a bandit is given: rows, mappings, frames; and what it refuses, with nothing changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import BayesianLogisticRegression, BayesianPoissonRegression, GroupedRegression
from posterity.bandits import Bandit, ThompsonSampling, UpperConfidenceBound
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


def test_arms_are_allowed_by_name() -> None:
    bandit = Bandit(arms=["a", "b", 3], rng=0)
    X = np.ones((2, 1))
    for allowed, mask in (
        (["a", 3], [True, False, True]),
        ({"b"}, [False, True, False]),
        ("b", [False, True, False]),
        (np.array(["a", "b"]), [True, True, False]),
        ([["a"], ["b", 3]], [[True, False, False], [False, True, True]]),
        ([{3}, ("a", "b")], [[False, False, True], [True, True, False]]),
    ):
        predictive = bandit.propensities(X, allowed=allowed)
        np.testing.assert_array_equal(predictive, bandit.propensities(X, allowed=mask))
    assert Bandit(arms=[0, 1, 2]).decide([1.0], allowed=[2]).arm == 2
    for wrong, message in ((["a", "q"], "'q', which is not an arm"), ([], "no arm is allowed")):
        with pytest.raises(ValueError, match=message):
            bandit.decide(X, allowed=wrong)
    with pytest.raises(ValueError, match="true or false"):  # numbers of arms, or flags?
        Bandit(arms=[0, 1]).decide([1.0], allowed=[1, 0])


def test_names_of_columns_count_and_not_their_order() -> None:
    bandit = Bandit(arms=["a", "b"], rng=0).learn(NAMED, ["a", "b", "a"], [1.0, 2.0, 0.0])
    other = NAMED[["cost", "age"]]
    rows: list[Any] = other.to_dict("records")
    predictive = bandit.propensities(NAMED)
    for same in (other, rows, [other.iloc[row] for row in range(3)]):
        np.testing.assert_array_equal(bandit.propensities(same), predictive)
    np.testing.assert_array_equal(bandit.propensities(other.iloc[1]), predictive[1:2])
    with pytest.raises(ValueError, match="feature names"):
        bandit.decide(NAMED.rename(columns={"age": "years"}))
    fresh = Bandit(arms=["a", "b"], rng=0)
    fresh.learn(rows, ["a", "b", "a"], [1.0, 2.0, 0.0])
    np.testing.assert_allclose(fresh.propensities(NAMED), predictive)


def test_decisions_are_learned_as_they_are() -> None:
    X = np.random.default_rng(0).normal(size=(6, 2))
    one, many = (Bandit(arms=["a", "b", "c"], rng=1) for _ in range(2))
    made = many.decide(X)
    many.learn(made, np.arange(6.0))
    for row in range(6):
        one.learn_one(made[row], float(row))
    by_hand = Bandit(arms=["a", "b", "c"]).learn(X, made.arms, np.arange(6.0))
    for bandit in (one, many):
        np.testing.assert_allclose(bandit.propensities(X), by_hand.propensities(X), atol=1e-9)
    ranked = many.decide(X, k=2)
    by_hand.learn(np.repeat(X, 2, axis=0), ranked.arms.ravel(), np.arange(12.0))
    many.learn(ranked, np.arange(12.0).reshape(6, 2))
    np.testing.assert_allclose(many.propensities(X), by_hand.propensities(X), atol=1e-9)
    with pytest.raises(ValueError, match="each of 2 places"):
        many.learn(ranked, np.arange(6.0))
    with pytest.raises(TypeError, match="rewards are missing"):
        many.learn(X, made.arms)
    one.learn(X[0], "a", 1.0).learn(X, "a", np.zeros(6))


def test_decisions_are_copied_with_their_propensities() -> None:
    bandit = Bandit(arms=["a", "b"], rng=0).learn(NAMED, ["a", "b", "a"], [1.0, 2.0, 0.0])
    many = bandit.decide(NAMED)
    assert len(list(many)) == 3
    for made in (many, many[1], bandit.decide(NAMED.iloc[0])):
        copied = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(copied.propensities, made.propensities)


def test_policies_have_names() -> None:
    for policy in ("ucb", "UCB", UpperConfidenceBound):
        bandit = Bandit(arms=["a", "b"], policy=policy, rng=0).learn([[1.0]], ["a"], [1.0])  # type: ignore[arg-type]
        same = Bandit(arms=["a", "b"], policy=UpperConfidenceBound(), rng=0)
        same.learn([[1.0]], ["a"], [1.0])
        assert (bandit.propensities([[1.0]]) == same.propensities([[1.0]])).all()
    with pytest.raises(ValueError, match="'thompson', 'ucb'"):
        Bandit(arms=["a"], policy="best").decide([1.0])


Change = Callable[[Bandit], Any]
BAD: list[tuple[str, type[Exception], Change]] = [
    ("row 1 is 'c'", ValueError, lambda b: b.learn([[1.0], [2.0]], ["a", "c"], [1.0, 2.0])),
    ("is 'c'", ValueError, lambda b: b.learn_one([1.0], "c", 1.0)),
    (r"is \['a'\]", ValueError, lambda b: b.learn([[1.0]], [["a"]], [1.0])),
    ("row 0 is nan", ValueError, lambda b: b.learn([[1.0]], ["a"], [np.nan])),
    ("not a number", ValueError, lambda b: b.learn([[1.0]], ["a"], ["much"])),
    ("reward is nan", ValueError, lambda b: b.learn_one([1.0], "a", np.nan)),
    ("yes and no as 1 and 0", ValueError, lambda b: b.learn_one([1.0], "a", "yes")),
    ("has no features", ValueError, lambda b: b.decide(None)),
    ("must be a finite", ValueError, lambda b: b.learn_one([1.0], "a", np.inf)),
    ("one of each", ValueError, lambda b: b.learn([[1.0]], ["a", "b"], [1.0])),
    ("one of each", ValueError, lambda b: b.learn([[1.0]], ["a"], [1.0, 2.0])),
    ("2 features", ValueError, lambda b: b.learn([[1.0, 2.0]], ["a"], [1.0])),
    ("nan in column 0", ValueError, lambda b: b.learn([[np.nan]], ["a"], [1.0])),
    (
        "nan in row 1, column 0: it must be finite; leave the row out",
        ValueError,
        lambda b: b.learn([[1.0], [np.nan]], ["a", "b"], [1.0, 0.0]),
    ),
    (
        "could not convert 'red' to a number: row 1, column 0; .*encode it",
        ValueError,
        lambda b: b.learn([[1.0], ["red"]], ["a", "b"], [1.0, 0.0]),
    ),
    ("negative", ValueError, lambda b: b.learn([[1.0]], ["a"], [1.0], [-1.0])),
    ("never learned", ValueError, lambda b: b.unlearn([[7.0]], ["a"], [1.0])),
    ("no arm is allowed in row 0", ValueError, lambda b: b.decide([[1.0]], allowed=[False, False])),
    ("allowed has shape", ValueError, lambda b: b.decide([[1.0]], allowed=[1, 0])),
    ("k is 3", ValueError, lambda b: b.decide([[1.0]], k=3)),
    ("k is 0", ValueError, lambda b: b.decide([1.0], k=0)),
    ("k is 2.0", TypeError, lambda b: b.decide([1.0], k=2.0)),
    ("k is '2'", TypeError, lambda b: b.decide([1.0], k="2")),
    ("k is True", TypeError, lambda b: b.decide([1.0], k=True)),
    ("allowed has 'ab'", ValueError, lambda b: b.decide([1.0], allowed="ab")),
    ("the context is the text", TypeError, lambda b: b.decide("1.0")),
    ("reward is not a number", ValueError, lambda b: b.learn_one(np.ones(1), "a", "yes")),
    (
        "1 contexts, 1 arms, former rewards of shape",
        ValueError,
        lambda b: b.correct([[1.0]], ["a"], former=[1.0, 2.0], rewards=[0.0]),
    ),
    ("2 features", ValueError, lambda b: b.decide([[1.0, 2.0]])),
    ("shape", ValueError, lambda b: b.decide([1.0, 2.0])),
    ("finite", ValueError, lambda b: b.decide([np.nan])),
    ("nan in column 0", ValueError, lambda b: b.decide([[np.nan]])),
    ("other is 3", TypeError, lambda b: b.merge(3)),
    ("other bandit's arms", ValueError, lambda b: b.merge(Bandit(arms=["b", "a"]))),
    (
        "features",
        ValueError,
        lambda b: b.merge(Bandit(arms=["a", "b"]).learn([[1.0, 2.0]], ["a"], [1.0])),
    ),
]


@pytest.mark.parametrize("context", [None, [], {}, np.empty(0), np.empty((3, 0))], ids=str)
def test_first_contexts_without_features_are_told_what_to_give(context: Any) -> None:
    with pytest.raises(ValueError, match=r"has no features: .* as in \[1.0\]"):
        Bandit(arms=["a", "b"]).decide(context)


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


@pytest.mark.parametrize(
    ("x", "message"),
    [([np.nan], "nan in column 0: it must be finite"), (["red"], "'red' to a number: row 0")],
)
def test_a_first_context_that_is_refused(x: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bandit(arms=["a", "b"]).learn_one(x, "a", 1.0)


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
        (Bandit(arms=["a", "a"]), "its own name"),
        (Bandit(arms=["a"], sharing="some"), "sharing is 'some'"),  # type: ignore[arg-type]
        (Bandit(BayesianLogisticRegression(), arms=["a"], sharing="learned"), "normal noise"),
        (Bandit(arms=["a", "b"], sharing="all", arm_features=[[1.0]]), "1 rows for 2 arms"),
    ):
        with pytest.raises(ValueError, match=message):
            bandit.decide([1.0])
    for bandit, message in (
        (Bandit(arms=["a"], policy=3), "posterity.bandits"),  # type: ignore[arg-type]
        (Bandit(GroupedRegression(), arms=["a"], sharing="all"), "sharing"),
        (Bandit(object(), arms=["a"]), "predict_mean_distribution"),
    ):
        with pytest.raises(TypeError, match=message):
            bandit.decide([1.0])
    with pytest.raises(ValueError, match="width"):
        ThompsonSampling(width=0.0)


@pytest.mark.parametrize("name", [object(), dict, (one for one in "ab"), [1]])
def test_an_arm_that_no_equal_name_finds_is_refused(name: Any) -> None:
    bandit = Bandit(arms=["a", "b"])
    with pytest.raises(TypeError, match=r"the name of an arm is .*: use text, a number or a tuple"):
        bandit.add_arm(name)
    with pytest.raises(TypeError, match="the name of an arm is"):
        Bandit(arms=["a", name]).decide([1.0])
    assert bandit.decide([1.0]).arm in ("a", "b")


def test_times_of_another_length_are_refused() -> None:
    bandit = Bandit(arms=["a", "b"], model=BayesianLogisticRegression())
    for times in ([1.0], 3.0, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="give one for each of 2 rows"):
            bandit.learn(np.eye(2), ["a", "b"], [1.0, 0.0], times=times)


def test_features_of_arms_by_name() -> None:
    how = {"arms": ["a", "b"], "sharing": "all", "rng": 0}
    rows = Bandit(**how, arm_features=[[0.0, 1.0], [1.0, 0.0]])
    named = Bandit(**how, arm_features={"b": [1.0, 0.0], "a": [0.0, 1.0]})
    X, rewards = np.arange(8.0)[:, None], np.arange(8.0) % 3
    for bandit in (rows, named):
        bandit.learn(X, ["a", "b"] * 4, rewards).add_arm("c", [1.0, 1.0]).retire_arm("a")
    assert named.decide([2.0]).expected == pytest.approx(rows.decide([2.0]).expected)
    for uneven in ({"a": [1.0], "b": [0.0, 2.0]}, {"a": 1.0, "b": 2.0}):
        with pytest.raises(ValueError, match="give a list of as many numbers for each arm"):
            Bandit(**how, arm_features=uneven).arms_  # noqa: B018 - it begins when asked
    with pytest.raises(ValueError, match=r"arm_features has the arms \['a'\]"):
        Bandit(**how, arm_features={"a": [1.0]}).arms_  # noqa: B018 - it begins when asked
    with pytest.raises(ValueError, match=r"as in add_arm\(name, features\)"):
        Bandit(**how).add_arm("c")
    with pytest.raises(ValueError, match='sharing="all" only'):
        Bandit(arms=["a", "b"], arm_features={"a": [1.0], "b": [0.0]}).arms_  # noqa: B018


def test_text_for_one_reward_is_named_without_a_place() -> None:
    with pytest.raises(ValueError, match="not a number: 'yes' is text"):
        Bandit(arms=["a", "b"]).learn_one([1.0], "a", "yes")
