"""Dates and categories in a frame are refused by name where they would be numbers by accident."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from posterity import BayesianLinearRegression

DAYS = pd.date_range("2020-01-01", periods=4)
Y = np.arange(4.0)


@pytest.mark.parametrize(
    ("X", "where"),
    [
        (pd.DataFrame({"a": Y, "when": DAYS}), "column 'when'"),
        (pd.DataFrame({"when": DAYS.tz_localize("UTC")}), "column 'when'"),
        (pd.DataFrame({"when": DAYS - DAYS[0]}), "column 'when'"),
        (pl.DataFrame({"when": DAYS.to_numpy()}), "column 'when'"),
        (pa.table({"when": DAYS.to_numpy()}), "column 'when'"),
        (DAYS.to_numpy()[:, None], "X"),
    ],
)
def test_dates_are_never_nanoseconds(X, where):
    with pytest.raises(TypeError, match=f"^{where}.* contains dates or times"):
        BayesianLinearRegression().fit(X, Y)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": Y, "zip": pd.Categorical([1, 2, 1, 2])}),
        pd.DataFrame({"zip": pd.Categorical(["1", "2", "1", "2"])}),
        pl.DataFrame({"zip": pl.Series(list("1212"), dtype=pl.Categorical)}),
        pa.table({"zip": pa.array(list("1212")).dictionary_encode()}),
    ],
)
def test_categories_of_numbers_are_no_numbers(X):
    with pytest.raises(TypeError, match=r"column 'zip' of X contains categories .*OneHotEncoder"):
        BayesianLinearRegression(categorical_features=None).fit(X, Y)
    model = BayesianLinearRegression().fit(pd.DataFrame({"zip": Y}), Y)
    with pytest.raises(TypeError, match="column 'zip' of X contains categories"):
        model.predict(X[["zip"]] if isinstance(X, pd.DataFrame) else X)


def test_numbers_of_any_type_are_numbers():
    X = pd.DataFrame({"a": [1, 2, 3, 5], "b": Y > 1, "c": Y.astype(object), "d": Y})
    X["d"] = X["d"].astype("Float64")
    assert BayesianLinearRegression().fit(X, Y).n_features_in_ == 4
