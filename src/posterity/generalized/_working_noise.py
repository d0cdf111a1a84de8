"""The interface of a noise model that is robust to outliers, and the rows it takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np

from posterity import kernel
from posterity.aliases import Array, Mask
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.factor.usable import LARGEST_IN_TRIANGLE, NOT_USABLE
from posterity.likelihoods import Likelihood

# Errors of a fit, beside those of the median target, from which it is no fit.
STRAYED = 1.5


@dataclass(frozen=True)
class Rows:
    """``X`` (n, m), ``y`` (n,), weights (n,) > 0, and whether a 1 comes before each x.

    ``n_flat`` is the number of directions whose prior is flat: each costs the noise a row.
    """

    X: Array
    y: Array
    weights: Array
    intercept: bool
    n_flat: int

    @property
    def residual_df(self) -> float:
        """Rows left for the noise; that of a fit without any is not asked for."""
        return max(self.total - self.n_flat, 1e-9)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(np.sum(self.weights))

    @property
    def told(self) -> Mask:
        """(p,) coefficients of which the rows may tell: of columns that vary, and of the 1."""
        varied = np.any(self.X - (self.X[:1] if self.intercept else 0.0), axis=0)
        return np.concatenate([[True] * self.intercept, varied]).astype(bool)

    @property
    def n_told(self) -> int:
        """Their number."""
        return int(np.count_nonzero(self.told))

    def count_distinct(self, most: int) -> int:
        """Count the rows that differ from all before them, up to about ``most``."""
        found: set[bytes] = set()
        for x, y in zip(self.X, self.y, strict=True):
            found.add(x.tobytes() + y.tobytes())
            if len(found) >= most:
                break
        return len(found)

    @property
    def floor(self) -> float:
        """A scale that is rounding, in units of the target."""
        return 1e-12 * float(np.abs(self.y).max(initial=0.0)) + 1e-150

    @property
    def rounding(self) -> float:
        """The same of most targets, however large a few are."""
        off = np.abs(self.y[self.y != 0.0])
        return 1e-12 * float(np.median(off)) + 1e-150 if len(off) else 1e-150

    def append_to(self, factor: Factor, target: Array, relative: Array) -> None:
        """Learn the rows with these targets and relative weights; they do not count."""
        ones = factor.lacks_intercept_column(self.X, self.intercept)
        weights = relative * self.weights
        kernel.append_block(factor.triangle, 1, self.X, target[:, None], weights, ones)
        if not np.abs(factor.triangle).max() <= LARGEST_IN_TRIANGLE:  # NaN is not, either
            raise FloatingPointError(NOT_USABLE)

    def stack_on_prior(self, prior: Factor, target: Array, relative: Array) -> Factor:
        """A factor of the prior and of the rows with these targets and relative weights."""
        factor = prior.copy()
        self.append_to(factor, target, relative)
        return factor

    def compute_fitted(self, coefficients: Array) -> Array:
        """(n,) fitted values."""
        if self.intercept:
            return self.X @ coefficients[1:] + coefficients[0]
        return self.X @ coefficients

    def multiply_transposed(self, values: Array) -> Array:
        """(p,) sum of the rows, each times its value (n,)."""
        slopes = values @ self.X
        return np.concatenate([[np.sum(values)], slopes]) if self.intercept else slopes

    def fitted(self, factor: Factor) -> Array:
        """(n,) fitted values of a factor's coefficients."""
        return self.compute_fitted(solution(factor))

    def thin(self, most: int) -> Rows:
        """Return about ``most`` of these rows, evenly spaced."""
        step = -(-len(self.y) // most)
        X, y, weights = (
            np.ascontiguousarray(array[::step]) for array in (self.X, self.y, self.weights)
        )
        return replace(self, X=X, y=y, weights=weights)

    def select(self, which: Mask) -> Rows:
        """Return some of these rows."""
        if which.all():
            return self
        return replace(self, X=self.X[which], y=self.y[which], weights=self.weights[which])

    def quantiles(self, values: Array, levels: Array) -> Array:
        """Weighted quantiles of (n,) values, between two of them in proportion.

        Weight 2 is the value twice: between these two it does not change.
        """
        order = np.argsort(values)
        weights = self.weights[order]
        above, half = np.cumsum(weights), 0.5 * np.minimum(weights, 1.0)
        places = np.column_stack([above - weights + half, above - half]).ravel()
        return np.interp(levels, places / above[-1], np.repeat(values[order], 2))

    def median(self, values: Array) -> float:
        """Weighted median of (n,) values."""
        order = np.argsort(values)
        below = np.cumsum(self.weights[order])
        return float(values[order[np.searchsorted(below, 0.5 * below[-1])]])

    @cached_property
    def rounding_sd(self) -> float:
        """Standard deviation of what whole numbers leave out; 0 unless most targets repeat."""
        values = np.unique(self.y)
        repeat = 1 < len(values) <= 0.5 * len(self.y)
        return float(np.diff(values).min()) / math.sqrt(12.0) if repeat else 0.0

    def strays(self, fit: Array) -> bool:
        """True if a fit (n,) is much further from most targets than their median is."""
        own = self.median(np.abs(self.y - self.median(self.y)))
        return self.median(np.abs(self.y - fit)) > STRAYED * own + self.floor

    def estimate_size(self, errors: Array) -> float:
        """Standard deviation that the median of absolute errors says; half of them may be outliers.

        Where half of them are 0, as where targets repeat, the mean says it.
        """
        off = np.abs(errors)
        size = 1.4826 * self.median(off)
        if size <= self.rounding:
            size = float(self.weights @ off) / self.total
        return max(size, self.floor)


def solution(factor: Factor) -> Array:
    """(p,) coefficients of a factor of one target; those that are not determined are 0."""
    if not factor.determined.all():
        return factor.coefficients()[:, 0]
    return np.asarray(solve_triangle(factor.root, factor.moments)[:, 0])


@dataclass(frozen=True)
class SearchStart:
    """Starting values of a search: a scale, and a fit (n,) if there is one.

    A ``rough`` search is quick, and its answer near enough for rows that more will follow. Where
    these follow ``in_order`` the scale is that of the core of the errors, and rows far outside are
    outliers, whatever the evidence says: as rows are heard that come one after another. ``nearly``
    asks for little more than a start, under a prior that will not stay.
    """

    scale: float
    fit: Array | None
    rough: bool = field(default=False, kw_only=True)
    in_order: bool = field(default=False, kw_only=True)
    nearly: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Mode(SearchStart):
    """The fit (n,) and noise scale, and the rows that stand for the likelihood there.

    ``weight`` (n,) is relative to the noise, 1 / scale^2, and so is ``leverage`` (n,), where it is
    known; ``spread`` is what the scale came from. ``log_evidence`` is that of matched moments, and
    where they are ``settled`` another search under the same prior would find the same.
    """

    fit: Array
    weight: Array
    target: Array
    spread: float
    leverage: Array | None = None
    log_evidence: float = 0.0
    settled: bool = False


@dataclass(frozen=True)
class Spread:
    """Uncertainty of the scale.

    ``df`` degrees of freedom are those of an inverse gamma as wide, and ``widened`` is the scale
    of the t of the coefficients over that of the noise.
    """

    scale: float
    df: float
    widened: float
    log_evidence: float


class WorkingNoise(Protocol):
    """Noise whose rows get a weight and a moved target from their own error.

    Leverages are relative: scale^2 times them is the variance of the mean.
    """

    # Its own scale, in units of the one that is learned.
    unit: ClassVar[float] = 1.0

    @property
    def core_ratio(self) -> float | None:
        """Standard deviation of its core over its scale, if the scale is read from the core."""

    @property
    def scale_of_normal(self) -> float:
        """The scale that normal noise of standard deviation 1 gives."""

    @property
    def scale_information(self) -> float:
        """The Fisher information of a row on the logarithm of its scale."""

    def sites(self, error: Array, leverage: Array, scale: Array) -> tuple[Array, Array]:
        """Weight of each row, relative to the noise, and how far its target moves."""

    def site(self, error: float, leverage: float, scale: float) -> tuple[float, float]:
        """The same of one row, in plain numbers; as below."""

    def scale_term(self, error: float, leverage: float) -> float:
        """Return one row's term in the sum that the scale is estimated from."""

    def log_density_one(self, error: float, leverage: float, scale: float, df: float) -> float:
        """Log predictive density of one row; 0 where nothing is known."""

    def scale_terms(self, error: Array, leverage: Array) -> Array:
        """Return each row's term in the sum that the scale is estimated from."""

    def log_density(self, error: Array, leverage: Array, scale: Array, df: float) -> Array:
        """Log predictive density of each row; 0 where nothing is known."""

    def with_scale(self, scale: float) -> Likelihood:
        """The likelihood of this scale."""

    def predictive(
        self, mean: Array, leverage: Array, scale: float | Array, df: float | Array
    ) -> RowDistribution:
        """Distribution of a new observation, the scale known as by ``df``; see :class:`Spread`."""

    def mode(self, rows: Rows, prior: Factor, known_scale: float | None, last: SearchStart) -> Mode:
        """Fit and scale under this prior, from what the round before found."""

    def estimate_scale_uncertainty(
        self, rows: Rows, prior: Factor, known_scale: float | None, mode: Mode
    ) -> Spread | None:
        """Return the uncertainty of the scale at this mode; None where it is plugged in."""
