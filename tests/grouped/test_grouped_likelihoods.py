"""Groups of counts and labels, and under any likelihood."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from posterity import GroupedRegression
from posterity.bandits.sharing import make_arms
from posterity.files import dumps, loads
from posterity.forgetting import Exponential
from posterity.likelihoods import (
    Bernoulli,
    Gamma,
    Gaussian,
    LaplaceNoise,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from posterity.posteriors import _group_sites

Array = np.ndarray
SEEDS = st.integers(0, 10**6)
LEVEL = 0.9


def problem(
    seed: int, groups: int = 12, each: int = 6, kind: str = "poisson"
) -> tuple[Array, Array, dict[str, Any]]:
    """Rows of groups, shuffled: counts with exposures, or labels."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.repeat(np.arange(groups), each))
    X = rng.normal(size=(len(keys), 1))
    level = rng.normal(0.5, 0.7, size=groups)
    eta = level[keys] + 0.3 * X[:, 0]
    if kind == "bernoulli":
        return X, (rng.random(len(eta)) < expit(eta)).astype(float), {"groups": keys}
    hours = rng.uniform(0.5, 3.0, size=len(keys))
    return X, rng.poisson(hours * np.exp(eta)).astype(float), {"groups": keys, "exposure": hours}


def some(how: dict[str, Any], places: Any) -> dict[str, Any]:
    return {name: values[places] for name, values in how.items()}


def learned(
    kind: str, X: Array, y: Array, how: dict[str, Any], places: Any = slice(None)
) -> GroupedRegression:
    return GroupedRegression(likelihood=kind).fit(X[places], y[places], **some(how, places))


def distance(one: GroupedRegression, other: GroupedRegression, keys: Array | None = None) -> float:
    """Largest difference of etas, in their standard deviations, and of the logs of these."""
    keys = np.append(one.groups_, 999) if keys is None else keys
    X = np.random.default_rng(0).normal(size=(len(keys), 1))
    ends = []
    for model in (one, other):
        expected = model.predict_mean_distribution(X, groups=keys)
        ends.append((expected.base.mean(), expected.base.std()))
    (mean, sd), (its, others) = ends
    return float(max(np.max(np.abs(mean - its) / sd), np.max(np.abs(np.log(sd / others)))))


# ---- the truth -----------------------------------------------------------------------------------


def integrate_group(
    likelihood: Likelihood, X: Array, y: Array, mean: Array, precision: Array
) -> tuple[Array, Array, float]:
    """Mean and sd of two coefficients of one group by quadrature, and its log evidence."""
    axis = np.linspace(-5.0, 5.0, 301)
    sd = precision**-0.5
    w = np.stack(np.meshgrid(*(mean[:, None] + sd[:, None] * axis), indexing="ij"), axis=-1)
    log = -0.5 * np.sum(precision * np.square(w - mean), axis=-1)
    log += 0.5 * np.sum(np.log(precision)) - np.log(2.0 * np.pi)
    for x, target in zip(X, y, strict=True):
        log += likelihood.log_density(target, w @ x)
    share = np.exp(log - log.max())
    volume = np.prod(sd) * (axis[1] - axis[0]) ** 2
    evidence = float(log.max() + np.log(share.sum() * volume))
    share = share / share.sum()
    centre = np.einsum("ij,ijk->k", share, w)
    spread = np.sqrt(np.einsum("ij,ijk->k", share, np.square(w - centre)))
    return centre, spread, evidence


@pytest.mark.parametrize(
    ("likelihood", "off", "wider"),
    [(Poisson(), 0.03, 0.02), (Bernoulli(), 0.03, 0.03), (NegativeBinomial(0.5), 0.03, 0.03)],
)
def test_effects_are_those_of_quadrature(likelihood: Any, off: float, wider: float) -> None:
    """Twenty groups of six rows, intercept and slope under a prior that is given."""
    rng, groups = np.random.default_rng(3), np.repeat(np.arange(20), 6)
    X = np.column_stack([np.ones(120), rng.normal(size=120)])
    mean, precision = np.array([0.5, 0.3]), np.array([2.0, 8.0])
    w = mean + rng.normal(size=(20, 2)) * precision**-0.5
    eta = np.sum(X * w[groups], axis=1)
    y = likelihood.predictive(eta, np.zeros(120)).rvs(random_state=rng)
    model = GroupedRegression(
        prior_mean=mean, prior_precision=precision, fit_intercept=False, likelihood=likelihood
    ).fit(X, y, groups=groups)
    table = model.summary(LEVEL)
    total = 0.0
    for group in range(20):
        mine, rows = table[table["group"] == group], groups == group
        centre, spread, evidence = integrate_group(likelihood, X[rows], y[rows], mean, precision)
        assert np.max(np.abs(mine["mean"] - centre) / spread) < off
        assert np.max(np.abs(np.log(mine["sd"] / spread))) < wider
        total += evidence
    assert model.log_evidence_ == pytest.approx(total, abs=0.01 * 20)


