"""What all joint distributions of coefficients answer, said once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._limits import checked_level
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.row_distribution import RowDistribution

Index = int | slice | Sequence[int] | np.ndarray


class JointDistribution:
    """Distribution of p coefficients; see :class:`MultivariateNormal` and its siblings."""

    names: tuple[str, ...] | None

    # ---- what families say of themselves ----

    def marginal(self, index: Index = slice(None)) -> RowDistribution:
        """Distribution of one or some coefficients, each by itself."""
        raise NotImplementedError

    def _project(self, X: FloatArray, shift: FloatArray) -> RowDistribution:
        raise NotImplementedError

    def _size(self) -> int:
        """Number p of coefficients."""
        raise NotImplementedError

    def _logpdf(self, w: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        raise NotImplementedError

    # ---- moments ----

    def std(self) -> FloatArray:
        """Standard deviation of each coefficient, shape (p,); infinite where nothing is known."""
        return self.marginal().std()

    def interval(self, level: float) -> FloatArray:
        """Central interval of each coefficient by itself.

        Parameters
        ----------
        level : float
            Probability that the interval holds the coefficient, between 0 and 1.

        Returns
        -------
        ndarray of shape (p, 2)
            Lower and upper ends; (-inf, inf) where nothing is known.

        Raises
        ------
        ValueError
            If ``level`` is not between 0 and 1.
        """
        return np.column_stack(self.marginal().interval(checked_level(level)))

    # ---- sums of coefficients ----

    def project(self, X: ArrayLike, shift: ArrayLike = 0.0) -> RowDistribution:
        """Distribution of ``X @ w + shift``, each row by itself.

        Parameters
        ----------
        X : array_like of shape (n, p)
            What each coefficient is multiplied by.
        shift : array_like of shape (n,), default 0
            Added to each row.

        Returns
        -------
        Normal, StudentT or Mixture, over n rows
            With an infinite scale where a row has part in a direction without information.

        Raises
        ------
        ValueError
            If X has another number of columns.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0.0], [0.0, 1.0]])
        >>> posterior.project([[1.0, 0.0], [1.0, 1.0]]).std().round(4)
        array([0.5  , 1.118])
        """
        X, p = as_floats(X), self._size()
        if X.ndim != 2 or X.shape[1] != p:
            raise ValueError(
                f"X has shape {X.shape}, but there are {p} coefficients; give (n, {p})"
            )
        return self._project(X, as_floats(shift))

    # ---- density and draws ----

    def logpdf(self, w: ArrayLike) -> FloatArray:
        """Joint log density at w.

        Directions without information count with Lebesgue density one: they add nothing.

        Parameters
        ----------
        w : array_like of shape (p,) or (n, p)
            Coefficients.

        Returns
        -------
        ndarray of shape (n,), or a scalar for one w

        Raises
        ------
        ValueError
            If w has another number of columns.
        """
        w = as_floats(w)
        p = self._size()
        if w.ndim == 0 or w.shape[-1] != p:
            raise ValueError(
                f"w has shape {w.shape}, but there are {p} coefficients; give ({p},) or (n, {p})"
            )
        return self._logpdf(w)

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Independent draws of all coefficients.

        Parameters
        ----------
        size : int or tuple of int, optional
            How many; default one, without a dimension of its own.
        random_state : int, numpy.random.Generator or None
            As :func:`numpy.random.default_rng` takes it.

        Returns
        -------
        ndarray of shape (p,) or (size, p)

        Raises
        ------
        ValueError
            If the posterior, or a component of positive weight, is improper: names the first
            coefficient without information.
        """
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        return self._draw(np.random.default_rng(random_state), shape)
