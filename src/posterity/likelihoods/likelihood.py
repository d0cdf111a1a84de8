"""The interface of a likelihood: an observation depends on coefficients only by eta = x.w."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from posterity.aliases import Array, Mask
from posterity.likelihoods.averages import integrate_derivatives
from posterity.likelihoods.parameter import LogNormalParameter, Parameter
from posterity.likelihoods.predictive import predictive

# Variance of eta where its cavity is flat: on the scale of log odds and log rates that
# is nearly nothing, and makes a first observation's posterior proper.
VAGUE_VARIANCE = 100.0
# Of the usual curvature, what that of a row is at least.
LEAST_SHARE = 0.2
# Step of eta for finite differences: rounding and truncation error are then about equal.
STEP = 1e-2
# Steps of eta beyond which nothing ends where it may lie, and the rounding of a log density.
FAR_STEP, ROUNDING = 15.0, 1e-9
# Rows that tell as well as all that eta is not open.
FEW_ROWS = 32
# Range of the search for the eta of a mean, and the number of bisections.
FARTHEST, HALVINGS = 700.0, 64


class Kernel(NamedTuple):
    """Code and parameters, three and any cut points, of a likelihood that compiled code knows.

    Those that are learned are None, or not there.
    """

    code: int
    parameters: tuple[Any, ...] = (0.0, 0.0, 0.0)


class Likelihood:
    """Distribution of a target given its linear predictor eta = x . coef (+ intercept + offset).

    To write your own, derive a frozen dataclass and define :meth:`distribution`, which returns the
    distribution of a target given eta. Everything else then follows by quadrature and differences.
    For more speed and precision, also define :meth:`log_density`, :meth:`derivatives` and
    :meth:`predictive`; each must broadcast, and must not warn. With these three,
    :meth:`distribution` is not needed.

    Scale eta so that a change of 1 is substantial, as it is for log rates, log odds and locations
    in units of the noise.

    Examples
    --------
    Waiting times that are exponential, of the mean exp(eta):

    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> from scipy import stats
    >>> from posterity import BayesianGeneralizedLinear
    >>> @dataclass(frozen=True)
    ... class Waiting(Likelihood):
    ...     def distribution(self, eta):
    ...         return stats.expon(scale=np.exp(eta))
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> y = rng.exponential(np.exp(1.0 + 0.5 * X[:, 0]))
    >>> model = BayesianGeneralizedLinear(Waiting()).fit(X, y)
    >>> model.intercept_.__round__(1), model.coef_.round(1)
    (1.0, array([0.5]))
    """

    # True if the target is eta plus noise: one observation then determines eta.
    is_noise: ClassVar[bool] = False
    # True if sums of products say all that rows do.
    is_gaussian: ClassVar[bool] = False
    # True if the log density has a kink, and so no useful curvature: moments only.
    kinked: ClassVar[bool] = False
    # True if no target rules out an eta that is far away: a flat prior would leave all of them.
    flat_far_out: ClassVar[bool] = False
    # Targets without a most probable eta, as a warning says it.
    without_maximum: ClassVar[str] = "targets that are the likelier the larger, or smaller, eta is"
    # How many numbers a target consists of: targets are (n,) for one, and (n, k) for k.
    n_numbers: ClassVar[int] = 1
    # The parameter that may be learned beside eta.
    parameter: ClassVar[Parameter | None] = None

    @property
    def parameters(self) -> tuple[Parameter | LogNormalParameter, ...]:
        """All that may be learned: more than one are learned together with the coefficients."""
        return () if self.parameter is None else (self.parameter,)

    @property
    def ratio(self) -> str:
        """Name of exp(coefficient) where eta is a log: "odds_ratio", "rate_ratio" or None."""
        return ""

    @property
    def smooth(self) -> Likelihood:
        """A likelihood with curvature near this one; itself unless it has a kink."""
        return self

    @property
    def closeness(self) -> float:
        """Tolerance, relative to eta, with which the derivatives find the mode of a row."""
        return 1e-15 if type(self).derivatives is not Likelihood.derivatives else 1e-9

    @property
    def vague_variance(self) -> float:
        """Variance of eta under a vague prior."""
        return VAGUE_VARIANCE

    @property
    def kernel_code(self) -> Kernel | None:
        """Code and parameters in compiled code; None of a likelihood that is not built in."""
        return None

    @property
    def compiled(self) -> Kernel | None:
        """The same; None also where each row has its own parameter, and of kinks."""
        code = None if self.kinked else self.kernel_code
        if code is None or any(np.ndim(one) for one in code.parameters):
            return None
        return code

    @property
    def learns_parameter(self) -> bool:
        """True if its parameter is not given, and so is learned."""
        return self.parameter is not None and getattr(self, self.parameter.name) is None

    @property
    def learned(self) -> tuple[Parameter | LogNormalParameter, ...]:
        """The parameters that are not given."""
        return self.parameters if self.learns_parameter else ()

    def with_parameter(self, value: float | Array) -> Self:
        """The same with this value of the parameter that is learned, or one for each row (n,)."""
        assert self.parameter is not None
        return replace(self, **{self.parameter.name: value})  # type: ignore[type-var]

    def with_parameters(self, values: Array) -> Self:
        """The same with these values (m,) of all parameters that are learned."""
        return self.with_parameter(values if self.parameter is None else values.item())

    def of_rows(self, rows: Any) -> Self:
        """The same with the parameters of these rows, where each row has its own."""
        value: Any = None if self.parameter is None else getattr(self, self.parameter.name)
        return self if np.ndim(value) == 0 else self.with_parameter(value[rows])

    def distribution(self, eta: Array) -> Any:
        """Distribution of a target given eta, like SciPy's frozen ones: ``stats.expon(scale=...)``.

        It needs the methods ``logpdf`` (or ``logpmf`` for whole numbers), ``cdf``, ``ppf``,
        ``mean``, ``var`` and ``rvs``.
        """
        raise NotImplementedError(
            f"{type(self).__name__} defines no distribution of the target: define "
            "distribution(self, eta), which returns it, or log_density, derivatives and predictive"
        )

    def log_density(self, y: Array, eta: Array) -> Array:
        """log p(y | eta)."""
        density = self.distribution(eta)
        log_density = getattr(density, "logpmf", None) or density.logpdf
        return np.asarray(log_density(y))

    def log_tails(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """Logs of the probabilities of at most y, and of more."""
        given = self.distribution(eta)
        return given.logcdf(y), given.logsf(y)

    def derivatives(self, y: Array, eta: Array) -> tuple[Array, Array]:
        """d log p / d eta, and -d^2 log p / d eta^2, not negative (0 where it would be).

        By differences of the log density, of five points, to about nine digits.
        """
        slope, bend = find_differences(lambda points: self.log_density(y, points), eta)
        curvature = np.maximum(-bend, 0.0)
        known = np.isfinite(slope) & np.isfinite(curvature)
        return np.where(known, slope, 0.0), np.where(known, curvature, 0.0)

    def average(self, y: Array, mean: Array, variance: Array) -> tuple[Array, Array, Array]:
        """Averages of log density, slope and curvature over eta ~ Normal(mean, variance).

        By quadrature.
        """
        return integrate_derivatives(self, y, mean, variance)

    def mean(self, eta: Array) -> Array:
        """Mean of a target given eta."""
        rows = np.ravel(eta)
        return np.reshape(self.predictive(rows, np.zeros_like(rows)).mean(), np.shape(eta))

    def link_function(self, mean: Array) -> Array:
        """The eta whose target has this mean: the inverse of :meth:`mean`, where that increases."""
        if self.is_noise:
            return np.asarray(mean - self.mean(np.zeros(np.shape(mean))))
        low, high = (np.full(np.shape(mean), end) for end in (-FARTHEST, FARTHEST))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self.mean(middle) < mean
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)

    def check_targets(self, y: Array) -> None:
        """Raise ``ValueError``, naming the row, for an impossible target.

        By default, where its density is 0, or not a number, at eta = 0.
        """
        with np.errstate(all="ignore"):
            possible = self.log_density(y, np.zeros_like(y)) > -np.inf
        named_row(y, possible, f"{type(self).__name__} gives it no probability")

    def bends_upwards(self, y: Array, eta: Array) -> bool:
        """True if the log density of a target bends upwards at its eta, as far as it is known."""
        with np.errstate(all="ignore"):
            logs = self.log_density(y, eta + STEP * np.arange(-1, 2)[:, None])
        return bool(np.any(logs[0] - 2.0 * logs[1] + logs[2] > ROUNDING))

    def is_open(self, y: Array) -> bool:
        """True if no target is less likely far away on one side, so that all leave eta open there.

        Counts that are all 0, successes in all trials, lifetimes of which none ended.
        """
        return not self.is_noise and all(self._is_open(some) for some in (y[:FEW_ROWS], y))

    def _is_open(self, y: Array) -> bool:
        own = getattr(self, "start", None)
        begin = np.zeros(len(y)) if own is None else own(y)
        eta = begin + FAR_STEP * np.arange(-2, 3)[:, None]
        with np.errstate(all="ignore"):
            rise = np.diff(self.log_density(y, eta), axis=0)
        return bool(np.all(rise[:2] <= ROUNDING) or np.all(rise[2:] >= -ROUNDING))

    def predictive(self, mean: Array, variance: Array) -> Any:
        """Distribution of the targets when eta ~ Normal(mean, variance), one a row."""
        return predictive(self, mean, variance)


class TargetError(ValueError):
    """A target that a likelihood does not know: its row, its value, and what is wrong with it."""

    def __init__(self, row: int, value: str, what: str) -> None:
        super().__init__(f"y in row {row} is {value}: {what}")
        self.row, self.value, self.what = row, value, what


class ParametricLikelihood(Likelihood):
    """A likelihood with a positive parameter, which is learned where it is not given."""

    def __post_init__(self) -> None:
        name, value = self._read_parameter()
        if value is not None and not np.all((value > 0.0) & (value < np.inf)):
            raise ValueError(f"{name} is {value}: it must be positive and finite, or None")

    @property
    def known(self) -> Any:
        """The parameter's value, or one for each row (n,)."""
        (name, value), kind = self._read_parameter(), type(self).__name__
        if value is None:
            raise ValueError(
                f"the {name} of {kind}() is learned by a model: give {kind}({name}=...) here"
            )
        return value

    def _read_parameter(self) -> tuple[str, Any]:
        assert self.parameter is not None
        return self.parameter.name, getattr(self, self.parameter.name)


