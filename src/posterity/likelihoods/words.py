"""Likelihoods by their names."""

from __future__ import annotations

from typing import Any

from posterity.likelihoods.classes import Bernoulli
from posterity.likelihoods.counts import Poisson
from posterity.likelihoods.gamma import Gamma
from posterity.likelihoods.likelihood import Likelihood

NAMED: dict[str, Likelihood] = {
    "bernoulli": Bernoulli(),
    "poisson": Poisson(),
    "gamma": Gamma(),
}


def read_likelihood(given: Any, *more: str) -> Likelihood:
    """The likelihood of a name, or itself; the message of an error lists ``more`` names, too.

    Examples
    --------
    >>> read_likelihood("poisson")
    Poisson()

    Raises
    ------
    ValueError
        For another name.
    TypeError
        For what is neither a name nor a likelihood.
    """
    names = ", ".join(map(repr, [*more, *NAMED]))
    if isinstance(given, str):
        if given in NAMED:
            return NAMED[given]
        raise ValueError(
            f"likelihood is {given!r}: it must be {names}, or a value of posterity.likelihoods"
        )
    if not isinstance(given, Likelihood):
        raise TypeError(
            f"likelihood is {given!r}: it must be {names}, or an instance of a class derived from "
            "posterity.likelihoods.Likelihood, as Poisson()"
        )
    return given


__all__ = ["read_likelihood"]
