"""Rounds in which all sites follow what is known, and that follows the sites: fewer of them."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Rounds that are remembered, and the share of its next precision that a site keeps at least.
MOST_REMEMBERED, LEAST_SHARE = 5, 0.1
# Relative to the largest, squares of directions in which rounds do not differ.
ROUNDING = 1e-12


class Mixing:
    """Extrapolates rounds whose errors shrink slowly, or change sides (Anderson mixing).

    The differences of the last rounds tell which combination of them would have led nearest to
    where nothing changes (Walker and Ni 2011, "Anderson acceleration for fixed-point iterations").

    Examples
    --------
    >>> mixing, ones = Mixing(), np.ones(1)
    >>> sites = np.array([[0.1], [0.0]])
    >>> for _ in range(3):
    ...     wanted = np.array([[2.8], [0.0]]) - 0.9 * sites
    ...     sites = mixing.extrapolate(sites, wanted, 0.0 * ones, ones)
    >>> bool(abs(sites[0, 0] - 2.8 / 1.9) < 1e-9)
    True
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget all rounds."""
        self._last: tuple[Array, Array] | None = None
        self._moves: deque[tuple[Array, Array]] = deque(maxlen=MOST_REMEMBERED)

    def extrapolate(
        self, now: Array, wanted: Array, mean: Array, variance: Array, step: float = 1.0
    ) -> Array:
        """Return the next sites (2, n), precisions and precisions times targets.

        ``wanted`` are those that follow from ``now``, under which each eta has this mean and
        variance (n,); ``step`` is the share of the way to them where nothing is remembered.
        """
        ahead = wanted - now
        if self._last is not None:
            self._moves.append((now - self._last[0], ahead - self._last[1]))
        self._last = now, ahead
        mixed = now + step * ahead
        if self._moves:
            turned = [_standardize(change, mean, variance) for _, change in self._moves]
            changes, off = np.array(turned), _standardize(ahead, mean, variance)
            shares = np.linalg.lstsq(changes @ changes.T, changes @ off, rcond=ROUNDING)[0]
            for share, (move, change) in zip(shares, self._moves, strict=True):
                mixed -= share * (move + step * change)
        return np.where(mixed[0] >= LEAST_SHARE * wanted[0], mixed, wanted)


def _standardize(change: Array, mean: Array, variance: Array) -> Array:
    """A change of sites (2, n) as (2n,), in shares of the variances of eta and in their roots."""
    moved = np.sqrt(variance) * (change[1] - change[0] * mean)
    return np.concatenate([change[0] * variance, moved])
