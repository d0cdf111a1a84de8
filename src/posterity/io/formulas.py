"""Formulas: "fare ~ km + bs(hour, 5) + C(zone)", through formulaic."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from posterity.aliases import Array, DataFrame
from posterity.io.errors import TableError, explain_empty
from posterity.io.formula_limits import refuse_endless
from posterity.io.missing import Missing, make_policy
from posterity.io.reading import BATCH_ROWS, ReadSettings
from posterity.io.source import Source
from posterity.io.table import FIRST_ROWS, open_any
from posterity.io.text_format import TextFormat


class FormulaStream:
    """Batches ``(X, y)`` of a table through a formula; see :func:`open_formula`.

    ``X`` is a data frame (pandas) with a column for each term, ``y`` (n,) an array.
    """

    def __init__(self, source: Source, formula: str, batch_rows: int, missing: Missing) -> None:
        self._source, self._batch_rows, self._missing = source, batch_rows, missing
        self.formula = formula
        self._columns = sorted(_list_columns(formula, source.schema.names))
        first = next(source.batches(self._columns, max(batch_rows, FIRST_ROWS)), None)
        if first is None:
            raise explain_empty(source.path)
        matrices = _make_matrices(formula, first[0].to_pandas())
        self._target, self._terms = matrices.lhs.model_spec, matrices.rhs.model_spec
        self.feature_names = tuple(name for name in matrices.rhs.columns if name != "Intercept")
        self.n_skipped = 0

    def matrix(self, frame: object) -> DataFrame:
        """The columns (n, m) of the terms, of a data frame to predict; NaN where one is missing.

        Raises
        ------
        TableError
            Where a column is not there.
        """
        return self._drop_intercept(_apply_formula_again(self._terms, _convert_to_pandas(frame)))

    def __iter__(self) -> Iterator[tuple[Any, Array]]:
        self.n_skipped, first_row = 0, 0
        policy = make_policy(self._missing, lambda: self.feature_names)
        for batch, _ in self._source.batches(self._columns, max(self._batch_rows, FIRST_ROWS)):
            frame = batch.to_pandas()
            X = self._drop_intercept(_apply_formula_again(self._terms, frame))
            y = np.asarray(_apply_formula_again(self._target, frame), dtype=np.float64)[:, 0]
            values, target = np.array(X, dtype=np.float64, order="C"), y
            kept = policy.apply(values, target, _ValueNames(self, first_row))
            if kept is not None:
                values, target = values[kept], target[kept]
            first_row += batch.num_rows
            self.n_skipped = policy.n_skipped
            for start in range(0, len(target), self._batch_rows):
                rows = slice(start, start + self._batch_rows)
                yield type(X)(values[rows], columns=X.columns), target[rows]

    def _drop_intercept(self, matrix: Any) -> DataFrame:
        return matrix[list(self.feature_names)]


class _ValueNames:
    """Names of values for messages."""

    def __init__(self, stream: FormulaStream, first_row: int) -> None:
        self._stream, self._first_row = stream, first_row

    def __call__(self, row: int, column: int) -> str:
        stream = self._stream
        name = "the target" if column < 0 else f"term {stream.feature_names[column]!r}"
        return f"{stream._source.path}: row {self._first_row + row}, {name}"


def open_formula(
    table: object,
    formula: str,
    *,
    batch_rows: int = BATCH_ROWS,
    missing: Missing = "error",
    text: TextFormat | None = None,
) -> FormulaStream:
    """Open a table as the target and the terms of a formula, batch by batch (needs formulaic).

    Whatever a term learns from data, as the knots of ``bs(x, 5)``, the mean of ``center(x)`` and
    the levels of ``C(zone)``, it learns from the first batch; so say how far ``bs`` will have to
    reach: ``bs(x, 5, lower_bound=0, upper_bound=24)``, or ``extrapolation="extend"``. The intercept
    is the model's own.

    Parameters
    ----------
    table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        As in :func:`open_table`.
    formula : str
        As in R: "fare ~ km + bs(hour, 5) + C(zone)"; see formulaic for its grammar.
    batch_rows : int
        Rows a batch.
    missing : {"error", "skip", "mean"}, mapping of term to number, or ColumnMeans
        As in :func:`open_table`, for the terms.
    text : TextFormat, optional
        As in :func:`open_table`: how a text file is written.

    Returns
    -------
    FormulaStream
        Iterable of (X, y), to learn from or to validate on. ``matrix(frame)`` makes the same
        columns of rows to predict.

    Raises
    ------
    TableError
        For a formula that is not understood, without a target, or with columns that are not there.

    Examples
    --------
    >>> import pandas as pd
    >>> from posterity import BayesianLinearRegression
    >>> rides = {"km": [1.0, 2.0, 3.0, 4.0], "zone": list("abab"), "fare": [3.0, 6, 7, 9]}
    >>> rides = pd.DataFrame(rides)
    >>> stream = open_formula(rides, "fare ~ km + I(km**2) + C(zone)")
    >>> stream.feature_names
    ('km', 'I(km ** 2)', 'C(zone)[T.b]')
    >>> model = BayesianLinearRegression()
    >>> for X, y in stream:
    ...     model = model.partial_fit(X, y)
    >>> model.predict(stream.matrix(rides[:2])).shape
    (2,)
    """
    ReadSettings(batch_rows=batch_rows, missing=missing)  # refuses what is out of range
    return FormulaStream(open_any(table, text), formula, batch_rows, missing)


def _import_formulaic() -> Any:
    try:
        import formulaic
    except ImportError as error:
        raise ImportError("formulas need formulaic: pip install posterity[formulas]") from error
    return formulaic


def _list_columns(formula: str, present: list[str]) -> set[str]:
    formulaic = _import_formulaic()
    refuse_endless(formula, formulaic.parser.DefaultFormulaParser())
    try:
        parsed = formulaic.Formula(formula)
        needed = {str(name) for name in parsed.required_variables}
    except Exception as error:  # formulaic's own errors have no common parent
        message = str(error).splitlines()[0]
        raise TableError(
            f"the formula {formula!r} can't be parsed ({message}): write it as in 'y ~ a + b'"
            + "; posterity.Model(formula).fit(frame) reads (1 + x | group)" * ("|" in formula)
        ) from error
    if not hasattr(parsed, "lhs"):
        raise TableError(f"the formula {formula!r} has no target: write it as in 'y ~ x'")
    missing = sorted(needed.difference(present))
    if missing:
        raise TableError(
            f"the formula needs {', '.join(map(repr, missing))}, which the table does not have; "
            f"its columns are {', '.join(map(repr, present[:20]))}"
        )
    # A function's arguments formulaic does not tell: every column whose name is in the formula.
    return {name for name in present if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula)}


def _make_matrices(formula: str, frame: object) -> DataFrame:
    try:
        return _import_formulaic().model_matrix(formula, frame, na_action="ignore")
    except Exception as error:
        message = str(error).splitlines()[0]
        raise TableError(f"the formula {formula!r} does not fit the table: {message}") from error


def _apply_formula_again(spec: Any, frame: Any) -> DataFrame:
    try:
        return spec.get_model_matrix(frame, na_action="ignore")
    except Exception as error:
        message = str(error).splitlines()[0]
        raise TableError(
            f"the table no longer fits the formula ({message}): give columns of the same "
            "kind as before"
        ) from error


def _convert_to_pandas(frame: object) -> DataFrame:
    if hasattr(frame, "iloc"):
        return frame
    if hasattr(frame, "to_pandas"):
        return frame.to_pandas()
    raise TableError(f"a {type(frame).__name__} is not a data frame: give one of pandas or Polars")
