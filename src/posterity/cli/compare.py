"""Several models on a file, beside one another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sklearn.base import is_classifier

from posterity.cli.evaluate import (
    check_lags,
    describe_report,
    explain_empty_table,
    notes,
    progress_bar,
)
from posterity.cli.pages import check_page, write_text
from posterity.cli.report import print_comparison
from posterity.cli.slices import read_slices
from posterity.cli.tables import ScoreSettings, name_input, table_path
from posterity.cli.text import print_json, print_notes
from posterity.evaluation import compare_predictions
from posterity.io.learning import check_takes_offsets
from posterity.io.targets import find_lifetime
from posterity.report import ColumnSummaries, comparison_report
from posterity.words import build_model, parse


@dataclass(frozen=True, kw_only=True)
class Settings(ScoreSettings):
    """Options of the verb, one field each."""

    models: str
    loss: str


def run(settings: Settings) -> None:
    """Read, let all models predict and learn, rank them."""
    with table_path(settings.file) as path:
        _run(replace(settings, file=name_input(settings.file)), path)


def _run(settings: Settings, path: str) -> None:
    page = check_page(settings.report)
    check_lags(settings)
    if find_lifetime(settings.target):
        raise ValueError(
            f"{settings.target} is a lifetime, and compare ranks predictions of numbers: take "
            "posterity evaluate with one --model after another, and compare their log scores"
        )
    table = settings.open(path, drop_first=False)
    noise = settings.noise_precision
    models = {w.text: build_model(w, noise_precision=noise) for w in parse(settings.models)}
    labels = next((text for text, model in models.items() if is_classifier(model)), None)
    if labels is not None:
        raise ValueError(f"{labels} predicts labels: posterity compare takes models of numbers")
    for model in models.values():
        check_takes_offsets(model, settings)
    survey = ColumnSummaries(table)
    quiet = settings.quiet
    with explain_empty_table(settings, table), progress_bar(table, quiet=quiet) as advance:
        comparison = compare_predictions(
            models,
            survey,
            loss=settings.loss,
            levels=settings.levels,
            delay=settings.delay,
            period=settings.period,
            slices=read_slices(table, settings.slices),
            progress=advance,
        )
    if page is not None:
        write_text(comparison_report(comparison, describe_report(settings, table, survey)), page)
    if settings.as_json:
        print_json({"file": settings.file, "target": settings.target, **comparison.to_dict()})
    else:
        print_comparison(comparison, f"{settings.file}: {settings.target}, {len(models)} models")
    print_notes(notes(table), quiet=quiet, page=page)