def draw_by_markov_chain(
    model: GroupedRegression, X: Array, y: Array, groups: Array, size: int
) -> tuple[Array, Array]:
    """Draws of means over groups and of groups' coefficients given D, by Gibbs and Metropolis."""
    rng, n_groups = np.random.default_rng(0), model.n_groups_
    root = model._posterior.learn_exact_prior().prior.root
    spread = np.linalg.inv(root)  # spread spread' = D
    precision, rows = root.T @ root, np.column_stack([np.ones(len(X)), X])
    w = np.column_stack([model.intercept_, model.coef_])
    sizes = 0.4 * np.sqrt(np.diag(spread @ spread.T))
    draws_of_mean, draws = [], []

    def log_likelihood(w: Array) -> Array:
        eta = np.sum(rows * w[groups], axis=1)
        return np.bincount(groups, y * eta - np.exp(eta), n_groups)

    value = log_likelihood(w)
    for step in range(size):
        mean = w.mean(axis=0) + spread @ rng.normal(size=2) / np.sqrt(n_groups)
        for _ in range(3):
            proposed = w + rng.normal(size=w.shape) * sizes * rng.choice([0.5, 1.0, 2.0])
            new = log_likelihood(proposed)
            gain = new - value
            gain -= 0.5 * np.einsum("gi,ij,gj->g", proposed - mean, precision, proposed - mean)
            gain += 0.5 * np.einsum("gi,ij,gj->g", w - mean, precision, w - mean)
            taken = np.log(rng.random(n_groups)) < gain
            w = np.where(taken[:, None], proposed, w)
            value = np.where(taken, new, value)
        if step >= size // 10:
            draws_of_mean.append(mean)
            draws.append(w)
    return np.array(draws_of_mean), np.array(draws)


@pytest.mark.slow
def test_effects_under_a_learned_prior_are_those_of_a_markov_chain() -> None:
    rng, groups = np.random.default_rng(5), np.repeat(np.arange(20), 6)
    X = rng.normal(size=(120, 1))
    w = rng.normal([0.5, 0.3], [0.7, 0.3], size=(20, 2))
    y = rng.poisson(np.exp(w[groups, 0] + w[groups, 1] * X[:, 0])).astype(float)
    model = GroupedRegression(likelihood="poisson").fit(X, y, groups=groups)
    means, effects = draw_by_markov_chain(model, X, y, groups, 12_000)
    shared = model.shared_posterior_
    assert np.max(np.abs(shared.mean - means.mean(axis=0)) / means.std(axis=0)) < 0.1
    assert np.max(np.abs(np.log(np.sqrt(np.diag(shared.cov)) / means.std(axis=0)))) < 0.1
    table = model.summary(LEVEL)
    mean, sd = (table[name].to_numpy().reshape(20, 2) for name in ("mean", "sd"))
    assert np.max(np.abs(mean - effects.mean(axis=0)) / effects.std(axis=0)) < 0.15
    assert np.max(np.abs(np.log(sd / effects.std(axis=0)))) < 0.12


def test_normal_targets_by_sites_are_normal_targets() -> None:
    rng, groups = np.random.default_rng(0), np.arange(90) % 9
    X = rng.normal(size=(90, 2))
    y = X @ [1.0, 2.0] + groups * 0.2 + 0.5 * rng.normal(size=90)
    given: dict[str, Any] = {"prior_mean": 0.5, "prior_precision": [0.5, 2.0]}
    given["fit_intercept"] = False
    plain = GroupedRegression(noise_precision=4.0, **given).fit(X, y, groups=groups)
    by_sites = GroupedRegression(likelihood=Gaussian(4.0), **given).fit(X, y, groups=groups)
    both = [
        model.predict_distribution(X[:9], groups=groups[:9]).interval(LEVEL)
        for model in (plain, by_sites)
    ]
    assert np.allclose(*both, rtol=1e-6)
    assert by_sites.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-6)
    learned = GroupedRegression(noise_precision=4.0).fit(X, y, groups=groups)
    its = GroupedRegression(likelihood=Gaussian(4.0)).fit(X, y, groups=groups)
    assert its.shared_mean_ == pytest.approx(learned.shared_mean_, abs=0.05)


