"""Bayesian factorization machine: what users think of items, with error bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import Normal
from posterity.factorization.inputs import (
    columns_of,
    numeric_places,
    one_row,
    read_numbers,
    read_sides,
)
from posterity.factorization.posterior import FactorizationPosterior
from posterity.factorization.reader import FactorizationReader
from posterity.grouped.index import KeyIndex
from posterity.transaction import one_at_a_time

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Rows = tuple[Codes, Array, Array]

RANKS = (0, 2, 4, 8, 16, 32)
# Sweeps over all rows, once a stream has grown by GROWTH since the last, and from a fresh start.
STREAM_SWEEPS, GROWTH, RESTART_SWEEPS = 2, 0.25, 10


class BayesianFactorizationMachine(FactorizationReader):
    """Regression on levels of several sides, such as users and items, which meet in pairs.

    ``y = b + x'w + sum_{i<j} <v_i, v_j> x_i x_j + noise``: each level of each side has a weight
    and ``rank`` factors. Each column of ``X`` is a side: a level in each row, or a number where the
    column is ``numeric``. Levels vary around what their side has in common, which is learned, as
    is how much each factor counts: factors that data don't need vanish. A level never seen is
    predicted by what its side has in common, with a wider interval.

    Parameters
    ----------
    rank : int or "auto", default 8
        Number of factors; 0: weights alone, a linear model of crossed effects. "auto": that of
        the highest log score of a tenth of the rows, held out.
    numeric : list of str or int, optional
        Columns, by name or place, that hold numbers. All others hold levels.
    noise_precision : float, optional
        1 / variance of the noise, if it is known. None: learned.
    max_sweeps : int, default 60
        Most sweeps over all sides in ``fit``.
    tolerance : float, default 1e-5
        ``fit`` ends when a sweep raises the evidence's bound by less than this, a row.
    random_state : int, default 0
        Seed of the small factors that ``fit`` starts from.

    Attributes
    ----------
    rank_ : int
        Number of factors.
    levels_ : list of (L,) arrays
        The levels of each side, in the order in which they came; of a numeric one its name.
    weights_, factors_ : lists of (L,) and (L, rank) arrays
        Posterior means of w and v.
    intercept_, noise_precision_ : float
    log_evidence_ : float
        Lower bound of log p(y), up to a constant of ``rank`` and the number of sides.
    bounds_ : (sweeps,) array
        The bound after each of the last sweeps.
    n_observations_ : int
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The model is Rendle's (2010). Each side's posterior is Normal given the others', found by
    variational inference in turn (Lim & Teh 2007; Raiko, Ilin & Karhunen 2007), the weights and
    factors of a level together. Variances are exact for these Normals; the sides' posteriors are
    taken as independent of each other. Rows are kept: a stream learns the levels of new rows from
    all of their rows, sweeps all again after a tenth more, and starts afresh after twice as many.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.factorization import BayesianFactorizationMachine
    >>> rng = np.random.default_rng(0)
    >>> taste, style = rng.normal(size=40), rng.normal(size=30)
    >>> X = np.stack([rng.integers(0, 40, 800), rng.integers(0, 30, 800)], axis=1)
    >>> y = 3.0 + taste[X[:, 0]] * style[X[:, 1]] + rng.normal(scale=0.3, size=800)
    >>> model = BayesianFactorizationMachine(rank=2).fit(X[:700], y[:700])
    >>> bool(np.mean((model.predict(X[700:]) - y[700:]) ** 2) < 0.2)
    True
    >>> known, new = model.predict_distribution([[3, 5], [3, 1000]]).std()
    >>> bool(known < new)
    True
    """

    def __init__(
        self,
        rank: int | Literal["auto"] = 8,
        *,
        numeric: Sequence[str | int] | None = None,
        noise_precision: float | None = None,
        max_sweeps: int = 60,
        tolerance: float = 1e-5,
        random_state: int | None = 0,
    ) -> None:
        self.rank = rank
        self.numeric = numeric
        self.noise_precision = noise_precision
        self.max_sweeps = max_sweeps
        self.tolerance = tolerance
        self.random_state = random_state

    # ---- learning --------------------------------------------------------------------------------

    @one_at_a_time
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Forget everything and learn these rows.

        Parameters
        ----------
        X : (n, sides) array, list of rows, or data frame
            A level (number, text, date) in each place, or a number in ``numeric`` columns.
        y : (n,) array

        Raises
        ------
        ValueError
            If a value is missing or not finite, or a parameter is out of its range.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1)
        >>> model.fit([["ann", "tea"], ["bob", "tea"], ["ann", "rum"]], [4.0, 2.0, 1.0]).levels_[1]
        array(['tea', 'rum'], dtype=object)
        """
        self._check_parameters()
        fresh = self._fresh()
        rows = fresh._begin_columns(X, y)
        rank = self._chosen_rank(fresh, rows) if self.rank == "auto" else int(self.rank)
        fresh._posterior_or_none = fresh._fitted(rows, _sizes(fresh._indexes), rank)
        return self._take_over(fresh)

    @one_at_a_time
    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn these rows too, of levels known or new. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1).fit([["ann", "tea"]] * 2, [4.0, 2.0])
        >>> model.partial_fit([["bob", "tea"]], [3.0]).n_observations_
        3
        """
        if self._posterior_or_none is None:
            return self.fit(X, y)
        indexes = [None if index is None else index.copy() for index in self._indexes]
        columns, labels = self._columns(X)
        targets = _targets(y, len(columns[0]))
        if not len(targets):
            return self
        codes, values = read_sides(columns, labels, indexes, self._scales, new=True)
        posterior, start = self._posterior.copy(), 0
        while start < len(targets):
            part = slice(start, start + max(1, _due(posterior) - len(posterior.y)))
            posterior.learn(codes[part], values[part], targets[part])
            posterior, start = self._revisited(posterior), part.stop
        self.__dict__.update(_posterior_or_none=posterior, _indexes=indexes)
        return self

    @one_at_a_time
    def learn_one(self, x: Any, y: float) -> Self:
        """Learn one row: a sequence of levels, or a mapping of column names to levels.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1).learn_one(["ann", "tea"], 4.0)
        >>> model.learn_one(["bob", "tea"], 3.0).n_observations_
        2
        """
        posterior = self._posterior_or_none
        if posterior is None:
            return self.partial_fit(one_row(x, None), [y])
        row = one_row(x, self._names())
        known = self._places_of_one(row[0])
        if known is None or known[0].min() < 0 or len(posterior.y) + 1 >= _due(posterior):
            return self.partial_fit(row, [y])
        target = _targets([y], 1)[0]
        if not posterior.learn_one(*known, target):
            raise ValueError(f"y is {y!r}, which overflows what is known")
        return self

    # ---- inner -----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        rank = self.rank
        if rank != "auto" and (not isinstance(rank, int | np.integer) or rank < 0):
            raise ValueError(f"rank is {rank!r}: it must be a whole number >= 0, or 'auto'")
        precision = self.noise_precision
        if precision is not None and not 0.0 < precision < np.inf:
            raise ValueError(f"noise_precision is {precision!r}: it must be positive and finite")
        if self.max_sweeps < 1:
            raise ValueError(f"max_sweeps is {self.max_sweeps!r}: it must be at least 1")

    def _begin_columns(self, X: Any, y: ArrayLike) -> Rows:
        columns, names = columns_of(X, None)
        self._set_features(len(columns), names)
        numeric = numeric_places(self.numeric, names, len(columns))
        labels = self._labels()
        targets = _targets(y, len(columns[0]))
        if not len(targets):
            raise ValueError("X has no rows: fit needs at least one")
        self._indexes = [None if j in numeric else KeyIndex() for j in range(len(columns))]
        self._scales = np.ones(len(columns))
        for j in numeric:
            numbers = read_numbers(columns[j], labels[j])
            largest = float(np.abs(numbers).max()) or 1.0
            self._scales[j] = largest * float(np.sqrt(np.mean((numbers / largest) ** 2))) or 1.0
        return *read_sides(columns, labels, self._indexes, self._scales, new=True), targets

    def _revisited(self, posterior: FactorizationPosterior) -> FactorizationPosterior:
        """What sweeps over all rows make of it, if they are due."""
        n = len(posterior.y)
        if n >= 2 * posterior.begun:  # few rows had no use for factors, which then rest
            rows = posterior.codes, posterior.values, posterior.y
            return self._fitted(rows, posterior.sizes, posterior.sides.rank, RESTART_SWEEPS)
        if n >= _due(posterior):
            posterior.sweep(STREAM_SWEEPS, self.tolerance)
        return posterior

    def _fitted(
        self, rows: Rows, sizes: list[int], rank: int, most: int | None = None
    ) -> FactorizationPosterior:
        posterior = FactorizationPosterior.begin(
            rows, sizes, rank, self.noise_precision, self.random_state
        )
        posterior.sweep(min(most or self.max_sweeps, self.max_sweeps), self.tolerance)
        return posterior

    def _chosen_rank(self, fresh: Self, rows: Rows) -> int:
        """The first rank whose log score of a tenth of the rows the next does not pass."""
        n = len(rows[2])
        order = np.random.default_rng(self.random_state).permutation(n)
        held, rest = order[: n // 10], order[n // 10 :]
        best, best_score = 0, -np.inf
        for rank in RANKS if len(held) else ():
            among = rows[0][rest], rows[1][rest], rows[2][rest]
            posterior = fresh._fitted(among, _sizes(fresh._indexes), rank)
            mean, variance = posterior.moments(rows[0][held], rows[1][held])
            spread = np.sqrt(variance + posterior.unit**2 / posterior.noise_precision)
            score = float(Normal(mean, spread).logpdf(rows[2][held]).mean())
            if score <= best_score:
                break
            best, best_score = rank, score
        return best


def _due(posterior: FactorizationPosterior) -> int:
    """The number of rows at which all are swept again."""
    return min(math.ceil((1.0 + GROWTH) * posterior.swept), 2 * posterior.begun)


def _sizes(indexes: list[KeyIndex | None]) -> list[int]:
    return [1 if index is None else len(index.labels) for index in indexes]


def _targets(y: ArrayLike, n: int) -> Array:
    """(n,) finite targets."""
    targets = read_numbers(y, "y")
    if targets.shape != (n,):
        raise ValueError(f"y has shape {targets.shape}, but X has {n} rows: expected ({n},)")
    return targets.copy()


__all__ = ["BayesianFactorizationMachine"]
