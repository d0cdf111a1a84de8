"""Text and category columns of a frame are levels, each with a coefficient of its own."""

from __future__ import annotations

import functools
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import posterity
from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
)
from posterity.basis import HilbertSpaceGP, Spline
from posterity.cli.commands import posterity as command
from posterity.forgetting import Adaptive, Changepoint, Stabilized, Window
from posterity.generalized import VaryingFeatures
from posterity.io import learn_stream, predict_stream
from posterity.sparse import SparseLinearRegression

RNG = np.random.default_rng(0)
N = 240
ZONE = RNG.choice(list("cabd"), N)
KM = RNG.normal(size=N)
EFFECTS = dict(zip("abcd", (0.0, 1.0, 3.0, 2.0), strict=True))
MEAN = 5.0 + KM + np.array([EFFECTS[zone] for zone in ZONE])
Y = MEAN + 0.5 * RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(0.3 * (MEAN - 5.0)))
RIDES = pd.DataFrame({"zone": ZONE, "km": KM})
LEVELS = ["zone=a", "zone=b", "zone=c", "zone=d"]
NEW = pd.DataFrame({"zone": ["a", "elsewhere"], "km": [0.0, 0.0]})

MODELS = {
    "linear": (BayesianLinearRegression, Y),
    "labels": (BayesianLogisticRegression, np.median(Y) + RNG.normal(size=N) < Y),
    "three classes": (BayesianLogisticRegression, np.digitize(Y + RNG.normal(size=N), [5.5, 7.5])),
    "counts": (BayesianPoissonRegression, COUNTS),
    "dispersed counts": (BayesianNegativeBinomialRegression, COUNTS),
    "outliers": (BayesianRobustRegression, Y),
    "quantile": (BayesianQuantileRegression, Y),
    "targets": (BayesianLinearRegression, np.column_stack([Y, -Y])),
}


def make_frames() -> dict[str, Any]:
    columns = RIDES.to_dict("list")
    table = pa.table(columns)
    return {
        "text": RIDES,
        "object": RIDES.astype({"zone": object}),
        "string": RIDES.astype({"zone": "string"}),
        "category": RIDES.astype({"zone": "category"}),
        "Polars": pl.DataFrame(columns),
        "Polars, Categorical": pl.DataFrame(columns).with_columns(
            pl.col("zone").cast(pl.Categorical)
        ),
        "Polars, Enum": pl.DataFrame(columns).with_columns(
            pl.col("zone").cast(pl.Enum(list("abcd")))
        ),
        "Arrow": table,
        "Arrow, large": table.set_column(0, "zone", table["zone"].cast(pa.large_string())),
        "Arrow, pandas' categories": pa.Table.from_pandas(RIDES.astype({"zone": "category"})),
    }


