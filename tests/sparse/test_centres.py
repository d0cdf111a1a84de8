"""Columns of numbers far from 0: what is learned does not depend on where their 0 is."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from posterity import BayesianLinearRegression
from posterity.files import dumps, loads
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

Array = NDArray[np.float64]
DIAGONAL = [DiagonalLinearRegression, DiagonalLogisticRegression, DiagonalPoissonRegression]
EXACT = [SparseLinearRegression, SparseLogisticRegression, SparsePoissonRegression]
SHOPS = {"categorical_features": ["shop"]}


def sales(kind: Any, n: int = 400) -> tuple[pd.DataFrame, Array]:
    """Shops and years, and numbers, counts or labels that rise with the year."""
    rng = np.random.default_rng(0)
    year, shop = rng.integers(2015, 2025, n), rng.integers(0, 20, n)
    y = 5 + 0.4 * (year - 2020) + 0.5 * rng.normal(size=20)[shop] + rng.normal(size=n)
    count = rng.poisson(np.exp(0.5 + 0.2 * (year - 2020) + 0.3 * rng.normal(size=20)[shop]))
    label = rng.random(n) < 1 / (1 + np.exp(-0.5 * (year - 2020)))
    frame = pd.DataFrame({"shop": shop, "year": year})
    if kind in (DiagonalLinearRegression, SparseLinearRegression):
        return frame, y
    return frame, label.astype(float) if "Logistic" in kind.__name__ else count.astype(float)


def moved(frame: pd.DataFrame, by: float) -> pd.DataFrame:
    return frame.assign(year=frame["year"] + by)


def read(model: Any, frame: pd.DataFrame) -> Array:
    if hasattr(model, "predict_proba"):
        return np.append(model.predict_proba(frame), model.predict_interval(frame))
    return np.append(model.predict(frame), model.predict_interval(frame))


def slope(model: Any) -> Array:
    return model.summary().loc["year", ["mean", "sd", "low", "high"]].to_numpy(float)


def assert_same(one: Any, other: Any, frame: pd.DataFrame, by: float) -> None:
    np.testing.assert_allclose(slope(other), slope(one), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(read(other, moved(frame, by)), read(one, frame), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "mean", "sd", "near"),
    [
        (SparsePoissonRegression, 0.2074, 0.0150, 1.0),  # lme4: glmer
        (SparseLinearRegression, 0.4035, 0.0176, 1.0),  # lme4: lmer
        (SparseLogisticRegression, 0.5810, 0.0545, 1.0),  # R: glm, without shops
        (DiagonalPoissonRegression, 0.2074, 0.0150, 2.0),
        (DiagonalLinearRegression, 0.4035, 0.0176, 2.0),
        (DiagonalLogisticRegression, 0.5810, 0.0545, 2.0),
    ],
)
def test_slopes_over_years_are_those_of_other_programs(
    kind: Any, mean: float, sd: float, near: float
) -> None:
    frame, y = sales(kind)
    model = kind(**SHOPS).fit(frame, y)
    found = slope(model)
    assert found[0] == pytest.approx(mean, abs=0.25 * near * sd)
    assert found[1] == pytest.approx(sd, rel=0.1 * near)
    of = model.predict_proba(frame)[:, 1] if "Logistic" in kind.__name__ else model.predict(frame)
    for year in (2015, 2024):
        there = frame["year"] == year
        assert of[there].mean() == pytest.approx(y[there].mean(), abs=0.3)


@pytest.mark.parametrize("kind", DIAGONAL + EXACT)
@pytest.mark.parametrize("by", [-2020.0, 3e6])
def test_no_zero_matters(kind: Any, by: float) -> None:
    """Fits, batches, rows, merged models, copies from a file, and the streams that go on."""
    frame, y = sales(kind, 120)
    frame["year"] -= 2020 if by > 0.0 else 0
    one, other = kind(**SHOPS).fit(frame, y), kind(**SHOPS).fit(moved(frame, by), y)
    assert_same(one, other, frame, by)
    later = [
        model.partial_fit(moved(frame, far)[:30], y[:30])
        for model, far in ((one, 0.0), (other, by))
    ]
    assert_same(*later, frame, by)
    halves = []
    for far in (0.0, by):
        first, second = kind(**SHOPS), kind(**SHOPS)
        first.partial_fit(moved(frame, far)[:50], y[:50])
        second.partial_fit(moved(frame, far)[50:], y[50:])
        halves.append(loads(dumps(first.merge(second))))
    assert_same(*halves, frame, by)
    if kind in EXACT:
        for model, far in zip(halves, (0.0, by), strict=True):
            model.unlearn(moved(frame, far)[:40], y[:40])
        assert_same(*halves, frame, by)


@pytest.mark.parametrize("kind", DIAGONAL)
@pytest.mark.parametrize("forgetting", [None, Stabilized(half_life=30.0)])
def test_no_zero_matters_to_a_stream(kind: Any, forgetting: Any) -> None:
    frame, y = sales(kind, 40)
    streams = []
    for far in (0.0, -2020.0):
        rows = moved(frame, far).astype({"shop": str}).to_dict("records")
        model = kind(forgetting=forgetting)
        for row, target in zip(rows, y, strict=True):
            model.learn_one(row, int(target) if kind is not DIAGONAL[0] else target)
        streams.append(model)
    text = frame.astype({"shop": str})
    assert_same(*streams, text, -2020.0)
    whole = kind(forgetting=forgetting)
    predicted = whole.predict_then_learn(text, y)
    assert len(predicted.mean() if hasattr(predicted, "mean") else predicted.mode()) == 40
    assert_same(whole, streams[0], text, 0.0)
    row = {"shop": "3", "year": 2020.0}
    assert np.all(read(whole, [row]) == read(whole, pd.DataFrame([row])))  # type: ignore[arg-type]


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("kind", [DiagonalLinearRegression, SparseLinearRegression])
def test_a_slope_is_found_at_any_offset(kind: Any, offset: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2_000, 1))
    y = 1.0 + 2.0 * x[:, 0] + rng.normal(size=2_000)
    dense = BayesianLinearRegression(prior_precision=0.0).fit(x, y)
    for X in (x + offset, pd.DataFrame(x + offset, columns=["x"])):
        for model in (kind().fit(X, y), kind().partial_fit(X, y)):
            assert model.coef_[0] == pytest.approx(dense.coef_[0], abs=0.005)
            assert model.coef_std_[0] == pytest.approx(dense.posterior_.std()[1], rel=0.05)
            assert model.intercept_ == pytest.approx(
                dense.intercept_ - offset * model.coef_[0], abs=0.01
            )


@pytest.mark.parametrize("kind", [DiagonalLinearRegression, SparseLinearRegression])
def test_products_of_numbers_are_of_what_is_centred(kind: Any) -> None:
    """Of two numbers, and of numbers and levels; weights are still those of plain products."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    frame["shop"] = rng.choice(list("uvwxyz"), 300)
    slopes = frame["shop"].map(dict(zip("uvwxyz", rng.normal(size=6), strict=True)))
    y = 1 + slopes * frame["a"] + 0.5 * frame["a"] * frame["b"] + 0.3 * rng.normal(size=300)
    far = frame.assign(a=frame["a"] + 1000.0, b=frame["b"] - 50.0)
    one, other = (kind(interactions=2).fit(X, y) for X in (frame, far))
    np.testing.assert_allclose(other.predict(far), one.predict(frame), rtol=1e-6, atol=1e-7)
    names = ["a & b", "shop=u & a", "shop=z & b"]
    tables = [
        model.summary().rename(lambda name: " & ".join(sorted(name.split(" & "))))
        for model in (one, other)
    ]
    names = [" & ".join(sorted(name.split(" & "))) for name in names]
    for column in ("mean", "sd"):
        np.testing.assert_allclose(*(table.loc[names, column] for table in tables), rtol=1e-6)
    assert np.mean((one.predict(frame) - y) ** 2) < 0.12
    row, known = {"shop": "u", "a": 1001.0, "b": -49.0}, tables[1]["mean"]
    terms = {
        "intercept": 1.0,
        "a": 1001.0,
        "b": -49.0,
        "shop=u": 1.0,
        "a & b": -49049.0,
        "a & shop=u": 1001.0,
        "b & shop=u": -49.0,
    }
    by_hand = sum(known[name] * value for name, value in terms.items())
    assert other.predict([row])[0] == pytest.approx(by_hand, abs=1e-6)
    new = {"shop": "new", "a": 0.5, "b": 0.5}, {"shop": "new", "a": 1000.5, "b": -49.5}
    ends = [model.predict_interval([at]) for model, at in zip((one, other), new, strict=True)]
    np.testing.assert_allclose(*ends, rtol=1e-6)


