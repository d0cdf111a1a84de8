"""Files of ensembles, kept with what they predict: they load, and go on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files_models import COUNTS, LABELS, X, Y

from posterity import BayesianLinearRegression, load
from posterity.files import dumps, loads

KEPT = Path(__file__).parent / "ensembles"
# Labels are learned to more digits than when these files were written.
DIGITS = {"logistic_adaptive": 1e-5}
EXPECTED = json.loads((KEPT / "expected.json").read_text(encoding="utf-8"))


def said(name: str, model: Any) -> dict[str, Any]:
    """What a model predicts, and then predicts of rows that it goes on to learn."""
    later = slice(200, 220)
    if name.startswith("logistic"):
        predictive = model.predict_proba(X[:3])[:, 1]
        after = model.predict_then_learn(X[later], LABELS[later]).probabilities[:, 1]
        return {"told": predictive, "after": after}
    y = COUNTS if "poisson" in name or "binomial" in name else Y
    predictive = model.predict_distribution(X[:3])
    read = {name: getattr(model, f"{name}_") for name in ("n_effective", "log_evidence")}
    if hasattr(model, "coef_"):
        read["coef"] = model.coef_
    after = model.predict_then_learn(X[later], y[later])
    ahead = {"after_mean": after.mean(), "after_logpdf": after.logpdf(y[later])}
    return {"mean": predictive.mean(), "std": predictive.std()} | read | ahead


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_it_predicts_the_same(name: str) -> None:
    model = load(KEPT / f"{name}.safetensors")
    content = dumps(model)
    assert dumps(loads(content)) == content
    predictive = said(name, model)
    assert dumps(load(KEPT / f"{name}.safetensors")) == content
    assert predictive.keys() == EXPECTED[name].keys()
    for what, values in predictive.items():
        digits = DIGITS.get(name, 1e-9)
        np.testing.assert_allclose(values, EXPECTED[name][what], rtol=digits, err_msg=what)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_averages_of_few_rows_go_on(rows: int) -> None:
    model = BayesianLinearRegression(forgetting="adaptive")
    model.partial_fit(X[:rows], Y[:rows])
    again = loads(dumps(model))
    for one in (model, again):
        one.partial_fit(X[rows:9], Y[rows:9])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
