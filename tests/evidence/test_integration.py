"""The evidence integrated over the scale of the prior: quadrature, nodes, coverage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from posterity import BayesianLinearRegression
from posterity.evidence import Choice, FeatureScales, Integrated, Maximized, Spectrum, match_moments
from posterity.factor import Factor
from posterity.noise import KnownNoise, LearnedNoise, Noise
from posterity.posteriors import LinearPosterior
from posterity.priors import GaussianPrior


def hyperprior(log_ratio: float, n_directions: int) -> float:
    """Lomax(1/10) for 1 / ratio, scaled by 2% a direction, cut off at e^-40 and e^40; its density.

    In the log of the ratio, relative to the one that makes signal and noise equally large.
    """
    linear_moments = stats.lomax(0.1, scale=min(0.02 * n_directions, 1.0))
    inside = linear_moments.cdf(np.exp(40.0)) - linear_moments.cdf(np.exp(-40.0))
    signal = np.exp(-log_ratio)
    return float(linear_moments.pdf(signal) * signal / inside)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [LearnedNoise(), LearnedNoise(1.0, 2.0), KnownNoise(1.5)])
@pytest.mark.parametrize(("n", "m"), [(2, 1), (6, 1), (20, 2), (3, 5), (40, 5), (400, 3)])
def test_it_is_what_quadrature_finds(n: int, m: int, noise: Noise, make_rows, make_factor) -> None:
    data = make_factor(*make_rows(n, m), intercept=True)
    squares = np.square(data.root[1:, 1:]).sum(axis=0) / n
    spectrum = Spectrum.of(data, intercept=True, mean=np.zeros(m), shape=squares)
    n_directions = int(np.count_nonzero(spectrum.squares))
    centre = spectrum.log_evidence(m, noise)[0]

    def density(log_ratio: float) -> float:
        value = spectrum.log_evidence(spectrum.signal * np.exp(log_ratio), noise)[0]
        return hyperprior(log_ratio, n_directions) * float(np.exp(value - centre))

    pieces = [
        integrate.quad(density, low, low + 4.0, epsabs=0.0, epsrel=1e-11)[0]
        for low in np.arange(-40.0, 40.0, 4.0)
    ]
    choice = Integrated().choose(data, noise, intercept=True, mean=np.zeros(m))
    assert choice.log_evidence == pytest.approx(np.log(sum(pieces)) + centre, abs=1e-8)


def predictions(
    choice: Choice, data: Factor, noise: Noise, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Location and scale at ``X`` of the matched Student-t or Normal."""
    located = []
    for precision in choice.precisions:
        belief = GaussianPrior(0.0, precision)
        prior = belief.factor(X.shape[1], intercept=True)
        factor = prior.copy()
        factor.merge(data)
        predictive = LinearPosterior(belief, noise, True, prior, factor).predictive(X)
        located.append((predictive.loc, predictive.scale))
    return match_moments(*(np.array(part) for part in zip(*located, strict=True)), choice.weights)


@pytest.mark.parametrize(("n", "m"), [(3, 1), (6, 1), (10, 3), (30, 10), (100, 10), (8, 12)])
@pytest.mark.parametrize("signal", [0.0, 1.0, 100.0])
def test_few_nodes_are_as_good_as_many(
    n: int, m: int, signal: float, make_rows, make_factor
) -> None:
    for seed in range(5):
        X, y = make_rows(n, m, seed, signal=signal)
        data, noise = make_factor(X, y, intercept=True), LearnedNoise()
        new = X[:3] + 0.5
        few, many = (
            Integrated(most_nodes=k, tolerance=0.0).choose(
                data, noise, intercept=True, mean=np.zeros(m)
            )
            for k in (5, 40)
        )
        ours, truth = (predictions(choice, data, noise, new) for choice in (few, many))
        assert np.abs((ours[0] - truth[0]) / truth[1]).max() < 0.03
        assert np.abs(ours[1] / truth[1] - 1.0).max() < 0.1
        if m == 1:  # with one singular value two nodes are exact
            assert np.allclose(ours[1], truth[1], rtol=1e-9)


def test_one_node_is_enough_when_nodes_agree(make_rows, make_factor) -> None:
    kwargs = {"noise": LearnedNoise(), "intercept": True, "mean": np.zeros(3)}
    few = Integrated().choose(make_factor(*make_rows(5, 3), intercept=True), **kwargs)
    many = Integrated().choose(make_factor(*make_rows(5000, 3), intercept=True), **kwargs)
    assert len(few.weights) == 5
    assert few.disagreement > 0.01
    assert len(many.weights) == 1
    assert many.disagreement < 0.01


