"""Scores of predictions made before their rows were learned."""

from __future__ import annotations

import copy
import json
import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from posterity import BayesianLinearRegression
from posterity.evaluation import ValidationResult, progressive_validation
from posterity.forgetting import Exponential
from posterity.sparse import DiagonalLinearRegression


def problem(n: int, p: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 2.0 + X @ np.arange(1.0, p + 1) + rng.normal(size=n)


def known_noise() -> BayesianLinearRegression:
    """Proper everywhere: every row has a score."""
    return BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0, fit_intercept=False)


def assert_same(one: ValidationResult, other: ValidationResult, tolerance: float = 1e-9) -> None:
    for name in ("mae", "rmse", "log_score", "crps", "n_rows", "n_unscored", "n_certain"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=tolerance), name
    assert one.coverage == pytest.approx(other.coverage, rel=tolerance)
    assert one.width == pytest.approx(other.width, rel=tolerance)


class Constant:
    """A distribution that says the same of every row, to be scored by hand."""

    def __init__(self, n: int, width: float = 2.0, log_density: float = -1.0) -> None:
        self.n, self.half, self.log_density = n, width / 2.0, log_density

    def mean(self) -> np.ndarray:
        return np.zeros(self.n)

    def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.n, -self.half), np.full(self.n, self.half)

    def logpdf(self, y: np.ndarray) -> np.ndarray:
        return np.full(self.n, self.log_density)

    def crps(self, y: np.ndarray) -> np.ndarray:
        return np.abs(y) / 2.0


class Guess:
    """The least that can be validated."""

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Constant:
        return Constant(len(y))


class Script(Guess):
    """Says, batch by batch, what the test wrote down."""

    def __init__(self, *said: Constant) -> None:
        self.said = iter(said)

    def predict_then_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Constant:
        return next(self.said)


# ---- the scores ----


def test_scores_by_hand() -> None:
    y = np.array([0.5, -0.5, 3.0, 2.0])
    result = progressive_validation(Guess(), np.zeros((4, 1)), y, levels=(0.5,))
    assert result.mae == 1.5
    assert result.rmse == math.sqrt((0.25 + 0.25 + 9.0 + 4.0) / 4)
    assert result.log_score == -1.0
    assert result.crps == 0.75
    assert result.coverage == {0.5: 0.5}
    assert result.width == {0.5: 2.0}
    assert (result.n_rows, result.n_unscored, result.n_certain) == (4, 0, 0)


def test_scores_are_those_of_the_distributions_before_each_row() -> None:
    X, y = problem(500)
    result = progressive_validation(known_noise(), X, y, levels=(0.5, 0.9), batch_rows=64)
    before = known_noise().predict_then_learn(X, y)
    assert result.mae == pytest.approx(mean_absolute_error(y, before.mean()))
    assert result.rmse == pytest.approx(root_mean_squared_error(y, before.mean()))
    assert result.log_score == pytest.approx(before.logpdf(y).mean())
    assert result.crps == pytest.approx(before.crps(y).mean())
    for level in (0.5, 0.9):
        low, high = before.interval(level)
        assert result.coverage[level] == pytest.approx(np.mean((low <= y) & (y <= high)))
        assert result.width[level] == pytest.approx(np.mean(high - low))


def test_the_model_learns_the_stream() -> None:
    X, y = problem(300)
    model = known_noise()
    progressive_validation(model, X, y, batch_rows=7)
    np.testing.assert_allclose(model.coef_, known_noise().fit(X, y).coef_, rtol=1e-10)


def test_times_in_the_batches_are_those_of_the_model() -> None:
    rng = np.random.default_rng(3)
    X, times = rng.normal(size=(60, 2)), np.cumsum(rng.uniform(0.1, 3.0, size=60))
    y = X @ [1.0, -1.0] + rng.normal(size=60)
    slow, fast = (
        BayesianLinearRegression(prior_precision=1.0, forgetting=Exponential(half_life=5.0))
        for _ in range(2)
    )
    cuts = [slice(0, 25), slice(25, 60)]
    result = progressive_validation(
        fast, ((X[cut], y[cut], None, times[cut]) for cut in cuts), batch_rows=10
    )
    predictive = slow.predict_then_learn(X, y, times=times)
    np.testing.assert_allclose(fast.coef_, slow.coef_)
    scores = predictive.logpdf(y)
    np.testing.assert_allclose(result.log_score, scores[scores != 0.0].mean())  # 0: flat
    with pytest.raises(ValueError, match="times in batch 0 has shape"):
        progressive_validation(fast, [(X, y, None, times[:5])])
    with pytest.raises(ValueError, match="times and delay"):
        progressive_validation(fast, [(X, y, None, times + 200.0)], delay=2)


