"""An experiment with several arms."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Estimator
from posterity.distributions.guesses import TellsCalls, TellsNames, tell_call
from posterity.experiments.contrasts import Contrasts
from posterity.experiments.estimates import Estimates
from posterity.experiments.hints import OTHER_ARGUMENTS, OUR_NAMES, TEXT_HINT
from posterity.experiments.linearized import Linearized
from posterity.experiments.looks import Look, keep_look
from posterity.experiments.ratio import SampleRatio
from posterity.experiments.segments import Part, add_rows, read_segments
from posterity.experiments.stopping import AnytimeValid, Decision, Stop
from posterity.io.rounds import (
    RoundColumns,
    Rounds,
    check_reward_range,
    check_rewards_within,
    find_arms,
    iterate_pieces,
    open_rounds,
    read_rewards,
)
from posterity.kernel.values import read_floats, read_scalar
from posterity.rewards import RewardModel, reward_model
from posterity.transaction import atomic

# Rows of each arm that the reward model learns before any row is scored.
_LEARNED_FIRST = 5


class Experiment(Estimates, TellsCalls, TellsNames):
    """An A/B/n test that you may look at, and stop, at any time.

    Each row's reward is first predicted for all arms, from covariates and what was learned before,
    then compared: what covariates explain makes no interval wider. All intervals hold at all times,
    and all of them together, with probability ``level``.

    Parameters
    ----------
    arms : sequence of names
        At least two; the first one is the control.
    model : estimator, optional
        What rewards are predicted by: any estimator of this package, a copy for each arm. A wrong
        one costs width, not truth. Default: linear models under the prior of a bandit's arms.
    allocation : mapping of arm to share, or "given", optional
        Shares in which arms were chosen; default alike. "given": each row brings the probabilities
        of all arms, as those of a bandit.
    stop : Stop, optional
        When it is over; default :class:`AnytimeValid`.
    level : float
        Of all intervals together.
    planned_rows : int, optional
        How many rows are planned, given before the first. Intervals are narrowest then, and
        verdicts likeliest; they hold after it as well. Default: about alike at any time.
    reward_range : (low, high), optional
        Least and largest possible reward. Without it an arm has no interval before it has shown 20
        rewards, in effect, that differ from what is expected (5, if those of both arms are about as
        large): one large purchase in a thousand rows may be missing still. Rewards that are all 0
        or 1 need none.
    cap : float, optional
        Rewards above it count as it (winsorised), so that a few large ones do not drown an effect
        on all others: means and effects are those of capped rewards. Choose it before the first
        row, as from last month's purchases.
    sample_ratio_level : float
        No verdict while ``sample_ratio_p_value_`` is below: arms did not come as they should have,
        and what differs may be the visitors. 0 gives verdicts all the same.

    Attributes
    ----------
    decision_ : Decision or None
        The end, as found at the first look that found one.
    n_observations_ : int
        Rows so far.
    is_binary_ : bool
        True as long as all rewards are yes and no, or 1 and 0.

    Raises
    ------
    ValueError
        For arms, shares or levels that can't be, and for rewards outside of ``reward_range``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> test = Experiment(["old", "new"])
    >>> age, arms = rng.normal(size=(2000, 1)), rng.choice(["old", "new"], size=2000)
    >>> bought = age[:, 0] + 0.3 * (arms == "new") + rng.normal(size=2000)
    >>> test = test.observe_rows(arms, bought, age)
    >>> test.decision_
    Decision(arm='new', reason='is better than all others', rows=512)
    >>> low, high = test.interval_["new"]
    >>> 0.0 < low < 0.3 < high
    True
    """

    other_arguments = OTHER_ARGUMENTS

    _our_names = OUR_NAMES

    def __init__(
        self,
        arms: Sequence[Hashable],
        model: Estimator = None,
        *,
        allocation: Mapping[Any, float] | Literal["given"] | None = None,
        stop: Stop | None = None,
        level: float = 0.95,
        planned_rows: float | None = None,
        reward_range: tuple[float, float] | None = None,
        cap: float | None = None,
        sample_ratio_level: float = 0.001,
    ) -> None:
        if isinstance(arms, str | int):
            raise TypeError(f"arms are {arms!r}: give a sequence of names, as in ['old', 'new']")
        if hasattr(arms, "columns"):
            raise TypeError(
                "arms is a table: name the arms, and let them observe it, as in "
                "Experiment(['old', 'new']).observe(table, arm=..., reward=...)"
            )
        self.arms = tuple(arms)
        count = len(self.arms)
        if count < 2 or len(set(self.arms)) < count:
            raise ValueError(f"arms are {list(self.arms)}: give at least two, each with its name")
        if not 0.0 < read_scalar(level, "level") < 1.0:
            raise ValueError(f"level is {level}: it must lie between 0 and 1")
        if planned_rows is not None and not read_scalar(planned_rows, "planned_rows") > 0.0:
            raise ValueError(f"planned_rows is {planned_rows}: it must be above 0")
        if cap is not None and not math.isfinite(read_scalar(cap, "cap")):
            raise ValueError(f"cap is {cap}: give the number above which rewards count as it")
        check_reward_range(reward_range)
        if not 0.0 <= read_scalar(sample_ratio_level, "sample_ratio_level") < 1.0:
            raise ValueError(f"sample_ratio_level is {sample_ratio_level}: give 0 to below 1")
        if not isinstance(stop, Stop | None):
            raise TypeError(
                f"stop is {stop!r}: give a rule, as AnytimeValid(), ExpectedLoss() or Rows()"
            )
        self.model, self.allocation, self.stop = model, allocation, stop or AnytimeValid()
        self.level, self.planned_rows, self.cap = level, planned_rows, cap
        self.reward_range, self.sample_ratio_level = reward_range, sample_ratio_level
        self._shares = _shares(allocation, self.arms)
        self._decision: Decision | None = None
        self.is_binary_ = True
        self.n_observations_ = 0
        self._features: tuple[str, ...] | None = None
        self._levels: dict[str, tuple[str, ...]] = {}
        self._counts = np.zeros(count)
        self._linearized: Linearized | None = None
        self._rewards: RewardModel = reward_model(model, count, reward_range)
        self._contrasts = Contrasts(count)
        self._segments: dict[str, Part] = {}
        self._planned_end: Contrasts | None = None
        self._looks: tuple[Look, ...] = ()
        self._ratio = SampleRatio(count)

    def __repr__(self) -> str:
        message = self.decision_ or f"nothing decided: {self.undecided_reason_}"
        return f"Experiment({list(self.arms)}, rows={self.n_observations_}, {message})"

    # ---- rows ------------------------------------------------------------------------------------

    @tell_call
    @atomic
    def observe(
        self,
        table: object,
        *,
        arm: str = "arm",
        reward: str = "reward",
        per: str | None = None,
        covariates: Sequence[str] | str = (),
        propensities: Mapping[Any, str] | str | None = None,
        segment: str | None = None,
        missing: Literal["error", "skip", "mean", "level"] = "error",
    ) -> Self:
        """Learn rows of a table, in order, and update the estimates.

        Parameters
        ----------
        table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        arm, reward : str
            Columns of the arm that each row was given, and of its reward.
        per : str, optional
            Column of what rewards are divided by, for the ratio of their sums: with a row for each
            user, of what it spent and its sessions, revenue per session. Rows are what arms were
            drawn for, so sessions of a user may be alike.
        covariates : str or sequence of str
            Columns that were known before: numbers, or categories, whose levels are those of the
            first rows.
        propensities : mapping of arm to column, or pattern, optional
            Columns of the probabilities that arms had in each row; ``"p_*"`` stands for p_old,
            p_new and so on.
        segment : str, optional
            A covariate, such as the country, between whose values the effect may differ:
            ``segments_`` says how much it does. Numbers are names, too; what did not come in the
            first rows is "others".
        missing : {"error", "skip", "mean", "level"}
            What a missing value does, as in :func:`posterity.io.open_table`. "level" keeps all
            rows: a missing category is a level, and a missing number the mean of this table so far.
            No arm and no propensity may be missing then.

        Raises
        ------
        posterity.io.TableError
            For columns that are not there, and values that can't be; nothing was learned then.
        """
        for what, name in (("arm", arm), ("reward", reward), ("per", per), ("segment", segment)):
            if not isinstance(name, str | None):
                raise TypeError(f"{what} is {name!r}: name one column; Metrics has several rewards")
        features = [covariates] if isinstance(covariates, str) else list(covariates)
        split = [] if segment is None else [segment]
        features += [name for name in split if name not in features]
        columns = RoundColumns(arm=arm, reward=reward, per=per, propensities=propensities)
        columns = replace(columns, features=features, categories=split)
        rounds = open_rounds(table, columns, arms=self.arms, missing=missing, levels=self._levels)
        if self._features not in (None, rounds.feature_names):
            raise ValueError(
                f"covariates are {list(rounds.feature_names)}, but earlier rows had "
                f"{list(self._features or ())}: give the same"
            )
        self._features, self._levels = rounds.feature_names, rounds.levels
        names = rounds.feature_names
        self._learn(
            rounds
            if segment is None
            else (replace(one, segments=read_segments(one.X, names, segment)) for one in rounds)
        )
        return self

    @tell_call
    @atomic
    def observe_rows(
        self,
        arms: ArrayLike,
        rewards: ArrayLike,
        X: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
        *,
        per: ArrayLike | None = None,
        segments: ArrayLike | None = None,
    ) -> Self:
        """Learn rows of arrays: arms (n,), rewards (n,), covariates (n, m), propensities (n, K).

        And ``per`` (n,), what rewards are divided by, and ``segments`` (n,), as in :meth:`observe`.
        """
        if np.ndim(arms) != 1:
            raise ValueError(f"arms has shape {np.shape(arms)}: give the name of one arm a row")
        places, every_arm = find_arms(arms, self.arms), len(self.arms)
        n = len(places)
        try:
            contexts = np.zeros((n, 0)) if X is None else read_floats(X, "X")
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}; {TEXT_HINT}") from error
        contexts = contexts[:, None] if contexts.ndim == 1 else contexts
        earned = read_rewards(rewards)
        every = None if propensities is None else read_floats(propensities, "propensities")
        parts = None if per is None else read_floats(per, "per")
        split = None if segments is None else np.asarray(segments).astype(str)
        shapes = {contexts.shape[:1], earned.shape}
        shapes |= {values.shape for values in (parts, split) if values is not None}
        if contexts.ndim != 2 or shapes != {(n,)} or (every is not None and len(every) != n):
            raise ValueError(
                f"there are {n} rows of arms: rewards, X and propensities must have the same "
                "length, as must per and segments"
            )
        if every is not None and every.shape != (n, every_arm):
            raise ValueError(
                f"propensities has shape {every.shape}: it must be {(n, every_arm)}, one column "
                "for each arm"
            )
        own = None if every is None else every[np.arange(n), places]
        names = tuple(f"x{j}" for j in range(contexts.shape[1]))
        if self._features not in (None, names):
            raise ValueError(
                f"X has the columns {list(names)}, but earlier rows had "
                f"{list(self._features or ())}: give the same"
            )
        self._features = names
        rows = Rounds(contexts, places, earned, own, every, per=parts, segments=split)
        self._learn([rows.check_rewards()])
        return self

    def _learn(self, batches: Iterable[Rounds]) -> None:
        planned = None if self.planned_rows is None else math.ceil(self.planned_rows)
        for piece in iterate_pieces(batches, self.n_observations_, planned):
            if self.cap is not None:
                piece = replace(piece, rewards=np.minimum(piece.rewards, self.cap))
            is_known = self._counts.min() >= _LEARNED_FIRST and not self._arms_without_per
            given, piece, shares = piece, self._linearize(piece), self._shares_of(piece)
            self._contrasts.is_bounded = self._read_range(piece)
            expected = self._rewards.predict(piece.X)
            if is_known:
                self._score(piece, given, expected, shares)
            self._ratio.add(piece.arms, shares)
            self._rewards.learn(piece.X, piece.arms, piece.rewards)
            self._counts = self._counts + np.bincount(piece.arms, minlength=len(self.arms))
            self.n_observations_ += len(piece)
            if self.n_observations_ == planned:
                self._planned_end = copy.copy(self._contrasts)
            self._look()

    def _score(self, piece: Rounds, given: Rounds, expected: Array, shares: Array) -> None:
        """Add rows to what is known of all, and to what is known of their segments."""
        if self._contrasts.rows == 0:
            self._contrasts.pivot = float(expected.mean())
        self._contrasts.add(piece.arms, piece.rewards, expected, shares)
        if piece.segments is not None:
            self._segments = add_rows(self._segments, self._contrasts, given, expected, shares)

    def _linearize(self, piece: Rounds) -> Rounds:
        """The rows, with rewards whose means are ratios of sums where they are divided."""
        if self.n_observations_ and (piece.per is None) is not (self._linearized is None):
            raise ValueError(
                "some rows say what their rewards are divided by, and others do not: give per= "
                "with all rows, or with none"
            )
        if piece.per is None:
            return piece
        if self.reward_range is not None:
            raise ValueError(
                "reward_range is of rewards, and per= makes ratios of them: leave one out"
            )
        self.is_binary_ = False
        former = self._linearized or Linearized.of(len(self.arms))
        self._linearized = former.add(piece.arms, piece.rewards, piece.per)
        known = former if self.n_observations_ else self._linearized
        rewards = known.convert(piece.arms, piece.rewards, piece.per)
        return replace(piece, rewards=rewards, per=None)

    def _look(self) -> None:
        """Note the effects, and decide if the rule does."""
        self._looks = keep_look(self._looks, self._describe_effects())
        if self._decision is None and not self._is_broken:
            verdict = self.stop.verdict(self._summarize_arms())
            if verdict is not None:
                place, reason = verdict
                self._decision = Decision(self.arms[place], reason, self.n_observations_)

    def _read_range(self, piece: Rounds) -> bool:
        """Return True if it is known how large rewards may be; check that these lie within."""
        self.is_binary_ = self.is_binary_ and bool(np.isin(piece.rewards, (0.0, 1.0)).all())
        if self.reward_range is None:
            return self.is_binary_
        check_rewards_within(piece.rewards, self.reward_range, piece.first)
        low, high = self.reward_range
        self._contrasts.largest = np.maximum(self._contrasts.largest, high - low)
        return True

    def _shares_of(self, piece: Rounds) -> Array:
        if piece.propensities is not None:
            return piece.propensities
        if self._shares is None:
            raise ValueError(
                'allocation is "given", but the rows have no propensities: name their columns'
            )
        return np.broadcast_to(self._shares, (len(piece), len(self.arms)))

    def _branch(self) -> Self:
        branch = copy.copy(self)
        branch._rewards = copy.deepcopy(self._rewards)
        branch._contrasts, branch._ratio = copy.copy(self._contrasts), copy.copy(self._ratio)
        return branch


def _shares(allocation: object, arms: Sequence[Hashable]) -> Array | None:
    """(K,) shares of arms; None where each row brings its own."""
    if allocation is None:
        return np.full(len(arms), 1.0 / len(arms))
    if isinstance(allocation, str):
        if allocation == "given":
            return None
        raise ValueError(f'allocation is {allocation!r}: give shares of arms, or "given"')
    if not isinstance(allocation, Mapping) or set(allocation) != set(arms):
        raise ValueError(
            f"allocation is {allocation}: give a share of each arm, as in "
            f"{dict.fromkeys(arms, round(1.0 / len(arms), 2))}"
        )
    shares = np.array([allocation[arm] for arm in arms], dtype=np.float64)
    if not (np.all(shares > 0.0) and abs(shares.sum() - 1.0) < 1e-6):
        raise ValueError(f"allocation is {dict(allocation)}: shares must be above 0 and sum to 1")
    return shares
