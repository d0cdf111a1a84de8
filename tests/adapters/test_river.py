"""river's estimators: river's own checks, its doctest's figure, and features that come and go."""

from __future__ import annotations

import copy
import csv
import math
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import BayesianLinearRegression, BayesianLogisticRegression, forgetting

pytest.importorskip("river", reason="needs river: pip install 'posterity[river]'")
pd = pytest.importorskip("pandas", reason="needs pandas, as river's mini-batches do")

from river import (  # noqa: E402
    bandit,
    checks,
    compose,
    drift,
    evaluate,
    linear_model,
    metrics,
    preprocessing,
    proba,
    stream,
)

from posterity.adapters import river as adapted  # noqa: E402

Row = dict[str, float]
ALIKE = {"noise_precision": 1.0, "fit_intercept": False}

REGRESSIONS = [
    adapted.BayesianLinearRegression(),
    adapted.BayesianLinearRegression(**ALIKE),
    adapted.BayesianLinearRegression(forgetting=forgetting.Stabilized(discount=0.99)),
]


def checks_of(model: Any) -> list[Any]:
    return [
        pytest.param(model, check, id=f"{type(model).__name__}-{check.__name__}-{i}")
        for i, check in enumerate(checks.yield_checks(model))
    ]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        case
        for model in [*REGRESSIONS, adapted.BayesianLogisticRegression()]
        for case in checks_of(model)
    ],
)
def test_rivers_own_checks(model: Any, check: Callable[[Any], None]) -> None:
    random.seed(0)  # some of them shuffle or drop features
    check(model.clone())


@pytest.mark.parametrize("model", [*REGRESSIONS, adapted.BayesianLogisticRegression()])
def test_none_of_rivers_checks_is_skipped(model: Any) -> None:
    assert model._unit_test_skips() == set()


# ---- figures ---------------------------------------------------------------------------------


def trump_approval(folder: Path) -> list[tuple[Row, float]]:
    with (folder / "streams" / "trump_approval.csv").open(encoding="utf-8") as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    return [(row, row.pop("five_thirty_eight")) for row in rows]


def test_trump_approval_has_the_error_of_rivers_doctest(data_folder: Path) -> None:
    dataset = trump_approval(data_folder)
    model = adapted.BayesianLinearRegression(**ALIKE)
    error = evaluate.progressive_val_score(dataset, model, metrics.MAE()).get()
    assert error == pytest.approx(0.5864, abs=5e-5)
    theirs = linear_model.BayesianLinearRegression()
    assert error == pytest.approx(
        evaluate.progressive_val_score(dataset, theirs, metrics.MAE()).get(), rel=1e-6
    )


def test_predictions_are_those_of_rivers_own() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = (
        adapted.BayesianLinearRegression(**ALIKE),
        linear_model.BayesianLinearRegression(),
    )
    names = [f"x{i}" for i in range(6)]
    for _ in range(200):
        some = rng.choice(names, size=rng.integers(1, 7), replace=False)
        x = dict(zip(some.tolist(), rng.normal(size=len(some)).tolist(), strict=True))
        one, other = ours.predict_one(x, with_dist=True), theirs.predict_one(x, with_dist=True)
        assert isinstance(one, proba.Gaussian)
        assert one.mu == pytest.approx(other.mu, rel=1e-9, abs=1e-12)
        assert one.sigma == pytest.approx(other.sigma, rel=1e-9)
        assert one(0.3) == pytest.approx(other(0.3), rel=1e-9)
        assert one.log_pdf(0.3) == pytest.approx(other.log_pdf(0.3), rel=1e-9)
        assert one.cdf(0.3) == pytest.approx(other.cdf(0.3), rel=1e-9)
        assert ours.predict_one(x) == pytest.approx(one.mu, rel=1e-12, abs=1e-12)
        ours.learn_one(x, 2.0 * sum(x.values()))
        theirs.learn_one(x, 2.0 * sum(x.values()))


# ---- features that come and go ---------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
numbers = st.integers(-300, 300).map(lambda hundredths: hundredths / 100.0)
sparse_rows = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(NAMES), numbers, max_size=4),
        numbers,
    ),
    min_size=1,
    max_size=15,
)


