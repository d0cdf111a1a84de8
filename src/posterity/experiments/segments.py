"""Effects in segments, such as countries: drawn towards their mean, and whether they differ."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from posterity.aliases import Array, DataFrame, Mask
from posterity.distributions.joint_distribution import require_pandas
from posterity.experiments.contrasts import Contrasts
from posterity.experiments.linearized import Linearized
from posterity.experiments.pairs import describe_effect
from posterity.io.rounds import Rounds
from posterity.sequential import WEIGHTS, compute_sizes

_MOST = 100
_DRAWS = 20_000
# What the scale of a segment may be in that of all: quantiles of the half-Cauchy distribution.
_MULTIPLES = np.tan(0.5 * np.pi * (np.arange(5) + 0.5) / 5.0)
# Values of mu, and standard deviations that they reach beyond each estimate.
_MEANS, _FAR = 201, 4.0
# What rows whose level did not come among the first ones are called.
_OTHERS = "others"


@dataclass(frozen=True)
class Segments:
    r"""The effect of an arm in each segment, beside the control.

    Effects are normal about a mean, :math:`\delta_s \sim \mathcal N(\mu, \lambda_s^2 \tau^2)`,
    with a flat :math:`\mu`, and estimates normal about the effects (Gelman and others 2013, section
    5.4). The prior of :math:`\tau` is flat (Gelman 2006) over the four sizes that experiments of a
    thousand to a million rows can find, and that of each :math:`\lambda_s` half-Cauchy (Carvalho,
    Polson and Scott 2010), at five values. So effects that chance explains are drawn together, and
    one that stands out is left where it is. That any differ is told with all
    :math:`\lambda_s = 1`.

    Attributes
    ----------
    arm : name
    names : tuple
        Of the S segments.
    rows : (S,)
        Numbers of rows.
    estimates, variances : (S,)
        Of each segment alone; infinite variances where it has too few rows.
    row_variance : float
        Of the effect, times the number of rows, in all segments together.
    level : float
        Of the intervals together, and of the statement that effects differ.
    in_points : bool
        True if rewards are no and yes.

    Examples
    --------
    >>> ends = np.array([0.1, 0.3]), np.array([0.01, 0.01])
    >>> two = Segments("B", ("phone", "desk"), np.array([900, 900]), *ends, 18.0, 0.95, False)
    >>> two.means.round(2).tolist(), two.differ
    ([0.13, 0.27], False)
    """

    arm: Any
    names: tuple[str, ...]
    rows: Array
    estimates: Array
    variances: Array
    row_variance: float
    level: float
    in_points: bool

    @cached_property
    def _scales(self) -> Array:
        """(5,) values of tau."""
        sizes = np.sqrt(self.row_variance * compute_sizes(1.0 - self.level))
        return np.concatenate([[0.0], np.where(np.isfinite(sizes), sizes, 0.0)])

    @cached_property
    def _log_evidence(self) -> Array:
        """(5,) log densities of the estimates given tau, over a flat mean."""
        precision = 1.0 / (self.variances + np.square(self._scales)[:, None])
        total = precision.sum(axis=1)
        if not (total > 0.0).all():
            return np.zeros(len(total))
        known = np.isfinite(self.variances)
        off = self.estimates - (precision @ np.where(known, self.estimates, 0.0) / total)[:, None]
        squares = np.where(known, precision * np.square(off), 0.0).sum(axis=1)
        logs = np.log(precision, out=np.zeros_like(precision), where=known).sum(axis=1)
        return np.asarray(0.5 * (logs - np.log(total) - squares))

    @property
    def evidence(self) -> float:
        """Bayes factor for effects that differ; above 20 at any look in 5% where they do not."""
        logs = self._log_evidence
        with np.errstate(over="ignore"):
            return float(np.exp(logsumexp(logs[1:], b=WEIGHTS) - logs[0]))

    @property
    def differ(self) -> bool:
        """True if the effect differs between segments: wrong rarely, however often one looks."""
        return self.evidence >= 1.0 / (1.0 - self.level)

    @cached_property
    def _draws(self) -> Array:
        """(M, S) of the effects; none where no segment is known."""
        if not np.isfinite(self.variances).any():
            return np.full((1, len(self.names)), np.nan)
        rng, draws = np.random.default_rng(0), np.empty((_DRAWS, len(self.names)))
        means, widths = self._place_means()
        scales = self._scales[1:, None] * _MULTIPLES
        logs = self._compute_log_densities(means, scales)
        each = logsumexp(logs, axis=2)
        joint = each.sum(axis=0) + np.log(self._scales[1:, None]) + np.log(widths)
        chances = np.exp(joint - logsumexp(joint)).ravel()
        chances /= chances.sum()
        which, place = np.divmod(rng.choice(len(chances), _DRAWS, p=chances), len(means))
        for s, (estimate, variance) in enumerate(
            zip(np.nan_to_num(self.estimates), self.variances, strict=True)
        ):
            shares = np.exp(logs[s] - each[s][:, None])[which, :, place].cumsum(axis=1)
            multiple = (rng.random((_DRAWS, 1)) > shares[:, :-1]).sum(axis=1)
            square = np.square(scales[which, multiple])
            # The part of the way from the mean to the estimate of the segment alone.
            part = square / (square + variance)
            noise = np.sqrt(square * (1.0 - part)) * rng.normal(size=_DRAWS)
            draws[:, s] = means[place] + part * (estimate - means[place]) + noise
        return draws

    def _place_means(self) -> tuple[Array, Array]:
        """(m,) values of mu, close together where it may be, and how far apart they are."""
        known = np.isfinite(self.variances)
        estimates, spread = self.estimates[known], np.sqrt(self.variances[known])
        order, precision = estimates.argsort(), 1.0 / np.square(spread)
        shares = np.cumsum(precision[order]) / precision.sum()
        centre, unit = estimates[order][np.searchsorted(shares, 0.5)], precision.sum() ** -0.5
        farthest = np.max(np.abs(estimates - centre) + _FAR * spread) / unit
        places = np.linspace(-1.0, 1.0, _MEANS) * np.arcsinh(farthest)
        return centre + unit * np.sinh(places), np.cosh(places)

    def _compute_log_densities(self, means: Array, scales: Array) -> Array:
        """(S, *scales.shape, m) of each estimate given mu and its own scale."""
        known = np.isfinite(self.variances)[:, None, None, None]
        variance = np.square(scales)[:, :, None] + self.variances[:, None, None, None]
        off = np.where(known, np.nan_to_num(self.estimates)[:, None, None, None] - means, 0.0)
        return np.where(known, -0.5 * (np.square(off) / variance + np.log(variance)), 0.0)

    @cached_property
    def means(self) -> Array:
        """(S,) effects, drawn towards their mean."""
        return np.asarray(self._draws.mean(axis=0))

    @cached_property
    def half_widths(self) -> Array:
        """(S,) of intervals that hold together, at one look."""
        spread = self._draws.std(axis=0)
        with np.errstate(invalid="ignore"):
            farthest = np.max(np.abs(self._draws - self.means) / spread, axis=1)
        return np.asarray(np.quantile(farthest, self.level) * spread)

    @property
    def is_known(self) -> bool:
        """True if two segments at least have estimates."""
        return int(np.isfinite(self.variances).sum()) > 1

    def to_frame(self) -> DataFrame:
        """A pandas data frame: segment, rows, the estimate alone, and effect, low and high.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {
            "segment": list(self.names),
            "rows": self.rows.astype(int),
            "alone": np.where(np.isfinite(self.variances), self.estimates, np.nan),
            "effect": self.means,
            "low": self.means - self.half_widths,
            "high": self.means + self.half_widths,
        }
        return require_pandas("to_frame").DataFrame(columns)

    def __str__(self) -> str:
        if not self.is_known:
            return f"Whether the effect of {self.arm} differs between segments: too few rows yet."
        if not self.differ:
            return f"No sign that the effect of {self.arm} differs between segments."
        order = self.means.argsort()
        least, most = (
            f"{self.names[at]} "
            + describe_effect(
                self.means[at],
                self.means[at] - self.half_widths[at],
                self.means[at] + self.half_widths[at],
                self.in_points,
            )
            for at in (order[0], order[-1])
        )
        return f"The effect of {self.arm} differs between segments: from {least} to {most}."


