"""The classes that a model file may name: these, and no others.

A file says "LearnedNoise"; what that is stands here, never in the file. To have objects of one
more class saved, give it a line in ``HOMES``: a dataclass or named tuple is saved field by field,
an estimator or any other object attribute by attribute. Names in files are for ever: a class that
moves keeps its name here. What is only a cache goes into ``CACHES``; what can't be checked by the
types of the fields alone goes into :mod:`posterity.files.checks`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

import numpy as np

from posterity.linear.state import SHARED
from posterity.posteriors._centres import Centres

# Name in files -> module; the class has the same name there, or that of ``CLASS_NAMES``.
HOMES = {
    # estimators
    "BayesianGeneralizedLinear": "posterity.generalized.generalized_linear",
    "BayesianLinearRegression": "posterity.linear",
    "BayesianLogisticRegression": "posterity.generalized.logistic",
    "BayesianNegativeBinomialRegression": "posterity.generalized.negative_binomial",
    "BayesianPoissonRegression": "posterity.generalized.poisson",
    "BayesianQuantileRegression": "posterity.generalized.quantile",
    "RobustBayesianRegression": "posterity.generalized.robust",
    "VaryingFeatures": "posterity.generalized.varying_features",
    "Averaged": "posterity.averaging",
    "GroupedRegression": "posterity.grouped",
    "BayesianFactorizationClassifier": "posterity.factorization.classifier",
    "BayesianFactorizationMachine": "posterity.factorization.machine",
    "Forecaster": "posterity.forecasting.forecaster",
    "VectorAutoregression": "posterity.forecasting.vector",
    "Conformal": "posterity.calibration.conformal",
    "ConformalForecaster": "posterity.calibration.forecasts",
    "DiagonalLinearRegression": "posterity.sparse.linear",
    "DiagonalLogisticRegression": "posterity.sparse.logistic",
    "DiagonalPoissonRegression": "posterity.sparse.poisson",
    "SparseLinearRegression": "posterity.sparse.exact",
    "SparseLogisticRegression": "posterity.sparse.exact",
    "SparsePoissonRegression": "posterity.sparse.exact",
    "Recalibrated": "posterity.calibration.recalibrated",
    # bases
    "AutoBasis": "posterity.basis",
    "ByColumn": "posterity.basis",
    "Fourier": "posterity.basis",
    "HilbertSpaceGP": "posterity.basis",
    "Polynomial": "posterity.basis",
    "RadialBasis": "posterity.basis",
    "RandomFourier": "posterity.basis",
    "Spline": "posterity.basis",
    # strategies
    "Adaptive": "posterity.forgetting",
    "Changepoint": "posterity.forgetting",
    "Directional": "posterity.forgetting",
    "Exponential": "posterity.forgetting",
    "RandomWalk": "posterity.forgetting",
    "Smoothing": "posterity.forgetting",
    "Stabilized": "posterity.forgetting",
    "Window": "posterity.forgetting",
    "Bounded": "posterity.evidence",
    "Integrated": "posterity.evidence",
    "LocalScales": "posterity.evidence",
    "Maximized": "posterity.evidence",
    "OddsScale": "posterity.evidence",
    "Relevance": "posterity.evidence",
    "Together": "posterity.evidence",
    "InUnits": "posterity.evidence.members",
    "Weak": "posterity.evidence.members",
    # beliefs
    "GaussianPrior": "posterity.priors",
    "KnownNoise": "posterity.noise",
    "LearnedNoise": "posterity.noise",
    "UnitNoise": "posterity.noise",
    "Normal": "posterity.distributions",
    # likelihoods
    "Bernoulli": "posterity.likelihoods",
    "CountsOrRates": "posterity.generalized.poisson",
    "DispersedCounts": "posterity.generalized.negative_binomial",
    "Gaussian": "posterity.likelihoods",
    "LaplaceNoise": "posterity.likelihoods",
    "LogPrecision": "posterity.likelihoods",
    "NegativeBinomial": "posterity.likelihoods",
    "Poisson": "posterity.likelihoods",
    "Quantile": "posterity.likelihoods",
    "StudentT": "posterity.likelihoods",
    # posteriors and their state
    "LinearPosterior": "posterity.posteriors",
    "FadingPosterior": "posterity.posteriors",
    "WindowPosterior": "posterity.posteriors",
    "RefittedPosterior": "posterity.posteriors.refitted",
    "WindowRows": "posterity.posteriors.refitted",
    "WindowState": "posterity.posteriors.refitted",
    "KeptRows": "posterity.posteriors.window",
    "AveragedPosterior": "posterity.posteriors",
    "AveragedStanding": "posterity.posteriors.averaged",
    "AdaptivePosterior": "posterity.posteriors",
    "NoiseMemories": "posterity.posteriors._noise_memories",
    "HeteroscedasticPosterior": "posterity.posteriors",
    "NoiseAccount": "posterity.posteriors._noise_statistics",
    "ReachingScales": "posterity.evidence.bounded",
    "ChangepointPosterior": "posterity.posteriors",
    "ChangepointLearned": "posterity.posteriors.changepoint",
    "Regimes": "posterity.posteriors.regimes",
    "RegimesPosterior": "posterity.posteriors.regimes",
    "Runs": "posterity.posteriors._runs",
    "Change": "posterity.posteriors._runs",
    "Start": "posterity.posteriors._runs",
    "EvidencePosterior": "posterity.posteriors",
    "Categories": "posterity.linear.categories",
    "Category": "posterity.linear.categories",
    "EvidenceKnown": "posterity.posteriors._evidence_state",
    "Nodes": "posterity.posteriors._nodes",
    "Choice": "posterity.evidence",
    "RunningScales": "posterity.evidence",
    "TargetsPosterior": "posterity.posteriors",
    "TargetViews": "posterity.posteriors.targets",
    "MissingTargetsPosterior": "posterity.posteriors",
    "TargetsChain": "posterity.posteriors._target_chain",
    "GeneralizedPosterior": "posterity.posteriors",
    "GeneralizedAverage": "posterity.posteriors",
    "DispersedPosterior": "posterity.posteriors.dispersed",
    "Dispersion": "posterity.posteriors._dispersion",
    "Account": "posterity.posteriors.generalized",
    "StartRows": "posterity.posteriors._site_start",
    "ContrastsPosterior": "posterity.posteriors.softmax",
    "Targets": "posterity.posteriors.regimes",
    "ContrastPrior": "posterity.posteriors._softmax_prior",
    "RecentRows": "posterity.posteriors._softmax_recent",
    "Contrasts": "posterity.posteriors._softmax_contrasts",
    "HeavyTailedPosterior": "posterity.generalized._heavy_tails",
    "HeavyTailsKnown": "posterity.generalized._heavy_tails_state",
    "WorkingQuantilePosterior": "posterity.generalized._quantile_posterior",
    "SeveralQuantilesPosterior": "posterity.generalized._quantiles_posterior",
    "ReweightedBegun": "posterity.generalized._start",
    "ReweightedKept": "posterity.generalized._start",
    "NoiseTally": "posterity.generalized._noise_tally",
    "StudentTNoise": "posterity.generalized._student_t_noise",
    "AsymmetricLaplaceNoise": "posterity.generalized._asymmetric_laplace_noise",
    "DoubleExponentialNoise": "posterity.generalized._laplace_noise",
    "NoiseSpread": "posterity.generalized._working_noise",
    "ModelStanding": "posterity.posteriors.ensemble",
    "GroupedPosterior": "posterity.posteriors.grouped",
    "GroupBelief": "posterity.posteriors._group_belief",
    "GroupSample": "posterity.evidence.shared",
    "SharedPrior": "posterity.evidence.shared",
    "KeyIndex": "posterity.grouped.index",
    "DiagonalPosterior": "posterity.posteriors.diagonal",
    "SparsePosterior": "posterity.posteriors.sparse",
    "SparseRows": "posterity.posteriors._sparse_rows",
    "Centres": "posterity.posteriors._centres",
    "FeatureIndex": "posterity.sparse.index",
    "FeatureLevels": "posterity.sparse.index",
    "FactorizationPosterior": "posterity.factorization.posterior",
    "ForecastForm": "posterity.forecasting.forms",
    "SeriesPanel": "posterity.forecasting.panel",
    "SeriesCalendar": "posterity.forecasting.calendar",
    "SeriesWriting": "posterity.forecasting.writing",
    "AdaptedTails": "posterity.calibration.tails",
    "TrackedTails": "posterity.calibration.tails",
    "ProbabilityMap": "posterity.calibration.probability_map",
    # bandits
    "Bandit": "posterity.bandits.bandit",
    "DelayedRewards": "posterity.bandits.delayed",
    "Held": "posterity.bandits.delayed",
    "Roster": "posterity.bandits.roster",
    "GroupedArms": "posterity.bandits.sharing",
    "SeparateArms": "posterity.bandits.sharing",
    "SharedArms": "posterity.bandits.sharing",
    "Baseline": "posterity.bandits.wrappers",
    "Budget": "posterity.bandits.wrappers",
    "Ledger": "posterity.bandits.wrappers",
    "EpsilonGreedy": "posterity.bandits.policies",
    "Greedy": "posterity.bandits.policies",
    "InformationDirected": "posterity.bandits.policies",
    "InverseGap": "posterity.bandits.policies",
    "RandomizedUpperConfidenceBound": "posterity.bandits.policies",
    "Softmax": "posterity.bandits.policies",
    "ThompsonSampling": "posterity.bandits.policies",
    "TopTwo": "posterity.bandits.policies",
    "UpperConfidenceBound": "posterity.bandits.policies",
}

# Where the class itself has a name that others have, too.
CLASS_NAMES = {
    "Account": "SiteStatistics",
    "AveragedStanding": "TwoLevelWeights",
    "ContrastsPosterior": "SoftmaxPosterior",
    "GeneralizedAverage": "AveragedPosterior",
    "ModelStanding": "Ensemble",
    "ForecastForm": "Form",
    "SeriesPanel": "Panel",
    "TargetsChain": "Chain",
    "SeriesCalendar": "Calendar",
    "SeriesWriting": "Writing",
    "ChangepointLearned": "Learned",
    "EvidenceKnown": "EvidenceState",
    "ReweightedBegun": "WarmStart",
    "ReweightedKept": "StoredRows",
    "HeavyTailsKnown": "HeavyTailsState",
    "Held": "HeldDecision",
    "NoiseAccount": "NoiseStatistics",
    "NoiseTally": "NoiseSums",
    "ReachingScales": "RareFeatureScales",
    "RobustBayesianRegression": "BayesianRobustRegression",
    "NoiseSpread": "Spread",
    "SeveralQuantilesPosterior": "QuantilesPosterior",
    "Together": "SharedScale",
    "Weak": "UnitInformation",
    "WorkingQuantilePosterior": "QuantilePosterior",
}

# Attributes that files call by another name: what each is called here, and there.
FIELD_NAMES: dict[str, dict[str, str]] = {
    "Account": {"log_predictive": "told"},
    "Contrasts": {"log_predictive": "told"},
    "AdaptivePosterior": {"expert_weights": "standing"},
    "AveragedPosterior": {"expert_weights": "standing"},
    "ContrastsPosterior": {"awaits_first_prior": "waiting", "next_prior_update": "due"},
    "Dispersion": {"evidence_correction": "paid"},
    "EvidencePosterior": {
        "prior_is_frozen": "rests",
        "single_node": "alone",
        "state": "known",
    },
    "GeneralizedAverage": {"expert_weights": "standing"},
    "GeneralizedPosterior": {"statistics": "account"},
    "GroupedPosterior": {
        "sample": "turn",
        "small_sample": "brief",
        "n_zero_weight": "idle",
        "next_update": "due_at",
        "row_space": "span",
        "changed_since_update": "moved",
        "newest_reading": "fresh",
    },
    "FactorizationPosterior": {"rows_at_start": "begun"},
    "GroupedArms": {"arms_path": "lean"},
    "HeavyTailedPosterior": {"state": "known"},
    "HeavyTailsKnown": {"log_predictive": "told", "warm_start": "begun"},
    "HeteroscedasticPosterior": {"statistics": "account"},
    "NoiseAccount": {"log_predictive": "told"},
    "Runs": {"residual_df": "freed"},
    "Start": {"residual_df": "freed"},
    "SeriesCalendar": {"business_days": "business"},
    "TrackedTails": {"forgetting_rate": "oblivion"},
    "WindowPosterior": {"stored_rows": "kept"},
    "WorkingQuantilePosterior": {"state": "known"},
}
ESTIMATOR_FIELDS = {"_posterior_or_none": "_knowledge", "_ensemble_or_none": "_standing"}

# Attributes that are made anew when they are needed, and what they are until then.
CACHES: dict[str, dict[str, object]] = {
    "EvidenceKnown": {"fresh": None, "fresh_at": -1.0, "shared": None},
    "TargetViews": {"each": None, "at": -1.0},
    "TargetsChain": {"links": None},
    "Choice": {"coefficients": None, "spectrum": None},
    "Contrasts": {"read": None},
    "ContrastsPosterior": {"nodes": None},
    "GroupedPosterior": {"prior": None, "read": None, "newest_reading": None},
    "SparsePosterior": {"_solution": None, "_pattern": None},
    "Centres": {"_active": None},
    "DiagonalPosterior": {"_kept": None},
    "GroupedArms": {"arms_path": None, "slots": np.empty(0, dtype=np.intp)},
}

# Parameters and attributes that came later, and what they are in files from before.
_WITHOUT_LEVELS: dict[str, object] = {"categorical_features": "auto", "missing": "error"}
LATER: dict[str, dict[str, object]] = {
    "DiagonalPosterior": {"centres": Centres(), "offset_centre": 0.0},
    "SparsePosterior": {"centres": Centres(), "row_offsets": np.zeros(0)},
    "FactorizationPosterior": {
        "precisions": [],
        "products": [],
        "weights": np.empty(0),
        "labels": False,
    },
    "Forecaster": {"upper_bound": None, "holidays": None, "events": None},
    "ForecastForm": {
        "rows": None,
        "seasonal_half_lives": (),
        "waves": (),
        "column_lags": (),
    },
    "SeriesCalendar": {"business_days": False, "writing": None},
    "SeriesPanel": {"left_out": None, "closing": None},
    "GaussianPrior": {"intercept_mean": 0.0, "intercept_precision": 0.0},
    "GroupBelief": {"unit": False},
    "Account": {"together": -1.0, "at_mode": False, "averaged": False, "start": None},
    "GeneralizedPosterior": {"keeps_start": False},
    "HeteroscedasticPosterior": {"keeps_start": False},
    "NoiseAccount": {"start": None},
    "StartRows": {"closed": True},
    "ContrastPrior": {"flat": np.zeros(0, dtype=bool), "left": 1.0},
    "EvidenceKnown": {"turn": None, "shared": None},
    "Choice": {"coefficients": None, "spectrum": None, "contrasts": None},
    "EvidencePosterior": {"single_node": False, "prior_is_frozen": False},
    "BayesianGeneralizedLinear": {"prior": None, **_WITHOUT_LEVELS},
    "BayesianLinearRegression": {"noise": "constant", "prior": None, **_WITHOUT_LEVELS},
    "GroupedRegression": _WITHOUT_LEVELS,
    "Spline": {"smooth": False},
    **{
        f"{structure}{family}Regression": {"missing": "error"}
        for structure in ("Diagonal", "Sparse")
        for family in ("Linear", "Logistic", "Poisson")
    },
    "BayesianLogisticRegression": {"prior": None, **_WITHOUT_LEVELS},
    "BayesianNegativeBinomialRegression": {"prior": None, **_WITHOUT_LEVELS},
    "BayesianPoissonRegression": {"prior": None, **_WITHOUT_LEVELS},
    "BayesianQuantileRegression": {"prior": None, **_WITHOUT_LEVELS},
    "RobustBayesianRegression": {"prior": None, **_WITHOUT_LEVELS},
    "GroupedPosterior": {
        "sample": None,
        "small_sample": None,
        "n_zero_weight": 0,
        "row_space": None,
        "changed_since_update": True,
        "noise_residual": None,
        "noise_count": 0.0,
        "read": None,
        "newest_reading": None,
    },
    "KeptRows": {"removed": 0},
    "NoiseTally": {"beyond_core": 0.0},
    "Relevance": {"most_nodes": 32},
    "Contrasts": {"read": None},
    "ContrastsPosterior": {"nodes": None, "together": -1.0},
}

# Parameters that users give in many ways, and what writes them as plain values.
WRITTEN = {("Forecaster", "events"): ("posterity.forecasting.holidays", "write_events")}

# Classes that only files from before name, and what makes of their attributes what there is now.
FORMER_CLASSES = {
    "FullContrasts": ("posterity.files.former", "full_contrasts"),
    "SharedContrasts": ("posterity.files.former", "copy_shared_triangle"),
    "SoftmaxPosterior": ("posterity.files.former", "softmax_posterior"),
    "NoiseFading": ("posterity.generalized._former", "drop"),
    "QuantilePosterior": ("posterity.generalized._former", "quantile_posterior"),
    "ReweightedPosterior": ("posterity.generalized._former", "heavy_tailed_posterior"),
}

# Attributes that files from before have, and that are computed from the others now.
# What averages of posteriors believed before data is what their members did.
BEFORE_DATA = frozenset({"belief", "noise", "intercept", "prior", "factor"})
FORMER: dict[str, frozenset[str]] = {
    "AdaptivePosterior": BEFORE_DATA,
    "AveragedPosterior": BEFORE_DATA,
    "GeneralizedAverage": BEFORE_DATA,
    "GroupedArms": frozenset({"lean_of"}),
    "GroupedPosterior": frozenset({"learned_at", "exact_at", "rows", "residual", "count"}),
}

# Attributes that share memory with a factor, or can be computed from the others: not in the file.
DERIVED = frozenset({*SHARED, "_places", "_splines", "_mixes", "_pieces", "_answers", "_together"})

# What an estimator may have learned.
POSTERIORS = frozenset(name for name in HOMES if name.endswith("Posterior")) | {
    "GeneralizedAverage"
}


@cache
def class_of(name: str) -> type:
    """The class that a name in a file stands for; ``KeyError`` for any other name."""
    found = getattr(import_module(HOMES[name]), CLASS_NAMES.get(name, name))
    assert isinstance(found, type)
    return found


def name_of(kind: type) -> str | None:
    """The name of a class in files, or None if it has none."""
    if kind not in _NAMES:
        module = f"{kind.__module__}."
        # By name before by import: that way nothing is imported that the model does not use.
        likely = (
            name
            for name, home in HOMES.items()
            if CLASS_NAMES.get(name, name) == kind.__name__ and module.startswith(f"{home}.")
        )
        _NAMES[kind] = next((name for name in likely if class_of(name) is kind), None)
    return _NAMES[kind]


def slots_of(kind: type) -> tuple[str, ...]:
    """The attributes of a class whose objects have no others; none of any other class.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> slots_of(Normal)
    ('loc', 'scale')
    """
    if kind.__dictoffset__:
        return ()
    return tuple(slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()))


_NAMES: dict[type, str | None] = {}
