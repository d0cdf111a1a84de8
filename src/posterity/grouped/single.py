"""One group of many, as a plain model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from posterity.factor import Factor
from posterity.factor.packed import unpacked
from posterity.grouped.base import GroupedModel
from posterity.linear import BayesianLinearRegression
from posterity.noise import LearnedNoise
from posterity.posteriors import LinearPosterior
from posterity.priors import GaussianPrior


def make_single_model(model: GroupedModel, slot: int) -> BayesianLinearRegression:
    """Return the posterior of the group at ``slot`` as a model, its prior and noise being given.

    Under a likelihood it is a model of the rows that stand for others, of its coefficients alone.
    """
    known, read = model._posterior, model._posterior.learn_exact_prior()
    posterior = known.bank.posteriors(read.prior.priors, np.array([slot]))
    triangle = unpacked(posterior, known.bank.n_coefficients + 1)[0]
    of_group = read.prior.of_group(slot).copy()
    # Of what never varied nothing is known, not that it is 0.
    never = np.flatnonzero(known.belief.learns_covariance & ~read.prior.root.any(axis=0))
    triangle[never] = of_group[never] = 0.0
    prior, factor = Factor(known.bank.n_coefficients), Factor(known.bank.n_coefficients)
    own, count = read.prior.own_noise, known.bank.count[slot]
    before = np.zeros(2) if own is None else own[slot if slot < len(own) - 1 else -1]
    factor.set_triangle(triangle, count + min(before[0], 0.0), known.bank.seen[slot])
    prior.set_triangle(of_group, 0.0, 0.0)
    noise, noise_prior = known.noise, model.noise_prior
    if isinstance(noise, LearnedNoise):
        # The other groups' rows are the prior of the noise, this group's are in its factor.
        flat = prior.n_coefficients - prior.rank - len(never)
        others = max(read.residual_df - (factor.count - flat), 0.0)
        residual = max(read.residual - float(factor.residual()[0, 0]), 0.0)
        if own is not None:
            others, residual = max(before[0], 0.0) + flat, before[1]
        noise_prior = noise.shape + 0.5 * others, noise.rate + 0.5 * residual
        noise = replace(noise, shape=noise_prior[0], rate=noise_prior[1])
    offset = int(known.intercept)
    root = prior.root[:, offset:]
    belief = GaussianPrior(prior.coefficients()[offset:, 0], root.T @ root)
    plain = BayesianLinearRegression(
        prior_mean=belief.mean,
        prior_precision=belief.precision,
        noise_precision=model.noise_precision,
        noise_prior=noise_prior,
        fit_intercept=model.fit_intercept,
    )
    plain._set_columns_of(model)
    plain._posterior_or_none = LinearPosterior(belief, noise, known.intercept, prior, factor)
    return plain
