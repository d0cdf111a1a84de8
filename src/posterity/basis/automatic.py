"""A basis of all kinds of functions, weighted by the evidence of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from posterity.aliases import Array
from posterity.basis._domain import check_choice, join_columns, join_ranges
from posterity.basis._growth import PLACES_EACH, GrowingDomain, match_columns, spread_evenly
from posterity.basis._kernels import KERNELS, precisions
from posterity.basis._marginal_likelihood import MOST_ROWS, maximize_posterior
from posterity.basis.random_fourier import RandomFourier, choose_n_waves
from posterity.basis.spline import Spline

KINDS = ("lines", "curves", "products", "waves")
# With more features the columns would be too many.
MOST_CURVED, MOST_MULTIPLIED = 50, 20
# Waves of a single feature need not be many, for its curves have as many knots as it takes.
WAVES_OF_ONE = 200
# What is tried besides the shares that were learned, while rows are few: which kinds there are.
LINES_AND_CURVES = (1, 1, 0, 0)
ALTERNATIVES = ((1, 0, 0, 0), LINES_AND_CURVES, (1, 0, 1, 0), (1, 0, 0, 1), (1, 1, 1, 1))


class AutoBasis(GrowingDomain):
    """Lines, curves, products of two features, and a smooth function of all: ``basis="auto"``.

    The function is a sum of four Gaussian processes, and how much each contributes is learned, as
    is a length scale for each feature in the last. A model with this basis is a Gaussian process in
    the main, that learns streams at a constant cost for each row.

    Parameters
    ----------
    n_functions : int, optional
        Number of random waves, even; None: as in :class:`RandomFourier` with ``"ard"``.
    kernel : {"squared_exponential", "matern52", "matern32"}, default "squared_exponential"
        Of the function of all features.
    random_state : int, RandomState or None, default 0
        Of the waves.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. That
        grows with the rows that a model learns, except with another ``outside``.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: lines go on, curves go on straight, products stay as they are at the domain's
        end, and the function of all features goes back to its mean.

    Attributes
    ----------
    domain_ : (d, 2) array
    length_scales_ : (d,) array
        Of the function of all features.
    shares_ : (L, 4) array
        Prior variances of lines, curves, products and waves, for each hypothesis that the evidence
        averages: what was learned, and, where the first batch has less than 600 rows, simpler ones.
        Of a single feature there are also lines and curves for each way of being smooth that
        :class:`Spline` knows.

    Notes
    -----
    Shares and length scales are the most probable ones of an exact Gaussian process on 600 rows of
    the first batch at most, and stay as they are: give a first batch of a few hundred rows, where
    rows come in a stream. With more than 50 features there are no curves, and with more than 20 no
    products.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(200, 2))
    >>> y = 3.0 * X[:, 0] + np.sin(4.0 * X[:, 0] * X[:, 1])
    >>> model = BayesianLinearRegression(basis="auto").fit(X[:150], y[:150])
    >>> bool(np.abs(model.predict(X[150:]) - y[150:]).max() < 0.1)
    True
    """

    # Log variances of the coefficients of curves, by hypothesis, over the first's.
    _smoothness: Array = np.zeros((0, 0))

    def __init__(
        self,
        *,
        n_functions: int | None = None,
        kernel: str = "squared_exponential",
        random_state: int | RandomState | None = 0,
        domain: ArrayLike | None = None,
        outside: str = "extend",
    ) -> None:
        self.n_functions = n_functions
        self.kernel = kernel
        self.random_state = random_state
        self.domain = domain
        self.outside = outside

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def prior_precisions(self) -> Array:
        """(L, m) prior precisions of the coefficients, a row for each hypothesis.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.linspace(0.0, 1.0, 9)[:, None]
        >>> basis = AutoBasis().fit(x, 2.0 * x)
        >>> basis.prior_precisions().shape == (len(basis.shares_), basis.transform(x).shape[1])
        True
        """
        with np.errstate(divide="ignore"):
            logs = np.log(self.shares_)[:, self._kinds]
        if len(self._smoothness):
            last = logs[len(logs) - len(self._smoothness) :]
            last[:, self._kinds == KINDS.index("curves")] += self._smoothness
        return precisions(np.maximum(logs, -100.0))

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        check_choice("kernel", self.kernel, KERNELS)
        self._place(Spline().fit(self.domain_.T), X)
        found = maximize_posterior(X, y, self.kernel, self._parts(X))
        self.length_scales_ = found.length_scales
        self._waves = RandomFourier(
            n_functions=self._count_waves(X) if self.n_functions is None else self.n_functions,
            kernel=self.kernel,
            length_scale=found.length_scales,
            random_state=self.random_state,
            domain=self.domain_,
        ).fit(X)
        shares = np.zeros(len(KINDS))
        shares[self._there] = found.variances
        self._take_shares(shares, ALTERNATIVES if len(X) < MOST_ROWS else ())

    def _place(self, spline: Spline, X: Array) -> None:
        """Take curves, and units in which each part varies by 1 on average over rows (n, d)."""
        d, self._spline = X.shape[1], spline
        self._curved, self._multiplied = d <= MOST_CURVED, d <= MOST_MULTIPLIED
        offered = spline.prior_precisions()
        names = spline._column_names([str(one) for one in range(d)])
        self._bends = np.array([not name.endswith("line") for name in names])
        self._sds = 1.0 / np.sqrt(offered[0, self._bends])
        others = np.log(offered[0] / offered[1:])[:, self._bends]
        self._smoothness = others if d == 1 else others[:0]
        parts = self._compute_raw_parts(X)
        self._centres = [part.mean(axis=0) for part in parts]
        spreads = [np.sqrt(np.square(p - c).sum(axis=1).mean()) for p, c in self._list_pairs(parts)]
        self._scales = [float(spread) if spread > 0.0 else 1.0 for spread in spreads]

    def _take_shares(self, learned: Array, alternatives: Sequence[tuple[int, ...]]) -> None:
        """Take shares (4,), those that are tried besides, and the kind of each column."""
        widths = [len(centre) for centre in self._centres] + [2 * len(self._waves.frequencies_)]
        self._kinds = np.repeat(np.flatnonzero(self._there), widths)
        smooth = [LINES_AND_CURVES] * len(self._smoothness)
        self.shares_ = np.array([learned, *alternatives, *smooth], dtype=np.float64)

    @property
    def _there(self) -> list[bool]:
        """Which kinds of functions there are."""
        return [True, self._curved, self._multiplied, True]

    def joined(self, other: Self) -> Self:
        """Return the basis for the domains of both, whichever is asked."""
        if not self._grows:
            return self
        domain = join_ranges(self.domain_, other.domain_)
        return self._with(domain, self._spline.joined(other._spline))

    def _over(self, domain: Array) -> Self:
        return self._with(domain, self._spline.reaching(domain.T))

    def _with(self, domain: Array, spline: Spline) -> Self:
        """The basis of this domain, with these curves."""
        new = copy(self)
        new.domain_ = domain
        new._place(spline, spread_evenly(domain, MOST_ROWS))
        # What rows of a part of it said of shares need not hold for all of it.
        new._take_shares(self.shares_[0], ALTERNATIVES)
        return new

    def columns_of(self, other: Self) -> Array:
        """As of other bases; waves are the same everywhere, and stay."""
        places = spread_evenly(self.domain_, PLACES_EACH * len(self._kinds))
        parts = match_columns(places, self._stack_parts, other._stack_parts)
        return join_columns([parts, np.eye(1 + 2 * len(self._waves.frequencies_))])

    def _count_waves(self, X: Array) -> int:
        return WAVES_OF_ONE if X.shape[1] == 1 else choose_n_waves(len(X))

    def _list_pairs(self, parts: list[Array]) -> list[tuple[Array, Array]]:
        return list(zip(parts, self._centres, strict=True))

    def _compute_raw_parts(self, X: Array) -> list[Array]:
        """Lines, curves and products, as far as they are there, in units of the domain."""
        lines = self._scale_to_domain(X)
        parts = [lines]
        if self._curved:
            curves = self._spline._compute_columns(X)
            parts.append(curves[:, self._bends] * self._sds)
        if self._multiplied:
            first, second = np.triu_indices(X.shape[1])
            inside = np.clip(lines, -1.0, 1.0)
            parts.append(inside[:, first] * inside[:, second])
        return parts

    def _parts(self, X: Array) -> list[Array]:
        parts = self._list_pairs(self._compute_raw_parts(X))
        return [(p - c) / s for (p, c), s in zip(parts, self._scales, strict=True)]

    def _stack_parts(self, X: Array) -> Array:
        return np.concatenate(self._parts(X), axis=1)

    def _columns(self, X: Array) -> Array:
        return np.concatenate([*self._parts(X), self._waves._columns(X)], axis=1)

    def _column_names(self, inputs: list[str]) -> list[str]:
        names = list(inputs)
        if self._curved:
            curves = np.array(self._spline._column_names(inputs), dtype=object)
            names += curves[self._bends].tolist()
        if self._multiplied:
            pairs = zip(*np.triu_indices(len(inputs)), strict=True)
            names += [f"{inputs[i]}^2" if i == j else f"{inputs[i]} {inputs[j]}" for i, j in pairs]
        return names + self._waves._column_names(inputs)
