"""What must hold in a cell of the table: one function for each method, which asserts or raises."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from combinations.axes import COLUMNS, Model, cells, is_slow, refusal
from combinations.rows import Array, N, rows_of
from posterity.evaluation import progressive_classification, progressive_validation
from posterity.files import dumps, loads
from posterity.forgetting import Adaptive, Stabilized

# Rows learned before single ones, and up to which single ones come.
FIRST, LAST = 24, 30
# The same where a prior is refreshed every few rows of a call only.
RESTING = 0.1
PLAIN = 1e-7
READS = ("predict", "predict_interval", "predict_distribution", "predict_proba")
READS_OF_A_ROW = ("predict_one", "predict_proba_one", "predict_distribution_one")
NAMES = (
    "coef_",
    "intercept_",
    "posterior_",
    "log_evidence_",
    "prior_precision_",
    "noise_precision_",
    "n_effective_",
)


class Cell:
    """A model with parameters, and its rows."""

    def __init__(self, model: Model, given: dict[str, Any]) -> None:
        self.model, self.given = model, given
        self.forgetting = given.get("forgetting")
        self.rows = rows_of(model.target, model.information)
        self.learns_prior = not isinstance(given.get("prior_precision"), float)
        labels = self.rows.y.dtype.kind == "i"
        self.classes = {"classes": np.unique(self.rows.y)} if labels else {}

    def make(self, **more: Any) -> Any:
        """A model that has learned nothing."""
        return self.model.make(**self.given, **more)

    def fit(self, rows: Any = slice(None), **more: Any) -> Any:
        part = self.rows.take(rows)
        return self.make().fit(part.X, part.y, **part.beside, **more)

    def append(self, model: Any, rows: slice, **more: Any) -> Any:
        part = self.rows.take(rows)
        return model.partial_fit(part.X, part.y, **part.beside, **more)

    def begin(self, last: int = FIRST, **more: Any) -> Any:
        """A model that has learned the first rows."""
        return self.append(self.make(), slice(0, last), **self.classes, **more)

    def learn_one(self, model: Any, i: int, **more: Any) -> None:
        x, beside = self.rows.one(i)
        model.learn_one(x, self.rows.y[i], **beside, **more)

    def mean_of(self, model: Any) -> Array:
        """(k, 2) ends of intervals of the means of a few rows."""
        part = self.rows.take(slice(0, 6))
        ends = model.predict_interval(part.X, level=0.68, **part.beside, **self.model.of)
        return np.asarray(ends, dtype=float).reshape(-1, 2)

    def gap(self, one: Any, other: Any) -> float:
        """The largest difference of what both believe of means, in standard deviations."""
        a, b = self.mean_of(one), self.mean_of(other)
        half = 0.5 * np.diff(b, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.max(np.where(a == b, 0.0, np.abs(a - b) / half)))

    def near(self, one: Any, other: Any, most: float) -> None:
        """Assert that both believe the same, up to so many standard deviations."""
        found = self.gap(one, other)
        assert found <= most, f"{found:.2g} standard deviations apart, more than {most:.2g}"


def fits(cell: Cell) -> None:
    """All rows are learned; reads change nothing, and one row is read as many are."""
    fitted, streamed = cell.fit(), cell.begin()
    assert fitted.n_observations_ == N
    assert not np.isnan(cell.mean_of(fitted)).any()
    for model in (fitted, streamed):
        before = dumps(model)
        read_all(cell, model)
        assert dumps(model) == before, "a read has changed the model"


def read_all(cell: Cell, model: Any) -> None:
    """Read all that a model tells."""
    part, (x, beside) = cell.rows.take(slice(0, 6)), cell.rows.one(0)
    reads: list[Callable[[], Any]] = [
        *(partial(getattr, model, name) for name in NAMES),
        *(lambda name=name: getattr(model, name)(part.X, **part.beside) for name in READS),
        *(lambda name=name: getattr(model, name)(x, **beside) for name in READS_OF_A_ROW),
        lambda: model.sample_mean(part.X, 2, rng=0, **part.beside),
        lambda: model.summary(),
    ]
    for read in reads:
        with suppress(AttributeError, ValueError):  # not every model tells everything
            read()


def reads_one(cell: Cell) -> None:
    """A row is predicted as in an array."""
    streamed = cell.begin()
    for i in range(FIRST, LAST):
        cell.learn_one(streamed, i)
    part = cell.rows.take(slice(0, 6))
    for model, differ in ((cell.fit(), cell.forgetting is not None), (streamed, True)):
        proba, before = hasattr(model, "predict_proba"), dumps(model)
        many = (model.predict_proba if proba else model.predict)(part.X, **part.beside)
        ones = []
        for i in range(6):
            x, beside = cell.rows.one(i)
            one = (model.predict_proba_one if proba else model.predict_one)(x, **beside)
            ones.append(list(one.values()) if proba else one)
        most = cell.model.within.one if differ and cell.learns_prior else 1e-9
        np.testing.assert_allclose(ones, many, rtol=most, atol=most)
        assert dumps(model) == before, "a read has changed the model"


def learns_batches(cell: Cell) -> None:
    """Batches are all rows at once."""
    model = cell.begin(16)
    for start in range(16, N, 12):
        cell.append(model, slice(start, start + 12))
    assert model.n_observations_ == N
    rests = isinstance(cell.forgetting, Adaptive)
    cell.near(model, cell.fit(), max(cell.model.within.batches, RESTING if rests else 0.0))


def learns_rows(cell: Cell) -> None:
    """A row by itself is a batch of one."""
    one, batch = cell.begin(), cell.begin()
    for i in range(FIRST, LAST):
        cell.learn_one(one, i)
        cell.append(batch, slice(i, i + 1))
    cell.near(one, batch, PLAIN)


def streams(cell: Cell) -> None:
    """Rows that are predicted first are learned as others; all at once or each by itself."""
    stream, single, batch = cell.begin(), cell.begin(), cell.begin()
    part = cell.rows.take(slice(FIRST, LAST))
    told = stream.predict_then_learn(part.X, part.y, **part.beside)
    assert len(told) == LAST - FIRST
    each = []
    for i in range(FIRST, LAST):
        row = cell.rows.take(slice(i, i + 1))
        each.append(numbers(single.predict_then_learn(row.X, row.y, **row.beside)))
        cell.append(batch, slice(i, i + 1))
    cell.near(single, batch, PLAIN)
    # Within a call the prior is refreshed every few rows only, as their pages say.
    rests = isinstance(cell.forgetting, Stabilized | Adaptive)
    cell.near(stream, batch, RESTING if rests else PLAIN)
    if not rests:
        most = 1e-6 if cell.forgetting is None else cell.model.within.told
        np.testing.assert_allclose(numbers(told), np.concatenate(each), rtol=most, atol=most)


def numbers(told: Any) -> Array:
    """What is told of rows, (n, k)."""
    if hasattr(told, "probabilities"):
        return np.asarray(told.probabilities)
    mean, std = (np.asarray(one).reshape(len(told), -1) for one in (told.mean(), told.std()))
    return np.hstack([mean, std])


def merges(cell: Cell) -> None:
    """Two models become one, and the other stays as it was."""
    one, other = cell.begin(), cell.append(cell.make(), slice(FIRST, N), **cell.classes)
    before = dumps(other)
    one.merge(other)
    assert one.n_observations_ == N
    assert dumps(other) == before, "merging has changed the other model"
    if cell.forgetting is None:  # else the rows of both have the same age
        cell.near(one, cell.fit(), cell.model.within.merge)


def unlearns(cell: Cell) -> None:
    """What is left is the model of the other rows."""
    model, gone = cell.fit(), cell.rows.take(slice(LAST, N))
    model.unlearn(gone.X, gone.y, **gone.beside)
    assert model.n_observations_ == LAST
    cell.near(model, cell.fit(slice(0, LAST)), cell.model.within.unlearn)


def takes_weights(cell: Cell) -> None:
    """Weight 2 is the row twice, and 0 none; weighted rows by themselves are batches of one."""
    one, batch = cell.begin(), cell.begin()
    for i in range(FIRST, LAST):
        cell.learn_one(one, i, weight=0.5 + i % 3)
        cell.append(batch, slice(i, i + 1), sample_weight=[0.5 + i % 3])
    cell.near(one, batch, PLAIN)
    if cell.forgetting is None:  # else rows have ages
        times = np.arange(N) % 3
        weighted = cell.fit(sample_weight=times.astype(float))
        assert weighted.n_observations_ in (times.sum(), N)
        repeated = cell.fit(np.repeat(np.arange(N), times))
        cell.near(weighted, repeated, cell.model.within.weights)


def takes_times(cell: Cell) -> None:
    """Times one unit apart are those by default; single rows have them, too."""
    cell.near(cell.fit(times=np.arange(float(N))), cell.fit(), cell.model.within.times)
    times = np.cumsum(1.0 + np.arange(N) % 3)
    one, batch = (cell.begin(times=times[:FIRST]) for _ in range(2))
    for i in range(FIRST, LAST):
        cell.learn_one(one, i, time=times[i])
        cell.append(batch, slice(i, i + 1), times=times[i : i + 1])
    cell.near(one, batch, PLAIN)


def is_stored(cell: Cell) -> None:
    """A file predicts, and learns, as the model that it came from."""
    streamed = cell.begin()
    for i in range(FIRST, LAST):
        cell.learn_one(streamed, i)
    for model in (cell.fit(), streamed):
        again = loads(dumps(model))
        assert dumps(again) == dumps(model), "a file of a file differs"
        cell.near(again, model, 1e-12)
        cell.append(model, slice(LAST, N))
        cell.append(again, slice(LAST, N))
        assert dumps(again) == dumps(model), "a loaded model has learned otherwise"


def is_evaluated(cell: Cell) -> None:
    model, X = cell.make(), cell.rows.X
    if cell.rows.groups is not None:
        model.set_params(by="group")
        X = pd.DataFrame(X, columns=["a", "b"]).assign(group=cell.rows.groups)
    evaluate = progressive_classification if cell.classes else progressive_validation
    assert evaluate(model, X, cell.rows.y).n_rows == N


def stays_after_errors(cell: Cell) -> None:
    """A call that raises leaves what the model tells, and what it learns next."""
    model = cell.begin()
    cell.learn_one(model, LAST)
    twin = copy.deepcopy(model)
    for name, call in mistakes(cell, model):
        with pytest.raises((ValueError, TypeError, AttributeError)) as raised:
            call()
        assert len(str(raised.value)) > 20, f"{name}: {raised.value} does not say what to do"
    assert dumps(model) == dumps(twin), "a call that raised has changed the model"
    for one in (model, twin):
        cell.learn_one(one, FIRST)
    assert dumps(model) == dumps(twin)


def mistakes(cell: Cell, model: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls that must raise, by their mistake."""
    part = cell.rows.take(slice(FIRST, N))
    x, beside = cell.rows.one(FIRST)
    y = part.y.astype(float)
    y[-1] = np.inf
    yield "an infinite target", lambda: model.partial_fit(part.X, y, **part.beside)
    yield "an infinite target to fit", lambda: model.fit(part.X, y, **part.beside)
    yield "an infinite target of a row", lambda: model.learn_one(x, np.inf, **beside)
    weights = np.where(np.arange(len(y)) == len(y) - 1, -1.0, 1.0)
    yield "a weight", lambda: model.partial_fit(part.X, part.y, weights, **part.beside)
    yield "a weight of a row", lambda: model.learn_one(x, part.y[0], -1.0, **beside)
    yield "too few targets", lambda: model.partial_fit(part.X, part.y[1:], **part.beside)
    if hasattr(model, "merge"):
        other = cell.make(fit_intercept=False).fit(part.X, part.y, **part.beside)
        yield "merging another kind", lambda: model.merge(other)
        yield "merging nothing", lambda: model.merge(cell.make())
    if hasattr(model, "unlearn"):
        far = np.full((40, 2), 50.0)
        groups = {} if cell.rows.groups is None else {"groups": cell.rows.groups}
        yield "rows never learned", lambda: model.unlearn(far, cell.rows.y, **groups)
    if cell.model.information != "levels":
        yield "a feature", lambda: model.learn_one([np.nan, 1.0], part.y[0], **beside)
        wide = np.ones((len(part), 3))
        yield "a column too many", lambda: model.partial_fit(wide, part.y, **part.beside)


