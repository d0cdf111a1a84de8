"""Offsets and exposures of counts in models of many features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from posterity import BayesianNegativeBinomialRegression, BayesianPoissonRegression
from posterity.files import dumps, loads
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparsePoissonRegression,
)

Array = NDArray[np.float64]
WIDE = [DiagonalPoissonRegression, SparsePoissonRegression]
COUNTS = [*WIDE, BayesianPoissonRegression, BayesianNegativeBinomialRegression]
AGES, ZONES = ("young", "middle", "old"), ("a", "b", "c", "d", "e")


def policies(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, Array, Array]:
    """Text columns, years of exposure, and claims."""
    rng = np.random.default_rng(seed)
    age, zone, power = rng.integers(0, 3, n), rng.integers(0, 5, n), rng.normal(size=n).round(2)
    years = rng.gamma(2.0, 1.5, n) + 0.05
    log_rate = np.array([0.9, 0.0, 0.2])[age] + 0.3 * rng.normal(size=5)[zone] + 0.2 * power - 1.0
    names = np.array(AGES)[age], np.array(ZONES)[zone]
    rows = pd.DataFrame({"age": names[0], "zone": names[1], "power": power})
    return rows, rng.poisson(years * np.exp(log_rate)).astype(float), years


def dummies(rows: pd.DataFrame) -> Array:
    columns = [rows["age"] == age for age in AGES] + [rows["zone"] == zone for zone in ZONES]
    return np.column_stack([*columns, rows["power"]]).astype(float)


def rates_of(model: Any, rows: Any) -> Array:
    moments = model.predict_distribution(rows).rate()
    return np.stack([moments.mean(), moments.std()])


def alike(one: Any, other: Any, rows: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(rates_of(one, rows), rates_of(other, rows), rtol=rtol, atol=1e-12)


# ---- outside truth -------------------------------------------------------------------------------


def test_a_flat_prior_gives_the_generalised_linear_model() -> None:
    rows, claims, years = policies(4000)
    X = dummies(rows)[:, [0, 2, 4, 5, 6, 7, 8]]  # two bases left out
    glm = sm.GLM(claims, sm.add_constant(X), family=sm.families.Poisson(), exposure=years).fit()
    model = SparsePoissonRegression(prior_precision=1e-6).fit(X, claims, exposure=years)
    ours = np.concatenate([[model.intercept_], model.coef_])
    assert (np.abs(ours - glm.params) < 0.05 * glm.bse).all()
    np.testing.assert_allclose(model.coef_std_, glm.bse[1:], rtol=0.01)


def test_sparse_is_dense_under_the_same_prior() -> None:
    rows, claims, years = policies()
    X = dummies(rows)
    how: dict[str, Any] = {"prior_precision": 2.0, "fit_intercept": False}
    ours = SparsePoissonRegression(**how).fit(X, claims, exposure=years)
    dense = BayesianPoissonRegression(**how, approximation="moments")
    dense = dense.fit(X, claims, exposure=years)
    np.testing.assert_allclose(ours.coef_, dense.coef_, rtol=1e-4, atol=1e-5)
    new, longer = X[:5], [1.0, 2.0, 0.1, 30.0, 5.0]
    for of in ("observation", "mean"):
        found, expected = (
            model.predict_interval(new, exposure=longer, of=of) for model in (ours, dense)
        )
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    named = SparsePoissonRegression(**how).fit(rows, claims, exposure=years)
    names = [*(f"age={age}" for age in AGES), *(f"zone={zone}" for zone in ZONES), "power"]
    order = [named.feature_names_.index(name) for name in names]
    np.testing.assert_allclose(named.coef_[order], ours.coef_, rtol=1e-5, atol=1e-6)


def test_a_diagonal_model_of_one_column_is_the_dense_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an intercept its levels are independent, and a stream of rows is exact for both."""
    monkeypatch.setattr(BayesianPoissonRegression, "_keeps_start", False)
    rows, claims, years = policies(80)
    X, how = dummies(rows)[:, :3], {"prior_precision": 0.7, "fit_intercept": False}
    one = DiagonalPoissonRegression(**how).partial_fit(rows[["age"]], claims, exposure=years)
    dense = BayesianPoissonRegression(**how, approximation="moments")
    dense.predict_then_learn(X, claims, exposure=years)
    order = [one.feature_names_.index(f"age={age}") for age in AGES]
    np.testing.assert_allclose(one.coef_[order], dense.coef_, rtol=1e-9)
    np.testing.assert_allclose(one.coef_std_[order], dense.posterior_.std(), rtol=1e-9)


