"""Dependence of several targets: their one-step-ahead correlations and the log evidence thereof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, multigammaln

from posterity.distributions.joint_prediction import correlations_of
from posterity.evidence.correlation import compute_correlations
from posterity.noise import Noise

if TYPE_CHECKING:
    from posterity.posteriors.targets import TargetsPosterior

Array = NDArray[np.float64]

# Errors are clipped at this many standard deviations in correlations of predictive errors: after a
# row that fitted perfectly, the next may be off by any number of them.
MOST_SDS = 5.0


def accumulate_correlations(
    before: TargetsPosterior,
    steps: Array,
    weights: Array | None,
    left: Array,
    *,
    in_units: bool,
) -> Array:
    """(n, q, q) correlations before each row, Psi having grown by the rows before it.

    ``steps`` (n, q) are the roots of what each row adds for its weight: e e' / (1 + w h). Where
    targets learn priors of their own they are ``in_units`` of what was predicted, e / scale, and
    add to the correlations as they were, for as many rows as these rest on.
    """
    n, q = steps.shape
    shape, rate = before.noise.parameters[1:]
    weights = np.ones(n) if weights is None else weights
    count, products = before.factor.count, before.products()
    fixed = 2.0 * rate * np.eye(q)
    if in_units:
        products = max(before.residual_df + 2.0 * shape, 0.0) * correlations_of(products)
        largest = np.abs(steps).max(axis=1, keepdims=True, initial=MOST_SDS)
        with np.errstate(invalid="ignore"):
            steps = steps * (MOST_SDS / largest)
        fixed = np.zeros((q, q))
    products = products - fixed
    steps = np.where(np.isfinite(steps), steps, 0.0)
    each, counts = np.empty((n, q, q)), np.empty(n)
    for i in range(n):
        if i or before.n_observations:  # before the first row there is nothing to forget
            products, count = left[i] * products, left[i] * count
        each[i], counts[i] = products, count
        products = products + weights[i] * np.outer(steps[i], steps[i])
        count += weights[i]
    return compute_correlations(before.noise, counts - before.n_flat, each + fixed)


def log_dependence(noise: Noise, residual_df: float, products: Array) -> float:
    """Log evidence of all targets less the sum of each one's by itself.

    The integral of the inverse-Wishart over those of inverse-gammas, with Psi = D C D:
    Gamma_q(nu / 2) / Gamma(a)^q |C|^(-nu / 2) prod (Psi_jj / 2)^(-(q - 1) / 2), a half of
    nu - q + 1,
    over the same before any rows. A noise prior without a rate leaves out all that is before any
    rows, the product, and q - 1 of nu (:mod:`posterity.evidence.together`).
    """
    known_noise, shape, rate = noise.parameters
    after, q = shape + 0.5 * residual_df, len(products)
    if known_noise or after <= 0.0:
        return 0.0

    def constant(a: float) -> float:
        return float(multigammaln(a + 0.5 * (q - 1.0), q)) - q * float(gammaln(a))

    correlation = compute_correlations(noise, residual_df, products)
    half_nu = after + (0.5 * (q - 1.0) if rate > 0.0 else 0.0)
    value = constant(after) - half_nu * float(np.linalg.slogdet(correlation)[1])
    if shape > 0.0 and rate > 0.0:
        grown = np.log(np.diag(products) / (2.0 * rate)).sum()
        value -= constant(shape) + 0.5 * (q - 1.0) * float(grown)
    return value
