"""A prior scale for each coefficient: against sums by hand, its twin, and simulated truths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import invgamma, norm

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.evidence import Integrated, LocalScales
from posterity.evidence._local_turns import (
    TOLERANCE,
    StandardRows,
    Turns,
    find_precisions,
    part_shared_scale,
)
from posterity.evidence._shared_scale import (
    LOG_SHARES,
    UNSHOWN,
    WEAK_SIGNALS,
    compute_log_hyperprior,
)
from posterity.evidence.hyperprior import EXPONENT
from posterity.evidence.local_scales import _standardize, mean_squares
from posterity.evidence.terms import TermColumns
from posterity.factor import Factor
from posterity.kernel import MOST_SCALES, find_local_precisions
from posterity.noise import KnownNoise, LearnedNoise, Noise


def make_factor(X: np.ndarray, y: np.ndarray) -> Factor:
    data = Factor(X.shape[1] + 1)
    data.append(X, y[:, None], intercept=True)
    return data


def read(data: Factor, noise: Noise) -> StandardRows | None:
    squares, pinned, _ = mean_squares(data, intercept=1)
    columns = TermColumns.of(data.root, squares, pinned, intercept=1, count=data.count)
    return _standardize(data, noise, 1, np.zeros(len(squares)), columns)


def make_orthogonal(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """(n, m) columns of mean 0 and mean square 1 that do not correlate."""
    X = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, m))]))[0][:, 1:]
    return np.sqrt(n) * X


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(2, MOST_SCALES),
    more=st.sampled_from([-20, 2, 5, 40, 1000]),
    correlated=st.sampled_from([0.0, 0.9]),
    strong=st.sampled_from([0.0, 1.0, 1e4]),
    noise=st.sampled_from([LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(1.3)]),
    levels=st.sampled_from([0, 0, 2, 3, 9]),
)
def test_the_kernel_does_as_numpy_does(
    seed: int, m: int, more: int, correlated: float, strong: float, noise: Noise, levels: int
) -> None:
    rng = np.random.default_rng(seed)
    n = max(m + more, 4)
    X = rng.normal(size=(n, m)) + correlated * 3.0 * rng.normal(size=(n, 1))
    levels = min(levels, m)
    X[:, m - levels :] = rng.integers(0, levels + 1, n)[:, None] == np.arange(levels)
    data = make_factor(X, strong * X[:, 0] + rng.normal(size=n))
    rows = read(data, noise)
    assume(rows is not None)
    assert rows is not None
    prior = rows.log_hyperprior
    fast = LocalScales()._find_precisions(rows, TOLERANCE, prior)
    slow = find_precisions(rows, TOLERANCE, prior)
    np.testing.assert_allclose(fast.precisions, slow.precisions, rtol=1e-5)
    np.testing.assert_allclose(fast.nodes, slow.nodes, rtol=1e-5)
    np.testing.assert_allclose(fast[2:7], slow[2:7], rtol=1e-5, atol=1e-5)


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(2, 12),
    n=st.integers(1, 40),
    intercept=st.booleans(),
    noise=st.sampled_from([LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(1.3)]),
    strategy=st.sampled_from([LocalScales(), LocalScales(1), LocalScales().for_stream]),
    special=st.sampled_from(["none", "none", "flags", "constant", "alike"]),
)
def test_the_kernel_standardises_as_numpy_does(
    seed: int, m: int, n: int, intercept: bool, noise: Noise, strategy: LocalScales, special: str
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-3.0, 3.0, m)
    if special == "flags":
        X[:, :2] = rng.integers(0, 3, n)[:, None] == np.arange(2)
    X[:, -1] = {"constant": 3.0, "alike": X[:, 0]}.get(special, X[:, -1])
    y = X @ (rng.normal(size=m) / np.abs(X).max(axis=0).clip(1e-9)) + rng.normal(size=n)
    data = Factor(m + intercept)
    data.append(X, y[:, None], rng.uniform(0.1, 1.0, n), intercept=intercept)
    given = {"intercept": intercept, "mean": 0.1 * rng.normal(size=m)}
    is_plain, fast = strategy._find_in_kernel(data, noise, intercept, given["mean"])
    if not is_plain:
        return
    assert not (intercept and special == "constant")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalScales, "_find_in_kernel", lambda *_: (False, None))
        slow = strategy.find_local(data, noise, **given)
    assert (fast is None) == (slow is None)
    if fast is None or slow is None:  # all is explained
        return
    np.testing.assert_allclose(fast.precisions, slow.precisions, rtol=1e-5)
    np.testing.assert_array_equal(fast.weights, slow.weights)
    told = [(one.log_evidence, one.disagreement, one.n_parameters) for one in (fast, slow)]
    np.testing.assert_allclose(*told, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [22, 39, 57])
def test_turns_agree_where_each_alone_leads_back_and_forth(seed: int) -> None:
    """Fewer rows than columns, and one strong effect."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(7, 10))
    rows = read(make_factor(X, 2.0 * X[:, 0] + rng.normal(size=7)), KnownNoise(1.0))
    assert rows is not None
    found = LocalScales()._find_precisions(rows, 1e-6, rows.log_hyperprior).precisions
    again = find_precisions(rows, 1e-6, rows.log_hyperprior, found).precisions
    np.testing.assert_allclose(again, found, rtol=1e-5)


