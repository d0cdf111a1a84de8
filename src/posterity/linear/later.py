"""Reads for times after the last row: what is known fades while no rows come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from posterity.aliases import Estimator
from posterity.distributions.in_sequence import in_sequence
from posterity.linear.inputs import read_times
from posterity.linear.state import SHARED

Model = TypeVar("Model", bound=Any)

NO_TIMES = (
    "a later time is asked for, but the rows learned came without times: give times= where the "
    "model learns, too"
)


def wait_until(model: Model, time: float) -> Model:
    """A model that knows what ``model`` will know at ``time``; errors as in its ``at``."""
    known = model._posterior
    if model._now is None:
        raise ValueError(NO_TIMES)
    # How much is forgotten may depend on all the time since the last row.
    before, last = model._before_waiting or (known.copy(), model._now)
    if time < last:
        raise ValueError(f"time is {time}: that is before the last row, at {last}")
    (elapsed,), now = read_times([time], 1, None, last)
    twin: Any = object.__new__(type(model))
    twin.__dict__ = {name: one for name, one in model.__dict__.items() if name not in SHARED}
    twin._posterior_or_none, twin._now = before.copy(), now
    twin._before_waiting = before, last
    twin._posterior.wait(float(elapsed))
    return twin


def stop_waiting(model: Estimator) -> None:
    """Let ``model`` know what it did at the last row: how much is forgotten depends on the next."""
    if model._before_waiting is not None:
        before, model._now = model._before_waiting
        model._posterior_or_none = before.copy()
        for name in (*SHARED, "_before_waiting"):
            model.__dict__.pop(name, None)


def read_at(model: Estimator, times: ArrayLike, X: Any, read: Callable[[Any, Any], Any]) -> Any:
    """What ``read(model, rows)`` says of rows of ``X``, each at its time after the last row.

    ``times`` is one time, or (n,) that do not decrease.
    """
    if np.ndim(times) == 0:
        return read(model.at(times), X)
    n = _num_samples(X)
    if n == 0:
        return read(model, X)
    _, last = model._before_waiting or (None, model._now)
    read_times(times, n, None, last)
    moments, starts = np.unique(np.asarray(times, dtype=np.float64), return_index=True)
    rows = np.split(np.arange(n), starts[1:])
    parts = [
        read(model.at(moment), _safe_indexing(X, some))
        for moment, some in zip(moments, rows, strict=True)
    ]
    return _join(parts)


def _join(parts: list[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(_join(list(some)) for some in zip(*parts, strict=True))
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else in_sequence(parts)
