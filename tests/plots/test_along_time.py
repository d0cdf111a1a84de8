"""Figures say what the numbers say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="needs Matplotlib (posterity[plots])")
from matplotlib.figure import Figure

from posterity import BayesianLinearRegression
from posterity.evaluation import ValidationResult, progressive_validation
from posterity.plots import plot_coverage_along_time, plot_error_along_time, plot_validation


@pytest.fixture(scope="module")
def result() -> ValidationResult:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1003, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=1003)
    return progressive_validation(BayesianLinearRegression(), X, y, levels=(0.5, 0.95))


def test_error_ends_at_the_overall_error(result: ValidationResult) -> None:
    ax = plot_error_along_time(result, Figure().subplots(), unit="metres")
    line = next(line for line in ax.lines if line.get_label() == "all rows so far")
    x, y = line.get_data()
    assert x[-1] == 1003
    assert y[-1] == pytest.approx(result.mae)
    assert ax.get_ylabel() == "mean absolute error (metres)"
    assert ax.get_xlabel() == "rows seen"
    assert ax.get_title(loc="left")


def test_coverage_ends_at_the_overall_coverage(result: ValidationResult) -> None:
    ax = plot_coverage_along_time(result, Figure().subplots())
    for level in (0.5, 0.95):
        label = f"{100 * level:g}% interval, all rows so far"
        line = next(line for line in ax.lines if line.get_label() == label)
        assert line.get_ydata()[-1] == pytest.approx(result.coverage[level])
    assert ax.get_ylabel() == "share of targets inside the interval"
    assert ax.get_ylim()[0] == 0.0


def test_levels_differ_without_colour(result: ValidationResult) -> None:
    ax = plot_coverage_along_time(result, Figure().subplots())
    named = [line for line in ax.lines if "interval" in str(line.get_label())]
    assert len({line.get_linestyle() for line in named}) == len(named) == 2


def test_dots_are_means_of_stretches(result: ValidationResult) -> None:
    ax = plot_error_along_time(result, Figure().subplots())
    dots = next(line for line in ax.lines if str(line.get_label()).startswith("each "))
    x, y = dots.get_data()
    assert 8 <= len(x) <= 24
    n_joined = -(-len(result.along) // 24)
    rows = result.along.n_rows[:n_joined]
    expected = np.average(result.along.mae[:n_joined], weights=rows)
    assert y[0] == pytest.approx(expected)
    assert x[0] == rows.sum() / 2


def test_axes_are_made_where_none_are_given(result: ValidationResult) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    plt.switch_backend("agg")
    try:
        assert plot_error_along_time(result).figure is not plot_coverage_along_time(result).figure
    finally:
        plt.close("all")
        plt.switch_backend(before)


def test_one_row_is_enough() -> None:
    one = progressive_validation(BayesianLinearRegression(), np.ones((1, 1)), np.ones(1))
    assert len(plot_validation(one, "One row").axes) == 4


def test_figure_is_titled_and_not_registered(result: ValidationResult) -> None:
    import matplotlib.pyplot as plt

    figure = plot_validation(result, "A title")
    assert figure.get_suptitle() == "A title"
    assert len(figure.axes) == 4
    assert not plt.get_fignums()


def test_without_matplotlib_the_cure_is_named() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from posterity.plots import plot_error_along_time\n"
        "try:\n    plot_error_along_time(None)\n"
        "except ModuleNotFoundError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "figures need Matplotlib: pip install 'posterity[plots]'\n"
