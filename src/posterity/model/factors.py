"""The factors of a formula's terms, of the columns of a frame: numbers or levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from posterity.aliases import Array
from posterity.distributions.guesses import did_you_mean
from posterity.kernel.tables import find_table, kind_of, type_of
from posterity.kernel.values import read_floats
from posterity.linear.keys import Keys, read_keys
from posterity.linear.levels import read_listed
from posterity.model.grammar import Node, find_calls, refuse

Numbers = Mapping[str, Array]

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    name: getattr(np, name)
    for name in ("abs", "cos", "exp", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt")
}
_SIGNS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "^": np.power,
}
# Functions that make levels of a column, and those that keep something of the first rows.
_LEVELS = ("C", "factor")
KEEPING = ("center", "poly", "scale")


@dataclass(frozen=True)
class Frame:
    """Columns by their names, of a data frame or a mapping, and the formula that asks for them."""

    columns: Mapping[str, Any]
    n: int
    formula: str

    @classmethod
    def of(cls, data: object, formula: str) -> Frame:
        """The columns of what a user gives."""
        table = find_table(data)
        columns = table.by_name() if table is not None else data
        if not isinstance(columns, Mapping):
            raise TypeError(
                f"rows came as a {type(data).__name__}: give a data frame (of a lazy one what "
                "collect() returns), or a mapping of names to columns, whose names the formula uses"
            )
        for name, column in columns.items():
            if isinstance(column, str) or not isinstance(column, Sized):
                raise TypeError(
                    f"column {name!r} is {column!r}: give columns, as in {{{name!r}: [{column!r}]}}"
                )
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"the columns have different lengths: {sorted(lengths)}")
        return cls(columns, lengths.pop() if lengths else 0, formula)

    def column(self, node: Node) -> Any:
        """The column that a name stands for."""
        if node.text not in self.columns:
            hint = did_you_mean(node.text, list(map(str, self.columns)))
            raise refuse(self.formula, node.at, f"the rows have no column {node.text!r}{hint}")
        column = self.columns[node.text]
        column = np.asarray(column) if isinstance(column, list | tuple) else column
        if type_of(column) == np.dtype(object) and all(
            isinstance(one, Real | Decimal) for one in column
        ):
            return np.array([one if isinstance(one, Real) else float(one) for one in column])
        return column

    def is_numeric(self, node: Node) -> bool:
        """Whether a column holds numbers."""
        return kind_of(type_of(self.column(node))) == "numbers"


class Factor(NamedTuple):
    """Levels of rows (``keys``), or named columns (n,) of numbers; ``kept``: of the first rows.

    ``order``: levels as a category type lists them.
    """

    name: str
    keys: Keys | None
    columns: list[tuple[str, Array]]
    kept: dict[str, Array]
    order: Sequence[Any] = ()


def check_functions(formula: str, tree: Node, others: Sequence[str]) -> None:
    """Raise ``ValueError`` that shows the place of a function which is neither ours nor another."""
    known = [*_LEVELS, "I", *KEEPING, *FUNCTIONS]
    for text, at in find_calls(tree).items():
        if text not in (*known, *others):
            own = text.rpartition(".")[2].lower()  # np.log, as.factor, surv
            meant = [one for one in (*known, *others) if one.lower() == own]
            one = f"use one of {', '.join(known)}, or s for a curve"
            told = f"write {meant[0]}(...)" if meant else one
            raise refuse(formula, at, f"there is no function {text!r}: {told}")


def read_factor(node: Node, frame: Frame, kept: Numbers) -> Factor:
    """A factor of rows; ``kept``: what functions such as ``poly`` keep of first rows, if any."""
    name = str(node)
    if node.kind == "call" and node.text in _LEVELS:
        return _read_levels(name, get_argument(node, frame), frame)
    if node.kind == "name" and not frame.is_numeric(node):
        factor = _read_levels(name, node, frame)
        if factor.keys is not None and factor.keys.kinds == ("dates",):
            raise refuse(
                frame.formula,
                node.at,
                f"{name} holds dates: make numbers of them, in pandas frame.{name}.dt.weekday or "
                f"(frame.{name} - frame.{name}.min()).dt.days, or write C({name}) for a level for "
                "each",
            )
        return factor
    if node.kind == "call" and node.text in KEEPING:
        return _keep(node, frame, kept)
    values = compute_numbers(node, frame)
    return Factor(name, None, [(name, check_finite(values, node, frame))], {})


def compute_numbers(node: Node, frame: Frame) -> Array:
    """(n,) numbers of an expression: arithmetic, and the functions that are known."""
    if node.kind == "number":
        return np.full(frame.n, float(node.text))
    if node.kind == "name":
        if not frame.is_numeric(node):
            wrong = f"{node.text!r} holds no numbers: make some of it, as 1 and 0 of yes and no"
            raise refuse(frame.formula, node.at, wrong)
        return read_floats(frame.column(node), f"column {node.text!r}")
    if node.kind == "(" or (node.kind == "call" and node.text == "I"):
        return compute_numbers(get_argument(node, frame), frame)
    with np.errstate(all="ignore"):
        if node.kind == "call" and node.text in FUNCTIONS:
            return FUNCTIONS[node.text](compute_numbers(get_argument(node, frame), frame))
        if node.kind in _SIGNS:
            parts = [compute_numbers(part, frame) for part in node.parts]
            return _SIGNS[node.kind](*(parts if len(parts) == 2 else [0.0 * parts[0], *parts]))
    raise refuse(frame.formula, node.at, f"{node} is no number: add it as a term of its own")


# ---- inner ---------------------------------------------------------------------------------------


def _read_levels(name: str, node: Node, frame: Frame) -> Factor:
    column = frame.column(node)
    _, order = read_listed(column) or (None, [])
    if "ordered=0" in str(type_of(column)):  # words of an Arrow dictionary, as they came
        order = []
    return Factor(name, read_keys([column], [str(node)]), [], {}, order)


def _keep(node: Node, frame: Frame, kept: Numbers) -> Factor:
    """A factor that keeps something of the first rows: a centre, a scale, or polynomials."""
    name = str(node)
    if node.text == "poly":
        return _make_polynomials(node, frame, kept)
    values = check_finite(compute_numbers(get_argument(node, frame), frame), node, frame)
    own = kept.get(name)
    if own is None:
        own = np.array([values.mean(), values.std(ddof=1) if node.text == "scale" else 1.0])
        if not own[1] > 0.0:
            raise refuse(frame.formula, node.at, f"{name} has the same value in all first rows")
    return Factor(name, None, [(name, (values - own[0]) / own[1])], {name: own})


def _make_polynomials(node: Node, frame: Frame, kept: Numbers) -> Factor:
    """Polynomials that are orthonormal over the first rows, by their recurrence, as in R.

    What is kept (degree + 1, 2): of each degree the recurrence's centre, and the squared length.
    """
    name, own = str(node), kept.get(str(node))
    if len(node.parts) != 2 or not node.parts[1].text.isdigit() or int(node.parts[1].text) < 1:
        raise refuse(frame.formula, node.at, "poly has a column and a degree, as in poly(x, 2)")
    values = check_finite(compute_numbers(node.parts[0], frame), node, frame)
    degree = int(node.parts[1].text)
    if own is None and len(np.unique(values)) <= degree:
        raise refuse(
            frame.formula,
            node.at,
            f"{name} needs more than {degree} different values in first rows",
        )
    rows, columns, before, here = [], [], np.zeros(len(values)), np.ones(len(values))
    last = 1.0
    for place in range(degree + 1):
        square = float(here @ here)
        centre, square = (
            own[place] if own is not None else (values @ (here * here) / square, square)
        )
        rows.append((centre, square))
        columns.append((f"{name}[{place}]", here / np.sqrt(square)))
        before, here = here, (values - centre) * here - (square / last) * (place > 0) * before
        last = square
    return Factor(name, None, columns[1:], {name: np.array(rows)})


def get_argument(node: Node, frame: Frame) -> Node:
    """The argument of a function that has one."""
    if len(node.parts) != 1:
        raise refuse(frame.formula, node.at, f"{node.text} has one argument, as in {node.text}(x)")
    return node.parts[0]


def check_finite(values: Array, node: Node, frame: Frame) -> Array:
    """The values of a node; raises ``ValueError`` that names the row of one that is not finite."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise refuse(
            frame.formula,
            node.at,
            f"{node} is {values[bad[0]]} in row {bad[0]}: leave the row out, or fill the value in",
        )
    return values
