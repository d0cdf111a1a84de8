"""The maximum of the evidence over (alpha, beta): type-II maximum likelihood (MacKay 1992)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from posterity.aliases import Array
from posterity.evidence.choice import Choice
from posterity.evidence.columns import FeatureScales, compute_prior_shapes
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.noise import KnownNoise, Noise

ModeFit = Literal["interior", "no signal", "no noise", "undetermined"]

# Range of log ratios, relative to the largest squared singular value. Below it, directions of which
# only the prior tells have few digits beside the data; above it shrinkage is complete to nine.
LOWEST, HIGHEST, STEP = -40.0, 20.0, 0.5
FLAT_SLOPE = 1e-10  # slopes of the log evidence that may be rounding
MOST_STEPS = 60


@dataclass(frozen=True)
class Maximum:
    """The maximum of the evidence over (alpha, beta).

    Parameters
    ----------
    alpha, beta
        Precision of the coefficients (per unit of shape) and of the noise; alpha is infinite when
        there is no signal.
    ratio
        alpha / beta, finite: what to compute with.
    log_evidence
        log p(y | alpha, beta), the intercept (if there is one) having a flat prior of density 1.
    slope
        Derivative of the log evidence in log(alpha / beta) there: the certificate. The derivative
        in beta at a fixed ratio is 0 by formula.
    n_parameters
        gamma = sum d_i^2 / (d_i^2 + ratio); at an interior maximum ``alpha |w|^2`` = gamma.
    found
        "interior"; "no signal": the evidence grows as alpha does; "no noise": it grows as the ratio
        falls, the coefficients fit exactly; "undetermined": too few rows, every ratio is as good.
    others
        Other local maxima, best first.
    """

    alpha: float
    beta: float
    ratio: float
    log_evidence: float
    slope: float
    n_parameters: float
    found: ModeFit
    others: tuple[Maximum, ...] = ()


def maximize(spectrum: Spectrum, noise: Noise) -> Maximum:
    """Find all maxima of the evidence over alpha and, unless the noise is known, beta.

    At a fixed ratio the best beta is (n - d) / s^2 (with a noise prior: shape_n / rate_n), and with
    it put in, the evidence is, but for a constant, the one with the noise integrated: a function
    of the ratio alone, O(p) each. Its derivative is followed over a grid that spans all of double
    precision; every change of sign is refined by Newton's method inside its bracket.

    The count is n - 1 with an intercept, which has been integrated, and n without; scikit-learn's
    BayesianRidge centres the data and then counts n, as this does for centred data without
    intercept.

    Examples
    --------
    >>> from posterity.noise import LearnedNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> data = Factor(2)
    >>> data.append(X, X @ [[1.0], [-1.0]] + 0.5 * rng.normal(size=(200, 1)))
    >>> spectrum = Spectrum.of(data, intercept=False, mean=np.zeros(2), shape=np.ones(2))
    >>> best = maximize(spectrum, LearnedNoise())
    >>> best.found, round(best.beta, 1), abs(best.slope) < 1e-9
    ('interior', 4.0, True)
    """
    largest = float(spectrum.squares.max(initial=0.0))
    if largest == 0.0 or not _has_noise(spectrum, noise):
        return _evaluate_at(spectrum, noise, spectrum.signal, "undetermined")
    grid = math.log(largest) + np.arange(LOWEST, HIGHEST + STEP / 2, STEP)
    slope = spectrum.slopes(np.exp(grid), noise)[0]
    if np.abs(slope).max() < FLAT_SLOPE:
        return _evaluate_at(spectrum, noise, spectrum.signal, "undetermined")
    falls = np.flatnonzero(
        (slope[:-1] > 0.0) & (slope[1:] <= 0.0) & (slope[:-1] - slope[1:] > FLAT_SLOPE)
    )
    places = _refine(spectrum, noise, grid[falls], grid[falls + 1])
    maxima = [_evaluate_at(spectrum, noise, ratio, "interior") for ratio in np.exp(places)]
    low = _evaluate_at(spectrum, noise, math.exp(grid[0]), "no noise")
    high = _evaluate_at(spectrum, noise, math.exp(grid[-1]), "no signal")
    # An end is a maximum if the evidence rises towards it, or if there is nothing else.
    maxima += [low] if slope[0] < -FLAT_SLOPE else []
    maxima += [high] if slope[-1] > 0.0 else []

    def criterion(maximum: Maximum) -> float:
        return float(spectrum.log_evidence(maximum.ratio, noise)[0])

    # Towards a limit the slope may be rounding alone: the values decide.
    best, *others = sorted([*maxima, low, high], key=criterion, reverse=True)
    return replace(
        best, others=tuple(other for other in others if other in maxima and other != best)
    )


def _has_noise(spectrum: Spectrum, noise: Noise) -> bool:
    """Return True if there is a noise precision to plug in: enough rows and some residual."""
    known, shape, rate = noise.parameters
    left = rate + spectrum.residual + float(np.square(spectrum.projections).sum())
    return known > 0.0 or (2.0 * shape + spectrum.residual_df > 0.0 and left > 0.0)


def _refine(spectrum: Spectrum, noise: Noise, low: Array, high: Array) -> Array:
    """(c,) log ratios where the slope is 0, each between its ``low`` and ``high``."""
    if not len(low):
        return low
    low, high = low.copy(), high.copy()
    place = 0.5 * (low + high)
    for _ in range(MOST_STEPS):
        slope, bend = spectrum.slopes(np.exp(place), noise)
        low = np.where(slope > 0.0, place, low)
        high = np.where(slope > 0.0, high, place)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = place - slope / bend
        inside = (bend < 0.0) & (step > low) & (step < high)
        moved = np.where(inside, step, 0.5 * (low + high))
        done = np.abs(moved - place) <= 1e-14 * np.maximum(np.abs(place), 1.0)
        place = moved
        if done.all():
            break
    return place


def _evaluate_at(spectrum: Spectrum, noise: Noise, ratio: float, found: ModeFit) -> Maximum:
    shares = spectrum.shares(ratio)
    beta = float(spectrum.noise_precision(shares, noise)[0])
    plugged = KnownNoise(beta) if 0.0 < beta < math.inf else noise
    return Maximum(
        alpha=math.inf if found == "no signal" else float(ratio) * beta,
        beta=beta,
        ratio=float(ratio),
        log_evidence=float(spectrum.compute_log_evidence(shares, plugged)[0]),
        slope=float(spectrum.slopes(ratio, noise)[0][0]),
        n_parameters=float(spectrum.n_parameters(ratio)[0]),
        found=found,
    )


@dataclass(frozen=True)
class Maximized:
    """Use the alpha and beta of largest evidence, as scikit-learn's BayesianRidge does.

    Parameters
    ----------
    standardize
        Whether one unit of prior precision is a feature's mean square (scale-free), or 1 for each.

    Notes
    -----
    Predictions are Normal, and too sure of themselves on few rows: see :class:`Integrated`. While
    there are no more rows than directions, "no noise" can be a maximum of any data: such maxima are
    passed over, and where there is no other the noise stays as it was given.

    Examples
    --------
    >>> from posterity.noise import LearnedNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> data = Factor(3)
    >>> data.append(X, X @ [[1.0], [-1.0]] + 0.5 * rng.normal(size=(200, 1)), intercept=True)
    >>> choice = Maximized().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(2))
    >>> choice.found, round(choice.noise.known_precision, 1)
    ('interior', 4.0)
    """

    standardize: bool = True

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
        """The maximum, over shapes too where there are some; parameters as in :class:`Strategy`."""
        given = shapes
        shapes, pinned = compute_prior_shapes(data, shapes, scales, intercept=intercept)
        if given is None and not self.standardize:
            shapes = np.where(pinned, np.inf, 1.0)[None]
        maxima = [
            _find_credible(Spectrum.of(data, intercept=intercept, mean=mean, shape=shape), noise)
            for shape in shapes
        ]
        which = int(np.argmax([maximum.log_evidence for maximum in maxima]))
        best = maxima[which]
        return Choice.of_ratios(
            np.array([best.ratio]),
            np.array([which]),
            np.ones(1),
            noise if best.found == "undetermined" else KnownNoise(best.beta),
            (shapes, pinned),
            data,
            intercept=intercept,
            log_evidence=best.log_evidence,
            slope=best.slope,
            n_parameters=best.n_parameters,
            found=best.found,
            others=tuple(other.log_evidence for other in best.others),
        )


def _find_credible(spectrum: Spectrum, noise: Noise) -> Maximum:
    """The maximum, unless it is a perfect fit of no more rows than there are directions."""
    best = maximize(spectrum, noise)
    known, _, rate = noise.parameters
    if known or rate > 0.0 or spectrum.residual_df > spectrum.rank:
        return best
    for maximum in (best, *best.others):
        if maximum.found != "no noise":
            return maximum
    return _evaluate_at(spectrum, noise, spectrum.signal, "undetermined")
