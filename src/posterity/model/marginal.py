"""Marginal means of the levels of a factor, as sums of weights.

The linear predictor with all numbers at their means, the levels of other factors weighted equally,
group effects at 0 (Searle, Speed & Milliken 1980).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from posterity.aliases import Array
from posterity.distributions.guesses import did_you_mean
from posterity.linear.keys import list_labels
from posterity.model.design import Column, Design, sort_labels
from posterity.model.engines import TermRows
from posterity.model.formula import Curve
from posterity.model.moments import Moments


class Marginal:
    """Sums of weights: those of the marginal means of each level of a factor."""

    def __init__(self, engine: TermRows, design: Design, name: str | None) -> None:
        self.engine, self.design = engine, design
        self.index = engine._index
        self.levels = self._find_levels()
        if name is None and len(self.levels) == 1:
            (name,) = self.levels
        if name is None or name not in self.levels:
            known = ", ".join(map(repr, self.levels)) or "none"
            raise ValueError(
                f"the formula has no factor {name!r} with levels among its fixed effects"
                f"{did_you_mean(name, list(self.levels))}: it has {known}"
            )
        self.name, self.labels = name, self.levels[name]

    def place(self, level: object) -> int:
        """Where a level is among the labels."""
        if level not in self.labels:
            shown = ", ".join(map(repr, self.labels[:20]))
            raise ValueError(f"{self.name!r} has no level {level!r}: its levels are {shown}")
        return self.labels.index(level)

    def predict(self, shares: Array) -> tuple[Array, Array]:
        """Means and variances (k, members) of sums of the marginal means with ``shares`` (k, l)."""
        posterior = self.engine._posterior
        sums, found = shares @ self._weigh(), []
        for one in posterior.reading().solutions:
            centring = one.centres.find_terms(one.centres.values).matrix(sums.shape[1])
            found.append(one.predict(csr_array(csr_array(sums) @ centring)))
        mean, variance = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return mean + posterior.centre * sums[:, :1], variance

    # ---- inner -----------------------------------------------------------------------------------

    def _find_levels(self) -> dict[str, list[Any]]:
        """The levels of each factor of the fixed effects, sorted."""
        found: dict[str, list[Any]] = {}
        for column in self.design.list_columns():
            features = self._list_features(column.name) if column.factors else []
            for place, factor in enumerate(column.factors):
                own = [labels[place] for labels, _ in features]
                known = found.get(factor, [self.design.levels[factor][0]])
                found[factor] = [*known, *own]
        return {factor: sort_labels(own) for factor, own in found.items()}

    def _list_features(self, column: str) -> list[tuple[tuple[Any, ...], int]]:
        """The levels of a column, each with its feature."""
        known = self.index.levels.get(self.index.column(column, new=False))
        if known is None:
            return []
        labels = list_labels(known.index.list_keys())
        each = [label if isinstance(label, tuple) else (label,) for label in labels]
        return list(zip(each, known.features.tolist(), strict=True))

    def _weigh(self) -> Array:
        """(l, P) the weights in the marginal mean of each level."""
        means, k = self._find_means(), len(self.labels)
        shares = {
            factor: np.eye(k) if factor == self.name else np.full((k, len(own)), 1.0 / len(own))
            for factor, own in self.levels.items()
        }
        sums = np.zeros((k, len(means)))
        sums[:, 0] = float(self.engine.fit_intercept)
        for curve in self.design.formula.curves:
            self._add_bends(sums, curve, shares, means)
        for column in self.design.list_columns():
            if column.factors:
                self._add_levels(sums, column, shares, means)
            elif column.name:
                feature = self.index.numbers[self.index.column(column.name, new=False)]
                sums[:, feature] = means[feature]
        return sums

    def _find_means(self) -> Array:
        """(P,) means of the columns."""
        means, _, centres = Moments.of(self.engine, self.design)
        if means is None:
            raise ValueError(
                "the model knows no means of its columns, as the formula has no constant and no "
                "factor that stands alone: add one of these"
            )
        return means + centres

    def _add_bends(self, sums: Array, curve: Curve, shares: dict[str, Array], means: Array) -> None:
        """Write the weights of what bends a curve, or the curves of the levels of a factor."""
        by, found = str(curve.by), []
        keyed = by in self.design.levels
        for name, column, own in self.design.list_bends(curve):
            for labels, feature in self._list_features(column):
                level = labels[0] if own is None and keyed else own
                found.append((level, (name, labels[-1]), feature))
        levels = {level for level, _, _ in found}
        totals: dict[Any, float] = defaultdict(float)
        for _, place, feature in found:
            totals[place] += means[feature]
        for level, place, feature in found:
            share: Any = 1.0 / len(levels)
            if by in shares:
                share = shares[by][:, self.levels[by].index(level)]
            sums[:, feature] = share * totals[place]

    def _add_levels(
        self, sums: Array, column: Column, shares: dict[str, Array], means: Array
    ) -> None:
        """Write the weights of a column's levels, products of the shares of its factors' levels."""
        features, left = self._list_features(column.name), np.ones(len(sums))
        for factor in column.contrasts:
            base = self.levels[factor].index(self.design.levels[factor][0])
            left -= left * shares[factor][:, base]
        for labels, feature in features:
            own = np.ones(len(sums))
            for factor, label in zip(column.factors, labels, strict=True):
                own = own * shares[factor][:, self.levels[factor].index(label)]
            sums[:, feature] = own
            left -= own
        if (left > 1e-9).any():
            raise ValueError(
                f"no row has some pairs of levels of {column.name!r}, so their mean can't be told: "
                "leave the product out of the formula"
            )
        if column.number:
            alone = self.index.numbers.get(self.index.column(column.number, new=False))
            every = [feature for _, feature in features] if alone is None else [alone]
            sums[:, [feature for _, feature in features]] *= means[every].sum()
