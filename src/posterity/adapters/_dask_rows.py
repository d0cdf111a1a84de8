"""Dask's collections as Arrow record batches, partition by partition, where their rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.base import BaseEstimator

from posterity import files
from posterity.adapters._extras import require_module
from posterity.adapters._planning import Columns
from posterity.io.arrow import pa
from posterity.io.errors import TableError
from posterity.linear.named import has_learned, list_feature_names

Work = Callable[["pa.RecordBatch"], Any]
TARGET = "y"
# What arrays beside X are called as columns.
ROLES = TARGET, "weight", "offset", "exposure"
_WORDS = "target", "weight", "offset", "exposure"


class Collection(Protocol):
    """Rows of one or more Dask collections."""

    # Whether their columns have names.
    has_names: ClassVar[bool]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of all columns."""
        ...

    def each(self, columns: Sequence[str], work: Work) -> list[Any]:
        """Delayed values ``work(batch)``, one for each partition, in one task with its reading."""
        ...

    def adapt_columns(self, columns: Columns) -> Columns:
        """The same for the columns as which these rows are read."""
        ...

    def add_names(self, model: BaseEstimator) -> BaseEstimator:
        """The model; one that learned rows without names, with those that an array's columns get.

        ``TableError`` where what it has learned is not of the kind of these rows.
        """
        ...


@dataclass(frozen=True)
class Frame:
    """A Dask data frame."""

    frame: Any
    has_names: ClassVar[bool] = True

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema, of what Dask expects the partitions to be."""
        # As Dask has it, objects are text; what is in those that it makes up means nothing.
        made_up, dtypes = self.frame._meta_nonempty, self.frame.dtypes
        fields = [
            (
                name,
                pa.string()
                if kind == np.dtype(object)
                else pa.Array.from_pandas(made_up[name]).type,
            )
            for name, kind in dtypes.items()
        ]
        return pa.schema(fields)

    def each(self, columns: Sequence[str], work: Work) -> list[Any]:
        """As :class:`Collection` says."""
        frame = self.frame[list(columns)]
        task = partial(_map_frame, work, {name: self.schema.field(name) for name in columns})
        results = frame.map_partitions(task, meta=frame._meta, enforce_metadata=False)
        return list(results.to_delayed())

    def adapt_columns(self, columns: Columns) -> Columns:
        """As :class:`Collection` says."""
        return columns

    def add_names(self, model: BaseEstimator) -> BaseEstimator:
        """As :class:`Collection` says."""
        if has_learned(model) and not list_feature_names(model):
            raise TableError(
                "the model learned without feature names, and a data frame has names: give an "
                "array, as in frame[names].to_dask_array()"
            )
        return model


@dataclass(frozen=True)
class Arrays:
    """Dask arrays X (n, p), and others (n,) by their ``ROLES``, in the same chunks."""

    X: Any
    others: Mapping[str, Any] = field(default_factory=dict)
    has_names: ClassVar[bool] = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of X."""
        return name_columns(self.X.shape[1])

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema; columns of X are "x0", "x1" and so on."""
        parts = [self.X, *self.others.values()]
        empty = [np.empty((0, *part.shape[1:]), part.dtype) for part in parts]
        return batch_of_arrays(tuple(self.others), *empty).schema

    def each(self, columns: Sequence[str], work: Work) -> list[Any]:
        """As :class:`Collection` says."""
        da = require_module("dask.array", "dask")
        results = da.blockwise(
            partial(_map_blocks, work, tuple(columns), tuple(self.others)),
            "i",
            *(self.X, "ij"),
            *(pair for part in self.others.values() for pair in (part, "i")),
            concatenate=True,
            align_arrays=False,
            dtype=object,
            meta=np.empty(0, dtype=object),
        )
        return list(results.to_delayed().ravel())

    def adapt_columns(self, columns: Columns) -> Columns:
        """As :class:`Collection` says."""
        given = [name for name in ("features", "drop", "levels") if getattr(columns, name)]
        if given:
            raise TableError(
                f"{given[0]}= names columns, and an array has no column names: select columns by "
                "X[:, [0, 2]]"
            )
        beside: dict[str, Any] = {role: role for role in self.others if role != TARGET}
        return replace(columns, target=TARGET, **beside)

    def add_names(self, model: BaseEstimator) -> BaseEstimator:
        """As :class:`Collection` says."""
        if not has_learned(model):
            return model
        if list_feature_names(model):
            raise TableError(
                "the model learned features by name, and an array has no names: give a data frame"
            )
        if model.n_features_in_ != len(self.names):
            raise TableError(
                f"X has {len(self.names)} columns, and the model has learned "
                f"{model.n_features_in_} features: give X with the same columns"
            )
        named = files.loads(files.dumps(model))
        named.feature_names_in_ = np.array(self.names, dtype=object)
        return named


def collection(table: Any, *others: Any) -> Collection:
    """Rows of a data frame, or of arrays made to have the same chunks; ``others`` as ``ROLES``.

    Raises ``TypeError`` for what is neither, ``TableError`` where rows can't be matched.
    """
    if hasattr(table, "map_partitions") and hasattr(table, "columns"):
        for role, name in zip(_WORDS, others, strict=False):
            if name is not None and not isinstance(name, str):
                raise TypeError(
                    f"the {role} of a data frame is the name of a column, not a "
                    f"{type(name).__name__}"
                )
        return Frame(table)
    if not _is_array(table):
        raise TypeError(
            f"a {type(table).__name__} is not a Dask collection: give a dask.dataframe.DataFrame, "
            "or a dask.array.Array of shape (n, p)"
        )
    if table.ndim != 2 or np.isnan(table.shape[1]):
        raise TableError(
            f"X has shape {table.shape}: it must be (n, p), with a known number p of features"
        )
    parts = zip(ROLES, _WORDS, others, strict=False)
    given = {
        role: _in_chunks_of(table, part, word) for role, word, part in parts if part is not None
    }
    return Arrays(table, given)


def name_columns(n_features: int) -> tuple[str, ...]:
    """Return the names of an array's columns: "x0" and so on."""
    return tuple(f"x{place}" for place in range(n_features))


