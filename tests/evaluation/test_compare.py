"""Models compared by evidence and by their predictions."""

from __future__ import annotations

import copy
import json
import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from posterity import BayesianLinearRegression, BayesianLogisticRegression
from posterity.averaging import Averaged
from posterity.distributions import Normal
from posterity.evaluation import Comparison, compare
from posterity.forgetting import Adaptive, Stabilized

RNG = np.random.default_rng(0)
N = 80
X = RNG.normal(size=(N, 2))
Y = 1.0 + X @ [1.0, -2.0] + RNG.normal(size=N)
PROPER = {"noise_prior": (1.0, 1.0), "prior_precision": 1.0}
FIXED = BayesianLinearRegression(prior_precision=1.0)


def polynomials(*degrees: int, **parameters: Any) -> dict[str, Any]:
    model = BayesianLinearRegression(**(PROPER | parameters))
    return {
        f"degree {d}": make_pipeline(PolynomialFeatures(d, include_bias=False), model)
        for d in degrees
    }


# ---- scores --------------------------------------------------------------------------------------


def test_evidences_and_probabilities() -> None:
    models = {a: BayesianLinearRegression(prior_precision=float(a)) for a in ("0.1", "1", "10")}
    result = compare(models, X, Y, prior_weights=[2.0, 1.0, 1.0])
    logs = [
        BayesianLinearRegression(prior_precision=float(a)).fit(X, Y).log_evidence_ for a in models
    ]
    assert result.names == ("0.1", "1", "10")
    assert np.allclose(result.log_scores, logs, rtol=1e-12)
    assert np.allclose(result.prior_weights, [0.5, 0.25, 0.25])
    weights = [0.5, 0.25, 0.25] * np.exp(np.array(logs) - max(logs))
    assert np.allclose(result.weights, weights / weights.sum())
    assert result.best == models_sorted(models, logs)[0]
    assert np.allclose(result.differences, max(logs) - np.array(logs))


def models_sorted(models: dict[str, Any], logs: list[float]) -> list[str]:
    return [name for _, name in sorted(zip(logs, models, strict=True), reverse=True)]


def test_the_score_is_a_density() -> None:
    """Known noise, no intercept: a multivariate normal density of SciPy's, by either score."""
    model = BayesianLinearRegression(prior_precision=2.0, noise_precision=4.0, fit_intercept=False)
    expected = stats.multivariate_normal(np.zeros(N), X @ X.T / 2.0 + np.eye(N) / 4.0).logpdf(Y)
    for score in ("evidence", "prequential"):
        result = compare([model], X, Y, score=score)
        assert result.log_scores[0] == pytest.approx(expected, rel=1e-11)
        assert result.n_unscored == 0


def test_the_scores_agree_where_priors_are_proper() -> None:
    models = polynomials(1, 2, 3)
    evidence, predicted = compare(models, X, Y), compare(models, X, Y, score="prequential")
    assert np.allclose(evidence.log_scores, predicted.log_scores, rtol=1e-11)
    assert predicted.n_unscored == 1  # the flat intercept's, of density 1


def test_the_noise_cancels_though_improper_where_it_is_shared() -> None:
    models = polynomials(1, 2, 3, noise_prior=(0.0, 0.0))
    evidence, predicted = compare(models, X, Y), compare(models, X, Y, score="prequential")
    assert not np.allclose(evidence.log_scores, predicted.log_scores)
    assert np.allclose(evidence.differences, predicted.differences, atol=1e-9)
    assert np.allclose(evidence.weights, predicted.weights)


@pytest.mark.parametrize("score", ["evidence", "prequential"])
def test_every_form_of_a_stream_gives_the_same(score: str) -> None:
    models = polynomials(1, 2)
    weight = np.resize([1.0, 2.0, 0.0], N)
    expected = compare(models, X, Y, score=score, sample_weight=weight)
    frame = pd.DataFrame(X, columns=["a", "b"])
    seen: list[int] = []
    for stream, given in (
        ((X, Y, weight), {}),
        ([(X[:30], Y[:30], weight[:30]), (X[30:], Y[30:], weight[30:])], {}),
        (((X[i : i + 7], Y[i : i + 7], weight[i : i + 7]) for i in range(0, N, 7)), {}),
        (X, {"y": Y, "sample_weight": weight, "batch_rows": 11, "progress": seen.append}),
        (frame, {"y": Y, "sample_weight": weight, "batch_rows": 50}),
    ):
        result = compare(models, stream, score=score, **given)
        assert np.allclose(result.log_scores, expected.log_scores, rtol=1e-11)
        assert result.n_rows == N
    assert seen == [*range(11, N, 11), N]


