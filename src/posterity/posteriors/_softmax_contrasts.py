"""What contrasts between classes can do, whichever way they keep what they know."""

from __future__ import annotations

from typing import Any, Protocol

from posterity.factor import Factor
from posterity.posteriors._softmax_likelihood import Array, Rows
from posterity.posteriors._softmax_prior import ContrastPrior


class Contrasts(Protocol):
    """A Gaussian over V, learned from rows; see :class:`FullContrasts`, :class:`SharedContrasts`.

    ``prior`` is that of each contrast; it is joined to what the data say when something is read.
    """

    n_classes: int

    def copy(self) -> Contrasts:
        """The same knowledge, to go its own way."""

    def add_class(self) -> None:
        """Make room for one class more."""

    def rule_out(self, center: Array, weight: float, prior: ContrastPrior) -> None:
        """Learn that so many rows, at their ``center`` (p,), were not of the last class."""

    def turn(self, rotation: Array) -> None:
        """Let the contrasts V become ``rotation`` V."""

    def merge(self, other: Any) -> None:
        """Learn all that another one of the same kind has learned."""

    def fade(self, discount: float) -> None:
        """Let all that the data said count for less."""

    def fit(self, rows: Rows, prior: ContrastPrior, *, averaged: bool) -> None:
        """Learn the first rows, iterated to the mode, or to averages around it."""

    def append(self, rows: Rows, prior: ContrastPrior, *, averaged: bool) -> bool:
        """Learn rows at the mode of what is known and of them, or by averages around it.

        Returns whether the mode was reached.
        """

    def scale(self, prior: ContrastPrior) -> float:
        """The prior's scale that the evidence chooses."""

    def joined(self, prior: ContrastPrior) -> Factor:
        """The factor of prior and data."""

    def mean(self, prior: ContrastPrior) -> Array:
        """(K - 1, p) mean."""

    def contrasts(self, X: Array, prior: ContrastPrior) -> tuple[Array, Array]:
        """Means (n, K - 1) and covariances (n, K - 1, K - 1) at the rows of ``X``."""

    def log_evidence(self, prior: ContrastPrior) -> float:
        """Laplace's, or its bound; a flat direction has density 1."""
