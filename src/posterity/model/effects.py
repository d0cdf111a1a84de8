"""Average effects: what the expected target changes by when one column changes, on average."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from posterity.aliases import Array, DataFrame
from posterity.likelihoods import Likelihood
from posterity.linear.categories import Categories, Category
from posterity.linear.effects import table_of_effects
from posterity.linear.keys import list_labels, read_keys
from posterity.model.design import Design, DesignRows, sort_labels
from posterity.model.engines import TermRows
from posterity.model.factors import Frame, compute_numbers
from posterity.model.tables import mix_members

# Gauss-Hermite places and shares of a standard normal distribution, and the step of slopes by eta.
PLACES, SHARES = np.polynomial.hermite_e.hermegauss(15)
SHARES = SHARES / SHARES.sum()
STEP = 1e-4


def average_effects(
    engine: TermRows, design: Design, data: object, per: str, level: float
) -> DataFrame:
    """A row for each column of fixed effects and curves, and each of its levels but the first.

    The mean over rows of ``E[y | x + step] - E[y | x]`` (Gelman & Pardoe 2007), with the variance
    of the linear function of the weights that has its mean slopes.
    """
    frame = Frame.of(data, design.text)
    coded = [_code(frame, name, design) for name in design.formula.varied]
    levels = {name: labels for name, _, labels in coded if labels}
    names = [name for name, _, _ in coded]
    categories = tuple(
        Category(names.index(name), name, tuple(map(str, labels)))
        for name, labels in levels.items()
    )

    def effects(*ends: Array) -> Iterator[tuple[list[str], Any]]:
        rows = [design.read(_decode(frame, names, levels, end)) for end in ends]
        yield [], mix_members(engine, *_change(engine, rows))[0]

    X = np.stack([values for _, values, _ in coded], axis=1) if coded else np.zeros((frame.n, 0))
    known = Categories(len(names), categories)
    domains = _find_domains(design, names)
    return table_of_effects(
        X, names, effects, per=per, level=level, categories=known, domains=domains
    )


# ---- inner ---------------------------------------------------------------------------------------


def _find_domains(design: Design, names: list[str]) -> dict[int, tuple[float, float]]:
    """Ends of the first rows of the columns that curves are over, by place."""
    found: dict[int, tuple[float, float]] = {}
    for curve in design.formula.curves:
        for node, kept in zip(curve.over, design.numbers[curve.name].reshape(-1, 3), strict=True):
            if node.text in names and node.kind == "name" and curve.period is None:
                found[names.index(node.text)] = float(kept[0]), float(kept[1])
    return found


def _code(frame: Frame, name: str, design: Design) -> tuple[str, Array, list[Any]]:
    """A column as numbers (n,): its own, or the places of its levels, from 1 on, and these."""
    factor = next(
        (one for one in (name, f"C({name})", f"factor({name})") if one in design.levels), None
    )
    node = design.formula.varied[name]
    if factor is None:
        return name, compute_numbers(node, frame), []
    keys = read_keys([frame.column(node)], [name])
    met = list_labels(keys.labels)
    base = design.levels[factor][0]
    labels = [base, *(label for label in sort_labels(met) if label != base)]
    places = np.array([labels.index(label) + 1.0 for label in met])
    return name, places[keys.numbers], labels


def _decode(
    frame: Frame, names: list[str], levels: dict[str, list[Any]], X: Array
) -> dict[str, Any]:
    """The frame with the columns that ``X`` (n, k) has."""
    columns = dict(frame.columns)
    for name, values in zip(names, X.T, strict=True):
        columns[name] = values
        if name in levels:
            columns[name] = [levels[name][int(place) - 1] for place in values]
    return columns


def _change(engine: TermRows, ends: list[DesignRows]) -> tuple[Array, Array]:
    """Mean and variance (1, members) of the mean change of expected targets between two tables."""
    posterior, reading = engine._posterior, engine._posterior.reading()
    solutions, likelihoods = reading.solutions, reading.observe_each(posterior.likelihood)
    change = np.zeros(len(solutions))
    slopes = np.zeros((len(solutions), len(posterior.owners)))
    for sign, rows in zip((-1.0, 1.0), ends, strict=True):
        numbered = engine._number(rows.n, rows.parts, new=False)
        known = numbered.keep_entries(numbered.features >= 0)
        X = posterior._matrix(posterior.centre_rows(known, solutions[0].centres, None))
        straight = posterior.likelihood.is_noise  # the mean of eta is all that counts
        spread = np.zeros(rows.n) if straight else solutions[0].predict(X)[1]
        for k, (one, likelihood) in enumerate(zip(solutions, likelihoods, strict=True)):
            eta = X @ one.mean + posterior.centre + rows.offset
            expected, slope = _expect(likelihood, eta, spread)
            change[k] += sign * expected.mean()
            slopes[k] += sign * (X.T @ slope) / rows.n
    variance = [
        one.predict(csr_array(own[None]))[1] for one, own in zip(solutions, slopes, strict=True)
    ]
    return change[None], np.array(variance).T


def _expect(likelihood: Likelihood, mean: Array, variance: Array) -> tuple[Array, Array]:
    """Expected targets (n,) and their slopes by eta, averaged over what is not known of eta."""
    eta = mean[:, None] + np.sqrt(variance)[:, None] * PLACES
    rise = likelihood.mean(eta + STEP) - likelihood.mean(eta - STEP)
    return likelihood.mean(eta) @ SHARES, rise @ SHARES / (2.0 * STEP)
