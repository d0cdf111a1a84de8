"""A first look: real data, honest intervals, a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from posterity.cli.outputs import check_place
from posterity.cli.report import print_report
from posterity.evaluation import progressive_validation
from posterity.files.writing import replace_atomically

_LEVELS = (0.5, 0.95)


def run(output: str) -> None:
    """Validate on the diabetes data in file order, print the scores, write the figure."""
    from sklearn.datasets import load_diabetes

    from posterity import BayesianLinearRegression
    from posterity.plots import plot_validation

    path = check_place(output)
    X, y = load_diabetes(return_X_y=True)
    result = progressive_validation(BayesianLinearRegression(), X, y, levels=_LEVELS)
    print_report(
        result, f"Diabetes: progression after a year, {len(y)} patients in the order of the file"
    )
    figure = plot_validation(
        result,
        f"Learning diabetes progression, one of {len(y)} patients at a time",
        unit="progression score",
    )
    write_png(figure, path)
    click.echo(f"\nCoverage and error along time are drawn in {path}")


def write_png(figure: Any, path: Path, dpi: int = 150) -> None:
    """Write a figure, whole or not at all."""
    with replace_atomically(path) as file:
        figure.savefig(file, format="png", dpi=dpi)
