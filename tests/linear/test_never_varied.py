"""A feature that never varied: nothing is known of its coefficient, wherever one looks."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegression,
    BayesianPoissonRegression,
    BayesianQuantileRegression,
    BayesianRobustRegression,
)
from posterity.files import dumps, loads
from posterity.forgetting import Exponential

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
X = pandas.DataFrame({"a": RNG.normal(size=60), "still": 5.0, "b": RNG.normal(size=60)})
LINE = X["a"].to_numpy() + RNG.normal(size=60)
COUNTS = RNG.poisson(np.exp(0.5 * X["a"]))
MODELS = [
    (BayesianLinearRegression(), LINE),
    (BayesianLinearRegression(prior_precision="ard"), LINE),
    (BayesianLinearRegression(noise_precision=1.0), LINE),
    (BayesianLinearRegression(noise_precision=1e-4), 100.0 * LINE),
    (BayesianLinearRegression(noise="linear"), LINE),
    (BayesianLinearRegression(forgetting=Exponential(half_life=100)), LINE),
    (BayesianLinearRegression(), np.column_stack([LINE, -LINE])),
    (BayesianLogisticRegression(), LINE > 0.0),
    (BayesianPoissonRegression(), COUNTS),
    (BayesianNegativeBinomialRegression(), COUNTS),
    (BayesianRobustRegression(), LINE),
    (BayesianRobustRegression(), 100.0 * LINE),
    (BayesianQuantileRegression(), LINE),
    (BayesianQuantileRegression(), 100.0 * LINE),
]


@pytest.mark.parametrize(("fresh", "y"), MODELS, ids=lambda value: repr(value)[:60])
def test_is_unknown_everywhere(fresh, y):
    model = clone(fresh).fit(X, y)
    varied = clone(fresh).fit(X[["a", "b"]], y)
    for one in (model, loads(dumps(model))):
        posterior = one.posterior_
        std, interval = np.atleast_2d(posterior.std()), posterior.interval(0.9)
        assert np.isinf(std[:, 2]).all()
        assert np.isinf(interval.reshape(-1, 4, 2)[:, 2]).all()
        table = one.summary()
        np.testing.assert_array_equal(table["sd"], std.ravel())
        others = np.atleast_2d(varied.posterior_.std())  # all else is as without it
        np.testing.assert_allclose(std[:, [0, 1, 3]], others, rtol=1e-3)
        assert np.isfinite(one.sample_coefficients(3, rng=0)).all()
        assert np.isfinite(one.predict_interval(X)).all()


def test_no_draws_of_what_is_unknown():
    model = BayesianLinearRegression().fit(X, LINE)
    with pytest.raises(ValueError, match=r"coefficient 2 \(still\) is not determined yet"):
        model.posterior_.rvs(3)


def test_plots_and_tables_of_the_command(tmp_path):
    from posterity import save

    pytest.importorskip("matplotlib")
    testing = pytest.importorskip("click.testing")
    from posterity.cli.commands import posterity as command
    from posterity.plots import plot_coefficients, plot_predictions

    model = BayesianLinearRegression().fit(X, LINE)
    plot_coefficients(model)
    plot_predictions(model, np.linspace(-1, 1, 5), feature="a", at=X.iloc[0].to_numpy())
    save(model, tmp_path / "m")
    result = testing.CliRunner().invoke(command, ["show", str(tmp_path / "m"), "--json"])
    rows = {one["name"]: one for one in json.loads(result.stdout)["coefficients"]}
    assert rows["still"]["std"] is None
    assert rows["a"]["std"] > 0.0


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
@pytest.mark.parametrize("model", [BayesianRobustRegression(), BayesianQuantileRegression()])
def test_weights_that_change_do_not_make_it_known(model, way):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(300, 2)), np.ones(300)])
    counts = np.abs(3.0 * (rows[:, 0] - rows[:, 1]) + 3.0 * rng.normal(size=300)).astype(int)
    fitted = getattr(clone(model), way)(rows, counts)
    assert np.isinf(fitted.posterior_.std()[3])
