"""Rewards that come late, are corrected, or taken back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from posterity.aliases import Array
from posterity.bandits.bandit import Bandit
from posterity.bandits.decisions import Decision, Decisions
from posterity.bandits.inputs import as_numbers, is_row, read_contexts
from posterity.transaction import Undo, hold_model_lock


class HeldDecision(NamedTuple):
    """A decision: its context, arm and time, and the reward that was learned for it, if any."""

    context: Array
    arm: Any
    at: float
    reward: float | None


class DelayedRewards(BaseEstimator):
    """Stores decisions of a bandit until their rewards come, and learns each reward once.

    Nothing is learned of a decision before its reward comes, or its horizon passes. Then a default
    is learned in its place; a reward that comes later still takes the default's place, as if it had
    been known at once (of models whose rows can be unlearned; exactly so of normal noise).

    Parameters
    ----------
    bandit : Bandit
        Learns the rewards; decide by it, or by :meth:`decide`.
    horizon : float
        Time after a decision at which its default is learned, in units of ``at``.
    default : float
        Reward of a decision of which nothing is heard.

    Attributes
    ----------
    held_ : dict
        By id: context, arm, time, and the reward learned or None.

    Examples
    --------
    >>> from posterity.bandits import Bandit
    >>> delayed = DelayedRewards(Bandit(arms=["a", "b"], rng=0), horizon=10.0, default=0.0)
    >>> first, second = (delayed.decide([1.0], at=time) for time in (0.0, 1.0))
    >>> delayed = delayed.reward([first.id], [1.0])
    >>> delayed.expire(now=11.0)
    [1]
    >>> delayed = delayed.reward([second.id], [0.5])
    >>> [held.reward for held in delayed.held_.values()]
    [1.0, 0.5]
    """

    held_: dict[Any, HeldDecision]

    def __init__(self, bandit: Bandit, *, horizon: float, default: float = 0.0) -> None:
        self.bandit = bandit
        self.horizon = horizon
        self.default = default

    @hold_model_lock
    def decide(self, X: Any, *, at: float, ids: Any = None, **how: Any) -> Any:
        """As :meth:`Bandit.decide`, and store the decisions under ``ids`` or their own ids."""
        self._check_horizon()  # before anything is drawn
        _check_finite("at", at)
        if ids is not None:
            self._refuse_held([ids] if is_row(X) else list(ids))
        names: list[Any] = []
        with self._undo(names):
            decided = self.bandit.decide(X, **how)
            read_contexts(self.bandit, X, learns=True)  # the first contexts name the features
            new = self._read_decided(decided, at, ids)
            names.extend(new)
            self._hold(new)
            return decided

    @hold_model_lock
    def hold(self, decided: Decision | Decisions, *, at: float, ids: Any = None) -> Self:
        """Store decisions that the bandit made.

        Parameters
        ----------
        decided : Decision or Decisions
            Of one arm each, not of rankings.
        at : float
            Time of the decisions.
        ids : name, or sequence of a name for each, optional
            Instead of the numbers that they have.

        Raises
        ------
        ValueError
            If one of these names is held already, or there are too many or too few.
        """
        new = self._read_decided(decided, at, ids)
        with self._undo(list(new)):
            self._hold(new)
            return self

    def _read_decided(
        self, decided: Decision | Decisions, at: float, ids: Any
    ) -> dict[Any, HeldDecision]:
        """Return what is to be held, by the ids of the decisions."""
        self._check_horizon()
        _check_finite("at", at)
        own, contexts, arms = _parts(decided)
        if ids is not None and isinstance(decided, Decision):
            ids = [ids]
        names = _plain(own if ids is None else ids)
        if len(names) != len(arms):
            raise ValueError(
                f"there are {len(arms)} decisions and {len(names)} ids: give one for each"
            )
        self._refuse_held(names)
        rows = read_contexts(self.bandit, contexts, learns=False)
        return {
            name: HeldDecision(row, arm, float(at), None)
            for name, row, arm in zip(names, rows, _plain(arms), strict=True)
        }

    @hold_model_lock
    def reward(self, ids: Any, rewards: ArrayLike) -> Self:
        """Learn the rewards of decisions; one that had been learned before is unlearned first.

        Of one decision its id and a number, of several a sequence of each; or the decisions.

        Raises
        ------
        ValueError
            If no such decision is held, an id is given twice, or a reward can't be used.
        """
        names, values = self._list_waiting_ids(ids), np.atleast_1d(as_numbers(rewards))
        if values.shape != (len(names),) or np.isnan(values).any():
            raise ValueError(
                f"rewards are {values}: give a number for each of {len(names)} ids; use "
                "take_back to remove a reward"
            )
        with self._undo(names):
            self._correct_rewards(names, values.tolist())
            return self

    @hold_model_lock
    def take_back(self, ids: Any) -> Self:
        """Unlearn the rewards of decisions, of one id or a sequence, and remove the decisions."""
        names = self._list_waiting_ids(ids)
        with self._undo(names):
            self._correct_rewards(names, [math.nan] * len(names))
            self._drop(names)
            return self

    @hold_model_lock
    def expire(self, now: float) -> list[Any]:
        """Learn the default of all decisions whose horizon has passed; returns their ids."""
        self._check_horizon()
        _check_number("now", now)
        late = [
            name
            for name, held in self._held.items()
            if held.reward is None and held.at + self.horizon <= now
        ]
        with self._undo(late):
            self._correct_rewards(late, [float(self.default)] * len(late))
            return late

    @hold_model_lock
    def release(self, before: float) -> list[Any]:
        """Remove decisions before this time that have their reward; returns their ids.

        These rewards can't be corrected any more.
        """
        _check_number("before", before)
        done = [
            name
            for name, held in self._held.items()
            if held.reward is not None and held.at < before
        ]
        with self._undo(done):
            self._drop(done)
            return done

    # ---- inner -----------------------------------------------------------------------------------

    @property
    def _held(self) -> dict[Any, HeldDecision]:
        return getattr(self, "held_", {})

    def _hold(self, new: dict[Any, HeldDecision]) -> None:
        self.__dict__.setdefault("held_", {}).update(new)

    def _check_horizon(self) -> None:
        _check_number("horizon", self.horizon)
        if self.horizon < 0.0:
            raise ValueError(f"horizon is {self.horizon}: it must be 0 or more")

    def _refuse_held(self, names: Sequence[Any]) -> None:
        for name in names:
            if name in self._held:
                raise ValueError(
                    f"the decision {name!r} is already waiting for its reward: give each "
                    "decision its own id"
                )
        if len(set(names)) < len(names):
            raise ValueError(f"the ids {list(names)} are not all different: give each its own id")

    def _list_waiting_ids(self, ids: Any) -> list[Any]:
        if isinstance(ids, Decision | Decisions):
            ids = ids._columns[0]
        names = _plain([ids] if isinstance(ids, str) or np.ndim(ids) == 0 else ids)
        for name in names:
            if name not in self._held:
                raise ValueError(
                    f"no decision {name!r} is waiting: it was never made here, or was taken "
                    "back or released; check the id"
                )
        if len(set(names)) < len(names):
            raise ValueError(f"the ids {names} are not all different: give one reward for each")
        return names

    def _correct_rewards(self, names: Sequence[Any], values: Sequence[float]) -> None:
        """Learn these rewards instead of those that were; NaN is none."""
        if not names:
            return
        held = [self._held[name] for name in names]
        self.bandit.correct(
            np.array([one.context for one in held]),
            [one.arm for one in held],
            former=[math.nan if one.reward is None else one.reward for one in held],
            rewards=values,
        )
        self._hold(
            {
                name: one._replace(reward=value)
                for name, one, value in zip(names, held, values, strict=True)
            }
        )

    def _undo(self, names: Sequence[Any]) -> Undo:
        """What puts the bandit and these decisions back as they are now, both or none."""
        held, undo = self._held, Undo()
        before = {name: held[name] for name in names if name in held}
        undo.keep_attributes(self, self.bandit)
        undo.add(partial(_put_back, held, names, before))
        return undo

    def _drop(self, names: Sequence[Any]) -> None:
        gone = set(names)
        self.held_ = {name: one for name, one in self._held.items() if name not in gone}


def _put_back(
    held: dict[Any, HeldDecision], names: Sequence[Any], before: Mapping[Any, HeldDecision]
) -> None:
    for name in names:
        if name not in before:
            held.pop(name, None)
    held.update(before)


def _plain(names: Any) -> list[Any]:
    return [name.item() if isinstance(name, np.generic) else name for name in names]


def _parts(decided: Decision | Decisions) -> tuple[Any, Any, Any]:
    """Ids, contexts and arms."""
    ids, contexts, arms, places = decided._columns
    if places.ndim > 1:
        raise ValueError("these decisions are rankings: give decisions with one arm each")
    return ids, contexts, arms


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not np.isnan(value)


def _check_number(name: str, value: Any) -> None:
    if not _is_number(value):
        raise ValueError(f"{name} is {value!r}: it must be a number")


def _check_finite(name: str, value: Any) -> None:
    if not _is_number(value) or np.isinf(value):
        raise ValueError(f"{name} is {value!r}: it must be a finite number")
