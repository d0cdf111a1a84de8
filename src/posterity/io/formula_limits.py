"""Formulas that would never end, refused before they are tried."""

from __future__ import annotations

import ast
import math
from typing import Any

from posterity.io.errors import TableError

# Of a formula: characters; terms, those that are tried and dropped included; functions of a basis.
LONGEST, MOST_TERMS, MOST_FUNCTIONS, HIGHEST_POWER = 20_000, 100_000, 1_000, 100
# Functions whose numbers say how many columns they make.
BASES = frozenset({"poly", "bs", "cr", "cc", "cs", "te", "basis_spline", "cubic_spline"})
COUNTS = frozenset({"df", "degree"})


def refuse_endless(formula: str, parser: Any) -> None:
    """Raise ``TableError`` where a formula asks for more than any table needs.

    ``parser`` is formulaic's; what it can't parse is left to it to complain of.
    """
    if len(formula) > LONGEST:
        raise TableError(f"the formula has {len(formula):,} characters: use at most {LONGEST:,}")
    try:
        counts = [_count_terms(side) for side in _split_sides(parser.get_ast(formula))]
    except RecursionError:
        raise TableError("the formula is nested too deeply: write fewer terms in a row") from None
    except TableError:
        raise
    except Exception:
        return
    if not all(count <= MOST_TERMS for count in counts):
        raise TableError(f"the formula has more than {MOST_TERMS:,} terms: use smaller powers")


def _split_sides(tree: Any) -> list[Any]:
    if getattr(getattr(tree, "operator", None), "symbol", None) in ("~", "|"):
        return [side for part in tree.args for side in _split_sides(part)]
    return [tree]


def _count_terms(node: Any) -> float:
    """Return an upper bound of the number of terms that a node expands to."""
    if not hasattr(node, "operator"):
        if node.kind.name == "PYTHON":
            _refuse_endless_code(str(node.token))
        return 1.0
    symbol, counts = node.operator.symbol, [_count_terms(part) for part in node.args]
    if symbol in ("**", "^"):
        power = float(str(node.args[1].token)) if _is_number(node.args[1]) else math.inf
        return counts[0] ** power if max(counts[0], power) <= HIGHEST_POWER else math.inf
    if symbol in ("*", "/", ":", "in"):
        return math.prod(counts) + (0.0 if symbol == ":" else sum(counts))
    return max(sum(counts), 1.0)


def _is_number(node: Any) -> bool:
    return not hasattr(node, "operator") and str(node.token).isdigit() and len(str(node.token)) < 9


def _refuse_endless_code(code: str) -> None:
    """Refuse endless computations: huge powers, bases of thousands of functions."""
    try:
        tree = ast.parse(code.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError):
        return  # formulaic says what is wrong
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift):
            if not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node.left)):
                raise TableError(f"the formula computes {code!r}: write the result instead")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in BASES:
            # Bounds and knots may be as large as they like.
            counts = [*node.args[1:2], *(k.value for k in node.keywords if k.arg in COUNTS)]
            largest = max(map(_number, counts), default=0.0)
            if largest > MOST_FUNCTIONS:
                raise TableError(
                    f"the formula asks for a basis of {largest:,.0f} functions, in {code!r}: "
                    f"use at most {MOST_FUNCTIONS:,}"
                )


def _number(node: ast.AST) -> float:
    value = node.value if isinstance(node, ast.Constant) else 0.0
    return float(value) if isinstance(value, int | float) else 0.0
