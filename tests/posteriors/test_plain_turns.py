"""Turns of a stream in one loop are the turns one after another."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evidence import Integrated
from posterity.posteriors._evidence_stream import NodesStream


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 120),
    m=st.integers(1, 6),
    cuts=st.lists(st.integers(0, 120), max_size=2),
    noise_precision=st.sampled_from([None, 4.0]),
    fit_intercept=st.booleans(),
    prior=st.sampled_from(["auto", Integrated(most_nodes=1)]),
    weighted=st.booleans(),
    late=st.booleans(),
)
def test_one_loop_is_turn_after_turn(
    seed: int,
    n: int,
    m: int,
    cuts: list[int],
    noise_precision: float | None,
    fit_intercept: bool,
    prior: Any,
    weighted: bool,
    late: bool,
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 3.0
    if late:
        X[: n // 2, -1] = 1.0  # a feature that does not vary at first
    y = X @ rng.normal(size=m) + rng.normal(size=n)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else None

    def learned() -> tuple[Any, list[Any]]:
        model = BayesianLinearRegression(
            noise_precision=noise_precision, fit_intercept=fit_intercept, prior_precision=prior
        )
        edges = [0, *sorted(min(cut, n) for cut in cuts), n]
        parts = [slice(*edge) for edge in pairwise(edges)]
        predictions = [
            model.predict_then_learn(X[p], y[p], None if weights is None else weights[p])
            for p in parts
            if p.stop > p.start
        ]
        return model, predictions

    one, found = learned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NodesStream, "_take_plain_turns", lambda *_: None)
        other, expected = learned()
    for now, before in zip(found, expected, strict=True):
        np.testing.assert_allclose(now.mean(), before.mean(), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(now.scale, before.scale, rtol=1e-9)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    state, its = one._posterior_or_none.state, other._posterior_or_none.state  # type: ignore[attr-defined]
    assert state.clock.tolist() == its.clock.tolist()
    assert (state.turn is None) == (its.turn is None)
    x = rng.normal(size=m)
    assert one.predict_one(x) == pytest.approx(other.predict_one(x), rel=1e-9, abs=1e-9)
    one.learn_one(x, 1.0)
    other.learn_one(x, 1.0)
    assert one.predict_one(x) == pytest.approx(other.predict_one(x), rel=1e-9, abs=1e-9)
