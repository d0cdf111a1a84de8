"""Automatic relevance determination: a precision for each feature, by the evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from posterity.evidence.choice import Choice
from posterity.evidence.columns import FeatureScales, mean_squares, pinning_precisions
from posterity.evidence.integration import Integrated
from posterity.evidence.relevance_state import Columns, State
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.noise import LearnedNoise, Noise

Array = NDArray[np.float64]

ENOUGH = 1e-9  # gains of log evidence, and slopes, that are left
FARTHEST = 3.0  # the longest Newton step, in log precision
MOST_ROUNDS = 500
PERFECT = 1e-16  # a residual so small, against the target's sum of squares, is on its way to 0
LEAST_FOR_NOISE = 0.5  # of the rows, that the coefficients leave to the noise


@dataclass(frozen=True)
class Relevance:
    """A precision for each feature; those the evidence finds irrelevant are pruned ("ard").

    The prior is w_j ~ N(m_j, sigma^2 / (lambda_j s_j^2)), s_j^2 the mean square of feature j, and
    the evidence with the noise integrated (or known) is maximised over all lambda_j, which at a
    maximum are finite, with 1 / lambda_j = Sigma_jj + (a_n / b_n) mu_j^2, or infinite, with
    (a_n / b_n) q_j^2 <= s_j (MacKay 1992; Tipping 2001). Every iteration makes the best single
    moves (Tipping and Faul 2003), together where that raises the evidence, and Newton's method
    finishes: the evidence never falls (as in Wipf and Nagarajan 2008).

    Notes
    -----
    There can be several maxima. The search starts once from all features and once from none, and
    keeps the better end; ``others`` of the choice has the other one if it is another.

    Where the coefficients would leave less than half a row to the noise, no maximum can be told
    from a perfect fit: all features then share one precision, found by integration.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> data = Factor(5)
    >>> y = X @ [[1.0], [0.0], [-2.0], [0.0]] + rng.normal(size=(200, 1))
    >>> data.append(X, y, intercept=True)
    >>> choice = Relevance().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(4))
    >>> choice.pinned, choice.slope < 1e-8
    (array([False,  True, False,  True]), True)
    """

    def choose(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: bool,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> Choice:
        """The best maximum found; parameters as in :class:`Strategy`.

        ``shapes`` make no difference: with a precision of its own, each feature has its own unit.
        """
        squares, pinned = scales or mean_squares(data, intercept=intercept)
        unit = np.where(pinned, np.inf, squares)
        columns = _columns(data, noise, intercept, mean, unit)
        ends = []
        if np.isnan(columns.twice_shape) or columns.twice_shape > 0.0:
            everything = np.where(pinned, np.inf, np.log(max(float(np.sum(~pinned)), 1.0)))
            starts = [everything] if pinned.all() else [everything, np.full(len(mean), np.inf)]
            ends = [end for end in (_climbed(State.at(columns, s)) for s in starts) if end]
        ends = [end for end in ends if _noise_is_left(end, data)]
        ends.sort(key=lambda end: -end.value)
        if not ends:
            return _shared(data, noise, intercept, mean)
        best, others = ends[0], [end for end in ends[1:] if ends[0].value - end.value > 1e-6]
        irrelevant = np.isinf(best.logs)
        precisions = np.exp(best.logs) * np.where(pinned, 1.0, squares)
        precisions[irrelevant] = pinning_precisions(data, intercept=intercept)[irrelevant]
        constant = _evidence_constant(data, noise, intercept, mean, unit, columns)
        return Choice(
            precisions[None],
            np.ones(1),
            noise,
            irrelevant,
            best.value + constant,
            np.ones(1),
            np.zeros(1, dtype=np.intp),
            slope=_slope(best),
            n_parameters=float(best.known.sum()),
            found="interior" if len(best.kept) else "no signal",
            others=tuple(end.value + constant for end in others),
        )


def _columns(data: Factor, noise: Noise, intercept: bool, mean: Array, unit: Array) -> Columns:
    offset = 1 if intercept else 0
    root = data.root[offset:, offset:]
    target = data.moments[offset:, 0] - root @ mean
    residual = float(data.residual_root[0, 0]) ** 2
    return Columns.of(root / np.sqrt(unit), target, residual, data.count - offset, noise)


def _evidence_constant(
    data: Factor, noise: Noise, intercept: bool, mean: Array, unit: Array, columns: Columns
) -> float:
    """What the states leave out: log evidence with every feature pruned, less their value there."""
    empty = np.full_like(unit, np.inf)
    spectrum = Spectrum.of(data, intercept=intercept, mean=mean, shape=empty)
    return float(spectrum.log_evidence(1.0, noise)[0]) - State.at(columns, empty).value


def _noise_is_left(state: State, data: Factor) -> bool:
    """Whether the fit is not perfect: there the evidence has no maximum, it grows without end."""
    if not isinstance(state.columns.noise, LearnedNoise):
        return True
    count = state.columns.twice_shape
    total = float(np.square(data.moments).sum() + np.square(data.residual_root).sum())
    known = float(state.known.sum())
    return count - known > LEAST_FOR_NOISE and state.energy > PERFECT * total


def _shared(data: Factor, noise: Noise, intercept: bool, mean: Array) -> Choice:
    shared = Integrated(most_nodes=1).choose(data, noise, intercept=intercept, mean=mean)
    return replace(shared, found="undetermined")


def _slope(state: State) -> float:
    """Certificate: largest slope of what is kept; moves that would gain count in full."""
    gains = state.moves()[1]
    slopes = np.abs(state.gradient()).max(initial=0.0)
    return float(max(slopes, gains.max(initial=0.0)))


# ---- the climb -----------------------------------------------------------------------------------


def _climbed(state: State) -> State | None:
    """Go uphill to a maximum."""
    if not np.isfinite(state.value):
        return None
    for _ in range(MOST_ROUNDS):
        targets, gains = state.moves()
        switches = np.isinf(targets) != np.isinf(state.logs)
        if gains[switches].max(initial=0.0) <= ENOUGH:
            higher = _newton(state)
            if higher is not None:
                state = higher
                continue
            if gains.max(initial=0.0) <= ENOUGH:
                break
        higher = _moved(state, targets, gains)
        if higher is None:
            break
        state = higher
    return state


def _moved(state: State, targets: Array, gains: Array) -> State | None:
    """Make the best single moves together: all, else the better half of them, ..., else one."""
    # Of the features that could come in, those alike would all come at once: only the best do.
    enters = np.isinf(state.logs) & ~np.isinf(targets)
    late = enters & (gains < 0.5 * gains[enters].max(initial=0.0))
    useful = (gains > 0.0) & ~late
    order = np.flatnonzero(useful)[np.argsort(-gains[useful])]
    while len(order):
        logs = state.logs.copy()
        logs[order] = targets[order]
        higher = State.at(state.columns, logs)
        if higher.value > state.value:
            return higher
        order = order[: len(order) // 2]
    return None


def _newton(state: State) -> State | None:
    """One step on the precisions that are kept, or None where it doesn't help."""
    gradient = state.gradient()
    if np.abs(gradient).max(initial=0.0) < ENOUGH:
        return None
    curvature = -state.hessian()
    try:
        np.linalg.cholesky(curvature)  # only where the evidence curves down
    except np.linalg.LinAlgError:
        return None
    step = np.linalg.solve(curvature, gradient)
    size = np.abs(step).max()
    step = step * min(1.0, FARTHEST / size)
    for _ in range(4):
        logs = state.logs.copy()
        logs[state.kept] += step
        higher = State.at(state.columns, logs)
        # At the maximum the value stands still in its last digits, and the slope still falls.
        close = higher.value >= state.value - 1e-12 * abs(state.value)
        flatter = np.abs(higher.gradient()).max() < 0.5 * np.abs(gradient).max()
        if higher.value > state.value or (close and flatter):
            return higher
        step = 0.25 * step
    return None
