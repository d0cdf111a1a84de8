"""Single rows under heavy tails, in plain numbers: the same results as learning in arrays.

A compiled path of the factor predicts, weighs and learns a row. Rows after which the start is
fitted again, or the prior chosen again, are left to the general code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from operator import call, is_not
from threading import Lock
from typing import TYPE_CHECKING, Any

from posterity.factor import Factor
from posterity.factor.usable import LARGEST, LARGEST_WEIGHT, SMALLEST_WEIGHT
from posterity.kernel import RowPath
from posterity.posteriors import LinearPosterior

if TYPE_CHECKING:
    from posterity.generalized._heavy_tails import HeavyTailedPosterior


class HeavyTailedPath:
    """Predicts single rows, and learns those that are not due: as :class:`RowPath`, of one target.

    ``posterior`` is the one that is read and, where nothing is forgotten, learned in.
    """

    def __init__(self, posterior: HeavyTailedPosterior, names: Sequence[str] | None) -> None:
        self.posterior, self.names = posterior, names
        self._reader = Factor(posterior.n_coefficients).row_path(posterior.intercept, names)
        self._inner: LinearPosterior | None = None
        self._rows = self._reader
        self._others: list[RowPath] = []
        self._closed, self.lock = False, Lock()

    def values(self, x: Any) -> Any:
        """The features of ``x`` as an array (1, m), checked."""
        return self._reader.values(x)

    def predict_mean(self, x: Any) -> float:
        """Mean at ``x``."""
        if self.posterior.state.inner is not self._inner:
            self._open()
        return self._rows.predict_mean(x)

    def close(self) -> None:
        """Close the path: it learns no more rows, and its user must ask for another."""
        self._closed = True
        self._rows.close()

    def learn(self, x: Any, y: float, weight: float = 1.0) -> bool:
        """Learn a row; False, and nothing happens, where it must be learned in another way."""
        values, y, weight = self.values(x), float(y), float(weight)  # which may run any Python
        with self.lock:
            steps = self.steps(values, y, weight)
            return bool(steps) and run_all(steps)

    def steps(self, values: Any, y: float, g: float) -> list[Callable[[], object]]:
        """Return the steps that learn a row, ``values`` (1, m), in order.

        There are none where it is learned in another way.
        """
        posterior, known = self.posterior, self.posterior.state
        usable = SMALLEST_WEIGHT <= g <= LARGEST_WEIGHT and abs(y) * math.sqrt(g) <= LARGEST
        if not usable or self._closed or known.clock + 1 >= known.due:
            return []
        if known.inner is not self._inner:
            self._open()
        row = values[0]
        mean, leverage = self._rows.predict(row)
        weight, shift, state = posterior.with_row(values, y, g, y - mean, leverage)
        if weight * g < SMALLEST_WEIGHT:
            return []
        steps: list[Callable[[], object]] = [partial(self._rows.learn, row, y + shift, weight * g)]
        steps += [partial(other.learn, row, 0.0, g) for other in self._others]
        steps.append(partial(known.__dict__.update, state))
        return steps

    # ---- inner ---------------------------------------------------------------------------------

    def _open(self) -> None:
        """Follow the posterior, which learned in another way."""
        inner = self.posterior.state.inner
        self._rows = inner.row_path(self.names)
        self._others = [other.row_path(self.names) for other in self.posterior.companions]
        self._inner = inner
        if self._closed:
            self._rows.close()


def run_all(steps: list[Callable[[], object]]) -> bool:
    """Call the steps until one returns False; return True if none did.

    One call, which no interrupt divides; where the first factor learns nothing it stops there.
    """
    return len(tuple(takewhile(_LEARNED, map(call, steps)))) == len(steps)


# The last steps return None.
_LEARNED = partial(is_not, False)
