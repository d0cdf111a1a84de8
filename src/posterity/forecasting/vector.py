"""Vector autoregression: n signals that follow each other, with forecasts of all together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from posterity.factor import Factor
from posterity.forecasting import minnesota, reading
from posterity.forecasting.checks import check_horizon
from posterity.forecasting.forecast import StepDistribution, StepsAhead
from posterity.forecasting.marginals import Component, Marginals
from posterity.forecasting.panel import Panel
from posterity.forecasting.recent import following
from posterity.forecasting.rows import carried

Array = NDArray[np.float64]

# "auto" takes so many lags at most, and leaves so many rows for each lag of all signals.
MOST_LAGS, ROWS_FOR_LAG = 8, 5
# A draw whose largest root is beyond 1 + this / h explodes within the horizon.
EXPLOSIVE = 2.0


@dataclass(frozen=True, eq=False)
class VectorForecast(StepsAhead):
    """The joint distribution of the next h steps of q signals: K Gaussians, equally probable.

    Attributes
    ----------
    ids : tuple
        Names of the signals.
    times : (q, h) array
    paths : (K, h, q) array
        Means.
    responses : (K, h, q, q) array
        What a unit shock of the second signal (in the order given) adds to the first, so many
        steps later.
    """

    paths: Array
    responses: Array

    @classmethod
    def of(
        cls, ids: tuple[Any, ...], times: NDArray[Any], paths: Array, responses: Array
    ) -> VectorForecast:
        """From means and responses."""
        sd = np.sqrt(np.cumsum(np.square(responses).sum(axis=3), axis=1))
        marginals = _marginals(np.transpose(paths, (2, 0, 1)), np.transpose(sd, (2, 0, 1)))
        return cls(ids, marginals, False, times, paths, responses)

    def rvs(self, size: int = 1000, random_state: Any = None) -> Array:
        """Sample paths (size, q, h): signals and steps are jointly drawn."""
        rng = np.random.default_rng(random_state)
        count, h, q = self.paths.shape
        which = rng.integers(count, size=size)
        shocks = rng.standard_normal((size, h, q))
        drawn = self.paths[which].copy()
        for lag in range(h):
            drawn[:, lag:] += np.einsum(
                "kij,ktj->kti", self.responses[which, lag], shocks[:, : h - lag]
            )
        return np.swapaxes(drawn, 1, 2)

    def total(self, steps: slice | int | None = None) -> StepDistribution:
        """The sum over steps, all by default or the first ``steps``, of each signal."""
        chosen = slice(steps) if isinstance(steps, int) or steps is None else steps
        h = self.paths.shape[1]
        weights = np.zeros(h)
        weights[chosen] = 1.0
        if not weights.any():
            raise ValueError(f"there is no step in {steps}: give steps of the horizon, 1 to {h}")
        variance = sum(
            np.square(np.einsum("klij,l->kij", self.responses[:, : h - t], weights[t:])).sum(axis=2)
            for t in range(h)
        )
        mean = np.einsum("khi,h->ki", self.paths, weights)
        marginals = _marginals(mean.T[:, :, None], np.sqrt(variance).T[:, :, None])
        return StepDistribution(self.ids, marginals, False)

    def joint_logpdf(self, y: ArrayLike) -> float:
        """Log density of one path ``y`` (q, h) of all signals, steps together.

        Under each draw the shocks that the path needs are independent standard normals.
        """
        off = np.asarray(y, dtype=np.float64).T - self.paths
        count, h, q = off.shape
        shocks, root = np.zeros((count, h, q)), self.responses[:, 0]
        for step in range(h):
            known = sum(
                np.einsum("kij,kj->ki", self.responses[:, step - t], shocks[:, t])
                for t in range(step)
            )
            shocks[:, step] = np.linalg.solve(root, (off[:, step] - known)[:, :, None])[:, :, 0]
        sizes = np.linalg.slogdet(root)[1]
        logs = -0.5 * np.square(shocks).sum(axis=(1, 2)) - h * sizes
        return float(logsumexp(logs) - np.log(count) - 0.5 * h * q * np.log(2.0 * np.pi))

    def covariance(self) -> Array:
        """(h, q, q) covariances of the signals, step by step."""
        shocks = np.einsum("khij,khlj->hil", self.responses, self.responses) / len(self.paths)
        off = self.paths - self.paths.mean(axis=0)
        return np.cumsum(shocks, axis=0) + np.einsum("khi,khj->hij", off, off) / len(off)


@dataclass(frozen=True, eq=False)
class ImpulseResponses:
    """What one standard deviation of a signal's own shock does to all, 0 to h steps later.

    Shocks are orthogonal in the order of the signals: an early one moves later ones at once.

    Attributes
    ----------
    ids : tuple
        Names of the signals.
    draws : (K, h + 1, q, q) array
        [k, step, i, j]: of signal i to the shock of j.
    """

    ids: tuple[Any, ...]
    draws: Array

    def median(self) -> Array:
        """(h + 1, q, q) medians."""
        return np.asarray(np.median(self.draws, axis=0))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Ends (h + 1, q, q) of the credible bands of each response at ``level``."""
        low, high = np.quantile(self.draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return low, high


class VectorAutoregression(BaseEstimator):
    """n signals that follow each other: a Bayesian vector autoregression without a knob.

    The prior is Minnesota's (Litterman 1986): coefficients shrink to zero, later lags more, others'
    lags more than own ones, and signals return to a mean or walk. How much is averaged by the
    evidence.

    Parameters
    ----------
    lags : int or "auto", default "auto"
        Lags of every signal; "auto" takes up to eight, a lag for five rows a signal.
    tightness : (float, float), optional
        Prior standard deviations of own first lags and of others', in units of the signals' errors,
        where they are known; (inf, inf) is ordinary least squares. None: learned.
    n_draws : int, default 128
        Draws of coefficients and noise, of a fixed set of points: the same data give the same
        forecast.

    Attributes
    ----------
    ids_ : tuple
        Names of the signals.
    lags_ : int
        Lags in use.
    coef_ : (lags, q, q) array
        [lag - 1, i, j]: posterior mean of what signal j adds to i, so many steps later.
    intercept_ : (q,) array
    tightness_ : (float, float)
        Posterior geometric means of both.
    log_evidence_ : float
        Log p(signals), in units of their AR(1) errors, averaged over the grid.

    Notes
    -----
    Formulas are in `docs/forecasting.md`; the prior of coefficients and noise is conjugate, also
    with two tightnesses (Chan 2022), so that evidence has a formula. Rows with a value missing, in
    themselves or their lags, are not learned; where the last values are missing, those before them
    are carried on.

    Examples
    --------
    >>> import numpy as np
    >>> from posterity.forecasting import VectorAutoregression
    >>> rng = np.random.default_rng(0)
    >>> y = np.zeros((200, 2))
    >>> for t in range(1, 200):
    ...     y[t] = [0.5 * y[t - 1, 0], 0.8 * y[t - 1, 0]] + rng.normal(size=2)
    >>> model = VectorAutoregression(lags=2).fit({"cause": y[:, 0], "effect": y[:, 1]})
    >>> forecast = model.forecast(4)
    >>> forecast.median().shape, forecast.rvs(10, random_state=0).shape
    ((2, 4), (10, 2, 4))
    >>> helps = model.helps()
    >>> bool(helps["cause", "effect"] > 10.0), bool(helps["effect", "cause"] < 1.0)
    (True, True)
    """

    _panel: Panel | None = None

    def __init__(
        self,
        *,
        lags: int | Literal["auto"] = "auto",
        tightness: tuple[float, float] | None = None,
        n_draws: int = 128,
    ) -> None:
        self.lags = lags
        self.tightness = tightness
        self.n_draws = n_draws

    def fit(self, y: Any) -> Self:
        """Forget everything and learn these signals.

        Parameters
        ----------
        y : array, mapping or data frame
            (n, q) array, mapping of names to arrays, or frame, as `Forecaster` reads several
            series; all end at the same time.

        Raises
        ------
        ValueError
            For parameters out of range, signals that end at different times, and where there are
            too few rows.
        """
        return self._copy_from(reading.read(y))

    def partial_fit(self, y: Any) -> Self:
        """Learn later rows of all signals: what comes of it is what `fit` makes of all."""
        if self._panel is None:
            return self.fit(y)
        return self._copy_from(self._panel.then(following(self._panel, y, None)))

    def forecast(self, h: int) -> VectorForecast:
        """The joint distribution of the next ``h`` steps of all signals."""
        check_horizon(h)
        weights, roots = self._draws(h)
        unit, centre = self._units()
        lags, q = self.lags_, len(unit)
        levels = np.empty((len(weights), lags + h, q))
        levels[:, :lags] = (carried(self._fitted_panel.values).T[-lags:] - centre) / unit
        for step in range(h):
            past = levels[:, step : lags + step][:, ::-1].reshape(len(weights), -1)
            levels[:, lags + step] = weights[:, 0] + np.einsum("kp,kpq->kq", past, weights[:, 1:])
        responses = _responses(weights, roots, lags, h) * unit[:, None]
        panel = self._fitted_panel
        times = panel.calendar.times(panel.ends[:, None] + np.arange(1, h + 1))
        return VectorForecast.of(panel.ids, times, levels[:, lags:] * unit + centre, responses)

    def predict(self, h: int) -> Array:
        """Point forecasts, the medians, of the next ``h`` steps (q, h)."""
        return self.forecast(h).median()

    def impulse_responses(self, h: int) -> ImpulseResponses:
        """Responses of all signals to each one's shock, up to ``h`` steps later."""
        check_horizon(h)
        weights, roots = self._draws(h)
        unit = self._units()[0][:, None]
        return ImpulseResponses(self.ids_, _responses(weights, roots, self.lags_, h + 1) * unit)

    def helps(self) -> dict[tuple[Any, Any], float]:
        """Which signal helps to predict which: {(from, to): natural log of the Bayes factor}.

        Of the lags of the first in the equation of the second, against none of them, averaged over
        the tightnesses. Above 3 says twenty to one that it helps, below -3 that it does not.
        """
        system, nodes = self._system(), self._nodes()
        found = {}
        for j, to in enumerate(self.ids_):
            whole = logsumexp(system.link(j, nodes, before=False).log_evidence)
            for i, name in enumerate(self.ids_):
                if i != j:
                    less = system.link(j, nodes, before=False, without=i)
                    found[name, to] = float(whole - logsumexp(less.log_evidence))
        return found

    # ---- what is known ---------------------------------------------------------------------------

    @property
    def ids_(self) -> tuple[Any, ...]:
        """Names of the signals."""
        return self._fitted_panel.ids

    @property
    def lags_(self) -> int:
        """Lags in use."""
        if self.lags != "auto":
            return int(self.lags)
        q, n = self._fitted_panel.values.shape
        return int(np.clip(n // (ROWS_FOR_LAG * q), 1, MOST_LAGS))

    @property
    def coef_(self) -> Array:
        """(lags, q, q) posterior means."""
        unit = self._units()[0]
        weights = self._means()[1:].reshape(self.lags_, len(unit), len(unit))
        return np.swapaxes(weights, 1, 2) * unit[:, None] / unit

    @property
    def intercept_(self) -> Array:
        """(q,) posterior means."""
        unit, centre = self._units()
        return self._means()[0] * unit + centre - self.coef_.sum(axis=0) @ centre

    @property
    def tightness_(self) -> tuple[float, float]:
        """Geometric posterior means of the tightness of own lags and of others'."""
        nodes = self._nodes()
        weights = minnesota.node_weights(self._chain())[0]
        own, others = (float(np.exp(weights @ np.log(one))) for one in (nodes.own, nodes.others))
        return own, others

    @property
    def log_evidence_(self) -> float:
        """Log evidence, averaged over the grid."""
        return minnesota.node_weights(self._chain())[1]

    # ---- inner -----------------------------------------------------------------------------------

    @property
    def _fitted_panel(self) -> Panel:
        if self._panel is None:
            raise NotFittedError(
                "This VectorAutoregression has learned nothing yet: call fit first"
            )
        return self._panel

    def _copy_from(self, panel: Panel) -> Self:
        self._check(panel)
        fresh = type(self)(**self.get_params(deep=False))
        fresh._panel = panel
        fresh._system()  # raises where nothing can be learned
        self.__dict__ = fresh.__dict__
        return self

    def _check(self, panel: Panel) -> None:
        lags = self.lags
        if lags != "auto" and not (isinstance(lags, int | np.integer) and lags >= 1):
            raise ValueError(f"lags is {lags!r}: it must be 'auto' or a whole number, at least 1")
        if self.tightness is not None and not np.all(np.asarray(self.tightness) > 0.0):
            raise ValueError(
                f"tightness is {self.tightness!r}: it must be two positive numbers, of own "
                "lags and of others', or None"
            )
        if self.n_draws < 1:
            raise ValueError(f"n_draws is {self.n_draws}: it must be at least 1")
        if panel.names:
            raise ValueError(
                "a vector autoregression has no exogenous columns, but there are "
                f"{panel.names}: leave them out"
            )
        if len(set(panel.ends.tolist())) > 1:
            last = panel.calendar.times(panel.ends)
            pairs = ", ".join(f"{i!r} at {t}" for i, t in zip(panel.ids, last, strict=True))
            raise ValueError(
                f"the signals end at different times ({pairs}): give all up to the same time"
            )

    def _nodes(self) -> minnesota.Nodes:
        if self.tightness is None:
            return minnesota.Nodes.grid()
        return minnesota.Nodes.given(*self.tightness)

    def _units(self) -> tuple[Array, Array]:
        """(q,) sizes of the signals' AR(1) errors, and their means."""
        return self._kept("units", lambda: _units(self._fitted_panel.values.T))

    def _system(self) -> minnesota.System:
        return self._kept("system", self._read)

    def _chain(self) -> list[minnesota.Regressions]:
        return self._kept("chain", lambda: self._system().chain(self._nodes()))

    def _means(self) -> Array:
        return minnesota.means(self._system(), self._nodes(), self._chain())

    def _draws(self, h: int) -> tuple[Array, Array]:
        """Draws of coefficients (K, p, q) and of roots of the noise, none of which explodes."""
        system = self._system()
        drawn = minnesota.draws(system, self._nodes(), self._chain(), self.n_draws)
        return _without_explosions(drawn, self.lags_, h)

    def _read(self) -> minnesota.System:
        unit, centre = self._units()
        values, lags = (self._fitted_panel.values.T - centre) / unit, self.lags_
        rows = _rows(values, lags)
        q = values.shape[1]
        if len(rows) < 2:
            raise ValueError(
                f"there are {len(rows)} complete rows of {q} signals with {lags} lags: give "
                "more rows, or use fewer lags"
            )
        p = rows.shape[1] - q
        factor = Factor(p, q)
        factor.append(rows[:, :p].copy(), rows[:, p:].copy())
        return minnesota.System(factor.triangle[:, : p + q].copy(), len(rows), lags)

    def _kept(self, name: str, make: Any) -> Any:
        kept = self.__dict__.setdefault("_answers", {})
        if name not in kept:
            kept[name] = make()
        return kept[name]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: one for name, one in state.items() if name != "_answers"}


# ---- inner ---------------------------------------------------------------------------------------


def _marginals(mean: Array, sd: Array) -> Marginals:
    """Mixtures of equally probable normals (S, K, h)."""
    part = Component(np.ascontiguousarray(mean), np.ascontiguousarray(sd), log=False)
    return Marginals([part], np.ones((len(mean), 1)))


def _rows(values: Array, lags: int) -> Array:
    """Rows [1, lag 1 of all, lag 2 of all, ..., now] without those that lack a value."""
    n = len(values)
    if n <= lags:
        return np.zeros((0, 1 + values.shape[1] * (lags + 1)))
    past = [values[lags - lag : n - lag] for lag in range(1, lags + 1)]
    rows = np.hstack([np.ones((n - lags, 1)), *past, values[lags:]])
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])