@pytest.mark.parametrize("kind", make_frames())
def test_every_container_gives_the_same_posterior(kind: str) -> None:
    model = BayesianLinearRegression().fit(make_frames()[kind], Y)
    plain = BayesianLinearRegression().fit(RIDES, Y)
    assert model.posterior_.names == ("intercept", "km", *LEVELS, "zone=(other)")
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(make_frames()[kind]), plain.predict(RIDES))
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["zone", "km"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_levels_as_columns_of_zeros_and_ones(name: str) -> None:
    kind, y = MODELS[name]
    columns = pd.DataFrame({"km": KM, **{one: one[-1] == ZONE for one in LEVELS}, "none": False})
    text, ones = kind().fit(RIDES, y), kind().fit(columns.astype(float), y)
    np.testing.assert_allclose(text.coef_, ones.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        text.predict_interval(RIDES[:9]), ones.predict_interval(columns.astype(float)[:9])
    )
    shown = text.summary(base="mean")
    assert [name.split(" (")[0] for name in shown.index[:6]] == ["intercept", "km", *LEVELS]


def test_the_first_row_may_be_a_row_of_a_frame() -> None:
    frame = pd.DataFrame({"age": [1.0, 2.0], "zone": ["north", "south"]})
    rows, mappings = BayesianLinearRegression(), BayesianLinearRegression()
    for place, row in enumerate(frame.to_dict("records")):
        rows.learn_one(frame.iloc[place], 1.0 + place)
        mappings.learn_one(row, 1.0 + place)
    assert rows.feature_names_in_.tolist() == ["age", "zone"]
    np.testing.assert_array_equal(rows.coef_, mappings.coef_)


def test_the_order_of_rows_does_not_matter() -> None:
    order = np.argsort(RIDES["zone"].to_numpy(), kind="stable")[::-1]
    model = BayesianLinearRegression().fit(RIDES.iloc[order], Y[order])
    plain = BayesianLinearRegression().fit(RIDES, Y)
    assert model.posterior_.names == plain.posterior_.names
    np.testing.assert_allclose(model.coef_, plain.coef_)


def test_levels_are_in_the_order_of_their_type_or_sorted() -> None:
    sizes = pd.Categorical(["s", "l", "m"] * 20, categories=["s", "m", "l", "xl"])
    frame = pd.DataFrame({"size": sizes, "floor": ["9", "10", "b"] * 20})
    model = BayesianLinearRegression().fit(frame, np.arange(60.0))
    assert [str(name) for name in model.posterior_.names or ()][1:] == [
        *(f"size={level}" for level in ("s", "m", "l", "xl", "(other)")),
        *(f"floor={level}" for level in ("9", "10", "b", "(other)")),
    ]


# ---- what is shown -------------------------------------------------------------------------------


def test_contrasts_are_those_of_least_squares() -> None:
    model = BayesianLinearRegression(prior_precision=0.0).fit(RIDES, Y)
    for base in "ac":
        dummies = {f"zone={z}": (z == ZONE) * 1.0 for z in "abcd" if z != base}
        there = sm.OLS(Y, sm.add_constant(pd.DataFrame({"km": KM, **dummies}))).fit()
        table = model.summary(base="first" if base == "a" else {"zone": base})
        both = list(there.params.index[1:])
        np.testing.assert_allclose(table.loc[both, "mean"], there.params[both])
        np.testing.assert_allclose(table.loc[both, ["low", "high"]], there.conf_int().loc[both])
        np.testing.assert_allclose(table.loc["intercept", "mean"], there.params["const"])
        shown = table.loc[f"zone={base}", ["mean", "sd", "low", "high"]].astype(float)
        assert (shown == 0.0).all()
    # Against the mean of levels: effects that add up to 0.
    effects = np.array([[z == ZONE for z in "abc"]]).squeeze().T - (ZONE == "d")[:, None] * 1.0
    there = sm.OLS(Y, sm.add_constant(np.column_stack([KM, effects]))).fit()
    table = model.summary()
    np.testing.assert_allclose(table["mean"].to_numpy()[:5], there.params)
    np.testing.assert_allclose(table[["low", "high"]].to_numpy()[:5], there.conf_int())
    np.testing.assert_allclose(table.loc[LEVELS, "mean"].sum(), 0.0, atol=1e-9)


def test_rates_have_the_base_at_one() -> None:
    years = RNG.uniform(0.5, 2.0, N)
    claims = RNG.poisson(years * np.exp(0.3 * (MEAN - 5.0)))
    model = BayesianPoissonRegression(prior_precision=0.0, approximation="laplace")
    table = model.fit(RIDES, claims, exposure=years).summary(base="first")
    dummies = pd.DataFrame({"km": KM, **{f"zone={z}": (z == ZONE) * 1.0 for z in "bcd"}})
    there = sm.GLM(claims, sm.add_constant(dummies), sm.families.Poisson(), exposure=years).fit()
    both = list(there.params.index[1:])
    np.testing.assert_allclose(table.loc[both, "rate_ratio"], np.exp(there.params[both]), rtol=1e-5)
    np.testing.assert_allclose(
        table.loc[both, ["rate_ratio_low", "rate_ratio_high"]],
        np.exp(there.conf_int().loc[both]),
        rtol=1e-4,
    )
    assert table.loc["zone=a", "rate_ratio"] == 1.0
    odds = BayesianLogisticRegression().fit(RIDES, MODELS["labels"][1]).summary(base={"zone": "d"})
    assert odds.loc["zone=d", "odds_ratio"] == 1.0


def test_intervals_are_those_of_the_contrast() -> None:
    """Not the difference of intervals that no row tells apart: a district's wide one."""
    model = BayesianLinearRegression().fit(RIDES, Y)
    joint = model.posterior_
    difference = joint.contrast({"zone=b": 1.0, "zone=a": -1.0})
    table = model.summary(base="first")
    np.testing.assert_allclose(table[["low", "high"]].loc["zone=b"], difference.interval(0.95))
    alone = np.diff(joint.interval(0.95)[2])[0]
    assert table.loc["zone=b", "high"] - table.loc["zone=b", "low"] < 0.2 * alone
    weights = np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(joint.contrast(weights).std(), difference.std())
    with pytest.raises(ValueError, match="7 coefficients"):
        joint.contrast([1.0, -1.0])


def test_contrasts_of_several_targets_and_classes() -> None:
    several = BayesianLinearRegression().fit(RIDES, np.column_stack([Y, -Y]))
    found = several.posterior_.contrast({"zone=b": 1.0, "zone=a": -1.0})
    assert list(found) == ["y0", "y1"]
    np.testing.assert_allclose(found["y0"].mean(), -found["y1"].mean())
    table = several.summary(base="first")
    np.testing.assert_allclose(table.loc["zone=b", "mean"].tolist()[0], found["y0"].mean())
    many = BayesianLogisticRegression().fit(RIDES, MODELS["three classes"][1])
    assert many.summary(base="first").loc["zone=a (1 - 0)", "mean"] == 0.0


def test_predictions_follow_from_what_is_shown() -> None:
    model = BayesianLinearRegression().fit(RIDES, Y)
    for base in (None, "mean", "first", {"zone": "c"}):
        shown = model.summary(base=base)["mean"]
        again = (
            shown["intercept"] + shown["km"] * KM + shown[[f"zone={z}" for z in ZONE]].to_numpy()
        )
        np.testing.assert_allclose(again, model.predict(RIDES))


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("men", "base is 'men': it must be 'mean', 'first' or a dict of columns and levels"),
        ({"zon": "a"}, "base names 'zon', which is no category: .*; did you mean 'zone'?"),
        ({"km": "a"}, "base names 'km', which is no category: the categories are 'zone'"),
        ({"zone": "A"}, "base is 'A' for column 'zone', which has no such level: .*mean 'a'?"),
    ],
)
def test_a_base_that_is_not_there(base: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression().fit(RIDES, Y).summary(base=base)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "targets"])
def test_columns_that_add_up_to_the_intercept_are_found(name: str) -> None:
    kind, y = MODELS[name]
    encoder = OneHotEncoder(sparse_output=False).set_output(transform="pandas")
    ones = encoder.fit_transform(RIDES[["zone"]]).assign(km=KM)
    model = kind().fit(ones, y)
    with pytest.warns(UserWarning, match="'zone_a', 'zone_b', 'zone_c', 'zone_d' add up to the"):
        model.summary()
    shown = model.summary(base="mean")["mean"].to_numpy()[:6]
    text = kind().fit(RIDES, y).summary(base="mean")["mean"].to_numpy()[:6]
    np.testing.assert_allclose(shown[[0, 5, 1, 2, 3, 4]], text, rtol=1e-6, atol=1e-6)


