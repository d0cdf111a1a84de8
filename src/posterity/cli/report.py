"""A validation in words and in a table."""

from __future__ import annotations

from collections.abc import Iterator

from posterity.evaluation import ValidationResult


def print_report(result: ValidationResult, title: str, *, forgetting: str = "none") -> None:
    """Print the headline, the table and its caveats on standard output."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(title)}[/bold]")
    console.print(escape(headline(result)))
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("score")
    table.add_column("value", justify="right")
    table.add_column("what it is", style="dim")
    for row in rows(result):
        table.add_row(*row)
    if forgetting != "none":
        table.add_row("forgetting", escape(forgetting), "how old rows lost their say")
    console.print()
    console.print(table)
    for caveat in caveats(result):
        console.print(f"\n{escape(caveat)}")


def headline(result: ValidationResult) -> str:
    """Say in words what the scores mean.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1))
    >>> y = X[:, 0] + rng.normal(size=5000)
    >>> print(headline(progressive_validation(BayesianLinearRegression(), X, y)))
    Each of 5,000 rows was predicted before it was learned.
    Predictions were off by 0.79... on average.
    95% intervals held 9...% of the targets: as promised.
    """
    lines = [
        f"Each of {result.n_rows:,} rows was predicted before it was learned.",
        f"Predictions were off by {result.mae:.4g} on average.",
    ]
    n_scored = result.n_rows - result.n_unscored
    for level, share in result.coverage.items():
        if n_scored:
            lines.append(
                f"{100 * level:g}% intervals held {100 * share:.1f}% of the targets: "
                f"{verdict(level, share, n_scored)}."
            )
    return "\n".join(lines)


def verdict(level: float, share: float, n_scored: int) -> str:
    """Say whether coverage is what was promised: to one point, or to what chance explains.

    Examples
    --------
    >>> verdict(0.95, 0.952, 1000)
    'as promised'
    >>> verdict(0.95, 0.80, 1000)
    'too few, the intervals are too narrow'
    """
    spread = max(0.01, 2.0 * (level * (1.0 - level) / n_scored) ** 0.5)
    if share < level - spread:
        return "too few, the intervals are too narrow"
    if share > level + spread:
        return "more than promised, the intervals are too wide"
    return "as promised"


def rows(result: ValidationResult) -> Iterator[tuple[str, str, str]]:
    """Name, value and meaning of each score."""
    yield "mean absolute error", f"{result.mae:.5g}", "distance of prediction and target"
    yield "root mean squared error", f"{result.rmse:.5g}", "the same, large errors weigh more"
    yield "mean CRPS", f"{result.crps:.5g}", "error of the distribution; less is better"
    yield "mean log score", f"{result.log_score:.5g}", "log density of the target; more is better"
    for level, share in result.coverage.items():
        name = f"{100 * level:g}% interval"
        yield f"{name}: coverage", f"{100 * share:.2f}%", "targets inside it"
        yield f"{name}: width", f"{result.width[level]:.5g}", "mean width; narrower is sharper"


def caveats(result: ValidationResult) -> Iterator[str]:
    """Name the rows that some scores leave out."""
    if result.n_unscored:
        yield (
            f"The first predictions know too little to have a width: {_rows(result.n_unscored)} "
            "counted in the errors only."
        )
    if result.n_certain:
        yield f"{_rows(result.n_certain)} predicted with certainty: not in the log score."


def _rows(n: int) -> str:
    return "1 row" if n == 1 else f"{n:,} rows"
