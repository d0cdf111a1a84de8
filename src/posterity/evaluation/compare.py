"""Models compared on the same rows: by log evidence, or by how well they predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Mask
from posterity.averaging.inputs import log_prior
from posterity.averaging.members import (
    check_member,
    copy_unfitted,
    forgets,
    get_evidence_terms,
    get_final_step,
    select_columns,
    transform_for_last,
)
from posterity.evaluation._batches import (
    Batch,
    limit_batches,
    locate_rows,
    note_refusals,
    read_labels_or_numbers,
    refuse_nothing,
)
from posterity.evaluation._ledger import two_sum
from posterity.evaluation._names import name_models
from posterity.evaluation.comparison import Comparison
from posterity.evaluation.progressive import check_count
from posterity.linear.offsets import RateOffsets
from posterity.posteriors.ensemble import compute_probabilities

REQUIRED_METHODS = {"evidence": ("partial_fit",), "prequential": ("predict_then_learn",)}


def compare(
    models: Mapping[str, Any] | Sequence[Any],
    X: Any,
    y: Any = None,
    *,
    score: str = "evidence",
    prior_weights: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    batch_rows: int = 16384,
    progress: Callable[[int], object] | None = None,
) -> Comparison:
    """Compare models on the same rows, by their evidence or their predictions.

    The models given are not changed: clones learn, from nothing. (What is no scikit-learn
    estimator is copied, with all that it knows.) One that was fitted on some columns of a data
    frame learns those columns, by ``feature_names_in_``.

    Parameters
    ----------
    models : mapping of name to model, or list of models
        Estimators of this package; scikit-learn pipelines that end in one, whose other steps are
        fitted on the first batch; for the prequential score also anything with
        ``predict_then_learn(X, y, sample_weight=None)``. A list is named by the classes and the
        parameters that differ.
    X : (n, p) array or data frame, tuple, or iterable
        As `stream` of :func:`progressive_validation`.
    y : (n,) array, optional
        Targets, when `X` is an array or a data frame: numbers, or labels of text.
    score : {"evidence", "prequential"}
        "evidence": ``log_evidence_`` after all rows. "prequential": the sum of the log predictive
        densities of the rows, each predicted before it was learned (Dawid 1984), over the rows
        that all models could predict. It is the same thing where priors are proper and fixed and
        nothing is forgotten, and a fair score where they are not; the order of the rows matters.
    prior_weights : (k,) array, optional
        Prior probabilities of the models, up to a factor. Default: all alike.
    sample_weight : (n,) array, optional
        With arrays only; weight 2 is the row twice. In the prequential score it multiplies the
        log density.
    offset, exposure, progress
        As in :func:`progressive_validation`.
    batch_rows : int
        Larger batches are cut into pieces of so many rows. Changes memory and speed, not results,
        but for the steps of pipelines that learn from their first batch.

    Returns
    -------
    Comparison
        Names, log scores, probabilities, and how far each is behind the best.

    Raises
    ------
    ValueError
        If there is no model or no row; if a log evidence is not defined (a model forgets); if the
        models' priors are improper in different ways, so that their evidences do not compare: a
        flat direction counts with density 1, and an improper noise prior has an open constant.
        What a model finds wrong in its rows passes through with a note that names it.
    TypeError
        If a model lacks a method that the score needs.

    Notes
    -----
    Even with equal numbers of flat coefficients, evidences compare only if these are the same
    coefficients in the same units; use the prequential score when in doubt.

    References
    ----------
    Kass and Raftery (1995), Bayes factors, J. Am. Stat. Assoc. 90, 773-795; Dawid (1984),
    Statistical theory: the prequential approach, J. R. Stat. Soc. A 147, 278-292.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, size=(30, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=30)
    >>> model = BayesianLinearRegression(prior_precision=0.001)
    >>> degrees = [
    ...     make_pipeline(PolynomialFeatures(degree, include_bias=False), model)
    ...     for degree in (1, 2, 6)
    ... ]
    >>> result = compare(degrees, X, y)
    >>> result.names
    ('Pipeline(degree=1)', 'Pipeline(degree=2)', 'Pipeline(degree=6)')
    >>> result.best
    'Pipeline(degree=2)'
    >>> result.strengths
    ('very strong', 'best', 'not worth more than a bare mention')
    """
    if score not in REQUIRED_METHODS:
        raise ValueError(f'score is {score!r}: it must be "evidence" or "prequential"')
    batch_rows = check_count("batch_rows", batch_rows, 1)
    names, given = name_models(models)
    prior = log_prior(prior_weights, len(names))
    for name, model in zip(names, given, strict=True):
        check_member(name, model, REQUIRED_METHODS[score])
        if score == "evidence" and forgets(model):
            _refuse_forgetting(name)
    learners = dict(zip(names, [copy_unfitted(model) for model in given], strict=True))
    added = RateOffsets(offset, exposure)
    batches = limit_batches(X, y, sample_weight, batch_rows, added, read_labels_or_numbers)
    seen_by = dict(zip(names, given, strict=True))
    judge = _by_evidence if score == "evidence" else _prequential
    log_scores, n_rows, n_unscored = judge(learners, seen_by, batches, progress)
    weights = compute_probabilities(prior, log_scores)
    return Comparison(names, score, log_scores, weights, np.exp(prior), n_rows, n_unscored)


EvaluatedDecisions = tuple[Array, int, int]


def _by_evidence(
    models: Mapping[str, Any],
    given: Mapping[str, Any],
    batches: Iterator[Batch],
    progress: Callable[[int], object] | None,
) -> EvaluatedDecisions:
    seen = 0
    for batch in batches:
        X, y = batch.X, batch.y
        for name, model in models.items():
            with note_refusals(f"model {name!r}, {locate_rows(seen, len(y))}"):
                rows = select_columns(name, given[name], X)
                rows = transform_for_last(model, rows, y, first=seen == 0)
                get_final_step(model).partial_fit(rows, y, **batch.keywords())
        if seen == 0:
            _check_comparable(models)
        seen += len(y)
        if progress is not None:
            progress(seen)
    refuse_nothing(seen)
    return np.array([float(get_final_step(m).log_evidence_) for m in models.values()]), seen, 0


def _prequential(
    models: Mapping[str, Any],
    given: Mapping[str, Any],
    batches: Iterator[Batch],
    progress: Callable[[int], object] | None,
) -> EvaluatedDecisions:
    seen, unscored = 0, 0
    total, carry = np.zeros(len(models)), np.zeros(len(models))
    for batch in batches:
        X, y, weight = batch.X, batch.y, batch.sample_weight
        densities = np.empty((len(models), len(y)))
        for k, (name, model) in enumerate(models.items()):
            with note_refusals(f"model {name!r}, {locate_rows(seen, len(y))}"):
                rows = select_columns(name, given[name], X)
                rows = transform_for_last(model, rows, y, first=seen == 0)
                predictive = get_final_step(model).predict_then_learn(rows, y, **batch.keywords())
            densities[k] = np.where(_flat(predictive), np.nan, predictive.logpdf(y))
        # Nor is a point mass a density: a perfect fit so far, or none.
        scored = np.isfinite(densities).all(axis=0)
        densities = densities[:, scored] if weight is None else (densities * weight)[:, scored]
        total, error = two_sum(total, densities.sum(axis=1))
        carry += error
        seen += len(y)
        unscored += len(y) - int(scored.sum())
        if progress is not None:
            progress(seen)
    refuse_nothing(seen)
    if unscored == seen:
        raise ValueError(
            f"none of the {seen} rows has a proper prediction of every model: give proper "
            "priors or more rows"
        )
    return total + carry, seen, unscored


def _check_comparable(models: Mapping[str, Any]) -> None:
    """Refuse evidences that leave out different things; asked once the models have begun."""
    kinds = {}
    for name, model in models.items():
        if not hasattr(get_final_step(model), "log_evidence_"):
            raise TypeError(
                f'model {name!r} has no log_evidence_: compare with score="prequential"'
            )
        if forgets(model):
            _refuse_forgetting(name)
        terms = get_evidence_terms(model)
        if terms is not None:
            kinds[name] = terms
    if len(set(kinds.values())) <= 1:
        return
    first, *others = kinds
    other = next(name for name in others if kinds[name] != kinds[first])
    raise ValueError(
        "these log evidences are not comparable, because the priors are improper in different "
        "ways: "
        f"{first!r} has {kinds[first]}; {other!r} has {kinds[other]}. Give both proper priors "
        "(prior_precision and noise_prior above 0) and the same intercept, or compare with "
        'score="prequential"'
    )


def _refuse_forgetting(name: str) -> None:
    raise ValueError(
        f"model {name!r} forgets, or weights models by their predictions, so it has no evidence of "
        'all rows; compare with score="prequential"'
    )


def _flat(predictive: Any) -> Mask:
    """Return True where a prediction is flat: in other libraries, where an interval is infinite."""
    if hasattr(predictive, "is_flat"):
        return predictive.is_flat()
    low, high = predictive.interval(0.5)
    return ~np.isfinite(high - low)
