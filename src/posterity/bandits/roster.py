"""The names of the arms, and which of them can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posterity.bandits.inputs import as_labels, is_among


@dataclass(frozen=True)
class Roster:
    """Names of all arms, in the order of their columns, and of those that have retired.

    Examples
    --------
    >>> roster = Roster(("red", "blue")).without("red").added("green")
    >>> roster.names, roster.open.tolist()
    (('red', 'blue', 'green'), [0, 1, 1])
    """

    names: tuple[Any, ...]
    retired: tuple[Any, ...] = ()

    @classmethod
    def of(cls, names: Sequence[Any] | NDArray[Any]) -> Roster:
        """Of names that users gave; ``ValueError`` where there are none, or two of one name."""
        names = names.tolist() if isinstance(names, np.ndarray) else list(names)
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"arms are {names}: give at least one, each with a name of its own, as in "
                "Bandit(arms=['a', 'b'])"
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
    def labels(self) -> NDArray[Any]:
        """(K,) names."""
        return as_labels(self.names)

    def added(self, name: Any) -> Roster:
        """With one more arm, or one that had retired."""
        if name in self.retired:
            return replace(self, retired=tuple(one for one in self.retired if one != name))
        if name in self.names:
            raise ValueError(f"there is an arm {name!r} already: arms need names of their own")
        return replace(self, names=(*self.names, name))

    def without(self, name: Any) -> Roster:
        """With an arm that retires; ``ValueError`` where it is unknown, or the last."""
        if not is_among(name, self.places):
            raise ValueError(f"there is no arm {name!r}: the arms are {list(self.names)}")
        retired = {*self.retired, name}
        if len(retired) == len(self.names):
            raise ValueError(f"{name!r} is the last arm: add another one before it is retired")
        return replace(self, retired=tuple(one for one in self.names if one in retired))
