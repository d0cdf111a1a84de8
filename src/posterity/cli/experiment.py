"""An experiment in a file: which arm earns most, and whether that is sure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from posterity.aliases import Document
from posterity.cli.estimates import format_number
from posterity.cli.intervals import IntervalSettings, report_intervals
from posterity.cli.pages import check_page
from posterity.cli.tables import table_path
from posterity.evaluation._tables import to_plain
from posterity.experiments import AnytimeValid, Experiment, Metrics
from posterity.experiments.pairs import describe_effect
from posterity.forgetting.words import parse
from posterity.io.folders import open_source
from posterity.io.rounds import read_arms
from posterity.io.source import Source
from posterity.report import EstimateRow
from posterity.report.intervals import NamedTable
from posterity.words import build_model, parse_one

# Below this p value of the sample ratio the report warns.
_WARNING_P_VALUE = 0.01
HEADER = ("arm", "rows", "mean", "effect", "interval")


@dataclass(frozen=True, kw_only=True)
class Settings(IntervalSettings):
    """Options of the verb, one field each."""

    per: str | None
    also: tuple[str, ...] | None
    guardrails: Mapping[str, float] | None
    segment: str | None
    covariates: tuple[str, ...]
    missing: Literal["error", "skip", "mean", "level"]
    control: str | None
    shares: Mapping[str, float] | None
    smallest_effect: float
    planned_rows: float | None
    cap: float | None
    sample_ratio_level: float
    model: str


def run(settings: Settings) -> None:
    """Read, compare, print, and draw."""
    page = check_page(settings.report)
    with table_path(settings.file) as path:
        source = open_source(path, settings.text)
        metrics = _make_metrics(settings, source).observe(
            source,
            per={settings.reward: settings.per} if settings.per else {},
            arm=settings.arm,
            covariates=settings.covariates,
            propensities=settings.propensities,
            segment=settings.segment,
            missing=settings.missing,
        )
    test, title = metrics.primary, settings.reward
    title += f" per {settings.per}" if settings.per else ""
    report_intervals(
        settings,
        page,
        title=f"{title} by {settings.arm}",
        remarks=_describe(metrics),
        header=HEADER,
        lines=_make_rows(test),
        document=_make_document(settings, metrics),
        shown=_format_value(settings),
        notes=source.notes,
        over_time=_follow(test),
        unit="percentage points" if test.is_binary_ else "",
        tables=[*_list_metrics(metrics), *_list_segments(settings, test)],
    )


def _follow(test: Experiment) -> list[Document]:
    """The effects as rows came, once they had intervals."""
    frame = test.effects_over_time().rename(columns={"arm": "name", "effect": "value"})
    frame["name"] = frame["name"].astype(str)
    numbers = ["value", "low", "high"]
    frame[numbers] *= _find_scale(test)
    known = np.isfinite(frame[numbers]).all(axis=1)
    return list(frame[known].to_dict("records"))


def _make_metrics(settings: Settings, source: Source) -> Metrics:
    """The reward, which decides, and others, of the same arms."""
    arms, guardrails = list(read_arms(source, settings.arm)), settings.guardrails or {}
    others = dict.fromkeys([*(settings.also or ()), *guardrails])
    if settings.reward in others:
        raise ValueError(f"{settings.reward!r} is the reward: name other columns beside it")
    # What else is said of the reward is in its unit.
    plain = replace(settings, cap=None, reward_range=None, smallest_effect=0.0, model="linear")
    made = {settings.reward: _experiment(settings, arms)}
    return Metrics(made | {name: _experiment(plain, arms) for name in others}, guardrails)


def _experiment(settings: Settings, found: Sequence[Any]) -> Experiment:
    arms = list(found)
    by_text = {str(arm): arm for arm in arms}
    for name in (settings.control, *(settings.shares or ())):
        if name is not None and name not in by_text:
            raise ValueError(
                f"{name!r} is not an arm of column {settings.arm!r}: give one of {list(by_text)}"
            )
    if settings.control is not None:
        arms.sort(key=lambda arm: str(arm) != settings.control)
    allocation: Any = None
    if settings.propensities is not None:
        allocation = "given"
    elif settings.shares is not None:
        allocation = {by_text[name]: share for name, share in settings.shares.items()}
    model = None
    if settings.model != "linear":
        model = build_model(parse_one(settings.model), forgetting=parse("none"))
    return Experiment(
        arms,
        model,
        allocation=allocation,
        stop=AnytimeValid(smallest_effect=settings.smallest_effect),
        level=settings.level,
        planned_rows=settings.planned_rows,
        reward_range=settings.reward_range,
        cap=settings.cap,
        sample_ratio_level=settings.sample_ratio_level,
    )


def _describe(metrics: Metrics) -> list[str]:
    test = metrics.primary
    lines = [test.verdict_, f"What to do next: {metrics.next_step_}."]
    lines += map(str, (*test.pairs_, *metrics.guardrails_, *test.segments_))
    lines.append(f"{test.n_observations_:,} rows; intervals hold at all times, and all together.")
    if test.cap is not None:
        lines.append(f"Rewards above {test.cap:g} count as {test.cap:g}.")
    p = test.sample_ratio_p_value_
    if test.sample_ratio_level <= p < _WARNING_P_VALUE:
        lines.append(
            f"Arms did not come as often as they should have (p = {p:.2g}): find out why before "
            "anything is believed."
        )
    return lines


def _list_metrics(metrics: Metrics) -> list[NamedTable]:
    """A table of all pairs in the other metrics, if there are any."""
    pairs = metrics.pairs_
    rows = [
        (
            name,
            str(pair.arm),
            str(pair.other),
            *_write_effect(pair.effect, pair.low, pair.high, pair.in_points),
            said,
        )
        for name in list(pairs)[1:]
        for pair in pairs[name]
        for said in ["differ" if pair.is_decided else "not decided"]
    ]
    head = ("metric", "arm", "beside", "effect", "interval", "verdict")
    return [("Other metrics", head, rows)] if rows else []


def _list_segments(settings: Settings, test: Experiment) -> list[NamedTable]:
    """A table of the effects of each arm by segment, drawn towards their mean."""
    head = ("segment", "rows", "effect", "interval")
    return [
        (
            f"Effect of {one.arm} by {settings.segment} (intervals hold together, at this look)",
            head,
            [
                (
                    str(name),
                    f"{rows:,.0f}",
                    *_write_effect(mean, mean - half, mean + half, one.in_points),
                )
                for name, rows, mean, half in zip(
                    one.names, one.rows, one.means, one.half_widths, strict=True
                )
            ],
        )
        for one in test.segments_
    ]


def _write_effect(effect: float, low: float, high: float, in_points: bool) -> tuple[str, str]:
    """The cells of an effect and its interval."""
    if not np.isfinite([effect, low, high]).all():
        return format_number(effect), "too few rows"
    value, ends = describe_effect(effect, low, high, in_points).removesuffix(")").split(" (")
    return value, ends


def _find_scale(test: Experiment) -> float:
    """What effects are multiplied by: those of yes and no are read in percentage points."""
    return 100.0 if test.is_binary_ else 1.0


def _make_rows(test: Experiment) -> list[EstimateRow]:
    frame, control, unit = test.to_frame(), test.arms[0], "%" if test.is_binary_ else ""
    scale = _find_scale(test)
    frame[["mean", "effect", "low", "high"]] *= scale
    lines = []
    for arm, row in zip(test.arms, frame.itertuples(), strict=True):
        effect, interval = "control", ""
        if arm != control:
            ends = row.effect / scale, row.low / scale, row.high / scale
            effect, interval = _write_effect(*ends, test.is_binary_)
        cells = (str(arm), f"{row.rows:,}", format_number(row.mean) + unit, effect, interval)
        lines.append(EstimateRow(str(arm), cells, row.effect, row.low, row.high))
    return lines


def _make_document(settings: Settings, metrics: Metrics) -> Document:
    test = metrics.primary
    decided = test.decision_
    return {
        "file": settings.file,
        "n_rows": test.n_observations_,
        "level": settings.level,
        "decision": None
        if decided is None
        else {"arm": decided.arm, "reason": decided.reason, "rows": decided.rows},
        "undecided_reason": test.undecided_reason_,
        "expected_rows": to_plain(test.expected_rows_),
        "sample_ratio_p_value": test.sample_ratio_p_value_,
        "next": metrics.next_step_,
        "pairs": _list_fields(test.pairs_),
        "metrics": {name: _list_fields(each) for name, each in metrics.pairs_.items()},
        "guardrails": [
            _list_fields([one])[0] | {"is_kept": one.is_kept, "is_broken": one.is_broken}
            for one in metrics.guardrails_
        ],
        "segments": {
            str(one.arm): {
                "differ": one.differ,
                "evidence": to_plain(one.evidence),
                "effects": to_plain(one.to_frame().to_dict("records")),
            }
            for one in test.segments_
        },
        "arms": [
            {"arm": arm, **to_plain(row)}
            for arm, row in zip(test.arms, test.to_frame().to_dict("records"), strict=True)
        ],
    }


def _list_fields(values: Iterable[Any]) -> list[Document]:
    return [to_plain(asdict(one)) for one in values]


def _format_value(settings: Settings) -> dict[str, str]:
    return {
        "arm": settings.arm,
        "reward": settings.reward,
        "per": settings.per or "",
        "segment": settings.segment or "",
        "covariates": ", ".join(settings.covariates),
        "model": settings.model,
        "planned rows": "" if settings.planned_rows is None else f"{settings.planned_rows:g}",
        "smallest effect": f"{settings.smallest_effect:g}",
        "reward range": " to ".join(f"{end:g}" for end in settings.reward_range or ()),
        "cap": "" if settings.cap is None else f"{settings.cap:g}",
        "level": f"{settings.level:g}",
    }
