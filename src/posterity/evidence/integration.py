"""The evidence integrated over the ratio alpha / beta, the one dimension that has no formula.

With the noise learned, coefficients and noise are integrated by formula (normal-inverse-gamma), so
that the full integral over prior precision and noise that Bishop (2006, section 3.5) calls
intractable is a sum over a one-dimensional grid, O(p) a point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.evidence.choice import Choice
from posterity.evidence.columns import LARGEST, FeatureScales, compute_prior_shapes
from posterity.evidence.hyperprior import make_log_ratio_grid
from posterity.evidence.nodes import compute_gauss_nodes
from posterity.evidence.spectrum import Spectrum
from posterity.factor import Factor
from posterity.factor.usable import NOT_USABLE
from posterity.kernel import MOST_COLUMNS, MOST_NODES, choose_ratios, integrate_ratios
from posterity.noise import Noise

# Ratios, shapes and weights (K,); log evidence, disagreement and number of parameters.
_Nodes = tuple[Array, Indices, Array, float, float, float]

NEGLIGIBLE = 1e-12  # weights, against the largest
UNINFORMED_SHARE = 1e-3  # what the data know of a direction


@dataclass(frozen=True)
class Integrated:
    """Integrate the evidence over the scale of the prior: what "auto" does.

    The coefficients have the prior w_j ~ N(m_j, sigma^2 / (ratio s_j^2)), s_j^2 the mean square of
    feature j (about its mean, if there is an intercept), so that neither the units of the features
    nor that of the target matter. The posterior of the ratio, under a proper hyperprior (hyper-g:
    flat in the signal's variance where that is weak, nearly flat in its logarithm above), is
    compressed to a few nodes by Gaussian quadrature.

    Parameters
    ----------
    most_nodes
        Largest number of nodes, at least 1.
    tolerance
        Below this disagreement one node is enough: the variance of a combination of coefficients'
        mean over the posterior of the ratio, relative to its posterior variance, of the combination
        for which it is largest. In a stream, where observations are predicted and no coefficients
        read, it is the fitted values' mean, relative to the noise variance.

    Notes
    -----
    Maximising instead is too sure of itself on few rows: with five rows and one feature, 95%
    intervals of :class:`Maximized` cover about 84%, of BayesianRidge about 78%, of the nodes here
    about 95.3%, and they are narrower than under a flat prior. And it is too sure of weak effects,
    however many the rows: of single coefficients that were drawn with an sd of one standard error,
    95% intervals of :class:`Maximized` hold 41%, those of the nodes 96%.

    References
    ----------
    Liang, Paulo, Molina, Clyde and Berger (2008), "Mixtures of g priors for Bayesian variable
    selection", Journal of the American Statistical Association 103.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.noise import LearnedNoise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(8, 2))
    >>> data = Factor(3)
    >>> data.append(X, X @ [[1.0], [0.0]] + rng.normal(size=(8, 1)), intercept=True)
    >>> choice = Integrated().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(2))
    >>> choice.precisions.shape, choice.weights.sum().round(9)
    ((5, 2), np.float64(1.0))
    """

    most_nodes: int = 5
    tolerance: float = 0.01
    _compute_fitted_variance: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.most_nodes < 1:
            raise ValueError(f"most_nodes is {self.most_nodes}: it must be at least 1")
        if not self.tolerance >= 0.0:
            raise ValueError(f"tolerance is {self.tolerance}: it must not be negative")

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
        """Return nodes of the posterior of the ratio; parameters as in :class:`Strategy`.

        With ``shapes`` (L, m) it is integrated over shape and ratio together, shapes being equally
        probable before the data, and a node has a shape of its own.
        """
        if shapes is None and scales is None:
            if data.count == 0.0 and not data.triangle.any():
                return _choose_without_data(self, noise, bool(intercept), len(mean))  # type: ignore[arg-type]
            plain = self._integrate_in_kernel(data, noise, intercept, mean)
            if plain is not None:
                return plain
        return self._choose_by_spectrum(data, noise, intercept, mean, shapes, scales)

    def _choose_by_spectrum(
        self,
        data: Factor,
        noise: Noise,
        intercept: int,
        mean: Array,
        shapes: Array | None,
        scales: FeatureScales | None,
    ) -> Choice:
        """The same, of any number of features, by their singular values."""
        prior = compute_prior_shapes(data, shapes, scales, intercept=intercept)
        spectra = [Spectrum.of(data, intercept=intercept, mean=mean, shape=one) for one in prior[0]]
        ratios, which, weights, log_evidence, disagreement, n_parameters = (
            self._integrate_one_shape(spectra, noise) or self._integrate_shapes(spectra, noise)
        )
        return Choice.of_ratios(
            ratios,
            which,
            weights,
            noise,
            prior,
            data,
            intercept=intercept,
            log_evidence=log_evidence,
            disagreement=disagreement,
            n_parameters=n_parameters,
            found="integrated",
        )

    def _integrate_one_shape(self, spectra: list[Spectrum], noise: Noise) -> _Nodes | None:
        """Nodes in the kernel; None where there are several shapes, or the evidence is infinite."""
        one = spectra[0]
        if len(spectra) > 1 or not one.count > 0.0 or self.most_nodes > MOST_NODES:
            return None
        told = one.squares, one.projections, one.residual, one.residual_df, one.log_information
        chosen = integrate_ratios(*told, one.count, *self._ask(noise, one.squares))
        return chosen and (chosen[0], np.zeros(len(chosen[0]), dtype=np.intp), *chosen[1:])

    def _integrate_shapes(self, spectra: list[Spectrum], noise: Noise) -> _Nodes:
        """The same of any number of shapes, by their integrals."""
        parts = [_Integral.of(spectrum, noise) for spectrum in spectra]
        evidences = np.array([part.log_evidence for part in parts])
        infinite = ~np.isfinite(evidences)
        probabilities = infinite * 1.0 if infinite.any() else np.exp(evidences - evidences.max())
        probabilities /= probabilities.sum()
        disagreement = self._compute_disagreement(parts, probabilities)
        most = 1 if disagreement < self.tolerance else self.most_nodes
        ratios, weights, which = _join_nodes(parts, probabilities, most)
        log_evidence = float(np.logaddexp.reduce(evidences) - np.log(len(parts)))
        gamma = float(probabilities @ np.array([part.average.sum() for part in parts]))
        return ratios, which, weights, log_evidence, disagreement, gamma

    def _integrate_in_kernel(
        self, data: Factor, noise: Noise, intercept: int, mean: Array
    ) -> Choice | None:
        """The same in the kernel, of few features that all vary; None where that can't be."""
        m = len(mean)
        if not 1 <= m <= MOST_COLUMNS or self.most_nodes > MOST_NODES:
            return None
        rows = data.triangle, data.count, bool(intercept), np.ascontiguousarray(mean)
        chosen = choose_ratios(*rows, *self._ask(noise, data.determined[-m:]))
        if chosen is None:
            return None
        ratios, weights, log_evidence, disagreement, n_parameters, sizes = chosen
        return Choice(
            np.minimum(ratios[:, None] * sizes, LARGEST),
            weights,
            noise,
            np.zeros(m, dtype=bool),
            log_evidence,
            ratios,
            np.zeros(len(ratios), dtype=np.intp),
            disagreement=disagreement,
            n_parameters=n_parameters,
            found="integrated",
        )

    def _ask(self, noise: Noise, told: Array | Mask) -> tuple[Any, ...]:
        """What both are asked: the noise, the grid for directions that are told of, the nodes."""
        grid = make_log_ratio_grid(int(np.count_nonzero(told)))
        nodes = self.most_nodes, self.tolerance, self._compute_fitted_variance
        return noise.parameters, grid, *nodes

    @property
    def for_stream(self) -> Integrated:
        """The same for a stream: nodes as its predictions of observations need them."""
        return _IntegratedForObservations(self.most_nodes, self.tolerance)

    def for_sites(self, told: float, rows: float, n_features: int) -> Integrated:
        """The same for ``rows`` sites whose precisions add up to ``told``."""
        return self

    def _compute_disagreement(self, parts: list[_Integral], probabilities: Array) -> float:
        if self._compute_fitted_variance:
            return _compute_fitted_variance(parts, probabilities)
        return _compute_coefficient_variance(parts, probabilities)


