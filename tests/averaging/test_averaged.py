"""Averages of models: Bayes' rule over models, in batches and row by row."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from posterity import BayesianLinearRegression
from posterity.averaging import Averaged
from posterity.basis import Spline
from posterity.distributions import Mixture
from posterity.evaluation import compare
from posterity.forgetting import Adaptive, Exponential

RNG = np.random.default_rng(0)
N = 60
X = RNG.normal(size=(N, 2))
Y = 1.0 + X @ [1.0, -2.0] + 0.2 * X[:, 0] ** 2 + RNG.normal(size=N)
SETTINGS: dict[str, dict[str, Any]] = {
    "known noise": {"noise_precision": 1.0},
    "learned noise": {"noise_prior": (1.0, 1.0)},
    "improper noise": {},
}


def fixed(**parameters: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(**({"prior_precision": 1.0} | parameters))


def models(**parameters: Any) -> list[tuple[str, Any]]:
    line = fixed(**parameters)
    curve = make_pipeline(PolynomialFeatures(2, include_bias=False), clone(line))
    tight = fixed(prior_precision=30.0, **parameters)
    return [("line", line), ("curve", curve), ("tight", tight)]


def drifting() -> list[tuple[str, Any]]:
    """Members that are judged by their predictions, one of which predicts mixtures."""
    return [
        ("steady", fixed()),
        ("quick", fixed(forgetting=Exponential(discount=0.9))),
        ("adaptive", fixed(forgetting=Adaptive(Adaptive.grid(2)))),
    ]


@pytest.fixture(params=SETTINGS)
def members(request: pytest.FixtureRequest) -> list[tuple[str, Any]]:
    return models(**SETTINGS[request.param])


# ---- scikit-learn's contract ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "average",
    [
        Averaged([BayesianLinearRegression(), BayesianLinearRegression(prior_precision=9.0)]),
        Averaged(models(), prior_weights=[0.5, 0.3, 0.2]),
        Averaged([make_pipeline(PolynomialFeatures(2), BayesianLinearRegression())]),
    ],
    ids=["estimators", "named, with a pipeline", "pipelines only"],
)
def test_scikit_learn_accepts_it(average: Averaged) -> None:
    check_estimator(average, on_skip=None)


def test_parameters_are_nested_by_name() -> None:
    average = Averaged(models())
    assert average.get_params()["line__prior_precision"] == 1.0
    assert average.get_params()["curve__polynomialfeatures__degree"] == 2
    average.set_params(line__prior_precision=5.0, tight=fixed())
    assert average.models[0][1].prior_precision == 5.0
    assert average.models[2][1].prior_precision == 1.0
    twin = clone(average)
    assert twin.models[0][1] is not average.models[0][1]
    assert twin.get_params()["line__prior_precision"] == 5.0


def test_unnamed_models_are_named_by_their_class() -> None:
    average = Averaged([fixed(), fixed()])
    average.set_params(**{"bayesianlinearregression-2__prior_precision": 7.0})
    assert average.models[1].prior_precision == 7.0
    assert list(average.fit(X, Y).named_models_) == [
        "bayesianlinearregression-1",
        "bayesianlinearregression-2",
    ]


def test_in_searches_and_pipelines() -> None:
    average = make_pipeline(StandardScaler(), Averaged(models()))
    assert cross_val_score(average, X, Y).mean() > 0.5
    search = GridSearchCV(Averaged(models()), {"line__prior_precision": [0.1, 1.0]}).fit(X, Y)
    assert search.best_params_["line__prior_precision"] in (0.1, 1.0)


def test_the_models_given_are_never_changed() -> None:
    given = models()
    Averaged(given).fit(X, Y)
    for _, model in given:
        final = model[-1] if hasattr(model, "steps") else model
        assert not hasattr(final, "n_features_in_")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_its_own_way(copied: Any) -> None:
    average = Averaged(models()).fit(X, Y)
    twin = copied(average)
    twin.partial_fit(X, -Y)
    assert average.n_observations_ == N
    assert twin.n_observations_ == 2 * N


# ---- Bayes' rule over models ---------------------------------------------------------------------


def test_weights_are_prior_times_evidence(members: list[tuple[str, Any]]) -> None:
    prior = np.array([0.2, 0.3, 0.5])
    average = Averaged(members, prior_weights=prior).fit(X, Y)
    scores = compare(dict(members), X, Y, prior_weights=prior)
    assert np.allclose(average.weights_, scores.weights, rtol=1e-10)
    expected = logsumexp(np.log(prior) + scores.log_scores)
    assert average.log_evidence_ == pytest.approx(expected, rel=1e-12)


def test_outside_truth() -> None:
    """Known noise, no intercept: the evidence is a multivariate normal density of SciPy's."""
    precisions = (0.5, 20.0)
    average = Averaged(
        [
            BayesianLinearRegression(prior_precision=a, noise_precision=4.0, fit_intercept=False)
            for a in precisions
        ],
        prior_weights=[3.0, 1.0],
    ).fit(X, Y)
    logs = [
        stats.multivariate_normal(np.zeros(N), X @ X.T / a + np.eye(N) / 4.0).logpdf(Y)
        for a in precisions
    ]
    evidence = logsumexp(logs, b=[0.75, 0.25])
    assert average.log_evidence_ == pytest.approx(evidence, rel=1e-11)
    assert np.allclose(average.weights_, np.exp(logs - evidence) * [0.75, 0.25], rtol=1e-9)


