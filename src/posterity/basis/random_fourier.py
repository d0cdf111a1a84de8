"""Gaussian-process regression with random waves."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtri, stdtrit
from sklearn.utils import check_random_state

from posterity.aliases import Array
from posterity.basis._domain import check_choice, check_count
from posterity.basis._growth import GrowingDomain
from posterity.basis._kernels import (
    KERNELS,
    SMOOTHNESS,
    log_spectral_density,
    precisions,
    read_length_scale,
    read_length_scales,
)
from posterity.basis._marginal_likelihood import maximize_posterior
from posterity.kernel.values import is_word

CANDIDATES = 12
# Length scales that frequencies are drawn for besides, by the one that they serve: they reach where
# its own draws are few, and their weights are small. With more features most would be wasted there.
LENGTH_SCALE_FACTORS = (1.0, 0.5, 0.25)


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFourier(GrowingDomain):
    """Gaussian-process regression as a linear model, with random waves (Rahimi and Recht 2007).

    A stationary Gaussian process is, in the mean over random frequencies, a sum of cosines and
    sines with independent coefficients. The error falls as one by the root of their number,
    whatever the number of features; for one or two, HilbertSpaceGP needs far fewer columns.

    Parameters
    ----------
    n_functions : int, optional
        Number of columns m, even: a cosine and a sine for each frequency. None: 200; with "ard"
        1,000, or four for each row of the first batch where these are fewer, but not below 200.
    kernel : {"squared_exponential", "matern52", "matern32"}, default "squared_exponential"
    length_scale : "auto", "ard", float or (d,) array, default "auto"
        In the unit of the features. ``"auto"``: candidates for the evidence to choose among, 12
        from a tenth of the domain's half length to all of it; frequencies are then drawn for all
        of them at once, which costs some of the accuracy for each. ``"ard"``: one for each feature
        (automatic relevance determination), the most probable ones of an exact Gaussian process on
        600 rows of the first batch, or all of it; they stay as they are from then on.
    random_state : int, RandomState or None, default 0
        The seed is fixed so that models fitted apart have the same columns and can be merged.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. That
        grows with the rows that a model learns, except with another ``outside``. It sets the
        candidates, and where waves are counted from.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: as the process does, the function goes back to its prior, mean and variance,
        within a few length scales.

    Attributes
    ----------
    domain_ : (d, 2) array
    length_scales_ : (L, d) array
        Candidates, or the one that was given.
    frequencies_ : (m / 2, d) array
        In radians by the unit of the features.
    amplitudes_ : (m / 2,) array
        What the waves are multiplied by.

    Notes
    -----
    scikit-learn's RBFSampler has one cosine of random phase for a frequency. A cosine and a sine
    make the variance of the function the same everywhere, and the error smaller (Sutherland and
    Schneider 2015). Two things make it smaller again. Draws are stratified: one in each of m / 2
    slices of equal probability (McKay, Beckman and Conover 1979). And in one or two dimensions they
    come from a mixture that reaches further than the kernel's spectral density, each weighted by
    one over the other: importance sampling (Owen and Zhou 2000). With a length scale that is given
    the weights are in the amplitudes, and the coefficients' prior is the same for all. With
    candidates the mixture is of all of them, and the weights are in ``prior_precisions()``: use the
    basis as ``basis=`` of a model, which asks for them, or pass them on.

    Examples
    --------
    >>> import numpy as np
    >>> basis = RandomFourier(length_scale=2.0).fit(np.zeros((1, 3)))
    >>> columns = basis.transform([[0.0, 1.0, 2.0], [0.5, 1.0, 2.0]])
    >>> (columns @ columns.T).round(2)  # the kernel: exp(-0.5^2 / 2 / 2.0^2) is 0.97
    array([[1.  , 0.97],
           [0.97, 1.  ]])
    """

    n_functions: int | None = None
    kernel: str = "squared_exponential"
    length_scale: str | ArrayLike = "auto"
    random_state: int | RandomState | None = 0
    domain: ArrayLike | None = None
    outside: str = "extend"

    def prior_precisions(self, length_scales: ArrayLike | None = None) -> Array:
        """Prior precisions (L, m) of the coefficients of a function of unit variance.

        Parameters
        ----------
        length_scales : (L,) or (L, d) array, optional
            In the unit of the features. None: ``length_scales_``.

        Returns
        -------
        (L, m) array
            Divide by the variance of the function. Within a row no precision is more than 1e12
            times the smallest.

        Raises
        ------
        ValueError
            If a length scale is not between the smallest and the largest of ``length_scales_``:
            no frequencies were drawn for it.

        Examples
        --------
        >>> RandomFourier(n_functions=4, length_scale=1.0).fit([[0.0]]).prior_precisions()
        array([[1., 1., 1., 1.]])
        """
        scales = self.length_scales_
        if length_scales is not None:
            scales = read_length_scales(length_scales, len(self.domain_))
            self._refuse_undrawn(scales)
        logs = self._log_variances(scales) - 2.0 * np.log(self.amplitudes_)
        return np.repeat(precisions(logs), 2, axis=1)

    def _needs_range(self) -> bool:
        return isinstance(self.length_scale, str)

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        learns = is_word(self.length_scale, "ard")
        count = 200 if self.n_functions is None else self.n_functions
        if learns and self.n_functions is None:
            count = choose_n_waves(len(X))
        count = check_count("n_functions", count, least=2)
        if count % 2:
            raise ValueError(
                f"n_functions is {count}: it must be even, because cosines and sines come in pairs"
            )
        scale = read_length_scale(self.length_scale, X.shape[1])
        if learns:
            scale = maximize_posterior(X, y, self.kernel).length_scales
        self._place(scale, count)

    def _over(self, domain: Array) -> Self:
        new = copy(self)
        new.domain_ = domain
        new._place(None, 2 * len(self.frequencies_))
        return new

    @property
    def _grows(self) -> bool:
        return super()._grows and is_word(self.length_scale, "auto")

    def _place(self, scale: Array | None, count: int) -> None:
        """Draw so many waves for the domain, and length scales (d,) if they are not candidates."""
        if scale is None:
            half = self._middle_and_half()[1]
            self.length_scales_ = np.geomspace(0.1, 1.0, CANDIDATES)[:, None] * half
        else:
            self.length_scales_ = scale[None, :]
        shortest, d = self.length_scales_[0], len(self.domain_)
        broader = [factor * shortest for factor in LENGTH_SCALE_FACTORS[1 : max(1, 4 - d)]]
        self._drawn_for = np.concatenate([self.length_scales_, *(one[None] for one in broader)])
        self._drawn_for = self._drawn_for[: count // 2]
        self.frequencies_ = self._draw(count // 2, check_random_state(self.random_state))
        self.amplitudes_ = np.full(count // 2, math.sqrt(2.0 / count))
        if scale is not None:
            # No amplitude is below 1e-6 of the largest, as no precision is above 1e12 times.
            weights = 1.0 / precisions(self._log_variances(self.length_scales_))[0]
            self.amplitudes_ = np.sqrt(weights)

    def _draw(self, count: int, random: RandomState) -> Array:
        """Frequencies (count, d): equally many for each length scale, or nearly."""
        frequencies = np.empty((count, len(self.domain_)))
        for index, scale in enumerate(self._drawn_for):
            mine = slice(index, None, len(self._drawn_for))
            frequencies[mine] = (
                self._draw_standard_frequencies(len(frequencies[mine]), random) / scale
            )
        return frequencies

    def _draw_standard_frequencies(self, count: int, random: RandomState) -> Array:
        """Draws (count, d) from the spectral density of length scale 1, stratified."""
        d, nu = len(self.domain_), SMOOTHNESS[self.kernel]
        slices = np.argsort(random.uniform(size=(count, d)), axis=0)
        # Not 0, where the quantile is infinite.
        shares = np.maximum((slices + random.uniform(size=(count, d))) / count, 1e-12)
        if math.isinf(nu):
            return ndtri(shares)
        if d == 1:
            return stdtrit(2.0 * nu, shares)
        # Student-t with 2 nu degrees of freedom: normal, by the root of a mean chi square.
        squares = random.chisquare(2.0 * nu, size=(count, 1)) / (2.0 * nu)
        return ndtri(shares) / np.sqrt(squares)

    def _log_variances(self, scales: Array) -> Array:
        """Log prior variances (L, m / 2) of waves of amplitude 1; they sum to 1."""
        logs = self._log_densities(scales) - logsumexp(self._log_densities(self._drawn_for), axis=0)
        return logs - logsumexp(logs, axis=1, keepdims=True)

    def _log_densities(self, scales: Array) -> Array:
        """Log densities (L, m / 2) of the frequencies, up to a constant."""
        squares = scales**2 @ self.frequencies_.T**2
        density = log_spectral_density(self.kernel, squares, len(self.domain_))
        return density + np.log(scales).sum(axis=1, keepdims=True)

    def _refuse_undrawn(self, scales: Array) -> None:
        low, high = self.length_scales_.min(axis=0), self.length_scales_.max(axis=0)
        bad = np.argwhere((scales < low * (1.0 - 1e-9)) | (scales > high * (1.0 + 1e-9)))
        if len(bad):
            row, feature = (int(index) for index in bad[0])
            raise ValueError(
                f"length scale {scales[row, feature]:g} of feature {self._label(feature)} is not "
                f"between {low[feature]:g} and {high[feature]:g}, the range of the frequencies: "
                "fit with length_scale='auto' or with this one"
            )

    def _columns(self, X: Array) -> Array:
        # Counted from the domain's middle: large values lose no digits to many turns.
        angles = (X - self._middle_and_half()[0]) @ self.frequencies_.T
        columns = np.empty((len(X), 2 * len(self.frequencies_)))
        np.cos(angles, out=columns[:, 0::2])
        np.sin(angles, out=columns[:, 1::2])
        columns *= np.repeat(self.amplitudes_, 2)
        return columns

    def _column_names(self, inputs: list[str]) -> list[str]:
        waves = range(len(self.frequencies_))
        return [f"random_{wave}{k}" for k in waves for wave in ("cos", "sin")]


def choose_n_waves(n_rows: int) -> int:
    """Number of columns for scales that are learned: few rows have no use for many."""
    return min(1000, max(200, 4 * n_rows))
