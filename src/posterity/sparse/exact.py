"""Models with many features that keep every covariance, in a sparse factor."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from posterity.linear.offsets import RateOffsets
from posterity.posteriors._sparse_rows import Observations, Row
from posterity.posteriors._wide import Pairs
from posterity.posteriors.sparse import SparsePosterior
from posterity.sparse.base import DiagonalModel
from posterity.sparse.linear import DiagonalLinearRegression
from posterity.sparse.logistic import DiagonalLogisticRegression
from posterity.sparse.poisson import DiagonalPoissonRegression
from posterity.transaction import hold_model_lock

Numbers = NDArray[np.int32]


class ExactModel(DiagonalModel):
    """Base of models with an exact posterior, for all likelihoods."""

    _structure: ClassVar[Any] = SparsePosterior

    def predict_then_learn(self, X: Any, y: Any, *args: Any, **named: Any) -> Any:
        """Refused: each row would need a factor of its own.

        Raises
        ------
        ValueError
            Always. Predict a batch, then learn it with ``partial_fit``.
        """
        raise ValueError(
            "a sparse factor is made anew for each batch, not for each row: call predict and then "
            "partial_fit for each batch, or take the diagonal model"
        )

    @hold_model_lock
    def _unlearn_rows(self, rows: Any, added: RateOffsets | None = None) -> Self:
        if self._forgets_by is not None:
            raise ValueError("a model with forgetting can't unlearn: rows have lost their weight")
        self._posterior.unlearn(self._read_again(rows, added), self._known_pairs)
        return self

    def _read_again(self, rows: Any, added: RateOffsets | None = None) -> Observations:
        """Rows that were learned; features that were not are -1."""
        X, y, sample_weight = rows
        n, read = self._read(X)
        targets, _, weights, offsets = self._read_targets(n, read, y, sample_weight, added)
        return Observations(self._number(n, read, new=False), targets, weights, offsets=offsets)

    def _read_known(self, x: Any) -> Row | None:
        return None  # there is no path of single rows

    def _add_posterior(self, mine: Any, theirs: Any, features: Numbers, columns: Numbers) -> None:
        mine.merge(theirs, features, columns)

    def _visit_again(self, data: Observations, pairs: Pairs | None) -> None:
        """Do nothing: rows that come together are learned together."""


class SparseLinearRegression(ExactModel, DiagonalLinearRegression):
    """Linear regression for sparse rows with thousands of features: the exact posterior.

    All covariances of the weights are kept, as in :class:`posterity.BayesianLinearRegression`, in a
    sparse Cholesky factor: crossed and nested effects, users and items, with numeric columns.
    Memory and time grow with the pairs of features that meet in rows, directly or by others.

    Parameters
    ----------
    prior_precision : "auto" or float, default "auto"
        "auto" gives each column the prior scale of the largest evidence, on values of mean square
        1. With a flat prior of the noise these are the variance components of restricted maximum
        likelihood (REML) in a mixed model. Columns of fewer than five weights, as those of numbers,
        have a wide prior; more than five numbers have scales around one that they share. A number
        is given for all weights.
    noise_precision, noise_prior, fit_intercept, interactions, hash_size
        As in :class:`DiagonalLinearRegression`.
    categorical_features, missing
        As in :class:`DiagonalLinearRegression`, as are rows and attributes.
    forgetting : Stabilized, optional
        How old rows lose weight; the prior does not. None: they never do.

    Notes
    -----
    Sums of products are kept, not rows: ``partial_fit``, ``merge`` and ``unlearn`` are exact. Under
    ``forgetting`` there is no ``unlearn``: rows have lost their weight. The
    factor is made when the model is first read after rows have come. Its columns stand in an
    order of minimum degree; fronts as in Liu (1992), variances as in Takahashi et al. (1973). A
    factor that would not fit into memory is refused, with the bytes that it needs.

    Scales are the likeliest ones. With few levels in a column, say five, the scale itself is
    uncertain, and intervals of new levels are too narrow.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> user, item = rng.integers(0, 300, 4000), rng.integers(0, 100, 4000)
    >>> y = 3.0 + rng.normal(size=300)[user] + rng.normal(size=100)[item] + rng.normal(size=4000)
    >>> rows = pd.DataFrame({"user": user, "item": item})
    >>> model = SparseLinearRegression(categorical_features="all").fit(rows, y)
    >>> {column: round(scale) for column, scale in model.prior_scales_.items()}
    {'user': 1, 'item': 1}
    """


class SparseLogisticRegression(ExactModel, DiagonalLogisticRegression):
    """Logistic regression for sparse rows with thousands of features and all their covariances.

    The posterior is normal, by expectation propagation (Minka 2001), with a sparse Cholesky factor
    of its precision: each row has a Gaussian site that gives its log odds their exact mean and
    variance, given all other sites. Parameters, rows and attributes are those of
    :class:`DiagonalLogisticRegression`; "auto" gives each column the prior scale of the largest
    evidence.

    Notes
    -----
    Rows are kept, as the posterior is found anew when the model is read after rows have come: the
    answer is the same for any order of rows, in batches or at once. A sweep over all sites costs
    one factor and one selected inverse; some 10 to 30 sweeps are needed. ``unlearn`` drops each row
    once, with the weight it came with.

    Examples
    --------
    >>> rows = [["good", "cheap"], ["bad", "cheap"], ["good"], ["bad"]] * 5
    >>> model = SparseLogisticRegression().fit(rows, [1, 0, 1, 0] * 5)
    >>> model.predict([["good"], ["bad", "cheap"]])
    array([1, 0])
    """


class SparsePoissonRegression(ExactModel, DiagonalPoissonRegression):
    """Poisson regression for sparse rows with thousands of features and all their covariances.

    As :class:`SparseLogisticRegression` does for labels. Counts have exposures as in
    :class:`DiagonalPoissonRegression`.

    Examples
    --------
    >>> rows = [["home"], ["away"], ["home"], ["away"]] * 5
    >>> model = SparsePoissonRegression().fit(rows, [3, 1, 4, 1] * 5)
    >>> bool(model.predict_one(["home"]) > model.predict_one(["away"]))
    True
    """
