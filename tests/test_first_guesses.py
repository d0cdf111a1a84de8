"""What one types first, without reading: each works, or says what does.

A guess is a line or two of Python, or a command. Those with a message are refused by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
    GroupedRegression,
    Model,
)
from posterity.bandits import Bandit
from posterity.datasets import load_rides
from posterity.experiments import Experiment
from posterity.factorization import BayesianFactorizationMachine
from posterity.off_policy import Log, evaluate, what_if

pandas = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
N = 120
X = pandas.DataFrame({"age": RNG.normal(size=N), "hour": RNG.uniform(0, 24, N)})
X["size"] = RNG.normal(size=N)
LINE = 0.3 + 0.8 * X["age"] - 0.2 * X["size"]
Y = LINE + 0.5 * RNG.normal(size=N)
YES = np.where(RNG.random(N) < 1.0 / (1.0 + np.exp(-LINE)), "yes", "no")
COUNTS = RNG.poisson(np.exp(LINE))
GROUPS = np.repeat(list("abcdef"), N // 6)
LINEAR = BayesianLinearRegression().fit(X, Y)
LABELS = BayesianLogisticRegression().fit(X, YES)
POISSON = BayesianPoissonRegression().fit(X, COUNTS)
ROBUST = BayesianRobustRegression().fit(X, Y)
PIPE = make_pipeline(StandardScaler(), BayesianLinearRegression()).fit(X, Y)
MIXED_ROWS = X.assign(g=GROUPS)
MIXED = Model("y ~ age + (1 | g)").fit(MIXED_ROWS.assign(y=Y))
TARIFF = BayesianPoissonRegression().fit(MIXED_ROWS, np.minimum(COUNTS, 1))
SEVERAL = BayesianLinearRegression().fit(X[["age"]], X[["size", "hour"]])
PROPENSITIES = ("propensity", "propensities")
VISITS = pandas.DataFrame({"arm": [*"ab"] * 60, "reward": Y, "id": [f"v{n}" for n in range(N)]})
VISITS["day"] = pandas.date_range("2026-01-01", periods=N)
ORDERS = [["ann", "tea"], ["bob", "tea"], ["bob", "rum"], ["bob", "gin"]]
MACHINE = BayesianFactorizationMachine(rank=0).fit(ORDERS, [4.0, 4.0, 5.0, 1.0])
ROW = {"age": 0.5, "hour": 12.0, "size": 0.0}

IMPORTS = """
import posterity.sparse
from posterity import *
from posterity.basis import Fourier, Spline
from posterity.calibration import Conformal
from matplotlib.figure import Figure
from posterity.distributions import Normal
from posterity.evaluation import score_survival
from posterity.experiments import plan
from posterity.generalized import VaryingFeatures
from posterity.plots import *
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
"""
PYTHON = {
    # what was learned
    "LINEAR.summary()": None,
    "LINEAR.summary().loc['age', 'mean']": None,
    "LABELS.summary()['odds_ratio']": None,
    "POISSON.summary()['rate_ratio']": None,
    "GroupedRegression().fit(X, Y, groups=GROUPS).summary()": None,
    "GroupedRegression().fit(X, Y, groups=GROUPS).average_effects(X, groups=GROUPS)": None,
    "GroupedRegression().fit(X, Y, groups=GROUPS).shared_posterior_['age'].interval(0.9)": None,
    "Averaged([BayesianLinearRegression()]).fit(X, Y).average_effects(X)": None,
    "Averaged([BayesianLinearRegression()]).fit(X, Y).summary()": None,
    "LINEAR.posterior_['age'].interval(0.9)": None,
    "LINEAR.posterior_.marginal('age').mean()": None,
    "LINEAR.posterior_.probability('age > 0')": None,
    "LINEAR.posterior_.probability('-0.1 < size < 0.1')": None,
    "LINEAR.posterior_.contrast({'age': 1, 'size': -1})": None,
    "LINEAR.posterior_.to_frame()": None,
    "LINEAR.posterior_['agee']": "there is no coefficient 'agee': give one of",
    "LINEAR.average_effects(X)": None,
    "LABELS.average_effects(X, per='sd')": None,
    "LINEAR.sample_r2(X).mean()": None,
    "ROBUST.row_weights(X, Y).argmin()": None,
    "ROBUST.weights_": "row_weights(X, y) computes them",
    # predictions
    "LINEAR.predict_interval(X, of='mean')": None,
    "POISSON.predict_interval(X, of='mean')": None,
    "LABELS.predict_interval(X)": None,
    "LINEAR.predict_mean_distribution(X).std()": None,
    "LINEAR.predict(X, return_std=True)": None,
    "LINEAR.sample_mean(X, 10)": None,
    "LINEAR.predict_interval(X, 95)": "level must lie between 0 and 1",
    "LINEAR.predict_distribution_one(ROW)": None,
    "LINEAR.predict_interval_one(ROW)": None,
    "LINEAR.predict_distribution(ROW)": "predict_distribution_one",
    "LINEAR.predict_interval(ROW)": "predict_interval_one",
    "LINEAR.predict(ROW)": "predict_one",
    "LINEAR.predict_one({'age': 1.0, 'hour': None, 'size': 0.0})": "'hour'",
    "LINEAR.predict_one({'age': 1.0, 'hour': 'noon', 'size': 0.0})": "'hour'",
    "LINEAR.predict_one({**ROW, 'humidity': 1.0})": "unexpected 'humidity'",
    "BayesianLinearRegression().fit(X, Y).learn_one(ROW, 1.0)": None,
    "BayesianLinearRegression().fit(X, Y).predict_then_learn_one(ROW, 1.0)": None,
    "BayesianLinearRegression().learn_one(X.iloc[0], 1.0)": None,
    "BayesianLogisticRegression().learn_one(X.iloc[0], 'no').predict_one(X.iloc[1])": None,
    "VaryingFeatures(LINEAR).learn_one(ROW, 1.0).learn_one({'new': 1}, 2).model_.coef_": None,
    "Conformal(BayesianLinearRegression()).fit(X, Y).predict_interval_one(ROW)": None,
    "LINEAR.leave_one_out(X, Y).logpdf(Y).sum()": None,
    # tables and targets as they come
    "BayesianLinearRegression().fit(X.assign(old=X['age'] > 0), Y)": None,
    "BayesianLinearRegression().fit(X.assign(n=pandas.array([1, 2] * 60, 'Int64')), Y)": None,
    "BayesianLinearRegression().fit(X.assign(n=pandas.array([1, None] * 60, 'Int64')), Y)": "'n'",
    "BayesianLinearRegression().fit(X.assign(city=['a', None] * 60), Y)": "'city'",
    "BayesianLinearRegression().fit(X.to_dict('records'), Y)": "pandas.DataFrame(X)",
    "BayesianLinearRegression().fit(X.to_dict('list'), Y)": "pandas.DataFrame(X)",
    "BayesianLinearRegression().fit(X, 'price')": "give the targets, as table['price']",
    "BayesianLinearRegression().fit('price ~ age', X)": "give an array or a data frame",
    "BayesianLinearRegression().fit(X, YES) ": "BayesianLogisticRegression",
    "BayesianLinearRegression().fit(X, Y.to_frame()).predict(X)": None,
    "BayesianLinearRegression().fit(X, np.full(N, 3.0)).predict_interval(X)": None,
    "BayesianLinearRegression().fit(X.iloc[:1], Y[:1]).predict_interval(X)": None,
    "BayesianLinearRegression().fit(X, Y, sample_weight=-np.ones(N))": "must be finite and not neg",
    "BayesianLogisticRegression().fit(X, Y)": "for numbers use a regression",
    "BayesianLogisticRegression().fit(X, ['yes'] * N)": "at least two classes",
    "BayesianPoissonRegression().fit(X, -COUNTS)": "a count must be a whole number, 0 or more",
    "GroupedRegression(by='g').fit(X.assign(g=GROUPS), Y).predict(X.assign(g='new'))": None,
    "BayesianPoissonRegression(prior={'intercept': Normal(0, 1)}).fit(X, COUNTS)": None,
    "BayesianLogisticRegression(prior={'intercept': Normal(0, 1)}).fit(X, GROUPS)": "leave it out",
    "LINEAR.predict_distribution(X).rvs(3)": "give size=(3, 120)",
    "PIPE[-1].predict_interval(PIPE[:-1].transform(X))": None,
    "cross_val_score(BayesianLinearRegression(), X, Y)": None,
    # settings
    "BayesianLinearRegression(basis={'hour': Fourier(period=24), 'age': Spline()}).fit(X, Y)": None,
    "BayesianLinearRegression(basis='auto').fit(X, Y)": None,
    "BayesianLinearRegression(basis='spline').fit(X, Y)": "posterity.basis.Spline()",
    "BayesianLinearRegression(prior_mean={'age': 1.0}).fit(X, Y)": None,
    "BayesianLinearRegression(prior_precision={'age': 4.0}).fit(X, Y)": None,
    "BayesianLinearRegression(prior_precision={'agee': 4.0}).fit(X, Y)": "is no feature: the",
    "BayesianPoissonRegression(prior={'age': Normal(1, 0.5)}).fit(X, COUNTS)": None,
    "BayesianLinearRegression(prior={'age': Normal(1, 0.5)}).fit(X, Y)": "give noise_precision, or",
    "BayesianLinearRegression(prior={'age': (1, 0.5)}, noise_precision=1.0).fit(X, Y)": "Normal(-1",
    "BayesianQuantileRegression(quantile=[0.1, 0.5, 0.9]).fit(X, Y).predict_interval(X)": None,
    "BayesianQuantileRegression(quantile=[0.9, 0.1]).fit(X, Y)": "must increase",
    "BayesianQuantileRegression(quantile=90).fit(X, Y)": "must lie between 0 and 1",
    "BayesianLinearRegression(fit_intercept='yes').fit(X, Y)": "fit_intercept",
    "BayesianLinearRegression(prior_precision='ridge').fit(X, Y)": "it must be 'auto' or 'ard'",
    "BayesianLinearRegression(forgetting='fading').fit(X, Y)": "posterity.forgetting",
    "BayesianGeneralizedLinear('poisson').fit(X, COUNTS)": None,
    "BayesianGeneralizedLinear('poison').fit(X, COUNTS)": "'poisson'",
    "BayesianNegativeBinomialRegression().fit(X, COUNTS, exposure=np.full(N, 2.0))": None,
    "BayesianLogisticRegression().partial_fit(X, YES, classes=['no', 'yes', 'maybe'])": None,
    "BayesianLinearRegression().fit(X.assign(when=pandas.Timestamp('2024-01-01')), Y)": "'when'",
    "BayesianLinearRegression().fit(X.assign(zone=pandas.Categorical(GROUPS)), Y)": None,
    "BayesianLinearRegression().fit(X.assign(zone=GROUPS), Y).summary(base='first')": None,
    "LINEAR.predict(X.assign(age=pandas.Categorical(GROUPS)))": "OneHotEncoder",
    "BayesianLinearRegression().fit(X.assign(age=np.nan), Y)": "'age'",
    "BayesianLinearRegression().fit(X, YES)": "y",
    "posterity.save(PIPE, 'm.posterity')": "save(pipeline[-1], path)",
    "posterity.save(LINEAR, '/no/such/folder/m.posterity')": "/no/such/folder",
    "load_rides().head()": None,
    "clone(LINEAR).fit(X, Y)": None,
    "make_pipeline(StandardScaler(), clone(LINEAR)).fit(X, Y).predict(X, return_std=True)": None,
    "cross_val_score(make_pipeline(StandardScaler(), clone(LINEAR)), X, Y)": None,
    "GridSearchCV(clone(LINEAR), {'prior_precision': ['auto', 1.0]}).fit(X, Y).predict(X)": None,
    "cross_val_predict(LABELS, X, YES, method='predict_proba')": None,
    # calls
    "BayesianLinearRegression().fit(X)": "the call is fit(X, y, sample_weight=..., times=...)",
    "BayesianLinearRegression().fit(X, Y, exposure=1.0)": "BayesianPoissonRegression().fit(X",
    "BayesianLinearRegression().fit(X, Y, weights=Y)": "did you mean 'sample_weight'?",
    "BayesianPoissonRegression().partial_fit(X, [1, 2], weights=Y)": "did you mean",
    "BayesianLogisticRegression().fit(X, YES, groups=YES)": "GroupedRegression().fit(X, y, groups=",
    "posterity.sparse.DiagonalLinearRegression().fit(X, Y, weights=Y)": "did you mean",
    "LINEAR.unlearn(X, Y, weights=Y)": "did you mean 'sample_weight'?",
    "LINEAR.unlearn_one(ROW, 1.0)": "use unlearn(X, y)",
    "BayesianLinearRegression().fit(X[['age', 'age']], Y)": "two columns of the name 'age'",
    "LINEAR.predict(X, level=0.9)": "BayesianLinearRegression.predict() got an unexpected",
    "LINEAR.predict_interval(X, alpha=0.1)": "a level= is 1 - alpha",
    "BayesianLinearRegression(alpha=1.0)": "prior_precision and noise_precision are learned",
    "BayesianLinearRegression(smoothing=0.99)": "forgetting='exponential:0.99'",
    "BayesianLinearRegression(forgeting=None)": "did you mean 'forgetting'",
    "BayesianLinearRegression(X, Y)": "BayesianLinearRegression() ",
    "GroupedRegression('y ~ x + (1 | g)').fit(X)": "GroupedRegression.fit() is missing",
    "Forecaster(time='day')": "call the column 'ds'",
    "Forecaster().fit(Y).forecast()": "the call is forecast(h, X_future=...",
    "Model('y ~ x').fit()": "the call is fit(",
    # shapes and types
    "BayesianLinearRegression().fit('age ~ size', X)": "X is the text",
    "BayesianLinearRegression().fit(X, 'age')": "give the targets, as table['age']",
    "BayesianLinearRegression().fit(X, Y, sample_weight='size')": "X['size']",
    "BayesianLinearRegression().fit(X.assign(b=X['age'] > 0), Y).summary()": None,
    "BayesianLinearRegression().fit(X, Y.to_frame('y')).predict(X)": None,
    "BayesianLinearRegression().fit(X[:1], Y[:1]).predict_interval(X[:1])": None,
    "BayesianLinearRegression().fit(X, np.ones(N)).predict_interval(X[:2])": None,
    "BayesianGeneralizedLinear('weibull').fit(X, np.full((N, 2), 3.0))": "Censored(Weibull())",
    "BayesianRobustRegression().fit(X, X[['age', 'size']])": "fit a model for each column",
    "TARIFF.relativities(MIXED_ROWS, 'age')": "exposure is the text 'age'",
    "TARIFF.relativities(MIXED_ROWS, LINE)": "must be finite and not negative",
    "LABELS.relativities(X)": "summary(base='first')",
    "MIXED.relativities(MIXED_ROWS)": "contrast('the factor', one, other)",
    "POISSON.leave_one_out(X, COUNTS)": "compare(models, X, y)",
    # several levels at once, and misspelt names
    "LINEAR.predict_interval(X, level=(0.5, 0.9))": "give one level, as in 0.95",
    "POISSON.predict_interval(X, level=[80, 95])": "give one level, as in 0.95",
    "LABELS.predict_interval(X, level=[0.5, 0.9])": "give one level, as in 0.95",
    "ROBUST.predict_interval(X, level=[0.5, 0.9])": "give one level, as in 0.95",
    "Conformal(clone(LINEAR)).fit(X, Y).predict_interval(X, [0.5, 0.9])": "give one level",
    "Forecaster().fit(Y).forecast(2).interval([80, 95])": "give one level, as in 0.95",
    "LINEAR.posterior_['sise']": "did you mean 'size'?",
    "LINEAR.posterior_.probability('sise > 0')": "did you mean 'size'?",
    "BayesianLinearRegression(prior_mean={'Age': 1.0}).fit(X, Y)": "did you mean 'age'?",
    "BayesianLinearRegression(basis='splines').fit(X, Y)": "posterity.basis.Spline()",
    "BayesianLinearRegression(basis=Spline(knots=5)).fit(X, Y)": "give n_knots",
    "BayesianLinearRegression(forgetting='adaptve').fit(X, Y)": "as in Adaptive()",
    "BayesianLinearRegression(prior_precision='flat').fit(X, Y)": "(0.0 is flat)",
    "BayesianLinearRegression(prior_precision=None).fit(X, Y)": "give 0.0 for a flat prior",
    "BayesianLinearRegression().fit(X.assign(none=np.nan), Y)": "every row of column 'none'",
    "BayesianLinearRegression().fit(X.assign(age=1e300), Y)": "in row 0, column 'age'",
    "GroupedRegression().fit(X, Y, groups='zone')": "groups=X['zone']",
    "Forecaster().fit(Y).forecast(2).to_frame()": None,
    "Forecaster().fit(X.assign(when=pandas.Timestamp('2024-01-01')))": "call that column 'ds'",
    "posterity.save('m.posterity', LINEAR)": "the model comes first",
    "MIXED.group_effects()": None,
    "MIXED.plot_curve()": "it has none",
    "MIXED.means()": "it has none",
    "MIXED.icc()": "explained_variance()",
    "MIXED.plot()": "plot_intervals(model.summary())",
    "Model('y ~ g').fit(MIXED_ROWS.assign(y=Y)).means()": None,
    "Forecaster().fit(Y).forecast(horizon=28)": "forecast(28)",
    "Forecaster().fit(Y).forecast(2).to_frame(level=0.8)": "did you mean 'levels'",
    "Experiment(X)": "arms is a table",
    "Experiment(['a', 'b'], planned_rows='many')": "planned_rows can't be used: 'many' is text",
    "Experiment(['a', 'b'], level=[0.9, 0.95])": "is not a number: give one number",
    "Experiment(['a', 'b'], level='95%')": "write 5% as 0.05",
    "Experiment(['a', 'b']).observe(VISITS, covariates=['id'])": "leave it out, or turn",
    "Experiment(['a', 'b']).observe(VISITS, covariates=['day'])": "a column of its weekday",
    "Experiment(['a', 'b']).observe(VISITS.to_dict('records'))": "of dicts make a pandas.DataFrame",
    "Experiment(['a', 'b']).observe(VISITS.to_dict('list'))": "of dicts make a pandas.DataFrame",
    "plan(0.05, '10%')": "effect can't be used: '10%' is text",
    "plan(0.05, lift=0.1)": "0.1 * baseline for 10% more",
    "plan(0.05, 0.01, alpha=0.05)": "level= is 1 - alpha",
    "Experiment(['a', 'b'], reward_range='0-1')": "give two numbers, as in (0.0, 1.0)",
    "Experiment(['a', 'b'], reward_range=np.array([0.0, 1.0]))": None,
    "Bandit(n_arms=3)": "did you mean 'arms'?",
    "Bandit(arms=['a', 'b']).learn([[1.0]], arm='a', reward=1)": "did you mean 'arms'?",
    "score_survival(LINEAR.predict_distribution(X), Y, event=Y)": "give Censored(...) both ends",
    "plan(0.05)": "the call is plan(baseline, effect, power=...",
    "Bandit(arms=['a', 'b']).decide()": "the call is decide(X, allowed=..., k=...)",
    "MACHINE.recommend('ann', exclude=['rum'])": "leave others out of these",
    "MACHINE.recommend('ann', k='all')": "k is 'all': it must be a whole number",
    "MACHINE.recommend('ann', n=1)": "the call is recommend(user, k=...",
    "SEVERAL.posterior_['age']['hour'].interval(0.9)": None,
    "SEVERAL.posterior_['size']": "size",
    "score_survival(LINEAR, X, Y)": "score_survival(model.predict_distribution(X), y)",
    "Experiment(['a', 'b']).plot()": "effects_over_time()",
    "plot_intervals(MIXED.group_effects(), label='level')": None,
    "plot_intervals(MIXED)": "plot_intervals(model.summary())",
    "plot_intervals(LINEAR.summary(), ax=Figure())": "ax is a Figure: give one of the axes",
    "plot_residuals(GroupedRegression().fit(X, Y, groups=GROUPS), X, Y)": "by='column'",
    "plot_residuals(GroupedRegression(by='g').fit(MIXED_ROWS, Y), MIXED_ROWS, Y)": None,
    "plot_posterior_density(SEVERAL)": "target='size'",
    "plot_posterior_density(SEVERAL, target='size')": None,
    # other names
    "Forecaster().fit(Y).components()": "forecast(h).components()",
    "LINEAR.params": "coef_ and intercept_",
    "LINEAR.conf_int()": "posterior_.interval(0.95)",
    "LINEAR.rsquared": "sample_r2(X)",
    "LINEAR.lambda_": "prior_precision_ * noise_precision_",
    "LINEAR.loo()": "leave_one_out(X, y)",
    "GroupedRegression().fit(X, Y, groups=GROUPS).loo()": "posterity.evaluation.compare(models",
    "posterity.Spline": "posterity.basis.Spline",
    "posterity.BayesianRidge": "posterity.BayesianLinearRegression",
    "assert 'age' in LINEAR.posterior_ and 'age' in SEVERAL.posterior_": None,
    "assert 'zip' not in LINEAR.posterior_ and 'zip' not in SEVERAL.posterior_": None,
    "Model('surv(age, size) ~ hour').fit(X)": "there is no function 'surv': write Surv(...)",
    "LINEAR.plot()": "posterity.plots.plot_coefficients(model)",
    "LINEAR.save('m')": "posterity.save(model, path)",
    "LINEAR.get_feature_names_out()": "feature_names_in_",
    "LINEAR.sigma_": "noise_precision_ ** -0.5",
    "LINEAR.predict_quantiles(X, [0.1, 0.9])": "ppf",
    "LINEAR.predict_distribution(X).quantile(0.9)": "ppf",
    "LINEAR.posterior_.sample(10)": "rvs(size)",
    "LINEAR.weightz_": "weightz_",
    "posterity.evaluate(LINEAR, X, Y)": "posterity.evaluation.progressive_validation",
    "BayesianPoissonRegression(prior={'intercept': Normal(1, 1)}).fit(X, COUNTS)": None,
    "make_pipeline(StandardScaler(), clone(LINEAR)).fit(X, Y)[-1].summary()": None,
}


@pytest.mark.parametrize("guess", PYTHON)
def test_in_python(guess: str) -> None:
    _held(lambda: exec(f"{IMPORTS}\n{guess}", dict(globals())), PYTHON[guess])


def _held(work: Any, message: str | None) -> None:
    if message is None:
        work()
        return
    with pytest.raises((ValueError, TypeError, AttributeError, OSError)) as raised:
        work()
    assert message in str(raised.value), raised.value


# {} is a folder with rides.csv, small.csv, labels.csv, european.csv and dates.csv.
COMMANDS = {
    "--help": None,
    "--version": None,
    "evaluate rides.csv --target fare --dates calendar --missing level": None,
    "evaluate rides.csv --target fare": "--dates",
    "evaluate rides.csv --target fare --dates calendar": "--missing",
    "evaluate rides.csv --target fair --dates calendar": "'fare'",
    "evaluate rides.csv --targt fare": "--target",
    "evaluate small.csv --target y --model ridge": "give linear, robust, quantile",
    "evaluate small.csv --target y --model quantile:0.9": None,
    "evaluate small.csv --target y --lag 1,24": None,
    "evaluate small.csv --target y --categories zone": None,
    "evaluate small.csv --target y --slice zone --json": None,
    "evaluate small.csv --target y --drop a": None,
    "evaluate small.csv --target y --drop a --drop zone": "no feature",
    "evaluate small.csv --target y --lag 1 --lag 2": None,
    "compare small.csv --target y --models auto --models robust": None,
    "evaluate huge.csv --target y": "line 5, column 'a' is 1e+300",
    "evaluate hollow.csv --target y --missing mean": "leave such columns out by --drop",
    "evaluate rides.csv --target fare --dates days --missing level --log-target": None,
    "evaluate labels.csv --target bought": "--model logistic",
    "evaluate labels.csv --target bought --model logistic": None,
    "evaluate european.csv --target y": "--decimal ,",
    "evaluate european.csv --target y --decimal , --thousands .": None,
    "evaluate dates.csv --target y --dates calendar": "--date-format",
    "evaluate dates.csv --target y --dates calendar --date-format %m/%d/%y": None,
    "evaluate none --target y": "none",
    "evaluate nothing.csv --target y": "nothing.csv",
    "compare small.csv --target y --models auto,robust": None,
    "compare small.csv --target y": "--models",
    "fit small.csv --target y --output m.posterity": None,
    "evaluate small.csv --target Surv(y)": "write Surv(time, ended)",
    "evaluate small.csv --target surv(y,a)": "write Surv(time, ended)",
    "evaluate labels.csv --target Surv(a,bought) --model weibull": "1 where the time ended",
    "experiment small.csv --reward y --guardrail a=1 --guardrail a=2": "'a' is given twice",
    "plan --baseline 5% --effect 0.01": "5% as 0.05",
    "plan --baseline 0.05 --effect 0.01": None,
    "show m.posterity": None,
    "predict m.posterity small.csv --keep a": None,
    "predict m.posterity small.csv --interval 0.9": "see posterity predict --help",
    "update m.posterity small.csv": None,
    "summary m.posterity": "see posterity --help",
    "forecast small.csv --target y --horizon 3": None,
    "fit small.csv --target y": "--output",
    "fit small.csv --target y --output small.csv": "the table itself",
    "fitt small.csv": "Did you mean 'fit'",
    "fit windows.csv --target y --output w.posterity": None,
    "fit mark.csv --target y --output w.posterity": None,
    "fit semicolons.csv --target y --output w.posterity": None,
    "fit packed.csv.gz --target y --output w.posterity": None,
    "fit rows.parquet --target y --output w.posterity": None,
    "fit empty.csv --target y --output w.posterity": "is empty",
    "fit head.csv --target y --output w.posterity": "no rows",
    "fit small.csv --target Y --output w.posterity": "did you mean 'y'",
    "fit latin.csv --target y --output w.posterity": "latin.csv",
    "show small.csv": "not a model file",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    place = tmp_path_factory.mktemp("guesses")
    rides = load_rides().head(600)
    rides.to_csv(place / "rides.csv", index=False)
    a, zone = RNG.normal(size=200), RNG.integers(1, 4, 200)
    y = 3.0 + a + 0.5 * zone + RNG.normal(size=200)
    table = pandas.DataFrame({"a": a, "zone": zone, "y": y})
    table.to_csv(place / "small.csv", index=False)
    table.assign(a=np.where(table.index == 3, 1e300, 1.0)).to_csv(place / "huge.csv", index=False)
    table.assign(a=np.nan).to_csv(place / "hollow.csv", index=False)
    table.assign(bought=np.where(y > 4, "yes", "no")).drop(columns="y").to_csv(
        place / "labels.csv", index=False
    )
    table.round(2).to_csv(place / "european.csv", index=False, sep=";", decimal=",")
    dates = pandas.date_range("2021-04-20", periods=200).strftime("%m/%d/%y")
    table.assign(when=dates).to_csv(place / "dates.csv", index=False)
    small = (place / "small.csv").read_bytes()
    (place / "bom.csv").write_bytes(b"\xef\xbb\xbf" + small)
    (place / "windows.csv").write_bytes(small.replace(b"\n", b"\r\n"))
    (place / "latin.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    (place / "empty.csv").write_bytes(b"")
    table.to_csv(place / "small.csv.gz", index=False)
    table[["y"]].to_csv(place / "onecol.csv", index=False)
    (place / "empty").mkdir()
    text = table.to_csv(index=False)
    (place / "windows.csv").write_text(text.replace("\n", "\r\n"), newline="")
    (place / "mark.csv").write_text(text, encoding="utf-8-sig")
    (place / "semicolons.csv").write_text(text.replace(",", ";"))
    (place / "latin.csv").write_text(text.replace("zone", "größe"), encoding="latin-1")
    (place / "empty.csv").write_text("")
    (place / "head.csv").write_text("a,zone,y\n")
    table.to_csv(place / "packed.csv.gz", index=False)
    table.to_parquet(place / "rows.parquet")
    return place


def test_at_the_command_line(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    testing = pytest.importorskip("click.testing")
    from posterity.cli.commands import posterity as command

    monkeypatch.chdir(folder)
    failed = []
    for guess, message in COMMANDS.items():
        result = testing.CliRunner().invoke(command, guess.split())
        said = result.stderr + (repr(result.exception) if result.exit_code == 1 else "")
        right = result.exit_code == 0 if message is None else message in result.stderr
        if not right or (message is not None and result.exit_code == 0):
            failed.append((guess, message, said[-300:]))
    assert not failed


def test_a_bandit_says_what_others_call_it() -> None:
    bandit = Bandit(["a", "b"])
    for guess, ours in (("choose", "decide"), ("select", "decide"), ("update", "learn_one")):
        with pytest.raises(AttributeError, match=ours):
            getattr(bandit, guess)


def test_other_words_for_a_formula_and_its_model() -> None:
    frame = X.assign(y=Y, g=GROUPS)
    model = Model("y ~ age + (1 | g)").fit(frame)
    for guess, ours in (("ranef", "group_effects"), ("coef_", "summary"), ("aic", "leave_one_out")):
        with pytest.raises(AttributeError, match=ours):
            getattr(model, guess)
    for formula, ours in (
        ("y ~ np.log(size)", r"write log\("),
        ("y ~ as.factor(g)", r"write factor\("),
        ("y ~ bs(age)", "s for a curve"),
        ("y | cens(g) ~ age", r"Surv\(time, ended\)"),
    ):
        with pytest.raises(ValueError, match=ours):
            Model(formula).fit(frame)
    with pytest.raises(TypeError, match="likelihood= takes it"):
        Model("y ~ age", family="gamma")
    with pytest.raises(TypeError, match=r"fit\(frame\) takes the rows"):
        Model("y ~ age").fit(data=frame)
    with pytest.raises(TypeError, match=r"offset\(log\(exposure\)\)"):
        Model("y ~ age").fit(frame, exposure=Y)


def test_an_experiment_says_what_others_call_it() -> None:
    test = Experiment(["a", "b"])
    for guess, ours in (
        ("update", "observe_rows"),
        ("p_value", "interval_"),
        ("summary", "report"),
    ):
        with pytest.raises(AttributeError, match=ours):
            getattr(test, guess)
    for arguments, ours in (
        ({"control": "a"}, "the first one is the control"),
        ({"alpha": 0.05}, "level= is 1 - alpha"),
        ({"metrics": ["x", "y"]}, r"Metrics\({column: Experiment\(arms\)"),
        ({"power": 0.8}, r"plan\(baseline, effect, power\)"),
        ({"planed_rows": 9}, "did you mean 'planned_rows'"),
    ):
        with pytest.raises(TypeError, match=ours):
            Experiment(["a", "b"], **arguments)
    for wrong, ours in (({"variant": "arm"}, r"arm=\.\.\."), ({"segments": "g"}, "segment=")):
        with pytest.raises(TypeError, match=ours):
            test.observe(X, **wrong)
    with pytest.raises(ValueError, match=r"observe\(frame, covariates="):
        test.observe_rows(["a"], [1.0], [["text"]])


def test_a_log_takes_probabilities_of_the_chosen_arms_by_either_name() -> None:
    arms, rewards, chances = list("abab"), [1.0, 0.0, 1.0, 1.0], np.full(4, 0.5)
    logs = [Log.of(np.ones((4, 1)), arms, rewards, **{name: chances}) for name in PROPENSITIES]
    first, second = (evaluate(log, "uniform", ["ips"])["uniform", "ips"].value for log in logs)
    assert first == second
    for judge in (what_if, evaluate):
        with pytest.raises(TypeError, match=r"Log\.of"):
            judge(X, "uniform")


def test_groups_say_where_their_posterior_is() -> None:
    model = GroupedRegression().fit(np.ones((4, 1)), [1.0, 2.0, 3.0, 4.0], groups=[1, 1, 2, 2])
    with pytest.raises(AttributeError, match=r"model_of\(group\)"):
        model.posterior_  # noqa: B018 - the message is asked for
