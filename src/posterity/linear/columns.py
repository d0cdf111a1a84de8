"""The columns that a model learns: its features, or functions and levels of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.basis import Basis
from posterity.basis.by_column import get_prior_shapes
from posterity.basis.contract import Bases
from posterity.forgetting.words import read_forgetting
from posterity.kernel.tables import read_names
from posterity.linear import functions
from posterity.linear.categories import CategoricalFeatures, Categories, Missing
from posterity.linear.coding import RowCoder, find_categories_of_row, join_levels
from posterity.linear.named import NamedRows, get_feature_names
from posterity.linear.state import Posterior, PosteriorEstimator
from posterity.posteriors.new_columns import NewColumns


class ModelColumns(PosteriorEstimator[Posterior]):
    """An estimator of features that are numbers, or categories."""

    basis: Bases | None = None
    categorical_features: CategoricalFeatures = None
    missing: Missing = "error"
    fit_intercept: bool

    basis_: Basis
    categories_: Categories

    @property
    def _leaves_out_first(self) -> bool:
        """True if the first level of a category has no column.

        A flat prior could not tell it from the intercept: new runs after a change begin with a
        little of what all rows say, and need rows that tell of each column.
        """
        strategy = read_forgetting(getattr(self, "forgetting", None))
        return getattr(strategy, "needs_each_column", False)

    def _column_names(self, count: int) -> list[str]:
        """Names of the features, or of the ``count`` functions of them."""
        levels = [] if self._categories is None else self._categories.names
        names, count = self._names_of_numbers(), count - len(levels)
        if self.basis is not None:
            return functions.names(self.basis_, names, count) + levels
        return ([f"x{column}" for column in range(count)] if names is None else names) + levels

    def _names_of_numbers(self) -> list[str] | None:
        """Names of the features that are no categories; None where rows come without names."""
        names = get_feature_names(self)
        if self._categories is None:
            return None if names is None else list(names)
        numbers = self._categories.numbers
        return [f"x{place}" if names is None else names[place] for place in numbers]

    @property
    def _fitted_basis(self) -> Basis | None:
        return self.__dict__.get("basis_")

    @property
    def _categories(self) -> Categories | None:
        return self.__dict__.get("categories_")

    @property
    def _learns_features(self) -> bool:
        """True if the columns learned are the features, as they come."""
        return self.basis is None and self._categories is None

    @property
    def _n_columns(self) -> int:
        """Number of features, or of functions of them."""
        if self._learns_features:
            return self.n_features_in_
        row = np.zeros((1, self.n_features_in_))
        if self._categories is not None:
            row[:, [one.place for one in self._categories.each]] = 1.0
        return self._columns(row).shape[1]

    def _columns(self, X: Array) -> Array:
        """Return the columns learned of ``X`` (n, d): itself, or functions and levels of it."""
        if self._learns_features:
            return X
        functions.check_finite(self, X)
        return functions.compute_columns(self._fitted_basis, self._categories, X)

    def _prior_shapes(self) -> Array | None:
        """(L, m) prior precisions that the basis brings, if it does; those of levels are equal."""
        basis = self._fitted_basis
        shapes = None if basis is None else get_prior_shapes(basis)
        if shapes is None or self._categories is None:
            return shapes
        return np.hstack([shapes, np.ones((len(shapes), len(self._categories.names)))])

    def _scale_precision(self, precision: Any) -> Any:
        """A prior precision that is given, times those that the basis brings."""
        return functions.scale_prior_precision(self._prior_shapes(), precision, self._fitted_basis)

    def _fit_basis(self, basis: Bases, X: Array, y: Array | None) -> None:
        """Fix the basis, of what features are numbers, by the first batch."""
        functions.check_finite(self, X)
        X = X if self._categories is None else X[:, self._categories.numbers]
        self.basis_ = functions.fit_basis(self, basis, self._names_of_numbers(), X, y)

    def _set_columns_of(self, other: ModelColumns[Any]) -> None:
        """Take the features, the basis and the levels of another model."""
        self._set_features_of(other)
        for name in {"basis_", "categories_"} & other.__dict__.keys():
            setattr(self, name, getattr(other, name))

    def _meeting(self, X: Any) -> Self:
        """The model, or one that knows the same and the levels in ``X`` that are new."""
        if self._categories is None:
            return self
        if isinstance(X, NamedRows):  # which have numbers for levels, and 0 for one that is new
            self._categories.check_known(X.values)
            return self
        return self._with_levels(join_levels(self, X))

    def _with_levels(self, categories: Categories) -> Self:
        """A model that knows the same, with a place for more levels: their columns were 0."""
        if self._categories is None or categories == self._categories:
            return self
        before = self._n_columns - len(self._categories.names) + int(self.fit_intercept)
        columns = self._categories.columns_in(categories, before)
        return self._with_columns(columns, categories_=categories)

    def _with_columns(self, columns: NewColumns, **parts: Any) -> Self:
        """A model that knows the same in other columns, which are those of these parts."""
        raise NotImplementedError  # each kind of model says how

    def _read_first(self, x: ArrayLike | Mapping[str, float]) -> Array:
        """The first row (1, d), from which a model takes its features."""
        named = read_names(x)
        names = None if named is None else list(named)
        self._set_features(np.asarray(x).size if names is None else len(names), names)
        categories = find_categories_of_row(self, x)
        if categories is not None:
            self.categories_ = categories
        return self._reader().values(x)

    def _reader(self) -> Any:
        """Return the path that reads single rows of features."""
        reader = super()._reader()
        if self._categories is None:
            return reader
        return RowCoder(reader, self._categories, self.missing)
