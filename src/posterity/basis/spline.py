"""Splines: smooth curves with many knots, and B-splines."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import SplineTransformer
from sklearn.utils.validation import check_is_fitted

from posterity.aliases import Array, Indices
from posterity.basis._domain import (
    LocalFunctions,
    check_choice,
    check_count,
    go_on,
    join_columns,
    join_ranges,
    rank_places,
    spread,
)
from posterity.basis._growth import count_spans, find_near
from posterity.basis._penalty import Penalty
from posterity.kernel.values import is_word

# Of higher degrees the values of a polynomial's coefficients leave few digits of its own.
LARGEST_DEGREE = 30


# Knots where none are asked for: the second, the last by the number of features, or the first.
# Beyond some forty the prior decides what a curve looks like, not its knots.
FEWEST_KNOTS, MOST_KNOTS, KNOTS_OF_ALL = 5, 48, 120
# What a curve may be beside its line, both of unit variance over the domain. Its waves have
# variances that fall with the fourth power of their frequency, as under random second differences,
# or with the second, as steps have; the curve is as large as the line, or smaller. Or else they
# fall as those of a smooth process with one of these length scales, in halves of the domain. The
# first stands for all where the precision of the prior is given.
POWERS_AND_SIZES = ((4, 1.0), (4, 0.03), (4, 0.001), (4, 1e-5), (2, 1.0), (2, 0.03))
LENGTH_SCALES = np.geomspace(1.0, 0.055, 7)
# Of a line of unit variance over the domain [-1, 1], the inverse.
VARIANCE_OF_LINE = 1.0 / 3.0
PLACES = 200  # at which the variance of curves is averaged
LEAST_LOG_VARIANCE = -27.0  # relative to the largest: what is beyond makes no difference


class Spline(LocalFunctions):
    """A smooth curve of each feature: a straight line, and what bends it.

    Curves are splines with many knots and a prior by which neighbouring pieces are alike: the
    evidence chooses how smooth (P-splines, Eilers and Marx 1996), and how much of it is a line.

    Parameters
    ----------
    n_knots : int, optional
        Knots for each feature, the ends of the domain included, when their places are not given.
        A feature then has ``n_knots + degree - 2`` columns. None: 48, or 120 of all features
        together, but 5 at least.
    degree : int, default 3
        Of the pieces; 3 is a cubic spline. At most 30.
    knots : {"even", "quantiles"}, (c,) or (c, d) array, default "even"
        ``"even"``: evenly over the domain. ``"quantiles"``: with about equally many rows of the
        first batch between neighbours. (c,): these, for each feature; (c, d): one column for each;
        the first and the last knot are the domain then.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. Not
        together with knots that are given. Without these and ``n_knots``, knots join where a model
        learns rows beyond.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: straight on, with the slope at the domain's end, as natural splines do.
    smooth : bool, default True
        True: columns are the line and the eigenvectors of the penalty of second differences, with
        a prior for each. False: columns are the B-splines, all on a par.

    Attributes
    ----------
    domain_ : (d, 2) array
    reach_ : (d, 2) array
        From the first knot to the last, and to rows too far away for knots, which are on the line.
    knots_ : list of (c,) arrays, one for each feature
        Only its value where a feature has a single one so far; the feature is a straight line then.
    bends_ : list of (b, b - 2) arrays, one for each feature
        Coefficients of its b B-splines in each column beside the line; none if not ``smooth``.

    Notes
    -----
    The functions are those of scikit-learn's SplineTransformer, itself on SciPy's BSpline (de Boor
    1978). A feature's B-splines have the coefficients ``line + sum_k w_k q_k``, q_k the right
    singular vectors of D, which takes second divided differences at the B-splines' centres: so
    ``|D c|^2 = sum_k s_k^2 w_k^2``, and the prior of the w_k is diagonal (the mixed model of Wand
    and Ormerod 2008). Lines have no second differences; they are a column with a prior of its own.
    The q_k are modes of a free beam, nearly waves, of frequency ``(k + 1/2) pi`` by the domain's
    length, k = 1, 2, ...; so a prior says how the variance falls with the frequency: with its
    fourth power, as under a penalty of second differences, with its second, or as that of a smooth
    process. :meth:`prior_precisions` lists these hypotheses, which are the same for all features.

    Without ``n_knots``, ``knots``, ``domain`` and another ``outside``, the domain grows with the
    rows that a model learns: knots join at the same distance, and where they would be many more
    than at first, every other one goes. A few rows far from many stay on the line. On the old
    domain all functions of the new knots are functions of the old ones, so that what is known of
    these says all of those (:meth:`columns_of`), and the model is the same as one that has had its
    knots from the start.

    Examples
    --------
    >>> basis = Spline(n_knots=3, degree=1, domain=(0.0, 2.0), smooth=False).fit([[0.5]])
    >>> basis.transform([[0.0], [0.5], [2.0], [3.0]])
    array([[ 1. ,  0. ],
           [ 0.5,  0.5],
           [ 0. ,  0. ],
           [ 0. , -1. ]])

    Of a straight line it is one, outside of its rows, too:

    >>> from posterity import BayesianLinearRegression
    >>> x = np.linspace(-1.0, 1.0, 300)[:, None]
    >>> y = 5.0 * x[:, 0] + np.random.default_rng(0).normal(size=300)
    >>> BayesianLinearRegression(basis=Spline()).fit(x, y).predict([[1.5]]).round()
    array([7.])
    """

    common_hypotheses: ClassVar[bool] = True
    bends_: list[Array]

    def __init__(
        self,
        *,
        n_knots: int | None = None,
        degree: int = 3,
        knots: str | ArrayLike = "even",
        domain: ArrayLike | None = None,
        outside: str = "extend",
        smooth: bool = True,
    ) -> None:
        self.n_knots = n_knots
        self.degree = degree
        self.knots = knots
        self.domain = domain
        self.outside = outside
        self.smooth = smooth

    def prior_precisions(self) -> Array:
        """(L, m) prior precisions of the coefficients, a row for each hypothesis.

        Of functions of unit variance over the domain; if not ``smooth``, ones.

        Examples
        --------
        >>> basis = Spline(n_knots=6, domain=(0.0, 1.0)).fit([[0.5]])
        >>> basis.prior_precisions().shape
        (13, 7)
        >>> basis.prior_precisions()[0].round(2)  # second differences, as large as the line
        array([ 0.33,  0.09,  0.68,  2.61,  7.12, 15.9 , 31.01])
        """
        if not self.smooth:
            return super().prior_precisions()
        check_is_fitted(self, "domain_")
        rows = []
        shares = np.linspace(0.0, 1.0, PLACES)[:, None]
        for spline, bends, mix, (low, high) in zip(
            self._splines, self.bends_, self._mixes, self._ends, strict=True
        ):
            values = spline.transform((1.0 - shares) * low + shares * high) @ mix[:, 1:]
            rows.append(_compute_precisions(bends, values))
        return np.concatenate(rows, axis=1)

    def reaching(self, X: Array, known: float = 0.0) -> Self:
        """Return the basis with knots over rows ``X`` (n, d), too: this one, if it has them.

        Of a model that knows so many rows, a few far away shall not take the knots of the others:
        a side on which rows are too far away keeps its knots for good.

        Examples
        --------
        >>> basis = Spline().fit([[0.0], [47.0]])
        >>> [float(end) for end in basis.reaching(np.array([[50.5]])).reach_[0]]
        [0.0, 51.0]
        """
        low, high = self.reach_.T
        below, above = np.less(X, low), np.greater(X, high)
        outside = below | above
        if not (np.count_nonzero(outside) and self._grows):
            return self
        domain = join_ranges(self.reach_, np.stack([X.min(axis=0), X.max(axis=0)], axis=1))
        sides = np.stack([below.any(axis=0), above.any(axis=0)], axis=1)
        ends = np.where(sides, domain, self._ends)
        return self._over(domain, ends, self.knots_, count_spans(outside, known))

    def joined(self, other: Self) -> Self:
        """Return the basis with knots over what both reach, whichever is asked."""
        if not self._grows:
            return self
        domain = join_ranges(self.reach_, other.reach_)
        ends = join_ranges(self._ends, other._ends)
        knots = [max(both, key=rank_places) for both in zip(self.knots_, other.knots_, strict=True)]
        return self._over(domain, ends, knots, np.inf)

    def columns_of(self, other: Self) -> Array:
        """Columns of a basis that reaches further, by these: M (1 + m, 1 + m').

        ``[1, other.transform(x)] = [1, self.transform(x)] @ M`` wherever this basis reaches, if its
        knots have those of ``other`` among them; else as nearly as least squares can.
        """
        blocks = []
        for feature, (low, high) in enumerate(self._ends):
            places = np.linspace(low, high, 3 * self._splines[feature].n_features_out_)
            mine, its = (
                np.column_stack([np.ones(len(places)), one._columns_of(feature, places[:, None])])
                for one in (self, other)
            )
            blocks.append(np.linalg.lstsq(mine, its, rcond=None)[0])
        return join_columns(blocks)

    @property
    def _grows(self) -> bool:
        free = self.n_knots is None and self.domain is None and self.outside == "extend"
        return free and is_word(self.knots, "even")

    @property
    def _ends(self) -> Array:
        """(d, 2) first and last knots."""
        return np.array([[places[0], places[-1]] for places in self.knots_])

    def _over(self, domain: Array, ends: Array, knots: list[Array], spans: ArrayLike) -> Self:
        """The basis of this domain (d, 2), whose knots go on from these to the ends (d, 2)."""
        new, count = copy(self), self._count_knots(len(domain))
        new.domain_ = domain
        each = zip(knots, *ends.T.tolist(), np.broadcast_to(spans, len(domain)), strict=True)
        new._place([go_on(one, low, high, count, most) for one, low, high, most in each])
        return new

    def _needs_range(self) -> bool:
        return isinstance(self.knots, str) and not self._grows

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        if self.smooth not in (True, False):
            raise ValueError(f"smooth is {self.smooth!r}: it must be True or False")
        if isinstance(self.knots, str):
            check_choice("knots", self.knots, ("even", "quantiles"))
            ranges = find_near(X) if self._grows else self.domain_
            count, each = self._count_knots(X.shape[1]), zip(X.T, ranges, strict=True)
            knots = [spread(self.knots, x, ends, count) for x, ends in each]
        else:
            knots = self._read_given_knots(X.shape[1])
            self.domain_ = np.array([[places[0], places[-1]] for places in knots])
        self._place(knots)

    def _place(self, knots: list[Array]) -> None:
        """Take these knots, and the curves that they make."""
        self.knots_ = knots
        splines = [make_spline(places, self.degree) for places in knots]
        if self.smooth:
            self.bends_ = [Penalty.of(spline).find_bends() for spline in splines]
        self._use(splines)

    def _count_knots(self, d: int) -> int:
        if self.n_knots is not None:
            return check_count("n_knots", self.n_knots, least=2)
        return max(FEWEST_KNOTS, min(MOST_KNOTS, KNOTS_OF_ALL // d))

    def _use(self, splines: list[SplineTransformer]) -> None:
        """Take these splines, and their polynomials for single rows."""
        self._splines, self._mixes = splines, self._mix(splines)
        self._pieces = PiecewisePolynomials.of(splines, self._mixes)
        self.reach_ = join_ranges(self._ends, self.domain_)

    def _mix(self, splines: list[SplineTransformer]) -> list[Array]:
        """Coefficients (b, m) of the columns of each feature."""
        if not self.smooth:  # they sum to 1, and the model has an intercept
            return [np.eye(spline.n_features_out_)[:, :-1] for spline in splines]
        each = zip(splines, self.bends_, strict=True)
        return [Penalty.of(spline).mix(bends) for spline, bends in each]

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
        each = range(len(self._splines))
        return np.concatenate([self._columns_of(one, X[:, [one]]) for one in each], axis=1)

    def _columns_of(self, feature: int, x: Array) -> Array:
        """The columns (n, m) of one feature (n, 1)."""
        values = self._splines[feature].transform(np.ascontiguousarray(x))
        return np.asarray(values @ self._mixes[feature])

    def _column_names(self, inputs: list[str]) -> list[str]:
        first = "line" if self.smooth else "spline0"
        return [
            f"{name}_{f'spline{index}' if index else first}"
            for name, mix in zip(inputs, self._mixes, strict=True)
            for index in range(mix.shape[1])
        ]


def _compute_precisions(bends: Array, values: Array) -> Array:
    """(L, b - 1) precisions of these bends, which have ``values`` (g, b - 2) on the domain."""
    # Of a free beam, of which these are the modes, for all but the lowest few.
    frequencies = (np.arange(bends.shape[1]) + 1.5) * (np.pi / 2.0)
    smooth = [(-0.5 * np.square(scale * frequencies), 1.0) for scale in LENGTH_SCALES]
    rough = [(-power * np.log(frequencies), size) for power, size in POWERS_AND_SIZES]
    rows = []
    for logs, size in rough + smooth:
        variances = np.exp(np.maximum(logs - logs.max(initial=-np.inf), LEAST_LOG_VARIANCE))
        mean = float((np.square(values) @ variances).mean())
        rows.append(np.concatenate([[VARIANCE_OF_LINE], mean / (size * variances)]))
    return np.array(rows)


def make_spline(places: Array, degree: object) -> SplineTransformer:
    """The B-splines of these knots (c,), which go on as lines outside; of one a line around it."""
    degree = check_count("degree", degree, most=LARGEST_DEGREE)
    if len(places) == 1:
        places, degree = places + (np.abs(places) or 1.0) * np.array([-1.0, 1.0]), 1
    spline = SplineTransformer(degree=degree, knots=places[:, None], extrapolation="linear")
    # Whatever scikit-learn's global setting.
    return spline.set_output(transform="default").fit(places[:, None])


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
    kept: Indices

    @classmethod
    def of(cls, splines: list[SplineTransformer], mixes: list[Array]) -> Self:
        """The pieces of transformers of one feature each that go on as lines, mixed (b, m)."""
        each = [_compute_polynomials(*one) for one in zip(splines, mixes, strict=True)]
        knots = max(len(starts) for starts, _ in each)
        size, columns = (max(table.shape[axis] for _, table in each) for axis in (1, 2))
        starts = np.full((len(each), knots), np.inf)
        tables = np.zeros((len(each), knots, size, columns))
        kept = np.zeros((len(each), columns), dtype=bool)
        for feature, (places, table) in enumerate(each):
            starts[feature, : len(places)] = places
            tables[feature, : len(table), : table.shape[1], : table.shape[2]] = table
            kept[feature, : table.shape[2]] = True
        return cls(starts, tables, np.flatnonzero(kept))

    def evaluate_row(self, x: Array) -> Array:
        """Columns (m,) at one row (d,)."""
        features = np.arange(len(x))
        which = np.add.reduce(self.starts[:, 1:] <= x[:, None], axis=1, dtype=np.intp)
        powers = np.power.outer(
            x - self.starts[features, which], np.arange(self.polynomials.shape[2])
        )
        values = np.matmul(powers[:, None], self.polynomials[features, which])
        return np.asarray(values.ravel()[self.kept])


def _compute_polynomials(spline: SplineTransformer, mix: Array) -> tuple[Array, Array]:
    """Return the starts of one feature's pieces, and their polynomials (pieces, size, m)."""
    inner, degree = spline.bsplines_[0], spline.degree
    knots = inner.t[degree:-degree]
    table = np.zeros((len(knots) + 1, degree + 1, spline.n_features_out_))
    for k in range(degree + 1):
        slopes = inner(knots, nu=k) / math.factorial(k)
        table[1:, k] = slopes
        if k < 2:
            table[0, k] = slopes[0]
        else:
            table[-1, k] = 0.0
    return np.concatenate([knots[:1], knots]), table @ mix
