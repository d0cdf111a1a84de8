"""Protection against hostile input: too much memory, and control characters on a terminal."""

from __future__ import annotations

import math
import os
import unicodedata
from functools import lru_cache
from pathlib import Path

# Where Linux tells what a container may take, in the second version of its control groups and in
# the first.
CONTAINER_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


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


def check_model_memory(n_columns: int, triangles: int = 8) -> None:
    """Raise ``ValueError`` where a model of so many columns could be begun, but not read.

    It takes so many triangles of (n_columns + 1)^2 numbers at once to learn and to be read, all
    covariances included.

    Examples
    --------
    >>> check_model_memory(2_000_000)
    Traceback (most recent call last):
    ValueError: a model of 2,000,000 columns needs 256,000 GB of memory, and ...
    """
    check_memory(
        8.0 * triangles * (n_columns + 1.0) ** 2,
        f"a model of {n_columns:,} columns",
        "use fewer columns, for example by sklearn.random_projection or sklearn.feature_selection",
    )


@lru_cache(maxsize=1)
def machine_memory() -> float:
    """Bytes of memory that this machine has, or a limit of the process or its container, if less.

    Infinite where it does not tell.
    """
    return min(
        _read_physical_memory(), _process_limit(), *map(_read_container_limit, CONTAINER_LIMITS)
    )


def _read_physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _process_limit() -> float:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, AttributeError, ValueError, OSError):
        return math.inf
    return math.inf if limit == resource.RLIM_INFINITY else float(limit)


def _read_container_limit(path: str) -> float:
    try:
        return float(Path(path).read_text())  # "max" where there is none
    except (ValueError, OSError):
        return math.inf