def _units(values: Array) -> tuple[Array, Array]:
    unit, centre = np.ones(values.shape[1]), np.zeros(values.shape[1])
    for j, one in enumerate(values.T):
        known = one[np.isfinite(one)]
        centre[j] = known.mean() if len(known) else 0.0
        rows = _rows(one[:, None] - centre[j], 1)
        if len(rows):
            solution = np.linalg.lstsq(rows[:, :2], rows[:, 2], rcond=None)[0]
            errors = rows[:, 2] - rows[:, :2] @ solution
            size = np.sqrt(np.square(errors).sum() / max(len(rows) - 2, 1))
            unit[j] = size if size > 1e-12 * np.abs(known).max(initial=0.0) else 1.0
    return unit, centre


def _without_explosions(drawn: minnesota.SystemDraws, lags: int, h: int) -> tuple[Array, Array]:
    """The draws, those that explode within the horizon replaced by others."""
    weights = drawn.weights
    count, _, q = weights.shape
    companion = np.zeros((count, q * lags, q * lags))
    companion[:, :q] = np.swapaxes(weights[:, 1:], 1, 2)
    companion[:, q:, : q * (lags - 1)] = np.eye(q * (lags - 1))
    radius = np.abs(np.linalg.eigvals(companion)).max(axis=1)
    fine = radius <= max(1.0 + EXPLOSIVE / h, radius.min())
    good, bad = np.flatnonzero(fine), np.flatnonzero(~fine)
    chosen = np.arange(count)
    chosen[bad] = good[np.linspace(0, len(good) - 1, len(bad)).astype(int)]
    return weights[chosen], drawn.roots[chosen]


def _responses(weights: Array, roots: Array, lags: int, h: int) -> Array:
    """(K, h, q, q) of signals to unit shocks, 0 to h - 1 steps later."""
    count, _, q = weights.shape
    found = np.zeros((count, lags + h - 1, q, q))
    found[:, lags - 1] = roots
    for step in range(1, h):
        past = found[:, step - 1 : lags + step - 1][:, ::-1].reshape(count, lags * q, q)
        found[:, lags - 1 + step] = np.swapaxes(weights[:, 1:], 1, 2) @ past
    return found[:, lags - 1 :]
