"""An experiment: a bandit, and what the log says that it has learned."""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from posterity import words
from posterity.aliases import Array, Indices, Mask
from posterity.bandits import Bandit
from posterity.service.build import get_family
from posterity.service.errors import RefusedError
from posterity.service.inputs import check_target, list_names, read_context
from posterity.service.learner import Change, Learner
from posterity.service.messages import Decide, Decided, ExperimentSettings, Outcome, Reward
from posterity.service.propensities import build_policy, compute_propensities
from posterity.service.schema import event
from posterity.service.store import Key, LogEntries, Store
from posterity.service.writing import Group, Record

# Requests for decisions of which it is kept how long they waited.
MOST_WAITS = 10_000


class Experiment(Learner):
    """Experiment of the service, which learns the events of the log one by one, and decides.

    So the model is a function of the log alone: restarted from any snapshot it is the same, byte
    by byte, for each event is learned on its own, in order.

    Parameters
    ----------
    name : str
    version : int
        Of the settings.
    settings : ExperimentSettings
    bandit : Bandit, optional
        What a snapshot held.
    notes : mapping, optional
        What it held beside.
    learned_through : int
        Number of the last event that it has learned.
    secret : str
        Arms are drawn by a hash of this and the decision's id: the same id, the same arm.
    """

    kind, field = "experiment", "value"

    def __init__(
        self,
        name: str,
        version: int,
        settings: ExperimentSettings,
        secret: str,
        bandit: Bandit | None = None,
        notes: Any = None,
        learned_through: int = 0,
    ) -> None:
        self.version, self.settings = version, settings
        self._family = get_family(settings)
        model = self.build_model() if bandit is None else bandit
        super().__init__(name, model, notes, learned_through)
        self.policy = build_policy(settings)
        self.waits: deque[float] = deque(maxlen=MOST_WAITS)  # seconds, of the newest requests
        self._key = blake2b(f"{secret}/{name}".encode(), digest_size=32).digest()
        self._places = {arm: place for place, arm in enumerate(settings.arms)}
        self._all = np.ones(len(settings.arms), dtype=bool)
        self._numbers = struct.Struct(f"{len(settings.arms)}d").unpack

    def check_settings(self) -> None:
        """Refuse a default that could never be learned.

        Raises
        ------
        RefusedError
            422, with what the model says.
        """
        check_target(self._family, self.settings.default_reward, "default_reward")
        trial = Bandit(build_model(self.settings.model), arms=["one"], rng=0)
        try:
            trial.learn_one(np.zeros(1), "one", self.settings.default_reward)
        except (ValueError, ArithmeticError) as error:
            raise RefusedError(422, str(error), "default_reward") from error

    def build_model(self) -> Bandit:
        """A bandit that has learned nothing."""
        bandit = Bandit(build_model(self.settings.model), arms=self.settings.arms, rng=0)
        # A bandit begins when it is first used, also by a read: begun here, reads change no byte.
        assert bandit.arms_ == self.settings.arms
        return bandit

    # ---- deciding --------------------------------------------------------------------------------

    def propensities(self, X: Array, allowed: Mask) -> tuple[Array, Array, Array]:
        """Propensities, means and widths (n, K) of contexts."""
        return compute_propensities(self.model, self.policy, X, allowed)

    def draw(self, id: str) -> float:
        """A number between 0 and 1 that hangs on the id alone."""
        digest = blake2b(id.encode(), key=self._key, digest_size=8).digest()
        return float((int.from_bytes(digest, "big") >> 11) * 2.0**-53)

    def read(self, asked: Decide) -> tuple[Array, Mask]:
        """The context (m,), and which arms may be chosen (K,)."""
        context = read_context(asked.context, self.settings.features, self.settings.ranges)
        allowed = self._all
        if asked.arms is not None:
            for arm in asked.arms:
                if arm not in self._places:
                    known = list_names(self.settings.arms)
                    raise RefusedError(422, f"there is no arm {arm!r}: give {known}", "arms")
            allowed = np.array([arm in set(asked.arms) for arm in self.settings.arms])
            if not allowed.any():
                raise RefusedError(
                    422, "no arm is allowed: give at least one, or leave it out", "arms"
                )
        return context, allowed

    def decide(
        self,
        asked: Sequence[tuple[Decide, str, Array, Mask]],
        numbers: Sequence[int],
        now: float,
    ) -> list[Record]:
        """Rows of the log, of requests that were read, each with its id and number."""
        contexts = [context.tobytes() for _, _, context, _ in asked]
        X = np.frombuffer(b"".join(contexts)).reshape(len(asked), -1)
        allowed = np.array([may for _, _, _, may in asked])
        probabilities, means, widths = self.propensities(X, allowed)
        expires = None if self.settings.horizon is None else now + self.settings.horizon
        shared = self._begin_record(now) | {"expires": expires}
        places = pick(probabilities, np.array([self.draw(id) for _, id, _, _ in asked]))
        return [
            {
                **shared,
                "seq": number,
                "id": id,
                "context": context,
                "allowed": None if one.arms is None else may.tobytes(),
                "arm": place,
                "propensities": chances,
                "means": mean,
                "widths": width,
                "active": int(one.activate),
            }
            for (one, id, _, may), context, number, place, chances, mean, width in zip(
                asked,
                contexts,
                numbers,
                places.tolist(),
                *map(_split_rows, (probabilities, means, widths)),
                strict=True,
            )
        ]

    def answer(self, made: Record) -> Decided:
        """Return a logged decision as an answer; one made before is answered the same again."""
        chances, arms = self._numbers(made["propensities"]), self.settings.arms
        return Decided(
            made["id"],
            arms[made["arm"]],
            chances[made["arm"]],
            dict(zip(arms, chances, strict=True)),
            dict(zip(arms, _finite(self._numbers(made["means"])), strict=True)),
            dict(zip(arms, _finite(self._numbers(made["widths"])), strict=True)),
            made["learned_through"],
            made["expires"],
        )

    def import_decision(self, row: Record, number: int, now: float) -> Record:
        """A row of the log, of a decision that another service made: what it believed is NaN."""
        arms = self.settings.arms
        unknown = np.full(len(arms), math.nan).tobytes()
        chances = np.array([row["p"].get(arm, 0.0) for arm in arms])
        return {
            **self._begin_record(now),
            "seq": number,
            "id": row["id"],
            "context": row["context"].tobytes(),
            "allowed": (chances > 0.0).tobytes(),
            "arm": self._places[row["arm"]],
            "propensities": chances.tobytes(),
            "means": unknown,
            "widths": unknown,
            "active": int(row["active"]),
            "expires": None,
        }

    def _begin_record(self, now: float) -> Record:
        """What the log has of all decisions of one moment."""
        return {
            "model": self.name,
            "at": now,
            "learned_through": self.learned_through,
            "settings_version": self.version,
            "forget": self._next_erasure(now, -math.inf),
        }

    def matches_context(self, made: Record, context: Array) -> bool:
        """Return True if a decision was made in this context, as far as the log still has it."""
        if made["context"] == context.tobytes():
            return True
        known = np.frombuffer(made["context"])
        return bool(np.all((known == context) | np.isnan(known)))

    def matches_arms(self, made: Record, asked: Decide, allowed: Mask) -> bool:
        """Return True if a decision could pick from these arms, where they are named."""
        return asked.arms is None or made["allowed"] == allowed.tobytes()

    def erase_features(self, made: Record, now: float) -> Record:
        """A decision's context without the features whose time has passed."""
        context = np.frombuffer(made["context"]).copy()
        for place, name in enumerate(self.settings.features):
            if made["at"] + self.settings.erase_after.get(name, math.inf) <= now:
                context[place] = math.nan
        return {
            "number": made["seq"],
            "left": context.tobytes(),
            "next": self._next_erasure(made["at"], now),
        }

    def _next_erasure(self, at: float, now: float) -> float | None:
        """Return when the next feature of a decision of that time expires."""
        times = [at + seconds for seconds in self.settings.erase_after.values()]
        return min((time for time in times if time > now), default=None)

    # ---- what comes for a decision ---------------------------------------------------------------

    def record_event(
        self, kind: str, asked: Any, found: LogEntries, group: Group, number: int, now: float
    ) -> Outcome:
        """Learn an event, and add it to the group; what changes nothing adds nothing."""
        key = (self.name, asked.decision_id)
        made = self._find_decision(found, key)
        before = found.events.get(key, [])
        event_id = getattr(asked, "event_id", kind)
        value = getattr(asked, "value", None)
        status = self._check_event(kind, asked, before, bool(made["active"]))
        former = before[-1]["total"] if before else None
        if status == "duplicate":
            return Outcome(status, former)
        happened: Record = {
            "seq": number,
            "model": self.name,
            "decision_id": asked.decision_id,
            "event_id": event_id,
            "kind": "correction" if status == "corrected" else kind,
            "value": value,
            "former": former,
            "at": now,
        }
        total = self._compute_total([*before, happened], bool(made["active"]))
        if value is not None:
            check_target(self._family, value if total is None else total, "value")
        happened["total"] = total
        self.learn_entry({**happened, "context": made["context"], "arm": made["arm"]}, found.log)
        if found.log is not None:  # it was learned anew, which a restart need not do again
            group.snapshots.add(self.name)
        group.add(event, **happened)
        found.events[key] = [*before, happened]
        return Outcome(status, happened["total"])

    def _find_decision(self, found: LogEntries, key: Key) -> Record:
        made = found.decisions.get(key)
        if made is None:
            raise RefusedError(404, f"there is no decision {key[1]!r}", "decision_id")
        if made["context"] is None or any(
            one["kind"] == "delete" for one in found.events.get(key, [])
        ):
            raise RefusedError(
                410, f"decision {key[1]!r} was deleted: make a new one", "decision_id"
            )
        return made

    def _check_event(self, kind: str, asked: Any, before: Sequence[Record], active: bool) -> str:
        live = collect_rewards(before)
        if kind == "reward":
            return _check_reward(asked, live)
        if kind == "retraction":
            known = any(one["event_id"] == asked.event_id for one in before)
            if not known:
                raise RefusedError(404, f"there is no reward {asked.event_id!r}", "event_id")
            return "taken back" if asked.event_id in live else "duplicate"
        if kind == "activate":
            done = active or any(one["kind"] == "activate" for one in before)
            return "duplicate" if done else "activated"
        if kind == "default":
            return "duplicate" if before and before[-1]["total"] is not None else "new"
        return "deleted"

    def _compute_total(self, events: Sequence[Record], active: bool) -> float | None:
        """Return the reward to learn for a decision, from all events that came for it."""
        kinds = {one["kind"] for one in events}
        if "delete" in kinds or not (active or "activate" in kinds):
            return None
        values = list(collect_rewards(events).values())
        if values:
            total = {"sum": sum, "first": lambda v: v[0], "last": lambda v: v[-1]}
            return float(total[self.settings.aggregation](values))
        return self.settings.default_reward if "default" in kinds else None

    # ---- learning --------------------------------------------------------------------------------

    def read_change(self, entry: Record) -> Change:
        """What an event changes of what its decision has earned."""
        return Change(
            entry["decision_id"], entry["arm"], entry["context"], entry["former"], entry["total"]
        )

    def change_model(self, model: Bandit, change: Change, x: bytes) -> None:
        """Have a bandit learn a reward, or another in its place, or take it back."""
        arm, context = self.settings.arms[change.arm], np.frombuffer(x)
        if change.former is None:
            model.learn_one(context, arm, change.total)
        else:
            after = math.nan if change.total is None else change.total
            model.correct(context[None], [arm], former=[change.former], rewards=[after])

    def read_log(
        self, store: Store, after: int, through: int | None = None, limit: int | None = None
    ) -> Iterator[Record]:
        """Yield the events to be learned from the log after a number."""
        return store.read_events(self.name, after, through, limit)


