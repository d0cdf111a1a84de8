"""A factor of many targets from one of a single target, and each target's own from that of many.

Columns of targets do not mix while rows are rotated into R: of [R Z; 0 S] the factor of target j is
[R z_j; 0 |s_j|], whatever the others are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posterity.factor.factor import Factor


def for_targets(factor: Factor, count: int) -> Factor:
    """The factor of ``count`` targets that each say what the one target of ``factor`` says.

    It must hold no residual, as that of a prior does not.

    Examples
    --------
    >>> prior = Factor(1)
    >>> prior.append(np.array([[2.0]]), np.array([[4.0]]))
    >>> for_targets(prior, 3).coefficients()
    array([[2., 2., 2.]])
    """
    many = Factor(factor.n_coefficients, count)
    many.root[...] = factor.root
    many.moments[...] = factor.moments
    many.set_triangle(many.triangle, factor.count, factor.seen)
    return many


def of_target(factor: Factor, target: int | Sequence[int]) -> Factor:
    """The factor of one of the targets, or of some of them in their order.

    Examples
    --------
    >>> factor = Factor(1, 2)
    >>> factor.append(np.array([[1.0], [1.0]]), np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> of_target(factor, 0).coefficients().round(12), of_target(factor, 0).residual().round(12)
    (array([[2.]]), array([[2.]]))
    """
    some = [target] if isinstance(target, int) else list(target)
    one = Factor(factor.n_coefficients, len(some))
    one.root[...] = factor.root
    one.moments[...] = factor.moments[:, some]
    left = factor.residual_root[:, some]
    one.residual_root[...] = np.linalg.norm(left) if len(some) == 1 else np.linalg.qr(left)[1]
    one.set_triangle(one.triangle, factor.count, factor.seen)
    return one
