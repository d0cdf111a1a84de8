"""Mixtures of joint distributions of coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from posterity.distributions._mixture_weights import check_weights
from posterity.distributions._rows import FloatArray
from posterity.distributions.joint_distribution import Index, JointDistribution
from posterity.distributions.mixture import Mixture
from posterity.distributions.multivariate import MultivariateNormal, MultivariateT


class MultivariateMixture(JointDistribution):
    """Mixture of joint distributions of the same coefficients, as of several models.

    Parameters
    ----------
    components : sequence of MultivariateNormal or MultivariateT
        K of them, of the same p coefficients.
    weights : array_like of shape (K,)
        Probabilities, to sum to 1. A component of weight 0 never counts.

    Attributes
    ----------
    names : tuple of str or None
        Names of the coefficients: the first component's.

    Raises
    ------
    TypeError
        If a component is neither MultivariateNormal nor MultivariateT.
    ValueError
        If there are no components, if they have different coefficients, or if weights are negative
        or do not sum to 1.

    Examples
    --------
    >>> from posterity.distributions import MultivariateMixture, MultivariateNormal
    >>> root = [[2.0, 1.0], [0.0, 4.0]]
    >>> before = MultivariateNormal([1.0, 2.0], root, scale=0.5)
    >>> after = MultivariateNormal([3.0, 2.0], root, scale=0.5)
    >>> posterior = MultivariateMixture([before, after], [0.25, 0.75])
    >>> posterior.mean
    array([2.5, 2. ])
    >>> posterior.std().round(4)
    array([0.9036, 0.125 ])
    >>> posterior.interval(0.9).round(3)
    array([[0.783, 3.387],
           [1.794, 2.206]])
    >>> posterior.rvs(3, random_state=0).shape
    (3, 2)
    """

    def __init__(
        self, components: Sequence[MultivariateNormal | MultivariateT], weights: ArrayLike
    ) -> None:
        self.components = tuple(components)
        for k, component in enumerate(self.components):
            if not isinstance(component, MultivariateNormal | MultivariateT):
                raise TypeError(
                    f"component {k} is a {type(component).__name__}; "
                    "give MultivariateNormal or MultivariateT"
                )
        if not self.components:
            raise ValueError(
                "there are no components; give at least one MultivariateNormal or MultivariateT"
            )
        self.weights: FloatArray = np.array(check_weights(weights, len(self.components)))
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights have shape {self.weights.shape}; give ({len(self.components)},)"
            )
        first = self.components[0]
        for k, component in enumerate(self.components):
            if component.mean.size != first.mean.size or component.names != first.names:
                raise ValueError(
                    f"component {k} has other coefficients ({_describe_rest(component)}) than "
                    f"component 0 ({_describe_rest(first)}); give all components the same"
                )
        self.names = first.names

    @classmethod
    def of(cls, parts: Sequence[JointDistribution], weights: ArrayLike) -> Self:
        """Mixture of joint distributions by weights (K,); one that is a mixture is opened.

        Examples
        --------
        >>> from posterity.distributions import MultivariateMixture, MultivariateNormal
        >>> one = MultivariateNormal([1.0, 2.0], [[2.0, 1.0], [0.0, 4.0]])
        >>> half = MultivariateMixture([one, one], [0.5, 0.5])
        >>> MultivariateMixture.of([half, one], [0.5, 0.5]).weights
        array([0.25, 0.25, 0.5 ])
        """
        components: list[Any] = []
        opened: list[float] = []
        for part, weight in zip(parts, np.asarray(weights, dtype=float).tolist(), strict=True):
            if isinstance(part, MultivariateMixture):
                components += part.components
                opened += (weight * part.weights).tolist()
            else:
                components.append(part)
                opened.append(weight)
        return cls(components, opened)

    def without_knowledge(self, places: NDArray[np.bool_]) -> MultivariateMixture:
        """The same of the other coefficients; of those at ``places`` (p,) nothing is known."""
        parts = [one.without_knowledge(places) for one in self.components]
        return MultivariateMixture(parts, self.weights)

    def _describe_rest(self) -> str:
        return f"{len(self.components)} components"

    def marginal(self, index: Index | str = slice(None)) -> Mixture:
        """Marginal distributions of one or some coefficients.

        Parameters
        ----------
        index : int, slice, array or name, default all
            Which coefficients.

        Returns
        -------
        Mixture
        """
        return Mixture([c.marginal(index) for c in self.components], self.weights)

    @cached_property
    def _stacked(self) -> tuple[FloatArray, ...] | None:
        """Degrees of freedom (K,), means (K, p) and inverse roots (K, p, p) with their scales.

        None where a component does not know a direction, or the noise.
        """
        roots = np.stack([one.precision_root for one in self.components])
        scales = np.array([one.scale for one in self.components])
        if (
            any(one._noise_unknown() for one in self.components)
            or not np.diagonal(roots, axis1=1, axis2=2).all()
        ):
            return None
        df = [getattr(one, "df", math.inf) for one in self.components]
        means = np.stack([one.mean for one in self.components])
        return np.array(df), means, np.linalg.inv(roots) * scales[:, None, None]

    def _tabulate(self, X: FloatArray, shift: FloatArray) -> FloatArray:
        if self._stacked is None:
            tables = [one._tabulate(X, shift) for one in self.components]
            table = np.concatenate(tables, axis=1)
            table[0] = self.weights[:, None]
            return table
        df, means, roots = self._stacked
        scales = np.sqrt(np.square(X @ roots).sum(axis=2))
        parts = self.weights[:, None], df[:, None], means @ X.T + shift, scales
        return np.stack(np.broadcast_arrays(*parts))

    def _project(self, X: FloatArray, shift: FloatArray) -> Mixture:
        return Mixture([c._project(X, shift) for c in self.components], self.weights)

    # ---- moments ----

    @property
    def mean(self) -> FloatArray:
        """Weighted mean of the components' means, shape (p,)."""
        mean: FloatArray = sum((w * c.mean for w, c in self._parts()), start=np.zeros(()))
        return mean

    @property
    def cov(self) -> FloatArray:
        """Covariance, shape (p, p): that within the components and that between them.

        Where it is infinite, the limit of ever vaguer priors. Infinities of opposite signs leave
        the sign open: that covariance is NaN.
        """
        mean = self.mean
        total = np.zeros((mean.size, mean.size))
        with np.errstate(invalid="ignore"):
            for weight, component in self._parts():
                offset = component.mean - mean
                total += weight * (component.cov + np.outer(offset, offset))
        return total

    # ---- density and draws ----

    def _logpdf(self, w: FloatArray) -> FloatArray:
        logs = np.stack([math.log(weight) + c.logpdf(w) for weight, c in self._parts()])
        return np.asarray(logsumexp(logs, axis=0))[()]

    def _size(self) -> int:
        return self.components[0].mean.size

    def _draw_with_noise(
        self, rng: np.random.Generator, size: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        parts = self._parts()
        probabilities = np.array([weight for weight, _ in parts])
        chosen = rng.choice(len(parts), size=size, p=probabilities / probabilities.sum())
        draws, noise = np.empty((*size, self.components[0].mean.size)), np.empty(size)
        for k, (_, component) in enumerate(parts):
            # A component without draws is called too, as an improper one must refuse.
            here = np.asarray(chosen == k)
            draws[here], noise[here] = component._draw_with_noise(rng, (int(here.sum()),))
        return draws, noise

    # ---- helpers ----

    def _parts(self) -> list[tuple[float, MultivariateNormal | MultivariateT]]:
        """Weights and components, without those of weight zero."""
        pairs = zip(self.weights.tolist(), self.components, strict=True)
        return [(weight, component) for weight, component in pairs if weight > 0.0]


def _describe_rest(component: MultivariateNormal | MultivariateT) -> str:
    return str(component.mean.size) if component.names is None else ", ".join(component.names)
