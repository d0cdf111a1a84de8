"""Run programs in processes of their own, and see how long and how large they were."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

# A child's peak memory counts from that of the process that starts it. This one has imported half
# of PyPI by now, so a bare interpreter starts the child, and times it as well.
_LAUNCHER = """
import os, sys, time
out = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
start = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=out)
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss, status)
"""


@dataclass(frozen=True)
class Child:
    """`seconds` from start to end, and `peak` resident memory in MB."""

    seconds: float
    peak: float


def run(*arguments: str) -> Child:
    """Run a program to its end. Raises `RuntimeError` if it fails."""
    launched = subprocess.run(
        [sys.executable, "-S", "-E", "-c", _LAUNCHER, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, peak, status = launched.stdout.split()
    if int(status):
        raise RuntimeError(f"failed: {' '.join(arguments)}")
    scale = 1e6 if sys.platform == "darwin" else 1e3  # macOS counts bytes, Linux kB
    return Child(float(seconds), float(peak) / scale)


def python(code: str, *arguments: str) -> Child:
    """Run a line of Python in a new interpreter, the one that runs this."""
    return run(sys.executable, "-c", code, *arguments)
