"""Base of the transformers: reading rows, the domain, and the values outside of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from posterity.aliases import AnyArray, Array
from posterity.transaction import AtomicModel, atomic

# Distance, in that of two places, within which a value is at one.
SAME = 1e-9


def read_rows(transformer: Any, X: Any, *, reset: bool, **how: Any) -> Array:
    """Rows (n, d) as scikit-learn reads them; how else, its ``validate_data`` says."""
    try:
        return np.asarray(validate_data(transformer, X, reset=reset, dtype=np.float64, **how))
    except OverflowError as error:
        raise ValueError(f"X has a whole number beyond all floats: {error}") from error


def check_row(transformer: Any, x: Array) -> Array:
    """The row; raises ``ValueError`` unless it is an array (d,) of floats."""
    if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (transformer.n_features_in_,):
        return x
    raise ValueError(
        f"x is no array of floats of shape ({transformer.n_features_in_},): give such a row, or "
        "rows to transform"
    )


class DomainTransformer(AtomicModel, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A transformer that is fixed by a domain: a closed range (low, high) of each feature.

    A kind of basis says what it needs (``_begin``), its columns (``_columns``) and their names
    (``_column_names``).
    """

    _ways_outside: ClassVar[tuple[str, ...]] = ("extend", "clip", "raise")

    domain: ArrayLike | None
    outside: str
    domain_: Array
    # Names of the features, where rows come without, for messages.
    labels_: list[str] | None = None

    @atomic
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fix domain and functions.

        Parameters
        ----------
        X : (n, d) array or data frame
            Only its width counts when everything is given; else the range of each feature too.
        y : (n,) or (n, q) array, optional
            Targets, of a basis that learns length scales from them; else ignored.

        Raises
        ------
        ValueError
            If a value is not finite, a parameter is out of its range, or the domain is to be taken
            from a feature that has a single value.
        """
        if self.outside not in self._ways_outside:
            ways = " or ".join(map(repr, self._ways_outside))
            raise ValueError(f"outside is {self.outside!r}: it must be {ways}")
        X = self._read(X, reset=True)
        self.domain_ = (
            self._read_given_domain() if self.domain is not None else self._find_domain(X)
        )
        self._begin(X, y)
        return self

    def transform(self, X: Any) -> Array:
        """Columns (n, m) at the rows ``X`` (n, d); nothing is learned.

        Raises
        ------
        ValueError
            If a value is not finite, the width or the names are not those of ``fit``, or a row is
            outside the domain and ``outside`` is ``"raise"``; the message names row and feature.
        """
        check_is_fitted(self, "domain_")
        return self._compute_columns(self._read(X, reset=False))

    def transform_row(self, x: Array) -> Array:
        """Columns (m,) at one row (d,) of finite numbers, as :meth:`transform` makes them, sooner.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity.basis import Polynomial
        >>> basis = Polynomial(degree=2, family="monomial").fit([[0.0], [1.0]])
        >>> basis.transform_row(np.array([3.0]))
        array([3., 9.])
        """
        return self._compute_columns(check_row(self, x)[None])[0]

    def _compute_columns(self, X: Array) -> Array:
        """Columns (n, m) at rows (n, d) that were checked to be finite."""
        if self.outside == "clip":
            X = np.clip(X, self.domain_[:, 0], self.domain_[:, 1])
        elif self.outside == "raise":
            self._refuse_outside(X)
        with np.errstate(over="ignore", invalid="ignore"):
            columns = self._columns(X)
            usable = math.isfinite(columns.sum())
        if not usable:
            self._refuse_overflow(X, columns)
        return columns

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> AnyArray:
        """Names (m,) of the columns, made of the names of the features."""
        check_is_fitted(self, "domain_")
        inputs = [str(name) for name in super().get_feature_names_out(input_features)]
        return np.asarray(self._column_names(inputs), dtype=object)

    # ---- what a kind of basis says ---------------------------------------------------------------

    def _needs_range(self) -> bool:
        """Return True if functions depend on the domain, so that its ends must differ."""
        return True

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        """Check parameters and fix what is left to fix, from the first batch (n, d)."""
        raise NotImplementedError  # each kind says how

    def _columns(self, X: Array) -> Array:
        """Columns (n, m) at rows (n, d) that are finite and clipped if they are to be."""
        raise NotImplementedError  # each kind says how

    def _column_names(self, inputs: list[str]) -> list[str]:
        """Names of the m columns."""
        raise NotImplementedError  # each kind says how

    # ---- the domain ------------------------------------------------------------------------------

    def _scale_to_domain(self, X: Array) -> Array:
        """``X`` (n, d) with the domain moved to [-1, 1]."""
        # Halves are added, not ends: no overflow, and no cancellation where |low| is large.
        middle, half = self._middle_and_half()
        return (X - middle) / half

    def _middle_and_half(self) -> tuple[Array, Array]:
        low, high = self.domain_.T
        return low / 2.0 + high / 2.0, high / 2.0 - low / 2.0

    def _read_given_domain(self) -> Array:
        try:
            domain = np.asarray(self.domain, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"domain is {self.domain!r}: it must be (low, high), or one such pair for each "
                "feature"
            ) from error
        if domain.shape not in {(2,), (self.n_features_in_, 2)}:
            raise ValueError(
                f"domain has shape {domain.shape}: it must be (low, high), or one such pair for "
                f"each of {self.n_features_in_} features"
            )
        domain = np.broadcast_to(domain, (self.n_features_in_, 2)).copy()
        for feature, (low, high) in enumerate(domain):
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise ValueError(
                    f"domain of feature {self._label(feature)} is ({low:g}, {high:g}): low must be "
                    "less than high, and both finite"
                )
        return domain

    def _find_domain(self, X: Array) -> Array:
        low, high = X.min(axis=0), X.max(axis=0)
        single = np.flatnonzero(~(low < high))
        if len(single) and self._needs_range():
            feature = int(single[0])
            raise ValueError(
                f"feature {self._label(feature)} is {low[feature]:g} in every row of the first "
                f"batch (n_samples = {len(X)}): this determines no domain; give domain=(low, "
                "high), or drop the feature"
            )
        return np.stack([low, high], axis=1)

    def _refuse_outside(self, X: Array) -> None:
        bad = np.argwhere(np.clip(X, self.domain_[:, 0], self.domain_[:, 1]) != X)
        if len(bad):
            row, feature = (int(index) for index in bad[0])
            inside = " or ".join(repr(way) for way in self._ways_outside if way != "raise")
            raise ValueError(
                f"{self._describe_cell(X, row, feature)} (the first of {len(bad)}): give a "
                f"wider domain=, or outside={inside}"
            )

    def _refuse_overflow(self, X: Array, columns: Array) -> None:
        bad = np.flatnonzero(~np.isfinite(columns).all(axis=1))
        if len(bad):
            row = int(bad[0])
            middle, half = self._middle_and_half()
            distance = np.abs(X[row] / 2.0 - middle / 2.0) / np.where(half > 0.0, half, 1.0)
            raise ValueError(
                f"{self._describe_cell(X, row, int(distance.argmax()))}, so far out that "
                f"{type(self).__name__} overflows: drop such rows, or use outside='clip'"
            )

    def _describe_cell(self, X: Array, row: int, feature: int) -> str:
        low, high = self.domain_[feature]
        return (
            f"feature {self._label(feature)} is {X[row, feature]:g} in row {row}, outside its "
            f"domain [{low:g}, {high:g}]"
        )

    # ---- rows ------------------------------------------------------------------------------------

    def _read(self, X: Any, *, reset: bool) -> Array:
        X = read_rows(self, X, reset=reset, ensure_all_finite=False)
        if not np.isfinite(np.sum(X)):
            bad = np.argwhere(~np.isfinite(X))
            if len(bad):  # a sum may overflow although every term is finite
                row, feature = (int(index) for index in bad[0])
                kind = "NaN" if np.isnan(X[row, feature]) else "infinity"
                raise ValueError(
                    f"Input X contains {kind} in row {row}, column {self._label(feature)} (the "
                    f"first of {len(bad)}): drop such rows or fill them in, for example with "
                    "sklearn.impute.SimpleImputer"
                )
        return np.asarray(X, dtype=np.float64)

    def _label(self, feature: int) -> str:
        names = getattr(self, "feature_names_in_", self.labels_)
        return str(feature) if names is None else repr(str(names[feature]))


class LocalFunctions(DomainTransformer):
    """Functions that are 0, or nearly, but on a piece of the domain."""

    def prior_precisions(self) -> Array:
        """(1, m) ones: one precision for all functions, each of a height of about 1.

        Measured by the rows so far, as features are, a function under which no row has come yet
        would look tiny, and its coefficient could be anything.
        """
        check_is_fitted(self, "domain_")
        return np.ones((1, self._columns(self.domain_[:, :1].T).shape[1]))


def join_columns(blocks: Sequence[Array]) -> Array:
    """Columns beside a 1, by others, of bases side by side: as ``grow`` has those of each."""
    joined = block_diag(1.0, *(block[1:, 1:] for block in blocks))
    joined[0, 1:] = np.concatenate([block[0, 1:] for block in blocks])
    return np.asarray(joined)


def check_count(name: str, value: object, *, least: int = 1, most: int | None = None) -> int:
    """``value`` as an int; ``ValueError`` unless it is a whole number in this range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be a whole number of at least {least}")
    if most is not None and value > most:
        raise ValueError(f"{name} is {value!r}: at most {most} makes sense")
    return int(value)


