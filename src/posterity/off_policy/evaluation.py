"""Several policies, judged from the log of another one by several methods, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from scipy import stats

from posterity.aliases import Array, Estimator
from posterity.io.rounds import Rounds, check_reward_range, check_rewards_within
from posterity.off_policy.expectations import BeforeLearning, ByFolds, Expectations, Nothing
from posterity.off_policy.log import Log
from posterity.off_policy.result import Estimate, Evaluation
from posterity.off_policy.sums import (
    BIASED,
    METHODS,
    MODERATED,
    WITHOUT_MODEL,
    WITHOUT_PROPENSITIES,
    EstimatorSums,
    Sums,
    choose_estimator,
)
from posterity.off_policy.support import (
    TOLERATED_SHARE,
    ArmRewards,
    RewardSpread,
    Support,
    SupportSums,
)
from posterity.off_policy.targets import EvaluatedDecisions, Target, target_of
from posterity.sequential import LowerBound, sequence_radius

# Effective rows before which no asymptotic sequence is given, and below which a note is.
FEWEST_EFFECTIVE_ROWS = 30.0
_NO_MATCH = "no decision of the log is one that the policy would make"
_NUMBERS = ("value", "std_error", "low", "high", "anytime_low", "anytime_high")


@dataclass(frozen=True, kw_only=True)
class _EvaluationSettings:
    """Settings of an evaluation."""

    methods: tuple[str, ...]
    level: float
    anytime: bool
    reward_range: tuple[float, float] | None
    switch: float | None
    shrinkage: float | None

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"level is {self.level}: it must lie between 0 and 1")
        check_reward_range(self.reward_range)
        for name, value in (("switch", self.switch), ("shrinkage", self.shrinkage)):
            if value is not None and not value > 0.0:
                raise ValueError(f"{name} is {value}: it must be above 0")


def check_log(log: Any) -> None:
    """Raise ``TypeError`` for what is no :class:`Log`."""
    if not isinstance(log, Log):
        raise TypeError(
            f"log is of type {type(log).__name__}: make a Log, by Log.of of arrays or Log.open of "
            "a table"
        )


def name_policies(policies: Any) -> dict[str, Any]:
    """Policies by name, of a mapping, a sequence or a single one; ``ValueError`` for none."""
    if isinstance(policies, list | tuple):
        policies = {str(policy): policy for policy in policies}
    elif not isinstance(policies, Mapping):
        policies = {policies if isinstance(policies, str) else "policy": policies}
    if not policies:
        raise ValueError("there are no policies: give at least one")
    return dict(policies)


def evaluate(
    log: Log,
    policies: Any,
    methods: Sequence[str] | str = METHODS,
    *,
    reward_model: Any = None,
    folds: int | None = None,
    level: float = 0.95,
    anytime: bool = True,
    reward_range: tuple[float, float] | None = None,
    switch: float | None = None,
    shrinkage: float | None = None,
) -> Evaluation:
    """Estimate the mean reward of policies from the log of another policy.

    The log is read once, in batches of which nothing is kept but sums.

    Parameters
    ----------
    log : Log
    policies : mapping of name to policy, or a list of policies, or one
        Each a Bandit (anything with ``propensities(X)`` and ``arms_``), an arm, "uniform",
        "logged" (what the log did), a function of contexts (n, m) that gives arms (n,) or
        probabilities (n, K) in the order of ``log.arms``, or these themselves for all rows.
    methods : sequence of str, or one
        Of "replay" (Li and others 2011; right for logs of uniform choices only), "ips" (Horvitz
        and Thompson 1952), "snips" (Swaminathan and Joachims 2015), "dm" (the reward model alone),
        "dr" (Dudik, Langford and Li 2011), "switch_dr" (Wang, Agarwal and Dudik 2017) and
        "dr_shrinkage" (Su, Dimakopoulou, Krishnamurthy and Dudik 2020).
    reward_model : estimator or function, optional
        Any estimator of this package, a copy for each arm, and ten more of each for intervals that
        contain its errors; or a function of contexts that gives expected rewards (n, K), of whose
        errors nothing is known. Default: linear models under the prior of a bandit's arms.
    folds : int, optional
        By default the reward model predicts each piece of the log before it learns it, so that one
        pass is honest. A number has it learn from all folds but a row's own, in two passes; the
        intervals of "dm", "switch_dr" and "dr_shrinkage" then leave its errors out.
    level : float
        Of the intervals.
    anytime : bool
        Whether to give intervals that hold at all times as well.
    reward_range : (low, high), optional
        What rewards can be: then the anytime interval of "ips" holds whatever the weights, from
        the first row on (all others are asymptotic), and no interval leaves the range, nor does
        what a reward model has learned.
    switch, shrinkage : float, optional
        Threshold of weights for "switch_dr", and of squared weights for "dr_shrinkage"; by default
        that of the least squared error, as estimated.

    Returns
    -------
    Evaluation
        Where the log has no support for a policy, values are nan, with a note that says why.

    Raises
    ------
    ValueError
        For settings that can't be, rewards outside of ``reward_range``, and a policy whose
        probabilities are none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, arms = rng.normal(size=(2000, 1)), rng.integers(2, size=2000)
    >>> rewards = np.where(arms == 1, X[:, 0], 0.0) + rng.normal(size=2000)
    >>> log = Log.of(X, arms, rewards, np.full(2000, 0.5))
    >>> best = lambda X: np.column_stack([X[:, 0] < 0.0, X[:, 0] >= 0.0])
    >>> estimate = evaluate(log, {"best": best, "logged": "logged"}, ["dr"])
    >>> round(estimate["best", "dr"].value, 1), round(estimate["logged", "dr"].value, 1)
    (0.4, 0.0)
    """
    check_log(log)
    settings = _EvaluationSettings(
        methods=tuple(map(str.lower, [methods] if isinstance(methods, str) else methods)),
        level=level,
        anytime=anytime,
        reward_range=reward_range,
        switch=switch,
        shrinkage=shrinkage,
    )
    policies = name_policies(policies)
    expectations = _choose_expectations(log, settings, reward_model, folds)
    rewards = ArmRewards(len(log.arms))
    tallies = {
        name: _PolicySums(
            target_of(policy, log.arms, log.feature_names),
            settings,
            log,
            rewards,
            expectations.parts,
        )
        for name, policy in policies.items()
    }
    # The direct method asks only in the end what is expected without a part of the log.
    compared = 1 if MODERATED.isdisjoint(settings.methods) else None
    rows = 0
    for piece, every in expectations:
        if reward_range is not None:
            check_rewards_within(piece.rewards, reward_range, piece.first)
        rows += len(piece)
        rewards.add(piece)
        for number, expected in enumerate(islice(every, compared)):
            for tally in tallies.values():
                if number == 0:
                    tally.add(piece, expected)
                else:
                    tally.add_without(expected, number - 1)
    for tally in tallies.values():
        tally.finish(expectations.predict)
    estimates = [
        tally.estimate(name, method)
        for name, tally in tallies.items()
        for method in settings.methods
    ]
    support = {name: tally.support.estimate() for name, tally in tallies.items()}
    return Evaluation(tuple(estimates), support, rows, level)


def _choose_expectations(
    log: Log, settings: _EvaluationSettings, model: Estimator, folds: int | None
) -> Expectations:
    n_arms, ends = len(log.arms), settings.reward_range
    if WITHOUT_MODEL.issuperset(settings.methods):
        return Nothing(log)
    if folds is None:
        with_parts = not BIASED.isdisjoint(settings.methods)
        return BeforeLearning(log, model, n_arms, ends, with_parts=with_parts)
    return ByFolds(log, model, n_arms, folds, ends)


@dataclass
class _PolicySums:
    """Sums of one policy."""

    target: Target
    settings: _EvaluationSettings
    log: Log
    rewards: ArmRewards
    parts: int  # of the log, of which it is known what the reward model says without them
    sums: dict[str, Sums] = field(init=False)
    support: SupportSums = field(init=False)
    spread: RewardSpread = field(init=False)
    judged: EvaluatedDecisions | None = None  # the last rows
    bounds: tuple[LowerBound, LowerBound] | None = None

    def __post_init__(self) -> None:
        settings = self.settings
        made = {
            method: choose_estimator(
                method, settings.switch, settings.shrinkage, len(self.log.arms), self.parts
            )
            for method in settings.methods
        }
        useful = settings.methods if self.log.has_propensities else WITHOUT_PROPENSITIES
        self.sums = {method: sums for method, sums in made.items() if method in useful}
        self.support = SupportSums(len(self.log.arms))
        self.spread = RewardSpread(self.rewards)
        if settings.anytime and settings.reward_range is not None and "ips" in self.sums:
            alpha = (1.0 - settings.level) / 2.0
            self.bounds = LowerBound(alpha), LowerBound(alpha)

    def add(self, piece: Rounds, expected: Array | None) -> None:
        """Rows, and what was expected of them."""
        self.judged = judged = self.target.judge(piece, expected)
        self.support.add(piece, judged)
        self.spread.add(judged)
        for sums in self.sums.values():
            sums.add(judged)
        if self.bounds is not None:
            self._bound(judged)

    def add_without(self, expected: Array | None, part: int) -> None:
        """What is expected of the last rows by a model without one part of the log."""
        assert self.judged is not None
        assert expected is not None
        judged = self.judged.expecting(expected)
        for sums in self.sums.values():
            sums.add_without(judged, part)

    def finish(self, predict: Callable[[Array], Iterator[Array]]) -> None:
        """All rows are here; ``predict`` gives what is expected now."""
        for sums in self.sums.values():
            sums.finish(predict)

    def _bound(self, judged: EvaluatedDecisions) -> None:
        low, high = self.settings.reward_range  # type: ignore[misc]
        for bound, reward in zip(
            self.bounds,  # type: ignore[arg-type]
            (judged.rewards - low, high - judged.rewards),
            strict=True,
        ):
            bound.learn(judged.weight * reward / (high - low))  # type: ignore[operator]

    def estimate(self, policy: str, method: str) -> Estimate:
        """Estimate a policy's value by one method, from the sums."""
        support = self.support.estimate()
        reason = self._reason(method, support)
        estimate = None if reason else self.sums[method].estimate()
        if estimate is None:
            reason = reason or _NO_MATCH
            nothing = dict.fromkeys(_NUMBERS, np.nan)
            return Estimate(policy, method, **nothing, note=reason)
        few, less = self._compute_missing_squares(method)
        estimate = replace(estimate, squares=estimate.squares + few + less)
        lacks = few > 0.0 or ((method != "dm" or self.parts > 0) and self.spread.is_untold)
        effective = support.effective_rows
        if method in WITHOUT_PROPENSITIES:
            learned = method == "dm" and self.parts
            effective = self.support.direct_rows if learned else float(support.rows)
        radius = np.inf  # of a single row, which can't tell how much others would differ
        if effective >= 2.0:
            df = min(effective - 1.0, estimate.df)
            quantile = stats.t.ppf(0.5 + self.settings.level / 2.0, df)
            radius = float(quantile) * estimate.std_error
        ends = (
            self._compute_anytime_interval(method, estimate, effective)
            if self.settings.anytime
            else (np.nan, np.nan)
        )
        low, high = self.settings.reward_range or (-np.inf, np.inf)
        interval = np.clip((estimate.value - radius, estimate.value + radius), low, high)
        return Estimate(
            policy,
            method,
            estimate.value,
            estimate.std_error,
            float(interval[0]),
            float(interval[1]),
            *ends,
            note="; ".join(self._describe(method, estimate, support, effective, lacks)),
        )

    def _compute_missing_squares(self, method: str) -> tuple[float, float]:
        if method != "dm":
            return self.spread.compute_missing_squares(self.spread.mean_squares)
        if self.parts:
            return self.spread.compute_missing_squares(np.square(self.support.direct_weights))
        return 0.0, 0.0

    def _describe(
        self, method: str, estimate: EstimatorSums, support: Support, effective: float, lacks: bool
    ) -> Iterator[str]:
        """What is to be known about an estimate, of rows in effect that may lack rewards."""
        low, high = self.settings.reward_range or self.rewards.ends
        slack = 1e-9 * max(abs(low), abs(high))
        if not low - slack <= estimate.value <= high + slack:
            yield f"the value is outside of the rewards, {low:.9g} to {high:.9g}"
        if effective < FEWEST_EFFECTIVE_ROWS:
            yield f"rests on {effective:.1f} effective rows"
        elif lacks:
            yield "an arm has too few rewards that differ to tell their spread"
        elif method in BIASED and not self.parts:
            yield "the interval leaves out the reward model's errors"
        elif method == "replay" and not self.support.is_uniform:
            yield "replay is right for uniform choices only, and the log's were not"
        elif support.mean_weight > 1.0 + TOLERATED_SHARE and self._too_heavy(support):
            yield f"weights average {support.mean_weight:.2f}, not 1: are the propensities right?"

    def _compute_anytime_interval(
        self, method: str, estimate: EstimatorSums, effective: float
    ) -> tuple[float, float]:
        if method == "ips" and self.bounds is not None:
            low, high = self.settings.reward_range  # type: ignore[misc]
            below, above = (bound.value for bound in self.bounds)
            return low + (high - low) * below, high - (high - low) * above
        low, high = self.settings.reward_range or (-np.inf, np.inf)
        if effective < FEWEST_EFFECTIVE_ROWS:
            return low, high
        rows = self.support.rows
        radius = (
            float(sequence_radius(max(estimate.squares, 0.0), rows, self.settings.level))
            / estimate.mass
        )
        return max(low, estimate.value - radius), min(high, estimate.value + radius)

    def _reason(self, method: str, support: Support) -> str:
        """Return why there is no estimate; an empty string where there is one."""
        if method not in self.sums:
            return "the log has no propensities"
        lacking = support.never_seen if method == "dm" else support.without_support
        if lacking > TOLERATED_SHARE:
            share = f"{100.0 * lacking:.0f}% of the policy's decisions"
            return f"the log has no support for {share}"
        has_bounds = method == "ips" and self.bounds is not None  # which hold without any match
        if not (method in WITHOUT_PROPENSITIES or has_bounds or support.effective_rows > 0.0):
            return _NO_MATCH
        return ""

    @staticmethod
    def _too_heavy(support: Support) -> bool:
        """Return True if weights average more than 1, beyond chance."""
        n = support.rows
        spread = max(n / support.effective_rows - 1.0, 0.0) * support.mean_weight**2
        return support.mean_weight - 3.0 * np.sqrt(spread / n) > 1.0 + TOLERATED_SHARE
