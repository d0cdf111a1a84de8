"""The covariance D = L L' that has the least deviance: Fisher scoring, then slopes alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from posterity.aliases import Array, Mask
from posterity.evidence._covariance_prior import CovariancePrior, Lower

# A deviance that is worse than any.
WORSE_THAN_ANY = 1e6

# Number of starting variances, from a tenth of one row's information to the variance of y.
STARTS = 4
# Slopes at which the quasi-Newton search restarts from its best point, in new units.
ROUGH_SLOPES = (3.0, 0.3)
# Most steps of Fisher scoring, and the largest change of a logarithm in one.
MOST_STEPS, LONGEST_STEP = 30, 1.5
# Fisher scoring is slow if a step is longer than this share of the last one; a point is near the
# optimum if no logarithm changes by more than this.
SLOW_STEP_RATIO, NEAR_OPTIMUM = 0.5, 0.3
# Most columns for which the curvature of each pair of entries is computed, and the smallest
# tolerance with more columns.
FEW_COLUMNS, WIDE_TOLERANCE = 32, 0.01


@dataclass(frozen=True)
class DeviancePoint:
    """The value at a root L of D: -2 log posterior density, with its gradient and information.

    To L (I + A) L', A symmetric: ``slope`` (p, p) is the one by A, ``information`` (g, p, p) what
    each group says: the deviance curves by sum tr(N A N A), but for what the noise takes back, of
    which there are ``residual_df`` observations, and by what ``prior`` adds.
    """

    root: Array
    value: float
    slope: Array
    information: Array
    residual_df: float
    prior: CovariancePrior

    def diagonalize(self) -> DeviancePoint:
        """The same D, with a root in which what the groups say together is diagonal."""
        basis = np.linalg.eigh(self.information.sum(axis=0)).eigenvectors
        slope, information = basis.T @ self.slope @ basis, basis.T @ self.information @ basis
        return replace(self, root=self.root @ basis, slope=slope, information=information)

    def compute_units(self, lower: Lower) -> SearchDirections:
        """Directions of the entries of K, D = L K K' L', as long as their standard deviations."""
        curvature = self._compute_curvature(lower)
        together, alone = _split(lower, curvature.together)
        matrix = curvature.matrix + self.prior.curvature(self.root, together)
        values, directions = np.linalg.eigh(matrix)
        return SearchDirections(
            curvature.together,
            np.asarray(directions / np.sqrt(np.maximum(values, 1.0))),
            1.0 / np.sqrt(curvature.alone + self.prior.curvature_of_shape(alone)),
        )

    def compute_volume(self, lower: Lower) -> float:
        """Return -2 log of the share of the prior's volume that is left (Laplace's formula).

        Of the shape of D only: of its scale all priors know as little.
        """
        curvature = self._compute_curvature(lower)
        together, alone = _split(lower, curvature.together)
        own, matrix = self.prior.curvature_of_shape(together), curvature.matrix
        scale = np.where(together[0] == together[1], 1.0 / np.sqrt(len(self.root)), 0.0)
        matrix = matrix - np.outer(scale, scale @ matrix)
        matrix = matrix - np.outer(matrix @ scale, scale)
        values = np.linalg.eigvalsh(matrix / np.sqrt(np.outer(own, own)))
        volume = np.sum(np.log1p(np.maximum(values, 0.0)))
        volume += np.sum(np.log1p(curvature.alone / self.prior.curvature_of_shape(alone)))
        return float(volume)

    def compute_spread(self, lower: Lower) -> Array:
        """(p,) variances of the logarithms of D along its root's columns (Laplace's formula)."""
        variances = 2.0 * self.compute_units(lower).compute_squares()
        return 4.0 * variances[lower[0] == lower[1]]

    def _compute_curvature(self, lower: Lower) -> Curvature:
        """Return the expected curvature of the groups' deviance in the entries of K."""
        p, N, total = len(self.root), self.information, self.information.sum(axis=0)
        if p <= FEW_COLUMNS:
            together = np.ones(len(lower[0]), dtype=bool)
            (i, j), flat = lower, N.reshape(len(N), p * p)
            products = (flat.T @ flat).reshape(p, p, p, p)
            one, two = (i[:, None], j[:, None]), (i[None], j[None])
            both = (
                products[one[0], two[0], one[1], two[1]] + products[one[0], two[1], one[1], two[0]]
            )
            total = total[i, j]
            alone = np.zeros(0)
        else:
            together, (i, j) = lower[0] == lower[1], _split(lower, lower[0] == lower[1])[1]
            squares, diagonals = np.sum(N**2, axis=0), np.diagonal(N, axis1=1, axis2=2)
            both, total = 2.0 * squares, np.diagonal(total)
            alone = 2.0 * (diagonals.T @ diagonals + squares)[i, j]
        both -= np.outer(total, total) * (2.0 / max(self.residual_df, 1.0))
        return Curvature(together, 2.0 * both, alone)


@dataclass(frozen=True)
class Curvature:
    """A matrix (k, k) for the entries of K that go ``together`` (e,), a number for each ``alone``.

    Of few columns all entries go together, of many the variances, and each covariance is alone.
    """

    together: Mask
    matrix: Array
    alone: Array


