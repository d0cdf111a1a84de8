"""The report on one model: did it predict well, can it be trusted, what has it learned?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Estimator
from posterity.evaluation import Baseline, CoefficientPath, ValidationResult
from posterity.evaluation._tables import to_plain
from posterity.report import charts, words
from posterity.report.page import Html, Page, bullets, cards, paragraphs, table, tag

FloatArray = NDArray[np.float64]

MOST_COEFFICIENTS = 200
DRAWN_COEFFICIENTS = 25
FOLLOWED = 5
FEWEST_RESIDUALS = 20


@dataclass(frozen=True, kw_only=True)
class About:
    """Title, settings and notes of a report.

    Attributes
    ----------
    title : str
    target : str
        Name of what is predicted.
    command : str
        The command that made the report, if one did.
    problems : sequence of str
        What was found wrong with the data.
    settings : sequence of (str, str)
        What was asked for, by name.
    log_target : bool
        Whether coefficients are of the log of the target, as those of counts are.
    """

    title: str
    target: str = "y"
    command: str = ""
    problems: Sequence[str] = ()
    settings: Sequence[tuple[str, str]] = ()
    log_target: bool = False

    @property
    def unit(self) -> str:
        """Unit of the target, in words."""
        return f"units of {self.target}"


def validation_report(
    result: ValidationResult,
    about: About | None = None,
    *,
    model: Estimator = None,
    features: Sequence[str] = (),
    spread: ArrayLike | None = None,
) -> str:
    """Make a self-contained HTML page about a model's predictions.

    Every name and value is text in it, whatever it holds.

    Parameters
    ----------
    result : ValidationResult
        From :func:`posterity.evaluation.progressive_validation`.
    about : About, optional
    model : estimator, optional
        The model that has learned the stream: its coefficients are listed where it has a joint
        posterior of them.
    features : sequence of str, optional
        Names of the features, where the model has learned from arrays without names.
    spread : (p,) array, optional
        Standard deviation of each feature, to compare coefficients in one unit.

    Raises
    ------
    TypeError
        If ``about`` is text: the page is returned, not written.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import progressive_validation
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = BayesianLinearRegression()
    >>> result = progressive_validation(model, X, X[:, 0] + 0.1 * X[:, 1] ** 2)
    >>> html = validation_report(result, About(title="A <test>"), model=model)
    >>> html.startswith("<!DOCTYPE html>"), "<h1>A &lt;test&gt;</h1>" in html
    (True, True)
    """
    about = About(title="Progressive validation") if about is None else about
    if isinstance(about, str | PathLike):
        raise TypeError(
            f"about is {str(about)!r}: give About(title=...); the page is returned as text, which "
            "pathlib.Path(...).write_text(page, encoding='utf-8') puts into a file"
        )
    page = Page(about.title)
    page.parts.append(paragraphs(words.headline(result)))
    page.parts.append(cards(_make_cards(result, about)))
    _add_errors(page, result, about)
    _judge_calibration(page, result)
    _residuals(page, result, about)
    _drift(page, result)
    if result.slices:
        page.section("By slice", *slice_tables(result))
    if model is not None:
        rows = _make_coefficient_rows(model, features, spread)
        if rows:
            _coefficients(page, rows, about, result.path)
    page.section("Problems found in the data", problems(about, words.caveats(result)))
    scores = table(("score", "value", "what it is"), words.rows(result), "All scores")
    page.section("All scores", scores)
    describe_command(page, about)
    return page.html()


def problems(about: About, more: Any = ()) -> Html:
    """List the problems found with the data, or say that there were none."""
    found = [*about.problems, *more]
    return bullets(found) if found else tag("p", "No problems found.")


def describe_command(page: Page, about: About) -> None:
    """Show the command and settings that made the page."""
    content: list[Any] = []
    if about.command:
        content.append(tag("p", tag("code", about.command)))
    if about.settings:
        content.append(table(("setting", "value"), about.settings, "Settings"))
    if content:
        page.section("How this page was made", *content)


def _make_cards(result: ValidationResult, about: About) -> list[tuple[str, str, str]]:
    best = min(result.baselines.values(), key=lambda each: each.mae, default=None)
    skill = "" if best is None else words.skill_in_words(best.name, best.skill)
    found = [("Mean absolute error", f"{result.mae:.4g}", skill or about.unit)]
    n_scored = result.n_rows - result.n_unscored
    for level, share in result.coverage.items():
        if n_scored:
            found.append(
                (
                    f"Inside the {100 * level:g}% interval",
                    f"{100 * share:.1f}%",
                    words.judge(result, level),
                )
            )
            width = f"{result.width[level]:.4g}"
            meaning = f"{about.unit}; narrower is sharper"
            found.append((f"Width of the {100 * level:g}% interval", width, meaning))
    found.append(("Mean CRPS", f"{result.crps:.4g}", "error of the whole distribution"))
    found.append(("Mean log score", f"{result.log_score:.4g}", "nats a row; more is better"))
    found.append(("Rows", f"{result.n_rows:,}", "each predicted, then learned"))
    return found


def _add_errors(page: Page, result: ValidationResult, about: About) -> None:
    spec, values = charts.error_along_time(result, about.unit)
    numbers = _numbers(values, ("start", "end", "mae", "max", "so_far"))
    caption = (
        "Each dot is the mean absolute error of a stretch of rows; the line is the mean over all "
        "rows so far. Where it falls the model is still learning. Grey periods are worse than what "
        "came before."
    )
    first = page.chart(spec, caption, numbers)
    spec, values = charts.extremes_along_time(result, about.unit)
    caption = "The greatest error in each stretch: none is lost in a mean."
    second = page.chart(spec, caption, _numbers(values, ("start", "end", "max")))
    rows = [
        (each.name, f"{each.mae:.5g}", f"{each.model_mae:.5g}", words.percent(each.skill),
         *_score_distributions(each))
        for each in result.baselines.values()
    ]  # fmt: skip
    header = ("baseline", "its error", "the model's", "skill", "its CRPS", "the model's",
              "skill by CRPS", "nats a row gained")  # fmt: skip
    caption = "Forecasts that need no features, on the same rows; skill 0% is no better than they"
    tables = [table(header, rows, caption)]
    if result.worst:
        worst = [(f"{one.row:,}", f"{one.y:.6g}", f"{one.error:.6g}") for one in result.worst]
        caption = "The rows with the largest errors, counted from 0"
        tables.append(table(("row", f"its {about.target}", "error"), worst, caption))
    page.section("How good are the predictions?", first, second, *tables)


def _score_distributions(each: Baseline) -> tuple[str, ...]:
    if not each.n_scored:
        return ("none",) * 4
    return (
        f"{each.crps:.5g}",
        f"{each.model_crps:.5g}",
        words.percent(each.skill_crps),
        f"{each.log_score_gain:.4g}",
    )


def _judge_calibration(page: Page, result: ValidationResult) -> None:
    content: list[Any] = [tag("p", words.shape_in_words(result))]
    if result.coverage:
        spec, values = charts.coverage_along_time(result)
        caption = (
            "Share of targets inside their intervals: dots by stretch, lines over all rows so far. "
            "The band is what chance allows if the intervals are exact and rows independent."
        )
        numbers = _numbers(values, ("level", "end", "share", "so_far"))
        content.append(page.chart(spec, caption, numbers))
    if result.pit is not None and result.pit.n_rows:
        spec, values = charts.calibration({"model": result})
        caption = (
            "Do intervals of every level hold what they promise? On the dotted line they do; below "
            "it they are too narrow, above it too wide."
        )
        content.append(page.chart(spec, caption, _numbers(values[4::5], ("level", "share"))))
        spec, values = charts.pit_histogram(result.pit)
        caption = (
            "Where targets fell in their predictive distributions: flat is right, a U is too "
            "narrow, a hill too wide, a slope biased. Chance stays between the dashed lines."
        )
        numbers = _numbers(values, ("low", "high", "density"))
        content.append(page.chart(spec, caption, numbers))
    page.section("Can the intervals be trusted?", *content)


def _residuals(page: Page, result: ValidationResult, about: About) -> None:
    found = result.residuals
    if found is None or len(found.row) < FEWEST_RESIDUALS:
        return
    spec, values = charts.residuals(found, about.unit)
    shown = "" if len(found.row) >= result.n_rows - result.n_unscored else " Not all are drawn."
    caption = (
        "A residual is standardised by the whole predicted distribution: 95% lie between the outer "
        "dashed lines if it is right. If the mean of neighbours bends, so does the function: try "
        "--model spline. If the dots spread like a funnel, the noise depends on the features: try "
        f"--noise linear. Dots far outside are outliers: try --model robust.{shown}"
    )
    numbers = _numbers(values[:: max(len(values) // 50, 1)], ("row", "predicted", "residual"))
    page.section("What do the residuals look like?", page.chart(spec, caption, numbers))


def _drift(page: Page, result: ValidationResult) -> None:
    found = result.drift_periods()
    if not found:
        message = "No stretch of rows was predicted clearly worse than those before it."
        page.section("Drift", tag("p", message))
        return
    rows = [
        (f"{each.row_start:,} to {each.row_end:,}", f"{each.mae:.5g}", f"{each.usual:.5g}",
         f"{each.ratio:.2f}")
        for each in found
    ]  # fmt: skip
    advice = (
        "In these rows errors were larger than before, beyond chance. If the process has changed "
        "there, a model that forgets may do better: try --forgetting adaptive."
    )
    header = ("rows", "mean error", "before", "times as large")
    page.section("Drift", tag("p", advice), table(header, rows, "Periods of larger errors"))


def slice_tables(result: ValidationResult, of: str = "") -> list[Html]:
    """Return tables of errors, coverage and width in the slices of each requested feature."""
    tables = []
    for name, each in result.slices.items():
        header, rows = words.slices(each)
        tables.append(table((name, *header), rows, f"{of}By {name}"))
    return tables


def _coefficients(
    page: Page, rows: charts.Rows, about: About, path: CoefficientPath | None
) -> None:
    header = ("feature", "coefficient", "95% from", "to", "per sd of the feature")
    table_rows = [
        (row["name"], f"{row['mean']:.5g}", _make_footer(row["low"]), _make_footer(row["high"]),
         f"{row['drawn']:.4g}")
        for row in rows[:MOST_COEFFICIENTS]
    ]  # fmt: skip
    caption = (
        f"The {len(table_rows)} largest of {len(rows)}" if len(table_rows) < len(rows) else "All"
    )
    drawn = [row for row in rows if row["finite"] and not row["is_intercept"]][:DRAWN_COEFFICIENTS]
    content: list[Any] = []
    if drawn:
        learned = f"log of {about.target}" if about.log_target else about.unit
        unit = f"{learned} per sd of the feature"
        spec = charts.coefficients(drawn, unit)
        changed = "the log of the prediction" if about.log_target else "the prediction"
        below = (
            f"What a change of each feature by one standard deviation does to {changed}, the "
            "largest on top, with 95% intervals. One that crosses zero leaves the sign open."
        )
        numbers = table(
            header[:4], [row[:4] for row in table_rows[: len(drawn) + 1]], "Coefficients"
        )
        content.append(page.chart(spec, below, numbers))
        if path is not None:
            several = [(row["place"], row["name"], row["typical"]) for row in drawn[:FOLLOWED]]
            spec, values = charts.coefficients_along_time(path, several, unit)
            below = (
                "The largest of them along the stream: what the model believed after so many rows. "
                "Bands narrow as it learns; what keeps moving has drifted."
            )
            numbers = _numbers(values, ("name", "end", "value", "low", "high"))
            content.append(page.chart(spec, below, numbers))
    page.section(
        "What has it learned?", *content, table(header, table_rows, f"Coefficients: {caption}")
    )


def _make_coefficient_rows(
    model: Estimator, features: Sequence[str], spread: ArrayLike | None
) -> charts.Rows:
    """The intercept, then coefficients by what a typical change of their feature does."""
    joint = getattr(model, "posterior_", None)
    if joint is None or not isinstance(getattr(joint, "mean", None), np.ndarray):
        return []
    mean, ends = np.asarray(joint.mean), np.asarray(joint.interval(0.95))
    n, has_intercept = len(mean), bool(getattr(model, "fit_intercept", False))
    names = [str(name) for name in joint.names] if joint.names else [f"x{k}" for k in range(n)]
    if len(features) == n - has_intercept:
        names[int(has_intercept) :] = features
    typical = np.ones(n)
    if spread is not None and len(np.asarray(spread)) == n - has_intercept:
        typical[int(has_intercept) :] = np.asarray(spread)
    rows: charts.Rows = [
        {
            "name": names[k],
            "place": k,
            "typical": float(typical[k]),
            "mean": float(mean[k]),
            "low": to_plain(ends[k, 0]),
            "high": to_plain(ends[k, 1]),
            "drawn": float(mean[k] * typical[k]),
            "low_drawn": to_plain(ends[k, 0] * typical[k]),
            "high_drawn": to_plain(ends[k, 1] * typical[k]),
            "finite": bool(np.isfinite(ends[k]).all()),
            "is_intercept": has_intercept and k == 0,
        }
        for k in range(n)
    ]
    first = rows[: int(has_intercept)]
    return first + sorted(rows[len(first) :], key=lambda row: -abs(float(row["drawn"] or 0.0)))


def _make_footer(value: float | None) -> str:
    return "open" if value is None else f"{value:.5g}"


def _numbers(values: charts.Rows, columns: Sequence[str]) -> Html:
    header = [HEADINGS.get(column, column) for column in columns]
    rows = [[_format_cell(row[column]) for column in columns] for row in values]
    return table(header, rows, "The numbers of this chart")


HEADINGS = {
    "name": "feature",
    "start": "from row",
    "end": "to row",
    "mae": "mean error",
    "max": "greatest error",
    "so_far": "all rows so far",
    "value": "coefficient",
    "share": "share inside",
    "low": "from",
    "high": "to",
}


def _format_cell(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
