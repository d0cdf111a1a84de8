"""Logs: from tables, arrays, obp's dictionaries and JSON lines, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity.bandits import Bandit, InverseGap
from posterity.off_policy import Log, evaluate

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")


def frame(n: int = 40) -> Any:
    rng = np.random.default_rng(0)
    arms = rng.choice(["blue", "red"], size=n)
    table = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "zone": rng.choice(["a", "b"], size=n),
            "arm": arms,
            "reward": rng.random(n),
            "p_red": 0.25,
            "p_blue": 0.75,
            "key": np.arange(n),
        }
    )
    return table.assign(p=np.where(arms == "red", 0.25, 0.75))


def same(one: Log, other: Log) -> None:
    ours, its = one.collected(), other.collected()
    assert one.arms == other.arms
    for name in ("X", "rewards", "propensity", "propensities"):
        np.testing.assert_allclose(getattr(ours, name), getattr(its, name), rtol=1e-15)
    np.testing.assert_array_equal(ours.arms, its.arms)


def test_propensities_of_all_arms_are_known_by_their_shape() -> None:
    X, arms, rewards = np.zeros((3, 1)), ["a", "b", "a"], [1.0, 0.0, 1.0]
    every = np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])
    predictive = [
        evaluate(log, {"a": "a"}, ["ips"])["a", "ips"].value
        for log in (Log.of(X, arms, rewards, every), Log.of(X, arms, rewards, propensities=every))
    ]
    assert predictive[0] == predictive[1]
    with pytest.raises(ValueError, match=r"propensity is \(3, 1, 1\): it must be \(3,\)"):
        Log.of(X, arms, rewards, every[:, :1, None])


def test_tables_of_all_kinds_are_the_same_log(tmp_path: Path) -> None:
    table = frame()
    how: dict[str, Any] = {"propensities": "p_*", "drop": ["key", "p"]}
    log = Log.open(table, **how)
    assert log.arms == ("red", "blue")
    assert log.feature_names == ("age", "zone=a", "zone=b")
    whole = log.collected()
    assert [log.arms[place] for place in whole.arms] == table["arm"].tolist()
    np.testing.assert_allclose(whole.propensity, table["p"])
    table.to_parquet(tmp_path / "log.parquet")
    table.to_csv(tmp_path / "log.csv", index=False)
    for other in (
        pa.Table.from_pandas(table),
        tmp_path / "log.parquet",
        tmp_path / "log.csv",
    ):
        same(log, Log.open(other, **how))
    pl = pytest.importorskip("polars")
    same(log, Log.open(pl.from_pandas(table), **how))


def test_arms_are_found_in_their_column_or_named() -> None:
    table = frame()
    found = Log.open(table, propensity="p", features=["age"])
    assert found.arms == ("blue", "red")
    more = Log.open(table, propensity="p", features=["age"], arms=["red", "green", "blue"])
    assert more.arms == ("red", "green", "blue")
    assert evaluate(more, ["green"], ["ips"])["green", "ips"].note.startswith("the log has no sup")
    reader = pa.Table.from_pandas(table).to_reader()
    with pytest.raises(ValueError, match="name the arms in arms="):
        Log.open(reader, propensity="p")
    once = Log.open(pa.Table.from_pandas(table).to_reader(), propensity="p", arms=["blue", "red"])
    assert evaluate(once, ["uniform"], ["ips"]).rows == len(table)


def test_arms_may_be_numbers() -> None:
    table = frame().assign(arm=lambda t: np.where(t["arm"] == "red", 7, 3))
    log = Log.open(table, propensity="p", features=["age"])
    assert log.arms == (3, 7)
    whole = log.collected()
    assert [log.arms[place] for place in whole.arms] == table["arm"].tolist()
    with pytest.raises(ValueError, match=r"the arm in row \d+ is 7"):
        Log.open(table, propensity="p", arms=[3, 4]).collected()


def test_what_can_not_be_is_told() -> None:
    table = frame()
    for value in (0.0, 1.5, -0.1):
        table.loc[17, "p"] = value
        with pytest.raises(ValueError, match=rf"propensity in row 17 is {value:g}"):
            Log.open(table, propensity="p").collected()
    with pytest.raises(ValueError, match=r"arm in row \d+ is 'red'"):
        Log.open(frame(), propensity="p", arms=["blue", "green"]).collected()
    with pytest.raises(ValueError, match="'rewards' is not a column of the file; did you mean"):
        Log.open(frame(), reward="rewards")
    with pytest.raises(ValueError, match="the id 3 occurs 2 times"):
        Log.open(frame().assign(key=lambda t: t["key"].replace(4, 3)), id="key")
    with pytest.raises(ValueError, match="sum to 1"):
        Log.open(frame().assign(p_red=0.5), propensities="p_*", drop=["p"]).collected()
    with pytest.raises(ValueError, match="no column matches the pattern"):
        Log.open(frame(), propensities="q_*")
    with pytest.raises(ValueError, match="no column for the arm 'green'"):
        Log.open(frame(), propensities="p_*", arms=["red", "green"])
    with pytest.raises(ValueError, match="is a feature and has another role"):
        Log.open(frame(), propensity="p", features=["age", "p"])
    with pytest.raises(ValueError, match="reward in row 1 is nan"):
        Log.of([[0.0], [1.0]], [0, 1], [1.0, np.nan])
    with pytest.raises(ValueError, match="the arm in row 1 is 'c'"):
        Log.of([[0.0], [1.0]], ["a", "c"], [1.0, 0.0], names=["a", "b"])
    with pytest.raises(ValueError, match="give X of shape"):
        Log.of([[0.0], [1.0]], ["a", "c"], [1.0, 0.0, 2.0])


def test_dictionary_of_obp_in_and_out() -> None:
    log = Log.open(frame(), propensities="p_*", drop=["key", "p"])
    feedback = log.to_obp()
    assert feedback["n_rounds"] == 40
    assert feedback["pi_b"].shape == (40, 2, 1)
    back = Log.from_obp(feedback)
    assert back.arms == (0, 1)
    for method in ("ips", "snips", "replay"):
        one = evaluate(log, ["uniform"], [method])["uniform", method].value
        assert evaluate(back, ["uniform"], [method])["uniform", method].value == one
    with pytest.raises(ValueError, match="no 'reward'"):
        Log.from_obp({**feedback, "reward": None})
    with pytest.raises(ValueError, match="several positions"):
        Log.from_obp({**feedback, "position": np.arange(40) % 3})


PERSONALIZER = {
    "_label_cost": -1.0,
    "_label_probability": 0.8,
    "_label_Action": 2,
    "_labelIndex": 1,
    "EventId": "e1",
    "a": [2, 1],
    "c": {
        "User": {"age": 31, "device": "mobile"},
        "_multi": [{"TAction": {"topic": "sport"}}, {"TAction": {"topic": "news"}}],
    },
    "p": [0.8, 0.2],
}


def test_lines_of_personalizer(tmp_path: Path) -> None:
    second = json.loads(json.dumps(PERSONALIZER))
    second |= {"_label_cost": 0.0, "_label_probability": 0.2, "a": [1, 2], "p": [0.2, 0.8]}
    second["c"]["User"] = {"age": 50, "device": "desktop"}
    path = tmp_path / "log.dsjson"
    lines = [json.dumps(PERSONALIZER), "", json.dumps({"RewardValue": 1.0}), json.dumps(second)]
    path.write_text("\n".join(lines))
    log = Log.from_dsjson(path)
    assert log.arms == ("news", "sport")
    assert log.feature_names == ("User.age", "User.device=desktop", "User.device=mobile")
    whole = log.collected()
    np.testing.assert_array_equal(whole.X, [[31.0, 0.0, 1.0], [50.0, 1.0, 0.0]])
    assert [log.arms[place] for place in whole.arms] == ["news", "sport"]
    np.testing.assert_array_equal(whole.rewards, [1.0, 0.0])
    np.testing.assert_array_equal(whole.propensity, [0.8, 0.2])
    np.testing.assert_array_equal(whole.propensities, [[0.8, 0.2], [0.8, 0.2]])
    path.write_text(json.dumps(PERSONALIZER) + "\n" + '{"_label_cost": 1')
    with pytest.raises(ValueError, match="line 2 is not a dsjson decision"):
        Log.from_dsjson(path)


def test_json_lines_in_and_out(tmp_path: Path) -> None:
    log = Log.open(frame(), propensities="p_*", drop=["key", "p"], arms=["blue", "red"])
    log.to_dsjson(tmp_path / "log.dsjson")
    same(log, Log.from_dsjson(tmp_path / "log.dsjson"))
    known = Log.open(frame(), propensity="p", drop=["key", "p_red", "p_blue"])
    known.to_dsjson(tmp_path / "known.dsjson")
    np.testing.assert_allclose(
        Log.from_dsjson(tmp_path / "known.dsjson").collected().propensity,
        known.collected().propensity,
    )
    with pytest.raises(ValueError, match="no propensities"):
        Log.open(frame()).to_dsjson(tmp_path / "none.dsjson")


def test_rankings_are_judged_by_their_first_places() -> None:
    n, rng = 4000, np.random.default_rng(0)
    X = rng.normal(size=(n, 1))
    bandit = Bandit(arms=["a", "b", "c"], policy=InverseGap(floor=0.3), rng=0)
    bandit.learn(X[:6], ["a", "b", "c"] * 2, np.array([1.0, 0.0, -1.0] * 2) * X[:6, 0])
    made = bandit.decide(X, k=2)
    with pytest.raises(ValueError, match="of rankings, give the first places"):
        Log.of(X, made.arms, np.zeros(n), made.propensity)
    first = made.arms[:, 0]
    slopes = np.select([first == "a", first == "b"], [1.0, 0.0], -1.0)
    rewards = 0.5 + slopes * X[:, 0] + 0.5 * rng.normal(size=n)
    log = Log.of(X, first, rewards, propensities=made.propensities)
    estimate = evaluate(log, ["uniform"], ["ips"])["uniform", "ips"]
    assert abs(estimate.value - 0.5) < 4.0 * estimate.std_error


def test_a_log_has_decisions_and_evaluate_a_log() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        Log.of(np.zeros((0, 1)), [], [])
    with pytest.raises(TypeError, match="log is of type dict"):
        evaluate({"a": 1}, ["uniform"], ["ips"])  # type: ignore[arg-type]
