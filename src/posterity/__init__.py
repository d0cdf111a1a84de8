"""Bayesian regression on data that keeps coming: today's posterior is tomorrow's prior.

Floors: imports point down (a test holds this)::

   10  commands      cli
    9  service       service
    8  interfaces    report  adapters  off_policy  experiments  model
    7  uses          evaluation  calibration  bandits  io  rewards  words  sparse  factorization
    6  models        generalized  grouped  averaging  files
    5  models        linear  forecasting
    4  memory        forgetting
    3  posterior     posteriors
    2  prior         priors  evidence
    1  algebra       factor  noise  likelihoods  basis  plots
    0  foundations   kernel  safety  transaction  other_names  distributions
    0  foundations   sequential  moments  aliases  datasets
"""

from __future__ import annotations

# Not from typing: that import alone would double the cost of `import posterity`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from posterity.averaging import Averaged
    from posterity.files import load, save
    from posterity.forecasting import Forecaster
    from posterity.generalized import (
        BayesianGeneralizedLinear,
        BayesianLogisticRegression,
        BayesianNegativeBinomialRegression,
        BayesianPoissonRegression,
        BayesianQuantileRegression,
        BayesianRobustRegression,
    )
    from posterity.grouped import GroupedRegression
    from posterity.linear import BayesianLinearRegression
    from posterity.model import Model

__version__ = "0.1.0"

__all__ = [
    "Averaged",
    "BayesianGeneralizedLinear",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianNegativeBinomialRegression",
    "BayesianPoissonRegression",
    "BayesianQuantileRegression",
    "BayesianRobustRegression",
    "Forecaster",
    "GroupedRegression",
    "Model",
    "__version__",
    "load",
    "save",
]

# Public name -> module that defines it: imported on first use, so that `import posterity` is free.
_HOMES = {
    "Averaged": "posterity.averaging",
    "BayesianGeneralizedLinear": "posterity.generalized",
    "BayesianLinearRegression": "posterity.linear",
    "BayesianLogisticRegression": "posterity.generalized",
    "BayesianNegativeBinomialRegression": "posterity.generalized",
    "BayesianPoissonRegression": "posterity.generalized",
    "BayesianQuantileRegression": "posterity.generalized",
    "Forecaster": "posterity.forecasting",
    "GroupedRegression": "posterity.grouped",
    "Model": "posterity.model",
    "BayesianRobustRegression": "posterity.generalized",
    "load": "posterity.files",
    "save": "posterity.files",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        here = {
            "evaluate": "posterity.evaluation.progressive_validation(model, X, y)",
            "compare": "posterity.evaluation.compare(models, X, y)",
            "plot": "the functions of posterity.plots",
            "dump": "posterity.save(model, path)",
            "LinearRegression": "posterity.BayesianLinearRegression",
            "BayesianRidge": "posterity.BayesianLinearRegression",
            "OLS": "posterity.BayesianLinearRegression(prior_precision=0.0)",
            "Logit": "posterity.BayesianLogisticRegression(prior_precision=0.0)",
            "LogisticRegression": "posterity.BayesianLogisticRegression",
            "PoissonRegressor": "posterity.BayesianPoissonRegression",
            "Spline": "posterity.basis.Spline",
            "Fourier": "posterity.basis.Fourier",
            "Adaptive": "posterity.forgetting.Adaptive",
            "Conformal": "posterity.calibration.Conformal",
            "Bandit": "posterity.bandits.Bandit",
            "Normal": "posterity.distributions.Normal",
        }.get(name)
        instead = "" if here is None else f": use {here}"
        raise AttributeError(f"module 'posterity' has no attribute {name!r}{instead}")
    # First and from here, where the call stack is shallow: CPython 3.11 imports scikit-learn's
    # thousand modules up to a tenth slower from a few calls deeper.
    import gc
    from importlib import import_module

    # What is imported stays: looking for garbage among it would take a fifth of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        import sklearn.base  # noqa: F401

        value = getattr(import_module(_HOMES[name]), name)
    finally:
        if collects:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