@pytest.mark.parametrize("kind", ["known noise", "learned noise"])
def test_log_predictive_densities_add_up_to_the_evidence(kind: str) -> None:
    average = Averaged(models(**SETTINGS[kind]), prior_weights=[1.0, 2.0, 3.0])
    predictive = average.predict_then_learn(X, Y)
    assert isinstance(predictive, Mixture)
    assert predictive.logpdf(Y).sum() == pytest.approx(average.log_evidence_, rel=1e-11)


@settings(max_examples=20)
@given(
    cuts=st.lists(st.integers(1, N - 1), max_size=4, unique=True).map(sorted),
    weighted=st.booleans(),
    kind=st.sampled_from([*SETTINGS, "drifting", "lately"]),
)
def test_batches_and_rows_agree(cuts: list[int], weighted: bool, kind: str) -> None:
    weight = np.resize([1.0, 0.0, 2.0, 0.5], N) if weighted else np.ones(N)
    make = {
        "drifting": lambda: Averaged(drifting()[:2]),
        "lately": lambda: Averaged(models(), persistence=0.9),
    }.get(kind, lambda: Averaged(models(**SETTINGS.get(kind, {}))))
    whole = make()
    predictive = whole.predict_then_learn(X, Y, weight)
    parts = make()
    weights = [
        parts.predict_then_learn(X[i:j], Y[i:j], weight[i:j]).weights
        for i, j in zip([0, *cuts], [*cuts, N], strict=True)
    ]
    assert np.allclose(np.concatenate(weights), predictive.weights, rtol=1e-9, atol=1e-12)
    assert np.allclose(parts.weights_, whole.weights_, rtol=1e-9, atol=1e-12)
    assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    loop = make()
    for x, y, w in zip(X, Y, weight, strict=True):
        loop.learn_one(x, y, w)
    fitted = make().fit(X, Y, weight)
    for other in (loop, fitted):
        assert np.allclose(other.weights_, whole.weights_, rtol=1e-9, atol=1e-12)
        assert other.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
        assert other.n_observations_ == pytest.approx(weight.sum())


