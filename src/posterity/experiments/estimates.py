"""What an experiment knows: means, effects, pairs, the verdict."""

from __future__ import annotations

import copy
from itertools import combinations
from typing import Any, Self

import numpy as np

from posterity.aliases import Array, DataFrame
from posterity.distributions._digits import round_rows
from posterity.distributions.joint_distribution import require_pandas
from posterity.experiments.contrasts import Contrasts
from posterity.experiments.linearized import Linearized
from posterity.experiments.looks import Look, make_frame
from posterity.experiments.pairs import LONGEST_WAIT, Pair, compute_lifts
from posterity.experiments.ratio import SampleRatio
from posterity.experiments.segments import Part, Segments, compare_segments
from posterity.experiments.stopping import ArmSummaries, Decision, Stop


class Estimates:
    """Base of :class:`Experiment`: what its rows say so far."""

    arms: tuple[Any, ...]
    stop: Stop
    level: float
    planned_rows: float | None
    sample_ratio_level: float
    n_observations_: int
    is_binary_: bool
    _counts: Array
    _contrasts: Contrasts
    _segments: dict[str, Part]
    _ratio: SampleRatio
    _linearized: Linearized | None
    _decision: Decision | None
    _looks: tuple[Look, ...]
    _planned_end: Contrasts | None

    @property
    def _is_broken(self) -> bool:
        return self.sample_ratio_p_value_ < self.sample_ratio_level

    @property
    def decision_(self) -> Decision | None:
        """The end, as found at the first look that found one; None if arms came in other shares."""
        return None if self._is_broken else self._decision

    @property
    def _arms_without_per(self) -> list[Any]:
        """Arms of a ratio that have no row yet whose denominator is above 0."""
        below = () if self._linearized is None else self._linearized.sums[2]
        return [arm for arm, total in zip(self.arms, below, strict=False) if not total > 0.0]

    @property
    def undecided_reason_(self) -> str | None:
        """Why there is no verdict; None if there is one."""
        if self.decision_ is not None:
            return None
        if self._is_broken:
            return (
                "arms did not come as often as they should have (p = "
                f"{self.sample_ratio_p_value_:.2g}), so what differs may be the visitors: find out "
                "why, or give allocation= as it is; sample_ratio_level=0 decides all the same"
            )
        if self._arms_without_per:
            arm = self._arms_without_per[0]
            return f"no row of arm {arm!r} has anything above 0 to divide its reward by"
        open_ = np.argwhere(~self._contrasts.has_told_spread[:-1, :-1])
        if open_.size:
            arm = min(open_[0], key=self._contrasts.effective_rewards.__getitem__)
            return (
                f"arm {self.arms[arm]!r} has shown {self._contrasts.effective_rewards[arm]:.0f} "
                f"rewards, in effect, that tell its spread, and "
                f"{self._contrasts.needed_rewards[tuple(open_[0])]:.0f} are needed; give "
                "reward_range= if rewards have one"
            )
        return self.stop.waits

    @property
    def scored_(self) -> dict[Any, int]:
        """Number of rows of each arm that the estimates are of: those after the first few.

        The first rows are learned only, to predict the rewards of the others.
        """
        return {arm: int(n) for arm, n in zip(self.arms, self._contrasts.moments[0], strict=True)}

    @property
    def mean_(self) -> dict[Any, float]:
        """Mean reward of each arm if all rows had it; NaN while rows are few."""
        return self._by_arm(self._contrasts.differences[:-1, -1])

    @property
    def effect_(self) -> dict[Any, float]:
        """Difference of the mean of each arm and that of the control."""
        return self._by_arm(self._contrasts.differences[:-1, 0], first=1)

    @property
    def interval_(self) -> dict[Any, tuple[float, float]]:
        """Interval of each effect, valid at all times and for all arms together."""
        (low, _), (high, _) = self._bounds()
        both = zip(low[:, 0].tolist(), high[:, 0].tolist(), strict=True)
        return dict(list(zip(self.arms, both, strict=True))[1:])

    @property
    def pairs_(self) -> tuple[Pair, ...]:
        """All pairs of arms, the better arms first; intervals hold at all times and together.

        ``str`` of a pair is a sentence, and ``pandas.DataFrame(test.pairs_)`` a table.
        """
        low, high = self._bounds()
        smallest, distances = self.stop.smallest_effect, np.abs(self._differences)
        needed = self._expect_rows(np.maximum(distances, smallest - distances))
        differences, means = self._contrasts.differences, self._contrasts.differences[:-1, -1]
        order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
        pairs = []
        for a, b in combinations(order.tolist(), 2):
            at = (b, a) if differences[a, b] < 0.0 else (a, b)
            other = means[at[1]]
            pair = Pair(
                arm=self.arms[at[0]],
                other=self.arms[at[1]],
                effect=float(differences[at]),
                low=float(low[0][at]),
                high=float(high[0][at]),
                lift=float(differences[at] / other) if other > 0.0 else np.nan,
                lift_low=float(low[1][at]),
                lift_high=float(high[1][at]),
                expected_rows=float(needed[at]),
                n_observations=self.n_observations_,
                in_points=self.is_binary_,
                smallest_effect=smallest,
            )
            pairs.append(pair)
        return tuple(pairs)

    @property
    def segments_(self) -> tuple[Segments, ...]:
        """The effect of each arm but the control in segments; empty if rows had none."""
        return compare_segments(
            self.arms if self._segments else self.arms[:1],
            dict(sorted(self._segments.items())),
            self._contrasts,
            level=self.level,
            in_points=self.is_binary_,
        )

    @property
    def probability_best_(self) -> dict[Any, float]:
        """Probability of each arm that its mean is the largest, for a single look."""
        return self._by_arm(self._summarize_arms().best)

    @property
    def expected_loss_(self) -> dict[Any, float]:
        """Expected loss per row if each arm is chosen; infinite while rows are few."""
        return self._by_arm(self._summarize_arms().loss)

    @property
    def expected_rows_(self) -> float:
        """Rows in all by which the intervals tell an arm to take, if arms are as they seem now.

        About: effects that seem large early are smaller, as a rule. Infinite while rows are few,
        and where it takes more than some ten thousand times as many.
        """
        if self.decision_ is not None:
            return float(self.decision_.rows)
        means = np.nan_to_num(self._contrasts.differences[:-1, -1], nan=-np.inf)
        needed = self._expect_rows(np.abs(self._differences) + self.stop.smallest_effect)
        return float(np.delete(needed[means.argmax()], means.argmax()).max())

    @property
    def sample_ratio_p_value_(self) -> float:
        """p-value of the observed shares of arms, valid at any time: small if they are wrong."""
        return self._ratio.p_value

    def to_frame(self) -> DataFrame:
        """A pandas data frame, one row for each arm.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pandas = require_pandas("to_frame")
        summaries = self._summarize_arms()
        columns = {
            "rows": self._counts.astype(int),
            "scored": self._contrasts.moments[0].astype(int),
            "mean": summaries.means,
            "effect": self._contrasts.differences[:-1, 0],
            "low": summaries.low[:, 0],
            "high": summaries.high[:, 0],
            "probability_best": summaries.best,
            "expected_loss": summaries.loss,
        }
        frame = pandas.DataFrame(columns, index=pandas.Index(list(self.arms), name="arm"))
        frame.loc[frame.index[0], ["effect", "low", "high"]] = np.nan
        return frame

    def report(self) -> str:
        """What is known, in sentences: the verdict, each pair, and what is still needed.

        Examples
        --------
        >>> from posterity.experiments import Experiment
        >>> rng = np.random.default_rng(0)
        >>> arms = rng.choice(["old", "new"], size=9000)
        >>> bought = rng.random(9000) < np.where(arms == "new", 0.15, 0.1)
        >>> print(Experiment(["old", "new"]).observe_rows(arms, bought).report())
        Decided after 2,048 of 9,000 rows so far: new is better than all others.
        new beats old: +4.5 points (+2.2 to +6.7), +43% (+20 to +73%).
        """
        return "\n".join([self.verdict_, *map(str, (*self.pairs_, *self.segments_))])

    def _describe_effects(self) -> Look:
        (low, _), (high, _) = self._bounds()
        effects = self._contrasts.differences[1:-1, 0]
        return Look(self.n_observations_, effects, low[1:, 0], high[1:, 0])

    @property
    def verdict_(self) -> str:
        """The verdict, or why there is none, in a sentence."""
        decided = self.decision_
        if decided is None:
            return f"Nothing is decided: {self.undecided_reason_}."
        rows = f"{decided.rows:,} of {self.n_observations_:,} rows so far"
        return f"Decided after {rows}: {decided.arm} {decided.reason}."

    @property
    def next_step_(self) -> str:
        """What to do next, in a sentence."""
        if self.decision_ is not None:
            return f"take {self.decision_.arm}"
        if self._is_broken:
            return "find out why arms came in other shares, and begin again"
        if not np.isfinite(self._bounds()[0][0][np.triu_indices(len(self.arms), 1)]).any():
            return "go on; there are too few rows yet to tell anything"
        more = self.expected_rows_ - self.n_observations_
        if not 0.0 < more < LONGEST_WAIT * self.n_observations_:
            if self.n_observations_ < (self.planned_rows or 0.0):
                return f"go on to the {self.planned_rows:,.0f} rows that are planned"
            return "go on, or end it without a winner; no difference is in sight"
        return (
            f"go on; about {round_rows(more):,} more rows tell which arm to take, if arms are as "
            "they seem now"
        )

    def at_level(self, level: float) -> Self:
        """The same rows with intervals of another level; a verdict is that of the level before."""
        branch = copy.copy(self)
        branch.level = level
        return branch

    def effects_over_time(self) -> DataFrame:
        """A pandas data frame of each arm's effect as rows came: rows, arm, effect, low, high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        looks = self._looks
        if looks and looks[-1].rows < self.n_observations_:
            looks = (*looks, self._describe_effects())
        return make_frame(looks, self.arms[1:])

    @property
    def _level_of_pairs(self) -> float:
        count = len(self.arms)
        return 1.0 - (1.0 - self.level) / (count * (count - 1) / 2)

    @property
    def _planned_scores(self) -> float | None:
        """The planned rows without the first, which are learned only."""
        if self.planned_rows is None:
            return None
        return max(self.planned_rows - self.n_observations_ + self._contrasts.rows, 1.0)

    @property
    def _differences(self) -> Array:
        return self._contrasts.differences[:-1, :-1]

    def _expect_rows(self, widths: Array) -> Array:
        """(K, K) rows in all by which half widths fall below these."""
        needed = self._contrasts.expect_rows(widths, self._level_of_pairs, self._planned_scores)
        return needed + self.n_observations_ - self._contrasts.rows

    def _bounds(self) -> tuple[Array, Array]:
        """(2, K, K) ends of all differences and lifts; their errors share what the level leaves.

        Later looks keep what was known when the planned rows had come.
        """
        low, high = self._bound(self._contrasts)
        if self._planned_end is None:
            return low, high
        then = self._bound(self._planned_end)
        return np.maximum(low, then[0]), np.minimum(high, then[1])

    def _bound(self, known: Contrasts) -> tuple[Array, Array]:
        variances = known.variances
        radius = known.compute_half_widths(self._level_of_pairs, self._planned_scores)[:-1, :-1]
        if self.is_binary_:  # of a share nothing is known that is not known to a whole
            radius = np.where(radius < 1.0, radius, np.inf)
        differences = np.nan_to_num(known.differences[:-1])
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = radius / np.sqrt(variances[:-1, :-1])
        lifts = compute_lifts(differences[:, -1], variances, errors)
        return (
            np.array([differences[:, :-1] - radius, lifts[0]]),
            np.array([differences[:, :-1] + radius, lifts[1]]),
        )

    def _summarize_arms(self) -> ArmSummaries:
        means, (low, high) = self._contrasts.differences[:-1, -1], self._bounds()
        return ArmSummaries(means, low[0], high[0], self.n_observations_, self._contrasts.draws)

    def _by_arm(self, values: Array, first: int = 0) -> dict[Any, float]:
        return dict(list(zip(self.arms, values.tolist(), strict=True))[first:])
