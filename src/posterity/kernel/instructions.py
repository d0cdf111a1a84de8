"""Choice of the build of the kernel: where there are several, each has a folder of its own."""

import os
import platform
from functools import cache
from pathlib import Path

from posterity.kernel._processor import level

# The level that each asks of the processor. For processors other than x86-64 there is one build.
LEVELS = {"x86-64": 1, "x86-64-v3": 3, "x86-64-v4": 4}
FOLDER = Path(__file__).parent


def list_instruction_sets() -> list[str]:
    """The instruction sets that the kernel can use here, from the narrowest to the widest.

    Examples
    --------
    >>> len(list_instruction_sets()) >= 1
    True
    """
    return [name for name in _list_built_levels() if LEVELS.get(name, 1) <= level()]


@cache
def instruction_set() -> str:
    """The instruction set that the kernel uses: the widest that the processor offers.

    The environment variable ``POSTERITY_ISA`` names another one, before the kernel is imported:
    "x86-64" (SSE2), "x86-64-v3" (AVX2 and FMA) or "x86-64-v4" (AVX-512). Results agree to rounding.

    Returns
    -------
    str
        The name; on processors other than x86-64 that of their architecture, such as "aarch64".

    Examples
    --------
    >>> instruction_set() in list_instruction_sets()
    True
    """
    named = os.environ.get("POSTERITY_ISA", "")
    if named and named not in list_instruction_sets():
        which = (
            "which this processor doesn't offer"
            if named in _list_built_levels()
            else "which is none"
        )
        raise ValueError(
            f"POSTERITY_ISA is {named!r}, {which}: "
            f"it must be one of {', '.join(list_instruction_sets())}"
        )
    if not list_instruction_sets():
        raise ImportError(
            f"The kernel was built for {', '.join(_list_built_levels())} alone, which this "
            "processor doesn't offer: install posterity here anew, or build it with all "
            "instruction sets (make INSTRUCTION_SETS=all)"
        )
    return named or list_instruction_sets()[-1]


def _list_built_levels() -> list[str]:
    return [name for name in LEVELS if (FOLDER / name).is_dir()] or [platform.machine()]
