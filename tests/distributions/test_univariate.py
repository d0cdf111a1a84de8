"""Normal and Student-t against scipy, quadrature and their own laws."""

import copy
import pickle

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from posterity.distributions import Normal, StudentT

RNG = np.random.default_rng(7)
ROWS = 400
LOC = RNG.normal(0, 3, ROWS)
SCALE = RNG.uniform(0.2, 5, ROWS)
Y = LOC + SCALE * RNG.standard_t(4, ROWS)
DFS = {
    "one for all": 4.5,
    "fractional": RNG.uniform(2.1, 30, ROWS),
    "across the thresholds": np.linspace(3, 1500, ROWS),
    "many": np.arange(ROWS) + 2000.0,
    "infinite": np.inf,
}
PAIRS = {"normal": (Normal(LOC, SCALE), stats.norm(LOC, SCALE))} | {
    name: (StudentT(df, LOC, SCALE), stats.t(df, LOC, SCALE)) for name, df in DFS.items()
}


@pytest.fixture(params=PAIRS, ids=str)
def pair(request):
    return PAIRS[request.param]


# The quantiles of a Student-t distribution had fewer digits before.
scipy_is_exact = pytest.mark.skipif(
    tuple(map(int, scipy.__version__.split(".")[:2])) < (1, 17), reason="SciPy has fewer digits"
)


class TestAgainstScipy:
    @pytest.mark.parametrize("method", ["pdf", "logpdf", "cdf", "sf"])
    def test_at_targets(self, pair, method):
        ours, scipys = pair
        expected = getattr(scipys, method)(Y)
        # scipy's logpdf loses digits to a difference of two large log gammas.
        np.testing.assert_allclose(getattr(ours, method)(Y), expected, rtol=3e-12, atol=3e-12)

    @pytest.mark.parametrize("method", ["mean", "median", "var", "std"])
    def test_moments(self, pair, method):
        ours, scipys = pair
        np.testing.assert_allclose(getattr(ours, method)(), getattr(scipys, method)(), rtol=1e-12)

    @scipy_is_exact
    @pytest.mark.parametrize("q", [1e-9, 0.025, 0.4, 0.5, 0.7, 0.999])
    def test_quantiles(self, pair, q):
        ours, scipys = pair
        np.testing.assert_allclose(ours.ppf(q), scipys.ppf(q), rtol=1e-11, atol=1e-14)

    @scipy_is_exact
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    def test_intervals(self, pair, level):
        ours, scipys = pair
        for mine, theirs in zip(ours.interval(level), scipys.interval(level), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)

    @scipy_is_exact
    def test_quantiles_broadcast_like_scipys(self, pair):
        ours, scipys = pair
        q = np.array([[0.1], [0.9]])
        assert ours.ppf(q).shape == (2, ROWS)
        np.testing.assert_allclose(ours.ppf(q), scipys.ppf(q), rtol=1e-11, atol=1e-13)

    def test_draws_follow_the_distribution(self, pair):
        ours, scipys = pair
        u = scipys.cdf(ours.rvs((50, ROWS), random_state=1))
        assert u.shape == (50, ROWS)
        assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize(
    "ours",
    [Normal(1.0, 2.0), *(StudentT(df, 1.0, 2.0) for df in (1.3, 3.0, 20.0, 63.0, 64.0, 2e3))],
    ids=repr,
)
@pytest.mark.parametrize("y", [1.0, 0.3, 6.5, -20.0])
def test_crps_is_the_integral_of_the_squared_error_of_the_cdf(ours, y):
    below = quad(lambda t: float(ours.cdf(t)) ** 2, -np.inf, y, epsabs=1e-12, limit=500)[0]
    above = quad(lambda t: float(ours.sf(t)) ** 2, y, np.inf, epsabs=1e-12, limit=500)[0]
    assert ours.crps(y) == pytest.approx(below + above, rel=1e-8)


numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e6)
degrees = st.one_of(st.floats(0.3, 100), st.floats(100, 1e7))
distributions = st.one_of(
    st.builds(Normal, numbers, positive), st.builds(StudentT, degrees, numbers, positive)
)


class TestLaws:
    @given(distributions, st.floats(1e-6, 1 - 1e-6))
    def test_the_cdf_of_a_quantile_is_its_probability(self, ours, q):
        # A location far larger than the scale rounds the quantile away: compare without it.
        ours.loc = np.zeros(())
        assert ours.cdf(ours.ppf(q)) == pytest.approx(q, rel=1e-11)

    @given(distributions, numbers)
    def test_logpdf_is_the_log_of_pdf(self, ours, y):
        density = ours.pdf(y)
        if density > 1e-300:
            assert np.log(density) == pytest.approx(ours.logpdf(y), rel=1e-12, abs=1e-12)

    @given(distributions, numbers)
    def test_cdf_and_sf_add_to_one(self, ours, y):
        assert ours.cdf(y) + ours.sf(y) == pytest.approx(1.0, abs=1e-15)

    @given(distributions, st.floats(0, 1))
    def test_intervals_are_central(self, ours, level):
        low, high = ours.interval(level)
        assert low <= ours.mean() <= high
        if np.isfinite(high):
            middle, size = (low + high) / 2, max(abs(low), abs(high))
            assert middle == pytest.approx(ours.mean(), abs=1e-15 * size)

    @given(distributions, st.floats(0.01, 0.99))
    def test_an_interval_holds_its_level(self, ours, level):
        ours.loc = np.zeros(())
        low, high = ours.interval(level)
        assert ours.cdf(high) - ours.cdf(low) == pytest.approx(level, rel=1e-11)

    @given(distributions, numbers, numbers)
    def test_a_worse_miss_scores_worse(self, ours, y, other):
        near, far = sorted([y, other], key=lambda t: abs(t - float(ours.loc)))
        assert ours.crps(near) <= ours.crps(far) * (1 + 1e-9)
        assert ours.logpdf(near) >= ours.logpdf(far) - 1e-9

    @given(distributions, numbers, st.floats(0.1, 10))
    def test_changing_units(self, ours, y, unit):
        shape = (ours.df,) if isinstance(ours, StudentT) else ()
        other = type(ours)(*shape, ours.loc * unit, ours.scale * unit)
        assert other.crps(y * unit) == pytest.approx(ours.crps(y) * unit, rel=1e-7)
        assert other.logpdf(y * unit) == pytest.approx(
            ours.logpdf(y) - np.log(unit), rel=1e-8, abs=1e-8
        )

    @pytest.mark.parametrize(
        "ours", [Normal(2, 3), StudentT(2, 2, 3), StudentT(80, 2, 3)], ids=repr
    )
    def test_the_density_integrates_to_one(self, ours):
        assert quad(lambda t: float(ours.pdf(t)), -np.inf, np.inf)[0] == pytest.approx(1, rel=1e-8)

    def test_every_row_is_by_itself(self):
        # Blocks are evaluated by different formulae: rows must not depend on their neighbours.
        n = 40_000
        rng = np.random.default_rng(0)
        df = rng.permutation(
            np.concatenate([np.linspace(-1, 70, n // 2), np.geomspace(70, 1e9, n // 2)])
        )
        loc, scale = rng.normal(size=n), rng.choice([0.0, 0.5, 2.0, np.inf], n)
        y = np.where(rng.random(n) < 0.1, loc, loc + 30 * rng.normal(size=n))
        ours = StudentT(df, loc, scale)
        some = rng.choice(n, 300)
        for method, given_ in (("logpdf", y), ("cdf", y), ("crps", y), ("ppf", rng.random(n))):
            whole = getattr(ours, method)(given_)
            assert not np.isnan(whole).any()
            single = [getattr(ours[i], method)(given_[i]) for i in some]
            np.testing.assert_allclose(whole[some], single, rtol=1e-12, atol=1e-14)


KINDS = {"normal": Normal, "t": lambda loc, scale: StudentT(7.0, loc, scale)}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
class TestLimits:
    def test_a_flat_row_has_density_one_and_no_bounds(self, kind):
        flat = kind([3.0, 0.0], [np.inf, 1.0])[:1]
        assert flat.mean() == 3.0
        assert flat.std() == np.inf
        assert flat.var() == np.inf
        assert flat.interval(0.95) == (-np.inf, np.inf)
        assert flat.pdf(-7.0) == 1.0
        assert flat.logpdf(-7.0) == 0.0
        assert flat.cdf(9.0) == 0.5
        assert flat.sf(9.0) == 0.5
        assert flat.crps(3.0) == np.inf
        np.testing.assert_array_equal(flat.ppf([[0.1], [0.5], [0.9]]), [[-np.inf], [3.0], [np.inf]])

    def test_a_point_mass(self, kind):
        point = kind([2.0, 2.0, 2.0], 0.0)
        y = [1.0, 2.0, 3.0]
        np.testing.assert_array_equal(point.logpdf(y), [-np.inf, np.inf, -np.inf])
        np.testing.assert_array_equal(point.cdf(y), [0, 1, 1])
        np.testing.assert_array_equal(point.sf(y), [1, 0, 0])
        np.testing.assert_array_equal(point.crps(y), [1, 0, 1])
        np.testing.assert_array_equal(point.std(), [0, 0, 0])
        np.testing.assert_array_equal(point.interval(1.0), [[2, 2, 2], [2, 2, 2]])
        np.testing.assert_array_equal(point.rvs(random_state=0), [2, 2, 2])

    def test_ordinary_rows_beside_the_limits_are_untouched(self, kind):
        mixed, alone = kind(1.0, np.array([np.inf, 2.0, 0.0])), kind(1.0, 2.0)
        for method in ("logpdf", "cdf", "sf", "crps", "pdf"):
            assert getattr(mixed, method)(0.3)[1] == getattr(alone, method)(0.3)
        assert mixed.ppf(0.3)[1] == alone.ppf(0.3)
        assert mixed.std()[1] == alone.std()

    def test_nan_targets_give_nan(self, kind):
        mixed = kind(1.0, np.array([np.inf, 2.0, 0.0]))
        for method in ("logpdf", "pdf", "cdf", "sf", "crps", "ppf"):
            assert np.isnan(getattr(mixed, method)(np.nan)).all()

    @pytest.mark.parametrize("far", [1e150, 1e200, 1e308, np.inf])
    def test_far_targets(self, kind, far):
        ours = kind(0.0, 1.0)
        assert ours.cdf(-far) == 0.0
        assert ours.cdf(far) == 1.0
        assert ours.crps(-far) == ours.crps(far) == pytest.approx(far)
        assert ours.logpdf(far) < -1000

    def test_probabilities_out_of_range_have_no_quantile(self, kind):
        mixed = kind(1.0, np.array([np.inf, 2.0, 0.0]))
        assert np.isnan(mixed.ppf([[-0.1], [1.1]])).all()
        np.testing.assert_array_equal(mixed.ppf(1.0), [np.inf, np.inf, 1.0])

    def test_a_level_out_of_range(self, kind):
        with pytest.raises(ValueError, match=r"level must .* but it is 95; give 0\.95 for a 95%"):
            kind(0.0, 1.0).interval(95)

    def test_no_draws_from_a_flat_row(self, kind):
        with pytest.raises(ValueError, match=r"row 1 is improper.*learn more rows or use a proper"):
            kind(0.0, np.array([1.0, np.inf])).rvs()
        with pytest.raises(ValueError, match="this distribution is improper"):
            kind(0.0, np.inf).rvs()

    def test_sizes_of_draws(self, kind):
        rows = kind(np.zeros(3), 1.0)
        assert rows.rvs().shape == (3,)
        assert rows.rvs(3).shape == (3,)
        assert rows.rvs((5, 3)).shape == (5, 3)
        assert kind(0.0, 1.0).rvs(4).shape == (4,)
        assert np.ndim(kind(0.0, 1.0).rvs()) == 0
        for wrong in (5, (3, 5), (1,)):
            with pytest.raises(ValueError, match=r"for \d+ draws of each row give .*, 3\)"):
                rows.rvs(wrong)

    def test_draws_repeat(self, kind):
        rows = kind(np.zeros(3), 1.0)
        generator = np.random.default_rng(5)
        np.testing.assert_array_equal(rows.rvs(random_state=5), rows.rvs(random_state=generator))


class TestFewDegreesOfFreedom:
    def test_at_most_two_have_infinite_variance_and_a_location(self):
        ours = StudentT([0.5, 1.0, 2.0, 2.5], [1.0, 2.0, 3.0, 4.0])
        np.testing.assert_array_equal(ours.mean(), [1, 2, 3, 4])
        np.testing.assert_array_equal(np.isinf(ours.std()), [True, True, True, False])
        np.testing.assert_array_equal(np.isinf(ours.crps(0.0)), [True, True, False, False])
        assert np.isfinite(ours.interval(0.95)).all()

    @pytest.mark.parametrize("scale", [1.0, 0.0, np.inf, np.nan])
    @pytest.mark.parametrize("df", [0.0, -1.0, -2.5])
    def test_none_at_all_is_flat(self, df, scale):
        ours = StudentT(df, 1.0, scale)
        assert ours.mean() == 1.0
        assert ours.std() == np.inf
        assert ours.logpdf(5.0) == 0.0
        assert ours.cdf(5.0) == 0.5
        assert ours.crps(5.0) == np.inf
        assert ours.interval(0.5) == (-np.inf, np.inf)


class TestRows:
    def test_length_and_choice_of_rows(self):
        ours = StudentT(5.0, [1.0, 2.0, 3.0], 2.0)
        assert len(ours) == 3
        assert ours.shape == (3,)
        np.testing.assert_array_equal(ours[1:].mean(), [2, 3])
        np.testing.assert_array_equal(ours[np.array([True, False, True])].mean(), [1, 3])
        assert ours[-1].shape == ()
        assert ours[-1].std() == ours.std()[-1]
        with pytest.raises(IndexError):
            ours[3]

    def test_a_shared_location_is_repeated(self):
        np.testing.assert_array_equal(Normal(1.0, [1.0, 2.0]).mean(), [1, 1])
        np.testing.assert_array_equal(StudentT([3.0, 4.0], 1.0, 2.0).median(), [1, 1])

    def test_a_single_distribution_has_no_rows(self):
        with pytest.raises(TypeError, match="no rows and no length"):
            len(Normal())
        with pytest.raises(TypeError, match="no rows to select"):
            Normal()[0]

    def test_no_rows_at_all(self):
        none = StudentT(np.empty(0), np.empty(0), np.empty(0))
        assert len(none) == 0
        assert none.logpdf([]).shape == none.crps([]).shape == none.rvs().shape == (0,)
        assert none.interval(0.9)[0].shape == none.std().shape == (0,)

    def test_single_answers_are_numbers(self):
        assert isinstance(StudentT(5.0).logpdf(1.0), float)
        assert isinstance(Normal().interval(0.95)[0], float)

    def test_repr(self):
        assert repr(StudentT(5)) == "StudentT(df=5, loc=0, scale=1)"
        assert repr(Normal([1, 2], 0.5)) == "Normal(loc=[1. 2.], scale=0.5)"
        assert "..." in repr(Normal(np.arange(100), 1))

    def test_copies_and_pickles(self):
        ours = StudentT(5.0, [1.0, 2.0], 2.0)
        for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            np.testing.assert_array_equal(other.logpdf(0.3), ours.logpdf(0.3))

    def test_the_mean_is_a_copy(self):
        ours = Normal(np.array([1.0, 2.0]))
        ours.mean()[0] = 9.0
        assert ours.loc[0] == 1.0
