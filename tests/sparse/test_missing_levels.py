"""Missing values of categories in models of many features: refused, or a level of their own."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import posterity
from posterity import BayesianLinearRegression
from posterity.sparse import (
    DiagonalLinearRegression,
    DiagonalLogisticRegression,
    DiagonalPoissonRegression,
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)

rng = np.random.default_rng(4)
N = 90
ZONE = rng.choice(["a", "b", None], size=N)
FRAME = pd.DataFrame({"km": rng.normal(size=N), "zone": ZONE, "code": rng.integers(0, 3, size=N)})
FILLED = FRAME.assign(zone=FRAME.zone.fillna("missing"))
Y = FRAME.km + 2.0 * (FRAME.zone == "b") - 1.5 * FRAME.zone.isna() + 0.3 * rng.normal(size=N)
MODELS: dict[str, tuple[Any, Any]] = {
    "diagonal": (DiagonalLinearRegression, Y),
    "sparse": (SparseLinearRegression, Y),
    "diagonal labels": (DiagonalLogisticRegression, Y > 0.5),
    "sparse labels": (SparseLogisticRegression, Y > 0.5),
    "diagonal counts": (DiagonalPoissonRegression, np.round(np.exp(0.4 * Y))),
    "sparse counts": (SparsePoissonRegression, np.round(np.exp(0.4 * Y))),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_missing_level_is_a_level(name: str, tmp_path: Any) -> None:
    kind, y = MODELS[name]
    expected = kind().fit(FILLED, y)
    for table in (
        FRAME,
        FRAME.assign(zone=FRAME.zone.astype("category")),
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        FRAME.to_dict("records"),
        FRAME.astype(object).where(FRAME.notna(), np.nan).to_dict("records"),
    ):
        model = kind(missing="level").fit(table, y)
        assert sorted(model.feature_names_) == sorted(expected.feature_names_)
        np.testing.assert_allclose(model.predict(FRAME), expected.predict(FILLED), rtol=1e-6)
        np.testing.assert_allclose(model.predict(table), model.predict(FRAME))
    again = pickle.loads(pickle.dumps(model))
    posterity.save(model, tmp_path / "m.posterity")
    for other in (again, posterity.load(tmp_path / "m.posterity")):
        np.testing.assert_array_equal(other.predict(FRAME), model.predict(FRAME))


def test_rows_are_batches() -> None:
    rows = DiagonalLinearRegression(missing="level")
    given = FRAME.astype(object).where(FRAME.notna(), None)
    for row, target in zip(given.to_dict("records"), Y, strict=True):
        rows.learn_one(row, target)
    batches = DiagonalLinearRegression(missing="level")
    batches.partial_fit(FRAME[:30], Y[:30]).partial_fit(FRAME[30:], Y[30:])
    np.testing.assert_allclose(rows.predict(FRAME), batches.predict(FRAME), rtol=1e-8)
    merged = SparseLinearRegression(missing="level").fit(FRAME[:30], Y[:30])
    merged.merge(SparseLinearRegression(missing="level").fit(FRAME[30:], Y[30:]))
    whole = SparseLinearRegression(missing="level").fit(FRAME, Y)
    np.testing.assert_allclose(merged.predict(FRAME), whole.predict(FRAME), rtol=1e-4)


def test_it_is_near_the_dense_model() -> None:
    names = ["km", "zone"]
    dense = BayesianLinearRegression(missing="level").fit(FRAME[names], Y)
    wide = SparseLinearRegression(missing="level").fit(FRAME[names], Y)
    np.testing.assert_allclose(wide.predict(FRAME[names]), dense.predict(FRAME[names]), atol=0.1)
    shown = wide.summary(base={"zone": "a"}).loc["zone=missing", "mean"]
    assert shown == pytest.approx(
        dense.summary(base={"zone": "a"}).loc["zone=missing", "mean"], abs=0.1
    )


def test_numbers_that_are_categories_may_be_missing() -> None:
    table = FRAME.assign(code=FRAME.code.where(FRAME.code > 0).astype("Int64"))[["km", "code"]]
    how: Any = {"categorical_features": ["code"], "missing": "level"}
    model = SparseLinearRegression(**how).fit(table[:40], Y[:40])
    model.partial_fit(FRAME[["km", "code"]][40:], Y[40:])
    assert set(model.feature_names_) == {"km", "code=0", "code=1", "code=2", "code=missing"}


def test_what_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"column 'zone' is missing in row \d+: drop the row, fill"
    ):
        SparseLinearRegression().fit(FRAME, Y)
    with pytest.raises(ValueError, match="missing is 'mean': it must be 'error' or 'level'"):
        SparseLinearRegression(missing="mean").fit(FILLED, Y)  # type: ignore[arg-type]
    holes = FILLED.assign(km=FILLED.km.where(FILLED.index != 3))
    model = DiagonalLinearRegression(missing="level").fit(FILLED, Y)
    for table in (holes, holes.to_dict("records")):
        with pytest.raises(ValueError, match=r"X is nan in row 3.*'km'"):
            model.partial_fit(table, Y)
    with pytest.raises(ValueError, match="'km' is None in row 0: leave the key out"):
        model.learn_one({"km": None, "zone": "a", "code": 1}, 1.0)
    with pytest.raises(
        ValueError, match=r"'zone' is None in row 0: leave the key out .* missing='level'"
    ):
        DiagonalLinearRegression().learn_one({"zone": None}, 1.0)
