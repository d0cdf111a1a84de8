"""Formulas: the same columns in every batch, and of rows to predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="needs PyArrow (posterity[cli])")
pd = pytest.importorskip("pandas", reason="needs pandas")
pytest.importorskip("formulaic", reason="needs formulaic (posterity[formulas])")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:formulaic")

from posterity import BayesianLinearRegression  # noqa: E402
from posterity.evaluation import progressive_validation  # noqa: E402
from posterity.io import TableError, open_formula  # noqa: E402

N = 20_000
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "x1": RNG.normal(size=N),
        "x2": RNG.uniform(size=N),
        "group": np.array(["a", "b", "c"])[RNG.integers(0, 3, size=N)],
    }
)
FRAME["y"] = FRAME.x1 + np.sin(6.0 * FRAME.x2) + (FRAME.group == "b") + 0.1 * RNG.normal(size=N)
FORMULA = "y ~ x1 + bs(x2, df=5, lower_bound=0, upper_bound=1) + C(group)"


def taught(batch_rows: int) -> tuple[Any, Any]:
    stream = open_formula(FRAME, FORMULA, batch_rows=batch_rows)
    model = BayesianLinearRegression()
    for X, y in stream:
        model.partial_fit(X, y)
    return model, stream


def test_splines_and_categories() -> None:
    model, stream = taught(4000)
    assert len(stream.feature_names) == 8
    assert model.feature_names_in_.tolist() == list(stream.feature_names)
    predictive = model.predict(stream.matrix(FRAME))
    assert np.mean(np.square(predictive - FRAME.y)) < 0.012


def test_terms_learn_from_the_first_batch_alone() -> None:
    stream = open_formula(FRAME, "y ~ center(x1)", batch_rows=10_000)
    (first, _), _ = stream
    np.testing.assert_allclose(first.iloc[:, 0], FRAME.x1[:10_000] - FRAME.x1[:10_000].mean())
    np.testing.assert_allclose(
        stream.matrix(FRAME[-5:]).iloc[:, 0], FRAME.x1[-5:] - FRAME.x1[:10_000].mean()
    )


def test_a_later_batch_beyond_the_knots_is_refused_with_its_reason() -> None:
    frame = pd.DataFrame({"x": np.arange(9000.0), "y": np.arange(9000.0)})
    stream = open_formula(frame, "y ~ bs(x, df=5)", batch_rows=100)
    with pytest.raises(
        TableError, match=r"no longer fits the formula .*extrapolation.*give columns"
    ):
        list(stream)


def test_progressive_validation() -> None:
    stream = open_formula(FRAME, FORMULA, batch_rows=4000)
    result = progressive_validation(BayesianLinearRegression(), stream)
    assert result.n_rows == N


def test_missing_values_are_left_out() -> None:
    holes = FRAME.copy()
    holes.loc[[3, 5], "x1"] = np.nan
    with pytest.raises(TableError, match="the data frame: row 3, term 'x1' is missing"):
        list(open_formula(holes, "y ~ x1"))
    stream = open_formula(holes, "y ~ x1", missing="skip")
    assert sum(len(y) for _, y in stream) == N - 2
    assert stream.n_skipped == 2


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ x1 +* x2", r"the formula 'y ~ x1 \+\* x2' can't be parsed"),
        ("x1 + x2", "has no target: write it as in 'y ~ x'"),
        ("y ~ x9", "the formula needs 'x9', which the table does not have; its columns are 'x1'"),
    ],
)
def test_formulas_that_are_refused(formula: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        open_formula(FRAME, formula)
