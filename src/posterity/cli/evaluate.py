"""Progressive validation of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sklearn.base import is_classifier

from posterity.aliases import Estimator
from posterity.cli.log_target import LoggedModel, check_log_target
from posterity.cli.pages import check_page, write_text
from posterity.cli.report import print_labels, print_lifetimes, print_quantiles, print_report
from posterity.cli.slices import read_slices
from posterity.cli.tables import ScoreSettings, TableSettings, name_input, table_path
from posterity.cli.text import print_json, print_notes
from posterity.cli.wide import ModelSettings, build_wide, open_wide_table
from posterity.evaluation import (
    ClassificationResult,
    SurvivalScores,
    ValidationResult,
    progressive_classification,
    progressive_survival,
    progressive_validation,
)
from posterity.evaluation.quantiles import QuantileResult, progressive_quantiles
from posterity.forgetting.words import parse
from posterity.io import Cure, TableError, TableStream
from posterity.io.learning import check_takes_offsets
from posterity.io.missing import describe_holes
from posterity.io.targets import find_lifetime
from posterity.likelihoods.words import censor
from posterity.report import About, ColumnSummaries, survival_report, validation_report
from posterity.words import COUNTS, build_model, parse_one

FOLLOWED_PLACES = 40
# Intervals of Poisson counts that vary so many times more hold 9 of 10 at best, not 95%.
TOO_DISPERSED = 1.5


@dataclass(frozen=True, kw_only=True)
class Settings(ModelSettings, ScoreSettings):
    """Options of the verb, one field each."""


def run(settings: Settings) -> None:
    """Read, predict, learn, report."""
    if settings.time is not None and settings.delay:
        raise ValueError("--time and --delay can't go together: rows would be learned out of order")
    with table_path(settings.file) as path:
        _run(replace(settings, file=name_input(settings.file)), path)


def _run(settings: Settings, path: str) -> None:
    model = make_model(settings)
    check_takes_offsets(model, settings)
    labels = is_classifier(model)
    if settings.is_wide:
        _check_wide(settings)
        score = _score_wide
        table = open_wide_table(settings, path, labels=labels)
    else:
        check_lags(settings)
        if settings.log_target:
            check_log_target(model)
        score = _score_quantiles if hasattr(model, "quantile") else _score_numbers
        if find_lifetime(settings.target):
            score = _score_lifetimes
        table = settings.open(path, labels=labels, drop_first=False)
    with explain_empty_table(settings, table):
        (_score_labels if labels else score)(settings, model, table)
    print_notes(notes(table), quiet=settings.quiet)


def make_model(settings: ModelSettings) -> Estimator:
    """The estimator that the settings of evaluate or fit describe."""
    settings.check_wide()
    how: dict[str, Any] = {
        "prior_precision": settings.prior_precision,
        "noise_precision": settings.noise_precision,
        "noise": settings.noise,
        "fit_intercept": not settings.no_intercept,
        "forgetting": parse(settings.forgetting),
    }
    if settings.is_wide:
        model = build_wide(settings, **how)
    else:
        model = build_model(parse_one(settings.model), **how)
    return _learn_lifetimes(model, settings) if find_lifetime(settings.target) else model


def _learn_lifetimes(model: Estimator, settings: ModelSettings) -> Estimator:
    """The model of targets that may go on."""
    likelihood = model.get_params().get("likelihood")
    if likelihood is None or settings.lags or settings.log_target:
        option = "--lag" if settings.lags else "--log-target" if settings.log_target else ""
        way = f"leave {option} out" if option else "take --model weibull, log-normal or another"
        raise ValueError(f"{settings.target} is a lifetime, some of which go on: {way}")
    return model.set_params(likelihood=censor(likelihood))


def _check_wide(settings: Settings) -> None:
    """Refuse what models of many features can't be scored with."""
    if settings.structure == "sparse":
        raise ValueError(
            "evaluate learns row by row, and a sparse factor is made for many rows at once: take "
            "--structure diagonal, or posterity fit and predict"
        )
    if settings.time is not None:
        raise ValueError("--time does not go with --structure diagonal in evaluate: leave it out")


def check_lags(settings: ScoreSettings) -> None:
    """Refuse a past that is not known yet when a row is predicted."""
    if settings.lags and min(settings.lags) <= settings.delay:
        raise ValueError(
            f"--lag {min(settings.lags)} is too short: targets come {settings.delay:,} rows "
            "late (--delay); give longer lags"
        )


