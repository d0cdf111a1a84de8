"""What holds of models of many features: of kinds of rows, beside dense models, of merging."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.feature_extraction import FeatureHasher

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.evidence import Integrated
from posterity.files import dumps, loads
from posterity.forgetting import Exponential, Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
)

Array = NDArray[np.float64]
MODELS = [DiagonalLinearRegression, DiagonalLogisticRegression, DiagonalPoissonRegression]


def frame(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, Array]:
    rng = np.random.default_rng(seed)
    site, ad = rng.integers(0, 5, n), rng.integers(0, 9, n)
    age = rng.normal(size=n).round(2)
    eta = 0.8 * rng.normal(size=5)[site] + 0.5 * rng.normal(size=9)[ad] + 0.3 * age
    X = pd.DataFrame({"site": [f"s{s}" for s in site], "ad": [f"a{a}" for a in ad], "age": age})
    return X, (rng.random(n) < expit(eta)).astype(float)


def mappings(X: pd.DataFrame) -> list[dict[str, Any]]:
    return X.to_dict("records")


def predictive(model: Any, X: Any) -> Array:
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return np.stack([model.predict(X), model.predict_distribution(X).std()])


def alike(one: Any, other: Any, X: Any, Y: Any = None, rtol: float = 1e-10) -> None:
    np.testing.assert_allclose(
        predictive(one, X), predictive(other, X if Y is None else Y), rtol=rtol
    )


# ---- dense models --------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_precision", [None, 2.0])
def test_one_active_feature_a_row_is_exact(noise_precision: float | None) -> None:
    rng = np.random.default_rng(0)
    place, value = rng.integers(0, 7, 100), rng.normal(size=100)
    X = np.zeros((100, 7))
    X[np.arange(100), place] = value
    y = rng.normal(size=7)[place] * value + rng.normal(size=100)
    settings = {
        "prior_precision": 1.5,
        "noise_precision": noise_precision,
        "fit_intercept": False,
    }
    ours = DiagonalLinearRegression(**settings).fit(sparse.csr_array(X), y)
    full = BayesianLinearRegression(**settings).fit(X, y)
    np.testing.assert_allclose(ours.coef_, full.coef_, rtol=1e-10)
    assert ours.noise_precision_ == pytest.approx(full.noise_precision_, rel=1e-10)
    new = np.eye(7)
    np.testing.assert_allclose(
        ours.predict_interval(new), full.predict_interval(new), rtol=1e-9, atol=1e-12
    )
    stream = DiagonalLinearRegression(**settings).predict_then_learn(sparse.csr_array(X), y)
    wanted = BayesianLinearRegression(**settings).predict_then_learn(X, y)
    np.testing.assert_allclose(stream.logpdf(y), wanted.logpdf(y), rtol=1e-9)


@pytest.mark.parametrize(
    ("ours", "full"),
    [
        (DiagonalLogisticRegression, BayesianLogisticRegression),
        (DiagonalPoissonRegression, BayesianPoissonRegression),
    ],
)
def test_labels_and_counts_of_one_feature_a_row(
    ours: Any, full: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each row once: dense models fit their first rows again.
    monkeypatch.setattr(full, "_keeps_start", False)
    rng = np.random.default_rng(0)
    X = np.eye(5)[rng.integers(0, 5, 80)]
    y = rng.integers(0, 2, 80)
    one = ours(prior_precision=0.7, fit_intercept=False).partial_fit(sparse.csr_array(X), y)
    other = full(prior_precision=0.7, fit_intercept=False, approximation="moments")
    other.predict_then_learn(X, y)
    np.testing.assert_allclose(one.coef_, np.ravel(other.coef_), rtol=1e-9)
    alike(one, other, np.eye(5), rtol=1e-9)


def test_the_first_row_is_all_the_intercepts() -> None:
    ours = DiagonalLinearRegression(prior_precision=1.0).partial_fit([["a"]], [1e6])
    assert ours.intercept_ == pytest.approx(1e6)
    assert ours.coef_[0] == 0.0
    assert np.isinf(ours.predict_interval([["a"]])).all()  # nothing is known of the noise
    empty = BayesianLinearRegression(prior_precision=1.0).fit(np.zeros((50, 1)), np.arange(50.0))
    ours = DiagonalLinearRegression(prior_precision=1.0).fit([[]] * 50, np.arange(50.0))
    np.testing.assert_allclose(
        ours.predict_interval([[]]), empty.predict_interval([[0.0]]), rtol=1e-10
    )


# ---- kinds of rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("interactions", [None, 2, [("ad", "site")]])
def test_kinds_of_rows_agree(kind: Any, interactions: Any) -> None:
    X, y = frame()
    model = kind(interactions=interactions).fit(X, y)
    rows = mappings(X)
    alike(model, kind(interactions=interactions).fit(rows, y), X)
    backwards = [dict(reversed(row.items())) for row in rows]
    alike(model, kind(interactions=interactions).fit(backwards, y), X)
    named = [{f"site={r['site']}": 1, "ad": r["ad"], "age": r["age"]} for r in rows]
    alike(model, kind(interactions=interactions).fit(named, y), X, named)
    hashed = kind(interactions=interactions, hash_size=2**24).fit(X, y)
    alike(model, hashed, X, rows)
    model = kind(interactions=interactions).partial_fit(X, y)  # in one pass
    one_by_one = kind(interactions=interactions)
    for row, target in zip(rows, y, strict=True):
        one_by_one.learn_one(row, target)
    alike(model, one_by_one, X)
    halves = kind(interactions=interactions).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    alike(model, halves, X)


@pytest.mark.parametrize("package", ["polars", "pyarrow"])
def test_frames_of_other_packages(package: str) -> None:
    module = pytest.importorskip(package)
    X, y = frame()
    X["site"] = X["site"].astype("category")
    other = module.from_pandas(X) if package == "polars" else module.Table.from_pandas(X)
    model = DiagonalLogisticRegression().fit(X, y)
    alike(model, DiagonalLogisticRegression().fit(other, y), X, other)


def test_numbers_may_be_levels() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"user": rng.integers(0, 9, 50), "item": rng.integers(0, 9, 50)})
    y = rng.integers(0, 2, 50)
    text = X.astype(str)
    model = DiagonalLogisticRegression(categorical_features="all").fit(X, y)
    alike(model, DiagonalLogisticRegression().fit(text, y), X, text)
    alike(
        model, DiagonalLogisticRegression(categorical_features="all").fit(X.values, y), X, X.values
    )
    half = DiagonalLogisticRegression(categorical_features=["user"]).fit(X, y)
    assert half.n_features_ == X["user"].nunique() + 1


def test_a_matrix_is_its_tokens() -> None:
    rng = np.random.default_rng(0)
    tokens = [list(rng.choice(list("abcdefg"), 3)) for _ in range(60)]
    X = sparse.csr_array([[row.count(letter) for letter in "abcdefg"] for row in tokens])
    y = rng.integers(0, 2, 60)
    model = DiagonalLogisticRegression(interactions=2).fit(X, y)
    alike(model, DiagonalLogisticRegression(interactions=2).fit(tokens, y), X, tokens)
    alike(model, DiagonalLogisticRegression(interactions=2).fit(X.toarray(), y), X)
    pairs = DiagonalLogisticRegression(interactions=2).fit(X, y)
    assert pairs.n_features_ > 7
    assert pairs.feature_names_[7].count(" & ") == 1


def test_hashes_are_those_of_scikit_learn() -> None:
    rows = [{"site": "a", "age": 2.0}, {"site": "b"}, {"ad": "x", "age": -1.0}]
    known: dict[str, Any] = {"prior_precision": 1.0, "fit_intercept": False}
    ours = DiagonalLinearRegression(hash_size=64, **known).fit(rows, [1.0, 2.0, 0.5])
    hashed = FeatureHasher(64).transform(rows)
    theirs = DiagonalLinearRegression(**known).fit(hashed, [1.0, 2.0, 0.5])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)
    words = FeatureHasher(64, input_type="string").transform([["to", "be", "be"], ["or"]])
    ours = DiagonalLinearRegression(hash_size=64, prior_precision=1.0)
    theirs = DiagonalLinearRegression(prior_precision=1.0).fit(words, [1.0, 2.0])
    ours.fit([["to", "be", "be"], ["or"]], [1.0, 2.0])
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-12)


def test_products_are_what_they_say() -> None:
    """Pairs made on the way are columns of products made before, as long as nothing is centred."""
    known: dict[str, Any] = {"prior_precision": 1.0, "fit_intercept": False}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * (rng.random((50, 3)) < 0.7)
    y = rng.normal(size=50)
    i, j = np.triu_indices(3, 1)
    wide = sparse.csr_array(np.hstack([X, X[:, i] * X[:, j]]))
    made = DiagonalLinearRegression(interactions=2, **known).fit(sparse.csr_array(X), y)
    given = DiagonalLinearRegression(**known).fit(wide, y)
    alike(made, given, sparse.csr_array(X), wide)


@given(scale=st.floats(1e-4, 1e4), seed=st.integers(0, 99))
def test_no_unit_matters(scale: float, seed: int) -> None:
    X, y = frame(40, seed)
    scaled = X.assign(age=scale * X["age"])
    alike(
        DiagonalLinearRegression().fit(X, y),
        DiagonalLinearRegression().fit(scaled, y),
        X,
        scaled,
        rtol=1e-8,
    )


# ---- what was never seen -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_what_was_never_seen(kind: Any) -> None:
    X, y = frame()
    model = kind().fit(X, y)
    before = dumps(model)
    row = {"site": "s1", "age": 0.5}
    alike(model, model, [row], [{**row, "another key": "anything", "and one": 3.0}])
    known, new = (model._match_eta([one]) for one in (row, {**row, "ad": "never seen"}))
    assert new[0] == known[0]
    assert new[1] > known[1]  # the prior of its column
    assert dumps(model) == before  # reads change nothing


def test_a_late_level_starts_from_what_its_column_has_learned() -> None:
    rng = np.random.default_rng(0)
    rows = [{"wild": f"w{w}", "mild": f"m{m}"} for w, m in rng.integers(0, 60, size=(4000, 2))]
    effect = {f"w{w}": 3.0 * rng.normal() for w in range(60)}
    y = np.array([effect[r["wild"]] for r in rows]) + rng.normal(size=4000)
    model = DiagonalLinearRegression().fit(rows, y)
    wide, narrow = model.predict_interval([{"wild": "new"}, {"mild": "new"}])
    assert np.ptp(wide) > 2.0 * np.ptp(narrow)
    assert model.prior_scales_["wild"] > 5.0 * model.prior_scales_["mild"]


# ---- merging, forgetting, keeping ----------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("settings", [{}, {"interactions": 2}, {"hash_size": 2**16}])
def test_merging_adds_what_rows_have_said(kind: Any, settings: dict[str, Any]) -> None:
    X, y = frame(200)
    X = X.drop(columns="age")  # the centres of numbers would move
    y[:2], y[100:102] = [0, 1], [0, 1]
    one = kind(**settings).fit(X[:100], y[:100])
    other = kind(**settings).fit(X[100:].iloc[:, ::-1], y[100:])
    both = kind(**settings).merge(one).merge(other)
    assert both.n_observations_ == 200
    assert one.n_observations_ == 100
    index = {name: place for place, name in enumerate(both.feature_names_)}
    total = np.zeros((len(index) + 1, 8))
    for part in (one, other):
        names = part.feature_names_
        kept = names if "hash_size" in settings else map(in_order(index), names)
        places = [0, *(1 + index[name] for name in kept)]
        total[places] += part._posterior.discounted_beliefs()[: len(places)]
    np.testing.assert_allclose(
        both._posterior.discounted_beliefs()[: len(total)], total, rtol=1e-12
    )
    again = loads(dumps(both))
    assert dumps(again) == dumps(both)
    alike(again.partial_fit(X, y), both.partial_fit(X, y), X)


def in_order(index: dict[str, int]) -> Any:
    """Pairs have their features in the order in which those came."""

    def name(predictive: str) -> str:
        return predictive if predictive in index else " & ".join(reversed(predictive.split(" & ")))

    return name


def test_merging_is_exact_with_one_feature_a_row() -> None:
    rng = np.random.default_rng(0)
    rows, y = [[str(token)] for token in rng.integers(0, 9, 100)], rng.normal(size=100)
    model = DiagonalLinearRegression(prior_precision=1.0, fit_intercept=False)
    whole = pickle.loads(pickle.dumps(model)).fit(rows, y)
    half = DiagonalLinearRegression(prior_precision=1.0, fit_intercept=False).fit(rows[:40], y[:40])
    alike(model.fit(rows[40:], y[40:]).merge(half), whole, rows)


def test_what_cannot_be_merged_is_refused() -> None:
    X, y = frame()
    model = DiagonalLogisticRegression().fit(X, y)
    before = dumps(model)
    for other, message in [
        (DiagonalLogisticRegression(prior_precision=1.0).fit(X, y), "differ in prior"),
        (DiagonalLogisticRegression(hash_size=8).fit(X, y), "number their features"),
        (DiagonalLogisticRegression(interactions=2).fit(X, y), "differ in forgetting or inter"),
        (DiagonalLogisticRegression().fit(X, y + 1), "have different classes"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.merge(other)
    assert dumps(model) == before


def test_forgetting_follows_and_falls_back_to_the_prior() -> None:
    rng = np.random.default_rng(0)
    rows = [["a"], ["b"]] * 300
    y = np.concatenate([np.tile([1.0, -1.0], 150), np.tile([-1.0, 1.0], 150)])
    y += 0.1 * rng.normal(size=600)
    settings = {"prior_precision": 1.0, "fit_intercept": False, "noise_precision": 100.0}
    model = DiagonalLinearRegression(forgetting=Stabilized(half_life=20.0), **settings)
    full = BayesianLinearRegression(forgetting=Stabilized(half_life=20.0), **settings)
    model.fit(rows, y)
    full.fit(np.tile(np.eye(2), (300, 1)), y)
    np.testing.assert_allclose(model.coef_, full.coef_, rtol=1e-9)
    assert model.n_effective_ == pytest.approx(full.n_effective_)
    model.partial_fit([["c"]] * 2000, np.zeros(2000))
    np.testing.assert_allclose(model.coef_[:2], 0.0, atol=1e-9)
    np.testing.assert_allclose(model.coef_std_[:2], 0.1 / np.sqrt(0.01), rtol=1e-9)


def test_times_forget_too() -> None:
    settings = {"prior_precision": 1.0, "forgetting": Stabilized(discount=0.5)}
    rows, y = [["a"], ["b"], ["a"]], [1, 0, 1]
    by_rows = DiagonalLogisticRegression(**settings).fit(rows, y)
    by_time = DiagonalLogisticRegression(**settings).fit(rows, y, times=[0.0, 1.0, 2.0])
    late = DiagonalLogisticRegression(**settings).fit(rows, y, times=[0.0, 1.0, 9.0])
    assert by_time.coef_[1] == pytest.approx(by_rows.coef_[1])
    assert abs(late.coef_[1]) < abs(by_rows.coef_[1])


@pytest.mark.parametrize("kind", MODELS)
def test_after_ages_all_is_forgotten(kind: Any) -> None:
    model = kind(forgetting=Stabilized(half_life=1.0), prior_precision=1.0)
    model.fit([["a"], ["b"], ["a"]], [1, 0, 1], times=[0.0, 1.0, 2.0])
    model.partial_fit([["c"]] * 3, [0, 1, 0], times=[1e6, 1e6, 1e6])
    assert model.coef_[:2].tolist() == pytest.approx([0.0, 0.0])
    assert np.isfinite(model.predict([["a"], ["c"]]).astype(float)).all()
    assert model.n_effective_ == pytest.approx(3.0)


# ---- labels --------------------------------------------------------------------------------------


def test_labels_may_come_in_any_order() -> None:
    rows = [["a"], ["b"], ["a"], ["c"]]
    one = DiagonalLogisticRegression().partial_fit(rows, ["x", "y", "x", "y"])
    other = DiagonalLogisticRegression()
    for row, label in zip(rows[1:] + rows[:1], ["y", "x", "y", "x"], strict=True):
        other.learn_one(row, label)  # the second class comes first
    again = DiagonalLogisticRegression().partial_fit(rows[1:] + rows[:1], ["y", "x", "y", "x"])
    alike(other, again, rows)
    assert one.classes_.tolist() == other.classes_.tolist() == ["x", "y"]
    assert other.predict_one(["a"]) == other.predict([["a"]])[0] == "x"
    assert other.coef_[other.feature_names_.index("a")] < 0.0
    low, high = other.predict_interval([["a"]])[0]
    assert low < other.predict_proba_one(["a"])["y"] < high


def test_progressive_probabilities_are_those_predicted() -> None:
    X, y = frame(60)
    model, stream = DiagonalLogisticRegression(), DiagonalLogisticRegression()
    predictive = stream.predict_then_learn(X, y).log_probabilities
    model.partial_fit(X[:1], y[:1], classes=[0.0, 1.0])
    for i in range(1, 60):
        now = model.predict_log_proba(X[i : i + 1])
        np.testing.assert_allclose(now[0], predictive[i], rtol=1e-7)
        model.partial_fit(X[i : i + 1], y[i : i + 1])


# ---- what is wrong -------------------------------------------------------------------------------

ROWS, Y = [{"site": "a", "age": 1.0}, {"site": "b", "age": 2.0}], [0, 1]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([{"age": float("nan")}, {}], Y, "X is nan in row 0 of column 'age'"),
        ([{"age": 1e200}, {}], Y, "X is 1e.200 in row 0 of column 'age'"),
        ([{}, {"site": None}], Y, "'site' is None in row 1: leave the key out"),
        ([{}, {"site": [1]}], Y, "'site' is a list in row 1"),
        (["a text", "another"], Y, "row 0 is a str: give a list of tokens"),
        ([["a"], [3]], Y, "row 1 has a int among its tokens"),
        ([{}, ["a"]], Y, "row 1 is a list, but earlier rows are mappings: give a mapping"),
        (ROWS, [0, 1, 1], "inconsistent numbers of samples"),
        (ROWS, [0, np.nan], "y"),
        (ROWS, [0, 2], "more than two classes"),
        (sparse.csr_array((2, 3)), Y, "rows so far came with names"),
        (pd.DataFrame({"site": [1.5, 2.5]}), Y, None),
        (pd.DataFrame({"site": ["a", None]}), Y, "missing"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(X: Any, y: Any, message: str | None) -> None:
    model = DiagonalLogisticRegression().fit(ROWS, Y)
    before = dumps(model)
    if message is None:
        model.partial_fit(X, y)  # numbers beside levels
        return
    with pytest.raises((ValueError, TypeError), match=message):
        model.partial_fit(X, y)
    assert dumps(model) == before
    model.partial_fit(ROWS, Y)


def test_matrices_that_are_wrong() -> None:
    X = sparse.csr_array(np.eye(3))
    model = DiagonalLogisticRegression().fit(X, [0, 1, 1])
    with pytest.raises(ValueError, match="X has 2 features, but"):
        model.predict(sparse.csr_array((1, 2)))
    with pytest.raises(ValueError, match="rows so far came as a matrix"):
        model.predict([["a"]])
    X.data[1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN in row 1, column 1"):
        model.partial_fit(X, [0, 1, 1])
    X.data[1], X.indices[2] = 1.0, -5
    with pytest.raises(ValueError, match="entry with index -5"):
        model.partial_fit(X, [0, 1, 1])
    X.indices[2] = 3
    with pytest.raises(ValueError, match="entry with index 3"):
        model.predict(X)


def test_text_for_numbers_is_refused() -> None:
    X = pd.DataFrame({"user": [1, 2], "item": ["a", "b"]})
    model = DiagonalLogisticRegression(categorical_features="all").fit(X, Y)
    before = dumps(model)
    with pytest.raises(
        ValueError, match="column 'user': the keys are text, but the learned keys are numbers"
    ):
        model.partial_fit(X.assign(item=["c", "d"]).astype(str), Y)
    assert dumps(model) == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prior_precision": 0.0}, "must be 'auto' or a positive number"),
        ({"prior_precision": "ard"}, "must be 'auto' or a positive number"),
        ({"prior_precision": Integrated()}, "must be 'auto' or a positive number"),
        ({"interactions": 3}, "it must be 2 for all pairs"),
        ({"hash_size": 0}, "must be a whole number"),
        ({"forgetting": Exponential(discount=0.9)}, r"Stabilized\(discount="),
        (
            {"categorical_features": ["town"]},
            "names 'town', which X lacks: name some of 'site', 'ad', 'age'",
        ),
    ],
)
def test_parameters_are_checked(settings: dict[str, Any], message: str) -> None:
    X, y = frame(20)
    model = DiagonalLogisticRegression(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert model._posterior_or_none is None


def test_text_with_a_level_for_each_row_is_warned_of() -> None:
    X = pd.DataFrame({"id": [f"row {i}" for i in range(200)]})
    with pytest.warns(UserWarning, match="'id' has a different level in each of its 200 rows"):
        DiagonalLinearRegression().fit(X, np.zeros(200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DiagonalLinearRegression().fit(X.assign(id="same"), np.arange(200.0))


def test_rows_cannot_be_unlearned() -> None:
    model = DiagonalLinearRegression().fit(ROWS, Y)
    with pytest.raises(ValueError, match="can't unlearn"):
        model.unlearn(ROWS, Y)


def test_a_million_features_take_the_memory_of_those_met() -> None:
    X = sparse.csr_array((np.ones(3), ([0, 1, 2], [5, 999_999, 7])), shape=(3, 1_000_000))
    model = DiagonalLogisticRegression().fit(X, [0, 1, 1])
    assert model.predict_proba(X).shape == (3, 2)
    assert model.coef_.shape == (1_000_000,)
