"""What a fitted model says: tables, shares of variance, marginal means, curves, a sentence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from posterity.aliases import Array, Axes, DataFrame
from posterity.distributions.guesses import TellsNames, did_you_mean
from posterity.likelihoods import Likelihood
from posterity.linear.ratios import add_ratios
from posterity.model.checks import split_trials
from posterity.model.design import Design
from posterity.model.drawing import draw_curve
from posterity.model.effects import average_effects
from posterity.model.engines import TermRows
from posterity.model.explained import explain_variance
from posterity.model.formula import Curve
from posterity.model.marginal import Marginal
from posterity.model.sentences import write_report
from posterity.model.tables import (
    add_expected,
    list_curve,
    list_group_effects,
    list_sums,
    list_variances,
    summarize,
)

# What other libraries call it.
OUR_NAMES = {
    **dict.fromkeys(("coef_", "confint", "conf_int", "fixef", "params", "intercept_"), "summary()"),
    **dict.fromkeys(("ranef", "random_effects", "random_effects_"), "group_effects('the group')"),
    **dict.fromkeys(("icc", "r2", "rsquared"), "explained_variance()"),
    **dict.fromkeys(("posterior_", "pvalues", "tvalues"), "summary(), which has intervals"),
    **dict.fromkeys(("VarCorr", "vc", "sigma_", "scale"), "variance_components()"),
    **dict.fromkeys(("aic", "anova", "bic", "loo"), "leave_one_out(frame), or log_evidence_"),
    **dict.fromkeys(("fitted", "fittedvalues"), "predict(frame)"),
    **dict.fromkeys(("resid", "residuals"), "posterity.plots.plot_residuals(model, frame, y)"),
    "compare": "posterity.evaluation.compare(models, frame, y)",
    "emmeans": "means('the factor'), or contrast('the factor', one, other)",
    "plot": "posterity.plots.plot_intervals(model.summary()), or plot_curve(name)",
    "explain": "summary(), or average_effects(frame)",
    "predict_survival": "predict_distribution(frame).sf(time)",
    "relativities": "contrast('the factor', one, other), or summary()",
}


class ModelReader(TellsNames):
    """Reads what a model has learned."""

    formula: str
    likelihood: str | Likelihood
    _design: Design
    _engine: TermRows

    _our_names = OUR_NAMES

    def summary(self, level: float = 0.95) -> DataFrame:
        """Table of the fixed effects (pandas): name, mean, sd, low and high, labelled by name."""
        return summarize(self._fitted, self._design, level)

    def variance_components(self, level: float = 0.95) -> DataFrame:
        """Table of standard deviations, correlations and the noise (pandas).

        The columns are name, mean, sd, low, high and ``reml``, the value of the largest evidence:
        for numbers, the estimate of restricted maximum likelihood.
        """
        return list_variances(self._fitted, level)

    def group_effects(self, group: str | None = None, level: float = 0.95) -> DataFrame:
        """Table of the effects of a group's levels (pandas): level, effect, mean, sd, low, high.

        ``group`` as the formula writes it, which has to be given where there are several; of
        nested groups ``"a:b"``.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1], "shop": ["a", "a", "b", "b"]}
        >>> effects = Model("y ~ 1 + (1 | shop)").fit(frame).group_effects("shop")
        >>> effects["level"].tolist(), effects["mean"].round().tolist()
        (['a', 'b'], [-1.0, 1.0])
        """
        engine = self._fitted
        names = list(dict.fromkeys(one.name for one in self._design.formula.groups))
        return list_group_effects(engine, _pick(group, names, names, "group"), level)

    def curve(self, name: str | None = None, level: float = 0.95) -> DataFrame:
        """Table of a curve (pandas): x, mean, sd, low and high, less its mean over these places.

        ``name`` as the formula writes it, ``"s(x)"``, or what it is over, ``"x"``; one has to be
        given where there are several. Of labels and
        counts on the scale of log odds and log rates. Of ``s(x, by=g)`` the column level comes
        first; of ``s(x, by=z)`` with numbers z the values are the weight of z at x, and no mean is
        taken off. A surface has a column for each of its own instead of x, at 30 x 30 places.

        Examples
        --------
        >>> import numpy as np
        >>> from posterity import Model
        >>> x = np.linspace(0.0, 6.0, 60)
        >>> model = Model("y ~ s(x)").fit({"x": x, "y": np.sin(x)})
        >>> curve = model.curve("x")
        >>> bool(np.abs(curve["mean"] - np.sin(curve["x"])).max() < 0.02)
        True
        """
        engine = self._fitted
        return list_curve(engine, self._design, self._find_curve(name), level)

    def plot_curve(
        self, name: str | None = None, ax: Axes | None = None, *, level: float = 0.95
    ) -> Axes:
        """Draw a curve with its interval (needs Matplotlib); parameters as in :meth:`curve`.

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> import numpy as np
        >>> from posterity import Model
        >>> x = np.linspace(0.0, 6.0, 60)
        >>> model = Model("y ~ s(x)").fit({"x": x, "y": np.sin(x)})
        >>> model.plot_curve("x", Figure().subplots()).get_xlabel()
        'x'
        """
        return draw_curve(self._find_curve(name), self.curve(name, level), ax, level)

    def means(self, factor: str | None = None, level: float = 0.95) -> DataFrame:
        """Table of the marginal means of a factor's levels (pandas): mean, sd, low, high.

        The linear predictor with other numbers at their means over the rows learned (``log(x)`` at
        the mean of ``log(x)``), the levels of other factors weighted equally, effects of groups
        and offsets at 0 (Searle, Speed & Milliken 1980; emmeans in R). Of labels and counts it is
        the log odds or the log rate, and ``expected``, ``expected_low`` and ``expected_high`` are
        the probability of the second label or the rate there.

        Parameters
        ----------
        factor : str, optional
            As the formula writes it: ``"city"``, ``"C(year)"``; needed if there are several.
        level : float, default 0.95
            Probability that an interval holds the mean.

        Raises
        ------
        ValueError
            If there is no such factor, or a product of factors has pairs of levels without rows.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.2, 3.0, 3.2], "shop": ["a", "a", "b", "b"]}
        >>> Model("y ~ shop").fit(frame).means("shop")["mean"].round(1).tolist()
        [1.1, 3.1]
        """
        marginal = Marginal(self._fitted, self._design, factor)
        table = list_sums(self._engine, marginal.predict(np.eye(len(marginal.labels))), level)
        table.index = marginal.labels
        return add_expected(self._engine, table)

    def contrast(self, factor: str, one: object, other: object, level: float = 0.95) -> DataFrame:
        """Table of the difference of two marginal means (pandas), labelled "one - other".

        Of labels and counts with the ratio of odds or rates. Parameters and errors as in
        :meth:`means`; ``one`` and ``other`` are levels of the factor.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.2, 3.0, 3.2], "shop": ["a", "a", "b", "b"]}
        >>> Model("y ~ shop").fit(frame).contrast("shop", "b", "a")["mean"].round(1)
        b - a    2.0
        Name: mean, dtype: float64
        """
        marginal = Marginal(self._fitted, self._design, factor)
        shares = np.zeros((1, len(marginal.labels)))
        shares[0, marginal.place(one)] += 1.0
        shares[0, marginal.place(other)] -= 1.0
        table = list_sums(self._engine, marginal.predict(shares), level)
        table.index = [f"{one} - {other}"]
        return add_ratios(table, self._engine._likelihood().ratio)

    def average_effects(
        self, frame: object, *, per: Literal["unit", "sd"] = "unit", level: float = 0.95
    ) -> DataFrame:
        """Mean change of the expected target when one column changes and the others stay the same.

        Also known as average marginal effects. In units of the target: of labels the change of the
        probability, of counts that of the expected count. Groups stay those of the rows.

        Parameters
        ----------
        frame : data frame, or mapping of names to columns
            Rows to average over, with the columns to the right of ``~``.
        per : "unit" or "sd"
            How much a number goes up by: 1, or its standard deviation in ``frame``; one that is 0
            or 1 in all rows goes from 0 to 1. A factor goes from its first level to each that the
            rows have. Where the step would leave the range of ``s(x)``, it comes from below.
        level : float, default 0.95
            Probability that an interval holds the effect.

        Returns
        -------
        pandas.DataFrame
            Columns name, mean, sd, low, high, probability_positive; a row for each column of fixed
            effects and curves, and each of its levels but the first.

        Notes
        -----
        The mean over rows of ``E[y | x + step] - E[y | x]`` (Gelman & Pardoe 2007). Where that is
        not linear in the weights, its interval is by its mean slopes.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [0.0, 2.1, 3.9, 6.0], "x": [0.0, 1.0, 2.0, 3.0]}
        >>> Model("y ~ x").fit(frame).average_effects(frame)["mean"].round(1)
        x    2.0
        Name: mean, dtype: float64
        """
        return average_effects(self._fitted, self._design, frame, per, level)

    def explained_variance(self, level: float = 0.95) -> DataFrame:
        """Table of R2 and of intraclass correlations (pandas): mean, sd, low, high.

        ``R2 marginal`` is the share of the variance that fixed effects and curves explain,
        ``R2 conditional`` what they and groups do (Nakagawa & Schielzeth 2013; slopes by group as
        in Johnson 2014). ``ICC(g)`` is the share of group g in the variance that fixed effects
        leave. The rest is the variance of the noise; of labels that of the logistic distribution,
        of counts log(1 + 1 / mean count) (Nakagawa, Johnson & Schielzeth 2017). Offsets count for
        nothing. Without a constant or a factor, variances of fixed effects are squares around 0.

        Intervals are of the posterior of variances and effects. Squares of effects that are not
        known well are larger on average: where nothing is explained, the mean of R2 is above 0.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1, 5.0, 4.9], "shop": ["a", "a", "b", "b", "c", "c"]}
        >>> Model("y ~ 1 + (1 | shop)").fit(frame).explained_variance().index.tolist()
        ['R2 marginal', 'R2 conditional', 'ICC(shop)']
        """
        return explain_variance(self._fitted, self._design, level)

    def report(self, level: float = 0.95) -> str:
        """What a paper says of the model: rows, levels, effects, variances, R2, with intervals.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1, 5.0, 4.9], "shop": ["a", "a", "b", "b", "c", "c"]}
        >>> print(Model("y ~ 1 + (1 | shop)").fit(frame).report()[:68])
        A linear mixed model, y ~ 1 + (1 | shop), was fitted to 6 rows of 3
        """
        tables = self.summary(level), self.variance_components(level)
        return write_report(
            self.formula, self._engine, [*tables, self.explained_variance(level)], level
        )

    def predict_proba(self, frame: object) -> Array:
        """(n, k) probabilities of labels, in the order of ``classes_``, or of ratings from 0 on.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"won": ["no", "yes", "yes"], "team": ["a", "b", "b"]}
        >>> model = Model("won ~ 1 + (1 | team)", "bernoulli").fit(frame)
        >>> model.classes_, model.predict_proba(frame).shape
        (array(['no', 'yes'], dtype='<U3'), (3, 2))
        """
        found = self._fitted.predict_distribution(self._design.read(frame))
        return np.asarray(found.probabilities)

    @property
    def classes_(self) -> Any:
        """The labels, sorted; an attribute of models of two labels alone."""
        return self._fitted.classes_

    def score(self, frame: object, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log predictive density of the rows' targets: the larger, the better.

        Parameters as in :meth:`fit`; of successes of trials that of a label.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1], "shop": ["a", "a", "b", "b"]}
        >>> models = [Model(formula).fit(frame) for formula in ("y ~ 1 + (1 | shop)", "y ~ 1")]
        >>> bool(models[0].score(frame) > models[1].score(frame))
        True
        """
        predicted = self._fitted.predict_distribution(self._design.read(frame))
        targets, trials = self._design.read_targets(frame, y)
        each: Any = [(targets, np.ones(len(predicted)))]
        if trials is not None:
            each = enumerate(split_trials(targets, trials))
        logs, counts = zip(
            *((count * self._fitted.log_densities(predicted, y), count) for y, count in each),
            strict=True,
        )
        weights = None if sample_weight is None else np.asarray(sample_weight)
        means = (np.average(sum(one), weights=weights) for one in (logs, counts))
        return float(next(means) / next(means))

    @property
    def n_observations_(self) -> float:
        """Sum of the weights of the rows learned."""
        return self._fitted.n_observations_

    @property
    def log_evidence_(self) -> float:
        """log p(y) of all rows learned, integrated over effects, variances and parameters.

        Flat directions, of the constant and of the log of the noise, have density 1. A fixed effect
        has a prior so wide that it costs some 7 nats in evidence whatever it tells: compare models
        that differ in groups, curves or likelihood by it, and fixed effects by their intervals.

        Examples
        --------
        >>> from posterity import Model
        >>> frame = {"y": [1.0, 1.1, 3.0, 3.1, 5.0, 4.9], "shop": ["a", "a", "b", "b", "c", "c"]}
        >>> one, other = Model("y ~ 1 + (1 | shop)").fit(frame), Model("y ~ 1").fit(frame)
        >>> bool(one.log_evidence_ > other.log_evidence_ + 2.0)
        True
        """
        return float(self._fitted._posterior.reading().log_evidence)

    @property
    def _fitted(self) -> TermRows:
        engine: TermRows | None = self.__dict__.get("_engine")
        if engine is None:
            raise NotFittedError(
                "This Model has learned nothing yet: call fit or partial_fit first"
            )
        return engine

    def _find_curve(self, name: str | None) -> Curve:
        """A curve by what it is called, or what it is over."""
        curves = self._design.formula.curves
        known = {", ".join(map(str, curve.over)): curve for curve in curves[::-1]}
        known |= {curve.name: curve for curve in curves}
        return known[_pick(name, known, [curve.name for curve in curves], "curve")]


def _pick(name: str | None, known: Collection[str], shown: Sequence[str], what: str) -> str:
    """The name, or the only one where none is given; raises ``ValueError``."""
    has = ", ".join(map(repr, shown)) or "none"
    if name is None and len(shown) == 1:
        return shown[0]
    if name is None:
        raise ValueError(f"say which {what} of the formula it should be: it has {has}")
    if name not in known:
        raise ValueError(
            f"the formula has no {what} {name!r}{did_you_mean(name, known)}: it has {has}"
        )
    return name
