"""The posterior of a factorization machine, and how it learns rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Array, Indices
from posterity.factorization._room import copy_with_room, extend
from posterity.factorization._sweeps import LevelWeights, append_prior, compute_moments
from posterity.kernel import MachineRows

Codes = Indices

# Spread of the factors that a fit starts from (at zero they would stay there), and their prior
# precision: shy ones find the best optimum of many rows, bold ones survive in few rows.
SMALL_START, LARGE_START = (0.1, 10.0), (0.3, 1.0)


class Rows(NamedTuple):
    """Levels and features (n, S), targets and weights (n,)."""

    codes: Codes
    values: Array
    y: Array
    weights: Array

    def select(self, part: Any) -> Rows:
        """Some of the rows."""
        return Rows(*(one[part] for one in self))


@dataclass
class FactorizationPosterior(LevelWeights):
    """Posterior of a factorization machine: normal weights of levels, stored rows, and the noise.

    Sums of later rows are with the other sides as they were when the row came.

    Parameters
    ----------
    noise_shape, noise_rate
        Of the Gamma posterior of the noise's precision; where that is known the shape is infinite,
        and the rate its inverse.
    unit
        The spread of the targets; all of the above is in its units.
    codes, values, y, weights
        (n, S), (n, S), (n,), (n,) rows learned: level of each side, its feature, the target, and
        how many rows it stands for.
    log_evidence
        The bound of the last sweep, less constants, in the target's own units.
    residual
        Expected sum of squares of the last sweep, in units of the target's spread.
    swept, rows_at_start
        Number of rows at the last sweep over all, and at the last fresh start.
    bounds
        Of the last sweeps, of targets in units of their spread.
    labels
        Whether targets are labels, 0 or 1, and weights are of their log odds: each row then stands
        for a lower bound of its likelihood that is Gaussian (Jaakkola & Jordan 2000).
    """

    noise_shape: float
    noise_rate: float
    unit: float
    codes: Codes
    values: Array
    y: Array
    weights: Array
    rows_at_start: int
    labels: bool
    log_evidence: float = -np.inf
    residual: float = np.nan
    swept: int = 0
    bounds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._path: MachineRows | None = None
        self._room: Rows | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_path": None, "_room": None}

    @classmethod
    def begin(
        cls,
        rows: Rows,
        sizes: list[int],
        rank: int,
        noise_precision: float | None,
        seed: int | None,
        *,
        start: tuple[float, float] = SMALL_START,
        labels: bool = False,
    ) -> Self:
        """Return the start for these rows: the prior, with small, unequal factors."""
        unit, offset = _find_unit(rows.y, rows.weights, labels=labels)
        random, p = np.random.default_rng(seed), rank + 1
        means = []
        for size in sizes:
            factors = start[0] * random.standard_normal((size, p))
            factors[:, 0] = 0.0
            means.append(factors)
        precisions = np.append(1.0 if labels else 10.0, np.full(rank, start[1]))
        spread = np.diag(np.append(1.0 / precisions[0], np.full(rank, start[0] ** 2)))
        shape, rate = (np.inf, 1.0 / (noise_precision * unit**2)) if noise_precision else (1.0, 1.0)
        return cls(
            means,
            [np.tile(spread, (size, 1, 1)) for size in sizes],
            [np.zeros((size, p, p)) for size in sizes],
            [np.zeros((size, p)) for size in sizes],
            np.zeros((len(sizes), p)),
            np.tile(precisions, (len(sizes), 1)),
            offset,
            0.0,
            shape,
            rate,
            unit,
            *rows,
            rows_at_start=len(rows.y),
            labels=labels,
        )

    @property
    def rows(self) -> Rows:
        """The rows learned."""
        return Rows(self.codes, self.values, self.y, self.weights)

    @property
    def noise_precision(self) -> float:
        """Mean of the noise's precision, in units of the target's spread."""
        return 1.0 / self.noise_rate if self.noise_is_known else self.noise_shape / self.noise_rate

    @property
    def noise_is_known(self) -> bool:
        """True if the noise's precision was given."""
        return self.noise_shape == np.inf

    def drop_path(self) -> None:
        """Have the compiled path made anew, as its numbers have been replaced."""
        self._path = None

    def compute_moments(self, codes: Codes, values: Array) -> tuple[Array, Array]:
        """Mean and variance, noise aside, at rows (n, S), in the target's units."""
        mean, variance = compute_moments(codes, values, self)
        return mean * self.unit, variance * self.unit**2

    def score_pairs(self, codes: Codes, policy: str | float, random: np.random.Generator) -> Array:
        """Score pairs of levels (n, 2) by a policy: "mean", "draw" or a quantile."""
        if policy == "draw":
            return self._draw(codes, random) * self.unit
        mean, variance = self.compute_moments(codes, np.ones(codes.shape))
        if policy == "mean":
            return mean
        if isinstance(policy, str) or not 0.0 < policy < 1.0:
            raise ValueError(
                f"policy is {policy!r}: it must be 'mean', 'draw' or a quantile between 0 and 1"
            )
        return mean + float(ndtri(policy)) * np.sqrt(variance)

    def _draw(self, codes: Codes, random: np.random.Generator) -> Array:
        """The values of pairs by one draw of all weights."""
        drawn = []
        for side in range(2):
            levels, place = np.unique(codes[:, side], return_inverse=True)
            means, covariances = append_prior(self, side)
            normal = random.standard_normal((len(levels), means.shape[1], 1))
            deviation = np.linalg.cholesky(covariances[levels]) @ normal
            drawn.append((means[levels] + deviation[:, :, 0])[place])
        offset = self.offset + np.sqrt(self.offset_variance) * random.standard_normal()
        first, second = drawn
        pairs = np.einsum("nk,nk->n", first[:, 1:], second[:, 1:])
        return np.asarray(offset + first[:, 0] + second[:, 0] + pairs)

    # ---- learning --------------------------------------------------------------------------------

    def learn(self, rows: Rows) -> None:
        """Learn rows one after the other, of levels known or new: sums of their levels grow.

        Raises ``ValueError`` if a row's numbers overflow.
        """
        codes, values, y, weights = rows
        self.add_levels(codes.max(axis=0) + 1)
        learned = self.path.learn(codes, values, y / self.unit, weights)
        if learned < len(y):
            raise _make_overflow(y[learned], f" in row {learned}")
        n, room = len(self.y), self._make_room(len(y))
        for kept, new in zip(room, rows, strict=True):
            kept[n : n + len(y)] = new
        self.codes, self.values, self.y, self.weights = room.select(slice(n + len(y)))

    def learn_one(self, codes: list[int], values: list[float], y: float, weight: float) -> None:
        """Learn a row of known levels, in one step. Raises as :meth:`learn`."""
        room = self._room
        if room is None or len(self.y) == len(room.y):
            room = self._make_room(1)
        if not self.path.learn_one(codes, values, y, self.unit, weight, (*room,), vars(self)):
            raise _make_overflow(y)

    @property
    def path(self) -> MachineRows:
        """The compiled path that reads and learns single rows, made anew after each sweep."""
        if self._path is None:
            self._path = MachineRows(
                self.means,
                self.covariances,
                self.precisions,
                self.products,
                self.prior_means,
                self.prior_precisions,
                self.offset,
                self.offset_variance,
                self.noise_precision,
                self.labels,
            )
        return self._path

    def add_levels(self, sizes: Sequence[int] | Codes) -> None:
        """Have so many levels on each side: new ones begin at their side's prior."""
        for side, size in enumerate(sizes):
            if size <= len(self.means[side]):
                continue
            self._path = None
            starts = (
                self.prior_means[side],
                np.diag(1.0 / self.prior_precisions[side]),
                np.zeros_like(self.precisions[side][:1]),
                np.zeros_like(self.products[side][:1]),
            )
            arrays = self.means, self.covariances, self.precisions, self.products
            for array, start in zip(arrays, starts, strict=True):
                array[side] = extend(array[side], int(size), start)

    def drop_levels(self, sizes: Sequence[int]) -> None:
        """Forget the levels beyond the first so many of each side, of which no row was learned."""
        self._path = None
        for side, size in enumerate(sizes):
            for array in (self.means, self.covariances, self.precisions, self.products):
                array[side] = array[side][:size]

    def _make_room(self, more: int) -> Rows:
        """The kept rows in arrays of one's own, with room for so many more."""
        room, size = self._room, len(self.y) + more
        if room is None or len(room.y) < size:
            room = self._room = Rows(*(copy_with_room(one, size) for one in self.rows))
        return room


def _find_unit(y: Array, weights: Array, *, labels: bool) -> tuple[float, float]:
    """The spread of targets, and where the intercept starts, in units of it."""
    if labels:
        share = (weights @ y + 0.5) / (weights.sum() + 1.0)
        return 1.0, float(np.log(share / (1.0 - share)))
    mean = float(np.average(y, weights=weights))
    sd = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
    unit = sd or float(np.abs(y).max()) or 1.0
    return unit, mean / unit


def _make_overflow(y: float, where: str = "") -> ValueError:
    return ValueError(f"y is {y}{where}, which is too large to learn")
