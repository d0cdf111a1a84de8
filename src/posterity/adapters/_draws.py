"""Draws of coefficients, and likelihoods of targets given them: one family per likelihood."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import gammaln, log_expit, logsumexp
from sklearn.base import BaseEstimator

from posterity.adapters._components import Components, components
from posterity.aliases import AnyArray, Array
from posterity.distributions.triangles import solve_triangle
from posterity.generalized import (
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)
from posterity.linear import BayesianLinearRegression
from posterity.noise import LOG_2PI, LearnedNoise
from posterity.posteriors import LinearPosterior

# Numbers that a step over rows of many classes may take at a time.
BLOCK = 2_000_000
# Beyond this log rate numpy draws no counts.
LARGEST_LOG_RATE = 43.0


class Draws(NamedTuple):
    """Coefficients, intercept first, and standard deviations of the noise (size,).

    Coefficients are (size, p), of K > 2 classes (size, K, p). Without Gaussian noise it is 1.
    """

    coefficients: Array
    noise: Array


# What could be drawn, and the names of what is improper.
PriorDraws = tuple[Draws | None, list[str]]


class Rows(NamedTuple):
    """Columns (n, p) with the intercept's 1, targets (n,), and what is added to eta (n,).

    The targets of a classifier are the places of the labels.
    """

    columns: Array
    targets: Array
    offsets: Array


class Family(Protocol):
    """The interface by which draws of a model's posterior are made and named."""

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        """Draw from the posterior; raises ``ValueError`` where it is improper."""

    def prior(self, size: int, rng: np.random.Generator) -> PriorDraws:
        """Draws of what is proper of the prior (NaN where it is not), and the names of the rest.

        None under heavy tails, and of many classes, where it is on contrasts.
        """

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        """Draw one new target for each draw and row, (size, n)."""

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        """Log probability or density of each target given each draw, (size, n)."""


def find_family(model: BaseEstimator) -> Family:
    """The family of a model; raises ``TypeError`` for one that there is none for."""
    if isinstance(model, BayesianLogisticRegression):
        return Classes(model) if len(_require_two_classes(model)) > 2 else Labels(model)
    if isinstance(model, BayesianPoissonRegression):
        return Counts(model)
    if isinstance(model, BayesianRobustRegression):
        return HeavyTails(model)
    if type(model) is BayesianLinearRegression:
        return Gaussian(model)
    kind = type(model).__name__
    inside = getattr(model, "model_", getattr(model, "model", None))
    if inside is not None:
        raise TypeError(
            f"to_arviz can't draw from a {kind}, which corrects another model's predictions and "
            f"has no posterior: give the {type(inside).__name__} inside, its model_"
        )
    raise TypeError(
        f"to_arviz draws from linear, logistic, Poisson and robust regressions, not from a {kind}"
    )


@dataclass(frozen=True)
class Approximated:
    """Coefficients from the Gaussian, or mixture of such, that stands for the posterior."""

    model: BaseEstimator

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        drawn = self.model._joint().rvs(size, random_state=rng)
        return Draws(np.asarray(drawn), np.ones(size))

    def prior(self, size: int, rng: np.random.Generator) -> PriorDraws:
        return _draw_prior(self.model, size, rng)


class Gaussian(Approximated):
    """Linear regression: the noise first, then the coefficients given it."""

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        return _draw_posterior(components(self.model._posterior, "to_arviz"), size, rng)

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        mean = draws.coefficients @ rows.columns.T
        return mean + draws.noise[:, None] * rng.standard_normal(mean.shape)

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = rows.targets - draws.coefficients @ rows.columns.T
            errors /= draws.noise[:, None]
            return -0.5 * np.square(errors) - np.log(draws.noise)[:, None] - 0.5 * LOG_2PI


class Labels(Approximated):
    """One of two labels, by its log odds."""

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        if len(self.model.classes_) < 2:
            raise ValueError(
                f"to_arviz needs two classes, and all labels so far are "
                f"{self.model.classes_.tolist()[0]!r}: learn rows of another class"
            )
        return super().draw(size, rng)

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        eta = draws.coefficients @ rows.columns.T
        return (rng.logistic(size=eta.shape) < eta).astype(np.intp)

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        eta = draws.coefficients @ rows.columns.T
        return np.asarray(log_expit(np.where(rows.targets > 0.0, eta, -eta)))