def test_rows_that_are_visited_again_keep_their_exposures() -> None:
    rows, claims, years = policies(300)
    for how in ({"prior_precision": 0.7, "fit_intercept": False}, {"prior_precision": 0.7}):
        one = DiagonalPoissonRegression(**how).fit(rows[["age"]], claims, exposure=years)
        exact = SparsePoissonRegression(**how).fit(rows[["age"]], claims, exposure=years)
        found, expected = (model.predict(rows[:9]) for model in (one, exact))
        np.testing.assert_allclose(found, expected, rtol=5e-3)


@pytest.mark.parametrize("kind", WIDE)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_rates_of_levels_whose_exposures_differ_a_hundredfold(kind: Any, way: str) -> None:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 10, 6000)
    years = np.where(level % 2, 0.5, 50.0) * rng.uniform(0.5, 1.5, len(level))
    rates = 0.5 * np.exp(0.4 * rng.normal(size=10))
    claims = rng.poisson(years * rates[level])
    rows = [[f"l{number}"] for number in level]
    model = getattr(kind(), way)(rows, claims, exposure=years)
    found = model.predict([[f"l{number}"] for number in range(10)])
    came = np.bincount(level, claims) / np.bincount(level, years)
    np.testing.assert_allclose(found, came, rtol=0.06)


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_an_exposure_is_an_offset_of_its_log(kind: Any, way: str) -> None:
    rows, claims, years = policies(120)
    X = rows if kind in WIDE else dummies(rows)
    e = getattr(kind(), way)(X, claims, exposure=years)
    o = getattr(kind(), way)(X, claims, offset=np.log(years))
    both = getattr(kind(), way)(X, claims, offset=np.log(years / 2.0), exposure=2.0)
    none, ones = getattr(kind(), way)(X, claims), getattr(kind(), way)(X, claims, exposure=1.0)
    alike(e, o, X[:9], rtol=1e-7)
    alike(e, both, X[:9], rtol=1e-7)
    alike(none, ones, X[:9], rtol=1e-7)
    assert not np.allclose(e.predict(X[:9]), none.predict(X[:9]), rtol=0.05)
    given = [model.predict(X[:9], **how) for model, how in ((e, {"exposure": 3.0}), (e, {}))]
    np.testing.assert_allclose(given[0], 3.0 * given[1], rtol=1e-12)
    shifted = e.predict(X[:9], offset=np.log(1.5), exposure=2.0)
    np.testing.assert_allclose(shifted, 3.0 * given[1], rtol=1e-12)


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_no_unit_of_exposure_is_special(kind: Any, way: str) -> None:
    """In days as in years, though few rows are known: the intercept's prior moves along."""
    rows, claims, years = policies(20)
    X = rows if kind in WIDE else dummies(rows)
    in_years = getattr(kind(), way)(X, claims, exposure=years)
    in_days = getattr(kind(), way)(X, claims, exposure=365.25 * years)
    np.testing.assert_allclose(in_days.coef_, in_years.coef_, rtol=1e-5, atol=1e-7)
    assert in_days.intercept_ == pytest.approx(in_years.intercept_ - np.log(365.25), rel=1e-5)
    expected = in_years.predict(X, exposure=2.0)
    np.testing.assert_allclose(in_days.predict(X, exposure=730.5), expected, rtol=1e-5)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"fit_intercept": False},
    {"prior_precision": 2.0},
    {"forgetting": Stabilized(0.97)},
    {"interactions": 2},
    {"hash_size": 2**20},
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: "".join(one) or "default")
def test_rows_are_a_batch(setting: dict[str, Any]) -> None:
    rows, claims, years = policies(60)
    mappings, offsets = rows.to_dict("records"), np.linspace(-1.0, 1.0, 60)
    batch = DiagonalPoissonRegression(**setting)
    batch.partial_fit(mappings[:40], claims[:40], exposure=years[:40])
    batch.partial_fit(mappings[40:], claims[40:], offset=offsets[40:])
    single = DiagonalPoissonRegression(**setting)
    for i, row in enumerate(mappings):
        how = {"exposure": years[i]} if i < 40 else {"offset": offsets[i]}
        single.learn_one(row, int(claims[i]), **how)
    alike(batch, single, mappings)
    sparse = SparsePoissonRegression(prior_precision=2.0)
    whole = SparsePoissonRegression(prior_precision=2.0).fit(rows, claims, exposure=years)
    for start in (0, 25, 50):
        some = slice(start, start + 25)
        sparse.partial_fit(rows[some], claims[some], exposure=years[some])
    alike(whole, sparse, rows[:9], rtol=1e-5)


