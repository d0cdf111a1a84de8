"""The joint distribution of what each class has more of than the first."""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from posterity.aliases import Array
from posterity.distributions import MultivariateNormal
from posterity.distributions.triangles import solve_triangle
from posterity.posteriors._softmax_contrasts import Contrasts, Joined
from posterity.posteriors._softmax_likelihood import helmert
from posterity.safety import check_memory


def make_joint_distribution(
    contrasts: Contrasts, nodes: list[tuple[float, Joined]], names: tuple[str, ...]
) -> MultivariateNormal:
    """Of the differences of all classes to the first, class by class; nodes are matched by moments.

    The covariance of several, which would square the condition number, is not formed: its square
    roots stand side by side, and are rotated to a triangle.
    """
    size = float(contrasts.n_classes * contrasts.n_columns)
    check_memory(32.0 * size * size, f"the joint distribution of {size:,.0f} coefficients")
    weighted = [(weight, *_join_one_node(contrasts, joined)) for weight, joined in nodes]
    if len(weighted) == 1:
        return MultivariateNormal(*weighted[0][1:], 1.0, names=names)
    mean = np.sum([weight * one for weight, one, _ in weighted], axis=0)
    roots = []
    for weight, one, root in weighted:
        inverse = solve_triangle(root, np.eye(len(mean)))
        roots += [np.sqrt(weight) * inverse, np.sqrt(weight) * (one - mean)[:, None]]
    upper = _upper(np.hstack(roots)[::-1].T).T[::-1, ::-1]
    root = solve_triangle(upper, np.eye(len(mean)))
    return MultivariateNormal(mean, root, 1.0, names=names)


def _join_one_node(contrasts: Contrasts, joined: Joined) -> tuple[Array, Array]:
    """Mean and root of the precision of the differences, of one node."""
    known, n_classes, p = contrasts.coordinates(joined), contrasts.n_classes, contrasts.n_columns
    if contrasts.separate:
        # The first class's own coefficients in front, which are then integrated: left out.
        rows = block_diag(*(factor.root for factor in joined))
        rows[p:, :p] = np.vstack([factor.root for factor in joined[1:]])
        return (known[1:] - known[0]).ravel(), _upper(rows)[p:, p:]
    turn = helmert(n_classes)[1:] - helmert(n_classes)[0]
    rows = joined[0].root @ np.kron(np.linalg.inv(turn), np.eye(p))
    return (turn @ known).ravel(), _upper(rows)


def _upper(rows: Array) -> Array:
    """The triangle of these rows, with a diagonal that is not negative."""
    turned = np.asarray(np.linalg.qr(rows, mode="r"))
    return turned * np.where(np.diag(turned) < 0.0, -1.0, 1.0)[:, None]
