"""Reads of every linear estimator: predictions, of one row too, and coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from posterity.aliases import Array, DataFrame
from posterity.distributions.row_distribution import RowDistribution
from posterity.kernel.tables import TableLike
from posterity.kernel.values import read_size
from posterity.linear.base import LinearModel
from posterity.linear.effects import average_effects, compute_explained_share
from posterity.linear.explaining import Explains
from posterity.linear.inputs import read_points
from posterity.linear.later import wait_until
from posterity.linear.named import wrap_read_rows
from posterity.linear.targets import target_row
from posterity.other_names import accept_other_names


class LinearReader(Explains, LinearModel):
    """A linear model that is asked about rows; how it learns them is another matter."""

    def at(self, time: float) -> Self:
        """A model that knows what this one will know at ``time``, if no row comes until then.

        A model with ``forgetting`` forgets before it learns a row, so it predicts for the time of
        the last one; at a later time its intervals are wider. Rows must have come with ``times``.
        Under ``Changepoint``, and for that member of ``Adaptive``, a read without a time is for one
        unit after the last row. This model stays as it is. The one returned can learn, too: what it
        forgets then is counted from the last row, as if no time had been asked for.

        Parameters
        ----------
        time : float
            In the unit of the rows' times, and not before the last of them.

        Raises
        ------
        ValueError
            If rows came without times, or ``time`` is before the last; and of several targets, more
            than two classes, heavy tails, quantiles, and windows over labels and counts; under
            ``Changepoint`` of labels, counts and priors learned for each regime that are improper.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0, forgetting="stabilized:0.9")
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], times=[0.0, 1.0, 2.0])
        >>> later = model.at(12.0)
        >>> bool(later.predict_distribution_one([1.0]).std() > 1.2)
        True
        >>> later.n_effective_ < model.n_effective_, round(model.n_effective_, 2)
        (True, 2.71)
        """
        return wait_until(self, time)

    def predict_one(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Mean at one row ``x`` (as in :meth:`learn_one`); before any data, the prior's.

        That of ``predict``, after rows that came together and under ``Adaptive``. Where a prior is
        learned and rows come one by one, it is the mean that :meth:`predict_then_learn` would give:
        its prior was chosen a few rows ago, where that of ``predict`` rests on all.
        Of several targets it is a (q,) array, or a mapping where they came with names.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.predict_one([3.0])
        0.0
        >>> model.fit([[0], [1]], [1, 3]).predict_one([3.0])
        7.0
        """
        try:
            predict = self._fast_predict_one
        except AttributeError:
            model = self if self._posterior_or_none is not None else self._make_from_row(x)
            if not model._has_fast_predict_one:
                columns = model._columns(model._path.values(x))
                values = model._posterior.predict_mean_ahead(columns)
                return target_row(model, values[0])
            predict = model._open_fast_method("_fast_predict_one", "predict_mean")
        return predict(x)

    def predict_distribution_one(self, x: ArrayLike | Mapping[str, float], **how: Any) -> Any:
        """Distribution of a new observation at one row ``x`` (as in :meth:`learn_one`).

        That of ``predict_distribution`` at this row, with its options; numbers have no rows.

        Raises
        ------
        ValueError
            If the features are others than the model learned.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0)
        >>> model = model.learn_one({"age": 0.0}, 0.0).learn_one({"age": 2.0}, 1.0)
        >>> round(float(model.predict_distribution_one({"age": 1.0}).std()), 4)
        1.2247
        """
        return predict_targets_or_means(self, self._row(x), "observation", how)[0]

    def predict_interval_one(
        self, x: ArrayLike | Mapping[str, float], level: float = 0.95, **how: Any
    ) -> tuple[Any, Any]:
        """Ends of the interval at one row ``x``: those of ``predict_interval``, with its options.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0)
        >>> model = model.learn_one({"age": 0.0}, 0.0).learn_one({"age": 2.0}, 1.0)
        >>> low, high = model.predict_interval_one({"age": 1.0})
        >>> round(low, 2), round(high, 2)
        (-1.9, 2.9)
        """
        reader: Any = self
        ends = np.asarray(reader.predict_interval(self._row(x), level, **how))[0]
        low, high = ends.tolist() if ends.ndim == 1 else np.moveaxis(ends, -1, 0)
        return low, high

    @accept_other_names
    def sample_coefficients(self, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw ``size`` coefficient vectors (size, m), of several targets (size, q, m).

        For joint draws of intercept and coefficients use ``posterior_.rvs``. ``rng`` is anything
        that ``numpy.random.default_rng`` takes.

        Raises
        ------
        ValueError
            If the posterior is still improper: a direction with a flat prior was never seen.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 4.0])
        >>> model.sample_coefficients(5, rng=0).shape
        (5, 1)
        """
        draws = self._joint().rvs(read_size(size), random_state=np.random.default_rng(rng))
        return draws[..., self._offset :]

    def predict_mean_distribution(self, X: TableLike) -> RowDistribution:
        """Posterior distribution of the expected target at ``X`` (n, m), without noise.

        New observations vary more: see ``predict_distribution``, whose mean is the same.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(noise_precision=1.0).fit([[0.0], [2.0]], [0.0, 1.0])
        >>> model.predict_mean_distribution([[1.0]]).std().round(4)
        array([0.7071])
        >>> model.predict_distribution([[1.0]]).std().round(4)
        array([1.2247])
        """
        return self._eta_distribution(X, None)

    @accept_other_names
    def sample_mean(
        self, X: TableLike, size: int, rng: int | np.random.Generator | None = None
    ) -> Array:
        """Draw ``size`` times the expected target at all rows of ``X`` (n, m): (size, n).

        Of several targets (size, n, q). Each draw is of one coefficient vector, intercept included,
        so that rows belong together.
        ``rng`` is anything that ``numpy.random.default_rng`` takes.

        Raises
        ------
        ValueError
            If the posterior is still improper: a direction with a flat prior was never seen.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 4.0])
        >>> model.sample_mean([[0.0], [3.0]], 5, rng=0).shape
        (5, 2)
        """
        return self._eta_draws(X, size, rng, None)

    @accept_other_names
    def average_effects(
        self,
        X: TableLike,
        *,
        per: Literal["unit", "sd"] = "unit",
        level: float = 0.95,
        size: int = 1000,
        rng: int | np.random.Generator | None = 0,
        **how: Any,
    ) -> DataFrame:
        """Mean change of the expected target when one feature changes and the others stay the same.

        In units of the target: of labels the change of the probability, of counts that of the
        expected count, through whatever basis there is. Also known as average marginal effects.

        Parameters
        ----------
        X : (n, m) array or data frame
            Rows to average over; a few thousand are enough.
        per : "unit" or "sd"
            How much a feature goes up by: 1, or its standard deviation in ``X``. One that is 0 or 1
            in all rows goes from 0 to 1. A category goes to each level from its first. Columns
            named as levels of a category are (color=red, color[T.red]), of which no row has two, go
            to this level from the one that has no column; if each has one, from the first.
        level : float, default 0.95
            Probability that an interval holds the effect.
        size : int, default 1000
            Number of draws from the posterior, where effects are not linear in the coefficients.
        rng : int or numpy.random.Generator, default 0
            As :func:`numpy.random.default_rng` takes it.
        **how
            Other options of :meth:`sample_mean`, such as ``exposure``.

        Returns
        -------
        pandas.DataFrame
            A row for each feature, labelled by its name, with the columns name, mean, sd, low, high
            and probability_positive; where there are more than two classes, or several targets, a
            row for each of them, which the column class or target names.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Notes
        -----
        The mean over rows of ``E[y | x + step] - E[y | x]``, for each draw of the coefficients
        (Gelman and Pardoe 2007, "Average predictive comparisons"). Where the step would leave the
        domain of a basis it is ``E[y | x] - E[y | x - step]``, if this does not: beyond, a basis
        says little of the function.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 0, 1, 1]
        >>> effects = BayesianLogisticRegression(prior_precision=1.0).fit(X, y).average_effects(X)
        >>> bool(0.05 < effects.loc["x0", "mean"] < 0.15)   # of the probability, by one unit
        True
        """
        return average_effects(
            self, X, per=per, level=level, size=read_size(size), rng=rng, how=how
        )

    @accept_other_names
    def sample_r2(
        self,
        X: TableLike,
        size: int = 1000,
        rng: int | np.random.Generator | None = None,
        **how: Any,
    ) -> Array:
        """Draw the explained share of the targets' variance at ``X``, Bayesian R^2: (size,).

        Bayesian R^2 (Gelman, Goodrich, Gabry and Vehtari 2019): for each draw of the coefficients
        and the noise, the variance of the expected targets over that plus the mean variance of
        targets around them. It lies between 0 and 1, and needs no targets. Of several targets
        (size, q).

        Parameters
        ----------
        X : (n, m) array or data frame
            Usually the rows that were learned.
        size : int, default 1000
        rng : int or numpy.random.Generator, optional
            As :func:`numpy.random.default_rng` takes it.
        **how
            Other options of :meth:`sample_mean`, such as ``exposure``.

        Raises
        ------
        ValueError
            If the posterior is still improper, the noise has no one variance, or there are more
            than two classes.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [1.0, 2.9, 5.2, 7.0, 8.9]
        >>> r2 = BayesianLinearRegression().fit(X, y).sample_r2(X, rng=0)
        >>> bool(r2.mean() > 0.95), r2.shape
        (True, (1000,))
        """
        rng = np.random.default_rng(rng)
        return compute_explained_share(*self._means_and_variances(X, read_size(size), rng, **how))

    # ---- inner -----------------------------------------------------------------------------------

    # True if the expected target is the linear predictor itself.
    _expects_eta: ClassVar[bool] = True
    # Column names of several values for one row in a table.
    _label_of_outputs: ClassVar[str] = "target"

    def _outputs(self) -> list[str]:
        """Labels of the numbers that are expected of one row, where there are several."""
        if not hasattr(self, "n_targets_"):
            return []
        names = getattr(self, "target_names_", None)
        return [f"y{place}" for place in range(self.n_targets_)] if names is None else list(names)

    def _means_and_variances(
        self, X: TableLike, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Draws of the expected targets (size, n), and of the mean variance around them (size,)."""
        raise NotImplementedError

    def _eta_offsets(self, added: ArrayLike | None, n: int) -> Array | None:
        """Return the offset that users add to eta, as numbers (n,)."""
        return None

    def _eta_distribution(self, X: TableLike, added: ArrayLike | None) -> RowDistribution:
        """Distribution of the linear predictor at the rows of ``X``."""
        posterior, (rows, shift) = self._joint(), self._prepare_rows(X, added)
        return self._project(posterior, self._posterior, rows, shift)

    def _project(
        self, joint: Any, posterior: Any, rows: Array, shift: Array | float
    ) -> RowDistribution:
        """Distribution of the linear predictor at rows of all columns, intercept included."""
        projected = joint.project(rows, shift)
        effects = posterior.unseen_effects(rows[:, self._offset :])
        if effects is not None:
            projected = projected.widen((effects * effects).sum(axis=1))
        return self._correct(rows, projected, shift)

    def _eta_draws(
        self,
        X: TableLike,
        size: int,
        rng: int | np.random.Generator | None,
        added: ArrayLike | None,
    ) -> Array:
        """(size, n) draws of the linear predictor at the rows of ``X``; of targets (size, n, q)."""
        posterior, (rows, shift) = self._joint(), self._prepare_rows(X, added)
        rng = np.random.default_rng(rng)
        size = read_size(size)
        draws = posterior.rvs(size, random_state=rng) @ rows.T + shift
        several = draws.ndim > 2
        draws = np.swapaxes(draws, 1, 2) if several else draws[:, :, None]
        known: Any = self._posterior
        for place, one in enumerate(known.each if several else (known,)):
            effects = one.unseen_effects(rows[:, self._offset :])
            if effects is not None:
                draws[:, :, place] += (effects @ rng.standard_normal((effects.shape[1], size))).T
        return draws if several else draws[:, :, 0]

    def _prepare_rows(self, X: TableLike, added: ArrayLike | None) -> tuple[Array, Array | float]:
        """Columns of ``X``, after any 1, and what is added to eta."""
        X = read_points(self, X)
        columns, shift = self._columns(X), self._eta_offsets(added, len(X))
        if self._offset:
            columns = np.column_stack([np.ones(len(X)), columns])
        return columns, 0.0 if shift is None else shift

    def _row(self, x: ArrayLike | Mapping[str, float]) -> Any:
        """Read one row as methods that take many do."""
        self._posterior  # noqa: B018 - not fitted comes first
        return wrap_read_rows(self, self._path.values(x))

    @property
    def _has_fast_learn_one(self) -> bool:
        """True if compiled code learns single rows."""
        return self._learns_features and self._posterior.has_fast_learn_one

    @property
    def _has_fast_predict_one(self) -> bool:
        """True if compiled code predicts single rows."""
        return self._learns_features and self._posterior.has_fast_predict_one


def predict_targets_or_means(
    model: BaseEstimator, X: TableLike, of: str, how: Mapping[str, Any]
) -> Any:
    """Distributions of new observations at ``X``, or of their means."""
    if of == "observation":
        return model.predict_distribution(X, **how)
    if of == "mean":
        return model.predict_mean_distribution(X, **how)
    raise ValueError(f"of is {of!r}: it must be 'observation' or 'mean'")
