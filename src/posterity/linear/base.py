"""Base of linear estimators: parameters, the posterior, and its replacement in one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity import evidence
from posterity.aliases import Array, DataFrame, Mask
from posterity.distributions.mixing import mix_table
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.shown_table import show_table
from posterity.kernel import RowPath
from posterity.kernel.tables import TableLike
from posterity.linear import functions
from posterity.linear.columns import ModelColumns
from posterity.linear.contrasts import Base, Contrasts, contrast_model
from posterity.linear.inputs import read_points
from posterity.linear.named import get_feature_names
from posterity.linear.named_priors import beliefs
from posterity.linear.parameters import LinearParameters
from posterity.linear.ratios import add_ratios
from posterity.linear.state import SHARED, count, tell_rows
from posterity.linear.strategies import PRIOR_STRATEGIES, begin_forgetting, choose_strategy
from posterity.linear.targets import set_targets, set_targets_of_row, targets_of
from posterity.noise import Joint
from posterity.posteriors import (
    EvidencePosterior,
    LinearPosterior,
    TargetsPosterior,
)
from posterity.posteriors._target_coefficients import split_targets, tabulate_each
from posterity.posteriors.growth import widen
from posterity.posteriors.new_columns import NewColumns
from posterity.priors import GaussianPrior
from posterity.transaction import get_free_lock, get_lock


class LinearModel(LinearParameters, ModelColumns[LinearPosterior]):
    """A scikit-learn estimator around one :class:`LinearPosterior`."""

    # The parameter that leaves the noise to be learned where it is None, if there is one.
    _noise_parameter: ClassVar[str | None] = "noise_precision"
    # Set by those that have the parameter.
    noise: Literal["constant", "linear"] = "constant"

    _learned_names: ClassVar[tuple[str, ...]] = (
        "_posterior_or_none",
        "_now",
        "_before_waiting",
        "basis_",
        "categories_",
        "n_targets_",
        "target_names_",
    )

    # True if y may have several columns; their number and names, where y came as columns.
    takes_targets: ClassVar[bool] = False
    n_targets_: int
    target_names_: NDArray[np.object_]

    # Number of random waves of basis="auto"; None: its own.
    _n_waves: ClassVar[int | None] = None
    _row_path: RowPath
    _fast_learn_one: Callable[..., bool]
    _fast_predict_one: Callable[..., float]
    # The time of the last row, where rows come with times.
    _now: float | None = None
    # What was known at the last row, and its time, where time has passed since.
    _before_waiting: tuple[LinearPosterior, float] | None = None

    @property
    def coef_(self) -> Array:
        """(m,) posterior mean of the coefficients; of several targets (q, m)."""
        return self._posterior.coefficients()[self._offset :].T

    @property
    def intercept_(self) -> Any:
        """Posterior mean of the intercept, 0.0 without one; of several targets (q,)."""
        means = self._posterior.coefficients()
        first = means[0] if self._offset else np.zeros(means.shape[1:])
        return first if means.ndim > 1 else float(first)

    @property
    def posterior_(self) -> Joint:
        """Joint posterior of [intercept, coefficients]; unknown where a feature never varied."""
        joint, waits = self._joint(), self._never_varied()
        return joint.without_knowledge(waits) if waits.any() else joint

    def _joint(self) -> Joint:
        """The same, with features that never varied at their prior's mean: as in predictions."""
        return self._posterior.joint(self._coefficient_names())

    def _tabulate_mean(self, x: Array) -> Array | None:
        """(4, M) weights, degrees of freedom, locations and scales of the mean at a row, a mixture.

        None where the path of single rows does not tell.
        """
        if not (self._learns_features and self._tells_rows and self._now is None):
            return None
        path: Any = self._open_row_path()
        table: Array | None = path.tabulate(x)
        return table

    def _coefficient_names(self) -> tuple[str, ...]:
        names = self._column_names(self._posterior.n_coefficients - self._offset)
        return (*["intercept"] * self._offset, *map(str, names))

    def summary(
        self, level: float = 0.95, *, X: TableLike | None = None, base: Base = None
    ) -> DataFrame:
        """Table of the coefficients: a pandas data frame with a row for each.

        A feature that has not varied in any row yet has an infinite standard deviation. A level of
        a category is compared with the mean of its column's levels, or with one of them: the
        interval is that of the difference, and the intercept is that of a row with what levels are
        compared with.

        Parameters
        ----------
        level : float, default 0.95
            Probability that an interval holds the coefficient.
        X : (n, m) array or data frame, optional
            Rows whose standard deviations are the unit of ``effect_per_sd``. By default those
            learned, each counted by its weight today: of labels and counts, by how much it tells
            of the coefficients.
        base : "mean", "first" or dict of column to level, optional
            What levels are compared with: the plain mean of all levels of their column that were
            learned, its first level, or one that is named, as in ``{"zone": "north"}``; columns
            that are not named, with their mean. None: as "mean", where there is an intercept.
            Where columns of zeros and ones add up to the intercept, as of scikit-learn's
            OneHotEncoder, "mean" and "first" compare these, too.

        Returns
        -------
        pandas.DataFrame
            Labelled by the coefficients' names, with the columns name, mean, sd, low, high,
            probability_positive and effect_per_sd: what the target changes by when the feature
            changes by its standard deviation. NaN where that is not known, as of the intercept.
            For log odds and log rates also the odds_ratio or rate_ratio, exp(mean), and its ends.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If ``base`` names a column that is no category, or a level that is not there.

        Warns
        -----
        UserWarning
            If columns add up to the intercept, so that no row tells how large each of them is, and
            no ``base`` is given.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 7.0]
        >>> table = BayesianLinearRegression(prior_precision=0.0).fit(X, y).summary()
        >>> table.loc["x0", ["mean", "low", "high"]].astype(float).round(2).tolist()
        [1.98, 1.8, 2.16]
        """
        contrasts = self._contrasts(base)
        table = tabulate_each(*self._compare(contrasts), level)
        scales = self.feature_scales_ if X is None else self._read_points(X).std(axis=0)
        scales = np.concatenate([np.full(self._offset, np.nan), scales, [np.nan]])
        each = scales[contrasts.places]
        table["effect_per_sd"] = table["mean"] * np.tile(each, len(table) // len(each))
        return show_table(add_ratios(table, self._ratio()))

    @property
    def feature_scales_(self) -> Array:
        """(m,) standard deviations of the features in the rows learned.

        Each row counts by its weight today: of labels and counts, by how much it tells of the
        coefficients. NaN without an intercept, and with more than two classes.
        """
        return self._posterior.feature_scales()

    @property
    def noise_precision_(self) -> float:
        """The known noise precision, or the posterior mean of the learned one."""
        return self._posterior.noise_precision

    @property
    def prior_precision_(self) -> ArrayLike:
        """The prior precision in use."""
        return self._posterior.prior_precision

    @property
    def log_evidence_(self) -> float:
        """log p(y | X); flat directions have density 1."""
        return self._posterior.log_evidence

    @property
    def n_observations_(self) -> float:
        """Sum of the weights of the rows learned."""
        return self._posterior.n_observations

    @property
    def n_effective_(self) -> float:
        """The same after forgetting; equal while nothing is forgotten."""
        return self._posterior.n_effective

    @property
    def forgotten_(self) -> float:
        """Sum of the weights that forgetting has taken from the rows learned, so far."""
        return self.n_observations_ - self.n_effective_

    @property
    def change_probability_(self) -> Array:
        """(n,) with Changepoint: probability of a change right before each row of the last call."""
        return self._posterior.change_probability

    @property
    def changes_(self) -> NDArray[np.int64]:
        """With Changepoint: rows, from the start of the stream, right before which it changed."""
        return self._posterior.changes

    # ---- inner -----------------------------------------------------------------------------------

    def _list_learned(self) -> list[str]:
        rows = tell_rows(self.n_observations_, self.n_effective_)
        return [rows, count(self.n_features_in_, "feature")]

    def _ratio(self) -> str:
        """Return the name of exp(coefficient), where that has a meaning."""
        return ""

    def _compare(self, contrasts: Contrasts) -> tuple[Any, list[RowDistribution]]:
        """The joint distribution of what is shown, and each by itself: a list, target by target."""
        joint = contrasts.of(self.posterior_)
        return joint, [
            self._correct(contrasts.weights, one.marginal(), of_rows=False)
            for one in split_targets(joint)
        ]

    def _correct(
        self, columns: Array, normal: Any, shift: Array | float = 0.0, *, of_rows: bool = True
    ) -> RowDistribution:
        """``normal``, the distribution of sums of coefficients, where that is not quite right."""
        return normal

    def _contrasts(self, base: Base) -> Contrasts:
        """What is shown of the coefficients."""
        return contrast_model(self, base)

    def _read_points(self, X: TableLike) -> Array:
        """The columns learned of rows to predict at; that nothing was learned comes first."""
        self._posterior  # noqa: B018
        return self._columns(read_points(self, X))

    def _never_varied(self) -> Mask:
        """(p,) which coefficients wait for a row that tells of them."""
        return np.concatenate([np.zeros(self._offset, dtype=bool), self._posterior.never_varied()])

    @property
    def _offset(self) -> int:
        return 1 if self._posterior.intercept else 0

    def _branch(self) -> Self:
        """A copy that can learn without this one's knowing; its row paths are its own."""
        path = self.__dict__.get("_row_path")
        if path is not None:
            path.close()  # whoever is about to learn by it must wait, too
        for name in SHARED:
            self.__dict__.pop(name, None)
        branch = type(self).__new__(type(self))
        branch.__dict__ = dict(self.__dict__)
        if self._posterior_or_none is not None:
            branch._posterior_or_none = self._posterior_or_none.copy()
        return branch

    def _begin(self, X: Array, y: Array | None = None, weights: Array | None = None) -> None:
        """Start from the prior; the first batch, ``X`` (n, d) and ``y`` (n, q), fixes the basis."""
        if self.fit_intercept not in (True, False):
            raise ValueError(f"fit_intercept is {self.fit_intercept!r}: it must be True or False")
        if self.basis is not None:
            some = slice(None) if weights is None or not weights.any() else weights > 0.0
            self._fit_basis(self.basis, X[some], None if y is None else y[some])
        self._start()

    def _start(self) -> None:
        """Start from the prior; features, basis and targets are known by now."""
        self._posterior_or_none = self._forgetting()
        self._take_targets()

    def _take_targets(self) -> None:
        """Give each of several targets the prior of one."""
        count, names = targets_of(self)
        if count is not None:
            one = cast(LinearPosterior, self._posterior_or_none)
            many = TargetsPosterior(one.for_targets(count), None if names is None else tuple(names))
            self._posterior_or_none = cast(Any, many)

    def _forgetting(self) -> LinearPosterior:
        return begin_forgetting(self._before_data(), self.forgetting)

    def _begin_as(self, other: LinearModel, **parts: Any) -> None:
        """Start from the prior with the features and the basis of another model, but for parts."""
        self._set_columns_of(other)
        self._set_targets_of(other)
        self.__dict__.update(parts)
        self._start()

    def _set_targets_of(self, other: LinearModel) -> None:
        """Take number and names of the targets, or the classes, of another model."""
        count, names = targets_of(other)
        if count is not None:
            set_targets(self, count, names)

    def _with_columns(self, columns: NewColumns, **parts: Any) -> Self:
        """A model that knows the same in other columns, which are those of these parts."""
        changed = self._copy_unfitted()
        changed._begin_as(self, **parts)
        widen(changed._posterior_or_none, self._posterior, columns)
        changed._now = self._now
        return changed

    def _begin_with_row(self, x: ArrayLike | Mapping[str, float], y: Any = None) -> None:
        """Start from the prior with the features of the one row ``x``, and the targets in ``y``."""
        if y is not None and self.takes_targets:
            set_targets_of_row(self, y)
        self._begin(self._read_first(x))

    def _make_from_row(self, x: ArrayLike | Mapping[str, float]) -> Self:
        """A fresh model with the features of the one row ``x``, nothing learned."""
        fresh = self._copy_unfitted()
        fresh._begin_with_row(x)
        return fresh

    def _open_row_path(self) -> RowPath:
        with get_lock(self):  # a path of what is known now, and no second one beside it
            if "_row_path" not in self.__dict__:
                if self._learns_features:
                    self._row_path = self._posterior.row_path(get_feature_names(self))
                else:
                    parts = self._fitted_basis, self._categories, self._reader()
                    path = functions.BasisPath(*parts, self._posterior.row_path(None))
                    self._row_path = cast(RowPath, path)
            return self._row_path

    def _open_fast_method(self, name: str, method: str) -> Any:
        """Keep a method of the row path as the attribute ``name``."""
        with get_free_lock(self):
            self.__dict__[name] = bound = getattr(self._open_row_path(), method)
        return bound

    # The method of compiled paths that learns a row.
    _fast_name: ClassVar[str] = "learn"

    def _learn_and_tell(self, x: Any, y: Any, weight: float) -> Any:
        """Learn a row by its path, and return what that predicted; None where it can't be told."""
        known = self._posterior_or_none is not None and self._now is None
        if not (known and self._learns_features and self._tells_rows):
            return None
        with get_free_lock(self):
            path, before = self._open_row_path(), self._posterior.log_evidence
            try:
                learned = getattr(path, self._fast_name)(x, y, weight)
            except (OverflowError, TypeError, ValueError):  # the general path says what is wrong
                return None
            return self._tell(path, y, self._posterior.log_evidence - before) if learned else None

    @property
    def _tells_rows(self) -> bool:
        """True if it can be told how a row was predicted that a path has learned."""
        return self._posterior.tells_rows

    def _tell(self, path: Any, y: Any, gained: float) -> Any:
        """The prediction of the row that ``path`` learned, which added so much to the evidence."""
        return mix_table(path.told())

    @property
    def _path(self) -> RowPath:
        """The path that reads single rows: the one that learns them, if there is one."""
        return self.__dict__.get("_row_path") or self._reader()

    def _before_data(self) -> LinearPosterior:
        given_mean, precision, of_intercept = self._beliefs()
        noise, strategy = self._noise(), choose_strategy(precision, PRIOR_STRATEGIES)
        n_columns, intercept = self._n_columns, self.fit_intercept
        if strategy is None:
            prior = GaussianPrior(given_mean, self._scale_precision(precision), *of_intercept)
            return LinearPosterior.before_data(prior, noise, n_columns, intercept=intercept)
        if any(of_intercept):
            raise ValueError(
                "prior_mean names the intercept, whose prior is flat where prior_precision is "
                "learned: give prior_precision by name too, or leave the intercept out"
            )
        mean = GaussianPrior(given_mean, 0.0)
        return EvidencePosterior.learned(
            strategy, mean, noise, n_columns, intercept=intercept, shapes=self._prior_shapes()
        )

    def _beliefs(
        self,
    ) -> tuple[ArrayLike, ArrayLike | str | evidence.Strategy, tuple[float, float]]:
        """Prior mean and precision, those by name as arrays (m,), and those of the intercept."""
        return beliefs(self, lambda: self._column_names(self._n_columns))
