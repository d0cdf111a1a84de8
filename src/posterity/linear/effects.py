"""Average effects: what the expected target changes by when one feature changes, on average."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from posterity.aliases import Array, DataFrame, Mask
from posterity.distributions._limits import check_level
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.shown_table import show_table
from posterity.linear.categories import Categories, Category
from posterity.linear.inputs import read_points
from posterity.linear.named import get_feature_names, wrap_read_rows
from posterity.posteriors._target_coefficients import split_targets

# Columns of one category: color=red, as of posterity.io, or color[T.red], as of formulas.
_LEVEL = re.compile(r"(.+?)(?:=.*|\[.*\])")
# Most expected targets in memory at once.
_DRAWN_AT_ONCE = 2_000_000


def average_effects(
    model: BaseEstimator,
    X: Any,
    *,
    per: str,
    level: float,
    size: int,
    rng: int | np.random.Generator | None,
    how: dict[str, Any],
) -> DataFrame:
    """As :meth:`LinearReader.average_effects` says."""
    if size < 1:
        raise ValueError(f"size is {size}: it must be at least 1")
    model._posterior  # noqa: B018 - not fitted comes first
    X = read_points(model, X)
    seed = int(np.random.default_rng(rng).integers(2**63))
    means = _Means(model, X, size, seed, how)
    label = model._label_of_outputs if model._outputs() else None
    return table_of_effects(
        X,
        feature_names(model),
        lambda low, high: _effects(model, low, high, means),
        per=per,
        level=level,
        label=label,
        categories=model._categories,
        domains=_find_domains(model),
    )


def table_of_effects(
    X: Array,
    names: list[str],
    effects: Callable[[Array, Array], Iterable[tuple[list[str], Any]]],
    *,
    per: str,
    level: float,
    label: str | None = None,
    categories: Categories | None = None,
    domains: Mapping[int, tuple[float, float]] | None = None,
) -> DataFrame:
    """A row for each feature: what ``effects`` says of the rows before and after it changes.

    Of a category it is a row for each level but the first, which is where it changes from. Rows
    that would leave the ``domains`` of functions of features, by column, come from below instead.

    It gives pairs of the output's name, in a list if there are several, and the effect: a
    distribution, or draws. ``label`` is the column of these names.
    """
    if per not in ("unit", "sd"):
        raise ValueError(f"per is {per!r}: it must be 'unit' or 'sd'")
    check_level(level)
    pandas = require_pandas()
    rows = []
    for name, low, high in _list_changes(X, names, per, categories, domains or {}):
        for output, effect in effects(low, high):
            rows.append([name, *output, *_describe_effect(effect, level)])
    described = ["mean", "sd", "low", "high", "probability_positive"]
    columns = ["name", *([label] if label else []), *described]
    return show_table(pandas.DataFrame(rows, columns=columns, index=[row[0] for row in rows]))


def feature_names(model: BaseEstimator) -> list[str]:
    """Names of the features that the model learned, x0, x1, ... if they came without."""
    names = get_feature_names(model)
    if names is None:
        return [f"x{column}" for column in range(model.n_features_in_)]
    return [str(name) for name in names]


def _list_changes(
    X: Array,
    names: list[str],
    per: str,
    categories: Categories | None,
    domains: Mapping[int, tuple[float, float]],
) -> Iterator[tuple[str, Array, Array]]:
    """Return each feature's name, and the rows before and after it changes."""
    levels = _levels(X, names)
    coded = {} if categories is None else {one.place: one for one in categories.each}
    for column, name in enumerate(names):
        if column in coded:
            yield from _list_changes_of_level(X, coded[column])
            continue
        low, high = X.copy(), X.copy()
        values = X[:, column]
        if column in levels:
            others = levels[column]
            low[:, others] = high[:, others] = 0.0
            high[:, column] = 1.0
            if X[:, others].any(axis=1).all():  # one is always there: the first is the reference
                low[:, others[0]] = 1.0
                if column == others[0]:
                    continue
        elif np.isin(values, (0.0, 1.0)).all():
            low[:, column], high[:, column] = 0.0, 1.0
        else:
            step = float(values.std()) if per == "sd" else 1.0
            first, last = domains.get(column, (-np.inf, np.inf))
            back = (values + step > last) & (values - step >= first)
            low[back, column] -= step
            high[~back, column] += step
        yield name, low, high


def _find_domains(model: BaseEstimator) -> dict[int, tuple[float, float]]:
    """Ends of the domain of each feature of which the model learns functions that have one."""
    if model.basis is None:
        return {}
    numbers = range(model.n_features_in_)
    if model._categories is not None:
        numbers = model._categories.numbers
    found: dict[int, tuple[float, float]] = {}
    for columns, basis in getattr(model.basis_, "blocks_", [(range(len(numbers)), model.basis_)]):
        if hasattr(basis, "domain_"):
            ends = basis.domain_.tolist()
            found |= {int(numbers[at]): tuple(one) for at, one in zip(columns, ends, strict=True)}
    return found