def test_weights_are_repeated_rows() -> None:
    models = polynomials(1, 2)
    weight = np.resize([1, 2, 0], N)
    weighted = compare(models, X, Y, sample_weight=weight)
    repeated = compare(models, np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert np.allclose(weighted.log_scores, repeated.log_scores, rtol=1e-11)


def test_the_models_given_stay_as_they_are() -> None:
    model = clone(FIXED).fit(X, Y)
    pipeline = make_pipeline(StandardScaler(), clone(FIXED))
    before = copy.deepcopy(model.__dict__)
    result = compare([model, pipeline], X, Y)
    assert model.n_observations_ == N
    assert before.keys() == model.__dict__.keys()
    assert not hasattr(pipeline[0], "mean_")
    fresh = compare([FIXED, pipeline], X, Y)
    assert np.array_equal(result.log_scores, fresh.log_scores)


def test_steps_are_fitted_on_the_first_batch() -> None:
    pipeline = make_pipeline(StandardScaler(), BayesianLinearRegression(**PROPER))
    result = compare([pipeline], X, Y, batch_rows=20)
    steps = StandardScaler().fit(X[:20])
    model = BayesianLinearRegression(**PROPER).fit(steps.transform(X), Y)
    assert result.log_scores[0] == pytest.approx(model.log_evidence_, rel=1e-11)


def test_forgetting_is_judged_by_predictions() -> None:
    drift = np.where(np.arange(400) < 200, 1.0, -1.0)
    x = np.random.default_rng(1).normal(size=(400, 1))
    y = drift * x[:, 0] + 0.1 * np.random.default_rng(2).normal(size=400)
    models = {
        "steady": clone(FIXED),
        "quick": BayesianLinearRegression(prior_precision=1.0, forgetting=Stabilized(discount=0.9)),
        "adaptive": BayesianLinearRegression(prior_precision=1.0, forgetting=Adaptive()),
    }
    result = compare(models, x, y, score="prequential")
    assert result.best == "adaptive"
    predictive = [m.predict_then_learn(x, y).logpdf(y)[2:].sum() for m in models.values()]
    assert np.allclose(result.log_scores, predictive)
    assert result.n_unscored == 2


def test_an_average_is_a_model_too() -> None:
    models = polynomials(1, 2)
    result = compare({**models, "average": Averaged(list(models.values()))}, X, Y)
    first, second, average = result.log_scores
    assert average == pytest.approx(np.logaddexp(first, second) - math.log(2.0), rel=1e-11)


def test_rows_that_some_model_cannot_predict_count_for_none() -> None:
    models = [
        BayesianLinearRegression(prior_precision=0.0),
        BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0),
    ]
    result = compare(models, X, Y, score="prequential")
    predictive = [m.predict_then_learn(X, Y).logpdf(Y)[4:].sum() for m in models]
    assert result.n_unscored == 4
    assert np.allclose(result.log_scores, predictive)
    assert "4 rows not scored: not every model predicted a density yet" in repr(result)


class Constant:
    """Not an estimator of scikit-learn: predicts the standard normal distribution."""

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Normal:
        return Normal(np.zeros(len(y)), 1.0)


def test_anything_that_predicts_then_learns_can_be_compared() -> None:
    result = compare({"constant": Constant(), "line": FIXED}, X, Y, score="prequential")
    assert result.best == "line"
    assert result.log_scores[0] == pytest.approx(stats.norm.logpdf(Y[2:]).sum())


# ---- the sinusoid of Bishop (2006) ---------------------------------------------------------------


