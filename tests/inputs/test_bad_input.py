"""Every public method of every public learner with bad arguments: refused, and nothing changes."""

from __future__ import annotations

from collections import Counter

import pytest
from bad_values import SUBJECTS, Case, cases, copy_of, discover, find_fault, freeze, taught

# Who looks at these arguments is scikit-learn, not the models.
THEIRS = {("score", "sample_weight"), ("score", "y")}


def find_faults(name: str, some: slice) -> list[tuple[Case, str]]:
    model = taught(name)
    state, faults = freeze(model), []
    model = copy_of(model)
    for case in list(cases(name))[some]:
        if (case.method, case.argument) in THEIRS:
            continue
        fault = find_fault(case, model, state)
        if fault is not None:
            faults.append((case, fault))
        if freeze(model) != state:
            model = copy_of(taught(name))
            state = freeze(model)
    return faults


def test_every_learner_is_here() -> None:
    made = {type(subject.make()) for subject in SUBJECTS.values()}
    assert not {kind for kind in discover() if not any(issubclass(one, kind) for one in made)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUBJECTS)
def test_some_bad_arguments(name: str) -> None:
    assert not find_faults(name, slice(0, None, 61))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SUBJECTS)
def test_all_bad_arguments(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    faults = find_faults(name, slice(None))
    kinds = Counter(fault.partition(":")[0] for _, fault in faults)
    with capsys.disabled():
        print(f"\n{name}: {len(list(cases(name)))} bad arguments, {dict(kinds) or 'no fault'}")
    assert not faults
