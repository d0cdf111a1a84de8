"""Arms that share nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from posterity.aliases import Array, Mask
from posterity.bandits.arms import (
    Arms,
    Rewards,
    is_known,
    learn,
    learn_one,
    predict_rewards,
    refuse_features,
)
from posterity.bandits.beliefs import StudentBeliefs, get_beliefs
from posterity.bandits.decisions import Numbers
from posterity.bandits.mixed import make_beliefs
from posterity.bandits.rising import AnyBeliefs, RisingBeliefs
from posterity.generalized.base import GeneralizedModel
from posterity.kernel import believe_arms
from posterity.linear import BayesianLinearRegression
from posterity.transaction import make_branch

# Weight, degrees of freedom, location and scale of what nothing is known of.
NOTHING = np.array([1.0, np.inf, 0.0, np.inf])[:, None, None]
# No path that tells of the linear predictor, and the sign of its mean.
NO_PATH = None, 1.0


@dataclass
class SeparateArms(Arms):
    """A model of its own for each arm.

    Only a cache are ``tables``, what was read of arms that have learned nothing since.
    """

    prototype: Any
    models: list[Any] = field(default_factory=list)
    tables: Mapping[int, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"tables": {}}

    def branch(self) -> SeparateArms:
        """See :class:`Arms`."""
        return SeparateArms(self.prototype, [make_branch(model) for model in self.models])

    def grow(self, count: int, features: ArrayLike | None) -> None:
        """See :class:`Arms`."""
        refuse_features(features)
        self.models += [clone(self.prototype) for _ in range(count - len(self.models))]

    def learn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.tables = {}
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            learn(self.models[arm], some.X, some)

    def learn_one(self, x: Any, arm: int, reward: float, weight: float) -> None:
        """See :class:`Arms`."""
        self.tables = {place: one for place, one in self.tables.items() if place != arm}
        learn_one(self.models[arm], x, reward, weight)

    def unlearn(self, rows: Rewards) -> None:
        """See :class:`Arms`."""
        self.tables = {}
        for arm in np.unique(rows.arms):
            some = rows.of(rows.arms == arm)
            self.models[arm].unlearn(some.X, some.rewards, some.weights)

    def merge(self, other: SeparateArms) -> None:
        """See :class:`Arms`."""
        self.tables = {}
        for model, its in zip(self.models, other.models, strict=True):
            if is_known(its):
                model.merge(its)

    def beliefs(self, X: Array, allowed: Mask, numbers: Numbers) -> AnyBeliefs:
        """See :class:`Arms`."""
        if isinstance(self.prototype, BayesianLinearRegression):
            nothing = np.broadcast_to(NOTHING, (4, 1, len(X)))
            tables = [
                self._tabulate(arm, X) if is_known(model) else nothing
                for arm, model in enumerate(self.models)
            ]
            return make_beliefs(tables, allowed)
        eta = self._believe_predictors(X)
        if eta is None:
            return get_beliefs([predict_rewards(model, X) for model in self.models], allowed)
        normal = eta[0], np.sqrt(eta[1]), np.full(allowed.shape, np.inf)
        believed = StudentBeliefs(*normal, np.ascontiguousarray(allowed))
        return RisingBeliefs(believed, self.prototype._likelihood())

    def _open(self, arm: int, opens: Callable[[Any], Any]) -> Any:
        """What tells an arm's expected rewards."""
        if arm not in self.tables:
            self.tables = {**self.tables, arm: opens(self.models[arm])}
        return self.tables[arm]

    def _tabulate(self, arm: int, X: Array) -> Array:
        """(4, M, n) of an arm's expected rewards: of one row by the path that learns them."""
        table = self.models[arm]._tabulate_mean(X[0]) if len(X) == 1 else None
        return self._open(arm, _open_tables)(X) if table is None else table[:, :, None]

    def _believe_predictors(self, X: Array) -> Array | None:
        """Means and variances (2, n, K) of eta, with which rewards rise; None where these do not.

        Nor where the eta of an arm is not normal, or arms learn parameters apart.
        """
        if not isinstance(self.prototype, GeneralizedModel) or self.prototype._likelihood().learned:
            return None
        opened = [
            self._open(arm, methodcaller("_open_beliefs")) if is_known(model) else NO_PATH
            for arm, model in enumerate(self.models)
        ]
        if None in opened:
            return None
        eta = believe_arms(opened, X)
        for arm in np.flatnonzero(np.isnan(eta[0]).any(axis=0)).tolist():
            eta[0, :, arm], eta[1, :, arm] = self._match_predictors(arm, X)
        return eta

    def _match_predictors(self, arm: int, X: Array) -> tuple[Any, Any]:
        """Mean and variance (n,) of an arm's eta where its path knows too little."""
        model = self.models[arm]
        if not is_known(model):
            return 0.0, np.inf
        mean, variance = model._match_predictors(X)
        return self.tables[arm][1] * mean, variance


def _open_tables(model: Any) -> Callable[[Array], Array]:
    """What tabulates expected targets at rows (n, m), by the coefficients as they are now.

    A table (4, M, n) has weights, degrees of freedom, locations and scales of a mixture of M.
    """
    joint, posterior = model._joint(), model._posterior
    waits, offset = bool(model._never_varied().any()), model._offset

    def tabulate(X: Array) -> Array:
        rows, shift = model._prepare_rows(X, None)
        table: Array = joint._tabulate(rows, shift)
        effects = posterior.unseen_effects(rows[:, offset:]) if waits else None
        if effects is not None:
            table[3] = np.hypot(table[3], np.sqrt((effects * effects).sum(axis=1)))
        return table

    return tabulate
