"""The names of the arms, and which of them can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import AnyArray
from posterity.kernel.values import is_label


@dataclass(frozen=True)
class Roster:
    """Names of all arms, in the order of their columns, and of those that have retired.

    Examples
    --------
    >>> roster = Roster(("red", "blue")).without("red").with_arm("green")
    >>> roster.names, roster.open.tolist()
    (('red', 'blue', 'green'), [0, 1, 1])
    """

    names: tuple[Any, ...]
    retired: tuple[Any, ...] = ()

    @classmethod
    def of(cls, names: Sequence[Any] | AnyArray) -> Roster:
        """Return the roster of names that users gave; ``ValueError`` for none or repeated ones."""
        if isinstance(names, str | int):
            raise TypeError(
                f"arms are {names!r}: give a sequence of their names, as in Bandit(arms=['a', 'b'])"
            )
        names = names.tolist() if isinstance(names, np.ndarray) else list(names)
        for name in names:
            _check_name(name)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"arms are {names}: give at least one, each with its own name, as arms=['a', 'b'] "
                "(the first argument of a Bandit is its model)"
            )
        return cls(tuple(names))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def places(self) -> dict[Any, int]:
        """The place of each name."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def open(self) -> NDArray[np.uint8]:
        """(K,) 1 for the arms that have not retired."""
        return np.array([name not in self.retired for name in self.names], dtype=np.uint8)

    @cached_property
    def labels(self) -> AnyArray:
        """(K,) names."""
        return as_labels(self.names)

    def check_same_arms(self, other: Roster) -> None:
        """Refuse a roster of other arms, or of the same in another order."""
        if self.names != other.names:
            raise ValueError(
                f"the other bandit's arms are {list(other.names)}, this one's {list(self.names)}: "
                "merge bandits of the same arms in the same order"
            )

    def with_arm(self, name: Any) -> Roster:
        """Return the roster with another arm, or one that had retired."""
        _check_name(name)
        if name in self.retired:
            return replace(self, retired=tuple(one for one in self.retired if one != name))
        if name in self.names:
            raise ValueError(f"there is already an arm {name!r}: give each arm its own name")
        return replace(self, names=(*self.names, name))

    def without(self, name: Any) -> Roster:
        """Return the roster without an arm; ``ValueError`` where it is unknown, or the last."""
        if not is_among(name, self.places):
            raise ValueError(f"there is no arm {name!r}: name one of {list(self.names)}")
        retired = {*self.retired, name}
        if len(retired) == len(self.names):
            raise ValueError(f"{name!r} is the last arm: add another one before it is retired")
        return replace(self, retired=tuple(one for one in self.names if one in retired))


def _check_name(name: Any) -> None:
    if not is_label(name):
        raise TypeError(f"the name of an arm is {name!r}: use text, a number or a tuple")


def is_among(name: Any, known: Mapping[Any, int]) -> bool:
    """Return True if a name, which may be any object, is known."""
    try:
        return name in known
    except TypeError:  # a list, say, which has no hash
        return False


def as_labels(names: Sequence[Any]) -> AnyArray:
    """(K,) names, as an array of their own type where there is one."""
    labels = np.empty(len(names), dtype=object)
    labels[:] = names
    plain = np.array(names) if len({type(name) for name in names}) == 1 else labels
    return plain if plain.ndim == 1 and plain.tolist() == list(names) else labels
