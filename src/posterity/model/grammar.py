"""The grammar of formulas: text becomes a tree, by precedence (Pratt 1973). Nothing is evaluated.

From weak to strong: ``~``, ``|`` and ``||``, ``+ -``, ``* /``, ``:``, ``^`` (or ``**``), as in R.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[^\W\d][\w.]*|`[^`]+`)"
    r"|(?P<sign>\|\||\*\*|[-+*/:^|(),=~])|(?P<end>$)|(?P<strange>.))"
)
# What makes a name another term, where it has no backticks.
_SIGN = re.compile(r"[^\w. ]")
_STRENGTHS = {"~": 1, "|": 2, "||": 2, "+": 3, "-": 3, "*": 4, "/": 4, ":": 5, "^": 6}
_QUOTED = (
    ": write numbers and columns, as in s(hour, period=24), and names with blanks in backticks"
)
# A sign before a term binds as tightly as a product.
_SIGN_STRENGTH = 4


@dataclass(frozen=True)
class Node:
    """A name, a number, a call, a sign with its operands, or a parenthesis around a bar.

    Examples
    --------
    >>> tree = parse("y ~ x * log(z)")
    >>> tree.kind, str(tree)
    ('~', 'y ~ x * log(z)')
    """

    kind: str
    text: str
    at: int
    parts: tuple[Node, ...] = ()

    def __str__(self) -> str:
        inner = [str(part) for part in self.parts]
        if self.kind in {"name", "number"}:
            return (
                f"`{self.text}`" if self.kind == "name" and _SIGN.search(self.text) else self.text
            )
        if self.kind == "call":
            return f"{self.text}({', '.join(inner)})"
        if len(inner) == 1:
            return f"({inner[0]})" if self.kind == "(" else f"{self.kind}{inner[0]}"
        tight = self.kind in {":", "^", "="}
        return (self.kind if tight else f" {self.kind} ").join(inner)


def parse(formula: str) -> Node:
    """Return the tree of a formula.

    Raises
    ------
    ValueError
        For what can't be read; the message shows the place.
    """
    parser = _Parser(formula)
    try:
        tree = parser.read(0)
    except RecursionError:
        raise refuse(formula, parser.at, "too many signs or parentheses inside others") from None
    parser.expect("")
    return tree


def refuse(formula: str, at: int, what: str) -> ValueError:
    """Return the error for what stands at a place of a formula."""
    return ValueError(f"the formula can't be used: {what}\n    {formula}\n    {' ' * at}^")


def find_calls(node: Node) -> dict[str, int]:
    """The functions that are called in a tree, each with a place of it.

    Examples
    --------
    >>> find_calls(parse("y ~ log(x) + poly(z, 2)"))
    {'log': 4, 'poly': 13}
    """
    found, waiting = {}, [node]
    while waiting:  # a sum of a thousand terms is a tree as deep
        one = waiting.pop()
        if one.kind == "call":
            found[one.text] = one.at
        waiting += reversed(one.parts)
    return found


class _Parser:
    """A formula and the place that was read last."""

    def __init__(self, formula: str) -> None:
        self.formula, self._end = formula, 0
        self._advance()

    def read(self, strength: int) -> Node:
        """A tree of signs that bind more tightly than this."""
        tree = self._read_operand()
        while (found := _STRENGTHS.get(self.text, 0) * (self.kind == "sign")) > strength:
            sign, at = self._take()
            right = self.read(found - (sign == "^"))
            tree = Node(sign, sign, at, (tree, right))
        return tree

    def expect(self, text: str) -> None:
        """Go past this text; raise where another one stands."""
        if self.text != text:
            found = repr(self.text) if self.text else "the end"
            wanted = f"{text!r} is missing before" if text else "there is no place for"
            raise refuse(self.formula, self.at, f"{wanted} {found}")
        self._advance()

    def _read_operand(self) -> Node:
        kind, (text, at) = self.kind, self._take()
        if kind == "number":
            return Node("number", text, at)
        if kind == "name" and self.text == "(" and text[0] != "`":
            self._advance()
            return Node("call", text, at, self._read_arguments())
        if kind == "name":
            return Node("name", text.strip("`"), at)
        if text in {"+", "-"}:
            return Node(text, text, at, (self.read(_SIGN_STRENGTH),))
        if text == "(":
            inner = self.read(0)
            self.expect(")")
            return Node("(", "(", at, (inner,))
        found = repr(text) if text else "the end"
        raise refuse(self.formula, at, f"a term is missing before {found}")

    def _read_arguments(self) -> tuple[Node, ...]:
        found: list[Node] = []
        while self.text != ")":
            one = self.read(0)
            if self.text == "=":
                at = self._take()[1]
                one = Node("=", "=", at, (one, self.read(0)))
            found.append(one)
            if self.text != ")":
                self.expect(",")
        self._advance()
        return tuple(found)

    def _take(self) -> tuple[str, int]:
        taken = self.text, self.at
        self._advance()
        return taken

    def _advance(self) -> None:
        match = _TOKEN.match(self.formula, self._end)
        assert match is not None
        self.kind = str(match.lastgroup)
        self.text, self.at = match[self.kind], match.start(self.kind)
        self._end = match.end()
        if self.kind == "strange":
            hint = _QUOTED if self.text in "'\"" else ""
            raise refuse(self.formula, self.at, f"{self.text!r} means nothing here{hint}")
        if self.text == "**":
            self.text = "^"
