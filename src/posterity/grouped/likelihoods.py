"""The likelihood of a grouped model: by its name, or as a value."""

from __future__ import annotations

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
    if isinstance(given, str) and given == NORMAL:
        return None
    given = read_likelihood(given, NORMAL)
    if given.parameter is not None and given.learns_parameter:
        raise ValueError(
            f"likelihood is {given!r}: groups do not learn its {given.parameter.name}; give it, "
            f"as in {type(given).__name__}({given.parameter.name}=2.0)"
        )
    return given


__all__ = ["choose_likelihood"]
