"""What other policies would have earned, in sentences: what a log says, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from posterity.aliases import DataFrame, Document
from posterity.distributions._digits import round_rows
from posterity.off_policy.evaluation import (
    FEWEST_EFFECTIVE_ROWS,
    check_log,
    evaluate,
    name_policies,
)
from posterity.off_policy.log import Log
from posterity.off_policy.result import Estimate, Evaluation
from posterity.off_policy.targets import Always

# Of these the first by which a policy can be judged is spoken of.
METHODS, WITHOUT_PROPENSITIES = ("dr", "snips"), ("dr", "snips", "dm")
LOGGED = "logged"
# Parts of the log, along time.
PARTS = 20


@dataclass(frozen=True)
class WhatIf:
    """What a log of decisions says of other policies.

    Attributes
    ----------
    evaluation : Evaluation
        All estimates; that of the log's own policy is called "logged".
    course : tuple of dict
        For each of twenty parts of the log and each arm: "rows" until then, "name" of the arm, its
        mean "propensity" (nan where it is not known), and the "value" of its rewards with the ends
        "low" and "high" of the interval of their mean (nan where no two rewards differ).
    has_propensities : bool
        Whether the log has the probabilities of its choices.
    """

    evaluation: Evaluation
    course: tuple[Document, ...]
    has_propensities: bool = True

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate of each policy, the best first: by the first method that the log allows."""
        best: dict[str, Estimate] = {}
        for one in self.evaluation.estimates:
            if one.policy not in best or math.isnan(best[one.policy].value):
                best[one.policy] = one
        return tuple(sorted(best.values(), key=lambda one: (math.isnan(one.value), -one.value)))

    @property
    def answer(self) -> str:
        """What the log says, in one or two sentences."""
        logged, others, better = self._compare()
        level = f"{100.0 * self.evaluation.level:g}%"
        earned = f"The log's policy earned {_write(logged)[0]} a decision"
        if math.isnan(logged.value):
            earned = "Of the log's own policy nothing is known"
        if self.missing_rows:
            return (
                f"{earned}. The log is too small to tell what another policy would have earned: it "
                f"has {_count(self.evaluation.rows)}, and about {self.missing_rows:,} more are "
                "needed."
            )
        if better:
            best = better[0]
            (value, low, high), least = _write(best), best.low - logged.high
            return (
                f"{best.policy!r} would have earned {value} a decision ({level} interval "
                f"{low} to {high}), at least {_plain(least, 2)} more than the "
                f"{_write(logged)[0]} that the log's policy earned."
            )
        if not others:
            return f"{earned}. The log can't tell what any other policy would have earned."
        best = others[0]
        value, low, high = _write(best)
        return (
            f"{earned}. No other policy is surely better: the best, {best.policy!r}, would have "
            f"earned {value} ({level} interval {low} to {high})."
        )

    @property
    def missing_rows(self) -> int:
        """About how many decisions the log lacks before anything can be told; 0 if it has enough.

        The policy of which it knows most, but its own, is to have thirty effective rows.
        """
        rows, own = self.evaluation.rows, self.evaluation.support
        known = [own[one.policy].effective_rows for one in self._compare()[1]]
        effective = np.fmax.reduce([0.0, *known]) if self.has_propensities else rows
        if not known or effective >= FEWEST_EFFECTIVE_ROWS:
            return 0
        return max(round_rows(rows * (FEWEST_EFFECTIVE_ROWS / max(effective, 1.0) - 1.0)), 1)

    @property
    def next_steps(self) -> tuple[str, ...]:
        """What to do next, in sentences."""
        logged, others, better = self._compare()
        if self.missing_rows:
            more = f"about {self.missing_rows:,} decisions more"
            return (f"Collect {more}, with the probability of each choice, and ask again.",)
        steps = []
        if better:
            steps.append(f"Use {better[0].policy!r}, and log the probability of each choice again.")
        elif others:
            steps.append(f"Keep the policy of the log.{self._plan(others[0], logged)}")
        if not self.has_propensities:
            steps.append("Log the probability of each choice: without it all rests on a model.")
        steps += [step for one in self.estimates for step in self._explain(one)]
        return tuple(steps)

    def to_frame(self) -> DataFrame:
        """A pandas data frame of all estimates, as :meth:`Evaluation.to_frame`."""
        return self.evaluation.to_frame()

    def __str__(self) -> str:
        lines = [self.answer, ""]
        width = max(len(one.policy) for one in self.estimates)
        for one in self.estimates:
            value, low, high = _write(one)
            known = f"{value} ({low} to {high})"
            rows = self.evaluation.support[one.policy].effective_rows
            if rows > 0.0:  # with propensities
                known += f", as {_count(rows)} of its own would tell"
            lines.append(f"{one.policy:{width}}  {one.note if math.isnan(one.value) else known}")
        return "\n".join([*lines, "", *(f"Next: {step}" for step in self.next_steps)])

    # ---- inner ---------------------------------------------------------------------------------

    def _compare(self) -> tuple[Estimate, list[Estimate], list[Estimate]]:
        """The log's policy, the others that have a value, and those that are surely better.

        These have intervals that do not overlap with the log's: that errs less often than the
        difference of two would, and the best of several policies is spoken of.
        """
        logged = next(one for one in self.estimates if one.policy == LOGGED)
        known = [one for one in self.estimates if not math.isnan(one.value) and one is not logged]
        return logged, known, [one for one in known if one.low > logged.high]

    def _plan(self, best: Estimate, logged: Estimate) -> str:
        """How many decisions would tell two policies apart, where they differ as they seem to."""
        apart = best.value - logged.value
        widths = 0.5 * (best.high - best.low + logged.high - logged.low)
        if not (apart > 0.0 and math.isfinite(widths)):
            return ""
        rows = self.evaluation.rows * ((widths / apart) ** 2 - 1.0)
        return (
            f" If {best.policy!r} is better by {_plain(apart, 2)}, as it seems, about "
            f"{round_rows(max(rows, 1.0)):,} decisions more will show it."
        )

    def _explain(self, one: Estimate) -> list[str]:
        """What helps where a policy can't be judged, or hardly."""
        support = self.evaluation.support[one.policy]
        if math.isnan(one.value):
            return [
                f"{one.policy!r} can't be judged: {one.note}. Let the policy choose each arm "
                "sometimes, by a floor of 2% say."
            ]
        effective = support.effective_rows
        if 0.0 < effective < FEWEST_EFFECTIVE_ROWS:
            rows = max(support.rows * (FEWEST_EFFECTIVE_ROWS / effective - 1.0), 1.0)
            return [
                f"Of {one.policy!r} the log knows only as much as {_count(effective)} of its own "
                f"would tell: collect about {round_rows(rows):,} more, or raise the floor."
            ]
        end = "" if one.note.endswith("?") else "."
        return [f"{one.policy!r}: {one.note}{end}"] if one.note else []


