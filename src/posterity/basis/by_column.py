"""A basis for each feature, or for a few together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from posterity.aliases import AnyArray, Array
from posterity.basis._domain import DomainTransformer, check_row, join_columns, read_rows
from posterity.basis.contract import Basis
from posterity.transaction import AtomicModel, atomic

# Hypotheses about all length scales together.
MOST_HYPOTHESES = 256


class ByColumn(AtomicModel, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A separate basis for each column, or group of columns; all others remain linear.

    Functions come in the order of the bases, straight lines last.

    A model takes the mapping alone: ``basis={"hour": Fourier(period=24.0), "temperature":
    Spline()}``. A column that has a single value in the first batch, and whose basis takes its
    domain from there, stays a straight line, too.

    Parameters
    ----------
    bases : mapping
        From the name of a column or its number, or a tuple of some, to a basis.
    names : sequence of str, optional
        Names of all columns, where rows come as arrays.

    Attributes
    ----------
    blocks_ : list of (columns, basis)
        Numbers of columns, and the basis that was fitted to them; None: straight lines.
    precisions_ : (d,) array
        Variances of the columns in the first batch: a straight line's prior precision beside bases
        that bring one, so that no unit matters.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.basis import Fourier
    >>> rng = np.random.default_rng(0)
    >>> hour, weight = rng.uniform(0.0, 24.0, 300), rng.normal(size=300)
    >>> y = np.sin(2.0 * np.pi * hour / 24.0) + 2.0 * weight
    >>> model = BayesianLinearRegression(basis={0: Fourier(n_frequencies=1, period=24.0)})
    >>> model.fit(np.column_stack([hour, weight]), y).coef_.round(2)
    array([1., 0., 2.])
    >>> model.posterior_.names
    ('intercept', 'x0_sin1', 'x0_cos1', 'x1')
    """

    def __init__(self, bases: Mapping[Any, Basis], names: Sequence[str] | None = None) -> None:
        self.bases = bases
        self.names = names

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit each basis to its columns of ``X`` (n, d).

        Raises
        ------
        ValueError
            If a column is not there, or is named twice.
        TypeError
            If something is not a basis.
        """
        X = read_rows(self, X, reset=True)
        blocks: list[tuple[list[int], Any]] = []
        left = set(range(X.shape[1]))
        for key, basis in self.bases.items():
            columns = [self._place(one) for one in (key if isinstance(key, tuple) else (key,))]
            if not left.issuperset(columns) or len(set(columns)) < len(columns):
                raise ValueError(f"basis has column {key!r} twice: give each column one basis")
            columns = varying(basis, X, columns)
            left -= set(columns)
            if columns:
                blocks.append((columns, self._fit_each(basis, X, columns, y)))
        if left:
            blocks.append((sorted(left), None))
        self.blocks_ = blocks
        variances, squares = X.var(axis=0), np.square(X).mean(axis=0)
        self.precisions_ = np.select([variances > 0.0, squares > 0.0], [variances, squares], 1.0)
        return self

    def transform(self, X: Any) -> Array:
        """Columns (n, m) at the rows ``X`` (n, d), block after block."""
        check_is_fitted(self, "blocks_")
        X = read_rows(self, X, reset=False)
        return np.concatenate([_columns(basis, X[:, at]) for at, basis in self.blocks_], axis=1)

    def transform_row(self, x: Array) -> Array:
        """Columns (m,) at one row (d,) of finite numbers."""
        row = check_row(self, x)[None]
        if not np.isfinite(row).all():
            raise ValueError(f"x is {row[0].tolist()}: give finite numbers")
        return np.concatenate([_columns(basis, row[:, at])[0] for at, basis in self.blocks_])

    def reaching(self, X: Array, known: float = 0.0) -> Self:
        """Return the same with bases that reach over rows ``X`` (n, d), as a spline's do."""
        return self._with_bases([reaching(basis, X, known, at) for at, basis in self.blocks_])

    def joined(self, other: Self) -> Self:
        """Return the same with bases that reach as far as those of ``other``, too."""
        pairs = zip(self.blocks_, other.blocks_, strict=True)
        return self._with_bases([join_bases(mine, its) for (_, mine), (_, its) in pairs])

    def columns_of(self, other: Self) -> Array:
        """Columns of one whose bases reach further, by these: M (1 + m, 1 + m')."""
        pairs = zip(self.blocks_, other.blocks_, strict=True)
        return join_columns(
            [
                np.eye(1 + len(_names(mine, np.zeros(len(at)))))
                if mine is its
                else mine.columns_of(its)
                for (at, mine), (_, its) in pairs
            ]
        )

    def _with_bases(self, bases: list[Any]) -> Self:
        if bases == [basis for _, basis in self.blocks_]:
            return self
        new = copy(self)
        new.blocks_ = [(at, basis) for (at, _), basis in zip(self.blocks_, bases, strict=True)]
        return new

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names (m,) of the columns."""
        check_is_fitted(self, "blocks_")
        inputs = np.asarray(super().get_feature_names_out(input_features), dtype=object)
        return np.concatenate([_names(basis, inputs[at]) for at, basis in self.blocks_])

    @property
    def common_hypotheses(self) -> bool:
        """True if all bases with several hypotheses have them in common."""
        return all(_are_common(basis) for _, basis in self.blocks_ if not _is_plain(basis))

    @available_if(lambda self: any(hasattr(b, "prior_precisions") for b in self.bases.values()))
    def prior_precisions(self) -> Array:
        """(L, m) prior precisions: every combination of what the bases think possible.

        Splines go together: what they think possible is combined with the rest of the bases, and
        where that would be too many the first stands for all.
        """
        check_is_fitted(self, "blocks_")
        each = [self._get_precisions(at, basis) for at, basis in self.blocks_]
        common = [_are_common(basis) for _, basis in self.blocks_]
        others = [
            range(1 if shared else len(one)) for shared, one in zip(common, each, strict=True)
        ]
        count = math.prod(map(len, others))
        most = max(
            (len(one) for shared, one in zip(common, each, strict=True) if shared), default=1
        )
        if count > MOST_HYPOTHESES:
            raise ValueError(
                f"the bases have {count:,} combinations of unknown length scales, more than "
                f"{MOST_HYPOTHESES}: give some of them a length_scale"
            )
        together = range(most if count * most <= MOST_HYPOTHESES else 1)
        return np.array(
            [
                np.concatenate(
                    [
                        one[min(k, len(one) - 1) if shared else place]
                        for shared, one, place in zip(common, each, places, strict=True)
                    ]
                )
                for k in together
                for places in itertools.product(*others)
            ]
        )

    def _get_precisions(self, at: list[int], basis: Any) -> Array:
        if basis is None:
            return self.precisions_[None, at]
        shapes = get_prior_shapes(basis)
        if shapes is None:
            return np.ones((1, len(_names(basis, np.array(self._labels())[at]))))
        return shapes

    def _fit_each(self, basis: Any, X: Array, columns: list[int], y: Any) -> Any:
        if isinstance(basis, type) or not (hasattr(basis, "fit") and hasattr(basis, "transform")):
            raise TypeError(
                f"the basis of column {self._labels()[columns[0]]} is {basis!r}: it must be a "
                "transformer with fit and transform, as in posterity.basis.Spline()"
            )
        made = clone(basis).fit(X[:, columns], y)
        if isinstance(made, DomainTransformer):  # which then names the column in its messages
            made.labels_ = [self._labels()[at] for at in columns]
        return made

    def _labels(self) -> list[str]:
        names = getattr(self, "feature_names_in_", self.names)
        return [str(one) for one in (range(self.n_features_in_) if names is None else names)]

    def _place(self, key: Hashable) -> int:
        """The number of a column."""
        names = getattr(self, "feature_names_in_", self.names)
        if isinstance(key, int | np.integer) and -self.n_features_in_ <= key < self.n_features_in_:
            return int(key) % self.n_features_in_
        if names is not None and key in list(names):
            return list(names).index(key)
        listed = (
            f"it has {self.n_features_in_} columns without names, so give numbers"
            if names is None
            else ", ".join(map(repr, names))
        )
        raise ValueError(f"basis has a column {key!r}, which is not in X: {listed}")


def reaching(basis: Any, X: Array, known: float = 0.0, at: Any = slice(None)) -> Any:
    """Return the basis that reaches over some columns of rows ``X`` (n, d), if it grows."""
    return basis.reaching(X[:, at], known) if hasattr(basis, "reaching") else basis


def join_bases(one: object, other: object) -> Any:
    """Return the basis that reaches as far as both, which have the same parameters, if it can."""
    return one.joined(other) if hasattr(one, "joined") else one


def varying(basis: Any, X: Array, columns: Sequence[int]) -> list[int]:
    """Return those columns for which the basis can take its domain from the first batch."""
    if not (isinstance(basis, DomainTransformer) and basis.domain is None and basis._needs_range()):
        return list(columns)
    return [at for at in columns if np.ptp(X[:, at]) > 0.0]


def get_prior_shapes(basis: Any) -> Array | None:
    """(L, m) prior precisions that the basis brings, if it does."""
    if not hasattr(basis, "prior_precisions"):
        return None
    return np.asarray(basis.prior_precisions(), dtype=np.float64)


def _are_common(basis: Any) -> bool:
    return bool(getattr(basis, "common_hypotheses", False))


def _is_plain(basis: Any) -> bool:
    shapes = get_prior_shapes(basis)
    return shapes is None or len(shapes) == 1


def _columns(basis: Any, X: Array) -> Array:
    if basis is None:
        return X
    if isinstance(basis, DomainTransformer):
        return basis._compute_columns(X)
    values = basis.transform(X)
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def _names(basis: Any, inputs: AnyArray) -> AnyArray:
    if basis is None:
        return inputs
    if isinstance(basis, DomainTransformer):
        return np.asarray(basis._column_names([str(one) for one in inputs]), dtype=object)
    if hasattr(basis, "get_feature_names_out"):
        return np.asarray(basis.get_feature_names_out(inputs), dtype=object)
    count = _columns(basis, np.zeros((1, len(inputs)))).shape[1]
    return np.array([f"{'_'.join(map(str, inputs))}_{k}" for k in range(count)], dtype=object)
