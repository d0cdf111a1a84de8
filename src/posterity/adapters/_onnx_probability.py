"""The logistic function averaged over a Gaussian, in ONNX's operators.

As :mod:`posterity.likelihoods.moderation` has it: up to a variance of 1 by 16 nodes of
Gauss-Hermite, beyond by a mixture of eight normal distribution functions.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import chebyshev, hermite
from scipy.special import erfcx

from posterity.adapters._onnx_graph import Graph
from posterity.aliases import Array
from posterity.likelihoods.moderation import LARGEST_SERIES_VARIANCE, SHARES, SLOPES

N_NODES, DEGREE = 16, 20


def add_expected_labels(graph: Graph, mean: str, variance: str) -> tuple[str, str]:
    """Expectations of sigmoid(eta) and sigmoid(-eta), eta ~ Normal(mean, variance); all (n, 1)."""
    near = _integrate_by_nodes(graph, mean, graph.apply("Min", variance, [LARGEST_SERIES_VARIANCE]))
    wide = graph.apply("Greater", variance, [LARGEST_SERIES_VARIANCE])
    away = graph.apply("Max", variance, [LARGEST_SERIES_VARIANCE])
    far = [
        _integrate_by_normal_mixture(graph, one, away) for one in (mean, graph.apply("Neg", mean))
    ]
    yes, no = (graph.apply("Where", wide, *pair) for pair in zip(far, near, strict=True))
    return yes, no


def _integrate_by_nodes(graph: Graph, mean: str, variance: str) -> tuple[str, str]:
    """Integrate the less probable side, which keeps its digits; return it and one minus it.

    With a = exp(-|mean|) and E = exp(scale x), sigmoid(-|mean| + scale x) = a E / (1 + a E).
    """
    nodes, weights = hermite.hermgauss(N_NODES)
    a = graph.apply("Exp", graph.apply("Neg", graph.apply("Abs", mean)))
    scale = graph.apply("Sqrt", variance)
    moved = graph.apply("Exp", graph.apply("Mul", scale, np.sqrt(2.0) * nodes[None]))
    below = graph.apply("Add", graph.apply("Mul", a, moved), [1.0])
    shares = (weights / np.sqrt(np.pi))[:, None]
    some = graph.apply("MatMul", graph.apply("Div", moved, below), shares)
    less = graph.apply("Mul", a, some)
    more = graph.apply("Sub", [1.0], less)
    likely = graph.apply("Greater", mean, [0.0])
    return graph.apply("Where", likely, more, less), graph.apply("Where", likely, less, more)


def _integrate_by_normal_mixture(graph: Graph, mean: str, variance: str) -> str:
    """Monahan and Stefanski's (1992) mixture; in the tail by sigmoid(eta) = exp(eta) sigmoid(-eta).

    Then the expectation is exp(mean + variance / 2) times that of sigmoid(-eta) with the mean
    mean + variance.
    """
    ahead = graph.apply("Add", mean, variance)
    tail = graph.apply("Less", ahead, [0.0])
    half = graph.apply("Add", mean, graph.apply("Mul", variance, [0.5]))
    lead = graph.apply("Exp", graph.apply("Where", tail, half, graph.constant([0.0])))
    moved = graph.apply("Where", tail, graph.apply("Neg", ahead), mean)
    spread = graph.apply("Sqrt", graph.apply("Add", variance, (SLOPES**-2.0)[None]))
    below = _compute_normal_cdf(graph, graph.apply("Div", moved, spread))
    return graph.apply("Mul", graph.apply("MatMul", below, SHARES[:, None]), lead)


def _compute_normal_cdf(graph: Graph, x: str) -> str:
    """The normal distribution function; ONNX Runtime has Erf in single precision only.

    erfc(z) = t P(2 t - 1) exp(-z^2) for z >= 0 with t = 2 / (2 + z), P a Chebyshev series that is
    summed by Clenshaw's recurrence.
    """
    z = graph.apply("Mul", graph.apply("Abs", x), [np.sqrt(0.5)])
    t = graph.apply("Div", [2.0], graph.apply("Add", z, [2.0]))
    twice = graph.apply("Sub", graph.apply("Mul", t, [4.0]), [2.0])
    series = chebyshev.chebinterpolate(_compute_scaled_erfc, DEGREE)  # type: ignore[type-var]
    here, before = graph.constant([series[-1]]), ""
    for coefficient in series[-2:0:-1]:
        ahead = graph.apply("Add", graph.apply("Mul", twice, here), [coefficient])
        here, before = graph.apply("Sub", ahead, before) if before else ahead, here
    half = graph.apply("Mul", graph.apply("Mul", twice, here), [0.5])
    sum_ = graph.apply("Sub", graph.apply("Add", half, [series[0]]), before)
    size = graph.apply("Exp", graph.apply("Neg", graph.apply("Mul", z, z)))
    tail = graph.apply("Mul", graph.apply("Mul", graph.apply("Mul", t, sum_), size), [0.5])
    upper = graph.apply("Greater", x, [0.0])
    return graph.apply("Where", upper, graph.apply("Sub", [1.0], tail), tail)


def _compute_scaled_erfc(u: Array) -> Array:
    """exp(z^2) erfc(z) / t at u = 2 t - 1.

    Examples
    --------
    >>> _compute_scaled_erfc(np.array([1.0]))  # z = 0
    array([1.])
    """
    t = 0.5 * (u + 1.0)
    return np.asarray(erfcx(2.0 / t - 2.0) / t)
