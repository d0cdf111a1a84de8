"""Prior precisions from the evidence, computed from the data's factor without the rows.

Four strategies, each a frozen dataclass without data and with one method, ``choose(data, noise,
intercept=, mean=, shapes=)``, which answers with a :class:`Choice`:

- :class:`LocalScales` ("auto") integrates over a scale for each coefficient, heavy-tailed or alike;
- :class:`Integrated` integrates over one scale for all;
- :class:`Maximized` plugs in the (alpha, beta) of largest evidence, as BayesianRidge does;
- :class:`Relevance` ("ard") integrates over which features are strong, each with its precision.

Examples
--------
>>> import numpy as np
>>> from posterity.factor import Factor
>>> from posterity.noise import LearnedNoise
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(100, 3))
>>> data = Factor(4)
>>> data.append(X, X[:, :1] + rng.normal(size=(100, 1)), intercept=True)
>>> choice = Integrated().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(3))
>>> choice.weights.sum().round(9)
np.float64(1.0)
"""

from posterity.distributions.mixing import match_moments
from posterity.evidence.bounded import Bounded, OddsScale
from posterity.evidence.choice import Choice, Strategy
from posterity.evidence.columns import FeatureScales, RunningScales
from posterity.evidence.integration import Integrated
from posterity.evidence.local_scales import LocalScales
from posterity.evidence.maximization import Maximized, Maximum, maximize
from posterity.evidence.relevance import Relevance
from posterity.evidence.spectrum import Spectrum
from posterity.evidence.together import SharedScale

__all__ = [
    "Bounded",
    "Choice",
    "FeatureScales",
    "Integrated",
    "LocalScales",
    "Maximized",
    "Maximum",
    "OddsScale",
    "Relevance",
    "RunningScales",
    "SharedScale",
    "Spectrum",
    "Strategy",
    "match_moments",
    "maximize",
]
