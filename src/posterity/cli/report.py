"""A validation in words and in a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from posterity.cli import text
from posterity.cli.text import escape
from posterity.evaluation import (
    ClassificationResult,
    PairedComparison,
    Slices,
    SurvivalScores,
    ValidationResult,
)
from posterity.evaluation.quantiles import QuantileResult
from posterity.report import words
from posterity.report.comparison import in_words
from posterity.report.lifetimes import alive_rows, survival_headline, survival_rows
from posterity.report.words import caveats, headline, rows


def print_report(result: ValidationResult, title: str, *, forgetting: str = "none") -> None:
    """Print the headline, the table and its caveats on standard output."""
    shown = [*rows(result)]
    if forgetting != "none":
        shown.append(("forgetting", escape(forgetting), "how old rows lost their say"))
    console = _print_scores(title, escape(headline(result)), shown)
    for name, each in result.slices.items():
        console.print()
        console.print(_slices(name, each))
    for caveat in caveats(result):
        console.print(f"\n{escape(caveat)}")


def print_labels(result: ClassificationResult, title: str) -> None:
    """Print the scores of a classifier on standard output."""
    remark = (
        f"Of {result.n_rows:,} labels, each predicted before it was learned, "
        f"{100 * result.accuracy:.1f}% were right."
    )
    scores = (
        ("accuracy", result.accuracy, "share of rows whose most probable label came"),
        ("accuracy of no change", result.no_change, "of saying the label of the row before"),
        ("log loss", result.log_loss, "minus mean log probability of what came, in nats"),
        ("Brier score", result.brier, "mean square error of the probabilities, from 0 to 2"),
        ("calibration error", result.calibration.error, "how far probabilities are off on average"),
    )
    shown = [(name, f"{value:.4g}", meaning) for name, value, meaning in scores]
    console = _print_scores(title, remark, shown)
    if result.n_impossible:
        console.print(f"\n{result.n_impossible:,} labels had been given probability 0.")


def print_quantiles(result: QuantileResult, title: str) -> None:
    """Print the scores of a quantile on standard output."""
    share, q = result.share_below, result.quantile
    n_scored = result.n_rows - result.n_unscored
    spread = max(0.01, 2.0 * (q * (1.0 - q) / max(n_scored, 1)) ** 0.5)
    verdict = "as promised" if abs(share - q) <= spread else "too few" if share < q else "too many"
    remark = (
        f"Each of {result.n_rows:,} rows was predicted before it was learned.\n"
        f"{100 * share:.1f}% of the targets were at or below the predicted {q:g} quantile: "
        f"{verdict}."
    )
    shown = (
        ("share below", f"{100 * share:.2f}%", f"targets at or below the prediction; {100 * q:g}%"),
        ("pinball loss", f"{result.pinball_loss:.5g}", "what the true quantile makes least"),
        ("skill over quantile so far", f"{100 * result.skill:.1f}%",
         f"its loss: {result.baseline_loss:.5g}"),
    )  # fmt: skip
    console = _print_scores(title, remark, shown)
    if result.n_unscored:
        console.print(f"\n{result.n_unscored:,} rows at the start were not scored: nothing known.")


def print_lifetimes(result: SurvivalScores, title: str) -> None:
    """Print the scores of lifetimes, and who was alive when, on standard output."""
    console = _print_scores(title, survival_headline(result), survival_rows(result))
    header, rows = alive_rows(result)
    table = text.table(*header)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)


def _print_scores(title: str, remark: str, scores: Iterable[Sequence[str]]) -> Any:
    """Print a title, a remark, and scores with what each is; return the console."""
    console = text.console()
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(remark)
    table = text.table("score", "value")
    table.add_column("what it is", style="dim")
    for row in scores:
        table.add_row(*row)
    console.print()
    console.print(table)
    return console


def _slices(name: str, slices: Slices) -> Any:
    """Errors, and coverage and width of the intervals, slice by slice."""
    header, rows = words.slices(slices)
    table = text.table(f"by {escape(name)}", *header)
    for first, *others in rows:
        table.add_row(escape(first), *others)
    return table


def print_comparison(comparison: PairedComparison, title: str) -> None:
    """Print the ranking of several models, and how sure it is, on standard output."""
    console = text.console()
    console.print(f"[bold]{escape(title)}[/bold]")
    for line in in_words(comparison):
        console.print(escape(line))
    table = text.table("model", "loss", "behind", "s.e.", "p-value", "mean error", "held")
    for name, loss, behind, error, p_value, mae in comparison.cells():
        coverage = comparison.results[name].coverage.values()
        held = " ".join(f"{100 * share:.1f}%" for share in coverage)
        table.add_row(escape(name), loss, behind, error, p_value, mae, held)
    console.print()
    console.print(table)
    for model, each in comparison.results.items():
        for name, slices in each.slices.items():
            console.print()
            console.print(escape(model))
            console.print(_slices(name, slices))
    console.print(
        "\nbehind: mean loss less that of the best, and its standard error. "
        "held: targets inside their intervals."
    )
