"""Priors by the names of features, made into one number for each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.distributions import Normal
from posterity.distributions.guesses import did_you_mean
from posterity.kernel.values import is_word

Names = Callable[[], Sequence[str]]

_EXAMPLE = "as in prior={'price': Normal(-1.0, 0.5)}, with Normal from posterity.distributions"


INTERCEPT = "intercept"


def beliefs(model: BaseEstimator, names: Names) -> tuple[Any, Any, tuple[float, float]]:
    """Prior mean and precision of ``model``: as they are, or an array (m,) where given by name.

    Columns that are not named have the mean 0 and the precision 0, which is flat. Third come the
    mean and the precision of the intercept, which is named unless a column has its name.

    Raises
    ------
    ValueError
        For a name that no column has, and for a ``prior`` that can't be used.
    """
    mean, precision, prior = model.prior_mean, model.prior_precision, model.prior
    if prior is not None:
        _check_alone(mean, precision)
        _check_noise(model)
        mean, precision = _moments(prior)
    mean, first = _by_name("prior_mean", mean, names, intercept=model.fit_intercept)
    precision, second = _by_name("prior_precision", precision, names, intercept=model.fit_intercept)
    return mean, precision, (first, second)


def _by_name(parameter: str, given: Any, names: Names, *, intercept: bool) -> tuple[Any, float]:
    """Numbers of the columns, and of the intercept."""
    if not isinstance(given, Mapping):
        return given, 0.0
    columns = list(names())
    places = {name: place for place, name in reversed(list(enumerate(columns)))}
    if intercept:
        places.setdefault(INTERCEPT, len(columns))
    values = np.zeros(len(columns) + 1)
    for name, value in given.items():
        if name not in places:
            raise ValueError(_refuse_unknown(parameter, name, columns))
        if np.ndim(value) or isinstance(value, str):
            raise ValueError(f"{parameter}[{name!r}] is {value!r}: it must be a number")
        values[places[name]] = value
    return values[:-1], float(values[-1])


def _refuse_unknown(parameter: str, name: object, columns: list[str]) -> str:
    if name == INTERCEPT:
        return f"{parameter} names the intercept, but fit_intercept is False: leave it out"
    more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
    listed, near = ", ".join(map(repr, columns[:20])) + more, did_you_mean(name, columns)
    return f"{parameter} names {name!r}, which is no feature: the features are {listed}{near}"


def _moments(prior: Any) -> tuple[dict[Any, float], dict[Any, float]]:
    """Means and precisions of normal distributions, by name."""
    if not isinstance(prior, Mapping):
        raise TypeError(
            f"prior is {prior!r}: give a distribution for each named feature, {_EXAMPLE}"
        )
    for name, one in prior.items():
        if not isinstance(one, Normal) or one.shape or not 0.0 < float(one.scale) < np.inf:
            raise ValueError(
                f"prior[{name!r}] is {one!r}: it must be one normal distribution of finite "
                f"positive scale, {_EXAMPLE}"
            )
    return (
        {name: float(one.loc) for name, one in prior.items()},
        {name: float(one.scale) ** -2.0 for name, one in prior.items()},
    )


def _check_alone(mean: Any, precision: Any) -> None:
    plain = np.isscalar(mean) and mean == 0.0
    if not (plain and is_word(precision, "auto")):
        raise ValueError(
            "prior is given, and prior_mean or prior_precision too: give prior alone (the prior of "
            "features that it does not name is flat), or the other two"
        )


def _check_noise(model: BaseEstimator) -> None:
    learned = model._noise_parameter
    if learned is not None and getattr(model, learned) is None:
        raise ValueError(
            f"prior is given in units of the coefficients, but the noise is learned, and priors "
            f"are then relative to it: give {learned}, or prior_mean and prior_precision by name, "
            "the precision being (sd of the noise / sd of the prior)^2"
        )
