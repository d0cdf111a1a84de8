"""The interface that a model needs of a basis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@runtime_checkable
class Basis(Protocol):
    """Protocol of bases: transformers that compute the columns of a linear model.

    A model calls ``sklearn.base.clone(basis).fit(X, y)`` on its first batch, once, and
    ``transform`` on every batch after; a row must have the same columns in whichever batch it
    comes.

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

    def prior_precisions(self) -> NDArray[np.float64]:
        """Prior precisions (L, m) of the coefficients, one row for each of L hypotheses.

        Finite; only their proportions count where the evidence chooses: how large the function is,
        a number that multiplies the row, is the model's.
        """


# What models take: a basis for all features, one for each that is named, or all kinds together.
Bases = Basis | Mapping[Any, Basis] | Literal["auto"]
