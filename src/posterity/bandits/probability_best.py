"""Probability that an arm is the best: from draws, or exactly for independent arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from posterity.aliases import Array, Mask
from posterity.kernel import cheapest_pairs

# Probabilities of the quantiles of each arm where pieces of the integral end, and nodes of a piece:
# probabilities of normal arms are then right to 12 digits, of rugged mixtures to 5.
LOWER_PROBABILITIES = np.array([1e-15, 1e-11, 1e-8, 1e-5, 1e-3, 0.02, 0.1, 0.25, 0.4])
PIECE_PROBABILITIES = np.concatenate([LOWER_PROBABILITIES, [0.5], 1.0 - LOWER_PROBABILITIES[::-1]])
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
# Numbers held at a time.
BLOCK = 2_000_000
# Expected counts of which little is known yet may be beyond it, where squares are no floats.
LARGEST = 1e150


def shares_of_best(draws: Array, allowed: Mask) -> Array:
    """(n, K) how often each allowed arm has the largest of ``draws`` (M, n, K); ties are shared.

    Examples
    --------
    >>> draws = np.array([[[1.0, 2.0, 9.0]], [[3.0, 3.0, 9.0]]])
    >>> shares_of_best(draws, np.array([[True, True, False]]))
    array([[0.25, 0.75, 0.  ]])
    """
    shown = np.where(allowed, draws, -np.inf)
    best = shown == shown.max(axis=2, keepdims=True)
    best &= allowed
    return np.asarray(np.mean(best / best.sum(axis=2, keepdims=True), axis=0))


def probability_best(arms: Sequence[Any], allowed: Mask) -> Array:
    """(n, K) probabilities that each arm's expected reward is the largest, arms being independent.

    The integral of f_a(x) times the product of F_b(x) over all other arms b (Jeunen 2025), by
    Gauss-Legendre rules between quantiles of all arms, above the highest of their lowest
    quantiles: nothing below it is the largest.
    The arms' probabilities sum to the integral of a derivative, 1: how near they are says how good
    the rule is; what is missing is shared in proportion.

    Parameters
    ----------
    arms : sequence of K distributions over n rows
        Normal, StudentT, or mixtures of them; not flat where they are allowed.
    allowed : (n, K) array of bool

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([1.0], [1.0])]
    >>> probability_best(arms, np.ones((1, 2), dtype=bool)).round(6)
    array([[0.23975, 0.76025]])
    """
    return _compute_by_blocks(_integrate_rows, arms, allowed)


def _compute_by_blocks(
    of: Callable[[Sequence[Any], Mask], Array], arms: Sequence[Any], allowed: Mask
) -> Array:
    """(n, K) what ``of`` says of each row, of as many at a time as fit into memory."""
    n, k = allowed.shape
    found = np.empty((n, k))
    step = max(1, BLOCK // (k * len(PIECE_PROBABILITIES) * k * len(NODES)))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        found[rows] = of([arm[rows] for arm in arms], allowed[rows])
    return found


def _integrate_rows(arms: Sequence[Any], allowed: Mask) -> Array:
    """The same for some rows."""
    probabilities = np.zeros(allowed.shape)
    lowest, ends, can_win, certain = _pieces(arms, allowed)
    live = np.flatnonzero(can_win.any(axis=0)).tolist()
    if len(live) == 1:
        probabilities[:, live] = 1.0
        return probabilities
    places, weights = _nodes(ends)
    below = np.stack([arms[arm].cdf(places) for arm in live], axis=2)
    below = np.where(can_win[:, live], below, 1.0)
    others = _products_of_others(below)
    for place, arm in enumerate(live):
        density = np.where(certain[:, arm], 0.0, arms[arm].pdf(places))
        probabilities[:, arm] = np.sum(weights * density * others[:, :, place], axis=0)
    if certain.any():  # these have the lowest place there is, if all others are below it
        at = np.stack([arms[arm].cdf(lowest) for arm in live], axis=1)
        mass = np.prod(np.where((can_win & ~certain)[:, live], at, 1.0), axis=1)
        shared = certain / np.maximum(certain.sum(axis=1, keepdims=True), 1)
        probabilities = np.where(certain, mass[:, None] * shared, probabilities)
    probabilities[~can_win] = 0.0
    total = probabilities.sum(axis=1, keepdims=True)
    # Beliefs so wide that no number lies between their quantiles: each arm that can win may be it.
    probabilities = np.where((total > 0.0) & np.isfinite(total), probabilities, can_win)
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def _products_of_others(below: Array) -> Array:
    """(J, n, K) products over all other arms."""
    others = np.ones_like(below)
    np.cumprod(below[:, :, :-1], axis=2, out=others[:, :, 1:])
    after = np.cumprod(below[:, :, :0:-1], axis=2)[:, :, ::-1]
    others[:, :, :-1] *= after
    return others


def _pieces(arms: Sequence[Any], allowed: Mask) -> tuple[Array, Array, Mask, Mask]:
    """Return the starts of the pieces (n,), and their ends (J, n).

    Also which arms (n, K) can win there at all, and of which of these the value is certain.
    """
    quantiles = np.stack([arm.ppf(PIECE_PROBABILITIES[:, None]) for arm in arms], axis=2)
    quantiles = np.where(allowed, quantiles, -np.inf)
    lowest = quantiles[0].max(axis=1)
    can_win = allowed & (quantiles[-1] >= lowest[:, None])
    ends = np.maximum(quantiles, lowest[:, None])
    ends = np.sort(np.moveaxis(ends, 2, 0).reshape(-1, len(allowed)), axis=0)
    return lowest, ends, can_win, can_win & (quantiles[0] == quantiles[-1])


def _nodes(ends: Array) -> tuple[Array, Array]:
    """Places (J, n) and weights (J, n) of the rules of all pieces that have a length."""
    half = 0.5 * np.diff(ends, axis=0)
    some = half.max(axis=1) > 0.0
    half, start = half[some], ends[:-1][some]
    places = (start + half)[:, None] + half[:, None] * NODES[:, None]
    weights = half[:, None] * WEIGHTS[:, None]
    return places.reshape(-1, ends.shape[1]), weights.reshape(-1, ends.shape[1])


# What the integrals of the polynomial through a piece's nodes are, from each node to its end, for a
# piece of length 2: sums of products with Legendre polynomials are exact.
_legendre = np.polynomial.legendre
_COEFFICIENTS = _legendre.legvander(NODES, len(NODES) - 1) * WEIGHTS[:, None]
_INTEGRALS = [_legendre.legint(row) for row in _COEFFICIENTS * (np.arange(len(NODES)) + 0.5)]
_INTEGRALS_TO_END = np.stack(
    [_legendre.legval(1.0, row) - _legendre.legval(NODES, row) for row in _INTEGRALS], axis=1
)


def shares_by_draws(draws: Array, allowed: Mask) -> Array:
    """(n, K) shares of the two arms that pay least for what they tell, of ``draws`` (M, n, K).

    Examples
    --------
    >>> draws = np.array([[[1.0, 0.0]], [[0.0, 2.0]]])
    >>> shares_by_draws(draws, np.ones((1, 2), dtype=bool)).tolist()
    [[0.0, 1.0]]
    """
    shown = np.where(allowed, draws, -np.inf)
    best, mean = shown.argmax(axis=2), draws.mean(axis=0)
    conditional = np.zeros((*mean.shape, mean.shape[1]))  # row, best arm, arm
    share = np.zeros(mean.shape)
    for arm in range(mean.shape[1]):
        here = best == arm
        share[:, arm] = here.mean(axis=0)
        count = np.maximum(here.sum(axis=0), 1)[:, None]
        conditional[:, arm] = np.where(here[:, :, None], draws, 0.0).sum(axis=0) / count
    return _cheapest(share, conditional, mean, shown.max(axis=2).mean(axis=0), allowed)


def shares_by_quadrature(arms: Sequence[Any], allowed: Mask) -> Array:
    """(n, K) shares of the two arms that pay least for what they tell, arms being independent.

    By the nodes of :func:`probability_best`. Where b is the best at x, what is expected of another
    arm a is its mean below x: its mean less the integral of t f_a(t) above x, over F_a(x).

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> arms = [Normal([0.0], [1.0]), Normal([0.5], [0.1])]
    >>> shares_by_quadrature(arms, np.ones((1, 2), dtype=bool)).round(2)
    array([[0.4, 0.6]])
    """
    return _compute_by_blocks(_compute_information, arms, allowed)


def _compute_information(arms: Sequence[Any], allowed: Mask) -> Array:
    """The same for some rows."""
    n, k = allowed.shape
    mean = np.clip(np.stack([arm.mean() for arm in arms], axis=1), -LARGEST, LARGEST)
    _, ends, can_win, _ = _pieces(arms, allowed)
    places, weights = _nodes(np.clip(ends, -LARGEST, LARGEST))
    density = np.stack([arm.pdf(places) for arm in arms], axis=2)
    density[np.isinf(density)] = 0.0  # right beside 0, between places that are one float
    below = np.stack([arm.cdf(places) for arm in arms], axis=2)
    # (J, n, K): the mean of each arm below each node.
    parts = (places[:, :, None] * density).reshape(-1, len(NODES), n, k)
    length = weights.reshape(-1, len(NODES), n).sum(axis=1)[:, None, :, None]
    inside = 0.5 * length * np.einsum("ij,pjnk->pink", _INTEGRALS_TO_END, parts)
    whole = 0.5 * length[:, 0] * np.einsum("j,pjnk->pnk", WEIGHTS, parts)
    above = whole[::-1].cumsum(axis=0)[::-1] - whole
    left = mean - (inside + above[:, None]).reshape(below.shape)
    under = np.where(below > 1e-13, left / np.maximum(below, 1e-13), places[:, :, None])
    others = _products_of_others(np.where(can_win, below, 1.0))
    mass = np.where(can_win, weights[:, :, None] * density * others, 0.0)
    total = mass.sum(axis=0)
    total = np.where(total.sum(axis=1, keepdims=True) > 0.0, total, can_win)
    share = total / total.sum(axis=1, keepdims=True)
    conditional = np.einsum("jnb,jna->nba", mass, under)
    own = np.einsum("jnb,jn->nb", mass, places)
    conditional[:, np.arange(k), np.arange(k)] = own
    conditional /= np.maximum(total, 1e-300)[:, :, None]
    best = np.sum(share * conditional[:, np.arange(k), np.arange(k)], axis=1)
    return _cheapest(share, conditional, mean, best, allowed)


def _cheapest(share: Array, conditional: Array, mean: Array, best: Array, allowed: Mask) -> Array:
    """Shares of two arms, from the mean of the best one and means where each arm is the best."""
    off = np.square(conditional - mean[:, None, :])
    information = np.sum(np.where(share > 0.0, share, 0.0)[:, :, None] * off, axis=1)
    regret = np.where(allowed, np.maximum(best[:, None] - mean, 0.0), 0.0)
    return cheapest_pairs(regret, information, allowed.view(np.uint8))
