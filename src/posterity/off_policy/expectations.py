"""Rows of a log with the rewards that were expected of all arms before their own was known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.io.rounds import MOST_ROWS, Rounds, iterate_pieces
from posterity.rewards import RewardModel, reward_model

Array = NDArray[np.float64]


def predict_before_learning(
    log: Iterable[Rounds], model: Any, n_arms: int
) -> Iterator[tuple[Rounds, Array]]:
    """Rows, and what was expected (n, K) of them by a model that had learned the rows before."""
    rewards = reward_model(model, n_arms)
    for piece in iterate_pieces(log, seen=0 if rewards.learns else MOST_ROWS):
        yield piece, rewards.predict(piece.X)
        rewards.learn(piece.X, piece.arms, piece.rewards)


def predict_by_folds(
    log: Iterable[Rounds], model: Any, n_arms: int, folds: int
) -> Iterator[tuple[Rounds, Array]]:
    """Rows, and what was expected (n, K) by a model of the rows of all other folds; two passes."""
    models: list[RewardModel] = [reward_model(model, n_arms) for _ in range(folds)]
    for piece in iterate_pieces(log):
        fold = assign_folds(piece, folds)
        for number, rewards in enumerate(models):
            some = piece.of(fold != number)
            rewards.learn(some.X, some.arms, some.rewards)
    for piece in iterate_pieces(log):
        fold = assign_folds(piece, folds)
        expected = np.empty((len(piece), n_arms))
        for number, rewards in enumerate(models):
            expected[fold == number] = rewards.predict(piece.X[fold == number])
        yield piece, expected


def iterate_without_model(log: Iterable[Rounds]) -> Iterator[tuple[Rounds, None]]:
    """Rows, of which nothing was expected."""
    for piece in iterate_pieces(log, seen=MOST_ROWS):
        yield piece, None


def assign_folds(rounds: Rounds, count: int) -> NDArray[np.intp]:
    """A number below ``count`` for each row, (n,), which its own number decides."""
    mixed = (rounds.first + np.arange(len(rounds))).astype(np.uint64)
    # Steele, Lea and Flood's mixer (2014): rows that come in periods end in all folds.
    mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) % np.uint64(count), dtype=np.intp)


__all__ = ["assign_folds", "iterate_without_model", "predict_before_learning", "predict_by_folds"]
