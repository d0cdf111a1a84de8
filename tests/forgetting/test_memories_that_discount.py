"""Memories of one's own, as the page on architecture tells how to write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from posterity import BayesianLinearRegression
from posterity.forgetting import Exponential
from posterity.forgetting.fading import Strategy


@dataclass(frozen=True)
class Halving(Strategy):
    """Exponential forgetting in other words."""

    only_discounts: ClassVar[bool] = True

    def discounts(self, elapsed: Any) -> Any:
        return np.power(0.5, elapsed)

    def learn(self, data: Any, rows: Any) -> Any:
        return Exponential(0.5).learn(data, rows)


@dataclass(frozen=True)
class HalvingRows(Halving):
    """The same for single rows, too."""

    def fade(self, data: Any, path: Any) -> None:
        Exponential(0.5).fade(data, path)


def test_single_rows_are_forgotten_as_batches_are() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    for prior in ("auto", 1.0):
        own, ours = (
            BayesianLinearRegression(prior_precision=prior, forgetting=one).fit(X[:20], y[:20])
            for one in (HalvingRows(), Exponential(0.5))
        )
        for x, target in zip(X[20:], y[20:], strict=True):
            own.learn_one(x, target)
            ours.learn_one(x, target)
        assert own.n_effective_ == ours.n_effective_ == pytest.approx(2.0)
        np.testing.assert_allclose(own.coef_, ours.coef_)


def test_what_only_discounts_says_how() -> None:
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=Halving())
    model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    with pytest.raises(NotImplementedError, match="Halving only discounts: define how, in fade"):
        model.learn_one([1.0], 2.0)