def test_columns_that_do_not_add_up_are_not_found() -> None:
    dropped = pd.get_dummies(RIDES, drop_first=True, dtype=float)
    halves = pd.DataFrame({"a": (KM > 0.0) * 1.0, "b": (KM < 0.5) * 1.0, "c": (KM > 1.0) * 1.0})
    for X in (dropped, halves, RIDES[["km"]]):
        assert len(BayesianLinearRegression().fit(X, Y).summary(base="mean")) == X.shape[1] + 1
        BayesianLinearRegression().fit(X, Y).summary()


# ---- levels that were never learned --------------------------------------------------------------


def test_an_unknown_level_has_the_given_prior() -> None:
    model = BayesianLinearRegression(prior_precision=4.0, noise_precision=2.0).fit(RIDES, Y)
    rows = np.column_stack([np.ones(N), KM, *(z == ZONE for z in "abcd")])
    information = 2.0 * rows.T @ rows + np.diag([0.0, *[4.0] * 5])
    covariance = np.linalg.inv(information)
    mean = covariance @ (2.0 * rows.T @ Y)
    found = model.predict_distribution(NEW)
    np.testing.assert_allclose(found.mean(), [mean[0] + mean[2], mean[0]])
    known = covariance[0, 0] + covariance[2, 2] + 2.0 * covariance[0, 2]
    np.testing.assert_allclose(found.var(), [0.5 + known, 0.5 + covariance[0, 0] + 0.25], rtol=1e-9)


@pytest.mark.parametrize("name", ["linear", "outliers", "targets", "counts", "labels"])
def test_an_unknown_level_is_predicted_by_what_levels_differ_by(name: str) -> None:
    kind, y = MODELS[name]
    model = kind().fit(RIDES, y)
    how = {"of": "mean"} if name != "outliers" else {}
    intervals = model.predict_interval(NEW, **how)
    width = np.diff(intervals.reshape(2, -1)[:, :2], axis=1)[:, 0]
    assert width[1] > 2.0 * width[0]
    if name == "linear":
        low, high = intervals[1]
        assert low < 5.0 + min(EFFECTS.values())
        assert high > 5.0 + max(EFFECTS.values())
        expected = 5.0 + np.mean(list(EFFECTS.values()))
        assert abs(model.predict(NEW)[1] - expected) < 0.3