@settings(max_examples=8, deadline=None)
@given(
    counts=st.lists(st.integers(0, 9), min_size=6, max_size=20),
    exposures=st.lists(st.floats(0.01, 100.0), min_size=20, max_size=20),
    cut=st.integers(1, 5),
)
def test_merged_models_are_one(counts: list[int], exposures: list[float], cut: int) -> None:
    rows = [[AGES[i % 3]] for i in range(len(counts))]
    years = np.array(exposures[: len(counts)])
    how: dict[str, Any] = {"prior_precision": 1.0}
    whole = SparsePoissonRegression(**how).partial_fit(rows, counts, exposure=years)
    one = SparsePoissonRegression(**how).partial_fit(rows[:cut], counts[:cut], exposure=years[:cut])
    other = SparsePoissonRegression(**how)
    other = other.partial_fit(rows[cut:], counts[cut:], exposure=years[cut:])
    alike(whole, one.merge(other), rows[:3], rtol=1e-4)


def test_merging_says_the_same_whatever_the_unit_of_exposure() -> None:
    rows, claims, years = policies(200)
    parts, merged = (slice(0, 90), slice(90, 200)), []
    for units in ((1.0, 1.0), (1000.0, 1000.0)):
        one, other = (
            DiagonalPoissonRegression().partial_fit(
                rows[some], claims[some], exposure=u * years[some]
            )
            for some, u in zip(parts, units, strict=True)
        )
        merged.append(one.merge(other).predict(rows[:9], exposure=units[0]))
    np.testing.assert_allclose(merged[0], merged[1], rtol=1e-9)
    together = DiagonalPoissonRegression().partial_fit(rows, claims, exposure=years)
    np.testing.assert_allclose(merged[0], together.predict(rows[:9]), rtol=0.1)
    fresh = DiagonalPoissonRegression().merge(together)
    np.testing.assert_allclose(fresh.predict(rows[:9]), together.predict(rows[:9]), rtol=0.05)


def test_each_row_is_predicted_with_its_exposure_before_it_is_learned() -> None:
    rows, claims, years = policies(60)
    for how in ({}, {"interactions": 2}):
        model = DiagonalPoissonRegression(**how).partial_fit(rows[:20], claims[:20])
        stream = loads(dumps(model))
        told = stream.predict_then_learn(rows[20:], claims[20:], exposure=years[20:])
        for i in range(20, 60):
            row, some = rows[i : i + 1], years[i : i + 1]
            expected = model.predict_distribution(row, exposure=some).logpmf(claims[i])[0]
            assert told[i - 20].logpmf(claims[i]) == pytest.approx(expected, rel=1e-9)
            model.partial_fit(row, claims[i : i + 1], exposure=some)


def test_a_row_is_taken_back_with_the_exposure_that_it_came_with() -> None:
    rows, claims, years = policies(60)
    model = SparsePoissonRegression(prior_precision=2.0).fit(rows, claims, exposure=years)
    with pytest.raises(ValueError, match="these rows were not learned"):
        model.unlearn(rows[40:], claims[40:])
    with pytest.raises(ValueError, match="these rows were not learned"):
        model.unlearn(rows[40:], claims[40:], exposure=2.0 * years[40:])
    model.unlearn(rows[40:], claims[40:], exposure=years[40:])
    left = SparsePoissonRegression(prior_precision=2.0).fit(rows[:40], claims[:40], None)
    assert not np.allclose(left.coef_, model.coef_, atol=1e-3)
    left.fit(rows[:40], claims[:40], exposure=years[:40])
    alike(left, model, rows[:9], rtol=1e-4)
    with pytest.raises(ValueError, match="a diagonal model can't unlearn rows"):
        DiagonalPoissonRegression().fit(rows, claims).unlearn(rows, claims, exposure=years)


# ---- single rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COUNTS)
def test_single_rows_are_predicted_at_their_exposure(kind: Any) -> None:
    rows, claims, years = policies(100)
    X = rows if kind in WIDE else dummies(rows)
    model = kind().fit(X, claims, exposure=years)
    row = rows.to_dict("records")[3] if kind in WIDE else X[3]
    expected = model.predict(X[3:4], exposure=2.5)[0]
    assert model.predict_one(row, exposure=2.5) == pytest.approx(expected, rel=1e-6)
    assert model.predict_one(row, offset=np.log(2.5)) == pytest.approx(expected, rel=1e-6)
    once = model.predict_one(row)
    with pytest.raises(ValueError, match=r"exposure is 0\.0 in row 0: it must be positive"):
        model.predict_one(row, exposure=0.0)
    before = dumps(model)
    with pytest.raises(ValueError, match="exposure is nan in row 0"):
        model.learn_one(row, 1, exposure=np.nan)
    with pytest.raises(ValueError, match="offset is inf in row 0: it must be finite"):
        model.learn_one(row, 1, offset=np.inf)
    for call in (lambda: model.predict_one(row, exposur=1.0), lambda: model.learn_one(row, 1, w=2)):
        with pytest.raises(TypeError, match=r"unknown keyword '(exposur|w)'"):
            call()
    assert dumps(model) == before
    for _ in range(5):
        model.learn_one(row, 60, exposure=20.0)
    assert once < model.predict_one(row) < 3.5
    fresh = kind().learn_one(row, 7, exposure=7.0)
    assert fresh.n_observations_ == 1.0