def test_weak_effects_keep_their_nodes_in_any_number_of_rows(make_factor) -> None:
    """Beside the noise the nodes agree, as a stream's predictions need them to; not here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = X @ np.full(3, 1.0 / np.sqrt(20_000)) + rng.normal(size=20_000)
    data = make_factor(X, y, intercept=True)
    for strategy, n_nodes in ((Integrated(), 5), (Integrated().for_stream, 1)):
        choice = strategy.choose(data, LearnedNoise(), intercept=True, mean=np.zeros(3))
        assert len(choice.weights) == n_nodes


@pytest.mark.parametrize("signal", [0.0, 1.0])
def test_the_disagreement_is_that_of_the_worst_combination(
    signal: float, make_rows, make_factor
) -> None:
    """Largest eigenvalue of the means' covariance over nodes, relative to the posterior's."""
    X, y = make_rows(9, 3, signal=signal)
    data, noise = make_factor(X, y, intercept=True), KnownNoise(1.0)
    choice = Integrated(40, 0.0).choose(data, noise, intercept=True, mean=np.zeros(3))
    stream = Integrated(40, 0.0).for_stream.choose(data, noise, intercept=True, mean=np.zeros(3))
    means, fitted, within = [], [], np.zeros((3, 3))
    for precision, weight in zip(choice.precisions, choice.weights, strict=True):
        factor = GaussianPrior(0.0, precision).factor(3, intercept=True)
        factor.merge(data)
        means.append(factor.coefficients()[1:, 0])
        fitted.append(factor.predict(X, intercept=True)[0][:, 0])
        within += weight * np.linalg.inv(factor.root.T @ factor.root)[1:, 1:]
    off = np.array(means) - choice.weights @ np.array(means)
    between = (choice.weights * off.T) @ off
    worst = np.linalg.eigvals(np.linalg.solve(within, between)).real
    assert worst.max() <= choice.disagreement * 1.001
    assert choice.disagreement == pytest.approx(worst.sum(), rel=1e-3)
    variance = choice.weights @ np.square(np.array(fitted) - choice.weights @ np.array(fitted))
    assert stream.disagreement == pytest.approx(variance.mean(), rel=1e-3)


def test_nothing_known_is_the_hyperprior() -> None:
    choice = Integrated().choose(Factor(4), LearnedNoise(), intercept=True, mean=np.zeros(3))
    assert choice.log_evidence == pytest.approx(0.0, abs=1e-12)
    assert choice.pinned.all()

    def mean(of: Callable[[float], float]) -> float:
        return integrate.quad(lambda u: of(u) * hyperprior(u, 1), -40.0, 40.0, limit=500)[0]

    # Nodes are exact for the share that is left to the prior, against the middle of the ratios.
    middle = np.exp(mean(lambda u: u))
    expected = mean(lambda u: middle / (middle + np.exp(u)))
    assert choice.weights @ (middle / (middle + choice.ratios)) == pytest.approx(expected, rel=1e-3)


def test_shapes_are_integrated_together(make_rows, make_factor) -> None:
    X, y = make_rows(100, 6, signal=3.0, kept=3)
    data = make_factor(X, y, intercept=True)
    shapes = np.ones((4, 6))
    shapes[1, 3:] = 100.0
    shapes[2, :3] = 1e6
    shapes[3, 3:] = 90.0
    noise = LearnedNoise()
    together = Integrated(tolerance=0.0).choose(
        data, noise, intercept=True, mean=np.zeros(6), shapes=shapes
    )
    alone = [
        Integrated().choose(data, noise, intercept=True, mean=np.zeros(6), shapes=shape[None])
        for shape in shapes
    ]
    evidences = np.array([choice.log_evidence for choice in alone])
    assert together.log_evidence == pytest.approx(np.logaddexp.reduce(evidences) - np.log(4.0))
    assert 2 not in together.shapes
    assert {1, 3} <= set(together.shapes.tolist())
    assert together.weights.sum() == pytest.approx(1.0)
    probability = np.exp(evidences - np.logaddexp.reduce(evidences))
    of_first = together.weights[together.shapes == 1].sum()
    assert of_first == pytest.approx(probability[1], abs=0.01)
    for precision, ratio, which in zip(
        together.precisions, together.ratios, together.shapes, strict=True
    ):
        assert np.allclose(precision, ratio * shapes[which])


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (lambda: Integrated(most_nodes=0), "most_nodes is 0: it must be at least 1"),
        (lambda: Integrated(tolerance=-1.0), "tolerance is -1.0: it must not be negative"),
    ],
)
def test_settings_out_of_range(strategy: Callable[[], Integrated], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        strategy()


def intervals_cover(n: int, problems: int) -> tuple[float, float, float]:
    """Coverage, median width and the flat prior's, of 95% intervals in units of the noise."""
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.uniform(-2.0, 2.0, (problems, 3))
    hits, widths, flat_widths = [], [], []
    noise, zero, strategy = LearnedNoise(), np.zeros(1), Integrated()
    quantile, flat_quantile = stats.t.ppf(0.975, [n - 1, n - 2])
    for slope, unit, sd in scales:
        X = unit * rng.normal(size=(n + 1, 1))
        y = slope * rng.normal() * X[:, 0] + sd * rng.normal(size=n + 1)
        data = Factor(2)
        data.append(X[:n], y[:n, None], intercept=True)
        choice = strategy.choose(data, noise, intercept=True, mean=zero)
        # One feature: the posterior of each node in closed form.
        root, moment = data.root[1, 1], data.moments[1, 0]
        away = X[n, 0] - data.root[0, 1] / data.root[0, 0]
        centre = data.moments[0, 0] / data.root[0, 0]
        information = root**2 + np.append(choice.precisions[:, 0], 0.0)
        coefficient = root * moment / information
        residual = data.residual()[0, 0] + moment**2 * (1.0 - root**2 / information)
        spread = residual * (1.0 + 1.0 / n + away**2 / information)
        location, scale = match_moments(
            centre + coefficient[:-1, None] * away,
            np.sqrt(spread[:-1, None] / (n - 1)),
            choice.weights,
        )
        hits.append(abs(y[n] - location[0]) < quantile * scale[0])
        widths.append(2.0 * quantile * scale[0] / sd)
        flat_widths.append(2.0 * flat_quantile * np.sqrt(spread[-1] / (n - 2)) / sd)
    return float(np.mean(hits)), float(np.median(widths)), float(np.median(flat_widths))


