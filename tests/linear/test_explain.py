"""What each feature of a row adds to its prediction, and what a fitted model says of itself."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
)
from posterity.basis import Polynomial, Spline
from posterity.grouped import GroupedRegression
from posterity.plots import plot_explanation
from posterity.sparse import SparseLinearRegression


@pytest.fixture
def homes():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "area": rng.normal(80.0, 20.0, 300),
            "rooms": rng.integers(1, 6, 300),
            "district": rng.choice(["east", "north", "west"], 300),
        }
    )
    return X, 2.0 * X["area"] - 40.0 * (X["district"] == "north") + 5.0 * rng.normal(size=300)


@pytest.mark.parametrize("basis", [None, {"area": Spline()}, "auto", Polynomial(degree=2)])
@pytest.mark.parametrize("compared", [False, True])
def test_parts_sum_to_the_prediction(homes, basis, compared):
    X, y = homes
    model = BayesianLinearRegression(basis=basis).fit(X, y)
    table = model.explain(X.iloc[7], X=X if compared else None)
    assert table["mean"].iloc[:-1].sum() == pytest.approx(table["mean"].iloc[-1], rel=1e-9)
    assert table.loc["(this row)", "mean"] == pytest.approx(model.predict(X[7:8])[0], rel=1e-9)
    assert table.loc["district", "value"] == X["district"].iloc[7]


def test_the_average_row_is_that_of_the_rows_learned(homes):
    X, y = homes
    model = BayesianLinearRegression().fit(X, y)
    own, given = model.explain(X.iloc[0]), model.explain(X.iloc[0], X=X)
    pd.testing.assert_frame_equal(own, given, rtol=1e-9)
    assert own.loc["(average)", "mean"] == pytest.approx(y.mean(), rel=1e-3)


def test_intervals_are_those_of_the_differences(homes):
    X, y = homes
    model = BayesianLinearRegression(prior_precision=0.0).fit(X[["area", "rooms"]], y)
    table = model.explain({"area": 100.0, "rooms": 3.0}, level=0.9)
    off = 100.0 - X["area"].mean()
    sd = abs(off) * model.posterior_.std()[1]
    assert table.loc["area", "sd"] == pytest.approx(sd, rel=1e-9)


def test_labels_and_counts_are_explained_on_their_scale_with_ratios(homes):
    X, y = homes
    labels = BayesianLogisticRegression().fit(X, y > 150.0).explain(X.iloc[0])
    assert labels.loc["area", "odds_ratio"] == pytest.approx(np.exp(labels.loc["area", "mean"]))
    counts = BayesianPoissonRegression().fit(X, np.round(y / 50.0).clip(0.0)).explain(X.iloc[0])
    assert "rate_ratio_low" in counts


def test_several_numbers_have_no_one_explanation(homes):
    X, y = homes
    with pytest.raises(ValueError, match="each class has its own: average_effects"):
        BayesianLogisticRegression().fit(X, np.digitize(y, [100.0, 200.0])).explain(X.iloc[0])


def test_a_read_changes_nothing(homes):
    X, y = homes
    model = BayesianLinearRegression().fit(X, y)
    before = pickle.dumps(model.predict(X))
    model.explain(X.iloc[0], X=X)
    assert pickle.dumps(model.predict(X)) == before


def test_the_figure_has_the_largest_part_first(homes):
    X, y = homes
    model, row = (
        BayesianLinearRegression().fit(X, y),
        {"area": 81.0, "rooms": 3, "district": "north"},
    )
    ax = plot_explanation(model, row)
    assert ax.get_yticklabels()[0].get_text() == "district = north"


def test_a_table_prints_intervals_first_in_80_columns(homes):
    X, y = homes
    table = BayesianLogisticRegression().fit(X, y > 150.0).summary()
    lines = repr(table).splitlines()
    assert lines[0].split()[:4] == ["mean", "low", "high", "sd"]
    assert max(map(len, lines)) <= 80
    assert type(pickle.loads(pickle.dumps(table))) is pd.DataFrame
    assert type(table[["mean"]]) is pd.DataFrame


def test_a_fitted_model_says_what_it_has_learned(homes):
    X, y = homes
    model = BayesianLinearRegression(forgetting="exponential:0.99")
    assert repr(model) == "BayesianLinearRegression(forgetting='exponential:0.99')"
    told = repr(model.fit(X, y))
    assert told.startswith(repr(BayesianLinearRegression(forgetting="exponential:0.99")))
    assert ": 300 rows that weigh 95.1 today, 3 features, noise sd 4." in told
    assert repr(BayesianLinearRegression().fit([[1.0]], [2.0])).startswith(
        "BayesianLinearRegression(): 1 row, 1 feature"
    )


def test_tables_of_several_targets_and_explanations_print_whose_interval_it_is(homes):
    X, y = homes
    both = repr(BayesianLinearRegression().fit(X, np.column_stack([y, -y])).summary())
    assert both.splitlines()[0].split()[:4] == ["target", "mean", "low", "high"]
    told = BayesianLogisticRegression().fit(X, y > 150.0).explain(dict(X.iloc[0]))
    assert repr(told).splitlines()[0].split()[:4] == ["value", "mean", "low", "high"]
    with pytest.raises(ValueError, match="give one level"):
        BayesianLinearRegression().fit(X, y).explain(dict(X.iloc[0]), level=[0.5, 0.9])


def test_a_table_without_its_ends_or_with_text_for_numbers_prints_as_any_other(homes):
    X, y = homes
    table = BayesianLinearRegression().fit(X, y).summary()
    table["mean"] = "?"
    assert repr(table) == repr(pd.DataFrame(table))
    del table["low"]
    assert repr(table) == repr(pd.DataFrame(table))


def test_models_of_groups_and_of_many_features_say_it_too():
    X, y = np.zeros((3, 2)), [1.0, 2.0, 3.0]
    groups = GroupedRegression().fit(X, y, groups=["a", "b", "a"])
    assert repr(groups) == "GroupedRegression(): 3 rows, 2 groups, 2 features"
    wide = SparseLinearRegression().fit([["a"], ["b"], ["a", "c"]], y)
    assert repr(wide) == "SparseLinearRegression(): 3 rows, 3 features"
    assert repr(SparseLinearRegression()) == "SparseLinearRegression()"
    heavy = BayesianLinearRegression().fit(X, y, sample_weight=np.full(3, 1e6))
    assert ": 3,000,000 rows, 2 features" in repr(heavy)
    with pytest.raises(AttributeError, match=r"model_of\(group\).explain"):
        groups.explain([0.0, 0.0])
