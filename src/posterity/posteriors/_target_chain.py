"""What is read of several targets where rows lack some of them.

Rows that bring the same targets share a triangle, and that is all that is kept. To be read, targets
are ordered by how many rows brought them, and each *link* of the chain

    p(y_1 | x)  p(y_2 | x, y_1)  p(y_3 | x, y_1, y_2) ...

comes from the rows that brought its target: in these the joint posterior is the ordinary one
(:class:`JointReading`). Where the pattern is monotone, so that whoever brings a target brings
all those before it, the chain is the posterior (Little and Rubin 2002, section 7.4): each link has
a prior and a likelihood of its own. With (m, Omega, nu) what a link says of x, and c the slopes of
its targets B on those before, A,

    E y_B   = m_B + c'(E y_A - m_A)
    Cov y_B = c' K c + (nu + E delta) / (nu + k - 2) (Omega_BB - c' Omega_AB),
    E delta = (E y_A - m_A)' Omega_AA^-1 (E y_A - m_A) + tr(Omega_AA^-1 K),     K = Cov y_A .

Where it is not monotone, a row of B that lacks some of A has them filled in by their expectation,
and by rows that stand for their variance: the expectation step of an EM algorithm, done until
nothing changes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posterity.aliases import Array
from posterity.distributions import JointPrediction, MultivariateMixture, Normal, StudentT
from posterity.distributions._standard_t import MOST_DF
from posterity.distributions.joint_prediction import correlations_of
from posterity.factor import Factor
from posterity.noise import Distribution, Joint
from posterity.posteriors._target_coefficients import find_components
from posterity.posteriors._target_reading import JointReading
from posterity.posteriors.gaussian import LinearPosterior

Pattern = tuple[int, ...]
Patterns = Mapping[Pattern, Factor]

# Most rounds of filling in, and the tolerance of the change relative to the largest number.
MOST_ROUNDS, SMALLEST_CHANGE = 20, 1e-6


@dataclass(frozen=True)
class Link:
    """Targets ``own`` that the same rows have, and ``before`` them those with more rows.

    ``reading`` is of [before, own] in the rows of ``own``, ``slopes`` (k, b) are of own targets
    on those before, and ``products`` (k + b, k + b) are Psi per degree of freedom.
    """

    before: Pattern
    own: Pattern
    reading: JointReading
    slopes: Array
    products: Array

    @classmethod
    def of(cls, before: Pattern, own: Pattern, reading: JointReading) -> Link:
        """The posterior of the own targets in these rows, given the targets before."""
        k, correlation = len(before), reading.correlation()
        rows = reading.residual_df + 2.0 * reading.wide.noise.parameters[1]
        sizes = np.sqrt(np.diag(reading.products()) / max(rows, 1.0))
        units = np.where(sizes[:k] > 0.0, sizes[:k], np.inf)
        slopes = np.linalg.solve(correlation[:k, :k], correlation[:k, k:])
        slopes = slopes * sizes[k:] / units[:, None]
        return cls(before, own, reading, slopes, sizes[:, None] * correlation * sizes)


@dataclass(frozen=True)
class ChainReading:
    """The links, from the targets that most rows have to those that fewest have."""

    links: list[Link]

    @classmethod
    def of(cls, whole: LinearPosterior, patterns: Patterns) -> ChainReading:
        """What ``whole`` says, of the rows that brought all targets, and those of ``patterns``."""
        blocks = find_blocks(patterns, whole.factor.n_targets)
        holes = any(
            set(pattern) & set(own) and not set(before) <= set(pattern)
            for before, own in blocks
            for pattern in patterns
        )
        # What is filled in first knows of no dependence.
        first = [((), own) for _, own in blocks] if holes else blocks
        chain = cls([Link.of(*block, read_rows_of(whole, patterns, *block)) for block in first])
        for _ in range(MOST_ROUNDS if holes else 0):
            last = chain.moments
            chain = cls(
                [Link.of(*block, read_rows_of(whole, patterns, *block, last)) for block in blocks]
            )
            if all(
                np.abs(new - old).max() <= SMALLEST_CHANGE * np.abs(new).max()
                for new, old in zip(chain.moments, last, strict=True)
            ):
                break
        return chain

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Coefficients (p, q) and covariance of the noise (q, q)."""
        q = sum(len(link.own) for link in self.links)
        means = np.zeros((self.links[0].reading.wide.n_coefficients, q))
        noise = np.zeros((q, q))
        for link in self.links:
            before, own, k = list(link.before), list(link.own), len(link.before)
            each = link.reading.coefficients()
            means[:, own] = each[:, k:] + (means[:, before] - each[:, :k]) @ link.slopes
            between = link.slopes.T @ noise[np.ix_(before, before)]
            left = link.products[k:, k:] - link.slopes.T @ link.products[:k, k:]
            noise[np.ix_(own, before)], noise[np.ix_(before, own)] = between, between.T
            noise[np.ix_(own, own)] = left + between @ link.slopes
        return means, noise

    def predictive(self, X: Array, names: tuple[str, ...] | None) -> JointPrediction:
        """Joint distribution of the targets of new observations at the rows of ``X``."""
        n, q = len(X), len(self.moments[1])
        mean, spread = np.zeros((n, q)), np.zeros((n, q, q))
        df = np.full((n, q), np.inf)
        predictions = [link.reading.predictive(X, None) for link in self.links]
        least = min((float(one.df.min(initial=np.inf)) for one in predictions), default=np.inf)
        shift = 2.0 if least > 2.0 else 0.0
        for link, one in zip(self.links, predictions, strict=True):
            own = list(link.own)
            mean[:, own], between, among = condition_on_others(link, one, mean, spread, shift)
            spread[np.ix_(range(n), own, link.before)] = between
            spread[np.ix_(range(n), link.before, own)] = np.swapaxes(between, 1, 2)
            spread[np.ix_(range(n), own, own)] = among
            freedom = np.broadcast_to(getattr(one.marginals, "df", np.inf), one.shape)
            df[:, own] = freedom[:, len(link.before) :]
        marginals = student_t(mean, np.einsum("nii->ni", spread), df, shift)
        finite = np.where(np.isfinite(spread), spread, 0.0)
        return JointPrediction(marginals, correlations_of(finite), names=names)

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        return self.moments[0].copy()

    def joints(self, names: tuple[str, ...]) -> list[Joint]:
        """Joint distributions of [intercept, coefficients] of each: around the chain's means.

        The uncertainty of each target's coefficients comes from the rows that brought it.
        """
        pairs = zip((one.joint(names) for one in self.each), self.moments[0].T, strict=True)
        return [shift_mean(mean, joint) for joint, mean in pairs]

    def correlation(self) -> Array:
        """(q, q) correlations of the targets given the features."""
        return correlations_of(self.moments[1])

    @property
    def each(self) -> list[LinearPosterior]:
        """Posteriors for reading, of each target by the rows that have it."""
        places = {
            target: one
            for link in self.links
            for target, one in zip(link.own, link.reading.each[len(link.before) :], strict=True)
        }
        return [places[target] for target in sorted(places)]

    @property
    def log_evidence(self) -> float:
        """The log evidence log p(y) by the chain: each link's, less that of the targets before."""
        total = 0.0
        for link in self.links:
            if not link.reading.wide.n_observations:
                continue
            total += link.reading.log_evidence
            if link.before:
                wide = link.reading.wide.of_target(list(range(len(link.before))))
                total -= JointReading(wide).log_evidence
        return total


