"""The interface that a model needs of a basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Self, runtime_checkable

from posterity.aliases import Array


@runtime_checkable
class Basis(Protocol):
    """Protocol of bases: transformers that compute the columns of a linear model.

    A model calls ``sklearn.base.clone(basis).fit(X, y)`` on its first batch, once, and
    ``transform`` on every batch after; a row must have the same columns in whichever batch it
    comes. :class:`GrowingBasis` may change them.

    Examples
    --------
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> isinstance(PolynomialFeatures(include_bias=False), Basis)
    True
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the domain from ``X`` (n, d) and possibly ``y`` (n, q)."""

    def transform(self, X: Any) -> Any:
        """Columns (n, m) at the rows ``X`` (n, d)."""


@runtime_checkable
class BasisWithPrior(Basis, Protocol):
    """A basis that provides prior precisions of its coefficients.

    With an attribute ``common_hypotheses`` that is True, what is likely comes first, and stands for
    all where the precision of the prior is given; and where several bases of a model have it, their
    hypotheses go together, the k-th of each.

    Examples
    --------
    >>> from posterity.basis import Fourier, HilbertSpaceGP
    >>> isinstance(HilbertSpaceGP(), BasisWithPrior), isinstance(Fourier(), BasisWithPrior)
    (True, False)
    """

    def prior_precisions(self) -> Array:
        """Prior precisions (L, m) of the coefficients, one row for each of L hypotheses.

        Finite; only their proportions count where the evidence chooses: how large the function is,
        a number that multiplies the row, is the model's.
        """


@runtime_checkable
class GrowingBasis(Basis, Protocol):
    """A basis that gets other functions where a model is about to learn rows beyond its domain.

    None of these methods changes the basis. Those that are new have the same parameters.

    Examples
    --------
    >>> from posterity.basis import Spline
    >>> isinstance(Spline(), GrowingBasis)
    True
    """

    def reaching(self, X: Any, known: float = 0.0) -> Self:
        """Return the basis for rows ``X`` (n, d), too: this one, where it is good for all.

        A few of them need not count much against so many that are ``known``.
        """

    def joined(self, other: Self) -> Self:
        """Return the basis for the domains of both."""

    def columns_of(self, other: Self) -> Array:
        """Columns of such a basis, by these (1 + m, 1 + m'), where this one was good for rows.

        Both have a column of ones in front.
        """


# What models take: a basis for all features, one for each that is named, or all kinds together.
Bases = Basis | Mapping[Any, Basis] | Literal["auto"]
