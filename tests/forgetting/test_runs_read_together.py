"""The runs of Changepoint, read together, say what each says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianLinearRegression
from posterity.forgetting import Changepoint
from posterity.posteriors.hypotheses import Hypotheses


@pytest.mark.parametrize("rows", [1, 4, 40])
@pytest.mark.parametrize("noise", [None, 2.0])
def test_runs_read_together_are_those_read_apart(rows: int, noise: float | None) -> None:
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 3))
    how: dict[str, Any] = {} if noise is None else {"noise_precision": noise}
    model = BayesianLinearRegression(prior_precision=1.0, forgetting=Changepoint(), **how)
    for x in X:
        model.learn_one(x, float(x[0] + rng.normal()))
    posterior: Any = model._posterior
    runs, names = posterior.hypotheses, ("a", "b", "c", "d")
    together: Any = runs.joint(names)
    apart: Any = Hypotheses.joint(runs, names)
    assert_allclose(together.mean, apart.mean, rtol=1e-10)
    assert_allclose(together.cov, apart.cov, rtol=1e-10)
    assert_allclose(together.weights, apart.weights)
