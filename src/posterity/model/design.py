"""Rows of a frame as the columns of a formula's terms; what the first rows fix stays fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.likelihoods.censored import ends_of
from posterity.linear.categories import sort_levels
from posterity.linear.keys import Keys, list_labels, read_keys, select_labels
from posterity.model.curves import begin_curve, is_curve, make_curve_parts, read_places
from posterity.model.factors import Factor, Frame, compute_numbers, get_argument, read_factor
from posterity.model.formula import Curve, Formula, GroupTerm, Term, name_of, read_formula
from posterity.model.grammar import Node, refuse
from posterity.sparse.parts import Part, check_values

# Levels of a factor whose fixed effects are told apart, at most.
MOST_FIXED_LEVELS = 10_000


class DesignRows(NamedTuple):
    """Rows of a formula: their number, a part for each column, and what is added to eta (n,)."""

    n: int
    parts: list[Part]
    offset: Array


class Column(NamedTuple):
    """A column of fixed effects: its factors of levels, and what it is multiplied with, if any.

    ``contrasts``: those factors whose first level has no weight.
    """

    name: str
    factors: tuple[str, ...]
    contrasts: tuple[str, ...]
    number: str


@dataclass(frozen=True)
class Design:
    """The columns of a formula, and what the first rows fixed of them.

    ``levels``: of factors in group effects, all levels; of other factors the one that the others
    are compared with. ``numbers``: of functions such as ``poly`` what they keep.

    Examples
    --------
    >>> frame = {"x": [1.0, 2.0], "city": ["b", "a"], "g": ["u", "v"]}
    >>> design = Design("y ~ x + city + (1 + x | g)").begin(frame)
    >>> [part.name for part in design.read(frame).parts]
    ['x', 'city', '1 | g', 'x | g']
    >>> design.terms
    (('1 | g', 'x | g'),)
    """

    text: str
    levels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    numbers: dict[str, Array] = field(default_factory=dict)

    @cached_property
    def formula(self) -> Formula:
        """The formula, read."""
        return read_formula(self.text)

    @property
    def terms(self) -> tuple[tuple[str, ...], ...]:
        """Names of the columns whose effects vary together."""
        found: list[tuple[str, ...]] = []
        for group in self.formula.groups:
            names = tuple(f"{name} | {group.name}" for name in self._effect_names(group))
            found += [names] if group.correlated else [(name,) for name in names]
        curves = self.formula.curves
        return (*found, *((name,) for curve in curves for _, name, _ in self.list_bends(curve)))

    def list_bends(self, curve: Curve) -> list[tuple[str, str, Any]]:
        """What bends a curve, the columns of it, and the level of each: None of one for all."""
        own = self._list_apart(curve)
        if not own:
            return [(name, name, None) for name in curve.bends]
        return [(name, f"{name}[{label}]", label) for name in curve.bends for label in own]

    def list_columns(self) -> list[Column]:
        """The columns of the fixed effects, but for the constant; lines of curves come last."""
        found = []
        for term in filter(None, self.formula.fixed):
            names = [str(node) for node in term]
            keyed = tuple(name for name in names if name in self.levels)
            contrasts = tuple(name for name in keyed if self._is_contrast(term, name))
            parts = [self._column_names(name) for name in names if name not in self.levels]
            found += [
                Column(":".join([*keyed, *some]), keyed, contrasts, ":".join(some))
                for some in product(*parts)
            ]
        for curve in self.formula.curves:
            by, lines = str(curve.by), curve.lines
            if by in self.levels:
                found += [Column(f"{by}:{line}", (by,), (), line) for line in lines]
            else:
                found += [Column(line, (), (), line) for line in lines]
        return [*found, *(Column(name, (), (), name) for name in self._find_brought())]

    def begin(self, data: object) -> Design:
        """The design of these first rows."""
        frame, begun = Frame.of(data, self.text), replace(self, levels={}, numbers={})
        if not frame.n:
            raise ValueError("there are no rows: give at least one")
        curves = self.formula.curves
        effects = {str(f) for group in self.formula.groups for term in group.effects for f in term}
        effects |= {str(curve.by) for curve in curves if not curve.shared}
        terms = [*self.formula.fixed, *(t for g in self.formula.groups for t in g.effects)]
        terms += [(curve.by,) for curve in curves if curve.by is not None]
        for curve in curves:
            begun.numbers[curve.name] = begin_curve(curve, frame)
        for node in {str(factor): factor for term in terms for factor in term}.values():
            factor = read_factor(node, frame, {})
            if factor.keys is None:
                begun.numbers.update(factor.kept)
                continue
            labels = tuple(sort_labels(list_labels(factor.keys.labels), factor.order))
            begun.levels[factor.name] = labels if factor.name in effects else labels[:1]
            if factor.name not in effects and len(labels) > MOST_FIXED_LEVELS:
                size = 8e-9 * len(labels) ** 2
                raise refuse(
                    self.text,
                    node.at,
                    f"{factor.name!r} has {len(labels):,} levels, and the covariances of their "
                    f"fixed effects may need {size:,.1f} GB: write (1 | {factor.name})",
                )
        return begun

    def read(self, data: Any) -> DesignRows:
        """The columns of rows.

        Raises
        ------
        ValueError
            For a column that is missing, or a value that can't be used; it names the row.
        """
        frame = Frame.of(data, self.text)
        parts = [part for term in self.formula.fixed if term for part in self._fix(term, frame)]
        for group in self.formula.groups:
            keys = _read_group(group, frame)
            for name, values in self._effects(group, frame):
                parts.append(Part(f"{name} | {group.name}", None, keys, values))
        for curve in self.formula.curves:
            by = None if curve.by is None else self._read_factor(curve.by, frame)
            parts += self.make_curve(curve, read_places(curve, frame), by)
        for name, node in self._find_brought().items():
            parts.append(Part(name, None, None, self._read_factor(node, frame).columns[0][1]))
        offset = np.zeros(frame.n)
        for node in self.formula.offsets:
            offset += check_values(compute_numbers(get_argument(node, frame), frame), str(node))
        return DesignRows(frame.n, parts, offset)

    def read_targets(self, data: object, given: Any) -> tuple[Any, Array | None]:
        """Targets of rows, those that are ``given`` or the formula's, and their trials, if any."""
        frame, formula = Frame.of(data, self.text), self.formula
        trials = None if formula.trials is None else compute_numbers(formula.trials, frame)
        if given is not None:
            return given, trials
        if formula.response.kind == "name":
            return frame.column(formula.response), trials
        if formula.has_ends:
            pair = [compute_numbers(part, frame) for part in formula.response.parts]
            return (ends_of(*pair) if formula.response.text == "Surv" else np.stack(pair, 1)), None
        return compute_numbers(formula.response, frame), trials

    @property
    def is_possible(self) -> bool:
        """Whether what is kept may be that of first rows."""
        curves = {curve.name for curve in self.formula.curves}
        return curves <= self.numbers.keys() and all(
            bool(np.isfinite(kept).all())
            and (is_curve(kept) if name in curves else kept.ndim in {1, 2} and kept.shape[-1] == 2)
            for name, kept in self.numbers.items()
        )

    def is_same(self, other: Design) -> bool:
        """Whether two designs make the same columns of the same rows."""
        mine, theirs = self.numbers, other.numbers
        same = self.levels == other.levels and mine.keys() == theirs.keys()
        return same and all(np.array_equal(mine[name], theirs[name]) for name in mine)

    # ---- fixed terms -----------------------------------------------------------------------------

    def _fix(self, term: Term, frame: Frame) -> list[Part]:
        """The parts of a fixed term: one, or one for each column of its numbers."""
        factors = [self._read_factor(node, frame) for node in term]
        keyed = [factor for factor in factors if factor.keys is not None]
        columns = _multiply([factor for factor in factors if factor.keys is None], frame.n)
        if not keyed:
            return [Part(name, None, None, values) for name, values in columns]
        kept = np.ones(frame.n, dtype=bool)
        for factor in keyed:
            if self._is_contrast(term, factor.name):
                kept &= ~_find_level(factor, self.levels[factor.name][0])
        rows = np.flatnonzero(kept)
        keys = _select(_join_keys(keyed), rows)
        lead = ":".join(factor.name for factor in keyed)
        return [
            Part(lead if name == "1" else f"{lead}:{name}", rows, keys, values[rows])
            for name, values in columns
        ]

    def _read_factor(self, node: Node, frame: Frame) -> Factor:
        factor = read_factor(node, frame, self.numbers)
        if (factor.keys is not None) != (factor.name in self.levels):
            kinds = ("levels", "numbers") if factor.keys is None else ("numbers", "levels")
            raise ValueError(
                f"{factor.name!r} had {kinds[0]} in the first rows, and has {kinds[1]} now: give "
                "columns of the same kind"
            )
        return factor

    def _is_contrast(self, term: Term, name: str) -> bool:
        """Whether levels are compared with the first: where the term without it is there, too."""
        left = frozenset(str(factor) for factor in term) - {name}
        return left in {frozenset(map(str, other)) for other in self.formula.fixed}

    # ---- group effects and curves ----------------------------------------------------------------

    def make_curve(self, curve: Curve, places: Sequence[Array], by: Factor | None) -> list[Part]:
        """The parts of a curve at ``places`` (n,) of each column."""
        if by is not None and by.keys is None and len(by.columns) > 1:
            raise ValueError(f"{by.name!r} has several columns: a curve is by one of numbers")
        return make_curve_parts(
            curve, places, self.numbers[curve.name], by, self._list_apart(curve)
        )

    def _list_apart(self, curve: Curve) -> tuple[Any, ...]:
        """The levels of the first rows whose curves have a scale each."""
        return () if curve.shared else self.levels.get(str(curve.by), ())

    def _find_brought(self) -> dict[str, Node]:
        """Numbers that curves are multiplied with: fixed effects, where no term is the same."""
        fixed = {name_of(term) for term in self.formula.fixed} | self.levels.keys()
        each = [curve.by for curve in self.formula.curves if curve.by is not None]
        return {str(node): node for node in each if str(node) not in fixed}

    def _effect_names(self, group: GroupTerm) -> list[str]:
        names: list[str] = []
        for term in group.effects:
            parts = [self._column_names(str(node)) for node in term]
            names += [":".join(one) or "1" for one in product(*parts)]
        return names

    def _column_names(self, name: str) -> list[str]:
        if name in self.levels:
            return [f"{name}[{label}]" for label in self.levels[name][1:]]
        kept = self.numbers.get(name)
        if kept is not None and kept.ndim == 2:
            return [f"{name}[{place + 1}]" for place in range(len(kept) - 1)]
        return [name]

    def _effects(self, group: GroupTerm, frame: Frame) -> list[tuple[str, Array]]:
        """Names and values (n,) of the columns of a group's effects."""
        found: list[tuple[str, Array]] = []
        for term in group.effects:
            factors = [self._read_factor(node, frame) for node in term]
            spread = [self._spread(factor) for factor in factors]
            found += _multiply(spread, frame.n)
        return found

    def _spread(self, factor: Factor) -> Factor:
        """A factor of levels as columns of zeros and ones, one for each level but the first."""
        if factor.keys is None:
            return factor
        known = self.levels[factor.name]
        if new := [one for one in list_labels(factor.keys.labels) if one not in known]:
            raise ValueError(
                f"{factor.name!r} has the level {new[0]!r}, which first rows did not have, and its "
                "effects vary by group: have all levels in the first rows"
            )
        columns = [
            (f"{factor.name}[{label}]", _find_level(factor, label).astype(np.float64))
            for label in known[1:]
        ]
        return factor._replace(keys=None, columns=columns)


