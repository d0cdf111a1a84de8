"""A posterior as a few of one factor each, with weights: what draws and exports are made from."""

from __future__ import annotations

from posterity.posteriors import LinearPosterior

Components = list[tuple[float, LinearPosterior]]


def components(posterior: LinearPosterior, asked: str) -> Components:
    """Weights, of sum 1, and posteriors whose factor is all that they know.

    Raises ``ValueError``, which names what was ``asked``, where there is no such form, or where a
    direction is still open.
    """
    found = list(posterior.parts)
    for _, node in found:
        if not node.is_one_factor:
            raise ValueError(
                f"{asked} needs a posterior that is one factor, and this one averages over "
                "several: use predict_distribution, or forgetting other than Adaptive and "
                "Changepoint"
            )
        if not node.factor.determined.all():
            raise ValueError(
                f"{asked} needs a proper posterior, and a combination of coefficients with a "
                "flat prior is not determined yet: learn more rows, or give a prior_precision "
                "above 0"
            )
    return found
