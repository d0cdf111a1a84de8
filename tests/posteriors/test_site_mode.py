"""The mode of rows whose curvature is known from the search under another prior."""

import numpy as np
import pytest

from posterity.factor import Factor
from posterity.factor.rows import SiteRows
from posterity.likelihoods import Bernoulli, Likelihood, Poisson
from posterity.posteriors._site_mode import find_mode


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson()])
@pytest.mark.parametrize("ratio", [1.1, 1e4])
def test_a_known_curvature_leads_to_the_same_mode(likelihood: Likelihood, ratio: float) -> None:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200).astype(float)
    nothing = np.zeros(200)
    rows = SiteRows(X, y, np.ones(200), nothing, nothing)
    first = find_mode(_prior(1.0), likelihood, rows, None, False)
    cold = find_mode(_prior(ratio), likelihood, rows, None, False)
    warm = find_mode(_prior(ratio), likelihood, rows, first.coefficients, False, first.curvature)
    assert first.curvature is not None
    assert warm.converged
    assert np.allclose(warm.coefficients, cold.coefficients, rtol=0.0, atol=1e-10)


def _prior(precision: float) -> Factor:
    prior = Factor(4)
    prior.append(np.sqrt(precision) * np.eye(4), np.full((4, 1), np.sqrt(precision)))
    return prior