# ---- inner ---------------------------------------------------------------------------------------


def _multiply(factors: Sequence[Factor], n: int) -> list[tuple[str, Array]]:
    """Products of one column of each factor, with their names; the constant of none."""
    found = []
    for some in product(*(factor.columns for factor in factors)):
        name = ":".join(label for label, _ in some) or "1"
        found.append((name, np.prod([values for _, values in some], axis=0) * np.ones(n)))
    return found


def sort_labels(given: Sequence[Any], order: Sequence[Any] = ()) -> list[Any]:
    """Different labels: in this order, then numbers by size, and text by the alphabet."""
    labels = {str(label): label for label in given}
    found = [labels[name] for name in sort_levels(list(labels))]
    places = {label: place for place, label in enumerate(order)}
    return sorted(found, key=lambda label: places.get(label, len(places)))


def _find_level(factor: Factor, label: object) -> Mask:
    assert factor.keys is not None
    own = np.array([one == label for one in list_labels(factor.keys.labels)], dtype=bool)
    return np.asarray(own[factor.keys.numbers])


def _join_keys(factors: Sequence[Factor]) -> Keys:
    """The levels of one factor, or tuples of several."""
    if len(factors) == 1:
        assert factors[0].keys is not None
        return factors[0].keys
    columns = [
        np.array(list_labels(one.keys.labels), dtype=object)[one.keys.numbers]
        for one in factors
        if one.keys is not None
    ]
    return read_keys(columns, [factor.name for factor in factors])


def _select(keys: Keys, rows: Indices) -> Keys:
    """The keys of some rows, with the labels that these have."""
    places, numbers = np.unique(keys.numbers[rows], return_inverse=True)
    return Keys(numbers.astype(np.int32), select_labels(keys.labels, places), keys.kinds)


def _read_group(group: GroupTerm, frame: Frame) -> Keys:
    columns = [frame.column(node) for node in group.groups]
    return read_keys(columns, [str(node) for node in group.groups])
