"""Tariff tables: each factor's levels as ratios to the one of most exposure."""

from __future__ import annotations

from typing import Any

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


def test_levels_are_read_as_those_learned() -> None:
    codes = pd.DataFrame({"zone": np.tile([1.0, 2.0], 200), "a=b": ["x", "y", None, "x"] * 100})
    model = BayesianPoissonRegression(categorical_features=["zone", "a=b"], missing="level")
    table = model.fit(codes, np.minimum(COUNTS, 1)).relativities(codes)
    assert table["factor"].tolist() == ["zone"] * 2 + ["a=b"] * 3
    assert table["rows"].tolist() == [200, 200, 200, 100, 100]
    assert table["exposure"].tolist() == [200.0, 200.0, 200.0, 100.0, 100.0]


@pytest.mark.parametrize(
    ("rows", "exposure", "message"),
    [
        (POLICIES, "years", "exposure is the text 'years'"),
        (POLICIES, YEARS[:5], "one for each row"),
        (POLICIES, -YEARS, "not negative"),
        (POLICIES.rename(columns={"zone": "Zone"}), YEARS, "Zone"),
    ],
)
def test_what_can_not_be_summed_is_refused(rows: Any, exposure: Any, message: str) -> None:
    model = BayesianPoissonRegression().fit(POLICIES, COUNTS)
    with pytest.raises((ValueError, TypeError), match=message):
        model.relativities(rows, exposure)