@dataclass(frozen=True)
class Part:
    """The rows of one segment: what they say, and the ratios of its own arms."""

    contrasts: Contrasts
    ratios: Linearized


def compare_segments(
    arms: Sequence[Hashable],
    segments: Mapping[str, Part],
    whole: Contrasts,
    *,
    level: float,
    in_points: bool,
) -> tuple[Segments, ...]:
    """What each arm but the first does in segments; their errors share what the level leaves."""
    each = 1.0 - (1.0 - level) / max(len(arms) - 1, 1)
    found = []
    parts = [one.contrasts for one in segments.values()]
    for place, arm in enumerate(arms[1:], start=1):
        known = np.array([np.isfinite(one.compute_half_widths(level)[place, 0]) for one in parts])
        found.append(
            Segments(
                arm,
                tuple(segments),
                np.array([one.rows for one in parts], dtype=np.float64),
                np.array([one.differences[place, 0] for one in parts]),
                np.where(known, [one.variances[place, 0] for one in parts], np.inf),
                float(whole.variances[place, 0] * whole.rows),
                each,
                in_points,
            )
        )
    return tuple(found)


def add_rows(
    segments: Mapping[str, Part], whole: Contrasts, rows: Rounds, expected: Array, shares: Array
) -> dict[str, Part]:
    """What is known of segments with more rows, which ``whole`` has already.

    Rewards that are divided become those of the segment's own ratios: beside the ratio of all, a
    segment of many sessions would seem to lose where others gain.

    Raises
    ------
    ValueError
        For more than a hundred segments.
    """
    known = dict(segments)
    names, which = np.unique(np.asarray(rows.segments), return_inverse=True)
    for place, name in enumerate(names.tolist()):
        former = known.get(name) or Part(
            Contrasts(whole.n_arms, pivot=whole.pivot), Linearized.of(whole.n_arms)
        )
        known[name] = _add_own(former, whole, rows, which == place, expected, shares)
    if len(known) > _MOST:
        raise ValueError(
            f"there are more than {_MOST} segments, {next(reversed(known))!r} among them: give a "
            "column of few values, such as the country"
        )
    return known