def test_weights_of_a_row_come_from_the_rows_before_it(members: list[tuple[str, Any]]) -> None:
    predictive = Averaged(members).predict_then_learn(X, Y)
    for row in (0, 1, 2, 10, N - 1):
        if row == 0:
            assert np.allclose(predictive.weights[0], 1.0 / 3.0)
            continue
        before = Averaged(members).fit(X[:row], Y[:row])
        assert np.allclose(predictive.weights[row], before.weights_, rtol=1e-9)
        here = before.predict_distribution(X[row : row + 1])
        assert predictive.logpdf(Y)[row] == pytest.approx(here.logpdf(Y[row])[0], rel=1e-9)


def test_unlearning_and_merging_undo_and_join(members: list[tuple[str, Any]]) -> None:
    whole = Averaged(members).fit(X, Y)
    half = Averaged(members).fit(X[:30], Y[:30])
    joined = copy.deepcopy(half).merge(Averaged(members).fit(X[30:], Y[30:]))
    back = copy.deepcopy(whole).unlearn(X[30:], Y[30:])
    assert np.allclose(joined.weights_, whole.weights_, rtol=1e-8)
    assert joined.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)
    assert np.allclose(back.weights_, half.weights_, rtol=1e-8)
    assert back.n_observations_ == 30.0


def test_predictions_are_the_members_mixed() -> None:
    average = Averaged(models()).fit(X, Y)
    mean, std = average.predict(X, return_std=True)
    parts = [model.predict(X) for model in average.models_]
    assert np.allclose(mean, average.weights_ @ np.array(parts))
    assert np.allclose(mean, average.predict(X))
    assert np.allclose(std, average.predict_distribution(X).std())
    assert average.predict_one(X[3]) == pytest.approx(mean[3])
    low, high = average.predict_interval(X, level=0.9).T
    inside = average.predict_distribution(X).cdf(high) - average.predict_distribution(X).cdf(low)
    assert np.allclose(inside, 0.9)


# ---- predictions as judges -----------------------------------------------------------------------


def test_success_is_forgotten_and_the_prior_is_not() -> None:
    """By hand: scores are sums of log densities, each discounted once a row."""
    persistence, prior = 0.8, np.array([0.7, 0.3])
    pair = [fixed(noise_precision=b) for b in (1.0, 4.0)]
    average = Averaged(pair, prior_weights=prior, persistence=persistence)
    predictive = average.predict_then_learn(X[:6], Y[:6])
    densities = [clone(m).predict_then_learn(X[:6], Y[:6]).logpdf(Y[:6]) for m in pair]
    score = np.zeros(2)
    for row, density in enumerate(np.transpose(densities)):
        weights = prior * np.exp(persistence * score)
        assert np.allclose(predictive.weights[row], weights / weights.sum())
        score = persistence * score + density
    assert average.log_evidence_ == pytest.approx(predictive.logpdf(Y[:6]).sum())


def test_members_take_turns_when_the_world_changes() -> None:
    y = np.where(np.arange(400) < 200, 1.0, -1.0)
    x = np.ones((400, 1))
    noisy = y + 0.3 * np.random.default_rng(1).normal(size=400)
    experts = [
        BayesianLinearRegression(
            prior_mean=m, prior_precision=1e6, noise_precision=10.0, fit_intercept=False
        )
        for m in (1.0, -1.0)
    ]
    predictive = Averaged(experts, persistence=0.9).predict_then_learn(x, noisy)
    assert predictive.weights[199, 0] > 0.999
    assert predictive.weights[220, 1] > 0.999


def test_a_member_that_predicts_mixtures_is_opened() -> None:
    average = Averaged(drifting(), persistence=0.99)
    predictive = average.predict_then_learn(X, Y)
    assert len(predictive.components) == 2 + 8
    assert predictive.weights.shape == (N, 10)
    assert predictive.logpdf(Y)[2:].sum() == pytest.approx(average.log_evidence_, rel=1e-9)
    assert len(average.predict_distribution(X).components) == 10
    assert np.isfinite(average.predict(X, return_std=True)[1]).all()


