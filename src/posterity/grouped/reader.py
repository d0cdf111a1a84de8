"""What is read of a grouped model: predictions, effects, and each group by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Mask
from posterity.distributions._limits import interval_ends
from posterity.distributions.expected import expect
from posterity.distributions.joint_distribution import require_pandas
from posterity.distributions.shown_table import show_table
from posterity.grouped.base import GroupedModel, UnknownGroupError
from posterity.grouped.effects import average_change, draw_coefficients, mean_change
from posterity.grouped.inputs import read_offsets
from posterity.grouped.single import make_single_model
from posterity.linear import BayesianLinearRegression
from posterity.linear.contrasts import Base
from posterity.linear.effects import feature_names, table_of_effects
from posterity.linear.keys import key_of
from posterity.linear.offsets import RateOffsets
from posterity.linear.ratios import add_ratios
from posterity.linear.reader import predict_targets_or_means
from posterity.transaction import hold_model_lock

# Draws of coefficients by which expected targets under a likelihood are averaged.
EFFECT_DRAWS = 1000


class GroupedReader(GroupedModel):
    """A grouped model that predicts."""

    # ---- predicting ------------------------------------------------------------------------------

    @hold_model_lock
    def predict(
        self,
        X: Any,
        return_std: bool = False,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array | tuple[Array, Array]:
        """Mean of new observations at ``X`` (n, m), and with ``return_std`` their sd as well.

        Where the mean is infinite, as of counts of which hardly anything is known, it is the
        median. A group that is not known is predicted by what all groups share. ``offset`` and
        ``exposure`` as in :meth:`fit`; of counts the mean is for that exposure.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 3.0, 4.0]
        >>> model = GroupedRegression(prior_mean=0.0, prior_precision=0.0).fit(X, y, groups=[1] * 4)
        >>> model.predict([[4.0]], groups=[1]).round(9)
        array([5.])
        """
        if return_std or self._posterior.sites is not None:
            distribution = self._predict(X, groups, RateOffsets(offset, exposure))
            mean = expect(distribution)
            return (mean, distribution.std()) if return_std else mean
        read_offsets(self, RateOffsets(offset, exposure), 0)  # which there are not
        points, slots = self._read_points(X, groups)
        return self._posterior.compute_means_and_leverages(points, slots)[0]

    @hold_model_lock
    def predict_distribution(
        self,
        X: Any,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any:
        """Distribution of new observations at ``X`` (n, m): Normal or StudentT, one per row.

        Under a likelihood that of counts, labels or what else it is of, averaged over eta.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
        >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=["a", "a", "b", "b"])
        >>> sd = model.predict_distribution([[1.0], [1.0]], groups=["a", "new"]).std()
        >>> bool(sd[0] < sd[1])
        True
        """
        return self._predict(X, groups, RateOffsets(offset, exposure))

    @hold_model_lock
    def predict_mean_distribution(
        self,
        X: Any,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any:
        """Posterior distribution of the expected target at ``X`` (n, m), without noise.

        Of counts, that of their rate.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
        >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=["a", "a", "b", "b"])
        >>> expected = model.predict_mean_distribution([[1.0]], groups=["a"])
        >>> bool(expected.std() < model.predict_distribution([[1.0]], groups=["a"]).std())
        True
        """
        return self._predict(X, groups, RateOffsets(offset, exposure), of_mean=True)

    def _predict(self, X: Any, groups: Any, added: RateOffsets, *, of_mean: bool = False) -> Any:
        points, slots = self._read_points(X, groups)
        offsets = read_offsets(self, added, len(points))
        return self._posterior.predictive(
            points, slots, of_mean=of_mean, offsets=0.0 if offsets is None else offsets
        )

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        groups: Any = None,
        of: Literal["observation", "mean"] = "observation",
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        With ``of="mean"`` that of the expected target, which leaves out the noise.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> model = GroupedRegression(noise_precision=1.0).fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_interval([[1.0]], level=0.9).shape
        (1, 2)
        """
        how = {"groups": groups, "offset": offset, "exposure": exposure}
        return interval_ends(predict_targets_or_means(self, X, of, how), level)

    @hold_model_lock
    def average_effects(
        self,
        X: Any,
        *,
        groups: Any = None,
        per: Literal["unit", "sd"] = "unit",
        level: float = 0.95,
    ) -> Any:
        """Mean change of the expected target when one feature changes and the others stay the same.

        Each row changes by the coefficient of its own group, so groups count by their rows; one
        that is not known changes as all groups do on average. Under a likelihood the change is that
        of rates or probabilities, of an exposure of 1, by 1,000 draws of the coefficients.

        Parameters
        ----------
        X : (n, m) array or data frame
            Rows to average over. With ``by``, a data frame that has the key columns besides.
        groups : (n,) keys, optional
            As in :meth:`fit`.
        per, level
            As in :meth:`posterity.BayesianLinearRegression.average_effects`.

        Returns
        -------
        pandas.DataFrame
            A row for each feature, labelled by its name, with the columns name, mean, sd, low, high
            and probability_positive.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
        >>> groups = ["a", "a", "b", "b"]
        >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=groups)
        >>> round(float(model.average_effects(X, groups=groups).loc["x0", "mean"]), 2)
        1.25
        """
        points, slots = self._read_features(X, groups)
        likelihood, intercept = self._likelihood(), int(self.fit_intercept)
        if likelihood is not None:
            drawn = draw_coefficients(self._posterior, slots, EFFECT_DRAWS)

        def effects(low: Array, high: Array) -> list[tuple[list[str], Any]]:
            one, other = self._columns(low), self._columns(high)
            if likelihood is not None:
                ones = np.ones((len(points), intercept))
                before, after = (np.column_stack([ones, X]) for X in (one, other))
                return [([], mean_change(likelihood, drawn, before, after))]
            # An intercept does not change.
            change = np.column_stack([np.zeros((len(points), intercept)), other - one])
            return [([], average_change(self._posterior, change, slots))]

        names, coded = feature_names(self), self._categories
        return table_of_effects(points, names, effects, per=per, level=level, categories=coded)

    @hold_model_lock
    def predict_one(
        self,
        x: ArrayLike | Mapping[str, Any],
        *,
        group: Any = None,
        offset: float | None = None,
        exposure: float | None = None,
    ) -> float:
        """Mean at one row ``x`` (as in :meth:`learn_one`), the same as by :meth:`predict`.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> model = GroupedRegression(prior_mean=0.0, prior_precision=0.0)
        >>> model = model.fit([[0.0], [1.0]], [1.0, 3.0], groups=["a", "a"])
        >>> round(model.predict_one([3.0], group="a"), 9)
        7.0
        """
        model = self if self._posterior_or_none else self._make_from_row(x, group)
        if offset is not None or exposure is not None:
            how = {"group": group, "offset": offset, "exposure": exposure}
            return float(expect(model.predict_distribution_one(x, **how)))
        x, group = model._separate_key(x, group)
        slot = None if group is None else model._index.place(group)
        if slot is None:
            x, keys = model._split_one(x, group)
            slot = int(model._index.places(keys)[0])
        return model._posterior.predict_row(model._path, slot, model._read_row(x))

    @hold_model_lock
    def predict_distribution_one(
        self,
        x: ArrayLike | Mapping[str, Any],
        *,
        group: Any = None,
        offset: float | None = None,
        exposure: float | None = None,
    ) -> Any:
        """Distribution of a new observation at one row ``x`` (as in :meth:`learn_one`).

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> model = GroupedRegression(noise_precision=1.0)
        >>> model = model.learn_one({"a": 0.0}, 1.0, group="x")
        >>> model.predict_distribution_one({"a": 1.0}, group="x").shape
        ()
        """
        posterior = self._posterior
        x, keys = self._split_one(x, group)
        slots = self._index.places(keys)[keys.numbers]
        offsets = read_offsets(self, RateOffsets(offset, exposure), 1)
        return posterior.predictive(
            np.ascontiguousarray(self._path.values(self._read_row(x))),
            slots,
            offsets=0.0 if offsets is None else offsets,
        )[0]

    def predict_interval_one(
        self,
        x: ArrayLike | Mapping[str, Any],
        level: float = 0.95,
        *,
        group: Any = None,
        offset: float | None = None,
        exposure: float | None = None,
    ) -> tuple[float, float]:
        """Ends of the interval for a new observation at one row ``x``.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> model = GroupedRegression(noise_precision=1.0)
        >>> model = model.learn_one({"a": 0.0}, 1.0, group="x")
        >>> low, high = model.predict_interval_one({"a": 1.0}, group="x")
        >>> bool(low < high)
        True
        """
        predictive = self.predict_distribution_one(x, group=group, offset=offset, exposure=exposure)
        low, high = interval_ends(predictive, level)
        return float(low), float(high)

    # ---- groups by themselves --------------------------------------------------------------------

    @hold_model_lock
    def model_of(self, key: Any) -> BayesianLinearRegression:
        """A plain model with the posterior of one group, which can continue to learn.

        Its prior is the shared one, fixed as it is now; its noise knows the rows of all groups.

        Raises
        ------
        KeyError
            If no row of the group has come.
        ValueError
            Under a likelihood: the plain model has normal noise.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
        >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=["a", "a", "b", "b"])
        >>> one = model.model_of("b")
        >>> bool(np.isclose(one.predict([[2.0]])[0], model.predict([[2.0]], groups=["b"])[0]))
        True
        """
        if self._likelihood() is not None:
            raise ValueError(
                f"model_of makes a model with normal noise, and likelihood is {self.likelihood!r}: "
                "read the group by predict_distribution, summary or coef_"
            )
        return make_single_model(self, self._find_slot(key))

    def summary(self, level: float = 0.95, *, groups: Any = None, base: Base = None) -> Any:
        """Table of the coefficients of each group: a pandas data frame.

        Parameters
        ----------
        level : float, default 0.95
            Probability that an interval holds the coefficient.
        groups : key or sequence of keys, optional
            Which groups; all by default. Each takes some milliseconds.
        base : "mean", "first" or dict of column to level, optional
            What levels of categories are compared with, as in
            :meth:`posterity.BayesianLinearRegression.summary`. None: with the first level, which
            has no row then.

        Returns
        -------
        pandas.DataFrame
            The tables of :meth:`model_of` each group, one below the other, after a column group;
            of log rates and log odds with their ratios.

        Raises
        ------
        ValueError
            If there are no groups.
        KeyError
            If no row of a group has come.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from posterity import GroupedRegression
        >>> X, y = [[0.0], [1.0], [0.0], [1.0]], [1.0, 2.0, 2.0, 3.5]
        >>> model = GroupedRegression(noise_precision=1.0).fit(X, y, groups=["a", "a", "b", "b"])
        >>> model.summary()[["group", "name"]].to_numpy().tolist()
        [['a', 'intercept'], ['a', 'x0'], ['b', 'intercept'], ['b', 'x0']]
        """
        keys = self.groups_ if groups is None else groups
        keys = [keys] if isinstance(keys, str) else keys
        keys = [key if np.ndim(key) == 0 else tuple(key) for key in keys]
        if not keys:
            raise ValueError(
                "summary of no groups: name at least one of groups_ in groups, or learn rows first"
            )
        likelihood = self._likelihood()
        ratio = "" if likelihood is None else likelihood.ratio
        models = (make_single_model(self, self._find_slot(key)) for key in keys)
        tables = [add_ratios(one.summary(level, base=base), ratio) for one in models]
        for key, table in zip(keys, tables, strict=True):
            table.insert(0, "group", [key] * len(table))
        return show_table(require_pandas().concat(tables))

    # ---- keys ------------------------------------------------------------------------------------

    def _find_slot(self, key: Any) -> int:
        known = key_of(key, len(self._index.kinds), "key")
        self._index.check_kinds(known)
        slot = int(self._index.places(known)[0])
        if slot < 0:
            raise UnknownGroupError(
                f"no row of the group {key!r} was learned: give the key of a learned group"
            )
        return slot

    def _select_keys(self, groups: Any) -> Mask:
        """(G,) which groups are among these keys."""
        chosen = np.zeros(self.n_groups_, dtype=bool)
        for key in groups:
            chosen[self._find_slot(key.item() if isinstance(key, np.integer) else key)] = True
        return chosen
