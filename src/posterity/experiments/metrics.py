"""Several metrics of one experiment, of which the first decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Self

from posterity.aliases import DataFrame
from posterity.distributions.guesses import TellsCalls, TellsNames
from posterity.distributions.joint_distribution import require_pandas
from posterity.experiments.experiment import Experiment
from posterity.experiments.hints import METRICS_NAMES, OTHER_ARGUMENTS
from posterity.experiments.pairs import Pair, describe_effect
from posterity.io.table import open_any
from posterity.transaction import atomic


@dataclass(frozen=True)
class Guardrail:
    """What an arm does to a metric that may not become worse by more than a margin.

    Attributes
    ----------
    metric, arm : names
    effect, low, high : float
        Beside the control.
    allowed : float
        The largest change that is allowed: -0.1 allows a fall by 0.1, 0.1 a rise.
    in_points : bool
        True if rewards are no and yes.
    """

    metric: str
    arm: Any
    effect: float
    low: float
    high: float
    allowed: float
    in_points: bool

    @property
    def _room(self) -> tuple[float, float]:
        """How far the interval's ends are from the margin, the nearer one first."""
        ends = (self.low, self.high) if self.allowed < 0.0 else (-self.high, -self.low)
        return ends[0] + abs(self.allowed), ends[1] + abs(self.allowed)

    @property
    def is_kept(self) -> bool:
        """True if the change is surely an allowed one."""
        return self._room[0] > 0.0

    @property
    def is_broken(self) -> bool:
        """True if it surely is not."""
        return self._room[1] < 0.0

    def __str__(self) -> str:
        said = "is kept" if self.is_kept else "is broken" if self.is_broken else "is not known yet"
        way = "fall" if self.allowed < 0.0 else "rise"
        shown = "too few rows yet"
        if math.isfinite(self.low) and math.isfinite(self.high):
            shown = describe_effect(self.effect, self.low, self.high, self.in_points)
        margin = f"may {way} by {abs(self.allowed):g}"
        return f"Guardrail {self.metric} ({margin}) {said} by {self.arm}: {shown}."


