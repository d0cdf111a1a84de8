"""A predictor: a model that predicts, and learns each row once, by its id."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.distributions import Categorical
from posterity.service.errors import RefusedError
from posterity.service.inputs import (
    COUNTS,
    check_target,
    list_names,
    number_levels,
    read_context,
)
from posterity.service.learner import Change, Learner
from posterity.service.messages import Learned, Predicted, PredictorSettings, Row, Unlearn
from posterity.service.schema import row
from posterity.service.store import LogEntries, Store
from posterity.service.writing import Group, Record, keep_row

Array = NDArray[np.float64]

_CLASSES: dict[str, Any] = {
    "linear": BayesianLinearRegression,
    "robust": BayesianRobustRegression,
    "quantile": BayesianQuantileRegression,
    "logistic": BayesianLogisticRegression,
    "poisson": BayesianPoissonRegression,
    "negative binomial": BayesianNegativeBinomialRegression,
}
# Rows whose errors count as recent.
RECENT_ROWS = 100
# What a model raises for parameters, rows or ways to learn that it does not know.
FAILURES = (ValueError, TypeError, NotImplementedError, AttributeError, ImportError)
_NOTHING = Predicted(None, None, None, None, 0.0)


@dataclass
class Scores:
    """Sums over rows that were predicted before they were learned."""

    n: int = 0
    squared: float = 0.0
    absolute: float = 0.0
    inside: int = 0
    log_score: float = 0.0
    surprising: int = 0
    recent: float = 0.0

    def add(self, entry: Record) -> None:
        """Add one row of the log; rows with no prediction are left out."""
        if entry["mean"] is None or entry["log_score"] is None:
            return
        error = entry["y"] - entry["mean"]
        self.n += 1
        self.squared += error * error
        self.absolute += abs(error)
        self.inside += entry["low"] <= entry["y"] <= entry["high"]
        self.log_score += entry["log_score"]
        self.surprising += is_surprising(entry)
        self.recent += (abs(error) - self.recent) / min(self.n, RECENT_ROWS)

    def state(self) -> dict[str, float | None]:
        """Return the scores: root mean squared and absolute error, coverage, log score, surprises.

        ``error_ratio`` is the mean absolute error of the last hundred rows or so, by that of all:
        1 in a steady stream, more when errors have grown.
        """
        if not self.n:
            nothing = ("rmse", "mae", "coverage", "log_score", "error_ratio")
            return {"n": 0, "surprising": 0, **dict.fromkeys(nothing)}
        return {
            "n": self.n,
            "rmse": math.sqrt(self.squared / self.n),
            "mae": self.absolute / self.n,
            "coverage": self.inside / self.n,
            "log_score": self.log_score / self.n,
            "surprising": self.surprising,
            "error_ratio": self.recent * self.n / self.absolute if self.absolute else None,
        }


def is_surprising(entry: Record) -> bool:
    """Return True if a row of the log lay further off than three widths of its interval."""
    width = entry["high"] - entry["low"]
    # An interval of 0 alone, of a count or of no and yes, is as wide as one step.
    return bool(abs(entry["y"] - entry["mean"]) > 3.0 * (width or 1.0))


class Predictor(Learner):
    """A model and its scores, a function of the rows in the log alone.

    Parameters
    ----------
    name, version, settings
        As in the log.
    model : estimator, optional
        What a snapshot held.
    notes : mapping, optional
        What it held beside: the scores, and sizes of what was learned.
    learned_through : int
        Number of the last row it has learned.
    """

    kind, field = "predictor", "y"

    def __init__(
        self,
        name: str,
        version: int,
        settings: PredictorSettings,
        model: Any = None,
        notes: Any = None,
        learned_through: int = 0,
    ) -> None:
        self.version, self.settings = version, settings
        places = {name: place for place, name in enumerate(settings.features)}
        self._roles = {role: places.get(name, 0) for role, name in self._list_roles()}
        model = self.build_model() if model is None else model
        super().__init__(name, model, notes, learned_through)
        known = {one.name for one in fields(Scores)}
        self.scores = Scores(**{key: value for key, value in (notes or {}).items() if key in known})

    def check_settings(self) -> None:
        """Refuse parameters that no row could be learned with, and ``forget_after`` without use.

        Raises
        ------
        RefusedError
            422, with what the model says.
        """
        self._check_roles()
        # As many rows as a model may keep from its start: those it can always unlearn.
        n, trial = len(self.settings.features), self.build_model()
        forgets = self.settings.forget_after is not None
        X = np.random.default_rng(0).normal(size=(max(64, 4 * (n + 1)) + 1 if forgets else 2, n))
        y = (X[:, 0] > 0.0).astype(np.float64)
        X[:, list(self._roles.values())] = 1.0
        X[:, [self.settings.features.index(name) for name in self.settings.levels]] = 1.0
        X, added = self._split(X)
        try:
            trial.predict_then_learn(X, y, **added)
        except FAILURES as error:
            raise RefusedError(422, f"no row could be learned: {error}", "parameters") from error
        try:
            if forgets:
                trial.unlearn(X[:1], y[:1], **{role: its[:1] for role, its in added.items()})
        except FAILURES as error:
            message = f"this model can't unlearn: {error}"
            raise RefusedError(422, message, "forget_after") from error

    def _check_roles(self) -> None:
        """Refuse offsets and exposures that are no features, or of what is no count."""
        for role, name in self._list_roles():
            if self.settings.model not in COUNTS:
                message = f"{role} is for models of counts, {' and '.join(COUNTS)}: leave it out"
                raise RefusedError(422, message, role)
            if name not in self.settings.features:
                message = f"{role} is {name!r}, which is not a feature: use the name of a feature"
                raise RefusedError(422, message, role)
        roles = {name for _, name in self._list_roles()}
        if len(roles) < len(self._roles):
            raise RefusedError(422, "offset and exposure are the same feature: name two", "offset")
        if not self._learned_features:
            message = f"no feature is left beside {list_names(roles)}: add one"
            raise RefusedError(422, message, "features")

    def _list_roles(self) -> list[tuple[str, str]]:
        """Features that are an offset or an exposure, by these roles."""
        settings = self.settings
        given = ("offset", settings.offset), ("exposure", settings.exposure)
        return [(role, name) for role, name in given if name is not None]

    @property
    def _learned_features(self) -> list[str]:
        """The features that the model learns, in their order: neither offset nor exposure."""
        roles = {name for _, name in self._list_roles()}
        return [name for name in self.settings.features if name not in roles]

    def _split(self, X: Array) -> tuple[Array, dict[str, Array]]:
        """The features (n, m) that are learned, and the offsets and exposures (n,) by name."""
        added = {role: X[:, place] for role, place in self._roles.items()}
        return (np.delete(X, list(self._roles.values()), axis=1) if added else X), added

    def build_model(self) -> Any:
        """A model that has learned nothing.

        Raises
        ------
        RefusedError
            422: a parameter that the model does not have.
        """
        settings = self.settings
        kind = _CLASSES[settings.model]
        known = kind().get_params(deep=False)
        for name in settings.parameters:
            if name not in known:
                raise RefusedError(
                    422,
                    f"there is no parameter {name!r}: give one of {', '.join(sorted(known))}",
                    f"parameters.{name}",
                )
        # Rows are arrays of numbers, in which a level is its place among all.
        levels = {
            f"x{self._learned_features.index(name)}": list(range(1, len(each) + 1))
            for name, each in settings.levels.items()
        }
        coded = {"categorical_features": levels} if levels else {}
        return kind(**settings.parameters, **coded)

    @property
    def notes(self) -> dict[str, Any]:
        """What goes into a snapshot beside the model."""
        return {**asdict(self.scores), **super().notes}

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Array) -> list[Predicted]:
        """Mean, standard deviation and interval of each row of X (n, m)."""
        predictive = self._predict_distribution(X)
        if predictive is None:
            raise RefusedError(
                409, f"{self.name!r} has learned nothing yet: send rows to learn first"
            )
        return self._describe_rows(predictive)

    def _predict_distribution(self, X: Array) -> Any:
        """Predict a distribution; None where nothing was learned, or all of it was unlearned."""
        try:
            if not self.model.n_observations_ > 0.0:
                return None
            X, added = self._split(X)
            return self.model.predict_distribution(X, **added)
        except NotFittedError:
            return None

    def _describe_rows(self, predictive: Any) -> list[Predicted]:
        if isinstance(predictive, Categorical):
            return [*map(self._describe_label, predictive.probabilities)]
        low, high = predictive.interval(self.settings.level)
        numbers = (predictive.mean(), predictive.std(), low, high)
        columns = [map(_finite_or_none, np.ravel(number).tolist()) for number in numbers]
        level = self.settings.level
        return [
            Predicted(mean, std, low, high, level)
            for mean, std, low, high in zip(*columns, strict=True)
        ]

    def _describe_label(self, probabilities: Array) -> Predicted:
        """The probability of yes (1), as the mean; nothing is known before both were seen."""
        level = self.settings.level
        if len(probabilities) < 2:
            return Predicted(None, None, None, None, level)
        no, yes = probabilities.tolist()
        tail = 0.5 * (1.0 - level)
        return Predicted(yes, math.sqrt(no * yes), float(no < tail), float(yes > tail), level)

    def read(self, x: Any) -> Array:
        """The row (m,), by name or in order; of a category the number of its level."""
        features, levels = self.settings.features, self.settings.levels
        row = read_context(number_levels(x, features, levels, "x"), features, {}, "x")
        place = self._roles.get("exposure")
        if place is not None and not row[place] > 0.0:
            name = self.settings.features[place]
            message = f"{name!r} is {row[place]:g}: an exposure must be above 0"
            raise RefusedError(422, message, f"x.{name}")
        return row

    # ---- learning --------------------------------------------------------------------------------

    def learn(
        self, asked: Row, found: LogEntries, group: Group, number: int, now: float
    ) -> Learned:
        """Predict a row, then learn it, where its id is new; else say what was predicted then."""
        key = (self.name, asked.id)
        x = self.read(asked.x)
        self._check_levels(x)
        check_target(self.settings.model, asked.y, "y")
        known = found.rows.get(key)
        if known is not None and known["kind"] == "learn":
            if known["y"] != asked.y or known["x"] != x.tobytes():
                message = f"row {asked.id!r} was learned with other values: unlearn it first"
                raise RefusedError(409, message, "id")
            return _describe_learned("duplicate", known)
        seconds = self.settings.forget_after
        made = {
            "seq": number,
            "model": self.name,
            "row_id": asked.id,
            "kind": "learn",
            "x": x.tobytes(),
            "y": asked.y,
            "at": now,
            "forget": None if seconds is None else now + seconds,
            **self._score_row(x, asked.y),
        }
        self.learn_entry(made)
        group.add(row, **made)
        found.rows[key] = made
        return _describe_learned("new", made)

    def _check_levels(self, x: Array) -> None:
        """Refuse to learn a level that the settings do not name."""
        for name, each in self.settings.levels.items():
            if x[self.settings.features.index(name)] == 0.0:
                message = f"{name!r} has an unknown level: give one of {list_names(each)}"
                raise RefusedError(422, message, f"x.{name}")

    def unlearn(
        self, asked: Unlearn, found: LogEntries, group: Group, number: int, now: float
    ) -> Learned:
        """Take a row back."""
        key = (self.name, asked.id)
        known = found.rows.get(key)
        if known is None:
            raise RefusedError(404, f"there is no row {asked.id!r}", "id")
        if known["kind"] == "unlearn":
            return Learned("duplicate")
        nothing = dict.fromkeys(("mean", "low", "high", "log_score"))
        made = {**known, "seq": number, "kind": "unlearn", "at": now, "forget": None, **nothing}
        self.learn_entry(made, found.log)
        if found.log is not None:  # it was learned anew, which a restart need not do again
            group.snapshots.add(self.name)
        group.add(row, **made)
        if known["forget"] is not None:
            group.updates.append((keep_row(), [{"of": self.name, "one": asked.id}]))
        found.rows[key] = made
        return Learned("unlearned")

    def _score_row(self, x: Array, y: float) -> Record:
        predictive = self._predict_distribution(x[None])
        predicted = _NOTHING if predictive is None else self._describe_rows(predictive)[0]
        score = None
        if predictive is not None and predicted.low is not None and predicted.mean is not None:
            density = getattr(predictive, "logpmf", None) or predictive.logpdf
            score = _finite_or_none(np.ravel(density(np.array([y])))[0])
        values = (predicted.mean, predicted.low, predicted.high, score)
        return dict(zip(("mean", "low", "high", "log_score"), values, strict=True))

    def learn_entry(self, entry: Record, log: Store | None = None) -> None:
        """Learn a row, or take it back, and score its prediction."""
        super().learn_entry(entry, log)
        self.scores.add(entry)

    def read_change(self, entry: Record) -> Change:
        """What an entry changes of its row."""
        known = (None, entry["y"]) if entry["kind"] == "learn" else (entry["y"], None)
        return Change(entry["row_id"], 0, entry["x"], *known)

    def change_model(self, model: Any, change: Change, x: Array) -> None:
        """Have a model learn a row, or take it back."""
        X, added = self._split(x[None])
        if change.former is not None:
            model.unlearn(X, [change.former], **added)
        if change.total is not None:
            model.learn_one(X[0], change.total, **{role: its[0] for role, its in added.items()})

    def read_log(
        self, store: Store, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield the rows to be learned from the log after a number."""
        return store.read_rows(self.name, after, through, limit)


def _describe_learned(status: str, made: Record) -> Learned:
    return Learned(status, made["mean"], made["low"], made["high"], made["log_score"])


def _finite_or_none(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
