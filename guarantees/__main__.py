"""Measure what intervals hold and write it as a page: python -m guarantees --output FILE."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from guarantees import topics
from guarantees.check import Result, run_all

INTRODUCTION = """# What is guaranteed

A 95% interval should contain the truth 95 times in 100. This page shows how often it does, for each
estimator with its default settings. Every line comes from a simulation: draw a truth, draw data
from it, fit a model, and compare its intervals with the truth. "Held" is the share of intervals
that contain the truth, with its standard error. "Bounds" is the range that
`make test-all` requires, widened by three standard errors. Where intervals are known to contain the
truth less often, as for streams that come sorted by their target, the page says so.

To measure these figures again, run `make guarantees`.
"""


def main() -> None:
    """Run the checks that the command line names, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of modules in guarantees/")
    parser.add_argument("--output", type=Path, help="write the page there instead of printing it")
    options = parser.parse_args()
    results = run_all(topics.checks(options.only), os.cpu_count() or 1)
    page = INTRODUCTION + "".join(_tables(results))
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    else:
        print(page, end="")
    failed = [result for result in results if not result.passed]
    for result in failed:
        print(f"outside its bounds: {result.check.topic}: {_row(result)}", file=sys.stderr)
    sys.exit(bool(failed))


def _tables(results: list[Result]) -> list[str]:
    tables = []
    for topic in dict.fromkeys(result.check.topic for result in results):
        rows = "\n".join(_row(result) for result in results if result.check.topic == topic)
        tables.append(
            f"\n## {topic}\n\n| setting | level | held | bounds |\n|---|---|---|---|\n{rows}\n"
        )
    return tables


def _row(result: Result) -> str:
    check = result.check
    held = f"{result.held:.3f} ± {result.error:.3f}"
    return f"| {check.setting} | {check.level:.0%} | {held} | {check.lowest} to {check.highest} |"


if __name__ == "__main__":
    main()