def test_log_scores_sum_to_the_evidence() -> None:
    X, y = problem(400)
    model = BayesianLinearRegression(prior_precision=1.0)
    result = progressive_validation(model, X, y)
    # With the noise learned from nothing, the first rows are flat: each has log density 0.
    n_scored = result.n_rows - result.n_unscored
    known = known_noise()
    known_result = progressive_validation(known, X, y)
    assert known_result.log_score * 400 == pytest.approx(known.log_evidence_, abs=1e-8)
    assert 0 < result.n_unscored <= 2
    assert np.isfinite(result.log_score * n_scored)


def test_calibrated_model_covers_what_it_promises() -> None:
    X, y = problem(20_000)
    result = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))
    assert result.coverage[0.5] == pytest.approx(0.5, abs=0.015)
    assert result.coverage[0.95] == pytest.approx(0.95, abs=0.006)
    assert result.width[0.95] == pytest.approx(2 * 1.96, rel=0.02)
    assert result.mae == pytest.approx(math.sqrt(2 / math.pi), rel=0.02)


def test_published_error_on_boston_housing(data_folder: Path) -> None:
    rows = np.loadtxt(data_folder / "housing" / "boston_data.txt")
    model = BayesianLinearRegression(
        prior_precision=1 / 0.3, noise_precision=1.0, fit_intercept=False
    )
    result = progressive_validation(model, rows[:, :-1], rows[:, -1])
    assert result.mae == pytest.approx(3.78413, abs=5e-6)


def test_published_coverage_on_california_housing(data_folder: Path) -> None:
    rows = np.load(data_folder / "housing" / "california_sklearn_form.npz")
    model = BayesianLinearRegression(prior_precision=1.0, noise_precision=5.0, fit_intercept=False)
    result = progressive_validation(model, rows["X"], rows["y"])
    assert result.coverage[0.95] == pytest.approx(0.81914, abs=5e-6)


# ---- forms of the stream ----


def test_every_form_of_a_stream_gives_the_same() -> None:
    X, y = problem(250)
    whole = progressive_validation(known_noise(), X, y)
    assert_same(progressive_validation(known_noise(), (X, y)), whole)
    assert_same(progressive_validation(known_noise(), X.tolist(), y.tolist()), whole)
    assert_same(progressive_validation(known_noise(), [(X, y)]), whole)
    pieces = ((X[i : i + 17], y[i : i + 17]) for i in range(0, 250, 17))
    assert_same(progressive_validation(known_noise(), pieces), whole)
    two = ((X[:100], y[:100]), (X[100:], y[100:]))
    assert_same(progressive_validation(known_noise(), two), whole)


def test_data_frames_are_cut_by_position() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = problem(120, 2)
    frame = pandas.DataFrame(X, columns=["a", "b"], index=np.arange(120)[::-1])
    for delay in (0, 9):
        result = progressive_validation(
            known_noise(), frame, pandas.Series(y), batch_rows=50, delay=delay
        )
        assert_same(result, progressive_validation(known_noise(), X, y, delay=delay))


def test_polars_frames_too() -> None:
    polars = pytest.importorskip("polars")
    X, y = problem(120, 2)
    frame = polars.DataFrame(X, schema=["a", "b"])
    for delay in (0, 9):
        result = progressive_validation(known_noise(), frame, y, batch_rows=50, delay=delay)
        assert_same(result, progressive_validation(known_noise(), X, y, delay=delay))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 50))
def test_batches_do_not_matter(sizes: list[int], batch_rows: int) -> None:
    n = sum(sizes) + 1
    X, y = problem(n)
    borders = np.cumsum(sizes)
    stream = list(zip(np.split(X, borders), np.split(y, borders), strict=True))
    one = progressive_validation(known_noise(), stream, batch_rows=batch_rows)
    whole = progressive_validation(known_noise(), X, y)
    assert_same(one, whole)
    np.testing.assert_array_equal(one.along.row_end[-1], n)


