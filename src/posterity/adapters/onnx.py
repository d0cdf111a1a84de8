"""A regression as an ONNX graph that computes mean, standard deviation and interval.

ONNX has no triangular solve. But the leverage of a row is |x R^-1|^2, and R^-1 is a matrix that can
be stored: one product, squares and a sum. So the graph is exact up to rounding, which grows with
the condition of R as it does in an inverse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from posterity.adapters._components import components
from posterity.adapters._extras import needed
from posterity.distributions import Normal, StudentT
from posterity.linear import BayesianLinearRegression
from posterity.posteriors import LinearPosterior

Array = NDArray[np.float64]
OPSET, IR_VERSION = 13, 8

__all__ = ["to_onnx"]


@dataclass
class Graph:
    """Operators and constants, as they are put together."""

    helper: Any
    numpy_helper: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def constant(self, value: Any, dtype: type = np.float64) -> str:
        """The name of a constant."""
        name = f"constant_{len(self.constants)}"
        array: NDArray[Any] = np.asarray(value, dtype=dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def apply(self, operator: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """The name of what an operator makes of its inputs."""
        name = to or f"value_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def total(self, terms: list[str]) -> str:
        """The sum of some values."""
        whole = terms[0]
        for term in terms[1:]:
            whole = self.apply("Add", whole, term)
        return whole


def to_onnx(model: BayesianLinearRegression, *, level: float = 0.95) -> Any:
    """Make an ONNX model that predicts as ``model`` does now.

    Parameters
    ----------
    model : BayesianLinearRegression
        One that has learned; without ``basis``.
    level : float
        Probability of the interval: ONNX has no quantiles of Student's t, so that it is fixed here.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` (n, m), float64; outputs ``mean``, ``std``, ``lower`` and ``upper``, (n,)
        float64: those of ``predict(X, return_std=True)`` and ``predict_interval(X, level)``. The
        names of the features and the level are in its metadata.

    Raises
    ------
    ImportError
        Without onnx: ``pip install "posterity[onnx]"``.
    TypeError
        If ``model`` is not a linear regression.
    ValueError
        If it has a basis, averages over ways to forget, or is still improper.

    Examples
    --------
    >>> to_onnx("model")
    Traceback (most recent call last):
        ...
    TypeError: to_onnx exports a BayesianLinearRegression, not a str
    """
    if not isinstance(model, BayesianLinearRegression):
        raise TypeError(f"to_onnx exports a BayesianLinearRegression, not a {type(model).__name__}")
    onnx = needed("onnx", "onnx")
    known = model._known
    if model.basis is not None:
        raise ValueError(
            "to_onnx has no operators for a basis: transform the features first, and learn a model "
            "without one"
        )
    parts = components(known, "to_onnx")
    graph = Graph(onnx.helper, onnx.numpy_helper)
    told = [_one(graph, part) for _, part in parts]
    weights = [weight for weight, _ in parts]
    mean, variance = told[0] if len(told) == 1 else _matched(graph, told, weights)
    _outputs(graph, mean, variance, _quantiles(known, level))
    return _model(onnx, graph, model, level)


def _one(graph: Graph, known: LinearPosterior) -> tuple[str, str]:
    """Mean and squared scale, each (n, 1), of a posterior of one factor."""
    offset = int(known.intercept)
    coefficients = known.coefficients()
    inverse = solve_triangular(known.factor.root, np.eye(known.n_coefficients))
    mean = graph.apply("MatMul", "X", graph.constant(coefficients[offset:, None]))
    whitened = graph.apply("MatMul", "X", graph.constant(inverse[offset:]))
    if offset:
        mean = graph.apply("Add", mean, graph.constant(coefficients[:1]))
        whitened = graph.apply("Add", whitened, graph.constant(inverse[0]))
    squares = graph.apply("Mul", whitened, whitened)
    leverage = graph.apply("ReduceSum", squares, graph.constant([1], np.int64), keepdims=1)
    # scale^2 (1 + h); at h = 0 it is the squared scale itself.
    alone = known.noise.predictive(np.zeros(1), np.zeros(1), known.freed, known.residual)
    scale = float(alone.scale[0])
    if not math.isfinite(scale):
        raise ValueError(
            "to_onnx needs a proper posterior, and nothing is known of the noise so far: learn "
            "more rows, or give a noise_prior with shape and rate above 0"
        )
    spread = graph.apply("Add", leverage, graph.constant([1.0]))
    return mean, graph.apply("Mul", spread, graph.constant([scale**2]))


def _matched(graph: Graph, told: list[tuple[str, str]], weights: list[float]) -> tuple[str, str]:
    """Mean and squared scale of the mixture, as :func:`posterity.evidence.matched`."""
    shares = [graph.constant([weight]) for weight in weights]
    mean = graph.total(
        [graph.apply("Mul", part, share) for (part, _), share in zip(told, shares, strict=True)]
    )
    terms = []
    for (part, variance), share in zip(told, shares, strict=True):
        off = graph.apply("Sub", part, mean)
        whole = graph.apply("Add", variance, graph.apply("Mul", off, off))
        terms.append(graph.apply("Mul", whole, share))
    return mean, graph.total(terms)


def _quantiles(known: LinearPosterior, level: float) -> tuple[float, float]:
    """Standard deviation, and end of the central interval, in units of the scale."""
    n_features = known.n_coefficients - int(known.intercept)
    one = known.predictive(np.zeros((1, n_features)))
    if isinstance(one, StudentT):
        standard: Normal | StudentT = StudentT(one.df, np.zeros(1), np.ones(1))
    else:
        standard = Normal(np.zeros(1), np.ones(1))
    return float(standard.std()[0]), float(standard.interval(level)[1][0])


def _outputs(graph: Graph, mean: str, variance: str, quantiles: tuple[float, float]) -> None:
    last = graph.constant([1], np.int64)
    scale = graph.apply("Sqrt", variance)
    deviation, reach = quantiles
    half = graph.apply("Mul", scale, graph.constant([reach]))
    graph.apply("Squeeze", mean, last, to="mean")
    spread = graph.apply("Mul", scale, graph.constant([deviation]))
    graph.apply("Squeeze", spread, last, to="std")
    graph.apply("Squeeze", graph.apply("Sub", mean, half), last, to="lower")
    graph.apply("Squeeze", graph.apply("Add", mean, half), last, to="upper")


def _model(onnx: Any, graph: Graph, model: BayesianLinearRegression, level: float) -> Any:
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    inputs = [helper.make_tensor_value_info("X", double, ["n", model.n_features_in_])]
    outputs = [
        helper.make_tensor_value_info(name, double, ["n"])
        for name in ("mean", "std", "lower", "upper")
    ]
    made = helper.make_model(
        helper.make_graph(graph.nodes, "posterity", inputs, outputs, graph.constants),
        producer_name="posterity",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    names = (model.posterior_.names or ())[model._offset :]
    helper.set_model_props(made, {"features": "\n".join(names), "level": repr(level)})
    onnx.checker.check_model(made)
    return made
