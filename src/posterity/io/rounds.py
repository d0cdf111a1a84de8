"""Tables whose rows are decisions: context, the arm that was chosen, its reward and propensity."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray, Array, Indices, Mask
from posterity.io.arrow import pa
from posterity.io.columns import Encoding, check_numbers, require
from posterity.io.conversions import get_codes
from posterity.io.errors import TableError, explain_empty
from posterity.io.missing import LEAVE_OUT, Missing
from posterity.io.reading import BATCH_ROWS, MEMORY, ReadSettings
from posterity.io.source import Source
from posterity.io.table import TableStream, open_any, open_first
from posterity.io.targets import TargetRewards, read_yes_and_no
from posterity.kernel.values import is_word, read_floats

_AT_ONCE = 65536
# What to do where columns are named, instead of leaving them out or reading their dates.
_DATES = "make a column of its weekday, or of the days since the first"
_ADVICE = {"drop": "leave it out", "dates": _DATES, "date_format": _DATES}
# Rows of a piece.
FIRST_ROWS, MOST_ROWS = 16, 8192


@dataclass(frozen=True)
class Rounds:
    """Some decisions; ``first`` is the number of the first in the table.

    Attributes
    ----------
    X : (n, m)
        Contexts.
    arms : (n,)
        Place of the chosen arm among the names.
    rewards : (n,)
    propensity : (n,), optional
        Probability with which it was chosen.
    propensities : (n, K), optional
        Those of all arms.
    per, segments : (n,), optional
        What rewards are divided by; and names of segments, whose effects may differ.
    """

    X: Array
    arms: Indices
    rewards: Array
    propensity: Array | None = None
    propensities: Array | None = None
    first: int = 0
    per: Array | None = None
    segments: AnyArray | None = None

    def __len__(self) -> int:
        return len(self.arms)

    def of(self, rows: slice | AnyArray) -> Rounds:
        """Return some of the decisions."""
        arrays = {name: values for name, values in vars(self).items() if np.ndim(values)}
        first = self.first + ((rows.start or 0) if isinstance(rows, slice) else 0)
        return replace(self, first=first, **{name: it[rows] for name, it in arrays.items()})

    def check_rewards(self) -> Rounds:
        """The same, or :class:`TableError` for what can't be a propensity or a reward."""
        self._refuse("reward", self.rewards, ~np.isfinite(self.rewards), "must be finite")
        if self.propensities is not None:
            total = self.propensities.sum(axis=1)
            bad = np.any(~(self.propensities >= 0.0), axis=1) | ~(np.abs(total - 1.0) < 1e-6)
            rule = "must be 1: propensities sum to 1, and none is negative"
            self._refuse("sum of the propensities", total, bad, rule)
        if self.propensity is not None:
            outside = ~((self.propensity > 0.0) & (self.propensity <= 1.0))
            rule = "must lie above 0 and be 1 at most: it is the chance that this arm had"
            self._refuse("propensity", self.propensity, outside, rule)
        if self.per is not None:
            outside = ~((self.per >= 0.0) & (self.per < np.inf))
            self._refuse("denominator", self.per, outside, "must be finite, and 0 or more")
        return self

    def _refuse(self, what: str, values: Array, bad: Mask, rule: str) -> None:
        rows = np.flatnonzero(bad)
        if len(rows):
            row = int(rows[0])
            raise TableError(f"the {what} in row {self.first + row} is {values[row]:g}: it {rule}")


def read_rewards(values: ArrayLike) -> Array:
    """Return rewards (n,) as numbers, of yes 1 and of no 0; a :class:`TableError` names another."""
    given = np.asarray(values)
    if given.dtype.kind in "OUT":
        given = np.array([read_yes_and_no(value) for value in given.ravel()]).reshape(given.shape)
    try:
        return read_floats(given, "rewards")
    except (TypeError, ValueError) as error:
        raise TableError(
            f"a reward is not a number: {error}", ["give numbers, or yes and no"], before="; "
        ) from error


