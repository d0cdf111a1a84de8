"""A prior scale for each coefficient, integrated: strong effects beside weak ones ("auto").

In units of the noise, and of the features' roots of mean squares, coefficients have the prior
w_j ~ N(m_j, v_j). Either all v_j are alike, as under :class:`~posterity.evidence.Integrated`, or
v_j = t l_j with l_j ~ inverse gamma(1/2, 1/2): a Cauchy for each coefficient around a scale t that
all share. Dummies of a category have a scale of their own, around which they are alike, or Cauchy,
with the same probabilities; the scales of categories are Cauchy around t. How these are integrated
is told in :mod:`posterity.evidence._local_turns`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array
from posterity.evidence._local_turns import (
    ABOVE,
    LEAST_TOLD,
    NODES,
    SMALLEST_PRECISION,
    SMALLEST_RESIDUAL,
    SWEEPS,
    TOLERANCE,
    TOLERANCE_OF_ONE,
    TOLERANCE_OF_PARTS,
    StandardRows,
    Turns,
    find_precisions,
    part_shared_scale,
)
from posterity.evidence._shared_scale import (
    HYPERPRIOR,
    LOG_SHARES,
    LONGEST_LATTICE,
    make_local_prior,
)
from posterity.evidence.choice import Choice
from posterity.evidence.columns import (
    FeatureScales,
    compute_pinning_precisions,
    is_constant,
    mean_squares,
    read_rows,
)
from posterity.evidence.integration import Integrated
from posterity.evidence.terms import PlainColumns, TermColumns
from posterity.factor import Factor
from posterity.kernel import MOST_SCALES, choose_scales, find_local_precisions
from posterity.noise import Noise

# Shares of the target's square, and of that, below which the noise has run to 0.
ALL_EXPLAINED, NOTHING_LEFT = 1e-6, 1e-3
# Sites tell little if they tell less than this share of as many rows under noise of variance 1, and
# less than so many such rows for each coefficient.
LITTLE_TOLD, ENOUGH_TOLD = 0.1, 10.0


@dataclass(frozen=True)
class LocalScales(Integrated):
    """Integrate the evidence over a prior scale for each coefficient: what "auto" does.

    The coefficients have the prior w_j ~ N(m_j, sigma^2 v_j / s_j^2), s_j^2 the mean square of
    feature j, so that units make no difference. With probability 1/5 all v_j are alike, which is
    the prior of :class:`Integrated`; otherwise the coefficients are Cauchy around one scale: most
    may be weak, while a few strong ones are hardly shrunk. Scales and noise are integrated, by sums
    over a lattice and expectation propagation.

    Neighbouring columns of zeros and ones, of which no row has two 1, are dummies of a category: in
    units of each other, and with a scale of their own in the same way. Where they leave out a base
    level, that is a level like the others, too.

    Parameters
    ----------
    most_nodes
        1: a single one; otherwise there are five nodes, or one where it is enough.
    tolerance
        As of :class:`Integrated`.

    Notes
    -----
    With ``shapes``, one feature, or fewer than three rows this is :class:`Integrated`, and where
    the coefficients could explain all rows without noise.

    Examples
    --------
    >>> from posterity.noise import LearnedNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 20))
    >>> data = Factor(21)
    >>> data.append(X, X[:, :1] + rng.normal(size=(100, 1)), intercept=True)
    >>> choice = LocalScales().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(20))
    >>> strong, *weak = choice.weights @ choice.precisions
    >>> bool(min(weak) > 100.0 * strong)
    True
    """

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """Return nodes of the posterior of all scales; parameters as in :class:`Strategy`."""
        given: dict[str, Any] = {
            "intercept": intercept,
            "mean": mean,
            "shapes": shapes,
            "scales": scales,
        }
        return self.find_local(data, noise, **given) or super().choose(data, noise, **given)

    def find_local(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice | None:
        """The same, where coefficients have scales of their own; None where all have one."""
        if shapes is not None or len(mean) < 2:
            return None
        if scales is None and len(mean) <= MOST_SCALES:
            is_plain, choice = self._find_in_kernel(data, noise, intercept, mean)
            if is_plain:
                return choice
        squares, pinned = (scales or mean_squares(data, intercept=intercept))[:2]
        columns = TermColumns.of(data.root, squares, pinned, intercept=intercept, count=data.count)
        rows = _standardize(data, noise, intercept, mean, columns)
        if rows is None:
            return None
        weigh = partial(_compute_log_evidence, data, noise, intercept)
        turns = self._find_turns(rows, weigh)
        if _explain_all(turns.energy, rows.rest, rows.least / SMALLEST_RESIDUAL):
            return None
        choice = self._choose_nodes(turns, data, noise, columns, intercept)
        if pinned.any():
            held = compute_pinning_precisions(data, intercept=intercept)
            choice.precisions[:, pinned] = held[pinned]
            choice = replace(choice, pinned=pinned)
        return choice

    def _find_in_kernel(
        self, data: Factor, noise: Noise, intercept: int, mean: Array
    ) -> tuple[bool, Choice | None]:
        """The same in the kernel, and whether it can: features all vary, and are no dummies."""
        shape = noise.parameters[1] + 0.5 * (data.count - int(intercept))
        known = bool(noise.parameters[0])
        if self._reads_coefficients and not known and 2.0 * shape < len(mean):
            return False, None
        found = choose_scales(
            data.triangle,
            data.count,
            bool(intercept),
            np.ascontiguousarray(mean),
            noise.parameters,
            NODES,
            make_local_prior(),
            (LOG_SHARES[0, 0], LOG_SHARES[1, 0]),
            HYPERPRIOR,
            (LONGEST_LATTICE, ABOVE),
            (
                SWEEPS,
                self._choose_tolerance(known),
                SMALLEST_PRECISION,
                LEAST_TOLD,
                SMALLEST_RESIDUAL,
            ),
        )
        if found is None:
            return False, None
        turns, squares, rest, total = Turns(*found[0]), *found[1:]
        if _explain_all(turns.energy, rest, total):
            return True, None
        return True, self._choose_nodes(turns, data, noise, PlainColumns(squares), intercept)

    @property
    def for_stream(self) -> Integrated:
        """The same for a stream of observations; sites are found under one scale for all.

        Under scales of their own, coefficients and sites of labels that a line separates would hold
        each other down.
        """
        if self.most_nodes == 1:
            return super().for_stream
        return _LocalScalesForObservations(self.most_nodes, self.tolerance)

    def for_sites(self, told: float, rows: float, n_features: int) -> Integrated:
        """One scale for all where sites tell little: labels that a line nearly separates.

        There the likelihood is far from normal, and each coefficient alone seems weak.
        """
        little = told < LITTLE_TOLD * rows and told < ENOUGH_TOLD * n_features
        return Integrated(self.most_nodes, self.tolerance) if little else self

    def _find_turns(self, rows: StandardRows, weigh: Callable[[Turns], float]) -> Turns:
        turns = self._find_precisions(
            rows, self._choose_tolerance(bool(rows.known)), rows.log_hyperprior
        )
        if not (rows.could_be_met and self._reads_coefficients):
            return turns
        find = partial(self._find_precisions, rows, TOLERANCE_OF_PARTS)
        return part_shared_scale(rows, turns, find, weigh)

    def _choose_tolerance(self, noise_is_known: bool) -> float:
        finds_sites = self.most_nodes == 1 and noise_is_known
        return TOLERANCE_OF_ONE if finds_sites else TOLERANCE

    @property
    def _reads_coefficients(self) -> bool:
        return self.most_nodes > 1 and not self._compute_fitted_variance

    def _find_precisions(
        self,
        rows: StandardRows,
        tolerance: float,
        log_hyperprior: Array,
        start: Array | None = None,
    ) -> Turns:
        """In the kernel, of few columns."""
        if rows.matrix.shape[1] > MOST_SCALES:
            return find_precisions(rows, tolerance, log_hyperprior, start)
        return Turns(
            *find_local_precisions(
                rows.matrix,
                rows.target,
                rows.ends,
                (rows.rest, rows.shape, rows.known, rows.least),
                NODES,
                log_hyperprior,
                make_local_prior(),
                (LOG_SHARES[0, 0], LOG_SHARES[1, 0]),
                (rows.lattice_base, ABOVE),
                (SWEEPS, tolerance, SMALLEST_PRECISION, LEAST_TOLD),
            )
        )

    def _choose_nodes(
        self,
        turns: Turns,
        data: Factor,
        noise: Noise,
        columns: TermColumns | PlainColumns,
        intercept: int,
    ) -> Choice:
        """The choice, with precisions of the features in their own units."""
        disagreement = turns.disagreement / (data.count if self._compute_fitted_variance else 1.0)
        single = self.most_nodes == 1 or disagreement < self.tolerance
        weights = np.ones(1) if single else turns.weights
        relative = turns.precisions[None] if single else turns.nodes
        m = data.n_coefficients - int(intercept)
        precisions, contrasts = columns.compute_precisions(relative, m)
        return Choice(
            precisions,
            weights,
            noise,
            np.zeros(m, dtype=bool),
            _compute_log_evidence(data, noise, intercept, turns),
            np.ones(len(weights)),
            np.zeros(len(weights), dtype=np.intp),
            disagreement=disagreement,
            n_parameters=turns.n_parameters,
            found="integrated",
            contrasts=contrasts,
        )


class _LocalScalesForObservations(LocalScales):
    """Strategy of a stream's nodes, made from the other one when they are due, and never kept."""

    _compute_fitted_variance: ClassVar[bool] = True


