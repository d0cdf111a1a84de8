"""Bayesian linear regression for many groups at once, which share a prior that they learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from posterity.grouped.inputs import Input, drop_weightless_rows, read, read_offsets
from posterity.grouped.reader import GroupedReader
from posterity.kernel.values import read_scalar
from posterity.linear.coding import join_categories, join_levels_of_row
from posterity.linear.inputs import check_same_features, check_same_kind, read_weights
from posterity.linear.keys import Keys
from posterity.linear.offsets import RateOffsets
from posterity.transaction import hold_model_lock


class GroupedRegression(GroupedReader):
    """A linear regression for each group, with a prior that all groups share and learn.

    ``y = intercept_g + x . coef_g + noise``, and the coefficients of the groups, intercepts
    included, vary around a mean that they share: ``w_g ~ Normal(mean, sigma^2 D)``. Mean and D are
    learned from all groups (empirical Bayes), so that a new group starts warm, one with few rows
    leans on the others, and one with many speaks for itself. Where the evidence says so,
    each group has noise of its own, and effects of its own size: quiet and loud groups, and one
    that lies far off.

    Each group is a triangle of p (p + 1) / 2 numbers in one block of memory: a hundred thousand
    groups learn nearly as fast as one model. Groups may appear at any time.

    Parameters
    ----------
    by : str or list of str, optional
        The column of a data frame, or the columns, whose values are the keys of the groups. None:
        keys are given as ``groups=`` in each call; without any, all rows are one group.
    prior_mean : "shared", float or (m,) array, default "shared"
        Mean of the coefficients over groups: learned, or given. The intercept's is learned unless
        the precision is given.
    prior_precision : "shared", "unit information", float, (m,) or (m, m) array, default "shared"
        Precision of the coefficients over groups: learned; the mean square of each feature, which
        says as much of its coefficient as one row (Kass and Wasserman 1995), for groups that are
        too few to learn from, and p / 10 times as much where there are more than ten; or given as
        in :class:`BayesianLinearRegression`, and the intercepts are then flat.
    noise_precision : float, optional
        1 / variance of the noise, if it is known. None: learned from all groups together.
    noise_prior : (float, float), default (0.0, 0.0)
        Shape and rate of the Gamma prior of a learned noise precision. If given, the noise is the
        same in all groups.
    fit_intercept : bool, default True
        Whether each group has an intercept.
    forgetting : Exponential or Stabilized, optional
        How the rows of a group fade, counted in rows of that group. The shared prior does not
        fade: it is learned from the groups as they stand.
    categorical_features, missing
        As in :class:`posterity.BayesianLinearRegression`.
    likelihood : "gaussian", "poisson", "bernoulli" or Likelihood, default "gaussian"
        What targets are, given ``eta = intercept_g + x . coef_g``. "gaussian": eta and normal
        noise. "poisson": counts of the rate ``exposure * exp(offset + eta)``. "bernoulli": labels
        0 and 1, eta their log odds. Or one of :mod:`posterity.likelihoods`, or your own, whose
        parameters are given. Coefficients, their mean and their covariance are those of eta; there
        is no ``noise_precision_``, and nothing is forgotten. A flat intercept is
        Normal(0, 10^2).

    Attributes
    ----------
    groups_ : (G,) array
        The keys, in the order in which the groups came.
    n_groups_ : int
    coef_, intercept_ : (G, m) and (G,) arrays
        Posterior means, of each group.
    shared_mean_ : (p,) array
        Mean of [intercept, coefficients] over groups.
    shared_covariance_ : (p, p) array
        Their covariance over groups, in units of the coefficients: the variance components of a
        mixed model.
    shared_posterior_ : MultivariateNormal or MultivariateT
        Joint posterior of the mean over groups, given D: of the fixed effects of a mixed model.
    noise_precision_ : float
        That of all groups; where their noise differs, about which that of each varies.
    noise_precisions_ : (G,) array
        That of each group.
    counts_ : (G,) array
        Sum of the weights of the rows of each group, as they have faded.
    n_observations_ : float
        Sum of the weights of all rows learned.
    log_evidence_ : float
        log p(y | X), the coefficients of all groups and the shared mean integrated; a flat prior
        has density 1 in the units of the coefficients.
    n_features_in_, feature_names_in_
        As in scikit-learn, without the key columns.

    Notes
    -----
    The prior is that of the highest evidence (restricted maximum likelihood, with a prior of D that
    keeps it off zero, Chung et al. 2015, and draws it towards equal variances, as strongly as the
    evidence favours), from 2,048 groups at most, drawn evenly. A stream
    goes on with one that is learned anew after a fourth, later half more rows, from 1,000 on as
    many again, from 100,000 on twice as many. Predictions use the prior and the noise of that
    moment: of all rows after a `fit`, an `unlearn` or a `merge`, and as old as a stream's once rows
    came later. Attributes are read from all rows. The uncertainty of the mean is part of what a new
    group has. Of a known group the mean knows the rows already; with up to 16 groups each has its
    prior from the other groups instead. Predictions use the mean of D; `shared_covariance_` has
    its best value.

    Variances of the noise are scaled inverse chi-squared over groups, and so are, with
    ``prior_precision="shared"``, factors of D, which makes effects Student-t (Gelman et al. 2013,
    sections 5.7 and 17.2). Both are learned where the evidence prefers it to groups that are
    alike, and normal targets come from at most 2,048 groups (512 in `predict_then_learn`).

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import GroupedRegression
    >>> rng = np.random.default_rng(0)
    >>> shop = rng.integers(0, 50, size=500)
    >>> slope = rng.normal(2.0, 0.5, size=50)
    >>> X = rng.normal(size=(500, 1))
    >>> y = slope[shop] * X[:, 0] + rng.normal(scale=0.3, size=500)
    >>> model = GroupedRegression().fit(X, y, groups=shop)
    >>> model.n_groups_, model.shared_mean_[1].round(1), model.shared_covariance_[1, 1].round(1)
    (50, np.float64(1.9), np.float64(0.3))
    >>> new, known = 1000, 7
    >>> model.predict([[1.0], [1.0]], groups=[new, known]).round(1)
    array([1.9, 2.5])
    """

    # ---- learning --------------------------------------------------------------------------------

    @hold_model_lock
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows, starting from the prior.

        Parameters
        ----------
        X : (n, m) array or data frame
            With ``by``, a data frame that has the key columns besides.
        y : (n,) array
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice. Divide precisions of rows by their mean, so
            that they add up to the number of rows.
        groups : (n,) keys, optional
            Numbers, text, dates, tuples of these, or what is compared as these are, as array,
            column or list; or several columns, as a data frame or (n, k) array.
        offset : (n,) array or float, optional
            Added to eta, known and without a coefficient; not where targets are normal.
        exposure : (n,) array or float, optional
            Of counts: time, area or people that each comes from, > 0. It is the offset
            log(exposure).

        Raises
        ------
        ValueError
            If a value is not finite, a key is missing, a weight is negative, shapes disagree, or a
            parameter is out of its range; the message names the row and column.

        Examples
        --------
        >>> X, y = [[0.0], [1.0], [0.0], [1.0], [2.0]], [1.0, 2.0, 2.0, 3.0, 4.5]
        >>> GroupedRegression().fit(X, y, groups=["a", "a", "b", "b", "b"]).groups_.tolist()
        ['a', 'b']
        """
        self._learn_rows("fit", (X, y, sample_weight), groups, RateOffsets(offset, exposure))
        return self

    @hold_model_lock
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows, of known or new groups. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> model = GroupedRegression().partial_fit([[0.0]], [1.0], groups=["a"])
        >>> model.partial_fit([[1.0]], [2.0], groups=["b"]).n_groups_
        2
        """
        self._learn_rows("append", (X, y, sample_weight), groups, RateOffsets(offset, exposure))
        return self

    @hold_model_lock
    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: progressive validation in one pass.

        Parameters as in :meth:`fit`. Returns the distribution of each target given all the rows
        before it, of its own group and, by the prior and the noise, of the others.

        Examples
        --------
        >>> model = GroupedRegression(prior_mean=0.0, prior_precision=1.0, noise_precision=1.0,
        ...                           fit_intercept=False)
        >>> y, groups = [2.0, 4.0, 2.0], ["a", "b", "a"]
        >>> predictive = model.predict_then_learn([[1.0]] * 3, y, groups=groups)
        >>> predictive.mean()
        array([0., 0., 1.])
        """
        return self._learn_rows(
            "predict_then_learn", (X, y, sample_weight), groups, RateOffsets(offset, exposure)
        )

    @hold_model_lock
    def learn_one(
        self,
        x: ArrayLike | Mapping[str, Any],
        y: float,
        weight: float = 1.0,
        *,
        group: Any = None,
        offset: float | None = None,
        exposure: float | None = None,
    ) -> Self:
        """Learn one row.

        Parameters
        ----------
        x : (m,) array, or mapping of feature names to numbers
            With ``by``, a mapping that has the keys besides.
        y : float
        weight : float, default 1.0
        group : key, optional
            A tuple where keys have several parts.
        offset, exposure : float, optional
            As in :meth:`fit`.

        Raises
        ------
        ValueError
            As :meth:`fit`.

        Examples
        --------
        >>> model = GroupedRegression(by="shop")
        >>> model.learn_one({"shop": "a", "price": 2.0}, 5.0).counts_
        array([1.])
        """
        if self._posterior_or_none is None:
            fresh = self._make_from_row(x, group)
            return self._take_over(
                fresh.learn_one(x, y, weight, group=group, offset=offset, exposure=exposure)
            )
        x, group = self._separate_key(x, group)
        if self._categories is not None:
            wider = self._with_levels(join_levels_of_row(self, x))
            if wider is not self:
                return self._take_over(
                    wider.learn_one(x, y, weight, group=group, offset=offset, exposure=exposure)
                )
        y, weight = read_scalar(y, "y"), read_scalar(weight, "weight")
        slot = None if group is None else self._index.place(group)
        alone = offset is None and exposure is None
        offsets = None if alone else read_offsets(self, RateOffsets(offset, exposure), 1)
        added = 0.0 if offsets is None else float(offsets[0])
        if slot is not None and self._posterior.learn_row(
            self._path, slot, self._read_row(x), y, weight, added
        ):
            return self
        X, keys = self._split_one(x, group)
        weights = None if weight == 1.0 else read_weights([weight], 1)
        values = self._path.values(self._read_row(X))
        given = Input(values, np.array([y]), weights, keys, offsets)
        if weight > 0.0:
            self._learn(given)
        return self

    @hold_model_lock
    def unlearn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: Any = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Unlearn rows: the posterior becomes that of the remaining rows.

        Parameters as in :meth:`fit`. A group without rows is gone. The model does not keep its
        rows, so it refuses only what it can prove; under a likelihood it keeps the first 4,096, and
        more can't be unlearned.

        Raises
        ------
        ValueError
            If a row was never learned by its group, or data fade.

        Examples
        --------
        >>> model = GroupedRegression().fit([[0.0], [1.0]], [1.0, 2.0], groups=["a", "b"])
        >>> model.unlearn([[0.0]], [1.0], groups=["a"]).groups_.tolist()
        ['b']
        """
        posterior = self._posterior
        X, keys = self._split(X, groups)
        added = RateOffsets(offset, exposure)
        given = drop_weightless_rows(read(self, X, y, sample_weight, keys, added, reset=False))
        self._refuse(given)
        rows = given.rows(self._index, posterior.intercept, new=False)
        strangers = np.flatnonzero(rows.slots < 0)
        if len(strangers):
            row = int(np.argmax(np.isin(rows.numbers, strangers)))
            label = given.keys.label(int(rows.numbers[row]))
            raise ValueError(
                f"row {row} is of the group {label!r}, which was never learned: unlearn only "
                "learned rows (nothing was changed)"
            )
        with self._changing(given.keys):
            posterior.remove(rows)
            self._drop_empty()
        return self

    @hold_model_lock
    def merge(self, other: GroupedRegression) -> Self:
        """Learn all that ``other`` has learned: the union of the groups, each with all its rows.

        Raises
        ------
        ValueError
            If the two models differ in features, prior, noise, forgetting or type of key.

        Examples
        --------
        >>> north = GroupedRegression().fit([[0.0], [1.0]], [1.0, 2.0], groups=["a", "b"])
        >>> south = GroupedRegression().fit([[2.0], [1.0]], [3.0, 4.0], groups=["b", "c"])
        >>> north.merge(south).counts_
        array([1., 2., 1.])
        """
        check_same_kind(self, other, GroupedRegression)
        theirs = other._posterior
        if self._posterior_or_none is None:
            fresh = self._copy_unfitted()
            fresh._set_columns_of(other)
            fresh._begin()
            fresh.merge(other)
            return self._take_over(fresh)
        check_same_features(self, other)
        if self._categories != other._categories:
            both = join_categories(self, other)
            wider = self._with_levels(both)
            if wider is not self:
                return self._take_over(wider.merge(other))
            other = other._with_levels(both)
            theirs = other._posterior
        if not self._posterior_or_none.has_same_prior(theirs):
            raise ValueError(
                "the models differ in prior, noise, forgetting or intercept: only models of the "
                "same parameters can be merged"
            )
        labels = other._index.labels
        keys = Keys(np.arange(len(labels), dtype=np.int32), labels, other._index.kinds)
        with self._changing(keys):
            self._posterior_or_none.merge(theirs, self._index.places(keys, new=True))
        return self

    @hold_model_lock
    def evict(self, *, idle: int | None = None, groups: Any = None) -> Self:
        """Remove groups from the model, and return a model of them, to save and merge again later.

        Parameters
        ----------
        idle : int, optional
            Take the groups of which no row has come among the last ``idle`` rows of the stream.
        groups : keys, optional
            Or take these.

        Returns
        -------
        GroupedRegression
            What was known of them. ``model.merge(returned)`` brings it back, exactly. Meanwhile the
            shared prior and the noise are learned from the groups that stay.

        Raises
        ------
        ValueError
            If neither ``idle`` nor ``groups`` is given, or both are, or a group is unknown.

        Examples
        --------
        >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 2.0]
        >>> model = GroupedRegression().fit(X, y, groups=["a", "b", "b"])
        >>> model.evict(idle=2).groups_.tolist(), model.groups_.tolist()
        (['a'], ['b'])
        """
        posterior = self._posterior
        if (idle is None) == (groups is None):
            raise ValueError("evict needs either idle or groups, as in evict(idle=100_000)")
        if groups is not None:
            leaves = self._select_keys(groups)
        else:
            leaves = posterior.bank.last <= posterior.bank.clock - int(idle)  # type: ignore[arg-type]
        evicted = self._copy_unfitted()
        evicted._set_columns_of(self)
        evicted._posterior_or_none = posterior.with_groups(leaves)
        evicted._index = self._index.keep(leaves)
        with self._changing():
            posterior.keep(~leaves)
            self._index = self._index.keep(~leaves)
        return evicted
