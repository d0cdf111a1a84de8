"""Tariff tables: each factor's levels as ratios to the one of most exposure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from posterity import BayesianGeneralizedLinear, BayesianPoissonRegression
from posterity.likelihoods import Gaussian

RNG = np.random.default_rng(0)
POLICIES = pd.DataFrame(
    {"zone": RNG.choice(["a", "b", "c"], 400), "fuel": RNG.choice(["x", "y"], 400), "age": 1.0}
)
YEARS = RNG.uniform(0.2, 1.0, size=400) * (1.0 + 9.0 * (POLICIES.zone == "b"))
COUNTS = RNG.poisson(0.5 * YEARS)


def test_they_are_the_summary_against_the_level_of_most_exposure() -> None:
    model = BayesianPoissonRegression().fit(POLICIES, COUNTS, exposure=YEARS)
    table = model.relativities(POLICIES, YEARS, level=0.9).set_index(["factor", "level"])
    assert table.loc[("zone", "b"), ["relativity", "low", "high"]].tolist() == [1.0, 1.0, 1.0]
    known = model.summary(0.9, base={"zone": "b"}).loc["zone=a"]
    ends = known[["rate_ratio", "rate_ratio_low", "rate_ratio_high"]].to_numpy(float)
    np.testing.assert_array_equal(table.loc[("zone", "a")].to_numpy()[:3], ends)
    assert table.loc["zone"]["rows"].sum() == 400
    assert table.loc["fuel"]["exposure"].sum() == pytest.approx(YEARS.sum())
    some = model.relativities(POLICIES[POLICIES.zone != "c"]).set_index("level")
    assert some.loc["c", "rows"] == 0


def test_what_has_none_is_refused() -> None:
    model = BayesianPoissonRegression().fit(POLICIES, COUNTS)
    with pytest.raises(ValueError, match="X has no column of text or categories that the model"):
        model.relativities(POLICIES[["age"]])
    numbers = BayesianGeneralizedLinear(Gaussian(1.0)).fit(POLICIES, COUNTS)
    with pytest.raises(ValueError, match="there are no relativities"):
        numbers.relativities(POLICIES)
