"""Sparse models whose rows are made by a formula, and whose columns vary together by level."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from posterity.model.design import DesignRows
from posterity.posteriors._sparse_rows import SparseRows
from posterity.sparse import (
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)
from posterity.sparse.base import DiagonalModel
from posterity.sparse.checks import WideParameters
from posterity.transaction import Undo

Array = NDArray[np.float64]


@dataclass(kw_only=True, eq=False, repr=False)
class TermParameters(WideParameters):
    """``terms``: names of columns that vary together by level."""

    terms: tuple[tuple[str, ...], ...] = ()


class TermRows(TermParameters, DiagonalModel):
    """Reads :class:`DesignRows`, and has the posterior integrate over the covariances of terms.

    ``described`` and ``scale``: what reports call it, and the scale of its effects.
    """

    described: ClassVar[str]
    scale: ClassVar[str] = ""

    def prepare(self, y: Any) -> None:
        """Know the prior, if nothing yet, and the labels of targets ``y`` (n,) that come next."""
        if self._posterior_or_none is None:
            self._begin(None, own_columns=False)
        self.__dict__.update(self._targets(y)[1])

    @property
    def has_learned(self) -> bool:
        """Whether it knows more than its parameters."""
        return self._posterior_or_none is not None

    def copy(self) -> Self:
        """A model that has learned the same, and learns by itself; what was found is shared."""
        made = copy.copy(self)
        made._posterior_or_none, made._index = self._posterior.copy(), copy.deepcopy(self._index)
        return made

    def _read(self, X: DesignRows) -> tuple[int, Any]:
        return X.n, X.parts

    def _warn(self, n: int, read: Any) -> None:
        """Say nothing of levels of one row each: residuals of counts may be such effects."""

    def _begin(self, given: int | None, own_columns: bool) -> None:
        super()._begin(given, own_columns)
        index, posterior = self._index, self._posterior
        posterior.terms = tuple(
            tuple(index.column(name, new=True) for name in names) for names in self.terms
        )
        posterior.grow(index.size, np.zeros(0, dtype=np.int32), index.n_columns)

    def _grow_for(self, number: Callable[[], SparseRows], undo: Undo) -> SparseRows:
        rows = super()._grow_for(number, undo)
        for column, levels in self._index.levels.items():  # of some, all values so far were 0
            self._posterior.owners[levels.features] = column
        return rows

    @property
    def sign(self) -> float:
        """-1 where the posterior is of the first of two labels."""
        return 1.0

    def expect(self, X: DesignRows) -> Array:
        """(n,) expected targets."""
        return np.asarray(self.predict(X))

    def unexplained(self, noise: Array) -> Array:
        """(n,) variances of eta that no effect explains, where the noise's is ``noise`` (n,)."""
        return noise

    def _eta(self, X: DesignRows) -> tuple[Array, Array]:
        mean, variance = super()._eta(X)
        return mean + X.offset[:, None], variance


@dataclass(kw_only=True, eq=False, repr=False)
class NormalTerms(TermRows, SparseLinearRegression):
    """Numbers."""

    described = "linear"


@dataclass(kw_only=True, eq=False, repr=False)
class BernoulliTerms(TermRows, SparseLogisticRegression):
    """Labels of two classes."""

    described, scale = "logistic", " (log odds)"

    @property
    def sign(self) -> float:
        """-1 where the posterior is of the first of two labels."""
        return -1.0 if self._flipped else 1.0

    def expect(self, X: DesignRows) -> Array:
        """(n,) probabilities of the second label."""
        return np.asarray(self.predict_proba(X)[:, -1])

    def unexplained(self, noise: Array) -> Array:
        """(n,) that of the logistic distribution, of which a label says on which side of 0."""
        return np.full_like(noise, np.pi**2 / 3.0)

    def name_classes(self, y: Array) -> Any:
        """Labels of trials, of which all may be the same."""
        return self._name_classes(y, [0, 1])

    def predict_interval(
        self, X: Any, level: float = 0.95, *, of: Literal["observation", "mean"] = "mean"
    ) -> Array:
        """(n, 2) ends of the central interval of the second label's probability."""
        if of != "mean":
            raise ValueError("labels have intervals of their probabilities alone: give of='mean'")
        return super().predict_interval(X, level)


@dataclass(kw_only=True, eq=False, repr=False)
class PoissonTerms(TermRows, SparsePoissonRegression):
    """Counts."""

    described, scale = "Poisson", " (log rates)"

    def unexplained(self, noise: Array) -> Array:
        """(n,) that of the logarithm of a count, at the mean count (Nakagawa et al. 2017)."""
        posterior = self._posterior
        mean = np.average(posterior.targets, weights=posterior.row_weights)
        return np.full_like(noise, np.log1p(1.0 / mean))


ENGINES: dict[str, type[TermRows]] = {
    "normal": NormalTerms,
    "bernoulli": BernoulliTerms,
    "binomial": BernoulliTerms,
    "poisson": PoissonTerms,
}

__all__ = ["ENGINES", "TermRows"]
