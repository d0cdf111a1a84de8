"""Parameters that all linear models have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from numpy.typing import ArrayLike

from posterity import evidence
from posterity.basis.contract import Bases
from posterity.distributions import Normal
from posterity.forgetting import Forgetting
from posterity.linear.categories import CategoricalFeatures, Missing

# Ways to give a prior: for all columns, for each, or by name.
Means = ArrayLike | Mapping[str, float]
Precisions = ArrayLike | str | evidence.Strategy | Mapping[str, float]
Priors = Mapping[str, Normal] | None


@dataclass(kw_only=True, eq=False, repr=False)
class LinearParameters:
    """Parameters that are kept as they are given; models that have more name these alone."""

    prior_mean: Means = 0.0
    prior_precision: Precisions = "auto"
    prior: Priors = None
    fit_intercept: bool = True
    basis: Bases | None = None
    forgetting: Forgetting | str | None = None
    categorical_features: CategoricalFeatures = "auto"
    missing: Missing = "error"