# By their columns on the page.
METHODS: dict[str, Callable[[Cell], None]] = {
    "`fit`": fits,
    "`predict_one`": reads_one,
    "`partial_fit`": learns_batches,
    "`learn_one`": learns_rows,
    "`predict_then_learn`": streams,
    "`merge`": merges,
    "`unlearn`": unlearns,
    "`sample_weight`": takes_weights,
    "`times`": takes_times,
    "files": is_stored,
    "evaluation": is_evaluated,
    "errors": stays_after_errors,
}


def all_cells() -> list[Any]:
    """(model, column, method) of each cell, those that take seconds marked slow."""
    return [
        pytest.param(*cell, marks=[pytest.mark.slow] * is_slow(*cell), id=name_of(*cell))
        for cell in cells(METHODS)
    ]


def name_of(model: Model, column: str, method: str) -> str:
    return ", ".join((model.name, column, method)).replace("`", "").replace('"', "")


def try_cell(model: Model, column: str, method: str) -> None:
    """Assert that what is in a cell holds, or that it is refused and says why."""
    refused = refusal(model.name, column, method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if refused is None:
            METHODS[method](Cell(model, COLUMNS[column]))
            return
        errors = (ValueError, TypeError, AttributeError)
        with pytest.raises(errors, match=refused.says):
            METHODS[method](Cell(model, COLUMNS[column]))
