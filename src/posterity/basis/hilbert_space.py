"""Gaussian-process regression with a few dozen columns."""

from __future__ import annotations

import heapq
import math
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import Array
from posterity.basis._domain import check_choice, check_count, check_positive
from posterity.basis._growth import GrowingDomain
from posterity.basis._kernels import (
    KERNELS,
    log_spectral_density,
    precisions,
    read_length_scale,
    read_length_scales,
)
from posterity.basis._marginal_likelihood import maximize_posterior
from posterity.kernel.values import is_word

# Largest l * w of the functions that are kept, by kernel. Beyond it lies less than 1 in 10,000 of a
# function's variance: P(|z| > 5), and P(|t| > 16), P(|t| > 32) with 5 and 3 degrees of freedom.
REACH = {"squared_exponential": 5.0, "matern52": 16.0, "matern32": 32.0}
# The same for the shortest length scale that "auto" offers; pi / 2 times the m of Riutort-Mayol,
# Bürkner, Andersen, Solin and Vehtari (2023), eq. 17-22. What is
# finer than that is left out, and the function a little smoother than the kernel says.
LEAST_REACH = {"squared_exponential": 2.75, "matern52": 4.16, "matern32": 5.37}
# Distance from the domain's end to where functions are zero, in length scales; three to four make
# the approximation good inside (ibid.).
MARGIN = {"squared_exponential": 3.2, "matern52": 4.1, "matern32": 4.5}
MOST_FUNCTIONS = 2000
CANDIDATES = 12


