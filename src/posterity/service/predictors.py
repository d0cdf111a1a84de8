"""A predictor: a model that predicts, and learns each row once, by its id."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from inspect import signature
from itertools import cycle, product
from typing import Any

import msgspec
import numpy as np
from scipy.special import betainc
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array
from posterity.distributions import Categorical
from posterity.service.build import begin, get_family, make_rows
from posterity.service.errors import RefusedError
from posterity.service.inputs import COUNTS, check_target, list_names
from posterity.service.learner import Change, Learner
from posterity.service.messages import Learned, Predicted, PredictorSettings, Row, Unlearn
from posterity.service.schema import row
from posterity.service.store import LogEntries, Store
from posterity.service.watch import Watch
from posterity.service.writing import Group, Record, keep_row

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
    # Share of the recent rows inside their intervals, and how many have been counted for it.
    held: float = 0.0
    counted: int = 0

    def add(self, entry: Record) -> None:
        """Add one row of the log; rows with no prediction are left out."""
        if entry["mean"] is None or entry["log_score"] is None:
            return
        error = entry["y"] - entry["mean"]
        self.n += 1
        self.squared += error * error
        self.absolute += abs(error)
        inside = entry["low"] <= entry["y"] <= entry["high"]
        self.inside += inside
        self.counted += 1
        self.held += (inside - self.held) / min(self.counted, RECENT_ROWS)
        self.log_score += entry["log_score"]
        self.surprising += is_surprising(entry)
        self.recent += (abs(error) - self.recent) / min(self.n, RECENT_ROWS)

    def state(self) -> dict[str, float | None]:
        """Return the scores: root mean squared and absolute error, coverage, log score, surprises.

        ``error_ratio`` is the mean absolute error of the last hundred rows or so, by that of all:
        1 in a steady stream, more when errors have grown. ``recent_coverage`` is of these, too.
        """
        if not self.n:
            nothing = ("rmse", "mae", "coverage", "log_score", "error_ratio", "recent_coverage")
            return {"n": 0, "surprising": 0, **dict.fromkeys(nothing)}
        return {
            "n": self.n,
            "rmse": math.sqrt(self.squared / self.n),
            "mae": self.absolute / self.n,
            "coverage": self.inside / self.n,
            "log_score": self.log_score / self.n,
            "surprising": self.surprising,
            "recent_coverage": self.held if self.counted else None,
            "error_ratio": self.recent * self.n / self.absolute if self.absolute else None,
        }

    def find_alarm(self, level: float) -> str:
        """What the recent intervals do, if chance hardly explains it: once in a thousand looks.

        Where their share is held by k of n, with a uniform prior it is Beta(1 + k, 1 + n - k).
        """
        n = min(self.counted, RECENT_ROWS)
        inside = self.held * n
        tail = float(betainc(1.0 + inside, 1.0 + n - inside, level))
        if n < RECENT_ROWS or 0.0005 < tail < 0.9995:
            return ""
        return f"intervals of {level:.0%} hold {self.held:.0%} of recent values"


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
        if model is None:
            model, notes = begin(settings)
        self._family = get_family(settings)
        super().__init__(name, model, notes, learned_through)
        self.rows = make_rows(settings, model, notes or {})
        known = {one.name for one in fields(Scores)}
        self.watch = msgspec.json.decode((notes or {}).get("watch", "{}"), type=Watch)
        self.scores = Scores(**{key: value for key, value in (notes or {}).items() if key in known})

    def check_settings(self) -> None:
        """Refuse settings that no row could be learned with, and ``forget_after`` without use.

        Raises
        ------
        RefusedError
            422, with what the model says.
        """
        self._check_roles()
        forgets, count = self.settings.forget_after is not None, 4 * (len(self.rows.kinds) + 1)
        # As many rows as a model may keep from its start: those it can always unlearn.
        if self.settings.file is not None:
            return
        trial, x, y = self._learn_examples(max(64, count) + 1 if forgets else 2)
        try:
            if forgets:
                X, added = self.rows.open([x])
                trial.unlearn(X, [y], **added)
        except FAILURES as error:
            message = f"this model can't unlearn: {error}"
            raise RefusedError(422, message, "forget_after") from error

    def _learn_examples(self, n: int) -> tuple[Any, bytes, float]:
        """A model that has learned examples one by one, the first of them, and its target."""
        failures = []
        # Shares, and what is larger; labels and counts, or amounts and shares.
        for largest, targets in product((1.0, 1e3), ([0.0, 1.0], [0.5])):
            trial, examples = self.build_model(), self.rows.make_examples(n, largest)
            try:
                for x, y in zip(examples, cycle(targets), strict=False):
                    row, added = self.rows.open_one(x)
                    trial.learn_one(row, y, **added)
            except FAILURES as error:
                failures.append(error)
            else:
                return trial, examples[0], targets[0]
        message = f"no row could be learned: {failures[0]}"
        field = "formula" if self.settings.formula else "parameters"
        raise RefusedError(422, message, field) from failures[0]

    def _check_roles(self) -> None:
        """Refuse offsets and exposures that are no features, or of what is no count."""
        roles, kinds = self.rows.roles, self.rows.kinds
        for role, name in roles.items():
            if role not in signature(self.model.partial_fit).parameters:
                message = f"{role} is for models of counts, {' and '.join(COUNTS)}: leave it out"
                raise RefusedError(422, message, role)
            if name not in kinds:
                message = f"{role} is {name!r}, which is not a feature: use the name of a feature"
                raise RefusedError(422, message, role)
        if len(set(roles.values())) < len(roles):
            raise RefusedError(422, "offset and exposure are the same feature: name two", "offset")
        others = [*roles.values(), *filter(None, [self.settings.groups])]
        if kinds and not kinds.keys() - set(others):
            message = f"no feature is left beside {list_names(others)}: add one"
            raise RefusedError(422, message, "features")

    def build_model(self) -> Any:
        """A model that has learned nothing, but for what the file of the settings has."""
        return begin(self.settings, self.rows.kinds)[0]

    def describe_settings(self) -> dict[str, Any]:
        """The settings; of a file its size."""
        file = self.settings.file
        short = f"{len(file):,} bytes" if file is not None else None
        told: dict[str, Any] = msgspec.to_builtins(
            msgspec.structs.replace(self.settings, file=None)
        )
        return {**told, "file": short}

    def describe(self) -> dict[str, Any]:
        """Also the schema, the scores, and what is unusual."""
        return {
            **super().describe(),
            "schema": self.rows.kinds,
            "scores": self.scores.state(),
            "unusual": self.watch.alarms,
            "events": [{"at": at, "told": told} for at, told in self.watch.events],
        }

    @property
    def notes(self) -> dict[str, Any]:
        """What goes into a snapshot beside the model."""
        watched = msgspec.json.encode(self.watch).decode()
        return {**asdict(self.scores), "watch": watched, **self.rows.notes, **super().notes}

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, rows: Sequence[bytes]) -> list[Predicted]:
        """Mean, standard deviation and interval of each row."""
        predictive = self._predict_distribution(rows)
        if predictive is None:
            raise RefusedError(
                409, f"{self.name!r} has learned nothing yet: send rows to learn first"
            )
        return self._describe_rows(predictive)

    def _predict_distribution(self, rows: Sequence[bytes]) -> Any:
        """Predict a distribution; None where nothing was learned, or all of it was unlearned."""
        try:
            if not self.model.n_observations_ > 0.0:
                return None
            X, added = self.rows.open(rows)
            return self.model.predict_distribution(X, **added)
        except NotFittedError:
            return None
        except ValueError as error:  # a level that the model can't take, a value it can't read
            raise RefusedError(422, str(error), "x") from error

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

    # ---- learning --------------------------------------------------------------------------------

    def learn(
        self, asked: Row, found: LogEntries, group: Group, number: int, now: float
    ) -> Learned:
        """Predict a row, then learn it, where its id is new; else say what was predicted then."""
        key = (self.name, asked.id)
        x = self.rows.read(asked.x)
        self.rows.check_known(x)
        y = float(asked.y)
        check_target(self._family, y, "y")
        known = found.rows.get(key)
        if known is not None and known["kind"] == "learn":
            if known["y"] != y or not self.rows.is_same(known["x"], x):
                message = f"row {asked.id!r} was learned with other values: unlearn it first"
                raise RefusedError(409, message, "id")
            return _describe_learned("duplicate", known)
        seconds = self.settings.forget_after
        made = {
            "seq": number,
            "model": self.name,
            "row_id": asked.id,
            "kind": "learn",
            "x": x,
            "y": y,
            "at": now,
            "forget": None if seconds is None else now + seconds,
            **self._score_row(x, y),
        }
        self.learn_entry(made)
        group.inserts.append((row, made))
        found.rows[key] = made
        return _describe_learned("new", made)

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

    def _score_row(self, x: bytes, y: float) -> Record:
        predictive = self._predict_distribution([x])
        predicted = _NOTHING if predictive is None else self._describe_rows(predictive)[0]
        score = None
        if predictive is not None and predicted.low is not None and predicted.mean is not None:
            density = getattr(predictive, "logpmf", None) or predictive.logpdf
            score = _finite_or_none(np.ravel(density(np.array([y])))[0])
        values = (predicted.mean, predicted.low, predicted.high, score)
        return dict(zip(("mean", "low", "high", "log_score"), values, strict=True))

    def learn_entry(self, entry: Record, log: Store | None = None) -> None:
        """Learn a row, or take it back, and score its prediction."""
        if not self.rows.kinds:  # the first row says what levels there may be
            self.model = begin(self.settings, self.rows.find_kinds(entry["x"]))[0]
        super().learn_entry(entry, log)
        self.scores.add(entry)
        if entry["kind"] == "learn":
            self.rows.note(entry["x"])
            changed = self.watch.add(self.rows.list_values(entry["x"]))
            if changed is not None:
                level, held = self.settings.level, self.scores.held
                if told := self.scores.find_alarm(level):
                    changed.append(f"coverage too {'low' if held < level else 'high'}: {told}")
                self.watch.note(entry["at"], changed)

    def read_change(self, entry: Record) -> Change:
        """What an entry changes of its row."""
        known = (None, entry["y"]) if entry["kind"] == "learn" else (entry["y"], None)
        return Change(entry["row_id"], 0, entry["x"], *known)

    def read_numbers(self, x: bytes) -> list[float]:
        """The numbers of a row."""
        return self.rows.list_numbers(x)

    def change_model(self, model: Any, change: Change, x: bytes) -> None:
        """Have a model learn a row, or take it back."""
        if change.former is not None:
            X, added = self.rows.open([x])
            model.unlearn(X, [change.former], **added)
        if change.total is not None:
            row, added = self.rows.open_one(x)
            model.learn_one(row, change.total, **added)

    def read_log(
        self, store: Store, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield the rows to be learned from the log after a number."""
        return store.read_rows(self.name, after, through, limit)


def _describe_learned(status: str, made: Record) -> Learned:
    return Learned(status, made["mean"], made["low"], made["high"], made["log_score"])


def _finite_or_none(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None