def _add_own(
    former: Part,
    whole: Contrasts,
    rows: Rounds,
    own: Mask,
    expected: Array,
    shares: Array,
) -> Part:
    part, ratios = copy.copy(former.contrasts), former.ratios
    arms, rewards, is_known = rows.arms[own], rows.rewards[own], True
    if rows.per is not None:
        per = rows.per[own]
        ratios = ratios.add(arms, rewards, per)
        is_known = ratios.is_known
        before = former.ratios if former.ratios.is_known else ratios
        rewards = before.convert(arms, rewards, per)
    # Rare rewards that a segment has not shown are as large as in others.
    part.is_bounded, part.largest = whole.is_bounded, whole.largest
    if is_known:
        part.add(arms, rewards, expected[own], shares[own])
    return Part(part, ratios)


def read_segments(X: Array, names: Sequence[str], column: str) -> NDArray[np.str_]:
    """(n,) the value of a covariate in each row, as text, from its columns of X."""
    places = [at for at, name in enumerate(names) if name.startswith(f"{column}=")]
    levels = np.array([*(names[at].removeprefix(f"{column}=") for at in places), _OTHERS])
    # A level that is new is 0 in all columns.
    shown = np.column_stack([X[:, places], np.full(len(X), 0.5)])
    return np.asarray(levels[shown.argmax(axis=1)])
