"""Sparse models whose rows are made by a formula, and whose columns vary together by level."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast

import numpy as np

from posterity.aliases import Array, Indices
from posterity.distributions import Normal
from posterity.distributions._limits import interval_ends
from posterity.distributions.expected import expect
from posterity.distributions.mixing import mix_predictions
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.transformed import Transformed
from posterity.forgetting import Exponential, Stabilized
from posterity.likelihoods import Bernoulli, Gaussian, Likelihood
from posterity.likelihoods.censored import middle_of, score_ends
from posterity.likelihoods.words import censor, read_likelihood
from posterity.linear.inputs import read_target
from posterity.linear.reader import predict_targets_or_means
from posterity.model.design import DesignRows
from posterity.noise import LearnedNoise
from posterity.posteriors._sparse_rows import SparseRows
from posterity.sparse.checks import WideParameters
from posterity.sparse.exact import ExactModel, SparseLogisticRegression
from posterity.transaction import Undo

# Words for likelihoods beside those of models without a formula.
WORDS: dict[str, Likelihood] = {"normal": Gaussian(), "binomial": Bernoulli()}


@dataclass(kw_only=True, eq=False, repr=False)
class TermParameters(WideParameters):
    """``terms``: names of columns that vary together by level; ``learned_noise``: its prior.

    Parameters of the ``likelihood`` that are not given are learned.
    """

    terms: tuple[tuple[str, ...], ...] = ()
    likelihood: Likelihood = field(default_factory=Gaussian)
    learned_noise: tuple[float, float] | None = None


class TermRows(TermParameters, ExactModel):
    """Reads :class:`DesignRows`, and has the posterior integrate over the covariances of terms."""

    # A prior that is found anew does not fade, so both are the same.
    _memories = (Stabilized, Exponential)

    @property
    def described(self) -> str:
        """What reports call it."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self.likelihood).__name__)
        return {"Gaussian": "linear", "Poisson": "Poisson"}.get(name, name.lower())

    @property
    def scale(self) -> str:
        """The scale of its effects, where it is a logarithm."""
        of = self.likelihood.ratio.removesuffix("_ratio")
        return f" (log {of.removesuffix('s')}s)" if of else ""

    def prepare(self, y: Any) -> None:
        """Know the prior, if nothing yet, and the labels of targets ``y`` (n,) that come next."""
        if self._posterior_or_none is None:
            self._begin(None, own_columns=False)
        self.__dict__.update(self._targets(y)[1])

    @property
    def has_learned(self) -> bool:
        """Whether it knows more than its parameters."""
        return self._posterior_or_none is not None

    def copy(self) -> Self:
        """A model that has learned the same, and learns by itself; what was found is shared."""
        made = copy.copy(self)
        made._posterior_or_none, made._index = self._posterior.copy(), copy.deepcopy(self._index)
        return made

    def log_densities(self, predicted: Any, y: Any) -> Array:
        """(n,) logs of what was predicted of targets; of two ends those of what is between."""
        if self.likelihood.n_numbers == 1:
            return np.asarray(predicted.logpdf(np.asarray(y)))
        return score_ends(predicted, *self._targets(y)[0].T)

    # ---- predicting ------------------------------------------------------------------------------

    def predict_distribution(self, X: DesignRows) -> Any:
        """Distribution of new observations, one a row."""
        return self._mix(self._observe, *self._eta(X))

    def predict_mean_distribution(self, X: DesignRows) -> RowDistribution:
        """Distribution of the expected targets: what is not known of them, without the noise."""
        mean, variance = self._eta(X)
        if self.learned_noise is not None:  # as of a new observation without its own noise, the 1
            return self._mix(self._observe, mean, variance - 1.0)
        eta = self._mix(lambda at, var, unit: Normal(at, np.sqrt(unit * var)), mean, variance)
        return Transformed(eta, self._observed.mean, self._observed.link_function)

    def predict_interval(
        self,
        X: DesignRows,
        level: float = 0.95,
        *,
        of: Literal["observation", "mean"] = "observation",
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        With ``of="mean"`` that of the expected target.
        """
        return interval_ends(predict_targets_or_means(self, cast(Any, X), of, {}), level)

    def expect(self, X: DesignRows) -> Array:
        """(n,) expected targets, or medians where these are infinite."""
        return expect(self.predict_distribution(X))

    @property
    def sign(self) -> float:
        """-1 where the posterior is of the first of two labels."""
        return 1.0

    def unexplained(self, noise: Array, nodes: Indices) -> Array:
        """(n,) variances of eta that no effect explains, where the noise's is ``noise`` (n,).

        Of logarithms that of a log-normal distribution (Nakagawa, Johnson & Schielzeth 2017).
        ``nodes`` (n,): the node of each.
        """
        posterior, reading = self._posterior, self._posterior.reading()
        if self.likelihood.is_gaussian:
            return noise
        rows = posterior.targets, posterior.row_weights
        each = [find_spread(one, *rows) for one in reading.observe_each(self.likelihood)]
        return np.array(each)[nodes]

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return self.likelihood

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        if self.likelihood.n_numbers == 1:
            return super()._targets(y)
        ends = read_target(y, self.likelihood.n_numbers)
        self.likelihood.check_targets(ends)
        return ends, {}

    def _noise_prior(self) -> tuple[float, float] | None:
        return self.learned_noise

    def _read(self, X: DesignRows) -> tuple[int, Any]:
        return X.n, X.parts

    def _warn(self, n: int, read: Any) -> None:
        """Say nothing of levels of one row each: residuals of counts may be such effects."""

    def _begin(self, given: int | None, own_columns: bool) -> None:
        super()._begin(given, own_columns)
        index, posterior = self._index, self._posterior
        posterior.terms = tuple(
            tuple(index.column(name, new=True) for name in names) for names in self.terms
        )
        posterior.grow(index.size, np.zeros(0, dtype=np.int32), index.n_columns)

    def _grow_for(self, number: Callable[[], SparseRows], undo: Undo) -> SparseRows:
        rows = super()._grow_for(number, undo)
        for column, levels in self._index.levels.items():  # of some, all values so far were 0
            self._posterior.owners[levels.features] = column
        return rows

    def _eta(self, X: DesignRows) -> tuple[Array, Array]:
        mean, variance = super()._eta(X)
        return mean + X.offset[:, None], variance

    @property
    def _observed(self) -> Likelihood:
        """The likelihood with its parameters in force."""
        return self._posterior.reading().observe(self.likelihood)

    def _observe(self, mean: Array, variance: Array, rate: float) -> Any:
        """Distribution of observations (n,) at one node, where ``rate`` is that of the noise."""
        if self.learned_noise is None:
            return self._observed.predictive(mean, rate * variance)
        shape = self._posterior.shape
        return LearnedNoise().predictive(mean, variance.copy(), 2.0 * shape, 2.0 * rate)

    def _mix(self, observe: Callable[..., Any], mean: Array, variance: Array) -> Any:
        """Mixtures over nodes, given moments (n, members) of eta in units of the noise."""
        posterior = self._posterior
        each = zip(mean.T, variance.T, posterior.rates.tolist(), strict=True)
        return mix_predictions([observe(*one) for one in each], posterior.weights)


@dataclass(kw_only=True, eq=False, repr=False)
class LabelTerms(TermRows, SparseLogisticRegression):
    """Labels of two classes."""

    described = "logistic"

    @property
    def sign(self) -> float:
        """-1 where the posterior is of the first of two labels."""
        return -1.0 if self._flipped else 1.0

    def predict_distribution(self, X: DesignRows) -> Any:
        """Distribution of the labels."""
        return SparseLogisticRegression.predict_distribution(self, X)

    def expect(self, X: DesignRows) -> Array:
        """(n,) probabilities of the second label."""
        return np.asarray(self.predict_proba(X)[:, -1])

    def name_classes(self, y: Array) -> Any:
        """Labels of trials, of which all may be the same."""
        return self._name_classes(y, [0, 1])

    def predict_interval(
        self, X: Any, level: float = 0.95, *, of: Literal["observation", "mean"] = "mean"
    ) -> Array:
        """(n, 2) ends of the central interval of the second label's probability."""
        if of != "mean":
            raise ValueError("labels have intervals of their probabilities alone: give of='mean'")
        return SparseLogisticRegression.predict_interval(self, X, level)


# Of the logistic distribution, of which a label says on which side of 0.
LOGISTIC_VARIANCE = np.pi**2 / 3.0


def find_spread(likelihood: Likelihood, y: Array, weights: Array) -> float:
    """The variance of eta that observations (n,) stand for, by their information at their mean."""
    if likelihood.ratio == "odds_ratio":
        return float(LOGISTIC_VARIANCE)
    seen = middle_of(y) if y.ndim > 1 else y
    eta = np.repeat(likelihood.link_function(np.average(seen[None], -1, weights)), len(y))
    y = np.stack([seen, seen], axis=1) if y.ndim > 1 else y  # as if no end were open
    with np.errstate(divide="ignore"):
        variance = 1.0 / np.average(likelihood.derivatives(y, eta)[1], weights=weights)
    return float(np.log1p(variance) if likelihood.ratio else variance)


def make_engine(
    given: Any, terms: tuple[tuple[str, ...], ...], *, ends: bool, **how: Any
) -> TermRows:
    """The model of a likelihood, or of a word for it, that has learned nothing.

    With two ``ends`` of each target a likelihood of one is censored. Raises ``ValueError`` or
    ``TypeError`` for what is neither.
    """
    likelihood = WORDS.get(str(given)) or read_likelihood(given, *WORDS)
    if likelihood.is_noise and not likelihood.is_gaussian:
        raise ValueError(
            f"likelihood is {given!r}: of numbers with noise a formula takes 'normal' alone; for "
            "heavy tails take BayesianRobustRegression, for quantiles BayesianQuantileRegression"
        )
    if ends and likelihood in WORDS.values():
        raise ValueError(
            f"likelihood is {given!r}, and each target has two ends: give that of a lifetime, as "
            "'weibull' or 'log normal'"
        )
    likelihood = censor(likelihood) if ends else likelihood
    kind = LabelTerms if likelihood == Bernoulli() else TermRows
    noise = (0.0, 0.0) if given == "normal" else None
    return kind(terms=terms, likelihood=likelihood, learned_noise=noise, **how)
