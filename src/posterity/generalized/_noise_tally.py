"""Sums over rows, as they fade, that give the noise's scale: of the likelihood and of its core."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from posterity.aliases import Array
from posterity.generalized._core import GAMMA, compute_core_variance, compute_core_weights
from posterity.generalized._working_noise import Mode, Rows, WorkingNoise

SMALLEST = 1e-150
# With three outliers in ten rows the core's weights are six tenths of the rows. With less than this
# share it is no longer most of them: the world has changed, and none is an outlier.
LEAST_SHARE = 0.4


@dataclass(frozen=True)
class OneStepScales:
    """(n + 1,) scales before each row, and after the last."""

    scale: Array
    core: Array


@dataclass
class NoiseSums:
    """Sums over the rows, weighted: spread, count, those of the core's variance, and beyond it."""

    # The names of those that add up.
    sums: ClassVar[tuple[str, ...]] = (
        "spread",
        "count",
        "core_square",
        "core_weight",
        "beyond_core",
    )

    noise: WorkingNoise
    known_scale: float | None
    n_flat: int
    spread: float = 0.0
    count: float = 0.0
    core_square: float = 0.0
    core_weight: float = 0.0
    # Over rows that were fitted at once: the log of what they say of the scale over what their
    # core says. Of rows that come one by one only the core is heard.
    beyond_core: float = 0.0

    def copy(self) -> Self:
        """An independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    @property
    def scale(self) -> float:
        """Scale of the noise; infinite before anything is known of it."""
        if self.known_scale is not None:
            return self.known_scale
        ratio = self.noise.core_ratio
        if self.count <= self.n_flat or (ratio is None and self.spread <= 0.0):
            return math.inf
        if ratio is None:
            return max(self.spread / self.residual_df, SMALLEST)
        return max(math.exp(self.beyond_core / self.count) * self.core / ratio, SMALLEST)

    @property
    def core(self) -> float:
        """Standard deviation of the noise without its outliers."""
        if self.core_weight <= 0.0:
            return math.inf
        sigma = math.sqrt((1.0 + GAMMA) * self.core_square / self.core_weight)
        beyond = max(LEAST_SHARE * (self.count - self.n_flat) / self.core_weight, 1.0)
        return max(sigma * beyond * beyond, SMALLEST)

    def with_row(self, error: float, leverage: float, g: float) -> Self:
        """Add one row, as :meth:`compute_terms` and :meth:`learn` do."""
        twin = self.copy()
        twin.count += g
        if math.isfinite(leverage):
            core, square = self.core, error * error / (1.0 + leverage)
            relative = square / (core * core)
            inside = g * math.exp(-0.5 * GAMMA * relative)
            twin.spread += g * self.noise.scale_term(error, leverage)
            twin.core_square += inside * square
            twin.core_weight += inside
            if core < math.inf:
                twin.weigh_tails(relative, g)
        return twin

    def weigh_tails(self, square: float, g: float) -> None:
        """Hear what one row, so many squared core sds away, says of the tails: nothing."""

    def without(self, error: Array, leverage: Array, weights: Array) -> Self:
        """Remove rows that had these errors and leverages when they came."""
        now = OneStepScales(np.full(len(error) + 1, self.scale), np.full(len(error) + 1, self.core))
        gone = self.compute_terms(error, leverage, weights, now).sum(axis=1)
        left = dict(zip(self.sums, (self._now[:, 0] - gone).tolist(), strict=True))
        # Of the core all sums stay above 0, and what a fit said beyond it.
        share = max(left["count"], 0.0) / self.count
        left["core_square"] = max(left["core_square"], 1e-3 * share * self.core_square)
        left["core_weight"] = max(left["core_weight"], 1e-3 * share * self.core_weight)
        return replace(self, **left | {"beyond_core": share * self.beyond_core})

    def find_likely_noise(self) -> WorkingNoise:
        """The noise under which all of these rows are most likely: the only one there is."""
        return self.noise

    @property
    def residual_df(self) -> float:
        """Rows left for the noise."""
        return self.count - self.n_flat

    def compute_scales_before(self, added: Array, discounts: Array) -> OneStepScales:
        """Scales before each row, of which each adds ``added`` (k, n)."""
        sums = self._accumulate(added, discounts)
        return OneStepScales(self._compute_scales(sums), self._compute_cores(sums))

    def compute_terms(
        self, error: Array, leverage: Array, weights: Array, before: OneStepScales
    ) -> Array:
        """(k, n) what the rows add to each sum, given the scales before them."""
        wide = np.isinf(leverage)
        e, h = np.where(wide, 0.0, error), np.where(wide, 0.0, leverage)
        spread = self.noise.scale_terms(e, h)
        square = np.square(e) / (1.0 + h)
        core = np.where(wide, 0.0, compute_core_weights(square, np.square(before.core[:-1])))
        return weights * np.array([spread, np.ones_like(e), core * square, core, np.zeros_like(e)])

    def learn(self, added: Array, discounts: Array) -> None:
        """Add rows to the sums."""
        last = self._accumulate(added, discounts)[:, -1]
        for name, value in zip(self.sums, last, strict=True):
            setattr(self, name, float(value))

    def set_mode(self, rows: Rows, mode: Mode, scale: float) -> None:
        """Take all from the mode of these rows instead, and the scale that is said."""
        self.count = rows.total
        self.spread = mode.spread * scale / mode.scale
        inliers = rows.select(mode.weight > 0.0)
        square = np.square(rows.y - mode.fit)[mode.weight > 0.0]
        start, floor = 2.2 * inliers.median(square), max(rows.rounding_sd, inliers.floor) ** 2
        variance = compute_core_variance(square, inliers.weights, start, floor)
        # The fit has taken its share of the squares.
        variance *= inliers.total / inliers.residual_df
        self.core_weight = float(inliers.weights @ compute_core_weights(square, variance))
        self.core_square = variance * self.core_weight / (1.0 + GAMMA)
        if self.noise.core_ratio is not None:
            self.beyond_core = self.count * math.log(scale * self.noise.core_ratio / self.core)

    def leave_open(self, count: float) -> None:
        """Know that there were so many rows, and nothing of the scale."""
        for name in self.sums:
            setattr(self, name, 0.0)
        self.count = count

    def restart(self, noise: WorkingNoise) -> Self:
        """The same before any row, with this noise."""
        twin = replace(self, noise=noise)
        twin.leave_open(0.0)
        return twin

    def for_average(self) -> NoiseSums:
        """The same before any row, for one of many posteriors that are averaged."""
        return replace(self)

    def merge(self, other: NoiseSums) -> None:
        """Add another's sums."""
        for name in self.sums:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def _accumulate(self, added: Array, discounts: Array) -> Array:
        """(k, n + 1): what has faded before each row is added, and the last as it stands."""
        start = self._now
        if (discounts == 1.0).all():
            return np.concatenate([start, start + np.cumsum(added, axis=1)], axis=1)
        fade = np.cumprod(discounts)
        past = np.cumsum(added / fade, axis=1)
        before = fade * (start + np.concatenate([np.zeros((len(start), 1)), past[:, :-1]], axis=1))
        return np.concatenate([before, before[:, -1:] + added[:, -1:]], axis=1)

    def _compute_scales(self, sums: Array) -> Array:
        """(n,) scales that sums (k, n) say."""
        spread, count = sums[:2]
        if self.known_scale is not None:
            return np.full(spread.shape, self.known_scale)
        if self.noise.core_ratio is not None:
            lift = sums[4] / np.where(count > 0.0, count, 1.0)
            scale = np.exp(lift) * self._compute_cores(sums) / self.noise.core_ratio
        else:
            residual_df = count - self.n_flat
            known = (residual_df > 0.0) & (spread > 0.0)
            scale = np.where(known, spread / np.where(known, residual_df, 1.0), math.inf)
        return np.where(count > self.n_flat, np.maximum(scale, SMALLEST), math.inf)

    def _compute_cores(self, sums: Array) -> Array:
        count, square, weight = sums[1:4]
        with np.errstate(all="ignore"):
            sigma = np.sqrt((1.0 + GAMMA) * square / weight)
            # Rows far outside say nothing of the core, so that by itself it would never hear of
            # them: it is widened until they are inside.
            sigma *= np.square(np.maximum(LEAST_SHARE * (count - self.n_flat) / weight, 1.0))
        return np.where(weight > 0.0, np.maximum(sigma, SMALLEST), math.inf)

    @property
    def _now(self) -> Array:
        return np.array([[getattr(self, name)] for name in self.sums])
