"""Decisions: arms, and the probabilities that they were drawn with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posterity.aliases import AnyArray, Array, Indices


@dataclass(frozen=True)
class Numbers:
    """Random numbers of the decision with this number, and of no other.

    Examples
    --------
    >>> Numbers(seed=0, number=7).rng.random() == Numbers(seed=0, number=7).rng.random()
    True
    """

    seed: int
    number: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """The generator of them, made on first use."""
        return np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, self.number]))


class Decisions:
    """The decisions for n contexts.

    Attributes
    ----------
    ids : (n,) integers
        Numbers of the decisions, which the bandit gives to no others.
    contexts : (n, m)
    arms : (n,) or (n, k) names
        The arm of each context; of a ranking the first k, best first.
    expected : (n, K)
        Expected rewards of all arms, in the order of ``Bandit.arms_``.
    propensities : (n, K)
        Probabilities of all arms: what was picked from.
    propensity : (n,)
        Probability that this arm, or this ranking, was picked.
    """

    def __init__(
        self,
        ids: Indices,
        contexts: Array,
        names: AnyArray,
        places: Indices,
        expected: Array,
        picked_from: tuple[Any, ...],
    ) -> None:
        self.ids, self.contexts, self.expected = ids, contexts, expected
        self.arms = names[places]
        self._arm_indices, self._picked_from = places, picked_from

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> Decision:
        arm = self.arms[row]
        return Decision(
            int(self.ids[row]),
            self.contexts[row],
            arm.item() if isinstance(arm, np.generic) else arm,
            self._arm_indices[row],
            self.expected[row],
            (_row, self, row),
        )

    def __getstate__(self) -> dict[str, Any]:
        # A copy keeps the probabilities, and not what they come from.
        return self.__dict__ | {"_picked_from": (np.asarray, self.propensities)}

    def __repr__(self) -> str:
        return f"Decisions(ids={self.ids}, arms={self.arms})"

    @cached_property
    def propensities(self) -> Array:
        """(n, K) probabilities of all arms, computed on first use."""
        return _lazily_compute(self._picked_from)

    @cached_property
    def propensity(self) -> Array:
        """(n,) probability of the arm, or ranking, that was picked."""
        return ranking_probability(self.propensities, self._arm_indices)

    @property
    def _columns(self) -> tuple[Any, Any, Any, Indices]:
        """Ids, contexts, and names and places of arms."""
        return self.ids, self.contexts, self.arms, self._arm_indices


class Decision:
    """The decision for one context.

    Attributes
    ----------
    id : int
    context : (m,) array, or mapping of names
    arm : name
        Of a ranking the (k,) names, best first.
    expected : (K,)
        Expected rewards of all arms, in the order of ``Bandit.arms_``.
    propensities : (K,)
        Probabilities of all arms: what was picked from.
    propensity : float
        Probability that this arm, or this ranking, was picked.
    """

    __slots__ = ("_picked_from", "_place", "_propensities", "arm", "context", "expected", "id")

    # No keywords: making one is a good part of a decision's time.
    def __init__(
        self,
        number: int,
        context: Any,
        arm: Any,
        place: Any,
        expected: Array,
        picked_from: tuple[Any, ...],
    ) -> None:
        self.id = number
        self.context = context
        self.arm = arm
        self.expected = expected
        self._place = place
        self._picked_from = picked_from
        self._propensities: Array | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy keeps the probabilities, and not what they come from.
        known = np.asarray, self.propensities[None]
        return Decision, (self.id, self.context, self.arm, self._place, self.expected, known)

    def __repr__(self) -> str:
        return f"Decision(id={self.id}, arm={self.arm!r}, propensity={self.propensity:.4g})"

    @property
    def propensities(self) -> Array:
        """(K,) probabilities of all arms, computed on first use."""
        if self._propensities is None:
            self._propensities = _lazily_compute(self._picked_from)[0]
        return self._propensities

    @property
    def propensity(self) -> float:
        """Probability of the arm, or ranking, that was picked."""
        if np.ndim(self._place) == 0:
            return float(self.propensities[self._place])
        places = np.atleast_1d(self._place)[None]
        return float(ranking_probability(self.propensities[None], places)[0])

    @property
    def _columns(self) -> tuple[Any, Any, Any, Indices]:
        """The same as of several decisions."""
        return [self.id], [self.context], [self.arm], np.asarray(self._place)[None]


def _lazily_compute(source: tuple[Any, ...]) -> Array:
    """Call a function with the arguments that follow it."""
    return np.asarray(source[0](*source[1:]))


def _row(decisions: Decisions, row: int) -> Array:
    return decisions.propensities[row][None]


def draw_rankings(propensities: Array, k: int, rng: np.random.Generator) -> Indices:
    """Arms (n, k), without repetition.

    One after another, each in proportion to its probability among those that are left (Plackett
    1975).

    Examples
    --------
    >>> draw_rankings(np.array([[0.0, 1.0]]), 1, np.random.default_rng(0)).tolist()
    [[1]]
    """
    n = len(propensities)
    rows, left = np.arange(n), propensities.copy()
    arms = np.empty((n, k), dtype=np.intp)
    for place in range(k):
        edges = np.cumsum(left, axis=1)
        # Never an arm of probability 0, whatever rounding does: the first edge beyond the draw.
        drawn = rng.random(n) * edges[:, -1]
        arms[:, place] = np.argmax(edges > drawn[:, None], axis=1)
        left[rows, arms[:, place]] = 0.0
    return arms


def ranking_probability(propensities: Array, arms: Indices) -> Array:
    """(n,) probability that :func:`draw_rankings` gives these arms (n,) or (n, k) in this order.

    Examples
    --------
    >>> ranking_probability(np.array([[0.5, 0.3, 0.2]]), np.array([[1, 0]])).round(6)
    array([0.214286])
    """
    each = np.take_along_axis(propensities, arms.reshape(len(arms), -1), axis=1)
    total = propensities.sum(axis=1, keepdims=True)
    gone = np.cumsum(each, axis=1) - each
    return np.asarray(np.prod(each / (total - gone), axis=1))
