"""The kernel on each instruction set that the processor offers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from timing import Figure, Run

from posterity.kernel.instructions import list_instruction_sets

NAME = "instruction_sets"
TITLE = "Processors of other kinds"
HOW = """\
The same work by the kernel's builds for narrower vectors than this processor's widest, each in
separate processes that take turns (`POSTERITY_ISA`). Times are processor time on one core, the
smallest of all rounds. The prior is given, so that only the kernel is measured."""

TARGETS = {"x86-64-v3": 1.4, "x86-64": 4.0}
# p -> rows: learned in a few milliseconds, between two interruptions.
SIZES = {10: 20_000, 50: 5_000, 200: 1_000}
PASSES = 20


def measure(run: Run) -> list[Figure]:
    *narrower, widest = list_instruction_sets()
    best: dict[str, dict[str, float]] = {}
    for _ in range(run.process_rounds):
        for name in (widest, *narrower):
            seconds = _child(name)
            known = best.setdefault(name, seconds)
            best[name] = {what: min(known[what], value) for what, value in seconds.items()}
    return [
        Figure(
            f"{what}, {name}", widest, value, best[widest][what], "ns/row", "within", TARGETS[name]
        )
        for name in reversed(narrower)
        for what, value in best[name].items()
    ]


def _child(name: str) -> dict[str, float]:
    environment = dict(
        os.environ, POSTERITY_ISA=name, POSTERITY_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"
    )
    command = [sys.executable, str(Path(__file__).with_name("instruction_set_child.py"))]
    command.append(json.dumps({"sizes": SIZES, "passes": PASSES}))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)
