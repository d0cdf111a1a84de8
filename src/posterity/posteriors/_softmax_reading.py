"""State of a classifier of many classes, and its predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Indices, Mask
from posterity.distributions import Categorical, MultivariateNormal
from posterity.evidence import Strategy
from posterity.evidence.members import use_single_node
from posterity.factor.dummies import find_sums_to_one
from posterity.kernel import SoftmaxPath
from posterity.noise import KnownNoise, Noise
from posterity.posteriors._reads import read_along
from posterity.posteriors._softmax_contrasts import Contrasts, Joined
from posterity.posteriors._softmax_joint import make_joint_distribution
from posterity.posteriors._softmax_likelihood import (
    N_POINTS,
    balanced_points,
    compute_principal_root,
    integrated,
    log_softmax,
    spread,
    spread_points,
)
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_recent import RecentRows
from posterity.posteriors._softmax_rule import choose_by_coefficient
from posterity.posteriors._softmax_sites import POINTS

BLOCK_NUMBERS = 4_000_000
# Rows after which the compiled path asks anew.
UNTIL_LATER = 1_000

Approximation = Literal["auto", "laplace", "moments"]


@dataclass
class SoftmaxReading:
    """Contrasts, the prior they are read with, and how it is learned.

    Rows ``X`` (n, m) come without the intercept's 1, ``y`` (n, 1) are places of classes, from 0.

    Parameters
    ----------
    contrasts
        What the data say.
    prior
        The prior that labels are met with; of the strategy's nodes, the one that stands for all.
    strategy, shapes
        How the prior is learned; None: it is given. And the shapes (L, m) that it is offered.
    approximation
        "laplace", "moments", or "auto": the first in ``fit``, the second in all else.
    next_prior_update, awaits_first_prior
        As many rows, and the prior is chosen anew; whether it is for the first time.
    recent
        The last rows, to be learned again together; ``contrasts`` knows them already.
    together
        The rows' weight when all of them were fitted at once.
    """

    contrasts: Contrasts
    prior: ContrastPrior
    strategy: Strategy | None = None
    shapes: Array | None = None
    approximation: Approximation = "auto"
    next_prior_update: float = field(default=0.0, repr=False)
    awaits_first_prior: bool = field(default=False, repr=False)
    recent: RecentRows | None = field(default=None, repr=False)
    nodes: list[tuple[float, Joined]] | None = field(default=None, repr=False)
    together: float = field(default=-1.0, repr=False)

    noise: ClassVar[Noise] = KnownNoise(1.0)
    single_factor: ClassVar[None] = None
    improper: ClassVar[None] = None
    reads_columns: ClassVar[bool] = False
    scores_rows: ClassVar[bool] = False

    rows_leave_no_trace: ClassVar[bool] = False

    intercept = read_along("prior.intercept")
    n_classes = read_along("contrasts.n_classes")
    n_coefficients = read_along("contrasts.n_columns")  # of one contrast, intercept included
    memory = read_along("contrasts.memory")
    # The weights of the rows that it learned, and what is left of them after forgetting.
    n_observations = read_along("contrasts.n_observations")
    n_effective = read_along("contrasts.n_effective")

    # ---- what it is ----------------------------------------------------------------------------

    def never_varied(self) -> Mask:
        """(m,) none is said to wait: classes have priors of their own."""
        return np.zeros(self.contrasts.n_columns - int(self.intercept), dtype=bool)

    def find_sums_to_one(self) -> list[Indices]:
        """Sets of columns of which each row has one 1, as the first contrast counts the rows."""
        p = self.contrasts.n_columns
        return find_sums_to_one(self.contrasts.one.factor.root[:p, :p]) if self.intercept else []

    def feature_scales(self) -> Array:
        """(m,) NaN: each class counts the rows by weights of its own."""
        return np.full(self.contrasts.n_columns - int(self.intercept), np.nan)

    @property
    def n_features(self) -> int:
        """Columns of the rows that it learns."""
        return len(self.prior.center) - int(self.intercept)

    @property
    def _averages(self) -> bool:
        """True if rows that come online are learned by averages."""
        return self.approximation != "laplace"

    def design(self, X: Array) -> Array:
        """The columns (n, p) with the intercept's 1 in front."""
        return np.column_stack([np.ones(len(X)), X]) if self.intercept else X

    # ---- the prior -----------------------------------------------------------------------------

    def _clear_caches(self) -> None:
        """Clear the caches of readings."""
        self.nodes = None

    def _read(self) -> list[tuple[float, Joined]]:
        """All nodes with their weights: factors of prior and data."""
        if self.nodes is None:
            strategy = self.strategy
            if strategy is None or strategy == use_single_node(strategy) or not self.n_effective:
                self.nodes = [(1.0, self.contrasts.join_prior(self.prior))]
            else:
                choice = choose_by_coefficient(self.contrasts, self.prior, strategy, self.shapes)
                k = self.n_classes - 1
                priors = [
                    self.prior.with_precisions(one.reshape(k, -1)) for one in choice.precisions
                ]
                joined = [self.contrasts.join(prior) for prior in priors]
                self.nodes = list(zip(choice.weights.tolist(), joined, strict=True))
        return self.nodes

    # ---- reading -------------------------------------------------------------------------------

    @property
    def has_fast_predict_one(self) -> bool:
        """True if one factor of all contrasts, with no undetermined direction, predicts."""
        one_node = self.strategy is None or self.strategy == use_single_node(self.strategy)
        if self.contrasts.separate or not (one_node or not self.n_effective):
            return False
        (joined,) = self.contrasts.join_prior(self.prior)
        return bool(np.diagonal(joined.root).all())

    @property
    def has_fast_learn_one(self) -> bool:
        """True if compiled code learns single rows, until rows or the prior are learned again."""
        return (
            not self.memory.forgets
            and self._count_rows_until_update() > 0
            and self.has_fast_predict_one
        )

    def _count_rows_until_update(self) -> int:
        """Count the rows that may be learned one by one before any other update is due."""
        if self.n_observations == 0.0 or self.awaits_first_prior:
            return 0
        if not self.prior.proper:
            return UNTIL_LATER
        return 0 if self.recent is None else self.recent.before_due

    def row_path(self, names: Sequence[str] | None) -> SoftmaxPath:
        """The compiled path: it learns rows, in place, and predicts, in microseconds."""
        r = self.n_classes - 1
        return self.contrasts.one.factor.open_path(
            _open_path,
            self.intercept,
            names,
            self.prior.rows(self.contrasts.places[0]),
            self.contrasts.basis,
            balanced_points(r, POINTS) if self._averages else None,
            spread_points(r),
            self,
            0 if self.memory.forgets else self._count_rows_until_update(),
            math.inf if self.strategy is None else self.next_prior_update,
        )

    @property
    def prior_precision(self) -> ArrayLike:
        """Prior precision of the coefficients, of all contrasts alike or one row for each."""
        return self.prior.precision()

    def coefficients(self) -> Array:
        """(K, p) posterior mean, one row a class; the columns sum to 0."""
        means = [weight * self.contrasts.coordinates(joined) for weight, joined in self._read()]
        each: Array = self.contrasts.basis @ np.sum(means, axis=0)
        return each - each.mean(axis=0)

    def predictive(self, X: Array) -> Categorical:
        """Distribution of the place of the class at rows ``X`` (n, m)."""
        return Categorical(np.arange(self.n_classes), self.log_probabilities(self.design(X)))

    def log_probabilities(self, X: Array) -> Array:
        """(n, K) log of the probabilities at rows (n, p), integrated over the posterior."""
        return self._integrate(X, self._read())

    def log_probabilities_of(self, x: Array) -> Array:
        """(1, K) the same in a stream, of the prior that its labels are met with."""
        return self._integrate(x, [(1.0, self.contrasts.join_prior(self.prior))])

    def _integrate(self, X: Array, nodes: list[tuple[float, Joined]]) -> Array:
        log_probabilities = np.empty((len(X), self.n_classes))
        for part in self.blocks(len(X)):
            mean, covariance = self._moments(X[part], nodes)
            log_probabilities[part] = integrated(
                mean, compute_principal_root(covariance), self.contrasts.basis
            )
        return log_probabilities

    def probability_interval(self, X: Array, level: float) -> Array:
        """(n, K, 2) ends of the central interval of each probability at rows ``X`` (n, m)."""
        ends = np.empty((len(X), self.n_classes, 2))
        for part in self.blocks(len(X)):
            drawn = self.probability_points(X[part])
            both = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
            ends[part] = np.moveaxis(both, 0, -1)
        return ends

    def probability_points(self, X: Array) -> Array:
        """(n, S, K) probabilities at rows ``X`` (n, m) that stand for the posterior."""
        mean, covariance = self._moments(self.design(X), self._read())
        points = spread(mean, compute_principal_root(covariance)) @ self.contrasts.basis.T
        return np.exp(log_softmax(points))

    def _moments(self, X: Array, nodes: list[tuple[float, Joined]]) -> tuple[Array, Array]:
        """Mean and covariance of the coordinates at rows, those of the mixture of all nodes."""
        weighted = [(weight, *self.contrasts.moments(X, joined)) for weight, joined in nodes]
        if len(weighted) == 1:
            return weighted[0][1:]
        centre = sum(weight * mean for weight, mean, _ in weighted)
        spreads = [
            weight * (covariance + (mean - centre)[:, :, None] * (mean - centre)[:, None])
            for weight, mean, covariance in weighted
        ]
        return np.asarray(centre), np.sum(spreads, axis=0)

    def blocks(self, n: int) -> list[slice]:
        """Rows to be read at a time: their covariances and points are held in memory."""
        size = max(1, BLOCK_NUMBERS // (self.n_classes * (self.n_classes + 2 * N_POINTS)))
        return [slice(start, start + size) for start in range(0, n, size)]

    @property
    def log_evidence(self) -> float:
        """Laplace's evidence of the labels; or as they came, where they are forgotten."""
        contrasts = self.contrasts
        return (
            contrasts.log_predictive if self.memory.forgets else contrasts.log_density(self.prior)
        )

    def joint(self, names: tuple[str, ...], classes: tuple[str, ...] = ()) -> MultivariateNormal:
        """Joint posterior of the differences of coefficients to the first class: class by class.

        Without names of the ``classes`` these are numbered.

        With U = T V, T (K - 1, K - 1) the differences of the rows of H to its first.
        """
        classes = classes or tuple(str(place) for place in range(self.n_classes))
        labels = tuple(f"{name} ({one} - {classes[0]})" for one in classes[1:] for name in names)
        return make_joint_distribution(self.contrasts, self._read(), labels)


def _open_path(data: Array, counts: Array, intercept: bool, names: Any, *how: Any) -> SoftmaxPath:
    return SoftmaxPath(intercept, names, data, counts, *how)
