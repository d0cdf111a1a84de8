"""The methods that all joint distributions of coefficients have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions._limits import check_level
from posterity.distributions._rows import FloatArray, as_floats
from posterity.distributions._statements import read_statement
from posterity.distributions.guesses import TellsNames, did_you_mean
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.shown_table import show_table

Index = int | slice | Sequence[int] | np.ndarray

# Most coefficients in a repr.
SHOWN = 6


# Other libraries' names, and ours.
OUR_NAMES = {
    "hdi": "interval(level), which is central",
    "plot": "posterity.plots.plot_coefficients(model)",
    "quantile": "marginal().ppf(0.9)",
    "sample": "rvs(size)",
}


class JointDistribution(TellsNames):
    """Distribution of p coefficients; see :class:`MultivariateNormal` and its siblings."""

    names: tuple[str, ...] | None

    _our_names = OUR_NAMES

    # ---- what families say of themselves ----

    def marginal(self, index: Index | str = slice(None)) -> RowDistribution:
        """Marginal distributions of one or some coefficients."""
        raise NotImplementedError

    def _describe_rest(self) -> str:
        """Return the end of the repr, after the coefficients."""
        raise NotImplementedError

    def _project(self, X: FloatArray, shift: FloatArray) -> RowDistribution:
        raise NotImplementedError

    def _size(self) -> int:
        """Number p of coefficients."""
        raise NotImplementedError

    def _logpdf(self, w: FloatArray) -> FloatArray:
        raise NotImplementedError

    def _draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
        return self._draw_with_noise(rng, size)[0]

    def _draw_with_noise(
        self, rng: np.random.Generator, size: tuple[int, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """Draws, and the standard deviation of the noise in each."""
        raise NotImplementedError

    # ---- coefficients by their names ----

    def __getitem__(self, name: Index | str) -> RowDistribution:
        """Distribution of the coefficient of this name: the same as :meth:`marginal`.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0], [0, 1.0]], names=["age", "sex"])
        >>> float(posterior["sex"].mean())
        2.0
        """
        return self.marginal(name)

    def __contains__(self, name: object) -> bool:
        return name in (self.names or ())

    def contrast(self, weights: Mapping[str, float] | ArrayLike) -> RowDistribution:
        """Distribution of a weighted sum of coefficients, such as the difference of two.

        Parameters
        ----------
        weights : mapping of names to numbers, or (p,) array
            What each coefficient is multiplied by; those that a mapping leaves out, by 0.

        Raises
        ------
        ValueError
            If there is no coefficient of such a name, or a number of weights other than p.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0], [0, 1.0]], names=["a", "b"])
        >>> difference = posterior.contrast({"b": 1.0, "a": -1.0})
        >>> float(difference.mean()), round(float(difference.std()), 4)
        (1.0, 1.118)
        """
        if not isinstance(weights, Mapping):
            return self.project(np.atleast_2d(as_floats(weights)))[0]
        row = np.zeros((1, self._size()))
        for name, weight in weights.items():
            row[0, self._place(name)] += weight
        return self.project(row)[0]

    def probability(self, statement: str) -> float:
        """Probability that a statement about the coefficients is true.

        Parameters
        ----------
        statement : str
            Two sides with ``<`` or ``>`` between them; each is a number, a name, or a sum of them
            with `` + ``, `` - `` and ``2 * name``. Or a sum between two numbers, as in
            ``"-0.1 < age < 0.1"``: that the effect is practically none (region of practical
            equivalence, ROPE).

        Raises
        ------
        ValueError
            If the statement can't be read, or names no coefficient.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0], [0, 1.0]], names=["a", "b"])
        >>> round(posterior.probability("a > 0"), 4), round(posterior.probability("b > a"), 4)
        (0.9772, 0.8145)
        >>> round(posterior.probability("0 < a < 1"), 4)
        0.4772
        """
        weights, low, high = read_statement(statement, self.names or ())
        if not weights:
            return float(low < 0.0 < high)
        total = self.contrast(weights)
        return max(0.0, float(total.sf(low) - total.sf(high)))

    def draw_with_noise(
        self, size: int, random_state: int | np.random.Generator | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Draws (size, p) of all coefficients, as of :meth:`rvs`, each with the noise's sd (size,).

        Examples
        --------
        >>> from posterity.distributions import MultivariateT
        >>> posterior = MultivariateT(9.0, [1.0, 2.0], [[2.0, 0], [0, 1.0]], 0.5)
        >>> draws, noise = posterior.draw_with_noise(4, random_state=0)
        >>> draws.shape, bool((noise > 0.0).all())
        ((4, 2), True)
        """
        return self._draw_with_noise(np.random.default_rng(random_state), (size,))

    def to_frame(self, level: float = 0.95) -> Any:
        """Table of the coefficients: a pandas data frame, with a row for each.

        Columns are the name, mean, standard deviation (sd), the ends of the central interval (low,
        high) and the probability that the coefficient is positive. Rows are labelled by name.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0], [0, 1.0]], names=["a", "b"])
        >>> row = posterior.to_frame().loc["a", ["mean", "sd", "low", "high"]]
        >>> row.astype(float).round(2).tolist()
        [1.0, 0.5, 0.02, 1.98]
        """
        return tabulate(self, self.marginal(), level)

    def __repr__(self) -> str:
        kind, p = type(self).__name__, self._size()
        if self.names is None:
            return f"{kind}({p} coefficients, {self._describe_rest()})"
        each = self.marginal(slice(SHOWN))
        lines = [
            f"{name}={mean:.4g} ± {sd:.2g}"
            for name, mean, sd in zip(self.names, each.mean(), each.std(), strict=False)
        ]
        more = [f"{p - SHOWN} more"] if p > SHOWN else []
        return f"{kind}({', '.join(lines + more)}; {self._describe_rest()})"

    def _labels(self) -> list[str]:
        return list(self.names or (f"x{place}" for place in range(self._size())))

    def _place(self, name: str) -> int:
        """Return the place of the coefficient with this name."""
        if name not in (self.names or ()):
            listed = ", ".join(repr(one) for one in (self.names or ())[:20]) or "no names"
            raise ValueError(
                f"there is no coefficient {name!r}: give one of {listed}"
                f"{did_you_mean(name, self.names or ())}"
            )
        return (self.names or ()).index(name)

    def _resolve_index(self, index: Index | str) -> Index:
        return self._place(index) if isinstance(index, str) else index

    # ---- moments ----

    def std(self) -> FloatArray:
        """Standard deviation of each coefficient, shape (p,); infinite where nothing is known."""
        return self.marginal().std()

    def interval(self, level: float) -> FloatArray:
        """Central interval of each coefficient by itself.

        Parameters
        ----------
        level : float
            Probability that the interval holds the coefficient, between 0 and 1.

        Returns
        -------
        ndarray of shape (p, 2)
            Lower and upper ends; (-inf, inf) where nothing is known.

        Raises
        ------
        ValueError
            If ``level`` is not between 0 and 1.
        """
        return np.column_stack(self.marginal().interval(check_level(level)))

    # ---- sums of coefficients ----

    def project(self, X: ArrayLike, shift: ArrayLike = 0.0) -> RowDistribution:
        """Distribution of ``X @ w + shift``, each row by itself.

        Parameters
        ----------
        X : array_like of shape (n, p)
            What each coefficient is multiplied by.
        shift : array_like of shape (n,), default 0
            Added to each row.

        Returns
        -------
        Normal, StudentT or Mixture, over n rows
            With an infinite scale where a row has part in a direction without information.

        Raises
        ------
        ValueError
            If X has another number of columns.

        Examples
        --------
        >>> from posterity.distributions import MultivariateNormal
        >>> posterior = MultivariateNormal([1.0, 2.0], [[2.0, 0.0], [0.0, 1.0]])
        >>> posterior.project([[1.0, 0.0], [1.0, 1.0]]).std().round(4)
        array([0.5  , 1.118])
        """
        X, p = as_floats(X), self._size()
        if X.ndim != 2 or X.shape[1] != p:
            raise ValueError(
                f"X has shape {X.shape}, but there are {p} coefficients; give (n, {p})"
            )
        return self._project(X, as_floats(shift))

    # ---- density and draws ----

    def logpdf(self, w: ArrayLike) -> FloatArray:
        """Joint log density at w.

        Directions without information count with Lebesgue density one: they add nothing.

        Parameters
        ----------
        w : array_like of shape (p,) or (n, p)
            Coefficients.

        Returns
        -------
        ndarray of shape (n,), or a scalar for one w

        Raises
        ------
        ValueError
            If w has another number of columns.
        """
        w = as_floats(w)
        p = self._size()
        if w.ndim == 0 or w.shape[-1] != p:
            raise ValueError(
                f"w has shape {w.shape}, but there are {p} coefficients; give ({p},) or (n, {p})"
            )
        return self._logpdf(w)

    def rvs(
        self,
        size: int | tuple[int, ...] | None = None,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> FloatArray:
        """Independent draws of all coefficients.

        Parameters
        ----------
        size : int or tuple of int, optional
            How many; default one, without a dimension of its own.
        random_state, rng : int, numpy.random.Generator or None
            As :func:`numpy.random.default_rng` takes it; two names of one thing.

        Returns
        -------
        ndarray of shape (p,) or (size, p)

        Raises
        ------
        ValueError
            If the posterior, or a component of positive weight, is improper: names the first
            coefficient without information.
        """
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        return self._draw(np.random.default_rng(random_state if rng is None else rng), shape)


def tabulate(joint: JointDistribution, each: RowDistribution, level: float) -> Any:
    """The table of :meth:`JointDistribution.to_frame`, of coefficients with these marginals."""
    pandas = require_pandas(
        "a table of coefficients", "posterior_.mean, posterior_.std() and posterior_.interval()"
    )
    names = joint._labels()
    low, high = each.interval(check_level(level))
    columns = {
        "name": names,
        "mean": each.mean(),
        "sd": each.std(),
        "low": low,
        "high": high,
        "probability_positive": each.sf(0.0),
    }
    return show_table(pandas.DataFrame(columns, index=names))


def require_pandas(purpose: str = "a table", instead: str = "") -> Any:
    """Return pandas, or raise ``ImportError``: ``purpose`` needs it, or use ``instead``."""
    try:
        return import_module("pandas")
    except ImportError:
        other = f", or use {instead}" if instead else ""
        raise ImportError(
            f"{purpose} needs pandas: install it (pip install pandas){other}"
        ) from None
