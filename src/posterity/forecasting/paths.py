"""Sample paths: from draws of coefficients to the distribution of the next h steps.

Given coefficients and noise, the steps ahead are jointly Gaussian: means by recursion, and errors
``e_t = sigma (psi_0 eps_t + psi_1 eps_{t-1} + ...)``, psi the response to an impulse, by the same
recursion. So S draws are a mixture of S Gaussians, with the noise along each path integrated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from posterity.aliases import Array, Indices, Mask
from posterity.forecasting.forms import Form
from posterity.forecasting.log_scale import LOGARITHMS, LogScale
from posterity.forecasting.marginals import Component, scale_spread
from posterity.forecasting.posterior import Draws

HALVINGS = 8


@dataclass(frozen=True, eq=False)
class Paths:
    """K Gaussian paths of S series over h steps, on the scale of one form.

    ``mean`` (S, K, h), ``responses`` (S, K, h) psi, ``noise`` (S, K); ``log`` and ``scale`` as in
    the form.
    ``early`` (S, K, h, b) are the responses to shocks before the first step, since the last value
    that was observed.
    """

    mean: Array
    responses: Array
    noise: Array
    log: bool
    early: Array | None = None
    scale: LogScale = LOGARITHMS

    @cached_property
    def sd(self) -> Array:
        """(S, K, h) standard deviation at each step."""
        squares = np.cumsum(np.square(self.responses), axis=2)
        if self.early is not None:
            squares += np.square(self.early).sum(axis=3)
        return np.asarray(self.noise[:, :, None] * np.sqrt(squares))

    @property
    def steps(self) -> Component:
        """The distribution of each step by itself."""
        return Component(self.mean, self.sd, self.log, self.scale)

    def slopes(self, values: Array) -> Array | float:
        """By how much ``values`` change with what is normal."""
        return self.scale.slopes(values) if self.log else 1.0

    @property
    def totals(self) -> Component:
        """The distribution of the sums of the first 1, 2, ..., h steps, in values.

        Of logarithms nearly: each error moves a value by its slope, at the mean of these steps.
        """
        counts, steps = np.arange(1.0, self.mean.shape[2] + 1.0), self.steps
        squares = np.cumsum(np.square(np.cumsum(self.responses, axis=2)), axis=2)
        if self.early is not None:
            squares += np.square(np.cumsum(self.early, axis=2)).sum(axis=3)
        slope = np.cumsum(steps.slopes(), axis=2) / counts if self.log else 1.0
        sd = slope * self.noise[:, :, None] * np.sqrt(squares)
        return Component(np.cumsum(steps.means(), axis=2), sd, log=False)

    def in_units(self, unit: Array) -> Paths:
        """The same where a level of 1 was ``unit`` (S, 1)."""
        return replace(self, mean=self.mean * unit[:, None], noise=self.noise * unit)

    def shift(self, offsets: Array) -> Paths:
        """The same with ``offsets`` (S, h) added to the steps."""
        return replace(self, mean=self.mean + offsets[:, None])

    def add_shocks(self, sd: Array) -> Paths:
        """The same with b more shocks, each with standard deviations ``sd`` (S, h, b) at steps."""
        unit = np.where(self.noise > 0.0, self.noise, 1.0)
        shocks = sd[:, None] / unit[:, :, None, None]
        early = shocks if self.early is None else np.concatenate([self.early, shocks], axis=3)
        return replace(self, early=early, noise=unit if (self.noise == 0.0).any() else self.noise)

    def scale_spread(self, factor: float) -> Paths:
        """The same with other spreads."""
        mean = scale_spread(self.steps, factor).mean
        return replace(self, mean=mean, noise=factor * self.noise)

    def part(self, which: slice | Indices) -> Paths:
        """Return some of the series."""
        early = None if self.early is None else self.early[which]
        mean, responses, noise = self.mean[which], self.responses[which], self.noise[which]
        return replace(self, mean=mean, responses=responses, noise=noise, early=early)

    def skip(self, behind: Indices, h: int) -> Paths:
        """The ``h`` steps after the first ``behind`` (S,), which came and were not observed."""
        if not behind.any():
            return self
        steps = behind[:, None] + np.arange(h)
        back = np.arange(1, int(behind.max()) + 1)
        early = self.responses[:, :, np.arange(h)[:, None] + back]
        early = np.where(back <= behind[:, None, None, None], early, 0.0)
        if early.shape[3] > h:  # as few shocks with the same covariance
            early = np.swapaxes(np.linalg.qr(np.swapaxes(early, 2, 3), mode="r"), 2, 3)
        mean = np.take_along_axis(self.mean, steps[:, None, :], axis=2)
        return replace(self, mean=mean, responses=self.responses[:, :, :h], early=early)

    def at_steps(self, steps: NDArray[np.int64]) -> Paths:
        """The same with the means of other ``steps`` (S, h), counted from 1, in order of time."""
        h = steps.shape[1]
        if h == self.mean.shape[2] and (steps == np.arange(1, h + 1)).all():
            return self
        mean = np.take_along_axis(self.mean, steps[:, None, :] - 1, axis=2)
        early = None if self.early is None else self.early[:, :, :h]
        return replace(self, mean=mean, responses=self.responses[:, :, :h], early=early)

    def covariance(self) -> Array:
        """(S, K, h, h) between steps: sigma^2 sum_j psi_j psi_{j+k}."""
        root = self.root()
        squares = root @ np.swapaxes(root, 2, 3)
        if self.early is not None:
            squares += self.early @ np.swapaxes(self.early, 2, 3)
        return np.asarray(np.square(self.noise)[:, :, None, None] * squares)

    def shock_effects(self) -> Array:
        """(S, h, h) mean change of the value at a step per standard shock so many steps before.

        Of logarithms to first order: by the slope of the exponential at the mean.
        """
        effects = self.noise[:, :, None] * self.responses
        if not self.log:
            return np.repeat(effects.mean(axis=1)[:, None], effects.shape[2], axis=1)
        return np.einsum("skt,skl->stl", self.steps.slopes(), effects) / effects.shape[1]

    def root(self) -> Array:
        """(S, K, h, h) lower triangular: errors of the steps' shocks are noise * root @ eps."""
        h = self.responses.shape[2]
        back = np.arange(h)[:, None] - np.arange(h)
        return np.where(back >= 0, self.responses[:, :, np.maximum(back, 0)], 0.0)


