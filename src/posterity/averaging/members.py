"""Models as members of a whole: learned in copies, through pipelines, and weighed by evidence."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline

from posterity.aliases import Array, Estimator
from posterity.kernel.tables import find_table, take_rows
from posterity.linear.named import get_feature_names
from posterity.posteriors.ensemble import Ranks

# Rows that a basis is tested on.
TRIAL_ROWS = 100
REQUIRED_METHODS = ("partial_fit", "predict_then_learn", "predict_distribution")


def get_final_step(model: BaseEstimator) -> Estimator:
    """The model itself, or the last step of a pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def copy_unfitted(model: BaseEstimator) -> Estimator:
    """The same model, having learned nothing; what scikit-learn can't clone is copied as it is."""
    return clone(model) if hasattr(model, "get_params") else copy.deepcopy(model)


def check_member(name: str, model: BaseEstimator, needed: Sequence[str] = REQUIRED_METHODS) -> None:
    """Raise ``TypeError`` unless the model, or a pipeline's last step, has the methods needed."""
    final = get_final_step(model)
    what = f"model {name!r}" + ("" if final is model else ", a pipeline whose last step")
    if isinstance(final, type):
        raise TypeError(
            f"{what} is the class {final.__name__}: give an instance, {final.__name__}()"
        )
    missing = [method for method in needed if not hasattr(final, method)]
    if missing:
        raise TypeError(
            f"{what} is a {type(final).__name__}, which has no {' and no '.join(missing)}: give an "
            "estimator of posterity, or a pipeline that ends in one"
        )


def select_columns(name: str, model: BaseEstimator, X: Any) -> Any:
    """Return the columns of ``X`` that ``model`` was fitted on, if it was, in its order.

    Raises ``ValueError`` where they are not there, or can't be named.
    """
    names, width = get_feature_names(model), getattr(model, "n_features_in_", None)
    table = find_table(X)
    if names is None or table is None:
        if width is not None and np.ndim(X) == 2 and np.shape(X)[1] != width:
            raise ValueError(
                f"model {name!r} was fitted on {_count_features(width)}, and these rows have "
                f"{np.shape(X)[1]}: give a data frame with the names of its columns, or a model "
                "that was not fitted (sklearn.base.clone)"
            )
        return X
    theirs = set(table.names)
    missing = [each for each in names if each not in theirs]
    if missing:
        raise ValueError(
            f"model {name!r} was fitted with the column {missing[0]!r}, which these rows do not "
            "have: give all of its columns, or a model that was not fitted (sklearn.base.clone)"
        )
    return X if list(names) == table.names else table.select(names)


def check_same_columns(name: str, model: BaseEstimator, average: BaseEstimator) -> None:
    """Raise ``ValueError`` where ``model`` was fitted on other features than the average gets."""
    its, ours = (get_feature_names(one) for one in (model, average))
    width = getattr(model, "n_features_in_", average.n_features_in_)
    named_otherwise = its is not None and ours is not None and set(its) != set(ours)
    if width != average.n_features_in_ or named_otherwise:
        what = _count_features(width) if its is None else f"the columns {', '.join(map(str, its))}"
        raise ValueError(
            f"model {name!r} was fitted on {what}, which differ from those of these rows, and "
            "an average gives all its models the same features: select them in a pipeline, or "
            "give a model "
            "that was not fitted (sklearn.base.clone)"
        )


def _count_features(n_features: int) -> str:
    return f"{n_features} feature{'s' * (n_features != 1)}"


def transform_for_last(
    model: BaseEstimator, X: Any, y: Array | None = None, *, first: bool = False
) -> Any:
    """``X`` as the last step of a pipeline gets it; the other steps are fitted on the first batch.

    What is not a pipeline gets ``X`` as it is.
    """
    if not isinstance(model, Pipeline) or len(model.steps) == 1:
        return X
    steps = model[:-1]
    if not first:
        return steps.transform(X)
    X = steps.fit_transform(X, y)
    # With a cache, scikit-learn fits copies of the steps.
    model.steps = [*steps.steps, model.steps[-1]]
    return X


def check_same_steps(name: str, model: BaseEstimator, other: BaseEstimator) -> None:
    """Raise ``ValueError`` unless both are pipelines that transform alike, or neither is one."""
    if isinstance(model, Pipeline) != isinstance(other, Pipeline):
        raise ValueError(
            f"model {name!r} is a pipeline in only one of the averages: merge averages of the "
            "same models"
        )
    if not isinstance(model, Pipeline):
        return
    import joblib  # type: ignore[import-untyped]  # comes with scikit-learn

    if joblib.hash(model.steps[:-1]) != joblib.hash(other.steps[:-1]):
        raise ValueError(
            f"the steps before the last of model {name!r} differ, or were fitted on other rows: "
            "merge models whose features are computed in the same way, by steps that learn nothing"
        )