def test_unknown_levels_cover_new_levels() -> None:
    """Of many levels that are alike, a new one lies in its 95% interval."""
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        effects = rng.normal(size=21)
        shop = rng.integers(0, 20, 200)
        X = pd.DataFrame({"shop": [f"s{one}" for one in shop]})
        model = BayesianLinearRegression().fit(X, effects[shop] + 0.3 * rng.normal(size=200))
        low, high = model.predict_interval(pd.DataFrame({"shop": ["new"]}), of="mean")[0]
        inside.append(low < effects[20] < high)
    assert 0.85 <= np.mean(inside) <= 1.0


def test_levels_that_a_type_names_are_known_before_they_come() -> None:
    zones = pd.Categorical(ZONE, categories=list("abcde"))
    model = BayesianRobustRegression().fit(RIDES.assign(zone=zones), Y)
    assert "zone=e" in model.posterior_.names
    late = pd.DataFrame({"zone": ["e"] * 30, "km": KM[:30]})
    model.partial_fit(late, KM[:30] + 9.0)
    table = model.summary(base="first")
    assert table.loc["zone=e", "low"] < 4.0 < table.loc["zone=e", "high"]


# ---- levels that come later ----------------------------------------------------------------------


@given(st.lists(st.sampled_from("abcd"), min_size=6, max_size=12), st.integers(1, 5), st.booleans())
def test_levels_join_at_any_time(zones: list[str], cut: int, fit_intercept: bool) -> None:
    X = pd.DataFrame({"km": KM[: len(zones)], "zone": zones})
    y = Y[: len(zones)]
    settings = {"prior_precision": 1.0, "fit_intercept": fit_intercept}
    whole = BayesianLinearRegression(**settings).fit(X, y)
    parts = BayesianLinearRegression(**settings).fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    rows = BayesianLinearRegression(**settings)
    for row, target in zip(X.to_dict("records"), y, strict=True):
        rows.learn_one(row, target)
    merged = BayesianLinearRegression(**settings).fit(X[:cut], y[:cut])
    merged.merge(BayesianLinearRegression(**settings).fit(X[cut:], y[cut:]))
    for model in (parts, rows, merged):
        assert model.posterior_.names == whole.posterior_.names
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.log_evidence_, whole.log_evidence_)
    left = whole.unlearn(X[:cut], y[:cut])
    rest = BayesianLinearRegression(**settings).fit(X[cut:], y[cut:])
    np.testing.assert_allclose(left.predict(X[cut:]), rest.predict(X[cut:]), rtol=1e-6, atol=1e-6)


LATE = RIDES.assign(zone=np.where(np.arange(N) < 200, np.where(ZONE == "b", "a", ZONE), ZONE))


MORE_MODELS = MODELS | {
    "quantiles": (functools.partial(BayesianQuantileRegression, quantile=[0.1, 0.9]), Y),
    "noise by feature": (functools.partial(BayesianLinearRegression, noise="linear"), Y),
}


@pytest.mark.parametrize(
    ("name", "forgetting"),
    [
        ("linear", None),
        ("linear", Stabilized(half_life=90.0)),
        ("linear", Window(150)),
        ("linear", Adaptive()),
        ("linear", Changepoint()),
        ("labels", None),
        ("counts", Stabilized(half_life=90.0)),
        ("three classes", None),
        ("outliers", None),
        ("outliers", Stabilized(half_life=90.0)),
        ("outliers", Window(150)),
        ("quantile", None),
        ("quantiles", None),
        ("noise by feature", None),
        ("noise by feature", Stabilized(half_life=90.0)),
        pytest.param("labels", Changepoint(), marks=pytest.mark.slow),
        pytest.param("outliers", Adaptive(), marks=pytest.mark.slow),
        pytest.param("noise by feature", Adaptive(), marks=pytest.mark.slow),
        pytest.param("labels", Window(150), marks=pytest.mark.slow),
        pytest.param("counts", Adaptive(), marks=pytest.mark.slow),
        pytest.param("counts", Changepoint(), marks=pytest.mark.slow),
        pytest.param("three classes", Window(150), marks=pytest.mark.slow),
    ],
)
def test_levels_join_models_of_every_kind(name: str, forgetting: Any) -> None:
    kind, y = MORE_MODELS[name]
    named = LATE.assign(zone=LATE["zone"].astype("category"))
    made = [kind(prior_precision=1.0, forgetting=forgetting) for _ in range(2)]
    for model, X in zip(made, (LATE, named), strict=True):
        model.partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    late, early = made
    assert late.categories_ == early.categories_
    np.testing.assert_allclose(late.coef_, early.coef_, rtol=0.02, atol=0.02)
    if name == "noise by feature":
        np.testing.assert_allclose(late.noise_coef_, early.noise_coef_, atol=0.02)


