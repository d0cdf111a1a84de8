"""Standardised columns in terms: dummies of a category are one, other columns stand alone.

Levels of a category are exchangeable: their effects a_l ~ N(0, v_l) have one unit. Where dummies
leave out a base level, their coefficients are contrasts a_l - a_0, and the intercept takes up a_0.
So the base level gets a column of its own; with t_l = 1 / v_l and the sum over all levels the prior
precision of the contrasts is diag(t) - t t' / sum(t), as a_0 is integrated under a flat intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.evidence.columns import LARGEST
from posterity.factor.dummies import find_dummies


class PlainColumns(NamedTuple):
    """Columns of features that all vary, and stand alone, in units of ``squares`` (m,)."""

    squares: Array

    def compute_precisions(self, relative: Array, m: int) -> tuple[Array, None]:
        """As of :class:`TermColumns`: precisions (K, m) of the features; no level was left out."""
        return np.minimum(relative * self.squares, LARGEST), None


@dataclass(frozen=True, eq=False)
class TermColumns:
    """Columns (r, c) of the features that vary and of base levels, in units of ``squares`` (c,).

    ``ends`` tells where terms end, ``features`` (c,) which feature a column is, -1 for base levels.
    """

    matrix: Array
    squares: Array
    ends: Indices
    features: Indices

    @classmethod
    def of(
        cls,
        root: Array,
        squares: Array,
        pinned: Mask,
        *,
        intercept: int,
        count: float,
    ) -> Self:
        """Columns of a triangle of rows, of features of these mean squares (m,)."""
        below, m = root[intercept:, intercept:], len(squares)
        term, places = np.arange(m), np.arange(float(m))
        for columns, is_whole in find_dummies(root) if intercept == 1 else ():
            levels = columns - 1
            if pinned[levels].any():
                continue
            term[levels] = levels[0]
            if not is_whole:
                base = -below[:, levels].sum(axis=1)
                below = np.column_stack([below, base])
                squares, pinned = np.append(squares, base @ base / count), np.append(pinned, False)
                places, term = np.append(places, levels[-1] + 0.5), np.append(term, levels[0])
            is_level = term == levels[0]
            squares = np.where(is_level, squares[is_level].mean(), squares)
        order = np.argsort(places)
        order = order[~pinned[order]]
        ordered = term[order]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], ordered.size > 0)) + 1
        matrix = np.ascontiguousarray(below[:, order] / np.sqrt(squares[order]))
        return cls(matrix, squares[order], ends, np.where(order < m, order, -1))

    def compute_precisions(self, relative: Array, m: int) -> tuple[Array, Array | None]:
        """Precisions (K, m) of the features, and what base levels take away from them.

        ``relative`` (K, c) are those of the columns; features that are not among these have 1. The
        second are rows (K, b, m), of which the precisions lose the products; None where no level
        was left out.
        """
        own, bases = relative * self.squares, np.flatnonzero(self.features < 0)
        kept, precisions = self.features >= 0, np.ones((len(relative), m))
        precisions[:, self.features[kept]] = np.minimum(own[:, kept], LARGEST)
        if not bases.size:
            return precisions, None
        taken = np.zeros((len(relative), len(bases), len(self.squares)))
        contrasts = np.zeros((len(relative), len(bases), m))
        for k, base in enumerate(bases):
            term = int(np.searchsorted(self.ends, base, side="right"))
            levels = slice(self.ends[term - 1] if term else 0, self.ends[term])
            part = own[:, levels]
            taken[:, k, levels] = part / np.sqrt(part.sum(axis=1, keepdims=True))
        contrasts[:, :, self.features[kept]] = taken[:, :, kept]
        return precisions, contrasts
