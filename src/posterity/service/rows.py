"""Rows of predictors: what a request sends, what the log keeps of it, and what models take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.service.errors import RefusedError
from posterity.service.inputs import list_names, number_levels, read_context
from posterity.service.messages import PredictorSettings

Added = dict[str, Any]


class Rows(ABC):
    """Reads rows of a predictor; the log keeps a row as bytes, and so do requests that wait.

    Parameters
    ----------
    settings : PredictorSettings

    Attributes
    ----------
    roles : dict of str to str
        The features that are an "offset" or an "exposure": they have no coefficient.
    """

    def __init__(self, settings: PredictorSettings) -> None:
        self.settings = settings
        given = ("offset", settings.offset), ("exposure", settings.exposure)
        self.roles = {role: name for role, name in given if name is not None}

    @property
    def notes(self) -> dict[str, Any]:
        """What the rows learned say of those to come: it goes into a snapshot."""
        return {}

    @property
    @abstractmethod
    def kinds(self) -> dict[str, Any]:
        """What each feature must be."""

    def find_kinds(self, x: bytes) -> dict[str, Any]:
        """The kinds, or those that a first row has."""
        return self.kinds

    @abstractmethod
    def read(self, x: Any) -> bytes:
        """A row as the log keeps it.

        Raises
        ------
        RefusedError
            422, with the field: what is wrong with which feature, and what to send.
        """

    @abstractmethod
    def check_known(self, x: bytes) -> None:
        """Refuse a row that can be predicted, and not learned."""

    def is_same(self, known: bytes, x: bytes) -> bool:
        """Whether two rows were sent with the same values."""
        return known == x

    @abstractmethod
    def list_numbers(self, x: bytes) -> list[float]:
        """The numbers of a row, in a fixed order."""

    @abstractmethod
    def list_values(self, x: bytes) -> dict[str, Any]:
        """Numbers and levels as they were sent, by feature; None is missing, and dates are out."""

    @abstractmethod
    def open(self, rows: Sequence[bytes]) -> tuple[Any, Added]:
        """Rows as models take many, and their offsets and exposures (n,)."""

    @abstractmethod
    def open_one(self, x: bytes) -> tuple[Any, Added]:
        """The same of one row, as models take one."""

    def note(self, x: bytes) -> None:  # noqa: B027 - most have nothing to note
        """A row was learned."""

    @abstractmethod
    def make_examples(self, n: int, largest: float) -> list[bytes]:
        """Rows to try a model with, of numbers from 0 to the largest."""

    def check_exposure(self, name: str, value: float) -> None:
        """Refuse an exposure of 0 or less."""
        if self.roles.get("exposure") == name and not value > 0.0:
            message = f"{name!r} is {value:g}: an exposure must be above 0"
            raise RefusedError(422, message, f"x.{name}")


class NumberRows(Rows):
    """Rows of numbers in the order of the features; of a category the number of its level."""

    def __init__(self, settings: PredictorSettings) -> None:
        super().__init__(settings)
        assert isinstance(settings.features, list)
        self._features: list[str] = settings.features
        places = {name: place for place, name in enumerate(self._features)}
        self._roles = {role: places.get(name, 0) for role, name in self.roles.items()}

    @property
    def kinds(self) -> dict[str, Any]:
        """Levels of categories; all else are numbers."""
        return name_kinds(self.settings)

    def read(self, x: Any) -> bytes:
        """The numbers, of values by name or in order."""
        levels = self.settings.levels
        row = read_context(number_levels(x, self._features, levels, "x"), self._features, {}, "x")
        if "exposure" in self._roles:
            place = self._roles["exposure"]
            self.check_exposure(self._features[place], row[place])
        return row.tobytes()

    def check_known(self, x: bytes) -> None:
        """Refuse a level that the settings do not name."""
        for name, each in self.settings.levels.items():
            if np.frombuffer(x)[self._features.index(name)] == 0.0:
                raise refuse_level(name, each)

    def list_numbers(self, x: bytes) -> list[float]:
        """All of them."""
        numbers: list[float] = np.frombuffer(x).tolist()
        return numbers

    def list_values(self, x: bytes) -> dict[str, Any]:
        """All of them; the number of a level as text."""
        values: dict[str, Any] = dict(zip(self._features, self.list_numbers(x), strict=False))
        for name, levels in self.settings.levels.items():
            place = int(values[name])
            values[name] = levels[place - 1] if place else ""
        return values

    def open(self, rows: Sequence[bytes]) -> tuple[Array, Added]:
        """An array (n, m)."""
        X = np.frombuffer(b"".join(rows)).reshape(len(rows), -1)
        if not self._roles:
            return X, {}
        added = {role: X[:, place] for role, place in self._roles.items()}
        return np.delete(X, list(self._roles.values()), axis=1), added

    def open_one(self, x: bytes) -> tuple[Array, Added]:
        """An array (m,)."""
        X, added = self.open([x])
        return X[0], {role: its[0] for role, its in added.items()}

    def make_examples(self, n: int, largest: float) -> list[bytes]:
        """Rows of random numbers."""
        X = largest * np.random.default_rng(0).random((n, len(self._features)))
        X[:, list(self._roles.values())] = 1.0
        X[:, [self._features.index(name) for name in self.settings.levels]] = 1.0
        return [row.tobytes() for row in X]


def name_kinds(settings: PredictorSettings) -> dict[str, Any]:
    """The kinds of features: those of a list of names are numbers, but for those with levels."""
    if isinstance(settings.features, list):
        return {name: settings.levels.get(name, "number") for name in settings.features}
    return settings.features or {}


def refuse_level(name: str, levels: Sequence[str]) -> RefusedError:
    """The refusal of a level that is none of these."""
    message = f"{name!r} has an unknown level: give one of {list_names(levels)}"
    return RefusedError(422, message, f"x.{name}")
