"""Which reads of a posterior are corrected by the rows that make it skewed, and how."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from posterity.aliases import Array, Mask
from posterity.distributions.bent_normal import NODES, SHARES, BentNormal
from posterity.distributions.row_distribution import RowDistribution
from posterity.factor.rows import as_targets
from posterity.likelihoods import Likelihood
from posterity.posteriors._parameter_lattice import settle_parameters
from posterity.posteriors._site_mode import warn_of_no_maximum
from posterity.posteriors._site_start import (
    MOST_COEFFICIENTS,
    MOST_FITTED_TO_READ,
    KeepsFirstRows,
)
from posterity.posteriors._skewed import NORMAL_BELOW, SkewedRows, find_quantiles

# Rows a coefficient from which eta at new rows is normal: its mean and its quantile of .841 are
# then right to within .05 of its standard deviation.
NORMAL_FROM = 16
# Rows, and values of rows, that are all kept where few do not tell what is normal.
MOST_ROWS, MOST_VALUES = 400, 4000


class CorrectsSkewness(KeepsFirstRows):
    """A posterior that keeps the rows that skew it as ``skewed`` in its ``statistics``."""

    likelihood: Likelihood
    approximation: Any

    @property
    def known(self) -> Likelihood:
        """The likelihood, with its parameter as the rows tell it."""
        phi = self.statistics.phi
        return self.likelihood if phi is None else self.likelihood.with_parameter(phi.value)

    def fit(self, X: Array, y: Array, *rest: Array | None) -> None:
        """Learn the first rows together; warn if only a flat or vague prior ends where eta lies."""
        before = self.copy()
        super().fit(X, y, *rest)
        is_open = len(X) > 1 and self.known.is_open(as_targets(y))
        if is_open and np.isinf(before._compute_variance(X)).any():
            warn_of_no_maximum(self.likelihood)

    def _add_ones(self, X: Array) -> Array:
        return np.column_stack([np.ones(len(X)), X]) if self.intercept else X

    def correct(
        self,
        columns: Array,
        normal: RowDistribution,
        shift: Array | float = 0.0,
        *,
        of_rows: bool = True,
    ) -> RowDistribution:
        """``normal``, of sums of coefficients, or what the rows kept say of those that are not."""
        skewed, some = self._find_skewed(columns, normal.std(), of_rows=of_rows)
        if not skewed.any():
            return normal
        points = np.empty((len(columns), len(NODES)))
        points[~skewed] = normal[~skewed].ppf(ndtr(NODES)[:, None]).T
        points[skewed] = some + np.broadcast_to(shift, skewed.shape)[skewed, None]
        return BentNormal(points, skewed)

    def _find_skewed(self, columns: Array, sd: Array, *, of_rows: bool) -> tuple[Mask, Array]:
        """Which sums of coefficients are skewed, and their quantiles (k, 57).

        See :mod:`posterity.posteriors._skewed`. Sums that know of features that were constant
        until now stay as they are; of new rows (``of_rows``, not single coefficients) so do those
        that are known well, and those of a stream, which compiled code predicts as well.
        """
        statistics = self.statistics
        skewed = (sd > (NORMAL_BELOW if of_rows else 0.0)) & np.isfinite(sd)
        nothing = np.zeros(len(columns), dtype=bool), np.empty((0, len(NODES)))
        either = statistics.skewed is not None or statistics.start is not None
        kept = self._corrects_rows if of_rows else either
        if not (kept and skewed.any() and self._keeps_skewed_rows):
            return nothing
        effects = self.unseen_effects(columns[:, int(self.intercept) :])
        if effects is not None:
            skewed &= np.asarray(abs(effects).sum(axis=1)).ravel() == 0.0
        posterior = self._fit_start_again()
        rows = posterior.statistics.skewed
        if rows is None or not skewed.any():
            return nothing
        lattice = None if of_rows else settle_parameters(posterior)
        if lattice is None and posterior._moves_coefficients:
            return nothing
        parts = posterior.inner.parts
        settled = lattice.settled if lattice else rows.settle(parts, posterior.known)
        # Fitted again, or mixed over parameters, what is normal has moved as well.
        least = None if posterior is self and lattice is None else 0.0
        found, quantiles = find_quantiles(settled, rows, columns[skewed], few=of_rows, least=least)
        skewed[skewed] = found
        return skewed, quantiles

    def _fit_start_again(self) -> Self:
        """The same, all of whose first rows were fitted together, if they are few."""
        start = self.statistics.start
        if start is None or (self.statistics.averaged and start.due == start.fitted().due):
            return self
        if start.X.size > MOST_FITTED_TO_READ:
            return self
        known = self.inner.factor.seen, self.statistics.seen, id(self.statistics.phi)
        again: Any = start.__dict__.get("_again")
        if again is None or again[0] != known:
            trial: Any = self.copy()
            trial._fit_again(start)
            # With what ``phi`` was, so that no other one has its number.
            again = start.__dict__["_again"] = known, self.statistics.phi, trial
        return again[2]

    def tell_parameters(self) -> Array:
        """(59, d) means of the logs of parameters and of their squares, and quantiles.

        These are no numbers where the two moments are all that is known.
        """
        lattice = settle_parameters(self._fit_start_again() if self._keeps_skewed_rows else self)
        if lattice is None:
            moments = np.reshape(self.statistics.phi.moments(self.likelihood), (2, -1))
            return np.concatenate([moments, np.full((len(NODES), moments.shape[1]), np.nan)])
        moments = np.stack([SHARES @ lattice.quantiles, SHARES @ np.square(lattice.quantiles)])
        return np.concatenate([moments, lattice.quantiles])

    @property
    def _moves_coefficients(self) -> bool:
        """True if parameters are learned on which the coefficients depend."""
        phi = self.statistics.phi
        return phi is not None and phi.moves_coefficients

    @property
    def _came_together(self) -> bool:
        """True if no row came alone since rows that came together."""
        return self.is_settled or self.statistics.together == self.statistics.seen

    @property
    def predicts_normally(self) -> bool:  # type: ignore[override]
        """True if rows are so many that eta at new ones is as good as normal."""
        return self.n_observations >= NORMAL_FROM * self.n_coefficients

    @property
    def _corrects_rows(self) -> bool:
        """True if new rows are predicted with the rows kept: not of noise, which is as wide."""
        return self.statistics.skewed is not None and self._came_together and self.keeps_start

    @property
    def _keeps_skewed_rows(self) -> bool:
        """True if rows are kept that make the posterior skewed: of few coefficients alone."""
        few = self.n_coefficients <= MOST_COEFFICIENTS and self.n_flat <= int(self.intercept)
        asked = self.keeps_start or self._is_smooth_noise
        return few and asked and self.approximation != "laplace" and not self.memory.forgets

    @property
    def _is_smooth_noise(self) -> bool:
        """True if eta has the target's units, in which no distance is small."""
        return self.likelihood.is_noise and not self.likelihood.kinked

    def _keep_skewed(self, rows: SkewedRows) -> None:
        """Keep rows that were learned, besides those kept before: few, or those that matter."""
        before = self.statistics.skewed
        rows = rows if before is None else before.join(rows)
        few = len(rows) <= MOST_ROWS and rows.X.size <= MOST_VALUES
        mean, variance = self.inner.central().linear_moments(rows.X)
        asked = self.statistics.phi is not None or self._is_smooth_noise
        if few and (asked or self.known.bends_upwards(rows.y, mean + rows.offsets)):
            self.statistics.skewed = rows.join_equal()
            return
        kept = rows.select(self.known, mean + rows.offsets, variance)
        self.statistics.skewed = kept if len(kept) and not self._moves_coefficients else None
