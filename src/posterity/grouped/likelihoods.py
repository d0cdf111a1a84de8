"""The likelihood of a grouped model: by its name, or as a value."""

from __future__ import annotations

from posterity.kernel.values import is_word
from posterity.likelihoods import Likelihood
from posterity.likelihoods.words import read_likelihood

NORMAL = "gaussian"


def choose_likelihood(given: Likelihood | str) -> Likelihood | None:
    """The likelihood of a name, or itself; None where targets are normal and the noise is learned.

    Raises ``ValueError`` for another name, and where it has a parameter that is to be learned.

    Examples
    --------
    >>> choose_likelihood("poisson")
    Poisson()
    """
    if is_word(given, NORMAL):
        return None
    given = read_likelihood(given, NORMAL)
    if given.learned:
        names = " and ".join(one.name for one in given.learned)
        raise ValueError(
            f"likelihood is {given!r}: groups do not learn its {names}; give it, as in "
            "Gamma(shape=2.0), or write Model('y ~ x + (1 | group)', likelihood), which learns it"
        )
    if given.n_numbers > 1:
        raise ValueError(
            f"likelihood is {given!r}: targets with two ends have no groups here; write "
            "Model('cens(low, high) ~ x + (1 | group)', likelihood)"
        )
    return given