def find_arms(arms: ArrayLike, names: Sequence[Hashable]) -> Indices:
    """Places of arms (n,) among all ``names``; a ``ValueError`` names the row of another one."""
    where = {name: place for place, name in enumerate(names)}
    chosen = np.asarray(arms).tolist()
    unknown = next((row for row, name in enumerate(chosen) if name not in where), None)
    if unknown is not None:
        raise ValueError(
            f"the arm in row {unknown} is {chosen[unknown]!r}: it must be one of {list(names)}"
        )
    return np.array([where[name] for name in chosen], dtype=np.intp)


def check_reward_range(ends: tuple[float, float] | None) -> None:
    """Raise ``ValueError`` unless the least and the largest possible reward are in this order."""
    if ends is None:
        return
    if np.shape(ends) != (2,):
        raise ValueError(f"reward_range is {ends!r}: give two numbers, as in (0.0, 1.0)")
    low, high = read_floats(ends, "reward_range")
    if not low < high:
        raise ValueError(f"reward_range is {ends}: its first number must be the smaller one")


def check_rewards_within(rewards: Array, ends: tuple[float, float], first: int) -> None:
    """Raise ``ValueError`` for a reward outside; ``first`` is the number of the first row."""
    low, high = ends
    outside = np.flatnonzero((rewards < low) | (rewards > high))
    if len(outside):
        row = outside[0]
        raise ValueError(
            f"the reward in row {first + row} is {rewards[row]:g}, outside of reward_range, "
            f"{low:g} to {high:g}: give the range of all possible rewards"
        )


@dataclass(frozen=True, kw_only=True)
class RoundColumns:
    """Columns of a log by role; ``propensities`` maps arms to columns, or is a pattern, "p_*"."""

    arm: str
    reward: str
    per: str | None = None
    propensity: str | None = None
    propensities: Mapping[Any, str] | str | None = None
    features: Sequence[str] | None = None
    categories: Sequence[str] = ()  # features of which numbers are names, too
    drop: Sequence[str] = ()
    id: str | None = None


class RoundTable:
    """A table of decisions, read again at each iteration; see :func:`open_rounds`.

    Attributes
    ----------
    arms : tuple
        Names, in the order of all columns.
    feature_names : tuple of str
        Columns of contexts.
    levels : dict of column to levels
        Those of the categories among them.
    """

    def __init__(
        self, table: object, columns: RoundColumns, arms: tuple[Hashable, ...], stream: TableStream
    ) -> None:
        self._table, self._columns, self.arms = table, columns, arms
        self._stream = stream
        self._text = any(isinstance(arm, str) for arm in arms)
        self._number_columns = _list_number_columns(columns, arms)
        last = len(self._number_columns) + (len(arms) if self._text else 1)
        self.feature_names = stream.feature_names[: len(stream.feature_names) - last]
        self.levels = {name: its for name, its in stream.levels.items() if name != columns.arm}

    def __iter__(self) -> Iterator[Rounds]:
        done, m = 0, len(self.feature_names)
        for batch in self._stream.batches():
            self._refuse_filled_roles()
            more = len(batch.y)
            X, numbers, arms = np.split(batch.X, [m, m + len(self._number_columns)], axis=1)
            places = self._read_arm_indices(arms, done)
            yield self._make_rounds(X, places, batch.y, numbers, done).check_rewards()
            done += more

    def _refuse_filled_roles(self) -> None:
        """Means are for contexts: an arm or a propensity that is missing has none."""
        for name in (self._columns.arm, *self._number_columns):
            if self._stream.n_missing[name] > self._stream.n_left_out[name]:
                raise TableError(
                    f"column {name!r} has missing values, and only those of covariates are filled "
                    "in",
                    [LEAVE_OUT],
                    before="; ",
                )

    def _make_rounds(self, X: Array, arms: Indices, y: Array, numbers: Array, done: int) -> Rounds:
        per, propensity = (
            numbers[:, self._number_columns.index(name)].copy() if name else None
            for name in (self._columns.per, self._columns.propensity)
        )
        propensities = None
        if self._columns.propensities is not None:
            propensities = np.ascontiguousarray(numbers[:, -len(self.arms) :])
            if propensity is None:
                propensity = propensities[np.arange(len(arms)), arms]
        return Rounds(np.ascontiguousarray(X), arms, y, propensity, propensities, done, per)

    def _read_arm_indices(self, columns: Array, done: int) -> Indices:
        """Places of arms, of their columns of zeros and ones, or of their number."""
        if self._text:
            places = columns.argmax(axis=1)
            bad = np.flatnonzero(columns[np.arange(len(columns)), places] == 0.0)
            name: Any = next(iter(self._stream.unseen_levels.get(self._columns.arm, {})), None)
        else:
            numbers = np.array(self.arms, dtype=np.float64)
            order = np.argsort(numbers)
            found = np.searchsorted(numbers[order], columns[:, 0])
            places = order[np.minimum(found, len(numbers) - 1)]
            bad = np.flatnonzero(numbers[places] != columns[:, 0])
            name = float(columns[bad[0], 0]) if len(bad) else None
        if len(bad):
            raise TableError(
                f"the arm in row {done + int(bad[0])} is {name!r}: the arms are "
                f"{list(self.arms)}; name all of them in arms="
            )
        return np.asarray(places, dtype=np.intp)


