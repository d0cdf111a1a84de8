"""Groups that are copied before they change are those that were there at once."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from posterity import GroupedRegression
from posterity.files import dumps, loads
from posterity.posteriors import grouped
from posterity.posteriors._group_samples import LateBank, LateSample, sample_groups

RNG = np.random.default_rng(0)
GROUPS = RNG.integers(0, 40, size=300)
X = RNG.normal(size=(300, 2))
Y = X[:, 0] + 0.3 * GROUPS + RNG.normal(size=300)


def fitted() -> GroupedRegression:
    return GroupedRegression().fit(X[:200], Y[:200], groups=GROUPS[:200])


@pytest.mark.parametrize("most", [10, 1_000])
@pytest.mark.parametrize("step", [1, 7, 100])
def test_late_copies_are_those_of_the_moment(most: int, step: int) -> None:
    model = fitted()
    bank = model._posterior.bank
    now, half = sample_groups(bank, most), sample_groups(bank, most // 2)
    late = LateBank(bank, most)
    for first in range(200, 300, step):
        some = slice(first, first + step)
        late.keep(model.places(np.unique(GROUPS[some])).tolist())
        model.partial_fit(X[some], Y[some], groups=GROUPS[some])
    for sample, other in ((LateSample(late, most), now), (LateSample(late, most // 2), half)):
        one = sample.read()
        assert np.array_equal(one.rows, other.rows)
        assert np.array_equal(one.counts, other.counts)
        assert np.array_equal(one.residuals, other.residuals)
        assert one.is_whole == other.is_whole


def test_a_stream_predicts_as_with_copies_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "MOST_GROUPS", 16)
    monkeypatch.setattr(grouped, "STREAM_GROUPS", 8)
    late, at_once = fitted(), fitted()
    for i in range(200, 290):
        for model in (late, at_once):
            model.learn_one(X[i], Y[i], group=GROUPS[i])
        for sample in (at_once._posterior.sample, at_once._posterior.small_sample):
            assert sample is not None
            sample.read()
    assert late._posterior.sample is not None
    assert late._posterior.sample.left
    assert dumps(late) == dumps(at_once)
    for i in range(290, 300):
        at_once.learn_one(X[i], Y[i], group=GROUPS[i])
    expected = at_once.predict_distribution(X, groups=GROUPS)
    for twin in (pickle.loads(pickle.dumps(late)), loads(dumps(late)), late):
        for i in range(290, 300):
            twin.learn_one(X[i], Y[i], group=GROUPS[i])
        predicted = twin.predict_distribution(X, groups=GROUPS)
        assert np.array_equal(predicted.mean(), expected.mean())
