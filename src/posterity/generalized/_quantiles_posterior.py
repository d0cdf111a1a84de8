"""Several quantiles of the same rows: a posterior of each, read side by side, without crossings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, ClassVar, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Array
from posterity.generalized._heavy_tails_row import HeavyTailedPath, run_all
from posterity.kernel import RowPath
from posterity.posteriors import LinearPosterior
from posterity.posteriors._reads import read_along
from posterity.posteriors._target_coefficients import TargetCoefficients
from posterity.posteriors.gaussian import refuse_waiting
from posterity.posteriors.growth import widen
from posterity.posteriors.new_columns import NewColumns
from posterity.transaction import Undo

_EACH_ITS_OWN = "there are {} quantiles, and each has a distribution of its own"


@dataclass(frozen=True)
class QuantilesPosterior:
    """Posteriors of the coefficients of several quantiles, lowest first.

    Each learns every row by itself. What they predict at a row is sorted: the rearrangement of
    Chernozhukov, Fernandez-Val and Galichon (2010), which is nowhere further from the true
    quantiles.
    """

    quantiles: tuple[float, ...]
    each: tuple[LinearPosterior, ...]

    # There is no evidence of all together.
    improper: ClassVar[None] = None
    reads_columns: ClassVar[bool] = False
    tells_rows: ClassVar[bool] = False

    # They learned the same rows.
    intercept = read_along("first.intercept")
    n_coefficients = read_along("first.n_coefficients")
    n_observations = read_along("first.n_observations")
    feature_scales = read_along("first.feature_scales")
    feature_means = read_along("first.feature_means")
    find_sums_to_one = read_along("first.find_sums_to_one")
    never_varied = read_along("first.never_varied")

    @property
    def first(self) -> LinearPosterior:
        """The posterior of the lowest quantile."""
        return self.each[0]

    wait = refuse_waiting

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.quantiles, tuple(one.copy() for one in self.each))

    def copy_from(self, other: Self) -> None:
        """Take over all that ``other``, a copy of this one, knows."""
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.copy_from(theirs)

    def widen_from(self, old: Self, columns: NewColumns) -> None:
        """Know what ``old`` does, of other columns."""
        for mine, theirs in zip(self.each, old.each, strict=True):
            widen(mine, theirs, columns)

    # ---- learning ------------------------------------------------------------------------------

    def fit(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn the first rows together."""
        for one in self.each:
            one.fit(X, y, weights, elapsed)

    def append(self, X: Array, y: Array, weights: Array | None, elapsed: Array) -> None:
        """Learn rows in order."""
        for one in self.each:
            one.append(X, y, weights, elapsed)

    def predict_then_learn(
        self, X: Array, y: Array, weights: Array | None, elapsed: Array
    ) -> NoReturn:
        """Refuse: what is predicted before each row is not one distribution."""
        raise ValueError(
            _EACH_ITS_OWN.format(len(self.each)) + ": use predict, then partial_fit; or score each "
            "quantile by a model of its own, as in BayesianQuantileRegression(quantile=0.9)"
        )

    def remove(self, X: Array, y: Array, weights: Array | None) -> None:
        """Unlearn rows; raises ``ValueError`` when they can't be taken out."""
        for one in self.each:
            one.remove(X, y, weights)

    def merge(self, other: Self) -> None:
        """Learn all that ``other`` learned from the same prior."""
        for mine, theirs in zip(self.each, other.each, strict=True):
            mine.merge(theirs)

    def has_same_prior(self, other: Self) -> bool:
        """Return True if both started from the same prior, so that they can be merged."""
        return (
            type(self) is type(other)
            and self.quantiles == other.quantiles
            and all(a.has_same_prior(b) for a, b in zip(self.each, other.each, strict=True))
        )

    @property
    def has_fast_learn_one(self) -> bool:
        """True if its compiled path may learn single rows."""
        return all(one.has_fast_learn_one for one in self.each)

    @property
    def has_fast_predict_one(self) -> bool:
        """True if its compiled path predicts single rows."""
        return all(one.has_fast_predict_one for one in self.each)

    def row_path(self, names: Sequence[str] | None) -> RowPath:
        """Return the path that reads, predicts and learns single rows."""
        return cast(RowPath, QuantilesPath([one.row_path(names) for one in self.each]))

    # ---- reading -------------------------------------------------------------------------------

    def predict_mean(self, X: Array) -> Array:
        """(n, q) quantiles at the rows of ``X``."""
        return np.sort(np.column_stack([one.predict_mean(X) for one in self.each]), axis=1)

    def predict_mean_ahead(self, X: Array) -> Array:
        """The same where a row is predicted in a stream, before it is learned."""
        return np.sort(np.column_stack([one.predict_mean_ahead(X) for one in self.each]), axis=1)

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        return np.column_stack([one.coefficients() for one in self.each])

    def joint(self, names: tuple[str, ...]) -> TargetCoefficients:
        """Joint distributions of [intercept, coefficients], each quantile's and all of them.

        Estimates of quantiles s < t have the correlation of a Brownian bridge at s and t (Koenker
        2005, section 4.3, for noise that is the same everywhere).
        """
        q = np.array(self.quantiles)
        bridge = np.minimum.outer(q, q) - np.outer(q, q)
        size = np.sqrt(np.diag(bridge))
        joints = [cast(Any, one.joint(names)) for one in self.each]
        labels = tuple(f"{quantile:g}" for quantile in self.quantiles)
        return TargetCoefficients(
            joints, bridge / np.outer(size, size), names=names, targets=labels, label="quantile"
        )

    def average_of(self, read: Callable[[Any], ArrayLike]) -> Array:
        """(q, ...) what ``read`` reads of each."""
        return np.stack([np.asarray(one.average_of(read)) for one in self.each])

    def predictive(self, X: Array) -> NoReturn:
        """Refuse: the working noise of each quantile is another one."""
        raise ValueError(
            _EACH_ITS_OWN.format(len(self.each)) + ": predict and predict_interval give all of "
            "them, and model_of(0.9).predict_distribution(X) that of one"
        )

    def mixture_of(self, read: Callable[[Any], Any]) -> NoReturn:
        """Refuse: each quantile has a posterior of its own."""
        raise ValueError(
            _EACH_ITS_OWN.format(len(self.each)) + ": predict and predict_interval give all of "
            "them, and model_of(0.9).predict_quantile(X) that of one"
        )

    @property
    def n_effective(self) -> float:
        """The weight of the rows that is left after forgetting, on average."""
        return float(np.mean([one.n_effective for one in self.each]))

    @property
    def noise_precision(self) -> Array:
        """(q,) 1 / scale^2 of the working noise."""
        return np.array([one.noise_precision for one in self.each])

    @property
    def prior_precision(self) -> Array:
        """Prior precision of the coefficients, a row for each quantile."""
        return np.stack([np.asarray(one.prior_precision) for one in self.each])

    @property
    def log_evidence(self) -> float:
        """Refuse: the working likelihoods are of the same rows."""
        raise AttributeError(
            "several quantiles have no log_evidence_: each is learned under a working likelihood "
            "of its own; see model_of(0.9).log_evidence_"
        )

    @property
    def change_probability(self) -> Array:
        """Refuse: each quantile finds changes of its own."""
        raise AttributeError(
            "each of several quantiles finds changes of its own: "
            "read model_of(0.9).change_probability_"
        )

    @property
    def changes(self) -> NDArray[np.int64]:
        """Refuse: each quantile finds changes of its own."""
        raise AttributeError(
            "each of several quantiles finds changes of its own: read model_of(0.9).changes_"
        )


