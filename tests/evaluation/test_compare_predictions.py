"""Paired comparison along a stream, against the cosine transform of single rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import fft, stats
from scipy.signal import lfilter

from posterity import BayesianLinearRegression
from posterity.basis import Polynomial
from posterity.evaluation import PairedComparison, compare_predictions, progressive_validation


def stream(n: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A bend and noise that goes together along time."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 1))
    noise = np.convolve(rng.normal(size=n + 3), np.ones(4) / 2.0, mode="valid")
    return X, X[:, 0] + 0.5 * X[:, 0] ** 2 + noise


def line() -> BayesianLinearRegression:
    return BayesianLinearRegression(prior_precision=1.0)


def models() -> dict[str, BayesianLinearRegression]:
    bend = BayesianLinearRegression(prior_precision=1.0, basis=Polynomial(degree=2, domain=(-1, 1)))
    return {"line": line(), "bend": bend, "mean": BayesianLinearRegression(prior_precision=1e9)}


def losses(name: str, loss: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    predictive = models()[name].predict_then_learn(X, y)
    if loss == "log_score":
        return np.where(predictive.is_flat(), np.nan, -predictive.logpdf(y))
    if loss == "crps":
        return np.where(np.isfinite(predictive.crps(y)), predictive.crps(y), np.nan)
    error = y - predictive.mean()
    return np.abs(error) if loss == "absolute" else error**2


@pytest.mark.parametrize("loss", ["log_score", "crps", "absolute", "squared"])
@pytest.mark.parametrize("n", [60, 128, 1500])
def test_standard_error_is_that_of_the_cosine_transform(loss: str, n: int) -> None:
    """By SciPy's transform of single rows; stretches of a long stream lose next to nothing."""
    X, y = stream(n)
    result = compare_predictions(models(), X, y, loss=loss, batch_rows=100)
    for one, other in (("line", "bend"), ("mean", "line"), ("bend", "mean")):
        d = losses(one, loss, X, y) - losses(other, loss, X, y)
        d = d[np.isfinite(losses(one, loss, X, y)) & np.isfinite(losses(other, loss, X, y))]
        d = d[np.isfinite(d)]
        found = result.between(one, other)
        assert found.n_rows == pytest.approx(len(d), abs=2)
        if found.n_rows != len(d):
            continue
        waves = fft.dct(d, norm="ortho")[1 : found.degrees_of_freedom + 1]
        error = np.sqrt(np.mean(waves**2) / len(d))
        assert found.mean == pytest.approx(d.mean(), rel=1e-9, abs=1e-13)
        assert found.standard_error == pytest.approx(error, rel=1e-8 if n <= 128 else 0.1)
        p_value = 2.0 * stats.t.sf(abs(found.statistic), found.degrees_of_freedom)
        assert found.p_value == pytest.approx(p_value, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.8, 0.95, 0.99])
@pytest.mark.parametrize("n", [50, 300, 1000])
def test_p_values_of_equal_models_are_right_if_features_vary_slowly(
    correlation: float, n: int
) -> None:
    """Each model has one of two exchangeable columns: a twentieth of the p-values is below .05."""
    below, runs = 0, 200
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        steps = rng.normal(size=(n + 500, 2))
        X = lfilter([np.sqrt(1.0 - correlation**2)], [1.0, -correlation], steps, axis=0)[500:]
        y = X.sum(axis=1) + rng.normal(size=n)
        one, other = ([1.0, 1e8], [1e8, 1.0])
        result = compare_predictions(
            {
                "one": BayesianLinearRegression(prior_precision=one),
                "other": BayesianLinearRegression(prior_precision=other),
            },
            X,
            y,
        )
        below += result.between("one", "other").p_value < 0.05
    assert below / runs < 0.11


def test_batches_do_not_matter() -> None:
    X, y = stream(700)
    whole = compare_predictions(models(), X, y, batch_rows=10_000)
    for batch_rows in (1, 13, 200):
        pieces = compare_predictions(models(), X, y, batch_rows=batch_rows)
        for one, other in (("line", "bend"), ("mean", "line")):
            a, b = whole.between(one, other), pieces.between(one, other)
            assert b.mean == pytest.approx(a.mean, rel=1e-9)
            assert b.standard_error == pytest.approx(a.standard_error, rel=1e-8)


def test_each_model_is_validated_as_if_alone() -> None:
    X, y = stream(600)
    for delay in (0, 3):
        result = compare_predictions(models(), X, y, delay=delay, batch_rows=64)
        for name, model in models().items():
            alone = progressive_validation(model, X, y, delay=delay)
            assert result.results[name].mae == pytest.approx(alone.mae)
            assert result.results[name].log_score == pytest.approx(alone.log_score)
            assert np.allclose(result.models[name].coef_, model.coef_)


def result_of(n: int = 800) -> PairedComparison:
    return compare_predictions(models(), *stream(n))


def test_ranks_and_differences() -> None:
    result = result_of(4000)
    assert result.best == "bend"
    assert result.between("line", "bend").mean == pytest.approx(
        -result.between("bend", "line").mean
    )
    difference = result.between("mean", "bend")
    assert difference.p_value < 1e-6
    low, high = difference.interval()
    assert 0.0 < low < difference.mean < high
    means = dict(zip(result.names, result.mean_losses, strict=True))
    assert means["mean"] - means["bend"] == pytest.approx(difference.mean)
    assert result.between("line", "line").p_value == 1.0


def test_difference_along_time_ends_at_the_difference() -> None:
    result = result_of()
    mean, error = result.difference_along("line", "bend")
    found = result.between("line", "bend")
    assert mean[-1] == pytest.approx(found.mean)
    assert error[-1] == pytest.approx(found.standard_error)
    assert np.all(np.diff(error[np.isfinite(mean)]) <= 0.0)


def test_the_models_given_are_not_changed() -> None:
    given = models()
    compare_predictions(given, *stream(100))
    assert not any(hasattr(model, "coef_") for model in given.values())


def test_frame_json_and_repr() -> None:
    result = result_of()
    frame = result.to_frame()
    assert next(iter(frame.index)) == result.best
    assert frame["behind"].iloc[0] == 0.0
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [row["name"] for row in document["models"]] == list(frame.index)
    assert repr(result).startswith("3 models on ")
    assert "behind the best" in result._repr_html_()


def test_a_false_alarm_is_rare() -> None:
    """Two models alike but for noise: p-values below 0.05 in about 5% of streams."""
    alarms = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(400, 2)), rng.normal(size=400)
        result = compare_predictions(
            {
                "a": BayesianLinearRegression(basis=Columns(0), prior_precision=0.1),
                "b": BayesianLinearRegression(basis=Columns(1), prior_precision=0.1),
            },
            X,
            y,
            loss="squared",
        )
        alarms += result.between("a", "b").p_value < 0.05
    assert alarms <= 9


def Columns(which: int) -> object:  # noqa: N802
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(np.take, kw_args={"indices": [which], "axis": 1})


def test_messages() -> None:
    X, y = stream(20)
    with pytest.raises(ValueError, match="loss is 'mse': it must be one of 'log_score', 'crps'"):
        compare_predictions(models(), X, y, loss="mse")
    with pytest.raises(ValueError, match="give two models or more to compare, got 1"):
        compare_predictions([line()], X, y)
    with pytest.raises(ValueError, match="there is no model 'x': give one of line, bend, mean"):
        compare_predictions(models(), X, y).between("x", "line")
    with pytest.raises(TypeError, match="model 'a' is a int, which has no predict_then_learn"):
        compare_predictions({"a": 1, "b": line()}, X, y)