def test_an_average_may_be_averaged() -> None:
    inner = Averaged(models()[:2])
    outer = Averaged([("inner", inner), models()[2]], prior_weights=[2.0, 1.0]).fit(X, Y)
    flat = Averaged(models()).fit(X, Y)
    assert outer.log_evidence_ == pytest.approx(flat.log_evidence_)
    assert np.allclose(outer.predict(X), flat.predict(X))


def test_a_member_that_knows_too_little_waits() -> None:
    """Flat priors in different numbers of directions: evidences do not compare."""
    wide = make_pipeline(
        PolynomialFeatures(3, include_bias=False), BayesianLinearRegression(prior_precision=0.0)
    )
    average = Averaged([fixed(noise_prior=(1.0, 1.0)), wide])
    predictive = average.predict_then_learn(X, Y)
    assert np.array_equal(predictive.is_flat(), np.arange(N) == 0)
    assert np.isfinite(predictive.interval(0.9)[0][1:]).all()
    assert (predictive.weights[1:9, 1] == 0.0).all()
    assert predictive.weights[-1, 1] > 0.0
    few = Averaged(average.models).fit(X[:5], Y[:5])
    assert np.isfinite(few.predict_interval(X)).all()
    assert np.array_equal(few.predict(X), few.predict(X, return_std=True)[0])


def test_perfect_fits_share_by_their_priors() -> None:
    pair = [fixed(), BayesianLinearRegression(prior_precision=2.0)]
    average = Averaged(pair, prior_weights=[0.25, 0.75])
    average.predict_then_learn(np.zeros((5, 1)), np.ones(5))
    assert np.allclose(average.weights_, [0.25, 0.75])
    average.partial_fit(X[:, :1], Y)
    assert np.isfinite(average.log_evidence_)


def test_models_of_prior_weight_zero_never_count() -> None:
    for persistence in (1.0, 0.5):
        average = Averaged(models(), prior_weights=[1.0, 0.0, 0.0], persistence=persistence)
        assert np.array_equal(average.predict_then_learn(X, Y).weights[-1], [1.0, 0.0, 0.0])
        assert np.array_equal(average.weights_, [1.0, 0.0, 0.0])


# ---- rows of all kinds ---------------------------------------------------------------------------


def test_rows_as_mappings_and_data_frames() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    average = Averaged(models()).fit(frame[:30], Y[:30])
    assert list(average.feature_names_in_) == ["a", "b"]
    for i in range(30, N):
        average.learn_one({"b": X[i, 1], "a": X[i, 0]}, Y[i])
    expected = Averaged(models()).fit(X, Y)
    assert np.allclose(average.weights_, expected.weights_)
    assert average.predict_one({"a": 1.0, "b": 2.0}) == pytest.approx(
        expected.predict([[1.0, 2.0]])[0]
    )
    fresh = Averaged(models()).learn_one({"a": 1.0, "b": 2.0}, 3.0)
    assert list(fresh.feature_names_in_) == ["a", "b"]


def test_single_rows_of_named_pipelines_need_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    average = Averaged(models()).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="for single rows install pandas, or give data frames"):
        average.learn_one({"a": 1.0, "b": 2.0}, 3.0)


def test_pipelines_may_turn_text_into_numbers() -> None:
    frame = pd.DataFrame({"kind": ["u", "v"] * 30, "x": X[:, 0]})
    encoder = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    average = Averaged([make_pipeline(encoder, BayesianLinearRegression())])
    average.fit(frame, Y).partial_fit(frame, Y)
    assert average.predict(frame).shape == (N,)


def test_steps_are_fitted_on_the_first_batch_only() -> None:
    average = Averaged([make_pipeline(StandardScaler(), BayesianLinearRegression())])
    average.partial_fit(X[:10], Y[:10]).partial_fit(X[10:] + 100.0, Y[10:])
    assert np.allclose(average.models_[0][0].mean_, X[:10].mean(axis=0))