@lru_cache(maxsize=64)
def _choose_without_data(
    strategy: Integrated, noise: Noise, intercept: bool, n_features: int
) -> Choice:
    """The choice before any data, which depends on nothing else; nobody writes into its arrays."""
    parts = Factor(n_features + intercept), noise, intercept, np.zeros(n_features)
    choice = strategy._choose_by_spectrum(*parts, None, None)
    for array in (choice.precisions, choice.weights, choice.pinned, choice.ratios, choice.shapes):
        array.setflags(write=False)
    return choice


class _IntegratedForObservations(Integrated):
    """Strategy of a stream's nodes, made from the other one when they are due, and never kept."""

    _compute_fitted_variance: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class _Integral:
    """The integral for one shape, on the points of the grid that carry weight.

    ``known`` (g, r) is the share of each direction that the data determine.
    """

    spectrum: Spectrum
    ratios: Array
    weights: Array
    known: Array
    log_evidence: float
    noise_variance: float

    @classmethod
    def of(
        cls,
        spectrum: Spectrum,
        noise: Noise,
        compute_log_evidence: Callable[[Array], Array] | None = None,
    ) -> _Integral:
        nodes, log_hyperprior = make_log_ratio_grid(int(np.count_nonzero(spectrum.squares)))
        ratios = np.exp(nodes) * spectrum.signal
        shares = spectrum.shares(ratios)
        if compute_log_evidence is None:
            values = spectrum.compute_log_evidence(shares, noise)
        else:
            values = compute_log_evidence(shares)
        log_weights = log_hyperprior + _make_finite(values, spectrum, shares)
        top = float(log_weights.max())
        if not np.isfinite(top):
            raise FloatingPointError(NOT_USABLE)
        weights = np.exp(log_weights - top)
        total = float(weights.sum())
        some = slice(*(np.flatnonzero(weights > NEGLIGIBLE)[[0, -1]] + [0, 1]))
        weights, shares = weights[some] / total, shares[some]
        with np.errstate(divide="ignore"):
            variance = float(weights @ (1.0 / spectrum.noise_precision(shares, noise)))
        log_evidence = top + np.log(total) if np.isfinite(values).all() else float(values.max())
        known = 1.0 - shares
        return cls(spectrum, ratios[some], weights, known, float(log_evidence), variance)

    @cached_property
    def average(self) -> Array:
        """(r,) posterior mean of the share of each direction that the data determine."""
        return self.weights @ self.known

    @cached_property
    def spread(self) -> Array:
        """(r,) posterior variance of the fitted values along each direction, over the ratio."""
        moved = np.maximum(self.weights @ np.square(self.known - self.average), 0.0)
        return np.asarray(moved * np.square(self.spectrum.projections))

    def nodes(self, most: int) -> tuple[Array, Array]:
        """Ratios and weights (k,) by Gaussian quadrature, k <= ``most``.

        What is predicted is made of terms d^2 / (d^2 + ratio), and so is its variance. With one
        singular value all of them are linear in middle / (middle + ratio), middle = d^2: two nodes
        are then exact, and with several a polynomial of low degree is near.
        """
        middle = self._compute_middle()
        of_data = middle / (middle + self.ratios)
        # The smaller of the share and what is left of it to 1: it has all its digits.
        if float(self.weights @ of_data) < 0.5:
            places, weights = compute_gauss_nodes(of_data, self.weights, most)
            return middle * (1.0 / places - 1.0), weights
        places, weights = compute_gauss_nodes(
            self.ratios / (middle + self.ratios), self.weights, most
        )
        return middle * places / (1.0 - places), weights

    def _compute_middle(self) -> float:
        """Return the geometric mean of the d^2 on which the posterior depends."""
        squares = self.spectrum.squares[self.average > UNINFORMED_SHARE]
        if not len(squares):
            return float(np.exp(self.weights @ np.log(self.ratios)))
        return float(np.exp(np.log(squares).sum() / len(squares)))


