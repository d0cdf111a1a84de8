"""Groups that differ in their noise and effects, by Gibbs sampling: slow and plain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

Array = NDArray[np.float64]

DEGREES = np.geomspace(1.0, 64.0, 13)


@dataclass
class Draws:
    """Draws of coefficients (s, g, p), noise variances (s, g) and shared means (s, p)."""

    coefficients: Array
    noise: Array
    mean: Array

    def interval(
        self, X: Array, groups: NDArray[np.intp], *, of_mean: bool, seed: int = 0
    ) -> Array:
        """(n, 2) central 95% intervals of rows X (n, p) of known groups."""
        values = np.einsum("np,snp->sn", X, self.coefficients[:, groups])
        if not of_mean:
            noise = np.random.default_rng(seed).standard_normal(values.shape)
            values += np.sqrt(self.noise[:, groups]) * noise
        return np.quantile(values, [0.025, 0.975], axis=0).T


def sample_groups(
    X: Array,
    y: Array,
    groups: NDArray[np.intp],
    *,
    noise_differs: bool = True,
    effects_df: float = np.inf,
    draws: int = 1500,
    seed: int = 0,
) -> Draws:
    """Sample w_g ~ Normal(m, D / l_g), y ~ Normal(x . w_g, v_g), with p columns in X.

    The prior of m is flat and that of D inverse Wishart with p + 1 degrees of freedom and a tenth
    of the variance of y. 1 / v_g ~ Gamma(df / 2, df scale / 2), df on a grid with density
    1 / df^1.5 (of 1 / sqrt(df), flat), log scale flat. 1 / l_g is scaled inverse chi-squared with
    ``effects_df``.
    """
    rng, (n, p), g = np.random.default_rng(seed), X.shape, int(groups.max()) + 1
    each = [np.flatnonzero(groups == k) for k in range(g)]
    XX = np.array([X[k].T @ X[k] for k in each])
    Xy = np.array([X[k].T @ y[k] for k in each])
    count = np.array([len(k) for k in each])
    noise, scales = np.full(g, np.var(y)), np.ones(g)
    mean, D = np.zeros(p), np.eye(p) * np.var(y)
    df, scale, weak = 4.0, float(np.var(y)), 0.1 * np.var(y) * np.eye(p)
    out = Draws(np.empty((draws, g, p)), np.empty((draws, g)), np.empty((draws, p)))
    for step in range(-draws // 3, draws):
        P = np.linalg.inv(D)
        precision = XX / noise[:, None, None] + P * scales[:, None, None]
        told = Xy / noise[:, None] + scales[:, None] * (P @ mean)
        roots = np.linalg.cholesky(np.linalg.inv(precision))
        w = np.linalg.solve(precision, told[..., None])[..., 0]
        w += (roots @ rng.standard_normal((g, p, 1)))[..., 0]
        mean = (scales @ w) / scales.sum()
        mean = mean + np.linalg.cholesky(D / scales.sum()) @ rng.standard_normal(p)
        off = (w - mean) * np.sqrt(scales)[:, None]
        root = np.linalg.cholesky(np.linalg.inv(weak + off.T @ off))
        draw = root @ rng.standard_normal((p, g + p + 1))
        D = np.linalg.inv(draw @ draw.T)
        if np.isfinite(effects_df):
            squares = np.einsum("gp,pq,gq->g", w - mean, np.linalg.inv(D), w - mean)
            scales = rng.gamma(0.5 * (effects_df + p), 2.0 / (effects_df + squares))
        residual = np.array([np.sum((y[k] - X[k] @ w[i]) ** 2) for i, k in enumerate(each)])
        if noise_differs:
            noise = 0.5 * (df * scale + residual) / rng.gamma(0.5 * (df + count))
            scale = rng.gamma(0.5 * g * df) / (0.5 * df * np.sum(1.0 / noise))
            half = 0.5 * DEGREES
            logs = g * (half * np.log(half * scale) - gammaln(half)) - 1.5 * np.log(DEGREES)
            logs -= half * np.sum(np.log(noise) + scale / noise) - np.log(DEGREES)
            chance = np.exp(logs - logs.max())
            df = float(rng.choice(DEGREES, p=chance / chance.sum()))
        else:
            noise = np.full(g, 0.5 * residual.sum() / rng.gamma(0.5 * n))
        if step >= 0:
            out.coefficients[step], out.noise[step], out.mean[step] = w, noise, mean
    return out
