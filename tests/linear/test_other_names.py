"""What draws takes ``size`` and ``rng``; its other names warn, and mean the same."""

import numpy as np
import pytest

from posterity import (
    Averaged,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)

pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = X @ [1.0, -0.5] + RNG.normal(size=40)
MODELS = {
    "linear": BayesianLinearRegression().fit(X, Y),
    "labels": BayesianLogisticRegression().fit(X, Y > 0.0),
    "classes": BayesianLogisticRegression().fit(X, np.digitize(Y, [-0.5, 0.5])),
    "counts": BayesianPoissonRegression().fit(X, RNG.poisson(1.0, 40)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("read", ["sample_coefficients", "sample_mean", "average_effects"])
def test_names_mean_the_same(model, read):
    method = getattr(model, read)
    given = () if read == "sample_coefficients" else (X,)
    with pytest.warns(FutureWarning) as warned:
        other = method(*given, n_draws=7, random_state=3)
    assert {str(one.message).split(" in ")[0] for one in warned} == {
        "n_draws is called size",
        "random_state is called rng",
    }
    np.testing.assert_array_equal(other, method(*given, size=7, rng=3))


def test_of_averages_too():
    average = Averaged([BayesianLinearRegression()]).fit(X, Y)
    with pytest.warns(FutureWarning, match="seed is called rng"):
        other = average.average_effects(X, seed=3)
    assert other.equals(average.average_effects(X, rng=3))


def test_one_name_at_a_time():
    with pytest.raises(TypeError, match="got rng and random_state: give rng alone"):
        MODELS["linear"].sample_mean(X, 3, rng=0, random_state=0)
