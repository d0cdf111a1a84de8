"""Laws of merged validations: the parts of a stream score what one run over it scores."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posterity import BayesianLinearRegression
from posterity.evaluation import ValidationResult, merge_validations, progressive_validation

EDGES = {0: [-0.5, 0.5]}


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2.0 + X @ [1.0, -2.0, 0.5] + rng.normal(size=n)


def in_parts(X: np.ndarray, y: np.ndarray, ends: list[int]) -> list[ValidationResult]:
    """Each part by a model that starts where that of the part before ended."""
    model = BayesianLinearRegression()
    results = []
    for start, end in zip([0, *ends], [*ends, len(y)], strict=True):
        model = copy.deepcopy(model)
        if start == end:
            continue
        results.append(
            progressive_validation(
                model, X[start:end], y[start:end], levels=(0.5, 0.95), slices=EDGES
            )
        )
    return results


def assert_same(one: ValidationResult, other: ValidationResult) -> None:
    mine, others = one.to_dict(), other.to_dict()
    for name in ("n_rows", "n_unscored", "n_certain", "pit", "coverage"):
        assert mine[name] == others[name], name
    for name in ("mae", "rmse", "log_score", "crps", "calibration_error", "width"):
        assert mine[name] == pytest.approx(others[name], rel=1e-9), name
    for name in one.slices:
        for score in ("n_rows", "mae", "rmse", "log_score", "crps"):
            np.testing.assert_allclose(
                getattr(one.slices[name], score), getattr(other.slices[name], score), rtol=1e-9
            )


@settings(deadline=None, max_examples=25)
@given(ends=st.lists(st.integers(0, 600), max_size=6).map(sorted), seed=st.integers(0, 99))
def test_parts_merge_to_the_whole(ends: list[int], seed: int) -> None:
    X, y = problem(600, seed)
    # With a precision that is learned, a fixed schedule of rows says when: batches do not matter.
    whole = in_parts(X, y, [])[0]
    parts = in_parts(X, y, ends)
    together = merge_validations(parts)
    assert_same(together, whole)
    assert together.along.row_end[-1] == 600
    assert together.along.n_rows.sum() == 600
    assert together.along.max_error.max() == pytest.approx(whole.along.max_error.max())
    assert together.baselines == {}


def test_merging_is_associative() -> None:
    X, y = problem(500)
    a, b, c = in_parts(X, y, [100, 350])
    assert_same(
        merge_validations([merge_validations([a, b]), c]),
        merge_validations([a, merge_validations([b, c])]),
    )


def test_stretches_of_many_parts_stay_few() -> None:
    X, y = problem(4000)
    parts = in_parts(X, y, list(range(40, 4000, 40)))
    along = merge_validations(parts).along
    assert 64 <= len(along) <= 128
    assert np.all(np.diff(along.row_end) == along.n_rows[1:])
    assert np.sum(along.n_rows * along.mae) == pytest.approx(sum(p.mae * p.n_rows for p in parts))


def test_drift_is_found_across_parts() -> None:
    X, y = problem(3000)
    y[1500:2000] += 8.0
    period, *_ = merge_validations(in_parts(X, y, [700, 1600])).drift_periods()
    assert 1480 <= period.row_start <= 1520


def test_results_travel_between_processes() -> None:
    X, y = problem(300)
    parts = in_parts(X, y, [100])
    assert_same(merge_validations(pickle.loads(pickle.dumps(parts))), merge_validations(parts))


def test_a_part_without_transforms_leaves_none() -> None:
    class Discrete:
        def __init__(self, y: np.ndarray) -> None:
            self.y = y

        def mean(self) -> np.ndarray:
            return self.y

        def interval(self, level: float) -> tuple[np.ndarray, np.ndarray]:
            return self.y, self.y

        def logpdf(self, y: np.ndarray) -> np.ndarray:
            return np.zeros(len(y))

        crps = logpdf

    class Model:
        def predict_then_learn(self, X: object, y: np.ndarray, sample_weight: object) -> Discrete:
            return Discrete(y)

    X, y = problem(50)
    known = progressive_validation(BayesianLinearRegression(), X, y)
    unknown = progressive_validation(Model(), X, y)
    assert merge_validations([known, unknown]).pit is None


def test_what_does_not_merge_is_refused() -> None:
    X, y = problem(100)
    plain = progressive_validation(BayesianLinearRegression(), X, y)
    with pytest.raises(ValueError, match="there is no result to merge"):
        merge_validations([])
    other = progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5,))
    with pytest.raises(ValueError, match=r"same levels: one has \(0\.95,\), another \(0\.5,\)"):
        merge_validations([plain, other])
    sliced = progressive_validation(BayesianLinearRegression(), X, y, slices={0: 2})
    with pytest.raises(ValueError, match=r"slices of the same features: one has \[\], another"):
        merge_validations([plain, sliced])
    again = progressive_validation(BayesianLinearRegression(), X[:50], y[:50], slices={0: 2})
    with pytest.raises(ValueError, match="the same slices of '0': give their edges"):
        merge_validations([sliced, again])