def _score_wide(settings: Settings, model: Estimator, table: TableStream) -> None:
    """Scores of a model of many features, whose columns stay as they are."""
    with progress_bar(table, quiet=settings.quiet) as advance:
        result = progressive_validation(model, table, levels=settings.levels, progress=advance)
    _print_scores(settings, table, result, partial(print_report, forgetting=settings.forgetting))


def _score_labels(settings: Settings, model: Estimator, table: TableStream) -> None:
    """Accuracy and the like of a classifier."""
    _refuse_others(settings, "labels", "--time", "--report")
    with progress_bar(table, quiet=settings.quiet) as advance:
        result = progressive_classification(model, table, progress=advance)
    _print_scores(settings, table, result, print_labels)


def _score_quantiles(settings: Settings, model: Estimator, table: TableStream) -> None:
    """The share of targets below, and the loss that quantiles minimise."""
    _refuse_others(settings, "quantiles", "--report")
    survey = ColumnSummaries(table)
    with progress_bar(table, quiet=settings.quiet) as advance:
        result = progressive_quantiles(model, survey, progress=advance)
    _print_scores(settings, table, result, print_quantiles)
    print_notes(_find_slips(settings, model, table, survey), quiet=settings.quiet)


def _score_lifetimes(settings: Settings, model: Estimator, table: TableStream) -> None:
    """Concordance, who is alive when, and the report."""
    _refuse_others(settings, "lifetimes", "--time")
    page = check_page(settings.report)
    survey = ColumnSummaries(table)
    with progress_bar(table, quiet=settings.quiet) as advance:
        result = progressive_survival(model, survey, progress=advance)
    if page is not None:
        write_text(survival_report(result, describe_report(settings, table, survey)), page)
    _print_scores(settings, table, result, print_lifetimes)
    slips = survey.possible_slips(table.feature_names, settings.target)
    print_notes(slips, quiet=settings.quiet, page=page)


def _refuse_others(settings: Settings, what: str, *more: str) -> None:
    """Options that only scores of numbers have."""
    given = {
        "--report": settings.report if "--report" in more else None,
        "--slice": settings.slices,
        "--delay": settings.delay,
        "--period": settings.period,
        "--time": settings.time if "--time" in more else None,
    }
    for option, value in given.items():
        if value:
            raise ValueError(
                f"{option} is for targets that are numbers, predicted by their mean: leave it out "
                f"for {what}"
            )


def _find_overdispersion(model: Estimator) -> Iterator[str]:
    """Yield a message if counts vary more than their model allows."""
    if type(model).__name__ == "BayesianPoissonRegression" and model.dispersion_ > TOO_DISPERSED:
        yield (
            f"the counts vary {model.dispersion_:.3g} times more than a Poisson's, so intervals "
            "are too narrow: try --model negative-binomial"
        )


def _score_numbers(settings: Settings, model: Estimator, table: TableStream) -> None:
    """Errors, intervals and the rest, and the report."""
    page = check_page(settings.report)
    survey = ColumnSummaries(table)
    with progress_bar(table, quiet=settings.quiet) as advance:
        scored = LoggedModel(model) if settings.log_target else model
        result = progressive_validation(
            scored,
            survey,
            levels=settings.levels,
            delay=settings.delay,
            period=settings.period,
            slices=read_slices(table, settings.slices),
            follow=0 if page is None else FOLLOWED_PLACES,
            progress=advance,
        )
    if page is not None:
        subject = describe_report(settings, table, survey)
        subject = replace(
            subject,
            problems=[*subject.problems, *_find_overdispersion(model)],
            log_target=settings.log_target or type(model).__name__ in COUNTS,
        )
        html = validation_report(
            result, subject, model=model, features=table.feature_names, spread=survey.spread
        )
        write_text(html, page)
    _print_scores(settings, table, result, partial(print_report, forgetting=settings.forgetting))
    slips = _find_slips(settings, model, table, survey)
    print_notes(slips, quiet=settings.quiet, page=page)


def _find_slips(
    settings: Settings, model: Estimator, table: TableStream, survey: ColumnSummaries
) -> Iterator[str]:
    """Features that determine the target, outliers, and counts that vary too much."""
    yield from survey.possible_slips(table.feature_names, settings.target)
    yield from _find_overdispersion(model)


