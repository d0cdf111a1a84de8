"""Keys of every kind and source, and what bad input gets."""

from __future__ import annotations

import datetime
import re
import uuid
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from posterity import BayesianLinearRegression, GroupedRegression
from posterity.files import ModelFileError, dumps, loads
from posterity.forgetting import Window

RNG = np.random.default_rng(0)
N = 40
CODES = np.concatenate([np.arange(5), RNG.integers(0, 5, size=N - 5)])
X = RNG.normal(size=(N, 2))
Y = X @ [1.0, 2.0] + CODES + 0.1 * RNG.normal(size=N)
DAYS = np.datetime64("2024-02-27") + CODES
WORDS = np.array(["ape", "bee", "cat", "dog", "eel"])[CODES]
PLAIN = GroupedRegression().fit(X, Y, groups=CODES)


def learned(groups: Any) -> GroupedRegression:
    model = GroupedRegression().fit(X, Y, groups=groups)
    assert np.array_equal(model.coef_, PLAIN.coef_)
    again = loads(dumps(model))
    assert again.groups_.tolist() == model.groups_.tolist()
    return model


@pytest.mark.parametrize(
    "groups",
    [
        CODES,
        CODES.astype(np.uint8),
        CODES.astype(np.float32),
        CODES + 0.5,
        CODES * 10**17,
        CODES == 0,
        WORDS,
        WORDS.astype(object),
        WORDS.tolist(),
        CODES.tolist(),
        DAYS,
        DAYS.astype("datetime64[ns]"),
        DAYS.tolist(),
        [datetime.datetime(2024, 2, 27, tzinfo=datetime.UTC)] * N,
        list(zip(WORDS.tolist(), CODES.tolist(), strict=True)),
        np.column_stack([CODES, CODES % 2]),
        [(int(code), None) if code else "nothing" for code in CODES],
    ],
    ids=lambda groups: f"{type(groups).__name__} {np.asarray(groups, dtype=object).ravel()[0]!r}",
)
def test_keys_are_anything_hashable(groups: Any) -> None:
    listed = list(groups)
    if any(isinstance(key, tuple) and None in key for key in listed):
        with pytest.raises(ValueError, match="the key in row 1 of groups is missing"):
            GroupedRegression().fit(X, Y, groups=groups)
        return
    model = GroupedRegression().fit(X, Y, groups=groups)
    distinct = len({str(key) for key in listed})
    assert model.n_groups_ == distinct
    assert len(model.groups_) == distinct
    if distinct == 5:
        learned(groups)
    key = tuple(listed[3].tolist()) if isinstance(listed[3], np.ndarray) else listed[3]
    slot = int(np.flatnonzero(model.counts_ == model.model_of(key).n_observations_)[0])
    assert model.counts_[slot] > 0
    one = model.predict_one(X[0], group=key)
    assert one == pytest.approx(model.model_of(key).predict(X[:1])[0])


def test_dates_are_the_same_from_every_source() -> None:
    model = learned(DAYS)
    assert model.groups_.dtype == np.dtype("datetime64[us]")
    day = datetime.date(2024, 3, 1)
    expected = model.model_of(np.datetime64("2024-03-01")).coef_
    assert np.array_equal(model.model_of(day).coef_, expected)
    assert np.array_equal(model.model_of(datetime.datetime(2024, 3, 1)).coef_, expected)


def test_columns_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "code": CODES, "word": WORDS, "day": DAYS})
    frame["kind"] = pd.Categorical(WORDS, categories=sorted(set(WORDS), reverse=True))
    frame["zoned"] = frame["day"].dt.tz_localize("UTC")
    frame["nullable"] = frame["code"].astype("Int64")
    for by in ("code", "word", "day", "kind", "zoned", "nullable", ["word", "day"]):
        names = [by] if isinstance(by, str) else by
        model = GroupedRegression(by=by).fit(frame[["a", "b", *names]], Y)
        assert np.array_equal(model.coef_, PLAIN.coef_), by
        assert model.feature_names_in_.tolist() == ["a", "b"]
        assert model.predict(frame[[*names, "a", "b"]])[0] == PLAIN.predict(X, groups=CODES)[0]
        assert loads(dumps(model)).groups_.tolist() == model.groups_.tolist()
        learned(frame[names[0]])
    frame.loc[7, "word"] = None
    with pytest.raises(ValueError, match="the key in row 7 of word is missing: drop the row"):
        GroupedRegression(by="word").fit(frame[["a", "b", "word"]], Y)


def test_columns_of_polars_and_arrow() -> None:
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"a": X[:, 0], "b": X[:, 1], "code": CODES, "word": WORDS.tolist(), "day": DAYS}
    frame = pl.DataFrame(columns)
    frame = frame.with_columns(kind=frame["word"].cast(pl.Categorical))
    table = frame.to_arrow()
    for by in ("code", "word", "day", "kind", ["kind", "code"]):
        names = [by] if isinstance(by, str) else by
        for data in (frame, table, pa.table(table).combine_chunks()):
            model = GroupedRegression(by=by).fit(data.select(["a", "b", *names]), Y)
            assert np.array_equal(model.coef_, PLAIN.coef_)
            assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="the key in row 1 of word is missing"):
        GroupedRegression(by="word").fit(pl.DataFrame({"a": [1.0, 2], "word": ["x", None]}), [1, 2])