def build_model(text: str) -> Any:
    """The model of rewards, in the command's words: None is the bandit's own, of normal noise."""
    return None if text == "linear" else words.build_model(words.parse_one(text))


def collect_rewards(events: Sequence[Record]) -> dict[str, float]:
    """Rewards that count, by event id, in the order in which they first came."""
    live: dict[str, float] = {}
    for one in events:
        if one["kind"] in ("reward", "correction"):
            live[one["event_id"]] = one["value"]
        elif one["kind"] == "retraction":
            live.pop(one["event_id"], None)
    return live


def pick(probabilities: Array, draws: Array) -> Indices:
    """Arms (n,): the first whose cumulated probability (n, K) is above the draw (n,).

    Raises
    ------
    FloatingPointError
        Probabilities are NaN, infinite or all 0.

    Examples
    --------
    >>> pick(np.array([[0.25, 0.75], [0.0, 1.0]]), np.array([0.3, 0.0])).tolist()
    [1, 1]
    """
    edges = np.cumsum(probabilities, axis=1)
    if not np.all((edges[:, -1] > 0.0) & (edges[:, -1] < np.inf)):
        raise FloatingPointError("the probabilities of the arms can't be computed")
    return np.asarray(np.argmax(edges > (draws * edges[:, -1])[:, None], axis=1))


def _split_rows(values: Array) -> list[bytes]:
    """The bytes of each row (n, K)."""
    together, width = values.tobytes(), values.itemsize * values.shape[1]
    return [together[start : start + width] for start in range(0, len(together), width)]


def _check_reward(asked: Reward, live: dict[str, float]) -> str:
    if asked.event_id not in live:
        return "new"
    if live[asked.event_id] == asked.value:
        return "duplicate"
    if asked.correct:
        return "corrected"
    raise RefusedError(
        409,
        f"reward {asked.event_id!r} of this decision is {live[asked.event_id]:g} already: send it "
        "with correct=true, or with an event_id of its own",
        "value",
    )


def _finite(numbers: Sequence[float]) -> Sequence[float | None]:
    if math.isfinite(sum(numbers)):
        return numbers
    return [value if math.isfinite(value) else None for value in numbers]
