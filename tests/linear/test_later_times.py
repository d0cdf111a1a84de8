"""Predictions for a later time: what is known fades while no rows come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
    load,
    save,
)
from posterity.forgetting import (
    Adaptive,
    Changepoint,
    Exponential,
    Forgetting,
    RandomWalk,
    Stabilized,
    Window,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
Y = X @ [1.0, 2.0] + rng.normal(size=120)
TIMES = np.arange(120.0)
NEW = rng.normal(size=(4, 2))
GIVEN: dict[str, Any] = {"prior_precision": 1.0}


def fitted(forgetting: Any, **settings: Any) -> BayesianLinearRegression:
    return BayesianLinearRegression(forgetting=forgetting, **settings).fit(X, Y, times=TIMES)


@pytest.mark.parametrize(
    "forgetting",
    [
        None,
        Exponential(0.98),
        RandomWalk(0.01),
        Window(duration=40.0),
        Window(size=40),
        Changepoint(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_it_is_what_a_stream_predicts_at_that_time(forgetting: Forgetting | None) -> None:
    model = fitted(forgetting, **GIVEN)
    later = model.predict_distribution(NEW[:1], times=130.0)
    stream = fitted(forgetting, **GIVEN).predict_then_learn(NEW[:1], [0.0], times=[130.0])
    assert later.mean() == pytest.approx(stream.mean(), rel=1e-9)
    assert later.std() == pytest.approx(stream.std(), rel=1e-9)


@pytest.mark.parametrize(
    "forgetting", [Stabilized(0.98), RandomWalk(0.01), Adaptive(), Changepoint()]
)
def test_intervals_widen_with_time_and_reads_change_nothing(forgetting: Forgetting) -> None:
    model = fitted(forgetting)
    before = model.predict(NEW, return_std=True)
    widths = [np.ptp(model.predict_interval(NEW, times=t), axis=1) for t in (119.0, 125.0, 219.0)]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    assert widths[2].max() < 60.0  # not as if all were forgotten
    assert np.array_equal(before, model.predict(NEW, return_std=True))


def test_at_the_time_of_the_last_row_nothing_is_different() -> None:
    model = fitted(Stabilized(0.98))
    assert np.array_equal(model.predict_interval(NEW), model.predict_interval(NEW, times=119.0))


@pytest.mark.parametrize(
    "forgetting",
    [Changepoint(), Adaptive(), Adaptive((1.0, 0.9)), Stabilized(0.98), Window(duration=40.0)],
)
def test_only_the_time_since_the_last_row_counts(forgetting: Forgetting, tmp_path: Path) -> None:
    model = fitted(forgetting, **GIVEN)
    for times in ([119.0, 119.0], [130.0, 150.0], [150.0, 150.0], [150.0, 130.0]):
        then = model.at(times[0]).at(times[1])
        assert np.array_equal(then.predict_interval(NEW), model.at(times[1]).predict_interval(NEW))
    waited, times = model.at(150.0), [120.0, 130.0, 150.0, 160.0]
    assert np.array_equal(waited.predict(NEW, times=times), model.predict(NEW, times=times))
    width = waited.predict_interval(NEW)
    save(waited, tmp_path / "waited.safetensors")
    others = waited, load(tmp_path / "waited.safetensors"), waited.at(160.0)
    predictive = model.predict_then_learn(NEW[:1], [1.0], times=[170.0])
    for other in others:
        if other is not others[2]:
            assert np.array_equal(other.predict_interval(NEW), width)
        told = other.predict_then_learn(NEW[:1], [1.0], times=[170.0])
        assert told.std() == pytest.approx(predictive.std(), rel=1e-12)
    one_by_one = fitted(forgetting, **GIVEN).at(150.0).learn_one(NEW[0], 1.0, time=170.0)
    for other in (*others, one_by_one):
        assert other.predict_interval(NEW) == pytest.approx(model.predict_interval(NEW), rel=1e-9)
        assert other.coef_ == pytest.approx(model.coef_, rel=1e-9)


def test_under_changepoint_a_read_without_a_time_is_one_unit_later() -> None:
    model = fitted(Changepoint())
    width = np.ptp(model.predict_interval(NEW), axis=1)
    assert width == pytest.approx(np.ptp(model.predict_interval(NEW, times=120.0), axis=1))
    assert (width > np.ptp(model.predict_interval(NEW, times=119.0), axis=1)).all()


def test_models_are_merged_at_one_time() -> None:
    first, second = fitted(Stabilized(0.98)), fitted(Stabilized(0.98))
    both = first.at(150.0).merge(second.at(150.0))
    assert both.n_effective_ == pytest.approx(2.0 * first.at(150.0).n_effective_)
    assert both.n_effective_ == both.at(150.0).n_effective_
    both.learn_one(NEW[0], 1.0, time=151.0)
    assert both.n_effective_ == pytest.approx(2.0 * first.at(151.0).n_effective_ + 1.0)


def test_each_row_at_its_time() -> None:
    model, frame = fitted(RandomWalk(0.01), **GIVEN), pd.DataFrame(NEW)
    times = [120.0, 120.0, 150.0, 200.0]
    for rows in (NEW, frame, NEW.tolist()):
        means, sds = model.predict(rows, return_std=True, times=times)
        distribution = model.predict_distribution(rows, times=times)
        ends = model.predict_interval(rows, 0.9, of="mean", times=times)
        for i, time in enumerate(times):
            then = model.at(time)
            assert means[i] == pytest.approx(then.predict_one(NEW[i]))
            assert sds[i] == pytest.approx(then.predict_distribution_one(NEW[i]).std())
            assert distribution[i].std() == pytest.approx(sds[i])
            assert ends[i] == pytest.approx(then.predict_interval_one(NEW[i], 0.9, of="mean"))


def test_other_models_at_a_later_time() -> None:
    labels = (Y > 0.0).astype(int)
    model = BayesianLogisticRegression(forgetting="stabilized:0.95").fit(X, labels, times=TIMES)
    now, later = (one.predict_interval(NEW) for one in (model, model.at(160.0)))
    assert (np.ptp(later, axis=1) > np.ptp(now, axis=1)).all()
    counts = rng.poisson(np.exp(0.5 * X[:, 0]))
    model = BayesianPoissonRegression(forgetting=Adaptive()).fit(X, counts, times=TIMES)
    assert (
        model.at(160.0).predict_distribution(NEW).std() > model.predict_distribution(NEW).std()
    ).all()


@pytest.mark.parametrize(
    "settings", [{}, {"prior_precision": 1.0}, {"fit_intercept": False, "prior_precision": 0.0}]
)
def test_regimes_that_begin_with_nothing_refuse_later_times(settings: dict[str, Any]) -> None:
    labels, counts = (Y > 0.0).astype(int), rng.poisson(np.exp(0.5 * X[:, 0]))
    for kind, y in (
        (BayesianLogisticRegression, labels),
        (BayesianPoissonRegression, counts),
        (BayesianRobustRegression, Y),
    ):
        model = kind(forgetting=Changepoint(max_runs=3), **settings)
        model.fit(X[:20], y[:20], times=TIMES[:20])
        with pytest.raises(ValueError, match="times= is refused under Changepoint where a new"):
            model.at(30.0)
        assert np.isfinite(model.predict_distribution(NEW).logpdf(y[:4])).all()


def test_regimes_of_proper_priors_widen_with_time() -> None:
    y = (Y > 0.0).astype(int)
    model = BayesianLogisticRegression(
        forgetting=Changepoint(max_runs=3), prior_precision=1.0, fit_intercept=False
    ).fit(X[:20], y[:20], times=TIMES[:20])
    widths = [np.ptp(model.at(t).predict_interval(NEW), axis=1) for t in (20.0, 60.0, 1e6)]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    assert model.at(1e6).posterior_.std() == pytest.approx([1.0, 1.0])
    assert model.at(60.0).at(1e6).predict_proba(NEW) == pytest.approx(np.full((4, 2), 0.5))


def test_what_can_not_be_told_is_refused() -> None:
    model = fitted(Stabilized(0.98))
    for one in (model, model.at(150.0)):
        with pytest.raises(
            ValueError, match=r"time is 100\.0: that is before the last row, at 119"
        ):
            one.predict(NEW, times=100.0)
    with pytest.raises(ValueError, match="must not decrease"):
        model.predict(NEW, times=[130.0, 125.0, 140.0, 150.0])
    with pytest.raises(ValueError, match=r"times has shape \(2,\): expected \(4,\)"):
        model.predict_interval(NEW, times=[130.0, 140.0])
    without = BayesianLinearRegression(forgetting=Stabilized(0.98)).fit(X, Y)
    with pytest.raises(ValueError, match="the rows learned came without times"):
        without.predict(NEW, times=130.0)
    robust = BayesianRobustRegression(forgetting=Stabilized(0.98)).fit(X, Y, times=TIMES)
    with pytest.raises(ValueError, match="here a prediction is for the time of the last row"):
        robust.at(130.0)
    several = BayesianLinearRegression().fit(X, np.column_stack([Y, Y]), times=TIMES)
    with pytest.raises(ValueError, match="times= is for predictions of one target"):
        several.at(130.0)
