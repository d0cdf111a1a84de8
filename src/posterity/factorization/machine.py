"""Bayesian factorization machine: what users think of items, with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from posterity.distributions import Normal, StudentT
from posterity.factorization.inputs import (
    columns_of,
    numeric_places,
    one_row,
    read_numbers,
    read_sides,
)
from posterity.factorization.posterior import FactorizationPosterior
from posterity.grouped.index import KeyIndex
from posterity.linear.state import PosteriorEstimator
from posterity.transaction import one_at_a_time

Array = NDArray[np.float64]
Codes = NDArray[np.intp]
Rows = tuple[Codes, Array, Array]

RANKS = (0, 2, 4, 8, 16, 32)
# Sweeps over all rows, once a stream has grown by GROWTH since the last.
STREAM_SWEEPS, GROWTH = 5, 0.1


class BayesianFactorizationMachine(RegressorMixin, PosteriorEstimator[FactorizationPosterior]):
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

    _learned_names = ("_posterior_or_none", "_indexes", "_scales")
    _indexes: list[KeyIndex | None]
    _scales: Array

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
        rank = self._choose_rank(fresh, rows) if self.rank == "auto" else int(self.rank)
        fresh._posterior_or_none = fresh._fitted(rows, _count_levels(fresh._indexes), rank)
        return self._take_over(fresh)

    @one_at_a_time
    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Learn more rows, with known or new levels. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1).fit([["ann", "tea"]] * 2, [4.0, 2.0])
        >>> model.partial_fit([["bob", "tea"]], [3.0]).n_observations_
        3
        """
        if self._posterior_or_none is None:
            return self.fit(X, y)
        posterior = self._posterior.copy()
        indexes = [None if index is None else index.copy() for index in self._indexes]
        columns, labels = self._columns(X)
        targets = _targets(y, len(columns[0]))
        if not len(targets):
            return self
        codes, values = read_sides(columns, labels, indexes, self._scales, new=True)
        posterior.extend(codes, values, targets, _count_levels(indexes))
        if (
            len(posterior.y) >= 2 * posterior.begun
        ):  # few rows had no use for factors, which then rest
            rows = posterior.codes, posterior.values, posterior.y
            posterior = self._fitted(rows, _count_levels(indexes), posterior.sides.rank)
        elif len(posterior.y) >= (1.0 + GROWTH) * posterior.swept:
            posterior.sweep(STREAM_SWEEPS, self.tolerance)
        else:
            posterior.touch(codes)
        self.__dict__.update(_posterior_or_none=posterior, _indexes=indexes)
        return self

    def learn_one(self, x: Any, y: float) -> Self:
        """Learn one row: a sequence of levels, or a mapping of column names to levels.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1).learn_one(["ann", "tea"], 4.0)
        >>> model.learn_one(["bob", "tea"], 3.0).n_observations_
        2
        """
        names = self._names() if self._posterior_or_none is not None else None
        return self.partial_fit(one_row(x, names), [y])

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Mean of new observations at ``X``, and with ``return_std`` their sd as well.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0).fit([["ann", "tea"]] * 4, [4.0] * 4)
        >>> model.predict([["ann", "tea"]]).round(3)
        array([4.])
        """
        if return_std:
            distribution = self.predict_distribution(X)
            return distribution.mean(), distribution.std()
        return self._moments(X)[0]

    def predict_distribution(self, X: Any) -> Normal | StudentT:
        """Distribution of new observations at ``X``: of their mean and variance, one per row.

        Normal where the noise is known, else Student's t.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0, noise_precision=1.0)
        >>> model = model.fit([["ann", "tea"], ["bob", "tea"]] * 3, [4.0, 2.0] * 3)
        >>> sd = model.predict_distribution([["ann", "tea"], ["new", "tea"]]).std()
        >>> bool(sd[0] < sd[1])
        True
        """
        mean, variance = self._moments(X)
        posterior = self._posterior
        noise = posterior.unit**2 / posterior.noise_precision
        if posterior.noise_is_known:
            return Normal(mean, np.sqrt(variance + noise))
        df = 2.0 * posterior.noise_shape
        heavier = (df - 2.0) / df if df > 2.0 else 1.0
        return StudentT(df, mean, np.sqrt(heavier * variance + noise))

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0).fit([["ann", "tea"]] * 4, [4.0, 3.0] * 2)
        >>> model.predict_interval([["ann", "tea"]], level=0.9).shape
        (1, 2)
        """
        return np.stack(self.predict_distribution(X).interval(level), axis=1)

    def recommend(
        self,
        user: Any,
        k: int = 10,
        *,
        policy: Literal["mean", "draw"] | float = "mean",
        seen: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> NDArray[Any]:
        """The ``k`` best levels of the second side for a level of the first, best first.

        Parameters
        ----------
        user : level
            One never seen is served by what all have in common.
        k : int, default 10
        policy : "mean", "draw" or float, default "mean"
            By the mean; by one draw of all weights (Thompson sampling: items of which little is
            known are tried); or by this quantile of the mean, 0.9 say, to prefer what may be good.
        seen : bool, default False
            Whether items of which the user has rows may come.
        random_state : int or Generator, optional
            For "draw".

        Raises
        ------
        ValueError
            If the model has other than two sides of levels, or the policy is unknown.

        Examples
        --------
        >>> X = [["ann", "tea"], ["bob", "tea"], ["bob", "rum"], ["bob", "gin"]]
        >>> model = BayesianFactorizationMachine(rank=0).fit(X, [4.0, 4.0, 5.0, 1.0])
        >>> model.recommend("ann", 2)
        array(['rum', 'gin'], dtype=object)
        """
        posterior = self._posterior
        users, *others = self._indexes
        if users is None or len(others) != 1 or others[0] is None:
            raise ValueError("recommend needs two columns of levels, such as users and items")
        items = others[0]
        codes, _ = read_sides([[user]], ["user"], [users], np.ones(1), new=False)
        candidates = np.arange(len(items.labels))
        if not seen:
            had = posterior.codes[posterior.codes[:, 0] == codes[0, 0], 1]
            candidates = np.setdiff1d(candidates, had)
        pairs = np.stack([np.full(len(candidates), codes[0, 0]), candidates], axis=1)
        scores = posterior.scores(pairs, policy, np.random.default_rng(random_state))
        best = np.argsort(-scores, kind="stable")[:k]
        shown: NDArray[Any] = items.shown()[candidates[best]]
        return shown

    # ---- attributes ------------------------------------------------------------------------------

    @property
    def rank_(self) -> int:
        """Number of factors."""
        return self._posterior.sides.rank

    @property
    def levels_(self) -> list[NDArray[Any]]:
        """The levels of each side."""
        self._posterior  # noqa: B018
        return [
            np.array([label], dtype=object) if index is None else index.shown()
            for index, label in zip(self._indexes, self._labels(), strict=True)
        ]

    @property
    def weights_(self) -> list[Array]:
        """(L,) posterior means of each side's weights."""
        posterior = self._posterior
        return [
            mean[:, 0] * posterior.unit / scale
            for mean, scale in zip(posterior.means, self._scales, strict=True)
        ]

    @property
    def factors_(self) -> list[Array]:
        """(L, rank) posterior means of each side's factors."""
        posterior = self._posterior
        return [
            mean[:, 1:] * np.sqrt(posterior.unit) / scale
            for mean, scale in zip(posterior.means, self._scales, strict=True)
        ]

    @property
    def intercept_(self) -> float:
        """Posterior mean of b."""
        return self._posterior.offset * self._posterior.unit

    @property
    def noise_precision_(self) -> float:
        """The known noise precision, or the posterior mean of the learned one."""
        return self._posterior.noise_precision / self._posterior.unit**2

    @property
    def log_evidence_(self) -> float:
        """Lower bound of log p(y), up to a constant."""
        return self._posterior.log_evidence

    @property
    def bounds_(self) -> Array:
        """The bound after each of the last sweeps, of targets in units of their spread."""
        return np.array(self._posterior.bounds)

    @property
    def n_observations_(self) -> int:
        """Number of rows learned."""
        return len(self._posterior.y)

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

    def _fitted(self, rows: Rows, sizes: list[int], rank: int) -> FactorizationPosterior:
        posterior = FactorizationPosterior.begin(
            rows, sizes, rank, self.noise_precision, self.random_state
        )
        posterior.sweep(self.max_sweeps, self.tolerance)
        return posterior

    def _choose_rank(self, fresh: Self, rows: Rows) -> int:
        """The first rank whose log score of a tenth of the rows the next does not pass."""
        n = len(rows[2])
        order = np.random.default_rng(self.random_state).permutation(n)
        held, rest = order[: n // 10], order[n // 10 :]
        best, best_score = 0, -np.inf
        for rank in RANKS if len(held) else ():
            among = rows[0][rest], rows[1][rest], rows[2][rest]
            posterior = fresh._fitted(among, _count_levels(fresh._indexes), rank)
            mean, variance = posterior.moments(rows[0][held], rows[1][held])
            spread = np.sqrt(variance + posterior.unit**2 / posterior.noise_precision)
            score = float(Normal(mean, spread).logpdf(rows[2][held]).mean())
            if score <= best_score:
                break
            best, best_score = rank, score
        return best

    def _names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _labels(self) -> list[str]:
        return self._names() or [f"column {j}" for j in range(self.n_features_in_)]

    def _columns(self, X: Any) -> tuple[list[Any], list[str]]:
        """The columns that the model knows."""
        columns, _ = columns_of(X, self._names())
        if len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} columns, but the model has learned {self.n_features_in_}"
            )
        return columns, self._labels()

    def _moments(self, X: Any) -> tuple[Array, Array]:
        posterior = self._posterior
        columns, labels = self._columns(X)
        codes, values = read_sides(columns, labels, self._indexes, self._scales, new=False)
        return posterior.moments(codes, values)


def _count_levels(indexes: list[KeyIndex | None]) -> list[int]:
    return [1 if index is None else len(index.labels) for index in indexes]


def _targets(y: ArrayLike, n: int) -> Array:
    """(n,) finite targets."""
    targets = read_numbers(y, "y")
    if targets.shape != (n,):
        raise ValueError(f"y has shape {targets.shape}, but X has {n} rows: expected ({n},)")
    return targets.copy()


__all__ = ["BayesianFactorizationMachine"]
