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

from dataclasses import dataclass

from posterity.distributions._rows import FloatArray

Polynomial = tuple[float, ...]

_TAIL: tuple[Polynomial, ...] = (  # s_1, s_2, ... in w^2
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
_QUANTILE: tuple[Polynomial, ...] = (  # r_1, r_2, ... in u^2
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
# log of sqrt(2 pi) Gamma((v+1)/2) / (Gamma(v/2) sqrt(v pi)), over 1/v, in 1/v^2.
_LOG_CONSTANT: Polynomial = (-1 / 4, 1 / 24, -1 / 20, 17 / 112)
# sqrt(pi/2) 2v/(v-1) Gamma((v+1)/2) / (Gamma(v/2) sqrt(v pi)), in 1/v.
_CRPS_DENSITY: Polynomial = (
    1.0,
    3 / 4,
    25 / 32,
    105 / 128,
    1659 / 2048,
    6237 / 8192,
    50765 / 65536,
    242385 / 262144,
    7421843 / 8388608,
)
# sqrt(pi) 2 sqrt(v)/(v-1) B(1/2, v-1/2) / B(1/2, v/2)^2, in 1/v.
_CRPS_OFFSET: Polynomial = (
    1.0,
    7 / 8,
    129 / 128,
    1149 / 1024,
    37035 / 32768,
    275049 / 262144,
    4498853 / 4194304,
    45879893 / 33554432,
    2834782707 / 2147483648,
)


@dataclass(frozen=True)
class Expansion:
    """Expansion with as many terms as double precision needs, from ``lowest_df`` to ``reach``.

    ``reach`` bounds ``log(1 + z^2 / df)`` (for quantiles ``u^2 / a``): further out the terms no
    longer fall fast enough. At df = 64 it is |z| = 4.2, at df = 1000 (more terms) |z| = 16.
    """

    lowest_df: float
    reach: float
    tail: tuple[Polynomial, ...]
    quantile: tuple[Polynomial, ...]
    log_constant: Polynomial
    crps_density: Polynomial
    crps_offset: Polynomial


MODERATE_DF_EXPANSION = Expansion(
    lowest_df=64.0,
    reach=0.24,
    tail=_TAIL,
    quantile=_QUANTILE,
    log_constant=_LOG_CONSTANT,
    crps_density=_CRPS_DENSITY,
    crps_offset=_CRPS_OFFSET,
)
LARGE_DF_EXPANSION = Expansion(
    lowest_df=1000.0,
    reach=0.024,
    tail=_TAIL[:2],
    quantile=_QUANTILE[:2],
    log_constant=_LOG_CONSTANT[:2],
    crps_density=_CRPS_DENSITY[:6],
    crps_offset=_CRPS_OFFSET[:6],
)


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