def what_if(
    log: Log,
    policies: Mapping[str, Any] | None = None,
    *,
    methods: Sequence[str] = (),
    level: float = 0.95,
    reward_range: tuple[float, float] | None = None,
    reward_model: Any = None,
) -> WhatIf:
    """Say what other policies would have earned, how sure that is, and what to do next.

    Parameters
    ----------
    log : Log
    policies : mapping of name to policy, optional
        As of :func:`evaluate`; default each arm always, and all arms alike often.
    methods : sequence of str, optional
        As of :func:`evaluate`, the one to speak of first; default "dr" and "snips", and "dm" where
        the log has no propensities.
    level : float
        Of the intervals.
    reward_range : (low, high), optional
        What rewards can be.
    reward_model : estimator or function, optional
        As of :func:`evaluate`.

    Returns
    -------
    WhatIf
        ``print`` shows it in words.

    Raises
    ------
    TypeError, ValueError
        As :func:`evaluate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arms = rng.choice(["red", "blue"], size=4000, p=[0.8, 0.2])
    >>> bought = rng.random(4000) < np.where(arms == "blue", 0.3, 0.1)
    >>> chances = np.tile([0.2, 0.8], (4000, 1))  # of blue and red, as sorted
    >>> found = what_if(Log.of(np.zeros((4000, 1)), arms, bought, propensities=chances))
    >>> found.answer[:51], found.next_steps[0][:18]
    ("'always blue' would have earned 0.3012 a decision (", "Use 'always blue',")
    """
    check_log(log)
    policies = None if policies is None else name_policies(policies)
    if policies is not None and str(policies.get(LOGGED, LOGGED)) != LOGGED:
        raise ValueError(
            f"a policy is called {LOGGED!r}, as the log's own is in the answer: give another name"
        )
    if policies is None:
        policies = {f"always {arm}": Always(arm) for arm in log.arms} | {"uniform": "uniform"}
    evaluation = evaluate(
        log,
        {**policies, LOGGED: "logged"},
        methods or (METHODS if log.has_propensities else WITHOUT_PROPENSITIES),
        level=level,
        reward_range=reward_range,
        reward_model=reward_model,
    )
    course = follow_arms(log, evaluation.rows, level)
    return WhatIf(evaluation, course, log.has_propensities)


