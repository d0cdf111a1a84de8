"""A few nodes that stand for a distribution over the ratio: Gaussian quadrature on a grid."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dstev

from posterity.aliases import Array

# Values that vary less than this are constant.
CONSTANT_TOLERANCE = 1e-7


def compute_gauss_nodes(values: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """Nodes and weights that integrate polynomials of degree 2 k - 1 as a discrete measure does.

    Parameters
    ----------
    values, weights
        (g,) points >= 0 and their weights, of sum 1.
    most
        Largest k; fewer come back where fewer are as good.

    Returns
    -------
    nodes, weights : (k,) arrays

    Notes
    -----
    The recurrence of the orthogonal polynomials (Stieltjes), then the eigenvalues of its
    tridiagonal matrix (Golub and Welsch 1969).

    Examples
    --------
    >>> values, weights = np.array([0.0, 0.5, 1.0]), np.array([0.25, 0.5, 0.25])
    >>> nodes, weights = compute_gauss_nodes(values, weights, 2)
    >>> nodes.round(6).tolist(), weights.round(6).tolist()
    ([0.146447, 0.853553], [0.5, 0.5])
    """
    centre = float(weights @ values)
    centred = values - centre
    spread = float(np.sqrt(weights @ (centred * centred)))
    if most == 1 or spread <= CONSTANT_TOLERANCE * centre:
        return np.array([centre]), np.ones(1)
    # The first two polynomials of the standardised values are 1 and the values themselves.
    centred /= spread
    before, here = np.ones_like(values), centred
    weighted = weights * centred
    diagonal, subdiagonal = [0.0, float(weighted @ (centred * here))], [1.0]
    while len(diagonal) < min(most, len(values)):  # a measure of g points has g nodes at most
        after = (centred - diagonal[-1]) * here - subdiagonal[-1] * before
        size = float(np.sqrt(weights @ (after * after)))
        if size < CONSTANT_TOLERANCE:
            break
        subdiagonal.append(size)
        before, here = here, after / size
        diagonal.append(float(weighted @ (here * here)))
    nodes, vectors, status = dstev(diagonal, subdiagonal)
    if status:
        raise np.linalg.LinAlgError(
            "the nodes of the quadrature did not converge: give prior_precision as a number, "
            "and report the data"
        )
    return centre + spread * nodes, vectors[0] ** 2