def test_rows_without_events_leave_a_level_that_is_low_and_open() -> None:
    """A flat prior of the mean would let the level fall without end."""
    X = np.random.default_rng(0).normal(size=(16, 1))
    model = GroupedRegression(likelihood="poisson").fit(X, np.zeros(16), groups=np.arange(16) % 8)
    low, high = model.shared_posterior_.interval(0.9)[0]
    assert -15.0 < low < high < 0.0
    assert high - low > 2.0


# ---- laws ----------------------------------------------------------------------------------------


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.sampled_from(["poisson", "bernoulli"]))
def test_parts_that_are_merged_are_a_fit(seed: int, kind: str) -> None:
    X, y, how = problem(seed, kind=kind)
    whole = learned(kind, X, y, how)
    one, other = (learned(kind, X, y, how, part) for part in (slice(0, 30), slice(30, None)))
    one.merge(other)
    assert distance(whole, one) < 0.01
    assert one.log_evidence_ == pytest.approx(whole.log_evidence_, abs=0.02)
    assert one.n_observations_ == whole.n_observations_


@settings(max_examples=4, deadline=None)
@given(SEEDS, st.sampled_from(["poisson", "bernoulli"]))
def test_rows_that_are_unlearned_were_never_there(seed: int, kind: str) -> None:
    X, y, how = problem(seed, kind=kind)
    left, gone = slice(0, 50), slice(50, None)
    model = learned(kind, X, y, how).unlearn(X[gone], y[gone], **some(how, gone))
    other = learned(kind, X, y, how, left)
    assert distance(other, model) < 0.01
    assert sorted(model.groups_) == sorted(other.groups_)
    before = dumps(model)
    with pytest.raises(ValueError, match="never learned"):
        model.unlearn(X[gone], y[gone] + 50.0 * (kind == "poisson"), **some(how, gone))
    assert dumps(model) == before


@settings(max_examples=2, deadline=None)
@given(SEEDS)
def test_rows_one_by_one_are_batches_and_files(seed: int) -> None:
    X, y, how = problem(seed, groups=6, each=4)
    ahead = GroupedRegression(likelihood="poisson")
    ahead.predict_then_learn(X, y, **how)
    rows, restored = (GroupedRegression(likelihood="poisson") for _ in range(2))
    for i in range(len(y)):
        one = {"group": how["groups"][i], "exposure": how["exposure"][i]}
        rows.learn_one(X[i], y[i], **one)
        restored.learn_one(X[i], y[i], **one)
        if i % 8 == 5:
            restored = loads(dumps(restored))
            restored.shared_mean_, restored.predict(X, **how)
    assert distance(rows, ahead) < 1e-9
    assert distance(rows, restored) < 1e-9
    settled = GroupedRegression(likelihood="poisson").merge(rows)
    assert distance(learned("poisson", X, y, how), settled) < 0.01


def test_a_stream_beyond_the_rows_that_are_kept_is_near_a_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("posterity.posteriors._group_sites.MOST_ROWS", 150)
    X, y, how = problem(1, groups=20, each=20)
    model = GroupedRegression(likelihood="poisson")
    model.predict_then_learn(X[:320], y[:320], **some(how, slice(0, 320)))
    model.partial_fit(X[320:], y[320:], **some(how, slice(320, None)))
    whole = learned("poisson", X, y, how)
    settled = GroupedRegression(likelihood="poisson").merge(model)
    assert model._posterior.sites.rows is None
    assert distance(whole, settled) < 0.35
    with pytest.raises(ValueError, match="not kept"):
        model.unlearn(X[:1], y[:1], **some(how, slice(0, 1)))
    halves = [learned("poisson", X, y, how, part) for part in (slice(0, 200), slice(200, None))]
    assert distance(whole, halves[0].merge(halves[1])) < 0.35


def test_weights_count_rows_and_nothing_weighs_nothing() -> None:
    X, y, how = problem(2)
    twice = {name: np.tile(values, 2) for name, values in how.items()}
    double = learned("poisson", np.tile(X, (2, 1)), np.tile(y, 2), twice)
    heavy = GroupedRegression(likelihood="poisson").fit(X, y, np.full(len(y), 2.0), **how)
    assert distance(double, heavy) < 0.01
    assert heavy.n_observations_ == double.n_observations_ == 2 * len(y)
    weights = np.where(np.arange(len(y)) < 40, 1.0, 0.0)
    model = GroupedRegression(likelihood="poisson")
    model.predict_then_learn(X, y, weights, **how)
    other = GroupedRegression(likelihood="poisson")
    other.predict_then_learn(X[:40], y[:40], **some(how, slice(0, 40)))
    assert distance(other, model) < 1e-9


