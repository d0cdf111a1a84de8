"""Memories: what a posterior of Gaussian rows forgets before each of them.

A memory is a frozen value without data. What it needs to keep, rows or a sum, is in the posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from posterity.aliases import Array, Indices
from posterity.factor import Factor, OneStepPredictions, Rows
from posterity.factor.usable import LARGEST
from posterity.kernel import RowPath


@dataclass
class KeptRows:
    """The rows in a window, old to new, and when they came.

    ``removed`` counts those that single rows have pushed out since the factor was last built from
    the rows: a copy builds it anew at the same row, and agrees to the last bit.
    """

    X: Array
    y: Array
    weights: Array
    times: Array
    removed: int = 0

    @classmethod
    def none_of(cls, n_features: int, n_targets: int = 1) -> Self:
        """No rows yet."""
        return cls(np.empty((0, n_features)), np.empty((0, n_targets)), np.empty(0), np.empty(0))


class Learned(Protocol):
    """What a memory works on: a factor of prior and rows, the prior, and rows that it keeps."""

    @property
    def factor(self) -> Factor:
        """Prior and rows."""

    @property
    def prior(self) -> Factor:
        """The prior alone."""

    @property
    def intercept(self) -> bool:
        """True if a 1 comes before each row."""

    @property
    def stored_rows(self) -> KeptRows | None:
        """The rows in a window."""


class Memory:
    """The base of memories that forget, with what most of them do."""

    forgets: ClassVar[bool] = True
    # True if the evidence of the rows can be computed from the factor.
    has_evidence: ClassVar[bool] = True
    # True if it only discounts old rows; and if it spares the prior.
    only_discounts: ClassVar[bool] = False
    keeps_prior: ClassVar[bool] = False
    # True if only the directions of a row fade before it.
    by_direction: ClassVar[bool] = False
    # True if compiled code learns single rows of one target, by ``row_path`` or ``fade``.
    has_fast_learn_one: ClassVar[bool] = False
    # True if compiled code learns rows that stand for observations: see ``before_sites``.
    compiles_sites: ClassVar[bool] = False
    # What users call it, if not by its class.
    name = ""
    # Why rows can't be unlearned, and models not be merged; "": they can be.
    why_not_unlearn = "the weight of a row depends on its age; fit the remaining rows again"
    why_not_merge = (
        "their priors were discounted with their rows; use Stabilized, which keeps the prior"
    )

    def keep_rows(self, n_features: int) -> KeptRows | None:
        """Where rows are kept, of a posterior without data; None: they are not."""
        return None

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``; elapsed[i] >= 0 passes before row i."""
        raise NotImplementedError  # each kind says how

    def absorb(self, data: Learned, rows: Rows) -> None:
        """Learn them where nobody asks how they were predicted."""
        self.learn(data, rows)

    def wait(self, data: Learned, elapsed: float) -> None:
        """Let time pass without rows: what is forgotten before a row that tells nothing."""
        n_features = data.factor.n_coefficients - int(data.intercept)
        row = np.zeros((1, n_features)), np.zeros((1, data.factor.n_targets)), np.zeros(1)
        self.learn(data, Rows(*row, np.array([elapsed]), intercept=data.intercept))

    def find_steady_time(self, elapsed: float) -> float:
        """Time for which a memory waits that was not given, but is one of several on trial."""
        return elapsed

    def row_path(self, data: Learned, names: Sequence[str] | None) -> RowPath:
        """A path that learns single rows so, one unit of time apart, or reads only."""
        path = data.factor.row_path(data.intercept, names)
        self.fade(data, path)
        return path

    def fade(self, data: Learned, path: RowPath) -> None:
        """Let all that ``data`` know fade before each row that ``path`` learns, where it does."""
        if self.only_discounts and self.forgets:
            raise NotImplementedError(f"{type(self).__name__} only discounts: define how, in fade")

    def before_sites(self, data: Learned, elapsed: Array) -> dict[str, Any]:
        """What ``kernel.learn_sites`` is told to forget before each row, after this time (n,)."""
        return {}

    def discounts(self, elapsed: Array) -> Array:
        """(n,) share of all information left after each time, where it only discounts."""
        return np.ones(len(elapsed))

    def discounts_of_sums(self, elapsed: Array) -> Array:
        """(n,) share left of sums over the rows, as those of the noise, after each time."""
        return self.discounts(elapsed)

    def in_units(self, unit: float) -> Memory:
        """The same for coefficients whose squares are in units of ``unit``."""
        return self

    def widened(self, places: Indices, n_coefficients: int) -> Memory:
        """The same among ``n_coefficients``, of which ``places`` (p,) were those so far."""
        return self

    def check_removal(self) -> None:
        """Raise ``ValueError`` where rows can't be unlearned, and say why."""
        self._refuse("unlearn rows", self.why_not_unlearn)

    def check_merging(self) -> None:
        """Raise ``ValueError`` where what was learned apart can't be joined, and say why."""
        self._refuse("merge models", self.why_not_merge)

    def _refuse(self, what: str, why: str) -> None:
        if why:
            raise ValueError(f"can't {what} under {self.name or type(self).__name__}: {why}")


@dataclass(frozen=True)
class Keep(Memory):
    """Forget nothing."""

    forgets: ClassVar[bool] = False
    only_discounts: ClassVar[bool] = True
    keeps_prior: ClassVar[bool] = True
    has_fast_learn_one: ClassVar[bool] = True
    compiles_sites: ClassVar[bool] = True
    why_not_unlearn = ""
    why_not_merge = ""

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        """Learn rows in order in the factor of ``data``."""
        given = rows.X, rows.y, rows.weights
        return data.factor.learn(*given, intercept=rows.intercept, largest=LARGEST)

    def wait(self, data: Learned, elapsed: float) -> None:
        """Forget nothing."""

    def absorb(self, data: Learned, rows: Rows) -> None:
        """Learn them at once."""
        given = rows.X, rows.y, rows.weights
        data.factor.append(*given, intercept=rows.intercept, largest=LARGEST)


@dataclass(frozen=True)
class Several(Memory):
    """What hypotheses that are weighed by their predictions forget, each in its own way."""

    name: str = ""
    why_not_unlearn: str = Memory.why_not_unlearn
    why_not_merge: str = Memory.why_not_merge


KEEP = Keep()
