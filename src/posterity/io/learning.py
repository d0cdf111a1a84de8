"""Models that learn from tables and predict into them, batch by batch, by the names of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, Literal, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from posterity.aliases import AnyArray, Array
from posterity.io.arrow import pa
from posterity.io.columns import Dates, Encoding, Learned
from posterity.io.containers import Output, make_container
from posterity.io.errors import TableError
from posterity.io.lags import check_lags
from posterity.io.missing import Missing
from posterity.io.reading import BATCH_ROWS, MEMORY, ReadSettings
from posterity.io.table import TableStream, open_any, open_first, open_rows
from posterity.io.targets import make_target
from posterity.io.text_format import TextFormat
from posterity.kernel.values import is_word
from posterity.linear.base import LinearModel
from posterity.linear.named import NamedRows, list_feature_names

Model = TypeVar("Model")
Levels = Mapping[str, Sequence[str]] | Literal["fixed", "growing", "model"]


def learn_stream(
    model: Model,
    table: object,
    target: str,
    *,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    weight: str | None = None,
    time: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
    batch_rows: int = BATCH_ROWS,
    memory: int | str = MEMORY,
    missing: Missing = "error",
    dates: Dates = "error",
    levels: Levels = "fixed",
    categories: Sequence[str] = (),
    lags: Sequence[int] = (),
    text: TextFormat | None = None,
    progress: Callable[[TableStream], object] | None = None,
) -> Model:
    """Learn all rows of a table, out of core, in addition to earlier rows.

    Parameters
    ----------
    model : estimator with ``partial_fit``
        One that has learned nothing takes its features from the table; any other finds its own by
        their names, in whatever order they are, with the same levels.
    table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        As in :func:`open_table`.
    target : str
        Column to predict: numbers, or the labels of a classifier.
    features, drop : sequences of str, optional
        Columns to use, in this order, and to leave out; only where the model has learned nothing.
    weight, time : str, optional
        Columns of the rows' weights, and of when they came: ``sample_weight`` and ``times`` of the
        model's ``partial_fit``. As in :func:`open_table`: dates and times become days.
    offset, exposure : str, optional
        Columns of what is added to the log rate of a count, and of the time, area or people that
        it comes from: ``offset`` and ``exposure`` of the model's ``partial_fit``.
    batch_rows : int
        Rows to learn at a time.
    memory : int or str
        As in :func:`open_table`: what batches may take of it, "512MB" by default.
    missing : {"error", "skip", "mean"}, mapping of feature to number, or ColumnMeans
        As in :func:`open_table`.
    dates, categories, lags
        As in :func:`open_table`; only where the model has learned nothing. A model with lags finds
        the past of the first rows of a table in that table alone.
    levels : "fixed", "growing", "model" or mapping of column to levels, default "fixed"
        Levels of categories. "fixed": those in the first batch, the first of them left out; a
        level that comes later has zeros in all. A mapping says beforehand what will come.
        "growing": every level has a feature, which joins the model when it first comes; the prior
        decides what is believed of it, so it must not be flat. "model": a column is one feature,
        as of a data frame that the model fits, which has a coefficient for each level.
    text : TextFormat, optional
        As in :func:`open_table`: how a text file is written.
    progress : callable, optional
        Called with the stream after every batch; it tells ``n_rows_read`` and ``fraction``.

    Returns
    -------
    The model. Rows before an error stay learned.

    Raises
    ------
    TableError
        A `ValueError`: no such column, one of another type than it was learned from, missing or
        infinite values, negative weights, times that go back; it names the table, the row and the
        column.
    TypeError
        Offsets or exposures for a model that has none.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from posterity import BayesianLinearRegression
    >>> rides = {"km": [1.0, 2.0, 3.0, 4.0], "zone": list("abab"), "fare": [3.0, 6, 7, 10]}
    >>> rides = pa.table(rides)
    >>> model = learn_stream(BayesianLinearRegression(), rides, "fare")
    >>> model.feature_names_in_
    array(['km', 'zone=b'], dtype=object)
    >>> learn_stream(model, rides.select(["zone", "fare", "km"]), "fare").n_observations_
    8.0
    """
    known = list_feature_names(model)
    goal = make_target(target, labels=is_classifier(model))
    growing = levels == "growing"
    reading = ReadSettings(
        batch_rows=batch_rows,
        memory=memory,
        missing=missing,
        weight=weight,
        time=time,
        offset=offset,
        exposure=exposure,
    )
    check_takes_offsets(model, reading)
    if not known:
        given = levels if isinstance(levels, Mapping) else None
        how = Encoding(
            drop_first=not growing,
            dates=dates,
            levels=given,
            categories=(*categories, *(given or ())),
            holes=is_word(missing, "level"),
            whole=levels == "model",
            lags=check_lags(lags),
        )
        source = open_any(table, text)
        stream = open_first(source, goal, reading, (features, drop), how, growing=growing)
    else:
        if features is not None or drop or categories or lags:
            raise TableError(
                "the model has learned its features by name already: leave out "
                "features, drop, categories and lags"
            )
        since = getattr(model, "_now", None)
        stream = open_rows(
            table,
            list(known),
            reading,
            target=goal,
            growing=growing,
            since=since,
            text=text,
            known=get_categories(model, grow=True),
        )
    for rows in stream.batches():
        names = stream.feature_names
        if growing:
            _add_new_features(model, names)
        X = name_columns(rows.X, names, model, stream.whole_categories)
        model.partial_fit(X, rows.y, **rows.keywords())  # type: ignore[attr-defined]
        if progress is not None:
            progress(stream)
    return model


def predict_stream(
    model: BaseEstimator,
    table: object,
    *,
    level: float | None = None,
    quantiles: Sequence[float] = (),
    offset: str | None = None,
    exposure: str | None = None,
    batch_rows: int = BATCH_ROWS,
    memory: int | str = MEMORY,
    missing: Missing = "error",
    text: TextFormat | None = None,
    output: Output = "same",
) -> Iterator[Any]:
    """Predict all rows of a table, out of core, in containers of the same kind.

    Parameters
    ----------
    model : estimator that has learned from columns with names
    table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        As in :func:`open_table`; other columns than the model's are passed over.
    level : float, optional
        Level of an interval for a new observation: columns "lower" and "upper".
    quantiles : sequence of float, optional
        A column "q0.1" for 0.1, and so on.
    offset, exposure : str, optional
        Columns of the table, as in :func:`learn_stream`.
    batch_rows : int
        Rows to predict at a time.
    memory : int or str
        As in :func:`open_table`: what batches may take of it, "512MB" by default.
    missing : {"error", "skip", "mean"}, mapping of feature to number, or ColumnMeans
        As in :func:`open_table`; the means of the rows that were learned are ``fixed`` in a
        :class:`ColumnMeans`. Where rows are left out, "row" (or the index) says which are
        there.
    text : TextFormat, optional
        As in :func:`open_table`: how a text file is written.
    output : {"same", "arrow", "pandas", "polars", "numpy"}
        "same": pandas for pandas, with its index; Polars for Polars; Arrow for all else.

    Yields
    ------
    One container a batch: a data frame, an Arrow record batch, or a dictionary of arrays. Its
    columns are "row" (from 0; the index in pandas), "mean", "std" and those asked for; of a
    classifier "label" and the probabilities, "p=yes".

    Raises
    ------
    TableError
        As :func:`learn_stream`; also where the model has learned from rows without names.

    Examples
    --------
    >>> import pandas as pd
    >>> from posterity import BayesianLinearRegression
    >>> rides = pd.DataFrame({"km": [1.0, 2.0, 3.0], "fare": [3.0, 5.0, 7.0]}, index=list("xyz"))
    >>> model = learn_stream(BayesianLinearRegression(prior_precision=0.0), rides, "fare")
    >>> next(predict_stream(model, rides[["km"]]))["mean"].round(6)
    x    3.0
    y    5.0
    z    7.0
    Name: mean, dtype: float64
    """
    names = list_feature_names(model)
    if not names:
        raise TableError(
            "the model has no feature names: learn with learn_stream, or from a data frame"
        )
    reading = ReadSettings(
        batch_rows=batch_rows, memory=memory, missing=missing, offset=offset, exposure=exposure
    )
    check_takes_offsets(model, reading)
    stream = open_rows(table, list(names), reading, text=text, known=get_categories(model))
    wrapped = make_container(table, output)
    for rows in stream.batches():
        X = name_columns(rows.X, names, model)
        yield wrapped(rows.y, _list_columns(model, X, level, quantiles, rows.keywords()))


def get_categories(model: BaseEstimator, *, grow: bool = False) -> Learned:
    """The features that a model takes as categories; when it learns, their levels ``grow``."""
    known = getattr(model, "categories_", None)
    levels = {} if known is None else {one.name: one.levels for one in known.each}
    return Learned(levels, grow, getattr(model, "missing", None) == "level")


def _add_new_features(model: BaseEstimator, names: Sequence[str]) -> None:
    """Let features that have come since join the model, behind the others."""
    n_known = getattr(model, "n_features_in_", len(names))
    if n_known == len(names):
        return
    from posterity.generalized._growth import widen_model

    if not isinstance(model, LinearModel):
        raise TableError(
            f'levels="growing" needs one of posterity\'s own models, not a {type(model).__name__}: '
            "name the levels beforehand, as in levels={'zone': ['a', 'b']}"
        )
    wider = widen_model(model, len(names) - n_known)
    wider.feature_names_in_ = np.asarray(names, dtype=object)
    model._take_over(wider)


def name_columns(
    X: Any,
    names: Sequence[str],
    model: BaseEstimator = None,
    categories: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Rows with names for their columns, which models check: an Arrow table, a copy.

    Where ``model`` is one of posterity's own, and has learned the features already, and all levels
    of those that are ``categories``, there is no copy. What is no array has names already.
    """
    if not isinstance(X, np.ndarray):
        return X
    levels = dict(categories or {})
    has_learned = isinstance(model, LinearModel) and list_feature_names(model)
    if has_learned and (not levels or levels == get_categories(model).levels):
        return NamedRows(X, tuple(names))

    def convert(name: str, column: Array) -> pa.Array:
        if name not in levels:
            return pa.array(column)
        places = pa.array(column.astype(np.int64) - 1, mask=column == 0.0)
        return pa.DictionaryArray.from_arrays(places, pa.array(levels[name]))

    arrays = [convert(name, column) for name, column in zip(names, X.T, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(names))


def check_takes_offsets(model: BaseEstimator, settings: object) -> None:
    """Raise ``TypeError`` where settings name offsets or exposures, and the model knows none."""
    given = [role for role in ("offset", "exposure") if getattr(settings, role) is not None]
    if given and "offset" not in signature(model.partial_fit).parameters:
        raise TypeError(
            f"{given[0]} is for models of counts, not for {type(model).__name__}: leave it out"
        )


def _list_columns(
    model: BaseEstimator,
    X: Any,
    level: float | None,
    quantiles: Sequence[float],
    added: Mapping[str, Array],
) -> dict[str, AnyArray]:
    if is_classifier(model):
        shares = model.predict_proba(X)
        labels = model.classes_[np.argmax(shares, axis=1)]
        columns = {f"p={label}": shares[:, i] for i, label in enumerate(model.classes_)}
        return {"label": labels, **columns}
    return describe_predictions(model.predict_distribution(X, **added), level, quantiles)


def describe_predictions(
    distribution: Any, level: float | None, quantiles: Sequence[float]
) -> dict[str, Array]:
    """Columns of numbers that describe predictions, as of :func:`predict_stream`."""
    columns = {"mean": distribution.mean(), "std": distribution.std()}
    if level is not None:
        columns["lower"], columns["upper"] = distribution.interval(level)
    return columns | {f"q{one:g}": np.asarray(distribution.ppf(one)) for one in quantiles}