def open_rounds(
    table: object,
    columns: RoundColumns,
    *,
    arms: Sequence[Hashable] | None = None,
    missing: Missing = "error",
    batch_rows: int = BATCH_ROWS,
    memory: int | str = MEMORY,
    levels: Mapping[str, Sequence[str]] | None = None,
) -> RoundTable:
    """Open a table of decisions, whatever :func:`open_table` opens.

    Without ``arms`` and without names of them in ``propensities``, the column of arms is read once
    before, and once more where a column of ids is to be checked.

    Raises
    ------
    TableError
        For columns that are not there, arms that are unknown, ids that come twice, rewards and
        propensities that can't be.
    """
    source = open_any(table)
    present = list(source.schema.names)
    for role in ("arm", "reward", "per", "propensity", "id"):
        named = getattr(columns, role)
        require([] if named is None else [named], present, role)
    goal = TargetRewards(columns.reward)
    goal.check(source)
    columns, propensities = _list_columns(columns, present, arms)
    if columns.id is not None or propensities is None:
        if not source.reads_again:
            raise TableError(
                f"{source.path} can be read only once: name the arms in arms=, and leave id out"
            )
        found = _scan_arms(source, columns)
        propensities = found if propensities is None else propensities
    for name in _list_number_columns(columns, propensities):
        check_numbers(source, name, "denominator" if name == columns.per else "propensity")
    ordinary = [name for name in present if name not in source.set_aside]
    names = _list_used_columns(columns, ordinary, propensities)
    text = any(isinstance(arm, str) for arm in propensities)
    known = {**(levels or {}), **({columns.arm: propensities} if text else {})}
    named, holes = (*known, *columns.categories), is_word(missing, "level")
    encoding = Encoding(drop_first=False, levels=known, categories=named, holes=holes)
    settings = ReadSettings(batch_rows=batch_rows, memory=memory, missing=missing)
    try:
        stream = open_first(source, goal, settings, (names, ()), encoding)
    except TableError as error:
        raise error.replace_cures(_ADVICE) from error
    if text != (columns.arm in stream.levels):
        raise TableError(
            f"the arms are {list(propensities)}, but column {columns.arm!r} contains "
            f"{'numbers' if text else 'text'}: use the same names"
        )
    return RoundTable(table, columns, propensities, stream)


def iterate_pieces(
    batches: Iterable[Rounds], seen: int = 0, border: int | None = None
) -> Iterator[Rounds]:
    """The same rows in pieces that double: but for the first, none is longer than all before.

    ``seen`` is how many came before these. Whatever learns a piece after it was predicted
    of it has learned half of all rows at least, and soon learns as many at once as fit a
    processor's cache. A piece ends where ``border`` rows have come, if that is given.
    """
    for rounds in batches:
        start = 0
        while start < len(rounds):
            size = min(max(seen, FIRST_ROWS), MOST_ROWS)
            if border is not None and seen < border:
                size = min(size, border - seen)
            piece = rounds.of(slice(start, start + size))
            yield piece
            start, seen = start + len(piece), seen + len(piece)


