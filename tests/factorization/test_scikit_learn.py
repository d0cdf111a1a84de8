"""Factorization machines pass scikit-learn's checks, but for the one that no sweeps can pass."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from posterity import GroupedRegression
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine

# Rows repeated begin the search elsewhere than rows that weigh as much.
EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "ends in another mode"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [BayesianFactorizationMachine, BayesianFactorizationClassifier])
def test_scikit_learn(kind: type) -> None:
    check_estimator(kind(rank=1), expected_failed_checks=EXPECTED, on_skip=None)


def test_a_frame_with_numbers_for_names() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame([["ann", "tea"], ["bob", "tea"], ["ann", "rum"]])
    model = BayesianFactorizationMachine(rank=0).fit(X, [4.0, 2.0, 1.0])
    assert np.isfinite(model.predict(X)).all()


def test_files_of_joblib_that_are_mapped(tmp_path) -> None:
    rng = np.random.default_rng(0)
    keys, y = rng.integers(0, 5, size=40), rng.normal(size=40)
    X = rng.normal(size=(40, 1))
    model = GroupedRegression().fit(X, y, groups=keys)
    joblib.dump(model, tmp_path / "model")
    read = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(read.predict(X, groups=keys), model.predict(X, groups=keys))
