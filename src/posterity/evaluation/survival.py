"""Scores of predicted lifetimes, of which some are known only to be longer than they were seen."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from posterity.aliases import Array, Document, Estimator, Mask
from posterity.distributions.guesses import tell_call
from posterity.distributions.pit import PIT, count_bins
from posterity.evaluation._batches import (
    limit_batches,
    locate_rows,
    note_refusals,
    read_lifetimes,
    refuse_nothing,
)
from posterity.evaluation._tables import to_plain
from posterity.evaluation.progressive import check_count, check_learns
from posterity.kernel.values import read_floats
from posterity.likelihoods.censored import score_ends

# Times at which the Brier score is asked for: these shares of the events are over by then.
SHARES = np.linspace(0.1, 0.9, 9)
# Rows are divided into so many groups, of equal numbers, by their predicted medians.
N_GROUPS = 4
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class RiskGroup:
    """Rows that were predicted to last about as long: what was predicted, and what came.

    Attributes
    ----------
    n_rows, n_events : int
        Rows, and those whose end was seen.
    predicted : (k,) array
        Mean predicted probability to be alive at each time of the scores.
    observed, low, high : (k,) arrays
        Kaplan and Meier's estimate of the share alive, and the ends of its 95% interval, of the log
        of minus its log (Kalbfleisch and Prentice 2002, section 1.4). NaN after the last row.
    """

    n_rows: int
    n_events: int
    predicted: Array
    observed: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
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
    groups : tuple of RiskGroup
        Quarters of the rows, from the shortest predicted medians to the longest: are as many alive
        at each time as was predicted?
    n_rows, n_events : int
        All rows, and those whose end was seen.
    """

    log_score: float
    concordance: float
    times: Array
    brier: Array
    pit: PIT = field(repr=False)
    groups: tuple[RiskGroup, ...] = field(repr=False)
    n_rows: int
    n_events: int

    def to_dict(self) -> Document:
        """Plain numbers, lists and None (for what is not finite): ready for JSON."""
        plain: Document = to_plain({**asdict(self), "pit": self.pit.histogram()})
        return plain


@tell_call
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
    (Graf, Schmoor, Sauerbrei and Schumacher 1999). Both, and the groups, take rows that were seen
    or right-censored.

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
    if not hasattr(predictive, "cdf"):
        call = "score_survival(model.predict_distribution(X), y)"
        raise TypeError(f"a {type(predictive).__name__} is no prediction: {call} takes one")
    ends = read_lifetimes(y)
    asked = _choose_times(ends) if times is None else np.atleast_1d(read_floats(times, "times"))
    return _summarise(_score_rows(predictive, ends, asked, np.random.default_rng(rng)), asked)


def progressive_survival(
    model: Estimator,
    stream: object,
    y: Any = None,
    *,
    times: ArrayLike | None = None,
    batch_rows: int = 16384,
    sample_weight: ArrayLike | None = None,
    progress: Callable[[int], object] | None = None,
) -> SurvivalScores:
    """Score the predicted lifetimes of a stream, each predicted before its row was learned.

    The counterpart of :func:`progressive_validation` for lifetimes. The model learns in place. Some
    15 numbers of each row are kept until the end, as concordance compares all rows.

    Parameters
    ----------
    model : object
        Anything with ``predict_then_learn(X, y, sample_weight=None)``, as
        ``BayesianGeneralizedLinear(Censored(Weibull()))``.
    stream, batch_rows, sample_weight, progress
        As in :func:`progressive_validation`.
    y : (n, 2) array, optional
        Lower and upper end of each lifetime, when `stream` is X.
    times : (k,) array, optional
        When to ask who is alive. None: when 10%, 20%, ... 90% of the events of the first batch are
        over.

    Returns
    -------
    SurvivalScores
        As of :func:`score_survival`.

    Raises
    ------
    ValueError
        An empty stream, y that are not (n, 2), or no end that was seen in the first batch.
    TypeError
        The stream is not iterable, or the model has no ``predict_then_learn``.

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
    >>> result = progressive_survival(model, X, y, times=[1.0])
    >>> [one.n_rows for one in result.groups], round(result.concordance, 1)
    ([75, 75, 75, 75], 0.7)
    """
    check_learns(model)
    batch_rows = check_count("batch_rows", batch_rows, 1)
    asked = None if times is None else np.atleast_1d(read_floats(times, "times"))
    parts: list[_ScoredRows] = []
    rng, n_rows = np.random.default_rng(0), 0
    for batch in limit_batches(stream, y, sample_weight, batch_rows, None, read_lifetimes):
        asked = _choose_times(batch.y) if asked is None else asked
        with note_refusals(locate_rows(n_rows, len(batch.y))):
            predictive = model.predict_then_learn(batch.X, batch.y, **batch.keywords())
        parts.append(_score_rows(predictive, batch.y, asked, rng))
        n_rows += len(batch.y)
        if progress is not None:
            progress(n_rows)
    refuse_nothing(n_rows)
    assert asked is not None
    return _summarise(_ScoredRows(*map(np.concatenate, zip(*parts, strict=True))), asked)