@dataclass(kw_only=True, eq=False, repr=False)
class HilbertSpaceGP(GrowingDomain):
    """Gaussian-process regression as a linear model (Solin and Särkkä 2020).

    On a box that holds the domain, a stationary Gaussian process is a sum of sines with
    independent coefficients, and the variance of each is the kernel's spectral density at its
    frequency. With m sines, n rows cost O(n m^2) instead of O(n^3), and rows may come in a stream.

    Parameters
    ----------
    kernel : {"squared_exponential", "matern52", "matern32"}, default "squared_exponential"
        Covariance of the function: infinitely smooth, twice or once differentiable.
    length_scale : "auto", "ard", float or (d,) array, default "auto"
        In the unit of the features. ``"auto"``: candidates for the evidence to choose among, 12
        between the shortest that the functions resolve and half the domain's length. ``"ard"``: one
        for each feature (automatic relevance determination), the most probable ones of an exact
        Gaussian process on 600 rows of the first batch; they stay as they are from then on.
    n_functions : int, optional
        Number of sines m. None: with a length scale that is given, as many as it needs (an
        error beyond 2,000); else 50 for one feature, 50 for each of several, 500 at most. The
        functions of lowest frequency are taken, relative to the length scale.
    boundary_factor : float or (d,) array, optional
        Half the box by half the domain, above 1. None: room for 3.2 length scales (4.1 and 4.5 for
        the Matérns) beyond each end where the length scale is given, at least 1.5; else 2.
    additive : bool, default False
        False: one function of all features together, for up to three or so. True: a sum of a
        function of each feature, for many.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. That
        grows with the rows that a model learns, except with another ``outside``.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: the function returns to its mean, and its uncertainty to that of the prior, on
        the way from the domain's end to that of the box; two more columns for each feature, which
        are 0 inside of the domain, stand for what is not known beyond either end. ``"clip"``: mean
        and uncertainty stay as they are at the domain's end.

    Attributes
    ----------
    domain_ : (d, 2) array
    length_scales_ : (L, d) array
        Candidates, or the one that was given.
    boundary_ : (d,) array
        Half the box's length.
    indices_ : (m, d) array of int
        Which sine of each feature a column is a product of; 0: none.

    Notes
    -----
    Columns are ``prod_i sin(pi j_i (x_i - middle_i + L_i) / (2 L_i))``, in [-1, 1], and the prior
    variance of their coefficients for a function of unit variance is ``S(w) / prod_i L_i`` with
    ``w_i = pi j_i / (2 L_i)`` (Solin and Särkkä 2020, eq. 56-60, with their 1 / sqrt(L) moved from
    the functions to the coefficients: so nothing depends on the unit of the features).

    Without an intercept, for the process has its own mean of zero. The coefficients are far from
    being on a par: use the basis as ``basis=`` of a model, which asks for ``prior_precisions()``,
    or pass them on as below.

    Examples
    --------
    A process with known variances, 4 of the function and 0.01 of the noise:

    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> x = np.linspace(0.0, 10.0, 500)[:, None]
    >>> y = 2.0 * np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=500)
    >>> basis = HilbertSpaceGP(length_scale=1.5).fit(x)
    >>> model = BayesianLinearRegression(
    ...     prior_precision=basis.prior_precisions()[0] / 4.0,
    ...     noise_precision=1.0 / 0.01,
    ...     fit_intercept=False,
    ... ).fit(basis.transform(x), y)
    >>> bool(np.abs(model.predict(basis.transform(x)) - 2.0 * np.sin(x[:, 0])).max() < 0.05)
    True
    """

    kernel: str = "squared_exponential"
    length_scale: str | ArrayLike = "auto"
    n_functions: int | None = None
    boundary_factor: ArrayLike | None = None
    additive: bool = False
    domain: ArrayLike | None = None
    outside: str = "extend"

    def prior_precisions(self, length_scales: ArrayLike | None = None) -> Array:
        """Prior precisions (L, m) of the coefficients of a function of unit variance.

        With ``"extend"`` (L, m + 2 d).

        Parameters
        ----------
        length_scales : (L,) or (L, d) array, optional
            In the unit of the features. None: ``length_scales_``.

        Returns
        -------
        (L, m) or (L, m + 2 d) array
            Divide by the variance of the function. Within a row no precision is more than 1e12
            times the smallest: such a coefficient is zero for all that data can say.

        Examples
        --------
        >>> basis = HilbertSpaceGP(n_functions=3, domain=(0.0, 1.0)).fit([[0.5]])
        >>> basis.prior_precisions([0.3]).round(2)
        array([[1.49, 2.07, 3.61, 1.  , 1.  ]])
        """
        scales = self.length_scales_
        if length_scales is not None:
            scales = read_length_scales(length_scales, len(self.domain_))
        involved = self.indices_ > 0
        # The variance's prod l_i / L_i, over the features that a column is made of.
        shares = np.log(scales / self.boundary_) @ involved.T
        squares = scales**2 @ self._compute_frequencies().T ** 2
        dimensions = 1 if self.additive else len(self.domain_)
        logs = log_spectral_density(self.kernel, squares, dimensions) + shares
        if self.outside == "extend":
            logs = np.hstack([logs, np.zeros((len(logs), 2 * len(self.domain_)))])
        return precisions(logs)

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        scale = read_length_scale(self.length_scale, X.shape[1])
        given = scale is not None
        if is_word(self.length_scale, "ard"):
            if self.additive:
                raise ValueError(
                    'length_scale is "ard", which does not work with additive=True: '
                    "give numbers, or additive=False"
                )
            scale = maximize_posterior(X, y, self.kernel).length_scales
        self._place(scale, given=given)

    def _place(self, scale: Array | None, *, given: bool) -> None:
        """Take the functions of the domain, for length scales (d,) if they are not candidates."""
        half = self._middle_and_half()[1]
        self.boundary_ = half * self._get_boundary_factors(scale, half)
        # Functions are ranked by l * w; for "auto" all candidates are the same share of the domain.
        shares = (half if scale is None else scale) / self.boundary_
        # Rounded, so that what ties in one unit of the features ties in every other.
        steps = np.array([float(f"{share:.12g}") for share in shares]) * (np.pi / 2.0)
        self.indices_ = self._find_lowest_indices(steps, known=given)
        if scale is None:
            reached = math.sqrt(float((self._compute_frequencies() ** 2 @ half**2).max()))
            shortest = min(LEAST_REACH[self.kernel] / reached, 0.25)
            self.length_scales_ = np.geomspace(shortest, 1.0, CANDIDATES)[:, None] * half
        else:
            self.length_scales_ = scale[None, :]

    def _over(self, domain: Array) -> Self:
        new, candidates = copy(self), is_word(self.length_scale, "auto")
        new.domain_ = domain
        given = not isinstance(self.length_scale, str)
        new._place(None if candidates else self.length_scales_[0], given=given)
        return new

    def _list_places(self, wider: Self) -> Array:
        """Also what is far away, which is known there and nowhere else."""
        far = np.tile(self._middle_and_half()[0], (2 * len(self.domain_), 1))
        middle, reach = wider._middle_and_half()[0], wider.boundary_
        far[np.arange(len(far)), np.arange(len(far)) // 2] = np.stack(
            [middle - reach, middle + reach], axis=1
        ).ravel()
        return np.concatenate([super()._list_places(wider), far])

    def _get_boundary_factors(self, scale: Array | None, half: Array) -> Array:
        if self.boundary_factor is not None:
            factors = check_positive("boundary_factor", self.boundary_factor, len(half))
            if (factors <= 1.0).any():
                raise ValueError(
                    f"boundary_factor is {self.boundary_factor!r}: the box must be larger than the "
                    "domain, as with 1.5"
                )
            return factors
        if scale is None:
            return np.full(len(half), 2.0)
        return np.maximum(1.5, 1.0 + MARGIN[self.kernel] * scale / half)

    def _find_lowest_indices(self, steps: Array, *, known: bool) -> NDArray[np.int64]:
        """Indices (m, d) of the functions of lowest frequency, which are multiples of ``steps``."""
        d = len(steps)
        reach = math.inf
        if self.n_functions is not None:
            most = check_count("n_functions", self.n_functions)
        elif known:
            most, reach = MOST_FUNCTIONS, REACH[self.kernel]
        else:
            most = min(50 * d, 500)
        if self.additive:
            found = _find_lowest_additive(steps, most + 1, reach)
        else:
            found = _find_lowest_products(steps, most + 1, reach)
        if known and self.n_functions is None and len(found) > most:
            raise ValueError(
                f"length_scale is {self.length_scale!r}, too short: this domain would need more "
                f"than {MOST_FUNCTIONS} columns; give a narrower domain, or n_functions="
            )
        return found[:most]

    def _compute_frequencies(self) -> Array:
        """Frequencies (m, d), in radians by the unit of the features."""
        return self.indices_ * (np.pi / (2.0 * self.boundary_))

    def _columns(self, X: Array) -> Array:
        if self.outside != "extend":
            return self._compute_sines(X)
        middle = self._middle_and_half()[0]
        inside = np.clip(X, middle - self.boundary_, middle + self.boundary_)
        return np.concatenate([self._compute_sines(inside), *self._compute_unknown(X)], axis=1)

    def _compute_unknown(self, X: Array) -> tuple[Array, Array]:
        """(n, d) share of what is not known below the domain, from 0 to 1, and above it.

        Sines end at the box. Their variance is gone there, and that of these is 1.
        """
        middle, half = self._middle_and_half()
        ways = (X - middle) / half
        room = self.boundary_ / half - 1.0
        shares = (np.clip((way - 1.0) / room, 0.0, 1.0) for way in (-ways, ways))
        below, above = (share**1.5 for share in shares)
        return below, above

    def _compute_sines(self, X: Array) -> Array:
        middle = self._middle_and_half()[0]
        # In [0, pi] on the box; functions of one feature only need one sine each.
        angles = (X - middle + self.boundary_) * (np.pi / (2.0 * self.boundary_))
        columns = np.ones((len(X), len(self.indices_)))
        for feature, indices in enumerate(self.indices_.T):
            if len(self.domain_) == 1:
                np.multiply.outer(angles[:, 0], indices, out=columns)
                return np.sin(columns, out=columns)
            numbers, place = np.unique(indices[indices > 0], return_inverse=True)
            sines = np.sin(np.multiply.outer(angles[:, feature], numbers))
            columns[:, indices > 0] *= sines[:, place]
        return columns

    def _column_names(self, inputs: list[str]) -> list[str]:
        beyond = [f"{name}_{way}" for way in ("below", "above") for name in inputs]
        beyond = beyond if self.outside == "extend" else []
        indices = self.indices_.tolist()
        if self.additive or len(inputs) == 1:
            return [f"{inputs[int(np.argmax(js))]}_gp{max(js)}" for js in indices] + beyond
        return ["gp_" + "_".join(map(str, js)) for js in indices] + beyond