@pytest.mark.slow
def test_the_evidence_picks_the_degree(report: Any) -> None:
    """10 points of a sinusoid, noise variance 0.09: degree 3, 4 or 5 in at least 90% of 200."""
    model = BayesianLinearRegression(
        prior_precision=0.005, noise_precision=1.0 / 0.09, fit_intercept=False
    )
    degrees = {d: make_pipeline(PolynomialFeatures(d), model) for d in range(10)}
    x = np.linspace(0.0, 1.0, 10)[:, None]
    picked = []
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(scale=0.3, size=10)
        picked.append(compare(degrees, x, np.sin(2.0 * np.pi * x[:, 0]) + noise).best)
    share = np.isin(picked, [3, 4, 5]).mean()
    report(f"evidence picks degree 3, 4 or 5 of a sinusoid in {share:.1%} of 200 seeds")
    assert share >= 0.9


# ---- the result ----------------------------------------------------------------------------------


def comparison(*scores: float, **given: Any) -> Comparison:
    k = len(scores)
    return Comparison(
        names=tuple("abcdefg"[:k]),
        score="evidence",
        log_scores=np.array(scores),
        weights=np.full(k, 1.0 / k),
        prior_weights=np.full(k, 1.0 / k),
        n_rows=10,
        **given,
    )


def test_strengths_are_those_of_kass_and_raftery() -> None:
    result = comparison(-10.0, -10.5, -12.0, -14.0, -16.0, -math.inf)
    assert result.strengths == (
        "best",
        "not worth more than a bare mention",
        "positive",
        "strong",
        "very strong",
        "very strong",
    )
    assert result.differences[-1] == math.inf
    assert comparison(math.inf, math.inf, 0.0).differences.tolist() == [0.0, 0.0, math.inf]


def test_the_table_is_readable() -> None:
    lines = repr(comparison(-12.0, -10.0)).splitlines()
    assert lines[0] == "Comparison of 2 models on 10 rows, in nats"
    assert lines[1].split() == [
        *("model", "log", "evidence", "behind", "weight", "evidence", "against")
    ]
    assert lines[2].split() == ["b", "-10", "0", "0.5000", "best"]
    assert lines[3].split() == ["a", "-12", "2", "0.5000", "positive"]


def test_to_dict_is_json_and_to_frame_is_sorted() -> None:
    result = comparison(-12.0, -10.0, -math.inf)
    predictive = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert predictive["best"] == "b"
    assert predictive["models"][0]["difference"] == 2.0
    assert predictive["models"][2]["log_score"] is None
    frame = result.to_frame()
    assert list(frame.index) == ["b", "a", "c"]
    assert frame.loc["a", "log_score"] == -12.0


def test_to_frame_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: install it .* use to_dict"):
        comparison(0.0).to_frame()


def test_a_list_is_named_by_what_differs() -> None:
    plain = BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0)
    loose = BayesianLinearRegression(noise_precision=1.0, prior_precision=0.5)
    assert compare([plain], X, Y).names == ("BayesianLinearRegression",)
    assert compare([plain, loose], X, Y).names[1] == (
        "BayesianLinearRegression(prior_precision=0.5)"
    )
    assert compare([plain, plain], X, Y).names == (
        "BayesianLinearRegression #1",
        "BayesianLinearRegression #2",
    )
    pipelines = list(polynomials(1, 2).values())
    assert compare(pipelines, X, Y).names == ("Pipeline(degree=1)", "Pipeline(degree=2)")


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        ({"prior_precision": 1.0}, {"prior_precision": 0.0}, r"'b' has 2 flat coefficients"),
        ({}, {"fit_intercept": False}, r"'a' has .* a flat intercept, .*'b' has .* no intercept"),
        ({}, {"noise_precision": 1.0}, r"'b' has .* a proper noise prior or known noise"),
        ({}, {"noise_prior": (2.0, 1.0)}, r"'a' has .* the improper noise_prior \(0, 0\)"),
    ],
)
def test_priors_improper_in_different_ways_are_refused(
    first: dict[str, Any], second: dict[str, Any], difference: str
) -> None:
    common = {"prior_precision": 1.0}
    models = {
        "a": BayesianLinearRegression(**(common | first)),
        "b": BayesianLinearRegression(**(common | second)),
    }
    with pytest.raises(ValueError, match=difference) as caught:
        compare(models, X, Y)
    assert "these log evidences are not comparable" in str(caught.value)
    assert 'compare with score="prequential"' in str(caught.value)
    assert np.isfinite(compare(models, X, Y, score="prequential").log_scores).all()


