"""What a paper says of a model, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posterity.distributions._digits import count_decimals
from posterity.model.engines import TermRows


def write_report(formula: str, engine: TermRows, tables: Sequence[Any], level: float) -> str:
    """Sentences of the tables of fixed effects, of variances and of explained shares."""
    fixed, variances, explained = (_list_estimates(table) for table in tables)
    levels = {
        names[0].partition(" | ")[2]: len(engine._index.levels[column].features)
        for names in engine.terms
        if " | " in names[0] and (column := engine._index.column(names[0], new=False)) > 0
    }
    counted = " and ".join(f"{count:,} levels of {group}" for group, count in levels.items())
    kind = engine.described + (" mixed model" if levels else " model")
    article, rows = "An" if kind[0] in "aeiou" else "A", f"{engine.n_observations_:,.10g} rows"
    said = [
        f"{article} {kind}, {formula}, was fitted to {rows}{' of ' * bool(counted)}{counted}.",
        f"Posterior means, with {100 * level:g}% intervals, of the fixed effects{engine.scale}: "
        f"{fixed}.",
    ]
    if variances:
        also = " and parameters" if engine.likelihood.learned else ""
        said.append(f"Of standard deviations and correlations{also}: {variances}.")
    return " ".join([*said, f"Of shares of the variance: {explained}."])


def _list_estimates(table: Any) -> str:
    """Each row as "name mean (low to high)"."""
    return ", ".join(map(_write_estimate, table.index, table["mean"], table["low"], table["high"]))


def _write_estimate(name: str, mean: float, low: float, high: float) -> str:
    """To two digits of the interval's width."""
    places = count_decimals(low, high)
    return f"{name} {mean:.{places}f} ({low:.{places}f} to {high:.{places}f})"
