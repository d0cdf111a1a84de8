"""A forecaster in a file is the forecaster that was saved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from posterity import Forecaster, load, save
from posterity.files import ModelFileError
from posterity.forecasting import Form


def test_round_trip(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    series = {"a": np.cumsum(rng.normal(size=40)), "b": 50.0 + np.cumsum(rng.normal(size=30))}
    model = Forecaster(forms=[Form(1, (1, 2)), Form(1, log=True)], n_draws=16).fit(series)
    expected = model.forecast(4)
    path = tmp_path / "model.posterity"
    save(model, path)
    again = load(path)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.forecast(4).median(), expected.median())
    np.testing.assert_array_equal(
        again.partial_fit({"a": [1.0], "b": [52.0]}).forecast(2).median(),
        model.partial_fit({"a": [1.0], "b": [52.0]}).forecast(2).median(),
    )


def test_parts_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    model = Forecaster(forms=[Form()]).fit(np.arange(10.0))
    assert model._panel is not None
    object.__setattr__(model._panel, "ends", np.array([9, 9]))
    path = tmp_path / "model.posterity"
    save(model, path)
    with pytest.raises(ModelFileError, match="do not have matching shapes"):
        load(path)
