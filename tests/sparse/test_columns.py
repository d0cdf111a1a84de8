"""Frames whose columns are not those that were learned."""

from __future__ import annotations

import numpy as np
import pytest

from posterity.files import dumps, loads
from posterity.sparse import DiagonalLogisticRegression, SparseLogisticRegression

MODELS = [SparseLogisticRegression, DiagonalLogisticRegression]


def frame(n: int = 400) -> tuple[object, np.ndarray]:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    shops = rng.integers(0, 20, n)
    X = pandas.DataFrame({"price": rng.normal(size=n), "shop": [f"s{shop}" for shop in shops]})
    return X, (rng.random(n) < 0.3 + 0.02 * shops).astype(int)


@pytest.mark.parametrize("model", MODELS)
def test_a_frame_that_lacks_a_column_is_refused(model: type) -> None:
    X, y = frame()
    fitted = model().fit(X, y)  # type: ignore[call-arg]
    expected = fitted.predict_proba(X)
    for lacking, near in (
        (X.drop(columns="price"), ""),  # type: ignore[attr-defined]
        (X.rename(columns={"price": "Price"}), "; did you mean 'Price'"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(ValueError, match=f"X lacks the column 'price', .*{near}"):
            fitted.predict_proba(lacking)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
    reordered = X[["shop", "price"]]  # type: ignore[index]
    np.testing.assert_allclose(fitted.predict_proba(reordered), expected, rtol=1e-12)
    assert fitted.predict_proba([{"shop": "s3"}]).shape == (1, 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_file_says_what_the_model_said_bit_for_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, 60, 1500), rng.integers(0, 300, 1500)], axis=1).astype(str)
    y = (rng.random(1500) < 0.4).astype(int)
    model = SparseLogisticRegression().fit(X, y)
    read = loads(dumps(model))
    np.testing.assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    more, labels = X[::-1], y[::-1]
    later = loads(dumps(model)).partial_fit(more, labels)
    np.testing.assert_array_equal(loads(dumps(later)).predict_proba(X), later.predict_proba(X))


@pytest.mark.parametrize("model", MODELS)
def test_a_column_of_a_frame_keeps_its_kind(model: type) -> None:
    X, y = frame()
    fitted = model().fit(X, y)  # type: ignore[call-arg]
    expected = fitted.predict_proba(X)
    for wrong, named in (
        (X.assign(shop=1), "'shop' holds numbers now, and held levels"),  # type: ignore[attr-defined]
        (X.assign(price="low"), "'price' holds levels now, and held numbers"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(ValueError, match=named):
            fitted.predict_proba(wrong)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected)
