"""Operators and constants of an ONNX graph, and the linear predictor that all graphs start with.

ONNX has no triangular solve. But the leverage of a row is |x R^-1|^2, and R^-1 is a matrix that can
be stored: one product, squares and a sum. So the graph is exact up to rounding, which grows with
the condition of R as it does in an inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from posterity.aliases import AnyArray
from posterity.distributions.triangles import solve_triangle
from posterity.posteriors import LinearPosterior


@dataclass
class Graph:
    """Operators and constants, as they are put together; values are known by their names."""

    helper: Any
    numpy_helper: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    # The name of the features, as the model takes them.
    rows: str = "X"

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """The name of a constant."""
        name = f"constant_{len(self.constants)}"
        array: AnyArray = np.asarray(value, dtype=dtype)
        self.constants.append(self.numpy_helper.from_array(array, name))
        return name

    def apply(
        self, operator: str, *inputs: str | ArrayLike, to: str | None = None, **attributes: Any
    ) -> str:
        """The name of what an operator makes of its inputs; numbers become constants."""
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        name = to or f"value_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, names, [name], **attributes))
        return name

    def cast(self, value: str, kind: int) -> str:
        """The name of ``value`` as numbers of another type."""
        name = f"value_{len(self.nodes)}"
        self.nodes.append(self.helper.make_node("Cast", [value], [name], to=kind))
        return name

    def total(self, terms: list[str]) -> str:
        """The sum of some values."""
        whole = terms[0]
        for term in terms[1:]:
            whole = self.apply("Add", whole, term)
        return whole

    def add_output(self, value: str, name: str) -> None:
        """Give out a column (n, 1) as an output (n,)."""
        self.apply("Squeeze", value, self.constant([1], np.int64), to=name)


def predictor(graph: Graph, posterior: LinearPosterior) -> tuple[str, str]:
    """Mean and leverage, each (n, 1), of a posterior of one factor at the rows of ``X``."""
    offset = int(posterior.intercept)
    coefficients = posterior.coefficients()
    inverse = solve_triangle(posterior.factor.root, np.eye(posterior.n_coefficients))
    mean = graph.apply("MatMul", graph.rows, coefficients[offset:, None])
    whitened = graph.apply("MatMul", graph.rows, inverse[offset:])
    if offset:
        mean = graph.apply("Add", mean, coefficients[:1])
        whitened = graph.apply("Add", whitened, inverse[0])
    squares = graph.apply("Mul", whitened, whitened)
    axis = graph.constant([1], np.int64)
    return mean, graph.apply("ReduceSum", squares, axis, keepdims=1)


def add_mixture_moments(
    graph: Graph, moments: list[tuple[str, str]], weights: list[float]
) -> tuple[str, str]:
    """Mean and squared scale of a mixture, as :func:`posterity.evidence.add_mixture_moments`."""
    if len(moments) == 1:
        return moments[0]
    shares = [graph.constant([weight]) for weight in weights]
    mean = graph.total(
        [graph.apply("Mul", part, share) for (part, _), share in zip(moments, shares, strict=True)]
    )
    terms = []
    for (part, variance), share in zip(moments, shares, strict=True):
        off = graph.apply("Sub", part, mean)
        whole = graph.apply("Add", variance, graph.apply("Mul", off, off))
        terms.append(graph.apply("Mul", whole, share))
    return mean, graph.total(terms)