def _print_scores(
    settings: Settings,
    table: TableStream,
    result: ValidationResult | ClassificationResult | QuantileResult | SurvivalScores,
    show: Callable[[Any, str], None],
) -> None:
    if not settings.as_json:
        n_features = _count(len(table.feature_names), "feature")
        show(result, f"{settings.file}: {settings.target}, predicted from {n_features}")
        return
    document = {
        "file": settings.file,
        "target": settings.target,
        "model": settings.model,
        "features": list(table.feature_names),
        "forgetting": settings.forgetting,
        "n_rows_read": table.n_rows_read,
        "n_rows_skipped": table.n_skipped,
        "n_rows_filled": table.n_filled,
        "n_missing": dict(table.n_missing),
        "unseen_levels": table.unseen_levels,
        **result.to_dict(),
    }
    print_json(document)


def describe_report(settings: ScoreSettings, table: TableStream, survey: ColumnSummaries) -> About:
    """Describe the subject of a report: the file, how it was read, and the model."""
    logged = getattr(settings, "log_target", False)
    shown = {
        "features": ", ".join(table.feature_names),
        "rows read": f"{table.n_rows_read:,}",
        "offset": settings.offset or "",
        "exposure": settings.exposure or "",
        "missing values": settings.missing,
        "delay": f"{settings.delay:,}",
        "model": getattr(settings, "model", ""),
        "forgetting": getattr(settings, "forgetting", ""),
        "prior precision": str(getattr(settings, "prior_precision", "")),
        "models": getattr(settings, "models", ""),
        "learned": f"the log of {settings.target}" if logged else "",
    }
    return About(
        title=f"{os.path.basename(settings.file)}: {settings.target}, predicted row by row",
        target=settings.target,
        command=settings.command,
        log_target=logged,
        problems=[*notes(table), *survey.problems(table.feature_names, settings.target)],
        settings=[(name, value) for name, value in shown.items() if value],
    )


def notes(
    table: TableStream, *, levels: str = "the first batch", left_out: Collection[str] = ()
) -> Iterator[str]:
    """Yield, in words, what was done to rows and values on the way in.

    ``levels`` says whose levels are known; ``left_out`` are levels, as ``zone=a``, that are known
    and have no feature.
    """
    yield from table.notes
    if n := table.n_before:
        yield f"{_count(n, 'row')} at the start {_plural(n)} used as the past of the others only"
    if n := table.n_skipped:
        yield (
            f"{_count(n, 'row')} {_plural(n)} left out because a value was missing "
            f"(column, holes: {describe_holes(table.n_left_out)})"
        )
    if n := table.n_filled:
        filled = table.n_missing - table.n_left_out
        yield (
            f"{_count(n, 'row')} had missing values filled in with the mean so far (column, holes: "
            f"{describe_holes(filled)})"
        )
    for column, unseen in table.unseen_levels.items():
        values = {k: n for k, n in unseen.items() if f"{column}={k}" not in left_out}
        if not values:
            continue
        shown = ", ".join(repr(value) for value in list(values)[:5])
        n = sum(values.values())
        yield (
            f"{_count(n, 'value')} of {column!r} {_plural(n)} not among the levels of {levels}, "
            f"and counted as none of them: {shown}{', ...' if len(values) > 5 else ''}"
        )


def explain_no_rows_left(file: str, table: TableStream, *, learning: bool = True) -> ValueError:
    """Return the error for a table with no row left; empty columns have no mean to learn."""
    n = table.n_rows_read
    if n <= table.n_before:
        return ValueError(f"{file} has {_count(n, 'row')}: --lag needs more than {table.n_before}")
    holes = table.n_left_out
    is_empty = learning and any(holes[column] == n for column in table.feature_names)
    drop = Cure("leave such columns out by {}", {"drop": [max(holes, key=holes.__getitem__)]})
    return TableError(
        f"every row of {file} has a missing value, so there is none to learn or predict (column, "
        f"holes in {_count(n, 'row')}: {describe_holes(holes)})",
        [drop, *([] if is_empty else [Cure("fill them in ({})", {"missing": "level"})])],
    )


@contextmanager
def explain_empty_table(settings: TableSettings, table: TableStream) -> Iterator[None]:
    """Say which columns are in the way where all rows were left out."""
    try:
        yield
    except ValueError as error:
        if table.n_rows_read and table.n_skipped >= table.n_rows_read - table.n_before:
            raise explain_no_rows_left(settings.file, table) from error
        raise


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _plural(n: int) -> str:
    return "was" if n == 1 else "were"


@contextmanager
def progress_bar(table: TableStream, *, quiet: bool) -> Iterator[Callable[[int], object] | None]:
    """Yield what is to be called with the number of rows done, or None where nobody is watching."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("starting", total=1.0)

        def advance(n_rows: int) -> None:
            bar.update(task, completed=table.fraction, description=f"{n_rows:,} rows")

        yield advance
