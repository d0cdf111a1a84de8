"""Gaussian bumps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.basis._domain import (
    LocalFunctions,
    check_choice,
    check_count,
    check_positive,
    spread,
)


@dataclass(kw_only=True, eq=False, repr=False)
class RadialBasis(LocalFunctions):
    """Gaussian bumps ``exp(-|x - centre|^2 / (2 width^2))``.

    Parameters
    ----------
    n_centers : int, default 10
        Bumps for each feature, when their places are not given.
    centers : {"even", "quantiles"}, (c,) or (c, d) array, default "even"
        ``"even"``: evenly over the domain, from end to end. ``"quantiles"``: with about equally
        many rows of the first batch between neighbours. (c,): these, for each feature by itself.
        (c, d): c points; each bump is around one of them, in all features at once.
    width : float or (d,) array, optional
        In the unit of the features. None: the mean distance of neighbouring centres.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: the bumps die out, and the model falls back to its intercept. So does its
        uncertainty: far outside it is that of the intercept and the noise alone.

    Attributes
    ----------
    domain_ : (d, 2) array
    centers_ : list of (c,) arrays, one for each feature, or a (c, d) array
    width_ : (d,) array

    Notes
    -----
    Bishop (2006), eq. 3.4.

    Examples
    --------
    >>> basis = RadialBasis(n_centers=3, domain=(0.0, 2.0)).fit([[0.5]])
    >>> basis.transform([[0.0], [1.0], [2.0]]).round(2)
    array([[1.  , 0.61, 0.14],
           [0.61, 1.  , 0.61],
           [0.14, 0.61, 1.  ]])
    """

    n_centers: int = 10
    centers: str | ArrayLike = "even"
    width: ArrayLike | None = None
    domain: ArrayLike | None = None
    outside: str = "extend"

    def _needs_range(self) -> bool:
        return isinstance(self.centers, str)

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        d = X.shape[1]
        centers = self._place_centers(X)
        width = None if self.width is None else check_positive("width", self.width, d)
        if width is None and isinstance(centers, list):
            width = np.array(
                [self._compute_mean_gap(places, f) for f, places in enumerate(centers)]
            )
        if width is None:
            raise ValueError("width is None: bumps around points in several features need a width")
        self.centers_, self.width_ = centers, width

    def _place_centers(self, X: Array) -> list[Array] | Array:
        d = X.shape[1]
        if isinstance(self.centers, str):
            check_choice("centers", self.centers, ("even", "quantiles"))
            count = check_count("n_centers", self.n_centers, least=2)
            return [spread(self.centers, X[:, f], self.domain_[f], count) for f in range(d)]
        places = np.asarray(self.centers, dtype=np.float64)
        if not np.isfinite(places).all():
            raise ValueError("centers must be finite: give every bump a finite centre")
        if places.ndim == 1 and len(places):
            return [places.copy() for _ in range(d)]
        if places.ndim != 2 or places.shape[1] != d or not len(places):
            raise ValueError(
                f"centers has shape {places.shape}: it must be 'even', 'quantiles', (c,) places "
                f"for each feature, or (c, {d}) points"
            )
        return [places[:, 0].copy()] if d == 1 else places.copy()

    def _compute_mean_gap(self, places: Array, feature: int) -> float:
        """Mean distance of neighbours."""
        span = float(places.max() - places.min())
        if span == 0.0:
            raise ValueError(
                f"width is None, and feature {self._label(feature)} has a single centre, so "
                "there is no distance between centres: give width="
            )
        return span / (len(np.unique(places)) - 1)

    def _columns(self, X: Array) -> Array:
        if isinstance(self.centers_, list):
            away = [
                ((X[:, [f]] - places) / self.width_[f]) ** 2
                for f, places in enumerate(self.centers_)
            ]
            squares = np.concatenate(away, axis=1)
        else:
            squares = np.zeros((len(X), len(self.centers_)))
            for f, width in enumerate(self.width_):
                squares += ((X[:, [f]] - self.centers_[:, f]) / width) ** 2
        return np.exp(-0.5 * squares)

    def _column_names(self, inputs: list[str]) -> list[str]:
        if not isinstance(self.centers_, list):
            return [f"bump{index}" for index in range(len(self.centers_))]
        return [
            f"{name}_bump{index}"
            for name, places in zip(inputs, self.centers_, strict=True)
            for index in range(len(places))
        ]
