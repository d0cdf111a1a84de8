"""The classes that a model file may name: these, and no others.

A file says "LearnedNoise"; what that is stands here, never in the file. To have objects of one
more class saved, give it a line in ``HOMES``: a dataclass or named tuple is saved field by field,
an estimator or any other object attribute by attribute. Names in files are for ever: a class that
moves keeps its name here. What is only a cache goes into ``CACHES``; what can't be checked by the
types of the fields alone goes into :mod:`posterity.files.checks`.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator

from posterity.linear.state import SHARED

# Name of the class -> module.
HOMES = {
    # estimators
    "BayesianGeneralizedLinear": "posterity.generalized.generalized_linear",
    "BayesianLinearRegression": "posterity.linear",
    "BayesianLogisticRegression": "posterity.generalized.logistic",
    "BayesianNegativeBinomialRegression": "posterity.generalized.negative_binomial",
    "BayesianPoissonRegression": "posterity.generalized.poisson",
    "BayesianQuantileRegression": "posterity.generalized.quantile",
    "BayesianRobustRegression": "posterity.generalized.robust",
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
    "Model": "posterity.model",
    "TermRows": "posterity.model.engines",
    "LabelTerms": "posterity.model.engines",
    "Design": "posterity.model.design",
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
    "SlopeWalk": "posterity.forgetting.fading",
    "Smoothing": "posterity.forgetting",
    "Stabilized": "posterity.forgetting",
    "Window": "posterity.forgetting",
    "Bounded": "posterity.evidence",
    "Integrated": "posterity.evidence",
    "LocalScales": "posterity.evidence",
    "Maximized": "posterity.evidence",
    "OddsScale": "posterity.evidence",
    "Relevance": "posterity.evidence",
    "SharedScale": "posterity.evidence",
    "InUnits": "posterity.evidence.members",
    "UnitInformation": "posterity.evidence.members",
    # beliefs
    "GaussianPrior": "posterity.priors",
    "KnownNoise": "posterity.noise",
    "LearnedNoise": "posterity.noise",
    "UnitNoise": "posterity.noise",
    "Normal": "posterity.distributions",
    # likelihoods
    "Bernoulli": "posterity.likelihoods",
    "Beta": "posterity.likelihoods",
    "BetaBinomial": "posterity.likelihoods",
    "Binomial": "posterity.likelihoods",
    "Censored": "posterity.likelihoods",
    "ExponentialTime": "posterity.likelihoods.weibull",
    "Gamma": "posterity.likelihoods",
    "Gaussian": "posterity.likelihoods",
    "Geometric": "posterity.likelihoods",
    "InverseGaussian": "posterity.likelihoods",
    "LaplaceNoise": "posterity.likelihoods",
    "LinearNegativeBinomial": "posterity.likelihoods",
    "LogLogistic": "posterity.likelihoods",
    "LogNormal": "posterity.likelihoods",
    "LogPrecision": "posterity.likelihoods",
    "NegativeBinomial": "posterity.likelihoods",
    "Ordinal": "posterity.likelihoods",
    "Poisson": "posterity.likelihoods",
    "Quantile": "posterity.likelihoods",
    "SkewNormal": "posterity.likelihoods",
    "StudentT": "posterity.likelihoods",
    "Truncated": "posterity.likelihoods",
    "ZeroInflated": "posterity.likelihoods",
    "Hurdle": "posterity.likelihoods",
    "Tweedie": "posterity.likelihoods",
    "VonMises": "posterity.likelihoods",
    "Weibull": "posterity.likelihoods",
    # posteriors and their state
    "LinearPosterior": "posterity.posteriors",
    "Keep": "posterity.posteriors.memory",
    "KeptRows": "posterity.posteriors.memory",
    "MixedPosterior": "posterity.posteriors",
    "RefittedWindow": "posterity.posteriors.refitted",
    "WindowRows": "posterity.posteriors.refitted",
    "Switching": "posterity.posteriors.switching",
    "Strategies": "posterity.posteriors.strategies",
    "TwoLevelWeights": "posterity.posteriors.switching",
    "BankedRuns": "posterity.posteriors.banked_runs",
    "Start": "posterity.posteriors.banked_runs",
    "Change": "posterity.posteriors.runs",
    "Regimes": "posterity.posteriors.regimes",
    "Targets": "posterity.posteriors.regimes",
    "HeteroscedasticPosterior": "posterity.posteriors",
    "NoiseStatistics": "posterity.posteriors.heteroscedastic",
    "RareFeatureScales": "posterity.evidence.bounded",
    "EvidencePosterior": "posterity.posteriors",
    "Categories": "posterity.linear.categories",
    "Category": "posterity.linear.categories",
    "EvidenceState": "posterity.posteriors._evidence_stream",
    "Nodes": "posterity.posteriors._nodes",
    "Choice": "posterity.evidence",
    "RunningScales": "posterity.evidence",
    "TargetsPosterior": "posterity.posteriors",
    "GeneralizedPosterior": "posterity.posteriors",
    "JointParameters": "posterity.posteriors.joint_parameters",
    "LearnedParameter": "posterity.posteriors.phi",
    "Quadratic": "posterity.posteriors.joint_parameters",
    "SiteStatistics": "posterity.posteriors._site_statistics",
    "StartRows": "posterity.posteriors._site_start",
    "SkewedRows": "posterity.posteriors._skewed",
    "SoftmaxPosterior": "posterity.posteriors.softmax",
    "ContrastPrior": "posterity.posteriors._softmax_prior",
    "RecentRows": "posterity.posteriors._softmax_recent",
    "Contrasts": "posterity.posteriors._softmax_contrasts",
    "HeavyTailedPosterior": "posterity.generalized._heavy_tails",
    "HeavyTailsState": "posterity.generalized._heavy_tails_state",
    "QuantilePosterior": "posterity.generalized._quantile_posterior",
    "QuantilesPosterior": "posterity.generalized._quantiles_posterior",
    "WarmStart": "posterity.generalized._start",
    "StoredRows": "posterity.generalized._start",
    "NoiseSums": "posterity.generalized._noise_tally",
    "TailSums": "posterity.generalized._learned_tails",
    "LearnedTails": "posterity.generalized._learned_tails",
    "StudentTNoise": "posterity.generalized._student_t_noise",
    "AsymmetricLaplaceNoise": "posterity.generalized._asymmetric_laplace_noise",
    "DoubleExponentialNoise": "posterity.generalized._laplace_noise",
    "Spread": "posterity.generalized._working_noise",
    "Ensemble": "posterity.posteriors.ensemble",
    "GroupedPosterior": "posterity.posteriors.grouped",
    "GroupBelief": "posterity.posteriors._group_belief",
    "GroupSample": "posterity.evidence.groups",
    "GroupSites": "posterity.posteriors._group_sites",
    "GroupedRows": "posterity.factor.grouped_rows",
    "SharedPrior": "posterity.evidence.groups",
    "KeyIndex": "posterity.grouped.index",
    "DiagonalPosterior": "posterity.posteriors.diagonal",
    "SparsePosterior": "posterity.posteriors.sparse",
    "SparseRows": "posterity.posteriors._sparse_rows",
    "Centres": "posterity.posteriors._centres",
    "FeatureIndex": "posterity.sparse.index",
    "FeatureLevels": "posterity.sparse.index",
    "FactorizationPosterior": "posterity.factorization.posterior",
    "Form": "posterity.forecasting.forms",
    "Panel": "posterity.forecasting.panel",
    "Calendar": "posterity.forecasting.calendar",
    "Writing": "posterity.forecasting.writing",
    "AdaptedTails": "posterity.calibration.tails",
    "TrackedTails": "posterity.calibration.tails",
    "ProbabilityMap": "posterity.calibration.probability_map",
    # bandits
    "Bandit": "posterity.bandits.bandit",
    "DelayedRewards": "posterity.bandits.delayed",
    "HeldDecision": "posterity.bandits.delayed",
    "Roster": "posterity.bandits.roster",
    "GroupedArms": "posterity.bandits.sharing",
    "SeparateArms": "posterity.bandits.separate",
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

# Attributes that are made anew when they are needed, and what they are until then.
CACHES: dict[str, dict[str, object]] = {
    "EvidenceState": {"fresh": None},
    "TargetsPosterior": {"newest_reading": None},
    "Contrasts": {"read": None},
    "SoftmaxPosterior": {"nodes": None},
    "GroupedPosterior": {"prior": None, "read": None, "newest_reading": None},
    "SparsePosterior": {"_reading": None, "_pattern": None},
    "Centres": {"_active": None},
    "DiagonalPosterior": {"_kept": None},
    "SeparateArms": {"tables": {}},
    "GroupedArms": {"arms_path": None, "slots": np.empty(0, dtype=np.intp)},
}

# Attributes that may be given or held in many ways, and what writes them as plain values.
WRITTEN = {
    ("Forecaster", "events"): ("posterity.forecasting.holidays", "write_events"),
    ("GroupedPosterior", "sample"): ("posterity.posteriors._group_samples", "read_sample"),
    ("GroupedPosterior", "small_sample"): ("posterity.posteriors._group_samples", "read_sample"),
}

# Attributes that share memory with a factor, or can be computed from the others: not in the file.
DERIVED = frozenset(
    {*SHARED, "_places", "_splines", "_mixes", "_pieces", "reach_", "_answers", "_together"}
)

# What an estimator may have learned.
POSTERIORS = frozenset(name for name in HOMES if name.endswith("Posterior"))


@cache
def class_of(name: str) -> type:
    """The class that a name in a file stands for; ``KeyError`` for any other name."""
    found = getattr(import_module(HOMES[name]), name)
    assert isinstance(found, type)
    return found


def name_of(kind: type) -> str | None:
    """The name of a class in files, or None if it has none."""
    name, home = kind.__name__, HOMES.get(kind.__name__)
    # By module before by import: that way nothing is imported that the model does not use.
    likely = home is not None and f"{kind.__module__}.".startswith(f"{home}.")
    return name if likely and class_of(name) is kind else None


def fields_of(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass, a named tuple or a class with slots; None of any other class.

    Examples
    --------
    >>> from posterity.distributions import Normal
    >>> fields_of(Normal)
    ('loc', 'scale')
    """
    if issubclass(kind, BaseEstimator):  # which keeps what it learned beside its parameters
        return None
    if dataclasses.is_dataclass(kind):
        return tuple(one.name for one in dataclasses.fields(kind))
    if kind.__dictoffset__:
        return None
    slots = tuple(slot for base in kind.__mro__ for slot in getattr(base, "__slots__", ()))
    return getattr(kind, "_fields", slots)
