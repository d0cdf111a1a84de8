"""What works with what: every cell of the page's tables is tried, also those that are refused."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
    GroupedRegression,
)
from posterity.basis import Polynomial
from posterity.evaluation import progressive_classification, progressive_validation
from posterity.evidence import Integrated, Maximized
from posterity.files import dumps, loads
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Directional,
    Exponential,
    RandomWalk,
    Smoothing,
    Stabilized,
    Window,
)
from posterity.likelihoods import StudentT

Array = np.ndarray
N = 48
PAGE = Path(__file__).parents[1] / "docs" / "combinations.md"

RNG = np.random.default_rng(1)
X = RNG.normal(size=(N, 2))
ETA = X @ [0.8, -0.5] + 0.2
GROUPS = np.arange(N) % 4
TARGETS: dict[str, Array] = {
    "numbers": ETA + 0.3 * RNG.normal(size=N),
    "labels": (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int),
    "classes": np.argmax(np.column_stack([ETA, -ETA, 0.0 * ETA]) + RNG.gumbel(size=(N, 3)), axis=1),
    "counts": RNG.poisson(np.exp(ETA)).astype(float),
}

# By the rows' names on the page: the model, and what it is of.
MODELS: dict[str, tuple[Callable[..., Any], str]] = {
    "linear": (BayesianLinearRegression, "numbers"),
    'linear, `noise="linear"`': (
        lambda **given: BayesianLinearRegression(noise="linear", **given),
        "numbers",
    ),
    "robust, Student-t": (BayesianRobustRegression, "numbers"),
    "robust, Laplace": (
        lambda **given: BayesianRobustRegression(likelihood="laplace", **given),
        "numbers",
    ),
    "quantile": (BayesianQuantileRegression, "numbers"),
    "logistic, two classes": (BayesianLogisticRegression, "labels"),
    "logistic, more classes": (BayesianLogisticRegression, "classes"),
    "Poisson": (BayesianPoissonRegression, "counts"),
    "negative binomial": (BayesianNegativeBinomialRegression, "counts"),
    "any likelihood": (
        lambda **given: BayesianGeneralizedLinear(StudentT(4.0, 0.3), **given),
        "numbers",
    ),
    "groups": (GroupedRegression, "numbers"),
}
GIVEN: dict[str, dict[str, Any]] = {
    "given prior": {"prior_precision": 1.0},
    '`"auto"`': {"prior_precision": "auto"},
    '`"ard"`': {"prior_precision": "ard"},
    "`Integrated`": {"prior_precision": Integrated()},
    "`Maximized`": {"prior_precision": Maximized()},
    "`basis`": {"basis": Polynomial(degree=2)},
    "`Exponential`": {"forgetting": Exponential(0.95)},
    "`Stabilized`": {"forgetting": Stabilized(0.95)},
    "`Directional`": {"forgetting": Directional(0.95)},
    "`Smoothing`": {"forgetting": Smoothing(0.95)},
    "`RandomWalk`": {"forgetting": RandomWalk(0.01)},
    "`Window`": {"forgetting": Window(30)},
    "`Adaptive`": {"forgetting": Adaptive()},
    "`Changepoint`": {
        "forgetting": Changepoint(hazard=0.02, max_runs=4, smallest_probability=1e-3)
    },
}


def cells() -> list[tuple[str, str, str]]:
    """(model, column, what the page says) of every cell of its tables."""
    found, columns = [], list[str]()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        values = [value.strip() for value in line.strip().strip("|").split("|")]
        if not columns:
            columns = values
        elif not re.fullmatch(r":?-+:?", values[0]):
            found += [(values[0], *pair) for pair in zip(columns[1:], values[1:], strict=True)]
    return found


CELLS = cells()
# Ensembles of posteriors that take milliseconds a row.
SLOW = {
    ("logistic, more classes", "`Adaptive`"),
    ("logistic, more classes", "`Changepoint`"),
    ('linear, `noise="linear"`', "`Changepoint`"),
    ("robust, Student-t", "`Changepoint`"),
    ("robust, Laplace", "`Changepoint`"),
    ("quantile", "`Changepoint`"),
    ("negative binomial", "`Changepoint`"),
}


def costed(cell: tuple[str, str, str]) -> Any:
    """The cell, marked slow where it is."""
    return pytest.param(*cell, marks=pytest.mark.slow if cell[:2] in SLOW else ())


def test_the_page_has_every_cell() -> None:
    wanted = {(model, column) for model in MODELS for column in (*GIVEN, *VERBS)}
    assert {cell[:2] for cell in CELLS} == wanted


@pytest.mark.parametrize(("model", "column", "said"), [costed(cell) for cell in CELLS])
def test_a_cell(model: str, column: str, said: str) -> None:
    make, target = MODELS[model]
    data = Data(TARGETS[target], {"groups": GROUPS} if model == "groups" else {})
    work = VERBS.get(column, whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if said.startswith("yes"):
            work(lambda: make(**GIVEN.get(column, {})), data)
        else:
            assert re.fullmatch(r"no \[\w+\]\(#[\w-]+\)", said), said
            with pytest.raises((ValueError, TypeError, AttributeError)) as raised:
                work(lambda: make(**GIVEN.get(column, {})), data)
            assert len(str(raised.value)) > 20  # says why


class Data:
    """Rows, and what a model takes beside them."""

    def __init__(self, y: Array, beside: dict[str, Array]) -> None:
        self.y, self.beside = y, beside
        self.classes = {"classes": np.unique(y)} if y.dtype.kind == "i" else {}

    def of(self, part: slice, **more: Any) -> tuple[tuple[Array, Array], dict[str, Any]]:
        """Arguments of a method that learns rows."""
        return (X[part], self.y[part]), {k: v[part] for k, v in self.beside.items()} | more

    def at(self, part: slice) -> tuple[tuple[Array], dict[str, Any]]:
        """Arguments of a method that predicts."""
        return (X[part],), {k: v[part] for k, v in self.beside.items()}

    def group(self, i: int) -> dict[str, Any]:
        """Of a single row."""
        return {"group": GROUPS[i]} if self.beside else {}


Make = Callable[[], Any]


def call(method: Callable[..., Any], arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    return method(*arguments[0], **arguments[1])


def whole(make: Make, data: Data) -> None:
    """Fits, streams, single rows, what is read of them, and files."""
    fitted = call(make().fit, data.of(slice(None)))
    model = make()
    predictive = call(model.predict_then_learn, data.of(slice(0, 40), **data.classes))
    assert len(predictive) == 40
    call(model.partial_fit, data.of(slice(40, 44)))
    for i in range(44, N):
        model.learn_one(X[i], data.y[i], **data.group(i))
    assert model.n_observations_ == fitted.n_observations_ == N
    for one in (fitted, model):
        before = dumps(one)
        here = data.at(slice(0, 3))
        assert np.isfinite(np.asarray(call(one.predict, here), dtype=float)).all()
        assert not np.isnan(call(one.predict_interval, here)).any()
        assert np.isfinite(one.coef_).all()
        call(one.predict_distribution, here)
        if not data.beside:
            assert np.isfinite(one.posterior_.mean).all()
        single = one.predict_one(X[0], **data.group(0))
        many = call(one.predict, here)[0]
        # As in a stream, whose prior is a few rows old.
        known = copy.deepcopy(getattr(one, "_posterior", None))
        if type(one) is BayesianLinearRegression:
            many = known.predict_mean_ahead(one._columns(X[:1]))[0]
        elif (
            type(one) is BayesianPoissonRegression
            and one._has_fast_predict_one
            and known.learns_prior
        ):
            predictive = known.learn_in_order(
                one._columns(X[:1]), np.ones((1, 1)), None, np.zeros(1)
            )
            many = np.exp(predictive.mean[0] + 0.5 * predictive.variance[0])
        np.testing.assert_allclose(single, many, rtol=1e-9, atol=1e-12)
        assert dumps(one) == before
        again = loads(before)
        np.testing.assert_array_equal(call(again.predict, here), call(one.predict, here))


def merges(make: Make, data: Data) -> None:
    one, other = make(), make()
    call(one.partial_fit, data.of(slice(0, 24), **data.classes))
    call(other.partial_fit, data.of(slice(24, N), **data.classes))
    one.merge(other)
    assert one.n_observations_ == N


def unlearns(make: Make, data: Data) -> None:
    model = call(make().fit, data.of(slice(None)))
    call(model.unlearn, data.of(slice(0, 4)))
    assert model.n_observations_ == N - 4


def takes_weights(make: Make, data: Data) -> None:
    model = call(make().fit, data.of(slice(None), sample_weight=np.arange(N) % 3))
    assert model.n_observations_ == N
    model.learn_one(X[0], data.y[0], weight=2.0, **data.group(0))
    assert model.n_observations_ == N + 2.0


def takes_times(make: Make, data: Data) -> None:
    model = call(make().fit, data.of(slice(0, 40), times=np.arange(40.0)))
    call(model.partial_fit, data.of(slice(40, 44), times=np.arange(40.0, 44.0)))
    model.learn_one(X[44], data.y[44], time=50.0, **data.group(44))
    assert model.n_observations_ == 45.0


def is_evaluated(make: Make, data: Data) -> None:
    model, rows = make(), X
    if data.beside:
        pandas = pytest.importorskip("pandas")
        model.set_params(by="group")
        rows = pandas.DataFrame(X, columns=["a", "b"]).assign(group=GROUPS)
    evaluate = progressive_classification if data.classes else progressive_validation
    assert evaluate(model, rows, data.y).n_rows == N


VERBS: dict[str, Callable[[Make, Data], None]] = {
    "`merge`": merges,
    "`unlearn`": unlearns,
    "`sample_weight`": takes_weights,
    "`times`": takes_times,
    "evaluation": is_evaluated,
}
