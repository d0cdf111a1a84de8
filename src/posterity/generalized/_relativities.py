"""The tariff table: each factor's levels, as ratios to the one that has most exposure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.distributions.guesses import tell_call


class HasRelativities:
    """What models of ratios say of their factors."""

    @tell_call
    def relativities(
        self: Any, X: Any, exposure: ArrayLike | None = None, level: float = 0.95
    ) -> Any:
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
            If coefficients are no logs of ratios, or ``X`` has no factors of the model.

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
        levels: dict[str, list[str]] = {}
        for name in self.summary().index:
            factor, is_level, value = str(name).partition("=")
            if is_level and factor in getattr(X, "columns", ()):
                levels.setdefault(factor, []).append(value)
        if not levels:
            raise ValueError(
                "X has no column of text or categories that the model learned: give the data frame "
                "that it was fitted to"
            )
        years = np.broadcast_to(np.asarray(1.0 if exposure is None else exposure, float), len(X))
        parts = []
        for factor, known in levels.items():
            rows = pd.DataFrame({"level": np.asarray(X[factor]).astype(str), "exposure": years})
            sums = rows.groupby("level")["exposure"].agg(["sum", "count"]).reindex(known)
            sums = sums.fillna(0.0)
            table = self.summary(level, base={factor: str(sums["sum"].idxmax())})
            table = table.loc[[f"{factor}={value}" for value in known]]
            told = {"factor": factor, "level": known}
            ends = {"relativity": ratio, "low": f"{ratio}_low", "high": f"{ratio}_high"}
            told |= {name: table[column].to_numpy(float) for name, column in ends.items()}
            told |= {"exposure": sums["sum"].to_numpy(), "rows": sums["count"].to_numpy(int)}
            parts.append(pd.DataFrame(told))
        return pd.concat(parts, ignore_index=True)
