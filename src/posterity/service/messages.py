"""Requests and answers, as msgspec reads them: unknown fields are refused by name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

LONGEST_NAME = 256
# PostgreSQL keeps no character of number 0.
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")]
Context = dict[str, float] | list[float]
# Of a row that is predicted: numbers, levels, true or false, dates, and what is missing.
Value = float | str | bool | None
Values = dict[str, Value] | list[Value]
Levels = Annotated[list[Name], Meta(min_length=1, max_length=2_000)]

LARGEST_BATCH = 1000


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of all requests: a field that is unknown is an error."""


class ExperimentSettings(Request):
    """Arms, features in order, and how it decides and learns."""

    arms: Annotated[list[Name], Meta(min_length=1, max_length=1000)]
    features: Annotated[list[Name], Meta(max_length=10_000)] = []
    ranges: dict[str, tuple[float, float]] = {}
    # Words of the command, and a name of a policy.
    model: str = "linear"
    policy: str = "thompson"
    floor: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.02
    aggregation: Literal["sum", "first", "last"] = "sum"
    horizon: Annotated[float, Meta(gt=0.0)] | None = None
    default_reward: float = 0.0
    # Seconds after which a feature's value is erased from the log.
    erase_after: dict[str, Annotated[float, Meta(gt=0.0)]] = {}


class PredictorSettings(Request):
    """Features, the model in words, by a formula or as a file, and how it learns."""

    # Names of numbers in order, or kinds of columns by their names; by default the first row's.
    features: (
        Annotated[list[Name], Meta(min_length=1, max_length=10_000)]
        | Annotated[dict[Name, str | Levels], Meta(min_length=1, max_length=10_000)]
        | None
    ) = None
    # Of features by names alone, those that are categories, with all levels that may be learned.
    levels: dict[str, Levels] = {}
    missing: Literal["error", "fill"] = "error"
    model: str = "linear"
    formula: str | None = None
    # The column of the groups, of which each has coefficients of its own.
    groups: Name | None = None
    # A model file that is gone on with.
    file: bytes | None = None
    parameters: dict[str, str | float | bool | None] = {}
    # Features that are not learned: added to the log rate of a count, and what it comes from.
    offset: Name | None = None
    exposure: Name | None = None
    level: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.9
    # Seconds after which a row is unlearned.
    forget_after: Annotated[float, Meta(gt=0.0)] | None = None


class Decide(Request):
    """A context to decide in; the same id again has the same answer."""

    context: Context = []
    id: Name | None = None
    arms: list[str] | None = None
    activate: bool = True


class DecideBatch(Request):
    """Several contexts to decide in, in one transaction."""

    decisions: Annotated[list[Decide], Meta(min_length=1, max_length=LARGEST_BATCH)]


class Decided(Struct):
    """An arm, and with what probability it was picked; means and widths are what was believed."""

    id: str
    arm: str
    propensity: float
    propensities: dict[str, float]
    means: dict[str, float | None]
    widths: dict[str, float | None]
    model_version: int
    expires: float | None = None


class DecidedBatch(Struct):
    """Decisions in the order that was asked."""

    decisions: list[Decided]


class Reward(Request):
    """Reward of a decision; an event id tells several rewards of one decision apart."""

    decision_id: Name
    value: float
    event_id: Name = "reward"
    correct: bool = False


class TakeBack(Request):
    """A decision, and one of its events: by default the reward without an event id."""

    decision_id: Name
    event_id: Name = "reward"


class Activate(Request):
    """A decision that was shown after all."""

    decision_id: Name


class Outcome(Struct):
    """Outcome of a reward: new, duplicate, corrected, taken back, activated or deleted."""

    status: str
    total: float | None = None


class RankedAction(Struct):
    """An action, and with what probability it was picked."""

    id: str
    probability: float


class Ranking(Struct, rename="camel"):
    """All actions, the chosen one first."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class Action(Request):
    """An arm. Each arm has a model of its own, which what describes the arm tells nothing."""

    id: Name
    features: list[dict[str, Any]] = []


class RankRequest(Request, rename="camel"):
    """A context, and the arms to choose from."""

    actions: list[Action]
    context_features: list[dict[str, Any]] = []
    excluded_actions: list[str] = []
    event_id: Name | None = None
    defer_activation: bool = False


class EventReward(Request):
    """Reward of an event."""

    value: float


class Predict(Request):
    """A row to predict."""

    x: Values


class Row(Request):
    """A row with its target; the same id again is not learned again."""

    id: Name
    x: Values
    y: float | bool


class PredictBatch(Request):
    """Several rows to predict."""

    rows: Annotated[list[Values], Meta(min_length=1, max_length=LARGEST_BATCH)]


class LearnBatch(Request):
    """Several rows with their targets: all are learned, or none."""

    rows: Annotated[list[Row], Meta(min_length=1, max_length=LARGEST_BATCH)]


class Unlearn(Request):
    """A row that was learned."""

    id: Name


class Predicted(Struct):
    """Mean, standard deviation and interval; None where nothing finite is known yet."""

    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    level: float


class Learned(Struct):
    """Status of the row, new, duplicate or unlearned, and its prediction before it was learned."""

    status: str
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    log_score: float | None = None


class PredictedBatch(Struct):
    """Predictions in the order of the rows."""

    predictions: list[Predicted]


class LearnedBatch(Struct):
    """Outcomes in the order of the rows."""

    rows: list[Learned]


class Named(Request):
    """A name, or an id, as a path has it."""

    name: Name


class NewToken(Request):
    """A token by its name."""

    name: Name
    role: Literal["read", "decide", "admin"]
    expires: float | None = None


class Revoke(Request):
    """A token by its name."""

    name: Name


class MadeToken(Struct):
    """Shown once; only its hash is kept."""

    token: str


_X = {"shop": "north", "heat": 21.5}
_ROW = {"id": "row 1", "x": _X, "y": 3.2}
# What /openapi.json shows of each body; sent in the order of the endpoints, all are done.
EXAMPLES: dict[Any, Any] = {
    ExperimentSettings: {"arms": ["red", "blue"], "features": ["age"]},
    Decide: {"context": {"age": 0.5}, "id": "visit 1"},
    DecideBatch: {"decisions": [{"context": {"age": 0.5}}, {"context": {"age": 0.1}}]},
    Reward: {"decision_id": "visit 1", "value": 1},
    TakeBack: {"decision_id": "visit 1"},
    Activate: {"decision_id": "visit 1"},
    RankRequest: {
        "actions": [{"id": "red"}, {"id": "blue"}],
        "contextFeatures": [{"age": 0.5}],
        "eventId": "visit 2",
    },
    EventReward: {"value": 1},
    PredictorSettings: {
        "features": {"shop": ["north", "south"], "heat": "number"},
        "model": "linear+adaptive",
    },
    Row: _ROW,
    LearnBatch: {"rows": [_ROW, {**_ROW, "id": "row 2", "y": 3.4}]},
    Predict: {"x": _X},
    PredictBatch: {"rows": [_X, {"shop": "south", "heat": 19.0}]},
    Unlearn: {"id": "row 2"},
    NewToken: {"name": "shop", "role": "decide"},
    Revoke: {"name": "shop"},
}
