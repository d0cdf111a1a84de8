"""Expected rewards that are mixtures: all arms together say what each arm's distribution does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from posterity import BayesianLinearRegression
from posterity.bandits import Bandit, ThompsonSampling
from posterity.bandits.beliefs import Beliefs
from posterity.bandits.mixed import MixedBeliefs, make_beliefs
from posterity.distributions import _standard_t
from posterity.files import dumps, loads
from posterity.forgetting import Adaptive, Changepoint, Exponential


def make_bandit(model: Any, rows: int, arms: int = 2) -> Bandit:
    rng = np.random.default_rng(3)
    bandit = Bandit(model, arms=list(range(arms)), sharing="none", rng=1)
    for row in rng.normal(size=(rows, 2)):
        arm = int(rng.integers(arms))
        bandit = bandit.learn_one(row, arm, float(arm + row[0] + rng.normal()))
    return bandit


def read_each_arm(bandit: Bandit, X: Any) -> Beliefs:
    """The slow twin: a distribution for each arm."""
    models = bandit._arms.models  # type: ignore[attr-defined]
    arms = [model.predict_mean_distribution(X) for model in models]
    return Beliefs(arms, np.ones((len(X), len(models)), dtype=bool))


MODELS: dict[str, Callable[[], Any]] = {
    "adaptive": lambda: BayesianLinearRegression(forgetting=Adaptive()),
    "changepoint": lambda: BayesianLinearRegression(forgetting=Changepoint()),
    "plain": BayesianLinearRegression,
    "fading": lambda: BayesianLinearRegression(prior_precision=1.0, forgetting=Exponential(0.9)),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rows", [12, 60])
@pytest.mark.parametrize("contexts", [1, 5])  # one is read by the paths that learn rows
def test_all_arms_together_say_what_each_does(model: str, rows: int, contexts: int) -> None:
    bandit = make_bandit(MODELS[model](), rows)
    X = np.random.default_rng(0).normal(size=(contexts, 2))
    together, each = bandit.beliefs(X), read_each_arm(bandit, X)
    assert_allclose(together.mean, each.mean, rtol=1e-10, atol=1e-12)
    assert_allclose(together.std, each.std, rtol=1e-9)
    for level in (0.05, 0.5, 0.841, 0.999):
        assert_allclose(together.quantile(level), each.quantile(level), rtol=1e-7, atol=1e-9)
    assert_allclose(together.probability_best(), each.probability_best(), atol=1e-4)


def test_hills_far_apart_have_their_quantiles() -> None:
    table = np.array([[0.02, 0.5, 0.48], [3.0, 4.0, np.inf], [-40.0, 0.0, 90.0], [0.1, 1.0, 0.01]])
    beliefs = make_beliefs([table[:, :, None]], np.ones((1, 1), dtype=bool))
    assert isinstance(beliefs, MixedBeliefs)
    for level in (0.001, 0.019, 0.3, 0.519, 0.521, 0.841, 0.99):
        assert_allclose(beliefs.quantile(level), beliefs._apart().quantile(level), atol=1e-6)


@pytest.mark.parametrize("change", ["learn_one", "learn", "unlearn", "merge", "copy"])
def test_a_reading_is_that_of_today(change: str) -> None:
    bandit = make_bandit(BayesianLinearRegression(), 30)
    X = np.array([[0.5, -1.0]])
    bandit.beliefs(X)
    other = make_bandit(BayesianLinearRegression(), 7)
    if change == "learn_one":
        bandit = bandit.learn_one([1.0, 2.0], 1, 5.0)
    elif change == "learn":
        bandit = bandit.learn([[1.0, 2.0], [0.0, 1.0]], [0, 1], [5.0, 1.0])
    elif change == "unlearn":
        bandit = bandit.learn([[1.0, 2.0]], [0], [5.0])
        bandit.beliefs(X)
        bandit = bandit.unlearn([[1.0, 2.0]], [0], [5.0])
    elif change == "merge":
        bandit = bandit.merge(other)
    else:
        bandit = loads(dumps(bandit))
    assert_allclose(bandit.beliefs(X).mean, read_each_arm(bandit, X).mean, rtol=1e-10)


def test_arms_that_are_not_known_come_first() -> None:
    bandit = Bandit(BayesianLinearRegression(forgetting=Adaptive()), arms=["a", "b"], rng=0)
    bandit = bandit.learn_one([1.0], "a", 1.0).learn_one([2.0], "a", 1.5)
    assert bandit.beliefs([[1.0]]).unknown[0, 1]
    assert bandit.propensities([[1.0]])[0, 1] >= 0.5


def test_draws_and_ranking_work_as_of_single_distributions() -> None:
    bandit = make_bandit(BayesianLinearRegression(forgetting=Adaptive()), 40)
    bandit.policy = ThompsonSampling()
    decision = bandit.decide([0.3, 0.1], k=2)
    assert sorted(decision.arm) == [0, 1]
    assert 0.0 < decision.propensity <= 1.0


def test_a_quantile_takes_few_steps_however_narrow_an_arm_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An arm that had come to rounding kept all others for up to sixty steps."""
    narrow = np.array([[0.7, 0.3], [40.0, 9.0], [1e3, 1e3], [1e-6, 3e-6]])[:, :, None]
    wide = np.array([[0.99, 0.01], [5.0, 3.0], [0.0, 2.0], [1.0, 1e3]])[:, :, None]
    beliefs = make_beliefs([narrow, wide], np.ones((1, 2), dtype=bool))
    cdf, count = _standard_t.cdf, itertools.count()

    def count_steps(z: Any, df: Any) -> Any:
        next(count)
        return cdf(z, df)

    monkeypatch.setattr(_standard_t, "cdf", count_steps)
    found = beliefs.quantile(0.841)
    assert next(count) <= 12
    monkeypatch.undo()
    assert_allclose(found, beliefs._apart().quantile(0.841), rtol=1e-10)


@pytest.mark.parametrize("level", [0.001, 0.841, 0.999])
def test_a_quantile_may_lie_many_spreads_away(level: float) -> None:
    """Sixty steps that were no longer than the spread ended at half of a Cauchy's 99.9%."""
    heavy = np.array([[0.14, 0.17, 0.69], [1.0, 50.0, 50.0], [0.0, 0.1, -0.1], [1.25, 1.0, 1e-3]])
    rare = np.array([[0.99, 0.006, 0.004], [9.0, 9.0, 9.0], [-3.4, 6.7, 3.3], [2e-3, 7.0, 1.3]])
    beliefs = make_beliefs([heavy[:, :, None], rare[:, :, None]], np.ones((1, 2), dtype=bool))
    assert isinstance(beliefs, MixedBeliefs)
    weights, df, loc, scale = beliefs.tables[:, :, 0]
    z = (beliefs.quantile(level)[0] - loc) / scale
    assert_allclose((weights * _standard_t.cdf(z, df)).sum(axis=0), level, rtol=1e-5)


def test_equal_rewards_of_equal_contexts_are_stored() -> None:
    """They leave no noise, and an evidence without end: such a file could not be read."""
    bandit = Bandit(BayesianLinearRegression(forgetting="adaptive"), ["a", "b"], rng=0)
    for _ in range(2):
        for arm in "ab":
            bandit.learn([0.5], arm, 1.0)
    chances = bandit.propensities([0.5])
    assert_allclose(loads(dumps(bandit)).propensities([0.5]), chances)
