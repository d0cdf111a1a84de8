"""The base of models of many features: learning rows of any kind, and merging."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

from posterity.aliases import Array
from posterity.factor.usable import LARGEST
from posterity.forgetting import Stabilized
from posterity.forgetting.words import read_forgetting
from posterity.kernel.values import is_word, read_floats, refuse_masked
from posterity.likelihoods import Likelihood
from posterity.linear.estimator import Way
from posterity.linear.inputs import check_same_kind, read_times, read_weights, refuse_no_weight
from posterity.linear.learning import LearnsRows
from posterity.linear.offsets import RateOffsets
from posterity.linear.state import PosteriorEstimator, count, tell_rows
from posterity.posteriors._centres import Centres
from posterity.posteriors._diagonal_merging import merge_diagonal
from posterity.posteriors._diagonal_sweeps import visit_again
from posterity.posteriors._sparse_rows import Observations, SparseRows
from posterity.posteriors._wide import Pairs
from posterity.posteriors.diagonal import DiagonalPosterior
from posterity.sparse.checks import check_parameters, make_row, warn_of_numbers, warn_of_texts
from posterity.sparse.coefficients import Coefficients
from posterity.sparse.index import FeatureIndex, Pair
from posterity.sparse.reading import RowReader
from posterity.sparse.rows import describe_matrix
from posterity.transaction import Undo, hold_model_lock

Numbers = NDArray[np.int32]
# What is forgotten more is forgotten; its logarithm is still a number.
LEAST_DISCOUNT = 1e-200


class DiagonalModel(LearnsRows, RowReader, Coefficients, PosteriorEstimator[Any]):
    """A model of many features, of which a row has few."""

    # What is kept of how weights depend on each other: a class of posteriors.
    _structure: ClassVar[Any] = DiagonalPosterior
    _our_names: ClassVar[Mapping[str, str]] = {}
    _index: FeatureIndex
    _now: float | None = None
    _learned_names: ClassVar[tuple[str, ...]] = ("_posterior_or_none", "_index", "_now")

    # ---- learning --------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        times: ArrayLike | None = None,
    ) -> Self:
        """Learn these rows in one pass, in their order, starting from the prior.

        They are then visited again until they agree (expectation propagation: Minka 2001), where
        nothing is forgotten and they have at most two million entries.

        Parameters
        ----------
        X : sparse matrix (n, m), data frame, list of mappings, list of lists of tokens, or array
            See the class. Of a sparse matrix duplicate entries are summed.
        y : (n,) array
        sample_weight : (n,) array, optional
            Weights >= 0; 0 leaves a row out.
        times : (n,) array, optional
            When each row came, not decreasing; what ``forgetting`` counts its time in.

        Raises
        ------
        ValueError, TypeError
            For what can't be used; the message names row and column. The model stays as it was.

        Examples
        --------
        >>> from posterity.sparse import DiagonalLinearRegression
        >>> rows = [{"site": "a"}, {"site": "b"}, {"site": "a"}, {"site": "b"}]
        >>> model = DiagonalLinearRegression(noise_precision=100.0).fit(rows, [1.0, 3.0, 1.1, 2.9])
        >>> model.predict([{"site": "b"}]).round()
        array([3.])
        """
        self._learn_rows("fit", (X, y, sample_weight), times)
        return self

    def learn_one(self, x: Any, y: Any, weight: float = 1.0, time: float | None = None) -> Self:
        """Learn one row: a mapping, a list of tokens, or a 1-D array.

        Examples
        --------
        >>> from posterity.sparse import DiagonalLogisticRegression
        >>> model = DiagonalLogisticRegression()
        >>> for _ in range(5):
        ...     model = model.learn_one({"site": "a"}, 1).learn_one({"site": "b"}, 0)
        >>> model.predict_proba_one({"site": "a"})[1] > 0.6
        True
        """
        return self._learn_one(x, y, weight, time)

    @hold_model_lock
    def merge(self, other: Self) -> Self:
        """Learn all that ``other`` has learned; the prior counts once.

        Where each row has one active feature that is exact; else what one model with all rows
        would know differs a little, as it would with the rows in another order.

        Raises
        ------
        ValueError
            If the two models differ in prior, noise, intercept, or in how features are numbered.
        """
        check_same_kind(self, other, DiagonalModel)
        theirs, index = other._posterior, other._index
        if self._posterior_or_none is None:
            fresh = self._copy_unfitted()
            fresh._begin(index.given, index.has_own_columns)
            fresh._join_names(other)
            fresh.merge(other)
            self._take_over(fresh)
            return self
        self._check_mergeable(other)
        posterior = self._posterior.copy()
        mine: FeatureIndex = deepcopy(self._index)
        features, columns = mine.absorb(index)
        owners = np.zeros(mine.size, dtype=np.int32)
        owners[features] = columns[theirs.owners[: len(features)]]
        begun = self._index.size
        posterior.grow(mine.size, owners[begun:], mine.n_columns)
        self._add_posterior(posterior, theirs, features, columns)
        self._join_names(other)
        self.__dict__.update(_posterior_or_none=posterior, _index=mine)
        return self

    # ---- what each model defines -----------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        raise NotImplementedError

    def _noise_prior(self) -> tuple[float, float] | None:
        return None

    def _unit(self) -> float:
        """Return the divisor that makes a precision in the user's units noise-relative."""
        return 1.0

    def _targets(self, y: Any) -> tuple[Array, dict[str, Any]]:
        """Targets (n,) as numbers, and attributes that are new with them.

        Raises ``ValueError`` naming the row of one that can't be learned.
        """
        refuse_masked(y, "y")
        values = read_floats(column_or_1d(y, warn=True), "y")
        bad = ~(np.abs(values) <= LARGEST)
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"y is {values[row]} in row {row}, and must be finite: leave the row out"
            )
        self._likelihood().check_targets(values)
        return values, {}

    def _target(self, y: Any) -> float | None:
        """The target of one row as a number, None of one that needs to be looked at closer."""
        return float(y) if type(y) in (float, int) and abs(y) <= LARGEST else None

    def _prediction(self, moments: Array, y: Array, weights: Array | None) -> Any:
        """The predictions, from the figures (n, 6, members) of each row."""
        raise NotImplementedError

    def _check_mergeable(self, other: Self) -> None:
        mine, theirs = ((one.hashed, one.given) for one in (self._index, other._index))
        if mine != theirs:
            raise ValueError(
                "the models number their features in different ways: by names, by the columns "
                "of a matrix, or by hashes; merge models of the same kind"
            )
        if self._index.has_own_columns != other._index.has_own_columns:
            raise ValueError(
                "the models number their features in different ways: only of one did numbers fill "
                "more than half of the first rows, so that each feature has a scale of its own; "
                "begin both with the same rows, or give data frames, whose columns all have one"
            )
        if not self._posterior.has_same_prior(other._posterior):
            raise ValueError(
                "the models differ in prior, noise, intercept or forgetting: merge models with "
                "the same settings"
            )
        if self._forgets_by != other._forgets_by or self.interactions != other.interactions:
            raise ValueError(
                "the models differ in forgetting or interactions: merge models with the same "
                "settings"
            )

    def _warn(self, n: int, read: Any) -> None:
        """Warn of columns of which nothing can be learned."""
        if not issparse(read):
            warn_of_texts(n, read)
            if self._posterior_or_none is None and is_word(self.categorical_features, "auto"):
                warn_of_numbers(read)

    def _join_names(self, other: Self) -> None:
        """Know the names of targets that another model knows."""

    # ---- inner -----------------------------------------------------------------------------------

    @property
    def _forgets_by(self) -> Stabilized | None:
        strategy: Stabilized | None = read_forgetting(self.forgetting)
        return strategy

    def _begin(self, given: int | None, own_columns: bool) -> None:
        """Start from the prior; the model stays as it was where a parameter is wrong."""
        self._check_parameters()
        if given is not None and self.hash_size is not None:
            raise ValueError(
                "hash_size is for features with names, and a matrix has none: hash beforehand "
                "(sklearn's FeatureHasher), or leave hash_size out"
            )
        learned = isinstance(self.prior_precision, str)
        self._posterior_or_none = posterior = self._structure.before_data(
            self._likelihood(),
            None if learned else float(self.prior_precision) / self._unit(),
            intercept=self.fit_intercept,
            noise=self._noise_prior(),
            forgets=self._forgets_by is not None,
        )
        columns = range(given or 0) if own_columns else ()
        names: list[str | Pair] = [f"x{place}" for place in columns]
        self._index = FeatureIndex(self.hash_size, given, columns=names)
        size = self._index.size
        owners = np.arange(2, size + 1) if names else np.ones(size - 1)
        posterior.grow(size, owners.astype(np.int32), self._index.n_columns)
        if given is not None:
            posterior.centres = Centres.of_matrix(given)
            self.n_features_in_ = given

    def _list_learned(self) -> list[str]:
        rows = tell_rows(self.n_observations_, self.n_effective_)
        return [rows, count(self.n_features_, "feature")]

    def _check_parameters(self) -> None:
        """Raise ``ValueError`` for a parameter out of its range."""
        check_parameters(self)

    @hold_model_lock
    def _learn_rows(
        self, way: Way, rows: Any, times: ArrayLike | None, added: RateOffsets | None = None
    ) -> Any:
        """Learn rows (X, y, sample_weight) in one of three ways; returns what was predicted."""
        if way != "fit":
            return self._learn(rows, times, added, predict=way == "predict_then_learn")
        refuse_no_weight(rows[2])
        fresh = self._copy_unfitted()
        fresh._learn(rows, times, added, revisit=True)
        self._take_over(fresh)

    def _unlearn_rows(self, rows: Any, added: RateOffsets | None = None) -> Self:
        raise ValueError(
            "a diagonal model can't unlearn rows: the effect of a row on a feature depended on "
            "the other features at that time; use forgetting=, or fit again without these rows"
        )

    def _learn_one(
        self, x: Any, y: Any, weight: float, time: float | None, added: RateOffsets | None = None
    ) -> Self:
        usual = time is None and self._now is None and weight == 1.0
        if not (usual and self._learn_known(x, y, added)):
            weights = None if weight == 1.0 else [weight]
            rows = make_row(x), [y], weights
            self._learn_rows("append", rows, None if time is None else [time], added)
        return self

    def _learn(
        self,
        rows: Any,
        times: ArrayLike | None,
        added: RateOffsets | None = None,
        *,
        predict: bool = False,
        revisit: bool = False,
    ) -> Any:
        """Check everything, then number features and learn."""
        X, y, sample_weight = rows
        n, read = self._read(X)
        first = self._posterior_or_none is None
        model = self._copy_unfitted() if first else self
        if first:
            model._begin(*describe_matrix(read))
        else:
            model._check_parameters()
        targets, met, weights, offsets = model._read_targets(n, read, y, sample_weight, added)
        elapsed, now = read_times(times, n, weights, None if first else self._now)
        discounts = None
        if self._forgets_by is not None:
            discounts = np.maximum(self._forgets_by.discounts(elapsed), LEAST_DISCOUNT)
        self._warn(n, read)
        with Undo() as undo:
            undo.keep_attributes(model, model._posterior, model._posterior.centres)
            model._index.keep(undo, () if issparse(read) else read)
            numbered = model._grow_for(lambda: model._number(n, read, new=True), undo)
            model.__dict__.update(met, _now=now)
            data = Observations(numbered, targets, weights, discounts, offsets)
            pairs = None if self.interactions is None else partial(model._add_new_pairs, undo)
            before = model._posterior.learn(data, pairs, undo, predict=predict)
            if revisit:
                model._visit_again(data, pairs)
        if first:
            self._take_over(model)
        if before is None:
            return None
        return self._prediction(before[:, :, : self._posterior.members], targets, weights)

    def _read_targets(
        self, n: int, read: Any, y: Any, sample_weight: Any, added: RateOffsets | None
    ) -> tuple[Array, dict[str, Any], Array | None, Array | None]:
        """Targets of rows that are read, attributes that are new with them, weights and offsets."""
        self._check_kind(read)
        targets, met = self._targets(y)
        if n != len(targets):
            check_consistent_length(np.empty(n), targets)
        offsets = None if added is None else added.read(n)
        return targets, met, read_weights(sample_weight, n), offsets

    @hold_model_lock
    def _learn_known(self, x: Any, y: Any, added: RateOffsets | None) -> bool:
        """Learn one row, if its features are all known and nothing about it is unusual."""
        forgetting: Any = self._forgets_by
        if forgetting is not None and not isinstance(forgetting, Stabilized):
            return False
        posterior = self._posterior_or_none
        row = None if posterior is None else self._read_known(x)
        target = None if row is None else self._target(y)
        offset = 0.0 if added is None else added.read_one()
        if posterior is None or row is None or target is None or offset is None:
            return False
        for feature, column, _ in row:  # of some, all rows so far had zeros
            posterior.owners[feature] = column
        posterior.learn_row(row, target, 1.0 if forgetting is None else forgetting.rate, offset)
        return True

    def _add_new_pairs(self, undo: Undo, rows: SparseRows, centres: Centres) -> SparseRows:
        return self._grow_for(lambda: self._add_pairs(rows, centres, new=True), undo)

    def _add_posterior(self, mine: Any, theirs: Any, features: Numbers, columns: Numbers) -> None:
        merge_diagonal(mine, theirs, features, columns)

    def _visit_again(self, data: Observations, pairs: Pairs | None) -> None:
        visit_again(self._posterior, data, pairs)

    def _grow_for(self, number: Callable[[], SparseRows], undo: Undo) -> SparseRows:
        """Number the features of rows, and make room for those that are new."""
        posterior, index = self._posterior, self._index
        begun = index.size
        rows = number()
        if index.size > begun or index.n_columns > len(posterior.squares):
            more = np.zeros(index.size - begun, dtype=np.int32)
            posterior.grow(index.size, more, index.n_columns)
            posterior.centres.add(index.list_numbers())
        posterior.set_owners(rows, undo)
        return rows
