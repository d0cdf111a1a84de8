"""Sines and cosines of a given period."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import Array
from posterity.basis._domain import DomainTransformer, check_count, check_positive


@dataclass(kw_only=True, eq=False, repr=False)
class Fourier(DomainTransformer):
    """Sines and cosines of each feature, for periodic functions.

    Parameters
    ----------
    n_frequencies : int, default 3
        Pairs for each feature: periods ``period``, ``period / 2``, ..., ``period / n_frequencies``.
    period : float or (d,) array, optional
        In the unit of the features, as 24.0 for hours. None: the length of the domain; a function
        then comes back to where it began at the domain's other end.
    domain : (low, high) or (d, 2) array, optional
        Range of every feature, or of each; None: the range in the batch that ``fit`` sees. With
        ``period`` given it only matters where rows outside are not to be extended to.
    outside : {"extend", "clip", "raise"}, default "extend"
        ``"extend"``: the function repeats itself.

    Attributes
    ----------
    domain_ : (d, 2) array
    period_ : (d,) array

    Examples
    --------
    >>> basis = Fourier(n_frequencies=1, period=24.0).fit([[0.0]])
    >>> basis.transform([[6.0], [6.0 + 24.0 * 365]]).round(12)
    array([[1., 0.],
           [1., 0.]])
    >>> basis.get_feature_names_out(["hour"]).tolist()
    ['hour_sin1', 'hour_cos1']
    """

    n_frequencies: int = 3
    period: ArrayLike | None = None
    domain: ArrayLike | None = None
    outside: str = "extend"

    def _needs_range(self) -> bool:
        return self.period is None

    def _begin(self, X: Array, y: ArrayLike | None = None) -> None:
        check_count("n_frequencies", self.n_frequencies)
        self._origin = self.domain_[:, 0] if self.period is None else np.zeros(X.shape[1])
        if self.period is None:
            self.period_ = self.domain_[:, 1] - self.domain_[:, 0]
        else:
            self.period_ = check_positive("period", self.period, X.shape[1])

    def _columns(self, X: Array) -> Array:
        # The remainder is exact: large values, as seconds since 1970, lose no digits to 2 pi.
        turns = np.fmod(X - self._origin, self.period_) / self.period_
        angles = 2.0 * np.pi * turns[:, :, None] * np.arange(1, self.n_frequencies + 1)
        return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(X), -1)

    def _column_names(self, inputs: list[str]) -> list[str]:
        return [
            f"{name}_{wave}{k}"
            for name in inputs
            for k in range(1, self.n_frequencies + 1)
            for wave in ("sin", "cos")
        ]
