"""Models as ONNX graphs that compute what they predict, in double precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from posterity.adapters._components import components
from posterity.adapters._extras import require_module
from posterity.adapters._onnx_graph import Graph, add_mixture_moments, predictor
from posterity.adapters._onnx_probability import add_expected_labels
from posterity.aliases import Array
from posterity.distributions import Normal, StudentT
from posterity.distributions.affine_map import compute_affine_map
from posterity.distributions.log_normal_counts import LARGEST_LOG_SD
from posterity.generalized import (
    BayesianLogisticRegression,
    BayesianPoissonRegression,
    BayesianRobustRegression,
)
from posterity.generalized._heavy_tails import HeavyTailedPosterior
from posterity.generalized._student_t_noise import PLACES, StudentTNoise
from posterity.linear import BayesianLinearRegression
from posterity.linear.base import LinearModel
from posterity.linear.effects import feature_names
from posterity.linear.targets import refuse_several_targets
from posterity.posteriors import LinearPosterior

OPSET, IR_VERSION = 13, 8
# Of the log rate, as in ``predict``.
LARGEST_LOG_RATE = 700.0

__all__ = ["to_onnx"]


def to_onnx(
    model: LinearModel | Pipeline,
    *,
    level: float = 0.95,
    input_type: Literal["float64", "float32"] = "float64",
) -> Any:
    """Make an ONNX model that predicts as ``model`` does now.

    Parameters
    ----------
    model : BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegression or \
