"""Vector autoregression: n signals that follow each other, with forecasts of all together."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array
from posterity.forecasting import minnesota, reading
from posterity.forecasting.checks import check_far, check_horizon
from posterity.forecasting.outliers import check_outliers, leave_out_outliers
from posterity.forecasting.panel import Panel
from posterity.forecasting.recent import read_following_rows
from posterity.forecasting.remarks import warn_of_constant, warn_of_few, warn_of_outliers
from posterity.forecasting.signals import Signals
from posterity.forecasting.vector_forecast import ImpulseResponses, VectorForecast
from posterity.forecasting.vector_gaps import complete_levels, compute_responses, continue_levels
from posterity.safety import check_memory
from posterity.transaction import hold_model_lock

# "auto" takes at most this many lags, and needs this many rows for each lag of all signals.
MOST_LAGS, ROWS_FOR_LAG = 8, 5
# Values that a forecast stores for each draw, step and pair of signals.
NUMBERS = 3
# A draw whose largest root is beyond 1 + this / h explodes within the horizon.
EXPLOSIVE = 2.0


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
    outliers : "ignore" or "learn", default "ignore"
        What to do with single values that are far from all before them: ignore them as if they were
        missing, or learn them.
    n_draws : int, default 128
        Draws of coefficients and noise, of a fixed set of points: the same data give the same
        forecast.

    Attributes
    ----------
    ids_ : tuple
        Names of the signals.
    n_observations_ : int
        Observed values learned, of all signals.
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
    themselves or their lags, are not learned. Where the last values are missing, they are drawn
    given those of the other signals.

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
        outliers: Literal["ignore", "learn"] = "ignore",
        n_draws: int = 128,
    ) -> None:
        self.lags = lags
        self.tightness = tightness
        self.outliers = outliers
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

    @hold_model_lock
    def partial_fit(self, y: Any) -> Self:
        """Learn later rows of all signals: what comes of it is what `fit` makes of all."""
        if self._panel is None:
            return self.fit(y)
        return self._copy_from(self._panel.append(read_following_rows(self._panel, y, None)))

    def forecast(self, h: int) -> VectorForecast:
        """The joint distribution of the next ``h`` steps of all signals."""
        self._check_horizon(h)
        warn_of_outliers(self._fitted_panel, self._used.left_out)
        warn_of_constant(self._used)
        warn_of_few(self._used)
        weights, roots = self._draw(h)
        signals, lags = self._get_signals(), self.lags_
        last = complete_levels(signals.in_units(signals.values), weights, roots, lags)
        levels = continue_levels(last, weights, h)
        responses = signals.responses(compute_responses(weights, roots, lags, h))
        panel = self._fitted_panel
        times = panel.calendar.stamps(panel.ends[:, None] + np.arange(1, h + 1))
        paths = signals.as_given(levels[:, lags:])
        return VectorForecast.of(panel.ids, times, paths, responses, panel.calendar)

    def predict(self, h: int) -> Array:
        """Point forecasts, the medians, of the next ``h`` steps (q, h)."""
        return self.forecast(h).median()

    def impulse_responses(self, h: int) -> ImpulseResponses:
        """Responses of all signals to each one's shock, up to ``h`` steps later."""
        self._check_horizon(h)
        weights, roots = self._draw(h)
        responses = compute_responses(weights, roots, self.lags_, h + 1)
        return ImpulseResponses(self.ids_, self._get_signals().responses(responses))

    def helps(self) -> dict[tuple[Any, Any], float]:
        """Return log Bayes factors {(from, to): nats} for a signal's help in predicting another.

        Of the lags of the first in the equation of the second, against none of them, averaged over
        the tightnesses. Above 3 says twenty to one that it helps, below -3 that it does not. A
        constant signal says nothing of others, nor they of it: 0.
        """
        system, nodes, varies = self._get_system(), self._get_nodes(), self._get_signals().varies
        ids = [name for name, one in zip(self.ids_, varies, strict=True) if one]
        found = {(name, to): 0.0 for to in self.ids_ for name in self.ids_ if name != to}
        for j, to in enumerate(ids):
            whole = logsumexp(system.link(j, nodes, before=False).log_evidence)
            for i, name in enumerate(ids):
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
    def n_observations_(self) -> int:
        """Observed values learned, of all signals."""
        return int(self._fitted_panel.observed.sum())

    @property
    def lags_(self) -> int:
        """Lags in use."""
        if self.lags != "auto":
            return int(self.lags)
        signals = self._get_signals()
        n, q = len(signals.values), max(int(signals.varies.sum()), 1)
        return int(np.clip(n // (ROWS_FOR_LAG * q), 1, MOST_LAGS))

    @property
    def coef_(self) -> Array:
        """(lags, q, q) posterior means."""
        system = self._get_system()
        weights = self._get_means()[1:].reshape(self.lags_, system.n_signals, system.n_signals)
        return self._get_signals().effects(np.swapaxes(weights, 1, 2))

    @property
    def intercept_(self) -> Array:
        """(q,) posterior means."""
        signals = self._get_signals()
        return signals.intercept(self._get_means()[0], self.coef_.sum(axis=0))

    @property
    def tightness_(self) -> tuple[float, float]:
        """Geometric posterior means of the tightness of own lags and of others'."""
        nodes = self._get_nodes()
        weights = minnesota.compute_node_weights(nodes, self._get_chain())[0]
        own, others = (float(np.exp(weights @ np.log(one))) for one in (nodes.own, nodes.others))
        return own, others

    @property
    def log_evidence_(self) -> float:
        """Log evidence, averaged over the grid."""
        return minnesota.compute_node_weights(self._get_nodes(), self._get_chain())[1]

    # ---- inner -----------------------------------------------------------------------------------

    @property
    def _fitted_panel(self) -> Panel:
        if self._panel is None:
            raise NotFittedError(
                "This VectorAutoregression has learned nothing yet: call fit first"
            )
        return self._panel

    @property
    def _used(self) -> Panel:
        """The panel that was learned, without the values that are ignored."""
        return leave_out_outliers(self._fitted_panel, self.outliers)

    def _copy_from(self, panel: Panel) -> Self:
        self._check(panel)
        fresh = type(self)(**self.get_params(deep=False))
        fresh._panel = panel
        fresh._get_system()  # raises where nothing can be learned
        self.__dict__ = fresh.__dict__
        return self

    def _check_parameters(self) -> None:
        check_outliers(self.outliers)
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

    def _check(self, panel: Panel) -> None:
        self._check_parameters()
        if panel.names:
            raise ValueError(
                "a vector autoregression has no exogenous columns, but there are "
                f"{panel.names}: leave them out"
            )
        if len(set(panel.ends.tolist())) > 1:
            last = panel.calendar.stamps(panel.ends)
            pairs = ", ".join(f"{i!r} at {t}" for i, t in zip(panel.ids, last, strict=True))
            raise ValueError(
                f"the signals end at different times ({pairs}): give all up to the same time"
            )

    def _check_horizon(self, h: int) -> None:
        """Raise ``ValueError`` for a horizon that is none, or takes too much memory."""
        check_horizon(h)
        check_far(h, self._fitted_panel.length)
        q = len(self.ids_)
        numbers = float(NUMBERS * self.n_draws * q * q) * h
        check_memory(8.0 * numbers, f"a forecast of {q:,} signals {h:,} steps ahead")

    def _get_nodes(self) -> minnesota.Nodes:
        if self.tightness is None:
            return minnesota.Nodes.grid()
        return minnesota.Nodes.given(*self.tightness)

    def _get_signals(self) -> Signals:
        return self._compute_once("signals", lambda: Signals.of(self._used))

    def _get_system(self) -> minnesota.System:
        return self._compute_once("system", lambda: self._get_signals().system(self.lags_))

    def _get_chain(self) -> list[minnesota.Regressions]:
        return self._compute_once("chain", lambda: self._get_system().chain(self._get_nodes()))

    def _get_means(self) -> Array:
        return minnesota.means(self._get_system(), self._get_nodes(), self._get_chain())

    def _draw(self, h: int) -> tuple[Array, Array]:
        """Draws of coefficients (K, p, q) and of roots of the noise, none of which explodes."""
        system = self._get_system()
        drawn = minnesota.draws(system, self._get_nodes(), self._get_chain(), self.n_draws)
        return _replace_explosions(drawn, self.lags_, h)

    def _compute_once(self, name: str, make: Any) -> Any:
        kept = self.__dict__.setdefault("_answers", {})
        if name not in kept:
            kept[name] = make()
        return kept[name]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: one for name, one in state.items() if name != "_answers"}


# ---- inner ---------------------------------------------------------------------------------------


def _replace_explosions(drawn: minnesota.SystemDraws, lags: int, h: int) -> tuple[Array, Array]:
    """The draws, those that explode within the horizon replaced by others."""
    weights = drawn.weights
    count, _, q = weights.shape
    if not q:
        return weights, drawn.roots
    companion = np.zeros((count, q * lags, q * lags))
    companion[:, :q] = np.swapaxes(weights[:, 1:], 1, 2)
    companion[:, q:, : q * (lags - 1)] = np.eye(q * (lags - 1))
    radius = np.abs(np.linalg.eigvals(companion)).max(axis=1)
    fine = radius <= max(1.0 + EXPLOSIVE / h, radius.min())
    good, bad = np.flatnonzero(fine), np.flatnonzero(~fine)
    chosen = np.arange(count)
    chosen[bad] = good[np.linspace(0, len(good) - 1, len(bad)).astype(int)]
    return weights[chosen], drawn.roots[chosen]
