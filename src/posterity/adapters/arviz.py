"""Conversion of posteriors to draws in ArviZ's containers."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_classifier

from posterity.adapters._draws import Draws, Rows, find_family
from posterity.adapters._extras import require_module
from posterity.aliases import Array
from posterity.distributions.categorical import positions
from posterity.generalized import BayesianPoissonRegression
from posterity.generalized._labels import read_labels
from posterity.likelihoods import Poisson
from posterity.linear.base import LinearModel
from posterity.linear.inputs import name_bad_rows, read_rows
from posterity.linear.offsets import RateOffsets, compute_log_exposure, read_offset
from posterity.linear.targets import refuse_several_targets
from posterity.noise import LearnedNoise

__all__ = ["to_arviz"]


def to_arviz(
    model: LinearModel,
    X: Any,
    y: ArrayLike,
    *,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    n_draws: int = 1000,
    n_chains: int = 4,
    rng: int | np.random.Generator | None = None,
) -> Any:
    """Draw from a model for ArviZ: posterior, predictions, log likelihood, prior and data.

    Parameters
    ----------
    model : BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegression or \
BayesianRobustRegression
        One that has learned. Draws are independent, and the chains are there only because ArviZ
        compares them.
    X : (n, m) array or data frame
        Rows to predict at, usually those that were learned.
    y : (n,) array
        Their targets.
    offset, exposure : (n,) array or float, optional
        Of counts, as in ``fit``.
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
        observation), ``constant_data`` (``X``; ``offset`` and ``exposure`` of counts), and
        ``prior`` as far as it is proper; what is not is listed in the attribute
        ``improper_prior``. A ``prior_predictive`` comes with a prior that is proper as a whole:
        without an intercept.
        Labels are given by their places among the classes, which the attribute ``classes`` lists;
        with more than two, intercept and ``coef`` are by class, of sum 0.

    Raises
    ------
    ImportError
        Without ArviZ: ``pip install "posterity[arviz]"``.
    TypeError
        If ``model`` is none of these, or offsets are given to one that knows none.
    ValueError
        If the posterior is still improper, or a regression's average over ways to forget; if a
        target is none that the model knows; or if rows can't be used.

    Notes
    -----
    Linear regression is drawn from exactly: with the noise learned, its variance from its inverse
    gamma posterior and the coefficients from their normal one given it (Gelman et al. 2013,
    section 14.2); under a learned prior precision, first the precision from what the evidence
    leaves open of it. The others have a Gaussian that stands for the posterior (``posterior_``),
    and are drawn from that; the scale of heavy-tailed noise is plugged in. These have no ``prior``
    group under heavy tails and with more than two classes.

    Examples
    --------
    >>> to_arviz("model", [[1.0]], [1.0])
    Traceback (most recent call last):
        ...
    TypeError: to_arviz draws from linear, logistic, Poisson and robust regressions, not from a str
    """
    family = find_family(model)
    with warnings.catch_warnings():
        # ArviZ announces its next version when it is imported, which is no news of ours.
        warnings.simplefilter("ignore", FutureWarning)
        arviz = require_module("arviz", "arviz")
    generator = np.random.default_rng(rng)
    added = RateOffsets(offset, exposure)
    rows = _rows_of(model, X, y, added)
    shape = n_chains, n_draws
    posterior = family.draw(math.prod(shape), generator)

    def by_row(values: Any) -> dict[str, Any]:
        return {"y": values.reshape(*shape, -1)}

    first = int(model.fit_intercept)
    groups = {
        "posterior": _name_variables(model, posterior, shape),
        "posterior_predictive": by_row(family.draw_predictions(posterior, rows, generator)),
        "log_likelihood": by_row(family.log_likelihood(posterior, rows)),
        "observed_data": {
            "y": rows.targets.astype(np.intp) if is_classifier(model) else rows.targets
        },
        "constant_data": {"X": rows.columns[:, first:]},
    }
    n = len(rows.targets)
    if offset is not None:
        groups["constant_data"]["offset"] = read_offset(offset, n)
    if (logs := compute_log_exposure(exposure, n)) is not None:
        groups["constant_data"]["exposure"] = np.exp(logs)
    prior, improper = family.prior(math.prod(shape), generator)
    if prior is not None:
        groups["prior"] = _name_variables(model, prior, shape)
        if not improper:
            groups["prior_predictive"] = by_row(family.draw_predictions(prior, rows, generator))
    return _container(arviz, groups, *_list_coordinates(model, X, len(rows.targets)), improper)


def _list_coordinates(
    model: BaseEstimator, X: Any, n: int
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Coordinates, and the dimensions of each variable."""
    coords = {
        "feature": _get_feature_names(model),
        "observation": list(getattr(X, "index", range(n))),
    }
    dims = {
        "coef": ["feature"],
        "y": ["observation"],
        "X": ["observation", "feature"],
        "offset": ["observation"],
        "exposure": ["observation"],
    }
    if is_classifier(model):
        coords["class"] = model.classes_.tolist()
        if len(model.classes_) > 2:
            dims |= {"coef": ["class", "feature"], "intercept": ["class"]}
    return coords, dims


