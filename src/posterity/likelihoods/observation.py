"""What sites and predictions ask of a likelihood."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from posterity.aliases import Array


class Observation(Protocol):
    """Distribution of a target given its eta; see :class:`Likelihood`, which is one."""

    is_noise: ClassVar[bool]
    kinked: ClassVar[bool]

    @property
    def closeness(self) -> float:
        """Tolerance, relative to eta, with which the derivatives find the mode of a row."""

    @property
    def compiled(self) -> tuple[int, tuple[Any, float, float]] | None:
        """Code and parameters in compiled code, where that knows it."""

    @property
    def vague_variance(self) -> float:
        """Variance of eta under a vague prior."""

    def of_rows(self, rows: Any) -> Self:
        """The same with the parameters of these rows, where each row has its own."""

    def distribution(self, eta: Array) -> Any:
        """Distribution of a target given eta."""

    def log_density(self, y: Array, eta: Array) -> Array:
        """log p(y | eta)."""

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """d log p / d eta, and -d^2 log p / d eta^2."""

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature over eta ~ Normal(mean, variance)."""
