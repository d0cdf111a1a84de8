"""Whose predictions of which rows a figure shows, and curves along one of their features."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Axes, Estimator

LABELS = (
    "plot_partial_effect(model, X, feature) draws their probability, and scikit-learn's "
    "CalibrationDisplay.from_estimator(model, X, y) how often it is right"
)


def read_rows(X: Any, y: Any, ax: Axes | None) -> tuple[Any, Any, Any]:
    """Rows, targets and axes; axes may come as soon as nothing else does."""
    given = [one for one in (X, y, ax) if one is not None]
    axes = given.pop() if given and hasattr(given[-1], "get_figure") else None
    rows, targets = [*given, None, None][:2]
    return rows, targets, axes


@contextmanager
def _unnamed() -> Iterator[None]:
    """Arrays will do for what has learned from data frames: the order of features is theirs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


def split_steps(model: Estimator) -> tuple[Any, Any]:
    """The model, or the last step of a pipeline, and the steps before it, if there are any."""
    *before, (_, final) = getattr(model, "steps", [("", model)])
    return final, model[:-1] if before else None


def require_part(model: Estimator, part: str) -> None:
    """Raise ``TypeError`` with what to call, unless the last step of a model has that part."""
    kind = type(split_steps(model)[0])
    if not hasattr(kind, part):
        raise TypeError(
            f"{kind.__name__} has no {part} to draw from: of an average give one of its models_, "
            "or use plot_predictions(model, X, y); of a GroupedRegression give "
            "model.model_of(group); of a Model, or a model of many features, draw "
            "plot_intervals(table) with summary() or average_effects(frame)"
        )


@_unnamed()
def split(model: Estimator, X: Any) -> tuple[Any, Any]:
    """The model, or the last step of a pipeline, and rows as it gets them."""
    final, steps = split_steps(model)
    return final, X if steps is None else steps.transform(X)


@_unnamed()
def ask(model: Estimator, verb: str, X: Any, *more: Any) -> Any:
    """What a model or a pipeline says of rows, in the columns that it was given."""
    final, rows = split(model, X)
    return getattr(final, verb)(rows, *more)


def predict_rows(model: Estimator, X: Any, y: Any, figure: str) -> tuple[Any, Array]:
    """Predictive distributions of rows, and their targets; or both as they are given."""
    if hasattr(model, "cdf"):
        return model, np.asarray(X, dtype=np.float64)
    if y is None:
        raise TypeError(f"{figure} draws predictions beside targets: {figure}(model, X, y)")
    predictive = predict_numbers(model, X, figure)
    if not hasattr(predictive, "is_flat"):
        raise TypeError(
            f"{figure} draws predictions of numbers, and this model predicts labels: {LABELS}"
        )
    return predictive, np.asarray(y, dtype=np.float64)


def predict_numbers(model: Estimator, X: Any, figure: str) -> Any:
    """Predictive distributions of rows; raises ``TypeError`` where they are of labels."""
    predictive = ask(model, "predict_distribution", X)
    if not hasattr(predictive, "cdf"):
        raise TypeError(
            f"{figure} draws predictions of numbers, and this model predicts labels: {LABELS}"
        )
    if np.ndim(predictive.mean()) > 1:
        raise TypeError(f"{figure} is of one target, and this model has several: fit one for each")
    return predictive


@dataclass(frozen=True)
class Feature:
    """A feature of a model, by its place and its name."""

    index: int
    name: str
    count: int

    @classmethod
    def of(cls, model: Estimator, feature: int | str, X: Any) -> Feature:
        """The feature of that number or name; raises ``ValueError`` if there is none.

        The names are the columns of the rows, among which may be groups and the target; of arrays
        those that the model learned.
        """
        if np.ndim(feature) or is_frame(feature):
            raise TypeError("feature is an array: give the number or the name of a column")
        given = getattr(X, "columns", None)
        given = getattr(model, "feature_names_in_", None) if given is None else given
        count = model.n_features_in_ if given is None else len(given)
        names = [f"x{index}" for index in range(count)] if given is None else list(given)
        if isinstance(feature, str):
            if feature not in names:
                raise ValueError(
                    f"feature is {feature!r}: give one of the model's features, {', '.join(names)}"
                )
            feature = names.index(feature)
        if not 0 <= feature < count:
            raise ValueError(f"feature is {feature}: give 0 to {count - 1}")
        return cls(int(feature), str(names[feature]), count)

    def read(self, X: Any) -> Array:
        """Values of the feature (n,) in rows, or as they are given."""
        if is_frame(X):
            column = X[list(X.columns)[self.index]]
        else:
            column = X if np.ndim(X) == 1 else np.asarray(X)[:, self.index]
        try:
            return np.asarray(column, dtype=np.float64)
        except ValueError as error:
            raise ValueError(
                f"feature {self.name!r} holds text: give one of numbers; plot_coefficients draws "
                "the levels of text"
            ) from error

    def put(self, X: Any, values: Any) -> Any:
        """Rows, an array or a data frame, with other values of the feature."""
        if is_frame(X):
            names = list(X.columns)
            return type(X)({n: values if n == names[self.index] else X[n] for n in names})
        rows = np.array(X, dtype=np.float64)
        rows[:, self.index] = values
        return rows

    def hold_others(self, X: Any, at: ArrayLike | None, x: Array) -> Any:
        """Rows whose feature runs over ``x`` (n,), and the others stay at ``at`` (d,).

        That is the typical row of ``X`` by default: medians, and the commonest level of text.
        """
        frame = is_frame(X)
        if at is None and self.count > 1 and np.ndim(X) == 1 and not frame:
            raise ValueError(
                f"the model has {self.count} features: give at=, a row with the values "
                f"at which all but {self.name} are fixed, or rows, (n, {self.count})"
            )
        columns = [X[n] for n in X.columns] if frame else np.atleast_2d(np.transpose(X))
        row = list(map(_find_typical, columns)) if at is None else np.asarray(at)
        if np.shape(row) != (self.count,):
            shape = f"at has shape {np.shape(row)}" if at is not None else f"X has {len(row)}"
            raise ValueError(f"{shape}: expected ({self.count},), one for each feature")
        rows = [np.full(len(x), value) for value in row]
        table = type(X)(dict(zip(X.columns, rows, strict=True))) if frame else np.column_stack(rows)
        return self.put(table, x)


def is_frame(rows: object) -> bool:
    """Return True for a data frame, of whatever library."""
    return hasattr(rows, "columns")


def _find_typical(column: object) -> Any:
    """The median of numbers; else the commonest value."""
    values = np.asarray(column)
    if values.dtype.kind in "fiu":
        return np.nanmedian(values)
    known = values if values.dtype.kind == "b" else values.astype(str)
    levels, counts = np.unique(known, return_counts=True)
    return levels[np.argmax(counts)]


def scatter(ax: Axes, points: tuple[Array, Array]) -> None:
    """Draw rows: black, so that they stand out on any band."""
    x, y = points
    if len(x):
        size = 26.0 if len(x) <= 100 else 8.0
        ax.scatter(
            x, y, s=size, color="black", edgecolor="white", linewidth=0.6, zorder=5, label="rows"
        )
