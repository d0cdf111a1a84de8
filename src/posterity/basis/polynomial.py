"""Polynomials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import PolynomialFeatures

from posterity.aliases import Array
from posterity.basis._domain import DomainTransformer, check_choice, check_count


@dataclass(kw_only=True, eq=False, repr=False)
class Polynomial(DomainTransformer):
    """All polynomials of the features up to a degree.

    Parameters
    ----------
    degree : int, default 3
        Largest total degree. 0 makes no columns at all: the model's intercept is what is left.
    interactions : bool, default True
        Whether to multiply different features; without, each feature has its own powers only.
    family : {"legendre", "monomial"}, default "legendre"
        ``"legendre"``: Legendre polynomials of the features moved to [-1, 1], scaled so that their
        products are orthonormal for rows spread evenly over the domain. ``"monomial"``: plain
        powers of the values as they come, ``x, x^2, ...``.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: the polynomial goes on; it grows fast there, and so does its uncertainty.

    Attributes
    ----------
    domain_ : (d, 2) array
    powers_ : (m, d) array of int
        Degree of each column in each feature.

    Notes
    -----
    The two families span the same functions whatever the domain is, so that rows far outside are
    still fitted by the same polynomial. They differ in two things. Conditioning: powers of raw
    values like years lose all digits at degree 3 or 4, Legendre polynomials on the domain lose
    none. And the meaning of a prior with one precision for all: on the Legendre family it shrinks
    the size of the function over the domain, on monomials it shrinks derivatives at x = 0.
    The choice of the powers is scikit-learn's PolynomialFeatures; the scaling is what is added.

    Examples
    --------
    >>> basis = Polynomial(degree=2, family="monomial").fit([[0.0, 0.0], [1.0, 1.0]])
    >>> basis.transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> basis.get_feature_names_out().tolist()
    ['x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    """

    degree: int = 3
    interactions: bool = True
    family: str = "legendre"
    domain: ArrayLike | None = None
    outside: str = "extend"

    def _needs_range(self) -> bool:
        return self.family != "monomial"

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        degree = check_count("degree", self.degree, least=0)
        check_choice("family", self.family, ("legendre", "monomial"))
        d = X.shape[1]
        if degree == 0:
            powers = np.zeros((0, d), dtype=np.int64)
        elif self.interactions:
            scheme = PolynomialFeatures(degree, include_bias=False).fit(np.zeros((1, d)))
            powers = np.asarray(scheme.powers_, dtype=np.int64)
        else:
            # By degree first, as PolynomialFeatures does.
            powers = np.concatenate([k * np.eye(d, dtype=np.int64) for k in range(1, degree + 1)])
        self.powers_: NDArray[np.int64] = powers

    def _columns(self, X: Array) -> Array:
        degree = int(self.powers_.max(initial=0))
        if self.family == "legendre":
            # P_k is orthogonal on [-1, 1], its mean square there 1 / (2 k + 1).
            one_by_one = np.polynomial.legendre.legvander(self._scale_to_domain(X), degree)
            one_by_one = one_by_one * np.sqrt(2.0 * np.arange(degree + 1) + 1.0)
        else:
            one_by_one = X[:, :, None] ** np.arange(degree + 1)
        columns = np.ones((len(X), len(self.powers_)))
        for feature in range(X.shape[1]):
            used = np.flatnonzero(self.powers_[:, feature])
            columns[:, used] *= one_by_one[:, feature, self.powers_[used, feature]]
        return columns

    def _column_names(self, inputs: list[str]) -> list[str]:
        def factor(name: str, power: int) -> str:
            if self.family == "legendre":
                return f"P{power}({name})"
            return name if power == 1 else f"{name}^{power}"

        return [
            " ".join(factor(name, k) for name, k in zip(inputs, powers, strict=True) if k)
            for powers in self.powers_.tolist()
        ]
