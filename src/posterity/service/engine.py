"""The service without its doors: requests wait, are done in groups, and answered when on disk."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import sqlalchemy as sql

from posterity.files import dumps, loads_with_notes
from posterity.service.changes import check_features, check_name, check_ranges, refuse_other
from posterity.service.errors import ClaimedError, RefusedError
from posterity.service.experiments import Experiment
from posterity.service.follow import Follower
from posterity.service.messages import (
    Decide,
    ExperimentSettings,
    Predict,
    Predicted,
    PredictorSettings,
)
from posterity.service.predictors import Predictor
from posterity.service.schema import audit, decision, model, snapshot
from posterity.service.store import (
    Group,
    LogEntries,
    Record,
    Store,
    erase_decisions,
    thin_snapshots,
)
from posterity.service.upkeep import Upkeep
from posterity.service.work import (
    NUMERICAL,
    Predictions,
    Work,
    answer_request,
    compute_outcome,
    explain_numerical_error,
    summarize_error,
)

Served = Experiment | Predictor

# Requests that may wait, and that are done in one transaction.
MOST_WAITING = 10_000
MOST_AT_ONCE = 1_000
# Seconds that a group waits for more, where the last one was more than one request.
GROUPING_DELAY = 0.001
# Events between two snapshots of a model: what a restart has to learn again, at most.
SNAPSHOT_EVERY = 1_000
# Of older snapshots one remains in so many numbers: what an audit has to learn again, at most.
KEPT_EVERY = 10_000
# What a model file that is damaged, or holds numbers that no model has, raises.
READ_ERRORS = (ValueError, ArithmeticError, TypeError, KeyError)
# What a database that is away, or has no room, raises.
WRITE_ERRORS = (sql.exc.SQLAlchemyError, OSError, ClaimedError)
logger = logging.getLogger("posterity.service")
_SETTINGS = {"experiment": ExperimentSettings, "predictor": PredictorSettings}


class Engine:
    """Models in memory, the log on disk, and one writer between them.

    A group of requests is looked up, done in memory and committed in one transaction, and only
    then answered. Where the commit fails nothing was done: the models are read anew from the log.

    Parameters
    ----------
    store : Store
    clock : callable
        Seconds since 1970; it may jump, for nothing hangs on its order.
    learns : bool
        Whether it learns. If not it only decides, and follows the server that learns.
    """

    def __init__(
        self, store: Store, clock: Callable[[], float] = time.time, *, learns: bool = True
    ) -> None:
        self.store, self.clock, self.learns = store, clock, learns
        self.models: dict[str, Served] = {}
        self.broken: dict[str, str] = {}  # models that can't be restored, and why
        self.counts = {"decisions": 0, "events": 0, "rows": 0, "commits": 0, "failures": 0}
        self.changed: list[asyncio.Event] = []
        self.ready = False
        self.stops = False
        self.closing = False  # streams end, so that nobody waits for them
        self._number = 0
        self._made, self._process = 0, secrets.token_hex(8)
        self._secret = ""
        self._snapshots: dict[str, int] = {}
        self._due: set[str] = set()  # models that get a snapshot with the group at hand
        self._queue: deque[Work] = deque()
        self._wake = asyncio.Event()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="posterity-disk")
        self._readers = ThreadPoolExecutor(8, thread_name_prefix="posterity-read")
        self._tasks: list[asyncio.Task[None]] = []
        self._predictions = Predictions()
        self.upkeep, self.follower = Upkeep(self), Follower(self)

    # ---- lifespan -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Read what there is, and begin to work."""
        await self._run_on_disk(self._restore_all)
        self.ready = True
        beside = self.upkeep if self.learns else self.follower
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(beside.run())]

    async def stop(self) -> None:
        """Answer the waiting requests, keep snapshots, and close."""
        self.stops = self.closing = True
        self._wake.set()
        for task in self._tasks[1:]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        group = Group()
        self._add_snapshots(group, every=1)
        if group and self.ready:
            try:
                await self._run_on_disk(self.store.commit, group)
            except WRITE_ERRORS as error:  # nothing is lost: a restart learns it from the log
                logger.error("the last snapshots could not be kept: %s", summarize_error(error))
        await asyncio.to_thread(self.end_threads)
        self.store.close()

    def end_threads(self) -> None:
        """Wait for what is being read and written, so that no connection is left open."""
        self._readers.shutdown()
        self._disk.shutdown()

    def _restore_all(self) -> None:
        if self.learns:
            self.store.claim()
        self._number = self.store.read_last_number()
        self._secret = self.store.read_secret(secrets.token_hex(32) if self.learns else "")
        if not self._secret:
            raise ClaimedError("the database is empty: start the server that learns first")
        self.models, self.broken = {}, {}
        for kept in self.store.read_models():
            try:
                self.models[kept["name"]] = self.restore(kept)
            except (sql.exc.SQLAlchemyError, OSError):
                raise
            except Exception as error:  # one model that can't be read leaves the others
                self.broken[kept["name"]] = summarize_error(error)
                logger.error("%s %r can't be restored: %s", kept["kind"], kept["name"], error)
        self._due.clear()
        self._snapshots = {
            name: (self.store.read_snapshot(name) or {"learned_through": 0})["learned_through"]
            for name in self.models
        }

    def restore(self, kept: Record, through: int | None = None) -> Served:
        """A model as the log has it, or as it was when it had learned no more than ``through``."""
        name, kind = kept["name"], kept["kind"]
        after, known, notes = self._read_snapshot(name, through)
        settings = msgspec.json.decode(kept["settings"], type=_SETTINGS[kind])
        served: Served
        if isinstance(settings, ExperimentSettings):
            served = Experiment(name, kept["version"], settings, self._secret, known, after)
        else:
            served = Predictor(name, kept["version"], settings, known, notes, after)
        served.replay(served.read_log(self.store, after, through))
        return served

    def _read_snapshot(self, name: str, through: int | None) -> tuple[int, Any, Any]:
        """Number, model and notes of the newest snapshot that can be read; 0 where there is none.

        What the log holds after it is learned again, however old it is.
        """
        while (found := self.store.read_snapshot(name, through)) is not None:
            try:
                return found["learned_through"], *loads_with_notes(found["file"])
            except READ_ERRORS as error:
                number = found["learned_through"]
                logger.error("snapshot %d of %r can't be read: %s", number, name, error)
                through = number - 1
        return 0, None, None

    def restore_at(self, kept: Record, made: Record) -> Served:
        """The experiment that made a decision, with the settings and the model of that time."""
        self._secret = self.store.read_secret("")
        settings = self.store.read_settings(kept["name"], made["settings_version"])
        return self.restore({**kept, **settings}, made["learned_through"])

    async def _run_on_disk(self, do: Callable[..., Any], *given: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._disk, do, *given)

    # ---- what is asked ---------------------------------------------------------------------------

    async def submit(self, work: Work) -> Any:
        """Wait until it is done and on the disk."""
        if not self.ready:
            raise RefusedError(503, "the database can't be reached: try again", retry_after=1)
        if not self.learns and work.decides is None:
            message = "this server only decides: send this to the server that learns"
            raise RefusedError(421, message)
        if len(self._queue) >= MOST_WAITING:
            raise RefusedError(503, "too many requests are waiting: try again later", retry_after=1)
        self._queue.append(work)
        self._wake.set()
        return await work.answer

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return self._find_model(name, Experiment)

    def predictor(self, name: str) -> Predictor:
        """The predictor of that name."""
        return self._find_model(name, Predictor)

    def _find_model(self, name: str, kind: Any) -> Any:
        if not self.ready:
            raise RefusedError(503, "the log is being read: try again", retry_after=1)
        found = self.models.get(name)
        if name in self.broken:
            raise RefusedError(503, self._explain_failure(name), "name")
        if not isinstance(found, kind):
            raise RefusedError(404, f"there is no {kind.kind} {name!r}", "name")
        return found

    def _explain_failure(self, name: str) -> str:
        return (
            f"{name!r} can't be restored from the database, and is not served: "
            f"{self.broken[name]}. Its log is kept; restore a backup, or use another name"
        )

    async def put(self, name: str, settings: Any, token: str) -> Record:
        """Create a model, or change its settings; an experiment's arms and features stay."""
        kind = "experiment" if isinstance(settings, ExperimentSettings) else "predictor"
        check_name(name)

        def do(_: LogEntries, group: Group) -> Record:
            if name in self.broken:
                raise RefusedError(503, self._explain_failure(name), "name")
            before = self.models.get(name)
            version = 1 if before is None else before.version + 1
            if before is not None:
                if msgspec.structs.asdict(before.settings) == msgspec.structs.asdict(settings):
                    return {"name": name, "version": before.version}
                refuse_other(before, kind, settings)
            served: Served
            if isinstance(settings, ExperimentSettings):
                check_ranges(settings)
                known = None if before is None else before.model
                through = 0 if before is None else before.learned_through
                served = Experiment(name, version, settings, self._secret, known, through)
                served.check_settings()
            else:
                check_features(settings)
                served = Predictor(name, version, settings)
                served.check_settings()
            written = msgspec.json.encode(settings).decode()
            now = self.clock()
            group.add(
                model,
                seq=self.next_number(),
                name=name,
                version=version,
                kind=kind,
                settings=written,
                at=now,
            )
            was = None if before is None else msgspec.json.encode(before.settings).decode()
            self.add_audit(group, token, f"{kind} {name}", was, written)
            self.models[name] = served
            return {"name": name, "version": version}

        answer: Record = await self.submit(Work(do))
        return answer

    async def decide(self, name: str, asked: list[Decide]) -> list[Any]:
        """Arms for contexts."""
        experiment = self.experiment(name)
        read = self._read(experiment, asked)
        named = tuple((name, one.id) for one in asked if one.id is not None)

        def do(found: LogEntries, group: Group) -> list[Any]:
            for _, id, *_ in read:
                if (name, id) in found.refused:
                    raise found.refused[name, id]
            made = [found.decisions[name, one[1]] for one in read]
            for position, (given, one) in enumerate(zip(read, made, strict=True)):
                if given[0].id is not None:  # it may have been made before, for another request
                    field = "id" if len(read) == 1 else f"decisions[{position}].id"
                    _refuse_another(experiment, given, one, field)
            return [*map(experiment.answer, made)]

        answer: list[Any] = await self.submit(Work(do, decisions=named, decides=(experiment, read)))
        return answer

    def _read(self, experiment: Experiment, asked: list[Decide]) -> list[tuple[Any, ...]]:
        """Read requests, each with id, context and arms; an error says which one is meant."""
        read: list[tuple[Any, ...]] = []
        for one in asked:
            try:
                read.append((one, one.id or self._new_id(), *experiment.read(one)))
            except RefusedError as refused:
                if len(asked) > 1:
                    refused.field = f"decisions[{len(read)}].{refused.field}"
                raise
        return read

    def _new_id(self) -> str:
        """An id of a decision that came without one: ids that grow make the index cheap."""
        self._made += 1
        return f"{int(1000.0 * self.clock()):012x}-{self._process}-{self._made:x}"

    async def record_event(self, name: str, kind: str, asked: Any) -> Any:
        """A reward, a correction, a retraction, an activation or a deletion."""
        self.experiment(name)

        def do(found: LogEntries, group: Group) -> Any:
            experiment = self.experiment(name)
            outcome = experiment.record_event(
                kind, asked, found, group, self._number + 1, self.clock()
            )
            self._number = max(self._number, experiment.learned_through)
            if kind == "delete":
                group.statements += erase_decisions(name, [asked.decision_id])
                self._snapshots[name] = 0
                self.request_snapshot(name)
            return outcome

        return await self.submit(Work(do, decisions=((name, asked.decision_id),)))

    async def predict(self, name: str, asked: Predict) -> Predicted:
        """Predict a row; nothing is learned or kept."""
        predictor = self.predictor(name)
        return await self._predictions.of(predictor, predictor.read(asked.x))

    async def record_row(self, name: str, way: str, asked: Any) -> Any:
        """A row to learn, or to unlearn."""
        self.predictor(name)

        def do(found: LogEntries, group: Group) -> Any:
            predictor = self.predictor(name)
            outcome = getattr(predictor, way)(asked, found, group, self._number + 1, self.clock())
            self._number = max(self._number, predictor.learned_through)
            return outcome

        return await self.submit(Work(do, rows=((name, asked.id),)))

    def add_audit(self, group: Group, token: str, what: str, before: Any, after: Any) -> None:
        """Note who changed what."""
        now = self.clock()
        group.add(
            audit,
            seq=self.next_number(),
            at=now,
            token=token,
            what=what,
            before=before,
            after=after,
        )

    def next_number(self) -> int:
        """The next number of the log."""
        self._number += 1
        return self._number

    # ---- groups ----------------------------------------------------------------------------------

    async def _write(self) -> None:
        count = 0
        while self._queue or not self.stops:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                if count > 1:
                    await asyncio.sleep(GROUPING_DELAY)
                count = min(len(self._queue), MOST_AT_ONCE)
                await self._do_together([self._queue.popleft() for _ in range(count)])

    async def _do_together(self, works: list[Work]) -> None:
        group = Group()
        try:
            keys = [key for work in works for key in work.decisions]
            rows = [key for work in works for key in work.rows]
            found = LogEntries()
            if keys or rows:
                found = await self._run_on_disk(self.store.find, keys, rows)
            self._decide_together(works, found, group)
            outcomes = [compute_outcome(work, found, group) for work in works]
            self._add_snapshots(group, every=SNAPSHOT_EVERY)
            if group:
                await self._run_on_disk(self.store.commit, group)
                self._count(group)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if isinstance(error, sql.exc.IntegrityError) and not self.learns:
                # Another server made one of these decisions meanwhile: now it is found.
                return await self._do_together(works)
            self.counts["failures"] += 1
            self.ready = False  # the models hold what the log does not
            refused = RefusedError(
                503, f"nothing was written: {summarize_error(error)}", retry_after=1
            )
            for work in works:
                answer_request(work, refused)
            await self._recover()
            return
        for work, outcome in zip(works, outcomes, strict=True):
            answer_request(work, outcome)
        if group:
            for changed in self.changed:
                changed.set()

    def _decide_together(self, works: list[Work], found: LogEntries, group: Group) -> None:
        """Make all decisions of a group that are not in the log, those of an experiment at once."""
        asked: dict[str, dict[str, tuple[Any, ...]]] = {}
        for work in works:
            if work.decides is not None:
                experiment, read = work.decides
                new = asked.setdefault(experiment.name, {})
                for one in read:
                    if (experiment.name, one[1]) not in found.decisions:
                        new.setdefault(one[1], one)
        for name, new in asked.items():
            requests = list(new.values())
            try:
                made = self._decide_some(name, requests)
            except NUMERICAL:  # of some of them: the others are decided
                made = []
                for one in requests:
                    try:
                        made += self._decide_some(name, [one])
                    except NUMERICAL as error:
                        found.refused[name, one[1]] = explain_numerical_error(error)
            group.inserts += [(decision, one) for one in made]
            found.decisions.update({(name, one["id"]): one for one in made})

    def _decide_some(self, name: str, requests: list[tuple[Any, ...]]) -> list[Record]:
        if not requests:
            return []
        numbers = list(range(self._number + 1, self._number + 1 + len(requests)))
        made = self.experiment(name).decide(requests, numbers, self.clock())
        self._number = numbers[-1]
        return made

    def _add_snapshots(self, group: Group, every: int) -> None:
        """Snapshots of models that have learned enough since the last, in the same transaction."""
        for name, served in self.models.items() if self.learns else ():
            through, former = served.learned_through, self._snapshots.get(name, 0)
            if through > former and (through - former >= every or name in self._due):
                file = dumps(served.model, getattr(served, "notes", None))
                try:
                    loads_with_notes(file)
                except READ_ERRORS as error:  # the log has all of it
                    logger.error("no snapshot of %r: it could not be read: %s", name, error)
                    continue
                if former // KEPT_EVERY == through // KEPT_EVERY:
                    group.statements.append(thin_snapshots(name, former))
                group.add(snapshot, model=name, learned_through=through, file=file, at=self.clock())
                self._snapshots[name] = through
        self._due.clear()

    def request_snapshot(self, name: str) -> None:
        """Have a snapshot of a model written with the group that is being done."""
        self._due.add(name)

    def _count(self, group: Group) -> None:
        self.counts["commits"] += 1
        for table, _ in group.inserts:
            word = {"decision": "decisions", "event": "events", "row": "rows"}.get(table.name)
            if word is not None:
                self.counts[word] += 1

    async def _recover(self) -> None:
        """Read the models anew: what was done in memory is not in the log."""
        while not self.stops:
            try:
                await self._run_on_disk(self._restore_all)
            except WRITE_ERRORS:
                for work in [self._queue.popleft() for _ in range(len(self._queue))]:
                    answer_request(
                        work,
                        RefusedError(
                            503, "the database can't be reached: try again", retry_after=1
                        ),
                    )
                await asyncio.sleep(0.5)
            else:
                self.ready = True
                return

    async def read(self, do: Callable[..., Any], *given: Any) -> Any:
        """Read the database in another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, do, *given)


def _refuse_another(
    experiment: Experiment, given: tuple[Any, ...], made: Record, field: str
) -> None:
    """Refuse a request whose id is that of a decision which answers another question."""
    asked, _, context, allowed = given
    gone = made["context"] is None
    same = gone or experiment.matches_context(made, context)
    if gone or not (same and experiment.matches_arms(made, asked, allowed)):
        other = "with other arms allowed" if same else "in another context"
        message = f"was made {other}: give each decision an id of its own"
        if gone:
            message = "was deleted: send another id"
        raise RefusedError(410 if gone else 409, f"decision {made['id']!r} {message}", field)
