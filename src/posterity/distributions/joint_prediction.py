"""Predictions of several targets at once: one joint normal or Student-t distribution per row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import _standard_t
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions.multivariate import log_gamma_ratio
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT

_LOG_2PI = float(np.log(2.0 * np.pi))
Target = int | str


class JointPrediction:
    """Joint distributions of q targets, one per row: predictions of a model of many targets.

    Row i is the multivariate Student-t with ``df[i]`` degrees of freedom, location ``loc[i]`` and
    the scale matrix ``D C D``: C the correlations, D the diagonal matrix of ``scale[i]``. Its
    marginals are univariate Student-t of the same df (Normal where df is infinite).

    Parameters
    ----------
    marginals : StudentT or Normal, of shape (n, q)
        Distribution of each target by itself.
    correlation : array_like of shape (q, q) or (n, q, q), or a function that makes one
        Correlations of the targets given the features: positive definite, with ones on the
        diagonal. A function is called when they are first asked for.
    names : sequence of str, optional
        Names of the targets.

    Notes
    -----
    ``mean``, ``median``, ``var``, ``std``, ``interval``, ``ppf``, ``cdf`` and ``crps`` are those of
    the marginals, (n, q) arrays. The targets together have ``cov``, ``logpdf``,
    ``rvs`` and ``given``. A row is *flat* where its scale is infinite or its df not positive: its
    ``logpdf`` is 0, as that of :class:`StudentT`.

    References
    ----------
    Kotz and Nadarajah (2004), "Multivariate t distributions and their applications", sections 1.1
    (density), 1.7 (draws) and 1.11 (conditional distributions).

    Examples
    --------
    >>> from posterity.distributions import JointPrediction, StudentT
    >>> marginals = StudentT(8.0, [[0.0, 1.0]], [[1.0, 2.0]])
    >>> prediction = JointPrediction(marginals, [[1.0, 0.5], [0.5, 1.0]], names=["A", "B"])
    >>> prediction.cov.round(3)
    array([[[1.333, 1.333],
            [1.333, 5.333]]])
    >>> prediction.marginal("B")
    StudentT(df=8, loc=[1.], scale=[2.])
    >>> prediction.given({"A": 3.0}).mean()
    array([[4.]])
    """

    def __init__(
        self,
        marginals: StudentT | Normal,
        correlation: ArrayLike | Callable[[], FloatArray],
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        self.marginals = marginals
        make = correlation if callable(correlation) else partial(as_floats, correlation)
        self._make: Callable[[], FloatArray] = make
        self._made: FloatArray | None = None
        self.names = None if names is None else tuple(names)

    # ---- rows ----

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, q): rows and targets."""
        return self.marginals.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | ArrayLike) -> JointPrediction:
        """Some of the rows, by a slice or an array."""
        part = rows if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        correlation = self.correlation
        some = correlation if correlation.ndim == 2 else correlation[part]
        return JointPrediction(self.marginals[part], some, names=self.names)

    def __repr__(self) -> str:
        return f"JointPrediction({self.shape[0]} rows, {self.shape[1]} targets)"

    # ---- parameters ----

    @property
    def loc(self) -> FloatArray:
        """(n, q) locations."""
        return np.broadcast_to(self.marginals.loc, self.shape)

    @property
    def scale(self) -> FloatArray:
        """(n, q) scales of the marginals."""
        return np.broadcast_to(self.marginals.scale, self.shape)

    @property
    def df(self) -> FloatArray:
        """(n,) degrees of freedom, infinite where the row is normal.

        Where the marginals differ in theirs, as they may while some targets' noise is not known
        yet, it is the least of them.
        """
        df = as_floats(getattr(self.marginals, "df", np.inf))
        least: FloatArray = np.broadcast_to(df, self.shape).min(axis=1, initial=np.inf)
        return least

    @property
    def correlation(self) -> FloatArray:
        """(q, q), or (n, q, q) where it differs from row to row."""
        if self._made is None:
            self._made = self._make()
        return self._made

    # ---- marginals ----

    def marginal(self, target: Target) -> StudentT | Normal:
        """Marginal distribution of one target, for every row.

        Parameters
        ----------
        target : int or str
            Its place, or its name.

        Returns
        -------
        StudentT or Normal
        """
        return self.marginals[:, self._find_target_indices([target])[0]]

    def mean(self) -> FloatArray:
        """(n, q) means."""
        return self.marginals.mean()

    def median(self) -> FloatArray:
        """(n, q) medians."""
        return self.marginals.median()

    def var(self) -> FloatArray:
        """(n, q) variances."""
        return self.marginals.var()

    def std(self) -> FloatArray:
        """(n, q) standard deviations."""
        return self.marginals.std()

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Ends (n, q), (n, q) of the marginal central interval of each target."""
        return self.marginals.interval(level)

    def ppf(self, q: ArrayLike) -> FloatArray:
        """(n, q) marginal quantiles of each target."""
        return self.marginals.ppf(q)

    def cdf(self, y: ArrayLike) -> FloatArray:
        """(n, q) marginal distribution functions of each target."""
        return self.marginals.cdf(y)

    def crps(self, y: ArrayLike) -> FloatArray:
        """(n, q) marginal continuous ranked probability scores of each target."""
        return self.marginals.crps(y)

    # ---- the targets together ----

    @property
    def cov(self) -> FloatArray:
        """(n, q, q) covariances; where a variance is infinite, its row and column are NaN."""
        std = self.std()
        with np.errstate(invalid="ignore"):
            cov = std[:, :, None] * self.correlation * std[:, None, :]
        cov[~(np.isfinite(std[:, :, None]) & np.isfinite(std[:, None, :]))] = np.nan
        np.einsum("nii->ni", cov)[...] = np.square(std)
        return cov

    def logpdf(self, y: ArrayLike) -> FloatArray:
        """Joint log density of all targets at ``y`` (n, q), shape (n,)."""
        y = as_floats(y)
        if y.ndim == 0 or y.shape[-1] != self.shape[1]:
            raise ValueError(
                f"y has shape {y.shape}: expected {self.shape}, a column for each target"
            )
        z, flat = self._standardize(y, list(range(self.shape[1]))), self._flat()
        root = _root(self.correlation)
        squared = np.square(_forward(root, z)).sum(axis=-1)
        df, q = np.minimum(np.where(flat, 1.0, self.df), _standard_t.MOST_DF), self.shape[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            size = np.log(np.einsum("...ii->...i", root)).sum(-1) + np.log(self.scale).sum(-1)
            density = log_gamma_ratio(df, q) - 0.5 * q * _LOG_2PI - size
            density -= 0.5 * (df + q) * np.log1p(squared / df)
        exact = (self.scale == 0.0).any(axis=1)
        density = np.where(exact, np.where(np.isinf(z).any(axis=-1), -np.inf, np.inf), density)
        density = np.where(flat, 0.0, density)
        return np.where(np.isnan(y).any(axis=-1), np.nan, density)

    def rvs(
        self,
        size: int | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Joint draws of all targets: z L' / sqrt(chi^2 / df), C = L L', times the scales.

        Parameters
        ----------
        size : int, optional
            How many of each row; default one, without a dimension of its own.
        random_state, rng : int, numpy.random.Generator or None
            As :func:`numpy.random.default_rng` takes it; two names of one thing.

        Returns
        -------
        ndarray of shape (n, q) or (size, n, q)

        Raises
        ------
        ValueError
            If a row is flat.
        """
        flat = self._flat()
        if flat.any():
            raise ValueError(
                f"cannot draw: row {int(np.argmax(flat))} is improper (its scale is infinite); "
                "learn more rows or use a proper prior"
            )
        rng = np.random.default_rng(random_state if rng is None else rng)
        many = () if size is None else (size,)
        normal = rng.standard_normal((*many, *self.shape))
        z = np.einsum("...ij,...j->...i", _root(self.correlation), normal)
        df = np.minimum(self.df, _standard_t.MOST_DF)
        z /= np.sqrt(rng.chisquare(df, (*many, len(self))) / df)[..., None]
        draws: FloatArray = self.loc + self.scale * z
        return draws

    def given(
        self, known: Mapping[str, ArrayLike] | Target | Sequence[Target], values: Any = None
    ) -> JointPrediction:
        """Conditional distribution of the other targets given some of them.

        With the known targets A, the others B, k the number of the known, z their standardized
        values and delta = z' C_AA^-1 z: df + k degrees of freedom, location
        loc_B + D_B C_BA C_AA^-1 z, and the scale matrix (df + delta) / (df + k) times
        D_B (C_BB - C_BA C_AA^-1 C_AB) D_B.

        Parameters
        ----------
        known : mapping of names to values, or an int, str or sequence of them
            Which targets are known; values are numbers, or (n,) arrays, one for each row.
        values : array_like of shape (k,) or (n, k), optional
            Their values, where ``known`` is no mapping.

        Returns
        -------
        JointPrediction
            Of the other targets, in their order.

        Raises
        ------
        ValueError
            For targets that there are not, values that are not finite, and where no target is left.
        """
        if isinstance(known, Mapping):
            values = np.stack(np.broadcast_arrays(*map(as_floats, known.values())), axis=-1)
        which = [known] if isinstance(known, int | str) else list(known)
        places = self._find_target_indices(which)
        others = [place for place in range(self.shape[1]) if place not in places]
        values = self._read_known_values(values, len(places))
        if not others:
            raise ValueError("all targets are known: leave out those that are to be predicted")
        z = self._standardize(values, places)
        z = np.where(np.isinf(z), 0.0, z)  # what was certain, and is not so, tells nothing
        of_known, of_others = self.correlation[..., places, :], self.correlation[..., others, :]
        among, between, rest = of_known[..., places], of_others[..., places], of_others[..., others]
        # C_AA^-1 of what the others have in common with the known, and of the known values.
        weights = np.linalg.solve(among, np.swapaxes(between, -1, -2))
        squared = (z * np.linalg.solve(among, z[..., None])[..., 0]).sum(axis=-1)
        df, left = self.df, rest - between @ weights
        finite = np.minimum(df, _standard_t.MOST_DF)
        with np.errstate(divide="ignore", invalid="ignore"):
            grown = np.sqrt((finite + squared) / (finite + len(places)))[:, None]
        spread = np.sqrt(np.maximum(np.einsum("...ii->...i", left), 0.0))
        scale = self.scale[:, others]
        shift = np.einsum("...ij,...i->...j", weights, z)
        loc = self.loc[:, others] + np.where(np.isfinite(scale), scale, 0.0) * shift
        flat = self._flat()[:, None]
        scale = np.where(flat, np.inf, scale * spread * np.where(flat, 1.0, grown))
        marginals: StudentT | Normal = Normal(loc, scale)
        if np.isfinite(df).any():
            marginals = StudentT((df + len(places))[:, None], loc, scale)
        names = None if self.names is None else [self.names[place] for place in others]
        return JointPrediction(marginals, correlations_of(left), names=names)

    # ---- helpers ----

    def _flat(self) -> NDArray[np.bool_]:
        """(n,) rows of which nothing is known."""
        return np.isinf(self.scale).any(axis=1) | (self.df <= 0.0)

    def _standardize(self, values: FloatArray, places: list[int]) -> FloatArray:
        """Values in scales from the location; at a point mass 0, and elsewhere infinite."""
        loc, scale = self.loc[:, places], self.scale[:, places]
        off = values - loc
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(off == 0.0, 0.0, off / scale)

    def _read_known_values(self, values: Any, count: int) -> FloatArray:
        if values is None:
            raise ValueError("no values are given: give those of the known targets")
        array = as_floats(values)
        if count == 1 and array.shape in ((), (len(self),)):
            array = array.reshape(-1, 1)
        if array.shape not in ((count,), (1, count), (len(self), count)):
            raise ValueError(
                f"values has shape {array.shape}: expected ({count},), one for each known target, "
                f"or ({len(self)}, {count})"
            )
        if not np.isfinite(array).all():
            raise ValueError("the value of a known target is not finite: leave out unknown targets")
        return np.broadcast_to(array, (len(self), count))

    def _find_target_indices(self, targets: Sequence[Target]) -> list[int]:
        """Places of targets given by place or name."""
        q, places = self.shape[1], []
        for target in targets:
            if isinstance(target, str):
                if self.names is None or target not in self.names:
                    numbers = f"have no names: give a number from 0 to {q - 1}"
                    there = numbers if self.names is None else f"are {list(self.names)}"
                    raise ValueError(f"there is no target {target!r}: the targets {there}")
                places.append(self.names.index(target))
                continue
            if not -q <= target < q:
                raise ValueError(f"there is no target {target}: give a number from 0 to {q - 1}")
            places.append(int(target) % q)
        if len(set(places)) < len(places):
            raise ValueError("a target is named twice: name each once")
        return places


