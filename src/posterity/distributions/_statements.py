"""Statements about coefficients, such as "age > 0", read into weights."""

from __future__ import annotations

import re
from collections.abc import Collection

# Signs with space around them: names may hold others, as in "pre-war".
_SIGN = re.compile(r"\s+([+-])\s+")
_PRODUCT = re.compile(r"\s*\*\s*")


def read_statement(statement: str, names: Collection[str]) -> tuple[dict[str, float], float]:
    """Weights and a constant: the statement says that their sum is positive.

    Raises ``ValueError`` where it can't be read.
    """
    for comparison in re.finditer(r"<=|>=|<|>", statement):
        sides = statement[: comparison.start()], statement[comparison.end() :]
        left, right = (_read_sum(side.strip(), names) for side in sides)
        if left is not None and right is not None:
            greater, less = (left, right) if ">" in comparison.group() else (right, left)
            weights = {
                name: greater[0].get(name, 0.0) - less[0].get(name, 0.0)
                for name in {**greater[0], **less[0]}
            }
            return weights, greater[1] - less[1]
    listed = ", ".join(repr(name) for name in list(names)[:20]) or "no names"
    raise ValueError(
        f"{statement!r} is not a comparison: write one of names and numbers, as in 'age > 0' or "
        f"'b - a > 0.5'; the coefficients are {listed}"
    )


def _read_sum(side: str, names: Collection[str]) -> tuple[dict[str, float], float] | None:
    """Weights and constant of one side; None where it is no sum of names and numbers."""
    terms = [side] if side in names else _SIGN.split(side)
    weights: dict[str, float] = {}
    constant = 0.0
    for place in range(0, len(terms), 2):
        sign = -1.0 if place and terms[place - 1] == "-" else 1.0
        term = _read_term(terms[place], names)
        if term is None:
            return None
        name, number = term
        if name is None:
            constant += sign * number
        else:
            weights[name] = weights.get(name, 0.0) + sign * number
    return weights, constant


def _read_term(term: str, names: Collection[str]) -> tuple[str | None, float] | None:
    """A name and what it is multiplied by, or None and a number."""
    if term in names:
        return term, 1.0
    if term.startswith("-") and term[1:] in names:
        return term[1:], -1.0
    factor, *rest = _PRODUCT.split(term, maxsplit=1)
    try:
        number = float(factor)
    except ValueError:
        return None
    if not rest:
        return None, number
    return (rest[0], number) if rest[0] in names else None
