"""The posterior of a linear model, and how it learns and forgets."""

from posterity.posteriors.evidence import EvidencePosterior
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.posteriors.heteroscedastic import HeteroscedasticPosterior
from posterity.posteriors.mixed import MixedPosterior
from posterity.posteriors.targets import TargetsPosterior

__all__ = [
    "EvidencePosterior",
    "GeneralizedPosterior",
    "HeteroscedasticPosterior",
    "LinearPosterior",
    "MixedPosterior",
    "TargetsPosterior",
]