BayesianRobustRegression
        One that has learned; without ``basis``. Or a scikit-learn pipeline that ends in one, whose
        other steps are affine: scalers, principal components, choices of columns.
    level : float
        Probability of the interval: ONNX has no quantiles of Student's t, so that it is fixed here.
    input_type : "float64" or "float32", default "float64"
        What ``X`` is; the graph computes in double precision in any case.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` (n, m). Outputs, (n,) float64 unless noted:

        - of linear and robust regression ``mean``, ``std``, ``lower`` and ``upper``: those of
          ``predict(X, return_std=True)`` and ``predict_interval(X, level)``;
        - of two classes ``label``, ``probabilities`` (n, 2), and ``lower`` and ``upper``: those of
          ``predict``, ``predict_proba`` and ``predict_interval``;
        - of counts, for an exposure of 1, ``rate``, ``mean``, ``std``, ``lower`` and ``upper``:
          the rate at ``coef_``, those of ``predict_distribution`` (its mean is ``predict``), and of
          ``predict_interval(X, level, of="rate")``.

        The names of the features and the level are in its metadata. Of labels and counts the
        posterior is taken as normal: what a fit of few rows knows of its skewness is not exported.

    Raises
    ------
    ImportError
        Without onnx: ``pip install "posterity[onnx]"``.
    TypeError
        If ``model`` is none of these.
    ValueError
        If a pipeline has other steps, or the model has a basis, averages over ways to forget, knows
        one class or more than two, or is still improper.

    Examples
    --------
    >>> to_onnx("model")
    Traceback (most recent call last):
        ...
    TypeError: to_onnx exports linear, logistic, Poisson and robust regressions, not a str
    """
    steps = None
    if isinstance(model, Pipeline):
        steps, model = (model[:-1] if len(model) > 1 else None), model[-1]
    tell = _choose_graph(model)
    if input_type not in ("float64", "float32"):
        raise ValueError(f"input_type is {input_type!r}: it must be 'float64' or 'float32'")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}: it must lie between 0 and 1, as in 0.95")
    onnx = require_module("onnx", "onnx")
    refuse_several_targets(model, "ONNX")
    model._posterior  # noqa: B018  (says that nothing was learned)
    if not model._learns_features:
        raise ValueError(
            "ONNX has no operators for a basis or categories: transform the features first, and "
            "learn a model of numbers, without a basis"
        )
    graph = Graph(onnx.helper, onnx.numpy_helper)
    if input_type == "float32":
        graph.rows = graph.cast(graph.rows, onnx.TensorProto.DOUBLE)
    if steps is not None:
        try:
            slopes, start = compute_affine_map(steps)
        except ValueError as error:
            raise ValueError(_NOT_AFFINE) from error
        graph.rows = graph.apply("Add", graph.apply("MatMul", graph.rows, slopes), start)
    outputs = tell(graph, model, level)
    names: Any = (model.posterior_.names or ())[int(model.fit_intercept) :]
    if steps is not None:
        names = feature_names(steps)
    kind = onnx.TensorProto.FLOAT if input_type == "float32" else onnx.TensorProto.DOUBLE
    return _model(onnx, graph, (kind, names), level, outputs)


_NOT_AFFINE = (
    "to_onnx exports pipelines whose steps before the model are affine, such as StandardScaler, "
    "PCA and choices of columns: convert other steps with skl2onnx, and the model with to_onnx"
)
# What an output is: its name, the numpy type of its elements, and its columns, if it is no column.
Output = tuple[str, Any, int | None]
SPREAD_OUTPUTS: list[Output] = [
    (name, np.float64, None) for name in ("mean", "std", "lower", "upper")
]


def _choose_graph(model: BaseEstimator) -> Callable[[Graph, Any, float], list[Output]]:
    if isinstance(model, BayesianLogisticRegression):
        return _labels
    if isinstance(model, BayesianPoissonRegression):
        return _counts
    if isinstance(model, BayesianRobustRegression):
        return _heavy_tails
    if type(model) is BayesianLinearRegression:
        return _export_gaussian
    kind = type(model).__name__
    if hasattr(model, "model"):
        raise TypeError(
            f"to_onnx can't export a {kind}, whose corrections have no operators: export the model "
            "inside, its model_, without them"
        )
    raise TypeError(
        f"to_onnx exports linear, logistic, Poisson and robust regressions, not a {kind}"
    )


# ---- one way for each likelihood -----------------------------------------------------------------


def _export_gaussian(graph: Graph, model: BayesianLinearRegression, level: float) -> list[Output]:
    posterior = model._posterior
    parts = components(posterior, "to_onnx")
    moments = []
    for _, part in parts:
        mean, leverage = predictor(graph, part)
        moments.append((mean, _variance(graph, leverage, _get_noise_scale(part), 1.0)))
    mean, variance = add_mixture_moments(graph, moments, [weight for weight, _ in parts])
    scale = graph.apply("Sqrt", variance)
    _output_spread(graph, mean, (scale, *_units(posterior, level)))
    return SPREAD_OUTPUTS


def _heavy_tails(graph: Graph, model: BayesianRobustRegression, level: float) -> list[Output]:
    posterior: Any = model._posterior
    ((_, part),) = components(posterior, "to_onnx")
    mean, leverage = predictor(graph, part)
    zero, one = np.zeros(1), np.ones(1)
    if not (math.isfinite(posterior.scale) and math.isfinite(posterior.core)):
        raise ValueError(_IMPROPER_NOISE)
    leverage = graph.apply("Mul", leverage, [posterior._widened])
    scale = posterior.scale
    if isinstance(posterior.likelihood, StudentTNoise):
        deviation = _interpolate_t_deviation(graph, leverage, posterior)
    else:
        # At leverages of 0 and 1: the noise's own variance, and how the leverage adds to it.
        alone, wide = (
            float(posterior.in_force.predictive(zero, h, scale, posterior._scale_df).var()[0])
            for h in (zero, one)
        )
        spread = _variance(graph, leverage, math.sqrt(alone), wide / alone - 1.0)
        deviation = graph.apply("Sqrt", spread)
    share = (scale / posterior.core) ** 2
    core = graph.apply("Sqrt", _variance(graph, leverage, posterior.core, share))
    reach = float(StudentT(posterior._df, zero, one).interval(level)[1][0])
    _output_interval(graph, mean, graph.apply("Mul", core, [reach]))
    graph.add_output(mean, "mean")
    graph.add_output(deviation, "std")
    return SPREAD_OUTPUTS


def _interpolate_t_deviation(graph: Graph, leverage: str, posterior: HeavyTailedPosterior) -> str:
    """Of the t nearest to noise and mean together: its table, between places h / (1 + h)."""
    h, noise = PLACES[:-1] / (1.0 - PLACES[:-1]), posterior.in_force
    own = np.zeros(len(h)), h * noise.unit**2, 1.0 / noise.unit
    predictive = noise.predictive(*own, posterior._scale_df)
    assert isinstance(predictive, StudentT)
    leverage = graph.apply("Mul", leverage, [noise.unit**-2.0])
    open_ = graph.apply("Add", leverage, [1.0])
    place = graph.apply("Sub", [1.0], graph.apply("Div", [1.0], open_))
    per_df = _between(graph, place, 1.0 / predictive.df)
    width = graph.apply(
        "Mul", _between(graph, place, predictive.scale / np.sqrt(1.0 + h)), [posterior.noise_scale]
    )
    # Infinite up to 2 degrees of freedom.
    left = graph.apply("Relu", graph.apply("Sub", [1.0], graph.apply("Mul", per_df, [2.0])))
    return graph.apply("Mul", width, graph.apply("Sqrt", graph.apply("Div", open_, left)))


def _between(graph: Graph, place: str, values: Array) -> str:
    """Straight lines between values at all places but the last: a sum of hinges."""
    slopes = np.diff(values) / np.diff(PLACES[:-1])
    bends = np.diff(slopes, prepend=0.0)[:, None]
    hinges = graph.apply("Relu", graph.apply("Sub", place, PLACES[None, :-2]))
    return graph.apply("Add", graph.apply("MatMul", hinges, bends), [values[0]])


def _labels(graph: Graph, model: BayesianLogisticRegression, level: float) -> list[Output]:
    classes = model.classes_
    if len(classes) != 2:
        raise ValueError(
            f"to_onnx exports two classes, and this model has {len(classes)}: "
            + (
                "learn rows of another class"
                if len(classes) < 2
                else "probabilities of more are integrated along the eigenvectors of each row's "
                "covariance, which ONNX has no operator for"
            )
        )
    mean, variance = _eta(graph, model)
    # As predict has it, with the mean as the posterior has it.
    ahead = graph.apply("Greater", mean, [0.0])
    if model._flipped:
        mean = graph.apply("Neg", mean)
    yes, no = add_expected_labels(graph, mean, variance)
    graph.apply("Concat", no, yes, axis=1, to="probabilities")
    reach = graph.apply("Mul", graph.apply("Sqrt", variance), [float(ndtri(0.5 + 0.5 * level))])
    for operator, name in (("Sub", "lower"), ("Add", "upper")):
        # Not by Sigmoid, which ONNX Runtime computes with an absolute error.
        odds = graph.apply("Exp", graph.apply("Neg", graph.apply(operator, mean, reach)))
        graph.add_output(graph.apply("Div", [1.0], graph.apply("Add", odds, [1.0])), name)
    second, first = (graph.constant([place], np.int64) for place in (1, 0))
    places = (first, second) if model._flipped else (second, first)
    place = graph.apply("Squeeze", graph.apply("Where", ahead, *places), second)
    labels = np.array(classes.tolist())
    kind = object if labels.dtype.kind == "U" else labels.dtype.type
    graph.apply("Gather", graph.constant(labels, kind), place, axis=0, to="label")
    return [("label", kind, None), ("probabilities", np.float64, 2), *SPREAD_OUTPUTS[2:]]


def _counts(graph: Graph, model: BayesianPoissonRegression, level: float) -> list[Output]:
    mean, variance = _eta(graph, model)
    rate = graph.apply("Exp", graph.apply("Min", mean, [LARGEST_LOG_RATE]))
    reach = graph.apply("Mul", graph.apply("Sqrt", variance), [float(ndtri(0.5 + 0.5 * level))])
    for operator, name in (("Sub", "lower"), ("Add", "upper")):
        graph.add_output(graph.apply("Exp", graph.apply(operator, mean, reach)), name)
    # mean = exp(m + v / 2), variance = mean + mean^2 (exp(v) - 1): see PoissonLogNormal.
    wide = graph.apply("Greater", variance, [LARGEST_LOG_SD])
    half = graph.apply("Mul", variance, [0.5])
    half = graph.apply("Where", wide, graph.constant([math.inf]), half)
    expected = graph.apply("Exp", graph.apply("Add", mean, half))
    relative = graph.apply("Sub", graph.apply("Exp", variance), [1.0])
    square = graph.apply("Mul", graph.apply("Mul", expected, expected), relative)
    graph.add_output(rate, "rate")
    graph.add_output(expected, "mean")
    graph.add_output(graph.apply("Sqrt", graph.apply("Add", expected, square)), "std")
    return [("rate", np.float64, None), *SPREAD_OUTPUTS]


# ---- inner ---------------------------------------------------------------------------------------

_IMPROPER_NOISE = (
    "to_onnx needs a proper posterior, and nothing is known of the noise so far: learn more rows, "
    "or give a noise_prior with shape and rate above 0"
)


def _eta(graph: Graph, model: BaseEstimator) -> tuple[str, str]:
    """Mean and variance (n, 1) of the linear predictor."""
    posterior = model._posterior
    parts = components(posterior, "to_onnx")
    moments = [predictor(graph, part) for _, part in parts]
    return add_mixture_moments(graph, moments, [weight for weight, _ in parts])


def _variance(graph: Graph, leverage: str, scale: float, share: float) -> str:
    """scale^2 (1 + share h), (n, 1)."""
    return graph.apply("Add", graph.apply("Mul", leverage, [share * scale**2]), [scale**2])


def _get_noise_scale(posterior: LinearPosterior) -> float:
    """Scale of a prediction where the leverage is 0."""
    alone = posterior.noise.predictive(
        np.zeros(1), np.zeros(1), posterior.residual_df, posterior.residual
    )
    scale = float(alone.scale[0])
    if not math.isfinite(scale):
        raise ValueError(_IMPROPER_NOISE)
    return scale


def _units(posterior: LinearPosterior, level: float) -> tuple[float, float]:
    """Standard deviation, and end of the central interval, in units of the scale."""
    n_features = posterior.n_coefficients - int(posterior.intercept)
    one = posterior.predictive(np.zeros((1, n_features)))
    if isinstance(one, StudentT):
        standard: Normal | StudentT = StudentT(one.df, np.zeros(1), np.ones(1))
    else:
        standard = Normal(np.zeros(1), np.ones(1))
    return float(standard.std()[0]), float(standard.interval(level)[1][0])


def _output_spread(graph: Graph, mean: str, scaled: tuple[str, float, float]) -> None:
    """Give out the mean, and what is in units of a scale (n, 1): deviation and interval."""
    scale, deviation, reach = scaled
    graph.add_output(mean, "mean")
    graph.add_output(graph.apply("Mul", scale, [deviation]), "std")
    _output_interval(graph, mean, graph.apply("Mul", scale, [reach]))


def _output_interval(graph: Graph, mean: str, half: str) -> None:
    graph.add_output(graph.apply("Sub", mean, half), "lower")
    graph.add_output(graph.apply("Add", mean, half), "upper")


def _model(
    onnx: Any, graph: Graph, given: tuple[int, Sequence[str]], level: float, outputs: list[Output]
) -> Any:
    """The graph as a model; ``given`` are the type and the names of what it takes."""
    helper, (kind_given, names) = onnx.helper, given
    inputs = [helper.make_tensor_value_info("X", kind_given, ["n", len(names)])]
    model_outputs = [
        helper.make_tensor_value_info(
            name,
            onnx.TensorProto.STRING
            if kind is object
            else helper.np_dtype_to_tensor_dtype(np.dtype(kind)),
            ["n"] if columns is None else ["n", columns],
        )
        for name, kind, columns in outputs
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "posterity", inputs, model_outputs, graph.constants),
        producer_name="posterity",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(made, {"features": "\n".join(names), "level": repr(level)})
    onnx.checker.check_model(made)
    return made