# ---- evidence ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EvidenceTerms:
    """Improper parts of a model's prior: evidences compare only where all of this is the same.

    A flat direction has density 1 in its own units, and an improper noise prior an open constant;
    both cancel between models that share them, and between no others.
    """

    n_flat: int
    intercept: bool
    improper_noise: tuple[float, float] | None

    def __str__(self) -> str:
        count = self.n_flat - self.intercept
        words = [f"{count} flat coefficient{'s' * (count != 1)}"]
        words.append("a flat intercept" if self.intercept else "no intercept")
        if self.improper_noise is None:
            words.append("a proper noise prior or known noise")
        else:
            shape, rate = self.improper_noise
            words.append(f"the improper noise_prior ({shape:g}, {rate:g})")
        return ", ".join(words)


def forgets(model: BaseEstimator) -> bool:
    """Return True if some rows have faded, so that ``log_evidence_`` is not that of all rows."""
    final = get_final_step(model)
    return getattr(final, "forgetting", None) is not None or getattr(final, "_prequential", False)


def get_evidence_terms(model: BaseEstimator) -> EvidenceTerms | None:
    """Return the improper terms of a fitted model's prior; None where they are unknown."""
    final = get_final_step(model)
    if hasattr(final, "_evidence_terms"):
        return final._evidence_terms
    posterior = getattr(final, "_posterior_or_none", None)
    if posterior is None or (improper := posterior.improper) is None:
        return None
    return EvidenceTerms(improper[0], bool(posterior.intercept), improper[1])


def may_be_flat(model: BaseEstimator) -> bool:
    """Return True if a prediction may still be flat; False only if none is.

    A flat intercept takes one observation, and noise without a proper prior one more.
    """
    terms = get_evidence_terms(model)
    if terms is None or terms.n_flat > terms.intercept:
        return True
    return bool(get_final_step(model).n_effective_ <= terms.n_flat)


def can_compare_evidence(finals: Sequence[Any], rows: Sequence[Any], y: Array) -> bool:
    """Return True if the log evidences, once ``rows`` are learned, will compare; tried on few."""
    if any(forgets(final) for final in finals):
        return False
    tried = []
    for final, X in zip(finals, rows, strict=True):
        # One row, but more for a basis, whose domain needs them.
        plain = getattr(final, "basis", None) is None
        some = slice(1) if plain else slice(None, None, max(len(y) // TRIAL_ROWS, 1))
        tried.append(copy_unfitted(final).partial_fit(take_rows(X, some), y[some]))
    if any(forgets(final) for final in tried):
        return False
    terms = {get_evidence_terms(final) for final in tried}
    return len(terms) == 1 and all(hasattr(final, "log_evidence_") for final in tried)


@dataclass(frozen=True)
class MemberPredictions:
    """One model's predictions of rows, each before it was learned."""

    distribution: Any
    densities: Array
    ranks: Ranks

    @classmethod
    def of(cls, distribution: Any, y: Array) -> MemberPredictions:
        """Densities (n,) at ``y``, and where the prediction was not flat."""
        return cls(distribution, distribution.logpdf(y), rank_known_rows(distribution))


def rank_known_rows(distribution: Any) -> Ranks:
    """Return the ranks (n,) of predictions in an ensemble: 0 where they are flat, else 1."""
    return (~distribution.is_flat()).astype(np.uint8)


def compute_evidence_before(
    model_before: Any,
    start: float,
    rows: tuple[Any, Array, Array | None],
    prediction: MemberPredictions,
) -> Array:
    """Log evidence (n,) before each row, of a model that has predicted these rows and learned them.

    ``model_before`` is the same model without the rows, of log evidence ``start``.
    Between rows the evidence grows by the log predictive density. Where that is not so (flat
    rows, rows of a weight, point masses) it is read from the model instead.
    """
    X, y, weights = rows
    steps = prediction.densities.copy()
    special = (prediction.ranks == 0) | ~np.isfinite(steps)
    if weights is not None:
        special |= (weights != 0.0) & (weights != 1.0)
        steps[weights == 0.0] = 0.0
        special &= weights != 0.0
    steps[special] = 0.0
    evidence = np.empty(len(y))
    first = 0
    learner = copy.deepcopy(model_before) if special.any() else model_before
    for row in np.flatnonzero(special).tolist():
        part = slice(first, row + 1)
        evidence[part] = start + np.cumsum(steps[part]) - steps[part]
        learner.partial_fit(take_rows(X, part), y[part], None if weights is None else weights[part])
        start, first = float(learner.log_evidence_), row + 1
    evidence[first:] = start + np.cumsum(steps[first:]) - steps[first:]
    return evidence
