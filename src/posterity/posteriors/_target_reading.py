"""What is read of several targets that came together, from the one triangle of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy.special import gammaln, multigammaln

from posterity.aliases import Array
from posterity.distributions import JointPrediction, Normal, StudentT
from posterity.distributions.joint_prediction import correlations_of
from posterity.evidence.correlation import compute_correlations
from posterity.noise import Distribution, Joint, Noise
from posterity.posteriors.gaussian import LinearPosterior

# Errors are clipped at this many standard deviations in correlations of predictive errors: after a
# row that fitted perfectly, the next may be off by any number of them.
MOST_SDS = 5.0


@dataclass(frozen=True)
class JointReading:
    """What ``wide``, which has learned the rows of all targets, says of them together."""

    wide: LinearPosterior

    @cached_property
    def each(self) -> list[LinearPosterior]:
        """Posteriors for reading, of each target by itself."""
        return self.separate()

    def separate(self, *, stream: bool = False) -> list[LinearPosterior]:
        """The same; of a ``stream`` those that predict the next row."""
        wide = self.wide.fix_prior_choice(stream=stream)
        return [wide.of_target(target) for target in range(self.wide.factor.n_targets)]

    @property
    def residual_df(self) -> float:
        """Residual degrees of freedom: the number of rows less the flat directions."""
        return self.wide.factor.count - self.wide.n_flat

    def predictive(self, X: Array, names: tuple[str, ...] | None) -> JointPrediction:
        """Joint distribution of the targets of new observations at the rows of ``X``."""
        wide = self.wide
        if wide.learns_prior:
            marginals = stack_targets([one.predictive(X) for one in self.each])
        else:
            mean, leverage = wide.factor.predict(X, intercept=wide.intercept)
            leverage = np.repeat(leverage[:, None], wide.factor.n_targets, axis=1)
            residual = np.diag(wide.factor.residual()).copy()
            marginals = wide.noise.predictive(mean, leverage, self.residual_df, residual)
        make = partial(JointReading.correlation, JointReading(wide.copy()))
        return JointPrediction(marginals, make, names=names)

    def coefficients(self) -> Array:
        """(p, q) means of [intercept, coefficients]."""
        if self.wide.learns_prior:
            return np.column_stack([one.coefficients() for one in self.each])
        return self.wide.factor.coefficients()

    def joints(self, names: tuple[str, ...]) -> list[Joint]:
        """Joint distributions of [intercept, coefficients] of each target."""
        return [one.joint(names) for one in self.each]

    def products(self) -> Array:
        """Psi (q, q): sums of squares and products of residuals and penalties, of prior too."""
        if self.wide.learns_prior:
            rows = self._compute_penalized_residuals()
            products = rows.T @ rows
        else:
            products = self.wide.factor.residual()
        return products + 2.0 * self.wide.noise.parameters[2] * np.eye(len(products))

    def correlation(self) -> Array:
        """(q, q) correlations of the targets given the features."""
        return np.asarray(compute_correlations(self.wide.noise, self.residual_df, self.products()))

    def _compute_penalized_residuals(self) -> Array:
        """(r, q) rows whose products are Psi, each target's from its own solution."""
        factor, offset = self.wide.factor, int(self.wide.intercept)
        coefficients = self.coefficients()
        off = coefficients[offset:] - self.wide.belief.means(len(coefficients) - offset)[:, None]
        precision = np.stack([np.asarray(one.prior_precision) for one in self.each]).T
        return np.vstack(
            [
                factor.residual_root,
                factor.moments - factor.root @ coefficients,
                np.sqrt(precision * self.wide.noise.prior_unit) * off,
            ]
        )

    @property
    def log_evidence(self) -> float:
        """The log evidence log p(y): the sum over targets, and the gain from their dependence."""
        if not self.wide.memory.has_evidence:
            raise AttributeError(
                "log_evidence_ of several targets is not available under this way to forget: "
                "sum the logpdf of what predict_then_learn returns"
            )
        alone = sum(one.log_evidence for one in self.each)
        return alone + log_dependence(self.wide.noise, self.residual_df, self.products())

    def accumulate_correlations(self, steps: Array, weights: Array | None, left: Array) -> Array:
        """(n, q, q) correlations before each row, Psi having grown by the rows before it.

        ``steps`` (n, q) are the roots of what each row adds for its weight: e e' / (1 + w h). Where
        targets learn priors of their own they are in units of what was predicted, e / scale, and
        add to the correlations as they were, for as many rows as these rest on.
        """
        n, q = steps.shape
        noise, count, products = self.wide.noise, self.wide.factor.count, self.products()
        shape, rate = noise.parameters[1:]
        weights = np.ones(n) if weights is None else weights
        fixed = 2.0 * rate * np.eye(q)
        if self.wide.learns_prior:
            products = max(self.residual_df + 2.0 * shape, 0.0) * correlations_of(products)
            largest = np.abs(steps).max(axis=1, keepdims=True, initial=MOST_SDS)
            with np.errstate(invalid="ignore"):
                steps = steps * (MOST_SDS / largest)
            fixed = np.zeros((q, q))
        products = products - fixed
        steps = np.where(np.isfinite(steps), steps, 0.0)
        each, counts = np.empty((n, q, q)), np.empty(n)
        for i in range(n):
            if i or self.wide.n_observations:  # before the first row there is nothing to forget
                products, count = left[i] * products, left[i] * count
            each[i], counts[i] = products, count
            products = products + weights[i] * np.outer(steps[i], steps[i])
            count += weights[i]
        return compute_correlations(noise, counts - self.wide.n_flat, each + fixed)


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


def stack_targets(predictions: Sequence[Any]) -> Distribution:
    """Predictions (n,) of each target as one (n, q); Normal among Student-t has infinite df."""
    loc = np.column_stack([one.loc for one in predictions])
    scale = np.column_stack([np.broadcast_to(one.scale, one.loc.shape) for one in predictions])
    df = [np.broadcast_to(getattr(one, "df", np.inf), one.loc.shape) for one in predictions]
    if np.isinf(df).all():
        return Normal(loc, scale)
    return StudentT(np.column_stack(df), loc, scale)


__all__ = ["JointReading", "stack_targets"]