@pytest.mark.slow
def test_intervals_of_five_rows_cover(report) -> None:
    """Slope, feature and noise scales over four decades: the figure that BayesianRidge misses."""
    coverage, width, flat_width = intervals_cover(5, 10_000)
    report(f"n = 5: coverage {coverage:.4f}, median width {width:.2f}, flat prior {flat_width:.2f}")
    assert 0.94 < coverage < 0.965
    assert width < flat_width


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 10])
def test_intervals_of_few_rows_cover(n: int, report) -> None:
    coverage, width, flat_width = intervals_cover(n, 4_000)
    report(
        f"n = {n}: coverage {coverage:.4f}, median width {width:.2f}, flat prior {flat_width:.2f}"
    )
    assert 0.935 < coverage < 0.975
    assert width < flat_width


def test_a_scale_that_is_pinned_pins(make_rows, make_factor) -> None:
    data = make_factor(*make_rows(30, 3), intercept=True)
    scales = FeatureScales(np.array([2.0, 0.0, 1.0]), np.array([False, True, False]))
    for strategy in (Integrated(), Maximized()):
        choice = strategy.choose(
            data, LearnedNoise(), intercept=True, mean=np.zeros(3), scales=scales
        )
        assert choice.pinned.tolist() == [False, True, False]
        assert np.allclose(choice.precisions[:, 0], 2.0 * choice.precisions[:, 2])


def test_a_coefficient_has_the_hill_and_the_tails_of_all_nodes() -> None:
    """Of five rows no Student-t has both: the one with the nodes' mean and scale is .06 off."""
    off = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5, 1))
        y = 0.3 * X[:, 0] + rng.normal(size=5)
        at = np.linspace(-4.0, 4.0, 81)[:, None]
        few, many = (
            BayesianLinearRegression(prior_precision=Integrated(most_nodes, tolerance=0.0))
            .fit(X, y)
            .posterior_.marginal([1])
            .cdf(at)
            for most_nodes in (5, 40)
        )
        off.append(np.abs(few - many).max())
    assert np.mean(off) < 0.03
