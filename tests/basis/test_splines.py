"""Splines with a prior of second differences, and what bases say outside of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
)
from posterity.basis import ByColumn, HilbertSpaceGP, RandomFourier, Spline
from posterity.basis.spline import LENGTH_SCALES, POWERS_AND_SIZES, make_spline
from posterity.files import dumps, loads

Array = np.ndarray[Any, np.dtype[np.float64]]
HYPOTHESES = len(POWERS_AND_SIZES) + len(LENGTH_SCALES)

gaps = st.lists(st.floats(0.1, 3.0), min_size=2, max_size=12)


def draw(seed: int, n: int, d: int = 1) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    return X, np.sin(3.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


@given(gaps=gaps, degree=st.integers(1, 5))
def test_the_first_column_is_the_line(gaps: list[float], degree: int) -> None:
    basis = Spline(knots=np.cumsum([-1.0, *gaps]), degree=degree).fit([[0.0]])
    x = np.linspace(basis.domain_[0, 0] - 3.0, basis.domain_[0, 1] + 3.0, 21)[:, None]
    lines = basis.transform(x)[:, 0]
    np.testing.assert_allclose(np.diff(lines), 2.0 * np.diff(x[:, 0]) / np.ptp(basis.domain_))


@given(gaps=gaps, degree=st.integers(1, 5))
def test_with_a_constant_they_are_all_splines_of_these_knots(
    gaps: list[float], degree: int
) -> None:
    basis = Spline(knots=np.cumsum([-1.0, *gaps]), degree=degree).fit([[0.0]])
    x = np.linspace(*basis.domain_[0], 200)[:, None]
    plain = make_spline(basis.knots_[0], degree).transform(x)
    ours = np.column_stack([np.ones(200), basis.transform(x)])
    assert ours.shape == plain.shape
    left = plain - ours @ np.linalg.lstsq(ours, plain, rcond=None)[0]
    np.testing.assert_allclose(left, 0.0, atol=1e-7)


@pytest.mark.parametrize("n_knots", [4, 9, 48])
def test_second_differences_of_the_bends_are_orthogonal(n_knots: int) -> None:
    bends = Spline(n_knots=n_knots, domain=(0.0, 1.0)).fit([[0.5]]).bends_[0]
    differences = np.diff(bends, n=2, axis=0)  # centres of even knots are even
    products = differences.T @ differences
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    np.testing.assert_allclose(bends.T @ bends, np.eye(n_knots), atol=1e-9)
    assert (np.diff(np.diag(products)) > 0.0).all()  # from smooth to rough


def test_bends_are_modes_of_a_free_beam() -> None:
    basis = Spline(n_knots=400, domain=(-1.0, 1.0)).fit([[0.0]])
    s = np.linalg.norm(np.diff(basis.bends_[0][:, :20], n=2, axis=0), axis=0) * (399 / 2.0) ** 2
    np.testing.assert_allclose(np.sqrt(s), (np.arange(20) + 1.5) * np.pi / 2.0, rtol=0.01)


def test_knots_follow_the_features_and_no_first_batch() -> None:
    def count(n: int, d: int, **how: Any) -> int:
        X = np.random.default_rng(0).uniform(size=(n, d))
        return len(Spline(**how).fit(X).knots_[0])

    assert [count(n, 1) for n in (2, 12, 1000)] == [48, 48, 48]
    assert [count(1000, d) for d in (2, 3, 10, 60)] == [48, 40, 12, 5]
    assert count(2, 1, domain=(0.0, 1.0)) == 48  # nothing depends on the first batch
    assert count(1000, 1, n_knots=7) == 7
    with pytest.raises(ValueError, match="smooth is 'yes': it must be True or False"):
        Spline(smooth="yes").fit([[0.0], [1.0]])  # type: ignore[arg-type]


def test_with_a_domain_rows_batches_and_parts_are_the_same() -> None:
    X, y = draw(0, 300)
    made = [BayesianLinearRegression(basis=Spline(domain=(-1.0, 1.0))) for _ in range(4)]
    whole = made[0].fit(X, y)
    for x, one in zip(X, y, strict=True):
        made[1].learn_one(x, one)
    parts = made[2].fit(X[:40], y[:40]).merge(made[3].fit(X[40:], y[40:]))
    places = np.linspace(-1.4, 1.4, 9)[:, None]
    for other in (made[1], parts):
        np.testing.assert_allclose(other.predict(places), whole.predict(places), atol=1e-9)
    before = dumps(whole)
    whole.predict_interval(places)
    assert dumps(whole) == before


def test_a_given_precision_multiplies_the_first_hypothesis() -> None:
    X, y = draw(0, 80)
    basis = Spline().fit(X)
    model = BayesianLinearRegression(basis=Spline(), prior_precision=2.0).fit(X, y)
    by_hand = BayesianLinearRegression(prior_precision=2.0 * basis.prior_precisions()[0])
    np.testing.assert_allclose(model.coef_, by_hand.fit(basis.transform(X), y).coef_, atol=1e-9)
    flat = BayesianLinearRegression(basis=Spline(n_knots=5), prior_precision=0.0).fit(X, y)
    plain = BayesianLinearRegression(basis=Spline(n_knots=5, smooth=False), prior_precision=0.0)
    np.testing.assert_allclose(flat.predict(X), plain.fit(X, y).predict(X), atol=1e-8)


def test_what_splines_think_possible_goes_together() -> None:
    X = np.random.default_rng(0).uniform(size=(50, 5))

    def count(*bases: Any) -> tuple[int, bool]:
        made = ByColumn(dict(enumerate(bases))).fit(X)
        assert made.prior_precisions().shape[1] == made.transform(X).shape[1]
        return len(made.prior_precisions()), made.common_hypotheses

    gp = HilbertSpaceGP(n_functions=4)
    assert count(Spline(), Spline(), Spline()) == (HYPOTHESES, True)
    assert count(Spline(), Spline(smooth=False)) == (HYPOTHESES, True)
    assert count(Spline(), gp) == (12 * HYPOTHESES, False)
    assert count(Spline(), gp, gp) == (144, False)  # too many: the first stands for all
    three = {0: Spline(), 1: Spline(n_knots=6), 2: Spline()}
    model = BayesianLinearRegression(basis=three, prior_precision=1.0).fit(X, X[:, 0])
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=0.3)


def test_a_line_goes_on_as_a_line() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(300, 1))
    eta = 5.0 * x[:, 0]
    model = BayesianLinearRegression(basis=Spline()).fit(x, eta + rng.normal(size=300))
    places = np.array([[0.9], [1.5], [3.0]])
    np.testing.assert_allclose(model.predict(places), 5.0 * places[:, 0], rtol=0.1)
    low, high = model.predict_interval(places, of="mean").T
    assert (low < 5.0 * places[:, 0]).all()
    assert (5.0 * places[:, 0] < high).all()
    assert (np.diff(high - low) > 0.1).all()  # less sure further out
    labels = BayesianLogisticRegression(basis=Spline()).fit(x, eta > rng.logistic(size=300))
    assert labels.predict_proba([[1.5]])[0, 1] > 0.97
    counts = BayesianPoissonRegression(basis=Spline()).fit(x, rng.poisson(np.exp(0.2 * eta)))
    low, high = counts.predict_interval([[1.5]], of="mean")[0]
    assert low < np.exp(1.5) < high


@pytest.mark.parametrize("kind", ["quantile", "labels"])
def test_where_no_row_reaches_the_prior_is_proper(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-1.0, -0.5, 60), rng.uniform(0.5, 1.0, 60)])[:, None]
    y = np.sin(4.0 * x[:, 0]) + 0.3 * rng.normal(size=120)  # a line would go on as a line
    if kind == "labels":
        means = BayesianLogisticRegression(basis=Spline()).fit(x, y > 0.0).predict_proba(x)[:, 1]
        assert np.isfinite(means).all()
        return
    model = BayesianQuantileRegression(quantile=0.9, basis=Spline()).fit(x, y)
    places = np.array([[-0.75], [0.0], [0.75]])
    low, high = model.predict_interval(places).T
    assert np.isfinite([low, high]).all()
    assert high[1] - low[1] > 3.0 * (high - low)[[0, 2]].max()
    np.testing.assert_allclose(model.predict(places[[0, 2]]), [0.24, 0.53], atol=0.35)


def test_files_keep_what_they_predict() -> None:
    X, y = draw(0, 60, 2)
    places = np.random.default_rng(1).uniform(-1.5, 1.5, size=(9, 2))
    for basis in (Spline(), Spline(smooth=False), {0: Spline(knots="quantiles")}):
        model = BayesianLinearRegression(basis=basis).fit(X, y)
        again = loads(dumps(model))
        np.testing.assert_array_equal(again.predict(places), model.predict(places))
        np.testing.assert_allclose(again.predict_one(places[0]), model.predict_one(places[0]))


# ---- Gaussian processes outside of their rows ---------------------------------------------------


@pytest.mark.parametrize("additive", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_the_variance_of_the_prior_is_there_everywhere(d: int, additive: bool) -> None:
    if d == 1 and additive:
        return
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(50, d))
    basis = HilbertSpaceGP(length_scale=0.4, additive=additive, domain=(-1.0, 1.0)).fit(X)
    far = np.linspace(-9.0, 9.0, 101)[:, None] * np.eye(d)[0]
    variance = np.square(basis.transform(far)) @ (1.0 / basis.prior_precisions()[0])
    most = 1.0 if not additive else float(d)
    assert variance.min() > 0.85 * most
    assert variance.max() < 1.7 * most
    inside = np.abs(far[:, 0]) <= 1.0
    assert (basis.transform(far)[inside][:, -2 * d :] == 0.0).all()
    row = basis.transform_row(far[-1])
    np.testing.assert_allclose(row, basis.transform(far[-1:])[0])
    assert len(basis.get_feature_names_out()) == len(row)


def test_a_process_returns_to_its_mean_and_its_variance() -> None:
    X, y = draw(0, 60)
    model = BayesianLinearRegression(basis=HilbertSpaceGP()).fit(X, y + 7.0)
    low, high = model.predict_interval([[0.9], [1.2], [1.5], [9.0]], of="mean").T
    assert (np.diff(high - low) > 0.0).all()
    assert abs(model.predict([[9.0]])[0] - model.intercept_) < 1e-9
    inside = BayesianLinearRegression(basis=HilbertSpaceGP(outside="clip")).fit(X, y + 7.0)
    np.testing.assert_allclose(model.predict(X), inside.predict(X), atol=1e-9)
    summary = model.summary().loc[["x0_below", "x0_above"], "sd"]
    assert np.isfinite(summary.astype(float)).all()


@pytest.mark.parametrize("basis", [HilbertSpaceGP(), Spline(), {0: HilbertSpaceGP()}])
def test_average_effects_step_back_at_the_end_of_the_domain(basis: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(200, 1))
    model = BayesianLinearRegression(basis=basis).fit(x, 2.0 * x[:, 0] + 0.5 * rng.normal(size=200))
    found = model.average_effects(x, per="sd").loc["x0"]
    assert found["low"] < 2.0 * x.std() < found["high"]
    assert abs(found["mean"] - 2.0 * x.std()) < 0.1
    step, before = x.std(), x.copy()
    back = (x + step > x.max()) & (x - step >= x.min())
    before[back] -= step
    change = model.predict(before + step) - model.predict(before)
    np.testing.assert_allclose(found["mean"], change.mean())


@pytest.mark.parametrize("basis", ["auto", RandomFourier(length_scale="ard")])
def test_the_search_for_length_scales_finds_short_ones(basis: Any) -> None:
    rng = np.random.default_rng(19)
    x = rng.uniform(-1.0, 1.0, size=(300, 1))
    y = np.sin(20.0 * x[:, 0]) + 0.3 * rng.normal(size=300)
    model = BayesianLinearRegression(basis=basis).fit(x, y)
    assert abs(model.noise_precision_**-0.5 - 0.3) < 0.05
    assert np.abs(model.predict(np.linspace(-1.02, 1.02, 103)[:, None])).max() < 3.0
