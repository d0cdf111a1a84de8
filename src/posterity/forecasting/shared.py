"""A prior of the coefficients that is learned over many series (empirical Bayes).

    w_s ~ Normal(m, sigma_s^2 D),     each series with a noise sigma_s of its own,

by expectation and maximisation (Laird and Ware 1982) from the triangles of the series' rows alone,
which are in units of each series' own scale. How near one series is to what all say is not settled
here: its own rows say it (the ratio in :mod:`posterity.forecasting.posterior`).
"""

from __future__ import annotations

import numpy as np

from posterity.aliases import Array
from posterity.forecasting.posterior import Prior

SWEEPS = 30
# Most series from which the shared prior is learned.
MOST_SERIES = 2_000
# Smallest noise of a series, relative to the usual one: it limits a series' weight.
QUIETEST = 0.1
# Start of D, as a share of the variance by which a coefficient alone explains the target.
START = 0.3


def learn_prior(triangles: Array, count: Array) -> Prior | None:
    """The prior of series with triangles (S, p + 1, p + 1) of ``count`` (S,) rows.

    None where too few series have rows to tell. Of very many series some say it. A series whose
    targets are all 0 has no scale, and says nothing.
    """
    p = triangles.shape[1] - 1
    some = np.flatnonzero((count > p + 2.0) & triangles[:, :, p].any(axis=1))
    if len(some) <= p or p == 0:
        return None
    some = some[:: -(-len(some) // MOST_SERIES)]
    triangles, count = triangles[some], count[some]
    root, target = triangles[:, :p, :p], triangles[:, :p, p]
    residual = np.square(triangles[:, p, p])
    transposed = np.swapaxes(root, 1, 2)
    information = transposed @ root
    moments = (transposed @ target[:, :, None])[:, :, 0]
    sizes = np.einsum("sii->i", information) / count.sum()
    if not (sizes > 0.0).all():
        return None
    loud = count / (np.square(target).sum(axis=1) + residual)
    mean = np.linalg.solve(
        np.einsum("s,sij->ij", loud, information) + 1e-6 * np.diag(sizes) * float(loud @ count),
        loud @ moments,
    )
    spread = START * np.diag(1.0 / sizes)
    for _ in range(SWEEPS):
        inverse = np.linalg.inv(spread)
        variances = np.linalg.inv(information + inverse)
        each = (variances @ (moments + inverse @ mean)[:, :, None])[:, :, 0]
        off = each - mean
        errors = np.square((root @ each[:, :, None])[:, :, 0] - target).sum(axis=1)
        errors += residual + np.einsum("si,ij,sj->s", off, inverse, off)
        precision = (count - 1.0) / np.maximum(errors, 1e-300)
        precision = np.minimum(precision, np.median(precision) / QUIETEST)
        mean = precision @ each / precision.sum()
        off = each - mean
        spread = (variances.sum(axis=0) + (off * precision[:, None]).T @ off) / len(each)
        spread += 1e-9 * np.diag(np.diag(spread))
    return Prior(mean, np.asarray(np.linalg.cholesky(spread), dtype=np.float64))
