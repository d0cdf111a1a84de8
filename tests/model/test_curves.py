"""Curves: penalised splines beside what they are of, and what they say of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from posterity import Model

FUNCTIONS = {
    "sine": lambda x: np.sin(2.0 * np.pi * x),
    "bump": lambda x: np.exp(-(((x - 0.5) / 0.08) ** 2)),
    "line": lambda x: 2.0 * x,
    "hockey stick": lambda x: 2.0 * np.maximum(x - 0.5, 0.0),
    "fast sine": lambda x: np.sin(30.0 * x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_hold_across_a_function(name: str) -> None:
    """Of ten tables of 300 rows, noise .3; the standard error of a mean is some .015."""
    curve, held = FUNCTIONS[name], []
    grid = np.linspace(0.005, 0.995, 50)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.random(300)
        model = Model("y ~ s(x)").fit({"x": x, "y": curve(x) + 0.3 * rng.normal(size=300)})
        low, high = model.predict_interval({"x": grid}, of="mean").T
        held.append(np.mean((low < curve(grid)) & (curve(grid) < high)))
    assert np.mean(held) > 0.89


def test_a_curve_is_read_less_its_mean() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.random(400), rng.integers(0, 10, 400)
    y = 5.0 + np.sin(6.0 * x) + rng.normal(size=10)[group] + 0.1 * rng.normal(size=400)
    model = Model("y ~ s(x, k=20) + (1 | g)").fit({"x": x, "y": y, "g": group})
    found = model.curve("x")
    expected = np.sin(6.0 * found["x"])
    assert found["mean"].to_numpy() == pytest.approx(expected - expected.mean(), abs=0.1)
    assert found.equals(model.curve("s(x, k=20)"))
    with pytest.raises(ValueError, match="no curve 'z'"):
        model.curve("z")


def test_beyond_the_first_rows_a_curve_goes_straight_on() -> None:
    x = np.linspace(0.0, 1.0, 50)
    model = Model("y ~ s(x)").fit({"x": x, "y": x**2})
    far = model.predict({"x": [2.0, 3.0, 4.0]})
    assert np.diff(far, 2) == pytest.approx(0.0, abs=1e-6)
    assert np.diff(far) == pytest.approx(2.0, abs=0.1)


def make_shapes(seed: int, n: int = 300) -> pd.DataFrame:
    """Curves of different bends in three levels, a surface and a curve of the hour, of one seed."""
    rng = np.random.default_rng(seed)
    x, z, hour = rng.random(n), rng.random(n), 24.0 * rng.random(n)
    level = rng.integers(0, 3, n)
    frame = pd.DataFrame({"x": x, "z": z, "hour": hour, "level": np.array(list("abc"))[level]})
    parts = {
        "y ~ level + s(x, by=level)": np.choose(level, [np.sin(7.0 * x), 2.0 * x, np.cos(4.0 * x)]),
        "y ~ level + s(x, by=level, id=1)": np.choose(level, [np.sin(5.0 * x), 1.0 + 0.0 * x, -x]),
        "y ~ s(x, by=z)": z * np.sin(7.0 * x),
        "y ~ te(x, z, k=7)": np.sin(6.0 * x) * np.cos(3.0 * z),
        "y ~ s(hour, period=24)": np.sin(2.0 * np.pi * hour / 24.0),
        "y ~ s(hour, by=level, period=24)": np.cos(2.0 * np.pi * (hour / 24.0 - level / 3.0)),
    }
    for formula, part in parts.items():
        frame[formula] = part
    frame["noise"] = 0.3 * rng.normal(size=n)
    return frame


SHAPES = [name for name in make_shapes(0) if "~" in name]


@pytest.mark.parametrize("formula", SHAPES)
def test_intervals_hold_across_shapes(formula: str) -> None:
    """Of three tables of 200 rows; the standard error of a mean is some .03."""
    held, errors = [], []
    for seed in range(3):
        frame = make_shapes(seed, 200)
        model = Model(formula).fit(frame.assign(y=frame[formula] + frame["noise"]))
        low, high = model.predict_interval(frame, of="mean").T
        held.append(np.mean((low < frame[formula]) & (frame[formula] < high)))
        errors.append(np.mean(np.square(model.predict(frame) - frame[formula])))
    assert np.mean(held) > 0.87
    assert np.sqrt(np.mean(errors)) < 0.12  # of the noise .3


@pytest.mark.parametrize("formula", SHAPES)
def test_shapes_learned_in_batches_and_merged_are_those_of_all_rows(formula: str) -> None:
    frame = make_shapes(1, 90)
    frame["y"] = frame[formula] + frame["noise"]
    ends = frame.iloc[[int(frame[name].argmin()) for name in ("x", "z")]]
    ends = pd.concat([ends, frame.iloc[[int(frame[name].argmax()) for name in ("x", "z")]]])
    first = pd.concat([ends, frame[:45]])  # they fix where curves begin and end
    whole = Model(formula).fit(pd.concat([first, frame[45:]]))
    batches = Model(formula).fit(first).partial_fit(frame[45:])
    merged = Model(formula).fit(first).merge(Model(formula).fit(first).partial_fit(frame[45:]))
    merged = merged.unlearn(first)
    for one in (batches, merged):
        assert one.predict(frame) == pytest.approx(whole.predict(frame), abs=1e-6)


def test_a_curve_for_each_level_is_read_by_level() -> None:
    frame = make_shapes(2)
    formula = "y ~ level + s(x, by=level)"
    model = Model(formula).fit(frame.assign(y=frame[formula] + 0.1 * frame["noise"]))
    table = model.curve("x")
    assert table["level"].unique().tolist() == ["a", "b", "c"]
    for level, curve in {"a": lambda x: np.sin(7.0 * x), "c": lambda x: np.cos(4.0 * x)}.items():
        own = table[table["level"] == level]
        expected = curve(own["x"].to_numpy())
        assert own["mean"].to_numpy() == pytest.approx(expected - expected.mean(), abs=0.15)
    assert model.plot_curve("x", Figure().subplots()).get_legend_handles_labels()[1] == [
        "95% interval",
        "a",
        "b",
        "c",
    ]
    # With other numbers at their means: those of the basis, over all rows.
    grid = pd.concat([frame.assign(level=level) for level in "abc"])
    means = model.predict(grid).reshape(3, -1).mean(axis=1)
    assert model.means("level")["mean"].to_numpy() == pytest.approx(means, abs=1e-8)


def test_the_weight_of_numbers_is_a_curve() -> None:
    frame = make_shapes(3)
    formula = "y ~ s(x, by=z)"
    model = Model(formula).fit(frame.assign(y=frame[formula] + 0.1 * frame["noise"]))
    table = model.curve("x")
    assert table["mean"].to_numpy() == pytest.approx(np.sin(7.0 * table["x"]), abs=0.15)
    assert model.summary().index.tolist() == ["intercept", "s(x, by=z): line", "z"]
    both = Model("y ~ s(x, by=z) + s(hour, by=z)").fit(frame.assign(y=frame[formula]))
    assert both.summary().index.tolist()[-1] == "z"
    own = Model("y ~ z + s(x, by=z)").fit(frame.assign(y=frame[formula] + 0.1 * frame["noise"]))
    assert own.predict(frame) == pytest.approx(model.predict(frame), abs=1e-6)


def test_a_surface_is_read_and_drawn() -> None:
    frame = make_shapes(4)
    formula = "y ~ te(x, z, k=7)"
    model = Model(formula).fit(frame.assign(y=frame[formula] + 0.1 * frame["noise"]))
    table = model.curve("te(x, z, k=7)")
    expected = np.sin(6.0 * table["x"]) * np.cos(3.0 * table["z"])
    assert np.std(table["mean"] - expected) < 0.05
    assert model.plot_curve("x, z", Figure().subplots()).get_ylabel() == "z"


def test_the_ends_of_a_period_meet() -> None:
    frame = make_shapes(5)
    formula = "y ~ s(hour, period=24)"
    model = Model(formula).fit(frame.assign(y=frame[formula] + frame["noise"]))
    ends = model.predict({"hour": [0.0, 24.0, -24.0, 48.0, 1e-6]})
    assert ends == pytest.approx(ends[0], abs=1e-5)


def test_a_level_that_comes_later_has_a_curve_where_scales_are_shared_and_else_a_line() -> None:
    frame = make_shapes(6)
    for formula in ("y ~ level + s(x, by=level, id=1)", "y ~ level + s(x, by=level)"):
        frame["y"] = frame[formula] + frame["noise"]
        late = frame.assign(level="d", y=2.0 * np.sin(7.0 * frame["x"]) + 0.1 * frame["noise"])
        model = Model(formula).fit(frame)
        low, high = model.predict_interval(late).T
        assert (high - low > 10.0).all()  # not met: wide
        model = model.partial_fit(late)
        bent = np.abs(np.diff(model.predict({"x": np.linspace(0, 1, 9), "level": ["d"] * 9}), 2))
        assert (bent.max() > 0.3) == ("id=1" in formula)


def test_a_variance_that_may_be_zero_beside_others_is_finite() -> None:
    rng = np.random.default_rng(0)
    x, z, level = rng.random(400), rng.random(400), np.array(list("abc"))[rng.integers(0, 3, 400)]
    y = np.sin(6.0 * x) * z + 0.3 * np.random.default_rng(40).normal(size=400)
    model = Model("y ~ te(x, z, k=5, by=level, id=1)")
    found = model.fit({"x": x, "z": z, "level": level, "y": y}).variance_components()
    assert 0.28 < found.loc["sd(residual)", "mean"] < 0.34


def test_curves_that_share_a_column_settle() -> None:
    """Each may stand for the others: steps cut one by one led down, and no node was near a mode."""
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, zone = rng.uniform(0.0, 10.0, 200), np.array(list("abc"))[rng.integers(0, 3, 200)]
        y = np.sin(x) + 0.1 * x * (zone == "b") + 0.8 * rng.normal(size=200)
        model = Model("y ~ s(x) + s(x, by=zone)").fit({"x": x, "zone": zone, "y": y})
        assert model.variance_components().loc["sd(residual)", "mean"] == pytest.approx(
            0.8, abs=0.15
        )