def test_what_was_left_out_stays_left_out() -> None:
    late = RIDES.assign(zone=np.where(ZONE == "a", "b", ZONE))
    model = BayesianLinearRegression(forgetting=Changepoint()).fit(late, Y)
    before = model.predict(late)
    model.partial_fit(RIDES[:1].assign(zone="a"), Y[:1])  # before the others in the alphabet
    np.testing.assert_allclose(model.predict(late), before, atol=0.05)
    assert model.categories_.each[0].levels == ("b", "a", "c", "d")


@pytest.mark.parametrize("name", ["outliers", "quantile", "noise by feature"])
def test_levels_join_by_rows_and_merges(name: str) -> None:
    kind, y = MORE_MODELS[name]
    rows, batches = kind(prior_precision=1.0), kind(prior_precision=1.0)
    cut = 190
    for row, target in zip(LATE[:cut].to_dict("records"), y, strict=False):
        rows.learn_one(row, target)
    for row, target in zip(LATE[cut:230].to_dict("records"), y[cut:], strict=False):
        rows.learn_one(row, target)
    batches.partial_fit(LATE[:cut], y[:cut]).partial_fit(LATE[cut:230], y[cut:230])
    np.testing.assert_allclose(rows.predict(LATE), batches.predict(LATE), atol=0.1)
    merged = kind(prior_precision=1.0).fit(LATE[:200], y[:200])
    merged.merge(kind(prior_precision=1.0).fit(LATE[200:], y[200:]))
    whole = kind(prior_precision=1.0).fit(LATE, y)
    assert merged.posterior_.names == whole.posterior_.names
    np.testing.assert_allclose(merged.predict(LATE), whole.predict(LATE), atol=0.2)
    wide = kind(prior_precision=1.0).fit(LATE[:30], y[:30]).predict_interval(LATE[200:])
    assert np.isfinite(wide).all()


def test_rows_learn_a_level_as_they_are_predicted() -> None:
    model = BayesianLinearRegression(prior_precision=1.0).fit(RIDES[:30], Y[:30])
    row = {"km": 0.5, "zone": "new"}
    other = pickle.loads(pickle.dumps(model)).learn_one(row, 3.0)
    expected = model.predict_distribution_one(row).logpdf(3.0)
    assert model.predict_then_learn_one(row, 3.0).logpdf(3.0) == pytest.approx(expected)
    np.testing.assert_allclose(model.coef_, other.coef_)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.predict_then_learn_one({**row, "zone": "newer"}, np.nan)
    assert "zone=newer" not in model.posterior_.names


