"""One prior precision for all of several targets, by their joint evidence.

Relative to the noise of each, all coefficients have one scale. With f_i the shares of the spectrum
and q_ij the projections of target j (:mod:`posterity.evidence.spectrum`), sums of squares and
products are Psi(ratio) = S'S + sum_i f_i q_i q_i' + 2 rate I. The evidence is that of each target
by itself, times that of their correlations: |C(ratio)|^(-nu / 2), nu = n - d + 2 shape + q - 1. Of
a noise prior without a rate q - 1 is left out: it is there for the sake of the marginals, and with
no rate beside it to say how large the noise is, it would say that all of it is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from posterity.aliases import Array
from posterity.evidence.choice import Choice
from posterity.evidence.columns import FeatureScales, compute_precisions, compute_prior_shapes
from posterity.evidence.correlation import compute_correlations
from posterity.evidence.integration import Integrated, integral_of
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.factor.targets import of_target
from posterity.noise import Noise


@dataclass(frozen=True)
class SharedScale(Integrated):
    """Strategy as :class:`Integrated`, with one scale of the prior for all targets of y (n, q).

    Better than a scale for each where the features explain about as much of every target, and rows
    are few. Of a single target it is :class:`Integrated`.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(12, 3))
    >>> y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(12, 2))
    >>> model = BayesianLinearRegression(prior_precision=SharedScale()).fit(X, y)
    >>> bool(np.allclose(model.prior_precision_[0], model.prior_precision_[1]))
    True
    """

    def fix_prior_choice(
        self,
        data: Factor,
        noise: Noise,
        *,
        intercept: int,
        mean: Array,
        shapes: Array | None = None,
        scales: FeatureScales | None = None,
    ) -> FixedRatios:
        """The strategy of each target: ratios and weights that all of them have chosen.

        ``data`` is the factor of all targets; other parameters as in :class:`Strategy`.
        """
        shapes, _ = compute_prior_shapes(data, shapes, scales, intercept=intercept)
        if len(shapes) > 1:
            raise ValueError(
                "SharedScale does not choose length scales: give the basis a length_scale"
            )
        spectra = [
            Spectrum.of(of_target(data, j), intercept=intercept, mean=mean, shape=shapes[0])
            for j in range(data.n_targets)
        ]
        residual = data.residual()

        def log_evidence(shares: Array) -> Array:
            alone = sum(spectrum.compute_log_evidence(shares, noise) for spectrum in spectra)
            return alone + _compute_correlation_evidence(shares, spectra, residual, noise)

        integral = integral_of(spectra[0], noise, log_evidence)
        ratios, weights = integral.nodes(self.most_nodes)
        return FixedRatios(tuple(ratios.tolist()), tuple(weights.tolist()))


@dataclass(frozen=True)
class FixedRatios:
    """Strategy of given ratios with their weights: it chooses nothing."""

    ratios: tuple[float, ...]
    weights: tuple[float, ...]

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
        """Return the ratios, whatever the data; parameters as in :class:`Strategy`."""
        shapes, pinned = compute_prior_shapes(data, shapes, scales, intercept=intercept)
        ratios, weights = np.array(self.ratios), np.array(self.weights)
        precisions = compute_precisions(ratios, shapes[:1], pinned, data, intercept=intercept)
        spectrum = Spectrum.of(data, intercept=intercept, mean=mean, shape=shapes[0])
        values = spectrum.log_evidence(ratios, noise)
        return Choice(
            precisions,
            weights,
            noise,
            pinned,
            float(weights @ values) if np.isfinite(values).all() else float(values.max()),
            ratios,
            np.zeros(len(ratios), dtype=np.intp),
            n_parameters=float(weights @ spectrum.n_parameters(ratios)),
            found="settled",
        )


def _compute_correlation_evidence(
    shares: Array, spectra: Sequence[Spectrum], residual: Array, noise: Noise
) -> Array:
    """(g,) what the correlations of the targets add to the evidence, for (g, r) shares."""
    q, (known_noise, shape, rate) = len(spectra), noise.parameters
    residual_df = spectra[0].residual_df
    if known_noise or residual_df + 2.0 * shape <= 0.0:
        return np.zeros(len(shares))
    projections = np.column_stack([spectrum.projections for spectrum in spectra])
    penalties = np.einsum("gi,ij,ik->gjk", shares, projections, projections, optimize=True)
    products = penalties + residual + 2.0 * rate * np.eye(q)
    correlation = compute_correlations(noise, residual_df, products)
    nu = residual_df + 2.0 * shape + (q - 1.0 if rate > 0.0 else 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-0.5 * nu * np.linalg.slogdet(correlation)[1])


__all__ = ["FixedRatios", "SharedScale"]
