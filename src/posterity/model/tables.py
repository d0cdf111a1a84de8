"""Tables of a fitted model: fixed effects, variances, and effects of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from posterity.aliases import Array, DataFrame
from posterity.distributions import Mixture, StudentT
from posterity.distributions._limits import check_level
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.shown_table import show_table
from posterity.linear.keys import list_labels, read_keys
from posterity.linear.ratios import add_ratios
from posterity.model.components import find_points, list_components, list_parameters
from posterity.model.curves import POINTS, SURFACE_POINTS
from posterity.model.design import Column, Design, sort_labels
from posterity.model.engines import TermRows
from posterity.model.factors import Factor
from posterity.model.formula import Curve
from posterity.posteriors._sparse_data import to_matrix
from posterity.posteriors._sparse_fit import Fit
from posterity.sparse.parts import Part


def summarize(engine: TermRows, design: Design, level: float) -> DataFrame:
    """Fixed effects, in the order of the formula; levels are named ``column[level]``."""
    index = engine._index
    tied = {name for names in engine.terms for name in names}
    keyed = {column.name: column for column in design.list_columns()}
    found = [("intercept", 0)] if engine.fit_intercept else []
    for column in range(2, index.n_columns):
        name = index.column_name(column)
        if name not in tied:
            found += _list_features(engine, column, keyed.get(name))
    names = [name for name, _ in found]
    table = _describe_weights(engine, [feature for _, feature in found], level)
    frame = require_pandas().DataFrame({"name": names, **table}, index=names)
    return show_table(add_ratios(frame, engine._likelihood().ratio))


def list_group_effects(engine: TermRows, group: str, level: float) -> DataFrame:
    """Effects of a group's levels, one effect after another."""
    index, rows = engine._index, []
    for name in (name for names in engine.terms for name in names):
        effect, _, own = name.partition(" | ")
        if own == group:
            column = index.column(name, new=False)
            known = index.levels[column]
            labels = list_labels(known.index.list_keys())
            rows += [(*one, effect) for one in zip(labels, known.features, strict=True)]
    levels, features, effects = zip(*rows, strict=True)
    table = _describe_weights(engine, features, level)
    return require_pandas().DataFrame({"level": list(levels), "effect": list(effects), **table})


def list_variances(engine: TermRows, level: float) -> DataFrame:
    """Standard deviations and correlations of groups, and of the noise."""
    posterior = engine._posterior
    check_level(level)
    reading, (terms, found) = posterior.reading(), Fit(posterior).find_likeliest()
    points = find_points(reading)
    shape, rate = found.noise
    known = np.where(np.isfinite(points.noise[:1]), 1.0, np.nan)
    at, noise = known * found.at[None], known * (rate / shape if shape > 0.0 else rate)
    rows = list_components(terms, engine.terms, known * points.at, points.noise)
    likeliest = list_components(terms, engine.terms, at, noise)
    if posterior.noise is not None:
        rows.append(("sd(residual)", np.sqrt(points.noise)))
        likeliest.append(("sd(residual)", np.sqrt(noise)))
    rows += list_parameters(terms, points.at)
    likeliest += list_parameters(terms, at)
    table = [
        {"name": name, **points.summarize(values, level), "reml": float(one[0])}
        for (name, values), (_, one) in zip(rows, likeliest, strict=True)
    ]
    columns = ["name", "mean", "sd", "low", "high", "reml"]
    frame = require_pandas().DataFrame(table, index=[name for name, _ in rows], columns=columns)
    return show_table(frame)


def list_curve(engine: TermRows, design: Design, curve: Curve, level: float) -> DataFrame:
    """A curve less its mean over evenly spaced places: of each column, mean, sd, low, high.

    By a factor each level's curve; by numbers what these are multiplied with, as it is.
    """
    levels = _list_curve_levels(engine, design, curve)
    shown, parts = _make_grid(design, curve, levels)
    rows = engine._number(len(next(reversed(shown.values()))), parts, new=False)
    X = to_matrix(rows, len(engine._posterior.owners))
    if levels or curve.by is None:
        each = X.toarray().reshape(max(len(levels), 1), -1, X.shape[1])
        X = csr_array((each - each.mean(axis=1, keepdims=True)).reshape(X.shape))
    found = [one.predict(X) for one in engine._posterior.reading().solutions]
    mean, variance = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return require_pandas().DataFrame({**shown, **_describe(engine, mean, variance, level)})


def list_sums(engine: TermRows, moments: tuple[Array, Array], level: float) -> DataFrame:
    """Sums of weights, of means and variances (k, members)."""
    return require_pandas().DataFrame(_describe(engine, *moments, level))


