"""What a model says beside its tables: marginal means, shares of variance, curves, sentences."""

from __future__ import annotations

import copy
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from gibbs_mixed import sample_mixed_model
from matplotlib.figure import Figure
from mixed_tables import make_cattle, make_sleep

from posterity import BayesianLogisticRegression, Model
from posterity.evaluation import compare

MIXED = "y ~ days + (days | subject)"


def make_cities(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    city, kind = rng.choice(["a", "b", "c"], n), rng.choice([1, 2], n)
    x = rng.normal(5.0, 2.0, n)
    y = 2.0 * (city == "b") + x * (city == "c") + kind + rng.normal(size=n)
    return pd.DataFrame({"y": y, "city": city, "kind": kind, "x": x, "g": np.arange(n) % 7})


@pytest.mark.parametrize(
    "right",
    [
        "city",
        "0 + city",
        "0 + city + x",
        "0 + city:x + (1 | g)",
        "city + x",
        "city * x",
        "city + city:x",
        "city * C(kind) + x",
        "city:C(kind)",
        "city + C(kind):x + x",
        "C(kind) * x + city + (1 + x | g)",
    ],
)
def test_marginal_means_are_means_of_predictions_over_a_grid(right: str) -> None:
    """Numbers are at their means, and a group that was never met is at 0."""
    frame = make_cities()
    model = Model(f"y ~ {right}").fit(frame)
    found = model.means("city")
    assert found.index.tolist() == ["a", "b", "c"]
    for city, mean in found["mean"].items():
        grid = pd.DataFrame(
            {"city": city, "kind": [1, 2], "x": frame["x"].mean(), "g": [1000, 1001]}
        )
        assert mean == pytest.approx(model.predict(grid).mean(), abs=1e-8)


def test_intervals_of_marginal_means_and_contrasts() -> None:
    """Those of the mean at one cell, and of the coefficient where the other level is the first."""
    frame = make_cities()
    model = Model("y ~ city + x").fit(frame)
    cell = pd.DataFrame({"city": ["b"], "x": [frame["x"].mean()]})
    expected = model.predict_interval(cell, 0.8, of="mean")[0]
    found = model.means("city", 0.8).loc["b", ["low", "high"]]
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-8)
    columns = ["mean", "sd", "low", "high"]
    one = model.contrast("city", "c", "a").loc["c - a", columns]
    assert one.tolist() == pytest.approx(model.summary().loc["city[c]", columns].tolist(), abs=1e-8)
    other = model.contrast("city", "b", "c")["mean"].iloc[0]
    means = model.means("city")["mean"]
    assert other == pytest.approx(means["b"] - means["c"], abs=1e-9)


def test_means_of_rows_batches_and_merged_models_are_the_same() -> None:
    frame = make_cities()
    whole = Model("y ~ city * x + (1 | g)").fit(frame)
    parts = [Model(whole.formula).partial_fit(part) for part in (frame[:30], frame[30:])]
    for other in (parts[0].merge(parts[1]), copy.deepcopy(whole).partial_fit(frame).unlearn(frame)):
        for read in ("explained_variance", "report", "means"):
            asked = ("city",) if read == "means" else ()
            one, two = (getattr(model, read)(*asked) for model in (whole, other))
            if read == "report":
                assert one == two
            else:
                np.testing.assert_allclose(one, two, rtol=1e-5)


def test_levels_that_come_later_and_rows_without_weight() -> None:
    frame = make_cities()
    later = frame.assign(city=frame["city"].replace({"a": "0", "c": "z"}))
    model = Model("y ~ city + x").fit(frame).partial_fit(later)
    found = model.means("city")["mean"]
    assert found.index.tolist() == ["0", "a", "b", "c", "z"]
    x = pd.concat([frame, later])["x"].mean()
    expected = model.predict({"city": ["0", "a"], "x": [x, x]})
    assert found[["0", "a"]].tolist() == pytest.approx(expected.tolist(), abs=1e-8)
    weights = np.repeat([0.0, 1.0], 30)
    one = Model("y ~ city + x").fit(frame, sample_weight=weights)
    other = Model("y ~ city + x").fit(frame[30:])
    np.testing.assert_allclose(one.means("city"), other.means("city"), rtol=1e-5)
    np.testing.assert_allclose(one.explained_variance(), other.explained_variance(), rtol=1e-5)


