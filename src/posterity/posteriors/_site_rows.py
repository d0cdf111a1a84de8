"""Learning row after row: each row's site is found from what was believed of its eta before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.evidence import matched
from posterity.factor.rows import SiteRows
from posterity.factor.sites import SiteCode, learn_sites
from posterity.kernel import find_sites as kernel_sites
from posterity.likelihoods import Likelihood, Sites, laplace_sites, moment_sites
from posterity.posteriors.evidence import EvidencePosterior
from posterity.posteriors.fading import FadingPosterior
from posterity.posteriors.gaussian import LinearPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Learned:
    """Mean and variance (n,) of each eta before its row, offset included, and the row's site."""

    mean: Array
    variance: Array
    sites: Sites

    @property
    def log_scale(self) -> Array:
        """(n,) log of each site's constant."""
        return self.sites.log_scale(self.mean, self.variance)


def find_sites(
    likelihood: Likelihood,
    approximation: str,
    y: Array,
    mean: Array,
    variance: Array,
    weights: Array,
) -> Sites:
    """Sites by the approximation of that name; in the kernel, where that knows the likelihood."""
    known = likelihood.kernel_code
    if known is not None:
        moments = approximation == "moments"
        told = kernel_sites(*known, moments, y, mean, variance, weights)
        return Sites(*told)
    find = laplace_sites if approximation == "laplace" else moment_sites
    return find(likelihood, y, mean, variance, weights)


def believed(posterior: LinearPosterior, X: Array) -> tuple[Array, Array]:
    """Mean and variance (n,) of x.w; infinite where a direction is open."""
    if isinstance(posterior, EvidencePosterior):
        nodes = posterior.nodes
        told = [believed(node, X) for node in nodes.posteriors]
        added = posterior.unseen(nodes, X)
        if added is not None:  # the noise of sites has variance 1
            told = [(mean, var + more) for (mean, var), more in zip(told, added, strict=True)]
        if nodes.alone:
            return told[0]
        scales = np.sqrt([variance for _, variance in told])
        mean, scale = matched(np.array([mean for mean, _ in told]), scales, nodes.weights)
        return mean, scale * scale
    mean, leverage = posterior.factor.predict(X, intercept=posterior.intercept)
    return mean[:, 0], leverage


def learn_rows(
    posterior: LinearPosterior, likelihood: Likelihood, approximation: str, rows: SiteRows
) -> Learned:
    """Learn row after row in ``posterior``: in the kernel, where that knows how."""
    if isinstance(posterior, EvidencePosterior):
        return _learn_with_evidence(posterior, likelihood, approximation, rows)
    known = likelihood.kernel_code
    if known is None or not _kernel_learns(posterior):
        return one_by_one(posterior, likelihood, approximation, rows)
    discounts = prior = None
    if isinstance(posterior, FadingPosterior):
        strategy = posterior.strategy
        elapsed = rows.elapsed.copy()
        if posterior.factor.seen == 0.0:  # before the first row there is nothing to forget
            elapsed[: int(np.argmax(rows.weights > 0.0)) + 1] = 0.0
        discounts = strategy.discounts(elapsed)  # type: ignore[attr-defined]
        prior = posterior.prior if strategy.keeps_prior else None
    before = learn_sites(
        posterior.factor,
        SiteCode(*known, approximation == "moments"),
        replace(rows, intercept=posterior.intercept),
        discounts,
        prior,
    )
    sites = Sites(before.precision, before.target, before.log_normalizer)
    return Learned(before.mean, before.variance, sites)


def _kernel_learns(posterior: LinearPosterior) -> bool:
    if type(posterior) is LinearPosterior:
        return True
    return isinstance(posterior, FadingPosterior) and posterior.strategy.only_discounts


def one_by_one(
    posterior: LinearPosterior, likelihood: Likelihood, approximation: str, rows: SiteRows
) -> Learned:
    """The plain way, for any posterior: believe, find the site, append it as a row."""
    learned = []
    fades = isinstance(posterior, FadingPosterior)
    nothing, still = np.zeros(1), np.zeros((1, 1))
    for i in range(len(rows)):
        row = rows[i : i + 1]
        elapsed = row.elapsed.copy()
        if fades:  # what has passed is forgotten before the row is predicted
            posterior.absorb(row.X, still, nothing, elapsed)
            elapsed = np.zeros(1)
        mean, variance = believed(posterior, row.X)
        mean = mean + row.offsets
        sites = find_sites(likelihood, approximation, row.y, mean, variance, row.weights)
        target = (sites.target - row.offsets)[:, None]
        posterior.absorb(row.X, target, sites.precision, elapsed)
        learned.append(Learned(mean, variance, sites))
    return joined(learned)


def _learn_with_evidence(
    posterior: EvidencePosterior, likelihood: Likelihood, approximation: str, rows: SiteRows
) -> Learned:
    """In stretches between which the prior is chosen anew; one node learns, the data go along."""
    learned = []
    first = 0
    while first < len(rows):
        stream = posterior._stream()
        stop = posterior._stretch(stream, rows.X, rows.weights, first)
        part = rows[first:stop]
        (node,) = stream.posteriors
        told = learn_rows(node, likelihood, approximation, part)
        target = (told.sites.target - part.offsets)[:, None]
        posterior._learn(part.X, target, told.sites.precision, part.elapsed)
        learned.append(told)
        first = stop
    return joined(learned)


def joined(parts: Sequence[Learned]) -> Learned:
    """One after another."""
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0)

    def all_of(values: list[Array]) -> Array:
        return np.concatenate([nothing, *values])

    sites = Sites(
        all_of([part.sites.precision for part in parts]),
        all_of([part.sites.target for part in parts]),
        all_of([part.sites.log_normalizer for part in parts]),
    )
    return Learned(
        all_of([part.mean for part in parts]), all_of([part.variance for part in parts]), sites
    )
