"""An interrupt at any line of the library leaves the old model or the new one."""

from __future__ import annotations

import contextlib
import copy
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from files_kinds import Kind, kinds
from files_models import Case, X, parameters, taught
from scipy.sparse import csr_array

import posterity
from posterity import BayesianLinearRegression, BayesianLogisticRegression, GroupedRegression
from posterity.bandits import Bandit, DelayedRewards
from posterity.files import dumps

HOME = str(Path(posterity.__file__).parent)


class Interrupt(KeyboardInterrupt):
    """What the tests raise."""


def lines_run(change: Callable[[], Any], stop: int = -1) -> list[tuple[str, int]]:
    """Run ``change``, interrupted at the line ``stop`` of those it runs, which it returns."""
    lines: list[tuple[str, int]] = []

    def trace(frame: Any, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(HOME):
            return None
        if event == "line":
            lines.append((file, frame.f_lineno))
            if len(lines) == stop + 1:
                raise Interrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(Interrupt):
            change()
    finally:
        sys.settrace(before)
    return lines


def evenly(lines: list[tuple[str, int]], most: int) -> list[int]:
    """So many places, the first and the last among them."""
    return np.unique(np.linspace(0, len(lines) - 1, most).astype(int)).tolist()


def everywhere(lines: list[tuple[str, int]]) -> list[int]:
    """Each line of the source, where it is run first and where it is run last; and 50 more."""
    first = {line: at for at, line in reversed(list(enumerate(lines)))}
    last = {line: at for at, line in enumerate(lines)}
    return sorted({*first.values(), *last.values(), *evenly(lines, 50)})


def check_lines(
    model: Any, change: Callable[[Any], Any], where: Callable[[list[tuple[str, int]]], list[int]]
) -> None:
    """Old or new, wherever the interrupt comes; and what is old can still learn."""
    model = copy.deepcopy(model)  # a copy repeats what was spread over its shape
    twin = copy.deepcopy(model)
    lines = lines_run(lambda: change(twin))
    old, new = dumps(model), dumps(twin)
    assert old != new
    for at in where(lines):
        trial = copy.deepcopy(model)
        lines_run(lambda trial=trial: change(trial), at)
        found = dumps(trial)
        assert found in (old, new), f"neither old nor new after an interrupt at {lines[at]}, {at}"
    if found == old:
        change(trial)
        assert dumps(trial) == new


def changes(case: Case) -> dict[str, Callable[[Any], Any]]:
    y = case.y
    found: dict[str, Callable[[Any], Any]] = {
        "fit": lambda model: model.fit(X[:30], y[:30]),
        "partial_fit": lambda model: model.partial_fit(X[150:154], y[150:154]),
        "predict_then_learn": lambda model: model.predict_then_learn(X[150:154], y[150:154]),
        "learn_one": lambda model: model.learn_one(X[150], y[150]),
        "unlearn": lambda model: model.unlearn(X[:2], y[:2]),
        "merge": lambda model: model.merge(model_of_others(case)),
    }
    model = taught(case)
    return {name: change for name, change in found.items() if works(model, name, change)}


def works(model: Any, name: str, change: Callable[[Any], Any]) -> bool:
    if not hasattr(model, name.split(",")[0]):
        return False
    try:
        change(copy.deepcopy(model))
    except ValueError:
        return False
    return True


def model_of_others(case: Case) -> Any:
    return case.make().fit(X[200:240], case.y[200:240])


@pytest.mark.parametrize("case", parameters())
def test_old_or_new(case: Case) -> None:
    for change in changes(case).values():
        check_lines(taught(case), change, partial(evenly, most=6))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", parameters())
def test_old_or_new_at_every_line(case: Case) -> None:
    for change in changes(case).values():
        check_lines(taught(case), change, everywhere)


# ---- groups --------------------------------------------------------------------------------------

GROUPS = np.arange(len(X)) % 7
Y = X @ [1.0, 2.0, 0.0] + GROUPS
GROUP_CHANGES: dict[str, Callable[[Any], Any]] = {
    "fit": lambda model: model.fit(X[:30], Y[:30], groups=GROUPS[:30]),
    "partial_fit": lambda model: model.partial_fit(X[150:160], Y[150:160], groups=GROUPS[150:160]),
    "new groups": lambda model: model.partial_fit(X[:5], Y[:5], groups=GROUPS[:5] + 20),
    "predict_then_learn": lambda model: model.predict_then_learn(
        X[150:170], Y[150:170], groups=GROUPS[150:170] + (np.arange(20) > 10)
    ),
    "learn_one": lambda model: model.learn_one(X[150], Y[150], group=3),
    "learn_one, new": lambda model: model.learn_one(X[150], Y[150], group=30),
    "unlearn": lambda model: model.unlearn(X[:2], Y[:2], groups=GROUPS[:2]),
    "merge": lambda model: model.merge(
        GroupedRegression().fit(X[:20], Y[:20], groups=GROUPS[:20] + 4)
    ),
    "evict": lambda model: model.evict(groups=[2, 3]),
}


def grouped() -> GroupedRegression:
    model = GroupedRegression().fit(X[:80], Y[:80], groups=GROUPS[:80])
    model.predict_then_learn(X[80:120], Y[80:120], groups=GROUPS[80:120])
    return model


@pytest.mark.parametrize("name", GROUP_CHANGES)
def test_groups_are_old_or_new(name: str) -> None:
    check_lines(grouped(), GROUP_CHANGES[name], partial(evenly, most=12))


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUP_CHANGES)
def test_groups_are_old_or_new_at_every_line(name: str) -> None:
    check_lines(grouped(), GROUP_CHANGES[name], everywhere)


