"""Learning and predictions of a classifier of two classes or many."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray, Array
from posterity.distributions import Categorical, MultivariateMixture, MultivariateNormal
from posterity.distributions.row_distribution import RowDistribution
from posterity.factor import Rows
from posterity.factor.usable import check_rows
from posterity.generalized import _many
from posterity.generalized._labels import join_classes, positions, read_labels
from posterity.generalized.base import GeneralizedModel
from posterity.kernel import SitePath
from posterity.kernel.values import read_size
from posterity.likelihoods import Bernoulli, Likelihood
from posterity.linear.estimator import Way, learn
from posterity.noise import Joint, JointOfOne
from posterity.other_names import accept_other_names
from posterity.posteriors._softmax_likelihood import log_softmax
from posterity.transaction import atomic, get_lock

Labels = AnyArray


class Classifier(GeneralizedModel):
    """Base of :class:`BayesianLogisticRegression`, which learns and predicts labels.

    With one class or two ``_posterior_or_none`` is of the log odds of the second, with more a
    :class:`SoftmaxPosterior` whose classes are in the order of ``classes_``.
    """

    _learned_names = (*GeneralizedModel._learned_names, "classes_", "_flipped")

    classes_: Labels
    # With two classes, True if the posterior is of the first one's log odds, because it came late.
    _flipped: bool = False
    _fast_predict_one: Callable[..., dict[Any, float] | None]  # type: ignore[assignment]

    # ---- what was learned ------------------------------------------------------------------------

    @property
    def _multiclass_posterior(self) -> Any:
        posterior: Any = self._posterior
        return posterior if len(self.classes_) > 2 else None

    @property
    def _all_coefficients(self) -> Array:
        """(1, p) of the log odds of the second class, or (K, p) one row a class."""
        many = self._multiclass_posterior
        if many is not None:
            return many.coefficients()
        coefficients = self._posterior.coefficients()[None]
        return -coefficients if self._flipped else coefficients

    @property
    def coef_(self) -> Array:
        """(1, m), or (K, m) with more than two classes: mean, under "laplace" the mode."""
        return self._all_coefficients[:, self._offset :]

    @property
    def intercept_(self) -> Array:
        """(1,), or (K,) with more than two classes; 0.0 without."""
        coefficients = self._all_coefficients
        return coefficients[:, 0] if self._offset else np.zeros(len(coefficients))

    def _joint(self) -> Joint:
        many = self._multiclass_posterior
        if many is None:
            posterior = super()._joint()
            return negate(posterior) if self._flipped else posterior
        return many.joint(self._coefficient_names(), tuple(map(str, self.classes_)))

    @accept_other_names
    def sample_coefficients(self, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw coefficients from the posterior: (size, m), or (size, K, m) with more than two."""
        if self._multiclass_posterior is None:
            return super().sample_coefficients(size, rng)
        size = read_size(size)
        whole = self._draw_classes(size, rng)
        whole -= whole.mean(axis=1, keepdims=True)
        return whole[:, :, self._offset :]

    def _open_beliefs(self) -> tuple[SitePath | None, float] | None:
        opened = super()._open_beliefs()
        return (opened[0], -1.0) if opened is not None and self._flipped else opened

    def _correct(
        self, columns: Array, normal: Any, shift: Array | float = 0.0, *, of_rows: bool = True
    ) -> RowDistribution:
        if self._multiclass_posterior is not None:
            return normal
        # With the first class as the second one the posterior is of minus the coefficients.
        turned = -columns if self._flipped else columns
        return super()._correct(turned, normal, shift, of_rows=of_rows)

    def _draw_classes(self, size: int, rng: int | np.random.Generator | None) -> Array:
        """(size, K, p) draws of all classes' coefficients, against the first."""
        size = read_size(size)
        draws = self._joint().rvs(size, random_state=np.random.default_rng(rng))
        ahead = draws.reshape(size, len(self.classes_) - 1, -1)
        return np.concatenate([np.zeros_like(ahead[:, :1]), ahead], axis=1)

    def predict_mean_distribution(self, X: Any) -> RowDistribution:
        """Posterior distribution of the probability of the second class at ``X`` (n, m).

        Raises
        ------
        ValueError
            With more than two classes, whose probabilities :meth:`sample_mean` draws together.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0]], [7, 8])
        >>> model.predict_mean_distribution([[0.5]]).mean().round(6)
        array([0.5])
        """
        if self._multiclass_posterior is not None:
            raise ValueError(
                f"there are {len(self.classes_)} classes, whose probabilities have no single "
                "distribution: use sample_mean or predict_interval"
            )
        return self._compute_expected(self._eta_distribution(X, None))

    @accept_other_names
    def sample_mean(self, X: Any, size: int, rng: int | np.random.Generator | None = None) -> Array:
        """Draw the second class's probability at all rows of ``X`` (n, m): (size, n).

        With more than two classes those of all, (size, n, K). Each draw is of one coefficient
        vector, intercept included, so that rows belong together.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> model = BayesianLogisticRegression().fit([[0.0], [1.0], [2.0]], [7, 8, 9])
        >>> model.sample_mean([[0.5]], 4, rng=0).sum(axis=2).round(6).tolist()
        [[1.0], [1.0], [1.0], [1.0]]
        """
        if self._multiclass_posterior is None:
            return self._likelihood().mean(self._eta_draws(X, size, rng, None))
        predictors = self._draw_classes(size, rng) @ self._prepare_rows(X, None)[0].T
        return np.exp(log_softmax(predictors.transpose(0, 2, 1)))

    _label_of_outputs: ClassVar[str] = "class"

    def _outputs(self) -> list[str]:
        return [] if self._multiclass_posterior is None else [str(label) for label in self.classes_]

    def _means_and_variances(  # type: ignore[override]
        self, X: Any, size: int, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if self._multiclass_posterior is not None:
            raise ValueError(
                f"there are {len(self.classes_)} classes: R^2 is of numbers, or of two classes"
            )
        return super()._means_and_variances(X, size, rng)

    # ---- learning --------------------------------------------------------------------------------

    def _read_rows(
        self, way: Way, rows: tuple[Any, Any, ArrayLike | None], added: Any, *, reset: bool
    ) -> tuple[Array, Array, Array | None]:
        """Features, the classes' numbers (n, 1) and weights; ``added`` are names of classes."""
        labels = read_labels(rows[1])
        met = join_classes(None if reset else self.classes_, added, labels)
        if way == "fit" and len(met) == 1:
            raise ValueError(
                f"all labels are {met.tolist()[0]!r}: a classifier needs rows of at least two "
                "classes, not of one class. If others come later, start with partial_fit and "
                "name all of them in its classes"
            )
        places = positions(met, labels)[0].astype(np.float64) if len(labels) else np.zeros(0)
        read = super()._read_rows(way, (rows[0], places, rows[2]), None, reset=reset)
        self._meet_classes(met)
        return read

    def _read_target(self, y: Any) -> Array:
        labels = read_labels([y])
        self._meet_classes(join_classes(self.classes_, None, labels))
        return positions(self.classes_, labels)[0].astype(np.float64)[:, None]

    def _meet_classes(self, met: Labels) -> None:
        """Begin with these classes, or let those join that are new."""
        if self._posterior_or_none is None:
            self.classes_, self._flipped = met, False
        elif len(met) > len(self.classes_):
            self._grow(met)

    def _begin_with_row(self, x: ArrayLike | Mapping[str, float], y: Any = None) -> None:
        self._meet_classes(join_classes(None, None, read_labels([y])))
        super()._begin_with_row(x)

    def _begin(self, X: Array, y: Array | None = None, weights: Array | None = None) -> None:
        shares = None if y is None else (y == np.arange(len(self.classes_))).astype(np.float64)
        super()._begin(X, shares, weights)

    @atomic
    def unlearn(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """As :meth:`BayesianGeneralizedLinear.unlearn`, of rows and their labels; the classes stay.

        Examples
        --------
        >>> from posterity import BayesianLogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
        >>> model = BayesianLogisticRegression(prior_precision=1.0).fit(X[:3], y[:3])
        >>> before = model.coef_
        >>> model.learn_one(X[3], y[3]).unlearn(X[3:], y[3:]).coef_.round(6) == before.round(6)
        array([[ True]])
        """
        self._posterior  # noqa: B018 - not fitted comes first
        labels = read_labels(y)
        places, there = positions(self.classes_, labels)
        if not there.all():
            row = int(np.argmin(there))
            raise ValueError(
                f"y is {labels.tolist()[row]!r} in row {row}, which was never learned: unlearn "
                "only learned rows"
            )
        ones = places.astype(np.float64)
        return self._unlearn_rows((X, 1.0 - ones if self._flipped else ones, sample_weight))

    _fast_name: ClassVar[str] = "learn_label"

    @property
    def _tells_rows(self) -> bool:
        return len(self.classes_) == 2 and self._posterior.scores_rows

    def _tell(self, path: Any, y: Any, gained: float) -> Categorical:
        other = max(-np.expm1(gained), np.finfo(float).eps)  # of which a sum says no more
        logs = np.full(2, np.log(other))
        logs[self.classes_.tolist().index(y)] = gained
        return Categorical(self.classes_, logs)

    def _open_row_path(self) -> SitePath:
        with get_lock(self):
            opened, path = "_row_path" in self.__dict__, cast(SitePath, super()._open_row_path())
            if not opened and hasattr(path, "name_labels"):
                path.name_labels(self.classes_.tolist(), self._flipped)
        return path

    def _update_posterior(self, way: Way, rows: Rows) -> Categorical | None:
        many, n_classes = self._multiclass_posterior, len(self.classes_)
        if way == "fit":
            places = rows.y[:, 0].astype(np.intp)
            shares = np.bincount(places, weights=rows.weights, minlength=n_classes)
            if n_classes == 1 or (shares == 0.0).any():
                way = "append"  # a class without rows has no most probable flat intercept
        if many is None:
            rows = replace(rows, y=1.0 - rows.y) if self._flipped else rows
            learned = super()._update_posterior(way, rows)
        else:
            rows = replace(rows, X=np.asarray(rows.X))
            check_rows(rows.X, rows.y, rows.weights)
            learned = learn(many, way, rows)
        if way != "predict_then_learn":
            return None
        logs = self._predict_log_odds(learned) if many is None else learned.log_probabilities
        return Categorical(self.classes_, logs)

    def _start(self) -> None:
        if len(self.classes_) <= 2:
            super()._start()
        else:
            self._posterior_or_none = cast(Any, self._begin_classes(len(self.classes_)))

    def _begin_classes(self, n_classes: int) -> Any:
        self._check_approximation()
        _, precision, of_intercept = self._beliefs()
        if any(of_intercept):
            raise ValueError(
                "the prior names the intercept, and with more than two classes there is one for "
                "each: leave it out, and their priors are flat"
            )
        return _many.begin_posterior(
            n_classes,
            self._n_columns,
            intercept=self.fit_intercept,
            precision=self._scale_precision(precision),
            forgetting=self.forgetting,
            approximation=self.approximation,
            shapes=self._prior_shapes(),
        )

    def _grow(self, met: Labels) -> None:
        """Make room for classes that are met for the first time; ``met`` are all, sorted."""
        before, many = self.classes_, self._multiclass_posterior
        self.classes_ = met
        if len(met) == 2:
            self._flipped = bool(met[1] == before[0])
            self._check_prior_of_order()
            return
        _many.check_growth(len(met), self._n_columns + int(self.fit_intercept))
        if many is None:
            old = self._posterior
            started = before if len(before) == 2 else None
            many = _many.convert_from_two(old, self._begin_classes(2), flipped=self._flipped)
            self._flipped = False
            if started is None:  # of one class so far: it took the place of the first
                before = np.concatenate([before, met[met != before[0]][:1]])
        order = np.concatenate([before, met[~np.isin(met, before)]])
        many.add_classes(len(met))
        many.reorder(np.argsort(order))
        self._posterior_or_none = cast(Any, many)

    def _check_prior_of_order(self) -> None:
        """Refuse a prior mean, which is of the second class, where the first came as the second."""
        mean, _, (of_intercept, _) = self._beliefs()
        if self._flipped and (np.any(mean) or of_intercept):
            first, second = self.classes_.tolist()
            raise ValueError(
                f"the prior mean is of the log odds of {second!r}, which came before {first!r} was "
                "known: name both classes in the first call, as in "
                f"partial_fit(X, y, classes=[{first!r}, {second!r}])"
            )

    # ---- inner -----------------------------------------------------------------------------------

    def _likelihood(self) -> Likelihood:
        return Bernoulli()

    def _predict_log_odds(self, joint: Any) -> Array:
        """(n, K) log probabilities, K up to 2, from a prediction of 0 or 1."""
        both = np.stack([joint.logpdf(0.0), joint.logpdf(1.0)], axis=1)
        if len(self.classes_) == 1:
            return np.zeros((len(both), 1))
        return both[:, ::-1] if self._flipped else both

    def _log_probabilities(self, columns: Array) -> Array:
        many = self._multiclass_posterior
        if many is not None:
            return many.predictive(columns).log_probabilities
        return self._predict_log_odds(self._posterior.predictive(columns))

    def _check_mergeable(self, other: Self) -> None:
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError(
                f"the models differ in their classes, {self.classes_.tolist()} and "
                f"{other.classes_.tolist()}: name all classes in the first call, as in "
                "partial_fit(X, y, classes=...)"
            )

        if self._flipped != other._flipped:
            raise ValueError(
                "the models have their classes in different orders: name all classes in the "
                "first call, as in partial_fit(X, y, classes=...)"
            )

    def _set_targets_of(self, other: Any) -> None:
        self.classes_, self._flipped = other.classes_, other._flipped


def negate(joint: Joint) -> Joint:
    """The joint distribution of minus the coefficients."""
    if isinstance(joint, MultivariateNormal):
        return MultivariateNormal(-joint.mean, joint.precision_root, joint.scale, names=joint.names)
    assert isinstance(joint, MultivariateMixture)
    twin = copy.copy(joint)
    twin.components = tuple(cast(JointOfOne, negate(one)) for one in joint.components)
    return twin
