"""A better policy, learned from a log, and proved better on rows that it has not learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from scipy import stats

from posterity.aliases import AnyArray, Array, Estimator, Mask
from posterity.bandits import Bandit, Greedy
from posterity.bandits.roster import as_labels
from posterity.io.rounds import Rounds
from posterity.off_policy.expectations import assign_folds, predict_before_learning
from posterity.off_policy.log import Log
from posterity.off_policy.sums import Ratio, estimate_correction
from posterity.off_policy.targets import target_of

Weighting = Literal["none", "inverse_propensity", "doubly_robust"]

# Of so many parts of the log, the first is kept apart to prove what was learned from the others.
_PARTS = 5


class NotBetterError(ValueError):
    """The policy that was learned is not proved better than the one that made the log.

    Attributes
    ----------
    bandit : Bandit
        What was learned.
    difference, low : float
        Its value less that of the log's policy, as estimated, and the lower bound.
    """

    def __init__(self, bandit: Bandit, difference: float, low: float, guard: float) -> None:
        self.bandit, self.difference, self.low = bandit, difference, low
        super().__init__(
            f"the policy that was learned earns {difference:+.4g} a decision beside the one that "
            f"made the log, at least {low:+.4g} with {100 * guard:g}% confidence: that does not "
            "prove it better. Take more rows or another model, or guard=None to have it anyway"
        )


def learn(
    log: Log,
    policy: Any = None,
    *,
    model: Estimator = None,
    sharing: Any = None,
    weighting: Weighting = "none",
    reward_model: Any = None,
    guard: float | None = 0.95,
    rng: int | np.random.Generator | None = None,
) -> Bandit:
    """Learn a bandit from a log, and prove that it is better than the policy of the log.

    Parameters
    ----------
    log : Log
        Read twice, three times with weights.
    policy : Policy, optional
        How the bandit decides; default :class:`posterity.bandits.Greedy`.
    model, sharing, rng
        As of :class:`posterity.bandits.Bandit`.
    weighting : {"none", "inverse_propensity", "doubly_robust"}
        "none": rows as they are, right where the model is and arms were chosen by contexts alone.
        "inverse_propensity": each over its propensity, so that a wrong model is least wrong over
        all contexts, not over those in which an arm was chosen; weights of an arm sum to Kish's
        effective number of rows, so that no more is believed to be known than is.
        "doubly_robust": a row for each arm, of the reward that "dr" gives it (Dudik, Langford and
        Li 2011), with the same number of rows in effect.
    reward_model : estimator or function, optional
        For "doubly_robust" and for the guard; as of :func:`evaluate`.
    guard : float or None
        A fifth of the rows, picked by their numbers, is not learned but used to compare the bandit
        with what the log earned ("dr"). Where the lower bound of the difference, of this
        confidence, is not above 0, no bandit is returned. None: all rows are learned.

    Raises
    ------
    NotBetterError
        Where the guard is not satisfied; it has the bandit, the difference and its bound.
    ValueError
        For a log without propensities where they are needed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, arms = rng.normal(size=(2000, 1)), rng.integers(2, size=2000)
    >>> rewards = np.where(arms == 1, X[:, 0], 0.0) + rng.normal(size=2000)
    >>> log = Log.of(X, arms, rewards, np.full(2000, 0.5))
    >>> better = learn(log, rng=0)
    >>> better.decide([[2.0], [-2.0]]).expected.argmax(axis=1).tolist()
    [1, 0]
    """
    if weighting not in _WAYS:
        raise ValueError(f"weighting is {weighting!r}: it must be one of {', '.join(_WAYS)}")
    if guard is not None and not 0.0 < guard < 1.0:
        raise ValueError(f"guard is {guard}: it must lie between 0 and 1, or be None")
    if not log.has_propensities and (guard is not None or weighting != "none"):
        raise ValueError(
            'the log has no propensities: give them, or use weighting="none" with guard=None'
        )
    bandit = Bandit(
        model, arms=list(log.arms), sharing=sharing, policy=policy or Greedy(floor=0.0), rng=rng
    )
    for X, arms, rewards, weights in _WAYS[weighting](log, reward_model, guard is not None):
        if len(X):
            bandit = bandit.learn(X, arms, rewards, sample_weight=weights)
    if guard is not None:
        difference, low = _compute_gain(log, bandit, reward_model, guard)
        if not low > 0.0:
            raise NotBetterError(bandit, difference, low, guard)
    return bandit


# Contexts, names of arms, rewards and weights to learn.
_Learned = tuple[Array, AnyArray, Array, Array | None]


def _as_they_are(log: Log, model: Estimator, guarded: bool) -> Iterator[_Learned]:
    names = as_labels(log.arms)
    for rounds in log:
        some = rounds.of(_is_learned(rounds, guarded))
        yield some.X, names[some.arms], some.rewards, None


def _over_propensities(log: Log, model: Estimator, guarded: bool) -> Iterator[_Learned]:
    names, (scale, _) = as_labels(log.arms), _compute_kish_sizes(log, guarded)
    for rounds in log:
        some = rounds.of(_is_learned(rounds, guarded))
        weights = scale[some.arms] / some.propensity  # type: ignore[operator]
        yield some.X, names[some.arms], some.rewards, weights


def _doubly_robust(log: Log, model: Estimator, guarded: bool) -> Iterator[_Learned]:
    names, (_, effective) = as_labels(log.arms), _compute_kish_sizes(log, guarded)
    n_arms = len(names)
    for rounds, expected in predict_before_learning(log, model, n_arms):
        rows = _is_learned(rounds, guarded)
        some, rewards = rounds.of(rows), expected[rows]
        n = np.arange(len(some))
        error = some.rewards - rewards[n, some.arms]
        rewards[n, some.arms] += error / some.propensity  # type: ignore[operator]
        yield (
            np.repeat(some.X, n_arms, axis=0),
            np.tile(names, len(some)),
            rewards.ravel(),
            np.tile(effective, len(some)),
        )


_WAYS: dict[str, Callable[[Log, Any, bool], Iterator[_Learned]]] = {
    "none": _as_they_are,
    "inverse_propensity": _over_propensities,
    "doubly_robust": _doubly_robust,
}


def _is_learned(rounds: Rounds, guarded: bool) -> Mask:
    return (assign_folds(rounds, _PARTS) > 0) | (not guarded)


def _compute_kish_sizes(log: Log, guarded: bool) -> tuple[Array, Array]:
    """Return each arm's scale of 1 / propensity, and its effective rows for each row (K,)."""
    n, total, squares = 0, np.zeros(len(log.arms)), np.zeros(len(log.arms))
    for rounds in log:
        some = rounds.of(_is_learned(rounds, guarded))
        weights = 1.0 / some.propensity  # type: ignore[operator]
        n += len(some)
        total += np.bincount(some.arms, weights, len(total))
        squares += np.bincount(some.arms, np.square(weights), len(total))
    scale = total / np.maximum(squares, 1e-300)
    return scale, scale * total / max(n, 1)


def _compute_gain(log: Log, bandit: Bandit, model: Estimator, guard: float) -> tuple[float, float]:
    """Return the value less the logged rewards, on the rows held out, and its lower bound."""
    sums, target = Ratio(estimate_correction), target_of(bandit, log.arms, log.feature_names)
    for rounds, expected in predict_before_learning(log, model, len(log.arms)):
        rows = ~_is_learned(rounds, True)
        if rows.any():
            sums.add(target.judge(rounds.of(rows), expected[rows]))
    estimate = sums.estimate()
    if estimate is None or sums.rows < 2:
        return np.nan, -np.inf
    radius = float(stats.t.ppf(guard, sums.rows - 1)) * estimate.std_error
    return estimate.value, estimate.value - radius
