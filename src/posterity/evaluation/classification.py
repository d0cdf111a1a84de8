"""Progressive validation of classifiers: predict each label, then learn it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.aliases import AnyArray, Array, Document, Estimator, Mask
from posterity.evaluation._batches import (
    limit_batches,
    locate_rows,
    note_refusals,
    read_labels,
    refuse_nothing,
)
from posterity.evaluation._ledger import StretchLedger
from posterity.evaluation._tables import count_rows, pick_plain, to_plain
from posterity.evaluation.progressive import check_count, check_learns

# Columns of the ledger: rows, right answers, log scores that are finite, their sum, Brier scores.
ROWS, RIGHT, WITH_SCORE, LOG_SCORE, BRIER = range(5)
N_COLUMNS = 5
SCORES = ("accuracy", "log_loss", "brier")
N_BINS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Reliability of a label's probabilities: observed frequencies in ten bins of equal width.

    Attributes
    ----------
    n : (10,) int array
        Probabilities in the bin, one for each row and class.
    predicted, observed : (10,) arrays
        Mean probability in the bin, and the share of them whose class came; NaN where there are
        none.
    """

    n: NDArray[np.int64]
    predicted: Array
    observed: Array

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of the two, weighted by the bins' numbers."""
        known = self.n > 0
        if not known.any():
            return math.nan
        distance = np.abs(self.predicted[known] - self.observed[known])
        return float(np.sum(distance * self.n[known]) / np.sum(self.n))


@dataclass(frozen=True, eq=False)
class ClassStretches:
    """Scores over consecutive stretches of the stream, all of one length but the last.

    Attributes
    ----------
    row_end : (s,) int array
        Rows seen when the stretch ended.
    accuracy, log_loss, brier : (s,) arrays
    """

    row_end: NDArray[np.int64]
    accuracy: Array
    log_loss: Array
    brier: Array

    def __len__(self) -> int:
        return len(self.row_end)


@dataclass(frozen=True, eq=False)
class ClassificationResult:
    """Scores of labels that were predicted before they were learned.

    Attributes
    ----------
    accuracy : float
        Share of rows whose most probable label came.
    log_loss : float
        Minus the mean log probability of the label that came, in nats a row; smaller is better.
    brier : float
        Mean sum over the classes of (probability - [it came])^2, from 0 to 2 (Brier 1950).
    no_change : float
        Accuracy of saying the label of the row before: what a stream must beat.
    calibration : Calibration
    n_rows : int
    n_impossible : int
        Rows whose label had been given probability 0: they are left out of `log_loss`.
    along : ClassStretches
        The same scores along time.
    """

    accuracy: float
    log_loss: float
    brier: float
    no_change: float
    calibration: Calibration = field(repr=False)
    n_rows: int
    n_impossible: int
    along: ClassStretches = field(repr=False)

    def to_dict(self) -> Document:
        """Plain numbers, lists and None (for what is not finite): ready for JSON."""
        return {
            **pick_plain(self, *SCORES, "no_change"),
            "calibration_error": to_plain(self.calibration.error),
            "calibration": pick_plain(self.calibration, "n", "predicted", "observed"),
            **pick_plain(self, "n_rows", "n_impossible"),
            "along": pick_plain(self.along, "row_end", *SCORES),
        }

    def __repr__(self) -> str:
        table = [
            ("accuracy", self.accuracy),
            ("log loss (nats)", self.log_loss),
            ("Brier score", self.brier),
            ("calibration error", self.calibration.error),
            ("accuracy of no change", self.no_change),
        ]
        lines = [f"Progressive validation of {self.n_rows:,} rows"]
        lines += [f"  {label:<34}{value:>14.6g}" for label, value in table]
        if self.n_impossible:
            rows = count_rows(self.n_impossible)
            lines.append(f"  {rows} without log loss: the label had probability 0")
        return "\n".join(lines)


