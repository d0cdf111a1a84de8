"""State and parameters of an average of models, replaced in one step."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import Bunch, Tags
from sklearn.utils.metaestimators import _BaseComposition

from posterity.aliases import Array, DataFrame
from posterity.averaging import inputs
from posterity.averaging.effects import average_effects
from posterity.averaging.members import (
    EvidenceTerms,
    MemberPredictions,
    can_compare_evidence,
    check_member,
    check_same_columns,
    check_same_steps,
    compute_evidence_before,
    copy_unfitted,
    get_evidence_terms,
    get_final_step,
    rank_known_rows,
    transform_for_last,
)
from posterity.distributions import Mixture
from posterity.distributions._limits import interval_ends
from posterity.distributions.joint_distribution import require_pandas
from posterity.kernel.tables import TableLike
from posterity.kernel.values import read_size
from posterity.linear.inputs import check_same_features
from posterity.linear.named import explain_unlearned
from posterity.other_names import accept_other_names
from posterity.posteriors.ensemble import Ensemble
from posterity.transaction import AtomicModel

# Attributes that are learned, and replaced in one step.
LEARNED_ATTRIBUTES = ("models_", "_ensemble_or_none", "n_features_in_", "feature_names_in_")


class PredictsIntervals:
    """What wrappers of models say of one row, from its distribution."""

    def predict_interval_one(
        self: Any, x: ArrayLike | Mapping[str, float], level: float = 0.95
    ) -> tuple[float, float]:
        """Ends of the interval for a new observation at one row ``x``.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.averaging import Averaged
        >>> model = Averaged([BayesianLinearRegression(noise_precision=1.0)])
        >>> model = model.learn_one({"a": 1.0}, 2.0).learn_one({"a": 2.0}, 3.0)
        >>> low, high = model.predict_interval_one({"a": 1.0})
        >>> bool(low < 2.0 < high)
        True
        """
        low, high = interval_ends(self.predict_distribution_one(x), level)
        return float(low), float(high)


class AverageOfModels(PredictsIntervals, AtomicModel, RegressorMixin, _BaseComposition):
    """A scikit-learn estimator around the models that learn and their standing."""

    models: Sequence[Any]
    prior_weights: ArrayLike | None
    persistence: float

    models_: list[Any]
    n_features_in_: int
    # None before any row: a fresh model has only the class attribute.
    _ensemble_or_none: Ensemble | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- parameters ------------------------------------------------------------------------------

    @property
    def _named_models(self) -> list[tuple[str, Any]]:
        return inputs.name_models(self.models)

    @_named_models.setter
    def _named_models(self, pairs: list[tuple[str, Any]]) -> None:
        given = inputs.are_named(self.models)
        self.models = pairs if given else [model for _, model in pairs]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with ``deep`` also the models by name, and theirs as ``name__parameter``.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.averaging import Averaged
        >>> model = Averaged([("a", BayesianLinearRegression(prior_precision=2.0))])
        >>> model.get_params()["a__prior_precision"]
        2.0
        """
        return self._get_params("_named_models", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, whole models by name, or their parameters as ``name__parameter``.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.averaging import Averaged
        >>> model = Averaged([("a", BayesianLinearRegression())])
        >>> model.set_params(a__prior_precision=3.0).models[0][1].prior_precision
        3.0
        """
        if "models" in params:
            self.models = params.pop("models")
        return self._set_params("_named_models", **params)

    # ---- what was learned ------------------------------------------------------------------------

    @property
    def named_models_(self) -> Bunch:
        """The models that learn, by name."""
        names = [name for name, _ in self._named_models]
        return Bunch(**dict(zip(names, self.models_, strict=True)))

    @property
    def weights_(self) -> Array:
        """(k,) probabilities of the models, given all rows so far."""
        return self._ensemble.weights

    @property
    def log_evidence_(self) -> float:
        """Log density of all rows under the mixture; flat directions have density 1."""
        return self._ensemble.log_evidence

    @property
    def n_observations_(self) -> float:
        """Sum of the weights of the rows learned."""
        self._ensemble  # noqa: B018  (raises where nothing was learned)
        return float(get_final_step(self.models_[0]).n_observations_)

    @property
    def n_effective_(self) -> float:
        """Weight of the rows that is left after forgetting, on average over the models."""
        weights = self.weights_
        effective = [float(get_final_step(model).n_effective_) for model in self.models_]
        return float(weights @ np.array(effective))

    def summary(self) -> DataFrame:
        """Table of the models: a pandas data frame with a row for each, the most probable first.

        Returns
        -------
        pandas.DataFrame
            Labelled by the models' names, with the columns name, probability and log_score: the log
            evidence, or where weights come from predictions the log score of the rows so far.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.averaging import Averaged
        >>> settings = {"wide": 0.1, "narrow": 10.0}
        >>> models = [(k, BayesianLinearRegression(prior_precision=a)) for k, a in settings.items()]
        >>> table = Averaged(models).fit([[0.0], [1.0], [2.0]], [0.0, 5.0, 10.1]).summary()
        >>> table["probability"].round(2).to_dict()
        {'wide': 0.81, 'narrow': 0.19}
        """
        names = [name for name, _ in self._named_models]
        scores = self._ensemble.scores
        columns = {"name": names, "probability": self.weights_, "log_score": scores}
        table = require_pandas().DataFrame(columns, index=names)
        return table.sort_values("probability", ascending=False, kind="stable")

    @accept_other_names
    def average_effects(
        self,
        X: TableLike,
        *,
        per: Literal["unit", "sd"] = "unit",
        level: float = 0.95,
        size: int = 1000,
        rng: int | np.random.Generator | None = 0,
    ) -> DataFrame:
        """Mean change of the expected target when one feature changes and the others stay the same.

        Over all models, each as probable as it is. Parameters and table as those of
        :meth:`posterity.BayesianLinearRegression.average_effects`.

        Raises
        ------
        ValueError
            If a column of ``X`` is no number.
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from posterity import BayesianLinearRegression
        >>> from posterity.averaging import Averaged
        >>> models = [BayesianLinearRegression(prior_precision=a) for a in (0.1, 10.0)]
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.1, 1.9, 3.0]
        >>> effects = Averaged(models).fit(X, y).average_effects(X)
        >>> bool(0.8 < effects.loc["x0", "mean"] < 1.0)
        True
        """
        self._ensemble  # noqa: B018  (raises where nothing was learned)
        return average_effects(self, X, per=per, level=level, size=read_size(size), rng=rng)

    # ---- inner -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return self._ensemble_or_none is not None

    @property
    def _ensemble(self) -> Ensemble:
        if self._ensemble_or_none is None:
            raise explain_unlearned(self)
        return self._ensemble_or_none

    def _replace(self, models: list[Any], ensemble: Ensemble) -> Self:
        self.__dict__.update(models_=models, _ensemble_or_none=ensemble)
        return self

    def _clone_models(self) -> tuple[list[Any], Ensemble]:
        """Clones of the models, and their standing before any row."""
        pairs = self._named_models
        self._validate_names([name for name, _ in pairs])
        for name, model in pairs:
            check_member(name, model)
        log_prior = inputs.log_prior(self.prior_weights, len(pairs))
        persistence = inputs.check_persistence(self.persistence)
        models = [copy_unfitted(model) for _, model in pairs]
        return models, Ensemble.of(log_prior, persistence)

    def _learn(
        self,
        X: TableLike,
        y: TableLike,
        sample_weight: ArrayLike | None,
        times: ArrayLike | None,
        return_predictions: bool = False,
    ) -> Any:
        rows = inputs.read(self, X, y, sample_weight, reset=self._ensemble_or_none is None)
        return self._learn_rows(rows, times, return_predictions)

    def _learn_rows(
        self, rows: inputs.Rows, times: ArrayLike | None, return_predictions: bool = False
    ) -> Mixture | None:
        """Learn in copies, which then take over; returns the predictions, if asked for."""
        first = self._ensemble_or_none is None
        models, ensemble = (
            self._clone_models() if first else (copy.deepcopy(self.models_), self._ensemble)
        )
        if first:
            for name, model in self._named_models:
                check_same_columns(name, model, self)
        given = [transform_for_last(m, rows.of(m), rows.y, first=first) for m in models]
        finals = [get_final_step(model) for model in models]
        if first and ensemble.persistence == 1.0 and can_compare_evidence(finals, given, rows.y):
            ensemble = replace(ensemble, by_evidence=True)
        how: dict[str, Any] = {"sample_weight": rows.weights}
        if times is not None and not ensemble.by_evidence:  # otherwise nothing is forgotten
            how["times"] = times
        if ensemble.by_evidence and not return_predictions:
            for final, X in zip(finals, given, strict=True):
                final.partial_fit(X, rows.y, **how)
            self._replace(models, ensemble.given(collect_log_evidences(models)))
            return None
        models_before = (
            copy.deepcopy(finals) if first else [get_final_step(m) for m in self.models_]
        )
        predictions = [
            MemberPredictions.of(final.predict_then_learn(X, rows.y, **how), rows.y)
            for final, X in zip(finals, given, strict=True)
        ]
        if ensemble.by_evidence:
            weights = _compute_evidence_weights(ensemble, models_before, given, rows, predictions)
            ensemble = ensemble.given(collect_log_evidences(models))
        else:
            densities = np.stack([prediction.densities for prediction in predictions], axis=1)
            ranks = np.stack([prediction.ranks for prediction in predictions], axis=1)
            weights, _, ensemble = ensemble.update(densities, ranks, rows.weights)
        self._replace(models, ensemble)
        return Mixture.of([prediction.distribution for prediction in predictions], weights)

    def _read_points(self, X: TableLike) -> inputs.Rows:
        """Rows to predict at; that nothing was learned comes first."""
        self._ensemble  # noqa: B018
        return inputs.read_points(self, X)

    def _predict_with(self, points: inputs.Rows, method: str = "predict_distribution") -> Mixture:
        ensemble = self._ensemble
        predictions = [
            getattr(get_final_step(model), method)(transform_for_last(model, points.of(model)))
            for model in self.models_
        ]
        ranks = np.stack([rank_known_rows(distribution) for distribution in predictions], axis=1)
        return Mixture.of(
            predictions, ensemble.weights_at(ranks) if not ranks.all() else ensemble.weights
        )

    def _predict_mean(self, points: inputs.Rows) -> Array:
        """The mean alone, which asks for no variance, where no prediction is flat."""
        means = [
            get_final_step(m).predict(transform_for_last(m, points.of(m))) for m in self.models_
        ]
        return np.tensordot(self.weights_, np.stack(means), axes=1)

    def _compute_ensemble(self, what: str) -> Ensemble:
        """The standing, where it does not rest on the order of the rows."""
        if not self._ensemble.by_evidence:
            raise ValueError(
                f"can't {what}: these weights depend on how well each model predicted the rows "
                "in their order (a model forgets, persistence is below 1, or priors are flat in "
                "different "
                "directions); fit the rows you want again"
            )
        return self._ensemble

    def _check_mergeable(self, other: AverageOfModels) -> Ensemble:
        """The standing; ``ValueError`` where the two can't be merged."""
        ensemble, theirs = (one._compute_ensemble("merge models") for one in (self, other))
        check_same_features(self, other)
        if not np.allclose(np.exp(ensemble.log_prior), np.exp(theirs.log_prior)):
            raise ValueError(
                "the models differ in prior_weights: only averages with the same prior weights "
                "can be merged"
            )
        if len(self.models_) != len(other.models_):
            raise ValueError(
                f"the other average has {len(other.models_)} models, this one "
                f"{len(self.models_)}: merge averages of the same models in the same order"
            )
        for (name, _), model, its in zip(
            self._named_models, self.models_, other.models_, strict=True
        ):
            check_same_steps(name, model, its)
        return ensemble

    @property
    def _evidence_terms(self) -> EvidenceTerms | None:
        return get_evidence_terms(self.models_[0]) if self._ensemble.by_evidence else None

    @property
    def _prequential(self) -> bool:
        """True if the log evidence is the sum of log predictive densities."""
        return self._ensemble_or_none is not None and not self._ensemble_or_none.by_evidence


def collect_log_evidences(models: Sequence[Any]) -> Array:
    """Log evidences (k,)."""
    return np.array([float(get_final_step(model).log_evidence_) for model in models])


def _compute_evidence_weights(
    ensemble: Ensemble,
    models_before: Sequence[Any],
    given: Sequence[Any],
    rows: inputs.Rows,
    predictions: Sequence[MemberPredictions],
) -> Array:
    """Weights (n, k) before each of the rows, of models that have learned them in the meantime."""
    evidence = np.stack(
        [
            compute_evidence_before(model, float(start), (X, rows.y, rows.weights), prediction)
            for model, start, X, prediction in zip(
                models_before, ensemble.scores, given, predictions, strict=True
            )
        ],
        axis=1,
    )
    return ensemble.weights_at(
        np.stack([prediction.ranks for prediction in predictions], axis=1), evidence
    )