@pytest.mark.parametrize("truth", [[0.0, 0.0, 0.0], [0.6, 0.03, -0.05], [0.5, -0.4, 0.3]])
def test_orthogonal_columns_have_the_exact_posterior(truth: list[float]) -> None:
    rng = np.random.default_rng(1)
    n, m = 100, 3
    X = make_orthogonal(n, m, rng)
    y = X @ truth + rng.normal(size=n)
    y -= y.mean()
    told = X.T @ y / n  # each coefficient is N(told, 1 / n) by the data alone
    # Sums by hand, finely: of the shared scale t, and of each coefficient's own under a Cauchy.
    log_t = np.arange(-25.0, 25.0, 0.1)
    own = np.arange(-5.0, 30.0, 0.05)
    cauchy = invgamma(0.5, scale=0.5).logpdf(np.exp(own)) + own + np.log(0.05)

    def weigh(variances: np.ndarray) -> np.ndarray:
        return norm.logpdf(told[:, None], 0.0, np.sqrt(1.0 / n + variances))

    values, means = [], []
    for share, corner, kind in zip((0.2, 0.8), WEAK_SIGNALS, ("alike", "apart"), strict=True):
        signal = np.exp(log_t) / min(max(corner, UNSHOWN / (n * (m - 1))), 1.0 / m)
        log_prior = np.log(share * 0.1 * 0.1) - 1.1 * np.log1p(signal) + np.log(signal)
        for t, prior in zip(np.exp(log_t), log_prior, strict=True):
            variances = np.array([t]) if kind == "alike" else t * np.exp(own)
            logs = weigh(variances) + (0.0 if kind == "alike" else cauchy)
            evidence = logsumexp(logs, axis=1)
            shares = variances / (1.0 / n + variances)
            means.append(np.exp(logs - evidence[:, None]) @ shares * told)
            values.append(prior + evidence.sum())
    weights = np.exp(values - logsumexp(values))
    model = BayesianLinearRegression(noise_precision=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, weights @ np.array(means), atol=3e-4)
    flat = BayesianLinearRegression(noise_precision=1.0, prior_precision=0.0).fit(X, y)
    gained = logsumexp(values) - norm.logpdf(told, told, np.sqrt(1.0 / n)).sum()
    # Flat directions have density 1, so that the likelihood's normal integrates to more.
    whole = flat.log_evidence_ - m * 0.5 * np.log(2.0 * np.pi / n)
    assert model.log_evidence_ == pytest.approx(whole + gained, abs=0.02)


@pytest.mark.parametrize(
    ("rows", "unshown"), [(1.0, 1 / 300), (3.0, 0.01), (30.0, 0.1), (50.0, 0.1), (500.0, 0.01)]
)
@pytest.mark.parametrize("m", [2, 3])
def test_what_is_weak_grows_with_the_first_rows_and_falls_with_many(
    rows: float, unshown: float, m: int
) -> None:
    """Far below its corner the prior is the signal over the corner."""
    log_prior = compute_log_hyperprior(np.array([-200.0]), np.full(m, rows))
    corners = np.exp(LOG_SHARES + np.log(EXPONENT) - 200.0 - log_prior)[:, 0]
    np.testing.assert_allclose(corners, np.clip(WEAK_SIGNALS, unshown / (m - 1), 1.0 / m))


