"""The model that a formula describes: fixed effects, and effects of groups, that keep learning."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, RegressorTags

from posterity.aliases import Array, DataFrame
from posterity.distributions.guesses import TellsCalls
from posterity.distributions.in_sequence import in_sequence
from posterity.kernel.tables import take_rows
from posterity.likelihoods import Bernoulli, Likelihood
from posterity.linear.inputs import read_weights, refuse_no_weight
from posterity.linear.keys import read_keys
from posterity.linear.offsets import RateOffsets
from posterity.model.checks import check_rows, check_targets, split_trials
from posterity.model.design import Design, DesignRows
from posterity.model.engines import TermRows, make_engine
from posterity.model.factors import Frame
from posterity.model.formula import read_formula
from posterity.model.grammar import Node
from posterity.model.leave_out import list_left_out
from posterity.model.reading import ModelReader
from posterity.transaction import hold_model_lock

# Variances and correlations over which nodes are placed, at most.
MOST_COORDINATES = 8


class Model(ModelReader, TellsCalls, BaseEstimator):
    """A regression that a formula describes, with effects of groups, which keeps learning.

    Fixed effects have a wide prior (see Notes). Effects of a group, as of ``(1 + x | g)``, are
    normal around 0 with a covariance that is integrated over; so are all variances. A level that
    was never met is predicted as wide as levels are, and is learned when it comes.

    Parameters
    ----------
    formula : str
        As in R: ``"y ~ x + C(city) + a:b + a*b + poly(x, 2) + log(z) + (1 + x | g) + offset(w)"``.
        Text columns are levels, compared with the first; ``C(n)`` makes levels of numbers.
        ``(1 | g)`` is an intercept for each level of g, ``(1 + x | g)`` a slope with it that may be
        correlated, ``(1 + x || g)`` one that is not; ``(1 | a/b)`` b within a. ``1`` and ``0`` say
        whether there is a constant. ``I(...)`` is arithmetic. No code runs. Lifetimes of which some
        go on are ``Surv(time, ended) ~ ...``, intervals ``cens(low, high) ~ ...``.
    likelihood : str or Likelihood, default "normal"
        Of the target: ``"normal"``, a number with noise; ``"bernoulli"``, one of two labels;
        ``"binomial"``, successes, where the formula begins with ``successes / trials``;
        ``"poisson"``, a count; or another word or value of :mod:`posterity.likelihoods`, as
        ``"gamma"`` or ``Ordinal(5)``. Parameters of it that are not given are integrated over.
    forgetting : Stabilized or Exponential, optional
        How old rows lose weight, or a word such as ``"exponential:0.99"``; the prior does not fade.

    Attributes
    ----------
    n_observations_ : float
        Sum of the weights of the rows learned.

    Notes
    -----
    The prior of a standard deviation is a half Student-t of 3 degrees of freedom, for a column of
    mean square 1 with a scale of 2.5 standard deviations of the target (of labels and counts 2.5,
    as eta is a logarithm); correlations are uniform (Lewandowski, Kurowicka & Joe 2009). Of
    ``(1 + x | g)`` x counts from its mean there, so its zero does not matter. The
    variance of the noise is integrated by formula, with a flat prior of its logarithm, the others
    by nodes: a lattice, or a central composite design (Rue, Martino & Chopin 2009). Fixed effects
    have a prior worth a millionth of a row; of labels and counts it is Normal(0, 10^2), for a
    column of mean square 1.

    Sums of products are kept for numbers, rows for labels and counts
    (:class:`posterity.sparse.SparseLinearRegression`).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from posterity import Model
    >>> rng = np.random.default_rng(0)
    >>> subject, x = np.repeat(np.arange(20), 6), np.tile(np.arange(6.0), 20)
    >>> y = 10.0 + 2.0 * x + 3.0 * rng.normal(size=20)[subject] + rng.normal(size=120)
    >>> frame = pd.DataFrame({"y": y, "x": x, "subject": subject})
    >>> model = Model("y ~ x + (1 | subject)").fit(frame)
    >>> model.summary().loc["x", "mean"].round(1)
    np.float64(2.1)
    >>> model.variance_components().index.tolist()
    ['sd(1 | subject)', 'sd(residual)']
    """

    _learned_names: ClassVar[tuple[str, ...]] = ("_design", "_engine")

    def __init__(
        self, formula: str, likelihood: str | Likelihood = "normal", *, forgetting: Any = None
    ) -> None:
        self.formula = formula
        self.likelihood = likelihood
        self.forgetting = forgetting

    # ---- learning --------------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        """Whether targets are labels, which scikit-learn's scores ask."""
        tags = super().__sklearn_tags__()
        labels = self.likelihood in ("bernoulli", Bernoulli())
        tags.estimator_type = "classifier" if labels else "regressor"
        tags.classifier_tags = ClassifierTags(multi_class=False) if labels else None
        tags.regressor_tags = None if labels else RegressorTags()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether rows were learned."""
        return "_engine" in vars(self)

    @hold_model_lock
    def fit(self, frame: object, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn these rows, starting from the prior.

        Parameters
        ----------
        frame : data frame, or mapping of names to columns
            With the columns that the formula names.
        y : (n,) array, optional
            The target, where the frame does not have it.
        sample_weight : (n,) array, optional
            Weights >= 0; weight 2 is the row twice.

        Raises
        ------
        ValueError, TypeError
            For what can't be used: the message shows the place in the formula, or names the row.
        """
        refuse_no_weight(sample_weight)
        design, engine = self._begin(frame)
        check_rows(design, frame, engine)
        engine = self._learn(design, engine, frame, y, sample_weight)
        self.__dict__.update(_design=design, _engine=engine)
        return self

    @hold_model_lock
    def partial_fit(
        self, frame: object, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn these rows too; parameters as in :meth:`fit`. Levels may be new.

        Examples
        --------
        >>> model = Model("y ~ 1 + (1 | shop)")
        >>> for day in ([1.0, 3.0], [1.2, 2.8], [0.9, 3.1]):
        ...     model = model.partial_fit({"y": day, "shop": ["a", "b"]})
        >>> model.n_observations_
        6.0
        """
        known = self.__dict__.get("_engine")
        design, engine = self._begin(frame) if known is None else (self._design, known)
        engine = self._learn(design, engine, frame, y, sample_weight)
        self.__dict__.update(_design=design, _engine=engine)
        return self

    def learn_one(self, row: Mapping[str, Any], y: Any = None, weight: float = 1.0) -> Self:
        """Learn one row, a mapping of names to values."""
        if not hasattr(row, "items"):
            raise TypeError(
                f"row is a {type(row).__name__}: give a mapping of the formula's names to values"
            )
        frame = {name: [value] for name, value in row.items()}
        return self.partial_fit(frame, None if y is None else [y], [weight])

    @hold_model_lock
    def predict_then_learn(
        self, frame: object, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Predict each row from rows before it, then learn them: the distributions, one a row.

        In turns of up to a third of the rows that were learned before; parameters as in ``fit``.
        """
        model, fresh = copy.copy(self), "_engine" not in vars(self)
        design, engine = self._begin(frame) if fresh else (self._design, self._engine.copy())
        model._design, model._engine = design, engine
        rows, targets, _ = self._make_rows(design, engine, frame, y, sample_weight)[0][0]
        engine.prepare(targets)
        n, start = rows.n, 0
        weights = read_weights(sample_weight, n)
        predicted: list[Any] = []
        while start < n or not predicted:
            some = slice(start, start + max(1, int(model.n_observations_) // 3))
            rows, given = take(frame, some), None if y is None else take(y, some)
            predicted.append(model.predict_distribution(rows))
            model.partial_fit(rows, given, None if weights is None else weights[some])
            start = some.stop
        self.__dict__.update(_design=model._design, _engine=model._engine)
        return in_sequence(predicted)

    @hold_model_lock
    def unlearn(self, frame: object, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Take rows back: what is left is the model of the other rows, up to rounding.

        Raises
        ------
        ValueError
            For rows that can't be among those learned.
        """
        engine = self._fitted.copy()
        for rows, added in self._make_rows(self._design, engine, frame, y, sample_weight):
            engine._unlearn_rows(rows, added)
        self._engine = engine
        return self

    @hold_model_lock
    def merge(self, other: Self) -> Self:
        """Learn all that ``other`` has learned; the prior counts once.

        Raises
        ------
        ValueError
            If formula, likelihood or what the first rows fixed (the levels that others are compared
            with, centres, polynomials) differ.
        """
        engine, theirs = self._fitted, other._fitted
        if self.get_params() != other.get_params():
            raise ValueError("the models differ in formula, likelihood or forgetting")
        if not self._design.is_same(other._design):
            raise ValueError(
                "the first rows of the models fixed different levels to compare with, or different "
                "centres: begin both with the same rows, and unlearn these from one of them"
            )
        engine.merge(theirs)
        return self

    def leave_one_out(
        self,
        frame: object,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        by: str | None = None,
    ) -> DataFrame:
        """Table of rows (pandas), each predicted from all others, or from all other groups.

        Parameters
        ----------
        frame, y, sample_weight
            All rows that were learned, in the order in which they came.
        by : str, optional
            A column: rows of which it has the same value are left out together.

        Returns
        -------
        pandas.DataFrame
            Of each row ``mean``, the expected target, and ``log_density`` of the target that came.
            The sum of the latter compares models: larger is better.

        Raises
        ------
        ValueError
            If these are not the rows that were learned, or they are of trials.

        Notes
        -----
        Of numbers exact at the nodes, whose weights lose what the rows said. Of labels and counts
        sites are left out (Vehtari et al. 2016); with ``by`` nodes keep their weights.

        Examples
        --------
        >>> frame = {"y": [1.0, 1.1, 0.9, 3.0, 3.1, 2.9], "shop": ["a", "a", "a", "b", "b", "b"]}
        >>> alike, apart = Model("y ~ 1").fit(frame), Model("y ~ shop").fit(frame)
        >>> one, other = (model.leave_one_out(frame) for model in (alike, apart))
        >>> bool(one["log_density"].sum() < other["log_density"].sum())
        True
        """
        engine = self._fitted
        turns = self._make_rows(self._design, engine, frame, y, sample_weight)
        if len(turns) > 1:
            raise ValueError(
                "rows of trials can't be left out: give a row for each trial, of likelihood "
                "'bernoulli'"
            )
        columns = Frame.of(frame, self.formula)
        keys = None if by is None else read_keys([columns.column(Node("name", by, 0))], [by])
        return list_left_out(engine, engine._read_again(*turns[0]), by, keys)

    # ---- predicting ------------------------------------------------------------------------------

    def predict(self, frame: object) -> Array:
        """(n,) expected targets: numbers, counts, or probabilities of the second label.

        Medians where a mean is infinite, as of counts of which hardly anything is known.

        Examples
        --------
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1], "shop": ["a", "a", "b", "b"]}
        >>> model = Model("y ~ 1 + (1 | shop)").fit(frame)
        >>> model.predict({"shop": ["a", "never seen"]}).round()
        array([1., 2.])
        """
        return self._fitted.expect(self._read(frame))

    def predict_distribution(self, frame: object) -> Any:
        """Distribution of new observations, one a row."""
        return self._fitted.predict_distribution(self._read(frame))

    def predict_interval(
        self,
        frame: object,
        level: float = 0.95,
        *,
        of: Literal["observation", "mean"] | None = None,
    ) -> Array:
        """(n, 2) ends of the central interval that holds a new observation with this probability.

        With ``of="mean"`` that of the expected target; labels have this one alone.
        """
        asked = {} if of is None else {"of": of}
        return self._fitted.predict_interval(self._read(frame), level, **asked)

    # ---- inner -----------------------------------------------------------------------------------

    def _read(self, frame: object) -> DesignRows:
        self._fitted  # noqa: B018
        return self._design.read(frame)

    def _begin(self, frame: object) -> tuple[Design, TermRows]:
        """The design of these first rows, and a model that knows nothing."""
        if (read_formula(self.formula).trials is not None) != (self.likelihood == "binomial"):
            raise ValueError(
                "successes of trials are written 'successes / trials ~ ...', with "
                "likelihood='binomial', and nothing else is"
            )
        design = Design(self.formula).begin(frame)
        every = [name for names in design.terms for name in names]
        if twice := sorted({name for name in every if every.count(name) > 1}):
            raise ValueError(
                f"the effects ({twice[0]}) stand twice in the formula, and can't be told apart: "
                "leave one of them out"
            )
        constant = design.formula.has_intercept
        how = {"fit_intercept": constant, "forgetting": self.forgetting}
        engine = make_engine(self.likelihood, design.terms, ends=design.formula.has_ends, **how)
        count = sum(len(names) * (len(names) + 1) // 2 for names in design.terms)
        count += len(engine.likelihood.learned)
        if count > MOST_COORDINATES:
            raise ValueError(
                f"the model has {count} variances and correlations of groups and parameters of the "
                f"likelihood, and at most {MOST_COORDINATES} are integrated over: write "
                "(1 + x || g), which has no correlations, s(x, by=g, id=1), whose curves have one "
                "variance, or fewer effects"
            )
        return design, engine

    def _learn(
        self, design: Design, engine: TermRows, frame: object, y: Any, weights: ArrayLike | None
    ) -> TermRows:
        """Have the engine learn rows; where they are learned in turns, a copy of it."""
        turns = self._make_rows(design, engine, frame, y, weights)
        if len(turns) > 1 and engine.has_learned:
            engine = engine.copy()
        for rows, added in turns:
            engine._learn_rows("append", rows, None, added)
        return engine

    def _make_rows(
        self, design: Design, engine: TermRows, frame: object, y: Any, weights: ArrayLike | None
    ) -> list[tuple[Any, RateOffsets]]:
        """Rows with targets and weights, and offsets; of trials successes, and then failures."""
        rows = design.read(frame)
        targets, trials = design.read_targets(frame, y)
        check_targets(targets, design, engine)
        added = RateOffsets(rows.offset, None)
        if trials is None:
            return [((rows, targets, weights), added)]
        own = np.ones(rows.n) if weights is None else np.asarray(weights, dtype=np.float64)
        return [
            ((rows, engine.name_classes(np.full(rows.n, label)), own * count), added)
            for label, count in enumerate(split_trials(targets, trials))
        ]


def take(rows: Any, some: slice) -> Any:
    """Some rows of a frame, of a mapping of columns or of a column."""
    if isinstance(rows, Mapping):
        return {name: column[some] for name, column in rows.items()}
    return rows[some] if isinstance(rows, list) else take_rows(rows, some)
