"""How many rows an experiment takes, before the first."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from scipy.optimize import brentq

from posterity.distributions.guesses import tell_call
from posterity.experiments.contrasts import FEWEST_ERRORS
from posterity.kernel.values import read_scalar
from posterity.sequential import compute_power

# Rows between which the answer is looked for.
_MOST = 1e15
# Rows of each arm, about, that are learned before any is scored, and those that are scored before
# there is an interval (with some more, as arms do not come quite alike).
_FIRST, _FEWEST = 10, 30

# Standard errors that some 20 looks lose beside looking all the time (Siegmund 1985, section 10.2).
_BETWEEN_LOOKS = 0.583 / math.sqrt(20.0)


@tell_call
def plan(
    baseline: float,
    effect: float,
    power: float = 0.9,
    *,
    standard_deviation: float | None = None,
    arms: int = 2,
    level: float = 0.95,
) -> int:
    """How many rows to plan, so that an effect is found with this probability.

    Give it as ``planned_rows`` of :class:`Experiment` before the first row. Arms come equally
    often, and you may look at any time: with probability ``power`` the better of two arms is found
    by then, often long before.

    Parameters
    ----------
    baseline : float
        Mean reward of the control: the share of yes where rewards are yes and no.
    effect : float
        The difference worth finding, in the same unit: 0.003 for 1.5% beside 1.2%.
    power : float
        Above 0 and below 1.
    standard_deviation : float, optional
        Of rewards within an arm, where they are numbers. Default: rewards are 0 or 1, and it
        follows from ``baseline``.
    arms : int
        Their number; all pairs are compared.
    level : float
        That of all intervals together.

    Returns
    -------
    int
        Rows of all arms together.

    Raises
    ------
    ValueError
        For shares outside of 0 to 1, no effect, and numbers that can't be.

    Notes
    -----
    The bound on a sum of errors is constant until the planned rows (O'Brien and Fleming 1979), and
    a random walk with drift crosses a constant with a probability that is known
    (:func:`posterity.sequential.compute_power`). That it is looked at some 20 times only, and that
    the spread of few rows is not believed to be as small as it seems, are counted.

    Examples
    --------
    >>> plan(0.05, 0.005)
    104000
    >>> plan(20.0, 2.0, standard_deviation=30.0, power=0.8)
    8990
    """
    power, level = read_scalar(power, "power"), read_scalar(level, "level")
    baseline, effect = read_scalar(baseline, "baseline"), read_scalar(effect, "effect")
    if not 0.0 < power < 1.0 or not 0.0 < level < 1.0:
        raise ValueError(f"power is {power} and level is {level}: give numbers between 0 and 1")
    if not (math.isfinite(effect) and effect != 0.0):
        raise ValueError(f"effect is {effect}: give the difference that is worth finding")
    if operator.index(arms) < 2:
        raise ValueError(f"arms is {arms}: an experiment has at least two")
    variances, largest = _find_variances(baseline, effect, standard_deviation)
    pairs = arms * (arms - 1) / 2
    each = 1.0 - (1.0 - level) / pairs

    def lacks(log_rows: float) -> float:
        rows = math.exp(log_rows) / arms
        # Few rows are not believed to show how large errors may be.
        least = FEWEST_ERRORS * largest(log_rows) / rows
        drift = abs(effect) * math.sqrt(rows / sum(max(one, least) for one in variances))
        return compute_power(drift - _BETWEEN_LOOKS, each) - power

    ends = math.log(_FEWEST * arms), math.log(_MOST)
    if lacks(ends[0]) >= 0.0:
        return (_FIRST + _FEWEST) * arms
    if lacks(ends[1]) < 0.0:
        raise ValueError(
            f"an effect of {effect:g} takes more than {_MOST:g} rows: give a larger one"
        )
    return _round_up(_FIRST * arms + math.exp(brentq(lacks, *ends, xtol=1e-6)))


def _find_variances(
    baseline: float, effect: float, standard_deviation: float | None
) -> tuple[tuple[float, float], Callable[[float], float]]:
    """Variances of the rewards of two arms, and the square of the largest error of so many rows."""
    if not math.isfinite(baseline):
        raise ValueError(f"baseline is {baseline}: give the mean reward of the control")
    if standard_deviation is not None:
        if not 0.0 < read_scalar(standard_deviation, "standard_deviation") < math.inf:
            raise ValueError(f"standard_deviation is {standard_deviation}: it must be above 0")
        square = standard_deviation**2
        return (square, square), lambda log_rows: 2.0 * log_rows * square
    shares = baseline, baseline + effect
    if not all(0.0 <= share <= 1.0 for share in shares):
        raise ValueError(
            f"baseline is {baseline} and baseline + effect is {shares[1]:g}: shares lie between 0 "
            "and 1; where rewards are numbers, give standard_deviation="
        )
    variances = shares[0] * (1.0 - shares[0]), shares[1] * (1.0 - shares[1])
    if not any(variances):
        raise ValueError(f"baseline is {baseline} and effect {effect}: no reward would vary")
    largest = max(*shares, 1.0 - min(shares)) ** 2
    return variances, lambda _: largest


def _round_up(rows: float) -> int:
    """To three digits."""
    unit = 10.0 ** max(math.floor(math.log10(rows)) - 2, 0)
    return int(math.ceil(rows / unit) * unit)