def test_terms_have_scales_of_their_own_by_sums_by_hand() -> None:
    """Three coefficients, of which two are a term: t, the term's scale s around t, theirs."""
    told, information = np.array([0.4, -0.3, 0.02]), 100.0
    rows = StandardRows(
        np.sqrt(information) * np.eye(3),
        np.sqrt(information) * told,
        rest=1.0,
        shape=10.0,
        known=1.0,
        least=0.0,
        ends=np.array([2, 3]),
    )
    log_v = rows.lattice_base + np.arange(60.0)
    v = np.exp(log_v)
    off = log_v[None, :] - log_v[:, None]
    cauchy = np.where(off > -5.5, np.exp(-0.5 * off - 0.5 * np.exp(-off)) / np.sqrt(2 * np.pi), 0.0)
    like = norm.pdf(told[:, None], 0.0, np.sqrt(1.0 / information + v))
    around = {"alike": np.eye(len(v)), "apart": cauchy}
    prior = dict(zip(around, np.exp(compute_log_hyperprior(log_v, rows.lengths)), strict=True))
    share = {"alike": 0.2, "apart": 0.8}
    posterior = np.zeros((3, len(v)))
    for of_terms, of_members in itertools.product(around, around):
        for weight, spread in zip(prior[of_terms], around[of_terms], strict=True):
            third = spread * like[2]
            for s in np.flatnonzero(spread):
                one, two = around[of_members][s] * like[:2]
                both = weight * spread[s] * share[of_members]
                posterior[0] += both * one * two.sum() * third.sum()
                posterior[1] += both * two * one.sum() * third.sum()
                posterior[2] += both * one.sum() * two.sum() * third
    posterior /= posterior.sum(axis=1, keepdims=True)
    shrunk = (posterior / (1.0 + information * v)).sum(axis=1)
    expected = information * shrunk / (1.0 - shrunk)
    np.testing.assert_allclose(
        find_precisions(rows, TOLERANCE, rows.log_hyperprior).precisions, expected, rtol=1e-4
    )


def test_neither_order_nor_units_nor_offsets_of_columns_matter() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 6)) + rng.normal(size=(60, 1))
    y = X[:, 0] + rng.normal(size=60)
    model = BayesianLinearRegression().fit(X, y)
    order, units = rng.permutation(6), np.array([1e-3, 1.0, 7.0, 1e4, 2.0, 0.1])
    other = BayesianLinearRegression().fit(X[:, order], y)
    np.testing.assert_allclose(other.coef_, model.coef_[order], rtol=1e-7, atol=1e-9)
    other = BayesianLinearRegression().fit(X * units + 1e4 * units, y)
    np.testing.assert_allclose(other.coef_ * units, model.coef_, rtol=1e-5, atol=1e-7)


def test_wide_tables_are_read_by_their_rows() -> None:
    rng = np.random.default_rng(3)
    n, m = 40, 60
    X = rng.normal(size=(n, m))
    data = make_factor(X, 3.0 * X[:, 0] + rng.normal(size=n))
    rows = read(data, LearnedNoise())
    assert rows is not None
    few = find_precisions(rows, TOLERANCE, rows.log_hyperprior)
    filled = np.vstack([rows.matrix, np.zeros((m, m))])  # as many rows as columns: another way
    more = np.concatenate([rows.target, np.zeros(m)])
    padded = type(rows)(filled, more, rows.rest, rows.shape, rows.known, rows.least, rows.ends)
    many = find_precisions(padded, TOLERANCE, padded.log_hyperprior)
    np.testing.assert_allclose(few.precisions, many.precisions, rtol=1e-6)
    np.testing.assert_allclose(few[2:7], many[2:7], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("m", [30, 60])
def test_fewer_rows_than_columns_have_nodes_for_parts_of_the_shared_scale(m: int) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, m))
    data = make_factor(X, X[:, 0] + rng.normal(size=20))
    rows = read(data, LearnedNoise())
    assert rows is not None
    assert rows.could_be_met
    prior = rows.log_hyperprior
    whole = find_precisions(rows, TOLERANCE, prior)
    parts: list[np.ndarray] = []

    def find(log_hyperprior: np.ndarray, start: np.ndarray) -> Turns:
        parts.append(log_hyperprior)
        return find_precisions(rows, TOLERANCE, log_hyperprior, start)

    part_shared_scale(rows, whole, find, lambda turns: turns.log_gain)
    np.testing.assert_allclose(logsumexp(parts, axis=0), prior, atol=1e-12)
    choice = LocalScales().choose(data, LearnedNoise(), intercept=True, mean=np.zeros(m))
    assert choice.weights.sum() == pytest.approx(1.0)
    assert (np.diff(np.median(choice.precisions, axis=1)) < 0.0).all()  # from weak to strong
    # The posterior of the shared scale says how probable each part is; so does the evidence.
    assert 0.02 < choice.weights.min() < choice.weights.max() < 0.8
    assert not read(data, KnownNoise(1.0)).could_be_met


