"""Generalized posteriors against scikit-learn, statsmodels and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_expit
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from posterity.evidence import Integrated
from posterity.forgetting import Adaptive, Exponential, Stabilized, Window
from posterity.likelihoods import (
    Bernoulli,
    Gaussian,
    LaplaceNoise,
    Likelihood,
    NegativeBinomial,
    Poisson,
    StudentT,
)
from posterity.noise import KnownNoise
from posterity.posteriors import EvidencePosterior, GeneralizedPosterior, LinearPosterior
from posterity.priors import GaussianPrior

Array = np.ndarray
APPROXIMATIONS = ["laplace", "moments"]


def started(
    n_features: int,
    likelihood: Likelihood | None = None,
    approximation: str = "laplace",
    *,
    precision: float | str = 1.0,
    intercept: bool = True,
) -> GeneralizedPosterior:
    """A posterior that has seen nothing; its prior precision is learned where it is "auto"."""
    noise = KnownNoise(1.0)
    inner: LinearPosterior
    if isinstance(precision, str):
        mean = GaussianPrior(0.0, 0.0)
        inner = EvidencePosterior.learned(
            Integrated(), mean, noise, n_features, intercept=intercept
        )
    else:
        belief = GaussianPrior(0.0, precision)
        inner = LinearPosterior.before_data(belief, noise, n_features, intercept=intercept)
    return GeneralizedPosterior.wrap(inner, likelihood or Bernoulli(), approximation)  # type: ignore[arg-type]


def labels(seed: int, n: int, m: int, size: float = 0.5) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    eta = X @ (size * rng.normal(size=m)) + 0.3
    return X, (rng.random((n, 1)) < expit(eta)[:, None]).astype(float)


def counts(seed: int, n: int, m: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, exposure = rng.normal(size=(n, m)), rng.uniform(0.5, 3.0, size=n)
    rate = exposure * np.exp(0.3 * X[:, 0] - 0.2 * X[:, -1] + 0.5)
    return X, rng.poisson(rate)[:, None].astype(float), np.log(exposure)


def fit(posterior: GeneralizedPosterior, X: Array, y: Array, **more: Array) -> GeneralizedPosterior:
    posterior.fit(X, y, None, np.zeros(len(X)), **more)
    return posterior


def deviations(posterior: LinearPosterior) -> Array:
    """Posterior standard deviations of [intercept, coefficients]."""
    names = tuple(map(str, range(posterior.n_coefficients)))
    return np.sqrt(np.diag(posterior.joint(names).cov))


# ---- the mode -----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [0.01, 1.0, 100.0])
def test_the_mode_is_scikit_learns(precision: float) -> None:
    X, y = labels(0, 400, 5)
    model = LogisticRegression(C=1.0 / precision, tol=1e-12, solver="newton-cholesky")
    model.fit(X, y[:, 0])
    ours = fit(started(5, precision=precision), X, y).coefficients()
    assert ours[0] == pytest.approx(model.intercept_[0], abs=1e-6)
    assert ours[1:] == pytest.approx(model.coef_[0], abs=1e-6)


def test_the_mode_of_many_rows_is_scikit_learns() -> None:
    X, y = labels(1, 40_000, 4)
    model = LogisticRegression(C=1.0, tol=1e-12, solver="newton-cholesky").fit(X, y[:, 0])
    ours = fit(started(4), X, y).coefficients()
    assert ours == pytest.approx(np.append(model.intercept_, model.coef_[0]), abs=1e-6)


def test_the_mode_of_counts_is_scikit_learns() -> None:
    X, y, _ = counts(2, 300, 4)
    # Its penalty is of the mean deviance.
    model = PoissonRegressor(alpha=1.0 / 300.0, tol=1e-12, max_iter=10_000).fit(X, y[:, 0])
    ours = fit(started(4, Poisson()), X, y).coefficients()
    assert ours == pytest.approx(np.append(model.intercept_, model.coef_), abs=1e-6)


@pytest.mark.parametrize("family", ["logit", "probit", "Poisson", "negative binomial"])
def test_a_flat_prior_gives_maximum_likelihood(family: str) -> None:
    api = pytest.importorskip("statsmodels.api")
    offsets = None
    if family in ("logit", "probit"):
        X, y = labels(3, 300, 3)
        link = getattr(api.families.links, family.capitalize())()
        likelihood: Likelihood = Bernoulli(family)  # type: ignore[arg-type]
        theirs = api.families.Binomial(link)
    else:
        X, y, offsets = counts(3, 300, 3)
        likelihood = Poisson() if family == "Poisson" else NegativeBinomial(0.5)
        theirs = (
            api.families.Poisson()
            if family == "Poisson"
            else api.families.NegativeBinomial(alpha=0.5)
        )
    model = api.GLM(y[:, 0], api.add_constant(X), family=theirs, offset=offsets)
    predictive = model.fit(tol=1e-14, maxiter=200)
    posterior = started(3, likelihood, precision=0.0)
    posterior.fit(X, y, None, np.zeros(300), offsets)
    assert posterior.coefficients() == pytest.approx(predictive.params, abs=1e-6)
    if family != "probit":  # statsmodels' are of the expected information there
        expected = predictive.bse if family != "negative binomial" else _observed(model, predictive)
        assert deviations(posterior) == pytest.approx(expected, rel=1e-6)


def _observed(model, predictive) -> Array:  # type: ignore[no-untyped-def]
    """Standard errors from the observed information."""
    return np.sqrt(np.diag(np.linalg.inv(-model.hessian(predictive.params, observed=True))))


def test_rows_of_weight_two_are_rows_twice() -> None:
    X, y = labels(4, 60, 3)
    once, twice = started(3), started(3)
    once.fit(X, y, np.full(60, 2.0), np.zeros(60))
    fit(twice, np.vstack([X, X]), np.vstack([y, y]))
    assert once.coefficients() == pytest.approx(twice.coefficients(), abs=1e-9)
    assert once.log_evidence == pytest.approx(twice.log_evidence, abs=1e-8)
    assert once.n_observations == twice.n_observations == 120.0


# ---- the posterior ------------------------------------------------------------------------------


def quadrature(
    X: Array, y: Array, precision: float, width: float = 8.0
) -> tuple[Array, Array, float]:
    """Mean and standard deviation of one or two coefficients, and the log evidence."""
    m = X.shape[1]
    axis = np.linspace(-width, width, 1001 if m == 2 else 100_001) / np.sqrt(precision)
    grid = np.stack(np.meshgrid(*[axis] * m, indexing="ij"), axis=-1).reshape(-1, m)
    log_density = -0.5 * precision * np.sum(grid**2, axis=1)
    log_density += 0.5 * m * np.log(precision / (2.0 * np.pi))
    for row, label in zip(X, y[:, 0], strict=True):
        log_density += log_expit((2.0 * label - 1.0) * (grid @ row))
    top = log_density.max()
    density = np.exp(log_density - top)
    total = density.sum()
    mean = density @ grid / total
    spread = density @ (grid - mean) ** 2 / total
    return mean, np.sqrt(spread), float(top + np.log(total * (axis[1] - axis[0]) ** m))


@pytest.mark.parametrize(("n", "m"), [(3, 1), (10, 1), (100, 1), (5, 2), (20, 2), (100, 2)])
def test_expectation_propagation_against_quadrature(n: int, m: int) -> None:
    X, y = labels(n + m, n, m, size=1.0)
    posterior = fit(started(m, approximation="moments", intercept=False), X, y)
    mean, deviation, log_evidence = quadrature(X, y, 1.0)
    assert (posterior.coefficients() - mean) / deviation == pytest.approx(np.zeros(m), abs=0.05)
    assert deviations(posterior) / deviation == pytest.approx(np.ones(m), abs=0.03)
    assert posterior.log_evidence == pytest.approx(log_evidence, abs=0.02)


def test_laplaces_method_is_the_analytic_one() -> None:
    X, y = labels(6, 50, 2)
    posterior = fit(started(2, intercept=False), X, y)
    w = posterior.coefficients()
    share = expit(X @ w)
    hessian = np.eye(2) + (X * (share * (1.0 - share))[:, None]).T @ X
    assert X.T @ (y[:, 0] - share) == pytest.approx(w, abs=1e-8)
    assert posterior.joint(("a", "b")).cov == pytest.approx(np.linalg.inv(hessian), rel=1e-6)
    value = np.sum(log_expit((2.0 * y[:, 0] - 1.0) * (X @ w))) - 0.5 * w @ w
    expected = value - 0.5 * np.linalg.slogdet(hessian)[1]
    assert posterior.log_evidence == pytest.approx(expected, abs=1e-8)


def test_three_equal_labels() -> None:
    """One feature, x = 1 and y = 1 three times: what is predicted at 10 is not certain."""
    X, y, there = np.ones((3, 1)), np.ones((3, 1)), np.array([[10.0]])
    predictive = {}
    for approximation in APPROXIMATIONS:
        posterior = started(1, None, approximation, precision=0.1, intercept=False)
        fit(posterior, X, y)
        predictive[approximation] = posterior.predictive(there).mean()[0]
        eta = posterior.linear_predictor(there)
        points = np.linspace(-12.0, 12.0, 200_001)
        density = np.exp(-0.5 * points**2) * (points[1] - points[0]) / np.sqrt(2.0 * np.pi)
        expected = density @ expit(eta.loc[0] + eta.scale[0] * points)
        assert predictive[approximation] == pytest.approx(expected, abs=1e-6)
    assert predictive["laplace"] == pytest.approx(0.915, abs=0.001)
    # The true posterior is skewed: its own answer is 0.974.
    assert predictive["laplace"] < predictive["moments"] < 0.974
    assert predictive["moments"] == pytest.approx(0.974, abs=0.02)


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_one_pass_against_the_batch(approximation: str) -> None:
    limit = {"laplace": 0.5, "moments": 0.3}[approximation]
    for seed in range(3):
        X, y = labels(100 + seed, 5000, 10, size=0.3)
        batch = fit(started(10, None, approximation), X, y)
        stream, batches = started(10, None, approximation), started(10, None, approximation)
        stream.predict_then_learn(X, y, None, np.zeros(5000))
        for first in range(0, 5000, 100):
            part = slice(first, first + 100)
            batches.append(X[part], y[part], None, np.zeros(100))
        deviation = deviations(batch)
        off = (stream.coefficients() - batch.coefficients()) / deviation
        assert np.abs(off).max() < limit
        assert deviations(stream) == pytest.approx(deviation, rel=0.05)
        off = (batches.coefficients() - batch.coefficients()) / deviation
        assert np.sqrt(np.mean(off**2)) < {"laplace": 0.15, "moments": 0.1}[approximation]


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize(
    "likelihood", [Bernoulli(), Poisson(), StudentT(), LaplaceNoise()], ids=repr
)
def test_log_evidence_of_a_stream_is_the_sum_of_its_predictions(
    likelihood: Likelihood, approximation: str
) -> None:
    X, y = labels(8, 200, 3)
    posterior = started(3, likelihood, approximation)
    predictive = posterior.predict_then_learn(X, y, None, np.zeros(200))
    assert posterior.log_evidence == pytest.approx(posterior.statistics.log_predictive, abs=1e-4)
    if approximation == "moments" and not isinstance(likelihood, StudentT | LaplaceNoise):
        assert np.sum(predictive.logpmf(y[:, 0])) == pytest.approx(posterior.log_evidence, abs=0.05)


@pytest.mark.parametrize("noise", [StudentT(4.0, 0.5), LaplaceNoise(0.5)], ids=repr)
@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_outliers_are_passed_over(noise: Likelihood, approximation: str) -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 2))
    y = X @ [[1.0], [-2.0]] + 0.5 * rng.normal(size=(300, 1))
    y[::10] += 50.0
    batch = fit(started(2, noise, approximation), X, y)
    assert batch.coefficients() == pytest.approx([0.0, 1.0, -2.0], abs=0.15)
    stream = started(2, noise, approximation)
    stream.predict_then_learn(X[1:], y[1:], None, np.zeros(299))
    assert stream.coefficients() == pytest.approx([0.0, 1.0, -2.0], abs=0.3)


def test_gaussian_sites_are_exact() -> None:
    X, y = labels(9, 50, 3)
    exact = LinearPosterior.before_data(GaussianPrior(0.0, 1.0), KnownNoise(4.0), 3, intercept=True)
    exact.append(X, y, None, np.zeros(50))
    for approximation in APPROXIMATIONS:
        posterior = started(3, Gaussian(4.0), approximation)
        posterior.predict_then_learn(X, y, None, np.zeros(50))
        assert posterior.coefficients() == pytest.approx(exact.coefficients(), abs=1e-10)
        assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=1e-6)


# ---- priors, forgetting and the rest ------------------------------------------------------------


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_the_prior_is_learned_by_the_evidence(approximation: str) -> None:
    """The best fixed precision has no more evidence than what is chosen (features alike)."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(400, 8))
    y = (rng.random((400, 1)) < expit(X @ rng.normal(0.0, 0.5, size=8))[:, None]).astype(float)
    learned = fit(started(8, None, approximation, precision="auto"), X, y)
    chosen = float(np.exp(np.mean(np.log(learned.prior_precision))))
    grid = np.geomspace(0.3, 60.0, 25)
    evidence = [
        fit(started(8, None, approximation, precision=one), X, y).log_evidence for one in grid
    ]
    best = grid[int(np.argmax(evidence))]
    assert 0.4 < chosen / best < 2.5
    again = fit(started(8, None, approximation, precision=chosen), X, y)
    assert again.log_evidence > max(evidence) - 0.5
    assert learned.coefficients() == pytest.approx(again.coefficients(), abs=0.05)


