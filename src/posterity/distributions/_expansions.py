"""Expansions of the Student-t distribution for many degrees of freedom.

With v degrees of freedom and a = v - 1/2, put w^2 = a log(1 + z^2 / v), with the sign of z (Wallace
1959; Hill 1970, Algorithm 396). The density of z, carried over to w, is

    f(z) dz = 1/N(a) phi(w) h(q) dw,    q = w^2 / (2 a),    h(q) = sqrt(q / sinh q),

exactly. h is even, so everything is a series in 1/a^2: twice as fast as one in 1/v, and good far
into the tails. The rest is bookkeeping, done once in rational arithmetic:

* distribution function: integrate phi(w) h term by term by parts,

      P(Z > z) = Q(w) + phi(w) w sum_j s_j(w^2) / a^(2j);

* quantile: dw/du = N phi(u) / (phi(w) h), u the normal quantile, solved order by order,

      w = u (1 + sum_j r_j(u^2) / a^(2j));

* the constants are Stirling's series of their gamma functions.

Polynomials are tuples of coefficients, the constant first.
"""

from __future__ import annotations

from posterity.distributions._rows import FloatArray

Polynomial = tuple[float, ...]

TAIL: tuple[Polynomial, ...] = (  # s_1, s_2, ... in w^2
    (-1 / 16, -1 / 48),
    (19 / 512, 19 / 1536, 7 / 2560, 1 / 2560),
    (-631 / 8192, -631 / 24576, -65 / 12288, -65 / 86016, -671 / 7741440, -61 / 7741440),
    (
        174317 / 524288,
        174317 / 1572864,
        58947 / 2621440,
        8421 / 2621440,
        8459 / 23592960,
        769 / 23592960,
        1261 / 495452160,
        1261 / 7431782400,
    ),
)
QUANTILE: tuple[Polynomial, ...] = (  # r_1, r_2, ... in u^2
    (-1 / 16, -1 / 48),
    (21 / 512, 1 / 64, 7 / 2560, 1 / 5760),
    (-671 / 8192, -245 / 8192, -257 / 40960, -2209 / 2580480, -407 / 5806080, -1 / 362880),
    (
        180323 / 524288,
        1483 / 12288,
        33053 / 1310720,
        12899 / 3440640,
        41383 / 99090432,
        3529 / 103219200,
        173 / 92897280,
        1 / 19353600,
    ),
)
# log of sqrt(2) Gamma((v+1)/2) / (Gamma(v/2) sqrt(v)), over 1/v, in 1/v^2: Stirling's series.
LOG_RATIO: Polynomial = (-1 / 4, 1 / 24, -1 / 20, 17 / 112, -31 / 36, 691 / 88)
# From so many degrees of freedom on the terms above give full double precision, where ``REACH``
# bounds log(1 + z^2 / df), or u^2 / a for quantiles: at df = 64 |z| = 4.2. Further out the terms
# no longer fall fast enough.
LOWEST_DF = 64.0
REACH = 0.24


def polynomial(coefficients: Polynomial, x: FloatArray) -> FloatArray:
    """Value of a polynomial of at least two coefficients, by Horner's rule."""
    value = coefficients[-1] * x + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        value = value * x + coefficient
    return value


def double_series(terms: tuple[Polynomial, ...], x: FloatArray, step: FloatArray) -> FloatArray:
    """Sum over j = 1, 2, ... of ``step**j`` times the j-th polynomial of x."""
    value = step * polynomial(terms[-1], x)
    for term in terms[-2::-1]:
        value = step * (value + polynomial(term, x))
    return value