def test_one_node_has_the_mean_of_several() -> None:
    rng = np.random.default_rng(4)
    X = make_orthogonal(80, 5, rng)
    y = X @ [0.3, 0.02, 0.0, -0.05, 0.3] + rng.normal(size=80)
    several = BayesianLinearRegression().fit(X, y)
    one = BayesianLinearRegression(prior_precision=LocalScales(most_nodes=1)).fit(X, y)
    np.testing.assert_allclose(one.coef_, several.coef_, rtol=0.02, atol=2e-3)


def test_a_single_column_has_the_prior_of_one_scale() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 1))
    y = X[:, 0] + rng.normal(size=20)
    same = BayesianLinearRegression(prior_precision=Integrated()).fit(X, y)
    assert BayesianLinearRegression().fit(X, y).coef_ == same.coef_


def test_bad_arguments_of_the_kernel_are_refused() -> None:
    ones, table = np.ones((3, 2)), np.zeros((2, 10))
    rest = (
        np.array([1, 2]),
        (1.0, 1.0, 0.0, 0.0),
        np.full(5, 0.2),
        table,
        np.zeros(15),
        (-1.0, -1.0),
        (0.0, 1.0),
        (3, 0.1, 0.0, 0.0),
    )
    with pytest.raises(ValueError, match="and a target for each row"):
        find_local_precisions(ones, np.ones(2), *rest)
    with pytest.raises(ValueError, match="with a prior for each"):
        find_local_precisions(ones, np.ones(3), *rest[:4], np.zeros(9), *rest[5:])
    with pytest.raises(ValueError, match="4 nodes: there are 5"):
        find_local_precisions(ones, np.ones(3), *rest[:2], np.ones(4), *rest[3:])
    for ends in ([], [1], [0, 2], [2, 1, 2], [1, 3]):
        with pytest.raises(ValueError, match="they rise from 1 to 2"):
            find_local_precisions(ones, np.ones(3), np.array(ends, dtype=np.intp), *rest[1:])