def _standardize(
    data: Factor, noise: Noise, intercept: int, mean: Array, columns: TermColumns
) -> StandardRows | None:
    """Read a factor; None where the rows say nothing of what is asked here, or all."""
    offset = int(intercept)
    matrix, target = read_rows(data, columns.matrix, mean, intercept=intercept)
    residual, residual_df = float(data.residual_root[0, 0]) ** 2, data.count - offset
    if matrix.shape[1] < 2 or residual_df <= 1.0 or not matrix.any():
        return None
    known, shape, rate = noise.parameters
    if not known and is_constant(data, target):
        return None
    return StandardRows(
        matrix,
        target,
        residual + 2.0 * rate,
        0.5 * residual_df + shape,
        known,
        SMALLEST_RESIDUAL * (float(target @ target) + residual),
        columns.ends,
    )


def _explain_all(energy: float, rest: float, total: float) -> bool:
    """Return True if the coefficients explain all, and the rows would allow that of any target."""
    return energy < ALL_EXPLAINED * total and rest < NOTHING_LEFT * energy


def _compute_log_evidence(data: Factor, noise: Noise, intercept: int, turns: Turns) -> float:
    """Log evidence of the prior of scales."""
    flat = np.diag(data.root)[: int(intercept)]
    information = 2.0 * float(np.sum(np.log(np.abs(flat[flat != 0.0])))) + turns.log_determinant
    residual = max(turns.energy - 2.0 * noise.parameters[2], 0.0)
    return turns.log_gain + noise.log_evidence(data.count - int(intercept), residual, -information)
