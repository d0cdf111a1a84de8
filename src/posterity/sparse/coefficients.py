"""Coefficients of a model of many features: weights, their names and prior scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posterity.aliases import Array, DataFrame
from posterity.distributions import StudentT
from posterity.distributions._limits import check_level
from posterity.distributions.guesses import did_you_mean
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.shown_table import show_table
from posterity.linear.contrasts import Base
from posterity.linear.ratios import add_ratios
from posterity.sparse.contrasts import choose_level_bases, compare_levels
from posterity.sparse.index import FeatureIndex


class Coefficients:
    """Attributes of a fitted model, from its posterior and the index of its features."""

    _posterior: Any
    _index: FeatureIndex
    _likelihood: Any

    @property
    def coef_(self) -> Array:
        """(p,) posterior means of the weights, in the order of ``feature_names_``."""
        return self._marginals()[0][1:]

    @property
    def coef_std_(self) -> Array:
        """(p,) their posterior standard deviations."""
        return np.sqrt(self._marginals()[1][1:] * self._noise_variance())

    @property
    def intercept_(self) -> float:
        """Posterior mean of the intercept, 0.0 without one."""
        return float(self._marginals()[0][0]) if self._posterior.intercept else 0.0

    @property
    def feature_names_(self) -> list[str]:
        """Names of all features met, "column=level", pairs "a & b"."""
        self._posterior  # noqa: B018
        return self._index.names()

    @property
    def n_features_(self) -> int:
        """Number of features met; of hashed ones that of all places."""
        self._posterior  # noqa: B018
        return self._index.size - 1

    @property
    def prior_scales_(self) -> dict[str, float]:
        """Prior standard deviation of each column's weights, on values of mean square 1."""
        posterior = self._posterior
        logs = np.log(posterior.precision[1:, : posterior.members]) @ posterior.weights
        used = posterior.squares[1:, 1] > 0.0
        names = [self._index.column_name(1 + place) for place in range(len(logs))]
        return {
            name: float(np.exp(-0.5 * log))
            for name, log, u in zip(names, logs, used, strict=True)
            if u
        }

    def summary(self, level: float = 0.95, *, base: Base = None) -> DataFrame:
        """Table of the weights: a pandas data frame with a row for each, the intercept first.

        Parameters
        ----------
        level : float, default 0.95
            Probability that an interval holds the weight.
        base : "mean", "first" or dict of column to level, optional
            What levels are compared with: the mean of all levels of their column that were learned,
            the first of them (numbers by their size, then text), or one that is named, as in
            ``{"zone": "north"}``; columns that are not named, with their mean. Intervals are those
            of the differences, and the intercept is that of a row with what levels are compared
            with. None: weights are shown as they are.

        Returns
        -------
        pandas.DataFrame
            Labelled by the features' names, with the columns name, column, mean, sd, low, high and
            probability_positive; ``column`` is the one that a feature is a level of. Intervals are
            those of a Student-t where the noise is learned, else of a Normal; ``sd`` is its scale.
            For log odds and log rates also the odds_ratio or rate_ratio, exp(mean), and its ends.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If ``base`` names a column or a level that is not there.

        Examples
        --------
        >>> from posterity.sparse import SparseLinearRegression
        >>> model = SparseLinearRegression().fit([{"shop": "a"}, {"shop": "b"}], [1.0, 3.0])
        >>> model.summary()["column"].to_dict()
        {'intercept': '', 'shop=a': 'shop', 'shop=b': 'shop'}
        >>> model.summary(base={"shop": "b"}).loc["shop=b", "mean"]
        np.float64(0.0)
        """
        offset = 1 - int(self._posterior.intercept)
        bases = choose_level_bases(self._index, base)
        moments = self._marginals()
        if bases:
            moments = compare_levels(bases, *moments, self._posterior.covariances)
        mean, variance = (values[offset:] for values in moments)
        sd = np.sqrt(variance * self._noise_variance())
        each = StudentT(self._posterior.degrees_of_freedom(self._index.size)[offset:], mean, sd)
        owners = self._posterior.owners[1 : self.n_features_ + 1]
        columns = ["", *(self._index.column_name(int(owner)) for owner in owners)][offset:]
        names = ["intercept", *self.feature_names_][offset:]
        low, high = each.interval(check_level(level))
        table = {
            "name": names,
            "column": columns,
            "mean": mean,
            "sd": sd,
            "low": low,
            "high": high,
            "probability_positive": each.sf(0.0),
        }
        frame = require_pandas().DataFrame(table, index=names)
        return show_table(add_ratios(frame, self._likelihood().ratio))

    def contrast(self, weights: Mapping[str, float]) -> RowDistribution:
        """Distribution of a weighted sum of weights, such as the difference of two levels.

        Parameters
        ----------
        weights : mapping of names to numbers
            What each weight, or the intercept, is multiplied by; those left out, by 0.

        Returns
        -------
        StudentT
            With the fewest degrees of freedom of the weights in the sum, as in :meth:`summary`.

        Raises
        ------
        ValueError
            If there is no weight of such a name.

        Examples
        --------
        >>> from posterity.sparse import SparseLinearRegression
        >>> model = SparseLinearRegression().fit([{"shop": "a"}, {"shop": "b"}], [1.0, 3.0])
        >>> bool(model.contrast({"shop=b": 1.0, "shop=a": -1.0}).mean() > 0.0)
        True
        """
        offset = 1 - int(self._posterior.intercept)
        places = {name: at for at, name in enumerate(["intercept", *self.feature_names_])}
        known = list(places)[offset:]
        summed = np.zeros(len(places))
        for name, weight in weights.items():
            if name not in known:
                raise ValueError(f"there is no weight {name!r}{did_you_mean(name, known)}")
            summed[places[name]] += weight
        variance = float(summed @ self._posterior.covariances(summed)) * self._noise_variance()
        freedom = self._posterior.degrees_of_freedom(self._index.size)[summed != 0.0]
        sd = np.sqrt(np.maximum(variance, 0.0))
        mean = float(summed @ self._marginals()[0])
        return StudentT(np.array([freedom.min(initial=np.inf)]), np.array([mean]), np.array([sd]))[
            0
        ]

    @property
    def n_observations_(self) -> float:
        """Sum of the weights of the rows learned."""
        return self._posterior.n_observations

    @property
    def n_effective_(self) -> float:
        """The same after forgetting; equal while nothing is forgotten."""
        return self._posterior.n_effective

    def _noise_variance(self) -> float:
        """Return the unit of the variances of weights."""
        return 1.0

    def _marginals(self) -> tuple[Array, Array]:
        return self._posterior.marginals(self._index.size)
