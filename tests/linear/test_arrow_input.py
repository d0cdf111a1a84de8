"""Arrow tables are read column by column, as any other table of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLinearRegression

pa = pytest.importorskip("pyarrow")

X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ np.array([1.0, -2.0, 0.5])
TABLE = pa.table({name: X[:, column] for column, name in enumerate("abc")})


@pytest.mark.parametrize("table", [TABLE, TABLE.to_batches()[0], TABLE.slice(0, 40)], ids=type)
def test_a_table_is_its_array(table: object) -> None:
    model = BayesianLinearRegression().fit(table, Y)
    expected = BayesianLinearRegression().fit(X, Y).predict(X)
    np.testing.assert_allclose(model.predict(table), expected, rtol=1e-12)


def test_other_names_are_refused() -> None:
    model = BayesianLinearRegression().fit(TABLE, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(TABLE.rename_columns(["a", "b", "z"]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(TABLE.select(["a", "b"]))


def test_text_and_holes_are_refused_by_name() -> None:
    text = TABLE.set_column(1, "b", pa.array(["high"] * 40))
    hole = TABLE.set_column(2, "c", pa.array([None] + [1.0] * 39))
    with pytest.raises(ValueError, match="column 'b'; drop"):
        BayesianLinearRegression(categorical_features=None).fit(text, Y)
    with pytest.raises(ValueError, match="row 0, column 'c'"):
        BayesianLinearRegression().fit(hole, Y)


def test_whole_numbers_and_truths_are_numbers() -> None:
    mixed = pa.table({"a": np.arange(40), "b": np.arange(40) % 2 == 0, "c": X[:, 2].astype("f4")})
    model = BayesianLinearRegression().fit(mixed, Y)
    assert np.isfinite(model.predict(mixed)).all()
