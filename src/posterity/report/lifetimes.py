"""The report on lifetimes: who was predicted to last longer, and were as many alive as was said?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from posterity.evaluation import RiskGroup, SurvivalScores
from posterity.report import charts
from posterity.report.page import Page, cards, paragraphs, table
from posterity.report.validation import About, describe_command, problems


def survival_report(result: SurvivalScores, about: About | None = None) -> str:
    """Make a self-contained HTML page about predicted lifetimes.

    Parameters
    ----------
    result : SurvivalScores
        From :func:`posterity.evaluation.progressive_survival`, or ``score_survival``.
    about : About, optional

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.evaluation import progressive_survival
    >>> from posterity.likelihoods import Censored, Exponential
    >>> X = np.random.default_rng(0).normal(size=(60, 1))
    >>> life = np.random.default_rng(1).exponential(np.exp(X[:, 0]))
    >>> y = np.column_stack([life, np.where(life < 2.0, life, np.inf)])
    >>> model = BayesianGeneralizedLinear(Censored(Exponential()))
    >>> html = survival_report(progressive_survival(model, X, y), About(title="Pumps"))
    >>> "<h1>Pumps</h1>" in html
    True
    """
    about = About(title="Predicted lifetimes") if about is None else about
    page = Page(about.title)
    page.parts.append(paragraphs(survival_headline(result)))
    page.parts.append(cards(survival_rows(result)))
    header, rows = alive_rows(result)
    caption = (
        "Lines are the mean predicted probability to be alive, by quarters of the rows; dots are "
        "Kaplan and Meier's estimate of the share that was, with 95% intervals. A line that leaves "
        "most of its intervals is wrong: try another distribution, or more features."
    )
    values = _drawn(result)
    numbers = table(header, rows, "The numbers of this chart")
    page.section("Were as many alive as was said?", page.chart(_draw(values), caption, numbers))
    brier = [(f"{t:.4g}", f"{b:.4f}") for t, b in zip(result.times, result.brier, strict=True)]
    caption = "Mean squared error of the probability to be alive; 0.25 by saying one half"
    page.section("Errors by time", table(("time", "Brier score"), brier, caption))
    spec, densities = charts.pit_histogram(result.pit)
    caption = (
        "Where lifetimes fell in their predictive distributions: flat is right. Those that go on "
        "are drawn at random from what is left of theirs."
    )
    pit = [[f"{one:.4g}" for one in row.values()] for row in densities]
    numbers = table(("from", "to", "times as many"), pit, "The numbers of this chart")
    page.section("Is it the right distribution?", page.chart(spec, caption, numbers))
    page.section("Problems found in the data", problems(about))
    describe_command(page, about)
    return page.html()


def survival_headline(result: SurvivalScores) -> str:
    """What was scored, and the one number to know, in two sentences."""
    return (
        f"Of {result.n_rows:,} lifetimes, each predicted before it was learned, "
        f"{result.n_events:,} ended.\nOf two of which it is known who lived longer, it was "
        f"predicted to in {100 * result.concordance:.0f}% of the pairs; 50% is chance."
    )


def survival_rows(result: SurvivalScores) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each score."""
    middle = len(result.times) // 2
    time, brier = result.times[middle], result.brier[middle]
    return [
        ("concordance", f"{result.concordance:.4g}", "pairs in their order; 0.5 is chance"),
        ("mean log score", f"{result.log_score:.5g}", "log density of what is known"),
        (f"Brier score at {time:.4g}", f"{brier:.4f}", "error of who is alive; 0.25 by one half"),
        ("calibration error", f"{100 * result.pit.error:.2f} points",
         "mean distance of coverage and level, over all levels"),
    ]  # fmt: skip


def alive_rows(result: SurvivalScores) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings and rows of who was alive, as predicted and as observed, by quarters and times."""
    header = ("predicted to last", "rows", "ended", "time", "alive, predicted", "observed", "95%")
    rows: list[tuple[str, ...]] = [
        (name, f"{group.n_rows:,}", f"{group.n_events:,}", f"{time:.4g}",
         *_share(group, k))
        for name, group in _named(result)
        for k, time in enumerate(result.times)
        if k % 4 == 0 or len(result.times) < 5
    ]  # fmt: skip
    return header, rows


def _share(group: RiskGroup, k: int) -> tuple[str, str, str]:
    shares = (group.predicted[k], group.observed[k], group.low[k], group.high[k])
    predicted, observed, low, high = (f"{100 * one:.0f}%" for one in shares)
    known = "none" if np.isnan(group.low[k]) else f"{low} to {high}"
    return predicted, "none" if np.isnan(group.observed[k]) else observed, known


def _named(result: SurvivalScores) -> Iterator[tuple[str, RiskGroup]]:
    names = ("shortest", "shorter", "longer", "longest")
    return zip(names, result.groups, strict=False)


def _drawn(result: SurvivalScores) -> charts.Rows:
    return [
        row | {"ended": group.n_events}
        for name, group in _named(result)
        for row in charts.rows_of(
            name=f"predicted {name}", time=result.times, predicted=group.predicted,
            observed=group.observed, low=group.low, high=group.high,
        )
    ]  # fmt: skip


def _draw(values: charts.Rows) -> charts.Spec:
    """Lines of what was predicted, and dots with intervals of what came, by groups."""
    several = list(dict.fromkeys(row["name"] for row in values))
    tooltips = charts.tooltip(
        name=("", ""), time=("time", ",.4~g"), predicted=("alive, predicted", ".1%"),
        observed=("observed", ".1%"), low=("95% from", ".1%"), high=("to", ".1%"),
    )  # fmt: skip
    x = charts.quantity("time", "time")
    y = {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%"}}
    line, dot, end = (
        charts.quantity(name, "alive", **y) for name in ("predicted", "observed", "low")
    )
    colour = {"x": x, "color": charts.names("name", several), "tooltip": tooltips}
    dash = {"strokeDash": charts.names("name", several, dashes=True)}
    layers = [
        charts.layer("rule", colour | {"y": end, "y2": {"field": "high"}}, opacity=0.5),
        charts.layer("line", colour | dash | {"y": line}, strokeWidth=2.5),
        charts.layer("point", colour | {"y": dot}, filled=True, size=45),
    ]
    return charts.chart("Who was alive, by quarters of predicted lifetimes", values, layers, 320)
