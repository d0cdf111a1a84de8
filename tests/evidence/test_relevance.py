"""Sparse coefficients, beside enumeration of all sets and scikit-learn's LassoCV."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.linear_model import LassoCV
from twins import relevance as twin

from posterity import BayesianLinearRegression
from posterity.evidence import Relevance
from posterity.evidence.relevance import _make_evidence
from posterity.evidence.relevance_state import BACKGROUNDS, SLABS, Evidence, FeatureSets
from posterity.evidence.relevance_walk import LOG_PRIORS, sample_sets
from posterity.factor import Factor
from posterity.kernel import SetWalkers
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.priors import GaussianPrior

NOISES = [LearnedNoise(), LearnedNoise(2.0, 1.0), KnownNoise(1.3)]


def evidence_of(data: Factor, noise: Noise, *, intercept: bool = True) -> Evidence:
    root = data.root[int(intercept) :, int(intercept) :]
    squares = np.square(root).sum(axis=0) / data.count
    scales = squares, np.zeros(len(squares), dtype=bool)
    evidence = _make_evidence(data, noise, intercept, np.zeros(len(squares)), scales)
    assert evidence is not None
    return evidence


def every_set(m: int, background: int, slab: int) -> FeatureSets:
    members = [some for k in range(m + 1) for some in combinations(range(m), k)]
    rows = [twin.widened(np.array([some], dtype=np.intp).reshape(1, -1), m) for some in members]
    count = len(members)
    return FeatureSets(np.concatenate(rows), np.full(count, background), np.full(count, slab))


def problem(n: int, p: int, k: int, ratio: float, seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n + 200, p)), np.zeros(p)
    w[rng.choice(p, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    line = X @ w
    return X, line + np.sqrt(k / ratio) * rng.normal(size=n + 200), line, w


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("n", [4, 30])
def test_the_evidence_of_a_set_is_that_of_its_posterior(
    noise: Noise, n: int, make_rows, make_factor
) -> None:
    X, y = make_rows(n, 4, seed=3, signal=1.0)
    data = make_factor(X, y, intercept=False)
    evidence = evidence_of(data, noise, intercept=False)
    sets = every_set(4, 20, 15)
    solved = evidence.solve(sets)
    squares = np.square(X).mean(axis=0)
    expected = []
    for members in sets.members:
        variances = np.full(4, evidence.variances[20])
        variances[members[members >= 0]] += np.exp(SLABS[15])
        belief = GaussianPrior(0.0, squares / variances)
        prior = belief.factor(4, intercept=False)
        factor = prior.copy()
        factor.merge(data)
        expected.append(LinearPosterior(belief, noise, False, prior, factor).log_evidence)
    assert solved.value - solved.value[0] == pytest.approx(np.array(expected) - expected[0])
    gains = twin.compute_gains(evidence, twin.solve(evidence, sets))
    sizes = [frozenset(members[members >= 0]) for members in sets.members]
    for row, members in enumerate(sizes):
        if len(members) > evidence.most - 1:
            continue
        for feature in range(4):
            other = sizes.index(members ^ {feature})
            assert gains[row, feature] == pytest.approx(
                solved.value[other] - solved.value[row], abs=1e-9
            )


@pytest.mark.parametrize("noise", NOISES[1:], ids=repr)
@pytest.mark.parametrize("correlated", [False, True])
def test_walkers_are_where_enumeration_says(noise: Noise, correlated: bool, make_factor) -> None:
    """All 2^5 sets times all backgrounds and slabs: the slow, obvious twin."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 5))
    if correlated:
        X[:, 1] = 0.95 * X[:, 0] + 0.3 * X[:, 1]
    y = X @ [0.7, 0.0, 0.3, 0.0, 0.0] + rng.normal(size=40)
    evidence = evidence_of(make_factor(X, y, intercept=True), noise)
    sets = every_set(5, 0, 0)
    places = np.indices((len(BACKGROUNDS), len(SLABS), len(sets.members))).reshape(3, -1)
    sets = FeatureSets(sets.members[places[2]], *places[:2])
    log_weights = evidence.log_posterior(evidence.solve(sets))
    inside = (sets.members[:, :, None] == np.arange(5)).any(axis=1)
    shares = evidence.variances[sets.background][:, None] + inside * np.exp(
        SLABS[sets.slab][:, None]
    )
    shares = 1.0 / (1.0 + 40.0 * shares)  # of each coefficient, left to the prior
    expected = np.exp(log_weights - logsumexp(log_weights)) @ shares
    walk = sample_sets(evidence, 2000)
    sets = walk.solved.sets
    inside = (sets.members[:, :, None] == np.arange(5)).any(axis=1)
    variances = evidence.variances[sets.background][:, None] + inside * np.exp(
        SLABS[sets.slab][:, None]
    )
    found = (1.0 / (1.0 + 40.0 * variances)).mean(axis=0)
    assert found == pytest.approx(expected, abs=0.05)
    assert walk.log_evidence == pytest.approx(logsumexp(log_weights), abs=0.3)


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize(
    ("n", "m", "k"), [(3, 5, 3), (9, 4, 3), (40, 1, 1), (40, 12, 3), (12, 30, 3), (90, 25, 18)]
)
def test_walkers_are_those_of_the_twin(noise: Noise, n: int, m: int, k: int, make_factor) -> None:
    X, y, _, _ = problem(n, m, k, 20.0, seed=n)
    evidence = evidence_of(make_factor(X[:n], y[:n], intercept=False), noise, intercept=False)
    numbers, its = np.random.default_rng(1), np.random.default_rng(1)
    longest = min(evidence.most, max(4, k))
    walkers = SetWalkers(evidence, SLABS, LOG_PRIORS, numbers.bit_generator, 6, longest)
    solved = twin.start_walkers(evidence, 6, longest, its)
    for _ in range(6):
        states, heights = walkers.move(1)
        solved = twin.move(evidence, solved, its)
        np.testing.assert_array_equal(walkers.places.T, [solved.sets.background, solved.sets.slab])
        sets = [set(some[:size]) for some, size in zip(walkers.members, walkers.sizes, strict=True)]
        assert sets == [set(some[some >= 0]) for some in solved.sets.members]
        value = solved.value + evidence.log_prior(solved.sets)
        np.testing.assert_allclose(heights[0], value, rtol=1e-8, atol=1e-8)
        assert len(np.unique(states)) == len(np.unique(heights.round(7)))
    assert numbers.random() == its.random()