def _in_chunks_of(X: Any, part: Any, role: str) -> Any:
    """A dask array (n,) in the chunks that the rows of X have."""
    if not _is_array(part) or part.ndim != 1:
        raise TypeError(
            f"{role} must be a dask.array.Array of shape (n,): give one value for each row"
        )
    known = not np.isnan(X.shape[0]) and not np.isnan(part.shape[0])
    if known and X.shape[0] != part.shape[0]:
        raise TableError(
            f"X has {X.shape[0]} rows, but {role} has {part.shape[0]}: give one value for each row"
        )
    if known:
        return part.rechunk((X.chunks[0],))
    if X.numblocks[0] != part.numblocks[0]:
        raise TableError(
            f"X has {X.numblocks[0]} chunks of rows, and the {role} {part.numblocks[0]}, of "
            "unknown lengths: use the same chunks, or call "
            "compute_chunk_sizes() on both"
        )
    return part


# ---- on the workers ------------------------------------------------------------------------------


def batch_of_frame(part: Any, expected: dict[str, pa.Field]) -> pa.RecordBatch:
    """Record batch of a pandas data frame, with the columns ``expected``."""
    arrays = []
    for name, expects in expected.items():
        values = part[name]
        if values.dtype == np.float64:  # as it stands: NaN is found later
            arrays.append(pa.array(np.ascontiguousarray(values.to_numpy())))
            continue
        array = pa.Array.from_pandas(values)
        if isinstance(array, pa.ChunkedArray):  # what frames put together have
            array = array.combine_chunks()
        # A column of objects that are all missing has no type of its own.
        arrays.append(array.cast(expects.type) if pa.types.is_null(array.type) else array)
    return pa.RecordBatch.from_arrays(arrays, names=list(expected))


def _map_frame(work: Work, expected: dict[str, pa.Field], part: Any) -> Any:
    return work(batch_of_frame(part, expected))


def _map_blocks(
    work: Work, columns: Sequence[str], roles: Sequence[str], X: Any, *others: Any
) -> Any:
    return work(batch_of_arrays(roles, X, *others).select(list(columns)))


def batch_of_arrays(roles: Sequence[str], X: Any, *others: Any) -> pa.RecordBatch:
    """Record batch of rows (n, p), and of others (n,) by their roles."""
    for role, part in zip(roles, others, strict=True):
        if len(part) != len(X):
            raise TableError(
                f"a chunk of X has {len(X)} rows, and that of {role} has {len(part)}: use the "
                "same chunks"
            )
    columns = np.array(np.asarray(X).T, order="C")
    arrays = [pa.array(column) for column in (*columns, *others)]
    return pa.RecordBatch.from_arrays(arrays, names=[*name_columns(len(columns)), *roles])


def _is_array(table: object) -> bool:
    return hasattr(table, "map_blocks") and hasattr(table, "chunks")