def paths(form: Form, draws: Draws, last: Array, ahead: Array, h: int) -> Paths:
    """Paths of series whose last levels are ``last`` (S, L).

    ``ahead`` (S, h, q) are the columns of the next steps that are known: free ones, and the others.
    Draws that explode are left out (see :func:`usual`).
    """
    draws, responses = _replace_explosions(form, draws, h)
    free, weights = form.n_free, draws.coefficients
    known = np.concatenate([weights[:, :, :free], weights[:, :, free + form.n_lags :]], axis=2)
    added = known @ np.swapaxes(ahead, 1, 2)
    recursion = _build_recursion(form, weights)
    added += recursion @ _get_known_levels(last, form.reach, h)
    levels = _continue_levels(recursion, form.reach, added)
    return Paths(levels, responses, draws.noise, form.log, scale=form.scale)


def continue_changes(form: Form, weights: Array, last: Array, h: int) -> Paths:
    """What changes (n, L) of the last levels change in the next steps, with ``weights`` (p,)."""
    recursion, lags = _build_recursion(form, weights[None, None]), form.reach
    effects = np.zeros((last.shape[1], h))
    for lag, weight in zip(lags.tolist(), recursion[0, 0], strict=True):
        steps = np.arange(min(lag, h))
        effects[steps - lag, steps] += weight
    added = (last @ effects)[:, None]
    each = np.broadcast_to(recursion, (len(last), *recursion.shape[1:]))
    levels = _continue_levels(each, lags, added)
    return Paths(levels, np.zeros(levels.shape), np.zeros(levels.shape[:2]), log=False)


def is_plausible(responses: Array) -> Mask:
    """(S, K) whether no impulse grows beyond that of a walk that was summed twice, k + 1.

    What does is an autoregression with a root well outside the unit circle: coefficients that the
    rows leave possible, and that series of this world do not have.
    """
    most = np.arange(1.0, responses.shape[2] + 1.0) + 1e-9
    return np.asarray((np.abs(responses) <= most).all(axis=2))


# ---- inner ---------------------------------------------------------------------------------------


def _build_recursion(form: Form, coefficients: Array) -> Array:
    """(S, K, m) coefficients of the levels at the lags that the form looks at."""
    lags = form.reach
    own = coefficients[:, :, form.n_free : form.n_free + form.n_lags]
    recursion = own @ form.window[lags - 1].T
    recursion[:, :, lags == form.difference] += 1.0
    return np.asarray(recursion)


def _get_known_levels(last: Array, lags: Indices, h: int) -> Array:
    """(S, m, h) levels at these lags before each step, of the ``last`` ones (S, L); 0 of others."""
    back = lags[:, None] - np.arange(h)
    return np.where(back > 0, last[:, -np.maximum(back, 1)], 0.0)


def _continue_levels(recursion: Array, lags: Indices, added: Array) -> Array:
    """(S, K, h) levels of the steps, by the recursion of what is ``added`` (S, K, h) at each."""
    h = added.shape[2]
    longest = int(lags[lags < h].max(initial=0))
    near = np.zeros((*recursion.shape[:2], longest))
    near[:, :, longest - lags[lags < h]] = recursion[:, :, lags < h]
    levels = added.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, h):
            back = min(step, longest)
            before = levels[:, :, step - back : step], near[:, :, longest - back :]
            levels[:, :, step] += np.einsum("skl,skl->sk", *before)
    return levels


def _compute_responses(form: Form, coefficients: Array, h: int) -> Array:
    impulse = np.zeros((*coefficients.shape[:2], h))
    impulse[:, :, 0] = 1.0
    return _continue_levels(_build_recursion(form, coefficients), form.reach, impulse)


def _replace_explosions(form: Form, draws: Draws, h: int) -> tuple[Draws, Array]:
    """Draws, those that explode replaced by others; where all do, halfway to the naive forecast."""
    weights, noise = draws.coefficients, draws.noise
    responses = _compute_responses(form, weights, h)
    fine = is_plausible(responses)
    for _ in range(HALVINGS):
        lost = np.flatnonzero(~fine.any(axis=1))
        if not len(lost):
            break
        weights = weights.copy() if weights is draws.coefficients else weights
        weights[lost] *= 0.5
        responses[lost] = _compute_responses(form, weights[lost], h)
        fine[lost] = is_plausible(responses[lost])
    chosen = np.tile(np.arange(fine.shape[1]), (len(fine), 1))
    for series in np.flatnonzero(~fine.all(axis=1) & fine.any(axis=1)):
        good, bad = np.flatnonzero(fine[series]), np.flatnonzero(~fine[series])
        chosen[series, bad] = good[np.linspace(0, len(good) - 1, len(bad)).astype(int)]
    if (chosen == np.arange(fine.shape[1])).all():
        return Draws(weights, noise), responses
    weights = np.take_along_axis(weights, chosen[:, :, None], axis=1)
    noise = np.take_along_axis(noise, chosen, axis=1)
    return Draws(weights, noise), np.take_along_axis(responses, chosen[:, :, None], axis=1)