@dataclass(frozen=True)
class SearchDirections:
    """Directions (k, k) of the entries that go ``together`` (e,), and lengths of all others."""

    together: Mask
    directions: Array
    lengths: Array

    def multiply(self, steps: Array) -> Array:
        """The entries (e,) that so many units of each direction make."""
        return self._apply(self.directions, steps)

    def multiply_transposed(self, slopes: Array) -> Array:
        """Slopes by the directions, from those by the entries (e,)."""
        return self._apply(self.directions.T, slopes)

    def compute_squares(self) -> Array:
        """(e,) variances of the entries."""
        squares = np.empty(len(self.together))
        squares[self.together] = np.square(self.directions).sum(axis=1)
        squares[~self.together] = np.square(self.lengths)
        return squares

    def _apply(self, matrix: Array, values: Array) -> Array:
        result = np.empty(len(values))
        result[self.together] = matrix @ values[self.together]
        result[~self.together] = self.lengths * values[~self.together]
        return result


def _split(lower: Lower, some: Mask) -> tuple[Lower, Lower]:
    """The rows and columns of some entries, and of all others."""
    (i, j) = lower
    return (i[some], j[some]), (i[~some], j[~some])


class Deviance(Protocol):
    """-2 log evidence as a function of a root L of D."""

    def value(self, root: Array) -> float:
        """Return the deviance at a root."""
        ...

    def evaluate(self, root: Array) -> DeviancePoint:
        """Return the deviance at a root, with its gradient and information."""
        ...


def search(task: Deviance, p: int, least: float, largest: float, tolerance: float) -> DeviancePoint:
    """The best D, from the best of those between ``least`` and ``largest`` I.

    ``tolerance`` is how far D may be from the best one, in standard deviations of what the data
    leave open.
    """
    roots = [np.sqrt(scale) * np.eye(p) for scale in np.geomspace(least, largest, STARTS)]
    return search_from(task, min(roots, key=task.value), tolerance)


def search_from(task: Deviance, root: Array, tolerance: float) -> DeviancePoint:
    """The best D from a root of another."""
    lower: Any = np.tril_indices(len(root))
    if len(root) > FEW_COLUMNS:
        tolerance = max(tolerance, WIDE_TOLERANCE)
    best, left = _run_fisher_scoring(task, task.evaluate(root), lower, tolerance)
    if left <= tolerance:
        return best
    for until in (tolerance,) if left <= ROUGH_SLOPES[0] else (*ROUGH_SLOPES, tolerance):
        best = _search_by_gradient(task, best, lower, until)
    return best


def _run_fisher_scoring(
    task: Deviance, best: DeviancePoint, lower: Lower, tolerance: float
) -> tuple[DeviancePoint, float]:
    """Run Fisher scoring while steps improve; also return the longest step of the last round.

    In units of their own standard deviations, so that ``tolerance`` is how far each entry may be
    from the best one in these. It ends, too, where steps get shorter slowly, as those of many
    columns do: slopes alone are faster then.
    """
    last = np.inf
    for _ in range(MOST_STEPS):
        best = best.diagonalize()
        unit = best.compute_units(lower)
        entries = 2.0 * best.slope[lower]
        steps = -unit.multiply_transposed(entries)
        longest = float(np.abs(steps).max(initial=0.0))
        entries = unit.multiply(steps)
        far = float(np.abs(entries).max(initial=0.0))
        if longest <= tolerance or (longest > SLOW_STEP_RATIO * last and far <= NEAR_OPTIMUM):
            return best, longest
        last = longest
        factor = _build_factor(entries * min(1.0, LONGEST_STEP / far), lower)
        point = _evaluate_root(task, best.root @ factor)
        if point is None or not point.value < best.value:
            break
        best = point
    return best, last


def _search_by_gradient(
    task: Deviance, start: DeviancePoint, lower: Lower, tolerance: float
) -> DeviancePoint:
    """The best D by its slopes alone, in the same units around ``start``."""
    start = start.diagonalize()
    unit = start.compute_units(lower)
    found = [start]

    def deviance(steps: Array) -> tuple[float, Array]:
        K = _build_factor(unit.multiply(steps), lower)
        point = _evaluate_root(task, start.root @ K)
        if point is None:
            return WORSE_THAN_ANY * (1.0 + abs(start.value)), np.zeros_like(steps)
        if point.value < found[0].value:
            found[0] = point
        by_entry = 2.0 * np.linalg.solve(K.T, point.slope)[lower]
        by_entry *= np.where(lower[0] == lower[1], K[lower], 1.0)
        return point.value, unit.multiply_transposed(np.asarray(by_entry))

    # So far from the best in all entries together, in their standard deviations.
    enough = tolerance**2 / max(abs(start.value), 1.0)
    minimize(
        deviance,
        np.zeros(len(lower[0])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300, "maxcor": 20, "gtol": tolerance, "ftol": enough},
    )
    return found[0]


def _evaluate_root(task: Deviance, root: Array) -> DeviancePoint | None:
    """Evaluate the deviance at a root; None where a direction has collapsed."""
    try:
        return task.evaluate(root)
    except np.linalg.LinAlgError:
        return None


def _build_factor(entries: Array, lower: Lower) -> Array:
    """Build K from its entries, those of the diagonal in logarithms and bounded."""
    p = int(lower[0][-1]) + 1
    K = np.zeros((p, p))
    logs = np.exp(np.clip(entries, -10.0, 10.0))
    K[lower] = np.where(lower[0] == lower[1], logs, np.clip(entries, -1e4, 1e4))
    return K
