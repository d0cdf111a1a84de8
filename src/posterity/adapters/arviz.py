"""What a model knows, as draws in ArviZ's containers."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from posterity.adapters._components import Components, components
from posterity.adapters._extras import needed
from posterity.linear import BayesianLinearRegression
from posterity.linear.inputs import explained, read_rows
from posterity.noise import LOG_2PI, LearnedNoise
from posterity.posteriors import EvidencePosterior, LinearPosterior

Array = NDArray[np.float64]

__all__ = ["to_arviz"]


class Draws(NamedTuple):
    """Coefficients (size, p), intercept first, and standard deviations of the noise (size,)."""

    coefficients: Array
    noise: Array


def to_arviz(
    model: BayesianLinearRegression,
    X: Any,
    y: ArrayLike,
    *,
    n_draws: int = 1000,
    n_chains: int = 4,
    rng: int | np.random.Generator | None = None,
) -> Any:
    """Draw from a model for ArviZ: posterior, predictions, log likelihood, prior and data.

    Parameters
    ----------
    model : BayesianLinearRegression
        One that has learned. Its posterior is drawn from exactly: draws are independent, and the
        chains are there only because ArviZ compares them.
    X : (n, m) array or data frame
        Rows to predict at, usually those that were learned.
    y : (n,) array
        Their targets.
    n_draws, n_chains : int
        Draws in each chain, and chains. Predictions and log likelihoods take 16 bytes for each
        draw and row.
    rng : int or numpy Generator, optional
        Anything that ``numpy.random.default_rng`` takes.

    Returns
    -------
    arviz.InferenceData, or xarray.DataTree from ArviZ 1 on
        ``posterior`` (``intercept``, ``coef`` by feature, and ``sigma`` where the noise is
        learned), ``posterior_predictive``, ``log_likelihood`` and ``observed_data`` (``y`` by
        observation), ``constant_data`` (``X``), and ``prior`` (``coef``, ``sigma``) as far as the
        prior is proper; what is not is listed in the attribute ``improper_prior``. A
        ``prior_predictive`` comes with a prior that is proper as a whole: without an intercept.

    Raises
    ------
    ImportError
        Without ArviZ: ``pip install "posterity[arviz]"``.
    TypeError
        If ``model`` is not a linear regression.
    ValueError
        If the posterior is still improper, or an average over ways to forget; or if rows can't be
        used.

    Notes
    -----
    With the noise learned, its variance is drawn from its inverse gamma posterior and the
    coefficients from their normal one given it (Gelman et al. 2013, section 14.2); under a learned
    prior precision, first the precision from what the evidence leaves open of it.

    Examples
    --------
    >>> to_arviz("model", [[1.0]], [1.0])
    Traceback (most recent call last):
        ...
    TypeError: to_arviz draws from a BayesianLinearRegression, not from a str
    """
    if not isinstance(model, BayesianLinearRegression):
        raise TypeError(
            f"to_arviz draws from a BayesianLinearRegression, not from a {type(model).__name__}"
        )
    with warnings.catch_warnings():
        # ArviZ announces its next version when it is imported, which is no news of ours.
        warnings.simplefilter("ignore", FutureWarning)
        arviz = needed("arviz", "arviz")
    generator = np.random.default_rng(rng)
    rows, targets = _rows_of(model, X, y)
    shape = n_chains, n_draws
    posterior = _posterior_draws(components(model._known, "to_arviz"), math.prod(shape), generator)
    groups = {
        "posterior": _named(model, posterior, shape),
        "posterior_predictive": {"y": _predicted(posterior, rows, generator, shape)},
        "log_likelihood": {"y": _log_likelihood(posterior, rows, targets, shape)},
        "observed_data": {"y": targets},
        "constant_data": {"X": rows[:, model._offset :]},
    }
    prior, improper = _prior_draws(model, math.prod(shape), generator)
    if prior is not None:
        groups["prior"] = _named(model, prior, shape)
        if not improper:
            groups["prior_predictive"] = {"y": _predicted(prior, rows, generator, shape)}
    coords = {
        "feature": list(model.posterior_.names or ())[model._offset :],
        "observation": list(getattr(X, "index", range(len(targets)))),
    }
    dims = {"coef": ["feature"], "y": ["observation"], "X": ["observation", "feature"]}
    return _container(arviz, groups, coords, dims, {"improper_prior": ", ".join(improper)})


def _container(arviz: Any, groups: Any, coords: Any, dims: Any, attrs: dict[str, str]) -> Any:
    if "posterior" in inspect.signature(arviz.from_dict).parameters:  # before ArviZ 1
        return arviz.from_dict(**groups, coords=coords, dims=dims, attrs=attrs)
    tree = arviz.from_dict(groups, coords=coords, dims=dims)
    tree.attrs.update(attrs)
    return tree


def _rows_of(model: BayesianLinearRegression, X: Any, y: ArrayLike) -> tuple[Array, Array]:
    """Columns (n, p) with the intercept's 1, and targets (n,)."""
    model._known  # noqa: B018  (says that nothing was learned before X is looked at)
    X, targets, _ = read_rows(model, X, y, None, reset=False)
    with explained(model, X, targets):
        if not (np.isfinite(X).all() and np.isfinite(targets).all()):
            raise FloatingPointError
    columns = model._columns(X)
    if model._known.intercept:
        columns = np.column_stack([np.ones(len(columns)), columns])
    return columns, targets[:, 0]


