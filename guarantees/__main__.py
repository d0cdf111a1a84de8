"""Measure what intervals hold and write it as a page: python -m guarantees --output FILE."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from guarantees import topics
from guarantees.check import Result, run_all

INTRODUCTION = """# What is guaranteed

A 95% interval should hold the truth 95 times in 100. This page says how often it does, for each
estimator as it comes, without tuning. Every line was simulated: a truth was drawn, data were drawn
from it, a model was fitted, and its intervals were compared with the truth. "Held" is the share of
truths inside, with its standard error; "bounds" is what `make test-all` insists on, but for three
standard errors. Where intervals are known to hold less, as of streams that come sorted by their
target, the page says so, too.

`make guarantees` makes this page anew.
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