@pytest.mark.parametrize("ratio", [10.0, 1000.0])
def test_five_of_500_features_are_found_in_fifty_rows(ratio: float, report) -> None:
    X, y, line, w = problem(50, 500, 5, ratio, seed=1)
    model = BayesianLinearRegression(prior_precision="ard").fit(X[:50], y[:50])
    predictive = model.predict_distribution(X[50:])
    low, high = predictive.interval(0.95)
    lasso = LassoCV().fit(X[:50], y[:50])
    off, theirs = (
        np.sqrt(np.mean((line[50:] - mean) ** 2))
        for mean in (predictive.mean(), lasso.predict(X[50:]))
    )
    held = np.mean((low <= y[50:]) & (y[50:] <= high))
    report(f"signal to noise {ratio}: RMSE {off:.3f}, LassoCV {theirs:.3f}; {held:.3f} held")
    assert off < theirs
    assert held > 0.9
    found = np.abs(model.coef_) > 0.5
    assert found.tolist() == (w != 0.0).tolist()


def test_a_dense_truth_is_not_taken_for_a_sparse_one() -> None:
    rng = np.random.default_rng(4)
    X, w = rng.normal(size=(260, 30)), rng.normal(size=30) / np.sqrt(30.0)
    y = X @ w + rng.normal(size=260)
    dense = BayesianLinearRegression().fit(X[:60], y[:60])
    sparse = BayesianLinearRegression(prior_precision="ard").fit(X[:60], y[:60])
    line = X[60:] @ w
    errors = [np.mean((model.predict(X[60:]) - line) ** 2) for model in (dense, sparse)]
    assert errors[1] < 1.15 * errors[0]


def test_alike_features_share_what_they_say(make_factor) -> None:
    """Which of two equal columns it is is not to be known: either, and the interval says so."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 8))
    X[:, 1] = X[:, 0]
    y = 2.0 * X[:, 0] + 0.5 * rng.normal(size=60)
    model = BayesianLinearRegression(prior_precision="ard").fit(X, y)
    assert model.coef_[:2].sum() == pytest.approx(2.0, abs=0.2)
    assert (model.posterior_.std()[1:3] > 0.3).all()


def test_the_same_rows_choose_the_same(make_rows, make_factor) -> None:
    X, y = make_rows(80, 12, seed=2, signal=1.0, kept=3)
    data, other = (
        make_factor(X[order], y[order], intercept=True)
        for order in (np.arange(80), np.arange(80)[::-1])
    )
    one, two = (
        Relevance().choose(some, LearnedNoise(), intercept=True, mean=np.zeros(12))
        for some in (data, other)
    )
    assert np.allclose(one.precisions, two.precisions, rtol=1e-9)
    assert np.array_equal(one.weights, two.weights)
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-9)


@pytest.mark.parametrize("kind", ["few rows", "no noise", "doubled", "collinear", "a curve"])
def test_weights_are_repeated_rows_where_the_fit_is_perfect(kind: str) -> None:
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(15, 30 if kind == "few rows" else 5))
    if kind == "doubled":
        X = np.hstack([X, X])
    elif kind == "collinear":
        X = np.hstack([X, X @ rng.normal(size=(5, 3))])
    elif kind == "a curve":
        X = X[:, :1] ** np.arange(1, 6)
    y = rng.integers(0, 3, 15) * 1.0 if kind == "few rows" else X[:, 0] - 2.0 * X[:, 2]
    counts, mixed = rng.integers(0, 4, 15), rng.permutation(15)
    model = BayesianLinearRegression(prior_precision="ard")
    repeated = model.fit(X.repeat(counts, axis=0), y.repeat(counts)).predict(X)
    weighed = model.fit(X[mixed], y[mixed], sample_weight=counts[mixed]).predict(X)
    np.testing.assert_allclose(weighed, repeated, rtol=1e-7, atol=1e-8)


def test_one_node_has_a_precision_for_each_feature(make_rows, make_factor) -> None:
    X, y = make_rows(80, 8, seed=2, signal=3.0, kept=2)
    data = make_factor(X, y, intercept=True)
    choice = Relevance(most_nodes=1).choose(data, LearnedNoise(), intercept=True, mean=np.zeros(8))
    assert choice.precisions.shape == (1, 8)
    kept = np.argsort(choice.precisions[0])[:2]
    assert choice.precisions[0][kept].max() < 0.1 * np.delete(choice.precisions[0], kept).min()


def test_a_constant_target_tells_nothing(make_rows, make_factor) -> None:
    X, _ = make_rows(10, 3)
    data = make_factor(X, np.full(10, 3.0), intercept=True)
    choice = Relevance().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(3))
    assert choice.found == "undetermined"


def test_no_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="most_nodes is 0: it must be at least 1"):
        Relevance(most_nodes=0)
