"""A model learns whole or not at all: whatever raises, or interrupts it, leaves it as it was.

A method that learns works on a branch, which is a copy of the model. When it is done, the branch's
state takes the model's place in a single step. Nobody can see a state in between: no error, no
keyboard interrupt, no other thread. Threads that learn wait for each other.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial, wraps
from operator import call
from threading import RLock
from typing import Any, Self, TypeVar, cast
from weakref import ref

import numpy as np

Method = TypeVar("Method", bound=Callable[..., Any])

# Not in the models themselves, which are copied, compared and sent to other processes.
_LOCKS: dict[ref[Any], Any] = {}
# The branch of each model on which a method learns.
_BRANCHES: dict[ref[Any], ref[Any]] = {}
_BRANCH = "_is_branch"


def get_lock(model: object) -> Any:
    """The lock that a thread holds while it changes a model."""
    known = _LOCKS.get(ref(model))
    if known is not None:
        return known
    # One step, which no thread and no interrupt divides: so it needs no lock of its own.
    return _LOCKS.setdefault(ref(model, _LOCKS.pop), RLock())


def get_free_lock(model: object) -> Any:
    """The same lock; raises ``ValueError`` where this thread is learning on a branch already."""
    lock, branch = get_lock(model), _BRANCHES.get(ref(model))
    if branch is not None and branch() is not None and lock._is_owned():
        raise ValueError(
            "the model is learning rows whose values use it while they are read: convert them to "
            "numbers first, as by float"
        )
    return lock


def atomic(method: Method) -> Method:
    """Have a method that learns do it on a branch; what one such method calls is part of it.

    Values of rows may run any Python as they are read. If that uses the model, it is refused.
    """

    @wraps(method)
    def whole(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if _BRANCH in self.__dict__:
            return method(self, *arguments, **keywords)
        with get_free_lock(self):
            branch = self._branch()
            branch.__dict__[_BRANCH] = True
            _BRANCHES[ref(self, _BRANCHES.pop)] = ref(branch)
            answer = method(branch, *arguments, **keywords)
            state = {name: value for name, value in branch.__dict__.items() if name != _BRANCH}
            self.__dict__ = state
            _BRANCHES.pop(ref(self), None)
        return self if answer is branch else answer

    return cast(Method, whole)


class AtomicModel:
    """A model whose attributes are replaced, never changed, so that its branch shares them."""

    def _branch(self) -> Self:
        branch = type(self).__new__(type(self))
        branch.__dict__ = dict(self.__dict__)
        return branch


def hold_model_lock(method: Method) -> Method:
    """Have a method wait for other threads that are in such a method of the same model."""

    @wraps(method)
    def alone(self: Any, *arguments: Any, **keywords: Any) -> Any:
        with get_lock(self):
            return method(self, *arguments, **keywords)

    return cast(Method, alone)


def run_steps(steps: Iterable[Callable[[], object]]) -> None:
    """Call steps that are compiled code, which no interrupt divides."""
    deque(map(call, steps), 0)


class Undo:
    """Puts back what was kept, the last first, if anything raises or interrupts the block.

    For models that are too large to be copied for each row.
    """

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []
        # Puts back nothing of what was kept so far; compiled, so that no interrupt divides it.
        self.settle: Callable[[], object] = self._steps.clear

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            run_steps(reversed(self._steps))

    def add(self, step: Callable[[], object]) -> None:
        """Have a step run."""
        self._steps.append(step)

    def keep_attributes(self, *objects: Any) -> None:
        """Keep what the attributes of objects are."""
        self._steps += [partial(setattr, one, "__dict__", vars(one).copy()) for one in objects]

    def keep_entries(self, array: Any, places: Any) -> None:
        """Keep the entries of an array at these places, or all where these are fewer."""
        places = slice(None) if np.size(places) > len(array) else places
        self._steps.append(partial(array.__setitem__, places, np.array(array[places])))


def make_branch(model: Any) -> Any:
    """A branch of any model: its own way to make one, or a deep copy."""
    return model._branch() if hasattr(model, "_branch") else copy.deepcopy(model)
