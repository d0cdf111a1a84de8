"""Learning row after row: each row's site is found from the prediction of its eta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posterity.aliases import Array
from posterity.factor.rows import SiteRows, as_targets
from posterity.factor.sites import SiteCode, learn_sites
from posterity.kernel import find_sites as kernel_sites
from posterity.likelihoods import Likelihood, Sites, laplace_sites, moment_sites
from posterity.posteriors.gaussian import LinearPosterior


def make_site_rows(
    X: Array,
    y: Array,
    weights: Array | None,
    elapsed: Array | None = None,
    offsets: Array | None = None,
) -> SiteRows:
    """Rows with targets (n, k), of weight 1 where none is given, and else with nothing added."""
    nothing = np.zeros(len(X))
    return SiteRows(
        X,
        as_targets(y),
        np.ones(len(X)) if weights is None else weights,
        nothing if elapsed is None else elapsed,
        nothing if offsets is None else offsets,
    )


@dataclass(frozen=True)
class LearnedSites:
    """Mean and variance (n,) of each eta before its row, offset included, and the row's site.

    Where the likelihood's parameter is learned, it is what was in force then (n,), or (n, d);
    ``spread`` (k, n, 1 + d) stands for all that it could be (``ApartFromCoefficients``).
    """

    mean: Array
    variance: Array
    sites: Sites
    parameter: Array | None = None
    spread: Array | None = None

    @property
    def log_scale(self) -> Array:
        """(n,) log of each site's constant."""
        return self.sites.log_scale(self.mean, self.variance)

    def told_ahead(self, mean: Array, variance: Array, offsets: Array) -> LearnedSites:
        """The same, where all nodes say this (k,) of the first rows, and not one for its site."""
        k = len(mean)
        means, variances = [mean + offsets[:k], self.mean[k:]], [variance, self.variance[k:]]
        return replace(self, mean=np.concatenate(means), variance=np.concatenate(variances))


def find_sites(
    likelihood: Likelihood,
    approximation: str,
    y: Array,
    mean: Array,
    variance: Array,
    weights: Array,
    close: float = 0.0,
) -> Sites:
    """Find sites by the approximation of that name; compiled code does it for known likelihoods.

    Modes are searched for to rounding, or so ``close`` (:func:`laplace_sites`).
    """
    code = likelihood.kernel_code
    if code is not None:
        moments = approximation == "moments"
        sites = kernel_sites(*code, moments, y, mean, variance, weights)
        return Sites(*sites)
    if approximation == "laplace":
        return laplace_sites(likelihood, y, mean, variance, weights, close)
    return moment_sites(likelihood, y, mean, variance, weights)


def learn_rows(
    posterior: LinearPosterior, likelihood: Likelihood, approximation: str, rows: SiteRows
) -> LearnedSites:
    """Learn row after row in ``posterior``: in the kernel, where that knows how."""

    def learn(one: LinearPosterior, some: SiteRows) -> LearnedSites:
        if likelihood.kernel_code is None or not one.memory.compiles_sites:
            return learn_each_row(one, likelihood, approximation, some)
        code = SiteCode(*likelihood.kernel_code, approximation == "moments")
        of_factor = replace(some, intercept=one.intercept)
        elapsed = some.elapsed.copy()
        if one.factor.seen == 0.0:  # before the first row there is nothing to forget
            elapsed[: some.first + 1] = 0.0
        fading = one.memory.before_sites(one, elapsed)
        before = learn_sites(one.factor, code, of_factor, **fading)
        sites = Sites(before.precision, before.target, before.log_normalizer)
        return LearnedSites(before.mean, before.variance, sites)

    return join_learned_sites(posterior.learn_sites(learn, rows))


def learn_each_row(
    posterior: LinearPosterior, likelihood: Likelihood, approximation: str, rows: SiteRows
) -> LearnedSites:
    """The plain way, for any posterior: believe, find the site, append it as a row."""
    learned, nothing = [], np.zeros(1)
    for i in range(len(rows)):
        row = rows[i : i + 1]
        if forgets := posterior.memory.forgets:
            # Before the row is predicted; its learning takes no time any more.
            posterior.absorb(row.X, nothing[:, None], nothing, row.elapsed)
        mean, variance = posterior.linear_moments(row.X)
        mean = mean + row.offsets
        sites = find_sites(likelihood, approximation, row.y, mean, variance, row.weights)
        target = (sites.target - row.offsets)[:, None]
        posterior.absorb(row.X, target, sites.precision, nothing if forgets else row.elapsed)
        learned.append(LearnedSites(mean, variance, sites))
    return join_learned_sites(learned)


def join_learned_sites(parts: Sequence[LearnedSites]) -> LearnedSites:
    """Concatenate sites that were learned one after another."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0)

    def concatenate(values: list[Array]) -> Array:
        return np.concatenate([nothing, *values])

    sites = Sites(
        concatenate([part.sites.precision for part in parts]),
        concatenate([part.sites.target for part in parts]),
        concatenate([part.sites.log_normalizer for part in parts]),
    )
    learned = [part.parameter for part in parts if part.parameter is not None]
    spreads = [part.spread for part in parts if part.spread is not None]
    return LearnedSites(
        concatenate([part.mean for part in parts]),
        concatenate([part.variance for part in parts]),
        sites,
        np.concatenate(learned) if learned else None,
        np.concatenate(spreads, axis=1) if spreads else None,
    )