def test_weights_change_what_is_learned_and_not_how_rows_count() -> None:
    X, y = problem(200)
    weight = np.random.default_rng(1).integers(0, 3, size=200).astype(float)
    model = known_noise()
    result = progressive_validation(model, X, y, sample_weight=weight, batch_rows=30)
    np.testing.assert_allclose(model.coef_, known_noise().fit(X, y, weight).coef_, rtol=1e-9)
    assert result.n_rows == 200
    assert_same(progressive_validation(known_noise(), [(X, y, weight)]), result)
    assert_same(progressive_validation(known_noise(), (X, y, weight)), result)


def test_progress_is_told() -> None:
    X, y = problem(100)
    predictive: list[int] = []
    progressive_validation(known_noise(), X, y, batch_rows=40, progress=predictive.append)
    assert predictive == [40, 80, 100]


# ---- delay ----


def delayed_by_definition(X: np.ndarray, y: np.ndarray, delay: int) -> np.ndarray:
    means = []
    for i in range(len(y)):
        learned = max(i - delay, 0)
        if learned == 0:
            means.append(copy.deepcopy(known_noise()).predict_then_learn(X[i:], y[i:]).mean()[0])
        else:
            model = known_noise().fit(X[:learned], y[:learned])
            means.append(model.predict(X[i : i + 1])[0])
    return np.array(means)


@pytest.mark.parametrize("delay", [0, 1, 5, 29, 30, 100])
@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
def test_delayed_labels_are_learned_late(delay: int, batch_rows: int) -> None:
    X, y = problem(30)
    model = known_noise()
    result = progressive_validation(model, X, y, delay=delay, batch_rows=batch_rows)
    means = delayed_by_definition(X, y, delay)
    assert result.mae == pytest.approx(np.abs(y - means).mean(), rel=1e-9)
    assert result.rmse == pytest.approx(math.sqrt(np.square(y - means).mean()), rel=1e-9)
    np.testing.assert_allclose(model.coef_, known_noise().fit(X, y).coef_, rtol=1e-9)


def test_delay_goes_on_from_what_the_model_knew() -> None:
    X, y = problem(60)
    model = known_noise().fit(X[:20], y[:20])
    expected = np.abs(y[20:25] - model.predict(X[20:25])).mean()
    result = progressive_validation(model, X[20:25], y[20:25], delay=10)
    assert result.mae == pytest.approx(expected, rel=1e-9)


def test_delay_carries_weights() -> None:
    X, y = problem(40)
    weight = np.linspace(0.0, 2.0, 40)
    model = known_noise()
    progressive_validation(model, X, y, sample_weight=weight, delay=3, batch_rows=11)
    np.testing.assert_allclose(model.coef_, known_noise().fit(X, y, weight).coef_, rtol=1e-9)


def test_delay_is_honest_where_the_noise_is_learned() -> None:
    X, y = problem(300)
    result = progressive_validation(BayesianLinearRegression(), X, y, delay=10)
    assert result.coverage[0.95] == pytest.approx(0.95, abs=0.04)
    # Ten rows late: at least the first eleven rows are predicted by a flat model.
    assert result.n_unscored >= 11


# ---- along time ----


def test_along_time_adds_up_to_the_whole() -> None:
    X, y = problem(3001)
    result = progressive_validation(BayesianLinearRegression(), X, y)
    along = result.along
    rows, scored = along.n_rows, along.n_rows - along.n_unscored
    assert rows.sum() == 3001
    assert along.n_unscored.sum() == result.n_unscored
    np.testing.assert_array_equal(np.cumsum(rows), along.row_end)
    assert np.average(along.mae, weights=rows) == pytest.approx(result.mae)
    assert np.average(along.rmse**2, weights=rows) == pytest.approx(result.rmse**2)
    assert np.average(along.log_score, weights=scored) == pytest.approx(result.log_score)
    assert np.average(along.coverage[0.95], weights=scored) == pytest.approx(result.coverage[0.95])
    assert np.average(along.width[0.95], weights=scored) == pytest.approx(result.width[0.95])


