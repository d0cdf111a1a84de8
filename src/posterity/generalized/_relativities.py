"""The tariff table: each factor's levels, as ratios to the one that has most exposure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import DataFrame
from posterity.distributions.guesses import tell_call
from posterity.linear.inputs import read_points, read_weights


class HasRelativities:
    """What models of ratios say of their factors."""

    @tell_call
    def relativities(
        self: Any, X: Any, exposure: ArrayLike | None = None, level: float = 0.95
    ) -> DataFrame:
        """Tariff table: the levels of each factor, as ratios to the one of most exposure.

        Parameters
        ----------
        X : data frame
            Rows whose exposure is summed, as those learned; its columns of text or categories are
            the factors.
        exposure : (n,) array, optional
            Exposure of each row, as policy years; 1 by default.
        level : float, default 0.95
            Probability that an interval holds the relativity.

        Returns
        -------
        pandas.DataFrame
            Columns factor, level, relativity, low, high, exposure and rows.

        Raises
        ------
        ValueError
            If coefficients are no logs of ratios, ``X`` has no factors of the model or lacks one of
            its columns, or an exposure is negative.

        Examples
        --------
        >>> import pandas as pd
        >>> from posterity import BayesianPoissonRegression
        >>> policies = pd.DataFrame({"zone": ["city", "city", "country"] * 20})
        >>> model = BayesianPoissonRegression().fit(policies, [2, 1, 0] * 20)
        >>> model.relativities(policies)[["level", "rows"]].to_numpy().tolist()
        [['city', 40], ['country', 20]]
        """
        import pandas as pd

        ratio = self._likelihood().ratio
        if not ratio:
            raise ValueError("coefficients are no logs of ratios here: there are no relativities")
        known, columns = self._categories, getattr(X, "columns", ())
        if known is None or not any(one.name in columns for one in known.each):
            raise ValueError(
                "X has no column of text or categories that the model learned: give the data frame "
                "that it was fitted to"
            )
        rows = read_points(self, X)
        years = read_weights(exposure, len(rows), "exposure")
        parts = []
        for one in known.each:
            numbers, size = rows[:, one.place].astype(np.intp), len(one.levels) + 1
            sums, counts = np.bincount(numbers, years, size)[1:], np.bincount(numbers, None, size)
            table = self.summary(level, base={one.name: one.levels[int(np.argmax(sums))]})
            table = table.loc[[f"{one.name}={value}" for value in one.levels]]
            told = {"factor": one.name, "level": one.levels}
            ends = {"relativity": ratio, "low": f"{ratio}_low", "high": f"{ratio}_high"}
            told |= {name: table[column].to_numpy(float) for name, column in ends.items()}
            parts.append(pd.DataFrame({**told, "exposure": 1.0 * sums, "rows": counts[1:]}))
        return pd.concat(parts, ignore_index=True)
