"""Check what users pass before any state is touched, and say what is wrong where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from posterity.aliases import Array
from posterity.factor.rows import as_columns
from posterity.factor.usable import (
    LARGEST,
    LARGEST_WEIGHT,
    SMALLEST_WEIGHT,
    check_usable,
    scale_by_weights,
)
from posterity.kernel.columns import Columns
from posterity.kernel.tables import find_table
from posterity.kernel.values import read_float, read_floats, refuse_masked
from posterity.linear.coding import encode
from posterity.linear.frames import columns_of
from posterity.linear.kinds import refuse_accidents
from posterity.linear.matrices import dense_rows
from posterity.linear.named import NamedRows, get_feature_names
from posterity.linear.targets import fill_missing_targets, has_columns, read_targets

# Values whose products of two squares vanish.
SMALLEST_VALUE = 1e-70


def read_rows(
    model: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    *,
    reset: bool,
    columns: bool = False,
) -> tuple[Array, Array, Array | None]:
    """``X`` (n, m), ``y`` (n, 1 or q) and weights (n,), as floats; finiteness is checked later.

    With ``reset`` the model takes number and names of the features from ``X``, otherwise they must
    agree. With ``columns`` what holds columns by themselves stays as they are
    (:class:`posterity.kernel.columns.Columns`). Raises ``ValueError`` for wrong shapes, names, text
    and negative weights.
    """
    if y is None:
        raise ValueError("This model requires y to be passed, but the target y is None")
    if isinstance(y, str):
        raise TypeError(f"y is the text {y!r}: give the targets, as table[{y!r}]")
    X = _read_features(model, X, reset=reset, columns=columns)
    if has_columns(model, y, reset=reset):
        y = read_targets(model, y, reset=reset)
        check_consistent_length(X, y)
        return X, y, read_weights(sample_weight, len(X))
    y = read_target(y, getattr(model, "_numbers_of_target", 1))
    if len(X) != len(y):
        check_consistent_length(X, y)
    return X, as_columns(np.ascontiguousarray(y)), read_weights(sample_weight, len(X))


def read_target(y: Any, n_numbers: int = 1) -> Array:
    """Targets (n,) as floats, or (n, k) where each consists of several numbers."""
    if n_numbers > 1:
        rows = read_floats(y, "y")
        if rows.shape[1:] != (n_numbers,):
            raise ValueError(
                f"y has shape {rows.shape}: under this likelihood a target consists of {n_numbers} "
                f"numbers, (n, {n_numbers})"
            )
        return rows
    if _is_plain(y, 1):
        return cast(Array, y)
    refuse_masked(y, "y")
    shape: Any = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape}: fit a model for each "
            "column; the two ends of lifetimes have a likelihood such as Censored(Weibull())"
        )
    try:
        return read_floats(column_or_1d(y, warn=True), "y")
    except ValueError as error:
        if "not a number" not in str(error):
            raise
        raise ValueError(f"{error}; of labels learn a BayesianLogisticRegression") from error


def read_points(model: BaseEstimator, X: Any) -> Array:
    """``X`` (n, m), to predict at; finite."""
    if isinstance(X, Mapping) and not issparse(X):  # dok_matrix is a dict
        raise TypeError(
            "X is a mapping, as of one row: give it to predict_one, predict_distribution_one or "
            "predict_interval_one; several rows come as an array or a data frame, as in "
            "pandas.DataFrame([x])"
        )
    X = _read_features(model, X, reset=False)
    try:
        check_usable(X, largest=LARGEST)
    except FloatingPointError:
        refuse_unusable(model, X)
    return X


def read_times(
    times: ArrayLike | None, n: int, weights: Array | None, now: float | None
) -> tuple[Array, float | None]:
    """Time before each of ``n`` rows, (n,) >= 0, and the time of the last row.

    Without ``times`` every row comes one unit after the one before it; a row of weight 0 is no row,
    and takes no time. Raises ``ValueError`` when times go back, are not finite, or are given for
    some calls only.
    """
    if times is None:
        if now is not None:
            raise ValueError("earlier rows had times: give times for these as well")
        ones = np.broadcast_to(1.0, (n,))  # which takes no memory
        return ones if weights is None else (weights > 0.0).astype(np.float64), None
    array = np.ascontiguousarray(read_floats(times, "times"))
    if array.shape != (n,):
        raise ValueError(f"times has shape {array.shape}: expected ({n},), one for each row of X")
    elapsed = np.diff(array, prepend=array[:1] if now is None else [now])
    if not (elapsed >= 0.0).all() or np.isinf(elapsed).any():
        row = int(np.argmax(~(elapsed >= 0.0) | np.isinf(elapsed)))
        raise ValueError(
            f"times is {array[row]} in row {row}: times must be finite and must not decrease; "
            "sort the rows by time"
        )
    return elapsed, float(array[-1])


def _read_features(model: BaseEstimator, X: Any, *, reset: bool, columns: bool = False) -> Array:
    if isinstance(X, NamedRows) and not reset:
        return X.read_by(model)
    if issparse(X):
        X = dense_rows(X)
    X = encode(model, X, reset=reset)
    array = X if _fits(model, X, reset=reset) else _validate_rows(model, X, reset, columns)
    if isinstance(array, Columns):  # which do all that posteriors do with rows that come together
        return cast(Array, array)
    # The order of memory is kept: the kernel reads columns as well as rows.
    whole = array.flags.aligned and all(s % array.itemsize == 0 for s in array.strides)
    return array if whole else np.ascontiguousarray(array)


def _fits(model: BaseEstimator, X: Any, *, reset: bool) -> bool:
    """Return True if ``X`` can be read as it is; a new model takes its number of features."""
    if not (_is_plain(X, 2) and X.size) or get_feature_names(model) is not None:
        return False
    if reset:
        model.n_features_in_ = X.shape[1]
    # scikit-learn's own message tells of another number.
    return bool(X.shape[1] == model.n_features_in_)


def _validate_rows(model: BaseEstimator, X: Any, reset: bool, columns: bool) -> Array | Columns:
    refuse_accidents(X)
    _refuse_other_tables(X)
    refuse_masked(X, "X")
    try:
        read = columns_of(X, arrays=columns)
        if read is not None:
            validate_data(model, X, reset=reset, skip_check_array=True)
            return read if columns else np.asarray(read)
        array = validate_data(model, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        if _holds_objects(X):  # Python and NumPy make numbers of text
            refuse_no_number(X)
        return array
    except (ValueError, TypeError, OverflowError) as error:
        name_text_column(X, error)
        _name_columns_of_fit(model, X, error)
        table = find_table(X)
        if table is not None:
            table.by_name()  # which says what of the names is wrong
        if isinstance(error, OverflowError):
            raise ValueError(f"X has a whole number beyond all floats: {error}") from error
        raise


def _holds_objects(X: Any) -> bool:
    table = find_table(X)
    types = [np.asarray(X).dtype] if table is None else table.types
    return any(getattr(type_, "kind", "O") not in "biuf" for type_ in types)


def _refuse_other_tables(X: Any) -> None:
    """Raise ``TypeError`` for what is a table to its user, and to nobody else."""
    if isinstance(X, str):
        raise TypeError(f"X is the text {X!r}: give an array or a data frame")
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise TypeError("X is a lazy frame: give X.collect()")
    if isinstance(X, Mapping) and not issparse(X):
        raise TypeError("X is a mapping: give a data frame, as pandas.DataFrame(X) makes it")
    if isinstance(X, list) and X and isinstance(X[0], Mapping):
        raise TypeError(
            "X is a list of mappings: give a data frame, as pandas.DataFrame(X) makes it, or one "
            "row at a time to learn_one and predict_one"
        )


def _is_plain(values: object, ndim: int) -> bool:
    """Return True for an array of floats: to look closer would cost more than a fit."""
    return type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == ndim


def refuse_no_weight(sample_weight: ArrayLike | None) -> None:
    """Raise ``ValueError`` where all weights are zero."""
    if sample_weight is not None and not np.asarray(sample_weight).any():
        raise ValueError(
            "every sample_weight is zero, so there is nothing to fit: give at least one row "
            "a positive weight"
        )


def read_weights(
    sample_weight: ArrayLike | None, n: int, name: str = "sample_weight"
) -> Array | None:
    """Weights (n,), or None for ones."""
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(expand_to_rows(name, sample_weight, n))
    bad = ~((weights >= 0.0) & (weights <= LARGEST_WEIGHT))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name} is {weights[row]} in row {row}: weights must be finite and not "
            f"negative (0 leaves a row out), and at most {LARGEST_WEIGHT:g}"
        )
    if 0.0 < weights.max(initial=0.0) < SMALLEST_WEIGHT:
        raise ValueError(
            f"no {name} is larger than {weights.max():g}: rows of such small weight have "
            "no effect; multiply all weights by the same large number"
        )
    # Beside a heavier row they change no digit, and what divides by them would overflow.
    return np.where(weights < SMALLEST_WEIGHT, 0.0, weights)


def expand_to_rows(name: str, values: ArrayLike, n: int) -> Array:
    """``values`` as floats (n,); one number is meant for all rows.

    Examples
    --------
    >>> expand_to_rows("offset", 1.0, 2)
    array([1., 1.])
    """
    if isinstance(values, str):
        raise TypeError(f"{name} is the text {values!r}: give the numbers, as X[{values!r}]")
    array = read_floats(values, name)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}: expected ({n},), one for each row of X")
    return array


@contextmanager
def name_bad_rows(
    model: BaseEstimator, X: Array, y: Array, weights: Array | None = None
) -> Iterator[None]:
    """Turn the factor's refusal of unusable rows into a message that says where they are."""
    try:
        yield
    except ArithmeticError as error:
        refuse_unusable(model, X, y, weights)
        _refuse_vanishing(model, X, y)
        raise ValueError("learning these rows overflows: use smaller values or weights") from error


