"""A memory of one's own needs ``learn`` alone, and single rows go through it too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posterity import BayesianLinearRegression
from posterity.factor import OneStepPredictions, Rows
from posterity.factor.forgetting import learn_fading
from posterity.forgetting import Exponential
from posterity.forgetting.fading import Strategy
from posterity.posteriors.memory import Learned


@dataclass(frozen=True)
class Tenth(Strategy):
    """A tenth of all is forgotten before each row."""

    def learn(self, data: Learned, rows: Rows) -> OneStepPredictions:
        return learn_fading(data.factor, rows, 0.9**rows.elapsed)


def test_single_rows_forget_as_batches_do() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1))
    y = np.where(np.arange(50) < 25, 1.0, -1.0) * X[:, 0]
    whole, rows, built_in = (
        BayesianLinearRegression(prior_precision=1.0, forgetting=memory)
        for memory in (Tenth(), Tenth(), Exponential(0.9))
    )
    whole.partial_fit(X, y)
    for x, target in zip(X, y, strict=True):
        rows.learn_one(x, target)
    np.testing.assert_allclose(whole.coef_, built_in.partial_fit(X, y).coef_, rtol=1e-9)
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-9)
