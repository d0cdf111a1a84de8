"""A model learns whole or not at all: whatever raises, or interrupts it, leaves it as it was.

A method that learns works on a branch, which is a copy of the model. When it is done the branch's
state takes the model's place in a single step. Nobody can see a state in between: no error, no
keyboard interrupt, no other thread. Threads that learn wait for each other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary


class Branching(Protocol):
    """A model that can be branched."""

    def _branch(self) -> Any:
        """A copy of the model that can learn without the model's knowing."""


P = ParamSpec("P")
M = TypeVar("M", bound=Branching)
R = TypeVar("R")
S = TypeVar("S")

# Not in the models themselves, which are copied, compared and sent to other processes.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_LOOKING_UP = Lock()
_BRANCH = "_is_branch"


def lock_of(model: object) -> Any:
    """The lock that a thread holds while it changes a model."""
    with _LOOKING_UP:
        return _LOCKS.setdefault(model, RLock())


def all_or_nothing(method: Callable[Concatenate[M, P], R]) -> Callable[Concatenate[M, P], R]:
    """Have a method that learns do it on a branch; what one such method calls is part of it."""

    @wraps(method)
    def whole(self: M, *arguments: P.args, **keywords: P.kwargs) -> R:
        if _BRANCH in self.__dict__:
            return method(self, *arguments, **keywords)
        with lock_of(self):
            branch = self._branch()
            branch.__dict__[_BRANCH] = True
            answer = method(branch, *arguments, **keywords)
            state = {name: value for name, value in branch.__dict__.items() if name != _BRANCH}
            self.__dict__ = state
        return self if answer is branch else answer  # type: ignore[return-value]

    return whole


def one_at_a_time(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Have a method wait for other threads that are in such a method of the same model."""

    @wraps(method)
    def alone(self: S, *arguments: P.args, **keywords: P.kwargs) -> R:
        with lock_of(self):
            return method(self, *arguments, **keywords)

    return alone


def branch_of(model: Any) -> Any:
    """A branch of any model: its own way to make one, or a deep copy."""
    return model._branch() if hasattr(model, "_branch") else copy.deepcopy(model)


__all__ = ["Branching", "all_or_nothing", "branch_of", "lock_of", "one_at_a_time"]
