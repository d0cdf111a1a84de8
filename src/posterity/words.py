"""Models in words: ``auto``, ``logistic``, ``spline+adaptive``, as the command takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LINEAR = "BayesianLinearRegression"
# Word -> class of posterity, and the parameter that its number goes to.
FAMILIES = {
    "linear": (LINEAR, ""),
    "robust": ("BayesianRobustRegression", "df"),
    "quantile": ("BayesianQuantileRegression", "quantile"),
    "poisson": ("BayesianPoissonRegression", ""),
    "negative-binomial": ("BayesianNegativeBinomialRegression", "dispersion"),
    "logistic": ("BayesianLogisticRegression", ""),
}
# Families that likelihoods have another name for.
LIKELIHOODS = {"linear": "normal", "logistic": "bernoulli"}
COUNTS = (
    "BayesianPoissonRegression", "BayesianNegativeBinomialRegression",
    "DiagonalPoissonRegression", "SparsePoissonRegression",
)  # fmt: skip
PRIORS: dict[str, float | str] = {"auto": "auto", "ard": "ard", "flat": 0.0}
# Word -> class of posterity.basis, and the parameter that its number goes to.
BASES = {
    "spline": ("Spline", "n_knots"),
    "hsgp": ("HilbertSpaceGP", "n_functions"),
    "polynomial": ("Polynomial", "degree"),
    "bumps": ("RadialBasis", "n_centers"),
    "fourier": ("Fourier", "n_frequencies"),
    "random-fourier": ("RandomFourier", "n_functions"),
}
# Sums of functions of one feature each, where there may be many features.
ADDITIVE = {"hsgp": {"additive": True}, "polynomial": {"interactions": False}}


@dataclass(frozen=True)
class ModelNames:
    """One model: its words by kind, "" where there is none."""

    text: str
    family: str = ""
    prior: str = ""
    basis: str = ""
    forgetting: str = ""


def parse_one(text: str) -> ModelNames:
    """Read ``logistic`` or ``robust+spline``: the words of one model; raises as :func:`parse`.

    Examples
    --------
    >>> parse_one("Robust:3 + spline")
    ModelNames(text='robust:3+spline', family='robust:3', prior='', basis='spline', forgetting='')
    """
    if "," in text:
        raise ValueError(f"{text!r} names several models: give one, or use posterity compare")
    return _model(text)


def parse(text: str) -> tuple[ModelNames, ...]:
    """Read ``auto,flat,spline+adaptive``: models between commas, words between plus signs.

    Raises
    ------
    ValueError
        A word that is none, or two of one kind, or the same model twice, or fewer than two.

    Examples
    --------
    >>> [words.text for words in parse("auto, spline + ard")]
    ['auto', 'spline+ard']
    >>> parse("auto,spline+adaptive")[1].forgetting
    'adaptive'
    """
    found = tuple(_model(model) for model in text.split(",") if model.strip())
    texts = [words.text for words in found]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{text!r} has the same model twice: leave one out")
    if len(found) < 2:
        raise ValueError(f"{text!r}: give two models or more, as in auto,flat")
    return found


def _model(text: str) -> ModelNames:
    kinds: dict[str, str] = {}
    words = [re.sub("[ _]", "-", word.strip().lower()) for word in text.split("+")]
    for word in words:
        kind = _kind(word, text.strip())
        if kind in kinds:
            raise ValueError(f"{text.strip()!r} has two settings for its {kind}: give one")
        kinds[kind] = word
    return ModelNames("+".join(words), **kinds)


def _kind(word: str, model: str) -> str:
    name, _, number = word.partition(":")
    if name in FAMILIES:
        _family(word)
        return "family"
    if name in PRIORS or name == "prior":
        _check_prior(word)
        return "prior"
    if name in BASES:
        if ":" in word and not (number.isdigit() and int(number) > 0):
            raise ValueError(f"{word!r}: {number!r} is not a whole number; as in {name}:8")
        return "basis"
    from posterity.forgetting import words as ways  # here: help is to be light

    if name in ways.KINDS or name == "none":
        ways.parse(word)
        return "forgetting"
    from posterity.likelihoods import words as likelihoods

    if likelihoods.is_name(name):
        likelihoods.read_likelihood(word)
        return "family"
    families = dict.fromkeys([*FAMILIES, *(one.replace(" ", "-") for one in likelihoods.NAMED)])
    listed = ", ".join([*families, *PRIORS, "prior:NUMBER", *BASES, "none", *ways.KINDS])
    raise ValueError(f"{word!r} in {model!r} does not describe a model: give {listed}")


def _check_prior(word: str) -> float | str:
    name, colon, number = word.partition(":")
    if name != "prior":
        if colon:
            raise ValueError(f"{word!r}: {name} takes no number; write {name} alone")
        return PRIORS[name]
    precision = read_precision(number)
    if precision is None:
        raise ValueError(f"{word!r}: {number!r} is not a number from 0 up; as in prior:1")
    return precision


def read_precision(text: str) -> float | None:
    """A number from 0 up; None for anything else.

    Examples
    --------
    >>> read_precision("0.5"), read_precision("-1"), read_precision("much")
    (0.5, None, None)
    """
    try:
        precision = float(text)
    except ValueError:
        return None
    return precision if 0.0 <= precision < float("inf") else None


def _family(word: str) -> tuple[str, dict[str, Any]]:
    """The class, and the parameter that the number is for."""
    name, colon, number = word.partition(":")
    if name not in FAMILIES:
        return "BayesianGeneralizedLinear", {"likelihood": word}
    kind, parameter = FAMILIES[name]
    if not parameter:
        if colon:
            raise ValueError(f"{word!r}: {name} takes no number; write {name} alone")
        return kind, {}
    try:
        return kind, {parameter: float(number)} if colon else {}
    except ValueError:
        raise ValueError(f"{word!r}: {number!r} is not a number; as in {name}:0.9") from None


def build_model(words: ModelNames, **common: Any) -> Any:
    """The estimator; ``common`` are its parameters where no word sets them.

    Raises
    ------
    ValueError
        A noise precision, or noise that depends on the features, where the family has none.

    Examples
    --------
    >>> build_model(parse("flat,spline:5")[1])
    BayesianLinearRegression(basis=Spline(n_knots=5))
    >>> build_model(parse_one("quantile:0.9+flat"), noise_precision=None)
    BayesianQuantileRegression(prior_precision=0.0, quantile=0.9)
    """
    from posterity import generalized, linear

    kind, number = _family(words.family or "linear")
    given = {**common, **number}
    if kind != LINEAR and given.pop("noise_precision", None) is not None:
        raise ValueError(f"a {words.family} model has no noise precision: leave it out")
    if kind != LINEAR and given.pop("noise", "constant") != "constant":
        raise ValueError(f"a {words.family} model can't have noise that depends on x: leave it out")
    if words.prior:
        given["prior_precision"] = _check_prior(words.prior)
    if words.forgetting:
        given["forgetting"] = words.forgetting
    if words.basis:
        given["basis"] = _make_basis(words.basis)
    return getattr(linear if kind == LINEAR else generalized, kind)(**given)


def _make_basis(word: str) -> Any:
    from posterity import basis

    name, _, number = word.partition(":")
    kind, parameter = BASES[name]
    make: Callable[..., Any] = getattr(basis, kind)
    return make(**ADDITIVE.get(name, {}), **({parameter: int(number)} if number else {}))
