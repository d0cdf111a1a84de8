"""Rows in a window, and what is summed, are checked where the prior is learned, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import BayesianLinearRegression, BayesianLogisticRegression
from posterity.files import ModelFileError, load, save
from posterity.forgetting import Directional, Window
from posterity.posteriors.memory import KEEP


def shorten(posterior: Any) -> None:
    posterior.stored_rows.weights = posterior.stored_rows.weights[:4]


def turn_back(posterior: Any) -> None:
    posterior.stored_rows.times = posterior.stored_rows.times[::-1].copy()


def forget_nothing(posterior: Any) -> None:
    posterior.__dict__["memory"] = KEEP


def sum_nothing(posterior: Any) -> None:
    posterior.__dict__["tally"] = None


@pytest.mark.parametrize(
    ("memory", "spoil"),
    [
        (Window(10), shorten),
        (Window(10), turn_back),
        (Directional(0.9), forget_nothing),
        (Directional(0.9), sum_nothing),
    ],
)
def test_what_does_not_fit_is_refused(
    memory: Any, spoil: Callable[[Any], None], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    model = BayesianLinearRegression(forgetting=memory)
    model.fit(rng.normal(size=(30, 2)), rng.normal(size=30))
    save(model, tmp_path / "model")
    load(tmp_path / "model")
    spoil(model._posterior)
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_first_rows_of_many_classes_are_whole_rows() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(37, 2)), np.arange(37) % 3
    model = BayesianLogisticRegression().partial_fit(X, labels, classes=[0, 1, 2])
    assert model.n_effective_ == 37.0
