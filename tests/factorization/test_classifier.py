"""Factorization machines of labels: laws, outside truth, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from posterity import files
from posterity.factorization import BayesianFactorizationClassifier

Array = NDArray[np.float64]


def bought(seed: int = 0, n: int = 3000) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Users, items, labels and their log odds."""
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    X = np.stack([rng.integers(0, 40, n), rng.integers(0, 30, n)], axis=1)
    odds = rng.normal(size=40)[X[:, 0]] - 0.5 + (users[X[:, 0]] * items[X[:, 1]]).sum(axis=1)
    return X, (rng.random(n) < expit(odds)).astype(np.intp), odds


def test_the_bound_rises() -> None:
    X, y, _ = bought(n=600)
    for rank in (0, 2):
        model = BayesianFactorizationClassifier(rank, tolerance=0.0).fit(X, y)
        assert np.diff(model.bounds_).min() > -1e-8 * np.abs(model.bounds_).max()


def test_rank_zero_is_penalized_logistic_regression() -> None:
    """The means are near the mode of the same model: Newton's, with the learned precisions."""
    X, y, _ = bought(n=3000)
    model = BayesianFactorizationClassifier(0, tolerance=1e-12, max_sweeps=2000).fit(X, y)
    prior = np.repeat(model._posterior.prior_precisions[:, 0], [40, 30])
    rows = np.hstack([np.ones((3000, 1)), np.eye(40)[X[:, 0]], np.eye(30)[X[:, 1]]])
    signs = 2.0 * y - 1.0

    def loss(w: Array) -> tuple[float, Array]:
        margin = signs * (rows @ w)
        gradient = rows.T @ (-signs * expit(-margin))
        gradient[1:] += prior * w[1:]
        return float(np.logaddexp(0.0, -margin).sum() + 0.5 * prior @ w[1:] ** 2), gradient

    mode = minimize(loss, np.zeros(71), jac=True, method="L-BFGS-B", options={"maxiter": 5000}).x
    mine = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(mine, expit(rows @ mode), atol=0.03)


def test_probabilities_hold_and_intervals_too() -> None:
    X, y, odds = bought(n=6000)
    model = BayesianFactorizationClassifier(2).fit(X[:5000], y[:5000])
    low, high = model.predict_interval(X[5000:]).T
    truth = expit(odds[5000:])
    assert 0.85 < np.mean((low <= truth) & (truth <= high)) < 0.99
    loss = -model.predict_log_proba(X[5000:])[np.arange(1000), y[5000:]].mean()
    best = -np.log(np.where(y[5000:] == 1, truth, 1.0 - truth)).mean()
    flat = BayesianFactorizationClassifier(0).fit(X[:5000], y[:5000])
    other = -flat.predict_log_proba(X[5000:])[np.arange(1000), y[5000:]].mean()
    assert best - 0.02 < loss < best + 0.05 < other


def test_batches_of_any_size_are_rows_one_by_one() -> None:
    X, y, _ = bought(n=300)
    models = [BayesianFactorizationClassifier(2).fit(X[:60], y[:60]) for _ in range(2)]
    models[0].partial_fit(X[60:], y[60:])
    for row in range(60, 300):
        models[1].learn_one(X[row].tolist(), int(y[row]))
    assert np.array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_a_stream_is_near_a_fit() -> None:
    X, y, odds = bought(n=6000)
    stream = BayesianFactorizationClassifier(2).fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    whole = BayesianFactorizationClassifier(2).fit(X, y)
    errors = [np.abs(m.predict_proba(X)[:, 1] - expit(odds)).mean() for m in (stream, whole)]
    assert errors[0] < errors[1] + 0.02


def test_from_a_file_it_is_itself() -> None:
    X, y, _ = bought(n=200)
    model = BayesianFactorizationClassifier(2).fit(X, np.where(y, "yes", "no"))
    again = files.loads(files.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert set(again.predict(X)) <= {"no", "yes"}
    assert again.learn_one([0, 99], "yes").predict_proba_one([0, 99]).keys() == {"no", "yes"}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "a"], "takes two classes"),
        ([0.5, 1.0], "Unknown label type"),
        ([np.nan, 1.0], "NaN in row 0"),
    ],
)
def test_labels_that_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianFactorizationClassifier(1).fit([[0, 1], [1, 0]], labels)


def test_a_third_label_changes_nothing() -> None:
    X, y, _ = bought(n=100)
    model = BayesianFactorizationClassifier(1).fit(X, y)
    before = files.dumps(model)
    with pytest.raises(ValueError, match=r"labels are \[0, 1, 2\]"):
        model.partial_fit(X[:1], [2])
    assert files.dumps(model) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "intercept", "n"), [(4.0, 0.0, 4000), (1.0, 0.0, 300), (1.0, -6.0, 8000)]
)
def test_intervals_hold_where_labels_tell_little(size: float, intercept: float, n: int) -> None:
    """Strong effects, few rows for each level, and a label in 400 rows."""
    held = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        users, items = size * rng.normal(size=200), size * rng.normal(size=50)
        X = np.stack([rng.integers(0, 200, n + 500), rng.integers(0, 50, n + 500)], axis=1)
        truth = expit(intercept + users[X[:, 0]] + items[X[:, 1]])
        y = (rng.random(n + 500) < truth).astype(int)
        model = BayesianFactorizationClassifier(2).fit(X[:n], y[:n])
        low, high = model.predict_interval(X[n:]).T
        held.append(np.mean((low <= truth[n:]) & (truth[n:] <= high)))
    assert 0.8 < np.mean(held) < 0.99


def test_single_rows_are_read_as_tables_are() -> None:
    X, y, _ = bought(n=300)
    model = BayesianFactorizationClassifier(2).fit(X, y)
    for row in ([3, 5], [99, 5]):
        one = model.predict_proba_one(row)
        np.testing.assert_allclose(list(one.values()), model.predict_proba([row])[0], rtol=1e-12)


@pytest.mark.parametrize("labels", [[1, 0], [True, False]])
def test_a_stream_may_begin_with_either_label(labels: list[Any]) -> None:
    models = [BayesianFactorizationClassifier(1) for _ in range(2)]
    for _ in range(5):
        models[0].learn_one(["ann", "tea"], labels[0]).learn_one(["bob", "rum"], labels[1])
        models[1].learn_one(["bob", "rum"], labels[1]).learn_one(["ann", "tea"], labels[0])
    for model in models:
        assert model.classes_.tolist() == sorted(labels)
        assert model.predict_proba_one(["ann", "tea"])[labels[0]] > 0.5
    with pytest.raises(ValueError, match="takes two classes"):
        BayesianFactorizationClassifier(1).learn_one(["ann", "tea"], "yes")


def test_one_label_alone_is_not_sure() -> None:
    for n in (1, 7, 20):
        rows = [[f"user {row % 5}", "tea"] for row in range(n)]
        model = BayesianFactorizationClassifier(2).partial_fit(rows, [1] * n)
        for row in ([rows[0]], [["new", "rum"]]):
            assert 0.5 / (n + 2) ** 2 < model.predict_proba(row)[0, 0] < 0.5
    stream = BayesianFactorizationClassifier(2)
    for number, row in enumerate(rows):
        stream.learn_one(row, 1)
        assert 0.5 / (number + 3) ** 2 < stream.predict_proba_one(row)[0] < 0.6
