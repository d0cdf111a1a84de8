"""The coefficients of several targets: each target's joint distribution, and draws of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array, Mask
from posterity.distributions.joint_distribution import require_pandas, tabulate
from posterity.distributions.row_distribution import RowDistribution
from posterity.distributions.triangles import solve_triangle
from posterity.noise import Joint


class TargetCoefficients:
    """Joint posterior of [intercept, coefficients] of q targets: matrix Student-t or normal.

    Given the covariance Sigma of the noise, W ~ MN(mean, Lambda^-1, Sigma); by itself each target's
    are a multivariate Student-t, or a mixture of some where its prior is learned.

    Parameters
    ----------
    each : sequence of MultivariateNormal, MultivariateT or MultivariateMixture
        Of each target by itself.
    correlation : (q, q) array
        Correlations of the targets given the features.
    names : tuple of str
        Names of the p coefficients.
    targets : tuple of str, optional
        Names of the targets.
    label : str, default "target"
        What they are called in tables and messages.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> X, y = [[0.0], [1.0], [2.0], [4.0]], [[1.0, 0.0], [3.0, 1.0], [5.0, 1.0], [8.0, 3.0]]
    >>> posterior = BayesianLinearRegression(prior_precision=1.0).fit(X, y).posterior_
    >>> posterior.mean.round(2)
    array([[1.51, 1.56],
           [0.13, 0.64]])
    >>> posterior.marginal(0).names, posterior.rvs(5, random_state=0).shape
    (('intercept', 'x0'), (5, 2, 2))
    """

    def __init__(
        self,
        each: Sequence[Joint],
        correlation: Array,
        *,
        names: tuple[str, ...],
        targets: tuple[str, ...] | None = None,
        label: str = "target",
    ) -> None:
        self.each = tuple(each)
        self.correlation = correlation
        self.names = names
        self.targets = targets
        self.label = label

    def __repr__(self) -> str:
        return f"TargetCoefficients({len(self.each)} {self.label}s, {len(self.names)} coefficients)"

    def __getitem__(self, name: str) -> dict[str, RowDistribution]:
        """Distribution of one coefficient, for each target by its name."""
        return {label: one[name] for label, one in zip(self.labels, self.each, strict=True)}

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def without_knowledge(self, places: Mask) -> TargetCoefficients:
        """The same of the other coefficients; of those at ``places`` (p,) nothing is known."""
        return self.map(lambda one: one.without_knowledge(places))

    def map(self, change: Callable[[Any], Any]) -> TargetCoefficients:
        """The same with a joint distribution of each target that is made from its own."""
        each = [change(one) for one in self.each]
        return TargetCoefficients(
            each,
            self.correlation,
            names=each[0].names,
            targets=self.targets,
            label=self.label,
        )

    def contrast(self, weights: Mapping[str, float] | ArrayLike) -> dict[str, RowDistribution]:
        """Distribution of a weighted sum of coefficients, for each target by its name.

        Parameters and errors as of one target, ``marginal(target).contrast``.
        """
        return {
            name: one.contrast(weights) for name, one in zip(self.labels, self.each, strict=True)
        }

    def marginal(self, target: int | str) -> Joint:
        """Joint distribution of the coefficients of one target, by its place or its name."""
        if isinstance(target, str):
            if target not in self.labels:
                raise ValueError(
                    f"there is no {self.label} {target!r}: give one of {', '.join(self.labels)}"
                )
            return self.each[self.labels.index(target)]
        return self.each[target]

    @property
    def labels(self) -> tuple[str, ...]:
        """(q,) names of the targets: y0, y1, ... if they have none."""
        return self.targets or tuple(f"y{place}" for place in range(len(self.each)))

    @property
    def mean(self) -> Array:
        """(q, p) means."""
        return np.stack([one.mean for one in self.each])

    def to_frame(self, level: float = 0.95) -> Any:
        """Table of all coefficients: a pandas data frame, with a row for each, target by target.

        As of one target, with the name of the target in front.
        """
        return tabulate_each(self, [one.marginal() for one in self.each], level)

    def project(self, X: Array, shift: Array) -> Any:
        """Raise ``ValueError``: sums of coefficients are asked for target by target."""
        raise ValueError(
            f"there are {len(self.each)} {self.label}s: posterior_.marginal({self.label}).project"
            "(rows) is the posterior of one, and sample_mean draws from all of them together"
        )

    def std(self) -> Array:
        """(q, p) standard deviations."""
        return np.stack([one.std() for one in self.each])

    def interval(self, level: float) -> Array:
        """(q, p, 2) ends of the central interval of each coefficient by itself."""
        return np.stack([one.interval(level) for one in self.each])

    def rvs(
        self,
        size: int,
        random_state: int | np.random.Generator | None = None,
        *,
        rng: int | np.random.Generator | None = None,
    ) -> Array:
        """Joint draws (size, q, p) of the coefficients of all targets.

        W = mean + R^-1 E L', E (p, q) standard normal and Sigma = L L' inverse-Wishart (Bartlett's
        decomposition); where a target's is a mixture, all targets take nodes of the same rank.
        """
        rng = np.random.default_rng(random_state if rng is None else rng)
        q, p = len(self.each), len(self.names)
        parts = [find_components(one) for one in self.each]
        df = min(getattr(one, "df", np.inf) for components, _ in parts for one in components)
        roots = np.linalg.cholesky(self.correlation) @ _roots(rng, size, q, df)
        normal = roots @ rng.standard_normal((size, q, p))
        rank = rng.random(size)
        draws = np.empty((size, q, p))
        for target, (components, weights) in enumerate(parts):
            which = np.searchsorted(np.cumsum(weights)[:-1], rank, side="right")
            for place, part in enumerate(components):
                part.rvs(random_state=0)  # refuses what is improper
                mine = which == place
                steps = solve_triangle(part.precision_root, normal[mine, target].T)
                draws[mine, target] = part.mean + part.scale * steps.T
        return draws


def split_targets(joint: Any) -> tuple[Any, ...]:
    """The joint distribution of each target's coefficients; of one target, itself."""
    return getattr(joint, "each", (joint,))


def tabulate_each(joint: Any, each: Sequence[RowDistribution], level: float) -> Any:
    """The table of ``to_frame``, of coefficients with these marginals, target by target."""
    parts = split_targets(joint)
    frames = [tabulate(*part, level) for part in zip(parts, each, strict=True)]
    if parts == (joint,):
        return frames[0]
    for name, frame in zip(joint.labels, frames, strict=True):
        frame.insert(0, joint.label, name)
    return require_pandas().concat(frames)


def find_components(joint: Any) -> tuple[Sequence[Any], Array]:
    """The components of a mixture, and their weights; of what is none, itself."""
    return getattr(joint, "components", (joint,)), np.asarray(getattr(joint, "weights", [1.0]))


def _roots(rng: np.random.Generator, size: int, q: int, df: float) -> Array:
    """(size, q, q) roots of inverse-Wishart draws whose diagonal is df / chi^2 of df each."""
    if not np.isfinite(df):
        return np.broadcast_to(np.eye(q), (size, q, q))
    lower = np.tril(rng.standard_normal((size, q, q)), -1)
    freedom = df + q - 1.0 - np.arange(q)
    np.einsum("sii->si", lower)[...] = np.sqrt(rng.chisquare(freedom, (size, q)))
    inverse = np.linalg.inv(lower)
    return np.sqrt(df) * np.swapaxes(inverse, 1, 2)


__all__ = ["TargetCoefficients"]