def mix_members(engine: TermRows, mean: Array, variance: Array) -> RowDistribution:
    """Distribution of sums of weights, from moments (n, members), variances in units of noise."""
    posterior = engine._posterior
    mean, shape = engine.sign * mean, posterior.shape
    noise = posterior.rates / shape if shape > 0.0 else posterior.rates
    if shape == 0.0:  # nothing is known of it
        noise = np.full(posterior.members, np.inf)
    degrees = np.full(len(mean), 2.0 * shape if shape > 0.0 else np.inf)
    sd = np.sqrt(variance * noise)
    parts = [StudentT(degrees, mean[:, k], sd[:, k]) for k in range(posterior.members)]
    return parts[0] if len(parts) == 1 else Mixture(parts, posterior.weights)


def add_expected(engine: TermRows, table: Any) -> DataFrame:
    """The table, with expected targets where they are not eta itself."""
    likelihood = engine._likelihood()
    endings = (("", "mean"), ("_low", "low"), ("_high", "high")) if likelihood.ratio else ()
    for ending, column in endings:
        table["expected" + ending] = likelihood.mean(table[column].to_numpy())
    return table


# ---- inner ---------------------------------------------------------------------------------------


def _list_curve_levels(engine: TermRows, design: Design, curve: Curve) -> list[Any]:
    """The levels that a curve was learned of, sorted; none of one that is by no factor."""
    bends = design.list_bends(curve)
    if str(curve.by) not in design.levels or bends[0][2] is not None:
        return list(dict.fromkeys(level for _, _, level in bends if level is not None))
    known = engine._index.levels[engine._index.column(bends[0][1], new=False)]
    return sort_labels([label for label, _ in list_labels(known.index.list_keys())])


def _make_grid(
    design: Design, curve: Curve, levels: Sequence[Any]
) -> tuple[dict[str, Any], list[Part]]:
    """Evenly spaced places of a curve by the names of their columns, of each level, and parts."""
    kept, by = design.numbers[curve.name].reshape(-1, 3), str(curve.by)
    names = ["x"] if len(kept) == 1 else [str(node) for node in curve.over]
    count = POINTS if len(kept) == 1 else SURFACE_POINTS
    grid = np.meshgrid(*(np.linspace(low, high, count) for low, high, _ in kept), indexing="ij")
    places = [np.tile(one.ravel(), max(len(levels), 1)) for one in grid]
    shown: dict[str, Any] = dict(zip(names, places, strict=True))
    if curve.by is None:
        return shown, design.make_curve(curve, places, None)
    if levels:
        labels = [level for level in levels for _ in range(grid[0].size)]
        factor = Factor(by, read_keys([labels], [by]), [], {})
        return {"level": labels, **shown}, design.make_curve(curve, places, factor)
    ones = np.ones(len(places[0]))
    parts = design.make_curve(curve, places, Factor(by, None, [(by, ones)], {}))
    return shown, [*parts, Part(by, None, None, ones)]


def _list_features(engine: TermRows, at: int, column: Column | None) -> list[tuple[str, int]]:
    """The features of a column of the index, each with its name; levels in order."""
    index = engine._index
    if at in index.numbers:
        return [(index.column_name(at), index.numbers[at])]
    if at not in index.levels or column is None:
        return []
    known, several = index.levels[at], len(column.factors) > 1
    labels = [one if several else (one,) for one in list_labels(known.index.list_keys())]
    ranks = [
        {label: rank for rank, label in enumerate(sort_labels(part))}
        for part in zip(*labels, strict=True)
    ]
    found = sorted(
        zip(labels, known.features.tolist(), strict=True),
        key=lambda one: [rank[label] for rank, label in zip(ranks, one[0], strict=True)],
    )
    lead, tail = ":".join(column.factors), f":{column.number}" if column.number else ""
    return [(f"{lead}[{', '.join(map(str, parts))}]{tail}", feature) for parts, feature in found]


def _describe_weights(engine: TermRows, features: Sequence[int], level: float) -> dict[str, Any]:
    """Mean, standard deviation and interval of some weights, mixed over nodes."""
    mean, variance = engine._posterior.member_marginals(np.array(features, dtype=np.intp))
    return _describe(engine, mean, variance, level)


def _describe(engine: TermRows, mean: Array, variance: Array, level: float) -> dict[str, Any]:
    """The same of sums of weights, from moments (n, members)."""
    each = mix_members(engine, mean, variance)
    low, high = each.interval(check_level(level))
    return {"mean": each.mean(), "sd": each.std(), "low": low, "high": high}
