"""B-splines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.preprocessing import SplineTransformer

from posterity.basis._domain import LocalFunctions, check_choice, check_count, spread

Array = NDArray[np.float64]

# Of higher degrees the values of a polynomial's coefficients leave few digits of its own.
LARGEST_DEGREE = 30


class Spline(LocalFunctions):
    """B-splines of each feature: piecewise polynomials that join smoothly at knots.

    Parameters
    ----------
    n_knots : int, default 8
        Knots for each feature, the ends of the domain included, when their places are not given.
        A feature then has ``n_knots + degree - 2`` columns.
    degree : int, default 3
        At most 30.
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

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        degree = check_count("degree", self.degree, most=LARGEST_DEGREE)
        if isinstance(self.knots, str):
            check_choice("knots", self.knots, ("even", "quantiles"))
            count = check_count("n_knots", self.n_knots, least=2)
            knots = [
                spread(self.knots, x, r, count) for x, r in zip(X.T, self.domain_, strict=True)
            ]
        else:
            knots = self._read_given_knots(X.shape[1])
            self.domain_ = np.array([[places[0], places[-1]] for places in knots])
        self.knots_ = knots
        splines = [
            SplineTransformer(
                degree=degree, knots=places[:, None], extrapolation="linear", include_bias=False
            )
            .set_output(transform="default")  # whatever scikit-learn's global setting
            .fit(places[:, None])
            for places in knots
        ]
        self._use(splines)

    def _use(self, splines: list[SplineTransformer]) -> None:
        """Take these splines, and their polynomials for single rows."""
        self._splines, self._pieces = splines, PiecewisePolynomials.of(splines)

    def _read_given_knots(self, d: int) -> list[Array]:
        if self.domain is not None:
            raise ValueError(
                "domain and knots are both given: leave domain out, which is that of the outer "
                "knots"
            )
        knots = np.asarray(self.knots, dtype=np.float64)
        if knots.ndim == 1:
            knots = np.repeat(knots[:, None], d, axis=1)
        if knots.ndim == 0:
            raise ValueError(f"knots is {self.knots!r}: give n_knots for how many there are")
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
        if len(X) == 1:
            return self._pieces.evaluate_row(X[0])[None]
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


@dataclass(frozen=True)
class PiecewisePolynomials:
    """Splines of d features as the polynomials that they are between knots, c knots at most.

    A piece starts at each knot, and one before the first, which like that after the last is a line.
    ``starts`` (d, c + 1) are where they do, the first at the first knot, too; ``polynomials`` (d,
    c + 1, degree + 1, m) have the constants first. What lacks to c and m is filled up: ``kept`` are
    the columns that count, of d m.
    """

    starts: Array
    polynomials: Array
    kept: NDArray[np.intp]

    @classmethod
    def of(cls, splines: list[SplineTransformer]) -> Self:
        """The pieces of transformers of one feature each that go on as lines."""
        each = [_compute_polynomials(spline) for spline in splines]
        knots = max(len(starts) for starts, _ in each)
        _, size, columns = max((table.shape for _, table in each), key=lambda shape: shape[2])
        starts = np.full((len(each), knots), np.inf)
        tables = np.zeros((len(each), knots, size, columns))
        kept = np.zeros((len(each), columns), dtype=bool)
        for feature, (places, table) in enumerate(each):
            starts[feature, : len(places)] = places
            tables[feature, : len(table), :, : table.shape[2]] = table
            kept[feature, : table.shape[2]] = True
        return cls(starts, tables, np.flatnonzero(kept))

    def evaluate_row(self, x: Array) -> Array:
        """Columns (m,) at one row (d,)."""
        features = np.arange(len(x))
        which = (self.starts[:, 1:] <= x[:, None]).sum(axis=1)
        powers = np.power.outer(
            x - self.starts[features, which], np.arange(self.polynomials.shape[2])
        )
        values = np.matmul(powers[:, None], self.polynomials[features, which])
        return np.asarray(values.ravel()[self.kept])


def _compute_polynomials(spline: SplineTransformer) -> tuple[Array, Array]:
    """Return the starts of one feature's pieces, and their polynomials (pieces, size, m)."""
    inner, degree = spline.bsplines_[0], spline.degree
    knots = inner.t[degree:-degree]
    table = np.zeros((len(knots) + 1, degree + 1, spline.n_features_out_))
    for k in range(degree + 1):
        slopes = inner(knots, nu=k)[:, : table.shape[2]] / math.factorial(k)
        table[1:, k] = slopes
        if k < 2:
            table[0, k] = slopes[0]
        else:
            table[-1, k] = 0.0
    return np.concatenate([knots[:1], knots]), table
