"""Links of the chain of targets that not all rows brought: see :mod:`.missing_targets`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.distributions import JointPrediction, MultivariateMixture, StudentT
from posterity.distributions._standard_t import MOST_DF
from posterity.factor import Factor
from posterity.noise import Distribution, Joint
from posterity.posteriors.targets import TargetsPosterior, stack_targets

Array = NDArray[np.float64]
Pattern = tuple[int, ...]


@dataclass(frozen=True)
class Link:
    """Targets ``own`` that the same rows have, and ``before`` them those with more rows.

    ``posterior`` is of [before, own] in the rows of ``own``, ``slopes`` (k, b) are of own targets
    on those before, and ``products`` (k + b, k + b) are Psi per degree of freedom.
    """

    before: Pattern
    own: Pattern
    posterior: TargetsPosterior
    slopes: Array
    products: Array

    @classmethod
    def of(cls, before: Pattern, own: Pattern, posterior: TargetsPosterior) -> Link:
        """The posterior of the own targets in these rows, given the targets before."""
        k, correlation = len(before), posterior.correlation()
        rows = posterior.residual_df + 2.0 * posterior.noise.parameters[1]
        sizes = np.sqrt(np.diag(posterior.products()) / max(rows, 1.0))
        units = np.where(sizes[:k] > 0.0, sizes[:k], np.inf)
        slopes = np.linalg.solve(correlation[:k, :k], correlation[:k, k:])
        slopes = slopes * sizes[k:] / units[:, None]
        return cls(before, own, posterior, slopes, sizes[:, None] * correlation * sizes)


@dataclass
class Chain:
    """The links, made when they are first read."""

    links: list[Link] | None = None


def concatenate_joint_predictions(
    predictions: Sequence[JointPrediction], names: tuple[str, ...] | None
) -> JointPrediction:
    """Concatenate joint predictions of consecutive rows."""
    targets = range(predictions[0].shape[1])
    marginals = stack_targets(
        [rows_of([one.marginals[:, target] for one in predictions]) for target in targets]
    )
    correlation = np.concatenate(
        [
            np.broadcast_to(one.correlation, (len(one), *one.correlation.shape[-2:]))
            for one in predictions
        ]
    )
    return JointPrediction(marginals, correlation, names=names)


def shift_mean(mean: Array, joint: Any) -> Joint:
    """The same distribution about another mean."""
    step, parts = mean - joint.mean, []
    for part in getattr(joint, "components", (joint,)):
        moved = copy.copy(part)
        moved.mean = part.mean + step
        parts.append(moved)
    return MultivariateMixture(parts, joint.weights) if hasattr(joint, "weights") else parts[0]


def rows_of(predictions: Sequence[Any]) -> Distribution:
    df = [np.broadcast_to(getattr(one, "df", np.inf), one.shape) for one in predictions]
    loc = np.concatenate([np.broadcast_to(one.loc, one.shape) for one in predictions])
    scale = np.concatenate([np.broadcast_to(one.scale, one.shape) for one in predictions])
    return StudentT(np.concatenate(df), loc, scale)


def filled(
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
    return stack_targets(
        [StudentT(df[:, j], mean[:, j], scale[:, j]) for j in range(mean.shape[1])]
    )