def test_single_rows_bring_their_key() -> None:
    model = GroupedRegression(by=["shop", "item"])
    for i in range(N):
        row = {"price": X[i, 0], "rain": X[i, 1], "shop": WORDS[i], "item": int(CODES[i])}
        model.learn_one(row, Y[i])
    assert np.allclose(model.coef_, PLAIN.coef_, rtol=1e-4)
    assert model.predict_one(row) == pytest.approx(
        PLAIN.predict_one(X[-1], group=CODES[-1]), rel=1e-4
    )
    assert model.predict_one({**row, "item": 77}) == pytest.approx(
        PLAIN.predict_one(X[-1], group=77), rel=1e-3
    )
    assert model.groups_[0] == ("ape", 0)
    model.learn_one(row, 1.0, weight=0.0)
    assert model.n_observations_ == N


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: GroupedRegression().fit(X, Y, groups=CODES[:3]),
            "groups has 3 keys, but X has 40",
        ),
        (
            lambda: GroupedRegression().fit(X, Y, groups=np.where(CODES == 3, np.nan, 1.0)),
            "the key in row 3 of groups is missing: drop the row, or give it a key of its own",
        ),
        (
            lambda: GroupedRegression().fit(X, Y, groups=[None] * N),
            "the key in row 0 of groups is missing",
        ),
        (
            lambda: GroupedRegression(by="shop").fit(X, Y),
            "by is 'shop', but X has no columns with names: give a data frame, or groups=",
        ),
        (
            lambda: PLAIN.predict(X),
            "earlier rows had keys: give groups= for these as well",
        ),
        (
            lambda: PLAIN.predict(X, groups=WORDS),
            "the keys are text, but the learned keys are numbers: give keys of one type",
        ),
        (lambda: PLAIN.unlearn(X[:1], Y[:1], groups=[99]), "row 0 is of the group 99, which"),
        (
            lambda: PLAIN.unlearn(X[:1], Y[:1] + 5.0, groups=CODES[:1]),
            "row 0, or another row of its group, was never learned",
        ),
        (lambda: PLAIN.evict(), "evict needs either idle or groups"),
        (
            lambda: GroupedRegression(prior_mean="auto").fit(X, Y),
            "prior_mean is 'auto': it must be 'shared' or numbers",
        ),
        (
            lambda: GroupedRegression(prior_precision=-1.0).fit(X, Y),
            "prior_precision is negative",
        ),
        (
            lambda: PLAIN.merge(GroupedRegression(noise_precision=1.0).fit(X, Y, groups=CODES)),
            "the models differ in prior, noise, forgetting or intercept",
        ),
        (
            lambda: PLAIN.merge(GroupedRegression().fit(X[:, :1], Y, groups=CODES)),
            "the other model has 1 features, this one 2",
        ),
        (
            lambda: PLAIN.merge(GroupedRegression().fit(X, Y, groups=WORDS)),
            "the keys are text, but the learned keys are numbers",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_and_changes_nothing(call: Any, message: str) -> None:
    before = dumps(PLAIN)
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
    assert dumps(PLAIN) == before


@pytest.mark.parametrize("method", ["partial_fit", "predict_then_learn", "unlearn"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.nan, "Input X contains NaN in row 2, column 1"),
        (1e200, "beyond 1e.75 products overflow"),
    ],
)
def test_unusable_rows_change_nothing(method: str, value: float, message: str) -> None:
    before = dumps(PLAIN)
    bad = X.copy()
    bad[2, 1] = value
    with pytest.raises(ValueError, match=message):
        getattr(PLAIN, method)(bad, Y, groups=CODES + 50 * (method != "unlearn"))
    assert dumps(PLAIN) == before


def test_unusable_single_rows_change_nothing() -> None:
    before = dumps(PLAIN)
    for x, y, message in [
        ([np.nan, 1.0], 1.0, "x in column 0 is not finite"),
        ([1.0, 1.0], np.nan, "Input y contains NaN in row 0"),
        ([1.0, 1e200], 1.0, "beyond 1e.75|too large"),
    ]:
        for group in (1, 77):
            with pytest.raises(ValueError, match=message):
                PLAIN.learn_one(x, y, group=group)
    assert dumps(PLAIN) == before


def test_other_refusals() -> None:
    with pytest.raises(NotFittedError, match="has learned nothing yet"):
        GroupedRegression().predict(X)
    with pytest.raises(TypeError, match="the key in row 0 of groups is a list: keys must be such"):
        GroupedRegression().fit(X, Y, groups=[[1]] * N)
    with pytest.raises(TypeError, match=r"forgetting is Window.*must be None, Exponential or Stab"):
        GroupedRegression(forgetting=Window(size=3)).fit(X, Y)
    with pytest.raises(KeyError, match="no row of the group 99 was learned"):
        PLAIN.model_of(99)
    with pytest.raises(TypeError, match="by is 3: it must be the name of a column"):
        GroupedRegression(by=3).fit(X, Y)
    keys = [uuid.UUID(int=int(code)) for code in CODES]
    with pytest.raises(ModelFileError, match=r"is a uuid\.UUID"):
        dumps(GroupedRegression().fit(X, Y, groups=keys))


def test_a_frame_without_the_key_column_says_so() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0]})
    with pytest.raises(ValueError, match="X has no column 'shop' to group by: name one of 'a'"):
        GroupedRegression(by="shop").fit(frame, Y)
    with pytest.raises(ValueError, match="the keys are in the column 'a' already"):
        GroupedRegression(by="a").fit(frame, Y, groups=CODES)


def test_rows_without_keys_are_one_group() -> None:
    model = GroupedRegression(prior_mean=0.0, prior_precision=1.0).fit(X, Y)
    plain = BayesianLinearRegression(prior_precision=1.0).fit(X, Y)
    assert np.allclose(model.predict(X), plain.predict(X))
    assert np.allclose(model.predict_interval(X), plain.predict_interval(X))
    with pytest.raises(ValueError, match="the keys are numbers, but the learned keys are none"):
        model.partial_fit(X, Y, groups=CODES)
