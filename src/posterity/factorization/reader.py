"""Reads of a factorization machine: predictions, recommendations and coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import Tags

from posterity.aliases import AnyArray, Array, Indices
from posterity.distributions.guesses import tell_call
from posterity.factor.usable import LARGEST
from posterity.factorization._units import Units
from posterity.factorization.inputs import read_columns, read_sides
from posterity.factorization.posterior import FactorizationPosterior
from posterity.grouped.index import KeyIndex
from posterity.kernel.values import read_size
from posterity.linear.named import get_feature_names
from posterity.linear.state import OUR_NAMES, PosteriorEstimator

Codes = Indices


class FactorizationReader(PosteriorEstimator[FactorizationPosterior]):
    """Reads of a factorization machine; none changes it."""

    _our_names: ClassVar[Mapping[str, str]] = {
        **OUR_NAMES,
        "merge": "partial_fit(X, y) with the rows of the other: its factors are turned otherwise",
        "predict_then_learn": "predict_distribution(X), and then partial_fit(X, y)",
        "unlearn": "fit(X, y) with the rows that are left",
    }
    _learned_names: ClassVar[tuple[str, ...]] = (
        "_posterior_or_none",
        "_indexes",
        "_centres",
        "_scales",
    )
    _indexes: list[KeyIndex | None]
    _centres: Array
    _scales: Array

    @tell_call
    def recommend(
        self,
        user: object,
        k: int = 10,
        *,
        policy: Literal["mean", "draw"] | float = "mean",
        seen: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> AnyArray:
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
        >>> from posterity.factorization import BayesianFactorizationMachine
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
        codes, _ = read_sides([[user]], ["user"], [users], new=False)
        candidates = np.arange(len(items.labels))
        if not seen:
            had = posterior.codes[posterior.codes[:, 0] == codes[0, 0], 1]
            candidates = np.setdiff1d(candidates, had)
        pairs = np.stack([np.full(len(candidates), codes[0, 0]), candidates], axis=1)
        scores = posterior.score_pairs(pairs, policy, np.random.default_rng(random_state))
        best = np.argsort(-scores, kind="stable")[: read_size(k, "k")]
        shown: AnyArray = items.list_keys()[candidates[best]]
        return shown

    # ---- attributes ------------------------------------------------------------------------------

    @property
    def rank_(self) -> int:
        """Number of factors."""
        return self._posterior.rank

    @property
    def levels_(self) -> list[AnyArray]:
        """The levels of each side."""
        self._posterior  # noqa: B018
        return [
            np.array([label], dtype=object) if index is None else index.list_keys()
            for index, label in zip(self._indexes, self._labels(), strict=True)
        ]

    @property
    def weights_(self) -> list[Array]:
        """(L,) posterior means of each side's weights."""
        posterior = self._posterior
        return [
            (mean[:, 0] + mean[:, 1:] @ self._sum_shifts(side)) * posterior.unit / scale
            for side, (mean, scale) in enumerate(zip(posterior.means, self._scales, strict=True))
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
        posterior, shifts = self._posterior, self._shifts
        # Each pair of numbers is met from both of its sides.
        found = [
            shifts[side] * (mean[0, 0] + 0.5 * mean[0, 1:] @ self._sum_shifts(side))
            for side, mean in enumerate(posterior.means)
            if shifts[side]
        ]
        return (posterior.offset + float(sum(found))) * posterior.unit

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.sparse = False
        return tags

    @property
    def _units(self) -> Units:
        return Units(self._centres, self._scales)

    @property
    def _shifts(self) -> Array:
        """(S,) what numbers that are 0 are in their units; 0 of levels."""
        return -self._units.centres / self._scales

    def _sum_shifts(self, side: int) -> Array:
        """(rank,) sum of the factors of all other sides' numbers where these are 0."""
        others = [
            shift * mean[0, 1:]
            for other, (shift, mean) in enumerate(
                zip(self._shifts, self._posterior.means, strict=True)
            )
            if shift and other != side
        ]
        return np.asarray(sum(others, start=np.zeros(self.rank_)))

    def _names(self) -> list[str] | None:
        names = get_feature_names(self)
        return None if names is None else list(names)

    def _labels(self) -> list[str]:
        return self._names() or [f"column {j}" for j in range(self.n_features_in_)]

    def _columns(self, X: Any) -> tuple[list[Any], list[str]]:
        """The columns that the model knows."""
        columns, _ = read_columns(X, self._names())
        if len(columns) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: give a column of levels for each side"
            )
        return columns, self._labels()

    def _find_levels(self, x: Any, *, new: bool = False) -> tuple[list[int], list[float]] | None:
        """Find the places of a row's levels, and its features; None of a row to be read as a table.

        Levels that are not known get a place if ``new``, or -1.
        """
        row = x
        if isinstance(x, dict):
            names = self._names()
            if names is None or not all(name in x for name in names):
                return None
            row = [x[name] for name in names]
        elif not isinstance(x, list | tuple):
            row = list(x)
        if len(row) != len(self._indexes):
            return None
        places, values = [], []
        for side, (level, index) in enumerate(zip(row, self._indexes, strict=True)):
            place, value = 0, 1.0
            if index is not None:
                found = index.add(level) if new else index.look_up(level)
                if found is None:
                    return None
                place = found
            elif isinstance(level, float | int) and abs(level) <= LARGEST:
                centres, scales = self._units
                value = (level - float(centres[side])) / float(scales[side])
            else:
                return None
            places.append(place)
            values.append(value)
        return places, values

    def _moments(self, X: Any) -> tuple[Array, Array]:
        posterior = self._posterior
        columns, labels = self._columns(X)
        codes, numbers = read_sides(columns, labels, self._indexes, new=False)
        return posterior.compute_moments(codes, self._units.apply(numbers))