@pytest.mark.parametrize(
    "given_settings",
    [
        {},
        {"noise_precision": 2.0, "prior_mean": 0.5},
        {"prior_precision": 0.0, "noise_precision": 1.0},
        {"forgetting": forgetting.Stabilized(discount=0.9)},
        {"forgetting": "window:5"},
        {"forgetting": forgetting.Adaptive(discounts=(1.0, 0.99, 0.9))},
        {"forgetting": forgetting.Changepoint(0.01)},
        {"prior_precision": "auto", "noise_precision": 1.0},
    ],
    ids=str,
)
@settings(max_examples=25)
@given(stream=sparse_rows)
def test_a_feature_that_joins_was_zero_before(
    given_settings: dict[str, Any], stream: list[tuple[Row, float]]
) -> None:
    model = adapted.BayesianLinearRegression(**given_settings)
    for x, y in stream:
        model.learn_one(x, y)
    names = list(model._rows.columns)
    X = np.array([[x.get(name, 0.0) for name in names] for x, _ in stream]).reshape(len(stream), -1)
    if X.shape[1] == 0:
        return
    dense = BayesianLinearRegression(**{"prior_precision": 1.0, **given_settings})
    for row, (_, y) in zip(X, stream, strict=True):
        dense.learn_one(row, y)
    sparse = model.to_estimator()
    queries = pd.DataFrame(np.vstack([np.eye(len(names)), X]), columns=names)
    predictive, wanted = (
        sparse.predict_distribution(queries),
        dense.predict_distribution(queries.values),
    )
    np.testing.assert_allclose(predictive.mean(), wanted.mean(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(predictive.std(), wanted.std(), rtol=1e-5, atol=1e-6)
    assert sparse.n_observations_ == dense.n_observations_


def test_an_unknown_feature_is_predicted_with_its_prior_and_leaves_no_trace() -> None:
    model = adapted.BayesianLinearRegression(prior_mean=3.0, prior_precision=4.0, **ALIKE)
    model.learn_one({"a": 1.0}, 2.0)
    before = pickle.dumps(model)
    alone = model.predict_one({"new": 2.0}, with_dist=True)
    assert (alone.mu, alone.sigma) == pytest.approx((6.0, np.sqrt(1.0 + 4.0 / 4.0)))
    assert model.predict_one({"new": 2.0}) == pytest.approx(6.0)
    many = model.predict_many(pd.DataFrame({"new": [2.0], "a": [0.0]}, index=["i"]))
    assert many.tolist() == pytest.approx([6.0])
    assert many.index.tolist() == ["i"]
    assert pickle.dumps(model) == before


def test_the_order_of_keys_makes_no_difference_at_all() -> None:
    rng = np.random.default_rng(1)
    one, other = adapted.BayesianLinearRegression(), adapted.BayesianLinearRegression()
    for values in rng.normal(size=(20, 3)):
        x = dict(zip("abc", values.tolist(), strict=True))
        one.learn_one(x, 1.0)
        other.learn_one(dict(reversed(x.items())), 1.0)
    assert one.predict_one(x) == other.predict_one(x)


def test_features_join_under_changepoint() -> None:
    model = adapted.BayesianLinearRegression(forgetting=forgetting.Changepoint(0.01))
    for i in range(20):
        model.learn_one({"a": 1.0} | ({"b": 1.0} if i > 9 and i % 2 else {}), 2.0 + (i % 2))
    assert model.predict_one({"a": 1.0, "b": 1.0}) > model.predict_one({"a": 1.0}) + 0.2


# ---- what cannot be used ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "w", "error", "message"),
    [
        ({"a": None}, 1.0, 1.0, ValueError, "feature 'a' is None: leave it out of the row"),
        ({"a": 1.0, "n": float("inf")}, 1.0, 1.0, ValueError, "feature 'n' is inf: leave it out"),
        (
            {"a": ["red"]},
            1.0,
            1.0,
            TypeError,
            "feature 'a' is \\['red'\\], which is neither a number nor text: leave it out",
        ),
        (
            {"n": 1.0},
            float("nan"),
            1.0,
            ValueError,
            "y is nan, and must be finite: leave the row out",
        ),
        ({"n": 1.0}, 1.0, -1.0, ValueError, "weight is -1.0: it must be finite and not negative"),
    ],
)
def test_bad_rows_change_nothing(
    x: Row, y: float, w: float, error: type[Exception], message: str
) -> None:
    model = adapted.BayesianLinearRegression()
    model.learn_one({"a": 1.0}, 2.0)
    model.learn_one({"a": 2.0}, 2.5)
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, y, w)
    assert pickle.dumps(model) == before


