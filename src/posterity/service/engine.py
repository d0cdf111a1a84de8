"""The service without its doors: requests wait, are done in groups, and answered when on disk."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import msgspec
import sqlalchemy as sql

from posterity.files import dumps
from posterity.service.disk import Disk
from posterity.service.errors import ClaimedError, RefusedError, naming_place
from posterity.service.experiments import Experiment
from posterity.service.follow import Follower
from posterity.service.groups import AWAY_ERRORS, Groups
from posterity.service.learner import read_snapshot
from posterity.service.messages import (
    Decide,
    ExperimentSettings,
    Predict,
    Predicted,
    PredictorSettings,
)
from posterity.service.predictors import Predictor
from posterity.service.schema import DELETED, audit
from posterity.service.store import LogEntries, Store
from posterity.service.upkeep import Upkeep
from posterity.service.work import (
    Predictions,
    Questions,
    Waiting,
    Work,
    answer_request,
    explain_failure,
    summarize_error,
)
from posterity.service.writing import Group, Record, erase_decisions

Served = Experiment | Predictor

# Requests that may wait.
MOST_WAITING = 10_000
# Seconds that a group waits for more, where the last one was so many requests.
GROUPING_DELAY, MANY_TOGETHER = 0.001, 16
# Entries that a model learns between two snapshots: what a restart learns again, at most.
SNAPSHOT_EVERY = 1_000
logger = logging.getLogger("posterity.service")
_SETTINGS = {"experiment": ExperimentSettings, "predictor": PredictorSettings}


class Engine:
    """Models in memory, the log on disk, and one writer between them.

    A group of requests is looked up, done in memory and committed in one transaction, and only
    then answered. Where the database is away nothing was done: the models are read anew from the
    log once it is back.

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
        self.deleted: dict[str, int] = {}  # versions that names have come to
        self.counts = {"decisions": 0, "events": 0, "rows": 0, "commits": 0, "failures": 0}
        self.changed: list[asyncio.Event] = []  # of streams that wait for one
        self.evaluating = asyncio.Lock()
        self.ready = False
        self.stops = False
        self.closing = False  # streams end, so that nobody waits for them
        self._number = 0
        self._made, self._process = 0, secrets.token_hex(8)
        self._secret = ""
        self._queue = Waiting()
        self._wake = asyncio.Event()
        # Runs a function in the one thread that writes.
        self._disk = Disk()
        self.run_on_disk = self._disk.run
        self._readers = ThreadPoolExecutor(8, thread_name_prefix="posterity-read")
        self._tasks: list[asyncio.Task[None]] = []
        self._predictions, self._groups = Predictions(), Groups(self)
        self.upkeep, self.follower = Upkeep(self), Follower(self)

    # ---- lifespan -----------------------------------------------------------------------------

    async def start(self) -> None:
        """Read what there is, and begin to work."""
        await self.run_on_disk(self.store.check_pages)
        await self.run_on_disk(self._restore_all)
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
        if self.ready:
            await self._keep_last_snapshots()
        await asyncio.to_thread(self.end_threads)
        self.store.close()

    async def _keep_last_snapshots(self) -> None:
        group = Group()
        for part in self._groups.take_snapshots(dict.fromkeys(self.models, ()))[0].values():
            group.join(part)
        if group:
            try:
                await self.run_on_disk(self.store.commit, group)
            except Exception as error:  # nothing is lost: a restart learns it from the log
                logger.error("the last snapshots could not be kept: %s", summarize_error(error))

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
        self.models, self.broken, self.deleted = {}, {}, {}
        for kept in self.store.read_models():
            self.restore_served(kept)
        self._groups.begin(self.store.read_snapshot_numbers())

    def restore_served(self, kept: Record) -> None:
        """Serve a model as the log has it; one that can't be restored leaves the others."""
        name = kept["name"]
        if kept["kind"] == DELETED:
            return self.forget_model(name, kept["version"])
        self.broken.pop(name, None)
        try:
            self.models[name] = self.restore(kept)
        except (sql.exc.SQLAlchemyError, OSError):
            raise
        except Exception as error:
            self.models.pop(name, None)
            self.broken[name] = summarize_error(error)
            logger.error("%s %r can't be restored", kept["kind"], name, exc_info=error)

    def forget_model(self, name: str, version: int) -> None:
        """Serve a model no longer; another one of its name has a later version."""
        self.models.pop(name, None)
        self.broken.pop(name, None)
        self.deleted[name] = version

    def restore(self, kept: Record, through: int | None = None) -> Served:
        """A model as the log has it, or as it was when it had learned no more than ``through``."""
        name, kind = kept["name"], kept["kind"]
        after, known, notes = read_snapshot(self.store, name, through)
        settings = msgspec.json.decode(kept["settings"], type=_SETTINGS[kind])
        served = self.build(name, kept["version"], settings, known, notes, after)
        served.replay(served.read_log(self.store, after, through), self.store)
        return served

    def build(self, name: str, version: int, settings: Any, *known: Any) -> Served:
        """An experiment or a predictor; ``known`` are a snapshot's model, notes and number."""
        if isinstance(settings, ExperimentSettings):
            return Experiment(name, version, settings, self._secret, *known)
        return Predictor(name, version, settings, *known)

    def restore_at(self, kept: Record, made: Record) -> Served:
        """The experiment that made a decision, with the settings and the model of that time."""
        self._secret = self.store.read_secret("")
        settings = self.store.read_settings(kept["name"], made["settings_version"])
        return self.restore({**kept, **settings}, made["learned_through"])

    # ---- what is asked ---------------------------------------------------------------------------

    async def submit(self, work: Work) -> Any:
        """Wait until it is done and on the disk."""
        if not self.ready:
            raise _refuse_away()
        if not self.learns and work.questions is None:
            message = "this server only decides: send this to the server that learns"
            raise RefusedError(421, message)
        if len(self._queue) >= MOST_WAITING:
            raise RefusedError(503, "too many requests are waiting: try again later", retry_after=1)
        self._queue.put(work)
        self._wake.set()
        return await work.answer

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return len(self._queue)

    def list_models(self, kind: str) -> list[Any]:
        """All experiments, or all predictors, in the order of creation."""
        return [served for served in [*self.models.values()] if served.kind == kind]

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name."""
        return self._find_model(name, Experiment)

    def predictor(self, name: str) -> Predictor:
        """The predictor of that name."""
        return self._find_model(name, Predictor)

    def check_ready(self) -> None:
        """Refuse what is asked while the log is being read."""
        if not self.ready:
            raise RefusedError(503, "the log is being read: try again", retry_after=1)

    def _find_model(self, name: str, kind: Any) -> Any:
        self.check_ready()
        found = self.models.get(name)
        if name in self.broken:
            raise RefusedError(503, self.explain_failure(name), "name")
        if not isinstance(found, kind):
            raise RefusedError(404, f"there is no {kind.kind} {name!r}", "name")
        return found

    def explain_failure(self, name: str) -> str:
        """Why a model can't be restored, and what to do."""
        return (
            f"{name!r} can't be restored from the database, and is not served: "
            f"{self.broken[name]}. Its log is kept; restore a backup, or delete it"
        )

    async def decide(self, name: str, asked: list[Decide]) -> list[Any]:
        """Arms for contexts."""
        experiment = self.experiment(name)
        questions = Questions(experiment, self._read(experiment, asked))
        named = tuple((name, one.id) for one in asked if one.id is not None)

        def do(entries: LogEntries, group: Group) -> list[Any]:
            return [
                experiment.answer(questions.take(place, entries, group))
                for place in range(len(questions.asked))
            ]

        answer: list[Any] = await self.submit(Work(do, decisions=named, questions=questions))
        return answer

    def _read(self, experiment: Experiment, asked: list[Decide]) -> list[tuple[Any, ...]]:
        """Read requests, each with id, context and arms; an error says which one is meant."""
        read: list[tuple[Any, ...]] = []
        for place, one in enumerate(asked):
            with naming_place("decisions", place, len(asked)):
                read.append((one, one.id or self._new_id(), *experiment.read(one)))
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
                group.snapshots.add(name)
            return outcome

        return await self.submit(Work(do, name, decisions=((name, asked.decision_id),)))

    async def predict(self, name: str, asked: Predict) -> Predicted:
        """Predict a row; nothing is learned or kept."""
        if not self._groups.whole.is_set():
            await self._groups.whole.wait()
        predictor = self.predictor(name)
        return await self._predictions.of(predictor, predictor.rows.read(asked.x))

    async def predict_rows(self, name: str, asked: list[Any]) -> list[Predicted]:
        """Predict rows together."""
        await self._groups.whole.wait()
        predictor, rows = self.predictor(name), []
        for place, x in enumerate(asked):
            with naming_place("rows", place, len(asked)):
                rows.append(predictor.rows.read(x))
        try:
            return predictor.predict(rows)
        except Exception as error:
            raise explain_failure(error) from error

    async def write_model(self, name: str) -> bytes:
        """The model file of an experiment or a predictor, which another thread writes."""
        await self._groups.whole.wait()
        content: bytes = await self.read(dumps, deepcopy(self.models[name].model))
        return content

    async def record_row(self, name: str, way: str, asked: Any) -> Any:
        """A row to learn, or to unlearn."""
        self.predictor(name)

        def do(found: LogEntries, group: Group) -> Any:
            predictor = self.predictor(name)
            outcome = getattr(predictor, way)(asked, found, group, self._number + 1, self.clock())
            self._number = max(self._number, predictor.learned_through)
            return outcome

        return await self.submit(Work(do, name, rows=((name, asked.id),)))

    def add_audit(self, group: Group, token: str, what: str, before: Any, after: Any) -> None:
        """Note who changed what."""
        changed = {"token": token, "what": what, "before": before, "after": after}
        group.add(audit, seq=self.next_number(), at=self.clock(), **changed)

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
                if count >= MANY_TOGETHER:
                    await asyncio.sleep(GROUPING_DELAY)
                works = self._queue.take(self._groups.most)
                count = len(works)
                await self._do_together(works)

    async def _do_together(self, works: list[Work]) -> None:
        commits = self.counts["commits"]
        try:
            waiting = await self._groups.do(works, SNAPSHOT_EVERY)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.counts["failures"] += 1
            self.ready = False  # the models hold what the log does not
            if not isinstance(error, AWAY_ERRORS):
                logger.error("a group of requests failed", exc_info=error)
            message = f"nothing was written: {summarize_error(error)}"
            for work in works:
                answer_request(work.answer, RefusedError(503, message, retry_after=1))
            await self._recover()
            return
        self._queue.put_back(waiting)
        if waiting:
            await asyncio.sleep(0)  # for decisions to come in between
        if self.counts["commits"] > commits:
            for changed in self.changed:
                changed.set()

    def decide_some(self, name: str, requests: list[tuple[Any, ...]]) -> list[Record]:
        """Decisions of an experiment, with the next numbers of the log."""
        numbers = list(range(self._number + 1, self._number + 1 + len(requests)))
        made = self.experiment(name).decide(requests, numbers, self.clock())
        self._number = max(self._number, *numbers)
        return made

    def count(self, group: Group) -> None:
        """Count what was committed."""
        self.counts["commits"] += 1
        for table, _ in group.inserts:
            word = {"decision": "decisions", "event": "events", "row": "rows"}.get(table.name)
            if word is not None:
                self.counts[word] += 1

    async def _recover(self) -> None:
        """Read the models anew: what was done in memory is not in the log."""
        while not self.stops:
            try:
                await self.run_on_disk(self._restore_all)
            except (sql.exc.SQLAlchemyError, OSError, ClaimedError):
                while self._queue:
                    for work in self._queue.take():
                        answer_request(work.answer, _refuse_away())
                await asyncio.sleep(0.5)
            else:
                self.ready = True
                return

    async def read(self, do: Callable[..., Any], *given: Any) -> Any:
        """Read the database in another thread."""
        return await self.begin_reading(do, *given)

    def begin_reading(self, do: Callable[..., Any], *given: Any) -> asyncio.Future[Any]:
        """The same, of which the answer is looked at later."""
        return asyncio.get_running_loop().run_in_executor(self._readers, do, *given)


def _refuse_away() -> RefusedError:
    return RefusedError(503, "the database can't be reached: try again", retry_after=1)
