"""The components of a mixture, a block of rows at a time, and the sums over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import logsumexp

from posterity.distributions import _standard_normal, _standard_t
from posterity.distributions._family import StandardFamily
from posterity.distributions._limits import is_flat, is_ordinary
from posterity.distributions._rows import FloatArray
from posterity.distributions.location_scale import LocationScale
from posterity.distributions.normal import Normal
from posterity.distributions.student_t import StudentT

BLOCK_ROWS = 8192
# So many components of so few rows at most are summed over as one array.
FEWEST_TOGETHER, MOST_ROWS_TOGETHER = 4, 64


class MixtureComponent(NamedTuple):
    """One component in one block: 0-d arrays where all rows share a value, else (b,)."""

    weight: FloatArray
    loc: FloatArray
    scale: FloatArray
    df: FloatArray | None  # at most MOST_DF; None: normal, and so are the other terms

    def shape_parameters(self) -> tuple[FloatArray, ...]:
        return () if self.df is None else (self.df,)

    def family(self) -> StandardFamily:
        return cast(StandardFamily, _standard_normal if self.df is None else _standard_t)

    def standardize(self, y: FloatArray) -> FloatArray:
        return (y - self.loc) / self.scale

    def distribution(self) -> LocationScale:
        if self.df is None:
            return Normal(self.loc, self.scale)
        return StudentT(self.df, self.loc, self.scale)

    def map_parameters(self, change: Callable[[FloatArray], Any]) -> MixtureComponent:
        df = None if self.df is None else change(self.df)
        return MixtureComponent(change(self.weight), change(self.loc), change(self.scale), df)

    def take(self, rows: Any) -> MixtureComponent:
        return self.map_parameters(lambda p: p if p.ndim == 0 else p[rows])

    def reflect(self, sign: FloatArray) -> MixtureComponent:
        return self._replace(loc=sign * self.loc)


MixtureComponents = Sequence[MixtureComponent]


def over_rows(
    formula: Callable[..., Any],
    terms_of: Callable[[slice, bool], MixtureComponents],
    first: FloatArray,
    shape: tuple[int, ...],
) -> FloatArray:
    """Evaluate ``formula(first, terms)`` block by block.

    Parameters
    ----------
    formula : callable
        Returns an array that broadcasts to the block.
    terms_of : callable
        Returns the components of the rows in a slice, and whether these are a single one.
    first : ndarray
        Broadcasts against ``shape``.
    shape : tuple of int
        Shape of the rows: (n,) or ().

    Returns
    -------
    ndarray
        Of the broadcast shape; a NumPy scalar where that shape is ``()``.
    """
    full = np.broadcast_shapes(first.shape, shape)
    single = not shape or shape == (1,)
    rows = math.prod(full) if single else shape[0]
    layers = 1 if single or not rows else math.prod(full) // rows
    given = first if first.ndim == 0 else np.broadcast_to(first, full).reshape(layers, rows)
    result = np.empty((layers, rows))
    with np.errstate(all="ignore"):
        for start in range(0, rows, BLOCK_ROWS):
            block = slice(start, min(start + BLOCK_ROWS, rows))
            terms = terms_of(slice(0, 1) if single else block, single)
            for layer in range(layers):
                here = given if given.ndim == 0 else given[layer, block]
                result[layer, block] = formula(here, terms)
    reshaped: FloatArray = result.reshape(full)[()]
    return reshaped


def list_terms(
    components: Sequence[LocationScale], weights: FloatArray, rows: slice, single: bool
) -> list[MixtureComponent]:
    """Return the components of the rows, without those of weight zero in all of them."""
    columns = weights if weights.ndim == 1 else np.ascontiguousarray(weights[rows].T)
    students = any(isinstance(c, StudentT) for c in components)
    terms = []
    for component, column in zip(components, columns, strict=True):
        weight = np.asarray(column[0] if single and column.ndim else column)
        if not weight.max() > 0.0:
            continue
        df = getattr(component, "df", np.asarray(_standard_t.MOST_DF)) if students else None
        loc, scale = (_block(p, rows, single) for p in (component.loc, component.scale))
        if df is not None:
            df = _block(df, rows, single)
            df = np.minimum(df, _standard_t.MOST_DF) if df.max() > _standard_t.MOST_DF else df
        terms.append(MixtureComponent(weight, loc, scale, df))
    if min(term.weight.min() for term in terms) > 0.0:
        return terms
    return _replace_zero_weights(terms)


def _block(parameter: FloatArray, rows: slice, single: bool) -> FloatArray:
    if parameter.ndim == 0:
        return parameter
    return parameter.reshape(()) if single else parameter[rows]


def _replace_zero_weights(terms: list[MixtureComponent]) -> list[MixtureComponent]:
    """Replace components of weight zero by the heaviest one, which shares its weight.

    The mixture stays the same, and no limit, bracket or bound need ask for weights again.
    """
    rows = flattened(terms, shape_of(terms))
    weights = np.stack([term.weight for term in rows])
    absent = ~(weights > 0.0)
    heaviest = np.argmax(weights, axis=0)[None]
    share = weights.max(axis=0) / (1 + np.count_nonzero(absent, axis=0))

    def settle(parameters: Sequence[FloatArray]) -> FloatArray:
        each = np.stack(parameters)
        return np.where(absent, np.take_along_axis(each, heaviest, axis=0), each)

    shares = np.where(absent | (np.arange(len(rows))[:, None] == heaviest), share, weights)
    loc, scale = settle([term.loc for term in rows]), settle([term.scale for term in rows])
    df = [None] * len(rows) if rows[0].df is None else settle([cast(Any, t.df) for t in rows])
    return list(starmap(MixtureComponent, zip(shares, loc, scale, df, strict=True)))


def shape_of(terms: MixtureComponents, *others: FloatArray) -> tuple[int, ...]:
    """Shape of the block."""
    parameters = (p.shape for term in terms for p in term if p is not None)
    return np.broadcast_shapes(*parameters, *(other.shape for other in others))


def flattened(terms: MixtureComponents, shape: tuple[int, ...]) -> list[MixtureComponent]:
    """Components with every parameter of every row written out, 1-D."""
    return [term.map_parameters(lambda p: np.broadcast_to(p, shape).reshape(-1)) for term in terms]


def swap_rows(here: Any, one: MixtureComponent, other: MixtureComponent) -> MixtureComponent:
    """The parameters of ``other`` in the rows ``here``, of ``one`` in the rest; its own weight."""
    df = None if one.df is None or other.df is None else np.where(here, other.df, one.df)
    loc, scale = np.where(here, other.loc, one.loc), np.where(here, other.scale, one.scale)
    return MixtureComponent(one.weight, loc, scale, df)


# ---- kinds of rows -----------------------------------------------------------------------------


def all_ordinary(terms: MixtureComponents) -> bool:
    """True if no component of the block is flat or a point mass: the usual case."""
    return all(is_ordinary(term.scale, term.shape_parameters()) for term in terms)


def has_flat_component(terms: MixtureComponents) -> Any:
    """Rows with a flat component."""
    flat = is_flat(terms[0].scale, terms[0].shape_parameters())
    for term in terms[1:]:
        flat = flat | is_flat(term.scale, term.shape_parameters())
    return flat


def has_point_mass(terms: MixtureComponents) -> Any:
    """Rows with a point mass."""
    point = terms[0].scale == 0.0
    for term in terms[1:]:
        point = point | (term.scale == 0.0)
    return point


def least_df(terms: MixtureComponents) -> Any:
    """Fewest degrees of freedom of a row; infinite for normals."""
    least = np.asarray(_standard_t.MOST_DF)
    for term in terms:
        least = least if term.df is None else np.minimum(least, term.df)
    return np.broadcast_to(least, shape_of(terms))


# ---- sums over ordinary components --------------------------------------------------------------


def stack_few(terms: MixtureComponents, y: FloatArray) -> MixtureComponent | None:
    """All components of a few rows as one, (K, b); None where a loop over them is as fast.

    Or where ``y``, at which they are asked, is not one number for each row.
    """
    if len(terms) < FEWEST_TOGETHER or y.ndim > 1 or terms[0].loc.size > MOST_ROWS_TOGETHER:
        return None
    columns: list[Any] = []
    for parameters in zip(*terms, strict=True):
        if parameters[0] is None:
            columns.append(None)
            continue
        alike = len({p.ndim for p in parameters}) == 1
        each = np.array(parameters if alike else np.broadcast_arrays(*parameters))
        columns.append(each[:, None] if each.ndim == 1 else each)
    return MixtureComponent(*columns)


def total_at(
    y: FloatArray, terms: MixtureComponents, value: Callable[[MixtureComponent], Any]
) -> Any:
    """Sum of weight times value at ``y``, which is (b,) or (m, b); over a few rows at once."""
    together = stack_few(terms, y)
    if together is None:
        return total(terms, value)
    return (together.weight * value(together)).sum(axis=-2)


def total(terms: MixtureComponents, value: Callable[[MixtureComponent], Any]) -> Any:
    """Sum of weight times value."""
    result = terms[0].weight * value(terms[0])
    for term in terms[1:]:
        result += term.weight * value(term)
    return result


def density(y: FloatArray, terms: MixtureComponents) -> FloatArray:
    """Density of the mixture; 0 where it underflows."""

    def one(term: MixtureComponent) -> FloatArray:
        return term.family().pdf(term.standardize(y), *term.shape_parameters()) / term.scale

    return np.asarray(total_at(y, terms, one))


def lower_tail(y: FloatArray, terms: MixtureComponents, *, rough: bool = False) -> FloatArray:
    """Distribution function of the mixture, small values to full relative precision, or rough."""

    def one(term: MixtureComponent) -> FloatArray:
        family = term.family()
        cdf = family.approximate_cdf if rough else family.cdf
        return cdf(term.standardize(y), *term.shape_parameters())

    return np.asarray(total_at(y, terms, one))


def absolute_error(y: FloatArray, terms: MixtureComponents) -> FloatArray:
    """E|X - y|; infinite with one degree of freedom or fewer."""

    def one(term: MixtureComponent) -> FloatArray:
        mean = term.family().absolute_error(term.standardize(y), *term.shape_parameters())
        return term.scale * mean

    return np.asarray(total_at(y, terms, one))


# ---- sums over components of any kind -----------------------------------------------------------


def log_density(y: FloatArray, terms: MixtureComponents) -> FloatArray:
    """Logarithm of the density, without underflow."""
    together = stack_few(terms, y)
    if together is not None:
        logs = np.log(together.weight) + together.distribution().logpdf(y)
        return np.asarray(logsumexp(logs, axis=-2))
    each = [np.log(term.weight) + term.distribution().logpdf(y) for term in terms]
    return np.asarray(logsumexp(np.stack(np.broadcast_arrays(*each)), axis=0))
