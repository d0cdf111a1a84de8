"""Labels come back as the type that went in; what is no label and no count is refused."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from posterity import (
    BayesianGeneralizedLinear,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    GroupedRegression,
)
from posterity.likelihoods import NegativeBinomial, Poisson
from posterity.sparse import DiagonalPoissonRegression, SparsePoissonRegression

X = np.random.default_rng(0).normal(size=(8, 2))
TRUE, WHOLE, TEXT = [True, False] * 4, [3, 5] * 4, ["no", "yes"] * 4
LABELS: dict[str, tuple[Any, type]] = {
    "truth values": (TRUE, bool),
    "an array of them": (np.array(TRUE), bool),
    "objects": (np.array(TRUE, dtype=object), bool),
    "boolean": (pd.Series(TRUE, dtype="boolean"), bool),
    "a frame": (pd.DataFrame({"y": pd.Series(TRUE, dtype="boolean")}), bool),
    "bool[pyarrow]": (pd.Series(TRUE, dtype="bool[pyarrow]"), bool),
    "categories of truth values": (pd.Series(TRUE, dtype="category"), bool),
    "truth values of Polars": (pl.Series(TRUE), bool),
    "truth values of Arrow": (pa.array(TRUE), bool),
    "whole numbers": (WHOLE, int),
    "Int64": (pd.Series(WHOLE, dtype="Int64"), int),
    "int64[pyarrow]": (pd.Series(WHOLE, dtype="int64[pyarrow]"), int),
    "objects that are numbers": (np.array(WHOLE, dtype=object), int),
    "categories of Int64": (pd.Series(pd.array(WHOLE, dtype="Int64")).astype("category"), int),
    "whole numbers of Polars": (pl.Series(WHOLE), int),
    "whole numbers of Arrow": (pa.chunked_array([WHOLE]), int),
    "floats": (np.array(WHOLE, dtype=float), float),
    "Float64": (pd.Series(WHOLE, dtype="Float64"), float),
    "text": (TEXT, str),
    "text of pandas": (pd.Series(TEXT), str),
    "string": (pd.Series(TEXT, dtype="string"), str),
    "string[pyarrow]": (pd.Series(TEXT, dtype="string[pyarrow]"), str),
    "categories": (pd.Series(TEXT, dtype="category"), str),
    "text of Polars": (pl.Series(TEXT), str),
    "categories of Polars": (pl.Series(TEXT, dtype=pl.Categorical), str),
    "an enumeration": (pl.Series(TEXT, dtype=pl.Enum(["no", "yes"])), str),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_as_they_went_in(name: str) -> None:
    labels, kind = LABELS[name]
    if name != "a frame":
        one = next(iter(labels))
        one = one.as_py() if hasattr(one, "as_py") else one
        single = BayesianLogisticRegression().learn_one(X[0], one)
        assert isinstance(single.predict_one(X[0]), kind)
    for way in ("fit", "partial_fit"):
        model = getattr(BayesianLogisticRegression(), way)(X, labels)
        assert all(type(label) is kind for label in model.classes_.tolist())
        assert all(type(label) is kind for label in model.predict(X).tolist())
        assert type(model.predict_one(X[0])) is kind
        assert {type(label) for label in model.predict_proba_one(X[0])} == {kind}
        assert model.predict_then_learn(X, labels).classes.dtype == model.classes_.dtype


def test_labels_keep_the_type_that_came_first() -> None:
    model = BayesianLogisticRegression().fit(X, TRUE)
    model.partial_fit(X, [0, 1] * 4).learn_one(X[0], 1.0)
    assert model.classes_.tolist() == [False, True]
    assert model.classes_.dtype == bool
    floats = BayesianLogisticRegression().fit(X, [0.0, 1.0] * 4)
    assert floats.partial_fit(X, np.array([0.0, 1.0] * 4, dtype=object)).classes_.dtype == float
    with pytest.raises(ValueError, match=r"labels like \['no'\], but earlier labels are like"):
        floats.partial_fit(X, TEXT)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.Series([True, None] * 4, dtype="boolean"), "y contains NaN in row 1"),
        (pd.Series(["a", None] * 4, dtype="category"), "y contains NaN in row 1"),
        (pl.Series([True, None] * 4), "y contains None in row 1"),
        (np.ma.array(WHOLE, mask=[0, 0, 1, 0, 0, 0, 0, 0]), "y is masked in row 2"),
        (["a", 1] * 4, "y mixes text and numbers"),
        ([10**30, 1] * 4, "whole numbers beyond 64 bits"),
        (pd.Series(pd.date_range("2024", periods=8)), "of dates make text"),
        ([datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)] * 4, "in row 0: .* of dates make"),
        ([0.5, 1.0] * 4, "y is 0.5 in row 0"),
    ],
)
def test_what_is_no_label(labels: Any, message: str) -> None:
    model = BayesianLogisticRegression().fit(X, TRUE)
    for way in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=message):
            way(X, labels)
    assert model.classes_.tolist() == [False, True]


COUNTERS = [
    BayesianPoissonRegression,
    BayesianNegativeBinomialRegression,
    lambda: BayesianGeneralizedLinear(Poisson()),
    lambda: BayesianGeneralizedLinear(NegativeBinomial(0.5)),
    DiagonalPoissonRegression,
    SparsePoissonRegression,
]


@pytest.mark.parametrize("make", COUNTERS)
@pytest.mark.parametrize("value", [2.5, -1.0, 2.0**54])
def test_fractions_are_no_counts(make: Any, value: float) -> None:
    counts = np.arange(8.0)
    model = make().fit(X, counts)
    before = model.predict(X)
    bad = np.where(counts == 3.0, value, counts)
    for way in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=r"y in row 3 is .*: a count must be a whole number"):
            way(X, bad)
    with pytest.raises(ValueError, match="a rate the rate times its exposure, with exposure="):
        model.learn_one(X[0], value)
    assert np.array_equal(model.predict(X), before)


def test_averages_are_given_as_sums() -> None:
    """What stood in for fractions: three rows of mean 7/3 are 7 events of exposure 3."""
    rows = np.repeat(X[:4], 3, axis=0)
    counts = np.random.default_rng(1).poisson(3.0, size=12)
    each = BayesianPoissonRegression(prior_precision=1.0).fit(rows, counts)
    sums = counts.reshape(4, 3).sum(axis=1)
    together = BayesianPoissonRegression(prior_precision=1.0).fit(X[:4], sums, exposure=3.0)
    np.testing.assert_allclose(each.coef_, together.coef_, rtol=1e-6)


def test_groups_that_floats_cannot_tell_apart() -> None:
    keys = np.array([2.0**53, 2.0**53 + 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"key in row 0 .*9007199254740992 as a float"):
        GroupedRegression().partial_fit(X[:4], np.arange(4.0), groups=keys)
    with pytest.raises(ValueError, match="as whole numbers or text"):
        GroupedRegression().learn_one(X[0], 1.0, group=2.0**53)
    whole = [2**53, 2**53 + 1, 1, 1]
    assert len(GroupedRegression().partial_fit(X[:4], np.arange(4.0), groups=whole).counts_) == 3
    masked = np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0])
    with pytest.raises(ValueError, match="the key in row 1 of groups is missing"):
        GroupedRegression().partial_fit(X[:4], np.arange(4.0), groups=masked)
