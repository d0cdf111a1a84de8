"""What a formula says: a response, fixed terms, effects of groups, curves and offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from posterity.model.factors import KEEPING, check_functions
from posterity.model.grammar import Node, find_calls, parse, refuse

# Factors whose product a term is; () is the intercept.
Term = tuple[Node, ...]
Places = tuple[int, ...]

# Calls that are no factors of terms.
_ALONE = ("s", "te", "offset")
# Calls that a response of two ends may be, as of lifetimes.
ENDS = ("Surv", "cens")
# Number of splines of a curve, and of each column of a surface; the least and the most.
SPLINES, SURFACE_SPLINES, LEAST_SPLINES, MOST_SPLINES = 30, 10, 5, 1000


@dataclass(frozen=True)
class GroupTerm:
    """Effects that vary by group, ``(1 + x | g)``: with ``correlated``, also together."""

    effects: tuple[Term, ...]
    groups: tuple[Node, ...]
    correlated: bool

    @property
    def name(self) -> str:
        """The group as the formula writes it."""
        return name_of(self.groups)


@dataclass(frozen=True)
class Curve:
    """A smooth function, ``s(x)`` or ``te(x, z)``: what it is ``over``, and splines for each.

    With a ``period`` its ends meet. With ``by`` it is multiplied with numbers, or there is one for
    each level, whose standard deviations are the same if they are ``shared``.

    Examples
    --------
    >>> curve = read_formula("y ~ s(x, by=g, k=20)").curves[0]
    >>> curve.name, curve.count, str(curve.by)
    ('s(x, by=g, k=20)', 20, 'g')
    """

    name: str
    over: tuple[Node, ...]
    count: int
    period: float | None = None
    by: Node | None = None
    shared: bool = False

    @property
    def lines(self) -> dict[str, Places]:
        """Names of fixed effects, each with the columns whose lines are multiplied."""
        if self.period is not None:
            return {}
        if len(self.over) == 1:
            return {f"{self.name}: line": (0,)}
        return {
            f"{self.name}: {':'.join(str(self.over[place]) for place in some)}": some
            for some in self._choose()
        }

    @property
    def bends(self) -> dict[str, Places]:
        """Names of what has a scale of its own, each with the columns whose bends are multiplied.

        They are multiplied with the lines of the other columns, too.
        """
        if len(self.over) == 1:
            return {self.name: (0,)}
        return {
            f"{self.name}: {':'.join(f's({self.over[place]})' for place in some)}": some
            for some in self._choose()
        }

    def _choose(self) -> list[Places]:
        """Some columns, in all ways, first one, and all at the end."""
        count = len(self.over)
        return [some for k in range(count) for some in combinations(range(count), k + 1)]


@dataclass(frozen=True)
class Formula:
    """The parts of a formula.

    Examples
    --------
    >>> formula = read_formula("y ~ x * z + (1 + x | school / class) + offset(w)")
    >>> [name_of(term) for term in formula.fixed]
    ['1', 'x', 'z', 'x:z']
    >>> [group.name for group in formula.groups], len(formula.offsets)
    (['school', 'school:class'], 1)
    >>> formula.columns
    ['y', 'x', 'z', 'school', 'class', 'w']
    """

    text: str
    response: Node
    trials: Node | None
    fixed: tuple[Term, ...]
    groups: tuple[GroupTerm, ...]
    curves: tuple[Curve, ...]
    offsets: tuple[Node, ...]

    @property
    def has_ends(self) -> bool:
        """Whether the response has a lower and an upper end."""
        return self.response.kind == "call" and self.response.text in ENDS

    @property
    def needs_rows(self) -> list[str]:
        """The calls of which one row is not enough: curves, scales and polynomials."""
        return [name for name in find_calls(parse(self.text)) if name in ("s", "te", *KEEPING)]

    @property
    def columns(self) -> list[str]:
        """The columns that it names, those of the response first."""
        return list(dict.fromkeys(name.text for name in _find_names(parse(self.text))))

    @property
    def predictors(self) -> list[str]:
        """The columns to the right of the response."""
        return list(dict.fromkeys(name.text for name in _find_names(parse(self.text).parts[1])))

    @property
    def varied(self) -> dict[str, Node]:
        """The columns of fixed effects and curves."""
        nodes = [node for term in self.fixed for node in term]
        nodes += [node for curve in self.curves for node in (*curve.over, curve.by) if node]
        return {name.text: name for node in nodes for name in _find_names(node)}

    @property
    def has_intercept(self) -> bool:
        """Whether there is one for all rows."""
        return () in self.fixed


def name_of(term: Term) -> str:
    """A term as the formula writes it; "1" of the intercept."""
    return ":".join(str(factor) for factor in term) or "1"


def read_formula(text: str) -> Formula:
    """Read a formula; raise ``ValueError`` that shows the place of what can't be used."""
    if not isinstance(text, str):
        raise TypeError(f"formula is a {type(text).__name__}: give text, as in 'y ~ x + (1 | g)'")
    tree = parse(text)
    if tree.kind != "~" or len(tree.parts) != 2:
        raise refuse(text, 0, "there is no '~' after the response: write it as in 'y ~ x'")
    response, trials = tree.parts[0], None
    if response.kind == "call" and response.text == "cbind":
        raise refuse(
            text,
            response.at,
            "cbind(successes, failures) is R's: write successes / trials, with "
            "likelihood='binomial'",
        )
    bar = response.kind == "|"  # brms
    if bar or (response.kind == "call" and response.text in ENDS and len(response.parts) != 2):
        ways = "Surv(time, ended) or cens(low, high)" + (", or successes / trials" if bar else "")
        raise refuse(text, response.at, f"write {ways}")
    check_functions(text, tree, (*_ALONE, *ENDS))
    if response.kind == "/":
        response, trials = response.parts
    groups: list[GroupTerm] = []
    others: dict[str, list[Node]] = {name: [] for name in _ALONE}
    terms: list[Term] = [()]
    for sign, node in _list_summands(tree.parts[1]):
        if node.kind == "(" and node.parts[0].kind in {"|", "||"}:
            _refuse_minus(text, sign, node)
            groups += _read_groups(text, node.parts[0])
        elif node.kind == "call" and node.text in others:
            _refuse_minus(text, sign, node)
            others[node.text].append(node)
        else:
            terms = _add_terms(text, terms, sign, node)
    fixed = tuple(sorted(terms, key=len))
    curves = tuple(_read_curve(text, node) for node in [*others["s"], *others["te"]])
    offsets = tuple(others["offset"])
    return Formula(text, response, trials, fixed, tuple(groups), curves, offsets)


