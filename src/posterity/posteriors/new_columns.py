"""How the columns of a posterior become others in the middle of a stream.

There are two kinds, with the same methods. Arrays of columns have those of a model in their last
axis, with the intercept's or without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posterity.aliases import Array, Indices
from posterity.factor import Factor


class NewColumns(Protocol):
    """How the columns that come are made of those that were there."""

    @property
    def matrix(self) -> Array:
        """(p, p') by which a row of the columns that were there is one of those that come."""
        ...

    @property
    def places(self) -> Indices:
        """(p,) where the columns are that were there; -1 if they are not there any more."""
        ...

    def spread(self, values: Array) -> Array:
        """Rows of the columns that were there, in those that come."""
        ...

    def spread_squares(self, squares: Array) -> Array:
        """Sums of squares about the mean, in the same way."""
        ...

    def place(self, prior: Factor, known: Factor, before: Factor) -> Array:
        """Triangle of what is known: ``known``, which began with the prior ``before``.

        Of what that does not say, it has what ``prior`` says.
        """
        ...

    def of_columns(self, *, intercept: bool) -> NewColumns:
        """The same beside an intercept, whether or not there was one."""
        ...


@dataclass(frozen=True)
class JoinedColumns:
    """Columns that were 0 in all rows join: those that were there are at ``places`` (p,) now.

    ``size`` is how many there are then. They come in the same order.
    """

    places: Indices
    size: int

    @property
    def matrix(self) -> Array:
        """(p, p') by which a row of the columns that were there is one of those that come."""
        return np.eye(self.size)[self.places]

    def spread(self, values: Array) -> Array:
        """Rows of the columns that were there, in those that come."""
        without = len(self.places) - values.shape[-1]
        spread = np.zeros((*values.shape[:-1], self.size - without))
        spread[..., self.places[without:] - without] = values
        return spread

    spread_squares = spread

    def place(self, prior: Factor, known: Factor, before: Factor) -> Array:
        """Triangle of what is known, with the prior of the columns that join."""
        triangle, (k, p) = prior.triangle.copy(), (known.n_targets, self.size)
        triangle[np.ix_(self.places, self.places)] = known.root
        triangle[self.places, p : p + k] = known.moments
        triangle[p:, p : p + k] = known.residual_root
        return triangle

    def of_columns(self, *, intercept: bool) -> JoinedColumns:
        """The same beside an intercept, whether or not there was one."""
        if intercept:
            return self
        return JoinedColumns(np.concatenate([[0], self.places + 1]), self.size + 1)


@dataclass(frozen=True)
class ChangedColumns:
    """Other functions of the features: rows [1, x] are ``[1, x] @ matrix`` now."""

    matrix: Array

    @property
    def places(self) -> Indices:
        """(p,) where the columns are that were there: the intercept alone is where it was."""
        return np.where(np.arange(len(self.matrix)) == 0, 0, -1)

    def spread(self, values: Array) -> Array:
        """Rows of the columns that were there, in those that come."""
        if values.shape[-1] == len(self.matrix):
            return np.asarray(values @ self.matrix)
        return np.asarray(self.matrix[0, 1:] + values @ self.matrix[1:, 1:])

    def spread_squares(self, squares: Array) -> Array:
        """Sums of squares about the mean, as if the columns that were there did not correlate."""
        without = len(self.matrix) - squares.shape[-1]
        return np.asarray(squares @ np.square(self.matrix[without:, without:]))

    def place(self, prior: Factor, known: Factor, before: Factor) -> Array:
        """Triangle of what is known, with the prior of what the columns did not have before."""
        both = prior.combine(transform_factor(known, self.matrix))
        if before.rank:  # it is half of anything at most, or nearly: no digits go
            both.take_out(transform_factor(before, self.matrix))
        return both.triangle

    def of_columns(self, *, intercept: bool) -> ChangedColumns:
        """The same: there always is an intercept."""
        return self


def transform_factor(factor: Factor, matrix: Array) -> Factor:
    """A factor that has learned ``x @ matrix`` for each row x of another one."""
    k, p = factor.n_targets, matrix.shape[1]
    turned = Factor(p, k)
    rows = np.vstack([factor.root @ matrix, np.zeros((k, p))])
    turned.append(rows, np.vstack([factor.moments, factor.residual_root]))
    turned.set_triangle(turned.triangle, factor.count, factor.seen)
    return turned


__all__ = ["ChangedColumns", "JoinedColumns", "NewColumns", "transform_factor"]
