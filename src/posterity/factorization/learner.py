"""Learning by factorization machines: all rows at once, in batches, or one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.factorization._learning import sweep
from posterity.factorization._units import Units
from posterity.factorization.inputs import find_numeric_columns, make_row, read_columns, read_sides
from posterity.factorization.posterior import LARGE_START, SMALL_START, FactorizationPosterior, Rows
from posterity.factorization.reader import FactorizationReader
from posterity.grouped.index import KeyIndex
from posterity.linear.inputs import read_weights, refuse_no_weight
from posterity.transaction import hold_model_lock

# More factors must raise the log score of a row by this much.
RANKS, LEAST_GAIN = (0, 2, 4, 8, 16, 32), 0.002
# Sweeps over all rows once a stream has grown by GROWTH since the last, and those from a fresh
# start once it is RESTART times as long as at the last.
STREAM_SWEEPS, GROWTH = 1, 0.5
RESTART_SWEEPS, RESTART = 6, 2
# While levels have fewer rows on average, it depends on the start what sweeps find: then all is
# fitted anew, as by `fit`, once the stream is RESTART_FEW times as long.
FEW_ROWS, RESTART_FEW = 10, 1.5
# Sweeps from each start, of which the one of the highest bound goes on.
TRIAL_SWEEPS = 20


@dataclass(eq=False, repr=False)
class FactorizationLearner(FactorizationReader):
    """Base of factorization machines, which learns rows of levels for any kind of target."""

    rank: int | Literal["auto"] = 8
    _: KW_ONLY
    numeric: Sequence[str | int] | None = None
    max_sweeps: int = 60
    tolerance: float = 1e-5
    random_state: int | None = 0

    # Whether targets are labels, 0 or 1.
    _of_labels: ClassVar[bool] = False

    # ---- learning --------------------------------------------------------------------------------

    @hold_model_lock
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these rows, starting from the prior.

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
        return self._take_over(
            self._begin(X, self._copy_unfitted()._targets(y, None), sample_weight)
        )

    @hold_model_lock
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

    @hold_model_lock
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
        target = None if posterior is None or weight != 1.0 else self._target(y)
        if (
            posterior is not None
            and target is not None
            and len(posterior.y) + 1 < _find_turn(posterior)
        ):
            found = self._find_levels(x)
            if found is not None and min(found[0]) >= 0:
                posterior.learn_one(*found, target, weight)
                return self
            if found is not None and self._learn_new_levels(posterior, x, target):
                return self
        return self.partial_fit(make_row(x), [y], [weight])

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
        """Return one target as a number; None if it must be read by :meth:`_targets`."""
        raise NotImplementedError

    def _score(self, rows: Rows, posterior: FactorizationPosterior) -> float:
        """Mean log predictive density of rows that were not learned."""
        raise NotImplementedError

    def _begin(
        self, X: Any, read: tuple[Array, dict[str, Any]], sample_weight: ArrayLike | None
    ) -> Self:
        """A fresh model that has learned these rows."""
        self._check_parameters()
        refuse_no_weight(sample_weight)
        fresh = self._copy_unfitted()
        fresh.__dict__.update(read[1])
        rows = fresh._begin_columns(X, read[0], sample_weight)
        rank = self._choose_rank(fresh, rows) if self.rank == "auto" else int(self.rank)
        fresh._posterior_or_none = fresh._fit(rows, _sizes(fresh._indexes), rank)
        return fresh

    @hold_model_lock
    def _learn(
        self, X: Any, read: tuple[Array, dict[str, Any]], sample_weight: ArrayLike | None
    ) -> None:
        if self._posterior_or_none is None:
            self._take_over(self._begin(X, read, sample_weight))
            return
        indexes = [None if index is None else index.copy() for index in self._indexes]
        columns, labels = self._columns(X)
        targets, weights = _check_rows(read[0], len(columns[0]), sample_weight)
        if not len(targets):
            return
        codes, numbers = read_sides(columns, labels, indexes, new=True)
        posterior, units, start = self._posterior.copy(), self._units, 0
        while start < len(targets):
            more = max(1, math.ceil(_find_turn(posterior)) - len(posterior.y))
            part = slice(start, start + more)
            values = units.apply(numbers[part])
            posterior.learn(Rows(codes[part], values, targets[part], weights[part]))
            (posterior, units), start = self._sweep_if_due(posterior, units), part.stop
        self.__dict__.update(
            read[1],
            _posterior_or_none=posterior,
            _indexes=indexes,
            _centres=units.centres,
            _scales=units.scales,
        )

    def _learn_new_levels(self, posterior: FactorizationPosterior, x: Any, y: float) -> bool:
        """Learn a row with new levels in its place; whether that was possible."""
        n, sizes = len(posterior.y), posterior.sizes
        images = [index.take_snapshot() for index in self._indexes if index is not None]
        try:
            found = self._find_levels(x, new=True)
            if found is not None:
                posterior.add_levels(np.add(found[0], 1))
                posterior.learn_one(*found, y, 1.0)
        finally:
            if len(posterior.y) == n:  # nothing was learned, so nothing has come
                posterior.drop_levels(sizes)
                for image in images:
                    image.restore()
        return len(posterior.y) > n

    def _begin_columns(self, X: Any, targets: Array, sample_weight: ArrayLike | None) -> Rows:
        columns, names = read_columns(X, None)
        self._set_features(len(columns), names)
        numeric = find_numeric_columns(self.numeric, names, len(columns))
        labels = self._labels()
        targets, weights = _check_rows(targets, len(columns[0]), sample_weight)
        if not len(targets):
            raise ValueError("X has no rows: fit needs at least one")
        self._indexes = [None if j in numeric else KeyIndex() for j in range(len(columns))]
        codes, numbers = read_sides(columns, labels, self._indexes, new=True)
        sides = np.zeros(len(columns)), np.ones(len(columns))
        units = Units(*sides).fit(numbers, weights, numeric)
        self._centres, self._scales = units
        return Rows(codes, units.apply(numbers), targets, weights)

    def _sweep_if_due(
        self, posterior: FactorizationPosterior, units: Units
    ) -> tuple[FactorizationPosterior, Units]:
        """Sweep over all rows again, or restart in units of all rows, if that is due."""
        n = len(posterior.y)
        if n >= _find_restart(posterior):  # few rows had no use for factors
            numeric = [side for side, index in enumerate(self._indexes) if index is None]
            found = units.fit(posterior.values, posterior.weights, numeric)
            rows = posterior.rows._replace(values=units.convert(posterior.values, found))
            if n < FEW_ROWS * sum(posterior.sizes):
                return self._fit(rows, posterior.sizes, posterior.rank), found
            restarted = self._start(rows, posterior.sizes, posterior.rank, LARGE_START)
            sweep(restarted, min(RESTART_SWEEPS, self.max_sweeps), self.tolerance)
            return restarted, found
        if n >= _find_turn(posterior):
            sweep(posterior, STREAM_SWEEPS, self.tolerance)
        return posterior, units

    def _fit(self, rows: Rows, sizes: list[int], rank: int) -> FactorizationPosterior:
        tried = []
        for start in (SMALL_START, LARGE_START) if rank else (SMALL_START,):
            posterior = self._start(rows, sizes, rank, start)
            sweep(posterior, min(self.max_sweeps, TRIAL_SWEEPS), self.tolerance)
            tried.append(posterior)
        best = max(tried, key=lambda one: one.log_evidence)
        if self.max_sweeps > TRIAL_SWEEPS:
            sweep(best, self.max_sweeps - TRIAL_SWEEPS, self.tolerance)
        return best

    def _start(
        self, rows: Rows, sizes: list[int], rank: int, start: tuple[float, float]
    ) -> FactorizationPosterior:
        noise, seed = 1.0 if self._of_labels else self.noise_precision, self.random_state
        return FactorizationPosterior.begin(
            rows, sizes, rank, noise, seed, start=start, labels=self._of_labels
        )

    def _choose_rank(self, fresh: Self, rows: Rows) -> int:
        """The first rank that the next hardly passes in the log score of a tenth of the rows."""
        n = len(rows.y)
        order = np.random.default_rng(self.random_state).permutation(n)
        held, rest = order[: n // 10], order[n // 10 :]
        best, best_score = 0, -np.inf
        for rank in RANKS if len(held) else ():
            posterior = fresh._fit(rows.select(rest), _sizes(fresh._indexes), rank)
            score = self._score(rows.select(held), posterior)
            if score < best_score + LEAST_GAIN:
                break
            best, best_score = rank, score
        return best


def _find_turn(posterior: FactorizationPosterior) -> float:
    """The number of rows at which all are swept again, or the sweeps begin anew."""
    return min((1.0 + GROWTH) * posterior.swept, _find_restart(posterior))


def _find_restart(posterior: FactorizationPosterior) -> float:
    """The number of rows at which the sweeps begin anew."""
    few = posterior.rows_at_start < FEW_ROWS * sum(posterior.sizes)
    return (RESTART_FEW if few else RESTART) * posterior.rows_at_start


def _sizes(indexes: list[KeyIndex | None]) -> list[int]:
    return [1 if index is None else len(index.labels) for index in indexes]


def _check_rows(targets: Array, n: int, sample_weight: ArrayLike | None) -> tuple[Array, Array]:
    """Targets and weights (n,)."""
    if targets.shape != (n,):
        raise ValueError(f"y has shape {targets.shape}, but X has {n} rows: expected ({n},)")
    weights = read_weights(sample_weight, n)
    return targets, np.ones(n) if weights is None else weights
