"""Unlearning rows of a Gaussian factor, or refusing to where they can't have been learned."""

from __future__ import annotations

import warnings

import numpy as np

from posterity.aliases import Array
from posterity.distributions.triangles import solve_triangle
from posterity.factor import Factor, NotInFactorError

# A removal with a smaller cosine has lost more than half of the digits in some direction.
SMALL_COSINE = 1e-6


def weigh_rest(learned: float, gone: float) -> float:
    """The weight that is left of what was learned; raises ``ValueError`` if that was less."""
    rest = learned - gone
    if rest < -1e-12 * gone:
        raise ValueError(
            f"can't unlearn rows of total weight {gone:g}: only {learned:g} was learned; "
            "give learned rows (nothing was changed)"
        )
    return rest if rest > 1e-12 * gone else 0.0


def unlearn(
    factor: Factor, prior: Factor, X: Array, y: Array, weights: Array | None, *, intercept: bool
) -> None:
    """Take rows out of a factor of them and ``prior``; raises ``ValueError`` where it can't."""
    left = weigh_rest(factor.count, len(X) if weights is None else float(np.sum(weights)))
    remaining = factor.copy()
    ones = factor.lacks_intercept_column(X, intercept)
    try:
        least_cosine = remaining.remove(X, y, weights, intercept=ones, stay=prior)
    except NotInFactorError as error:
        which = "one of the rows" if error.row is None else f"row {error.row}"
        raise ValueError(explain_never_learned(which)) from error
    if not left:
        factor.copy_from(prior)
        return
    _check_data_left(remaining, prior, least_cosine)
    if least_cosine < SMALL_COSINE:
        _warn_of_lost_digits(least_cosine)
    factor.copy_from(remaining)


def _check_data_left(remaining: Factor, prior: Factor, least_cosine: float) -> None:
    """Refuse when what remains is less than the prior: data that never came were removed.

    remaining - prior must not be negative: no eigenvalue of R^-T (R0'R0) R^-1 beyond 1, by more
    than rounding against what was removed.
    """
    rounding = max(1e-7, min(1e-14 / max(least_cosine, 1e-7) ** 2, 0.1))
    kept = remaining.determined
    known = prior.root[:, kept] @ np.eye(int(kept.sum()))
    if (prior.determined & ~kept).any():
        raise ValueError(explain_never_learned("one of the rows"))
    whitened = solve_triangle(remaining.root[np.ix_(kept, kept)], known.T, transposed=True)
    if np.linalg.norm(whitened, 2) > 1.0 + rounding:
        raise ValueError(explain_never_learned("one of the rows"))


def _warn_of_lost_digits(least_cosine: float) -> None:
    carried = (
        "nearly all information on a combination of features, so digits were lost"
        if least_cosine > 0.0
        else "all information on a combination of features, and only the prior is left: "
        "if other rows had information on it, its digits were lost"
    )
    warnings.warn(
        f"the rows that were unlearned carried {carried}; fit the remaining rows again if "
        "you have them",
        stacklevel=6,
    )


def explain_never_learned(what: str) -> str:
    """The message for unlearning rows that can't have been learned."""
    return f"{what} was never learned, or is unlearned already: nothing was changed"
