"""Rows as river has them, mappings whose keys come and go, turned into columns that stay."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from posterity.aliases import Array
from posterity.generalized._growth import widen_model
from posterity.linear.base import LinearModel
from posterity.noise import KnownNoise, LearnedNoise
from posterity.posteriors import LinearPosterior

Row = Mapping[Hashable, float]
Model = TypeVar("Model", bound=LinearModel)


class RowMoments(NamedTuple):
    """Moments of a row's prediction by one factor: mean and leverage, and the noise's posterior.

    ``residual_df`` are the observations left for the noise, ``residual`` their sum of squares,
    ``seen`` the sum of the weights of the rows learned.
    """

    mean: float
    leverage: float
    noise: KnownNoise | LearnedNoise
    residual_df: float
    residual: float
    seen: float


class FastPaths:
    """Bound methods that share memory with the model's factor; copies and pickles are empty."""

    __slots__ = ("known", "learn", "moments", "predict", "width")

    def __init__(self) -> None:
        # The posterior that they share memory with.
        self.known: LinearPosterior | None = None
        self.learn: Callable[..., bool] | None = None
        self.predict: Callable[[Any], float] | None = None
        # What a single factor tells of a row.
        self.moments: Callable[[Any], RowMoments] | None = None
        self.width = -1

    def __reduce__(self) -> tuple[type[FastPaths], tuple[()]]:
        return FastPaths, ()


class NamedRows(Generic[Model]):
    """A model, and which feature each of its columns is; a feature that is absent is 0.

    Parameters
    ----------
    model
        An estimator that has learned nothing.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> rows = NamedRows(BayesianLinearRegression(prior_precision=1.0))
    >>> rows.begin({"a": 1.0})
    >>> rows.grow({"b": 2.0})
    >>> rows.values({"b": 2.0, "c": 3.0})
    (array([0., 2.]), {'c': 3.0})
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.columns: dict[Hashable, int] = {}
        self.paths = FastPaths()

    @property
    def has_learned(self) -> bool:
        """True if there is a posterior: something was learned."""
        return self.model._posterior_or_none is not None

    def begin(self, names: object) -> None:
        """Start from the prior over these features."""
        self.name(names)
        self.model._set_features(len(self.columns), None)
        self.model._start()

    def name(self, names: Any) -> None:
        """Name the first columns, sorted: the order of keys in a row makes no difference."""
        self.columns = {name: column for column, name in enumerate(sorted(names, key=repr))}

    def grow(self, names: Any) -> None:
        """Let features join that are new, with their prior."""
        new = sorted((name for name in names if name not in self.columns), key=repr)
        if new:
            self.model = widen_model(self.model, len(new))
            self.columns |= {name: len(self.columns) + i for i, name in enumerate(new)}
            self.paths = FastPaths()

    def values(self, x: Row) -> tuple[Array, dict[Hashable, float]]:
        """The row (m,), and the features of ``x`` that are unknown, all checked."""
        row, unknown = np.zeros(len(self.columns)), {}
        for name, value in check_row(x).items():
            column = self.columns.get(name)
            if column is None:
                unknown[name] = value
            else:
                row[column] = value
        return row, unknown

    def include_features(self, x: Row) -> tuple[Model, Array]:
        """A model that has all features of ``x``, and the row (1, m); nothing changes."""
        row, unknown = self.values(x)
        if not unknown:
            return self.model, row[None]
        model = widen_model(self.model, len(unknown))
        return model, np.concatenate([row, list(unknown.values())])[None]

    def select_frame_values(self, names: list[Hashable], values: Array) -> Array:
        """``values`` (n, len(names)) in the order of the columns (n, m); the unknown are left out.

        Raises ``ValueError`` as :func:`check_values`.
        """
        check_values(names, values)
        rows = np.zeros((len(values), len(self.columns)))
        known = [i for i, name in enumerate(names) if name in self.columns]
        rows[:, [self.columns[names[i]] for i in known]] = values[:, known]
        return rows

    def open_paths(self) -> None:
        """Open the compiled paths, as far as the posterior has them by now."""
        posterior, names = self.model._posterior, cast(Any, tuple(self.columns))
        if self.paths.known is not posterior:  # it was replaced by one that has learned more
            self.paths = FastPaths()
        paths = self.paths
        paths.known = posterior
        paths.width = len(names)
        if paths.learn is None and posterior.has_fast_learn_one:
            path = posterior.row_path(names)
            paths.learn = path.learn
            paths.predict = path.predict_mean if posterior.has_fast_predict_one else None
        elif paths.predict is None and posterior.has_fast_predict_one:
            paths.predict = posterior.row_path(names).predict_mean
        # One factor learns in place, but for a window's, which is built anew from its rows.
        one_factor = type(posterior) is LinearPosterior and posterior.stored_rows is None
        if paths.moments is None and one_factor:
            paths.moments = _moments(posterior, names)


def _moments(
    posterior: LinearPosterior, names: tuple[Hashable, ...]
) -> Callable[[Any], RowMoments]:
    factor = posterior.factor
    predict = factor.row_path(posterior.intercept, cast(Any, names)).predict
    noise, n_flat, last = cast(Any, posterior.noise), posterior.n_flat, posterior.n_coefficients

    def moments(x: Any) -> RowMoments:
        root = factor.triangle.item(last, last)
        return RowMoments(*predict(x), noise, factor.count - n_flat, root * root, factor.seen)

    return moments


def check_row(x: Row) -> dict[Hashable, float]:
    """The row with floats; raises what names the feature that is not a finite number.

    Text that is no number is the level of a category, which is a feature of its own.

    Examples
    --------
    >>> check_row({"a": True, "b": 2, "zone": "north"})
    {'a': 1.0, 'b': 2.0, 'zone=north': 1.0}
    >>> check_row({"a": None})
    Traceback (most recent call last):
        ...
    ValueError: feature 'a' is None: leave it out of the row (it is then 0), or fill it in, ...
    """
    row: dict[Hashable, float] = {}
    for name, value in x.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            if value is None:
                raise ValueError(_refusal(name, value)) from None
            if isinstance(cast(Any, value), str):
                row[f"{name}={value}"] = 1.0  # a level, 0 in all other rows
                continue
            raise TypeError(
                f"feature {name!r} is {value!r}, which is neither a number nor text: leave it out, "
                "or make text of it"
            ) from None
        if not math.isfinite(number):
            raise ValueError(_refusal(name, value))
        row[name] = number
    return row


def check_values(names: list[Hashable], values: Array) -> None:
    """Raise ``ValueError`` naming the row and column of a value that is not finite."""
    if not np.isfinite(values).all():
        row, column = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
        raise ValueError(_refusal(names[column], values[row, column], f" in row {row}"))


def check_target(y: Any, weight: float) -> float:
    """The target as a float; raises ``ValueError`` for one, or a weight, that can't be used."""
    target = float(y)
    if not math.isfinite(target):
        raise ValueError(f"y is {target}, and must be finite: leave the row out")
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"weight is {weight}: it must be finite and not negative")
    return target


def _refusal(name: Hashable, value: object, where: str = "") -> str:
    return (
        f"feature {name!r} is {value}{where}: leave it out of the row (it is then 0), or fill it "
        "in, for example with river.preprocessing.StatImputer"
    )
