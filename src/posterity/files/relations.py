"""Relations between the parts of what is not a dense posterior: many features, bandits, series."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity.aliases import Estimator
from posterity.files.registry import HOMES, name_of

# Of the size of one row's error to the noise.
LARGEST_LOG_RATIO = 300.0

# Where the classes are that a part of an estimator may be an object of; any estimator is a model.
PARAMETERS = {
    "_state": "posterity.calibration",
    "forgetting": "posterity.forgetting",
    "basis": "posterity.basis",
    "basis_": "posterity.basis",
    "policy": "posterity.bandits",
}

# What the posterior of an estimator has that others lack.
PARTS = {
    "BayesianNegativeBinomialRegression": "linear_predictor",
    "BayesianRobustRegression": "core_predictive",
}

# ---- many features -------------------------------------------------------------------------------


def _check_sparse_rows(rows: Any) -> bool:
    starts = rows.starts
    return (
        len(starts) > 0
        and starts[0] == 0
        and starts[-1] == len(rows.features)
        and bool((np.diff(starts) >= 0).all())
    )


def _check_sparse(posterior: Any) -> bool:
    size, columns = len(posterior.owners), len(posterior.squares)
    rows, n_targets = posterior.rows, len(posterior.targets)
    of_products = posterior.likelihood.is_noise
    return (
        size >= 1
        and bool((posterior.owners < columns).all())
        and know_features(posterior)
        and len(rows) == n_targets
        and (n_targets <= size if of_products else len(posterior.row_weights) == n_targets)
        and bool((posterior.found[1:] > 0.0).all())
        and (of_products or _are_targets(posterior.likelihood, posterior.targets))
        and _are_terms(posterior.terms or (), np.bincount(posterior.owners, minlength=columns))
    )


def _are_terms(terms: Any, sizes: Any) -> bool:
    """Whether terms name columns, each once, that have as many features as the others of theirs."""
    named = [column for columns in terms for column in columns]
    return len(set(named)) == len(named) and all(
        columns
        and all(1 < column < len(sizes) for column in columns)
        and len({int(sizes[column]) for column in columns}) == 1
        for columns in terms
    )


def _are_targets(likelihood: Any, targets: Any) -> bool:
    try:
        likelihood.check_targets(targets)
    except ValueError:
        return False
    return True


def know_features(posterior: Any) -> bool:
    """Return True if no part names a feature that the posterior does not have."""
    parts = vars(posterior).values()
    named = [getattr(part, name, None) for part in parts for name in ("features", "products")]
    return all((one < len(posterior.owners)).all() for one in named if one is not None)


def _check_feature_levels(levels: Any) -> bool:
    features = levels.features
    return len(features) == len(levels.index.labels) and bool((features >= 1).all())


def _check_feature_index(index: Any) -> bool:
    given, hashed = index.given or 0, index.hashed or 0
    levels = [one.features.tolist() for one in (*index.levels.values(), index.pairs)]
    features = sorted(chain(index.numbers.values(), *levels))
    columns = range(1, index.n_columns)
    in_range = bool(hashed) and all(0 < one <= hashed for one in features)
    return (
        (in_range or features == list(range(1 + given, index.size)))
        and index.size == 1 + (hashed or given + len(features))
        and all(column in columns for column in (*index.levels, *index.numbers))
        and len(index._places) == len(index.columns)
        and all(_is_earlier(name, place) for place, name in enumerate(index.columns, 2))
        and _are_pairs_of(index.pairs, index.size)
    )


def _is_earlier(name: Any, place: int) -> bool:
    """Return True if a column is named, or is a pair of columns before it."""
    return isinstance(name, str) or (len(name) == 2 and all(0 <= one < place for one in name))


def _are_pairs_of(pairs: Any, size: int) -> bool:
    """Return True if the labels are codes of two features each."""
    if not len(pairs.features):
        return True
    codes = np.asarray(pairs.index.labels)
    ends = codes >> 32, codes & (2**32 - 1)
    return codes.dtype == np.int64 and all(bool(((e > 0) & (e < size)).all()) for e in ends)


def _check_model_of_many_features(model: Estimator) -> bool:
    posterior, index = model._posterior_or_none, getattr(model, "_index", None)
    if posterior is None or index is None:
        return posterior is None and index is None
    numbers = {*index.list_numbers(), *range(1, 1 + (index.given or 0))}
    return (
        # Arrays of a stream have room for features to come.
        index.size <= len(posterior.owners)
        and index.n_columns == len(posterior.squares)
        and numbers.issuperset(posterior.centres.features.tolist())
        and len(getattr(model, "classes_", (0,))) in (1, 2)
    )


# ---- bandits -------------------------------------------------------------------------------------


def _check_roster(roster: Any) -> bool:
    names = roster.names
    return 0 < len(names) == len(set(names)) and set(roster.retired) < set(names)


def _check_bandit(bandit: Any) -> bool:
    arms, roster = getattr(bandit, "_arms", None), getattr(bandit, "_roster", None)
    if arms is None or roster is None:
        return arms is None and roster is None
    # A model or features of each arm, or one model of all, which knows how many there are.
    each = getattr(arms, "models", getattr(arms, "features", None))
    return len(roster) == (arms.count if each is None else len(each)) and bandit._decided >= 0


def _check_shared_arms(arms: Any) -> bool:
    return isinstance(arms.model, BaseEstimator)


def _check_delayed(delayed: Any) -> bool:
    held = getattr(delayed, "held_", {})
    return all(name == name and name_of(type(one)) == "HeldDecision" for name, one in held.items())


def _check_separate_arms(arms: Any) -> bool:
    return all(isinstance(one, BaseEstimator) for one in (arms.prototype, *arms.models))


# ---- estimators ----------------------------------------------------------------------------------


def _check_linear_model(model: Estimator) -> bool:
    posterior, names = model._posterior_or_none, getattr(model, "feature_names_in_", None)
    if posterior is None:
        return True
    classes = getattr(model, "classes_", None)
    return (
        (model.basis is None) == (model._fitted_basis is None)
        and _check_levels(model)
        and (model.basis is None or model.basis_.n_features_in_ == _count_numbers(model))
        and (names is None or len(names) == model.n_features_in_)
        and posterior.n_coefficients == model._n_columns + int(posterior.intercept)
        and model.fit_intercept in (True, False)
        and _has_part(posterior, PARTS.get(name_of(type(model)) or "", "copy"))
        and (classes is None or _have_classes(posterior, classes))
    )


def _check_grouped_model(model: Estimator) -> bool:
    posterior = model._posterior_or_none
    if posterior is None or model._categories is None:
        return True
    width = posterior.bank.n_coefficients - int(posterior.intercept)
    return _check_levels(model) and bool(model._n_columns == width)


def _check_levels(model: Estimator) -> bool:
    known = model._categories
    if known is None:
        return True
    if name_of(type(known)) != "Categories":
        return False
    places = [one.place for one in known.each]
    return (
        known.n_features == model.n_features_in_
        and places == sorted(set(places))
        and all(0 <= place < known.n_features for place in places)
        and all(len(set(one.levels)) == len(one.levels) > 0 for one in known.each)
    )


def _count_numbers(model: Estimator) -> int:
    """How many features are no categories."""
    known = model._categories
    return int(model.n_features_in_ if known is None else len(known.numbers))


def _has_part(posterior: Any, part: str) -> bool:
    """Return True if a posterior, or each of an ensemble, has an attribute."""
    return all(hasattr(member, part) for member in _list_members(posterior))


def _list_members(posterior: Any) -> Sequence[Any]:
    """The posteriors of an ensemble, or one by itself."""
    return posterior.ahead()[0] if hasattr(posterior, "ahead") else [posterior]


def _have_classes(posterior: Any, classes: Any) -> bool:
    n, members = len(classes), _list_members(posterior)
    return len(set(classes.tolist())) == n and all(
        n == getattr(one, "n_classes", n)
        and (n <= 2 or name_of(type(one)) != "GeneralizedPosterior")
        for one in members
    )


def _check_basis(basis: Any) -> bool:
    domain = getattr(basis, "domain_", None)
    return domain is None or len(domain) == basis.n_features_in_


def check_parameters(name: str, values: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` where a parameter that may be an object is one of another kind."""
    for key in ("model", "model_", "models_", "bandit"):
        value = values.get(key)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, BaseEstimator | None):
                raise TypeError(f"{name}.{key} is a {type(one).__name__}, and no model")
    for key, module in PARAMETERS.items():
        value = values.get(key)
        for one in value.values() if isinstance(value, dict) else [value]:  # by column
            if one is not None and not isinstance(one, str):
                home = HOMES.get(name_of(type(one)) or "", "")
                if not home.startswith(module):
                    raise TypeError(f"{name}.{key} is a {type(one).__name__}, and none of {module}")


