"""Means of the columns of a model, and of their products, over the rows learned."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array
from posterity.model.design import Design
from posterity.model.engines import TermRows
from posterity.posteriors._sparse_fit import Fit


class Moments(NamedTuple):
    """Of columns, less ``centres``: means (P,), and a sparse matrix of mean products (P, P).

    ``means`` is None where no sum of columns is a constant: products do not tell them then.
    """

    means: Array | None
    products: Any
    centres: Array

    @classmethod
    def of(cls, engine: TermRows, design: Design) -> Moments:
        """Those of all rows that count."""
        fit = Fit(engine._posterior)
        products = fit.data.products / (engine._posterior.n_effective or np.nan)
        centres = np.zeros(products.shape[0])
        centres[fit.centres.features] = fit.centres.values
        constant = _find_constant(engine, design)
        means = np.asarray(products[constant].sum(axis=0)) if len(constant) else None
        return cls(means, products, centres)


def _find_constant(engine: TermRows, design: Design) -> list[int]:
    """Features that add up to 1 in each row: the constant, or all levels of a factor or group."""
    if engine.fit_intercept:
        return [0]
    index = engine._index
    pure = [one.name for one in design.list_columns() if not (one.contrasts or one.number)]
    for name in [*pure, *(f"1 | {group.name}" for group in design.formula.groups)]:
        known = index.levels.get(index.column(name, new=False))
        if known is not None:
            return [int(feature) for feature in known.features]
    return []
