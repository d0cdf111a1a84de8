"""The likelihood of labels of many classes, stored as posteriors under a flat prior.

A label is Gaussian rows. In one part, with all of the covariance: K - 1 rows root(A) (I (x) x'),
where A is minus the second derivative of its log likelihood in the K - 1 contrasts (Laplace's
method; Bishop 2006, section 4.3.4). Or, where that is too much, in K parts, one for each class: a
row of precision p_k (1 - p_k), which is that of its own coefficients while the others' are held.
With many classes what is left out, -p_j p_k between two, is little: against all of the covariance,
30 to 100 classes, intervals of probabilities held the same within .01, of rare and common classes.
With few classes they are wider than they need be: of K equal ones by K / (K - 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor
from posterity.noise import LOG_2PI, KnownNoise
from posterity.posteriors._contrast_parts import (
    add_pseudo_row,
    pass_time,
    transform_features,
)
from posterity.posteriors._reads import read_along
from posterity.posteriors._site_removal import STREAM_TOLERANCE, TOGETHER_TOLERANCE
from posterity.posteriors._softmax_likelihood import Rows, compute_absence_site, helmert
from posterity.posteriors._softmax_mode import PRECISE, Objective, find_mode
from posterity.posteriors._softmax_prior import VAGUE_PRECISION, ContrastPrior
from posterity.posteriors._softmax_sites import (
    POINTS,
    LabelPoints,
    find_sites,
    place_around_row,
    place_points,
)
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.memory import Memory
from posterity.priors import GaussianPrior

# Where nothing at all is known of a direction, probabilities are as if its sd were this.
VAGUE_ROOT = 1e-2
# Numbers in memory at a time.
BLOCK_NUMBERS = 4_000_000
# Averages over what is open: points for all rows together, and how near the mean is to its place,
# in nats. Width and mean are found in turns, until the mean moves by less, in sds.
MOST_POINTS, CLOSE = 3_000, 1e-7
MOST_ROUNDS, MEAN_TOLERANCE = 6, 0.02

Joined = tuple[Factor, ...]


@dataclass
class Contrasts:
    """See the module; K classes, p columns.

    Parameters
    ----------
    separate
        Whether each class has a part of its own.
    parts
        One posterior of (K - 1) p coefficients, contrast by contrast, or K of p.
    constant, told
        Log of the constants of all rows; log density of the rows as they came.

    Examples
    --------
    >>> known = Contrasts.before_data(3, 2)
    >>> prior = ContrastPrior.of(np.eye(1), intercept=True)
    >>> known.learn(Rows(np.array([[1.0, 0.5]]), np.array([2]), np.ones(1)), prior, averaged=False)
    True
    >>> known.coordinates(known.join_prior(prior)).round(2)[1]
    array([3.45, 0.02])
    """

    n_classes: int
    n_columns: int
    separate: bool
    parts: tuple[LinearPosterior, ...]
    constant: float = 0.0
    log_predictive: float = 0.0
    read: tuple[float, Array, Joined] | None = field(default=None, repr=False)

    # How rows fade, and how many there are, is the same in all parts.
    @property
    def one(self) -> LinearPosterior:
        """The first part."""
        return self.parts[0]

    memory = read_along("one.memory")
    n_observations = read_along("one.n_observations")
    n_effective = read_along("one.n_effective")

    @classmethod
    def before_data(cls, n_classes: int, n_columns: int, *, separate: bool = False) -> Self:
        """Nothing known, and nothing is forgotten."""
        size = n_columns if separate else (n_classes - 1) * n_columns
        flat, noise = GaussianPrior(0.0, 0.0), KnownNoise(1.0)
        parts = tuple(
            LinearPosterior.before_data(flat, noise, size, intercept=False)
            for _ in range(n_classes if separate else 1)
        )
        return cls(n_classes, n_columns, separate, parts)

    def with_memory(self, memory: Memory) -> Self:
        """The same that forgets, before it has seen anything."""
        return replace(self, parts=tuple(part.with_memory(memory) for part in self.parts))

    def copy(self) -> Self:
        """An independent copy."""
        read = self.read and (*self.read[:2], tuple(f.copy() for f in self.read[2]))
        return replace(self, parts=tuple(part.copy() for part in self.parts), read=read)

    @property
    def basis(self) -> Array:
        """(K, R) the linear predictors, as sums of the R coordinates that are kept."""
        return np.eye(self.n_classes) if self.separate else helmert(self.n_classes)

    @property
    def places(self) -> list[range]:
        """The coordinates that each part is about."""
        r = 1 if self.separate else self.n_classes - 1
        return [range(start, start + r) for start in range(0, r * len(self.parts), r)]

    # ---- classes, columns, time ----------------------------------------------------------------

    def transform_features(self, matrix: Array) -> None:
        """Let each part's rows be ``x @ matrix``."""
        self.parts = tuple(transform_features(part, matrix) for part in self.parts)
        self.read = None

    def add_class(self, center: Array, prior: ContrastPrior) -> None:
        """Make room for one class more, of whose intercept little is believed.

        And learn that all rows so far, at their ``center`` (p,), were not of it.
        """
        p, k, weight = self.n_columns, self.n_classes - 1, self.n_effective
        self.n_classes += 1
        self.transform_features(np.eye(k * p, (k + 1) * p))
        row, target, precision, constant = np.zeros((1, (k + 1) * p)), 0.0, 0.0, 0.0
        if prior.intercept and prior.root[..., 0, 0].min() == 0.0:
            row[0, k * p :] = center
            self.parts = (add_pseudo_row(self.one, row, 0.0, VAGUE_PRECISION),)
        if weight > 0.0:
            mean, covariance = self.moments(center[None], self.join_prior(prior))
            site = compute_absence_site(weight, mean[0], float(covariance[0, -1, -1]))
            precision, target, constant = site
        row[0, k * p :] = center
        self.parts = (add_pseudo_row(self.one, row, target, precision),)
        self.constant += constant
        self.read = None

    def rotate(self, rotation: Array) -> None:
        """Let the contrasts V become ``rotation`` V."""
        self.transform_features(np.kron(rotation.T, np.eye(self.n_columns)).astype(np.float64))

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` has learned."""
        for part, its in zip(self.parts, other.parts, strict=True):
            part.memory.check_merging()
            part.factor.merge(its.factor)  # of no prior, which could have faded
        self.constant += other.constant
        self.log_predictive += other.log_predictive
        self.read = None

    def pass_time(self, x: Array, elapsed: float) -> None:
        """Let time pass before a row ``x`` (1, p)."""
        if elapsed > 0.0 and self.memory.forgets:
            for part, places in zip(self.parts, self.places, strict=True):
                pass_time(part, np.kron(np.eye(len(places)), x).astype(np.float64), elapsed)
            if self.memory.only_discounts:
                self.constant *= float(self.memory.discounts(np.array([elapsed]))[0])
            self.read = None

    # ---- learning ------------------------------------------------------------------------------

    def learn(
        self, rows: Rows, prior: ContrastPrior, *, averaged: bool, start: Joined | None = None
    ) -> bool:
        """Learn rows at the mode of what is known and of them, or by averages around it.

        The search starts from ``start``, which is near what will be known, if there is one. Returns
        whether the mode was reached.
        """
        reached = True
        if len(rows.X) == 1:
            around = self._place_around_one_row(rows, prior, averaged=averaged)
        else:
            around, reached = self._find_mode_of_rows(rows, prior, start, averaged=averaged)
        self._append(rows, around)
        return reached

    def unlearn(self, rows: Rows, prior: ContrastPrior, *, averaged: bool, together: bool) -> None:
        """Take out what ``rows`` say in what is known now: at its mean, or by averages around it.

        That is what they said where they were learned ``together``, at once with all others, and of
        the one that was learned last; others leave one after another. Raises
        ``NotInFactorError``.
        """
        last_first = range(len(rows.X) - 1, -1, -1)
        for part in [slice(None)] if together else [slice(i, i + 1) for i in last_first]:
            some = rows.of(part)
            mean, covariance = self.moments(some.X, self.join_prior(prior))
            n_points = max(1, MOST_POINTS // len(some.X)) if together else POINTS
            around = LabelPoints(mean, place_points(covariance, n_points) if averaged else None)
            sites, constant = find_sites(some, around, self.basis)
            parts = tuple(part.copy() for part in self.parts)
            rounding = TOGETHER_TOLERANCE if together else STREAM_TOLERANCE
            for one, site in zip(parts, sites, strict=True):
                gone = _share_weight(*site, some.total)
                one.factor.reduce(*gone, rounding=rounding, exact=together)
            self.parts, self.constant, self.read = parts, self.constant - constant, None

    def _place_around_one_row(
        self, rows: Rows, prior: ContrastPrior, *, averaged: bool
    ) -> LabelPoints:
        mean, covariance = self.moments(rows.X, self.join_prior(prior))
        linear_moments = covariance[0] if covariance.ndim == 3 else np.diag(covariance[0])
        row = rows.labels, float(rows.weights[0])
        return place_around_row(row, mean[0], linear_moments, self.basis, averaged=averaged)

    def _find_mode_of_rows(
        self, rows: Rows, prior: ContrastPrior, start: Joined | None, *, averaged: bool
    ) -> tuple[LabelPoints, bool]:
        """The mode of rows that come together, and whether it was reached."""
        joined, moved = self.join_prior(prior), None
        first = self.coordinates(start or joined)
        n_points = max(1, MOST_POINTS // len(rows.X))
        if averaged and start is not None:
            moved = place_points(self.moments(rows.X, start)[1], n_points)
        objective = Objective.with_factors(joined, rows, self.basis, moved)
        mode, reached = find_mode(objective, first, CLOSE if averaged else PRECISE)
        if not reached and first.any():
            # Far off, where nearly all labels are sure, a step leads anywhere.
            by_products = replace(objective, direct=False)
            mode, reached = find_mode(by_products, np.zeros_like(first))
        for _ in range(MOST_ROUNDS if averaged and reached else 0):
            around = LabelPoints(rows.X @ mode.T, moved)
            after = tuple(factor.copy() for factor in joined)
            for factor, site in zip(after, find_sites(rows, around, self.basis)[0], strict=True):
                factor.append(*site)
            moved = place_points(self.moments(rows.X, after)[1], n_points)
            last, (mode, _) = mode, find_mode(replace(objective, moved=moved), mode, CLOSE)
            steps = zip(after, (mode - last).reshape(len(after), -1), strict=True)
            if np.linalg.norm([factor.root @ step for factor, step in steps]) < MEAN_TOLERANCE:
                break
        return LabelPoints(rows.X @ mode.T, moved), reached

    def _append(self, rows: Rows, around: LabelPoints) -> None:
        """Append what ``rows`` say around their places."""
        sites, constant = find_sites(rows, around, self.basis)
        parts = tuple(part.copy() for part in self.parts)
        for part, site in zip(parts, sites, strict=True):
            X, y, shares = _share_weight(*site, rows.total)
            part.absorb(X, y, shares, np.zeros(len(X)))
        self.constant += constant
        self.parts = parts
        self.read = None

    # ---- reading -------------------------------------------------------------------------------

    def join_prior(self, prior: ContrastPrior) -> Joined:
        """The factors of data and of the prior that labels are met with, one a part; kept.

        They are made from both each time, so that they depend on nothing else.
        """
        if self.read is None or self.read[0] != prior.left or self.read[1] is not prior.root:
            self.read = prior.left, prior.root, self.join(prior)
        return self.read[2]

    def join(self, prior: ContrastPrior) -> Joined:
        """The factors of prior and data, one a part."""
        both = tuple(part.factor.copy() for part in self.parts)
        for factor, places in zip(both, self.places, strict=True):
            rows = prior.rows(places)
            factor.append(rows, np.zeros((len(rows), 1)))
        return both

    def coordinates(self, joined: Joined) -> Array:
        """(R, p) mean of the coordinates' coefficients."""
        return np.vstack([f.coefficients().reshape(-1, self.n_columns) for f in joined])

    def moments(self, X: Array, joined: Joined) -> tuple[Array, Array]:
        """Means (n, R) at the rows of ``X``, and covariances (n, R, R) or variances (n, R)."""
        mean = X @ self.coordinates(joined).T
        if not self.separate:
            return mean, self._covariances(X, _close_directions(joined[0].root))
        variances = np.empty_like(mean)
        for k, factor in enumerate(joined):
            half = solve_triangle(_close_directions(factor.root), X.T, transposed=True)
            variances[:, k] = np.sum(np.square(half), axis=0)
        return mean, variances

    def _covariances(self, X: Array, root: Array) -> Array:
        n, k, p = len(X), self.n_classes - 1, self.n_columns
        if n == 1:
            row = np.kron(np.eye(k), X)
            half = solve_triangle(root, row.T, transposed=True)
            return np.asarray((half.T @ half)[None])
        covariances = np.empty((n, k, k))
        inverse = solve_triangle(root, np.eye(k * p)).reshape(k, p, k * p)
        block = max(1, BLOCK_NUMBERS // (k * k * p))
        for start in range(0, n, block):
            part = slice(start, start + block)
            whitened = np.tensordot(X[part], inverse, axes=(1, 1))
            covariances[part] = whitened @ whitened.transpose(0, 2, 1)
        return covariances

    def log_density(self, prior: ContrastPrior) -> float:
        """Log density of the rows that are known; a flat direction has density 1."""
        value, total = self.constant, 0.0
        for factor, places in zip(self.join_prior(prior), self.places, strict=True):
            log_determinant, rank = prior.log_determinant_and_rank(places)
            total += log_determinant - factor.log_determinant()
            total += (factor.rank - rank) * LOG_2PI
            value -= 0.5 * float(factor.residual()[0, 0])
        # K parts have one coordinate more than there are contrasts, of which no label tells.
        share = 1.0 - 1.0 / self.n_classes if self.separate else 1.0
        return value + 0.5 * share * total


def _close_directions(root: Array) -> Array:
    """A triangle that can be solved with: where nothing is known, the sd is large."""
    triangle = root.copy()
    open_ = np.flatnonzero(np.diag(root) == 0.0)
    triangle[open_, open_] = VAGUE_ROOT
    return triangle


def _share_weight(X: Array, y: Array, weight: float) -> tuple[Array, Array, Array]:
    """The same rows, each with its share of the weight."""
    each = weight / len(X)
    return X / np.sqrt(each), y / np.sqrt(each), np.full(len(X), each)