def _posterior_draws(parts: Components, size: int, rng: np.random.Generator) -> Draws:
    chosen = rng.choice(len(parts), size=size, p=[weight for weight, _ in parts])
    coefficients, noise = np.empty((size, parts[0][1].n_coefficients)), np.empty(size)
    for place, (_, known) in enumerate(parts):
        mine = np.flatnonzero(chosen == place)
        noise[mine] = _noise_draws(known, len(mine), rng)
        spread = _whitened(known.factor.root, len(mine), rng)
        coefficients[mine] = known.coefficients() + noise[mine, None] * spread
    return Draws(coefficients, noise)


def _noise_draws(known: LinearPosterior, size: int, rng: np.random.Generator) -> Array:
    """Standard deviations of the noise, (size,)."""
    if not isinstance(known.noise, LearnedNoise):
        return np.full(size, known.noise_precision**-0.5)
    shape = known.noise.shape + 0.5 * known.freed
    rate = known.noise.rate + 0.5 * known.residual
    if shape <= 0.0:
        raise ValueError(
            "the posterior of the noise is still improper: learn more rows, or give a noise_prior "
            "with shape and rate above 0"
        )
    return np.sqrt(rate / rng.gamma(shape, size=size))


def _whitened(root: Array, size: int, rng: np.random.Generator) -> Array:
    """Draws (size, p) of Normal(0, (root'root)^-1)."""
    normal = rng.standard_normal((len(root), size))
    return np.asarray(solve_triangular(root, normal, check_finite=False)).T


def _prior_draws(
    model: BayesianLinearRegression, size: int, rng: np.random.Generator
) -> tuple[Draws | None, list[str]]:
    """Draws of what is proper of the prior (NaN where it is not), and the names of the rest."""
    known, offset = model._known, model._offset
    improper = ["intercept"] if known.intercept else []
    learned = known.noise if isinstance(known.noise, LearnedNoise) else None
    if learned is not None and not (learned.shape > 0.0 and learned.rate > 0.0):
        return None, [*improper, "coef", "sigma"]
    root = known.prior.root[offset:, offset:]
    if isinstance(known, EvidencePosterior) or not np.diag(root).all():
        return None, [*improper, "coef"]  # learned from the data, or flat
    if learned is None:
        noise = np.full(size, known.noise_precision**-0.5)
    else:
        noise = np.sqrt(learned.rate / rng.gamma(learned.shape, size=size))
    coefficients = np.full((size, known.n_coefficients), np.nan)
    mean = known.prior.coefficients()[offset:, 0]
    coefficients[:, offset:] = mean + noise[:, None] * _whitened(root, size, rng)
    return Draws(coefficients, noise), improper


def _named(
    model: BayesianLinearRegression, draws: Draws, shape: tuple[int, int]
) -> dict[str, Array]:
    """Variables by name, each (chains, draws, ...)."""
    offset, coefficients = model._offset, draws.coefficients
    named = {"coef": coefficients[:, offset:].reshape(*shape, -1)}
    if offset and not np.isnan(coefficients[0, 0]):
        named["intercept"] = coefficients[:, 0].reshape(shape)
    if isinstance(model._known.noise, LearnedNoise):
        named["sigma"] = draws.noise.reshape(shape)
    return named


def _predicted(
    draws: Draws, rows: Array, rng: np.random.Generator, shape: tuple[int, int]
) -> Array:
    mean = draws.coefficients @ rows.T
    return (mean + draws.noise[:, None] * rng.standard_normal(mean.shape)).reshape(*shape, -1)


def _log_likelihood(draws: Draws, rows: Array, y: Array, shape: tuple[int, int]) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = (y - draws.coefficients @ rows.T) / draws.noise[:, None]
        logs = -0.5 * np.square(errors) - np.log(draws.noise)[:, None] - 0.5 * LOG_2PI
    return logs.reshape(*shape, -1)
