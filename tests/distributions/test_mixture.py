"""Mixtures against sums over scipy's distributions, quadrature and their own laws."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

from posterity.distributions import (
    Mixture,
    MultivariateMixture,
    MultivariateNormal,
    MultivariateT,
    Normal,
    StudentT,
)

ROWS = 30
RNG = np.random.default_rng(7)
Y = RNG.normal(0, 4, ROWS)


def students(*dfs, apart=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return [StudentT(df, apart * rng.normal(size=ROWS), rng.uniform(0.5, 2.0, ROWS)) for df in dfs]


def normals(count, apart=1.0):
    return [Normal(c.loc, c.scale) for c in students(*[1.0] * count, apart=apart)]


def some_weights(count, seed=3):
    return np.random.default_rng(seed).dirichlet(np.ones(count), ROWS)


MIXTURES = {
    "one": Mixture(students(5.0), [1.0]),
    "normals": Mixture(normals(3), some_weights(3)),
    "normals far apart": Mixture(normals(3, apart=300.0), [0.22, 0.47, 0.31]),
    "few degrees": Mixture(students(2.2, 3.5, 7.0), some_weights(3)),
    "across the thresholds": Mixture(
        students(*np.geomspace(4, 3000, 8 * ROWS).reshape(8, ROWS)), some_weights(8)
    ),
    "normal and t": Mixture([normals(1)[0], students(4.0)[0], StudentT(80.0)], [0.3, 0.3, 0.4]),
    "far apart": Mixture(students(4.0, 90.0, apart=100.0), some_weights(2)),
    "narrow and wide": Mixture([StudentT(6.0, Y, 1e-3), StudentT(30.0, 0.0, 5.0)], [0.4, 0.6]),
    "a rare one": Mixture(students(5.0, 50.0), [1e-9, 1 - 1e-9]),
}


@pytest.fixture(params=MIXTURES, ids=str)
def mixture(request):
    return MIXTURES[request.param]


def scipys(component):
    if isinstance(component, Normal):
        return stats.norm(component.loc, component.scale)
    return stats.t(component.df, component.loc, component.scale)


def weighted(mixture, method, *args):
    columns = mixture.weights.T
    parts = [getattr(scipys(c), method)(*args) for c in mixture.components]
    return sum(w * part for w, part in zip(columns, parts, strict=True))


class TestAgainstScipy:
    @pytest.mark.parametrize("method", ["pdf", "cdf", "sf"])
    @pytest.mark.parametrize("far", [1.0, 30.0])
    def test_probabilities(self, mixture, method, far):
        expected = weighted(mixture, method, far * Y)
        np.testing.assert_allclose(getattr(mixture, method)(far * Y), expected, rtol=5e-12)

    def test_logpdf(self, mixture):
        parts = [scipys(c).logpdf(Y) for c in mixture.components]
        logs = [np.log(w) + p for w, p in zip(mixture.weights.T, parts, strict=True)]
        np.testing.assert_allclose(mixture.logpdf(Y), logsumexp(logs, axis=0), rtol=1e-11)

    def test_moments(self, mixture):
        mean = weighted(mixture, "mean")
        second = weighted(mixture, "var") + sum(
            w * (c.loc - mean) ** 2
            for w, c in zip(mixture.weights.T, mixture.components, strict=True)
        )
        np.testing.assert_allclose(mixture.mean(), mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(mixture.var(), second, rtol=1e-12)
        np.testing.assert_allclose(mixture.std(), np.sqrt(second), rtol=1e-12)

    @pytest.mark.parametrize("q", [1e-12, 1e-4, 0.025, 0.3, 0.5, 0.8, 0.99])
    def test_quantiles(self, mixture, q):
        # The distribution function rises: the quantile lies where it has passed q, to its rounding.
        ours = mixture.ppf(q)
        within = np.maximum(1e-11 * np.abs(ours), 1e-13)
        rounding = 4.0 * np.finfo(float).eps * q
        assert (weighted(mixture, "cdf", ours - within) <= q + rounding).all()
        assert (weighted(mixture, "cdf", ours + within) >= q - rounding).all()

    @pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
    def test_intervals_leave_equal_tails(self, mixture, level):
        low, high = mixture.interval(level)
        tail = (1 - level) / 2
        np.testing.assert_allclose(weighted(mixture, "cdf", low), tail, rtol=1e-10)
        np.testing.assert_allclose(weighted(mixture, "sf", high), tail, rtol=1e-10)

    def test_draws_follow_the_distribution(self, mixture):
        u = weighted(mixture, "cdf", mixture.rvs((200, ROWS), random_state=5))
        assert u.shape == (200, ROWS)
        assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3


class TestCrps:
    @staticmethod
    def by_quadrature(ours, y):
        """The integral of the squared error of the distribution function, piece by piece."""
        steps = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 100.0, 1e3)
        cuts = {y}
        for component in ours.components:
            loc, scale = float(component.loc), float(component.scale)
            cuts |= {loc + side * step * scale for step in steps for side in (-1, 1)}
        cuts = np.array(sorted(cuts))
        middle, half = (cuts[1:] + cuts[:-1])[:, None] / 2.0, np.diff(cuts)[:, None] / 2.0
        nodes, weights = np.polynomial.legendre.leggauss(40)
        t = middle + half * nodes
        squares = np.where(t < y, ours.cdf(t), ours.sf(t)) ** 2
        outside = {"epsabs": 0, "epsrel": 1e-9, "limit": 200}
        left = quad(lambda t: float(ours.cdf(t)) ** 2, -math.inf, cuts[0], **outside)[0]
        right = quad(lambda t: float(ours.sf(t)) ** 2, cuts[-1], math.inf, **outside)[0]
        return left + np.sum(half * squares * weights) + right

    @pytest.mark.slow
    @pytest.mark.parametrize("row", [0, 1, 2])
    def test_against_quadrature(self, mixture, row):
        one = mixture[row]
        assert one.crps(Y[row]) == pytest.approx(self.by_quadrature(one, Y[row]), rel=1e-6)

    @pytest.mark.parametrize("df", [1.3, 1.6, 2.0, 2.5, 4.0, 11.0, 40.0, 500.0, np.inf])
    def test_equal_components_are_one(self, df):
        twice = Mixture([StudentT(df, 1.0, 2.0), StudentT(df, 1.0, 2.0)], [0.3, 0.7])
        y = np.array([-30.0, -1.0, 1.0, 1.5, 4.0])
        np.testing.assert_allclose(twice.crps(y), StudentT(df, 1.0, 2.0).crps(y), rtol=1e-6)

    @pytest.mark.slow
    def test_rows_of_every_difficulty(self):
        """By the quadrature over all components and, far apart, over pairs of them."""
        apart = np.geomspace(0.01, 1e6, 25)
        for ratio in (1.0, 1e-2, 1e-4):
            ours = Mixture([StudentT(5.0, 0.0, ratio), StudentT(9.0, apart, 1.0)], [0.5, 0.5])
            scores = ours.crps(0.3)
            for i in (0, 6, 12, 18, 24):
                assert scores[i] == pytest.approx(self.by_quadrature(ours[i], 0.3), rel=1e-6)

    def test_normals_are_students_of_infinite_degrees(self):
        normal = Mixture(normals(3), some_weights(3))
        student = Mixture(
            [StudentT(np.inf, c.loc, c.scale) for c in normal.components], normal.weights
        )
        for method in ("crps", "logpdf", "cdf"):
            expected = getattr(normal, method)(Y)
            np.testing.assert_allclose(getattr(student, method)(Y), expected, rtol=1e-6)

    def test_far_targets(self, mixture):
        for far in (1e9, 1e300):
            np.testing.assert_allclose(mixture.crps(far), far, rtol=1e-6)
            np.testing.assert_allclose(mixture.crps(-far), far, rtol=1e-6)

    def test_few_degrees_have_none(self):
        ours = Mixture([StudentT([1.0, 1.5]), StudentT(5.0)], [0.5, 0.5])
        np.testing.assert_array_equal(np.isinf(ours.crps(0.0)), [True, False])


numbers = st.floats(-1e3, 1e3)
scales = st.floats(1e-3, 1e3)
degrees = st.one_of(st.floats(0.5, 70), st.floats(70, 1e6))
parts = st.one_of(st.builds(Normal, numbers, scales), st.builds(StudentT, degrees, numbers, scales))


@st.composite
def mixtures(draw):
    components = draw(st.lists(parts, min_size=1, max_size=4))
    raw = draw(st.lists(st.floats(0.01, 1), min_size=len(components), max_size=len(components)))
    return Mixture(components, np.array(raw) / sum(raw))


class TestLaws:
    @settings(max_examples=200)
    @given(mixtures(), st.floats(1e-6, 1 - 1e-6))
    def test_a_quantile_leads_back_to_its_probability(self, ours, q):
        x = ours.ppf(q)
        # Rounding x itself moves the probability by the density times a unit in the last place.
        rounding = ours.pdf(x) * abs(x) * 1e-12
        assert ours.cdf(x) == pytest.approx(q, rel=1e-9, abs=rounding + 1e-15)

    @given(mixtures(), st.floats(1e-9, 1))
    def test_quantiles_lie_between_those_of_the_components(self, ours, q):
        ends = [float(c.ppf(q)) for c in ours.components]
        slack = 1e-11 * max(1.0, *(abs(e) for e in ends if math.isfinite(e)), 0.0)
        assert min(ends) - slack <= ours.ppf(q) <= max(ends) + slack

    @given(mixtures(), numbers)
    def test_cdf_and_sf_add_to_one(self, ours, y):
        assert ours.cdf(y) + ours.sf(y) == pytest.approx(1.0, abs=1e-14)

    @settings(deadline=None)
    @given(mixtures(), numbers, st.floats(0.1, 10))
    def test_changing_units(self, ours, y, unit):
        def scaled(c):
            shape = (c.df,) if isinstance(c, StudentT) else ()
            return type(c)(*shape, c.loc * unit, c.scale * unit)

        other = Mixture([scaled(c) for c in ours.components], ours.weights)
        assert other.crps(y * unit) == pytest.approx(unit * ours.crps(y), rel=4e-6)
        assert other.ppf(0.2) == pytest.approx(unit * ours.ppf(0.2), rel=1e-8, abs=1e-10)
        assert other.logpdf(y * unit) == pytest.approx(
            ours.logpdf(y) - np.log(unit), rel=1e-8, abs=1e-8
        )

    @given(mixtures(), numbers)
    def test_reflection(self, ours, y):
        def mirrored(c):
            shape = (c.df,) if isinstance(c, StudentT) else ()
            return type(c)(*shape, -c.loc, c.scale)

        other = Mixture([mirrored(c) for c in ours.components], ours.weights)
        assert other.cdf(-y) == pytest.approx(ours.sf(y), rel=1e-12)
        # Between hills far apart hardly anything tells one quantile from the next.
        assert ours.cdf(-other.ppf(0.3)) == pytest.approx(0.7, rel=1e-9)

    @settings(deadline=None)
    @given(mixtures(), numbers, numbers)
    def test_the_score_is_proper(self, ours, y, other):
        """E|X-y| - E|X-X'|/2 >= 0, and it is no steeper than the error itself."""
        assert ours.crps(y) >= 0.0
        if np.isfinite(ours.crps(y)):
            size = max(1.0, float(ours.crps(y)))
            assert abs(ours.crps(y) - ours.crps(other)) <= abs(y - other) + 1e-6 * size

    @settings(deadline=None)
    @given(st.permutations(range(4)))
    def test_the_order_of_components_does_not_matter(self, order):
        components, weights = students(3.0, 9.0, 70.0, 2e3), some_weights(4)
        ours = Mixture(components, weights)
        other = Mixture([components[k] for k in order], weights[:, order])
        for method in ("logpdf", "cdf", "crps"):
            np.testing.assert_allclose(
                getattr(other, method)(Y), getattr(ours, method)(Y), rtol=1e-9
            )

    def test_the_density_integrates_to_one(self):
        ours = MIXTURES["few degrees"][0]
        assert quad(lambda t: float(ours.pdf(t)), -np.inf, np.inf)[0] == pytest.approx(1, rel=1e-8)

    @pytest.mark.parametrize("name", ["across the thresholds", "eight normals"])
    def test_few_rows_are_as_they_are_among_many(self, name):
        eight = Mixture(normals(8, apart=30.0), some_weights(8, seed=5))
        few = {"eight normals": eight}.get(name, MIXTURES["across the thresholds"])[:7]
        many = few[np.tile(np.arange(7), 20)]
        for method, values in (("logpdf", Y[:7]), ("cdf", Y[:7]), ("crps", Y[:7])):
            alone = getattr(few, method)(values)
            np.testing.assert_allclose(alone, getattr(many, method)(np.tile(values, 20))[:7], 1e-13)
        for level in (1e-6, 0.025, 0.5, 0.9):
            np.testing.assert_allclose(few.ppf(level), many.ppf(level)[:7], 1e-12)
            assert few[3].ppf(level) == pytest.approx(few.ppf(level)[3], rel=1e-12)
        levels = np.array([[0.1], [0.9]])
        np.testing.assert_allclose(few.ppf(levels), many.ppf(levels)[:, :7], 1e-12)

    def test_every_row_is_by_itself(self):
        # Blocks take other paths than rows: no row may depend on its neighbours.
        n = 20_000
        rng = np.random.default_rng(0)
        dfs = rng.permutation(
            np.concatenate([np.linspace(-1, 70, n // 2), np.geomspace(70, 1e9, n // 2)])
        )
        scale = rng.choice([0.0, 0.5, 2.0, np.inf], n, p=[0.1, 0.4, 0.4, 0.1])
        weights = rng.dirichlet(np.ones(3), n)
        weights[rng.random(n) < 0.2] = [0.5, 0.0, 0.5]
        components = [
            StudentT(dfs, rng.normal(size=n), scale),
            StudentT(rng.permutation(dfs), rng.normal(size=n), 3.0),
            Normal(rng.normal(size=n), 0.3),
        ]
        ours = Mixture(components, weights)
        y = np.where(rng.random(n) < 0.1, components[0].loc, 9 * rng.normal(size=n))
        some = rng.choice(n, 200)
        tolerances = {"logpdf": 1e-11, "cdf": 1e-11, "sf": 1e-11, "crps": 2e-6, "ppf": 1e-10}
        for method, tolerance in tolerances.items():
            given_ = rng.random(n) if method == "ppf" else y
            whole = getattr(ours, method)(given_)
            assert not np.isnan(whole).any()
            single = [getattr(ours[i], method)(given_[i]) for i in some]
            np.testing.assert_allclose(whole[some], single, rtol=tolerance, atol=1e-13)
        for method in ("mean", "var"):
            single = [getattr(ours[i], method)() for i in some]
            np.testing.assert_allclose(getattr(ours, method)()[some], single, rtol=1e-12)


class TestFewDegreesOfFreedom:
    """The recurrence in the degrees of freedom, at single components."""

    @pytest.mark.parametrize("df", [0.4, 1.0, 2.0, 3.5, 9.0, 19.9, 20.0, 63.9, 64.0, 200.0, 1e3])
    def test_it_gives_every_digit_of_the_tail(self, df):
        y = np.array([0.0, 1e-5, 0.1, 0.7, 2.0, 4.1, 5.0, 9.0, 40.0, 1e4])
        ours, alone = Mixture([StudentT(df)], [1.0]), StudentT(df)
        np.testing.assert_allclose(ours.sf(y), alone.sf(y), rtol=5e-13)
        np.testing.assert_allclose(ours.cdf(-y), alone.cdf(-y), rtol=5e-13)
        np.testing.assert_allclose(ours.logpdf(y), alone.logpdf(y), rtol=1e-12, atol=1e-13)

    @pytest.mark.parametrize("df", [0.3, 1.0, 2.0])
    @pytest.mark.parametrize("q", [1e-100, 1e-12, 0.01, 0.4, 0.99])
    def test_quantiles_many_orders_of_magnitude_out(self, df, q):
        ours = Mixture([StudentT(df), StudentT(df, 0.0, 1.0)], [0.5, 0.5])
        expected = StudentT(df).ppf(q)
        assert ours.ppf(q) == pytest.approx(float(expected), rel=1e-10)

    def test_at_most_two_have_infinite_variance(self):
        ours = Mixture([StudentT([2.0, 2.5]), Normal()], [0.1, 0.9])
        np.testing.assert_array_equal(np.isinf(ours.std()), [True, False])
        assert np.isfinite(ours.interval(0.95)).all()


class TestComponentsOfNoWeight:
    @pytest.mark.parametrize(
        "absent",
        [
            StudentT(0.5, np.zeros(3), np.inf),
            StudentT(-1.0, np.full(3, np.nan), np.nan),
            Normal(np.full(3, 1e300), 0.0),
            Normal(np.nan, np.nan),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("present", [StudentT(5.0, 1.0, 2.0), StudentT(5.0, [1.0] * 3, 2.0)])
    def test_they_never_count(self, absent, present):
        alone = Mixture([present], [1.0])
        half = Mixture([present, present], [0.5, 0.5])
        somewhere = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
        for weights in ([1.0, 0.0], somewhere):
            ours = Mixture([present, absent], weights)
            for method in ("mean", "var", "median"):
                np.testing.assert_allclose(getattr(ours, method)(), getattr(alone, method)())
            for method in ("logpdf", "cdf", "sf"):
                np.testing.assert_allclose(getattr(ours, method)(0.3), getattr(alone, method)(0.3))
            np.testing.assert_allclose(ours.ppf(0.9), alone.ppf(0.9))
            np.testing.assert_allclose(ours.crps(0.3), half.crps(0.3), rtol=1e-6)
            assert np.isfinite(ours.rvs((50, 3), random_state=1)).all()

    def test_they_count_in_other_rows(self):
        ours = Mixture([Normal([0.0, 5.0]), Normal([9.0, np.nan], np.inf)], [[0.0, 1.0], [1.0, 0]])
        np.testing.assert_array_equal(ours.mean(), [9, 5])
        np.testing.assert_array_equal(ours.std(), [np.inf, 1])
        np.testing.assert_allclose(ours.logpdf(5.0), [0.0, Normal().logpdf(0.0)], rtol=1e-14)


class TestLimits:
    def test_a_row_with_a_flat_component_is_flat(self):
        ours = Mixture([Normal([3.0, 3.0], [np.inf, 1.0]), Normal(1.0, 1.0)], [0.25, 0.75])
        row = ours[0]
        assert row.mean() == row.median() == 1.5
        assert row.var() == row.std() == row.crps(3.0) == np.inf
        assert row.interval(0.9) == row.interval(0.0) == (-np.inf, np.inf)
        assert row.cdf(7.0) == row.sf(7.0) == 0.5
        assert row.ppf(0.4) == -np.inf
        assert row.ppf(0.6) == np.inf
        expected = np.log(0.25 + 0.75 * Normal(1.0).pdf(2.0))
        assert row.logpdf(2.0) == pytest.approx(float(expected), rel=1e-14)
        assert row.pdf(2.0) == pytest.approx(float(np.exp(expected)), rel=1e-14)
        assert np.isfinite(ours[1].std())
        np.testing.assert_array_equal(np.isinf(ours.interval(0.9)), [[True, False]] * 2)

    def test_all_flat(self):
        ours = Mixture([StudentT(0.0, 1.0, 1.0), Normal(2.0, np.inf)], [0.5, 0.5])
        assert ours.logpdf(77.0) == 0.0
        assert ours.pdf(77.0) == 1.0

    def test_no_draws_from_a_flat_row(self):
        ours = Mixture([Normal([1.0, 1.0], [1.0, np.inf]), Normal()], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"row 1 is improper.*learn more rows or use a proper"):
            ours.rvs()
        with pytest.raises(ValueError, match="this distribution is improper"):
            ours[1].rvs()

    def test_point_masses(self):
        ours = Mixture([Normal(1.0, 0.0), Normal(3.0, 0.0)], [0.25, 0.75])
        np.testing.assert_array_equal(ours.cdf([0, 1, 2, 3]), [0, 0.25, 0.25, 1])
        np.testing.assert_array_equal(
            ours.ppf([0, 0.1, 0.25, 0.26, 0.5, 0.9, 1]), [1, 1, 1, 3, 3, 3, 3]
        )
        np.testing.assert_array_equal(ours.logpdf([1, 2, 3]), [np.inf, -np.inf, np.inf])
        # E|X - y| - E|X - X'| / 2, by hand.
        np.testing.assert_allclose(ours.crps([1, 2, 5]), [1.5 - 0.375, 1 - 0.375, 2.5 - 0.375])
        assert ours.var() == pytest.approx(0.75)
        assert set(ours.rvs(50, random_state=1)) == {1.0, 3.0}

    def test_a_point_mass_on_a_slope(self):
        ours = Mixture([StudentT(5.0, 2.0, 0.0), StudentT(5.0, 0.0, 1.0)], [0.5, 0.5])
        reached = 0.5 * float(StudentT(5.0).cdf(2.0))
        assert ours.ppf(reached + 0.1) == 2.0
        assert ours.ppf(0.2) == pytest.approx(float(StudentT(5.0).ppf(0.4)), rel=1e-12)
        assert ours.ppf(0.99) == pytest.approx(float(StudentT(5.0).ppf(0.98)), rel=1e-12)
        narrow = Mixture([StudentT(5.0, 2.0, 1e-9), StudentT(5.0, 0.0, 1.0)], [0.5, 0.5])
        assert ours.crps(1.0) == pytest.approx(float(narrow.crps(1.0)), rel=1e-6)

    def test_the_ends(self, mixture):
        assert (mixture.ppf(0.0) == -np.inf).all()
        assert (mixture.ppf(1.0) == np.inf).all()
        assert (mixture.interval(1.0)[1] == np.inf).all()
        assert np.isnan(mixture.ppf([[-0.1], [1.1], [np.nan]])).all()

    def test_nan_targets_give_nan(self, mixture):
        mixed = Mixture([Normal(1.0, [np.inf, 2.0, 0.0]), StudentT(5.0)], [0.5, 0.5])
        for ours in (mixture, mixed):
            for method in ("logpdf", "pdf", "cdf", "sf", "crps", "ppf"):
                assert np.isnan(getattr(ours, method)(np.nan)).all()

    @pytest.mark.parametrize("far", [1e150, 1e308, np.inf])
    def test_far_targets(self, mixture, far):
        assert (mixture.cdf(-far) < 1e-100).all()
        assert (mixture.cdf(far) >= 1 - 1e-15).all()
        assert (mixture.logpdf(far) < -500).all()
        assert not np.isnan(mixture.logpdf(-far)).any()

    def test_densities_that_underflow_keep_their_logarithm(self):
        ours = Mixture([Normal([0.0, 0.0]), Normal([1.0, 1.0])], [0.5, 0.5])
        np.testing.assert_allclose(
            ours.logpdf([101.0, 0.5]),
            [Normal(1.0).logpdf(101.0) + np.log(0.5), Normal().logpdf(0.5)],
            rtol=1e-14,
        )


class TestRows:
    def test_length_and_choice_of_rows(self):
        ours = Mixture([StudentT(5.0, [1.0, 2.0, 3.0]), Normal()], [0.5, 0.5])
        assert len(ours) == 3
        np.testing.assert_array_equal(ours[1:].mean(), [1, 1.5])
        np.testing.assert_array_equal(ours[np.array([True, False, True])].mean(), [0.5, 1.5])
        assert ours[-1].shape == ()
        assert ours[-1].std() == ours.std()[-1]
        with pytest.raises(IndexError):
            ours[3]

    def test_rows_may_differ_in_weights_only(self):
        ours = Mixture([Normal(0.0), Normal(1.0)], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
        np.testing.assert_array_equal(ours.mean(), [0, 0.5, 1])
        assert ours[1].mean() == 0.5
        assert ours.interval(0.9)[0].shape == (3,)

    def test_one_row_is_broadcast(self):
        ours = Mixture([StudentT([4.0], [0.0]), Normal([1.0])], [[0.5, 0.5]])
        assert ours.logpdf(np.zeros(3)).shape == ours.crps(np.zeros(3)).shape == (3,)
        assert ours.ppf([[0.1], [0.9]]).shape == (2, 1)
        assert ours.std().shape == (1,)

    def test_targets_broadcast_against_rows(self, mixture):
        q = np.array([[0.1], [0.5], [0.9]])
        assert mixture.ppf(q).shape == (3, ROWS)
        for i, one in enumerate(q[:, 0]):
            np.testing.assert_allclose(mixture.ppf(q)[i], mixture.ppf(one), rtol=1e-10)
        assert mixture.logpdf(np.zeros((2, 1))).shape == (2, ROWS)
        level = np.linspace(0.1, 0.9, ROWS)
        assert mixture.interval(level)[0].shape == (ROWS,)

    def test_a_single_distribution_has_no_rows(self):
        ours = Mixture([Normal(), Normal()], [0.5, 0.5])
        with pytest.raises(TypeError, match="no rows and no length"):
            len(ours)
        with pytest.raises(TypeError, match="no rows to select"):
            ours[0]
        for answer in (ours.mean(), ours.logpdf(0.3), ours.ppf(0.3), ours.crps(0.3), ours.rvs()):
            assert isinstance(answer, float)
        assert isinstance(ours.interval(0.9)[0], float)

    def test_no_rows_at_all(self):
        none = Mixture([StudentT(5.0, np.empty(0)), Normal(np.empty(0))], np.empty((0, 2)))
        assert len(none) == 0
        assert none.logpdf([]).shape == none.crps([]).shape == none.rvs().shape == (0,)
        assert none.interval(0.9)[0].shape == none.std().shape == none.ppf(0.3).shape == (0,)

    def test_sizes_of_draws(self):
        ours = Mixture([Normal(np.zeros(3)), StudentT(4.0)], [0.5, 0.5])
        assert ours.rvs().shape == (3,)
        assert ours.rvs((5, 3)).shape == (5, 3)
        with pytest.raises(ValueError, match=r"for 5 draws of each row give .*\(5, 3\)"):
            ours.rvs(5)
        again = ours.rvs(random_state=np.random.default_rng(9))
        np.testing.assert_array_equal(ours.rvs(random_state=9), again)

    def test_copies_and_pickles(self, mixture):
        for other in (copy.deepcopy(mixture), pickle.loads(pickle.dumps(mixture))):
            np.testing.assert_array_equal(other.logpdf(0.3), mixture.logpdf(0.3))

    def test_repr(self, mixture):
        assert repr(Mixture([Normal()], [1.0])) == "Mixture(1 component, 1 distribution)"
        assert repr(mixture).endswith(f"{ROWS} rows)")


class TestRefusals:
    def test_components(self):
        with pytest.raises(ValueError, match="no components; give at least one Normal or StudentT"):
            Mixture([], [])
        with pytest.raises(TypeError, match="component 1 is a float; give Normal or StudentT"):
            Mixture([Normal(), 1.0], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"component 1 has shape \(3,\), but component 0 \(2,"):
            Mixture([Normal([1.0, 2.0]), Normal([1.0, 2.0, 3.0])], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"component 0 has shape \(2,\), but the weights \(3,"):
            Mixture([Normal([1.0, 2.0])], np.ones((3, 1)))

    def test_weights(self):
        two = [Normal(), Normal()]
        with pytest.raises(ValueError, match=r"shape \(3,\), but there are 2.*give \(2,\) or \(n,"):
            Mixture(two, [0.5, 0.25, 0.25])
        with pytest.raises(ValueError, match=r"the weights must .* sum to 1, but they are \[0\.5"):
            Mixture(two, [0.5, 0.6])
        with pytest.raises(ValueError, match=r"weights of row 1 must be at least 0 .* divide them"):
            Mixture(two, [[0.5, 0.5], [-0.5, 1.5]])
        with pytest.raises(ValueError, match=r"the weights of row 0 .*\[nan, 1\.0\]"):
            Mixture(two, [[np.nan, 1.0], [0.5, 0.5]])

    def test_a_level_out_of_range(self, mixture):
        with pytest.raises(ValueError, match=r"level must .* but it is 95; give 0\.95 for a 95%"):
            mixture.interval(95)


ROOT = np.array([[2.0, 1.0, 0.5], [0.0, 3.0, -1.0], [0.0, 0.0, 1.0]])
NAMES = ("one", "height", "age")


def joint(*, names=None):
    parts = [
        MultivariateNormal([1.0, 2.0, 3.0], ROOT, 0.5, names=names),
        MultivariateT(5.0, [0.0, 2.0, -1.0], 2 * ROOT, 0.7, names=names),
    ]
    return MultivariateMixture(parts, [0.3, 0.7])


class TestJoint:
    def test_against_scipy(self):
        ours, (normal, student) = joint(), joint().components
        w = np.random.default_rng(0).normal(size=(20, 3))
        shape = np.linalg.inv(4 * ROOT.T @ ROOT) * 0.49
        density = 0.3 * stats.multivariate_normal(normal.mean, normal.cov).pdf(w)
        density += 0.7 * stats.multivariate_t(student.mean, shape, df=5.0).pdf(w)
        np.testing.assert_allclose(ours.logpdf(w), np.log(density), rtol=1e-10)
        assert ours.logpdf(w[0]) == pytest.approx(np.log(density[0]), rel=1e-10)

    def test_moments_are_those_of_draws_and_marginals(self):
        ours = joint()
        draws = ours.rvs(200_000, random_state=4)
        np.testing.assert_allclose(draws.mean(axis=0), ours.mean, atol=0.01)
        np.testing.assert_allclose(np.cov(draws.T), ours.cov, atol=0.03)
        np.testing.assert_allclose(ours.std() ** 2, np.diag(ours.cov), rtol=1e-12)
        np.testing.assert_allclose(ours.marginal().mean(), ours.mean, rtol=1e-14)
        for i in range(3):
            assert stats.kstest(draws[:2000, i], ours.marginal(i).cdf).pvalue > 1e-3

    def test_intervals_are_the_marginals(self):
        ours = joint()
        assert ours.interval(0.9).shape == (3, 2)
        np.testing.assert_allclose(ours.interval(0.9)[1], ours.marginal(1).interval(0.9))
        assert isinstance(ours.marginal([0, 2]), Mixture)
        assert ours.marginal([0, 2]).shape == (2,)
        with pytest.raises(ValueError, match="level is '95%': it must be a number"):
            Mixture(students(5.0), [1.0]).interval("95%")
        with pytest.raises(ValueError, match="level must lie between 0 and 1, but it is -1"):
            ours.interval(-1)

    def test_shapes_of_draws(self):
        ours = joint()
        assert ours.rvs().shape == (3,)
        assert ours.rvs(5).shape == (5, 3)
        assert ours.rvs((2, 5)).shape == (2, 5, 3)
        assert ours.rvs(0).shape == (0, 3)
        np.testing.assert_array_equal(ours.rvs(4, random_state=9), ours.rvs(4, random_state=9))

    def test_names(self):
        assert joint(names=NAMES).names == NAMES
        assert joint().names is None
        assert repr(joint()) == "MultivariateMixture(3 coefficients, 2 components)"

    def test_a_component_of_no_weight_never_counts(self):
        unknown = MultivariateT(0.0, [9.0, 9.0, 9.0], np.zeros((3, 3)), np.inf)
        alone = joint().components[0]
        ours = MultivariateMixture([alone, unknown], [1.0, 0.0])
        np.testing.assert_array_equal(ours.mean, alone.mean)
        np.testing.assert_array_equal(ours.cov, alone.cov)
        np.testing.assert_allclose(ours.interval(0.9), alone.interval(0.9), rtol=1e-12)
        assert ours.logpdf(alone.mean) == pytest.approx(float(alone.logpdf(alone.mean)))
        assert np.isfinite(ours.rvs(20)).all()

    def test_without_information(self):
        free = np.diag([2.0, 0.0, 1.0])
        flat = MultivariateNormal(np.zeros(3), free, names=NAMES)
        known = MultivariateNormal(np.zeros(3), np.eye(3), names=NAMES)
        ours = MultivariateMixture([known, flat], [0.5, 0.5])
        np.testing.assert_array_equal(np.isinf(ours.std()), [False, True, False])
        np.testing.assert_array_equal(ours.interval(0.9)[1], [-np.inf, np.inf])
        assert ours.cov[1, 1] == np.inf
        assert ours.cov[0, 1] == 0.0
        with pytest.raises(
            ValueError, match=r"improper: coefficient 1 \(height\) is not determined"
        ):
            ours.rvs(1, random_state=0)

    def test_refusals(self):
        normal = joint().components[0]
        with pytest.raises(ValueError, match="no components; give at least one Multivariate"):
            MultivariateMixture([], [])
        with pytest.raises(TypeError, match="component 0 is a Normal; give MultivariateNormal or"):
            MultivariateMixture([Normal()], [1.0])
        with pytest.raises(ValueError, match=r"has other coefficients \(2\) than component 0"):
            MultivariateMixture([normal, MultivariateNormal([0, 0], np.eye(2))], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"component 1 .*\(one, height, age\) than component"):
            MultivariateMixture([normal, joint(names=NAMES).components[0]], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"weights have shape \(1, 2\); give \(2,\)"):
            MultivariateMixture([normal, normal], [[0.5, 0.5]])
        with pytest.raises(ValueError, match="the weights must be at least 0 and sum to 1"):
            MultivariateMixture([normal, normal], [0.5, 0.4])
