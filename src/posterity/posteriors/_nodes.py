"""A few posteriors that differ in their prior, weighed, and read as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.distributions import MultivariateMixture, Normal, StudentT
from posterity.distributions.mixing import match_moments
from posterity.evidence import Choice
from posterity.factor import Factor
from posterity.factor.usable import check_usable
from posterity.kernel import predict_by_nodes, stack_nodes
from posterity.noise import Distribution, Joint, JointOfOne
from posterity.posteriors.gaussian import LinearPosterior
from posterity.priors import GaussianPrior
from posterity.safety import check_memory


@dataclass
class Nodes:
    """Posteriors (K) of the same data, under the priors of a choice and weighed as it says."""

    choice: Choice
    posteriors: tuple[LinearPosterior, ...]

    @classmethod
    def of(cls, choice: Choice, mean: Array, data: LinearPosterior) -> Self:
        """The chosen priors, each with all of the data, whose own prior is flat."""
        check_memory(16.0 * data.factor.triangle.size * len(choice.precisions), "priors")
        posteriors = tuple(
            data.copy_with_factor(factor, belief=belief, noise=choice.noise, prior=prior)
            for belief, prior, factor in _add_priors(choice, mean, data)
        )
        return cls(choice, posteriors)

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)(self.choice, tuple(one.copy() for one in self.posteriors))

    @property
    def is_single(self) -> bool:
        """True if there is only one node."""
        return len(self.posteriors) == 1

    @property
    def weights(self) -> Array:
        """Weights (K,), of sum 1."""
        return np.asarray(self.choice.weights / self.choice.weights.sum())

    @property
    def parts(self) -> tuple[tuple[float, LinearPosterior], ...]:
        """The posteriors, each after its weight."""
        return tuple(zip(self.weights.tolist(), self.posteriors, strict=True))

    @cached_property
    def coefficients(self) -> Array:
        """Mean of [intercept, coefficients], for nodes that learn no more."""
        return self.average([node.coefficients() for node in self.posteriors])

    def predict(
        self, ask: Callable[[LinearPosterior], Any], added: Array | None = None
    ) -> Distribution:
        """The predictions that ``ask`` asks of each, as one; weighed as when they were chosen.

        ``added`` (K, n) is variance that each does not know of, in units of its noise's.
        """
        if added is not None:  # in units of the noise before they learn
            added = added / np.array([[one.noise_precision] for one in self.posteriors])
        predictions: list[Distribution] = [ask(one) for one in self.posteriors]
        if added is not None:
            # A noise that is not known yet has no units.
            more = np.where(added > 0.0, added, 0.0)
            predictions = [one.widen(each) for one, each in zip(predictions, more, strict=True)]
        if self.is_single:
            return predictions[0]
        return mix_predictions(predictions, self.weights[:, None])

    def average(self, values: ArrayLike) -> Array:
        """Return the average over nodes of ``values`` (K, ...), by their weights."""
        return np.tensordot(self.weights, np.asarray(values), axes=1)

    def joint(self, names: tuple[str, ...]) -> Joint:
        """Joint distribution of [intercept, coefficients]: the mixture.

        Of a weak effect it has a peak and wide tails, of a feature that is strong in some nodes
        two hills: no single distribution has these. While a direction is open the heaviest speaks.
        """
        joints = [cast(JointOfOne, posterior.joint(names)) for posterior in self.posteriors]
        scales = np.array([one.scale for one in joints])
        open_ = any(not posterior.factor.determined.all() for posterior in self.posteriors)
        if self.is_single or open_ or not (np.isfinite(scales) & (scales > 0.0)).all():
            return joints[int(np.argmax(self.weights))]
        return MultivariateMixture(joints, self.weights)


def _add_priors(
    choice: Choice, mean: Array, data: LinearPosterior
) -> list[tuple[GaussianPrior, Factor, Factor]]:
    """Each chosen prior, as rows, and with all of the data."""
    known = data.factor
    beliefs = [GaussianPrior(mean, precision) for precision in choice.whole_precisions]
    if choice.contrasts is not None:
        factors = [belief.factor(len(mean), intercept=data.intercept) for belief in beliefs]
        return [(*each, known.combine(each[1])) for each in zip(beliefs, factors, strict=True)]
    rows = np.ascontiguousarray(mean), np.ascontiguousarray(choice.precisions)
    priors, stacked = stack_nodes(known.triangle, *rows)
    check_usable(stacked)
    return [
        (belief, Factor.of_memory(prior, 0.0, 0.0), Factor.of_memory(both, known.count, known.seen))
        for belief, prior, both in zip(beliefs, priors, stacked, strict=True)
    ]


def predict_nodes(
    choice: Choice, mean: Array, data: LinearPosterior, X: Array, y: Array, weights: Array | None
) -> Distribution:
    """Return one-step-ahead predictions of rows, averaged over the chosen priors with all data.

    As :meth:`Nodes.predict_then_learn` of :meth:`Nodes.of`, and no posterior is made.
    """
    factor, noise = data.factor, choice.noise.parameters
    ones = factor.lacks_intercept_column(X, data.intercept)
    nodes = mean, choice.precisions, choice.weights
    loc, scale, df = predict_by_nodes(
        factor.triangle, X, y, weights, ones, *nodes, factor.count, noise
    )
    return Normal(loc, scale) if noise[0] > 0.0 else StudentT(df, loc, scale)


def mix_predictions(predictions: Sequence[Distribution], weights: Array) -> Distribution:
    """Return one distribution a row: the moment-matched mixture by weights (K, n or 1)."""
    with np.errstate(invalid="ignore"):
        loc, scale = match_moments(
            np.array([one.loc for one in predictions]),
            np.array([one.scale for one in predictions]),
            weights,
        )
    scale[np.isnan(scale)] = np.inf  # a weight of 0 times an infinite scale
    first = predictions[0]
    return StudentT(first.df, loc, scale) if isinstance(first, StudentT) else Normal(loc, scale)


def concatenate_rows(parts: Sequence[Distribution]) -> Distribution:
    """The rows of all parts; a Normal among Student-t distributions has infinitely many df."""
    if len(parts) == 1:
        return parts[0]
    loc = np.concatenate([part.loc for part in parts])
    scale = np.concatenate([np.broadcast_to(part.scale, part.loc.shape) for part in parts])
    if not any(isinstance(part, StudentT) for part in parts):
        return Normal(loc, scale)
    df = [np.broadcast_to(getattr(part, "df", np.inf), part.loc.shape) for part in parts]
    return StudentT(np.concatenate(df), loc, scale)
