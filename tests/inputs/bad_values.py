"""Every public learner with good arguments for its methods, and bad values for each of them."""

from __future__ import annotations

import contextlib
import copy
import datetime
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from learners import COUNTS, LEARNERS, ONES, X, Y

from posterity import (
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    Forecaster,
    GroupedRegression,
    Model,
)
from posterity.bandits import Bandit, DelayedRewards
from posterity.basis import (
    AutoBasis,
    ByColumn,
    Fourier,
    HilbertSpaceGP,
    Polynomial,
    RadialBasis,
    RandomFourier,
    Spline,
)
from posterity.calibration import ConformalForecaster
from posterity.experiments import Experiment
from posterity.factorization import BayesianFactorizationClassifier, BayesianFactorizationMachine
from posterity.files import dumps
from posterity.forecasting import VectorAutoregression
from posterity.generalized import VaryingFeatures
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

HOMES = (
    "posterity",
    *(
        f"posterity.{room}"
        for room in (
            *("averaging", "bandits", "basis", "calibration", "experiments", "factorization"),
            *("forecasting", "generalized", "grouped", "linear", "off_policy", "sparse"),
        )
    ),
)
LEARNS = ("fit", "partial_fit", "learn", "learn_one", "observe_rows", "reward")


@dataclass(frozen=True)
class Subject:
    """A learner that has learned something, and good arguments of its methods, by name."""

    make: Callable[[], Any]
    good: dict[str, Any] = field(default_factory=dict)


def _rows(y: np.ndarray, **more: Any) -> dict[str, Any]:
    ones = np.ones(4)
    return {
        "X": X[:4],
        "y": y[:4],
        "sample_weight": ones,
        "times": None,
        "x": X[0],
        "weight": 1.0,
        "level": 0.9,
        "size": 3,
        "rng": 0,
        "time": None,
        "offset": None,
        "exposure": ones,
        **more,
    }


def _subjects() -> Iterator[tuple[str, Subject]]:
    for name, (make, y) in LEARNERS.items():
        one = float(y[0]) if y.ndim == 1 else y[0]
        good = _rows(y, y_of_one=one)
        if name == "grouped":
            good |= {"groups": np.array(["a", "b", "a", "b"]), "group": "a", "key": "a"}
            good |= {"exposure": None}  # of counts alone
            yield name, Subject(_grouped, good)
            continue
        good |= {"quantile": 0.3, "classes": None}
        yield name, Subject(lambda make=make, y=y: make().partial_fit(X, y), good)
    frame = pd.DataFrame({"user": list("abcabc") * 4, "item": list("xyxyzz") * 4})
    records = frame.to_dict("records")
    for kind, y in (
        (DiagonalLinearRegression, Y),
        (DiagonalLogisticRegression, ONES),
        (DiagonalPoissonRegression, COUNTS),
        (SparseLinearRegression, Y),
        (SparseLogisticRegression, ONES),
        (SparsePoissonRegression, COUNTS),
    ):
        good = _rows(y, X=records[:4], x=records[0], y_of_one=float(y[0]), classes=None)
        yield (
            kind.__name__,
            Subject(lambda kind=kind, y=y: kind().partial_fit(records, y[:24]), good),
        )
    for kind, y in ((BayesianFactorizationMachine, Y), (BayesianFactorizationClassifier, ONES)):
        good = _rows(y, X=frame[:4], x=["a", "x"], y_of_one=float(y[0]), classes=None)
        good |= {"user": "a", "k": 2}
        yield (
            kind.__name__,
            Subject(lambda kind=kind, y=y: kind(rank=1).fit(frame, y[:24]), good),
        )
    table = frame.assign(y=Y[:24], x=X[:24, 0])
    good = _rows(Y, frame=table[:4], row=table.iloc[0].to_dict(), y_of_one=None) | {"y": None}
    good |= {"group": "user", "factor": "item", "one": "x", "other": "y", "name": "x"}
    yield (
        "Model",
        Subject(lambda: Model("y ~ x + item + (1 | user)").fit(table), good),
    )
    row = {"a": 1.0, "b": -1.0}
    yield (
        "VaryingFeatures",
        Subject(
            lambda: (
                VaryingFeatures(BayesianLogisticRegression())
                .learn_one(row, 1.0)
                .learn_one({"a": -1.0}, 0.0)
            ),
            {"x": row, "y_of_one": 1.0, "weight": 1.0, "time": None, "level": 0.9},
        ),
    )
    series = {"s": np.arange(40.0) % 7, "t": np.arange(40.0)}
    more = {"s": [1.0, 2.0], "t": [41.0, 42.0]}
    good = {"y": more, "X": None, "h": 3, "X_future": None, "series": "s", "level": 0.9}
    good |= {"x": None, "y_of_one": 1.0, "rows": 1}
    yield "Forecaster", Subject(lambda: Forecaster().fit(series), good)
    yield "VectorAutoregression", Subject(lambda: VectorAutoregression(lags=1).fit(series), good)
    yield (
        "ConformalForecaster",
        Subject(lambda: ConformalForecaster(Forecaster().fit(series), horizon=2), good),
    )
    good = {
        "X": X[:4],
        "x": X[0],
        "arms": np.array(list("abab")),
        "rewards": Y[:4],
        "arm": "a",
        "reward": 1.0,
        "sample_weight": np.ones(4),
        "times": None,
        "weight": 1.0,
        "allowed": None,
        "k": None,
        "policy": None,
        "former": Y[:4],
        "name": "a",
        "features": None,
        "at": np.arange(4.0),
        "ids": list("pqrs"),
        "now": 9.0,
        "before": 5.0,
    }
    for model in ("linear", "logistic", "poisson"):
        rewards = {"linear": Y, "logistic": ONES, "poisson": COUNTS}[model]
        one = {"rewards": rewards[:4], "reward": float(rewards[0]), "former": rewards[:4]}
        yield f"Bandit of {model}", Subject(_bandit(model, rewards), good | one)
    yield (
        "DelayedRewards",
        Subject(lambda: DelayedRewards(_bandit("linear", Y)(), horizon=9.0), good),
    )
    arms = np.array(list("abab"))
    yield (
        "Experiment",
        Subject(
            lambda: Experiment(["a", "b"]).observe_rows(np.tile(arms, 7), Y[:28], X[:28]),
            {"arms": arms, "rewards": Y[:4], "X": X[:4], "propensities": None},
        ),
    )
    for basis in (
        AutoBasis(n_functions=10),
        ByColumn({0: Spline(n_knots=4)}),
        Fourier(n_frequencies=2),
        HilbertSpaceGP(n_functions=4),
        Polynomial(degree=2),
        RadialBasis(n_centers=4),
        RandomFourier(n_functions=10),
        Spline(n_knots=4),
    ):
        yield (
            type(basis).__name__,
            Subject(lambda basis=basis: basis.fit(X, Y), {"X": X[:4], "y": Y[:4], "x": X[0]}),
        )


