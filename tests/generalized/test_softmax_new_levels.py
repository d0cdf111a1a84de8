"""A level that no row had is as open as levels differ, with several classes too."""

from __future__ import annotations

import numpy as np
import pytest

from posterity import BayesianLogisticRegression


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_probabilities_of_a_new_level_are_as_open_as_levels_differ(learn: str) -> None:
    rng = np.random.default_rng(0)
    levels, classes = rng.integers(0, 28, 200), np.arange(3)
    odds = 1.5 * rng.normal(size=(28, 3))
    truth = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=truth[level]) for level in levels])
    model = BayesianLogisticRegression()
    if learn == "fit":
        model.fit(np.eye(30)[levels], y)
    else:
        model.partial_fit(np.eye(30)[levels], y, classes=classes)
    widths = np.ptp(model.predict_interval(np.eye(30)), axis=-1).mean(axis=1)
    counts = np.bincount(levels, minlength=30)
    assert widths[28:].min() > widths[counts > 8].max()
    assert widths[28:].min() > 0.5
