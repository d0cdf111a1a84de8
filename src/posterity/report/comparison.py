"""The report on several models beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from posterity.evaluation import PairedComparison
from posterity.evaluation.paired_result import p_value_text
from posterity.report import charts
from posterity.report.page import Page, table, tag
from posterity.report.validation import About, describe_command, problems, slice_tables

LOSSES = {
    "log_score": "minus the log density of the target, in nats a row",
    "crps": "error of the predictive distribution (CRPS)",
    "absolute": "absolute error",
    "squared": "squared error",
}
SIGNIFICANT_P_VALUE = 0.05
# Models so many times as far behind as the next better one are not drawn with the others.
FAR_BEHIND_RATIO = 10.0


def comparison_report(comparison: PairedComparison, about: About) -> str:
    """Make a self-contained HTML page that compares models.

    Parameters
    ----------
    comparison : PairedComparison
        From :func:`posterity.evaluation.compare_predictions`.
    about : About

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import compare_predictions
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> models = {name: BayesianLinearRegression(prior_precision=name) for name in ("auto", "ard")}
    >>> result = compare_predictions(models, X, X[:, 0] + 0.1 * X[:, 1] ** 2)
    >>> "<h1>Two</h1>" in comparison_report(result, About(title="Two"))
    True
    """
    page = Page(about.title)
    page.parts.extend(tag("p", line) for line in in_words(comparison))
    page.section("Which model predicts best?", *_make_ranking(page, comparison))
    spec, values = _add_errors(comparison, about.unit)
    caption = "Mean absolute error over all rows so far, model by model."
    error_chart = page.chart(spec, caption, _last(comparison, values))
    page.section("Errors along the stream", error_chart)
    spec, _ = charts.calibration(dict(comparison.results))
    caption = "On the dotted line intervals hold what they promise; below it they are too narrow."
    rows = [
        (name, "none" if each.pit is None else f"{100 * each.pit.error:.2f} points")
        for name, each in comparison.results.items()
    ]
    numbers = table(("model", "mean distance of coverage and level"), rows, "Calibration error")
    page.section("Can their intervals be trusted?", page.chart(spec, caption, numbers))
    slices = [
        one for name, each in comparison.results.items() for one in slice_tables(each, f"{name}. ")
    ]
    if slices:
        page.section("By slice", *slices)
    page.section("Problems found in the data", problems(about))
    describe_command(page, about)
    return page.html()


def in_words(comparison: PairedComparison) -> list[str]:
    """The ranking in sentences, and how sure it is."""
    best = comparison.best
    lines = [
        f"Each of {comparison.results[best].n_rows:,} rows was predicted by every model before it "
        f"was learned; {comparison.n_rows:,} of them are compared. {best} predicted best, by "
        f"{LOSSES[comparison.loss]}."
    ]
    for name in comparison.names:
        if name == best:
            continue
        behind = comparison.between(name, best)
        sure = (
            "more than chance explains"
            if behind.p_value < SIGNIFICANT_P_VALUE
            else "which may be chance"
        )
        lines.append(
            f"{name} is behind by {behind.mean:.4g} a row (standard error "
            f"{behind.standard_error:.2g}): {sure}."
        )
    return lines


def _make_ranking(page: Page, comparison: PairedComparison) -> list[Any]:
    rows = []
    for k in np.argsort(comparison.mean_losses, kind="stable"):
        name = comparison.names[int(k)]
        result, behind = comparison.results[name], comparison.between(name, comparison.best)
        p_value = "best" if name == comparison.best else p_value_text(behind.p_value)
        shares = (f"{100 * share:.1f}%" for share in result.coverage.values())
        rows.append(
            (name, f"{comparison.mean_losses[k]:.5g}", f"{behind.mean:.4g}",
             f"{behind.standard_error:.2g}", p_value, f"{result.mae:.5g}", f"{result.crps:.5g}",
             *shares)
        )  # fmt: skip
    levels = next(iter(comparison.results.values())).coverage
    header = ("model", "mean loss", "behind", "standard error", "p-value", "mean error", "CRPS",
              *(f"inside {100 * level:g}%" for level in levels))  # fmt: skip
    best = table(header, rows, f"Models, best first, by {LOSSES[comparison.loss]}")
    spec, values = _make_differences(comparison)
    caption = (
        f"Mean loss less that of {comparison.best}, over all rows so far: above zero is worse. "
        "Bands are 95% intervals."
    )
    others = [name for name in comparison.names if name != comparison.best]
    near = _select_near_best(comparison, others)
    if far := [name for name in others if name not in near]:
        caption += f" Too far behind to be drawn: {', '.join(far)}."
    return [best, page.chart(spec, caption, _last(comparison, values))]


def _select_near_best(comparison: PairedComparison, others: Sequence[str]) -> set[str]:
    """Models that are not so far behind the best that nothing could be seen of the others."""
    behind = {name: abs(comparison.between(name, comparison.best).mean) for name in others}
    near: set[str] = set()
    for name in sorted(behind, key=lambda name: behind[name]):
        if near and behind[name] > FAR_BEHIND_RATIO * max(behind[other] for other in near):
            break
        near.add(name)
    return near


def _make_differences(comparison: PairedComparison) -> tuple[charts.Spec, charts.Rows]:
    best = comparison.best
    values: charts.Rows = []
    others = [name for name in comparison.names if name != best]
    near = _select_near_best(comparison, others)
    ends: list[float] = [0.0]
    for name in others:
        mean, error = comparison.difference_along(name, best)
        low, high = mean - 1.96 * error, mean + 1.96 * error
        values += charts.rows_of(model=name, end=comparison.row_end, value=mean, low=low, high=high)
        # The first rows swing much, and bad models are far away: the later half of those that are
        # near sets the scale.
        if name in near:
            half = -(-len(mean) // 2)
            ends += [*low[half:].tolist(), *high[half:].tolist()]
    room = 0.25 * (max(ends) - min(ends)) or 1.0
    domain = [min(ends) - room, max(ends) + room]
    x = charts.rows_seen(comparison.row_end[-1])
    y = charts.quantity("value", f"behind {best} (mean loss)", scale={"domain": domain})
    tooltips = charts.tooltip(
        model=("model", ""), end=("up to row", ",.0f"), value=("behind by", ",.4~g"),
        low=("95% from", ",.4~g"), high=("to", ",.4~g"),
    )  # fmt: skip
    band, line = charts.curves("model", others, x, y, tooltips, 0.15)
    zero = charts.layer("rule", {"y": y}, values=[{"value": 0}], color="#444")
    layers = [band, zero, line]
    return charts.chart("Differences of mean loss along the stream", values, layers), values


def _add_errors(comparison: PairedComparison, unit: str) -> tuple[charts.Spec, charts.Rows]:
    values: charts.Rows = []
    largest: list[float] = []
    near = _select_near_best(
        comparison, [name for name in comparison.names if name != comparison.best]
    )
    for name, result in comparison.results.items():
        along = result.along
        so_far = np.cumsum(along.mae * along.n_rows) / along.row_end
        # As with differences: the later half of those that are near sets the scale.
        if name in near or name == comparison.best:
            largest.append(float(np.nanmax(so_far[len(so_far) // 2 :], initial=0.0)))
        values += charts.rows_of(model=name, end=along.row_end, value=so_far)
    tooltips = charts.tooltip(
        model=("model", ""), end=("up to row", ",.0f"), value=("mean error", ",.4~g")
    )
    domain = [0.0, 2.0 * max(largest) or 1.0]
    x = charts.rows_seen(comparison.row_end[-1])
    y = charts.quantity("value", f"mean absolute error ({unit})", scale={"domain": domain})
    _, line = charts.curves("model", comparison.names, x, y, tooltips)
    return charts.chart("Mean absolute error so far, by model", values, [line]), values


def _last(comparison: PairedComparison, values: charts.Rows) -> Any:
    """The value of each model at every eighth of the stream."""
    ends = sorted({row["end"] for row in values})
    shown = ends[:: -(-len(ends) // 8)] if len(ends) > 8 else ends
    shown = sorted({*shown, ends[-1]})
    last_values = {(row["model"], row["end"]): row["value"] for row in values}
    present = [name for name in comparison.names if (name, ends[-1]) in last_values]
    rows = [
        [
            name,
            *(
                "none" if last_values[name, end] is None else f"{last_values[name, end]:.4g}"
                for end in shown
            ),
        ]
        for name in present
    ]
    header = ["model", *(f"row {end:,}" for end in shown)]
    return table(header, rows, "Up to each row")