def test_bad_frames_change_nothing() -> None:
    model = adapted.BayesianLinearRegression()
    model.learn_one({"a": 1.0}, 2.0)
    before = pickle.dumps(model)
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.nan]})
    with pytest.raises(ValueError, match="feature 'b' is nan in row 1: leave it out"):
        model.learn_many(X, pd.Series([1.0, 2.0]))
    with pytest.raises(
        ValueError, match="y is inf in row 0, and must be finite: leave the row out"
    ):
        model.learn_many(X.fillna(0.0), pd.Series([np.inf, 2.0]))
    assert pickle.dumps(model) == before


def test_priors_by_feature_are_refused() -> None:
    model = adapted.BayesianLinearRegression(prior_precision=np.ones(2))
    with pytest.raises(ValueError, match=r"prior_precision has shape \(2,\): give one number for"):
        model.learn_one({"a": 1.0, "b": 1.0}, 1.0)


# ---- with the rest of river ------------------------------------------------------------------


def a_stream(n: int, seed: int = 0) -> list[tuple[Row, float]]:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        a, b = rng.normal(size=2).tolist()
        rows.append(({"a": a, "b": 100.0 * b}, 1.0 + 2.0 * a - 3.0 * b + 0.1 * float(rng.normal())))
    return rows


def test_pipelines() -> None:
    model = preprocessing.StandardScaler() | adapted.BayesianLinearRegression()
    error = evaluate.progressive_val_score(a_stream(300), model, metrics.MAE())
    assert error.get() < 0.6
    encoded = compose.Select("colour") | preprocessing.OneHotEncoder()
    model = (encoded + compose.Select("a")) | adapted.BayesianLinearRegression()
    for i, (x, y) in enumerate(a_stream(60)):
        model.learn_one({"a": x["a"], "colour": ["red", "green"][i % 2]}, y)
    model.learn_one({"a": 0.0, "colour": "blue"}, 5.0)
    assert model.predict_one({"a": 0.0, "colour": "blue"}) > model.predict_one(
        {"a": 0.0, "colour": "red"}
    )


def test_text_is_levels_as_of_a_one_hot_encoder() -> None:
    rng = random.Random(0)
    rows = [
        ({"a": rng.gauss(0.0, 1.0), "zone": rng.choice("nsw"), "wet": rng.random() < 0.5}, i % 7)
        for i in range(60)
    ]
    for kind in (adapted.BayesianLinearRegression, adapted.BayesianLogisticRegression):
        encoded = compose.Select("zone") | preprocessing.OneHotEncoder()
        pipeline, ours = (encoded + compose.Select("a", "wet")) | kind(), kind()
        for x, y in rows:
            target = y > 3 if kind is adapted.BayesianLogisticRegression else float(y)
            pipeline.learn_one(x, target)
            ours.learn_one(x, target)
        names = {f"zone_{z}": f"zone={z}" for z in "nsw"}
        theirs = [
            names.get(str(name), name) for name in list(pipeline.steps.values())[-1]._rows.columns
        ]
        assert set(theirs) == set(ours._rows.columns) == {"a", "wet", *names.values()}
        new = {"a": 0.5, "zone": "elsewhere", "wet": True}
        for x in (rows[0][0], new):
            if kind is adapted.BayesianLogisticRegression:
                shares = pipeline.predict_proba_one(x), ours.predict_proba_one(x)
                assert shares[1][True] == pytest.approx(shares[0][True], abs=0.02)
            else:
                assert ours.predict_one(x) == pytest.approx(pipeline.predict_one(x))
    known, unknown = (
        ours_of(rows).predict_one({"a": 0.0, "zone": z, "wet": False}, with_dist=True)
        for z in ("n", "elsewhere")
    )
    assert unknown.sigma > known.sigma


