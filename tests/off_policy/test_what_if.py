"""What a log says in sentences: which policy earns more, how sure that is, what to do next."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit

from posterity.off_policy import Always, Log, evaluate, what_if

Array = NDArray[np.float64]


def make_log(
    pays: tuple[float, ...], shares: tuple[float, ...], rows: int = 3000
) -> tuple[Log, NDArray[Any], Array]:
    """A log of arms 0, 1, ... that pay 1 with these probabilities, chosen in these shares."""
    rng = np.random.default_rng(0)
    arms = rng.choice(len(pays), size=rows, p=shares)
    rewards = (rng.random(rows) < np.array(pays)[arms]).astype(float)
    chances = np.tile(shares, (rows, 1))
    X, names = np.zeros((rows, 1)), range(len(pays))
    return Log.of(X, arms, rewards, propensities=chances, names=names), arms, rewards


def test_a_better_arm_is_named_with_what_it_earns_at_least() -> None:
    log = make_log((0.1, 0.3), (0.8, 0.2))[0]
    found = what_if(log)
    best = found.estimates[0]
    assert best.policy == "always 1"
    assert best.value == evaluate(log, {"one": 1}, ["dr"])["one", "dr"].value
    least = best.low - found.evaluation["logged", "dr"].high
    assert f"at least {least:.2g} more" in found.answer
    assert found.next_steps == ("Use 'always 1', and log the probability of each choice again.",)


def test_arms_that_are_alike_keep_the_policy_and_say_how_many_rows_would_tell() -> None:
    found = what_if(make_log((0.1, 0.12), (0.8, 0.2))[0])
    assert "No other policy is surely better" in found.answer
    assert found.next_steps[0].startswith("Keep the policy of the log.")
    assert "decisions more will show it" in found.next_steps[0]


def test_an_arm_without_support_is_a_reason_and_a_remedy() -> None:
    found = what_if(make_log((0.1, 0.3, 0.5), (0.5, 0.5, 0.0))[0])
    assert math.isnan(found.estimates[-1].value)
    assert any("'always 2' can't be judged" in step for step in found.next_steps)
    assert "the log has no support for 100%" in str(found)


def test_few_rows_say_how_many_more_to_collect() -> None:
    steps = what_if(make_log((0.4, 0.6), (0.95, 0.05), rows=200)[0]).next_steps
    assert any("collect about" in step for step in steps)


def test_a_log_without_propensities_is_judged_by_a_model_and_says_so() -> None:
    _, arms, rewards = make_log((0.1, 0.3), (0.8, 0.2))
    found = what_if(Log.of(np.zeros((3000, 1)), arms, rewards))
    assert all(one.method == "dm" for one in found.estimates)
    assert any("Log the probability of each choice" in step for step in found.next_steps)


def test_policies_can_be_given_by_name() -> None:
    found = what_if(make_log((0.1, 0.3), (0.8, 0.2))[0], {"mine": lambda X: np.ones(len(X), int)})
    assert [one.policy for one in found.estimates] == ["mine", "logged"]


@pytest.mark.parametrize(("rows", "more"), [(2, 28), (5, 25), (20, 10)])
def test_a_log_that_is_too_small_says_so(rows: int, more: int) -> None:
    """Nothing speaks for its own policy, either."""
    chosen = [0, 1] * rows
    log = Log.of(
        np.zeros((rows, 1)), chosen[:rows], np.ones(rows), np.full(rows, 0.5), names=[0, 1]
    )
    found = what_if(log, {"both": "uniform"})
    assert "The log is too small to tell" in found.answer
    assert f"about {more} more are needed" in found.answer
    (step,) = found.next_steps
    assert step.startswith(f"Collect about {more} decisions more")
    without = what_if(Log.of(np.zeros((rows, 1)), chosen[:rows], np.ones(rows), names=[0, 1]))
    assert without.missing_rows == more


def test_an_arm_that_the_log_does_not_know_cannot_be_judged() -> None:
    log = make_log((0.1, 0.3), (0.8, 0.2))[0]
    found = what_if(log, {"new": Always(2), "old": Always(0)})
    assert math.isnan(found.evaluation["new", "dr"].value)
    assert any(
        "'new' can't be judged: the log has no support for 100%" in s for s in found.next_steps
    )
    assert found.missing_rows == 0


def test_a_policy_may_not_have_the_name_of_the_logs_own() -> None:
    log = make_log((0.1, 0.3), (0.8, 0.2))[0]
    with pytest.raises(ValueError, match="a policy is called 'logged'"):
        what_if(log, {"logged": 1})
    assert [one.policy for one in what_if(log, "logged").estimates] == ["logged"]


def test_the_course_adds_up_to_the_log() -> None:
    log, arms, rewards = make_log((0.1, 0.3), (0.8, 0.2), rows=2503)
    course = what_if(log).course
    first = [row for row in course if row["name"] == "0"]
    assert [row["rows"] for row in first][-1] == 2503
    assert len(first) == 20
    ends = [0, *(row["rows"] for row in first)]
    for row, start, end in zip(first, ends[:-1], ends[1:], strict=True):
        mine = rewards[start:end][arms[start:end] == 0]
        assert row["value"] == pytest.approx(mine.mean())
        assert row["propensity"] == pytest.approx(0.8)
        width = stdtrit(len(mine) - 1, 0.975) * mine.std(ddof=1) / math.sqrt(len(mine))
        assert row["high"] - row["value"] == pytest.approx(width, rel=1e-5)


def test_one_decision_and_arms_that_never_came() -> None:
    found = what_if(Log.of([[0.0]], ["a"], [1.0], [0.5], names=["a", "b"]))
    assert [row["rows"] for row in found.course] == [1, 1]
    assert math.isnan(found.course[1]["value"])
    assert found.answer


def test_rewards_that_are_all_alike_have_no_interval_and_two_have_a_wide_one() -> None:
    arms, rewards = np.array(["a", "b"] * 40), np.array([1e9, 7.0, 1e9 + 2.0, 7.0] * 20)
    log = Log.of(np.zeros((80, 1)), arms, rewards, np.full(80, 0.5))
    a, b = what_if(log).course[-2:]
    assert b["value"] == 7.0
    assert math.isnan(b["low"])
    assert math.isnan(b["high"])
    ends = 1.0 + np.array([-12.7062, 12.7062])  # Student-t with one degree of freedom
    assert np.array([a["low"], a["high"]]) - 1e9 == pytest.approx(ends, abs=1e-4)


def test_numbers_are_written_so_that_a_reader_sees_them() -> None:
    rng = np.random.default_rng(0)
    arms = rng.choice(["a", "b"], 400)
    rewards = 50_000.0 + 5.0 * (arms == "b") + rng.normal(size=400)
    found = what_if(Log.of(np.zeros((400, 1)), arms, rewards, np.full(400, 0.5)))
    assert "e+" not in str(found)
    assert "'always b' would have earned 50005.03 a" in found.answer
    wide = what_if(Log.of(np.zeros((400, 1)), arms, 1e3 * rewards, np.full(400, 0.5)))
    assert "e+" not in str(wide)
    assert "'always b' would have earned 50,005,026 a" in wide.answer
    one = what_if(Log.of(np.zeros((1, 1)), ["a"], [1.0], [0.5]))
    assert "as 1 decision of its own would tell" in str(one)
    alone = what_if(Log.of(np.zeros((99, 1)), ["a"] * 99, arms[:99] == "a", [0.3] * 99))
    assert "right?" in str(alone)
    assert "right?." not in str(alone)


def test_a_table_is_not_a_log() -> None:
    with pytest.raises(TypeError, match="make a Log, by"):
        what_if({"arm": ["a"], "reward": [1.0]})  # type: ignore[arg-type]