def _find_lowest_products(steps: Array, most: int, reach: float) -> NDArray[np.int64]:
    """Products: indices (m, d) >= 1 of smallest ``sum_i (steps_i j_i)^2``, in that order.

    At most ``most`` of them, within ``reach`` (but always the first). A heap of the next
    candidates; from each index only later ones are raised, so that none is found twice.
    """
    d = len(steps)
    squares = [float(step) ** 2 for step in steps]
    found: list[tuple[int, ...]] = []
    heap: list[tuple[float, tuple[int, ...], int]] = [(sum(squares), (1,) * d, 0)]
    while heap and len(found) < most:
        size, indices, last = heapq.heappop(heap)
        if found and size > reach**2:
            break
        found.append(indices)
        for i in range(last, d):
            raised = (*indices[:i], indices[i] + 1, *indices[i + 1 :])
            heapq.heappush(heap, (size + squares[i] * (2 * indices[i] + 1), raised, i))
    return np.array(found, dtype=np.int64)


def _find_lowest_additive(steps: Array, most: int, reach: float) -> NDArray[np.int64]:
    """Functions of one feature each: the same with one index above zero, feature by feature."""
    d = len(steps)
    sizes = np.multiply.outer(steps, np.arange(1, most + 1))
    kept = np.zeros(sizes.shape, dtype=bool)
    kept.flat[np.argsort(sizes, axis=None, kind="stable")[:most]] = True
    kept &= (sizes <= reach) | (np.arange(1, most + 1) == 1)
    found: list[Any] = [(j + 1) * np.eye(d, dtype=np.int64)[f] for f, j in np.argwhere(kept)]
    return np.array(found, dtype=np.int64)