class _ScoredRows(NamedTuple):
    """What is kept of each row: all arrays (n,), but ``alive``, probabilities (n, k)."""

    low: Array
    seen: Mask
    is_cut: Mask
    score: Array
    u: Array
    median: Array
    alive: Array


def _choose_times(ends: Array) -> Array:
    """Times (9,) by which tenths of the ends seen had come."""
    low, high = ends.T
    if not (low == high).any():
        raise ValueError(
            "no lifetime in y, or in its first batch, ends: without an event there is nothing to "
            "score; give rows that ended, or times at which to ask who is alive"
        )
    return np.quantile(low[low == high], SHARES)


def _score_rows(
    predictive: Any, ends: Array, asked: Array, rng: np.random.Generator
) -> _ScoredRows:
    low, high = ends.T
    seen, cut = low == high, np.isinf(high)
    below = np.where(seen, predictive.cdf(low), predictive.cdf(np.nextafter(low, -np.inf)))
    above = np.where(seen, below, np.where(cut, 1.0, predictive.cdf(high)))
    drawn = below + (above - below) * rng.random(len(low))
    score, alive = score_ends(predictive, low, high), predictive.sf(asked[:, None]).T
    return _ScoredRows(low, seen, cut, score, drawn, predictive.median(), alive)


def _summarise(rows: _ScoredRows, asked: Array) -> SurvivalScores:
    n_events = int(rows.seen.sum())
    if not n_events:
        raise ValueError("no lifetime in y ends: without an event there is nothing to score")
    some = np.flatnonzero((rows.seen | rows.is_cut) & ~np.isnan(rows.median))
    seen, median, alive = rows.seen[some], rows.median[some], rows.alive[some]
    # Of those at one time, who ends is counted before who is cut off.
    time = np.where(seen, rows.low[some], np.nextafter(rows.low[some], np.inf))
    groups = np.array_split(np.argsort(median, kind="stable"), N_GROUPS)
    return SurvivalScores(
        float(np.mean(rows.score)),
        _count_concordant(time, seen, median),
        asked,
        _compute_brier(time, seen, asked, alive),
        PIT(count_bins(rows.u)),
        tuple(_compare(time[one], seen[one], asked, alive[one]) for one in groups if len(one)),
        len(rows.low),
        n_events,
    )


def _count_concordant(time: Array, seen: Mask, predicted: Array) -> float:
    """Share of pairs, one of which ended before the other, whose predictions have this order."""
    pairs = concordant = 0.0
    longer: list[float] = []  # what was predicted of those who lived longer, sorted
    order = np.argsort(-time, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(time[order])) + 1):
        for one in predicted[same[seen[same]]].tolist():
            pairs += len(longer)
            concordant += len(longer) - 0.5 * (bisect_left(longer, one) + bisect_right(longer, one))
        for one in predicted[same].tolist():
            insort(longer, one)
    return concordant / pairs if pairs else np.nan


def _compute_brier(time: Array, seen: Mask, asked: Array, alive: Array) -> Array:
    """(k,) mean squares of what was predicted (n, k), each over the probability to be observed."""
    at_end, then = (
        1.0 / np.maximum(_estimate_survival(time, ~seen, when)[0], 1e-12)
        for when in (time, np.nextafter(asked, np.inf))
    )
    ended, going = (time[:, None] <= asked) & seen[:, None], time[:, None] > asked
    squares = ended * at_end[:, None] * alive**2 + going * then * (1.0 - alive) ** 2
    return np.asarray(squares.mean(axis=0))


def _compare(time: Array, seen: Mask, asked: Array, alive: Array) -> RiskGroup:
    """What was predicted of some rows, and what is known of who was alive."""
    observed, variance = _estimate_survival(time, seen, asked)
    with np.errstate(all="ignore"):
        spread = np.exp(ndtri(0.5 + 0.5 * LEVEL) * np.sqrt(variance) / np.log(observed))
        # Nothing is known of all alive, nor of none.
        known = (observed > 0.0) & (observed < 1.0)
        low = np.where(known, observed ** (1.0 / spread), np.nan)
        high = np.where(known, observed**spread, np.nan)
    known = asked <= time.max()
    ends = (np.where(known, each, np.nan) for each in (observed, low, high))
    return RiskGroup(len(time), int(seen.sum()), alive.mean(axis=0), *ends)


def _estimate_survival(time: Array, gone: Mask, asked: Array) -> tuple[Array, Array]:
    """Kaplan and Meier's (1958) share not yet ``gone``, and Greenwood's variance of its log.

    At each time asked, whoever goes then not counted among those who are left.
    """
    ends, n_gone = np.unique(time[gone], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), ends)
    with np.errstate(divide="ignore"):
        steps = n_gone / (at_risk * (at_risk - n_gone))
    left = np.concatenate([[1.0], np.cumprod(1.0 - n_gone / at_risk)])
    variance = np.concatenate([[0.0], np.cumsum(steps)])
    place = np.searchsorted(ends, asked, side="right")
    return left[place], variance[place]