def test_groups_leave_and_come_back() -> None:
    X, y, how = problem(3)
    model, whole = (learned("poisson", X, y, how) for _ in range(2))
    gone = loads(dumps(model.evict(groups=[3, 7])))
    assert (gone.n_groups_, model.n_groups_) == (2, 10)
    apart = ~np.isin(how["groups"], [3, 7])
    assert (
        distance(
            learned("poisson", X, y, how, apart),
            GroupedRegression(likelihood="poisson").merge(model),
        )
        < 0.01
    )
    assert distance(whole, model.merge(gone)) < 0.01


# ---- reading -------------------------------------------------------------------------------------


def test_exposure_multiplies_rates_and_offset_is_its_logarithm() -> None:
    X, y, how = problem(4)
    model = learned("poisson", X, y, how)
    offsets = {"groups": how["groups"], "offset": np.log(how["exposure"])}
    assert distance(model, learned("poisson", X, y, offsets)) < 1e-9
    one, two = (model.predict(X, groups=how["groups"], exposure=e) for e in (1.0, 2.0))
    assert two == pytest.approx(2.0 * one)
    assert model.predict_one(X[0], group=how["groups"][0], exposure=2.0) == pytest.approx(two[0])
    assert model.predict_one(X[0], group=how["groups"][0]) == pytest.approx(one[0])
    group = how["groups"][0]
    low, high = model.predict_interval_one(X[0], LEVEL, group=group, exposure=2.0)
    ends = model.predict_interval(X[:1], LEVEL, groups=[group], exposure=2.0)[0]
    assert (low, high) == tuple(ends)
    assert float(low).is_integer()


def test_a_new_group_is_predicted_by_what_groups_share() -> None:
    X, y, how = problem(5, groups=40)
    model = learned("poisson", X, y, how)
    mean, sd = model.shared_mean_[0], np.sqrt(model.shared_covariance_[0, 0])
    expected = model.predict_mean_distribution([[0.0]], groups=[999])
    assert expected.median()[0] == pytest.approx(np.exp(mean), rel=0.05)
    assert expected.base.std()[0] > sd
    model.learn_one([0.0], 30.0, group=999)
    assert model.predict([[0.0]], groups=[999])[0] > 10.0


def test_tables_have_ratios_and_average_effects_are_those_of_rates() -> None:
    X, y, how = problem(6)
    model = learned("poisson", X, y, how)
    table = model.summary(groups=[2])
    assert table["rate_ratio"].to_numpy() == pytest.approx(np.exp(table["mean"].to_numpy()))
    assert "odds_ratio" in GroupedRegression(likelihood="bernoulli").fit(
        X, np.minimum(y, 1.0), groups=how["groups"]
    ).summary(groups=[2])
    effects = model.average_effects(X, groups=how["groups"])
    below, above = (model.predict(X + step, groups=how["groups"]) for step in (0.0, 1.0))
    off = effects.loc["x0", "mean"] - np.mean(above - below)
    assert abs(off) < 0.2 * effects.loc["x0", "sd"]


@pytest.mark.parametrize(
    "likelihood", [NegativeBinomial(0.3), Gamma(2.0), StudentT(4.0, 1.0), LaplaceNoise(1.0)]
)
def test_any_likelihood_learns_groups(likelihood: Any) -> None:
    rng, groups = np.random.default_rng(8), np.repeat(np.arange(30), 12)
    X, level = rng.normal(size=(360, 1)), rng.normal(0.5, 0.8, size=30)
    eta = level[groups] + 0.4 * X[:, 0]
    y = likelihood.predictive(eta, np.zeros(360)).rvs(random_state=rng)
    model = GroupedRegression(likelihood=likelihood).fit(X, y, groups=groups)
    assert model.shared_mean_ == pytest.approx([0.5, 0.4], abs=0.4)
    assert np.corrcoef(model.intercept_, level)[0, 1] > 0.85
    assert model.predict_distribution(X[:3], groups=[0, 1, 99]).shape == (3,)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"likelihood": "counts"}, ValueError, "it must be 'gaussian', 'bernoulli', 'poisson'"),
        ({"likelihood": 3}, TypeError, "as Poisson()"),
        ({"likelihood": Gamma()}, ValueError, "do not learn its shape"),
        ({"likelihood": "poisson", "noise_precision": 2.0}, ValueError, "leave them out"),
        ({"likelihood": "poisson", "noise_prior": (1.0, 1.0)}, ValueError, "leave them out"),
        ({"likelihood": "poisson", "forgetting": Exponential(0.9)}, ValueError, "groups forget"),
    ],
)
def test_parameters_that_are_refused(given: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says.replace("(", r"\(").replace(")", r"\)")):
        GroupedRegression(**given).fit([[0.0], [1.0]], [1.0, 2.0], groups=[1, 2])


