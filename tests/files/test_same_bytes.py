"""A file does not tell whether its model was saved and loaded before."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import pytest
from files_kinds import Kind, kinds
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.bandits import Bandit
from posterity.files import dumps, loads

EVERY = [
    pytest.param(kind, id=kind.name, marks=() if place % 12 == 0 else pytest.mark.slow)
    for place, kind in enumerate(kinds())
]


@pytest.mark.parametrize("kind", EVERY)
def test_saved_and_learned_on_is_learned_on_and_saved(kind: Kind) -> None:
    model = loads(kind.content())
    loaded = loads(dumps(model))
    assert dumps(loaded) == dumps(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in kind.uses:
            for one in (model, loaded):
                with contextlib.suppress(ValueError, TypeError):
                    use(one)
        assert dumps(loaded) == dumps(model)


MODELS: dict[str, Any] = {
    "linear": BayesianLinearRegression(),
    "logistic": BayesianLogisticRegression(),
    "poisson": BayesianPoissonRegression(),
}


@pytest.mark.filterwarnings("ignore:the rows that were unlearned")
@pytest.mark.parametrize("name", MODELS)
@given(seed=st.integers(0, 10**6), saves=st.sets(st.integers(0, 39), max_size=8))
@settings(max_examples=6, deadline=None)
def test_experiments_with_corrections(name: str, seed: int, saves: set[int]) -> None:
    """Of rewards that are learned, corrected and taken back, with a file in between or not."""
    rng = np.random.default_rng(seed)
    whole = Bandit(MODELS[name], arms=["a", "b"], sharing="none", rng=1)
    parts, known = loads(dumps(whole)), []
    for event in range(40):
        if event in saves:
            parts = loads(dumps(parts))
        if known and rng.random() < 0.3:
            x, arm, former = known.pop(rng.integers(len(known)))
            now = np.nan if rng.random() < 0.5 else float(rng.integers(2))
            for bandit in (whole, parts):
                bandit.correct([x], [arm], former=[former], rewards=[now])
            if np.isfinite(now):
                known.append((x, arm, now))
        else:
            row = (rng.normal(size=2), "ab"[rng.integers(2)], float(rng.integers(2)))
            known.append(row)
            for bandit in (whole, parts):
                bandit.learn_one(*row)
    assert dumps(parts) == dumps(whole)
