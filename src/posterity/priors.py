"""The prior of the coefficients: a Gaussian, as rows of a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.factor import Factor
from posterity.factor.usable import check_usable


@dataclass(frozen=True)
class GaussianPrior:
    """Coefficients ~ Normal(mean, precision^-1), the precision in units of the noise's.

    Parameters
    ----------
    mean
        Scalar or (m,), one for each feature.
    precision
        Scalar, (m,) diagonal or (m, m) symmetric positive semi-definite matrix; 0 is flat.
    intercept_mean, intercept_precision
        The same of the intercept, where there is one, independent of the coefficients.

    Notes
    -----
    A prior is m more rows, ``[root, root @ mean]`` with ``root' root = precision`` (Bishop 2006,
    eq. 3.50-3.51, read as rows), and one more for an intercept whose prior is not flat.

    Examples
    --------
    >>> prior = GaussianPrior(mean=1.0, precision=4.0)
    >>> factor = prior.factor(2, intercept=True)
    >>> factor.coefficients().ravel().tolist(), factor.rank, factor.count
    ([0.0, 1.0, 1.0], 2, 0.0)
    """

    mean: ArrayLike = 0.0
    precision: ArrayLike = 1.0
    intercept_mean: float = 0.0
    intercept_precision: float = 0.0

    def factor(self, n_features: int, *, intercept: bool, unit: float = 1.0) -> Factor:
        """The prior over an optional intercept and ``n_features`` coefficients, as a factor.

        ``unit`` multiplies the precision. Raises ``ValueError`` for a mean or precision that is
        not finite, has the wrong shape, or is negative.
        """
        mean = self.means(n_features)
        root = self._root(n_features) * math.sqrt(unit)
        offset = 1 if intercept else 0
        factor = Factor(n_features + offset)
        if root.ndim == 1:  # a triangle as it stands
            np.einsum("ii->i", factor.root)[offset:] = root
            factor.moments[offset:, 0] = root * mean
        else:
            rows = np.zeros((len(root), offset + n_features))
            rows[:, offset:] = root
            factor.append(rows, (root @ mean)[:, None])
        if intercept:  # its row has nothing to do with the others
            factor.root[0, 0] = self._intercept_root() * math.sqrt(unit)
            factor.moments[0, 0] = factor.root[0, 0] * self.intercept_mean
        check_usable(factor.triangle)
        # By construction the prior fits itself: what rounding left of its residual is not data.
        factor.residual_root[...] = 0.0
        factor.reset_counts()
        return factor

    def means(self, n_features: int) -> Array:
        """(m,) prior mean of each coefficient. Raises ``ValueError`` as :meth:`factor`."""
        mean = _read("prior_mean", self.mean)
        if mean.ndim > 1 or (mean.ndim == 1 and len(mean) != n_features):
            raise ValueError(
                f"prior_mean has shape {mean.shape}: expected a number or one for each of "
                f"{n_features} features"
            )
        if not np.isfinite(mean).all():
            raise ValueError("prior_mean is not finite: give every feature a number")
        return mean if mean.ndim else np.full(n_features, mean)

    def _intercept_root(self) -> float:
        if not math.isfinite(self.intercept_mean + self.intercept_precision):
            raise ValueError("the prior of the intercept is not finite: give finite numbers")
        if self.intercept_precision < 0.0:
            raise ValueError("the intercept's prior precision is negative: use 0 for a flat prior")
        return math.sqrt(self.intercept_precision)

    def _root(self, n_features: int) -> Array:
        """Rows W with W'W = precision; of a diagonal one the diagonal."""
        precision = _read("prior_precision", self.precision)
        if precision.ndim > 2 or any(size != n_features for size in precision.shape):
            raise ValueError(
                f"prior_precision has shape {precision.shape}: expected a number, ({n_features},) "
                f"or ({n_features}, {n_features})"
            )
        if not np.isfinite(precision).all():
            raise ValueError(
                "prior_precision is not finite: give 0.0 for a flat prior, and large numbers for "
                "strong ones"
            )
        if precision.ndim == 2:
            return _compute_symmetric_root(precision)
        if (precision < 0.0).any():
            raise ValueError("prior_precision is negative: use 0 for a flat prior")
        return np.sqrt(precision if precision.ndim else np.full(n_features, precision))


def _read(name: str, values: ArrayLike) -> Array:
    """``values`` as an array; raises what NumPy does, with what is wanted."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wanted = "it must be a number, or a number for each feature"
        raise type(error)(f"{name} is {values!r}: {wanted}") from error


def _compute_symmetric_root(precision: Array) -> Array:
    """A root of a positive semi-definite matrix: rows W with W'W = precision."""
    if not np.allclose(precision, precision.T, rtol=1e-10, atol=0.0):
        raise ValueError("prior_precision is not symmetric: pass (P + P.T) / 2")
    try:
        return np.asarray(np.linalg.cholesky(precision).T, dtype=np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(precision)
        smallest = -len(values) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
        if (values < smallest).any():
            raise ValueError(
                f"prior_precision has the negative eigenvalue {values.min():.3g}: it must be "
                "positive semi-definite"
            ) from None
        return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
