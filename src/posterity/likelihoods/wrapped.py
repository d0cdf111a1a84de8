"""The base of likelihoods that are made from another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.likelihoods.likelihood import Kernel, Likelihood, TargetError
from posterity.likelihoods.parameter import LogNormalParameter

# The least distance of two logs whose difference has a log.
LEAST_GAP = 1e-300
# Codes in compiled code: of counts, and of those and amounts, which are never 0.
COUNTS, SOME = (3, 4, 15), (3, 4, 8, 10, 11, 12, 13, 15)


@dataclass(frozen=True)
class Wrapped(Likelihood):
    """A likelihood made from ``likelihood``, whose eta and open parameters are its own.

    Its parameters are learned together with the coefficients, on which they depend here.
    """

    likelihood: Likelihood

    def __post_init__(self) -> None:
        if not isinstance(self.likelihood, Likelihood):
            raise TypeError(
                f"likelihood is {self.likelihood!r}: {type(self).__name__} needs an instance of a "
                "class derived from posterity.likelihoods.Likelihood, as Weibull()"
            )

    @property
    def parameters(self) -> tuple[LogNormalParameter, ...]:
        """Those that are open."""
        inner = self.likelihood
        given = inner.parameters if inner.learns_parameter else ()
        return tuple(one.as_log_normal for one in given)

    @property
    def learns_parameter(self) -> bool:
        """True if one is open."""
        return len(self.parameters) > 0

    def with_parameter(self, value: Any) -> Self:
        """The same with these values (d,) of the open parameters, or those of each row (n, d)."""
        inner = self.likelihood
        if not inner.learns_parameter:
            return self
        own = value[..., : len(inner.parameters)]
        return replace(
            self, likelihood=inner.with_parameter(own if inner.parameter is None else own[..., 0])
        )

    def of_rows(self, rows: Any) -> Self:
        """The same with the parameters of these rows, where each row has its own."""
        inner = self.likelihood.of_rows(rows)
        return self if inner is self.likelihood else replace(self, likelihood=inner)

    @property
    def ratio(self) -> str:
        """As of the likelihood."""
        return self.likelihood.ratio

    @property
    def vague_variance(self) -> float:
        """As of the likelihood."""
        return self.likelihood.vague_variance

    def start(self, y: Array) -> Array:
        """Starting values of the likelihood itself, or those whose mean is near the target."""
        own = getattr(self.likelihood, "start", None)
        return own(y) if own else self.likelihood.link_function(0.5 * (y + np.mean(y)))

    @property
    def closeness(self) -> float:
        """That of differences."""
        return max(1e-9, self.likelihood.closeness)

    def _add_zeros(self, known: tuple[int, ...], kind: int, log_odds: Any) -> Kernel | None:
        """The likelihood's code, if it is one of those known, with zeros of their own."""
        inner = self.likelihood.kernel_code
        if inner is None or inner.code not in known:
            return None
        return Kernel(inner.code + kind, (*inner.parameters[:2], log_odds))

    def _check_some(self, y: Array, some: Mask) -> None:
        """Raise ``TargetError`` for the first of some targets that the likelihood does not know."""
        try:
            self.likelihood.check_targets(y[some])
        except TargetError as error:
            row = int(np.flatnonzero(some)[error.row])
            raise TargetError(row, error.value, error.what) from None

    def _log_probability(self, low: Array, high: Array, eta: Array) -> Array:
        """Log of the probability between two ends, from the nearer tail."""
        # A count may be the lower end itself.
        up_to_low, above_low = self.likelihood.log_tails(np.nextafter(low, -np.inf), eta)
        up_to_high, above_high = self.likelihood.log_tails(high, eta)
        above = self._tail(above_low, low, eta), above_high
        under = self._tail(up_to_high, high, eta), up_to_low
        more, less = (
            np.where(above[0] < under[0], one, other)
            for one, other in zip(above, under, strict=True)
        )
        return np.asarray(more + np.log(-np.expm1(np.minimum(less - more, -LEAST_GAP))))

    def _tail(self, log_probability: Array, end: Array, eta: Array) -> Array:
        """Where it is too small for a float, the density there, which falls as it does."""
        lost = np.isneginf(log_probability) & np.isfinite(end)
        if not lost.any():
            return log_probability
        return np.where(lost, self.likelihood.log_density(end, eta), log_probability)