def test_times_reach_those_who_forget() -> None:
    times = np.cumsum(np.arange(N, dtype=float))
    steady, quick, _ = drifting()
    average = Averaged([steady, quick]).fit(X, Y, times=times)
    assert average.n_effective_ < 2 * N
    alone = clone(quick[1]).fit(X, Y, times=times)
    assert average.models_[1].n_effective_ == pytest.approx(alone.n_effective_)
    average.learn_one(X[0], Y[0], time=times[-1] + 1.0)
    with pytest.raises(ValueError, match="give times for these as well"):
        average.partial_fit(X, Y)


# ---- refusals ------------------------------------------------------------------------------------


def test_a_call_that_raises_changes_nothing() -> None:
    broken = X.copy()
    broken[3, 1] = np.nan
    for average in (Averaged(models()), Averaged(drifting(), persistence=0.9)):
        with pytest.raises(ValueError, match="Input X contains NaN in row 3, column 1"):
            average.fit(broken, Y)
        assert not hasattr(average, "n_features_in_")
        average.fit(X, Y)
        before = pickle.dumps(average)
        for call in (average.partial_fit, average.predict_then_learn, average.fit):
            with pytest.raises(ValueError, match="Input X contains NaN in row 3, column 1"):
                call(broken, Y)
        with pytest.raises(ValueError, match="Input X contains NaN in row 0, column 1"):
            average.learn_one(broken[3], 1.0)
        assert pickle.dumps(average) == before


def test_one_member_that_refuses_stops_all() -> None:
    average = Averaged(models()).fit(X, Y)
    weights = average.weights_
    far = np.full((1, 2), 1e60)  # the square of the curve's overflows
    with pytest.raises(ValueError, match="X is 1e\\+120 in row 0"):
        average.partial_fit(far, [1.0])
    assert np.array_equal(average.weights_, weights)
    assert average.models_[0].n_observations_ == N


@pytest.mark.parametrize(
    ("average", "error", "message"),
    [
        (Averaged([]), ValueError, "models must be a list with at least one estimator"),
        (Averaged(None), ValueError, "models must be a list with at least one estimator"),
        (
            Averaged([("a", StandardScaler())]),
            TypeError,
            "model 'a' is a StandardScaler, which has no predict_then_learn and no predict_dist",
        ),
        (
            Averaged([BayesianLinearRegression]),
            TypeError,
            r"is the class BayesianLinearRegression: give an instance",
        ),
        (
            Averaged([("a", BayesianLinearRegression())] * 2),
            ValueError,
            "Names provided are not unique",
        ),
        (
            Averaged([BayesianLinearRegression()], persistence=0.0),
            ValueError,
            "persistence is 0.0: it must be above 0 and at most 1",
        ),
        (
            Averaged([BayesianLinearRegression()], prior_weights=[1.0, 2.0]),
            ValueError,
            r"prior_weights has shape \(2,\): expected \(1,\), one for each model",
        ),
        (
            Averaged([BayesianLinearRegression()], prior_weights=[-1.0]),
            ValueError,
            r"prior_weights is \[-1.0\]: weights must be finite and not negative",
        ),
    ],
)
def test_parameters_are_checked(average: Averaged, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        average.fit(X, Y)


def test_what_rests_on_the_order_of_rows_is_not_taken_apart() -> None:
    average = Averaged(drifting(), persistence=0.9).fit(X, Y)
    with pytest.raises(ValueError, match="can't unlearn rows: these weights depend on how well"):
        average.unlearn(X[:1], Y[:1])
    with pytest.raises(ValueError, match="can't merge models: these weights depend on how well"):
        average.merge(copy.deepcopy(average))


def test_only_the_same_models_merge() -> None:
    average = Averaged(models()).fit(X, Y)
    with pytest.raises(ValueError, match="the models differ in prior_weights"):
        average.merge(Averaged(models(), prior_weights=[1.0, 2.0, 3.0]).fit(X, Y))
    scaled = [("a", make_pipeline(StandardScaler(), BayesianLinearRegression()))]
    with pytest.raises(ValueError, match="steps before the last of model 'a' differ"):
        Averaged(scaled).fit(X, Y).merge(Averaged(scaled).fit(2.0 * X, Y))
    plain = [("a", BayesianLinearRegression())]
    with pytest.raises(ValueError, match="model 'a' is a pipeline in only one of the averages"):
        Averaged(scaled).fit(X, Y).merge(Averaged(plain).fit(X, Y))


def test_single_rows_are_checked() -> None:
    average = Averaged(models()).fit(X, Y)
    with pytest.raises(ValueError, match="x has 3 values, but the model has 2 features"):
        average.learn_one([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(ValueError, match="y is nan: it must be finite"):
        average.learn_one([1.0, 2.0], np.nan)
    with pytest.raises(ValueError, match="learned without feature names: give x as an array"):
        average.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    named = Averaged(models()).fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    with pytest.raises(ValueError, match="x has no 'b': give every feature a value"):
        named.predict_one({"a": 1.0})
    with pytest.raises(ValueError, match="x has 'c', which is not a feature: leave it out"):
        named.predict_one({"a": 1.0, "b": 1.0, "c": 1.0})


def test_nothing_learned_yet() -> None:
    average = Averaged(models())
    for read in ("weights_", "log_evidence_", "n_observations_", "n_effective_"):
        with pytest.raises(NotFittedError, match="has learned nothing yet: call fit"):
            getattr(average, read)
    with pytest.raises(NotFittedError, match="has learned nothing yet: call fit"):
        average.predict(X)
    with pytest.raises(ValueError, match="every sample_weight is zero"):
        average.fit(X, Y, np.zeros(N))


def test_models_that_were_fitted_on_other_columns_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 3)), columns=list("abc"))
    y = rng.normal(size=30)
    one = BayesianLinearRegression().fit(X[["a"]], y)
    whole = BayesianLinearRegression().fit(X, y)
    with pytest.raises(
        ValueError, match="'one' was fitted on the columns a, which differ from those"
    ):
        Averaged([("whole", whole), ("one", one)]).fit(X, y)
    assert Averaged([("whole", whole), ("one", clone(one))]).fit(X, y).weights_.shape == (2,)