def check_positive(name: str, value: object, n_features: int) -> Array:
    """``value`` as (d,) positive numbers, one for each feature; else ``ValueError``."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.empty(0)
    right = numbers.shape in {(), (n_features,)}
    if not (right and (numbers > 0.0).all() and np.isfinite(numbers).all()):
        raise ValueError(
            f"{name} is {value!r}: it must be a positive number, or one for each of {n_features} "
            "features"
        )
    return np.broadcast_to(numbers, (n_features,)).copy()


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ``ValueError`` unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}: it must be {' or '.join(map(repr, choices))}")


def spread(where: str, X: Array, domain: Array, count: int) -> Array:
    """``count`` places on a feature's domain (2,): ``"even"``, or at ``"quantiles"`` of X (n,).

    Those that coincide are one place; the ends of the domain are always among them.
    """
    even = np.unique(np.linspace(domain[0], domain[1], count))
    if where == "even" or count < 3:
        return even
    inner = np.quantile(X, np.linspace(0.0, 1.0, count)[1:-1])
    inner = inner[(inner > domain[0]) & (inner < domain[1])]
    return np.unique(np.concatenate([domain[:1], inner, domain[1:]]))


def join_ranges(one: Array, other: Array) -> Array:
    """(d, 2) ranges that contain both."""
    return np.stack([np.minimum(one, other)[:, 0], np.maximum(one, other)[:, 1]], axis=1)


def rank_places(places: Array) -> tuple[float, float]:
    """What is largest of the places that others should be like: those that are farther apart."""
    return float(places[-1] - places[0]) / len(places), -float(places[0])


def go_on(places: Array, low: float, high: float, count: int, spans: float = math.inf) -> Array:
    """Even places from these on, over [low, high], too: ``count``, or a little less or more.

    Every other one is left out where they would be too many: they are among those there were. An
    end so many of their spans away, or infinitely many, is left where it is.
    """
    if len(places) == 1:
        return np.linspace(low, high, count) if low < high else places
    last = len(places) - 1
    origin, step = float(places[0]), float(places[-1] - places[0]) / last
    ends = (low - origin) / step, (high - origin) / step
    first = math.floor(ends[0] + SAME) if -ends[0] < spans * last else 0
    last = math.ceil(ends[1] - SAME) if ends[1] - last < spans * last else last
    while last - first >= math.sqrt(2.0) * count:
        step, first, last = 2.0 * step, first // 2, -(-last // 2)
    return origin + step * np.arange(first, last + 1.0)