def progressive_classification(
    model: Estimator,
    stream: object,
    y: Any = None,
    *,
    batch_rows: int = 16384,
    sample_weight: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> ClassificationResult:
    """Score the predicted labels of a stream, each predicted before its row was learned.

    The counterpart of :func:`progressive_validation` for classifiers. The model learns in place;
    memory does not grow with the stream.

    Parameters
    ----------
    model : object
        Anything with ``predict_then_learn(X, y, sample_weight=None)`` that returns the
        distribution of each label before it was learned: with ``classes``, ``probabilities``
        (n, K) and ``logpmf(y)``.
    stream, sample_weight, progress
        As in :func:`progressive_validation`.
    y : (n,) array, optional
        Labels, when `stream` is X.
    batch_rows : int
        Larger batches are cut into pieces of so many rows. That a class exists is known from the
        batch on in which it is first met.

    Returns
    -------
    ClassificationResult
        Accuracy, log loss, Brier score and calibration, overall and along time.

    Raises
    ------
    ValueError
        An empty stream, or X, y and the weights not of one length; the batch is named.
    TypeError
        The stream is not iterable, or the model has no ``predict_then_learn``.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = (X @ [2.0, -1.0] + rng.logistic(size=500) > 0.0).astype(int)
    >>> result = progressive_classification(BayesianLogisticRegression(), X, y)
    >>> result.n_rows, result.accuracy > 0.7, result.log_loss < 0.6
    (500, True, True)
    """
    check_learns(model)
    batch_rows = check_count("batch_rows", batch_rows, 1)
    ledger, bins = StretchLedger(N_COLUMNS), np.zeros((3, N_BINS))
    repeats, last = 0, None
    for batch in limit_batches(stream, y, sample_weight, batch_rows, None, read_labels):
        labels = batch.y
        with note_refusals(locate_rows(ledger.n_rows, len(labels))):
            predictive = model.predict_then_learn(batch.X, labels, **batch.keywords())
        came = np.asarray(predictive.classes)[None] == labels[:, None]
        ledger.add(_scores(predictive, labels, came))
        bins += _bin_probabilities(np.asarray(predictive.probabilities), came)
        repeats += int(np.sum(labels[1:] == labels[:-1])) + int(
            last is not None and labels[0] == last
        )
        last = labels[-1]
        if progress is not None:
            progress(ledger.n_rows)
    refuse_nothing(ledger.n_rows)
    return _result(ledger, bins, repeats)


def _scores(predictive: Any, labels: AnyArray, came: Mask) -> list[Array]:
    probabilities = np.asarray(predictive.probabilities)
    log_score = np.asarray(predictive.logpmf(labels))
    finite = np.isfinite(log_score)
    right = came[np.arange(len(labels)), np.argmax(probabilities, axis=1)]
    return [
        np.ones(len(labels)),
        right.astype(np.float64),
        finite.astype(np.float64),
        np.where(finite, log_score, 0.0),
        np.sum(np.square(probabilities - came), axis=1),
    ]


def _bin_probabilities(probabilities: Array, came: Mask) -> Array:
    """Numbers, summed probabilities and summed outcomes (3, bins)."""
    place = np.minimum((probabilities * N_BINS).astype(np.intp), N_BINS - 1).ravel()
    return np.stack(
        [
            np.bincount(place, minlength=N_BINS),
            np.bincount(place, weights=probabilities.ravel(), minlength=N_BINS),
            np.bincount(place, weights=came.ravel(), minlength=N_BINS),
        ]
    )


def _result(ledger: StretchLedger, bins: Array, repeats: int) -> ClassificationResult:
    row_end, sums = ledger.stretches()
    overall = ledger.overall()
    with np.errstate(invalid="ignore", divide="ignore"):
        calibration = Calibration(bins[0].astype(np.int64), bins[1] / bins[0], bins[2] / bins[0])
    n_rows = int(overall[ROWS])
    return ClassificationResult(
        **{name: float(value) for name, value in _means(overall).items()},
        no_change=repeats / (n_rows - 1) if n_rows > 1 else math.nan,
        calibration=calibration,
        n_rows=n_rows,
        n_impossible=int(overall[ROWS] - overall[WITH_SCORE]),
        along=ClassStretches(row_end=row_end, **_means(sums)),
    )


def _means(sums: Array) -> dict[str, Array]:
    """Means along the last axis of the sums; NaN where nothing was counted."""
    rows = sums[..., ROWS]
    scored = sums[..., WITH_SCORE]
    return {
        "accuracy": sums[..., RIGHT] / rows,
        "log_loss": np.where(scored > 0, -sums[..., LOG_SCORE] / np.maximum(scored, 1.0), math.nan),
        "brier": sums[..., BRIER] / rows,
    }
