"""Posteriors of families by long chains of Metropolis: an oracle that shares no code with ours.

``PYTHONPATH=tests/oracles python -m long_chains`` writes ``long_chains.json`` beside this file,
in three minutes of one core: of each case the means, standard deviations and quantiles (2.5%, 50%,
97.5%) of the intercept, the coefficients and the logs of the likelihood's parameters, and how
closely chains that began apart agree. Densities are those of ``family_densities``.

Priors are those that the likelihoods state: the intercept is flat, coefficients are
Normal(0, 2^2), and logs of parameters as below.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from family_densities import (
    beta,
    beta_binomial,
    binomial,
    censored_weibull,
    gamma,
    geometric,
    hurdle_gamma,
    inverse_gaussian,
    linear_negative_binomial,
    log_logistic,
    log_normal,
    negative_binomial,
    ordinal,
    poisson,
    positive_poisson,
    skew_normal,
    student_t,
    tweedie,
    von_mises,
    weibull,
    zero_inflated,
)
from numpy.typing import NDArray
from scipy import optimize, special, stats
from scipy.special import expit, log_expit, log_ndtr

Array = NDArray[np.float64]

PRECISION = 0.25  # of coefficients before data
LEVELS = (0.025, 0.5, 0.975)
PATH = Path(__file__).with_suffix(".json")
N_CHAINS, N_STEPS, N_WARM, EVERY = 200, 12_000, 1000, 10


def normal(mean: float, sd: float) -> Callable[[Array], Array]:
    """Log density of a normal t."""
    return lambda t: -0.5 * ((t - mean) / sd) ** 2


def root_is_exponential(t: Array) -> Array:
    """Log density of t where exp(t / 2) is exponential with mean 1."""
    return 0.5 * t - np.exp(0.5 * t)


# ---- cases ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """n rows of p features, a log density, the true parameters, and priors of their logs."""

    n: int
    p: int
    log_density: Callable[..., Array]
    draw: Callable[[Array, Array], Array]  # targets of eta and uniform numbers, both (n,)
    truth: tuple[float, ...] = ()
    priors: tuple[Callable[[Array], Array], ...] = ()
    intercept: float = 0.5

    def make(self) -> tuple[Array, Array]:
        """Rows (n, p), correlated by 0.7 and of unequal spread, and targets."""
        rng = np.random.default_rng([self.n, self.p])
        X = rng.normal(size=(self.n, self.p))
        X = (0.55 * X + 0.84 * rng.normal(size=(self.n, 1))) * np.geomspace(1.0, 0.3, self.p)
        effects = np.resize([0.6, -0.8, 0.0, 1.0], self.p)
        eta = self.intercept + X @ effects
        return X, np.asarray(self.draw(eta, rng.random(self.n)), dtype=float)


def _quantile(family: Callable[[Array], Any]) -> Callable[[Array, Array], Array]:
    return lambda eta, u: family(eta).ppf(u)


def _draw_lifetimes(eta: Array, u: Array) -> Array:
    life, end = (
        np.exp(eta) * stats.weibull_min(1.5).ppf(u),
        1.2 * np.resize([0.2, 0.6, 1.0], len(u)),
    )
    return np.column_stack([np.minimum(life, end), np.where(life < end, life, np.inf)])


def _with_zeros(family: Callable[[Array], Any], share: float) -> Callable[[Array, Array], Array]:
    return lambda eta, u: family(eta).ppf(np.maximum(u - share, 0.0) / (1.0 - share)) * (u > share)


def _rate(dispersion: float) -> Callable[[Array], Any]:
    return lambda eta: stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * np.exp(eta)))


def _mean_beta(eta: Array) -> tuple[Array, Array]:
    return 6.0 * expit(eta), 6.0 * expit(-eta)


def _positive(eta: Array, u: Array) -> Array:
    none = np.exp(-np.exp(eta))
    return np.maximum(stats.poisson(np.exp(eta)).ppf(none + u * (1.0 - none)), 1.0)


def _payments(eta: Array, u: Array) -> Array:
    rate, scale = 2.0 * np.exp(0.5 * eta) / 1.5, 0.5 * np.exp(0.5 * eta) * 1.5
    number = stats.poisson(rate).ppf(u)
    again = (u * 997.0) % 1.0
    return np.where(number > 0.0, stats.gamma(np.maximum(number, 1.0), scale=scale).ppf(again), 0.0)


_LIFE, _SHARE, _TWO = normal(0.5, 1.5), normal(2.0, 2.0), normal(0.0, 3.0)
_ZERO = normal(-1.0, 1.5)
_GAPS = tuple(normal(float(np.log(2.0 * np.log(4.0) / 3.0)), 1.5) for _ in range(3))
_PROBIT = tuple(normal(float(np.log(special.ndtri(0.75))), 1.5) for _ in range(2))
CASES: dict[str, Case] = {
    "Gamma, uneven": Case(
        30,
        2,
        gamma,
        _quantile(lambda eta: stats.gamma(0.7, scale=np.exp(eta) / 0.7)),
        (0.7,),
        (normal(1.0, 2.0),),
    ),
    "Gamma": Case(
        300,
        5,
        gamma,
        _quantile(lambda eta: stats.gamma(4.0, scale=np.exp(eta) / 4.0)),
        (4.0,),
        (normal(1.0, 2.0),),
    ),
    "InverseGaussian": Case(
        60,
        2,
        inverse_gaussian,
        _quantile(lambda eta: stats.invgauss(0.5 * np.exp(eta), scale=2.0)),
        (0.5,),
        (_TWO,),
    ),
    "LogNormal": Case(
        30,
        3,
        log_normal,
        _quantile(lambda eta: stats.lognorm(0.7, scale=np.exp(eta))),
        (0.7,),
        (normal(-0.5, 1.5),),
    ),
    "Weibull": Case(
        40,
        3,
        weibull,
        _quantile(lambda eta: stats.weibull_min(1.5, scale=np.exp(eta))),
        (1.5,),
        (_LIFE,),
    ),
    "Weibull, 70% cut off": Case(100, 2, censored_weibull, _draw_lifetimes, (1.5,), (_LIFE,)),
    "LogLogistic": Case(
        60,
        3,
        log_logistic,
        _quantile(lambda eta: stats.fisk(2.0, scale=np.exp(eta))),
        (2.0,),
        (_LIFE,),
    ),
    "Tweedie": Case(80, 2, tweedie, _payments, (1.5,), (_TWO,)),
    "Beta": Case(
        50, 3, beta, _quantile(lambda eta: stats.beta(*_mean_beta(eta))), (6.0,), (_SHARE,)
    ),
    "BetaBinomial": Case(
        60,
        2,
        beta_binomial,
        _quantile(lambda eta: stats.betabinom(8, *_mean_beta(eta))),
        (6.0,),
        (_SHARE,),
    ),
    "NegativeBinomial": Case(
        80, 3, negative_binomial, _quantile(_rate(0.5)), (0.5,), (root_is_exponential,)
    ),
    "LinearNegativeBinomial": Case(
        80,
        2,
        linear_negative_binomial,
        _quantile(lambda eta: stats.nbinom(np.exp(eta), 0.5)),
        (1.0,),
        (root_is_exponential,),
    ),
    "Geometric": Case(60, 4, geometric, _quantile(_rate(1.0))),
    "Binomial": Case(30, 2, binomial, _quantile(lambda eta: stats.binom(8, expit(eta)))),
    "Ordinal, logit": Case(
        80,
        2,
        ordinal(log_expit),
        lambda eta, u: np.digitize(eta - 0.5 + stats.logistic.ppf(u), [-2.0, -0.5, 0.5, 1.5]),
        (1.5, 1.0, 1.0),
        _GAPS,
    ),
    "Ordinal, probit": Case(
        100,
        3,
        ordinal(log_ndtr),
        lambda eta, u: np.digitize(eta - 0.5 + stats.norm.ppf(u), [-1.0, 0.0, 0.7]),
        (1.0, 0.7),
        _PROBIT,
    ),
    "ZeroInflated, Poisson": Case(
        100,
        2,
        zero_inflated(poisson),
        _with_zeros(lambda eta: stats.poisson(np.exp(eta)), 0.3),
        (3.0 / 7.0,),
        (_ZERO,),
        1.0,
    ),
    "ZeroInflated, NegativeBinomial": Case(
        300,
        2,
        zero_inflated(negative_binomial),
        _with_zeros(_rate(0.5), 0.3),
        (0.5, 3.0 / 7.0),
        (root_is_exponential, _ZERO),
        1.0,
    ),
    "Hurdle, Gamma": Case(
        100,
        2,
        hurdle_gamma,
        _with_zeros(lambda eta: stats.gamma(2.0, scale=np.exp(eta) / 2.0), 0.4),
        (2.0, 2.0 / 3.0),
        (normal(1.0, 2.0), normal(0.0, 2.0)),
    ),
    "Truncated, Poisson": Case(80, 2, positive_poisson, _positive),
    "VonMises": Case(
        60,
        2,
        von_mises,
        lambda eta, u: (
            (stats.vonmises(4.0).ppf(u) + 2.0 * np.arctan(eta) + np.pi) % (2.0 * np.pi) - np.pi
        ),
        (4.0,),
        (_LIFE,),
        0.0,
    ),
    "SkewNormal": Case(
        50,
        3,
        skew_normal,
        lambda eta, u: (
            eta + 0.7 * (stats.skewnorm(4.0).ppf(u) - 4.0 / np.sqrt(17.0) * np.sqrt(2.0 / np.pi))
        ),
    ),
    "StudentT": Case(40, 2, student_t, lambda eta, u: eta + 0.7 * stats.t(4.0).ppf(u)),
}


# ---- chains --------------------------------------------------------------------------------------


def sample(case: Case, seed: int = 0) -> dict[str, Any]:
    """Run chains that begin around the mode, twice as wide; moments and quantiles of all."""
    X, y = case.make()
    columns = np.column_stack([np.ones(case.n), X])
    d = case.p + 1 + len(case.truth)

    def log_posterior(at: Array) -> Array:
        """(m,) of points (m, d)."""
        u, t = at[:, : case.p + 1], at[:, case.p + 1 :]
        with np.errstate(all="ignore"):
            given = (one[:, None] for one in t.T)
            logs = case.log_density(y, u @ columns.T, *given).sum(axis=1)
            logs -= 0.5 * PRECISION * np.square(u[:, 1:]).sum(axis=1)
            logs += sum(prior(one) for prior, one in zip(case.priors, t.T, strict=True))
        return np.where(np.isfinite(logs), logs, -np.inf)

    rng = np.random.default_rng(seed)
    start = np.concatenate([[case.intercept], np.zeros(case.p), np.log(case.truth)])
    for _ in range(3):
        start = optimize.minimize(lambda at: -log_posterior(at[None])[0], start).x
    steps = 1e-3 * np.eye(d)
    bend = [
        [
            log_posterior(start + np.array([a + b, -a - b, a - b, b - a])) @ [1, 1, -1, -1]
            for b in steps
        ]
        for a in steps
    ]
    covariance = np.linalg.inv(-np.asarray(bend) / 4e-6)
    root = np.linalg.cholesky(covariance)
    at = start + 2.0 * rng.normal(size=(N_CHAINS, d)) @ root.T
    logs, kept = log_posterior(at), []
    for step in range(N_WARM + N_STEPS):
        if step in (N_WARM // 2, 3 * N_WARM // 4):
            root = np.linalg.cholesky(np.cov(at.T))
        jump = at + 2.38 / np.sqrt(d) * rng.normal(size=at.shape) @ root.T
        there = log_posterior(jump)
        moves = np.log(rng.random(N_CHAINS)) < there - logs
        at, logs = np.where(moves[:, None], jump, at), np.where(moves, there, logs)
        if step >= N_WARM and step % EVERY == 0:
            kept.append(at)
    draws = np.array(kept)
    # Of chains that have forgotten where they began, means vary as those of independent draws.
    sd = draws.std(axis=(0, 1))
    error = draws.mean(axis=0).std(axis=0) / sd / np.sqrt(N_CHAINS)
    return {
        "mean": draws.mean(axis=(0, 1)).round(5).tolist(),
        "sd": sd.round(5).tolist(),
        "quantiles": np.quantile(draws, LEVELS, axis=(0, 1)).round(5).tolist(),
        "error_in_sds": float(error.max().round(4)),
    }


def read() -> dict[str, dict[str, Any]]:
    """What the chains of all cases told."""
    return dict(json.loads(PATH.read_text(encoding="utf-8")))


if __name__ == "__main__":
    told = {name: sample(case) for name, case in CASES.items()}
    PATH.write_text(json.dumps(told) + "\n", encoding="utf-8")