def test_means_of_labels_and_counts_have_probabilities_and_rates() -> None:
    model = Model("cases / animals ~ C(period) + (1 | herd)", likelihood="binomial")
    model = model.fit(make_cattle())
    found = model.means("C(period)")
    assert found.index.tolist() == [1, 2, 3, 4]
    np.testing.assert_allclose(found["expected"], 1.0 / (1.0 + np.exp(-found["mean"])))
    # Of glmer: 0.198 in the first period; emmeans(type = "response").
    assert found.loc[1, "expected"] == pytest.approx(0.198, abs=0.01)
    other = model.contrast("C(period)", 2, 1)
    assert other["mean"].iloc[0] == pytest.approx(model.summary().loc["C(period)[2]", "mean"])
    assert other["odds_ratio"].iloc[0] == pytest.approx(np.exp(other["mean"].iloc[0]))
    labels = pd.DataFrame(
        {"y": ["no", "no", "yes", "no", "yes", "yes"] * 5, "k": list("aaabbb") * 5}
    )
    labelled = Model("y ~ k", likelihood="bernoulli").fit(labels)
    assert labelled.means("k")["expected"].round(1).tolist() == [0.3, 0.7]


def test_what_has_no_mean_is_refused() -> None:
    frame = make_cities()
    model = Model("y ~ city * C(kind) + x").fit(frame[~((frame.city == "b") & (frame.kind == 2))])
    with pytest.raises(ValueError, match="no row has some pairs of levels of 'city:C"):
        model.means("city")
    with pytest.raises(ValueError, match=r"no factor 'x'.*it has 'city', 'C\(kind\)'"):
        model.means("x")
    with pytest.raises(ValueError, match="knows no means of its columns"):
        Model("y ~ 0 + city:x").fit(frame).means("city")
    with pytest.raises(ValueError, match="'city' has no level 'd': its levels are 'a'"):
        Model("y ~ city").fit(frame).contrast("city", "a", "d")


def test_explained_variance_beside_performance() -> None:
    """R's performance has .279, .799 and .722 at the estimates; ours are means over them."""
    found = Model(MIXED).fit(make_sleep()).explained_variance()["mean"]
    assert found.tolist() == pytest.approx([0.279, 0.799, 0.722], abs=0.03)


@pytest.mark.slow
def test_explained_variance_is_that_of_a_gibbs_sampler() -> None:
    frame = make_sleep()
    X = np.stack([np.ones(180), frame["days"]], axis=1)
    draws = sample_mixed_model(
        frame["y"].to_numpy(), X, X, pd.factorize(frame["subject"])[0], 10_000
    )
    sds, noise = np.exp(draws["at"][:, :2]), draws["noise"]
    between = sds[:, 0] ** 2 + sds[:, 1] ** 2 * np.mean(X[:, 1] ** 2)
    between += 2.0 * np.tanh(draws["at"][:, 2]) * sds.prod(axis=1) * X[:, 1].mean()
    fixed = draws["b"][:, 1] ** 2 * X[:, 1].var()
    total = fixed + between + noise
    expected = [fixed / total, 1.0 - noise / total, between / (between + noise)]
    found = Model(MIXED).fit(frame).explained_variance()
    for (_, row), own in zip(found.iterrows(), expected, strict=True):
        ends = np.quantile(own, [0.025, 0.975])
        off = row[["mean", "low", "high"]] - [own.mean(), *ends]
        assert np.abs(off).max() < 0.15 * own.std()


@pytest.mark.parametrize("likelihood", ["normal", "bernoulli", "poisson"])
def test_explained_variance_of_each_likelihood(likelihood: str) -> None:
    """Curves explain as fixed effects do, and what explains nothing has a share near 0."""
    n, rng = 400, np.random.default_rng(3)
    x, g = rng.random(n), rng.integers(0, 8, n)
    eta = 2.0 * np.sin(6.0 * x)
    draw = {"normal": rng.normal, "bernoulli": lambda e: e > rng.logistic(size=n)}
    y = draw.get(likelihood, lambda e: rng.poisson(np.exp(e)))(eta)
    model = Model("y ~ s(x) + (1 | g)", likelihood=likelihood)
    found = model.fit({"y": y, "x": x, "g": g}).explained_variance()["mean"]
    rest = {
        "normal": 1.0,
        "bernoulli": np.pi**2 / 3.0,
        "poisson": np.log1p(1.0 / np.exp(eta).mean()),
    }
    share = eta.var() / (eta.var() + rest[likelihood])
    assert found["R2 marginal"] == pytest.approx(share, abs=0.1)
    assert found["R2 marginal"] <= found["R2 conditional"]
    assert 0.0 <= found["ICC(g)"] < 0.1


def test_explained_variance_without_a_constant() -> None:
    """All levels of a factor are one; without it squares are around 0."""
    frame = make_cities()
    one, other = (Model(f"y ~ {right}").fit(frame) for right in ("city", "0 + city"))
    np.testing.assert_allclose(one.explained_variance(), other.explained_variance(), rtol=0.1)
    around_0 = Model("y ~ 0 + x").fit(frame).explained_variance().loc["R2 marginal", "mean"]
    left = frame["y"] - frame["x"] * (frame["x"] @ frame["y"] / (frame["x"] @ frame["x"]))
    assert around_0 == pytest.approx(1.0 - left @ left / (frame["y"] @ frame["y"]), abs=0.02)


