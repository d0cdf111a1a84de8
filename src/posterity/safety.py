"""What input from elsewhere must not do: fill the memory, or write to a terminal what it likes."""

from __future__ import annotations

import os
import unicodedata
from functools import lru_cache


def escaped(text: str) -> str:
    r"""The text, with control characters written out, which a terminal would obey.

    Examples
    --------
    >>> escaped("one\ttwo\x1b[2J\n")
    'one\ttwo\\x1b[2J\n'
    """
    if text.isprintable():
        return text
    return "".join(
        repr(letter)[1:-1] if _is_control(letter) and letter not in "\n\t" else letter
        for letter in text
    )


def _is_control(letter: str) -> bool:
    # Cc: control; Cf: format, among them those that turn the direction of text around.
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs")


def check_memory(n_bytes: float, what: str, advice: str = "") -> None:
    """Raise ``ValueError`` where ``what`` would take more memory than this machine has.

    ``advice`` says what to do then.

    Examples
    --------
    >>> check_memory(1e18, "a model of 1,000,000,000 columns")
    Traceback (most recent call last):
    ValueError: a model of 1,000,000,000 columns needs 1,000,000,000 GB of memory, and ...
    """
    if n_bytes > machine_memory():
        raise ValueError(
            f"{what} needs {n_bytes / 1e9:,.0f} GB of memory, and this machine has "
            f"{machine_memory() / 1e9:,.0f} GB{advice and ': '}{advice}"
        )


def check_model_memory(n_columns: int, triangles: int = 4) -> None:
    """Raise ``ValueError`` where a model of so many columns could be begun, but not read.

    It takes so many triangles of (n_columns + 1)^2 numbers at once to learn and to be read.

    Examples
    --------
    >>> check_model_memory(2_000_000)
    Traceback (most recent call last):
    ValueError: a model of 2,000,000 columns needs 128,000 GB of memory, and ...
    """
    check_memory(
        8.0 * triangles * (n_columns + 1.0) ** 2,
        f"a model of {n_columns:,} columns",
        "use fewer columns, for example by sklearn.random_projection or sklearn.feature_selection",
    )


@lru_cache(maxsize=1)
def machine_memory() -> float:
    """Bytes of memory that this machine has; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


__all__ = ["check_memory", "check_model_memory", "escaped", "machine_memory"]