class Classes(Approximated):
    """One of many labels; each class has coefficients, of sum 0."""

    def draw(self, size: int, rng: np.random.Generator) -> Draws:
        ahead = super().draw(size, rng).coefficients.reshape(size, len(self.model.classes_) - 1, -1)
        whole = np.concatenate([np.zeros_like(ahead[:, :1]), ahead], axis=1)
        return Draws(whole - whole.mean(axis=1, keepdims=True), np.ones(size))

    def prior(self, size: int, rng: np.random.Generator) -> PriorDraws:
        return _skip_prior(self.model)

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        labels = np.empty((len(draws.coefficients), len(rows.targets)), dtype=np.intp)
        for part, eta in self._compute_predictors(draws, rows):
            labels[:, part] = np.argmax(eta + rng.gumbel(size=eta.shape), axis=1)
        return labels

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        log_likelihood = np.empty((len(draws.coefficients), len(rows.targets)))
        places = rows.targets.astype(np.intp)
        for part, eta in self._compute_predictors(draws, rows):
            own = np.take_along_axis(eta, places[None, None, part], axis=1)[:, 0]
            log_likelihood[:, part] = own - logsumexp(eta, axis=1)
        return log_likelihood

    def _compute_predictors(self, draws: Draws, rows: Rows) -> Iterator[tuple[slice, Array]]:
        """Yield some rows at a time, and the predictors of all classes there (size, K, rows)."""
        step = max(1, BLOCK // draws.coefficients[..., 0].size)
        for first in range(0, len(rows.columns), step):
            part = slice(first, first + step)
            yield part, draws.coefficients @ rows.columns[part].T


class Counts(Approximated):
    """Counts, by their log rate."""

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        log_rate = self._log_rate(draws, rows)
        return rng.poisson(np.exp(np.minimum(log_rate, LARGEST_LOG_RATE)))

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        log_rate, y = self._log_rate(draws, rows), rows.targets
        with np.errstate(over="ignore"):
            return y * log_rate - np.exp(log_rate) - gammaln(y + 1.0)

    def _log_rate(self, draws: Draws, rows: Rows) -> Array:
        return draws.coefficients @ rows.columns.T + rows.offsets


class HeavyTails(Approximated):
    """Student-t or Laplace noise, whose scale is plugged in as the model does."""

    def prior(self, size: int, rng: np.random.Generator) -> PriorDraws:
        return _skip_prior(self.model)

    def draw_predictions(self, draws: Draws, rows: Rows, rng: np.random.Generator) -> AnyArray:
        mean, model = draws.coefficients @ rows.columns.T, self.model
        if model.likelihood == "laplace":
            noise = rng.laplace(size=mean.shape)
        else:
            noise = rng.standard_t(model.df_, size=mean.shape)
        return mean + model.noise_scale_ * noise

    def log_likelihood(self, draws: Draws, rows: Rows) -> Array:
        posterior = self.model._posterior
        likelihood = posterior.in_force.with_scale(posterior.scale)
        return np.asarray(likelihood.log_density(rows.targets, draws.coefficients @ rows.columns.T))


def _draw_prior(model: BaseEstimator, size: int, rng: np.random.Generator) -> PriorDraws:
    posterior, offset = model._posterior, int(model.fit_intercept)
    improper = ["intercept"] if offset else []
    learned = posterior.noise if isinstance(posterior.noise, LearnedNoise) else None
    if learned is not None and not (learned.shape > 0.0 and learned.rate > 0.0):
        return None, [*improper, "coef", "sigma"]
    root = posterior.prior.root[offset:, offset:]
    if posterior.learns_prior or not np.diag(root).all():
        return None, [*improper, "coef"]  # learned from the data, or flat
    if learned is None:
        noise = np.full(size, posterior.noise_precision**-0.5)
    else:
        noise = np.sqrt(learned.rate / rng.gamma(learned.shape, size=size))
    coefficients = np.full((size, posterior.n_coefficients), np.nan)
    mean = posterior.prior.coefficients()[offset:, 0]
    coefficients[:, offset:] = mean + noise[:, None] * _draw_from_root(root, size, rng)
    if getattr(model, "_flipped", False):
        coefficients = -coefficients
    return Draws(coefficients, noise), improper


def _skip_prior(model: BaseEstimator) -> PriorDraws:
    return None, ["intercept"] if model.fit_intercept else []


def _require_two_classes(model: BayesianLogisticRegression) -> Any:
    model._posterior  # noqa: B018  (says that nothing was learned)
    return model.classes_


def _draw_posterior(parts: Components, size: int, rng: np.random.Generator) -> Draws:
    chosen = rng.choice(len(parts), size=size, p=[weight for weight, _ in parts])
    coefficients, noise = np.empty((size, parts[0][1].n_coefficients)), np.empty(size)
    for place, (_, posterior) in enumerate(parts):
        mine = np.flatnonzero(chosen == place)
        noise[mine] = _draw_noise(posterior, len(mine), rng)
        spread = _draw_from_root(posterior.factor.root, len(mine), rng)
        coefficients[mine] = posterior.coefficients() + noise[mine, None] * spread
    return Draws(coefficients, noise)


def _draw_noise(posterior: LinearPosterior, size: int, rng: np.random.Generator) -> Array:
    """Standard deviations of the noise, (size,)."""
    if not isinstance(posterior.noise, LearnedNoise):
        return np.full(size, posterior.noise_precision**-0.5)
    shape = posterior.noise.shape + 0.5 * posterior.residual_df
    rate = posterior.noise.rate + 0.5 * posterior.residual
    if shape <= 0.0:
        raise ValueError(
            "the posterior of the noise is still improper: learn more rows, or give a noise_prior "
            "with shape and rate above 0"
        )
    return np.sqrt(rate / rng.gamma(shape, size=size))


def _draw_from_root(root: Array, size: int, rng: np.random.Generator) -> Array:
    """Draws (size, p) of Normal(0, (root'root)^-1)."""
    normal = rng.standard_normal((len(root), size))
    return np.asarray(solve_triangle(root, normal)).T