# ---- many features, factors and several quantiles ------------------------------------------------

MORE_ROWS: dict[str, tuple[Any, Any]] = {  # some of what is in them is new
    "mappings": ([{"site": "new", "hour": 2.0, "age": 3.0}, {"site": "a", "kind": "x"}], [1, 0]),
    "pairs": ([{"site": "new", "hour": 2.0, "age": 3.0}, {"site": "a", "kind": "x"}], [1, 0]),
    "tokens": ([["a", "new"], ["newer", "x"]], [1, 0]),
    "matrix": (csr_array(X[60:62]), [1, 0]),
}
KNOWN_ROWS = {"mappings": {"site": "a", "hour": 2.0}, "tokens": ["a", "x"]}
MANY_FEATURES = [kind for kind in kinds() if kind.name.split()[-1] in MORE_ROWS]


def changes_of_features(kind: Kind) -> dict[str, Callable[[Any], Any]]:
    form = kind.name.split()[-1]
    rows, y = MORE_ROWS[form]
    found: dict[str, Callable[[Any], Any]] = {
        "fit": lambda model: model.fit(rows, y),
        "partial_fit": lambda model: model.partial_fit(rows, y),
        "predict_then_learn": lambda model: model.predict_then_learn(rows, y),
        "merge": lambda model: model.merge(sklearn.clone(model).fit(rows, y)),
    }
    if form != "matrix":
        found["learn_one"] = lambda model: model.learn_one(rows[0], y[0])
    if form in KNOWN_ROWS:
        found["learn_one, known"] = lambda model: model.learn_one(KNOWN_ROWS[form], y[0])
    model = kind.make()
    return {name: change for name, change in found.items() if works(model, name, change)}


@pytest.mark.parametrize("kind", MANY_FEATURES, ids=str)
def test_many_features_are_old_or_new(kind: Kind) -> None:
    for change in changes_of_features(kind).values():
        check_lines(kind.make(), change, partial(evenly, most=8))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", MANY_FEATURES, ids=str)
def test_many_features_are_old_or_new_at_every_line(kind: Kind) -> None:
    for change in changes_of_features(kind).values():
        check_lines(kind.make(), change, everywhere)


OTHERS: dict[str, Any] = {  # rows, some of levels that are new
    "quantiles": X[150],
    "machine": [1, 50],
    "machine numeric": [50, 0.5],
    "classifier": [50, 51],
}


@pytest.mark.parametrize("kind", [one for one in kinds() if one.name in OTHERS], ids=str)
def test_quantiles_and_factors_are_old_or_new(kind: Kind) -> None:
    row = OTHERS[kind.name]
    changes: list[Callable[[Any], Any]] = [
        lambda model: model.learn_one(row, 1),
        lambda model: model.partial_fit([row, row], [1, 0]),
    ]
    for change in changes:
        check_lines(kind.make(), change, partial(evenly, most=40))


# ---- threads -------------------------------------------------------------------------------------


def in_threads(work: Callable[[int], Any], n: int = 4) -> None:
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(n)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors


@pytest.mark.parametrize("make", [BayesianLinearRegression, BayesianLogisticRegression])
def test_threads_lose_no_row(make: Callable[[], Any]) -> None:
    y = (Y > 0).astype(float)
    model = make().fit(X[:10], y[:10])

    def work(number: int) -> None:
        for i in range(40):
            row = (number * 40 + i) % 200
            if i % 3:
                model.learn_one(X[row], y[row])
            else:
                model.partial_fit(X[row : row + 2], y[row : row + 2])
            model.predict(X[:3])

    in_threads(work)
    assert model.n_observations_ == 10 + 4 * (26 + 14 * 2)


def test_threads_lose_no_row_of_groups() -> None:
    model = GroupedRegression().fit(X[:10], Y[:10], groups=GROUPS[:10])

    def work(number: int) -> None:
        for i in range(40):
            group = (number * i) % 23
            if i % 2:
                model.learn_one(X[i], Y[i], group=group)
            else:
                model.partial_fit(X[i : i + 3], Y[i : i + 3], groups=[group, 1, number + 50])
            model.predict(X[:3], groups=[1, 2, 99])

    in_threads(work)
    assert model.n_observations_ == 10 + 4 * (20 + 20 * 3)


# ---- delayed rewards -----------------------------------------------------------------------------


def make_delayed() -> DelayedRewards:
    delayed = DelayedRewards(Bandit(arms=["a", "b"], rng=0), horizon=5.0, default=0.5)
    draws = np.random.default_rng(0)
    for i in range(12):
        delayed.decide(draws.normal(size=2), at=float(i), ids=f"d{i}")
    delayed.reward([f"d{i}" for i in range(6)], draws.normal(size=6))
    return delayed


def correct_two(delayed: DelayedRewards) -> object:
    return delayed.reward(["d1", "d2"], [2.0, 3.0])


DELAYED: dict[str, Callable[[DelayedRewards], object]] = {
    "decide": lambda delayed: delayed.decide(np.ones((2, 2)), at=20.0, ids=["e0", "e1"]),
    "reward": lambda delayed: delayed.reward("d7", 1.0),
    "correct": correct_two,
    "take_back": lambda delayed: delayed.take_back(["d1", "d8"]),
    "expire": lambda delayed: delayed.expire(now=14.0),
    "release": lambda delayed: delayed.release(before=4.0),
}


@pytest.mark.parametrize("name", DELAYED)
def test_bandit_and_waiting_decisions_change_together(name: str) -> None:
    check_lines(make_delayed(), DELAYED[name], everywhere)