def test_the_dense_rows_learned_one_by_one_are_the_stream() -> None:
    rows, claims, years = policies(100)
    X = dummies(rows)
    single, stream = BayesianPoissonRegression(), BayesianPoissonRegression()
    stream.predict_then_learn(X, claims, exposure=years)
    for x, y, e in zip(X, claims, years, strict=True):
        single.learn_one(x, y, exposure=e)
    np.testing.assert_allclose(single.coef_, stream.coef_, rtol=1e-6, atol=1e-8)
    told = single.predict_then_learn_one(X[0], 3.0, exposure=100.0)
    assert float(told.mean()) > 30.0


# ---- refusals, files, tables ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"exposure": [1.0, 0.0]}, "exposure is 0.0 in row 1: it must be positive and finite"),
        ({"exposure": [-1.0, 1.0]}, r"exposure is -1\.0 in row 0"),
        ({"exposure": [1.0, np.inf]}, "exposure is inf in row 1"),
        ({"exposure": [1.0, 1.0, 1.0]}, r"exposure has shape \(3,\): expected \(2,\)"),
        ({"offset": [0.0, np.nan]}, "offset is nan in row 1: it must be finite"),
        ({"offset": [[0.0, 1.0]]}, r"offset has shape \(1, 2\): expected \(2,\)"),
    ],
)
def test_what_is_no_exposure(kind: Any, how: dict[str, Any], message: str) -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), [1, 2]
    for way in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(kind(), way)(X, y, **how)
    model = kind().partial_fit(X, y)
    before = dumps(model)
    for call in (model.predict, model.predict_interval, model.predict_distribution):
        with pytest.raises(ValueError, match=message):
            call(X, **how)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, **how)
    assert dumps(model) == before


@pytest.mark.parametrize("kind", COUNTS)
def test_the_name_of_a_column_is_no_exposure(kind: Any) -> None:
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), [1, 2]
    with pytest.raises(TypeError, match=r"exposure is the text 'years': give the numbers, as X"):
        kind().fit(X, y, exposure="years")


@pytest.mark.parametrize("kind", WIDE)
def test_files_keep_offsets(kind: Any) -> None:
    rows, claims, years = policies(60)
    model = kind().fit(rows[:30], claims[:30], exposure=100.0 * years[:30])
    loaded = loads(dumps(model))
    for one in (model, loaded):
        one.partial_fit(rows[30:], claims[30:], exposure=100.0 * years[30:])
    assert dumps(model) == dumps(loaded)
    alike(model, loaded, rows[:5])


@pytest.mark.parametrize("kind", WIDE)
def test_the_table_has_rate_ratios(kind: Any) -> None:
    rows, claims, years = policies()
    table = kind().fit(rows, claims, exposure=years).summary()
    for ending, column in (("", "mean"), ("_low", "low"), ("_high", "high")):
        np.testing.assert_allclose(table["rate_ratio" + ending], np.exp(table[column]))
    ratio = table.loc["age=young", "rate_ratio"] / table.loc["age=middle", "rate_ratio"]
    assert 1.8 < ratio < 3.2
    odds = DiagonalLogisticRegression().fit(rows, claims > 0.0).summary()
    np.testing.assert_allclose(odds["odds_ratio"], np.exp(odds["mean"]))


@pytest.mark.parametrize("kind", COUNTS)
def test_a_rate_that_overflows_is_infinite_in_the_table(kind: Any) -> None:
    """Nor does it warn: of an intercept nobody asked for the ratio."""
    model = kind().fit(np.array([[0.0], [1.0], [0.0]]), [0, 3, 1], offset=-800.0)
    assert model.summary().loc["intercept", "rate_ratio"] == np.inf


def test_the_score_and_the_mean_know_the_exposure() -> None:
    rows, claims, years = policies(1000)
    for kind in WIDE:
        model = kind().fit(rows, claims, exposure=years)
        assert model.score(rows, claims, exposure=years) > model.score(rows, claims) + 0.1
        rate = model.predict_mean_distribution(rows[:5], exposure=years[:5])
        np.testing.assert_allclose(
            rate.mean(), model.predict(rows[:5], exposure=years[:5]), rtol=1e-6
        )
        low, high = model.predict_interval(rows, 0.9, exposure=years).T
        assert np.mean((low <= claims) & (claims <= high)) > 0.88