def find_differences(function: Callable[[Array], Array], eta: Array) -> tuple[Array, Array]:
    """First and second derivative (n,) by differences of five points, to about nine digits."""
    points = np.multiply.outer(STEP * np.arange(-2, 3), np.ones(np.shape(eta))) + eta
    with np.errstate(all="ignore"):
        # All at once: making one of SciPy's distributions takes most of the time.
        far_below, below, here, above, far_above = function(points)
        slope = (far_below - 8.0 * below + 8.0 * above - far_above) / (12.0 * STEP)
        bend = far_below - 16.0 * below + 30.0 * here - 16.0 * above + far_above
    return slope, -bend / (12.0 * STEP * STEP)


def keep_positive(curvature: Array, usual: Array) -> Array:
    """Curvatures (n,), where these are negative or small a share of the ``usual``, positive, ones.

    A row's site has a precision, whatever its log density does.
    """
    return np.maximum(curvature, LEAST_SHARE * usual)


def named_row(y: Array, good: Mask, what: str) -> None:
    """Raise ``TargetError`` for the first target that is not good."""
    bad = np.flatnonzero(~good)
    if len(bad):
        value = ", ".join(f"{number:g}" for number in np.atleast_1d(y[bad[0]]))
        raise TargetError(int(bad[0]), value if y.ndim == 1 else f"({value})", what)
