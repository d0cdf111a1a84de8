"""A log in a file: what other policies would have earned."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from posterity.aliases import Document
from posterity.cli.estimates import format_number
from posterity.cli.intervals import IntervalSettings, report_intervals
from posterity.cli.pages import check_page
from posterity.cli.tables import table_path
from posterity.evaluation._tables import to_plain
from posterity.io.folders import open_source
from posterity.io.source import Source
from posterity.off_policy import Estimate, Evaluation, Log, WhatIf, what_if
from posterity.report import EstimateRow

HEADER = ("policy", "method", "value", "interval", "at all times", "effective rows", "note")


@dataclass(frozen=True, kw_only=True)
class Settings(IntervalSettings):
    """Options of the verb, one field each."""

    missing: Literal["error", "skip"]
    policies: tuple[str, ...]
    propensity: str | None
    features: tuple[str, ...] | None
    drop: tuple[str, ...]
    methods: tuple[str, ...]


def run(settings: Settings) -> None:
    """Read, judge, print, and draw."""
    page = check_page(settings.report)
    with table_path(settings.file) as path:
        source = None if path.endswith(".dsjson") else open_source(path, settings.text)
        log = Log.from_dsjson(path) if source is None else _open_log(settings, source)
        policies = {name: _policy(name, log.arms) for name in settings.policies}
        found = what_if(
            log,
            policies or None,
            methods=settings.methods,
            level=settings.level,
            reward_range=settings.reward_range,
        )
    evaluation = found.evaluation
    remarks = [found.answer, *_describe(evaluation, log)]
    remarks += [f"Next: {step}" for step in found.next_steps]
    report_intervals(
        settings,
        page,
        title=f"{settings.reward} a decision",
        remarks=remarks,
        header=HEADER,
        lines=[_line(one, evaluation) for one in evaluation.estimates],
        document=_make_document(settings, found),
        shown=_format_value(settings),
        notes=() if source is None else source.notes,
        along=found.course,
    )


def _open_log(settings: Settings, source: Source) -> Log:
    return Log.open(
        source,
        arm=settings.arm,
        reward=settings.reward,
        propensity=settings.propensity,
        propensities=settings.propensities,
        features=settings.features,
        drop=settings.drop,
        missing=settings.missing,
    )


def _policy(name: str, arms: Sequence[Hashable]) -> Any:
    """A model file's bandit, an arm by what it is written as, or the name itself."""
    if os.path.exists(name):
        from posterity import load

        return load(name)
    return next((arm for arm in arms if str(arm) == name), name)


def _describe(evaluation: Evaluation, log: Log) -> list[str]:
    lines = [f"{evaluation.rows:,} decisions among {len(log.arms)} arms."]
    if not log.has_propensities:
        lines.append(
            "The log has no propensities, so most methods can't be used: name their column in "
            "--propensity."
        )
    return lines


def _line(one: Estimate, evaluation: Evaluation) -> EstimateRow:
    def ends(low: float, high: float) -> str:
        return f"{format_number(low)} to {format_number(high)}"

    cells = (
        one.policy,
        one.method,
        format_number(one.value),
        ends(one.low, one.high),
        ends(one.anytime_low, one.anytime_high),
        format_number(evaluation.support[one.policy].effective_rows),
        one.note,
    )
    return EstimateRow(f"{one.policy}, {one.method}", cells, one.value, one.low, one.high)


def _make_document(settings: Settings, found: WhatIf) -> Document:
    evaluation = found.evaluation
    return {
        "file": settings.file,
        "answer": found.answer,
        "next": list(found.next_steps),
        "n_rows": evaluation.rows,
        "level": evaluation.level,
        "estimates": to_plain([asdict(one) for one in evaluation.estimates]),
        "support": to_plain({name: asdict(one) for name, one in evaluation.support.items()}),
    }


def _format_value(settings: Settings) -> dict[str, str]:
    return {
        "policies": ", ".join(settings.policies),
        "arm": settings.arm,
        "reward": settings.reward,
        "propensity": settings.propensity or settings.propensities or "",
        "level": f"{settings.level:g}",
    }
