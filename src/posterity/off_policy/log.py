"""A log of decisions: contexts, the arms that were chosen, their rewards and propensities."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Document
from posterity.io.reading import BATCH_ROWS, MEMORY
from posterity.io.rounds import RoundColumns, Rounds, find_arms, open_rounds, read_rewards
from posterity.kernel.tables import find_table
from posterity.kernel.values import read_floats
from posterity.off_policy.dsjson import DsjsonTable, write_dsjson


class Log:
    """Log of the decisions of a policy, in their order, read in batches.

    Made by :meth:`open`, :meth:`of`, :meth:`from_obp` or :meth:`from_dsjson`. Each iteration
    begins at the first decision, where the table can be read again.

    Attributes
    ----------
    arms : tuple
        Names of the arms, in the order of all columns.
    feature_names : tuple of str
        Columns of contexts.
    has_propensities : bool
        Whether it is known with what probability the arms were chosen. Without that only "replay"
        and "dm" can be estimated.

    Examples
    --------
    >>> log = Log.of([[0.5], [1.0], [0.2]], ["a", "b", "a"], [1.0, 0.0, 1.0], [0.5, 0.5, 0.5])
    >>> log.arms, round(log.mean_reward(), 3)
    (('a', 'b'), 0.667)
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Rounds]],
        arms: Sequence[Hashable],
        feature_names: Sequence[str],
        has_propensities: bool,
    ) -> None:
        self._read = read
        self.arms = tuple(arms)
        self.feature_names = tuple(feature_names)
        self.has_propensities = has_propensities

    def __iter__(self) -> Iterator[Rounds]:
        return iter(self._read())

    def __repr__(self) -> str:
        return f"Log(arms={list(self.arms)}, features={list(self.feature_names)})"

    def mean_reward(self) -> float:
        """Mean reward of the logged decisions."""
        n, total = 0, 0.0
        for rounds in self:
            n, total = n + len(rounds), total + float(rounds.rewards.sum())
        return total / n

    # ---- in --------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        table: object,
        *,
        arm: str = "arm",
        reward: str = "reward",
        propensity: str | None = None,
        propensities: Mapping[Any, str] | str | None = None,
        features: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        id: str | None = None,
        arms: Sequence[Hashable] | None = None,
        missing: Literal["error", "skip"] = "error",
        batch_rows: int = BATCH_ROWS,
        memory: int | str = MEMORY,
    ) -> Self:
        """Open whatever :func:`posterity.io.open_table` opens.

        Parameters
        ----------
        table : path, data frame, Arrow table or reader, database cursor, or iterable of these
        arm, reward : str
            Columns of the arm that was chosen, and of what it earned.
        propensity : str, optional
            Column of the probability with which that arm was chosen.
        propensities : mapping of arm to column, or pattern, optional
            Columns of the probabilities of all arms; ``"p_*"`` stands for p_red, p_blue and so on.
            With them it is known where the log has no support.
        features : sequence of str, optional
            Columns of the context; by default all others.
        drop : sequence of str
            Columns to leave out.
        id : str, optional
            Column of the decisions' ids, no feature: each must come once.
        arms : sequence, optional
            All arms. By default those of ``propensities``, or those that the column holds; it is
            read once more for that.
        missing : {"error", "skip"}
            What a missing value does.
        batch_rows, memory
            As in :func:`posterity.io.open_table`.

        Raises
        ------
        posterity.io.TableError
            For columns that are not there, and ids that come twice; while reading, for arms that
            are unknown, rewards that are not finite and propensities that are not in (0, 1].
        """
        columns = RoundColumns(
            arm=arm,
            reward=reward,
            propensity=propensity,
            propensities=propensities,
            features=features,
            drop=drop,
            id=id,
        )
        how: dict[str, Any] = {"missing": missing, "batch_rows": batch_rows, "memory": memory}
        rounds = open_rounds(table, columns, arms=arms, **how)
        known = propensity is not None or propensities is not None
        return cls(lambda: rounds, rounds.arms, rounds.feature_names, known)

    @classmethod
    def of(
        cls,
        X: ArrayLike,
        arms: ArrayLike,
        rewards: ArrayLike,
        propensity: ArrayLike | None = None,
        propensities: ArrayLike | None = None,
        *,
        names: Sequence[Hashable] | None = None,
    ) -> Self:
        """A log of arrays.

        Parameters
        ----------
        X : (n, m) array
            Contexts.
        arms : (n,) names
        rewards : (n,) array
        propensity : (n,) array, optional
            Of the arm that was chosen; (n, K) is taken as ``propensities``.
        propensities : (n, K) array, optional
            Of all arms, in the order of ``names``; (n,) is taken as ``propensity``.
        names : sequence, optional
            Names of all arms; default those that are there, sorted.
        """
        contexts = np.ascontiguousarray(read_floats(X, "X"))
        if np.ndim(arms) != 1 or not len(contexts):
            raise ValueError(
                f"X has shape {contexts.shape}, arms {np.shape(arms)}: give at least one row, and "
                "one arm a row; of rankings, give the first places, arms[:, 0], and the "
                "propensities of all arms, which these were drawn from"
            )
        known = tuple(sorted(set(np.asarray(arms).tolist())) if names is None else names)
        places = find_arms(arms, known)
        earned = read_rewards(rewards)
        every = None if propensities is None else read_floats(propensities, "propensities")
        own = None if propensity is None else read_floats(propensity, "propensity")
        if own is not None and own.ndim == 2 and every is None:
            own, every = None, own
        if every is not None and every.ndim == 1 and own is None:
            own, every = every, None
        if own is not None and own.ndim != 1:
            raise ValueError(f"propensity is {own.shape}: it must be ({len(places)},)")
        parts: tuple[Any, ...] = (contexts, places, earned, own, every)
        shapes = [np.shape(part) for part in parts]
        n = len(places)
        if contexts.ndim != 2 or any(shape and shape[0] != n for shape in shapes):
            raise ValueError(
                f"X has shape {shapes[0]}, and there are {n} chosen arms: give X of shape "
                f"({n}, m), and {n} rewards and propensities"
            )
        if every is not None and every.shape != (n, len(known)):
            raise ValueError(f"propensities is {every.shape}: it must be {(n, len(known))}")
        if own is None and every is not None:
            own = every[np.arange(n), places]
        rounds = Rounds(contexts, places, earned, own, every).check_rewards()
        table = find_table(X)
        names = [f"x{j}" for j in range(contexts.shape[1])] if table is None else table.names
        columns = list(map(str, names))
        return cls(lambda: [rounds], known, columns, own is not None)

    @classmethod
    def from_obp(cls, feedback: Mapping[str, Any]) -> Self:
        """A log of Open Bandit Pipeline's dictionary ("context", "action", "reward", "pscore").

        Rankings of several positions are not read: pass one position's rows.
        """
        for name in ("context", "action", "reward"):
            if feedback.get(name) is None:
                raise ValueError(f"the dictionary has no {name!r}: add it")
        position = feedback.get("position")
        if position is not None and len(np.unique(position)) > 1:
            raise ValueError("the dictionary has several positions: pass the rows of one of them")
        every = feedback.get("pi_b")
        n_arms = int(feedback.get("n_actions") or np.max(feedback["action"]) + 1)
        return cls.of(
            feedback["context"],
            feedback["action"],
            feedback["reward"],
            feedback.get("pscore"),
            None if every is None else np.asarray(every).reshape(-1, n_arms),
            names=range(n_arms),
        )

    @classmethod
    def from_dsjson(
        cls, path: str | os.PathLike[str], *, arms: Sequence[Hashable] | None = None
    ) -> Self:
        """A log of Vowpal Wabbit's or Azure Personalizer's JSON lines (``dsjson``).

        The reward is minus ``_label_cost``. An arm is called what its ``_tag``, ``id`` or only
        text says, or else by its number, from 1. Contexts are what is shared by all arms: numbers
        as they are, words as categories. Lines without a label are left out.
        """
        table = DsjsonTable(os.fspath(path), arms)
        return cls.open(table, propensity="propensity", propensities="p:*", arms=table.arms)

    # ---- out -------------------------------------------------------------------------------------

    def to_obp(self) -> Document:
        """The whole log as Open Bandit Pipeline's dictionary of arrays.

        Examples
        --------
        >>> log = Log.of([[0.5], [1.0]], ["a", "b"], [1.0, 0.0], [0.5, 0.5])
        >>> feedback = log.to_obp()
        >>> feedback["n_rounds"], feedback["action"].tolist(), feedback["pscore"].tolist()
        (2, [0, 1], [0.5, 0.5])
        """
        whole = self.collected()
        every = whole.propensities
        return {
            "n_rounds": len(whole),
            "n_actions": len(self.arms),
            "context": whole.X,
            "action_context": np.eye(len(self.arms), dtype=int),
            "action": whole.arms,
            "position": None,
            "reward": whole.rewards,
            "pscore": whole.propensity,
            "pi_b": None if every is None else every[:, :, None],
        }

    def to_dsjson(self, path: str | os.PathLike[str]) -> None:
        """Write JSON lines that Vowpal Wabbit reads (``--dsjson``)."""
        if not self.has_propensities:
            raise ValueError("the log has no propensities, which dsjson needs: give them")
        write_dsjson(os.fspath(path), self, self.arms, self.feature_names)

    def collected(self) -> Rounds:
        """Return all decisions, in memory."""
        batches = list(self)
        parts = ("X", "arms", "rewards", "propensity", "propensities")
        whole = (_join_parts([getattr(batch, part) for batch in batches]) for part in parts)
        return Rounds(*whole)


def _join_parts(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)