def _grouped() -> Any:
    return GroupedRegression().partial_fit(X, Y, groups=np.array(list("ab") * 15))


def _bandit(model: str, rewards: np.ndarray) -> Callable[[], Any]:
    made = {"logistic": BayesianLogisticRegression, "poisson": BayesianPoissonRegression}
    given = {"model": made[model]()} if model in made else {}
    arms = np.array(list("ab") * 15)
    return lambda: Bandit(arms=["a", "b"], rng=0, **given).learn(X, arms, rewards)


SUBJECTS = dict(_subjects())


class Nothing:
    """No number, and nothing else."""

    def __repr__(self) -> str:
        return "Nothing()"


def bad_values(good: Any) -> dict[str, Any]:
    """Values that are none of what an argument takes, by what is odd about them."""
    values = {
        "None": None,
        "text": "much",
        "text of a number": "1",
        "bytes": b"1",
        "an object": Nothing(),
        "a class": dict,
        "a function": len,
        "a set": {1.0, 2.0},
        "a mapping": {"nobody": 1.0},
        "an empty list": [],
        "an empty mapping": {},
        "a generator": (value for value in (1.0, 2.0)),
        "NaN": np.nan,
        "infinity": -np.inf,
        "huge": 1e200,
        "beyond floats": 10**400,
        "long": 10**5000,
        "complex": 1.0 + 1.0j,
        "a date": datetime.date(2024, 2, 29),
        "negative": -1.0,
        "a half": 0.5,
        "three dimensions": np.zeros((2, 2, 2)),
        "no dimension": np.array(1.0),
        "no rows": np.zeros((0, 3)),
        "dates": np.array(["2024-02-29"] * 4, dtype="M8[D]"),
        "objects": np.array([Nothing()] * 4),
        "ragged": [[1.0], [1.0, 2.0]],
        "lists of text": [["red"] * 3] * 4,
        "too many": np.ones(7),
        "a frame": pd.DataFrame({"q": [1.0, 2.0]}),
        "masked": np.ma.array(np.ones((4, 3)), mask=np.eye(4, 3)),
    }
    if isinstance(good, np.ndarray) and good.dtype.kind == "f":
        for name, value in {
            "NaN": np.nan,
            "infinity": np.inf,
            "huge": 1e200,
            "small": 1e-320,
        }.items():
            changed = good.copy()
            changed.flat[-1] = value
            values[f"{name} among others"] = changed
        objects = good.astype(object)
        for name, value in {"None": None, "text": "1_0", "beyond floats": 10**400}.items():
            changed = objects.copy()
            changed.flat[-1] = value
            values[f"{name} among others"] = changed
        values["fewer"], values["the other way round"] = good[:-1], good.T
        values["swapped bytes"] = good.byteswap()
    if isinstance(good, dict):
        key = next(iter(good))
        for name, value in {"NaN": np.nan, "None": None, "list": [1, 2], "big": 10**400}.items():
            values[f"{name} at a key"] = {**good, key: value}
        values["one more key"] = {**good, "nobody": np.inf}
        values["keys that are no text"] = {(1, 2): 1.0, None: 2.0}
    return values