def test_rows_that_are_refused_change_nothing() -> None:
    X, y, how = problem(7)
    model = learned("poisson", X, y, how)
    before, untouched = dumps(model), copy.deepcopy(model)
    for bad, says in (([-1.0], "must be a whole number"), ([0.5], "must be a whole number")):
        for learn in (model.fit, model.partial_fit, model.predict_then_learn, model.unlearn):
            with pytest.raises(ValueError, match=says):
                learn([[0.0]], bad, groups=[1])
        with pytest.raises(ValueError, match=says):
            model.learn_one([0.0], bad[0], group=1)
    with pytest.raises(ValueError, match=r"exposure is 0.0 in row 0"):
        model.partial_fit([[0.0]], [1.0], groups=[1], exposure=[0.0])
    assert dumps(model) == before
    assert distance(model, untouched) == 0.0
    with pytest.raises(AttributeError, match="no normal noise"):
        model.noise_precision_  # noqa: B018
    with pytest.raises(ValueError, match="a model with normal noise"):
        model.model_of(3)
    with pytest.raises(ValueError, match="only models of the same"):
        model.merge(GroupedRegression(likelihood="bernoulli").fit(X, y > 1, groups=how["groups"]))


def test_offsets_and_exposures_are_of_likelihoods() -> None:
    model = GroupedRegression().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 2.0], groups=[1, 2, 2])
    for name in ("offset", "exposure"):
        for read in (model.predict, model.predict_interval, model.predict_distribution):
            with pytest.raises(ValueError, match=name):
                read([[0.0]], groups=[1], **{name: 2.0})
        with pytest.raises(ValueError, match=name):
            model.learn_one([0.0], 1.0, group=1, **{name: 2.0})
    with pytest.raises(ValueError, match="normal noise"):
        make_arms(None, GroupedRegression(likelihood="poisson"), ["a", "b"], None)


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli"])
def test_streams_begin_from_nothing_and_columns_may_vary_later(likelihood: str) -> None:
    rng = np.random.default_rng(0)
    groups, X = rng.integers(0, 6, 60), rng.normal(size=(60, 2))
    X[:20, 1] = 0.0
    y = rng.integers(0, 2, 60).astype(float)
    one, batches = (GroupedRegression(likelihood=likelihood) for _ in range(2))
    for i in range(60):
        one.learn_one(X[i], y[i], group=groups[i])
    for i in range(0, 60, 20):
        batches.partial_fit(X[i : i + 20], y[i : i + 20], groups=groups[i : i + 20])
    assert np.isfinite(one.coef_).all()
    np.testing.assert_allclose(one.coef_, batches.coef_, atol=0.1)


@pytest.mark.parametrize(("kind", "most"), [("poisson", 4096), ("bernoulli", 40)])
def test_a_row_alone_is_a_batch_of_one(
    kind: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_group_sites, "MOST_ROWS", most)
    X, y, how = problem(0, groups=20, kind=kind)
    weights = np.random.default_rng(0).choice([1.0, 2.0], size=len(y))
    one = learned(kind, X, y, how, slice(0, 60))
    other = copy.deepcopy(one)
    for i in range(60, 84):
        row = {name.removesuffix("s"): values[i] for name, values in how.items()}
        one.learn_one(X[i], y[i], weights[i], **row)
        here = slice(i, i + 1)
        other.partial_fit(X[here], y[here], weights[here], **some(how, here))
    mine, theirs = one._posterior.bank, other._posterior.bank
    np.testing.assert_allclose(mine.packed, theirs.packed, rtol=1e-9, atol=1e-9)
    for name in ("count", "seen", "last"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-9)
    before = dumps(one)
    with pytest.raises(ValueError, match="y"):
        one.learn_one(X[0], -1.0, group=how["groups"][0])
    assert dumps(one) == before


def test_what_is_expected_where_the_mean_is_infinite_is_the_median() -> None:
    model = GroupedRegression(likelihood="poisson").fit([[0.0], [1.0]], [2, 3])
    far = [[200.0], [0.5]]
    new = model.predict_distribution(far)
    np.testing.assert_array_equal(np.isinf(new.mean()), [True, False])
    np.testing.assert_array_equal(model.predict(far), [new.median()[0], new.mean()[1]])
    one = [model.predict_one(far[0]), model.predict_one(far[0], exposure=1.0)]
    np.testing.assert_allclose(one, new.median()[0])