class Metrics(TellsCalls, TellsNames):
    """One experiment, several metrics: the first decides, and the others are read beside it.

    Pairs of arms are told apart in the other metrics by the rule of Holm (1979), so that together
    they say anything false in at most 5% of experiments, at any look; the intervals are those of
    its last step. Guardrails share the errors as Bonferroni would.

    Parameters
    ----------
    experiments : mapping of column to Experiment
        Of the same arms and level; the first one's verdict is the experiment's.
    guardrails : mapping of column to float
        The largest change beside the control that is allowed in one of the others, in its unit:
        -0.1 allows a fall by 0.1, 5 a rise by 5.

    Raises
    ------
    ValueError
        If arms or levels differ, and for a guardrail that is no other metric, or has no margin.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> visits = pd.DataFrame({"arm": rng.choice(["A", "B"], size=9000)})
    >>> visits["bought"] = rng.random(9000) < np.where(visits["arm"] == "B", 0.15, 0.1)
    >>> visits["seconds"] = 30.0 + 5.0 * rng.normal(size=9000)
    >>> arms = ["A", "B"]
    >>> metrics = Metrics(
    ...     {"bought": Experiment(arms), "seconds": Experiment(arms)}, guardrails={"seconds": 1.0}
    ... )
    >>> metrics.observe(visits).next_step_
    'take B'
    >>> print(metrics.guardrails_[0])
    Guardrail seconds (may rise by 1) is kept by B: +0.09 (-0.25 to +0.43).
    """

    other_arguments = OTHER_ARGUMENTS

    _our_names = METRICS_NAMES

    def __init__(
        self, experiments: Mapping[str, Experiment], guardrails: Mapping[str, float] | None = None
    ) -> None:
        of_metrics = experiments.values() if isinstance(experiments, Mapping) else ()
        if not of_metrics or not all(isinstance(one, Experiment) for one in of_metrics):
            raise ValueError(
                f"experiments are {experiments!r}: give one for each metric, as in "
                "{'bought': Experiment(arms), 'spent': Experiment(arms)}"
            )
        if not isinstance(guardrails, Mapping | None):
            raise TypeError(
                f"guardrails are {guardrails!r}: give the change that each allows, as in "
                "{'seconds': 0.5}"
            )
        self.experiments, self.guardrails = dict(experiments), dict(guardrails or {})
        self.primary = next(iter(self.experiments.values()))
        for name, other in self.experiments.items():
            if (other.arms, other.level) != (self.primary.arms, self.primary.level):
                raise ValueError(
                    f"metric {name!r} has arms {list(other.arms)} and level {other.level:g}, and "
                    f"the first one {list(self.primary.arms)} and {self.primary.level:g}: give all "
                    "the same"
                )
        for name, allowed in self.guardrails.items():
            if name not in list(self.experiments)[1:] or not _is_change(allowed):
                raise ValueError(
                    f"guardrail {name!r} is {allowed!r}: name one of "
                    f"{list(self.experiments)[1:]}, and a change that is allowed, not 0 or infinite"
                )

    def __repr__(self) -> str:
        return f"Metrics({list(self.experiments)}, {self.primary!r})"

    def _branch(self) -> Self:
        return type(self)(
            {name: one._branch() for name, one in self.experiments.items()}, self.guardrails
        )

    @atomic
    def observe(
        self, table: object, *, per: Mapping[str, str] | None = None, **columns: Any
    ) -> Self:
        """Learn rows of a table: each metric is a column of it.

        Parameters
        ----------
        table : path, data frame, or Arrow table
            It is read once for each metric.
        per : mapping of metric to column, optional
            What ratios are divided by, as in :meth:`Experiment.observe`.
        **columns
            ``arm``, ``covariates`` and all else that :meth:`Experiment.observe` takes.

        Raises
        ------
        posterity.io.TableError, ValueError
            As there; nothing was learned then.
        """
        unknown = set(per or ()) - set(self.experiments)
        if unknown:
            raise ValueError(
                f"per has {sorted(unknown)}: its keys are metrics, {list(self.experiments)}"
            )
        if "reward" in columns:
            raise TypeError(
                f"reward is {columns['reward']!r}: metrics are columns, {list(self.experiments)}"
            )
        source = open_any(table)
        if len(self.experiments) > 1 and not source.reads_again:
            raise ValueError(
                "the table can be read only once, and each metric reads it: give a file or a frame"
            )
        for name, one in self.experiments.items():
            one.observe(table, reward=name, per=(per or {}).get(name), **columns)
        return self

    @property
    def pairs_(self) -> dict[str, tuple[Pair, ...]]:
        """All pairs of arms in each metric; intervals of the others are those of Holm's last step.

        A pair that is told apart leaves its share of the errors to those that are not yet.
        """
        first, *others = self.experiments
        shown = {first: self.primary.pairs_}
        count = len(shown[first]) * len(others)
        told, found = -1, 0
        while found > told and others:
            told = found
            share = (1.0 - self.primary.level) / max(count - told, 1)
            level = 1.0 - share * len(shown[first])
            shown |= {name: self.experiments[name].at_level(level).pairs_ for name in others}
            found = sum(pair.is_decided for name in others for pair in shown[name])
        return shown

    @property
    def guardrails_(self) -> tuple[Guardrail, ...]:
        """What each arm but the control does to each guardrail."""
        return tuple(self._read_guardrails())

    def _read_guardrails(self) -> Iterator[Guardrail]:
        for name, allowed in self.guardrails.items():
            level = 1.0 - (1.0 - self.primary.level) / len(self.guardrails)
            one = self.experiments[name].at_level(level)
            for arm, (low, high) in one.interval_.items():
                yield Guardrail(name, arm, one.effect_[arm], low, high, allowed, one.is_binary_)

    @property
    def next_step_(self) -> str:
        """What to do next, in a sentence."""
        decided = self.primary.decision_
        own = [one for one in self.guardrails_ if decided and one.arm == decided.arm]
        for one in own:
            if one.is_broken:
                return (
                    f"do not take {one.arm} as it is: it changes {one.metric} by more than is "
                    "allowed"
                )
        waiting = [one.metric for one in own if not one.is_kept]
        if waiting:
            return (
                f"go on until {' and '.join(waiting)} is known not to change by more than is "
                f"allowed, and take {own[0].arm} then"
            )
        return self.primary.next_step_

    def report(self) -> str:
        """What is known, in sentences: the first metric's verdict, and all pairs and guardrails."""
        return "\n".join(
            [
                self.primary.verdict_,
                f"What to do next: {self.next_step_}.",
                *(
                    f"{name}: {pair.describe('is above' if name in self.guardrails else 'beats')}"
                    for name, pairs in self.pairs_.items()
                    for pair in pairs
                ),
                *map(str, self.guardrails_),
            ]
        )

    def to_frame(self) -> DataFrame:
        """A pandas data frame, one row for each metric and pair of arms, as ``pairs_``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        rows = [
            {"metric": name, **asdict(pair)}
            for name, pairs in self.pairs_.items()
            for pair in pairs
        ]
        return require_pandas("to_frame").DataFrame(rows)


def _is_change(allowed: object) -> bool:
    return isinstance(allowed, Real) and math.isfinite(allowed) and allowed != 0.0