def centres_of(model: Any) -> np.ndarray:
    """Where the numbers of rows are centred as they are read."""
    posterior = model._posterior
    exact = isinstance(model, SparseLinearRegression)
    found: np.ndarray = (posterior.solution() if exact else posterior).centres.values
    return found


def test_what_is_rare_keeps_its_zeros() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 3_000), density=0.003, rng=rng, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() + rng.normal(size=500)
    for kind in (SparseLinearRegression, DiagonalLinearRegression):
        assert not centres_of(kind().fit(X, y)).any()
    rows = [{f"word {word}": 2.0 for word in rng.integers(0, 300, 6)} for _ in range(200)]
    for kind in (SparseLinearRegression, DiagonalLinearRegression):
        assert not centres_of(kind().fit(rows, y[:200])).any()


@given(seed=st.integers(0, 10**6), cut=st.integers(1, 39), offset=st.sampled_from([0.0, 37.0, 1e5]))
@settings(deadline=None, max_examples=6)
def test_batches_and_merged_models_are_one_fit(seed: int, cut: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": offset + rng.normal(size=40), "shop": rng.choice(list("abc"), 40)})
    frame["z"] = rng.normal(size=40) + np.where(rng.random(40) < 0.5, 0.0, offset)
    y = 1.0 + 0.5 * (frame["x"] - offset) + rng.normal(size=40)
    known: dict[str, Any] = {"interactions": [("shop", "x"), ("x", "z")]}
    whole = SparseLinearRegression(**known).fit(frame, y)
    batches = SparseLinearRegression(**known).partial_fit(frame[:cut], y[:cut])
    merged = deepcopy(batches).merge(SparseLinearRegression(**known).fit(frame[cut:], y[cut:]))
    batches.partial_fit(frame[cut:], y[cut:])
    for model in (batches, merged):
        np.testing.assert_allclose(model.predict(frame), whole.predict(frame), rtol=1e-3, atol=1e-3)


def test_a_number_may_be_0_in_the_first_row() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    X = X.where(rng.random((30, 3)) < 0.6, 0.0)
    X.loc[0, "a"] = 0.0
    y = rng.normal(size=30)
    whole, rows = DiagonalLinearRegression().partial_fit(X, y), DiagonalLinearRegression()
    for row, target in zip(X.to_dict("records"), y, strict=True):
        rows.learn_one(row, target)
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-10)
    np.testing.assert_allclose(rows.predict_interval(X), whole.predict_interval(X), rtol=1e-10)
