"""Imports, each in a new interpreter."""

from __future__ import annotations

from statistics import median

import children
from timing import Figure, Run, rounds_of

NAME = "imports"
TITLE = "Imports"
HOW = """\
Whole interpreters, from start to end, each running one line, in turn."""

LINES = {
    "from posterity import BayesianLinearRegression": ("import sklearn.base", 1.15),
    "import posterity": ("pass", None),
}


def measure(run: Run) -> list[Figure]:
    lines = [line for ours, (peer, _) in LINES.items() for line in (ours, peer)]
    measures = {line: lambda line=line: children.python(line).seconds for line in lines}
    rounds_of(measures, 1)  # from here on every file is in the system's cache
    values = rounds_of(measures, 2 * run.process_rounds + 1)
    ms = {line: median(seconds) * 1e3 for line, seconds in values.items()}
    return [
        Figure(f"`{line}`", f"`{peer}`", ms[line], ms[peer], "ms", "within", target)
        for line, (peer, target) in LINES.items()
    ]
