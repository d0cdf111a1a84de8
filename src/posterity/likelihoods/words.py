"""Likelihoods by their names."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from posterity.likelihoods.angles import VonMises
from posterity.likelihoods.beta import Beta
from posterity.likelihoods.censored import Censored
from posterity.likelihoods.classes import Bernoulli
from posterity.likelihoods.counts import (
    Geometric,
    LinearNegativeBinomial,
    NegativeBinomial,
    Poisson,
)
from posterity.likelihoods.gamma import Gamma
from posterity.likelihoods.inverse_gaussian import InverseGaussian
from posterity.likelihoods.likelihood import Likelihood
from posterity.likelihoods.log_lifetimes import LogLogistic, LogNormal
from posterity.likelihoods.noises import StudentT
from posterity.likelihoods.ordinal import Ordinal
from posterity.likelihoods.skewed import SkewNormal
from posterity.likelihoods.successes import BetaBinomial, Binomial
from posterity.likelihoods.tweedie import Tweedie
from posterity.likelihoods.weibull import Exponential, Weibull

# A name may be followed by numbers, as in "tweedie:1.6" or "ordinal:5".
NAMED: dict[str, type[Likelihood]] = {
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "geometric": Geometric,
    "negative binomial": NegativeBinomial,
    "linear negative binomial": LinearNegativeBinomial,
    "gamma": Gamma,
    "inverse gaussian": InverseGaussian,
    "tweedie": Tweedie,
    "log normal": LogNormal,
    "exponential": Exponential,
    "weibull": Weibull,
    "log logistic": LogLogistic,
    "beta": Beta,
    "von mises": VonMises,
    "student t": StudentT,
    "skew normal": SkewNormal,
}
WITH_NUMBER: dict[str, type[Likelihood]] = {
    "binomial": Binomial,
    "beta binomial": BetaBinomial,
    "ordinal": Ordinal,
}


def read_likelihood(given: Any, *more: str) -> Likelihood:
    """The likelihood of a name, or itself; the message of an error lists ``more`` names, too.

    A name may be followed by the numbers that the likelihood takes: "ordinal:5", "tweedie:1.6",
    "student t:4,0.3". Blanks, hyphens, underscores and capitals make no difference:
    "lognormal", "log-normal".

    Examples
    --------
    >>> read_likelihood("poisson"), read_likelihood("ordinal:5")
    (Poisson(), Ordinal(levels=5, gaps=None, link='logit'))

    Raises
    ------
    ValueError
        For another name, or numbers that the likelihood does not take.
    TypeError
        For what is neither a name nor a likelihood.
    """
    if isinstance(given, str):
        return _read_name(given, more)
    if not isinstance(given, Likelihood):
        raise TypeError(
            f"likelihood is {given!r}: it must be {_list_names(more)}, or an instance of a class "
            "derived from posterity.likelihoods.Likelihood, as Poisson()"
        )
    return given


def censor(given: Any) -> Likelihood:
    """A likelihood, or that of a name, of targets with two ends.

    Examples
    --------
    >>> censor("weibull") == censor(Censored(Weibull()))
    True
    """
    known = read_likelihood(given)
    return known if known.n_numbers == 2 else Censored(known)


def is_name(word: str) -> bool:
    """Return True if a likelihood has this name, which may need a number.

    Examples
    --------
    >>> is_name("log-normal"), is_name("ordinal"), is_name("spline")
    (True, True, False)
    """
    return _squeeze(word) in SQUEEZED


def _squeeze(word: str) -> str:
    return word.replace("-", "").replace("_", "").replace(" ", "").lower()


SQUEEZED = {_squeeze(name): kind for name, kind in (NAMED | WITH_NUMBER).items()}


def _read_name(given: str, more: tuple[str, ...]) -> Likelihood:
    written, colon, numbers = given.partition(":")
    kind = SQUEEZED.get(_squeeze(written))
    if kind is None or (kind in WITH_NUMBER.values() and not colon):
        raise ValueError(
            f"likelihood is {given!r}: it must be {_list_names(more)}, or a value of "
            "posterity.likelihoods"
        )
    try:
        values = [float(one) for one in numbers.split(",") if colon]
    except ValueError as error:
        raise ValueError(
            f"likelihood is {given!r}: after the colon come numbers, as in 'ordinal:5'"
        ) from error
    if len(values) > (most := len(fields(kind))):  # type: ignore[arg-type]
        raise ValueError(f"likelihood is {given!r}: {written!r} takes at most {most} numbers")
    return kind(*values)


def _list_names(more: tuple[str, ...]) -> str:
    return ", ".join(map(repr, [*more, *NAMED, *(f"{name}:5" for name in WITH_NUMBER)]))


__all__ = ["censor", "is_name", "read_likelihood"]