@pytest.mark.parametrize(
    "model",
    [
        BayesianLinearRegression(prior_precision=1.0, forgetting=Stabilized(discount=0.9)),
        make_pipeline(
            StandardScaler(), BayesianLinearRegression(prior_precision=1.0, forgetting=Adaptive())
        ),
        Averaged([BayesianLinearRegression()], persistence=0.9),
    ],
)
def test_models_without_an_evidence_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match=r"model 'm' forgets, .*compare with score=\"prequential"):
        compare({"m": model}, X, Y)


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(TypeError, match="model 'm' is a LinearRegression, which has no partial_f"):
        compare({"m": LinearRegression()}, X, Y)
    with pytest.raises(TypeError, match="a pipeline whose last step is a LinearRegression, which"):
        compare({"m": make_pipeline(LinearRegression())}, X, Y, score="prequential")
    with pytest.raises(TypeError, match="models must be a mapping of names to models, or a list"):
        compare(BayesianLinearRegression(), X, Y)
    with pytest.raises(ValueError, match="models must be a list with at least one estimator"):
        compare([], X, Y)


def test_bad_calls_are_refused() -> None:
    models = [FIXED]
    with pytest.raises(ValueError, match="score is 'bic': it must be"):
        compare(models, X, Y, score="bic")
    with pytest.raises(ValueError, match="batch_rows must be at least 1, got 0"):
        compare(models, X, Y, batch_rows=0)
    with pytest.raises(ValueError, match=r"y is missing: give .* or compare\(models, X, y\)"):
        compare(models, X)
    for score in ("evidence", "prequential"):
        with pytest.raises(ValueError, match="the stream is empty: give at least one row"):
            compare(models, [], score=score)
    with pytest.raises(
        ValueError, match="none of the 2 rows has a proper prediction of every model"
    ):
        compare(models, X[:2], Y[:2], score="prequential")


def test_the_rows_that_a_model_refuses_are_named() -> None:
    broken = X.copy()
    broken[25, 1] = np.inf
    with pytest.raises(ValueError, match="Input X contains infinity in row 5, column 1") as caught:
        compare({"line": BayesianLinearRegression()}, broken, Y, batch_rows=20)
    assert "model 'line', in rows 20 to 39 of the stream (the first is 0)" in (
        caught.value.__notes__
    )


@pytest.mark.parametrize("score", ["evidence", "prequential"])
def test_fitted_models_learn_the_columns_that_they_know(score: str) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    y = 2.0 * X["a"].to_numpy() + rng.normal(size=60)
    one = BayesianLinearRegression().fit(X[["a"]], y)
    two = BayesianLinearRegression().fit(X[["c", "b"]], y)
    result = compare({"one": one, "two": two}, X, y, score=score)
    alone = [
        compare([BayesianLinearRegression()], X[columns], y, score=score).log_scores[0]
        for columns in (["a"], ["c", "b"])
    ]
    if score == "evidence":
        assert result.log_scores == pytest.approx(alone, rel=1e-9)
    assert result.best == "one"
    with pytest.raises(ValueError, match="'one' was fitted on 1 feature"):
        compare({"one": one, "two": two}, X.to_numpy(), y, score=score)
    with pytest.raises(ValueError, match="the column 'a', which these rows do not have"):
        compare({"one": one}, X[["b", "c"]], y, score=score)


@pytest.mark.parametrize("score", ["evidence", "prequential"])
def test_labels_of_text_are_labels_by_number(score: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    labels = X[:, 0] + rng.logistic(size=40) > 0.0
    models = [BayesianLogisticRegression(), BayesianLogisticRegression(prior_precision=4.0)]
    expected = compare(models, X, labels, score=score)
    found = compare(models, X, np.where(labels, "yes", "no"), score=score)
    assert found.log_scores == pytest.approx(expected.log_scores)
