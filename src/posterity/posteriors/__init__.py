"""Floor 2: the posterior of a linear model, and how it learns and forgets."""

from posterity.posteriors.adaptive import AdaptivePosterior
from posterity.posteriors.averaged import AveragedPosterior
from posterity.posteriors.changepoint import ChangepointPosterior
from posterity.posteriors.evidence import EvidencePosterior
from posterity.posteriors.fading import FadingPosterior
from posterity.posteriors.gaussian import LinearPosterior
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.posteriors.heteroscedastic import HeteroscedasticPosterior
from posterity.posteriors.missing_targets import MissingTargetsPosterior
from posterity.posteriors.targets import TargetsPosterior
from posterity.posteriors.window import WindowPosterior

__all__ = [
    "AdaptivePosterior",
    "AveragedPosterior",
    "ChangepointPosterior",
    "EvidencePosterior",
    "FadingPosterior",
    "GeneralizedPosterior",
    "HeteroscedasticPosterior",
    "LinearPosterior",
    "MissingTargetsPosterior",
    "TargetsPosterior",
    "WindowPosterior",
]
