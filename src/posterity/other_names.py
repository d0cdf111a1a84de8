"""Other names of arguments: random_state is rng, n_draws is size."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])

NAMES = {"random_state": "rng", "seed": "rng", "n_draws": "size", "n_samples": "size"}


def accept_other_names(method: Method) -> Method:
    """Let a method that takes ``size`` and ``rng`` take them by other names, with a warning.

    Raises ``TypeError`` where an argument is given by both of its names.

    Examples
    --------
    >>> @accept_other_names
    ... def draw(size, rng=None):
    ...     return size, rng
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     draw(n_draws=3, random_state=0)
    (3, 0)
    """

    @wraps(method)
    def named(*args: Any, **given: Any) -> Any:
        for other in NAMES.keys() & given.keys():
            name = NAMES[other]
            if name in given:
                raise TypeError(f"{method.__name__}() got {name} and {other}: give {name} alone")
            warnings.warn(
                f"{other} is called {name} in {method.__name__}(): the next version will take "
                f"{name} alone",
                FutureWarning,
                stacklevel=2,
            )
            given[name] = given.pop(other)
        return method(*args, **given)

    return cast(Method, named)
