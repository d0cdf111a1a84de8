"""Scores of predicted lifetimes, of which some are known only to be longer than they were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions.pit import PIT, count_bins
from posterity.kernel.values import read_floats
from posterity.likelihoods.censored import score_ends

FloatArray = NDArray[np.float64]

# Times at which the Brier score is asked for: these shares of the events are over by then.
SHARES = np.linspace(0.1, 0.9, 9)


@dataclass(frozen=True)
class SurvivalScores:
    """How well lifetimes were predicted.

    Attributes
    ----------
    log_score : float
        Mean log density of the lifetimes seen, log probability of what is known of the others.
    concordance : float
        Share of pairs of which it is known who lived longer that were predicted in this order:
        0.5 by chance, 1 at best.
    times, brier : (k,) arrays
        Mean squared error of the predicted probability to be alive at each time: 0.25 by guessing
        one half.
    pit : PIT
        Of lifetimes that are not known exactly drawn at random between both ends.
    n_rows, n_events : int
        All rows, and those whose end was seen.
    """

    log_score: float
    concordance: float
    times: FloatArray
    brier: FloatArray
    pit: PIT
    n_rows: int
    n_events: int


def score_survival(
    predictive: Any,
    y: ArrayLike,
    times: ArrayLike | None = None,
    *,
    rng: int | np.random.Generator | None = 0,
) -> SurvivalScores:
    """Score predicted lifetimes, where some were censored.

    Parameters
    ----------
    predictive : distribution of n rows
        As ``predict_then_learn`` returns it, each row before it was learned, or
        ``predict_distribution`` of rows that the model has not seen.
    y : (n, 2) array
        Lower and upper end of each lifetime, as :class:`posterity.likelihoods.Censored` has them.
    times : (k,) array, optional
        When to ask who is alive. None: when 10%, 20%, ... 90% of the events are over.
    rng : int or numpy.random.Generator, default 0
        Draws the values of the PIT, as :func:`numpy.random.default_rng` takes it.

    Raises
    ------
    ValueError
        If ``y`` is not (n, 2), or no end was seen.

    Notes
    -----
    Concordance is Harrell's C (1996) of the predicted medians. The Brier score weights each row by
    the inverse probability that it was still observed, by the Kaplan-Meier estimate of censoring
    (Graf, Schmoor, Sauerbrei and Schumacher 1999). Both take rows that were seen or right-censored.

    Examples
    --------
    >>> from posterity import BayesianGeneralizedLinear
    >>> from posterity.likelihoods import Censored, Exponential
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1))
    >>> life, end = rng.exponential(np.exp(X[:, 0])), rng.uniform(0.0, 4.0, 300)
    >>> seen = np.minimum(life, end)
    >>> y = np.column_stack([seen, np.where(life < end, seen, np.inf)])
    >>> model = BayesianGeneralizedLinear(Censored(Exponential()))
    >>> scores = score_survival(model.predict_then_learn(X, y), y, [1.0, 2.0])
    >>> round(scores.concordance, 1), scores.brier.round(1)
    (0.7, array([0.2, 0.1]))
    """
    ends = read_floats(y, "y")
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(
            f"y has shape {ends.shape}: lifetimes have a lower and an upper end, (n, 2)"
        )
    low, high = ends.T
    seen, cut = low == high, np.isinf(high)
    if not seen.any():
        raise ValueError("no lifetime in y ends: without an event there is nothing to score")
    asked = np.quantile(low[seen], SHARES) if times is None else read_floats(times, "times")
    below = np.where(seen, predictive.cdf(low), predictive.cdf(np.nextafter(low, -np.inf)))
    above = np.where(seen, below, np.where(cut, 1.0, predictive.cdf(high)))
    drawn = below + (above - below) * np.random.default_rng(rng).random(len(low))
    some = np.flatnonzero(seen | cut)
    alive = predictive.sf(asked[:, None])[:, some]
    return SurvivalScores(
        float(np.mean(score_ends(predictive, low, high))),
        _count_concordant(low[some], seen[some], predictive.median()[some]),
        asked,
        _compute_brier(low[some], seen[some], asked, alive),
        PIT(count_bins(drawn)),
        len(low),
        int(seen.sum()),
    )


def _count_concordant(time: FloatArray, seen: NDArray[np.bool_], predicted: FloatArray) -> float:
    """Share of pairs, one of which ended before the other, whose predictions have this order."""
    pairs = concordant = 0.0
    for i in np.flatnonzero(seen):
        longer = (time > time[i]) | ((time == time[i]) & ~seen)
        pairs += np.count_nonzero(longer)
        others = predicted[longer]
        concordant += np.count_nonzero(others > predicted[i])
        concordant += 0.5 * np.count_nonzero(others == predicted[i])
    return float(concordant / pairs) if pairs else np.nan


def _compute_brier(
    time: FloatArray, seen: NDArray[np.bool_], asked: FloatArray, alive: FloatArray
) -> FloatArray:
    """(k,) mean squares of what was predicted (k, n), each over the probability to be observed."""
    just_before = np.nextafter(time, -np.inf)
    at_end = 1.0 / np.maximum(_stay_observed(time, seen, just_before), 1e-12)
    then = 1.0 / np.maximum(_stay_observed(time, seen, asked), 1e-12)[:, None]
    ended = (time <= asked[:, None]) & seen
    going = time > asked[:, None]
    return np.mean(ended * at_end * alive**2 + going * then * (1.0 - alive) ** 2, axis=1)


def _stay_observed(time: FloatArray, seen: NDArray[np.bool_], asked: FloatArray) -> FloatArray:
    """Kaplan and Meier's (1958) probability not to be censored up to each time asked."""
    ends = np.unique(time[~seen])
    # Who ends at the same time is counted before who is cut off.
    at_risk = np.array([np.count_nonzero((time > t) | ((time == t) & ~seen)) for t in ends])
    gone = np.array([np.count_nonzero((time == t) & ~seen) for t in ends])
    left = np.concatenate([[1.0], np.cumprod(1.0 - gone / np.maximum(at_risk, 1))])
    return left[np.searchsorted(ends, asked, side="right")]


__all__ = ["SurvivalScores", "score_survival"]