def find_blocks(patterns: Patterns, q: int) -> list[tuple[Pattern, Pattern]]:
    """(before, own) of each link: targets that came with the same rows are in one."""
    members: dict[tuple[Pattern, ...], list[int]] = {}
    for target in range(q):
        key = tuple(sorted(pattern for pattern in patterns if target in pattern))
        members.setdefault(key, []).append(target)
    counts = {key: sum(patterns[pattern].count for pattern in key) for key in members}
    blocks: list[tuple[Pattern, Pattern]] = []
    before: list[int] = []
    for key in sorted(members, key=lambda key: (-counts[key], members[key])):
        blocks.append((tuple(before), tuple(members[key])))
        before += members[key]
    return blocks


def read_rows_of(
    whole: LinearPosterior,
    patterns: Patterns,
    before: Pattern,
    own: Pattern,
    moments: tuple[Array, Array] | None = None,
) -> JointReading:
    """What the rows that brought ``own`` say of [before, own]; gaps are filled by ``moments``."""
    targets = [*before, *own]
    wide = whole.of_target(targets)
    count, seen = wide.factor.count, wide.factor.seen
    for pattern, factor in patterns.items():
        if not set(own) <= set(pattern):
            continue
        X, y = fill_gaps(factor, pattern, targets, moments)
        if wide.memory.forgets:  # these rows have faded
            wide.factor.append(X, y, None, intercept=False)
        else:
            wide.absorb(X, y, None, np.zeros(len(X)))
        count, seen = count + factor.count, seen + factor.seen
    wide.factor.set_triangle(wide.factor.triangle, count, seen)
    return JointReading(wide)


