"""The axes of the table: models, priors, memories; and what is refused, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

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
from posterity.evidence import Integrated, Maximized
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine
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
from posterity.likelihoods import Gamma, Ordinal, StudentT
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)


@dataclass(frozen=True)
class Within:
    """How far two ways to the same rows may lie apart, in standard deviations of means.

    Where rows are Gaussian nothing but rounding. Else what stands for an observation was found from
    what was known when it came.
    """

    batches: float = 1e-7
    merge: float = 1e-7
    unlearn: float = 1e-7
    weights: float = 1e-7
    # Of a row from many, relative, where the prior is learned.
    one: float = 1e-9
    # Of what is told of rows all at once from each by itself, relative, where old rows fade.
    told: float = 1e-6
    times: float = 1e-7


@dataclass(frozen=True)
class Model:
    """A row of the table: how a model is made, of which target, and the form of its information."""

    name: str
    make: Callable[..., Any]
    target: str
    information: str = "triangle"
    within: Within = field(default=Within())
    # What an interval of the mean is called.
    of: Mapping[str, str] = field(default_factory=lambda: {"of": "mean"})


LABELS: Mapping[str, str] = {}
# A row by itself is predicted by priors that are a few rows old, as in a stream.
GAUSSIAN = Within(one=0.2)
MODELS = [
    Model("linear", BayesianLinearRegression, "numbers", within=GAUSSIAN),
    Model(
        "linear, known noise",
        partial(BayesianLinearRegression, noise_precision=9.0),
        "numbers",
        within=GAUSSIAN,
    ),
    Model(
        'linear, `noise="linear"`',
        partial(BayesianLinearRegression, noise="linear"),
        "numbers",
        within=Within(0.01, 1e-3, 1e-3, 1e-3),
    ),
    Model("linear, several targets", BayesianLinearRegression, "two", within=GAUSSIAN),
    Model(
        "robust, Student-t", BayesianRobustRegression, "numbers", within=Within(0.3, 0.1, 0.1, 0.01)
    ),
    Model(
        "robust, Laplace",
        partial(BayesianRobustRegression, likelihood="laplace"),
        "numbers",
        within=Within(0.6, 0.1, 0.1, 0.01),
    ),
    Model(
        "quantile",
        BayesianQuantileRegression,
        "numbers",
        of=LABELS,
        within=Within(1.5, 0.1, 0.1, 1e-4),
    ),
    Model(
        "several quantiles",
        partial(BayesianQuantileRegression, quantile=[0.2, 0.8]),
        "numbers",
        of=LABELS,
        within=Within(2.5, 0.1, 0.1, 1e-4),
    ),
    Model(
        "logistic, two classes",
        BayesianLogisticRegression,
        "labels",
        within=Within(0.4, 0.4, 0.7, one=0.2),
    ),
    Model(
        "logistic, more classes",
        BayesianLogisticRegression,
        "classes",
        within=Within(0.8, 0.9, 0.3),
    ),
    Model("Poisson", BayesianPoissonRegression, "counts", within=Within(1.0, 0.3, 0.3, one=0.1)),
    Model(
        "negative binomial",
        BayesianNegativeBinomialRegression,
        "counts",
        within=Within(1.0, 0.3, 0.3),
    ),
    Model(
        "Gamma",
        partial(BayesianGeneralizedLinear, Gamma()),
        "waits",
        within=Within(1.0, 0.3, 0.3),
    ),
    Model(
        "Ordinal",
        partial(BayesianGeneralizedLinear, Ordinal(4)),
        "ratings",
        within=Within(1.0, 0.3, 0.3, 0.02, one=0.1),
    ),
    Model(
        "any likelihood",
        partial(BayesianGeneralizedLinear, StudentT(4.0, 0.3)),
        "numbers",
        # Sites are averages over the posterior, which agree in rounds.
        within=Within(0.7, 0.6, 0.4, weights=1e-3),
    ),
    Model("groups", GroupedRegression, "numbers", "bank", within=Within(0.6)),
    Model(
        "groups, counts",
        partial(GroupedRegression, likelihood="poisson"),
        "counts",
        "bank",
        within=Within(0.6, 0.3, 0.3, 0.03, one=0.1),
    ),
    Model("sparse linear", SparseLinearRegression, "numbers", "sparse"),
    Model(
        "sparse logistic",
        SparseLogisticRegression,
        "labels",
        "sparse",
        of=LABELS,
        within=Within(weights=0.01),
    ),
    Model(
        "sparse Poisson", SparsePoissonRegression, "counts", "sparse", within=Within(weights=0.01)
    ),
    Model(
        "diagonal linear",
        DiagonalLinearRegression,
        "numbers",
        "diagonal",
        within=Within(0.8, 1.5, weights=0.05, times=0.02),
    ),
    Model(
        "diagonal logistic",
        DiagonalLogisticRegression,
        "labels",
        "diagonal",
        of=LABELS,
        within=Within(1.2, 1.5, weights=0.05, times=0.02),
    ),
    Model(
        "diagonal Poisson",
        DiagonalPoissonRegression,
        "counts",
        "diagonal",
        within=Within(3.0, 3.0, weights=0.2, times=0.02),
    ),
    Model(
        "factorization machine",
        partial(BayesianFactorizationMachine, rank=1),
        "numbers",
        "levels",
        of=LABELS,
        within=Within(0.2, weights=3e-3),
    ),
    Model(
        "factorization machine, labels",
        partial(BayesianFactorizationClassifier, rank=1),
        "labels",
        "levels",
        of=LABELS,
        within=Within(0.3, weights=1e-3),
    ),
]
PRIORS: dict[str, dict[str, Any]] = {
    "given prior": {"prior_precision": 1.0},
    '`"auto"`': {"prior_precision": "auto"},
    '`"ard"`': {"prior_precision": "ard"},
    "`Integrated`": {"prior_precision": Integrated()},
    "`Maximized`": {"prior_precision": Maximized()},
    "`basis`": {"basis": Polynomial(degree=2, domain=(-4.0, 4.0))},
}
MEMORIES: dict[str, dict[str, Any]] = {
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


@dataclass(frozen=True)
class Refusal:
    """What is not there: the reason on the page, and what the error says."""

    reason: str
    says: str


REFUSED: dict[tuple[str, str], Refusal] = {}


def _refuse(models: Iterable[str], columns: Iterable[str], reason: str, says: str) -> None:
    REFUSED.update({pair: Refusal(reason, says) for pair in product(models, columns)})


def _of(*information: str) -> list[str]:
    return [model.name for model in MODELS if model.information in information]


WIDE, MACHINES = _of("sparse", "diagonal"), _of("levels")
LEARNED = ['`"ard"`', "`Integrated`", "`Maximized`"]
NO_PARAMETER = "unexpected keyword argument"
BANKS = _of("bank")
_refuse(BANKS, ['`"auto"`', '`"ard"`'], "one prior for all groups", "must be 'shared'")
_refuse(BANKS, LEARNED[1:], "one prior for all groups", "must be a number")
_refuse([*BANKS, *WIDE], ["`basis`"], "columns of groups and of many features", NO_PARAMETER)
_refuse(
    ["groups"],
    [name for name in MEMORIES if name not in ("`Exponential`", "`Stabilized`")],
    "groups and forgetting",
    "None, Exponential or Stabilized",
)
_refuse(["groups, counts"], MEMORIES, "groups and forgetting", "forgetting")
_refuse(BANKS, ["`times`"], "time in groups", NO_PARAMETER)
_refuse(WIDE, LEARNED, "one prior for many features", "'auto' or a positive number")
_refuse(
    WIDE,
    [name for name in MEMORIES if name != "`Stabilized`"],
    "many features and forgetting",
    "supports only Stabilized",
)
_refuse(
    _of("sparse"),
    ["`predict_then_learn`", "evaluation"],
    "sparse factors learn batches",
    "call predict and then partial_fit for each batch",
)
_refuse(_of("diagonal"), ["`unlearn`"], "unlearning in diagonal models", "fit again without these")
_refuse(MACHINES, [*PRIORS, *MEMORIES], "factorization machines", NO_PARAMETER)
_refuse(MACHINES, ["`times`"], "factorization machines", NO_PARAMETER)
_refuse(
    MACHINES,
    ["`merge`", "`unlearn`", "`predict_then_learn`"],
    "factorization machines",
    ": use .*fit",
)
_refuse(MACHINES, ["evaluation"], "factorization machines", "has no predict_then_learn")
_refuse(
    ["linear, several targets"],
    ["`Adaptive`", "`Changepoint`"],
    "several targets",
    "fit a model for each column",
)
_refuse(["linear, several targets"], ["evaluation"], "several targets", "one target a row")
_refuse(
    ["several quantiles"],
    ["`predict_then_learn`", "evaluation"],
    "several quantiles",
    "score each quantile by a model of its own",
)
# "yes" with more to say, by its reason.
LIMITED = {
    (model, "`unlearn`"): ("yes, of the {}", "first rows", "unlearning in quantile models")
    for model in ("quantile", "several quantiles")
}
COLUMNS: dict[str, dict[str, Any]] = {**PRIORS, **MEMORIES, "default": {}}

# The rest of the table: cells that take seconds are tried by `make test-all`.
HEAVY = {
    'linear, `noise="linear"`',
    "robust, Student-t",
    "robust, Laplace",
    "quantile",
    "several quantiles",
    "logistic, more classes",
    "negative binomial",
    "Gamma",
    "Ordinal",
    "groups, counts",
}


def refusal(model: str, column: str, method: str) -> Refusal | None:
    """Why a model with these parameters lacks a method, if it does."""
    found = REFUSED.get((model, column)) or REFUSED.get((model, method))
    if found is None and column in MEMORIES:
        if method == "`unlearn`":
            return Refusal("", "can't unlearn")
        if method == "`merge`" and column != "`Stabilized`" and model != "groups":
            return Refusal("", "can't merge")
    return found


def is_slow(model: Model, column: str, method: str) -> bool:
    """True if a cell takes seconds."""
    likelihood = model.target != "numbers" or model.name == "any likelihood"
    if column in ("`Adaptive`", "`Changepoint`") or (column == '`"ard"`' and likelihood):
        return model.name != "linear" and (method != "`fit`" or model.name in HEAVY)
    if model.name in ("Gamma", "Ordinal") and column in MEMORIES:
        return True
    return model.name in HEAVY and method != "`fit`" and column != "given prior"


def cells(methods: Iterable[str]) -> list[tuple[Model, str, str]]:
    """All of the table; where a parameter is refused, once."""
    return [
        (model, column, method)
        for model, column, method in product(MODELS, COLUMNS, methods)
        if (model.name, column) not in REFUSED or method == "`fit`"
    ]