def test_stretches_are_exact_and_bounded() -> None:
    y = np.arange(10_000.0)
    along = progressive_validation(Guess(), np.zeros((10_000, 1)), y, batch_rows=333).along
    assert 64 <= len(along) <= 128
    length = int(along.row_end[0])
    assert set(along.n_rows[:-1].tolist()) == {length}
    expected = [y[i : i + length].mean() for i in range(0, 10_000, length)]
    np.testing.assert_allclose(along.mae, expected, rtol=1e-12)


@pytest.mark.slow
def test_sums_lose_no_digits() -> None:
    # Plain summation of 0.1 would be off by 1e-9 here.
    n = 4_000_000
    chunk = (np.zeros((4000, 1)), np.full(4000, 0.1))
    result = progressive_validation(Guess(), (chunk for _ in range(n // 4000)))
    assert result.mae == pytest.approx(0.1, rel=1e-15)
    assert result.n_rows == n


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream() -> None:
    def peak(n_batches: int) -> int:
        def stream() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            rng = np.random.default_rng(0)
            for _ in range(n_batches):
                yield rng.normal(size=(500, 4)), rng.normal(size=500)

        tracemalloc.start()
        progressive_validation(BayesianLinearRegression(), stream())
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(2)
    # A batch is 20 kB; 1,000 of them are 20 MB.
    assert abs(peak(1000) - peak(20)) < 500_000


# ---- rows without a score ----


def test_flat_rows_count_in_the_errors_only() -> None:
    flat = Constant(2, width=math.inf, log_density=0.0)
    stream = [(np.zeros((2, 1)), np.array([5.0, 5.0])), (np.zeros((2, 1)), np.array([0.5, 3.0]))]
    result = progressive_validation(Script(flat, Constant(2)), stream)
    assert result.mae == (5 + 5 + 0.5 + 3) / 4
    assert (result.n_unscored, result.n_rows) == (2, 4)
    assert result.log_score == -1.0
    assert result.crps == 0.875
    assert result.coverage[0.95] == 0.5
    assert result.width[0.95] == 2.0
    assert np.isnan(result.along.log_score[0])


def test_flat_rows_are_told_without_levels() -> None:
    flat = Constant(1, width=math.inf, log_density=0.0)
    result = progressive_validation(Script(flat), [(np.zeros((1, 1)), np.ones(1))], levels=())
    assert result.n_unscored == 1
    assert result.coverage == {}


def test_certain_rows_have_no_log_score() -> None:
    point = Constant(2, width=0.0, log_density=-math.inf)
    result = progressive_validation(
        Script(point, Constant(1)),
        [(np.zeros((2, 1)), np.array([0.0, 4.0])), (np.zeros((1, 1)), np.zeros(1))],
    )
    assert (result.n_certain, result.n_unscored) == (2, 0)
    assert result.log_score == -1.0
    assert result.coverage[0.95] == pytest.approx(2 / 3)
    assert "2 rows without log score: predicted with certainty" in repr(result)


def test_constant_target_is_survived() -> None:
    X, _ = problem(50)
    result = progressive_validation(BayesianLinearRegression(), X, np.full(50, 7.0))
    assert np.isfinite(result.rmse)


def test_huge_targets_do_not_warn() -> None:
    result = progressive_validation(Guess(), np.zeros((2, 1)), np.array([1e200, -1e200]))
    assert result.rmse == math.inf
    assert result.to_dict()["rmse"] is None


# ---- the result ----


def test_result_is_ready_for_json() -> None:
    X, y = problem(700)
    result = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert set(document) == {
        "mae", "rmse", "log_score", "crps", "coverage", "width", "n_rows", "n_unscored",
        "n_certain", "along", "pit", "calibration_error", "baselines", "slices", "drift",
        "worst",
    }  # fmt: skip
    assert document["mae"] == result.mae
    assert document["coverage"] == {"0.5": result.coverage[0.5], "0.95": result.coverage[0.95]}
    assert set(document["along"]) == {
        "row_end", "n_rows", "n_unscored", "mae", "rmse", "log_score", "crps", "coverage", "width",
        "max_error",
    }  # fmt: skip
    assert len(document["along"]["mae"]) == len(result.along)
    assert document["along"]["row_end"][-1] == 700


def test_result_reads_as_a_table() -> None:
    X, y = problem(1500)
    text = repr(progressive_validation(BayesianLinearRegression(), X, y))
    assert text.startswith("Progressive validation of 1,500 rows\n")
    assert "mean absolute error" in text
    assert "0.95 interval: coverage" in text
    assert "not scored: the prediction was still flat" in text


def test_result_is_frozen() -> None:
    result = progressive_validation(Guess(), np.zeros((1, 1)), np.zeros(1))
    with pytest.raises(AttributeError):
        result.mae = 0.0  # type: ignore[misc]


def test_rows_of_names_are_scored() -> None:
    rows = [{"site": "ab"[k % 2]} for k in range(40)]
    y = np.arange(40) % 2 + 0.1 * np.sin(np.arange(40))
    result = progressive_validation(DiagonalLinearRegression(), rows, y, batch_rows=16)
    frame = pytest.importorskip("pandas").DataFrame(rows)
    same = progressive_validation(DiagonalLinearRegression(), frame, y, batch_rows=16)
    assert result.to_dict() == same.to_dict()


# ---- bad input ----


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"levels": (0.5, 1.0)}, r"levels must lie between 0 and 1, as in 0\.95; got 1"),
        ({"levels": (95,)}, "got 95"),
        ({"delay": -1}, "delay must be at least 0, got -1"),
        ({"batch_rows": 0}, "batch_rows must be at least 1, got 0"),
        ({"sample_weight": [1.0]}, r"sample_weight in batch 0 has shape \(1,\), but y has \(3,\)"),
    ],
)
def test_bad_settings_are_named(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        progressive_validation(Guess(), np.zeros((3, 1)), np.zeros(3), **keywords)


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ([], "the stream is empty: give at least one row"),
        ([(np.zeros((0, 2)), np.zeros(0))], "the stream is empty"),
        ([(np.zeros((2, 1)), np.zeros(2)), (np.zeros((2, 1)), np.zeros(3))],
         "X in batch 1 has 2 rows, but y has 3"),
        ([(np.zeros((2, 1)), np.zeros((2, 1)))], r"y in batch 0 must have one dimension"),
        ([(np.zeros(2), np.zeros(2))], r"X in batch 0 must have two dimensions"),
        (
            [np.zeros((2, 1))],
            r"batch 0 must be \(X, y\), \(X, y, sample_weight\) or "
            r"\(X, y, sample_weight, times\)",
        ),
        (np.zeros((2, 1)), r"y is missing: give progressive_validation\(model, X, y\)"),
    ],
)  # fmt: skip
def test_bad_streams_are_named(stream: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        progressive_validation(Guess(), stream)


def test_bad_types_are_named() -> None:
    with pytest.raises(TypeError, match=r"stream must be an array X .* got int"):
        progressive_validation(Guess(), 3)
    with pytest.raises(TypeError, match=r"delay must be a whole number, got 1\.5"):
        progressive_validation(Guess(), np.zeros((1, 1)), np.zeros(1), delay=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"levels must be a sequence of numbers, as in levels=\(0"):
        progressive_validation(Guess(), np.zeros((1, 1)), np.zeros(1), levels=0.9)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"object cannot be .* it has no predict_then_learn"):
        progressive_validation(object(), np.zeros((1, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="give the weights of a stream in its batches"):
        progressive_validation(Guess(), [], sample_weight=[1.0])


@pytest.mark.parametrize("delay", [0, 2])
def test_what_the_model_refuses_is_placed_in_the_stream(delay: int) -> None:
    X, y = problem(50)
    X[33, 1] = math.nan
    with pytest.raises(ValueError, match=r"(?i)nan|finite.*\b13\b") as caught:
        progressive_validation(known_noise(), X, y, batch_rows=20, delay=delay)
    assert caught.value.__notes__ == ["in rows 20 to 39 of the stream (the first is 0)"]


def test_a_target_that_never_changes_is_held() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    result = progressive_validation(BayesianLinearRegression(), X, np.full(200, 3.3))
    assert result.coverage[0.95] == 1.0
    assert result.n_certain > 150
    assert result.pit is not None
    assert result.pit.n_rows == 200 - result.n_unscored - result.n_certain
