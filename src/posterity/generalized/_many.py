"""From an estimator's parameters to a posterior over many classes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from posterity.distributions import MultivariateNormal
from posterity.evidence import Integrated, Maximized, Strategy
from posterity.forgetting import Exponential, Forgetting, Stabilized
from posterity.noise import LOG_2PI
from posterity.posteriors import EvidencePosterior
from posterity.posteriors._softmax_full import FullContrasts
from posterity.posteriors._softmax_likelihood import helmert
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_shared import SharedContrasts
from posterity.posteriors.generalized import GeneralizedPosterior
from posterity.posteriors.softmax import SoftmaxPosterior
from posterity.priors import GaussianPrior

Array = NDArray[np.float64]

# Up to so many coefficients, (K - 1) p, and so many multiplications for a row, their square times
# K - 1, all of their covariance is kept; beyond, the classes share one factor.
LARGEST_FULL = 600
MOST_WORK = 4_000_000


def begun(
    n_classes: int,
    n_features: int,
    *,
    intercept: bool,
    precision: ArrayLike | str | Strategy,
    forgetting: Forgetting | None,
) -> SoftmaxPosterior:
    """The prior over the contrasts of ``n_classes`` classes, as a posterior that knows nothing.

    Raises ``ValueError`` for settings that are there for two classes only.
    """
    learns = isinstance(precision, str) or (
        hasattr(precision, "choose") and not isinstance(precision, np.ndarray)
    )
    if learns and precision != "auto" and not isinstance(precision, Integrated | Maximized):
        raise ValueError(
            f"prior_precision is {precision!r}, which is there for two classes only: with "
            f'{n_classes} use "auto" or numbers'
        )
    if forgetting is not None and not isinstance(forgetting, Exponential | Stabilized):
        raise ValueError(
            f"forgetting is {forgetting!r}, which is there for two classes only: with {n_classes} "
            "use Stabilized or Exponential"
        )
    believed = GaussianPrior(0.0, 1.0 if learns else precision)  # type: ignore[arg-type]
    root = believed.factor(n_features, intercept=False).root.copy()
    p = n_features + int(intercept)
    kind = FullContrasts if keeps_all(n_classes, p) else SharedContrasts
    prior = ContrastPrior.of(root, intercept=intercept)
    rate = 1.0 if forgetting is None else forgetting.rate
    return SoftmaxPosterior(kind(n_classes, p), prior, learns, rate)


def keeps_all(n_classes: int, n_columns: int) -> bool:
    """Whether all of the contrasts' covariance is kept.

    Examples
    --------
    >>> keeps_all(10, 20), keeps_all(200, 2)
    (True, False)
    """
    size = (n_classes - 1) * n_columns
    return size <= LARGEST_FULL and (n_classes - 1) * size**2 <= MOST_WORK


def check_growth(n_classes: int, n_columns: int) -> None:
    """Raise ``ValueError`` where classes that come late would be more than can be kept apart."""
    if not keeps_all(n_classes, n_columns):
        raise ValueError(
            f"y has classes that came late, {n_classes} in all: with {n_columns} columns so many "
            "must share one factor, which can't grow; name all classes in the first call, as in "
            "partial_fit(X, y, classes=...)"
        )


def from_two(posterior: Any, fresh: SoftmaxPosterior, *, flipped: bool) -> SoftmaxPosterior:
    """What a posterior of two classes knows, with the first contrast of ``fresh``.

    The log odds of the second class (of the first, if ``flipped``) are sqrt(2) times the contrast,
    or minus that. The features' means and squares are those of the site rows.
    """
    if not isinstance(posterior, GeneralizedPosterior):
        raise ValueError(
            "a third class came late, and this way to forget is there for two classes only: use "
            "Stabilized or Exponential"
        )
    inner = posterior.inner
    data = inner.known.data.factor if isinstance(inner, EvidencePosterior) else inner.factor.copy()
    count = data.count
    if not isinstance(inner, EvidencePosterior):
        data.take_out(inner.prior)
    contrasts = fresh.contrasts
    assert isinstance(contrasts, FullContrasts | SharedContrasts)
    two = FullContrasts(2, contrasts.n_columns)
    sign = -1.0 if flipped else 1.0
    two.data.append(np.sqrt(2.0) * data.root, sign * data.moments)
    two.constant = posterior.account.log_sites - 0.5 * LOG_2PI * count
    two.constant -= 0.5 * float(data.residual()[0, 0])
    fresh.contrasts = two
    fresh.n_observations = posterior.n_observations
    fresh.n_effective = posterior.n_effective
    _take_moments(fresh.prior, data.root, fresh.n_effective)
    fresh.wait()
    if fresh.learns and fresh.n_effective >= fresh.due:
        fresh.prior = fresh.prior.scaled(two.scale(fresh.prior))
    return fresh


def _take_moments(prior: ContrastPrior, root: Array, count: float) -> None:
    """Means and squares of the columns, as if ``count`` rows had those of a factor's root."""
    first = root[0, 0] if prior.intercept else 0.0
    below = np.square(root).sum(axis=0)
    if prior.intercept and first > 0.0:
        prior.center = root[0] / first
        prior.squares = np.square(root[1:]).sum(axis=0) * count / first**2
    elif not prior.intercept and count > 0.0:
        prior.squares = below  # of site rows: only their proportions count
    prior.count = count


def joint(posterior: SoftmaxPosterior, names: list[str], classes: list[str]) -> MultivariateNormal:
    """Joint posterior of what each class has more of than the first: class by class.

    With U = T V, T (K - 1, K - 1) the differences of the rows of H to its first.
    """
    contrasts = helmert(len(classes))
    turn = contrasts[1:] - contrasts[0]
    mean = (turn @ posterior.contrasts.mean(posterior.prior)).ravel()
    known = posterior.contrasts.joined(posterior.prior)
    p = len(names)
    root = known.root if len(known.root) == len(mean) else np.kron(np.eye(len(turn)), known.root)
    whole = root @ np.kron(np.linalg.inv(turn), np.eye(p))
    turned = np.asarray(np.linalg.qr(whole, mode="r"))
    root = turned * np.where(np.diag(turned) < 0.0, -1.0, 1.0)[:, None]
    labels = tuple(f"{name} ({label} - {classes[0]})" for label in classes[1:] for name in names)
    return MultivariateNormal(mean, root, 1.0, names=labels)