def follow_arms(log: Log, rows: int, level: float) -> tuple[Document, ...]:
    """Propensities and rewards of each arm along a log of so many rows; see :class:`WhatIf`."""
    parts, arms = min(PARTS, rows), len(log.arms)
    chances, sums = np.zeros((parts, arms)), np.zeros((3, parts, arms))
    ends, first = np.arange(1, parts + 1) * rows // parts, 0
    start: float | None = None
    for piece in log:
        start = float(piece.rewards[0]) if start is None else start
        part = np.searchsorted(ends, first + np.arange(len(piece)), side="right")
        first += len(piece)
        unknown = np.full((len(piece), arms), np.nan)
        np.add.at(chances, part, unknown if piece.propensities is None else piece.propensities)
        for power, total in enumerate(sums):
            np.add.at(total, (part, piece.arms), (piece.rewards - start) ** power)
    chances /= np.diff(ends, prepend=0)[:, None]
    count = sums[0]
    with np.errstate(all="ignore"):
        mean = sums[1] / count
        squares = sums[2] - count * mean**2
        # Rewards that are all alike don't tell how far others lie from them.
        squares = np.where(squares > 1e-12 * sums[2], squares, np.nan)
        radius = stdtrit(count - 1.0, 0.5 + level / 2.0) * np.sqrt(squares / (count - 1.0) / count)
        mean += 0.0 if start is None else start
    return tuple(
        {
            "rows": int(ends[part]),
            "name": str(name),
            "propensity": float(chances[part, arm]),
            "value": float(mean[part, arm]),
            "low": float(mean[part, arm] - radius[part, arm]),
            "high": float(mean[part, arm] + radius[part, arm]),
        }
        for part in range(parts)
        for arm, name in enumerate(log.arms)
    )


def _count(rows: float) -> str:
    """So many decisions."""
    shown = f"{rows:,.0f}"
    return f"{shown} decision" if shown == "1" else f"{shown} decisions"


def _write(one: Estimate) -> list[str]:
    """Value and ends in four digits, or in as many as show how wide the interval is."""
    digits, half = 4, 0.5 * (one.high - one.low)
    if one.value and 0.0 < half < math.inf:
        digits = max(4, 2 + math.floor(math.log10(abs(one.value))) - math.floor(math.log10(half)))
    return [_plain(number, digits) for number in (one.value, one.low, one.high)]


def _plain(number: float, digits: int) -> str:
    """A number in so many digits; large ones whole, not as powers of ten, but for huge ones."""
    shown = f"{number:.{digits}g}"
    return f"{number:,.0f}" if "e+" in shown and abs(number) < 1e15 else shown
