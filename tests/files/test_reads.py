"""Reading never changes a model: neither its file nor what it answers later."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from files_models import Case, X, Y, numbers, parameters, taught

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
)
from posterity.calibration import Conformal
from posterity.files import dumps
from posterity.forgetting import Exponential, Stabilized, Window

NAMED = [
    "coef_",
    "intercept_",
    "posterior_",
    "log_evidence_",
    "prior_precision_",
    "noise_precision_",
    "n_observations_",
    "n_effective_",
    "weights_",
]
CALLED: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("predict", lambda model, y: model.predict(X[:5])),
    ("predict_distribution", lambda model, y: model.predict_distribution(X[:5])),
    ("predict_proba", lambda model, y: model.predict_proba(X[:5])),
    ("predict_interval", lambda model, y: model.predict_interval(X[:5])),
    ("predict_one", lambda model, y: model.predict_one(X[3])),
    ("predict_proba_one", lambda model, y: model.predict_proba_one(X[3])),
    ("sample_coefficients", lambda model, y: model.sample_coefficients(2, rng=0)),
    ("score", lambda model, y: model.score(X[:20], y[:20])),
]


def read_all(model: Any, y: Any, shift: int = 0) -> None:
    """Read all that there is, from this place on."""
    reads: list[Callable[[], Any]] = [
        *(lambda name=name: getattr(model, name, None) for name in NAMED),
        *(lambda f=f: f(model, y) for name, f in CALLED if hasattr(model, name)),
    ]
    for i in range(len(reads)):
        with suppress(AttributeError, ValueError):  # not every model can tell everything
            reads[(i + shift) % len(reads)]()


@pytest.mark.parametrize("case", parameters())
def test_reads_change_neither_the_file_nor_what_follows(case: Case) -> None:
    model = taught(case)
    twin, before = copy.deepcopy(model), dumps(model)
    for shift in (0, 5):
        read_all(model, case.y, shift)
        assert dumps(model) == before
    if hasattr(model, "learn_one"):
        for i in range(150, 156):
            model.learn_one(X[i], case.y[i])
            twin.learn_one(X[i], case.y[i])
            kept = dumps(model)
            read_all(model, case.y)
            assert dumps(model) == kept
    predictive = model.predict_then_learn(X[156:200], case.y[156:200])
    expected = twin.predict_then_learn(X[156:200], case.y[156:200])
    np.testing.assert_array_equal(
        numbers(predictive, case.y[156:200]), numbers(expected, case.y[156:200])
    )


def ahead(model: Any, X: Any) -> Any:
    """What is predicted of a row: as in a stream, where one may know its prior."""
    linear = model.model_ if type(model) is Conformal else model
    known = copy.deepcopy(getattr(linear, "_posterior", None))
    if type(linear) is BayesianLinearRegression:
        return known.predict_mean_ahead(linear._columns(X))[0]
    counts = isinstance(model, BayesianPoissonRegression | BayesianNegativeBinomialRegression)
    labels = isinstance(model, BayesianLogisticRegression) and len(model.classes_) == 2
    if (counts or labels) and known.has_fast_predict_one and known.learns_prior:
        believed = known.learn_in_order(X, np.ones((1, 1)), None, np.zeros(1))  # no time passes
        if counts:
            return float(np.exp(believed.mean[0] + 0.5 * believed.variance[0]))
        return model.classes_[int((believed.mean[0] > 0.0) != model._flipped)]
    return model.predict(X)[0]


@pytest.mark.parametrize("case", parameters())
def test_a_row_is_predicted_as_in_an_array(case: Case) -> None:
    model = taught(case)
    if not hasattr(model, "predict_one"):
        pytest.skip("takes no single rows")
    for i in range(150, 160):
        one, many = model.predict_one(X[i]), ahead(model, X[i : i + 1])
        assert one == many if isinstance(many, str) else one == pytest.approx(many, rel=1e-9)
        model.learn_one(X[i], case.y[i])


WAYS = [None, Exponential(0.97), Stabilized(0.97), Window(size=30)]
HISTORIES = [
    pytest.param(
        learned,
        forgetting,
        start,
        id=f"{learned}-{forgetting}-{start}",
        marks=[pytest.mark.slow] if learned == "ard" and (forgetting or start) else [],
    )
    for learned in ("auto", "ard", 1.0)
    for forgetting in WAYS
    for start in (0, 3, 40)
]


@pytest.mark.parametrize(("learned", "forgetting", "start"), HISTORIES)
def test_rows_are_the_same_whoever_learned_them(learned: Any, forgetting: Any, start: int) -> None:
    """One by one, in batches, predicted or not: all that follows is the same, its sds too."""
    rows = X.copy()
    rows[:70, 1] = 2.0  # a feature that begins to vary on the way
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], len(X))
    begun = BayesianLinearRegression(prior_precision=learned, forgetting=forgetting)
    if start:
        begun.fit(rows[:start], Y[:start])
    loop, batch, predictive, parts = (copy.deepcopy(begun) for _ in range(4))
    stop = 120
    for i in range(start, stop):
        loop.learn_one(rows[i], Y[i], weights[i])
        loop.predict_one(rows[i])
    batch.partial_fit(rows[start:stop], Y[start:stop], weights[start:stop])
    predictive.predict_then_learn(rows[start:stop], Y[start:stop], weights[start:stop])
    parts.partial_fit(rows[start:77], Y[start:77], weights[start:77])
    for i in range(77, 90):
        parts.learn_one(rows[i], Y[i], weights[i])
    parts.predict_then_learn(rows[90:101], Y[90:101], weights[90:101])
    parts.partial_fit(rows[101:stop], Y[101:stop], weights[101:stop])
    models = (batch, loop, predictive, parts)
    told: list[Any] = []
    for _ in range(2):  # before a stream goes on, and after it
        answers = [
            np.concatenate([one.predict(rows[:9]), one.predict_distribution(rows[:9]).std()])
            for one in models
        ]
        for answer in answers[1:]:
            # "ard" looks for its maximum only so far.
            tolerance = 1e-6 if learned == "ard" else 1e-9
            np.testing.assert_allclose(answer, answers[0], rtol=tolerance, atol=tolerance)
        some = slice(stop, 160)
        told = [numbers(one.predict_then_learn(rows[some], Y[some]), Y[some]) for one in models]
    # A stream is predicted under the prior of its last choice, which rows that came together make.
    near = 0.1 if learned and forgetting is None else 1e-9
    for answer in told[1:]:
        np.testing.assert_allclose(answer, told[0], rtol=near, atol=near)
