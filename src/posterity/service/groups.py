"""Groups of requests: each is done by itself, and what fails takes nothing of the others along."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import sqlalchemy as sql

from posterity.files import dumps, loads_with_notes
from posterity.service.errors import ClaimedError, NeedsLogError, NotYetError, RefusedError
from posterity.service.recent import Recent
from posterity.service.schema import snapshot
from posterity.service.store import LogEntries
from posterity.service.work import Attempt, Questions, Work, answer_request, do_together
from posterity.service.writing import Group, thin_snapshots

# Of older snapshots one remains in so many numbers: what an audit has to learn again, at most.
KEPT_EVERY = 10_000
# What a database that is away, or has no room, raises: then no request can be done.
AWAY_ERRORS = (
    sql.exc.OperationalError,
    sql.exc.InterfaceError,
    sql.exc.TimeoutError,
    OSError,
    ClaimedError,
)
# Seconds for which decisions of a group wait while others learn: as many as all else of it takes,
# and at least so many that rewards do not pile up where all else is fast.
SHORTEST_TURN, LONGEST_TURN = 0.002, 0.01
logger = logging.getLogger("posterity.service")


class Groups:
    """Does groups of requests in memory, and commits what each group adds in one transaction.

    A request that fails for a reason that nobody foresaw may leave its model half changed. Then
    this model is read anew from the log, and the other requests that change it are done again,
    each on a copy of it.

    Parameters
    ----------
    engine : Engine
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.begin({})
        # Version and number of models that another thread writes, and the file once it is done.
        self._written: dict[str, tuple[int, int, asyncio.Future[bytes]]] = {}
        # Requests but for decisions that a group takes, and seconds that these may take.
        self.most, self._turn = 1, SHORTEST_TURN
        # Set unless a model may be half changed.
        self.whole = asyncio.Event()
        self.whole.set()

    def begin(self, kept: dict[str, int]) -> None:
        """Begin with the log as it is, which has snapshots of these numbers."""
        self.kept, self._recent = kept, Recent()

    async def do(self, works: list[Work], every: int, *, alone: bool = False) -> list[Work]:
        """Do requests and answer them; return those that must wait for the next group.

        A model gets a snapshot after ``every`` so many entries of the log that it learned.

        Raises
        ------
        Exception
            One of ``AWAY_ERRORS``: nothing was written, and nothing of it was answered.
        """
        since = time.perf_counter()
        attempts = [Attempt(work) for work in works]
        found = await self._find(attempts)
        self._decide(attempts, found)
        decided = time.perf_counter()
        snapshots = await self._do_each(attempts, found)
        self._pace(attempts)
        learned = time.perf_counter() - decided
        group = Group()
        for part in (*(one.part for one in attempts), *snapshots.values()):
            group.join(part)
        if group:
            try:
                await self._engine.run_on_disk(self._engine.store.commit, group)
            except AWAY_ERRORS:
                raise
            except Exception as error:  # of one of them
                await self._do_apart(attempts, snapshots, every, error if alone else None)
            else:
                self._engine.count(group)
                self._note(attempts, group)
        rest = time.perf_counter() - since - learned
        self._turn = min(max(rest, SHORTEST_TURN), LONGEST_TURN)
        for one in attempts:
            if not one.waits:
                answer_request(one.work.answer, one.outcome)
                if one.work.questions is not None:
                    waited = time.perf_counter() - one.work.since
                    one.work.questions.experiment.waits.append(waited)
        self._write_due(every)
        return [one.work for one in attempts if one.waits]

    def _pace(self, attempts: list[Attempt]) -> None:
        """Have the next group take as many requests as a turn had time for, or more if all were."""
        short = [one for one in attempts if one.work.questions is None and not one.work.long]
        done = sum(not one.waits for one in short)
        if done < len(short):
            self.most = max(done, 1)
        elif done >= self.most:
            self.most = 2 * done

    async def _find(self, attempts: list[Attempt]) -> LogEntries:
        """What the log has of all that is named; a request whose keys can't be looked up fails."""
        find, found = self._engine.store.find, LogEntries()
        asked = [one.work for one in attempts if one.work.begun is None]
        decisions = self._recent.recall((key for one in asked for key in one.decisions), found)
        rows = [key for one in asked for key in one.rows]
        if not (decisions or rows):
            return found
        try:
            await self._engine.run_on_disk(find, decisions, rows, found)
        except AWAY_ERRORS:
            raise
        except Exception:  # of one of them
            for one in attempts:
                try:
                    await self._engine.run_on_disk(find, one.work.decisions, one.work.rows, found)
                except AWAY_ERRORS:
                    raise
                except Exception as error:
                    one.fail(error)
        return found

    def _decide(self, attempts: list[Attempt], found: LogEntries) -> None:
        """Make all decisions that are not in the log, those of an experiment at once."""
        asked: dict[str, list[tuple[Questions, int]]] = {}
        for one in attempts:
            questions = one.work.questions
            if questions is not None:
                name, questions.made = questions.experiment.name, [None] * len(questions.asked)
                asked.setdefault(name, []).extend(
                    (questions, place)
                    for place, given in enumerate(questions.asked)
                    if (name, given[1]) not in found.decisions
                )
        for name, places in asked.items():
            requests = [questions.asked[place] for questions, place in places]
            made = do_together(partial(self._engine.decide_some, name), requests)
            for (questions, place), decided in zip(places, made, strict=True):
                questions.made[place] = decided

    async def _do_each(self, attempts: list[Attempt], found: LogEntries) -> dict[str, Group]:
        """Do requests; return the snapshots that are due after them, by model."""
        todo, copies = attempts, False
        while True:
            known = found.layer()
            for one in attempts:
                if one.added is not None:
                    known.join(one.added)
            harmed = await self._do_in_order([one for one in todo if not one.failed], known, copies)
            snapshots: dict[str, Group] = {}
            if not harmed:
                askers: dict[str, list[Attempt]] = {}
                for one in attempts:
                    for name in one.part.snapshots:
                        askers.setdefault(name, []).append(one)
                snapshots, harmed = self.take_snapshots(askers)
            if not harmed:
                return snapshots
            await self._mend(harmed)
            todo, copies = [one for one in attempts if one.work.model in harmed], True
            for one in todo:
                if not one.failed:
                    one.clear()

    async def _do_in_order(
        self, attempts: list[Attempt], known: LogEntries, copies: bool
    ) -> set[str]:
        """Do requests, each on a copy of its model if so; return the models left half changed."""
        models = self._engine.models
        begun: set[str] = set()
        harmed: set[str] = set()
        waiting: set[str] = set()
        # Seconds of what is not long, and of what is; decisions are made already.
        spent = [0.0, 0.0]
        for one in attempts:
            name, since = one.work.model, time.perf_counter()
            if name in harmed:
                continue
            if one.work.questions is None:
                one.waits = name in waiting or spent[one.work.long] > self._turn
                if one.waits:
                    waiting.add(name)
                    continue
            before = models.get(name)
            through = None if before is None else before.learned_through
            if copies and before is not None:
                models[name] = deepcopy(before)
            try:
                await self._do_one(one, known, first=name not in begun)
                begun.add(name)
            except Exception as error:
                if copies:
                    _put_back(models, name, before)
                elif _is_changed(error, models.get(name), before, through):
                    harmed.add(name)
                    self.whole.clear()
                if isinstance(error, NotYetError):
                    one.part, one.waits = Group(), True
                    waiting.add(name)
                else:
                    one.fail(error)
            if one.work.questions is None:
                spent[one.work.long] += time.perf_counter() - since
        return harmed

    async def _do_one(self, one: Attempt, known: LogEntries, first: bool) -> None:
        """Do a request; the log is open to the first one of its model in a group."""
        if one.work.long:
            return await self._go_on(one, known)
        added = known.layer()
        try:
            one.outcome = one.work.do(added, one.part)
        except NeedsLogError:
            if not first:
                raise
            added, one.part = known.layer(), Group()
            added.log = self._engine.store
            one.outcome = await self._engine.run_on_disk(one.work.do, added, one.part)
        one.added = added
        known.join(added)

    async def _go_on(self, one: Attempt, known: LogEntries) -> None:
        """Do a turn's steps of a long request; raises unless these are the last."""
        if one.work.begun is None:
            added = known.layer()
            one.work.begun = one.work.do(added, one.part), added, one.part
            await self._engine.run_on_disk(next, one.work.begun[0])  # it copies its model
        steps, added, one.part = one.work.begun
        until = time.perf_counter() + self._turn
        try:
            while time.perf_counter() < until:
                next(steps)
        except StopIteration as end:
            one.outcome, one.added = end.value, added
            return known.join(added)
        raise NotYetError

    async def _mend(self, names: Iterable[str]) -> None:
        """Read models anew from the log."""

        def restore() -> None:
            kept = {one["name"]: one for one in self._engine.store.read_models()}
            for name in names:
                if name in kept:
                    self._engine.restore_served(kept[name])
                else:  # it was to be created
                    self._engine.models.pop(name, None)

        self.whole.clear()
        try:
            await self._engine.run_on_disk(restore)
        finally:
            self.whole.set()

    async def _do_apart(
        self,
        attempts: list[Attempt],
        snapshots: dict[str, Group],
        every: int,
        error: Exception | None,
    ) -> None:
        """Do requests that could not be committed together by themselves; one alone has failed."""
        self._recent.clear()
        await self._mend({one.work.model for one in attempts} - {""})
        for served in self._engine.models.values():
            served.entries = 0 if served.name in snapshots else served.entries
        for one in attempts:
            one.work.begun = None  # a batch's copy may have learned what was not written
            if one.waits:
                continue
            if error is None:
                left = [one.work]
                while left:
                    left = await self.do(left, every, alone=True)
            elif isinstance(error, sql.exc.IntegrityError):
                one.fail(RefusedError(503, "another server wrote the same: try again", "", 1))
            else:
                one.fail(error)

    # ---- snapshots -------------------------------------------------------------------------------

    def take_snapshots(
        self, askers: Mapping[str, Sequence[Attempt]]
    ) -> tuple[dict[str, Group], set[str]]:
        """Snapshots of models for which requests ask, and those that another thread has written.

        If one can't be made the log has all of it, unless a request erases what the log has: this
        one fails. Also returned are the models of such requests.
        """
        made: dict[str, Group] = {}
        harmed: set[str] = set()
        for name, served in self._engine.models.items() if self._engine.learns else ():
            former = self.kept.get(name, 0)
            if served.learned_through == former:
                continue
            try:
                through, file = self._find_file(name, served, asked=name in askers)
            except Exception as error:
                logger.error("no snapshot of %r could be taken", name, exc_info=error)
                for one in askers.get(name, ()):
                    one.fail(error)
                    harmed.add(name)
            else:
                if through > former:
                    made[name] = self._add_snapshot(name, through, file, former)
        return made, harmed

    def _find_file(self, name: str, served: Any, *, asked: bool) -> tuple[int, bytes]:
        """What a snapshot has learned, and its file; 0 where there is none."""
        if asked:
            return served.learned_through, _encode(served.model, served.notes)
        version, through, file = self._written.get(name, (0, 0, None))
        if file is None or not file.done():
            return 0, b""
        del self._written[name]
        # Another model of its name may have come meanwhile.
        return (through if version == served.version else 0), file.result()

    def _write_due(self, every: int) -> None:
        """Have another thread write models that learned enough, as they were committed.

        One that can't be written is written no sooner than after as many entries more.
        """
        for name, served in self._engine.models.items() if self._engine.learns else ():
            if served.entries >= every and name not in self._written:
                file = self._engine.begin_reading(_encode, deepcopy(served.model), served.notes)
                self._written[name] = served.version, served.learned_through, file
                served.entries = 0

    def _add_snapshot(self, name: str, through: int, file: bytes, former: int) -> Group:
        group = Group()
        if former // KEPT_EVERY == through // KEPT_EVERY:
            group.statements.append(thin_snapshots(name, former))
        at = self._engine.clock()
        group.add(snapshot, model=name, learned_through=through, file=file, at=at)
        return group

    def _note(self, attempts: list[Attempt], group: Group) -> None:
        """Note what was committed: snapshots, and decisions with what came for them."""
        for table, record in group.inserts:
            if table is snapshot:
                self.kept[record["model"]] = record["learned_through"]
        if any(one.part.statements or one.part.updates for one in attempts):
            self._recent.clear()
        elif self._engine.learns:
            for added in filter(None, [one.added for one in attempts]):
                self._recent.note(added)


def _encode(model: Any, notes: Mapping[str, Any]) -> bytes:
    """A model as a file, which can be read: another one is worth nothing."""
    loads_with_notes(file := dumps(model, notes))
    return file


def _is_changed(error: Exception, now: Any, before: Any, through: int | None) -> bool:
    """Whether a request that failed may have changed its model."""
    if not isinstance(error, RefusedError | NotYetError):
        return before is not None or now is not None
    return now is not before or (now is not None and now.learned_through != through)


def _put_back(models: dict[str, Any], name: str, before: Any) -> None:
    if before is None:
        models.pop(name, None)
    else:
        models[name] = before