READS = "predict_one", "predict_proba_one", "learn_one"


def taught(name: str) -> Any:
    """The learner, with all that it finds on the way when a single row is read or learned."""
    known = SUBJECTS[name]
    model = known.make()
    calls = dict(methods_of(known, model))
    for method in READS:
        if method in calls:
            getattr(model, method)(**calls[method])
    if "learn_one" in calls:  # what is made ready for a row stays
        for argument, value in (("y", None), ("reward", "nothing"), ("weight", -1.0)):
            if argument in calls["learn_one"]:
                with contextlib.suppress(TypeError, ValueError):
                    model.learn_one(**{**calls["learn_one"], argument: value})
    return model


def methods_of(subject: Subject, model: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Public methods with good arguments."""
    for name, method in inspect.getmembers(type(model), callable):
        skipped = name.startswith(("_", "get_", "set_")) or name == "merge"
        if skipped or not inspect.isfunction(method):
            continue
        given = {}
        for parameter in list(inspect.signature(method).parameters.values())[1:]:
            single = parameter.name == "y" and name.endswith("_one")
            key = "y_of_one" if single else parameter.name
            if key in subject.good and parameter.kind is not parameter.VAR_KEYWORD:
                given[parameter.name] = subject.good[key]
            elif parameter.default is parameter.empty and parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            ):
                break
        else:
            if given:
                yield name, given


@dataclass(frozen=True)
class Case:
    """A call with one bad argument."""

    subject: str
    method: str
    argument: str
    kind: str


def cases(subject: str) -> Iterator[Case]:
    """Every method and argument, and every bad value."""
    known = SUBJECTS[subject]
    for method, given in methods_of(known, taught(subject)):
        for argument, good in given.items():
            for kind in bad_values(good):
                yield Case(subject, method, argument, kind)


def find_fault(case: Case, model: Any, state: bytes) -> str | None:
    """What is wrong about the answer to a call, after which the model may differ; or None."""
    known = SUBJECTS[case.subject]
    given = dict(methods_of(known, model))[case.method]
    given = {**given, case.argument: bad_values(given[case.argument])[case.kind]}
    try:
        answer = getattr(model, case.method)(**given)
    except (TypeError, ValueError) as error:
        if not str(error).strip():
            return "the error has no message"
        return None if freeze(model) == state else "raised, and changed the state"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    if _holds_nan(answer):
        return "answered NaN"
    return None


def _holds_nan(answer: Any) -> bool:
    if isinstance(answer, tuple):
        return any(map(_holds_nan, answer))
    if isinstance(answer, float | np.ndarray):
        values = np.asarray(answer)
        return values.dtype.kind == "f" and bool(np.isnan(values).any())
    return False


def freeze(model: Any) -> bytes:
    """All that a model knows."""
    try:
        return dumps(getattr(model, "model_", model))
    except (TypeError, ValueError):
        return pickle.dumps(copy.deepcopy(model))  # in which nothing waits to be copied


def discover() -> set[type]:
    """Every public class that learns."""
    found = set()
    for home in HOMES:
        module = importlib.import_module(home)
        for name in getattr(module, "__all__", ()):
            kind = getattr(module, name)
            abstract = inspect.isclass(kind) and (
                inspect.isabstract(kind) or getattr(kind, "_is_protocol", False)
            )
            if inspect.isclass(kind) and not abstract and any(hasattr(kind, m) for m in LEARNS):
                found.add(kind)
    return found


def copy_of(model: Any) -> Any:
    return copy.deepcopy(model)
