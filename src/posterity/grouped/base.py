"""State of a grouped model, replaced in one step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from posterity.aliases import AnyArray, Array, Indices
from posterity.factor.grouped import GroupBank
from posterity.forgetting import Exponential, Stabilized
from posterity.forgetting.words import read_forgetting
from posterity.grouped.effects import build_shared_posterior
from posterity.grouped.index import KeyIndex
from posterity.grouped.inputs import (
    NO_KIND,
    By,
    Input,
    drop_weightless_rows,
    key_names,
    read,
    separate_key,
    split,
    split_one,
)
from posterity.grouped.likelihoods import choose_likelihood
from posterity.kernel import GroupPath
from posterity.likelihoods import Likelihood
from posterity.linear import functions
from posterity.linear.categories import CategoricalFeatures, Missing
from posterity.linear.columns import ModelColumns
from posterity.linear.estimator import Way
from posterity.linear.inputs import name_bad_rows, read_points, refuse_no_weight
from posterity.linear.keys import Keys
from posterity.linear.named import get_feature_names
from posterity.linear.offsets import RateOffsets
from posterity.linear.state import OUR_NAMES, count
from posterity.noise import JointOfOne, KnownNoise, Noise
from posterity.posteriors._group_sites import GroupSites
from posterity.posteriors.grouped import GroupBelief, GroupedPosterior
from posterity.posteriors.growth import widen
from posterity.posteriors.new_columns import NewColumns
from posterity.priors import GaussianPrior
from posterity.transaction import Undo, get_lock, hold_model_lock

SHARED, UNIT = "shared", "unit information"


class UnknownGroupError(KeyError, ValueError):
    """A key of which no row was learned."""


@dataclass(eq=False, repr=False)
class GroupedParameters:
    """Parameters that are kept as they are given."""

    by: By = None
    _: KW_ONLY
    prior_mean: ArrayLike | str = SHARED
    prior_precision: ArrayLike | str = SHARED
    noise_precision: float | None = None
    noise_prior: tuple[float, float] = (0.0, 0.0)
    fit_intercept: bool = True
    forgetting: Exponential | Stabilized | str | None = None
    categorical_features: CategoricalFeatures = "auto"
    missing: Missing = "error"
    likelihood: Likelihood | str = "gaussian"


class GroupedModel(GroupedParameters, RegressorMixin, ModelColumns[GroupedPosterior]):
    """A scikit-learn estimator around one :class:`GroupedPosterior` and the places of its keys."""

    _our_names: ClassVar[Mapping[str, str]] = {
        **OUR_NAMES,
        "explain": "model_of(group).explain(x)",
        "posterior_": "shared_posterior_ of all groups, or model_of(group).posterior_ of one",
    }

    _learned_names = ("_posterior_or_none", "_index", "categories_")
    _index: KeyIndex
    _row_path: GroupPath

    # ---- attributes ------------------------------------------------------------------------------

    @property
    def groups_(self) -> AnyArray:
        """(G,) keys, in the order in which the groups came."""
        self._posterior  # noqa: B018
        return self._index.list_keys()

    @property
    def n_groups_(self) -> int:
        """Number of groups."""
        return self._posterior.bank.size

    @property
    @hold_model_lock
    def coef_(self) -> Array:
        """(G, m) posterior means of the coefficients."""
        return self._posterior.coefficients()[:, int(self.fit_intercept) :]

    @property
    @hold_model_lock
    def intercept_(self) -> Array:
        """(G,) posterior means of the intercepts; 0 without."""
        posterior = self._posterior
        return (
            posterior.coefficients()[:, 0] if posterior.intercept else np.zeros(posterior.bank.size)
        )

    @property
    @hold_model_lock
    def shared_mean_(self) -> Array:
        """(p,) mean of [intercept, coefficients] over groups."""
        return self._posterior.learn_exact_prior().prior.mean.copy()

    @property
    @hold_model_lock
    def shared_covariance_(self) -> Array:
        """(p, p) covariance of [intercept, coefficients] over groups."""
        return self._posterior.learn_exact_prior().prior.covariance() / self._noise_precision

    @property
    @hold_model_lock
    def shared_posterior_(self) -> JointOfOne:
        """Joint posterior of the means over groups: of the fixed effects of a mixed model."""
        names = ["intercept"] * int(self.fit_intercept) + self._column_names(self._n_columns)
        return build_shared_posterior(self._posterior, tuple(names))

    @property
    @hold_model_lock
    def noise_precision_(self) -> float:
        """The known noise precision, or the posterior mean of the learned one."""
        if self._likelihood() is not None:
            raise AttributeError(
                f"the model has no noise_precision_: its likelihood, {self.likelihood!r}, has no "
                "normal noise"
            )
        return self._noise_precision

    @property
    def _noise_precision(self) -> float:
        """The same; 1 of the rows that stand for others under a likelihood."""
        posterior = self._posterior.learn_exact_prior()
        return self._posterior.noise.precision(posterior.residual_df, posterior.residual)

    @property
    @hold_model_lock
    def noise_precisions_(self) -> Array:
        """(G,) noise precision of each group; all the same where groups are alike."""
        variances = self._posterior.compare_groups(np.arange(self.n_groups_))[1]
        return np.asarray(self.noise_precision_ / variances)

    @property
    def counts_(self) -> Array:
        """(G,) sums of the weights of the rows of each group, as they have faded."""
        return self._posterior.bank.count.copy()

    @property
    def n_observations_(self) -> float:
        """Sum of the weights of the rows learned."""
        return float(self._posterior.bank.seen.sum())

    @property
    @hold_model_lock
    def log_evidence_(self) -> float:
        """log p(y | X) under the prior in use."""
        return self._posterior.log_evidence

    def places(self, keys: Any) -> Indices:
        """(k,) places of keys in ``groups_``, -1 for those of which no row has come."""
        found = map(self._index.place, keys)
        return np.array([-1 if slot is None else slot for slot in found], dtype=np.intp)

    def _list_learned(self) -> list[str]:
        groups = count(self.n_groups_, "group")
        return [count(self.n_observations_, "row"), groups, count(self.n_features_in_, "feature")]

    # ---- state -----------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, keys: Keys | None = None) -> Iterator[None]:
        """Change groups, those of ``keys`` and others that are replaced whole, all or nothing.

        Not on a copy, as other models do: there may be a million groups. Threads take turns.
        """
        with get_lock(self), Undo() as undo:
            posterior, index = self._posterior, self._index
            none = np.empty(0, dtype=np.intp)
            slots = none if keys is None else index.places(keys)
            undo.keep_attributes(self, posterior)
            posterior.bank.keep_state(undo, slots[slots >= 0])
            undo.add(index.take_snapshot().restore)
            yield

    def _begin(self) -> None:
        """Start with no groups; the features are known by now."""
        n_coefficients = self._n_columns + int(self.fit_intercept)
        noise, likelihood = self._noise(), self._likelihood()
        self._posterior_or_none = GroupedPosterior(
            self._belief(noise),
            noise,
            self.fit_intercept,
            self._discount(),
            GroupBank(n_coefficients),
            None if likelihood is None else GroupSites(likelihood),
        )
        self._index = KeyIndex()

    def _with_columns(self, columns: NewColumns, **parts: Any) -> Self:
        """As of linear models; not in place."""
        changed = self._copy_unfitted()
        changed._set_columns_of(self)
        changed.__dict__.update(parts)
        changed._begin()
        widen(changed._posterior, self._posterior, columns)
        changed._index = self._index.copy()
        return changed

    def _make_from_row(self, x: ArrayLike | Mapping[str, Any], group: Any) -> Self:
        fresh = self._copy_unfitted()
        rest, _ = split_one(x, self.by, group, 0)
        fresh._read_first(rest)
        fresh._begin()
        return fresh

    # ---- parameters ------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood | None:
        """The likelihood of targets; None where they are normal."""
        return choose_likelihood(self.likelihood)

    def _noise(self) -> Noise:
        if self._likelihood() is None:
            return super()._noise()
        if self.noise_precision is not None or tuple(self.noise_prior) != (0.0, 0.0):
            raise ValueError(
                f"noise_precision and noise_prior are of normal noise, and likelihood is "
                f"{self.likelihood!r}: leave them out"
            )
        return KnownNoise(1.0)  # the rows that stand for others are in units of their own

    def _belief(self, noise: Noise) -> GroupBelief:
        m, offset = self._n_columns, int(self.fit_intercept)
        mean, precision = self.prior_mean, self.prior_precision
        shares_mean, shares_precision = isinstance(mean, str), isinstance(precision, str)
        if shares_mean and mean != SHARED:
            raise ValueError(f"prior_mean is {mean!r}: it must be {SHARED!r} or numbers")
        if shares_precision and precision not in (SHARED, UNIT):
            raise ValueError(
                f"prior_precision is {precision!r}: it must be {SHARED!r}, {UNIT!r} or numbers"
            )
        free = np.full(m + offset, shares_mean)
        free[:offset] = shares_mean or shares_precision
        means = np.zeros(m + offset)
        if not shares_mean:
            means[offset:] = GaussianPrior(mean, 0.0).means(m)
        if shares_precision:
            return GroupBelief(means, free, None, precision == UNIT)
        prior = GaussianPrior(means[offset:], precision)
        factor = prior.factor(m, intercept=self.fit_intercept, unit=noise.prior_unit)
        likelihood = self._likelihood()
        if offset and likelihood is not None:  # which has no best level of zeros alone
            vague = np.zeros((1, m + 1))
            vague[0, 0] = likelihood.vague_variance**-0.5
            factor.append(vague, np.zeros((1, 1)))
        return GroupBelief(means, free, factor)

    def _discount(self) -> float:
        strategy = read_forgetting(self.forgetting)
        if strategy is None:
            return 1.0
        if self._likelihood() is not None:
            raise ValueError(
                f"forgetting is {self.forgetting!r}, and likelihood is {self.likelihood!r}: groups "
                "forget only where targets are normal; leave one of the two out"
            )
        if not isinstance(strategy, Exponential | Stabilized):
            raise TypeError(
                f"forgetting is {self.forgetting!r}: it must be None, Exponential or Stabilized, "
                "as in posterity.forgetting.Stabilized(half_life=100)"
            )
        return strategy.rate

    # ---- rows ------------------------------------------------------------------------------------

    def _split(self, X: Any, groups: Any) -> tuple[Any, Keys]:
        kinds = self._index.kinds if self._posterior_or_none else ()
        return split(X, self.by, groups, bool(kinds) and kinds != NO_KIND)

    def _split_one(self, x: Any, group: Any) -> tuple[Any, Keys]:
        return split_one(x, self.by, group, len(self._index.kinds))

    def _separate_key(self, x: Any, group: Any) -> tuple[Any, Any]:
        """The features and the key of a row, where its mapping has both."""
        return (x, group) if self.by is None else separate_key(x, key_names(self.by), group)

    @property
    def _path(self) -> GroupPath:
        """The path that learns and predicts single rows."""
        if "_row_path" not in self.__dict__:
            names = get_feature_names(self) if self._learns_features else None
            posterior = self._posterior
            self._row_path = GroupPath(posterior.bank.n_coefficients, posterior.intercept, names)
        return self._row_path

    def _read_row(self, x: Any) -> Any:
        """One row as the path takes it: of levels their columns."""
        if self._learns_features:
            return x
        values = self._reader().values(x)
        return functions.compute_columns(None, self._categories, values)[0]

    def _read_points(self, X: Any, groups: Any) -> tuple[Array, Indices]:
        points, slots = self._read_features(X, groups)
        return np.ascontiguousarray(self._columns(points)), slots

    def _read_features(self, X: Any, groups: Any) -> tuple[Array, Indices]:
        self._posterior  # noqa: B018
        X, keys = self._split(X, groups)
        return read_points(self, X), self._index.places(keys)[keys.numbers]

    @property
    def _leaves_out_first(self) -> bool:
        """True beside an intercept: the flat prior of the mean could not tell it from a level."""
        return self.fit_intercept

    def _learn_rows(
        self, way: Way, rows: tuple[Any, Any, ArrayLike | None], groups: Any, added: RateOffsets
    ) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        if way == "fit":
            refuse_no_weight(rows[2])
        first = way == "fit" or self._posterior_or_none is None
        model = self._copy_unfitted() if first else self
        features, keys = model._split(rows[0], groups)
        model = model._meeting(features)
        given = read(model, features, rows[1], rows[2], keys, added, reset=first)
        predictive = None
        if first:
            model._begin()
        if way == "predict_then_learn":
            predictive = model._predict_input(given)
        elif first:
            model._learn_first(way, drop_weightless_rows(given))
        else:
            model._learn(drop_weightless_rows(given))
        if model is not self:
            self._take_over(model)
        return predictive

    def _learn_first(self, way: Way, given: Input) -> None:
        self._check_targets(given)
        with name_bad_rows(self, given.X, given.y[:, None]):  # what is spoilt is not taken over
            learn = self._posterior.fit if way == "fit" else self._posterior.learn
            learn(given.rows(self._index, self.fit_intercept))

    def _learn(self, given: Input) -> None:
        self._refuse(given)
        self._index.check_kinds(given.keys)
        with self._changing(given.keys):
            self._posterior.learn(given.rows(self._index, self._posterior.intercept))

    def _predict_input(self, given: Input) -> Any:
        self._refuse(given)
        with self._changing(given.keys):
            rows = given.rows(self._index, self._posterior.intercept)
            predictive = self._posterior.predict_then_learn(rows)
            if given.weights is not None and not given.weights.all():
                self._drop_empty()
        return predictive

    def _refuse(self, given: Input) -> None:
        """Refuse rows that can't be learned before any group is made for them."""
        target = given.y[:, None]
        with name_bad_rows(self, given.X, target):
            given.check_usable()
        self._check_targets(given)

    def _check_targets(self, given: Input) -> None:
        """Raise ``ValueError`` for targets that the likelihood does not know."""
        likelihood = self._posterior.likelihood
        if likelihood is not None:
            with name_bad_rows(self, given.X, given.y[:, None]):
                given.check_usable()
            likelihood.check_targets(given.y)

    def _drop_empty(self) -> None:
        """Drop the groups in which no row is left."""
        posterior = self._posterior
        filled = posterior.bank.seen > 0.0
        if not filled.all():
            posterior.keep(filled)
            self._index = self._index.keep(filled)
