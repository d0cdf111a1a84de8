"""From an estimator's parameters to a posterior over many classes, and from two classes to it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.evidence import OddsScale, Relevance, Strategy
from posterity.forgetting import Forgetting
from posterity.linear.strategies import begin_forgetting, choose_strategy
from posterity.noise import LOG_2PI
from posterity.posteriors._contrast_parts import transform_features
from posterity.posteriors._softmax_contrasts import Contrasts
from posterity.posteriors._softmax_prior import ContrastPrior
from posterity.posteriors._softmax_reading import Approximation
from posterity.posteriors.softmax import SoftmaxPosterior
from posterity.priors import GaussianPrior
from posterity.safety import check_memory

# Up to so many coefficients, (K - 1) p, and so many multiplications for a row, their square times
# K - 1, all of their covariance is kept; beyond, that of each class.
LARGEST_FULL = 600
MOST_WORK = 4_000_000
# "auto" has another belief here than with two classes. Under that of Integrated, nearly flat in the
# log of the scale, few rows speak too well of the scale that their sites were found with: of
# probabilities, 95% intervals after fit held .72 instead of .79 (10 classes, 10 features, 300 rows)
# and .86 instead of .89 (3 classes, 4 features, 100 rows), partly because only this one is looked
# for anew in fit, and predictions were a little worse;
# in batches both did as well.
PRIOR_STRATEGIES: dict[str, Strategy] = {"auto": OddsScale(), "ard": Relevance()}


def begin_posterior(
    n_classes: int,
    n_features: int,
    *,
    intercept: bool,
    precision: ArrayLike | str | Strategy,
    forgetting: Forgetting | str | None,
    approximation: Approximation = "auto",
    shapes: Array | None = None,
) -> Any:
    """The prior over the contrasts of ``n_classes`` classes, as a posterior that knows nothing.

    Raises ``ValueError`` for settings that so many can't have.
    """
    strategy = choose_strategy(precision, PRIOR_STRATEGIES)
    linear_moments = GaussianPrior(0.0, 1.0 if strategy is not None else precision)  # type: ignore[arg-type]
    root = linear_moments.factor(n_features, intercept=False).root.copy()
    p = n_features + int(intercept)
    separate = not keeps_full_covariance(n_classes, p)
    if separate and not (strategy is None or isinstance(strategy, OddsScale)):
        raise ValueError(
            f"prior_precision is {precision!r}, but {n_classes} classes of {p} coefficients are "
            'too many for this prior: use "auto" or numbers'
        )
    if separate:
        check_memory(32.0 * n_classes * p * p, f"a model of {n_classes} classes and {p} columns")
    contrasts = Contrasts.before_data(n_classes, p, separate=separate)
    prior = ContrastPrior.of(root, intercept=intercept)
    shapes = None if strategy is None else shapes
    posterior = SoftmaxPosterior(contrasts, prior, strategy, shapes, approximation)
    return begin_forgetting(posterior, forgetting)


def keeps_full_covariance(n_classes: int, n_columns: int) -> bool:
    """Return True if the full covariance of the contrasts is kept.

    Examples
    --------
    >>> keeps_full_covariance(10, 20), keeps_full_covariance(200, 2)
    (True, False)
    """
    size = (n_classes - 1) * n_columns
    return size <= LARGEST_FULL and (n_classes - 1) * size**2 <= MOST_WORK


def check_growth(n_classes: int, n_columns: int) -> None:
    """Raise ``ValueError`` where classes that come late would be more than can be kept apart."""
    if not keeps_full_covariance(n_classes, n_columns):
        raise ValueError(
            f"y has new classes, {n_classes} in all: with {n_columns} columns so many can't be "
            "added later; name all classes in the first call, as in "
            "partial_fit(X, y, classes=...)"
        )


def convert_from_two(posterior: Any, fresh: SoftmaxPosterior, *, flipped: bool) -> SoftmaxPosterior:
    """Convert the posterior of two classes to the one contrast of ``fresh``.

    The log odds of the second class (of the first, if ``flipped``) are sqrt(2) times the contrast,
    or minus that. The features' means and squares are those of the site rows. A window has the rows
    themselves.
    """
    if hasattr(posterior, "take_rows"):
        cast(Any, fresh).take_rows(posterior, lambda y: 1.0 - y if flipped else y)
        return fresh
    data, statistics = posterior.without_prior(), posterior.statistics
    size = np.sqrt(2.0) * (-1.0 if flipped else 1.0)
    recast = transform_features(data, size * np.eye(fresh.n_coefficients))
    (part,) = fresh.contrasts.parts
    part.copy_from(recast)
    counts = posterior.n_effective, posterior.n_observations
    part.factor.set_triangle(part.factor.triangle, *counts)
    fresh.contrasts.constant = statistics.log_sites - 0.5 * LOG_2PI * data.factor.count
    fresh.contrasts.log_predictive = statistics.log_predictive
    _take_moments(fresh.prior, data.factor.root, fresh.n_effective)
    if fresh.strategy is not None:
        fresh.prior = fresh.prior.scaled(1.0)
    fresh.postpone_prior()
    fresh.choose_if_due()
    return fresh


def _take_moments(prior: ContrastPrior, root: Array, count: float) -> None:
    """Means and squares of the columns, as if ``count`` rows had those of a factor's root."""
    first = root[0, 0] if prior.intercept else 0.0
    if prior.intercept and first > 0.0:
        prior.center = root[0] / first
        prior.squares = np.square(root[1:]).sum(axis=0) * count / first**2
    elif not prior.intercept and count > 0.0:
        # Only the proportions of site rows count.
        prior.squares = np.square(root).sum(axis=0)
    prior.count = count