def test_changes_are_found_beside_levels() -> None:
    turned = Y + 5.0 * KM * (np.arange(len(Y)) >= len(Y) // 2)
    model = BayesianLinearRegression(forgetting=Changepoint()).fit(RIDES, turned)
    assert model.changes_.tolist() == pytest.approx([len(Y) // 2], abs=3)
    dropped = pd.get_dummies(RIDES, drop_first=True, dtype=float)
    same = BayesianLinearRegression(forgetting=Changepoint()).fit(dropped, turned)
    np.testing.assert_allclose(model.predict(RIDES), same.predict(dropped))
    unknown = RIDES[:1].assign(zone="elsewhere")
    with pytest.raises(ValueError, match=r"'zone' has a level in row 0 that was not learned: the "):
        model.predict(unknown)
    with pytest.raises(ValueError, match="was not learned"):
        model.predict_one(unknown.iloc[0].to_dict())


def test_what_can_not_be_merged() -> None:
    numbers = BayesianLinearRegression().fit(RIDES.assign(zone=KM), Y)
    with pytest.raises(ValueError, match="column 'zone' is a category in one of the models"):
        numbers.merge(BayesianLinearRegression().fit(RIDES, Y))
    with pytest.raises(ValueError, match="column 'zone' is a category in one of the models"):
        BayesianLinearRegression().fit(RIDES, Y).merge(numbers)
    ordered = [
        BayesianLinearRegression().fit(
            RIDES.assign(zone=pd.Categorical(ZONE, categories=list(levels))), Y
        )
        for levels in ("dbca", "abcd")
    ]
    with pytest.raises(ValueError, match="the levels of a category come in different orders"):
        ordered[0].merge(ordered[1])


# ---- single rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["linear", "labels", "three classes", "counts", "outliers"])
def test_rows_that_are_mappings(name: str) -> None:
    kind, y = MODELS[name]
    model = kind().partial_fit(RIDES, y)
    row = {"zone": "c", "km": 0.5}
    one, many = model.predict_one(row), model.predict(pd.DataFrame([row]))[0]
    assert one == many if isinstance(one, str | bool) else abs(one - many) < 0.05
    model.predict_one({"zone": "elsewhere", "km": 0.5})
    before = model.n_observations_
    model.learn_one(row, y[0])
    assert model.n_observations_ == before + 1.0
    with pytest.raises(ValueError, match="missing 'km'"):
        model.predict_one({"zone": "c"})
    with pytest.raises(ValueError, match="'zone' is missing"):
        model.predict_one({"zone": None, "km": 0.5})


def test_a_row_with_other_columns_of_numbers_and_a_basis() -> None:
    for basis in (Spline(domain=(-4.0, 4.0)), {"km": HilbertSpaceGP(domain=(-4.0, 4.0))}):
        model = BayesianLinearRegression(basis=basis).fit(RIDES, Y)
        again = BayesianLinearRegression(basis=basis)
        for row, target in zip(RIDES.to_dict("records"), Y, strict=True):
            again.learn_one(row, target)
        np.testing.assert_allclose(again.predict(RIDES), model.predict(RIDES), atol=0.05)
        table = model.summary(base="first")
        assert table.loc["zone=c", "low"] < 3.0 < table.loc["zone=c", "high"]
    with pytest.raises(ValueError, match="all features are categories"):
        BayesianLinearRegression(basis="auto").fit(RIDES[["zone"]], Y)


# ---- parameters and values -----------------------------------------------------------------------


def test_numbers_that_are_named_are_levels() -> None:
    rooms = RNG.integers(1, 4, N)
    frame = pd.DataFrame({"rooms": rooms, "km": KM})
    model = BayesianLinearRegression(categorical_features=["rooms"]).fit(frame, Y)
    assert model.posterior_.names[2:5] == ("rooms=1", "rooms=2", "rooms=3")
    floats = frame.astype({"rooms": float})
    np.testing.assert_array_equal(model.predict(frame), model.predict(floats))
    array = BayesianLinearRegression(categorical_features=["x0"]).fit(frame.to_numpy(), Y)
    np.testing.assert_array_equal(array.predict(frame.to_numpy()), model.predict(frame))
    assert array.average_effects(frame.to_numpy()).index.tolist() == ["x0=2", "x0=3", "x1"]
    every = BayesianLinearRegression(categorical_features="all").fit(frame[["rooms"]], Y)
    assert every.posterior_.names[1:4] == ("rooms=1", "rooms=2", "rooms=3")
    assert BayesianLinearRegression().fit(frame, Y).posterior_.names == ("intercept", "rooms", "km")


def test_truths_and_numbers_with_holes_are_numbers() -> None:
    frame = pd.DataFrame({"new": KM > 0.0, "n": pd.array([1, 2] * (N // 2), dtype="Int64")})
    frame["known"] = pd.array([True, False] * (N // 2), dtype="boolean")
    assert BayesianLinearRegression().fit(frame, Y).posterior_.names[1:] == ("new", "n", "known")


def test_missing_values_are_refused_or_a_level() -> None:
    holes = RIDES.assign(zone=RIDES["zone"].where(RIDES.index != 3))
    for X in (holes, pl.from_pandas(holes), pa.Table.from_pandas(holes)):
        with pytest.raises(
            ValueError, match=r"column 'zone' is missing in row 3: .*missing='level'"
        ):
            BayesianLinearRegression().fit(X, Y)
        model = BayesianLinearRegression(missing="level").fit(X, Y)
        assert model.posterior_.names[2:] == (*LEVELS, "zone=missing", "zone=(other)")
        np.testing.assert_allclose(
            model.predict(X),
            BayesianLinearRegression()
            .fit(holes.fillna("missing"), Y)
            .predict(RIDES.assign(zone=holes["zone"].fillna("missing"))),
        )
    numbers = RIDES.assign(km=np.where(np.arange(N) == 5, np.nan, KM))
    with pytest.raises(ValueError, match="NaN in row 5, column 'km'"):
        BayesianLinearRegression(missing="level").fit(numbers, Y)
    with pytest.raises(ValueError, match="missing is 'skip': it must be 'error' or 'level'"):
        BayesianLinearRegression(missing="skip").fit(RIDES, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("zone", "categorical_features is 'zone': it must be 'auto', 'all', None, a list"),
        (["zon"], "categorical_features names 'zon', which X lacks: .*; did you mean 'zone'?"),
        (None, "could not convert .* column 'zone'; .*categorical_features='auto'"),
    ],
)
def test_parameters_that_can_not_be(asked: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(categorical_features=asked).fit(RIDES, Y)


def test_one_level_says_nothing() -> None:
    model = BayesianLinearRegression().fit(RIDES.assign(zone="a"), Y)
    plain = BayesianLinearRegression().fit(RIDES[["km"]], Y)
    np.testing.assert_allclose(model.predict(RIDES.assign(zone="a")), plain.predict(RIDES[["km"]]))
    assert model.summary().loc["zone=a", "sd"] == np.inf


def test_a_level_for_each_row() -> None:
    with pytest.warns(UserWarning, match="column 'zone' has a different level in each of its 240"):
        BayesianLinearRegression().fit(RIDES.assign(zone=[f"id {i}" for i in range(N)]), Y)


def test_numbers_that_seem_to_be_codes_are_said_once() -> None:
    rides = RIDES.drop(columns="zone").assign(shop_id=np.arange(N) % 7 + 10_115)
    for kind in (BayesianLinearRegression, SparseLinearRegression):
        with pytest.warns(UserWarning, match="'shop_id' seems to hold codes") as said:
            model = kind().fit(rides, Y)
        assert len(said) == 1
        assert said[0].filename == __file__
        model.partial_fit(rides, Y)  # no more
        kind(categorical_features=["shop_id"]).fit(rides, Y)
        kind().fit(rides.rename(columns={"shop_id": "paid"}), Y)
        kind().fit(rides.assign(shop_id=np.arange(N)), Y)  # no number comes again
    quiet = BayesianLinearRegression(categorical_features=None).fit(rides, Y)
    assert quiet.n_features_in_ == rides.shape[1]


def test_levels_that_are_too_many() -> None:
    X = pd.DataFrame({"user": [f"u{i % 10_000}" for i in range(20_000)]})
    with pytest.raises(
        ValueError, match=r"'user' has 10,000 levels; .* use a model of posterity.sp"
    ):
        BayesianLinearRegression().fit(X, np.zeros(20_000))


def test_values_of_mixed_types() -> None:
    mixed = RIDES.assign(zone=pd.Series([1, "a"] * (N // 2), dtype=object))
    with pytest.raises(
        ValueError, match="column 'zone' has values of different types, as 1 beside"
    ):
        BayesianLinearRegression().fit(mixed, Y)
    same = pd.DataFrame({"a": ["b=c"] * 4 + ["d"] * 4, "a=b": ["c", "e"] * 4})
    with pytest.raises(ValueError, match="two levels would be called 'a=b=c'"):
        BayesianLinearRegression().fit(same, np.arange(8.0))


def test_numbers_that_were_levels_and_the_other_way_round() -> None:
    model = BayesianLinearRegression().fit(RIDES, Y)
    wide = model.predict_interval(RIDES.assign(zone=1.0)[:1])
    np.testing.assert_array_equal(wide, model.predict_interval(RIDES.assign(zone="1")[:1]))
    numbers = BayesianLinearRegression().fit(RIDES.assign(zone=KM), Y)
    with pytest.raises(ValueError, match="column 'zone'"):
        numbers.predict(RIDES)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(RIDES[["km", "zone"]])


# ---- beside other things -------------------------------------------------------------------------


def test_files_copies_and_pipelines(tmp_path: Any) -> None:
    model = BayesianLinearRegression(missing="level").fit(RIDES, Y)
    posterity.save(model, tmp_path / "zones.posterity")
    for again in (posterity.load(tmp_path / "zones.posterity"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        late = pd.DataFrame({"zone": ["e"], "km": [0.0]})
        assert "zone=e" in again.partial_fit(late, [3.0]).posterior_.names
    assert clone(model).get_params() == model.get_params()
    pipe = make_pipeline(FunctionTransformer(), BayesianLinearRegression()).fit(RIDES, Y)
    np.testing.assert_array_equal(pipe.predict(RIDES), model.predict(RIDES))


def test_effects_on_the_expected_target() -> None:
    linear = BayesianLinearRegression().fit(RIDES, Y)
    effects, table = linear.average_effects(RIDES), linear.summary(base="first")
    assert effects.index.tolist() == ["zone=b", "zone=c", "zone=d", "km"]
    for column in ("mean", "low", "high"):
        np.testing.assert_allclose(effects[column], table.loc[effects.index, column])
    labels = BayesianLogisticRegression().fit(RIDES, MODELS["labels"][1])
    low, high = (labels.sample_mean(RIDES.assign(zone=z), 4000, rng=1).mean(axis=1) for z in "ac")
    found = labels.average_effects(RIDES, size=4000, rng=1)
    np.testing.assert_allclose(found.loc["zone=c", "mean"], (high - low).mean(), atol=0.005)


def test_priors_by_the_names_of_levels() -> None:
    model = BayesianLinearRegression(
        prior_mean={"zone=a": 2.0}, prior_precision={"zone=a": 1e8, "zone=b": 1e8}
    ).fit(RIDES, Y)
    np.testing.assert_allclose(model.coef_[1:3], [2.0, 0.0], atol=1e-3)


def test_an_unknown_level_is_like_those_of_its_own_column() -> None:
    """A new region is as regions are, which differ little, however much ages differ."""
    rng = np.random.default_rng(3)
    age, region = rng.integers(0, 8, 2000), rng.integers(0, 20, 2000)
    ages, regions = 5.0 * rng.normal(size=8), 0.2 * rng.normal(size=20)
    X = pd.DataFrame({"age": [f"a{i}" for i in age], "region": [f"r{i}" for i in region]})
    model = BayesianLinearRegression().fit(X, ages[age] + regions[region] + rng.normal(size=2000))
    new = pd.DataFrame({"age": ["a0", "new", "new"], "region": ["new", "r0", "new"]})
    sd = model.predict_mean_distribution(new).std()
    assert 0.1 < sd[0] < 0.3 * sd[1]
    assert sd[1] > ages.std()


def test_tables_batch_by_batch_and_the_command(tmp_path: Any) -> None:
    model = BayesianLinearRegression().fit(RIDES[:200], Y[:200])
    table = RIDES.assign(fare=Y)
    learn_stream(model, table[200:], "fare")
    whole = BayesianLinearRegression().fit(RIDES, Y)
    np.testing.assert_allclose(model.coef_, whole.coef_)
    new = table[["km", "zone"]].assign(zone=np.where(KM > 1.0, "elsewhere", ZONE))
    (found,) = predict_stream(model, new)
    np.testing.assert_allclose(found["mean"], whole.predict(new[["zone", "km"]]))
    np.testing.assert_allclose(found["std"], whole.predict_distribution(new[["zone", "km"]]).std())
    again = new.assign(fare=Y)[["zone", "km", "fare"]]
    joined = learn_stream(pickle.loads(pickle.dumps(model)), again, "fare")
    expected = pickle.loads(pickle.dumps(whole)).partial_fit(again[["zone", "km"]], Y)
    np.testing.assert_allclose(joined.coef_, expected.coef_)
    posterity.save(model, tmp_path / "m.posterity")
    new.to_csv(tmp_path / "new.csv", index=False)
    run = CliRunner().invoke
    shown = run(command, ["show", str(tmp_path / "m.posterity"), "--base", "zone=a", "--json"])
    names = [one["name"] for one in json.loads(shown.output)["coefficients"]]
    assert names == ["intercept", "km", *LEVELS]
    out = tmp_path / "out.csv"
    given = [str(tmp_path / "m.posterity"), str(tmp_path / "new.csv"), "--output", str(out)]
    result = run(command, ["predict", *given])
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(pd.read_csv(out)["mean"], found["mean"])


def test_levels_that_are_named_beforehand() -> None:
    named = {"zone": ["d", "a", "b", "c", "e"]}
    rows = [*RIDES.to_dict("records")]
    for kind in (BayesianLinearRegression, BayesianRobustRegression):
        model = kind(categorical_features=named, prior_precision=1.0)
        for row, target in zip(rows, Y, strict=True):
            model.learn_one(row, target)
        assert model.posterior_.names[2:] == tuple(f"zone={z}" for z in ("d", *"abce", "(other)"))
        whole = kind(prior_precision=1.0, categorical_features=named).partial_fit(RIDES, Y)
        np.testing.assert_allclose(model.predict(RIDES), whole.predict(RIDES), atol=0.1)
    with pytest.raises(ValueError, match=r"categorical_features\['zone'\] is 'ab': it must be a"):
        BayesianLinearRegression(categorical_features={"zone": "ab"}).fit(RIDES, Y)
    grouped = GroupedRegression(by="km", categorical_features={"zone": list("abcd")})
    for row, target in zip(rows[:40], Y, strict=False):
        grouped.learn_one({**row, "km": row["km"] > 0.0}, target)
    assert grouped.coef_.shape == (2, 3)


def test_features_that_come_and_go_are_numbers() -> None:
    model = VaryingFeatures(BayesianLinearRegression(prior_precision=1.0))
    model.learn_one({"zone": "a", "km": 1.0}, 1.0).learn_one({"zone": "b", "km": 2.0}, 2.0)
    assert "zone=b" in model.model_.posterior_.names
    with pytest.raises(ValueError, match="features can't join a model that takes some as categori"):
        model.learn_one({"zone": "b", "km": 2.0, "rain": 1.0}, 2.0)
