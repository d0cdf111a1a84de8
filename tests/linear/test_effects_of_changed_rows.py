"""Average effects whose unchanged rows are computed once: beside all rows before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import BayesianLogisticRegression, BayesianPoissonRegression

N, SIZE = 60, 40
RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 3, N)
X = pd.DataFrame(
    {
        "age": RNG.normal(size=N),
        "rare": (RNG.random(N) < 0.1).astype(float),
        "often": (RNG.random(N) < 0.9).astype(float),
        "colour=green": (COLOUR == 1).astype(float),
        "colour=red": (COLOUR == 2).astype(float),
    }
)
COUNTS = RNG.poisson(np.exp(0.3 * X["age"] + 0.5 * X["often"]))


def changes() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    others = {"colour=green": 0.0, "colour=red": 0.0}
    found = {"age": (X, X.assign(age=X["age"] + 1.0))}
    for name in ("rare", "often"):
        found[name] = X.assign(**{name: 0.0}), X.assign(**{name: 1.0})
    for name in others:
        found[name] = X.assign(**others), X.assign(**others).assign(**{name: 1.0})
    return found


@pytest.mark.parametrize(
    ("kind", "y", "how"),
    [
        (BayesianPoissonRegression, COUNTS, {"exposure": 1.0 + COLOUR}),
        (BayesianPoissonRegression, COUNTS, {"offset": 0.5}),
        (BayesianLogisticRegression, COUNTS > 0, {}),
        (BayesianLogisticRegression, np.minimum(COUNTS, 2), {}),
    ],
)
def test_effects_are_differences_of_means(kind: Any, y: Any, how: dict[str, Any]) -> None:
    model = kind().fit(X, y, **how)
    table = model.average_effects(X, size=SIZE, rng=3, **how)
    seed = int(np.random.default_rng(3).integers(2**63))
    for name, (low, high) in changes().items():
        before, after = (model.sample_mean(one, SIZE, seed, **how) for one in (low, high))
        change = (after - before).mean(axis=1)
        found = np.ravel(table.loc[name, "mean"])
        np.testing.assert_allclose(found, np.ravel(change.mean(axis=0)), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            np.ravel(table.loc[name, "sd"]), np.ravel(change.std(axis=0)), rtol=1e-8, atol=1e-12
        )
