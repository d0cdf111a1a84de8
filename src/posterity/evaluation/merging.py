"""Validations of the parts of a stream, taken together."""

from __future__ import annotations

from collections.abc import Iterable

from posterity.evaluation._totals import add_totals
from posterity.evaluation.result import ValidationResult, summarize


def merge_validations(results: Iterable[ValidationResult]) -> ValidationResult:
    """Merge results over parts of a stream, such as partitions of a table.

    What is a sum over rows merges exactly, to rounding: errors, log score, CRPS, coverage and
    width, the PIT, slices and the counts of rows. If the model of each part starts where that of
    the part before ended, these are the scores of one run over the whole stream (without `delay`:
    a part's last labels arrive within it). Merging is associative.

    Parameters
    ----------
    results : iterable of ValidationResult
        In the order of the stream.

    Returns
    -------
    ValidationResult
        `along` has the stretches of the parts, one after another; where that makes more than 128,
        neighbours are joined, so its borders are not those of one run. `baselines` is empty: a
        baseline of a part does not know the rows before it.

    Raises
    ------
    ValueError
        If there is no result, or their levels, features sliced or edges of slices differ.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity import BayesianLinearRegression
    >>> from posterity.evaluation import merge_validations, progressive_validation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X @ [1.0, -2.0] + rng.normal(size=1000)
    >>> model = BayesianLinearRegression(prior_precision=1.0)
    >>> parts = [progressive_validation(model, X[i : i + 250], y[i : i + 250])
    ...          for i in (0, 250, 500, 750)]
    >>> whole = progressive_validation(BayesianLinearRegression(prior_precision=1.0), X, y)
    >>> abs(merge_validations(parts).log_score - whole.log_score) < 1e-12
    True
    """
    totals = [result.totals for result in results]
    if not totals:
        raise ValueError("there is no result to merge: give results of at least one row")
    return summarize(add_totals(totals))
