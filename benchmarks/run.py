"""Time posterity beside its peers: python benchmarks/run.py [--only NAME] [--quick]."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import report
from timing import FULL, QUICK, Bystanders, Calls, Figure, Run

NAMES = (
    "streams",
    "forgetting",
    "calls",
    "label_calls",
    "single_rows",
    "slowest_calls",
    "one_row",
    "adapters",
    "batch",
    "instruction_sets",
    "groups",
    "evidence",
    "likelihoods",
    "calibration",
    "command",
    "out_of_core",
    "cluster",
    "cluster_dask",
    "imports",
)


def main() -> None:
    options = _options()
    run = QUICK if options.quick else FULL
    bystanders, installed = Bystanders(), report.installed_files()
    groups, page = [], ""
    for name in options.only or NAMES:
        groups.append(_measured(name, run))
        replaced = report.installed_files() != installed
        notes = report.machine() + caveats(options.quick, replaced, bystanders.share())
        page = report.page(groups, notes)
        if options.output:  # after each group: a later one may fail
            options.output.write_text(page, encoding="utf-8")
    print(page, end="")


def _measured(name: str, run: Run) -> tuple[str, str, list[Figure | Calls]]:
    """Title, method and figures of one group."""
    start = time.perf_counter()
    try:
        module = __import__(name)
    except ModuleNotFoundError as error:
        sys.exit(f"{name} needs {error.name}: pip install --group bench")
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    figures = module.measure(run)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return module.TITLE, module.HOW, figures


def caveats(quick: bool, replaced: bool, others: float | None) -> list[str]:
    caveats = []
    if replaced:
        caveats.append("posterity was installed anew during the run: figures of two builds, void.")
    if quick:
        caveats.append("A quick run: few rows, few rounds; not to be quoted.")
    if others is not None:
        busy = f"Other programs took {others:.0%} of the machine's cores during the run"
        caveats.append(f"{busy}{': run it again when it is idle.' if others > 0.1 else '.'}")
    return caveats


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=NAMES, help="measure this group alone")
    parser.add_argument("--quick", action="store_true", help="a rough answer in under a minute")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the page here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
