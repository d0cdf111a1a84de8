"""Bases whose domain grows with the rows: functions of the old domain say what is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from posterity import BayesianLinearRegression, BayesianPoissonRegression
from posterity.basis import AutoBasis, GrowingBasis, HilbertSpaceGP, RandomFourier, Spline
from posterity.files import dumps, loads

Array = np.ndarray[Any, np.dtype[np.float64]]
BASES: list[Any] = [
    HilbertSpaceGP(),
    HilbertSpaceGP(length_scale=1.0),
    RandomFourier(n_functions=100),
    AutoBasis(n_functions=20),
]
every = pytest.mark.parametrize("basis", BASES, ids=repr)


def drift(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows of a time that goes on from 0 to 10."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 10.0, n))[:, None]
    return x, np.sin(x[:, 0]) + 0.3 * rng.normal(size=n)


@every
@pytest.mark.parametrize("d", [1, 2])
def test_functions_of_a_wider_domain_are_sums_of_the_old_ones(basis: Any, d: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 2.0, size=(50, d))
    X[0], X[1] = 0.0, 2.0
    old = loads(dumps(BayesianLinearRegression(basis=basis).fit(X, X[:, 0]))).basis_
    new = old.reaching(np.full((1, d), 2.3))
    assert isinstance(old, GrowingBasis)
    assert (new.domain_ >= [[0.0, 2.3]] * d).all()
    assert new.reaching(np.full((1, d), 2.4)) is new
    assert old.reaching(X) is old
    ones = np.ones((50, 1))
    columns = np.hstack([ones, old.transform(X)]) @ old.columns_of(new)
    wanted = np.hstack([ones, new.transform(X)])
    # Of functions that the prior takes for large: of a process, its standard deviation.
    sizes = np.append(0.0, new.prior_precisions()[-1] ** -0.5)
    lost = np.square((columns - wanted) * sizes).sum() / np.square(wanted * sizes).sum()
    assert lost < 1e-3


@every
def test_a_stream_says_what_a_fit_of_all_rows_does(basis: Any) -> None:
    x, y = drift(300)
    stream = BayesianLinearRegression(basis=basis).partial_fit(x[:30], y[:30])
    parts = loads(dumps(stream)).partial_fit(x[30:], y[30:])
    for row, target in zip(x[30:60], y[30:60], strict=True):
        stream.learn_one(row, target)
    for first in range(60, 300, 60):
        stream.partial_fit(x[first : first + 60], y[first : first + 60])
    np.testing.assert_allclose(stream.basis_.domain_, parts.basis_.domain_)
    whole = BayesianLinearRegression(basis=basis).fit(x, y)
    for model in (stream, parts):
        low, high = whole.predict_interval(x, of="mean").T
        moved = (model.predict(x) - whole.predict(x)) / ((high - low) / 3.92)
        assert np.sqrt(np.mean(np.square(moved))) < 0.7
        error = model.predict(x) - np.sin(x[:, 0])
        assert np.sqrt(np.mean(np.square(error))) < 0.1


@every
def test_merged_parts_of_one_model_reach_as_far_as_both(basis: Any) -> None:
    x, y = drift(300)
    start = dumps(BayesianLinearRegression(basis=basis).fit(x[100:140], y[100:140]))
    one, other = (
        loads(start).partial_fit(x[140:], y[140:]),
        loads(start).partial_fit(x[:99], y[:99]),
    )
    twice = loads(start).partial_fit(x[np.r_[:99, 100:300]], y[np.r_[:99, 100:300]])
    merged = loads(dumps(one)).merge(other)
    np.testing.assert_allclose(merged.basis_.domain_, twice.basis_.domain_)
    np.testing.assert_allclose(merged.predict(x), twice.predict(x), atol=0.05)
    np.testing.assert_allclose(other.merge(one).predict(x), merged.predict(x), atol=0.05)


def test_counts_and_rows_far_away() -> None:
    x, eta = drift(300)
    y = np.random.default_rng(0).poisson(np.exp(eta)).astype(float)
    stream = BayesianPoissonRegression(basis=HilbertSpaceGP()).partial_fit(x[:30], y[:30])
    for first in range(30, 300, 90):
        stream.partial_fit(x[first : first + 90], y[first : first + 90])
    whole = BayesianPoissonRegression(basis=HilbertSpaceGP()).fit(x, y)
    np.testing.assert_allclose(stream.predict(x), whole.predict(x), rtol=0.1)
    domain = stream.basis_.domain_.copy()
    before = stream.predict(x)
    stream.partial_fit([[1e6]], [5.0])
    np.testing.assert_array_equal(stream.basis_.domain_, domain)
    np.testing.assert_allclose(stream.predict(x), before, rtol=0.05)


@pytest.mark.parametrize("basis", ["auto", HilbertSpaceGP(), Spline()], ids=str)
def test_a_wild_row_in_the_first_batch_leaves_the_curve_of_the_others(basis: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, size=(200, 1))
    y = np.sin(3.0 * x[:, 0]) + 0.3 * rng.normal(size=200)
    wild = BayesianLinearRegression(basis=basis).fit(np.vstack([x, [[50.0]]]), np.append(y, 3.0))
    without = BayesianLinearRegression(basis=basis).fit(x, y)
    places = np.linspace(-0.95, 0.95, 50)[:, None]
    np.testing.assert_allclose(wild.predict(places), without.predict(places), atol=0.15)
    assert np.sqrt(np.mean(np.square(wild.predict(places) - np.sin(3.0 * places[:, 0])))) < 0.07
    if basis != "auto":  # which has its domain from there
        part = rng.uniform(9.0, 10.0, size=(20, 1))  # are not few
        both = clone(basis).fit(np.vstack([x, part]))
        assert both.domain_[0, 1] == part.max()
        assert clone(basis).fit(np.vstack([x[:40], [[50.0]]])).domain_[0, 1] == 50.0


@pytest.mark.parametrize(
    ("basis", "settings"),
    [
        (HilbertSpaceGP(domain=(0.0, 1.0)), {}),
        (HilbertSpaceGP(outside="clip"), {}),
        (RandomFourier(length_scale=1.0), {}),
        (HilbertSpaceGP(), {"fit_intercept": False}),
    ],
)
def test_what_was_asked_for_does_not_grow(basis: Any, settings: dict[str, Any]) -> None:
    x, y = drift(60)
    model = BayesianLinearRegression(basis=basis, **settings).fit(x[:30], y[:30])
    kept = model.basis_
    assert model.partial_fit(x[30:], y[30:]).basis_ is kept


def test_a_call_that_raises_leaves_the_domain() -> None:
    x, y = drift(60)
    model = BayesianLinearRegression(basis=HilbertSpaceGP()).fit(x[:30], y[:30])
    kept = model.basis_
    with pytest.raises(ValueError, match="y contains NaN"):
        model.partial_fit(x[30:], np.append(y[30:-1], np.nan))
    model.partial_fit(x[30:], y[30:], np.zeros(30))
    assert model.basis_ is kept
