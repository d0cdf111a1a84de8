"""Levels against a base level, or against the mean of their column, with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray

from posterity import BayesianPoissonRegression
from posterity.forgetting import Stabilized
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

Array = NDArray[np.float64]
AGES, ZONES = ["young", "middle", "old"], ["a", "b", "c", "d"]


def policies(n: int = 2000) -> tuple[pd.DataFrame, Array, Array]:
    rng = np.random.default_rng(0)
    age, zone = rng.choice(3, n, p=[0.1, 0.6, 0.3]), rng.integers(0, 4, n)
    years, power = rng.gamma(2.0, size=n) + 0.1, rng.normal(5.0, 1.0, n).round(1)
    log_rate = np.array([0.9, 0.0, 0.2])[age] + 0.3 * rng.normal(size=4)[zone] + 0.1 * power - 1.0
    frame = {"age": np.array(AGES)[age], "zone": np.array(ZONES)[zone], "power": power}
    return pd.DataFrame(frame), rng.poisson(years * np.exp(log_rate)), years


def coded(rows: pd.DataFrame, left_out: list[str]) -> tuple[Array, list[str]]:
    names = [f"age={a}" for a in AGES] + [f"zone={z}" for z in ZONES]
    names = [name for name in names if name not in left_out]
    columns = [rows[name.split("=")[0]] == name.split("=")[1] for name in names]
    return np.column_stack([*columns, rows["power"]]).astype(float), [*names, "power"]


def test_a_flat_prior_gives_the_table_of_the_generalised_linear_model() -> None:
    rows, claims, years = policies()
    X, names = coded(rows, ["age=middle", "zone=b"])
    glm = sm.GLM(claims, sm.add_constant(X), family=sm.families.Poisson(), exposure=years).fit()
    model = SparsePoissonRegression(prior_precision=1e-5).fit(rows, claims, exposure=years)
    table = model.summary(base={"age": "middle", "zone": "b"})
    ours = table.loc[["intercept", *names]]
    assert (np.abs(ours["mean"] - glm.params) < 0.05 * glm.bse).all()
    np.testing.assert_allclose(ours["sd"], glm.bse, rtol=0.01)
    for level in ("age=middle", "zone=b"):
        row = table.loc[level]
        ends = row[["rate_ratio", "rate_ratio_low", "rate_ratio_high"]]
        assert (ends == 1.0).all()
        assert (row["mean"], row["sd"]) == (0.0, 0.0)
    as_they_are = model.summary()
    assert as_they_are.loc["age=young", "sd"] > 5.0 * table.loc["age=young", "sd"]


@pytest.mark.parametrize(
    "kind", [SparseLinearRegression, SparseLogisticRegression, DiagonalPoissonRegression]
)
def test_a_contrast_of_two_levels_is_one_of_them_with_the_other_as_the_base(kind: Any) -> None:
    rows, claims, _ = policies(400)
    model = kind().fit(rows, claims if "Poisson" in kind.__name__ else claims > 0)
    compared = model.contrast({"age=young": 1.0, "age=old": -1.0})
    row = model.summary(base={"age": "old"}).loc["age=young"]
    np.testing.assert_allclose([compared.mean(), compared.scale], row[["mean", "sd"]].tolist())
    with pytest.raises(ValueError, match="no weight 'age=yuong'; did you mean 'age=young'"):
        model.contrast({"age=yuong": 1.0})


@pytest.mark.parametrize("base", ["mean", "first", {"age": "old"}])
def test_intervals_are_those_of_the_joint_posterior(base: Any) -> None:
    rows, claims, years = policies(400)
    model = SparsePoissonRegression(prior_precision=2.0, fit_intercept=False)
    model = model.fit(rows, claims, exposure=years)
    X, names = coded(rows, [])
    dense = BayesianPoissonRegression(
        prior_precision=2.0, fit_intercept=False, approximation="moments"
    ).fit(X, claims, exposure=years)
    cov, mean = dense.posterior_.cov, dense.coef_
    compared = np.eye(len(names))
    for column, levels, first in (("age", AGES, "middle"), ("zone", ZONES, "a")):
        own = [names.index(f"{column}={level}") for level in levels]
        shares = np.zeros(len(names))
        chosen = first if base == "first" else base.get(column) if isinstance(base, dict) else None
        shares[own if chosen is None else names.index(f"{column}={chosen}")] = 1.0
        compared[own] -= shares / shares.sum()
    table = model.summary(base=base).loc[names]
    np.testing.assert_allclose(table["mean"], compared @ mean, rtol=1e-3, atol=1e-4)
    expected = np.sqrt(np.maximum(np.diag(compared @ cov @ compared.T), 0.0))
    np.testing.assert_allclose(table["sd"], expected, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "kind",
    [
        DiagonalLinearRegression,
        DiagonalLogisticRegression,
        DiagonalPoissonRegression,
        SparseLinearRegression,
        SparseLogisticRegression,
        SparsePoissonRegression,
    ],
)
@pytest.mark.parametrize("base", ["mean", "first", {"zone": "c"}])
def test_predictions_are_sums_of_what_the_table_shows(kind: Any, base: Any) -> None:
    rows, claims, _ = policies(300)
    y = claims > 0 if "Logistic" in kind.__name__ else claims
    for how in ({}, {"forgetting": Stabilized(0.99)}, {"fit_intercept": False}):
        model = kind(**how).fit(rows, y)
        plain, table = model.summary()["mean"], model.summary(base=base)
        assert table.index.tolist() == plain.index.tolist()
        assert (table["low"] <= table["mean"]).all()
        levels = [("age", age) for age in AGES] + [("zone", zone) for zone in ZONES]
        for column, level in levels:
            for other in (one for name, one in levels if name == column):
                one, two = f"{column}={level}", f"{column}={other}"
                found = table["mean"][one] - table["mean"][two]
                assert found == pytest.approx(plain[one] - plain[two], abs=1e-9)
        if model.fit_intercept:
            eta = [t["intercept"] + t["age=old"] + t["zone=a"] for t in (plain, table["mean"])]
            assert eta[0] == pytest.approx(eta[1], rel=1e-9)


def test_what_is_no_base() -> None:
    rows, claims, _ = policies(100)
    model = SparsePoissonRegression().fit(rows, claims)
    for base, message in (
        ("last", "base is 'last': it must be 'mean', 'first' or a dict of columns and levels"),
        ({"aeg": "old"}, "base names 'aeg', which is no category: .*did you mean 'age'"),
        ({"power": 1.0}, "base names 'power', which is no category: the categories are 'age'"),
        ({"age": "odl"}, "base is 'odl' for column 'age', .* its levels are .*did you mean 'old'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.summary(base=base)
    hashed = DiagonalPoissonRegression(hash_size=64).fit(rows, claims)
    with pytest.raises(ValueError, match="hashed levels have no names"):
        hashed.summary(base="mean")
    numbers = SparsePoissonRegression(categorical_features="all").fit(
        pd.DataFrame({"code": [10, 9, 10, 9, 2]}), [1, 2, 3, 4, 5]
    )
    assert numbers.summary(base="first")["mean"]["code=2"] == 0.0
    assert numbers.summary(base={"code": 10})["mean"]["code=10"] == 0.0
