"""Rows of a log with the rewards that were expected of all arms before their own was known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Estimator, Indices
from posterity.io.rounds import MOST_ROWS, Rounds, iterate_pieces
from posterity.rewards import RewardModel, reward_model


class Expectations:
    """What yields a log's rows, and rewards that were expected of them.

    Of each piece the first array (n, K) is of all earlier rows; then comes one for each part of
    the log, of a model that has not learned its rows. They are computed as they are read.
    """

    parts: int = 0  # where no row changes what is expected, or that isn't known

    def __iter__(self) -> Iterator[tuple[Rounds, Iterable[Array | None]]]:
        raise NotImplementedError

    def predict(self, X: Array) -> Iterator[Array]:
        """The same arrays for contexts X, by all rows that were read; none where no model is."""
        return iter(())


class BeforeLearning(Expectations):
    """Expected by a model that has learned the rows before.

    Of the first rows the mean of those before is expected: what is far from 0 costs nothing. Of the
    very first it is its own reward, which leaves a bias of a row in all.
    """

    def __init__(
        self,
        log: Iterable[Rounds],
        model: Estimator,
        n_arms: int,
        reward_range: tuple[float, float] | None = None,
        *,
        with_parts: bool = False,
    ) -> None:
        self._log, self._n_arms = log, n_arms
        self._model = reward_model(model, n_arms, reward_range, with_parts=with_parts)
        self.parts = self._model.parts

    def __iter__(self) -> Iterator[tuple[Rounds, Iterable[Array]]]:
        learns = self._model.learns
        for piece in iterate_pieces(self._log, seen=0 if learns else MOST_ROWS):
            is_first = learns and piece.first == 0
            yield piece, self._predict_first(piece) if is_first else self.predict(piece.X)
            parts = assign_folds(piece, self.parts) if self.parts else None
            self._model.learn(piece.X, piece.arms, piece.rewards, parts)

    def _predict_first(self, piece: Rounds) -> Iterator[Array]:
        before = np.append(piece.rewards[:1], piece.rewards[:-1].cumsum())
        before[1:] /= np.arange(1, len(piece))
        return repeat(np.repeat(before[:, None], self._n_arms, axis=1), 1 + self.parts)

    def predict(self, X: Array) -> Iterator[Array]:
        """See :class:`Expectations`."""
        return chain([self._model.predict(X)], self._model.predict_without(X))


class ByFolds(Expectations):
    """Expected by a model of the rows of all other folds; two passes.

    A row that has no fold has no model.
    """

    def __init__(
        self,
        log: Iterable[Rounds],
        model: Estimator,
        n_arms: int,
        folds: int,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        if folds < 2:
            raise ValueError(f"folds is {folds}: it must be at least 2, or None for one pass")
        self._log, self._n_arms = log, n_arms
        self._models: list[RewardModel] = [
            reward_model(model, n_arms, reward_range) for _ in range(folds)
        ]

    def __iter__(self) -> Iterator[tuple[Rounds, Iterable[Array]]]:
        folds = len(self._models)
        for piece in iterate_pieces(self._log):
            fold = assign_folds(piece, folds)
            for number, rewards in enumerate(self._models):
                some = piece.of(fold != number)
                rewards.learn(some.X, some.arms, some.rewards)
        for piece in iterate_pieces(self._log):
            fold = assign_folds(piece, folds)
            expected = np.empty((len(piece), self._n_arms))
            for number, rewards in enumerate(self._models):
                expected[fold == number] = rewards.predict(piece.X[fold == number])
            yield piece, [expected]


class Nothing(Expectations):
    """Nothing is expected of any row."""

    def __init__(self, log: Iterable[Rounds]) -> None:
        self._log = log

    def __iter__(self) -> Iterator[tuple[Rounds, Iterable[None]]]:
        for piece in iterate_pieces(self._log, seen=MOST_ROWS):
            yield piece, [None]


def predict_before_learning(
    log: Iterable[Rounds], model: Estimator, n_arms: int
) -> Iterator[tuple[Rounds, Array]]:
    """Rows, and what was expected (n, K) of them by a model that had learned the rows before."""
    for piece, expected in BeforeLearning(log, model, n_arms):
        yield piece, next(iter(expected))


def assign_folds(rounds: Rounds, count: int) -> Indices:
    """A number below ``count`` for each row, (n,), which its own number decides."""
    return np.asarray(mix_numbers(rounds) % np.uint64(count), dtype=np.intp)


def mix_numbers(rounds: Rounds) -> NDArray[np.uint64]:
    """(n,) the rows' numbers, mixed (Steele, Lea and Flood 2014): periods leave no trace."""
    mixed = (rounds.first + np.arange(len(rounds))).astype(np.uint64)
    mixed = mixed + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
