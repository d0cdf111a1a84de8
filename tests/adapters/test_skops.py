"""Estimators through skops.io, with the types to trust listed by us."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    GroupedRegression,
    forgetting,
)
from posterity.adapters.skops import trusted_types
from posterity.basis import Spline
from posterity.factor import Factor

skops: Any = pytest.importorskip("skops.io", reason="needs skops: pip install 'posterity[skops]'")

# skops reads the state of an object with slots only where its class says what that is.
pytestmark = pytest.mark.skipif(
    "__getstate__" not in vars(Factor), reason="factors do not tell skops their state yet"
)

MODELS = [
    BayesianLinearRegression(),
    BayesianLinearRegression(prior_precision="ard"),
    BayesianLinearRegression(prior_precision=1.0, noise_precision=1.0),
    BayesianLinearRegression(forgetting=forgetting.Stabilized(discount=0.9)),
    BayesianLinearRegression(forgetting=forgetting.Window(10)),
    BayesianLinearRegression(forgetting=forgetting.Adaptive()),
    BayesianLinearRegression(forgetting=forgetting.Changepoint()),
    BayesianLinearRegression(basis=Spline()),
    BayesianLinearRegression(basis="auto"),
    BayesianLogisticRegression(),
    GroupedRegression(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_round_trip_goes_on_as_the_model_would(model: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=40)
    y = y > 0.0 if isinstance(model, BayesianLogisticRegression) else y
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    content = skops.dumps(pipeline)
    assert set(skops.get_untrusted_types(data=content)) <= set(trusted_types())
    again = skops.loads(content, trusted=trusted_types())
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    for one in (again[-1], pipeline[-1]):
        one.partial_fit(X[:5], y[:5])
    np.testing.assert_array_equal(again[-1].coef_, pipeline[-1].coef_)
