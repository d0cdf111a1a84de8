"""Learning rows that come together: numbers alone, with exposures, or labels of classes."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from posterity.distributions import Categorical
from posterity.distributions.guesses import TellsCalls
from posterity.distributions.row_distribution import RowDistribution
from posterity.kernel.tables import TableLike
from posterity.linear.offsets import RateOffsets


class LearnsRows(TellsCalls):
    """An estimator that learns rows by :meth:`_learn_rows`."""

    def fit(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows, starting from the prior.

        Parameters
        ----------
        X : (n, m) array, data frame or sparse matrix
            A sparse one of up to 2,000 columns; for more see :mod:`posterity.sparse`.
        y : (n,) array
            For a model that takes several targets also an (n, q) array or data frame.
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice. Divide precisions of rows by their mean, so
            that they add up to the number of rows.
        times : (n,) array, optional
            When each row came, in any unit, not decreasing; what a ``forgetting`` strategy counts
            its time in. By default each row comes one unit after the one before it.

        Raises
        ------
        ValueError
            If a value is not finite or not a number, a weight is negative, shapes disagree, or a
            parameter is out of its range; the message names the row and column.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> BayesianLinearRegression(prior_precision=0.0).fit([[0], [1], [2]], [1, 3, 5]).coef_
        array([2.])
        """
        self._learn_rows("fit", (X, y, sample_weight), times)
        return self

    def partial_fit(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows too, one or many. Parameters and errors as in :meth:`fit`.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression(prior_precision=0.0)
        >>> model.partial_fit([[0], [1]], [1, 3]).partial_fit([[2]], [5]).coef_
        array([2.])
        """
        self._learn_rows("append", (X, y, sample_weight), times)
        return self

    def predict_then_learn(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: progressive validation in one pass.

        Parameters as in :meth:`fit`. Returns the distribution of each target given all the rows
        before it (of Gaussian rows Normal or StudentT), at the price of learning alone.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> settings = {"prior_precision": 1.0, "noise_precision": 1.0, "fit_intercept": False}
        >>> model = BayesianLinearRegression(**settings)
        >>> model.predict_then_learn([[1.0], [1.0]], [2.0, 2.0]).mean()
        array([0., 1.])
        """
        return self._learn_rows("predict_then_learn", (X, y, sample_weight), times)

    def unlearn(self, X: TableLike, y: TableLike, sample_weight: ArrayLike | None = None) -> Self:
        """Unlearn rows: the posterior becomes that of the remaining rows.

        Parameters as in :meth:`fit`. A model that does not keep its rows refuses only what it can
        prove: rows outside what it has learned, or more of them than there were. Levels that no row
        has any more keep their names.

        Raises
        ------
        ValueError
            If a row was never learned, or can't be taken out again; of diagonal models always.

        Warns
        -----
        UserWarning
            If the rows carried nearly all that was known of a direction, so that digits are lost.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 9.0])
        >>> model.unlearn([[2.0]], [9.0]).n_observations_
        2.0
        """
        return self._unlearn_rows((X, y, sample_weight))

    def _learn_rows(self, way: Any, rows: Any, times: ArrayLike | None, added: Any = None) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        raise NotImplementedError

    def _unlearn_rows(self, rows: Any, added: Any = None) -> Self:
        """Take rows (X, y, sample_weight) back."""
        raise NotImplementedError


class LearnsRates(LearnsRows):
    """The same of counts, which may have exposures."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows, starting from the prior.

        Parameters
        ----------
        X, sample_weight, times
            As in the ``fit`` of linear models.
        y : (n,) array
            Counts: whole numbers from 0 up. Of averages give the sums, and as exposure how many
            were averaged; of rates the rate times its exposure.
        offset : (n,) array or float, optional
            Added to the log rate, known and without a coefficient.
        exposure : (n,) array or float, optional
            Time, area or people that each count comes from, > 0; 1 by default. It is the offset
            log(exposure).

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression(prior_precision=0.0).fit([[0], [1]], [1, 3])
        >>> model.predict([[0], [1]]).round(1)
        array([1., 3.])
        """
        self._learn_rows("fit", (X, y, sample_weight), times, RateOffsets(offset, exposure))
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows together, starting from the posterior; parameters as in :meth:`fit`."""
        self._learn_rows("append", (X, y, sample_weight), times, RateOffsets(offset, exposure))
        return self

    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Predict each row before it is learned, then learn it: one pass, row after row.

        Parameters as in :meth:`fit`. Returns the distribution of each count given all the rows
        before it.
        """
        rows, added = (X, y, sample_weight), RateOffsets(offset, exposure)
        return self._learn_rows("predict_then_learn", rows, times, added)

    def unlearn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Unlearn rows, as models of labels do, with the exposures that the rows had.

        Raises
        ------
        ValueError
            If the rows can't have been learned; under any way to forget.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> X, y = [[0.0], [1.0], [2.0]], [1, 2, 5]
        >>> model = BayesianPoissonRegression(prior_precision=1.0).partial_fit(X[:2], y[:2])
        >>> before = model.coef_
        >>> model.learn_one(X[2], y[2]).unlearn(X[2:], y[2:]).coef_.round(6) == before.round(6)
        array([ True])
        """
        return self._unlearn_rows((X, y, sample_weight), RateOffsets(offset, exposure))

    def predict_distribution(
        self: Any, X: Any, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> RowDistribution:
        """Distribution of new counts, integrated over the posterior: one a row of ``X``.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> model = BayesianPoissonRegression().fit([[0], [1], [2]], [1, 3, 8])
        >>> model.predict_distribution([[1.0]]).pmf([3]).shape
        (1,)
        """
        return self._predictive(X, RateOffsets(offset, exposure))

    def score(
        self: Any,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> float:
        """R^2 of the expected counts: the share of the counts' variance that they explain.

        Examples
        --------
        >>> from posterity import BayesianPoissonRegression
        >>> X, y, hours = [[0], [1], [0]], [1, 3, 2], [1.0, 1.0, 2.0]
        >>> model = BayesianPoissonRegression(prior_precision=0.0).fit(X, y, exposure=hours)
        >>> round(model.score(X, y, exposure=hours), 1)
        1.0
        """
        from sklearn.metrics import r2_score

        expected = self.predict(X, offset=offset, exposure=exposure)
        return float(r2_score(y, expected, sample_weight=sample_weight))


class LearnsLabels(LearnsRows):
    """The same of labels, whose classes may be named."""

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows together, starting from the posterior. Parameters as in :meth:`fit`.

        Parameters
        ----------
        classes : array, optional
            All labels that may come. Without it classes may appear at any time.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> model = BayesianLogisticRegression().partial_fit([[0.0], [1.0]], [3, 5])
        >>> model.partial_fit([[2.0]], [4]).classes_
        array([3, 4, 5])
        """
        self._learn_labels("append", (X, y, sample_weight), times, classes)
        return self

    def predict_then_learn(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        times: ArrayLike | None = None,
    ) -> Categorical:
        """Predict each row before it is learned, then learn it: one pass, row after row.

        Returns the distribution of each label given all the rows before it. That the labels of
        this call are possible at all is known from its first row on.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> model = BayesianLogisticRegression()
        >>> predictive = model.predict_then_learn([[0.0], [0.0]], ["a", "b"])
        >>> predictive.pmf("a").round(2)[0]
        np.float64(0.5)
        """
        return self._learn_labels("predict_then_learn", (X, y, sample_weight), times, classes)

    def _learn_labels(self, way: Any, rows: Any, times: ArrayLike | None, classes: Any) -> Any:
        return self._learn_rows(way, rows, times, classes)
