"""Curves: penalised splines beside what they are of, and what they say of it."""

from __future__ import annotations

import numpy as np
import pytest

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