def check_same_kind(model: BaseEstimator, other: BaseEstimator, kind: type) -> None:
    """Raise ``TypeError`` unless the other is a model of this kind, which can be merged."""
    if not isinstance(other, kind):
        name = type(model).__name__
        raise TypeError(f"other is a {type(other).__name__}: merge another {name} into a {name}")


def check_same_features(model: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ``ValueError`` unless both models have the same features in the same order."""
    names, others = (get_feature_names(m) for m in (model, other))
    if names is not None and others is not None and set(names) != set(others):
        only = [
            f"only {whose} model has {', '.join(repr(str(name)) for name in some)}"
            for whose, some in (
                ("the other", [name for name in others if name not in names]),
                ("this", [name for name in names if name not in others]),
            )
            if some
        ]
        raise ValueError(
            f"the models differ in their features: {'; '.join(only)}: merge models with the same "
            "features in the same order"
        )
    if model.n_features_in_ != other.n_features_in_:
        raise ValueError(
            f"the other model has {other.n_features_in_} features, this one "
            f"{model.n_features_in_}: merge models with the same features"
        )
    if names is not None and others is not None and list(names) != list(others):
        raise ValueError(
            f"the other model's features are {', '.join(repr(str(name)) for name in others)}; this "
            f"one's are {', '.join(repr(str(name)) for name in names)}: merge models with the same "
            "features in the same order"
        )


def refuse_unusable(
    model: BaseEstimator, X: Array, y: Array | None = None, weights: Array | None = None
) -> None:
    """Raise ``ValueError`` naming the first column and row that is not finite or is too large."""
    names = get_feature_names(model)
    for label, values in (("X", X), ("y", y)):
        if values is None:
            continue
        values = np.asarray(values)
        looked_at = fill_missing_targets(model, values) if label == "y" else values
        with np.errstate(invalid="ignore"):  # of infinities without weight
            weighted = scale_by_weights(looked_at, weights)
        bad = np.argwhere(~(np.abs(weighted) <= LARGEST))
        if len(bad) == 0:
            continue
        row, column = (int(index) for index in bad[0])
        value = values[row, column]
        where = f"row {row}"
        if values.shape[1] > 1 or label == "X":
            named = names if label == "X" else getattr(model, "target_names_", None)
            where += f", column {_label(named, column)}"
        if np.isfinite(value):
            much = "" if weights is None else f", with the weight {weights[row]:g}"
            raise ValueError(
                f"{label} is {value:g} in {where}{much}: beyond {LARGEST:g} products overflow; use "
                "smaller units"
            )
        kind = "NaN" if np.isnan(value) else "infinity"
        if label == "X" and len(values) > 1 and np.isnan(values[:, column]).all():
            raise ValueError(
                f"Input X contains NaN in every row of column {_label(names, column)}: leave that "
                "column out"
            )
        raise ValueError(
            f"Input {label} contains {kind} in {where} (the first of {len(bad)}): drop such rows"
            + (
                " or fill them in, for example with sklearn.impute.SimpleImputer"
                if label == "X"
                else ", which can't be learned"
            )
        )


def _refuse_vanishing(model: BaseEstimator, X: Array, y: Array) -> None:
    names = get_feature_names(model)
    sizes = np.abs(np.asarray(X)).max(axis=0, initial=0.0)
    small = (sizes > 0.0) & (sizes < SMALLEST_VALUE)
    if small.any():
        column = int(np.argmax(small))
        raise ValueError(
            f"column {_label(names, column)} of X has no values beyond {sizes[column]:g}: such "
            "small numbers become 0 when squared; use smaller units, so that the numbers are larger"
        )
    if 0.0 < np.abs(y).max(initial=0.0) < SMALLEST_VALUE:
        raise ValueError(
            f"y has no values beyond {np.abs(y).max():g}: such small numbers become 0 when "
            "squared; use smaller units, so that the numbers are larger"
        )


def _label(names: ArrayLike | None, column: int) -> str:
    return str(column) if names is None else repr(str(np.asarray(names)[column]))


def _name_columns_of_fit(model: BaseEstimator, X: Any, cause: Exception) -> None:
    """Raise an error that says how to choose the columns of the fit, if ``X`` has them all."""
    names = get_feature_names(model)
    if names is None or "feature names should match" not in str(cause):
        return
    table = find_table(X)
    if table is not None and set(names) <= set(table.names):
        raise ValueError(
            f"{cause}Give the columns of the fit, in their order, as in "
            "X[list(model.feature_names_in_)]"
        ) from cause


def name_text_column(X: Any, cause: Exception) -> None:
    """Raise an error that names the column of ``X`` that holds text, if one does."""
    words = "could not convert", "float()", "too large to convert"
    if any(word in str(cause) for word in words):
        refuse_no_number(X, cause)


def refuse_no_number(X: Any, cause: Exception | None = None) -> None:
    """Raise an error that names row and column of the first value that is text, or no number."""
    table = find_table(X)
    columns = None if table is None else table.names
    values = np.asarray(X, dtype=object)
    for column in range(values.shape[1] if values.ndim == 2 else 0):
        for row, value in enumerate(values[:, column]):
            if value is None:  # a missing number, as NaN is
                continue
            try:
                read_float(value)
            except (TypeError, ValueError) as error:
                shown = "a whole number" if isinstance(value, int) else repr(value)
                raise type(error)(
                    f"could not convert {shown} to a number: row {row}, column "
                    f"{_label(columns, column)}; drop the column, encode it, for example with "
                    "sklearn.preprocessing.OneHotEncoder, or give a data frame to a model with "
                    "categorical_features='auto', which reads text; a column of groups is named, "
                    f'as in GroupedRegression(by="shop") ({error})'
                ) from cause
