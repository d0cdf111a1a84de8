"""How factorization machines learn rows: at once, in batches, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.factorization.inputs import (
    columns_of,
    numeric_places,
    one_row,
    read_numbers,
    read_sides,
)
from posterity.factorization.posterior import STARTS, FactorizationPosterior, Rows
from posterity.factorization.reader import FactorizationReader
from posterity.grouped.index import KeyIndex
from posterity.linear.inputs import read_weights, refuse_no_weight
from posterity.transaction import one_at_a_time

Array = NDArray[np.float64]

RANKS = (0, 2, 4, 8, 16, 32)
# Sweeps over all rows, once a stream has grown by GROWTH since the last, and from a fresh start.
STREAM_SWEEPS, GROWTH, RESTART_SWEEPS = 2, 0.25, 6
# Sweeps from each start, of which the one of the highest bound goes on.
TRIAL_SWEEPS = 20


class FactorizationLearner(FactorizationReader):
    """Learns rows of levels, whatever the kind of targets."""

    rank: int | Literal["auto"]
    numeric: Sequence[str | int] | None
    max_sweeps: int
    tolerance: float
    random_state: int | None
    noise_precision: float | None = None

    # Whether targets are labels, 0 or 1.
    _of_labels: ClassVar[bool] = False

    # ---- learning --------------------------------------------------------------------------------

    @one_at_a_time
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything and learn these rows.

        Parameters
        ----------
        X : (n, sides) array, list of rows, or data frame
            A level (number, text, date) in each place, or a number in ``numeric`` columns.
        y : (n,) array
        sample_weight : (n,) array, optional
            How many rows each row stands for.

        Raises
        ------
        ValueError
            If a value is missing or not finite, or a parameter is out of its range.

        Examples
        --------
        >>> from posterity.factorization import BayesianFactorizationMachine
        >>> model = BayesianFactorizationMachine(rank=1)
        >>> model.fit([["ann", "tea"], ["bob", "tea"], ["ann", "rum"]], [4.0, 2.0, 1.0]).levels_[1]
        array(['tea', 'rum'], dtype=object)
        """
        refuse_no_weight(sample_weight)
        return self._take_over(self._begun(X, self._fresh()._targets(y, None), sample_weight))

    @one_at_a_time
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these rows too, of levels known or new. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> from posterity.factorization import BayesianFactorizationMachine
        >>> model = BayesianFactorizationMachine(rank=1).fit([["ann", "tea"]] * 2, [4.0, 2.0])
        >>> model.partial_fit([["bob", "tea"]], [3.0]).n_observations_
        3
        """
        self._learn(X, self._targets(y, None), sample_weight)
        return self

    @one_at_a_time
    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Self:
        """Learn one row: a sequence of levels, or a mapping of column names to levels.

        Examples
        --------
        >>> from posterity.factorization import BayesianFactorizationMachine
        >>> model = BayesianFactorizationMachine(rank=1).learn_one(["ann", "tea"], 4.0)
        >>> model.learn_one(["bob", "tea"], 3.0).n_observations_
        2
        """
        posterior = self._posterior_or_none
        if posterior is None:
            return self.partial_fit(one_row(x, None), [y], [weight])
        row = one_row(x, self._names())
        known, target = self._places_of_one(row[0]), self._target(y)
        due = len(posterior.y) + 1 >= _due(posterior)
        if due or known is None or known[0].min() < 0 or target is None or weight != 1.0:
            return self.partial_fit(row, [y], [weight])
        posterior.learn_one(*known, target, weight)
        return self

    # ---- inner -----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        rank = self.rank
        if rank != "auto" and (not isinstance(rank, int | np.integer) or rank < 0):
            raise ValueError(f"rank is {rank!r}: it must be a whole number >= 0, or 'auto'")
        if self.max_sweeps < 1:
            raise ValueError(f"max_sweeps is {self.max_sweeps!r}: it must be at least 1")

    def _targets(self, y: Any, classes: ArrayLike | None) -> tuple[Array, dict[str, Any]]:
        """(n,) targets as numbers, and attributes that go with them."""
        raise NotImplementedError

    def _target(self, y: Any) -> float | None:
        """One target as a number; None if it must be read by :meth:`_targets`."""
        raise NotImplementedError

    def _score(self, rows: Rows, posterior: FactorizationPosterior) -> float:
        """Mean log predictive density of rows that were not learned."""
        raise NotImplementedError

    def _begun(
        self, X: Any, read: tuple[Array, dict[str, Any]], sample_weight: ArrayLike | None
    ) -> Self:
        """A fresh model that has learned these rows."""
        self._check_parameters()
        fresh = self._fresh()
        fresh.__dict__.update(read[1])
        rows = fresh._begin_columns(X, read[0], sample_weight)
        rank = self._chosen_rank(fresh, rows) if self.rank == "auto" else int(self.rank)
        fresh._posterior_or_none = fresh._fitted(rows, _sizes(fresh._indexes), rank)
        return fresh

    @one_at_a_time
    def _learn(
        self, X: Any, read: tuple[Array, dict[str, Any]], sample_weight: ArrayLike | None
    ) -> None:
        if self._posterior_or_none is None:
            self._take_over(self._begun(X, read, sample_weight))
            return
        indexes = [None if index is None else index.copy() for index in self._indexes]
        columns, labels = self._columns(X)
        targets, weights = _checked(read[0], len(columns[0]), sample_weight)
        if not len(targets):
            return
        codes, values = read_sides(columns, labels, indexes, self._scales, new=True)
        posterior, start = self._posterior.copy(), 0
        while start < len(targets):
            part = slice(start, start + max(1, _due(posterior) - len(posterior.y)))
            posterior.learn((codes[part], values[part], targets[part], weights[part]))
            posterior, start = self._revisited(posterior), part.stop
        self.__dict__.update(read[1] | {"_posterior_or_none": posterior, "_indexes": indexes})

    def _begin_columns(self, X: Any, targets: Array, sample_weight: ArrayLike | None) -> Rows:
        columns, names = columns_of(X, None)
        self._set_features(len(columns), names)
        numeric = numeric_places(self.numeric, names, len(columns))
        labels = self._labels()
        targets, weights = _checked(targets, len(columns[0]), sample_weight)
        if not len(targets):
            raise ValueError("X has no rows: fit needs at least one")
        self._indexes = [None if j in numeric else KeyIndex() for j in range(len(columns))]
        self._scales = np.ones(len(columns))
        for j in numeric:
            numbers = read_numbers(columns[j], labels[j])
            largest = float(np.abs(numbers).max()) or 1.0
            self._scales[j] = largest * float(np.sqrt(np.mean((numbers / largest) ** 2))) or 1.0
        return *read_sides(columns, labels, self._indexes, self._scales, new=True), targets, weights

    def _revisited(self, posterior: FactorizationPosterior) -> FactorizationPosterior:
        """What sweeps over all rows make of it, if they are due."""
        n = len(posterior.y)
        if n >= 2 * posterior.begun:  # few rows had no use for factors, which then rest
            rows = posterior.codes, posterior.values, posterior.y, posterior.weights
            return self._fitted(rows, posterior.sizes, posterior.sides.rank, RESTART_SWEEPS)
        if n >= _due(posterior):
            posterior.sweep(STREAM_SWEEPS, self.tolerance)
        return posterior

    def _fitted(
        self, rows: Rows, sizes: list[int], rank: int, most: int | None = None
    ) -> FactorizationPosterior:
        noise = 1.0 if self._of_labels else self.noise_precision
        most, tried = min(most or self.max_sweeps, self.max_sweeps), []
        for start in STARTS if rank else STARTS[:1]:
            posterior = FactorizationPosterior.begin(
                rows, sizes, rank, noise, self.random_state, start=start, labels=self._of_labels
            )
            posterior.sweep(min(most, TRIAL_SWEEPS), self.tolerance)
            tried.append(posterior)
        best = max(tried, key=lambda one: one.log_evidence)
        if most > TRIAL_SWEEPS:
            best.sweep(most - TRIAL_SWEEPS, self.tolerance)
        return best

    def _chosen_rank(self, fresh: Self, rows: Rows) -> int:
        """The first rank whose log score of a tenth of the rows the next does not pass."""
        n = len(rows[2])
        order = np.random.default_rng(self.random_state).permutation(n)
        held, rest = order[: n // 10], order[n // 10 :]
        best, best_score = 0, -np.inf
        for rank in RANKS if len(held) else ():
            among, tested = (tuple(one[part] for one in rows) for part in (rest, held))
            posterior = fresh._fitted(cast(Rows, among), _sizes(fresh._indexes), rank)
            score = self._score(cast(Rows, tested), posterior)
            if score <= best_score:
                break
            best, best_score = rank, score
        return best


def _due(posterior: FactorizationPosterior) -> int:
    """The number of rows at which all are swept again."""
    return min(math.ceil((1.0 + GROWTH) * posterior.swept), 2 * posterior.begun)


def _sizes(indexes: list[KeyIndex | None]) -> list[int]:
    return [1 if index is None else len(index.labels) for index in indexes]


def _checked(targets: Array, n: int, sample_weight: ArrayLike | None) -> tuple[Array, Array]:
    """Targets and weights (n,)."""
    if targets.shape != (n,):
        raise ValueError(f"y has shape {targets.shape}, but X has {n} rows: expected ({n},)")
    weights = read_weights(sample_weight, n)
    return targets, np.ones(n) if weights is None else weights


__all__ = ["FactorizationLearner"]
