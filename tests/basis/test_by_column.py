"""A basis for each column is the columns of each, side by side, in any model and any file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.preprocessing import PolynomialFeatures

import posterity
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)
from posterity.basis import ByColumn, Fourier, HilbertSpaceGP, Polynomial, Spline
from posterity.files import dumps, loads
from posterity.forgetting import Exponential

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.uniform(0, 24, 400), RNG.normal(20, 5, 400), RNG.normal(size=400)])
Y = np.sin(X[:, 0] * np.pi / 12) + 0.01 * (X[:, 1] - 20) ** 2 + X[:, 2] + RNG.normal(0, 0.1, 400)
NAMES = ["hour", "temperature", "weight"]
DAY, SPLINE = Fourier(period=24.0, n_frequencies=2), Spline(domain=(0.0, 40.0))


def test_its_columns_are_those_of_each_side_by_side():
    ours = ByColumn({0: DAY, 1: SPLINE}).fit(X)
    parts = DAY.fit_transform(X[:, :1]), SPLINE.fit_transform(X[:, 1:2]), X[:, 2:]
    np.testing.assert_array_equal(ours.transform(X), np.concatenate(parts, axis=1))
    np.testing.assert_allclose(ours.transform_row(X[5]), ours.transform(X[5:6])[0], atol=1e-13)
    assert ours.get_feature_names_out(NAMES)[-2:].tolist() == ["temperature_spline48", "weight"]


@pytest.mark.parametrize("key", [1, -2, np.int64(1)])
def test_columns_by_number(key):
    ours = ByColumn({key: Polynomial(degree=2, family="monomial")}).fit(X)
    np.testing.assert_allclose(ours.transform(X)[:, 1], X[:, 1] ** 2)


def test_several_columns_together():
    ours = ByColumn({(2, 0): PolynomialFeatures(degree=2, include_bias=False)}).fit(X)
    columns = ours.transform(X)
    np.testing.assert_allclose(columns[:, 3], X[:, 2] * X[:, 0])
    assert ours.get_feature_names_out(NAMES).tolist() == [
        "weight", "hour", "weight^2", "weight hour", "hour^2", "temperature",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        ({3: DAY}, "basis has a column 3, which is not in X: it has 3 columns"),
        ({"hour": DAY}, "basis has a column 'hour', which is not in X"),
        ({0: DAY, (1, 0): SPLINE}, r"basis has column \(1, 0\) twice: give each column one basis"),
        ({0: "spline"}, "the basis of column 0 is 'spline': it must be a transformer"),
        ({0: Spline}, "the basis of column 0 is <class"),
        ({0: HilbertSpaceGP(), 1: HilbertSpaceGP(), 2: HilbertSpaceGP()}, "give some of them a"),
    ],
)
def test_what_is_refused(bases, message):
    model = BayesianLinearRegression(basis=bases)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Y)
    assert not hasattr(model, "n_features_in_")


def test_a_value_outside_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    basis = {"temperature": Spline(domain=(-50.0, 90.0), outside="raise")}
    model = BayesianLinearRegression(basis=basis).fit(frame, Y)
    frame.loc[7, "temperature"] = 99.0
    with pytest.raises(ValueError, match="feature 'temperature' is 99 in row 7, outside"):
        model.predict(frame)


@pytest.mark.parametrize("other", [SPLINE, HilbertSpaceGP(domain=(0.0, 40.0))])
def test_in_any_units(other):
    units = np.array([1.0, 1.0, 1e6])
    models = [BayesianLinearRegression(basis={0: DAY, 1: other}) for _ in range(2)]
    one, two = models[0].fit(X, Y), models[1].fit(X * units, Y)
    np.testing.assert_allclose(one.predict(X), two.predict(X * units), rtol=1e-6, atol=1e-6)
    assert np.mean((one.predict(X) - Y) ** 2) < 0.015


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BayesianLinearRegression(), Y),
        (BayesianLinearRegression(forgetting=Exponential(0.999)), Y),
        (BayesianLogisticRegression(), Y - np.median(Y) > 0.0),
        (BayesianPoissonRegression(), np.round(np.exp(Y - Y.mean()))),
        (BayesianRobustRegression(), Y),
    ],
    ids=["linear", "forgetting", "logistic", "poisson", "robust"],
)
def test_every_model_takes_it(model, y):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=NAMES)
    model = clone(model).set_params(basis={"hour": DAY, "temperature": SPLINE})
    by_hand = clone(model).set_params(basis=ByColumn({0: DAY, 1: SPLINE}, NAMES))
    model.fit(frame[:300], y[:300]).partial_fit(frame[300:], y[300:])
    by_hand.fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    read = getattr(model, "predict_proba", model.predict)
    by = getattr(by_hand, "predict_proba", by_hand.predict)
    np.testing.assert_allclose(read(frame), by(X), rtol=1e-9, atol=1e-9)
    again = loads(dumps(model))
    np.testing.assert_array_equal(
        getattr(again, "predict_proba", again.predict)(frame), read(frame)
    )
    row = dict(zip(NAMES, X[0].tolist(), strict=True))
    assert model.learn_one(row, y[0]).n_observations_ == 401


def test_files_and_merging(tmp_path):
    bases = {0: DAY, 1: SPLINE, 2: Fourier(period=3.0)}
    halves = [BayesianLinearRegression(basis=bases).fit(X[at], Y[at])
              for at in (slice(200), slice(200, 400))]  # fmt: skip
    posterity.save(halves[0], tmp_path / "half.posterity")
    whole = posterity.load(tmp_path / "half.posterity").merge(halves[1])
    at_once = BayesianLinearRegression(basis=bases).fit(X, Y)
    np.testing.assert_allclose(whole.predict(X), at_once.predict(X), rtol=1e-8)
    other = BayesianLinearRegression(basis={0: DAY, 1: SPLINE}).fit(X, Y)
    with pytest.raises(ValueError, match="the models differ in their basis"):
        at_once.merge(other)


def test_constant_columns_stay_straight():
    spare = np.column_stack([X, np.ones(400)])
    model = BayesianLinearRegression(basis=Spline(n_knots=9)).fit(spare, Y)
    without = BayesianLinearRegression(basis=Spline(n_knots=9)).fit(X, Y)
    np.testing.assert_allclose(model.predict(spare), without.predict(X), atol=1e-3)
    assert model.posterior_.names[-1] == "x3"
    moved = spare.copy()
    moved[:, 3] = RNG.normal(size=400)
    late = model.partial_fit(moved, Y + 3.0 * (moved[:, 3] - 1.0))
    assert abs(late.posterior_["x3"].mean() - 3.0) < 0.1
    with pytest.raises(ValueError, match="this determines no domain"):
        BayesianLinearRegression(basis=Spline(n_knots=9)).fit(np.ones((5, 2)), Y[:5])