def test_report_says_rows_levels_effects_and_shares() -> None:
    said = Model(MIXED).fit(make_sleep()).report()
    assert "was fitted to 180 rows of 18 levels of subject" in said
    for part in ("days 10.5 (7.1 to 13.8)", "sd(residual) 25.8", "R2 conditional 0.8", "ICC(subj"):
        assert part in said
    counts = Model("y ~ x", likelihood="poisson").fit({"y": [1, 0, 3], "x": [0.0, 1.0, 2.0]})
    assert counts.report().startswith("A Poisson model, y ~ x, was fitted to 3 rows.")


def test_curve_is_drawn() -> None:
    x = np.linspace(0.0, 6.0, 60)
    model = Model("y ~ s(x)").fit({"x": x, "y": np.sin(x)})
    ax = model.plot_curve("s(x)", Figure().subplots())
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.curve("x")["mean"])
    with pytest.raises(ValueError, match=r"no curve 'z': it has 's\(x\)'"):
        model.plot_curve("z")


def test_models_are_compared_by_how_they_predicted() -> None:
    frame = make_sleep().sample(frac=1.0, random_state=0)
    models = {"groups": Model("y ~ days + (1 | subject)"), "none": Model("y ~ days")}
    result = compare(models, frame, frame["y"], score="prequential")
    assert result.best == "groups"
    assert result.log_scores[0] - result.log_scores[1] > 20.0


class TestAverageEffects:
    """What the expected target changes by, on average over rows."""

    FORMULAS: ClassVar = {
        "number ~ x * city + s(z) + C(year) + (1 + x | g)": "normal",
        "label ~ x + city + s(z) + C(year) + (1 | g)": "bernoulli",
        "count ~ x + city + s(z) + (1 | g)": "poisson",
    }

    def make(self) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        n = 200
        frame = pd.DataFrame(
            {
                "x": rng.normal(size=n),
                "z": 3.0 * rng.random(n),
                "city": np.array(list("abc"))[rng.integers(0, 3, n)],
                "year": rng.integers(2000, 2003, n),
                "g": rng.integers(0, 12, n),
            }
        )
        eta = frame["x"] + 1.5 * (frame["city"] == "b") + np.sin(2.0 * frame["z"])
        eta += rng.normal(size=12)[frame["g"]]
        frame["number"] = eta + 0.5 * rng.normal(size=n)
        frame["label"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
        frame["count"] = rng.poisson(np.exp(0.5 * eta))
        return frame

    @pytest.mark.parametrize("formula", FORMULAS)
    def test_means_are_those_of_predictions(self, formula: str) -> None:
        frame = self.make()
        model = Model(formula, self.FORMULAS[formula]).fit(frame)
        table = model.average_effects(frame)
        ends = {"x": (frame, frame.assign(x=frame["x"] + 1.0))}
        ends |= {f"city={one}": (frame.assign(city="a"), frame.assign(city=one)) for one in "bc"}
        if "year" in formula:
            low, high = (frame.assign(year=year) for year in (2000, 2002))
            ends["year=2002"] = low, high
        beyond = frame["z"] + 1.0 > frame["z"].max()
        moved = frame["z"] - beyond
        ends["z"] = frame.assign(z=moved), frame.assign(z=moved + 1.0)
        for name, (low, high) in ends.items():
            expected = np.mean(model.predict(high) - model.predict(low))
            assert table.loc[name, "mean"] == pytest.approx(expected, rel=5e-3, abs=2e-4)
        assert "g" not in table.index

    def test_a_weight_of_numbers_is_its_own_effect(self) -> None:
        frame = self.make()
        model = Model("number ~ x + city + (1 | g)").fit(frame)
        table, summary = model.average_effects(frame), model.summary()
        for effect, name in (("x", "x"), ("city=b", "city[b]")):
            for column in ("mean", "sd", "low", "high"):
                assert table.loc[effect, column] == pytest.approx(summary.loc[name, column])

    def test_labels_agree_with_draws_of_a_logistic_regression(self) -> None:
        frame = self.make()
        ours = Model("label ~ x + city", "bernoulli").fit(frame).average_effects(frame)
        drawn = BayesianLogisticRegression(prior_precision=1e-4)
        drawn = drawn.fit(frame[["x", "city"]], frame["label"])
        expected = drawn.average_effects(frame[["x", "city"]])
        assert np.abs((ours["mean"] - expected["mean"]) / expected["sd"]).max() < 0.15
        assert (ours["sd"] / expected["sd"]).to_numpy() == pytest.approx(1.0, abs=0.1)