# ---- inner ---------------------------------------------------------------------------------------


def _find_names(node: Node) -> list[Node]:
    """The names in a tree, but for those of functions and of their arguments."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        found += [one] if one.kind == "name" else []
        waiting += reversed(one.parts[1:] if one.kind == "=" else one.parts)
    return found


def _list_summands(node: Node) -> list[tuple[str, Node]]:
    """What is added and subtracted, with its sign."""
    pieces: list[list[tuple[str, Node]]] = []  # the last one first
    first: Node | None = node
    while first is not None and first.kind in {"+", "-"}:
        one, last = first, first.parts[-1]
        pieces.append(_list_summands(last) if one.kind == "+" else [(one.kind, last)])
        first = one.parts[0] if len(one.parts) == 2 else None
    if first is not None:
        inner = first.kind == "(" and first.parts[0].kind not in {"|", "||"}
        pieces.append(_list_summands(first.parts[0]) if inner else [("+", first)])
    return [pair for piece in reversed(pieces) for pair in piece]


def _add_terms(text: str, terms: list[Term], sign: str, node: Node) -> list[Term]:
    """Terms with those of one summand more, or without them; 0 takes the intercept off."""
    if node.kind == "number" and node.text not in {"0", "1"}:
        raise refuse(
            text, node.at, f"{node.text} is no term: 0 or 1 says whether to add a constant"
        )
    if node.kind == "number" and (node.text == "0") == (sign == "+"):
        return [term for term in terms if term != ()]
    new: list[Term] = [()] if node.kind == "number" else _expand(text, node)
    if sign == "-":
        return [term for term in terms if _key(term) not in map(_key, new)]
    return _join(terms, new)


def _expand(text: str, node: Node) -> list[Term]:
    """The terms that a node stands for."""
    if node.kind == "call" and node.text in _ALONE:
        raise refuse(
            text,
            node.at,
            f"{node.text}(...) is added to a sum, and stands in no product or group: a curve for "
            "each level is s(x, by=level)",
        )
    if node.kind in {"name", "call"}:
        return [(node,)]
    if node.kind == "(" and node.parts[0].kind not in {"|", "||"}:
        terms: list[Term] = []
        for sign, one in _list_summands(node.parts[0]):
            terms = _add_terms(text, terms, sign, one)
        return terms
    if node.kind in _PRODUCTS and len(node.parts) == 2:
        left = _expand(text, node.parts[0])
        if node.kind == "^":
            return _raise(text, left, node.parts[1])
        return _PRODUCTS[node.kind](left, _expand(text, node.parts[1]))
    if node.kind in {"|", "||"} or (node.kind == "(" and node.parts):
        raise refuse(
            text, node.at, "write the effects of a group in parentheses, as in (1 | group)"
        )
    raise refuse(text, node.at, f"{str(node)!r} is no term: arithmetic is written I(x + z)")


def _multiply(left: list[Term], right: list[Term]) -> list[Term]:
    return _join([], [_unite(one, other) for one in left for other in right])


def _nest(left: list[Term], right: list[Term]) -> list[Term]:
    whole: Term = ()
    for term in left:
        whole = _unite(whole, term)
    return _join(left, [_unite(whole, term) for term in right])


def _cross(left: list[Term], right: list[Term]) -> list[Term]:
    return _join(_join(left, right), _multiply(left, right))


_PRODUCTS: dict[str, Callable[[list[Term], list[Term]], list[Term]]] = {
    ":": _multiply,
    "*": _cross,
    "/": _nest,
    "^": _multiply,
}


def _raise(text: str, terms: list[Term], power: Node) -> list[Term]:
    if power.kind != "number" or not power.text.isdigit() or not 0 < int(power.text) < 10:
        raise refuse(text, power.at, "the power of a sum of terms is a number from 1 to 9")
    found: list[Term] = []
    for size in range(1, int(power.text) + 1):
        for some in combinations(terms, size):
            found = _join(found, [_unite(*some)])
    return found


def _unite(*terms: Term) -> Term:
    """The product of terms, in which each factor stands once."""
    return tuple({str(factor): factor for term in terms for factor in term}.values())


def _key(term: Term) -> frozenset[str]:
    return frozenset(str(factor) for factor in term)


def _join(terms: list[Term], new: list[Term]) -> list[Term]:
    return list({_key(term): term for term in [*new[::-1], *terms[::-1]]}.values())[::-1]


def _read_groups(text: str, bar: Node) -> list[GroupTerm]:
    """The effects of ``(effects | groups)``; ``a / b`` stands for a and a:b."""
    effects: list[Term] = [()]
    for sign, node in _list_summands(bar.parts[0]):
        effects = _add_terms(text, effects, sign, node)
    if not effects:
        raise refuse(text, bar.at, "no effect is left of the bar: write (1 | group)")
    found = _expand(text, bar.parts[1])
    for factor in (factor for term in found for factor in term):
        if factor.kind != "name":
            raise refuse(text, factor.at, "groups are columns: make one of this beforehand")
    ordered = tuple(sorted(effects, key=len))
    return [GroupTerm(ordered, groups, bar.kind == "|") for groups in found]


def _read_curve(text: str, node: Node) -> Curve:
    """A call of ``s`` or ``te``, whose arguments are columns, and then those with names."""
    named = {str(one.parts[0]): one.parts[1] for one in node.parts if one.kind == "="}
    over: tuple[Node, ...] = tuple(one for one in node.parts if one.kind != "=")
    if node.text == "s" and len(over) == 2 and over[1].kind == "number":  # s(x, 40)
        column, number = over
        over, named = (column,), {"k": number, **named}
    if len(over) != (1 if node.text == "s" else 2):
        raise refuse(
            text, node.at, "s is over one column, as in s(x), and te over two, as in te(x, z)"
        )
    for name, value in named.items():
        if name not in _CURVE_ARGUMENTS[node.text]:
            known = ", ".join(_CURVE_ARGUMENTS[node.text])
            raise refuse(text, value.at, f"{node.text} has no argument {name!r}: it has {known}")
    usual = SPLINES if node.text == "s" else SURFACE_SPLINES
    count = _read_number(named["k"]) if "k" in named else usual
    if not (LEAST_SPLINES <= count <= MOST_SPLINES and count % 1 == 0):
        raise refuse(
            text,
            named["k"].at,
            f"k is a number of splines from {LEAST_SPLINES} to {MOST_SPLINES:,}, as in s(x, k=40)",
        )
    period = _read_number(named["period"]) if "period" in named else None
    if period is not None and not 0.0 < period < float("inf"):
        raise refuse(text, named["period"].at, "a period is a number, as in s(hour, period=24)")
    by = named.get("by")
    if by is not None and by.kind not in {"name", "call"}:
        raise refuse(text, by.at, "by is a column, as in s(x, by=g): make one of this beforehand")
    return Curve(str(node), over, int(count), period, by, "id" in named)


# ``id`` as in mgcv: curves of one id have one scale.
_CURVE_ARGUMENTS = {"s": ("k", "by", "id", "period"), "te": ("k", "by", "id")}


def _read_number(node: Node) -> float:
    """A number that stands in a formula; 0 of anything else."""
    return float(node.text) if node.kind == "number" else 0.0


def _refuse_minus(text: str, sign: str, node: Node) -> None:
    if sign == "-":
        raise refuse(text, node.at, "only fixed terms can be taken off with '-'")
