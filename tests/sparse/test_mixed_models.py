"""Variance components of mixed models, beside known answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mixed_tables import PENICILLIN, SLEEP

from posterity.sparse import SparseLinearRegression


def components(model: SparseLinearRegression) -> dict[str, float]:
    """Standard deviations of the noise and of each column's effects."""
    posterior = model._posterior
    noise = float(np.sqrt(posterior.rates[0] / posterior.shape))
    return {"noise": noise, **{k: noise * scale for k, scale in model.prior_scales_.items()}}


def test_crossed_effects_of_a_balanced_table() -> None:
    """Restricted maximum likelihood is then the analysis of variance (Searle et al. 1992)."""
    y = np.array(PENICILLIN.split(), dtype=float)
    rows = pd.DataFrame({"plate": np.repeat(np.arange(24), 6), "sample": np.tile(np.arange(6), 24)})
    model = SparseLinearRegression(categorical_features="all").fit(rows, y)
    found = components(model)
    table = y.reshape(24, 6)
    plates, samples = table.mean(axis=1), table.mean(axis=0)
    residuals = table - plates[:, None] - samples + y.mean()
    noise = np.sum(residuals**2) / (23 * 5)
    plate, sample = plates.var(ddof=1) - noise / 6, samples.var(ddof=1) - noise / 24
    assert found["noise"] ** 2 == pytest.approx(noise, rel=1e-4)
    assert found["plate"] ** 2 == pytest.approx(plate, rel=1e-4)
    assert found["sample"] ** 2 == pytest.approx(sample, rel=1e-4)
    assert model.intercept_ == pytest.approx(y.mean())
    std = np.sqrt(model._marginals()[1][0]) * found["noise"]
    assert std**2 == pytest.approx(plate / 24 + sample / 6 + noise / 144, rel=1e-4)


def test_subjects_of_the_sleep_study() -> None:
    """lmer(Reaction ~ Days + (1|Subject)): standard deviations of 37.124 and 30.991."""
    y = np.array(SLEEP.split(), dtype=float)
    rows = pd.DataFrame({"subject": np.repeat(np.arange(18), 10), "days": np.tile(range(10), 18)})
    model = SparseLinearRegression(categorical_features=["subject"]).fit(rows, y)
    found = components(model)
    assert found["noise"] == pytest.approx(30.991, rel=1e-4)
    assert found["subject"] == pytest.approx(37.124, rel=1e-4)
    slope = model.summary().loc["days"]
    assert slope["mean"] == pytest.approx(10.467, rel=2e-3)
    assert slope["sd"] == pytest.approx(0.804, rel=5e-3)
