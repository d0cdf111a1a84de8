"""B-splines."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import SplineTransformer

from posterity.basis._domain import LocalFunctions, check_choice, check_count, spread

Array = NDArray[np.float64]


class Spline(LocalFunctions):
    """B-splines of each feature: smooth pieces of polynomials that join at knots.

    Parameters
    ----------
    n_knots : int, default 8
        Knots for each feature, the ends of the domain included, when their places are not given.
        A feature then has ``n_knots + degree - 2`` columns.
    degree : int, default 3
        Of the pieces; 3 is a cubic spline.
    knots : {"even", "quantiles"}, (c,) or (c, d) array, default "even"
        ``"even"``: evenly over the domain. ``"quantiles"``: with about equally many rows of the
        first batch between neighbours. (c,): these, for each feature; (c, d): one column for each;
        the first and the last knot are the domain then.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. Not
        together with knots that are given.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: straight on, with the slope at the domain's end, as natural splines do.

    Attributes
    ----------
    domain_ : (d, 2) array
    knots_ : list of (c,) arrays, one for each feature

    Notes
    -----
    The functions are those of scikit-learn's SplineTransformer, itself on SciPy's BSpline (de Boor
    1978). What is added: a domain that may be given before any data, and knots that are fixed from
    it. The B-splines of a feature sum to 1; the last is left out, for the model has an intercept.

    Examples
    --------
    >>> basis = Spline(n_knots=3, degree=1, domain=(0.0, 2.0)).fit([[0.5]])
    >>> basis.transform([[0.0], [0.5], [2.0], [3.0]])
    array([[ 1. ,  0. ],
           [ 0.5,  0.5],
           [ 0. ,  0. ],
           [ 0. , -1. ]])
    """

    def __init__(
        self,
        *,
        n_knots: int = 8,
        degree: int = 3,
        knots: str | ArrayLike = "even",
        domain: ArrayLike | None = None,
        outside: str = "extend",
    ) -> None:
        self.n_knots = n_knots
        self.degree = degree
        self.knots = knots
        self.domain = domain
        self.outside = outside

    def _needs_range(self) -> bool:
        return isinstance(self.knots, str)

    def _begin(self, X: Array) -> None:
        degree = check_count("degree", self.degree)
        if isinstance(self.knots, str):
            check_choice("knots", self.knots, ("even", "quantiles"))
            count = check_count("n_knots", self.n_knots, least=2)
            knots = [
                spread(self.knots, x, r, count) for x, r in zip(X.T, self.domain_, strict=True)
            ]
        else:
            knots = self._given_knots(X.shape[1])
            self.domain_ = np.array([[places[0], places[-1]] for places in knots])
        self.knots_ = knots
        self._splines = [
            SplineTransformer(
                degree=degree, knots=places[:, None], extrapolation="linear", include_bias=False
            )
            .set_output(transform="default")  # whatever scikit-learn's global setting
            .fit(places[:, None])
            for places in knots
        ]

    def _given_knots(self, d: int) -> list[Array]:
        if self.domain is not None:
            raise ValueError("domain and knots are both given: the outer knots are the domain")
        knots = np.asarray(self.knots, dtype=np.float64)
        if knots.ndim == 1:
            knots = np.repeat(knots[:, None], d, axis=1)
        if knots.ndim != 2 or knots.shape[1] != d or len(knots) < 2:
            raise ValueError(
                f"knots has shape {knots.shape}: it must be 'even', 'quantiles', (c,) places for "
                f"each feature, or (c, {d}), with at least two knots"
            )
        for feature, places in enumerate(knots.T):
            if not (np.isfinite(places).all() and (np.diff(places) > 0.0).all()):
                raise ValueError(
                    f"knots of feature {self._label(feature)} are {places.tolist()}: they must be "
                    "finite and increase"
                )
        return [places.copy() for places in knots.T]

    def _columns(self, X: Array) -> Array:
        pieces = [
            spline.transform(np.ascontiguousarray(X[:, [feature]]))
            for feature, spline in enumerate(self._splines)
        ]
        return np.concatenate(pieces, axis=1)

    def _column_names(self, inputs: list[str]) -> list[str]:
        return [
            f"{name}_spline{index}"
            for name, spline in zip(inputs, self._splines, strict=True)
            for index in range(spline.n_features_out_)
        ]
