"""The prior that a strategy chooses: precisions with weights; and the mixture of predictions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.evidence.columns import SMALLEST, FeatureScales, compute_precisions
from posterity.factor import Factor
from posterity.noise import Noise


@dataclass(frozen=True, eq=False)
class Choice:
    """Prior precisions chosen by the evidence: K of them, each with a weight.

    Parameters
    ----------
    precisions
        (K, m) in units of the noise: each prior is w ~ N(mean, sigma^2 / precision).
    weights
        (K,) posterior probabilities of the K, of sum 1.
    noise
        The noise to go on with: the one given, or known at the value that was plugged in.
    pinned
        (m,) True where a coefficient is held at its prior mean: its feature has not varied, or
        was pruned.
    log_evidence
        Log of what was maximised or integrated over.
    ratios
        (K,) alpha / beta: precision relative to the noise's, per unit of ``shape``; for separate
        precisions of the features, 1.
    shapes
        (K,) which of the shapes on offer each node uses; 0 where there was one only.
    disagreement
        Variance of the coefficients' mean over what was integrated out, relative to their posterior
        variance, of the combination for which it is largest: by how much a single precision would
        be too sure. In a stream, of the fitted values' mean, relative to the noise variance.
    slope
        Largest derivative of the log evidence at what was chosen, in the log of the precisions; 0
        where it was integrated.
    n_parameters
        gamma, the effective number of coefficients, averaged over the K.
    found
        What kind of answer this is, in words.
    others
        Log evidence of other maxima that were found, if any.
    contrasts
        (K, b, m) rows u, whose products u u' are to be taken away from the diagonal precisions:
        one for each category that leaves out a base level. None: there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.evidence import Integrated
    >>> from posterity.noise import LearnedNoise
    >>> data = Factor(2)
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0.1], [0.9], [2.1]])
    >>> data.append(X, y, intercept=True)
    >>> choice = Integrated().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(1))
    >>> choice.precisions.shape[1], bool(np.isclose(choice.weights.sum(), 1.0)), choice.found
    (1, True, 'integrated')
    """

    precisions: Array
    weights: Array
    noise: Noise
    pinned: Mask
    log_evidence: float
    ratios: Array
    shapes: Indices
    disagreement: float = 0.0
    slope: float = 0.0
    n_parameters: float = 0.0
    found: str = ""
    others: tuple[float, ...] = field(default=())
    contrasts: Array | None = None

    @classmethod
    def of_ratios(
        cls,
        ratios: Array,
        which: Indices,
        weights: Array,
        noise: Noise,
        prior: tuple[Array, Mask],
        data: Factor,
        *,
        intercept: int,
        log_evidence: float,
        **more: Any,
    ) -> Self:
        """Nodes of K ratios, each of the shape ``which`` (K,) of the shapes on offer.

        ``prior`` are these shapes (L, m) and the features that are pinned (m,).
        """
        shapes, pinned = prior
        precisions = compute_precisions(ratios, shapes[which], pinned, data, intercept=intercept)
        return cls(precisions, weights, noise, pinned, log_evidence, ratios, which, **more)

    def average(self) -> Self:
        """One node, of the geometric means; of nodes of several shapes, of their mean variances.

        A shape that leaves a column out does not hold it at 0 where another one needs it. Contrasts
        take away less than there is, as those of each node do, by Hoelder's inequality.
        """
        shares = (self.shapes == np.unique(self.shapes)[:, None]) * self.weights
        of_shape = shares.sum(axis=1)
        shares /= np.where(of_shape > 0.0, of_shape, 1.0)[:, None]

        def mean(values: Array) -> Array:
            logs = np.log(np.maximum(values, SMALLEST))
            variances = np.tensordot(of_shape, np.exp(-np.tensordot(shares, logs, axes=1)), axes=1)
            return np.asarray(np.where((values > 0.0).all(axis=0), 1.0 / variances, 0.0))[None]

        contrasts = None if self.contrasts is None else mean(self.contrasts)
        return replace(
            self,
            precisions=mean(self.precisions),
            weights=np.ones(1),
            shapes=self.shapes[:1],
            contrasts=contrasts,
        )

    def scale(self, unit: float) -> Self:
        """The same in a noise of which this many make the one that precisions are relative to."""
        contrasts = None if self.contrasts is None else unit * self.contrasts
        return replace(self, precisions=unit**2 * self.precisions, contrasts=contrasts)

    def move_towards(self, other: Self, share: float) -> Self:
        """One node, this share of the way between two of one node, in logarithms."""
        pair = [one.contrasts for one in (self, other) if one.contrasts is not None]
        if len({rows.shape for rows in pair}) > 1 or len(pair) == 1:  # of other base levels
            return other
        contrasts = np.concatenate(pair) if pair else None
        both = np.concatenate([self.precisions, other.precisions])
        weights = np.array([1.0 - share, share])
        one_shape = np.repeat(other.shapes, 2)
        two = replace(other, precisions=both, contrasts=contrasts, shapes=one_shape)
        return replace(two, weights=weights).average()

    @property
    def is_plain(self) -> bool:
        """True if precisions are all there is: no feature is pinned, and none is a contrast."""
        return self.contrasts is None and not self.pinned.any()

    @property
    def whole_precisions(self) -> list[Array]:
        """The K prior precisions: (m,) of a diagonal, or (m, m)."""
        if self.contrasts is None:
            return list(self.precisions)
        pairs = zip(self.precisions, self.contrasts, strict=True)
        return [np.diag(diagonal) - rows.T @ rows for diagonal, rows in pairs]


class Strategy(Protocol):
    """Protocol of strategies that choose prior precisions from data: frozen dataclasses."""

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
        """Read the prior precisions from a factor to which rows, but no prior, were appended.

        ``intercept`` is how many columns of flat priors come before the features' (True: one).
        ``mean`` (m,) is the prior mean of the coefficients, ``shapes`` (L, m) are alternative
        relative precisions, instead of the features' mean squares; ``scales`` are those mean
        squares where they are not the factor's own.
        """
