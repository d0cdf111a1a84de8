"""An experiment in a file: which arm earns most, and whether that is sure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from posterity.cli.estimates import finite, format_number
from posterity.cli.intervals import IntervalSettings, report_intervals
from posterity.cli.pages import check_page
from posterity.cli.tables import table_path
from posterity.experiments import AnytimeValid, Experiment
from posterity.experiments.pairs import LONGEST_WAIT, round_rows
from posterity.forgetting.words import parse
from posterity.io.folders import open_source
from posterity.io.rounds import read_arms
from posterity.io.source import Source
from posterity.report import EstimateRow
from posterity.words import build_model, parse_one

# Below this p value of the sample ratio the report warns.
_WARNING_P_VALUE = 0.01
HEADER = ("arm", "rows", "mean", "effect", "interval", "best", "expected loss")


@dataclass(frozen=True, kw_only=True)
class Settings(IntervalSettings):
    """Options of the verb, one field each."""

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
        test = _experiment(settings, source)
        test = test.observe(
            source,
            arm=settings.arm,
            reward=settings.reward,
            covariates=settings.covariates,
            propensities=settings.propensities,
            missing=settings.missing,
        )
    remarks = _describe(test)
    report_intervals(
        settings,
        page,
        title=f"{settings.reward} by {settings.arm}",
        remarks=remarks,
        header=HEADER,
        lines=_make_rows(test),
        document=_make_document(settings, test),
        shown=_format_value(settings),
        notes=source.notes,
        over_time=_follow(test),
        unit="percentage points" if test.is_binary_ else "",
    )


def _follow(test: Experiment) -> list[dict[str, Any]]:
    """The effects as rows came, once they had intervals."""
    frame = test.effects_over_time().rename(columns={"arm": "name", "effect": "value"})
    frame["name"] = frame["name"].astype(str)
    numbers = ["value", "low", "high"]
    frame[numbers] *= _find_scale(test)
    known = np.isfinite(frame[numbers]).all(axis=1)
    return list(frame[known].to_dict("records"))


def _experiment(settings: Settings, source: Source) -> Experiment:
    arms = list(read_arms(source, settings.arm))
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


def _describe(test: Experiment) -> list[str]:
    verdict, *pairs = test.report().splitlines()
    lines = [verdict, _advise(test), *pairs]
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


def _advise(test: Experiment) -> str:
    """What to do next."""
    if test.decision_ is not None:
        return f"What to do next: take {test.decision_.arm}."
    more = test.expected_rows_ - test.n_observations_
    if test.sample_ratio_p_value_ < test.sample_ratio_level:
        return "What to do next: find out why arms came in other shares, and begin again."
    if not 0.0 < more < LONGEST_WAIT * test.n_observations_:
        return "What to do next: go on, or end it without a winner; no difference is in sight."
    return (
        f"What to do next: go on; about {round_rows(more):,} more rows tell which arm to take, if "
        "arms are as they seem now."
    )


def _find_scale(test: Experiment) -> float:
    """What effects are multiplied by: those of yes and no are read in percentage points."""
    return 100.0 if test.is_binary_ else 1.0


def _make_rows(test: Experiment) -> list[EstimateRow]:
    frame, control, unit = test.to_frame(), test.arms[0], "%" if test.is_binary_ else ""
    frame[["mean", "effect", "low", "high", "expected_loss"]] *= _find_scale(test)
    lines = []
    for arm, row in zip(test.arms, frame.itertuples(), strict=True):
        effect, interval = "control", ""
        if arm != control:
            effect = format_number(row.effect)
            interval = f"{format_number(row.low)} to {format_number(row.high)}"
        cells = (
            str(arm),
            f"{row.rows:,}",
            format_number(row.mean) + unit,
            effect,
            interval,
            f"{100.0 * row.probability_best:.1f}%",
            format_number(row.expected_loss),
        )
        lines.append(EstimateRow(str(arm), cells, row.effect, row.low, row.high))
    return lines


def _make_document(settings: Settings, test: Experiment) -> dict[str, Any]:
    decided = test.decision_
    return {
        "file": settings.file,
        "n_rows": test.n_observations_,
        "level": settings.level,
        "decision": None
        if decided is None
        else {"arm": decided.arm, "reason": decided.reason, "rows": decided.rows},
        "undecided_reason": test.undecided_reason_,
        "expected_rows": finite(test.expected_rows_),
        "sample_ratio_p_value": test.sample_ratio_p_value_,
        "pairs": [
            {name: finite(value) for name, value in asdict(pair).items()} for pair in test.pairs_
        ],
        "arms": [
            {"arm": arm} | {name: finite(value) for name, value in row.items()}
            for arm, row in zip(test.arms, test.to_frame().to_dict("records"), strict=True)
        ],
    }


def _format_value(settings: Settings) -> dict[str, str]:
    return {
        "arm": settings.arm,
        "reward": settings.reward,
        "covariates": ", ".join(settings.covariates),
        "model": settings.model,
        "planned rows": "" if settings.planned_rows is None else f"{settings.planned_rows:g}",
        "smallest effect": f"{settings.smallest_effect:g}",
        "reward range": " to ".join(f"{end:g}" for end in settings.reward_range or ()),
        "cap": "" if settings.cap is None else f"{settings.cap:g}",
        "level": f"{settings.level:g}",
    }


__all__ = ["Settings", "run"]
