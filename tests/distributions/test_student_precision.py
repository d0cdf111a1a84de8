"""Every formula for the Student-t, on both sides of each threshold, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from posterity.distributions import StudentT

FEW = [0.7, 1.0, 2.0, 3.5, 10.0, 30.0]
THRESHOLDS = [63.0, np.nextafter(64, 0), 64.0, 65.5, 200.0, np.nextafter(1000, 0), 1000.0, 1001.0]
MANY = [5e3, 1e5, 1e10]
DEGREES = FEW + THRESHOLDS + MANY
# Out to where rows change from the expansion to the exact function, and far beyond.
TARGETS = [0.0, 1e-8, 0.02, 0.7, 1.0, 1.96, 3.0, 4.1, 4.3, 4.8, 5.0, 7.0, 9.0, 15.0]


@pytest.fixture(autouse=True)
def thirty_digits():
    with mp.workdps(30):
        yield


def tail(z, df):
    z, df = mp.mpf(float(z)), mp.mpf(float(df))
    if df > 1e6:  # where mpmath's incomplete beta function gives up
        at_z = log_density(z, df)
        relative = mp.quad(
            lambda t: mp.exp(log_density(t, df) - at_z),
            [z, z + 0.5, z + 1, z + 2, z + 4, z + 8, z + 14],
        )
        return mp.exp(at_z) * relative
    return mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + z * z), regularized=True) / 2


def log_density(z, df):
    constant = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2
    return constant - (df + 1) / 2 * mp.log1p(mp.mpf(z) ** 2 / df)


def crps(z, df):
    """Jordan, Krueger and Lerch (2019), in as many digits as it takes."""
    z, df = mp.mpf(float(z)), mp.mpf(float(df))
    central = 1 - 2 * tail(z, df)
    density = 2 * mp.exp(log_density(z, df)) * (df + z * z) / (df - 1)
    half = mp.mpf(1) / 2
    offset = 2 * mp.sqrt(df) / (df - 1) * mp.beta(half, df - half) / mp.beta(half, df / 2) ** 2
    return z * central + density - offset


@pytest.mark.parametrize("df", DEGREES)
class TestAgainstMpmath:
    def test_logpdf(self, df):
        expected = [float(log_density(z, mp.mpf(float(df)))) for z in TARGETS]
        np.testing.assert_allclose(StudentT(df).logpdf(TARGETS), expected, rtol=1e-13, atol=1e-13)

    def test_tails_to_relative_precision(self, df):
        expected = [float(tail(z, df)) for z in TARGETS]
        np.testing.assert_allclose(StudentT(df).sf(TARGETS), expected, rtol=2e-13)
        np.testing.assert_allclose(StudentT(df).cdf(np.negative(TARGETS)), expected, rtol=2e-13)
        upper = StudentT(df).cdf(TARGETS)
        np.testing.assert_allclose(upper, 1 - np.array(expected), atol=3e-15)

    def test_quantiles_lead_back_to_their_probability(self, df):
        q = np.array([1e-12, 1e-6, 0.001, 0.025, 0.1, 0.3, 0.49, 0.5 - 1e-9])
        quantiles = StudentT(df).ppf(q)
        for probability, z in zip(q, quantiles, strict=True):
            density = mp.exp(log_density(z, mp.mpf(float(df))))
            error = (tail(-z, df) - mp.mpf(probability)) / density
            assert abs(float(error)) < 2e-13 * max(abs(z), 1e-3)

    def test_crps(self, df):
        if df <= 1:
            return
        expected = [float(crps(z, df)) for z in TARGETS]
        np.testing.assert_allclose(StudentT(df).crps(TARGETS), expected, rtol=1e-12)


def test_one_tail_of_a_cauchy_near_its_middle():
    z = np.array([-1e-9, -1e-5, -0.1])
    np.testing.assert_allclose(StudentT(1.0).cdf(z), 0.5 + np.arctan(z) / np.pi, rtol=1e-15)