class QuantilesPath:
    """Predicts and learns single rows in the paths of all quantiles: all of them, or none."""

    def __init__(self, paths: Sequence[Any]) -> None:
        self._paths = paths
        self._asked: list[LinearPosterior] = []  # the posteriors whose paths have learned a row

    def values(self, x: Any) -> Array:
        """The features of ``x`` as an array (1, m), checked."""
        return cast(Array, self._paths[0].values(x))

    def predict_mean(self, x: Any) -> Array:
        """(q,) quantiles at ``x``."""
        return np.sort([path.predict_mean(x) for path in self._paths])

    def close(self) -> None:
        """Close the path: it learns no more rows, and its user must ask for another."""
        for path in self._paths:
            path.close()

    def learn(self, x: Any, y: float, weight: float = 1.0) -> bool:
        """Learn a row; False, and nothing happens, where it must be learned in another way."""
        paths = cast(Sequence[HeavyTailedPath], self._paths)
        values, y, weight = self.values(x), float(y), float(weight)
        with paths[0].lock:
            found = [path.steps(values, y, weight) for path in paths]
            if not all(found):
                return False
            # Results are stored only after all quantiles have learned.
            learns = chain.from_iterable(steps[:-1] for steps in found)
            with Undo() as undo:
                self._keep(undo)
                return run_all([*learns, *(steps[-1] for steps in found)])

    def _keep(self, undo: Undo) -> None:
        """Have ``undo`` put the posteriors back where a path learns its first row.

        It then asks, in Python, for the features that are constant; later rows are one step.
        """
        inners = [path.posterior.state.inner for path in self._paths]
        if len(self._asked) != len(inners) or not all(map(is_, self._asked, inners)):
            for path in self._paths:
                undo.add(partial(path.posterior.copy_from, path.posterior.copy()))
            undo.add(inners.clear)
            self._asked = inners


__all__ = ["QuantilesPosterior"]
