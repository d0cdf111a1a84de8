"""The prior that groups share, and effects on expected targets averaged over many groups' rows.

Given D and the noise, the mean m ~ N(m0, sigma^2 S) and, of a group whose rows have the triangle
[R, z],

    w = A m + V R'z + e,    V = (R'R + D^-1)^-1,    A = V D^-1,    e ~ N(0, sigma^2 V) ,

independently over groups. A sum over groups c'w has the variance sigma^2 (c'V c + b'S b), each
term summed, b the sum of A'c: groups are uncertain together where the mean is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cholesky

from posterity.aliases import Array, Indices
from posterity.likelihoods import Likelihood
from posterity.noise import JointOfOne
from posterity.posteriors.grouped import GroupedPosterior


class Draws(NamedTuple):
    """Draws (size, g, p) of the coefficients of groups, and the group (n,) of each row."""

    coefficients: Array
    places: Indices


def build_shared_posterior(posterior: GroupedPosterior, names: tuple[str, ...]) -> JointOfOne:
    """Joint posterior of the means of [intercept, coefficients] over groups."""
    if not posterior.belief.free.all():
        raise ValueError(
            "prior_mean is given, so the mean over groups has no posterior: leave prior_mean out "
            "to learn it"
        )
    read = posterior.learn_exact_prior()
    shift = find_shift(read.prior.root, intercept=posterior.intercept)
    spread = mean_covariance(posterior, shift)
    # Scaled to a unit diagonal, so that coefficients of any size keep their digits.
    size = np.sqrt(np.diag(spread))
    if not (np.isfinite(size).all() and (size > 0.0).all()):
        raise ValueError(
            "the rows do not determine the mean over groups: learn more rows, in more groups, first"
        )
    root = cholesky(np.linalg.inv(spread / np.outer(size, size))) / size @ np.linalg.inv(shift)
    return posterior.noise.posterior(read.prior.mean, root, read.residual_df, read.residual, names)


def average_change(posterior: GroupedPosterior, change: Array, slots: Indices) -> Any:
    """Distribution of the mean over rows of ``change @ w``, w that of each row's group.

    ``change`` (n, p); ``slots`` (n,) the places of the groups, -1 for unknown ones.
    """
    read, n = posterior.learn_exact_prior(), len(change)
    shift = find_shift(read.prior.root, intercept=posterior.intercept)
    change = change @ shift
    spread = mean_covariance(posterior, shift)
    which, places = np.unique(slots, return_inverse=True)
    sums = np.zeros((len(which), change.shape[1]))
    np.add.at(sums, places, change / n)
    own, noise = posterior.compare_groups(which)
    information, told, precision = _compute_information(posterior, which, shift, own)
    try:
        weighed = np.linalg.solve(information, sums[:, :, None])[:, :, 0]  # V c
    except np.linalg.LinAlgError:  # a flat direction
        return posterior.noise.predictive(np.zeros(1), np.full(1, np.inf), 0.0, 0.0)[0]
    shared = own @ weighed @ precision
    variance = noise @ np.sum(weighed * sums, axis=1) + float(shared @ spread @ shared)
    mean = np.array([np.sum(weighed * told)])
    # As of a new observation without its own noise, the 1.
    leverage = np.array([variance - 1.0])
    return posterior.noise.predictive(mean, leverage, read.residual_df, read.residual)[0]


def _compute_information(
    posterior: GroupedPosterior, which: Indices, shift: Array, own: Array
) -> tuple[Array, Array, Array]:
    """Information (g, p, p) of coefficients given their mean, this times their mean, and D^-1.

    Of groups at ``which``, -1 for one of which no row has come, and of coefficients v, with
    w = ``shift`` v. In units of each group's noise D^-1 counts ``own`` (g,) times.
    """
    prior, p = posterior.learn_exact_prior().prior, posterior.bank.n_coefficients
    root = prior.root @ shift
    triangles = np.zeros((len(which), p, p + 1))
    triangles[which >= 0] = posterior.bank.rows(which[which >= 0])
    R, z = triangles[:, :, :-1] @ shift, triangles[:, :, -1]
    transposed = np.swapaxes(R, 1, 2)
    precision = root.T @ root
    mean = root.T @ (prior.root @ prior.mean)
    told = (transposed @ z[:, :, None])[:, :, 0] + own[:, None] * mean
    return transposed @ R + own[:, None, None] * precision, told, precision


def draw_coefficients(posterior: GroupedPosterior, slots: Indices, size: int) -> Draws:
    """Draws of the coefficients of the groups at ``slots`` (n,), with that of their mean.

    Always the same draws: the noise is known, of precision 1.
    """
    prior = posterior.learn_exact_prior().prior
    shift = find_shift(prior.root, intercept=posterior.intercept)
    which, places = np.unique(slots, return_inverse=True)
    own = np.ones(len(which))
    information, told, precision = _compute_information(posterior, which, shift, own)
    rng, p = np.random.default_rng(0), posterior.bank.n_coefficients
    roots = np.linalg.cholesky(np.linalg.inv(information))
    values, vectors = np.linalg.eigh(mean_covariance(posterior, shift))
    of_mean = rng.standard_normal((size, p)) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    centre = np.linalg.solve(information, told[:, :, None])[:, :, 0]
    moved = np.linalg.solve(information[None], (of_mean @ precision)[:, None, :, None])[..., 0]
    own = (roots @ rng.standard_normal((size, len(which), p, 1)))[..., 0]
    return Draws((centre + moved + own) @ shift.T, places)


def mean_change(likelihood: Likelihood, drawn: Draws, before: Array, after: Array) -> Array:
    """Draws (size,) of the mean change of expected targets from rows (n, p) to others."""
    change = np.zeros(len(drawn.coefficients))
    for one, w in enumerate(drawn.coefficients):
        own = w[drawn.places]
        high, low = (np.einsum("ij,ij->i", rows, own) for rows in (after, before))
        change[one] = np.mean(likelihood.mean(high) - likelihood.mean(low))
    return change


def find_shift(root: Array, *, intercept: bool) -> Array:
    """(p, p) S, so that w = S v with coefficients v of features that are centred.

    The intercepts of features far from 0 go along with slopes to more digits than there are.
    """
    shift = np.eye(len(root))
    if intercept and root[:, 0].any():
        shift[0, 1:] = -(root[:, 0] @ root[:, 1:]) / (root[:, 0] @ root[:, 0])
    return shift


def mean_covariance(posterior: GroupedPosterior, shift: Array) -> Array:
    """(p, p) covariance of the learned means, relative to the noise; 0 where there is none.

    It is of coefficients v, with w = ``shift`` v. A new group's covariance is that of the groups,
    D, and that of their mean.
    """
    prior, p = posterior.learn_exact_prior().prior, posterior.bank.n_coefficients
    new_group_prior = prior.new_group_prior[:, :p][:p]
    # Where groups have a flat prior their mean is nothing that they know.
    kept = (prior.root != 0.0).any(axis=0) & posterior.belief.free
    block = np.ix_(kept, kept)
    covariance = np.zeros((p, p))
    try:
        of_new, of_groups = (
            np.linalg.inv((root.T @ root)[block])
            for root in (new_group_prior @ shift, prior.root @ shift)
        )
        covariance[block] = of_new - of_groups
    except np.linalg.LinAlgError:  # nothing is known of the mean
        covariance[kept, kept] = np.inf
    return covariance
