"""Coding: which features are categories, and numbers in the place of their levels."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Array, Indices
from posterity.distributions.guesses import did_you_mean
from posterity.kernel.tables import find_table, kind_of, read_names, type_of
from posterity.kernel.values import is_word, read_floats
from posterity.linear.categories import MISSING, Categories, Category
from posterity.linear.keys import is_missing
from posterity.linear.levels import is_category, read_words, to_text
from posterity.linear.matrices import MOST_COLUMNS
from posterity.linear.named import has_learned
from posterity.linear.rounding import find_level_of_user

# Text of more rows, each with a level of its own, is no category.
FEW_ROWS = 20
# Names of columns of codes, as in "shop_id", "shopId" and "zip".
CODE_NAME = re.compile(r"(?:[a-z]_id|[a-z]Id|(?:^|_)(?i:zip|zipcode|zip_code|postcode|plz))$")


def encode(model: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """``X`` with numbers for levels; with ``reset`` the model takes its categories from it.

    Raises
    ------
    ValueError
        For a parameter or a value that can't be, naming the column.
    """
    if reset:
        found = _find_categories(X, model)
        model.__dict__.pop("categories_", None)
        if found is not None:
            model.categories_ = found
    known: Categories | None = getattr(model, "categories_", None)
    if known is None or not hasattr(X, "__len__"):
        return X
    columns = {place: (name, column) for place, name, column in _list_columns(X)}
    codes = {}
    for one in known.each:
        name, column = columns.get(one.place, ("", None))
        if column is not None and name == one.name:  # else names are refused as those of numbers
            words = read_words(column, name, model.missing)
            codes[one.place] = one.number(words.words)[words.places]
    return _replace_columns(X, codes)


def takes_categories(model: BaseEstimator, X: Any) -> bool:
    """Return True if a model, or one that has learned nothing, takes features of ``X`` so."""
    if has_learned(model):
        return hasattr(model, "categories_")
    asked = getattr(model, "categorical_features", None)
    if not is_word(asked, "auto"):
        return asked is not None
    return type(X) is not np.ndarray and any(is_category(one) for _, _, one in _list_columns(X))


def join_levels(model: BaseEstimator, X: Any) -> Categories:
    """The categories of a model with all levels of ``X``, too."""
    known: Categories = model.categories_
    columns = {name: column for _, name, column in _list_columns(X)}
    each = tuple(
        one.join(read_words(columns[one.name], one.name, model.missing).present())
        if one.name in columns
        else one
        for one in known.each
    )
    return _check_columns(replace(known, each=each))


def join_categories(model: BaseEstimator, other: BaseEstimator) -> Categories:
    """The categories of two models together.

    Raises
    ------
    ValueError
        If a feature is a category in one of them only.
    """
    mine, theirs = (
        {one.name: one for one in known.each} if known else {}
        for known in (model._categories, other._categories)
    )
    differs = next(iter(mine.keys() ^ theirs.keys()), None)
    if differs is not None:
        raise ValueError(
            f"column {differs!r} is a category in one of the models, and numbers in the other: "
            "give both the same columns"
        )
    each = tuple(one.join(theirs[name].levels) for name, one in mine.items())
    return _check_columns(replace(model.categories_, each=each))


# ---- single rows ---------------------------------------------------------------------------------


class RowCoder:
    """Reads single rows as ``reader`` does, with numbers for levels."""

    def __init__(self, reader: Any, categories: Categories, missing: str) -> None:
        self._reader, self._categories, self._missing = reader, categories, missing

    def values(self, x: Any) -> Array:
        """The features of ``x`` as an array (1, d), checked."""
        if hasattr(x, "columns"):
            return self._reader.values(x)  # which refuses a table
        row, places = _open_row(x, self._categories.each)
        for one, place in zip(self._categories.each, places, strict=True):
            row[place] = one.number([_read_word(row[place], one.name, self._missing)])[0]
        return self._reader.values(row)


def find_categories_of_row(model: BaseEstimator, x: Any) -> Categories | None:
    """The categories of a model that begins with one row, a mapping or an array."""
    named = read_names(x)
    row = {f"x{j}": value for j, value in enumerate(x)} if named is None else named
    names = [str(name) for name in row]
    asked = _read_asked(model, names)
    found = []
    for place, (name, value) in enumerate(zip(names, row.values(), strict=True)):
        if name in asked or (model.categorical_features is not None and isinstance(value, str)):
            first = Category(place, name, asked.get(name, ()), model._leaves_out_first)
            found.append(first.join([_read_word(value, name, model.missing)]))
    return _check_columns(Categories(len(names), tuple(found))) if found else None


def join_levels_of_row(model: BaseEstimator, x: Any) -> Categories:
    """The categories of a model with those levels of one row, too."""
    known: Categories = model.categories_
    row, places = _open_row(x, known.each)
    each = tuple(
        one.join([_read_word(row[place], one.name, model.missing)])
        for one, place in zip(known.each, places, strict=True)
    )
    return known if each == known.each else _check_columns(replace(known, each=each))


def _open_row(x: Any, each: Sequence[Category]) -> tuple[Any, list[Any]]:
    """A copy of a row, and where in it the categories are."""
    row = read_names(x)
    if row is None:
        return list(x), [one.place for one in each]
    return row, [one.name for one in each if one.name in row]


def _read_word(value: Any, name: str, missing: str) -> str:
    if not is_missing(value):
        return to_text(value)
    if missing == "level":
        return MISSING
    raise ValueError(
        f"{name!r} is missing: leave the row out, fill the value in, as by {MISSING!r}, or give "
        "missing='level' to the model"
    )


# ---- which features ------------------------------------------------------------------------------


def _find_categories(X: Any, model: BaseEstimator) -> Categories | None:
    asked: Any = getattr(model, "categorical_features", None)
    if asked is None or (is_word(asked, "auto") and type(X) is np.ndarray):
        return None
    columns = _list_columns(X)
    named = _read_asked(model, [name for _, name, _ in columns])
    frame = not isinstance(X, np.ndarray)
    if frame and is_word(asked, "auto"):
        for _, name, column in columns:
            if seems_a_code(name) and kind_of(type_of(column)) == "numbers":
                warn_of_codes(name, read_floats(column, f"column {name!r}"))
    found = [
        _learn_category(
            Category(place, name, named.get(name, ()), model._leaves_out_first), column, model
        )
        for place, name, column in columns
        if name in named or (frame and is_category(column))
    ]
    return _check_columns(Categories(len(columns), tuple(found))) if found else None


def _learn_category(asked: Category, column: Any, model: BaseEstimator) -> Category:
    """The category with the levels of a column, behind those that were asked for."""
    levels = read_words(column, asked.name, model.missing).words
    _check_count(asked.name, len(levels))
    if len(levels) == len(column) > FEW_ROWS:
        warn_of_unique_texts(asked.name, len(column), find_level_of_user())
    return asked.join(levels) if asked.levels else replace(asked, levels=tuple(levels))


def _read_asked(model: BaseEstimator, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The features that are categories whatever they hold, with levels where these are given."""
    asked, missing = model.categorical_features, model.missing
    if missing not in ("error", "level"):
        raise ValueError(f"missing is {missing!r}: it must be 'error' or 'level'")
    if asked is None or is_word(asked, "auto"):
        return {}
    if is_word(asked, "all"):
        return dict.fromkeys(names, ())
    if isinstance(asked, str) or not hasattr(asked, "__iter__"):
        raise ValueError(
            f"categorical_features is {asked!r}: it must be 'auto', 'all', None, a list of names "
            "of columns, or a dict of these and their levels"
        )
    unknown = next((name for name in asked if name not in names), None)
    if unknown is not None:
        raise ValueError(
            f"categorical_features names {unknown!r}, which X lacks: name some of "
            f"{', '.join(map(repr, list(names)[:20]))}{did_you_mean(unknown, names)}"
        )
    if not isinstance(asked, Mapping):
        return dict.fromkeys(asked, ())
    for name, levels in asked.items():
        if isinstance(levels, str) or not hasattr(levels, "__iter__"):
            raise ValueError(
                f"categorical_features[{name!r}] is {levels!r}: it must be a list of levels"
            )
    return {name: tuple(dict.fromkeys(map(to_text, levels))) for name, levels in asked.items()}