def hold(make: object, draw: object, cell: tuple[int, int, int, float, float], runs: int) -> tuple:
    """Shares of strong and of weak coefficients that 95% intervals hold, and the loss."""
    n, p, k, size, correlation = cell
    strong, weak, losses = [], [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = np.sqrt(1.0 - correlation) * rng.normal(size=(n, p))
        X += np.sqrt(correlation) * rng.normal(size=(n, 1))
        y, unit = draw(X, rng)
        error = unit / np.sqrt(n * (1.0 - correlation))
        truth = 0.5 * error * rng.normal(size=p)
        truth[:k] = size * error * np.where(rng.random(k) < 0.5, 1.0, -1.0)
        model = make().fit(X, y(X @ truth))
        low, high = np.asarray(model.posterior_.interval(0.95))[1:].T
        held = (low < truth) & (truth < high)
        strong += held[:k].tolist()
        weak += held[k:].tolist()
        losses.append(np.sum(np.square((np.ravel(model.coef_) - truth) / error)))
    return np.mean(strong), np.mean(weak or [True]), np.mean(losses)


def draw_normal(X: np.ndarray, rng: np.random.Generator) -> tuple:
    return lambda eta: eta + rng.normal(size=len(eta)), 1.0


def draw_labels(X: np.ndarray, rng: np.random.Generator) -> tuple:
    return lambda eta: (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(int), 2.0


def draw_counts(X: np.ndarray, rng: np.random.Generator) -> tuple:
    return lambda eta: rng.poisson(np.exp(eta)), 1.0


# Cells: rows, columns, strong ones, their size in standard errors, correlation; and a bound of the
# loss of all coefficients in squared standard errors. One scale for all has losses of 9, 15, 21,
# 35 and 14 in the first five, and holds .47, .50, .78, .35 and .42 of the strong.
CELLS = [
    (BayesianLinearRegression, draw_normal, (100, 20, 1, 3.0, 0.0), 8.6),
    (BayesianLinearRegression, draw_normal, (100, 20, 1, 6.0, 0.0), 7.5),
    (BayesianLinearRegression, draw_normal, (100, 20, 1, 12.0, 0.0), 7.2),
    (BayesianLinearRegression, draw_normal, (400, 50, 2, 6.0, 0.0), 17.5),
    (BayesianLinearRegression, draw_normal, (200, 20, 1, 6.0, 0.8), 6.6),
    (BayesianLogisticRegression, draw_labels, (400, 20, 1, 6.0, 0.0), 12.0),
    (BayesianPoissonRegression, draw_counts, (400, 20, 1, 6.0, 0.0), 8.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("make", "draw", "cell", "most"), CELLS)
def test_strong_and_weak_coefficients_are_both_held(
    make: type, draw: object, cell: tuple[int, int, int, float, float], most: float
) -> None:
    strong, weak, loss = hold(make, draw, cell, 150)
    edge = 0.72 if cell[3] == 3.0 else 0.86  # less three standard errors of 150 or 300 draws
    assert strong >= edge
    assert 0.92 <= weak <= 0.99
    assert loss < most


def test_all_alike_cost_little() -> None:
    _, _, loss = hold(BayesianLinearRegression, draw_normal, (100, 10, 10, 3.0, 0.0), 60)
    assert loss < 12.0  # 10.3 under one scale for all, 12.8 under Cauchy scales alone


def test_one_strong_column_is_hardly_shrunk() -> None:
    ratios = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(100, 20))
        y = X[:, 0] + rng.normal(size=100)
        least = np.linalg.lstsq(X - X.mean(axis=0), y - y.mean(), rcond=None)[0][0]
        ratios.append(BayesianLinearRegression().fit(X, y).coef_[0] / least)
    assert 0.96 < np.mean(ratios) < 1.02


def test_batches_rows_and_merged_models_choose_alike() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 4))
    y = X[:, 0] + rng.normal(size=90)
    whole = BayesianLinearRegression().fit(X, y)
    rows, one, other = (BayesianLinearRegression() for _ in range(3))
    for x, target in zip(X, y, strict=True):
        rows.learn_one(x, target)
    for model, part in ((one, slice(0, 30)), (other, slice(30, 90))):
        model.partial_fit(X[part], y[part])
    for model in (rows, one.merge(other)):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
        assert model.log_evidence_ == pytest.approx(whole.log_evidence_, abs=1e-7)


def test_small_weights_are_no_sites_that_tell_little() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 20))
    y = X[:, 0] + rng.normal(size=400)
    model = BayesianLinearRegression().fit(X, y, np.full(400, 0.05))
    one_scale = BayesianLinearRegression(prior_precision=Integrated())
    one_scale.fit(X, y, np.full(400, 0.05))
    assert model.coef_[0] > 1.1 * one_scale.coef_[0]


def test_the_nodes_are_a_few() -> None:
    for n, m in itertools.product((5, 50), (2, 40)):
        rng = np.random.default_rng(n)
        data = make_factor(rng.normal(size=(n, m)), rng.normal(size=n))
        choice = LocalScales().choose(data, LearnedNoise(), intercept=1, mean=np.zeros(m))
        assert len(choice.weights) in (1, 5)
        assert choice.weights.sum() == pytest.approx(1.0)
        assert np.all(np.isfinite(choice.precisions) & (choice.precisions >= 0.0))