def correlations_of(products: FloatArray) -> FloatArray:
    """Compute correlations (..., q, q) of sums of squares and products; none for a square of 0.

    Examples
    --------
    >>> correlations_of(np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    size = np.sqrt(np.maximum(np.einsum("...ii->...i", products), 0.0))
    unit = np.where(size > 0.0, size, 1.0)
    correlation = products / unit[..., :, None] / unit[..., None, :]
    np.einsum("...ii->...i", correlation)[...] = 1.0
    return correlation


def _root(correlation: FloatArray) -> FloatArray:
    """Return L with L L' = C; if rounding made C singular, that of a matrix next to it."""
    try:
        return np.asarray(np.linalg.cholesky(correlation), dtype=np.float64)
    except np.linalg.LinAlgError:
        eye = np.eye(correlation.shape[-1])
        nearby = (correlation + 1e-10 * eye) / (1.0 + 1e-10)
        return np.asarray(np.linalg.cholesky(nearby), dtype=np.float64)


def _forward(root: FloatArray, z: FloatArray) -> FloatArray:
    """Return L^-1 z for each row of z (n, q); rows with infinite z are undefined."""
    z = np.where(np.isfinite(z), z, 0.0)
    if root.ndim == 2:
        return np.asarray(np.linalg.solve(root, z.T).T)
    return np.asarray(np.linalg.solve(root, z[..., None])[..., 0])


__all__ = ["JointPrediction", "correlations_of"]