integral_of = _Integral.of


def _join_nodes(
    parts: list[_Integral], probabilities: Array, most: int
) -> tuple[Array, Array, Indices]:
    """Ratios, weights and shapes (K,) of the nodes, at most ``most`` where their number allows."""
    # The most probable shapes, at most one for each node; what nodes are left go by probability.
    kept = np.argsort(-probabilities, kind="stable")[:most]
    kept = kept[probabilities[kept] > 1e-3 * probabilities[kept[0]]]
    shares = probabilities[kept] / probabilities[kept].sum()
    each = np.maximum(np.round(shares * most), 1.0).astype(int)
    pieces = [parts[index].nodes(int(k)) for index, k in zip(kept, each, strict=True)]
    return (
        np.concatenate([ratios for ratios, _ in pieces]),
        np.concatenate([w * share for (_, w), share in zip(pieces, shares, strict=True)]),
        np.concatenate([np.full(len(w), k) for (_, w), k in zip(pieces, kept, strict=True)]),
    )


def _compute_coefficient_variance(parts: list[_Integral], probabilities: Array) -> float:
    """Variance of the mean over shapes and ratios, relative to the posterior variance.

    Of the linear combination of coefficients for which it is largest. Along singular direction i
    the mean moves by sd_i = sd(1 - f_i) |q_i| / d_i and the posterior sd is s_i = sigma sqrt(E(1 -
    f_i)) / d_i, so that a combination a moves by at most sum |a_i| sd_i, which is no more than
    sqrt(sum sd_i^2 / s_i^2) times its own sd, and as much for some (Cauchy and Schwarz). What
    shapes add is measured in the coordinates of the factor's rows.
    """
    noise_variance = _average_noise_variance(parts, probabilities)
    if np.isnan(noise_variance):  # not known yet
        return np.inf
    moved = 0.0
    for probability, part in zip(probabilities, parts, strict=True):
        moved += probability * _sum_quotients(part.spread, part.average)
    size = sum(
        probability * (np.square(part.spectrum.rotation) @ part.average)
        for probability, part in zip(probabilities, parts, strict=True)
    )
    moved += _sum_quotients(_compute_between_variance(parts, probabilities), np.asarray(size))
    return _sum_quotients(np.array([moved]), np.array([noise_variance]))


