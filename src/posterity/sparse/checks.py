"""Checks before a diagonal model starts, or learns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from posterity.forgetting import Stabilized
from posterity.forgetting.words import read_forgetting
from posterity.kernel.values import is_word
from posterity.linear.categories import Missing
from posterity.linear.coding import seems_a_code, warn_of_codes
from posterity.sparse.parts import Levels, Part

Interactions = int | Sequence[tuple[str, str]] | None

# Text of so many rows, each with a level of its own, is no category.
MANY_ROWS = 100


@dataclass(kw_only=True, eq=False, repr=False)
class WideParameters:
    """Parameters that all models of many features have."""

    prior_precision: float | str = "auto"
    fit_intercept: bool = True
    interactions: Interactions = None
    hash_size: int | None = None
    categorical_features: Levels = "auto"
    missing: Missing = "error"
    forgetting: Stabilized | str | None = None
    # What it may forget by.
    _memories: ClassVar[tuple[type, ...]] = (Stabilized,)


def check_parameters(model: WideParameters) -> None:
    """Raise ``ValueError`` for a parameter that is out of its range."""
    precision: object = model.prior_precision
    forgetting, size = read_forgetting(model.forgetting), model.hash_size
    missing, interactions = model.missing, model.interactions
    number = isinstance(precision, Real) and 0.0 < float(precision) < np.inf
    if not (number or is_word(precision, "auto")):
        raise ValueError(
            f"prior_precision is {precision!r}: it must be 'auto' or a positive number (a flat "
            "prior leaves features that occur once or never undetermined)"
        )
    if forgetting is not None and not isinstance(forgetting, model._memories):
        words = " or ".join(
            f"{kind.__name__}({of}=...)"
            for kind in model._memories
            for of in ("discount", "half_life")
        )
        raise ValueError(f"forgetting is {model.forgetting!r}: this model supports only {words}")
    if size is not None and not (isinstance(size, int) and 1 <= size < 2**31):
        raise ValueError(f"hash_size is {size!r}: it must be a whole number, as in 2**22")
    if missing not in ("error", "level"):
        raise ValueError(f"missing is {missing!r}: it must be 'error' or 'level'")
    if isinstance(interactions, int | str) and interactions != 2:
        raise ValueError(
            f"interactions is {interactions!r}: it must be 2 for all pairs of features, a list of "
            "pairs of columns, or None"
        )


def warn_of_texts(n: int, parts: list[Part]) -> None:
    """Warn of text that has a level for each row, of which nothing can be learned."""
    for part in parts:
        keys = part.keys
        if keys is None or n < MANY_ROWS or part.rows is not None:
            continue
        if len(keys.labels) == n and keys.kinds == ("text",):
            warnings.warn(
                f"column {part.name!r} has a different level in each of its {n:,} rows: none "
                "can be learned; drop it, or give lists of tokens",
                UserWarning,
                stacklevel=7,
            )


def warn_of_numbers(parts: list[Part]) -> None:
    """Warn of columns of a frame whose numbers seem to be codes."""
    for part in parts:
        if part.rows is None and part.values is not None and seems_a_code(part.name):
            warn_of_codes(part.name, part.values)


def make_row(x: Any) -> Any:
    """Rows with one row ``x``, a mapping, a list of tokens or a 1-D array."""
    return x[None] if isinstance(x, np.ndarray) and x.dtype.kind in "biuf" else [x]
