"""What every basis promises: scikit-learn's contract, streams, the domain and bad input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator

import posterity.basis
from posterity import BayesianLinearRegression
from posterity.basis import (
    Basis,
    BasisWithPrior,
    Fourier,
    GrowingBasis,
    HilbertSpaceGP,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Spline,
)

EVERY = [
    Polynomial(),
    Polynomial(family="monomial", interactions=False),
    RadialBasis(),
    RadialBasis(centers="quantiles"),
    RadialBasis(centers=[[0.0, 0.0], [1.0, 2.0]], width=0.5),
    Fourier(),
    Fourier(period=7.0),
    Spline(),
    Spline(knots="quantiles", degree=2),
    Spline(knots=[-1.0, 0.0, 2.0]),
    Spline(smooth=False),
    RandomFourier(),
    RandomFourier(kernel="matern32", length_scale=0.7),
    HilbertSpaceGP(),
    HilbertSpaceGP(kernel="matern52", length_scale=2.0),
    HilbertSpaceGP(additive=True),
]
KINDS = [Polynomial, RadialBasis, Fourier, Spline, RandomFourier, HilbertSpaceGP]
X = np.random.default_rng(0).uniform(-1.0, 2.0, size=(60, 2))

every = pytest.mark.parametrize("basis", EVERY, ids=repr)
each_kind = pytest.mark.parametrize("kind", KINDS)


@every
@pytest.mark.parametrize("outside", ["extend", "clip", "raise"])
def test_a_row_by_itself_is_as_in_an_array(basis: Any, outside: str) -> None:
    if outside not in basis._ways_outside:
        pytest.skip("no such way")
    made = clone(basis).set_params(outside=outside).fit(X)
    knots = getattr(made, "knots_", [np.zeros(0), np.zeros(0)])
    edges = [[a, b] for a in knots[0] for b in knots[1][::2]]
    far = [] if outside == "raise" else [[-9.0, 0.5], [0.5, 30.0]]
    rows = np.vstack([X, np.array(edges + far).reshape(-1, 2)])
    rows = rows if outside != "raise" else np.clip(rows, made.domain_[:, 0], made.domain_[:, 1])
    each = np.array([made.transform_row(row) for row in rows])
    # Several rows together: for one, there is nothing else.
    np.testing.assert_allclose(each, made.transform(rows), rtol=1e-12, atol=1e-12)


@each_kind
def test_scikit_learn_accepts_it(kind: Any) -> None:
    check_estimator(kind(), on_skip=None)


def test_the_public_names_are_those_that_are_tested() -> None:
    tested = {k.__name__ for k in [*KINDS, Basis, BasisWithPrior, GrowingBasis]}
    elsewhere = {"ByColumn", "AutoBasis"}  # which have tests of their own
    assert set(posterity.basis.__all__) == tested | elsewhere


@every
def test_a_row_has_the_same_columns_in_whichever_batch_it_comes(basis: Any) -> None:
    basis = clone(basis).fit(X)
    whole = basis.transform(X)
    parts = [basis.transform(X[:1]), basis.transform(X[1:20]), basis.transform(X[20:])]
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(clone(basis).fit(X).transform(X), whole)


@every
def test_no_column_is_constant_and_none_is_missing_a_name(basis: Any) -> None:
    basis = clone(basis).fit(X)
    columns = basis.transform(X)
    names = basis.get_feature_names_out(["a", "b"])
    beyond = [name.endswith(("_below", "_above")) for name in names]  # of what is not known
    assert np.ptp(columns[:, ~np.array(beyond)], axis=0).min() > 0.0
    assert len(names) == len(set(names)) == columns.shape[1]


@every
def test_data_frames_in_and_out(basis: Any) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    basis = clone(basis).set_output(transform="pandas").fit(frame)
    out = basis.transform(frame)
    assert list(out.columns) == list(basis.get_feature_names_out())
    np.testing.assert_array_equal(out.to_numpy(), clone(basis).fit(X).transform(X))
    with config_context(transform_output="pandas"):
        assert clone(basis).fit(frame).transform(frame).shape == out.shape


@pytest.mark.parametrize(
    "basis",
    [
        basis
        for basis in EVERY
        if (getattr(basis, "knots", "even"), getattr(basis, "centers", "even")) == ("even", "even")
    ],
    ids=repr,
)
def test_a_stream_that_knows_its_domain_needs_no_first_batch(basis: Any) -> None:
    """With the domain given, one row or all of them fix the same functions."""
    basis = clone(basis).set_params(domain=((-1.0, 2.0), (-1.5, 2.5)))
    first = clone(basis).fit(X[:1])
    np.testing.assert_array_equal(first.transform(X), clone(basis).fit(X).transform(X))


@given(
    shift=st.floats(-1e6, 1e6),
    unit=st.floats(1e-3, 1e3),
    which=st.sampled_from([kind() for kind in KINDS]),
)
def test_the_unit_of_a_feature_changes_nothing(shift: float, unit: float, which: Any) -> None:
    expected = clone(which).fit(X).transform(X)
    moved = shift + unit * X
    lost = np.finfo(float).eps * np.abs(moved).max() / unit  # digits that the shift itself costs
    np.testing.assert_allclose(
        clone(which).fit(moved).transform(moved), expected, rtol=0.0, atol=1e-10 + 1e3 * lost
    )


@every
def test_clip_is_the_domains_nearest_end(basis: Any) -> None:
    basis = clone(basis).set_params(outside="clip").fit(X)
    low, high = basis.domain_.T
    far = np.array([[-50.0, 0.0], [0.0, 1e6], [1e300, -1e300]])
    np.testing.assert_array_equal(basis.transform(far), basis.transform(np.clip(far, low, high)))


@every
def test_raise_names_feature_value_and_row(basis: Any) -> None:
    basis = clone(basis).set_params(outside="raise").fit(pd.DataFrame(X, columns=["age", "height"]))
    inside = pd.DataFrame(np.repeat(basis.domain_[:, :1].T, 3, axis=0), columns=["age", "height"])
    basis.transform(inside)
    inside.loc[1, "height"] = 7.5
    match = r"^feature 'height' is 7\.5 in row 1, outside its domain \[-?\d.*\] \(the first of 1\):"
    with pytest.raises(ValueError, match=match) as caught:
        basis.transform(inside)
    assert "give a wider domain=, or outside=" in str(caught.value)


def test_what_goes_on_outside() -> None:
    x, out = np.array([[0.0], [1.0]]), np.array([[2.0], [3.0], [4.0]])
    spline = Spline().fit(x).transform(np.concatenate([x, out]))
    np.testing.assert_allclose(np.diff(spline[1:], n=2, axis=0), 0.0, atol=1e-12)  # straight on
    np.testing.assert_allclose(RadialBasis(n_centers=3).fit(x).transform([[9.0]]), 0.0, atol=1e-50)
    fourier = Fourier(period=0.5).fit(x)
    np.testing.assert_allclose(fourier.transform(out), fourier.transform(x[[0, 0, 0]]), atol=1e-13)
    cubic = Polynomial(family="monomial").fit(x)
    np.testing.assert_array_equal(cubic.transform(out), out ** [1, 2, 3])
    legendre = Polynomial().fit(x)
    inside = np.linspace(0.0, 1.0, 9)[:, None]
    weights = np.linalg.lstsq(
        np.column_stack([np.ones(9), legendre.transform(inside)]), inside[:, 0] ** 3, rcond=None
    )[0]
    np.testing.assert_allclose(
        weights[0] + legendre.transform(out) @ weights[1:], out[:, 0] ** 3, rtol=1e-10
    )
    waves = RandomFourier(n_functions=2000, length_scale=0.3).fit(x).transform([[0.5], [7.0]])
    np.testing.assert_allclose((waves**2).sum(axis=1), 1.0)  # the prior variance stays,
    assert abs(waves[0] @ waves[1]) < 0.05  # what was learned does not reach there


@each_kind
@pytest.mark.parametrize("kwargs", [{}, {"domain": (0.0, 1.0)}])
def test_values_that_are_not_finite(kind: Any, kwargs: dict[str, Any]) -> None:
    frame = pd.DataFrame({"a": [0.0, 1.0, 0.5], "b": [0.0, np.nan, np.inf]})
    match = r"Input X contains NaN in row 1, column 'b' \(the first of 2\): drop such rows or fill"
    with pytest.raises(ValueError, match=match):
        kind(**kwargs).fit(frame)
    basis = kind(**kwargs).fit(frame.fillna(0.5).clip(0.0, 1.0))
    with pytest.raises(ValueError, match="Input X contains infinity in row 0, column 'b'"):
        basis.transform(frame.iloc[2:])


@each_kind
def test_a_domain_cannot_be_taken_from_one_value(kind: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"feature 1 is 3 in every row of the first batch "
        r"\(n_samples = 2\): this determines no domain; give domain=\(low, high\), "
        r"or drop the feature",
    ):
        # Without n_knots a spline waits for another value.
        kind(**({"n_knots": 5} if kind is Spline else {})).fit([[0.0, 3.0], [1.0, 3.0]])


@each_kind
@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ("wide", r"domain is 'wide': it must be \(low, high\), or one such pair for each feature"),
        ((0.0, 1.0, 2.0), r"domain has shape \(3,\): .* or one such pair for each of 2 features"),
        ((1.0, 0.0), r"domain of feature 0 is \(1, 0\): low must be less than high"),
        (((0.0, 1.0), (0.0, np.inf)), r"domain of feature 1 is \(0, inf\): .* both finite"),
    ],
)
def test_domains_that_are_none(kind: Any, domain: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind(domain=domain).fit(X)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Polynomial(degree=-1), "degree is -1: it must be a whole number of at least 0"),
        (Polynomial(degree=2.0), "degree is 2.0: it must be a whole number"),
        (Polynomial(family="hermite"), "family is 'hermite': it must be 'legendre' or 'monomial'"),
        (RadialBasis(n_centers=1), "n_centers is 1: it must be a whole number of at least 2"),
        (RadialBasis(centers="kmeans"), "centers is 'kmeans': it must be 'even' or 'quantiles'"),
        (RadialBasis(centers=[[0.0]]), r"centers has shape \(1, 1\): .* or \(c, 2\) points"),
        (RadialBasis(centers=[np.nan]), "centers must be finite: give every bump a finite centre"),
        (RadialBasis(centers=[1.0]), "feature 0 has a single centre, .*: give width="),
        (RadialBasis(centers=[[0.0, 1.0]]), "bumps around points in several features need a width"),
        (RadialBasis(width=0.0), "width is 0.0: it must be a positive number, or one for each"),
        (Fourier(n_frequencies=0), "n_frequencies is 0: it must be a whole number of at least 1"),
        (Fourier(period=-24.0), "period is -24.0: it must be a positive number, or one for each"),
        (Spline(degree=0), "degree is 0: it must be a whole number of at least 1"),
        (Spline(n_knots=True), "n_knots is True: it must be a whole number of at least 2"),
        (Spline(knots="random"), "knots is 'random': it must be 'even' or 'quantiles'"),
        (Spline(knots=[0.0]), r"knots has shape \(1, 2\): .* with at least two knots"),
        (Spline(knots=[0.0, 0.0]), "knots of feature 0 are .*: they must be finite and increase"),
        (Spline(knots=[0.0, 1.0], domain=(0, 1)), "domain and knots are both given"),
        (
            RandomFourier(n_functions=7),
            "n_functions is 7: it must be even, because cosines and sines",
        ),
        (RandomFourier(kernel="linear"), "kernel is 'linear': it must be 'squared_exponential' or"),
        (RandomFourier(length_scale="long"), "length_scale is 'long': it must be 'auto', 'ard'"),
        (HilbertSpaceGP(length_scale=[1.0]), r"length_scale is \[1.0\]: it must be a positive num"),
        (HilbertSpaceGP(length_scale=1e-5), "this domain would need more than 2000 columns"),
        (
            HilbertSpaceGP(boundary_factor=1.0),
            "the box must be larger than the domain, as with 1.5",
        ),
        (Spline(outside="linear"), "outside is 'linear': it must be 'extend' or 'clip' or 'raise'"),
    ],
    ids=repr,
)
def test_parameters_out_of_range(basis: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        basis.fit(X)


def test_rows_so_far_away_that_functions_overflow() -> None:
    basis = Polynomial(degree=9).fit(pd.DataFrame(X, columns=["a", "b"]))
    far = pd.DataFrame({"a": [0.0, 1.0], "b": [0.0, 1e100]})
    with pytest.raises(
        ValueError,
        match=r"feature 'b' is 1e\+100 in row 1, outside its domain .*, so far out that Polynomial "
        r"overflows: drop such rows, or use outside='clip'",
    ):
        basis.transform(far)


def test_quantiles_that_coincide_are_one_place() -> None:
    x = np.concatenate([np.zeros(50), np.linspace(0.0, 1.0, 5)])[:, None]
    assert Spline(n_knots=8, knots="quantiles").fit(x).knots_[0].tolist() == [0.0, 1.0]
    assert RadialBasis(centers="quantiles").fit(x).centers_[0].tolist() == [0.0, 1.0]


def test_any_stateless_transformer_is_a_basis() -> None:
    assert isinstance(PolynomialFeatures(), Basis)
    assert not isinstance(PolynomialFeatures(), BasisWithPrior)
    assert all(isinstance(kind(), Basis) for kind in KINDS)
    assert [k.__name__ for k in KINDS if isinstance(k(), BasisWithPrior)] == [
        "RadialBasis",
        "Spline",
        "RandomFourier",
        "HilbertSpaceGP",
    ]


@pytest.mark.parametrize("basis", [Polynomial(degree=7), *(kind() for kind in KINDS[1:])], ids=repr)
def test_in_a_pipeline_it_fits_a_curve(basis: Any) -> None:
    x = np.linspace(0.0, 1.0, 400)[:, None]
    y = 3.0 + np.sin(2.0 * np.pi * x[:, 0]) + 0.05 * np.random.default_rng(0).normal(size=400)
    model = make_pipeline(basis, BayesianLinearRegression(prior_precision=1e-3)).fit(x, y)
    truth = 3.0 + np.sin(2.0 * np.pi * x[:, 0])
    assert np.sqrt(np.mean((model.predict(x) - truth) ** 2)) < 0.03


def test_a_fit_that_is_refused_changes_nothing() -> None:
    X = np.linspace(0.0, 1.0, 20)[:, None]
    for basis in (posterity.basis.AutoBasis(), posterity.basis.ByColumn({0: Spline(n_knots=4)})):
        basis.fit(X, X[:, 0])
        before = dict(basis.__dict__)
        for wide, y in ((np.ones((20, 2)), X[:, 0]), (10**400 * np.ones((20, 1), object), X[:, 0])):
            with pytest.raises(ValueError, match=r".+"):
                basis.fit(wide, y) if wide.dtype == object else basis.fit(wide * np.nan, y)
            assert basis.__dict__ == before