def test_average_effects_are_those_of_the_models() -> None:
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = 1.0 + X @ [2.0, -1.0] + rng.normal(size=200)
    plain = BayesianLinearRegression()
    scaled = make_pipeline(StandardScaler(), BayesianLinearRegression(basis=Spline()))
    model = Averaged([("plain", plain), ("scaled", scaled)]).fit(X, y)
    effects = model.average_effects(X, size=4000)
    best = plain.fit(X, y).average_effects(X)
    assert model.summary()["probability"].sum() == pytest.approx(1.0)
    assert model.summary().index[0] == "plain"
    for column in ("mean", "sd", "low", "high"):
        np.testing.assert_allclose(effects[column], best[column], atol=0.02)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = Averaged([("plain", plain), ("scaled", scaled)]).fit(frame, y)
    again = named.average_effects(frame, size=4000)
    assert again.index.tolist() == ["a", "b"]
    np.testing.assert_allclose(again["mean"], effects["mean"], atol=1e-9)


def test_average_effects_mix_models() -> None:
    pytest.importorskip("pandas")
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 5.0, 10.1])
    models = [BayesianLinearRegression(prior_precision=a, noise_precision=1.0) for a in (0.5, 3.0)]
    model = Averaged(models).fit(X, y)
    told = model.average_effects(X, size=100_000).loc["x0"]
    means, variances = zip(*((float(one.coef_[0]), float(one.posterior_.cov[1, 1]))
                             for one in model.models_), strict=True)  # fmt: skip
    mean = model.weights_ @ means
    variance = model.weights_ @ (np.array(variances) + np.square(np.array(means) - mean))
    assert told["mean"] == pytest.approx(mean, abs=0.02)
    assert told["sd"] == pytest.approx(np.sqrt(variance), abs=0.02)
