"""Basis functions between the features that come and the columns that a linear model learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from posterity import evidence
from posterity.aliases import Array
from posterity.basis import AutoBasis, Basis, ByColumn
from posterity.basis.by_column import join_bases, reaching, varying
from posterity.basis.contract import Bases
from posterity.kernel import RowPath
from posterity.linear.categories import Categories
from posterity.linear.inputs import refuse_unusable


def fit_basis(
    model: BaseEstimator, basis: Bases, names: list[str] | None, X: Array, y: Array | None = None
) -> Basis:
    """A copy of ``basis``, fixed by the first batch ``X`` (n, d), ``y`` (n, q), of these names.

    Of a mapping, or where a feature is constant in that batch, it is a basis by column.
    """
    if not X.shape[1]:
        raise ValueError("basis is given, and all features are categories: leave it out")
    # A row that is predicted before any was learned has no target, and gives no scales.
    y = np.zeros(len(X)) if y is None else y
    if basis == "auto":
        basis = AutoBasis(n_functions=getattr(model, "_n_waves", None))
    if isinstance(basis, Mapping):
        return ByColumn(basis, names).fit(X, y)
    if isinstance(basis, type) or not (hasattr(basis, "fit") and hasattr(basis, "transform")):
        raise TypeError(
            f"basis is {basis!r}: it must be None, 'auto' or a transformer with fit and transform, "
            "as in posterity.basis.Spline()"
        )
    some = varying(basis, X, range(X.shape[1]))
    if 0 < len(some) < X.shape[1]:
        return ByColumn({tuple(some): basis}, names).fit(X, y)
    try:
        return clone(basis).fit(X, y)
    except ValueError as error:
        if "only supported for dataframes" not in str(error):
            raise
        raise ValueError(
            "the basis names columns, and is given arrays: give a mapping instead, as in "
            'basis={"hour": Fourier(period=24.0)}, which leaves the other columns straight'
        ) from error


def compute_columns(basis: Basis | None, categories: Categories | None, X: Array) -> Array:
    """The columns (n, m) at the rows ``X`` (n, d): numbers or functions of them, then levels."""
    if categories is None:
        return _functions(basis, X)
    numbers = _functions(basis, X[:, categories.numbers])
    return np.concatenate([numbers, categories.columns(X)], axis=1)


def _functions(basis: Basis | None, X: Array) -> Array:
    if basis is None:
        return X
    if len(X) > 1:
        return _dense(basis.transform(X))
    own: Callable[[Array], Array] | None = getattr(basis, "transform_row", None)
    return _dense(basis.transform(X)) if own is None else own(X[0])[None]


def _dense(values: Any) -> Array:
    if hasattr(values, "toarray"):
        values = values.toarray()
    return np.ascontiguousarray(values, dtype=np.float64)


class BasisPath:
    """The compiled path of rows of features, by that of the functions of them that are learned."""

    def __init__(
        self, basis: Basis | None, categories: Categories | None, reader: Any, path: RowPath
    ) -> None:
        self._reader, self._path = reader, path
        self._basis, self._categories = basis, categories
        # The row that came last, which is often predicted and then learned, and its functions.
        self._last: tuple[bytes, Array] = b"", np.empty(0)

    def learn(self, x: Any, y: float, weight: float = 1.0) -> bool:
        """Learn a row; False, and nothing happens, where it must be learned in another way."""
        rows = self._reader.values(x)
        values, numbers = rows[0], rows
        if self._categories is not None:
            if not self._categories.know(values):
                return False
            numbers = rows[:, self._categories.numbers]
        if reaching(self._basis, numbers) is not self._basis:  # which must grow first
            return False
        return self._path.learn(self._columns(values), y, weight)

    def predict_mean(self, x: Any) -> float:
        """Mean at ``x``."""
        return self._path.predict_mean(self._columns(self._reader.values(x)[0]))

    def values(self, x: Any) -> Array:
        """The features of ``x`` as an array (1, d), checked."""
        return self._reader.values(x)

    def close(self) -> None:
        """Close the path: it learns no more rows, and its user must ask for another."""
        self._path.close()

    def _columns(self, values: Array) -> Array:
        key, columns = values.tobytes(), self._last[1]
        if key != self._last[0]:
            columns = compute_columns(self._basis, self._categories, values[None])[0]
            self._last = key, columns
        return columns


def names(basis: Basis, features: ArrayLike | None, count: int) -> list[str]:
    """A name for each function."""
    if hasattr(basis, "get_feature_names_out"):
        return [str(name) for name in basis.get_feature_names_out(features)]
    return [f"function {number}" for number in range(count)]


def list_blocks(basis: Basis | None, n: int) -> list[tuple[list[int], int]]:
    """Which of ``n`` features make columns together, in the order of these, and how many."""
    if basis is None:
        return [([place], 1) for place in range(n)]
    row = np.zeros((1, n))
    if not isinstance(basis, ByColumn):
        return [(list(range(n)), _functions(basis, row).shape[1])]
    return [
        part
        for at, one in basis.blocks_
        for part in (
            [([place], 1) for place in at]
            if one is None
            else [(list(at), _functions(one, row[:, at]).shape[1])]
        )
    ]


def scale_prior_precision(
    offered: Array | None,
    precision: ArrayLike | str | evidence.Strategy,
    basis: Basis | None = None,
) -> ArrayLike | str | evidence.Strategy:
    """The prior precision: one number multiplies those (L, m) that a basis offers."""
    if offered is None or not np.isscalar(precision) or isinstance(precision, str):
        return precision
    if len(offered) == 1 and (offered == 1.0).all():
        return precision
    if len(offered) > 1 and not getattr(basis, "common_hypotheses", False):
        raise ValueError(
            f"prior_precision is {precision!r}, but the length scale of the basis is unknown: "
            'give the basis a length_scale, or prior_precision="auto"'
        )
    return offered[0] * float(precision)  # type: ignore[arg-type]


def join(one: Basis | None, other: Basis | None) -> Basis | None:
    """Return the basis that reaches as far as both, if they differ in that alone; else ``one``."""
    alike = type(one) is type(other) and hasattr(one, "joined")
    if not (alike and _same(_settings(one), _settings(other))):
        return one
    return join_bases(one, other)


def _settings(basis: Any) -> Any:
    """What two bases must have in common, of which one may reach further."""
    return basis.get_params(deep=False), [at for at, _ in getattr(basis, "blocks_", [])]


def have_same_columns(one: Basis | None, other: Basis | None) -> bool:
    """Return True if two bases make the same columns, whichever batches they were fitted to."""
    if one is None or other is None:
        return one is other
    if type(one) is not type(other):
        return False
    if isinstance(one, ByColumn) and isinstance(other, ByColumn):
        mine, theirs = one.blocks_, other.blocks_
        return [at for at, _ in mine] == [at for at, _ in theirs] and all(
            have_same_columns(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True)
        )
    if hasattr(one, "domain_"):
        return _same(one.get_params(), other.get_params()) and _agree_on_domains(one, other)  # type: ignore[attr-defined]
    return _same(vars(one), vars(other))


def _agree_on_domains(one: Any, other: BaseEstimator) -> bool:
    """Return True if the columns are the same over both domains: some bases ignore theirs."""
    shares = np.linspace(0.0, 1.0, 7)[:, None]
    points = np.vstack([b.domain_[:, 0] + shares * np.ptp(b.domain_, axis=1) for b in (one, other)])
    try:
        mine, theirs = (np.asarray(basis.transform(points)) for basis in (one, other))
    except ValueError:
        return False  # one refuses what lies outside its domain
    return np.array_equal(mine, theirs)


def _same(one: Any, other: BaseEstimator) -> bool:
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(_same(one[key], other[key]) for key in one)
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if hasattr(one, "__dict__"):
        return type(one) is type(other) and _same(vars(one), vars(other))
    return bool(one == other)


def check_finite(model: BaseEstimator, X: Array) -> None:
    """Raise ``ValueError``, naming row and column, where a feature is not finite."""
    # A sum is not finite if a term isn't; only then are the terms checked.
    if not np.isfinite(np.sum(X)):
        refuse_unusable(model, X)