def _container(arviz: Any, groups: Any, coords: Any, dims: Any, improper: list[str]) -> Any:
    attrs = {"improper_prior": ", ".join(improper)}
    if "class" in coords:
        attrs["classes"] = ", ".join(map(str, coords["class"]))
    if "posterior" in inspect.signature(arviz.from_dict).parameters:  # before ArviZ 1
        return arviz.from_dict(**groups, coords=coords, dims=dims, attrs=attrs)
    tree = arviz.from_dict(groups, coords=coords, dims=dims)
    tree.attrs.update(attrs)
    return tree


def _rows_of(model: BaseEstimator, X: Any, y: ArrayLike, added: RateOffsets) -> Rows:
    refuse_several_targets(model, "ArviZ")
    model._posterior  # noqa: B018  (says that nothing was learned before X is looked at)
    counts = isinstance(model, BayesianPoissonRegression)
    given = [name for name, value in added._asdict().items() if value is not None]
    if given and not counts:
        raise TypeError(
            f"{given[0]} is for models of counts, not for {type(model).__name__}: leave it out"
        )
    X, targets, _ = read_rows(model, X, _numbers(model, y), None, reset=False)
    with name_bad_rows(model, X, targets):
        if not (np.isfinite(X).all() and np.isfinite(targets).all()):
            raise FloatingPointError
    if counts:
        Poisson().check_targets(targets[:, 0])
    columns = model._columns(X)
    if model.fit_intercept:
        columns = np.column_stack([np.ones(len(columns)), columns])
    offsets = added.read(len(columns))
    return Rows(columns, targets[:, 0], np.zeros(len(columns)) if offsets is None else offsets)


def _numbers(model: BaseEstimator, y: ArrayLike) -> ArrayLike:
    """Targets, or the places of labels among the classes."""
    if not is_classifier(model):
        return y
    labels = read_labels(y)
    places, there = positions(model.classes_, labels)
    if not there.all():
        row = int(np.argmin(there))
        label = labels.tolist()[row]
        raise ValueError(
            f"y is {label!r} in row {row}, which is not among the learned classes: leave the "
            "row out"
        )
    return places.astype(np.float64)


def _get_feature_names(model: BaseEstimator) -> list[str]:
    return [str(name) for name in model._column_names(model._n_columns)]


def _name_variables(model: BaseEstimator, draws: Draws, shape: tuple[int, int]) -> dict[str, Array]:
    """Variables by name, each (chains, draws, ...)."""
    offset, coefficients = int(model.fit_intercept), draws.coefficients
    inner = coefficients.shape[1:-1]  # by class, if there are many
    named = {"coef": coefficients[..., offset:].reshape(*shape, *inner, -1)}
    if offset and not np.isnan(coefficients[..., 0]).any():
        named["intercept"] = coefficients[..., 0].reshape(*shape, *inner)
    if isinstance(model._posterior.noise, LearnedNoise):
        named["sigma"] = draws.noise.reshape(shape)
    return named
