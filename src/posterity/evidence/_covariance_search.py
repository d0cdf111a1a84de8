"""The covariance D = L L' that has the least deviance: Fisher scoring, then slopes alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from posterity.evidence._covariance_prior import CovariancePrior, Lower

Array = NDArray[np.float64]
# A deviance that is worse than any.
FAR = 1e6

# How many variances, from a tenth of a row's say to the variance of y, are tried for a start.
STARTS = 4
# Slopes at which the search begins anew, from what it has found.
ROUGH = (3.0, 0.3)
# Steps of Fisher scoring at most, and the longest logarithm in one.
MOST_STEPS, LONGEST_STEP = 30, 1.5
# Columns up to which the search knows how each two variances or covariances go together.
FEW_COLUMNS = 32


@dataclass(frozen=True)
class Point:
    """What a root L of D is worth: -2 log posterior density, and how it changes.

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

    def diagonalize(self) -> Point:
        """The same D, with a root in which what the groups say together is diagonal."""
        basis = np.linalg.eigh(self.information.sum(axis=0)).eigenvectors
        slope, information = basis.T @ self.slope @ basis, basis.T @ self.information @ basis
        return replace(self, root=self.root @ basis, slope=slope, information=information)

    def units(self, lower: Lower) -> Array:
        """Directions of the entries of K, D = L K K' L', as long as their standard deviations.

        From the expected curvature: (e, e) for e entries. Of many columns each entry is taken by
        itself: (e,).
        """
        curvature = self._compute_curvature(lower)
        if curvature.ndim == 1:
            return np.asarray(1.0 / np.sqrt(curvature + self.prior.curvature_of_shape(lower)))
        values, directions = np.linalg.eigh(curvature + self.prior.curvature(self.root, lower))
        return np.asarray(directions / np.sqrt(np.maximum(values, 1.0)))

    def compute_volume(self, lower: Lower) -> float:
        """-2 log of the part of the prior's volume that the groups leave (Laplace's formula).

        Of the shape of D only: of its scale all priors know as little.
        """
        curvature, own = self._compute_curvature(lower), self.prior.curvature_of_shape(lower)
        if curvature.ndim == 1:
            return float(np.sum(np.log1p(curvature / own)))
        scale = np.where(lower[0] == lower[1], 1.0 / np.sqrt(len(self.root)), 0.0)
        curvature = curvature - np.outer(scale, scale @ curvature)
        curvature = curvature - np.outer(curvature @ scale, scale)
        values = np.linalg.eigvalsh(curvature / np.sqrt(np.outer(own, own)))
        return float(np.sum(np.log1p(np.maximum(values, 0.0))))

    def compute_spread(self, lower: Lower) -> Array:
        """(p,) variances of the logarithms of D along its root's columns (Laplace's formula)."""
        squares = np.square(self.units(lower))
        variances = 2.0 * (squares if squares.ndim == 1 else squares.sum(axis=1))
        return 4.0 * variances[lower[0] == lower[1]]

    def _compute_curvature(self, lower: Lower) -> Array:
        """How the groups' deviance curves along the entries of K; of many, each by itself."""
        N, (i, j) = self.information, lower
        if len(self.root) > FEW_COLUMNS:
            diagonals = np.diagonal(N, axis1=1, axis2=2)
            return np.asarray(2.0 * (diagonals.T @ diagonals + np.sum(N**2, axis=0))[i, j])
        p = len(self.root)
        flat = N.reshape(len(N), p * p)
        products = (flat.T @ flat).reshape(p, p, p, p)
        one, two = (i[:, None], j[:, None]), (i[None], j[None])
        both = products[one[0], two[0], one[1], two[1]] + products[one[0], two[1], one[1], two[0]]
        total = N.sum(axis=0)[i, j]
        both -= np.outer(total, total) * (2.0 / max(self.residual_df, 1.0))
        return np.asarray(2.0 * both)


class Deviance(Protocol):
    """-2 log evidence as a function of a root L of D."""

    def value(self, root: Array) -> float:
        """What it is at a root."""
        ...

    def at(self, root: Array) -> Point:
        """What it is there, and how it changes."""
        ...


def search(task: Deviance, p: int, least: float, largest: float, tolerance: float) -> Point:
    """The best D, from the best of those between ``least`` and ``largest`` I.

    ``tolerance`` is how far D may be from the best one, in standard deviations of what the data
    leave open.
    """
    roots = [np.sqrt(scale) * np.eye(p) for scale in np.geomspace(least, largest, STARTS)]
    return search_from(task, min(roots, key=task.value), tolerance)


def search_from(task: Deviance, root: Array, tolerance: float) -> Point:
    """The best D from a root of another."""
    lower: Any = np.tril_indices(len(root))
    best, found = _run_fisher_scoring(task, task.at(root), lower, tolerance)
    for until in () if found else (*ROUGH, tolerance):
        best = _search_by_gradient(task, best, lower, until)
    return best


def _run_fisher_scoring(
    task: Deviance, best: Point, lower: Lower, tolerance: float
) -> tuple[Point, bool]:
    """Fisher scoring as long as each step is for the better; also whether it has come to its end.

    In units of their own standard deviations, so that ``tolerance`` is how far each entry may be
    from the best one in these.
    """
    for _ in range(MOST_STEPS):
        best = best.diagonalize()
        unit = best.units(lower)
        entries = 2.0 * best.slope[lower]
        steps = -_multiply(unit.T, entries)
        if np.abs(steps).max(initial=0.0) <= tolerance:
            return best, True
        entries = _multiply(unit, steps)
        entries *= min(1.0, LONGEST_STEP / np.abs(entries).max())
        point = _evaluate_root(task, best.root @ _build_factor(entries, lower))
        if point is None or not point.value < best.value:
            break
        best = point
    return best, False


def _search_by_gradient(task: Deviance, start: Point, lower: Lower, tolerance: float) -> Point:
    """The best D by its slopes alone, in the same units around ``start``."""
    start = start.diagonalize()
    unit = start.units(lower)
    found = [start]

    def deviance(steps: Array) -> tuple[float, Array]:
        K = _build_factor(_multiply(unit, steps), lower)
        point = _evaluate_root(task, start.root @ K)
        if point is None:
            return FAR * (1.0 + abs(start.value)), np.zeros_like(steps)
        if point.value < found[0].value:
            found[0] = point
        by_entry = 2.0 * np.linalg.solve(K.T, point.slope)[lower]
        by_entry *= np.where(lower[0] == lower[1], K[lower], 1.0)
        return point.value, _multiply(unit.T, np.asarray(by_entry))

    minimize(
        deviance,
        np.zeros(len(lower[0])),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 300, "maxcor": 20, "gtol": tolerance, "ftol": 1e-15},
    )
    return found[0]


def _multiply(unit: Array, entries: Array) -> Array:
    """A matrix (e, e), or the diagonal (e,) of one, times entries (e,)."""
    return np.asarray(unit * entries if unit.ndim == 1 else unit @ entries)


def _evaluate_root(task: Deviance, root: Array) -> Point | None:
    """What is known at a root, or None where a direction has collapsed."""
    try:
        return task.at(root)
    except np.linalg.LinAlgError:
        return None


def _build_factor(entries: Array, lower: Lower) -> Array:
    """K from its entries, those of the diagonal in logarithms; none is out of all proportion."""
    p = int(lower[0][-1]) + 1
    K = np.zeros((p, p))
    logs = np.exp(np.clip(entries, -10.0, 10.0))
    K[lower] = np.where(lower[0] == lower[1], logs, np.clip(entries, -1e4, 1e4))
    return K