def read_arms(table: object, arm: str) -> tuple[Any, ...]:
    """Names of the arms in a column of a table that can be read again, in order."""
    source = open_any(table)
    require([arm], list(source.schema.names), "arm")
    return _scan_arms(source, RoundColumns(arm=arm, reward=""))


def _list_columns(
    columns: RoundColumns, present: list[str], arms: Sequence[Hashable] | None
) -> tuple[RoundColumns, tuple[Any, ...] | None]:
    """The columns with a mapping for a pattern, and the arms if they are named."""
    given = columns.propensities
    if isinstance(given, str):
        before, mark, after = given.partition("*")
        if not mark:
            raise TableError(f"propensities is {given!r}: a pattern needs a * for the arm's name")
        held = [
            name
            for name in present
            if name.startswith(before)
            and name.endswith(after)
            and name != columns.propensity
            and len(name) > len(before) + len(after)
        ]
        if not held:
            raise TableError(
                f"no column matches the pattern of propensities, {given!r}: give a pattern that "
                "matches"
            )
        words = {name[len(before) : len(name) - len(after)]: name for name in held}
        wanted = {str(arm): arm for arm in arms} if arms is not None else {w: w for w in words}
        given = {wanted.get(word, word): name for word, name in words.items()}
    names = None if arms is None else tuple(arms)
    if given is not None:
        names = tuple(given) if names is None else names
        lacking = [arm for arm in names if arm not in given]
        if lacking:
            raise TableError(f"propensities has no column for the arm {lacking[0]!r}: add one")
        require(list(given.values()), present, "propensity")
    if names is not None and (not names or len(set(names)) < len(names)):
        raise TableError(f"arms are {list(names)}: give at least one, each with its own name")
    return replace(columns, propensities=given), names


def _list_number_columns(columns: RoundColumns, arms: Sequence[Any]) -> list[str]:
    """Columns of denominators and of propensities, those of all arms last."""
    own = [name for name in (columns.per, columns.propensity) if name is not None]
    given = columns.propensities
    return own + ([] if given is None else [given[arm] for arm in arms])


def _list_used_columns(
    columns: RoundColumns, present: list[str], arms: Sequence[Hashable]
) -> list[str]:
    number_columns = _list_number_columns(columns, arms)
    special = {columns.arm, columns.reward, columns.id, *number_columns}
    chosen = present if columns.features is None else list(columns.features)
    require(columns.features or [], present, "feature")
    require(columns.drop, present, "column to drop")
    twice = sorted(special.intersection(columns.features or []) - {None})  # type: ignore[type-var]
    if twice:
        raise TableError(
            f"{twice[0]!r} is a feature and has another role as well: leave it out of the features"
        )
    left = [name for name in chosen if name not in special and name not in columns.drop]
    return [*left, *number_columns, columns.arm]


def _scan_arms(source: Source, columns: RoundColumns) -> tuple[Any, ...]:
    """Names of all arms, in order; raises for ids that come twice."""
    names = [columns.arm] if columns.id is None else [columns.arm, columns.id]
    found: dict[Any, None] = {}
    ids: list[pa.Array] = []
    for batch, _ in source.batches(names, _AT_ONCE):
        codes, words = get_codes(batch.column(columns.arm))
        for code in np.flatnonzero(np.bincount(codes, minlength=len(words) + 1)[: len(words)]):
            found[words[code]] = None
        if columns.id is not None:
            ids.append(batch.column(columns.id))
    if not found:
        raise explain_empty(source.path)
    if ids:
        counts = pa.chunked_array(ids).value_counts()
        most = np.asarray(counts.field("counts"))
        if most.max() > 1:
            name = counts.field("values")[int(most.argmax())].as_py()
            raise TableError(f"the id {name!r} occurs {most.max()} times: give each decision once")
    return tuple(sorted(found))
