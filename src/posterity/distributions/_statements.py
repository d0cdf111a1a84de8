"""Statements about coefficients, such as "age > 0", parsed into weights."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from itertools import combinations

from posterity.distributions.guesses import did_you_mean

# Signs with space around them: names may hold others, as in "pre-war".
_SIGN = re.compile(r"\s+([+-])\s+")
_PRODUCT = re.compile(r"\s*\*\s*")


_COMPARISON = re.compile(r"<=|>=|<|>")


def read_statement(statement: str, names: Collection[str]) -> tuple[dict[str, float], float, float]:
    """Weights, and the low and high end between which the statement says that their sum lies.

    Raises ``ValueError`` where it can't be read.
    """
    # Signs of comparison may be part of a name.
    comparisons = list(_COMPARISON.finditer(statement))
    for some in [*((one,) for one in comparisons), *combinations(comparisons, 2)]:
        starts = [0, *(one.end() for one in some)]
        ends = [*(one.start() for one in some), len(statement)]
        read = [
            _read_sum(statement[start:end].strip(), names)
            for start, end in zip(starts, ends, strict=True)
        ]
        sides = [side for side in read if side is not None]
        signs = {one.group()[0] for one in some}
        if len(sides) < len(read) or len(signs) > 1:
            continue
        if len(sides) == 2:
            return _read_comparison(*(sides if signs == {"<"} else sides[::-1]))
        low, (weights, constant), high = sides if signs == {"<"} else sides[::-1]
        if not low[0] and not high[0]:
            return weights, low[1] - constant, high[1] - constant
    listed = ", ".join(repr(name) for name in list(names)[:20]) or "no names"
    raise ValueError(
        f"{statement!r} is not a comparison: write one of names and numbers, as in 'age > 0', "
        f"'b - a > 0.5' or '-0.1 < age < 0.1'; the coefficients are {listed}"
        f"{_suggest(statement, names)}"
    )


def _suggest(statement: str, names: Collection[str]) -> str:
    """The name that the first unknown word may be."""
    words = [word for word in re.split(r"[<>=*+\s]+", statement) if word not in names]
    found = (did_you_mean(word, names) for word in words)
    return next((hint for hint in found if hint), "")


def _read_comparison(
    less: tuple[dict[str, float], float], greater: tuple[dict[str, float], float]
) -> tuple[dict[str, float], float, float]:
    weights = {
        name: greater[0].get(name, 0.0) - less[0].get(name, 0.0)
        for name in {**greater[0], **less[0]}
    }
    return weights, less[1] - greater[1], math.inf


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