def ours_of(rows: Any) -> Any:
    model = adapted.BayesianLinearRegression(noise_precision=1.0)
    for x, y in rows:
        model.learn_one(x, float(y))
    return model


@pytest.mark.parametrize("container", ["pandas", "categories", "polars"])
def test_frames_with_text_are_their_rows(container: str) -> None:
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame(
        {"a": [0.5, 1.0, -2.0, 0.0], "zone": ["n", "s", "n", "w"], "wet": [True, False, True, True]}
    )
    y = [1.0, 2.0, 0.5, 4.0]
    rows = ours_of(zip(frame.to_dict("records"), y, strict=True))
    given = {
        "pandas": frame,
        "categories": frame.assign(zone=pd.Categorical(frame.zone, ["x", "n", "s", "w"])),
        "polars": polars.from_pandas(frame),
    }[container]
    series = polars.Series(y) if container == "polars" else pd.Series(y)
    whole = adapted.BayesianLinearRegression(noise_precision=1.0)
    whole.learn_many(given, series)
    assert set(whole._rows.columns) == {"a", "wet", "zone=n", "zone=s", "zone=w"}
    expected = [rows.predict_one(x) for x in frame.to_dict("records")]
    np.testing.assert_allclose(list(whole.predict_many(given)), expected)
    text = given[["zone"]]
    labels = adapted.BayesianLogisticRegression()
    labels.learn_many(text, polars.Series(["u", "v", "u", "v"]) if container == "polars"
                      else pd.Series(["u", "v", "u", "v"]))  # fmt: skip
    assert labels.predict_proba_many(text).shape == (4, 2)
    holes = frame.assign(zone=["n", None, "n", "w"])
    with pytest.raises(ValueError, match="column 'zone' is missing in row 1"):
        whole.learn_many(holes, pd.Series(y))


def test_drift_detectors() -> None:
    model = drift.DriftRetrainingClassifier(
        model=adapted.BayesianLogisticRegression(), drift_detector=drift.binary.DDM()
    )
    rows = [({"a": x["a"]}, (y > 1.0) != (i > 300)) for i, (x, y) in enumerate(a_stream(600))]
    accuracy = evaluate.progressive_val_score(rows, model, metrics.Accuracy())
    still = evaluate.progressive_val_score(
        rows, adapted.BayesianLogisticRegression(), metrics.Accuracy()
    )
    assert accuracy.get() > still.get() + 0.05


def test_bandits() -> None:
    """LinUCB asks for predictive distributions, and takes ours in place of river's own model."""
    rng = np.random.default_rng(0)
    policy = bandit.LinUCBDisjoint(seed=0)
    policy._bayes_lin_regs.default_factory = lambda: adapted.BayesianLinearRegression(**ALIKE)
    right = 0
    for turn in range(300):
        context = {"x": float(rng.choice([-1.0, 1.0]))}
        arm = policy.pull(["up", "down"], context=context)
        best = "up" if context["x"] > 0.0 else "down"
        right += turn >= 100 and arm == best
        policy.update(arm, context, float(arm == best) + 0.1 * rng.normal())
    assert right > 190


def test_models_are_chosen_by_a_bandit() -> None:
    from river import model_selection

    chooser = model_selection.GreedyRegressor(
        [adapted.BayesianLinearRegression(prior_precision=p) for p in (1.0, 1e6)],
        metric=metrics.MAE(),
    )
    evaluate.progressive_val_score(a_stream(100), chooser, metrics.MAE())
    assert chooser.best_model.prior_precision == 1.0


def test_streams_of_frames() -> None:
    rows = a_stream(120)
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    whole, batches = adapted.BayesianLinearRegression(), adapted.BayesianLinearRegression()
    whole.learn_many(X, y)
    for x, target in stream.iter_frame(X, y):
        batches.learn_one(x, target)
    np.testing.assert_allclose(whole.predict_many(X), batches.predict_many(X), rtol=1e-9)
    weighted, twice = adapted.BayesianLinearRegression(), adapted.BayesianLinearRegression()
    weighted.learn_many(X, y, np.full(len(y), 2.0))
    for x, target in rows:
        twice.learn_one(x, target, w=2.0)
    assert weighted.predict_one(x) == pytest.approx(twice.predict_one(x))