def fill_gaps(
    factor: Factor, pattern: Pattern, targets: Sequence[int], moments: tuple[Array, Array] | None
) -> tuple[Array, Array]:
    """Rows [X, y] of ``targets`` that say what those of a pattern do, gaps filled in.

    A missing target has the expectation w'x + g'(y_o - W_o'x), g = Sigma_oo^-1 Sigma_om, and as
    much variance as that leaves, for each row.
    """
    p, width = factor.n_coefficients, len(factor.triangle)
    rows = np.ascontiguousarray(factor.triangle[:, :width])
    missing = [target for target in targets if target not in pattern]
    y = np.zeros((width + len(missing), len(targets)))
    X = np.vstack([rows[:, :p], np.zeros((len(missing), p))])
    for place, target in enumerate(targets):
        if target in pattern:
            y[:width, place] = rows[:, p + pattern.index(target)]
    if missing:
        assert moments is not None
        weights, sigma = moments
        observed, places = list(pattern), [list(targets).index(target) for target in missing]
        between = sigma[np.ix_(observed, missing)]
        slopes = np.linalg.pinv(sigma[np.ix_(observed, observed)], hermitian=True) @ between
        off = rows[:, p:] - rows[:, :p] @ weights[:, observed]
        y[:width, places] = rows[:, :p] @ weights[:, missing] + off @ slopes
        left = sigma[np.ix_(missing, missing)] - slopes.T @ between
        values, vectors = np.linalg.eigh(0.5 * (left + left.T))
        roots = np.sqrt(factor.count * np.maximum(values, 0.0))[:, None] * vectors.T
        y[width:, places] = roots
    return X, y


def shift_mean(mean: Array, joint: Joint) -> Joint:
    """The same distribution about another mean."""
    step, (parts, weights) = mean - joint.mean, find_components(joint)
    moved = [copy.copy(part) for part in parts]
    for part in moved:
        part.mean = part.mean + step
    return moved[0] if parts[0] is joint else MultivariateMixture(moved, weights)


def condition_on_others(
    link: Link, predictions: JointPrediction, mean: Array, spread: Array, shift: float
) -> tuple[Array, Array, Array]:
    """Means (n, b) of a link's targets, covariances with those before, and among themselves."""
    k, before, slopes = len(link.before), list(link.before), link.slopes
    scale, correlation = predictions.scale, predictions.correlation
    with np.errstate(invalid="ignore"):
        omega = scale[:, :, None] * correlation * scale[:, None, :]
    nu = np.minimum(predictions.df, MOST_DF)
    if not k:
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = nu / (nu - shift)
        return predictions.loc, np.zeros((len(mean), len(link.own), 0)), _times(omega, grown)
    off = mean[:, before] - predictions.loc[:, :k]
    some = spread[:, before][:, :, before]
    usable = np.isfinite(omega).all(axis=(1, 2)) & (np.einsum("nii->ni", omega) > 0.0).all(axis=1)
    eye = np.eye(k + len(link.own))
    inner = np.where(usable[:, None, None], omega, eye)
    finite = np.where(np.isfinite(some), some, 0.0)
    inverse = np.linalg.inv(inner[:, :k, :k])
    delta = np.einsum("ni,nij,nj->n", off, inverse, off)
    delta += np.einsum("nij,nji->n", inverse, finite)
    spreading = (nu + np.where(usable, delta, 0.0)) / (nu + k - shift)
    spreading = np.where(predictions.df >= MOST_DF, 1.0, spreading)
    tied = inverse @ inner[:, :k, k:]
    left = inner[:, k:, k:] - np.swapaxes(inner[:, :k, k:], 1, 2) @ tied
    left = np.where(usable[:, None, None], left, omega[:, k:, k:])
    between = slopes.T @ finite
    among = _times(left, spreading) + between @ slopes
    return predictions.loc[:, k:] + off @ slopes, between, among


def _times(matrices: Array, factors: Array) -> Array:
    with np.errstate(invalid="ignore"):
        grown = matrices * factors[:, None, None]
    return np.where(np.isnan(grown), np.inf, grown)


def student_t(mean: Array, spread: Array, df: Array, shift: float) -> Distribution:
    """Marginals with these means and variances; scales themselves where variances are infinite."""
    finite = np.minimum(df, MOST_DF)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(spread * (finite - shift) / np.where(finite == 0.0, 1.0, finite))
    scale = np.where(np.isfinite(scale), scale, np.inf)
    return Normal(mean, scale) if np.isinf(df).all() else StudentT(df, mean, scale)


__all__ = ["ChainReading", "Pattern"]