def _compute_fitted_variance(parts: list[_Integral], probabilities: Array) -> float:
    """Variance of the fitted values over shapes and ratios, a row, relative to the noise's."""
    noise_variance = _average_noise_variance(parts, probabilities)
    if np.isnan(noise_variance):  # every prediction is flat
        return np.inf
    moved = sum(
        probability * float(part.spread.sum())
        for probability, part in zip(probabilities, parts, strict=True)
    )
    moved += float(_compute_between_variance(parts, probabilities).sum())
    count = parts[0].spectrum.count
    return _sum_quotients(np.array([moved]), np.array([count * noise_variance]))


def _average_noise_variance(parts: list[_Integral], probabilities: Array) -> float:
    """Return the averaged noise variance; NaN before there is one."""
    return float(sum(p * part.noise_variance for p, part in zip(probabilities, parts, strict=True)))


def _compute_between_variance(parts: list[_Integral], probabilities: Array) -> Array:
    """Variance of the fitted values over shapes, in the coordinates of the factor's rows.

    Fitted values are U (1 - f) q there, whatever the shape.
    """
    fits = np.array(
        [part.spectrum.rotation @ (part.average * part.spectrum.projections) for part in parts]
    )
    return np.asarray(probabilities @ np.square(fits - probabilities @ fits))


def _sum_quotients(moved: Array, size: Array) -> float:
    """Sum of the quotients, nothing over nothing being nothing."""
    if not moved.any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(moved > 0.0, moved / size, 0.0).sum())


def _make_finite(values: Array, spectrum: Spectrum, shares: Array) -> Array:
    """Log evidence up to a constant that may be infinite: a target without any residual."""
    if np.isfinite(values).all():
        return values
    return 0.5 * spectrum.log_determinants(shares)