def test_polars_frames_come_back_as_polars() -> None:
    pl = pytest.importorskip("polars")
    X, y = pl.DataFrame({"a": [0.0, 1.0, 2.0]}), pl.Series([False, True, True])
    regression = adapted.BayesianLinearRegression()
    regression.learn_many(X, y.cast(pl.Float64))
    assert isinstance(regression.predict_many(X), pl.Series)
    classifier = adapted.BayesianLogisticRegression()
    classifier.learn_many(X, y)
    assert classifier.predict_many(X).to_list() == [
        classifier.predict_one({"a": value}) for value in X["a"]
    ]
    assert classifier.predict_proba_many(X).shape == (3, 2)


def test_copies_go_their_own_way() -> None:
    model = adapted.BayesianLinearRegression()
    for x, y in a_stream(20):
        model.learn_one(x, y)
    for twin in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.clone(include_attributes=True),
    ):
        before = model.predict_one(x)
        assert twin.predict_one(x) == before
        twin.learn_one(x, 100.0)
        assert model.predict_one(x) == before
        assert twin.predict_one(x) != before


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"prior_precision": 0.0},
        {"noise_prior": (2.0, 1.0), "fit_intercept": False},
        {"forgetting": forgetting.Stabilized(discount=0.9)},
        {"noise_precision": 4.0, "prior_precision": 0.0},
    ],
    ids=str,
)
def test_lean_distributions_are_those_of_the_estimator(parameters: dict[str, Any]) -> None:
    model = adapted.BayesianLinearRegression(**parameters)
    for x, y in a_stream(12):
        model.learn_one(x, y)
        predictive = model.predict_one({"a": 0.5, "b": 9.0}, with_dist=True)
        ours = model.to_estimator().predict_distribution(pd.DataFrame({"a": [0.5], "b": [9.0]}))
        wanted = ours.mean()[0], ours.std()[0]
        assert (predictive.mu, predictive.sigma) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
        if math.isfinite(predictive.sigma):  # river's Gaussian has no density of what is all open
            assert predictive.cdf(y) == pytest.approx(ours.cdf(y)[0], rel=1e-9, abs=1e-12)
            assert predictive.log_pdf(y) == pytest.approx(ours.logpdf(y)[0], rel=1e-9)
        assert (
            copy.deepcopy(predictive).sigma
            == pickle.loads(pickle.dumps(predictive)).sigma
            == predictive.sigma
        )


def test_learned_noise_predicts_a_distribution_of_rivers_kind() -> None:
    model = adapted.BayesianLinearRegression()
    assert model.predict_one({"a": 1.0}, with_dist=True).sigma == np.inf
    for x, y in a_stream(30):
        model.learn_one(x, y)
    predictive = model.predict_one(x, with_dist=True)
    ours = model.to_estimator().predict_distribution(pd.DataFrame([x])[["a", "b"]])
    assert isinstance(predictive, proba.base.ContinuousDistribution)
    assert (predictive.mu, predictive.sigma) == pytest.approx((ours.mean()[0], ours.std()[0]))
    assert predictive.mode == predictive.mu
    assert predictive(1.0) == pytest.approx(ours.pdf(1.0)[0])
    assert predictive.log_pdf(1.0) == pytest.approx(ours.logpdf(1.0)[0])
    assert predictive.cdf(predictive.interval(0.9)[1]) == pytest.approx(0.95)
    assert predictive.n_samples == 30.0
    assert abs(predictive.sample() - predictive.mu) < 100.0 * predictive.sigma
    assert repr(predictive).startswith("StudentT(μ=")
    with pytest.raises(NotImplementedError, match="a prediction does not learn"):
        predictive.update(1.0)


# ---- the classifier --------------------------------------------------------------------------


def test_classes_and_features_may_both_come_late() -> None:
    rng = np.random.default_rng(2)
    model = adapted.BayesianLogisticRegression()
    assert model.predict_one({"a": 1.0}) is None
    centres = {"low": -3.0, "high": 3.0, "other": 0.0}
    for turn in range(400):
        label = ["low", "high", "other"][turn % (2 if turn < 100 else 3)]
        x = {"a": centres[label] + float(rng.normal())}
        if turn > 200:
            x["late"] = 4.0 * (label == "other") + float(rng.normal())
        model.learn_one(x, label)
    assert model.predict_one({"a": 0.0, "late": 4.0}) == "other"
    assert model.predict_one({"a": 3.0}) == "high"
    predictive = model.predict_proba_one({"a": 0.0, "later still": 1.0})
    assert sum(predictive.values()) == pytest.approx(1.0)
    assert set(predictive) == set(centres)