def _check_count(name: str, count: int) -> None:
    if count > MOST_COLUMNS:
        raise ValueError(
            f"column {name!r} has {count:,} levels; this model has a full covariance, and takes up "
            f"to {MOST_COLUMNS:,} columns: use a model of posterity.sparse, such as "
            "SparseLinearRegression, or drop the column"
        )


def _check_columns(found: Categories) -> Categories:
    """The categories; ``ValueError`` where there are too many columns, or two of one name."""
    most = max(found.each, key=lambda one: len(one.levels))
    _check_count(most.name, len(most.levels))
    if len(found.names) > MOST_COLUMNS:
        raise ValueError(
            f"the categories have {len(found.names):,} levels together, {len(most.levels):,} of "
            f"them in column {most.name!r}; this model has a full covariance, and takes up to "
            f"{MOST_COLUMNS:,} columns: use a model of posterity.sparse, or drop columns"
        )
    twice = next((name for name, count in Counter(found.names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two levels would be called {twice!r}: rename a column or a level")
    return found


def warn_of_unique_texts(name: str, n: int, stacklevel: int) -> None:
    """Warn of text that has a level for each row, of which nothing can be learned."""
    warnings.warn(
        f"column {name!r} has a different level in each of its {n:,} rows: none can be learned; "
        "drop it, or make numbers of it",
        UserWarning,
        stacklevel=stacklevel + 1,
    )


def seems_a_code(name: str) -> bool:
    """Return True for the name of a column of codes.

    >>> [seems_a_code(name) for name in ("shop_id", "userId", "ZIP", "paid", "valid")]
    [True, True, True, False, False]
    """
    return CODE_NAME.search(name) is not None


def warn_of_codes(name: str, values: Array) -> None:
    """Warn of a column of codes by its name, if they are whole numbers that come again."""
    whole = bool((values == np.rint(values)).all())
    if whole and 2 < len(np.unique(values)) <= 0.5 * len(values):
        warnings.warn(
            f"column {name!r} seems to hold codes, and is learned as a number: name it in "
            f"categorical_features=[{name!r}] to learn each code by itself, or leave it out",
            UserWarning,
            stacklevel=find_level_of_user(),
        )


# ---- containers ----------------------------------------------------------------------------------


def _list_columns(X: Any) -> list[tuple[int, str, Any]]:
    """Place, name and values of each column of a frame or an array; none of other containers."""
    table = find_table(X)
    if table is not None:
        names = map(str, table.names)
        return list(zip(range(len(table.names)), names, table.columns, strict=True))
    arrays = X.T if isinstance(X, np.ndarray) and X.ndim == 2 else ()
    return [(place, f"x{place}", column) for place, column in enumerate(arrays)]


def _replace_columns(X: Any, codes: Mapping[int, Indices]) -> Any:
    """A copy of a frame or array with these columns in the places of its own."""
    if not codes:
        return X
    table = find_table(X)
    if table is not None:
        return table.replace(codes)
    X = X.astype(object)
    for place, column in codes.items():
        X[:, place] = column
    return X
