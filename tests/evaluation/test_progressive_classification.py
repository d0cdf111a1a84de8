"""Progressive validation of classifiers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from posterity import BayesianLogisticRegression
from posterity.evaluation import progressive_classification
from posterity.forgetting import Adaptive, Forgetting

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 2))
Y = np.where(X @ [2.0, -1.0] + RNG.logistic(size=600) > 0.0, "yes", "no")


def test_scores_are_those_of_scikit_learn() -> None:
    predictive = BayesianLogisticRegression().predict_then_learn(X, Y)
    result = progressive_classification(BayesianLogisticRegression(), X, Y)
    assert result.accuracy == pytest.approx(accuracy_score(Y, predictive.mode()))
    assert result.log_loss == pytest.approx(log_loss(Y, predictive.probabilities))
    binary = brier_score_loss(Y == "yes", predictive.probabilities[:, 1])
    assert result.brier == pytest.approx(2.0 * binary)
    assert result.no_change == pytest.approx(np.mean(Y[1:] == Y[:-1]))
    assert result.calibration.n.sum() == 1200
    assert result.calibration.error < 0.06
    assert result.along.row_end[-1] == result.n_rows == 600


def test_batches_and_arrays_agree() -> None:
    whole = progressive_classification(BayesianLogisticRegression(prior_precision=1.0), X, Y)
    model = BayesianLogisticRegression(prior_precision=1.0)
    batches = ((X[i : i + 50], Y[i : i + 50]) for i in range(0, 600, 50))
    parts = progressive_classification(model, batches, batch_rows=17)
    assert parts.log_loss == pytest.approx(whole.log_loss, rel=1e-3)
    assert parts.no_change == whole.no_change
    assert model.n_observations_ == 600.0


def test_document_and_text() -> None:
    result = progressive_classification(BayesianLogisticRegression(), (X, Y))
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["n_rows"] == 600
    assert len(document["along"]["log_loss"]) == len(result.along)
    assert "log loss (nats)" in repr(result)
    assert "Progressive validation of 600 rows" in repr(result)


def test_a_label_that_was_impossible_is_counted() -> None:
    model = BayesianLogisticRegression()
    stream = [(X[:5], ["a"] * 5), (X[5:10], ["a", "b", "a", "b", "b"])]
    result = progressive_classification(model, stream)
    assert result.n_rows == 10
    assert np.isfinite(result.log_loss)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((X,), ValueError, "y is missing"),
        ((X, Y[:3]), ValueError, "X in batch 0 has 600 rows"),
        (([],), ValueError, "the stream is empty"),
        ((3,), TypeError, "stream must be an array"),
    ],
)
def test_bad_streams(arguments: tuple[object, ...], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        progressive_classification(BayesianLogisticRegression(), *arguments)


def test_bad_model_and_bad_rows() -> None:
    with pytest.raises(TypeError, match="it has no predict_then_learn"):
        progressive_classification(object(), X, Y)
    bad = X.copy()
    bad[30, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in row 10, column 1") as caught:
        progressive_classification(BayesianLogisticRegression(), bad, Y, batch_rows=20)
    assert "in rows 20 to 39 of the stream" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("name", "target", "forgetting", "most", "least"),
    [
        ("phishing", "is_phishing", None, 0.27, 0.88),
        ("phishing", "is_phishing", Adaptive(), 0.27, 0.88),
        ("elec2", "class", None, 0.52, 0.75),
        ("elec2", "class", Adaptive(), 0.30, 0.88),
    ],
)
def test_public_streams(
    name: str,
    target: str,
    forgetting: Forgetting | None,
    most: float,
    least: float,
    data_folder: Path,
    report: Callable[[str], None],
) -> None:
    """Each row predicted before it is learned; nothing is tuned."""
    frame = pd.read_csv(data_folder / "streams" / f"{name}.csv")
    x, y = frame.drop(columns=[target]).to_numpy(float), frame[target].to_numpy()
    model = BayesianLogisticRegression(forgetting=forgetting)
    result = progressive_classification(model, x, y)
    report(
        f"{name}, {type(forgetting).__name__}: log loss {result.log_loss:.4f}, accuracy "
        f"{result.accuracy:.4f}; of no change {result.no_change:.4f}"
    )
    assert result.log_loss < most
    assert result.accuracy > least