def _list_changes_of_level(X: Array, one: Category) -> Iterator[tuple[str, Array, Array]]:
    for number, level in enumerate(one.levels[1:], start=2):
        low, high = X.copy(), X.copy()
        low[:, one.place], high[:, one.place] = 1.0, number
        yield f"{one.name}={level}", low, high


def _levels(X: Array, names: list[str]) -> dict[int, list[int]]:
    """Return, for each column of a level such as color=red, all columns of its category."""
    found: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        category = _LEVEL.fullmatch(name)
        if category:
            found.setdefault(category[1], []).append(column)
    exclusive = [
        columns
        for columns in found.values()
        if np.isin(X[:, columns], (0.0, 1.0)).all() and (X[:, columns].sum(axis=1) <= 1.0).all()
    ]
    return {column: columns for columns in exclusive for column in columns}


class _Means:
    """Draws of the mean expected target over rows ``X``, and over these after some have changed.

    Where few have, the others are not computed again; nor are rows that many features change from.
    """

    def __init__(
        self, model: BaseEstimator, X: Array, size: int, seed: int, how: dict[str, Any]
    ) -> None:
        self._given = model, size, seed
        self._X, self._how = X, how
        self._known: dict[bytes, Array] = {}

    def find(self, rows: Array) -> Array:
        """Draws of the mean over these rows, (size,) or (size, q)."""
        changed = (rows != self._X).any(axis=1)
        if 2 * np.count_nonzero(changed) > len(rows):
            return self._remember(rows)
        share = float(np.mean(changed))
        mean = self._remember(self._X)
        if share > 0.0:
            mean = mean + share * (self._compute(rows, changed) - self._compute(self._X, changed))
        return mean

    def _remember(self, rows: Array) -> Array:
        key = blake2b(rows.tobytes()).digest()
        if key not in self._known:
            self._known[key] = self._compute(rows, np.ones(len(rows), dtype=bool))
        return self._known[key]

    def _compute(self, rows: Array, some: Mask) -> Array:
        model, size, seed = self._given
        how = {name: value[some] if np.ndim(value) else value for name, value in self._how.items()}
        return mean_of_draws(model, rows[some], size, seed, how)


def _effects(
    model: BaseEstimator, low: Array, high: Array, means: _Means
) -> Iterator[tuple[list[str], Any]]:
    """Labels of the outputs, and the mean change of each: a distribution, or draws (size,)."""
    outputs = model._outputs()
    if model._expects_eta:
        rows = [model._prepare_rows(wrap_read_rows(model, X), None)[0] for X in (low, high)]
        change = (rows[1] - rows[0]).mean(axis=0)[None]
        each = split_targets(model.posterior_)
        labels = [[label] for label in outputs] or [[]]
        yield from (
            (label, one.project(change)[0]) for label, one in zip(labels, each, strict=True)
        )
        return
    # The same coefficients before and after: the same seed.
    change = means.find(high) - means.find(low)
    if not outputs:
        yield [], change
    for place, label in enumerate(outputs):
        yield [label], change[:, place]


def mean_of_draws(
    model: BaseEstimator, X: Array, size: int, seed: int, how: dict[str, Any]
) -> Array:
    """Draws of the expected target's mean over the rows, (size,) or (size, q)."""
    n, total = len(X), 0.0
    step = max(1, _DRAWN_AT_ONCE // size)
    for start in range(0, n, step):
        some = slice(start, start + step)
        given = {name: value[some] if np.ndim(value) else value for name, value in how.items()}
        total = total + model.sample_mean(wrap_read_rows(model, X[some]), size, seed, **given).sum(
            axis=1
        )
    return np.asarray(total / n)


def _describe_effect(effect: Any, level: float) -> tuple[float, float, float, float, float]:
    """Mean, sd, ends of the interval, and the probability that it is positive."""
    if isinstance(effect, np.ndarray):
        low, high = np.quantile(effect, [0.5 - 0.5 * level, 0.5 + 0.5 * level]).tolist()
        positive = float(np.mean(effect > 0.0)) + 0.5 * float(np.mean(effect == 0.0))
        return float(effect.mean()), float(effect.std()), low, high, positive
    ends = effect.interval(level)
    mean, sd = float(effect.mean()), float(effect.std())
    return mean, sd, float(ends[0]), float(ends[1]), float(effect.sf(0.0))


def compute_explained_share(means: Array, variances: ArrayLike) -> Array:
    """R^2 of each draw (size,): of expected targets (size, n), and the mean noise variance.

    Examples
    --------
    >>> compute_explained_share(np.array([[1.0, 3.0]]), [3.0])
    array([0.25])
    """
    explained = means.var(axis=1)
    return np.asarray(explained / (explained + np.asarray(variances)))
