"""Bayesian factorization machine: what users think of items, with error bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d

from posterity.aliases import Array
from posterity.distributions import Normal, StudentT
from posterity.distributions._limits import interval_ends
from posterity.factor.usable import LARGEST
from posterity.factorization.inputs import make_row, read_numbers
from posterity.factorization.learner import FactorizationLearner
from posterity.factorization.posterior import FactorizationPosterior, Rows


@dataclass(kw_only=True, eq=False, repr=False)
class BayesianFactorizationMachine(RegressorMixin, FactorizationLearner):
    """Factorization machine: regression on pairs of categories, such as users and items.

    ``y = b + x'w + sum_{i<j} <v_i, v_j> x_i x_j + noise``: each level of each side has a weight
    and ``rank`` factors. Each column of ``X`` is a side: a level in each row, or a number where the
    column is ``numeric``. Levels vary around what their side has in common, which is learned, as
    is how much each factor counts: factors that data don't need nearly vanish. A level never seen
    is predicted by what its side has in common, with a wider interval.

    Parameters
    ----------
    rank : int or "auto", default 8
        Number of factors; 0: weights alone, a linear model of crossed effects. "auto": as many as
        raise the log score of a tenth of the rows, held out, by 0.002 a row.
    numeric : list of str or int, optional
        Columns, by name or place, that hold numbers. All others hold levels.
    noise_precision : float, optional
        1 / variance of the noise, if it is known. None: learned.
    max_sweeps : int, default 60
        Most sweeps over all sides in ``fit``.
    tolerance : float, default 1e-5
        ``fit`` ends when a sweep raises the evidence's bound by less than this, a row.
    random_state : int, default 0
        Seed of the small factors that ``fit`` starts from.

    Attributes
    ----------
    rank_ : int
        Number of factors.
    levels_ : list of (L,) arrays
        The levels of each side, in the order in which they came; of a numeric one its name.
    weights_, factors_ : lists of (L,) and (L, rank) arrays
        Posterior means of w and v.
    intercept_, noise_precision_ : float
    log_evidence_ : float
        Lower bound of log p(y), up to a constant of ``rank`` and the number of sides.
    bounds_ : (sweeps,) array
        The bound after each of the last sweeps.
    n_observations_ : int
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The model is Rendle's (2010). Each side's posterior is Normal given the others', found by
    variational inference in turn (Lim & Teh 2007; Raiko, Ilin & Karhunen 2007), the weights and
    factors of a level together. Variances are exact for these Normals; the sides' posteriors are
    taken as independent of each other. Rows are kept: a stream learns the levels of new rows from
    all of their rows, sweeps all again after half as many more, and starts afresh after twice as
    many.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.factorization import BayesianFactorizationMachine
    >>> rng = np.random.default_rng(0)
    >>> taste, style = rng.normal(size=40), rng.normal(size=30)
    >>> X = np.stack([rng.integers(0, 40, 800), rng.integers(0, 30, 800)], axis=1)
    >>> y = 3.0 + taste[X[:, 0]] * style[X[:, 1]] + rng.normal(scale=0.3, size=800)
    >>> model = BayesianFactorizationMachine(rank=2).fit(X[:700], y[:700])
    >>> bool(np.mean((model.predict(X[700:]) - y[700:]) ** 2) < 0.2)
    True
    >>> known, new = model.predict_distribution([[3, 5], [3, 1000]]).std()
    >>> bool(known < new)
    True
    """

    noise_precision: float | None = None

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Mean of new observations at ``X``, and with ``return_std`` their sd as well.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0).fit([["ann", "tea"]] * 4, [4.0] * 4)
        >>> model.predict([["ann", "tea"]]).round(3)
        array([4.])
        """
        if return_std:
            distribution = self.predict_distribution(X)
            return distribution.mean(), distribution.std()
        return self._moments(X)[0]

    def predict_one(self, x: Any) -> float:
        """Mean of a new observation at one row: as in :meth:`learn_one`.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=1).learn_one(["ann", "tea"], 4.0)
        >>> model.predict_one(["bob", "tea"])
        4.0
        """
        posterior, found = self._posterior, self._find_levels(x)
        if found is None:
            return float(self.predict(make_row(x))[0])
        return posterior.path.mean_of_one(*found) * posterior.unit

    def predict_distribution(self, X: Any) -> Normal | StudentT:
        """Distribution of new observations at ``X``: of their mean and variance, one per row.

        Normal where the noise is known, else Student's t.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0, noise_precision=1.0)
        >>> model = model.fit([["ann", "tea"], ["bob", "tea"]] * 3, [4.0, 2.0] * 3)
        >>> sd = model.predict_distribution([["ann", "tea"], ["new", "tea"]]).std()
        >>> bool(sd[0] < sd[1])
        True
        """
        mean, variance = self._moments(X)
        posterior = self._posterior
        noise = posterior.unit**2 / posterior.noise_precision
        if posterior.noise_is_known:
            return Normal(mean, np.sqrt(variance + noise))
        df = 2.0 * posterior.noise_shape
        heavier = (df - 2.0) / df if df > 2.0 else 1.0
        return StudentT(df, mean, np.sqrt(heavier * variance + noise))

    def predict_interval(self, X: Any, level: float = 0.95) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        Examples
        --------
        >>> model = BayesianFactorizationMachine(rank=0).fit([["ann", "tea"]] * 4, [4.0, 3.0] * 2)
        >>> model.predict_interval([["ann", "tea"]], level=0.9).shape
        (1, 2)
        """
        return interval_ends(self.predict_distribution(X), level)

    # ---- inner -----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        precision = self.noise_precision
        if precision is not None and not 0.0 < precision < np.inf:
            raise ValueError(f"noise_precision is {precision!r}: it must be positive and finite")

    def _targets(self, y: Any, classes: ArrayLike | None) -> tuple[Array, dict[str, Any]]:
        if y is None:
            raise ValueError("This model requires y to be passed, but the target y is None")
        return read_numbers(column_or_1d(y, warn=True), "y").copy(), {}

    def _target(self, y: Any) -> float | None:
        return float(y) if isinstance(y, float | int) and abs(y) <= LARGEST else None

    def _score(self, rows: Rows, posterior: FactorizationPosterior) -> float:
        mean, variance = posterior.compute_moments(rows.codes, rows.values)
        spread = np.sqrt(variance + posterior.unit**2 / posterior.noise_precision)
        return float(Normal(mean, spread).logpdf(rows.y).mean())