def test_the_classifier_is_posteritys_own() -> None:
    rows = [({"a": x["a"], "b": x["b"] / 100.0}, y > 1.0) for x, y in a_stream(80)]
    model = adapted.BayesianLogisticRegression()
    dense = BayesianLogisticRegression(prior_precision=1.0)
    for x, label in rows:
        model.learn_one(x, label)
        dense.learn_one(np.array([x["a"], x["b"]]), label)
    np.testing.assert_allclose(
        model.predict_proba_one(x)[True], dense.predict_proba([[x["a"], x["b"]]])[0, 1]
    )


@pytest.mark.parametrize("labels", [["no", "yes"], ["one", "two", "three", "four"]], ids=len)
@pytest.mark.parametrize("way", [None, forgetting.Stabilized(discount=0.95)], ids=str)
def test_a_feature_that_joins_a_classifier_was_zero_before(labels: list[str], way: Any) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    X[:20, 2] = 0.0
    y = [labels[int(k)] for k in rng.integers(len(labels), size=60)]
    model = adapted.BayesianLogisticRegression(forgetting=way)
    dense = BayesianLogisticRegression(prior_precision=1.0, forgetting=way)
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        x = dict(zip("abc", row.tolist(), strict=True))
        if i < 20:
            del x["c"]
        model.learn_one(x, label)
        dense.learn_one(row, label)
    predictive = model.predict_proba_many(pd.DataFrame(X, columns=list("abc")))
    assert predictive.columns.tolist() == dense.classes_.tolist()
    np.testing.assert_allclose(predictive, dense.predict_proba(X), rtol=1e-6)


@pytest.mark.parametrize("kind", ["regression", "labels", "wide"])
def test_there_and_back_by_a_file(kind: str, tmp_path: Any) -> None:
    import posterity
    from posterity.adapters import river as adapters

    made: dict[str, Any] = {
        "regression": adapters.BayesianLinearRegression,
        "labels": adapters.BayesianLogisticRegression,
        "wide": adapters.DiagonalLinearRegression,
    }
    model = made[kind](prior_precision=2.0)
    rows = [{"a": 1.0}, {"b": 2.0, "a": 0.5}, {"b": 1.0}, {"a": 3.0}]
    numbers, labels = [1.0, 2.0, 0.0, 4.0], ["no", "yes", "no", "yes"]
    for row, target in zip(rows, labels if kind == "labels" else numbers, strict=True):
        model.learn_one(row, target)
    posterity.save(model, tmp_path / "m.posterity")
    again = made[kind].from_estimator(posterity.load(tmp_path / "m.posterity"))
    assert again.prior_precision == 2.0
    for one in (model, again):
        one.learn_one({"c": 1.0, "a": 1.0}, "yes" if kind == "labels" else 1.0)
    ask = {"a": 1.0, "c": 2.0, "new": 1.0}
    if kind == "labels":
        assert again.predict_proba_one(ask) == pytest.approx(model.predict_proba_one(ask))
    assert again.predict_one(ask) == pytest.approx(model.predict_one(ask))


def test_what_river_can_not_go_on_from() -> None:
    import posterity
    from posterity.adapters.river import BayesianLinearRegression as River

    with pytest.raises(TypeError, match="not from a BayesianRobustRegression"):
        River.from_estimator(posterity.BayesianRobustRegression())
    with pytest.raises(ValueError, match="no such setting"):
        River.from_estimator(posterity.BayesianLinearRegression(basis="auto"))
    with pytest.raises(ValueError, match="have no names"):
        River.from_estimator(posterity.BayesianLinearRegression().fit([[1.0], [2.0]], [1.0, 2.0]))
    assert River.from_estimator(posterity.BayesianLinearRegression()).predict_one({"a": 1.0}) == 0.0