def _check_forecaster(model: Estimator) -> bool:
    return model.forms is None or all(name_of(type(one)) == "Form" for one in model.forms)


def _check_averaged(model: Estimator) -> bool:
    ensemble, members = model.__dict__.get("_ensemble_or_none"), getattr(model, "models_", [])
    return ensemble is None or len(ensemble.scores) == len(members) == len(model.models)


def _check_noise_tally(tally: Any) -> bool:
    return bool(abs(tally.beyond_core) <= LARGEST_LOG_RATIO * max(tally.count, 1.0))


# ---- calibration and averages --------------------------------------------------------------------


def _check_adapted_tails(tails: Any) -> bool:
    n, place = tails.count
    return 0 < n <= len(tails.ordered) and place >= 0


def _check_probability_map(state: Any) -> bool:
    return len(state.counts) == len(type(state).start(2.0, 1.0).counts)


def _check_ensemble(ensemble: Any) -> bool:
    return len(ensemble.scores) > 0 and all(
        bool((logs < np.inf).all() and np.isfinite(logs).any())
        for logs in (ensemble.scores, ensemble.log_prior)
    )


RELATIONS: dict[str, Callable[[Any], bool]] = {
    "SparseRows": _check_sparse_rows,
    "SparsePosterior": _check_sparse,
    "FeatureLevels": _check_feature_levels,
    "FeatureIndex": _check_feature_index,
    **dict.fromkeys(
        (
            *(
                f"{kind}{family}Regression"
                for kind in ("Diagonal", "Sparse")
                for family in ("Linear", "Logistic", "Poisson")
            ),
            "TermRows",
            "LabelTerms",
        ),
        _check_model_of_many_features,
    ),
    **dict.fromkeys(
        (
            "BayesianGeneralizedLinear",
            "BayesianLinearRegression",
            "BayesianLogisticRegression",
            "BayesianNegativeBinomialRegression",
            "BayesianPoissonRegression",
            "BayesianQuantileRegression",
            "BayesianRobustRegression",
        ),
        _check_linear_model,
    ),
    "GroupedRegression": _check_grouped_model,
    **dict.fromkeys(
        (name for name, home in HOMES.items() if home == "posterity.basis"), _check_basis
    ),
    "Forecaster": _check_forecaster,
    "Writing": attrgetter("is_known"),
    "Design": attrgetter("is_possible"),
    "Averaged": _check_averaged,
    "NoiseSums": _check_noise_tally,
    "TailSums": _check_noise_tally,
    "Roster": _check_roster,
    "Bandit": _check_bandit,
    "SeparateArms": _check_separate_arms,
    "SharedArms": _check_shared_arms,
    "DelayedRewards": _check_delayed,
    "AdaptedTails": _check_adapted_tails,
    "ProbabilityMap": _check_probability_map,
    "Ensemble": _check_ensemble,
}