def test_learning_the_prior_online_ends_near_the_batch() -> None:
    X, y = labels(12, 3000, 5)
    stream, batch = (started(5, None, "moments", precision="auto") for _ in range(2))
    stream.predict_then_learn(X, y, None, np.zeros(3000))
    fit(batch, X, y)
    assert stream.prior_precision == pytest.approx(batch.prior_precision, rel=0.3)
    off = np.abs(stream.coefficients() - batch.coefficients())
    assert off.max() < 0.5 * deviations(batch).max()


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Exponential(0.99), Stabilized(0.99), Window(200), Adaptive()])
@pytest.mark.parametrize("precision", [1.0, "auto"])
def test_what_drifts_is_followed_by_forgetting(strategy, precision) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(13)
    n = 1000
    X, sign = rng.normal(size=(n, 2)), np.where(np.arange(n) < n // 2, 1.0, -1.0)
    y = (rng.random((n, 1)) < expit(2.0 * sign * X[:, 0])[:, None]).astype(float)
    still = started(2, precision=precision)
    moving = strategy.begin(started(2, precision=precision))
    predictive = [
        one.predict_then_learn(X, y, None, np.ones(n)).logpmf(y[:, 0]).mean()
        for one in (still, moving)
    ]
    assert predictive[1] > predictive[0] + 0.05
    assert moving.coefficients()[1] < -1.0
    assert moving.n_observations == n
    assert moving.n_effective < 0.7 * n
    assert moving.predictive(X[:3]).mean().shape == (3,)


def test_exponential_forgetting_counts_as_it_says() -> None:
    X, y = labels(14, 300, 2)
    moving = Exponential(0.9).begin(started(2))
    moving.predict_then_learn(X, y, None, np.ones(300))
    assert moving.n_effective == pytest.approx((1.0 - 0.9**300) / 0.1)
    assert moving.log_evidence == pytest.approx(moving.statistics.log_predictive)


def test_merging_adds_the_site_rows() -> None:
    X, y = labels(15, 2000, 3)
    whole, left, right = (started(3, precision=1.0) for _ in range(3))
    fit(whole, X, y)
    fit(left, X[:1000], y[:1000])
    fit(right, X[1000:], y[1000:])
    assert left.has_same_prior(right)
    left.merge(right)
    assert left.n_observations == 2000.0
    off = np.abs(left.coefficients() - whole.coefficients())
    assert off.max() < 0.2 * deviations(whole).max()
    assert not left.has_same_prior(started(3, Poisson()))


def test_bad_targets_change_nothing() -> None:
    X, y = labels(17, 20, 2)
    posterior = fit(started(2), X, y)
    before = posterior.coefficients()
    with pytest.raises(ValueError, match="y in row 3 is 2: a label must be 0 or 1"):
        posterior.append(X[:5], np.array([[0.0, 1.0, 1.0, 2.0, 0.0]]).T, None, np.zeros(5))
    assert (posterior.coefficients() == before).all()
    assert posterior.n_observations == 20.0


def test_an_approximation_must_be_known() -> None:
    with pytest.raises(ValueError, match="approximation is 'exact': it must be 'laplace' or"):
        started(1, None, "exact")


# ---- extremes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
def test_separated_classes_have_an_answer_under_a_proper_prior(approximation: str) -> None:
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    y = (X > 0.0).astype(float)
    posterior = fit(started(1, None, approximation), X, y)
    assert np.isfinite(posterior.coefficients()).all()
    stream = started(1, None, approximation)
    stream.predict_then_learn(X, y, None, np.zeros(40))
    assert np.isfinite(stream.coefficients()).all()


def test_separated_classes_under_a_flat_prior_warn() -> None:
    X = np.linspace(-1.0, 1.0, 40)[:, None]
    with pytest.warns(UserWarning, match="the mode was not reached: the likelihood has no maximum"):
        fit(started(1, precision=0.0), X, (X > 0.0).astype(float))


@pytest.mark.parametrize("approximation", APPROXIMATIONS)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("weight", [1e-12, 1.0, 1e12])
def test_extremes(approximation: str, size: float, weight: float) -> None:
    rng = np.random.default_rng(18)
    X, weights = size * rng.normal(size=(50, 2)), np.full(50, weight)
    for likelihood, y in (
        (Bernoulli(), (rng.random((50, 1)) < 0.5).astype(float)),
        (Poisson(), rng.choice([0.0, 1.0, 1e9], size=(50, 1))),
    ):
        posterior = started(2, likelihood, approximation)
        posterior.predict_then_learn(X, y, weights, np.zeros(50))
        assert np.isfinite(posterior.coefficients()).all()
        assert np.isfinite(posterior.factor.triangle).all()


def test_counts_up_to_a_billion() -> None:
    rng = np.random.default_rng(19)
    X = rng.normal(size=(100, 2))
    y = rng.poisson(np.exp(20.0 + X @ [0.3, -0.2])).astype(float)[:, None]
    for approximation in APPROXIMATIONS:
        batch = fit(started(2, Poisson(), approximation), X, y)
        assert batch.coefficients() == pytest.approx([20.0, 0.3, -0.2], abs=1e-3)
        stream = started(2, Poisson(), approximation)
        stream.predict_then_learn(X, y, None, np.zeros(100))
        assert stream.coefficients() == pytest.approx([20.0, 0.3, -0.2], abs=0.02)
