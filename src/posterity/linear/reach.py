"""Bases that grow: functions that reach over rows beyond all that came before."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from posterity.aliases import Array, Estimator
from posterity.basis._domain import join_columns
from posterity.basis.by_column import reaching
from posterity.linear import functions
from posterity.posteriors.new_columns import ChangedColumns

Model = TypeVar("Model", bound=Any)


def reach(model: Estimator, X: Array, weights: Array | None) -> None:
    """Let the functions of ``model`` reach over rows ``X`` (n, d) that it is about to learn."""
    if model.basis is None or not _may_change(model):
        return
    functions.check_finite(model, X)
    X = X if model._categories is None else X[:, model._categories.numbers]
    X = X if weights is None else X[weights > 0.0]
    known = model.n_observations_
    basis = reaching(model._fitted_basis, X, known) if len(X) else model._fitted_basis
    if basis is not model._fitted_basis:
        model._take_over(_with_basis(model, basis))


def reach_together(model: Model, other: Model) -> Model:
    """Let the functions of ``model`` reach as far as those of ``other``; returns it with the same.

    Raises ``ValueError`` where they are not the same then.
    """
    mine, theirs = model._fitted_basis, other._fitted_basis
    if functions.have_same_columns(mine, theirs):
        return other
    both = functions.join(mine, theirs), functions.join(theirs, mine)
    if not (_may_change(model) and functions.have_same_columns(*both)):
        raise ValueError(
            "the models differ in their basis: give both the same basis and domain (by default "
            "the domain is that of the first batch); of functions that targets choose, as 'auto' "
            "does, begin both with the same batch"
        )
    model._take_over(_with_basis(model, both[0]))
    return _with_basis(other, both[1])


def _may_change(model: Estimator) -> bool:
    """Functions of other knots are sums of those there were only beside an intercept."""
    return bool(model.fit_intercept)


def _with_basis(model: Model, basis: Any) -> Model:
    """A model that knows the same, whose basis is one that reaches further."""
    levels = [] if model._categories is None else [np.eye(1 + len(model._categories.names))]
    matrix = join_columns([model._fitted_basis.columns_of(basis), *levels])
    return model._with_columns(ChangedColumns(matrix), basis_=basis)
