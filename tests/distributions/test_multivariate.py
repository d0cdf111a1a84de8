"""The joint distributions of coefficients against scipy, and what they say when ill-informed."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from posterity.distributions import (
    MultivariateMixture,
    MultivariateNormal,
    MultivariateT,
    Normal,
    StudentT,
)

KINDS = {
    "normal": MultivariateNormal,
    "t": lambda *args, **kwargs: MultivariateT(7.0, *args, **kwargs),
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def root(p, seed=0):
    """A well-conditioned upper triangle with a positive diagonal."""
    rng = np.random.default_rng(seed)
    triangle = np.triu(rng.normal(size=(p, p)), 1)
    return triangle + np.diag(rng.uniform(1, 3, p))


def precision(triangle, scale):
    return triangle.T @ triangle / scale**2


@pytest.mark.parametrize("p", [1, 2, 3, 8, 9])
class TestAgainstScipy:
    def test_normal(self, p):
        rng = np.random.default_rng(p)
        mean, triangle, scale = rng.normal(size=p), root(p), 0.7
        ours = MultivariateNormal(mean, triangle, scale)
        covariance = np.linalg.inv(precision(triangle, scale))
        np.testing.assert_allclose(ours.cov, covariance, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(ours.std(), np.sqrt(np.diag(covariance)), rtol=1e-12)
        w = rng.normal(size=(20, p))
        scipys = stats.multivariate_normal(mean, covariance)
        np.testing.assert_allclose(ours.logpdf(w), scipys.logpdf(w), rtol=1e-10)
        assert ours.logpdf(w[0]) == pytest.approx(scipys.logpdf(w[0]), rel=1e-10)

    @pytest.mark.parametrize("df", [0.6, 3.0, 12.5, 900.0, 1e7, np.inf])
    def test_student(self, p, df):
        rng = np.random.default_rng(p)
        mean, triangle, scale = rng.normal(size=p), root(p), 0.7
        ours = MultivariateT(df, mean, triangle, scale)
        shape = np.linalg.inv(precision(triangle, scale))
        if df > 2:
            factor = 1 if df == np.inf else df / (df - 2)
            np.testing.assert_allclose(ours.cov, factor * shape, rtol=1e-10, atol=1e-13)
        w = rng.normal(size=(20, p))
        scipys = stats.multivariate_t(mean, shape, df=df)
        # scipy subtracts log gammas of df / 2.
        tolerance = 1e-10 if df < 1e6 or df == np.inf else 1e-7
        np.testing.assert_allclose(ours.logpdf(w), scipys.logpdf(w), rtol=tolerance)

    @each_kind
    def test_marginals_are_those_of_the_covariance(self, kind, p):
        ours = kind(np.arange(p), root(p), 2.0)
        np.testing.assert_allclose(ours.marginal().std() ** 2, np.diag(ours.cov), rtol=1e-12)
        low, high = ours.marginal(p - 1).interval(0.8)
        np.testing.assert_allclose(ours.interval(0.8)[p - 1], [low, high])
        assert ours.interval(0.8).shape == (p, 2)
        assert ours.marginal([0]).shape == (1,)


def test_one_coefficient_is_univariate():
    w = np.linspace(-3, 3, 7)
    normal, student = (kind([0.3], [[2.0]], 0.5) for kind in KINDS.values())
    np.testing.assert_allclose(normal.logpdf(w[:, None]), Normal(0.3, 0.25).logpdf(w), rtol=1e-13)
    np.testing.assert_allclose(
        student.logpdf(w[:, None]), StudentT(7.0, 0.3, 0.25).logpdf(w), rtol=1e-13
    )


@pytest.mark.parametrize("p", [1, 4, 5, 30])
def test_many_degrees_of_freedom_lose_no_digits(p):
    triangle, w = root(p), np.full(p, 0.1)
    normal = MultivariateNormal(np.zeros(p), triangle).logpdf(w)
    student = MultivariateT(1e13, np.zeros(p), triangle).logpdf(w)
    assert student == pytest.approx(float(normal), rel=1e-9)


@given(
    arrays(float, (3, 3), elements=st.floats(-5, 5)),
    arrays(float, 3, elements=st.floats(0.1, 5)),
    st.floats(0.1, 10),
)
def test_the_chain_rule(upper, diagonal, scale):
    """A joint normal density is the product of its last marginal and what is given it."""
    triangle = np.triu(upper, 1) + np.diag(diagonal)
    w, mean = np.array([0.3, -1.0, 2.0]), np.array([1.0, 0.0, 1.5])
    joint = MultivariateNormal(mean, triangle, scale)
    last = joint.marginal(2).logpdf(w[2])
    shift = -np.linalg.solve(triangle[:2, :2], triangle[:2, 2]) * (w[2] - mean[2])
    given_last = MultivariateNormal(mean[:2] + shift, triangle[:2, :2], scale)
    assert joint.logpdf(w) == pytest.approx(float(last + given_last.logpdf(w[:2])), rel=1e-7)


@each_kind
class TestDraws:
    def test_shapes(self, kind):
        ours = kind(np.zeros(3), root(3))
        assert ours.rvs().shape == (3,)
        assert ours.rvs(1).shape == (1, 3)
        assert ours.rvs(5).shape == (5, 3)
        assert ours.rvs((2, 5)).shape == (2, 5, 3)
        assert ours.rvs(0).shape == (0, 3)

    def test_they_follow_the_distribution(self, kind):
        ours = kind([1.0, -2.0, 3.0], root(3), 0.5)
        draws = ours.rvs(20_000, random_state=3)
        for i in range(3):
            assert stats.kstest(draws[:, i], ours.marginal(i).cdf).pvalue > 1e-3
        np.testing.assert_allclose(np.cov(draws.T), ours.cov, rtol=0.15, atol=0.005)

    def test_they_repeat(self, kind):
        ours = kind(np.zeros(3), root(3))
        again = ours.rvs(4, random_state=np.random.default_rng(9))
        np.testing.assert_array_equal(ours.rvs(4, random_state=9), again)

    def test_a_coefficient_without_information_is_named(self, kind):
        triangle = root(3)
        triangle[2] = 0.0
        message = r"improper: coefficient 2 \(age\) is not determined yet; learn more rows or use"
        with pytest.raises(ValueError, match=message):
            kind(np.zeros(3), triangle, names=("one", "height", "age")).rvs()
        with pytest.raises(ValueError, match="coefficient 2 is not determined yet"):
            kind(np.zeros(3), triangle).rvs(10)

    def test_unknown_noise(self, kind):
        with pytest.raises(ValueError, match="the noise is not determined yet; learn more"):
            kind(np.zeros(3), root(3), np.inf).rvs()


@each_kind
class TestWithoutInformation:
    def test_about_a_coefficient_of_its_own(self, kind):
        triangle = np.diag([2.0, 0.0, 1.0])
        ours, known = kind(np.zeros(3), triangle), kind(np.zeros(2), np.diag([2.0, 1.0]))
        np.testing.assert_array_equal(np.isinf(ours.std()), [False, True, False])
        np.testing.assert_array_equal(ours.interval(0.9)[1], [-np.inf, np.inf])
        np.testing.assert_allclose(ours.interval(0.9)[[0, 2]], known.interval(0.9))
        assert ours.cov[1, 1] == np.inf
        assert ours.cov[0, 1] == 0.0
        assert ours.logpdf([0.3, 77.0, 0.2]) == pytest.approx(float(known.logpdf([0.3, 0.2])))

    def test_those_that_depend_on_it_are_unbounded_too(self, kind):
        # Coefficient 0 is tied to 2, about which nothing is known; 1 is not.
        ours = kind(np.zeros(3), [[2.0, 1.0, 4.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])
        np.testing.assert_array_equal(np.isinf(ours.std()), [True, False, True])
        assert ours.cov[0, 2] == -np.inf
        assert ours.cov[0, 1] < 0.0
        assert np.isfinite(ours.cov[0, 1])

    def test_ties_that_cancel_leave_a_coefficient_bounded(self, kind):
        # w0 + 0.1 w1 + 0.3 w2 and w1 + 3 w2 are known, so w0 is, up to rounding in 0.1 * 3.
        ours = kind(np.zeros(3), [[1.0, 0.1, 0.3], [0.0, 1.0, 3.0], [0.0, 0.0, 0.0]])
        np.testing.assert_array_equal(np.isinf(ours.std()), [False, True, True])
        assert ours.marginal(0).scale == pytest.approx(math.hypot(1.0, 0.1))

    def test_it_is_the_limit_of_vaguer_priors(self, kind):
        triangle = np.array([[2.0, 1.0, 4.0], [0.0, 0.0, 0.0], [0.0, 0.0, 3.0]])
        vague = triangle + np.diag([0.0, 1e-7, 0.0])
        limit, near = kind(np.zeros(3), triangle), kind(np.zeros(3), vague)
        known = np.isfinite(limit.cov)
        np.testing.assert_allclose(limit.cov[known], near.cov[known], rtol=1e-6)
        np.testing.assert_array_equal(np.sign(limit.cov), np.sign(near.cov))
        assert (np.abs(near.cov[~known]) > 1e12).all()

    def test_about_anything(self, kind):
        ours = kind([1.0, 2.0], np.zeros((2, 2)))
        np.testing.assert_array_equal(ours.mean, [1, 2])
        np.testing.assert_array_equal(ours.std(), [np.inf, np.inf])
        np.testing.assert_array_equal(ours.cov, [[np.inf, 0], [0, np.inf]])
        np.testing.assert_array_equal(ours.logpdf(np.ones((3, 2))), [0, 0, 0])

    def test_about_the_noise(self, kind):
        ours = kind([1.0, 2.0], root(2), np.inf)
        np.testing.assert_array_equal(ours.std(), [np.inf, np.inf])
        np.testing.assert_array_equal(ours.interval(0.5), [[-np.inf, np.inf]] * 2)
        assert not np.isnan(ours.cov).any()
        assert ours.logpdf([5.0, 5.0]) == 0.0


@pytest.mark.parametrize("df", [0.0, -3.0])
def test_no_degrees_of_freedom(df):
    ours = MultivariateT(df, [1.0, 2.0], root(2), math.nan)
    np.testing.assert_array_equal(ours.mean, [1, 2])
    np.testing.assert_array_equal(ours.std(), [np.inf, np.inf])
    assert ours.logpdf([5.0, 5.0]) == 0.0
    with pytest.raises(ValueError, match="the noise is not determined yet"):
        ours.rvs()


def test_two_degrees_of_freedom_have_infinite_variance_but_bounds():
    ours = MultivariateT(2.0, [1.0, 2.0], root(2))
    assert np.isinf(ours.cov.diagonal()).all()
    assert not np.isnan(ours.cov).any()
    assert np.isfinite(ours.interval(0.95)).all()
    assert np.isfinite(ours.rvs(3)).all()


def test_a_perfect_fit_of_two_degrees_of_freedom_is_certain():
    ours = MultivariateT(2.0, [1.0, 2.0], root(2), 0.0)
    np.testing.assert_array_equal(ours.cov, np.zeros((2, 2)))
    np.testing.assert_array_equal(ours.std(), [0, 0])


@each_kind
class TestPerfectFit:
    def test_all_mass_is_at_the_mean(self, kind):
        ours = kind([1.0, 2.0], root(2), 0.0)
        np.testing.assert_array_equal(ours.std(), [0, 0])
        np.testing.assert_array_equal(ours.cov, np.zeros((2, 2)))
        np.testing.assert_array_equal(ours.interval(0.9), [[1, 1], [2, 2]])
        np.testing.assert_array_equal(ours.rvs(2), [[1, 2], [1, 2]])
        np.testing.assert_array_equal(ours.logpdf([[1, 2], [1, 3]]), [np.inf, -np.inf])

    def test_what_is_not_known_stays_unknown(self, kind):
        ours = kind([1.0, 2.0], np.diag([1.0, 0.0]), 0.0)
        np.testing.assert_array_equal(ours.std(), [0, np.inf])


@each_kind
class TestRefusals:
    def test_shapes_that_do_not_fit(self, kind):
        with pytest.raises(ValueError, match=r"mean has shape \(2,\) and precision_root \(3, 3\)"):
            kind(np.zeros(2), root(3))
        with pytest.raises(ValueError, match="there are 1 names for 2 coefficients"):
            kind(np.zeros(2), root(2), names=["one"])

    def test_another_number_of_coefficients(self, kind):
        with pytest.raises(ValueError, match=r"w has shape \(5, 3\), but there are 2 coefficients"):
            kind(np.zeros(2), root(2)).logpdf(np.zeros((5, 3)))

    def test_a_level_out_of_range(self, kind):
        with pytest.raises(ValueError, match="level must lie between 0 and 1, but it is -1"):
            kind(np.zeros(2), root(2)).interval(-1)


@each_kind
def test_it_is_a_snapshot(kind):
    mean, triangle = np.zeros(2), root(2)
    ours = kind(mean, triangle)
    before = ours.cov
    mean += 1.0
    triangle *= 2.0
    np.testing.assert_array_equal(ours.mean, [0, 0])
    np.testing.assert_array_equal(ours.cov, before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ours)).cov, before)


def test_repr():
    assert repr(MultivariateNormal(np.zeros(2), np.eye(2))) == (
        "MultivariateNormal(2 coefficients, scale=1)"
    )
    assert repr(MultivariateT(3, np.zeros(2), np.eye(2))) == (
        "MultivariateT(2 coefficients, df=3, scale=1)"
    )


def test_a_mixture_of_mixtures_is_opened() -> None:
    one, other = (MultivariateNormal([mean, 0.0], np.eye(2)) for mean in (0.0, 4.0))
    nested = MultivariateMixture.of(
        [MultivariateMixture([one, other], [0.25, 0.75]), other], [0.4, 0.6]
    )
    flat = MultivariateMixture([one, other], [0.1, 0.9])
    assert nested.mean == pytest.approx(flat.mean)
    assert nested.cov == pytest.approx(flat.cov)
    assert nested.logpdf([1.0, 2.0]) == pytest.approx(flat.logpdf([1.0, 2.0]))
