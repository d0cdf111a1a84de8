"""How a sparse posterior finds its prior from what is kept of rows: the likeliest, or nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array
from scipy.special import gammaln

from posterity.aliases import Array, Indices
from posterity.factor.sparse_pattern import SparsityPattern
from posterity.likelihoods import Likelihood
from posterity.likelihoods.parameter import average
from posterity.noise import LOG_2PI
from posterity.posteriors._sparse_data import Find, centre_at_means
from posterity.posteriors._sparse_nodes import Node, Placed, place_nodes
from posterity.posteriors._sparse_search import (
    ENOUGH_WEIGHTS,
    KNOWN_WEIGHTS,
    NEGLIGIBLE,
    NEGLIGIBLE_A_ROW,
    Close,
    Columns,
    Found,
    GivenPrior,
    PriorRule,
    find_numbers,
    search,
)
from posterity.posteriors._sparse_sites import PriorPrecision, ProductSums, SiteRows, Sweep
from posterity.posteriors._sparse_solution import Solution
from posterity.posteriors._sparse_terms import Term, Terms, scale_columns

# Most numbers with scales of their own, as a share of the rows.
MOST_NUMBERS = 0.5
# Prior precision of weights beside terms, on values of mean square 1: of Gaussian noise a
# millionth of a row.
WEAK = 1e-6
# Nodes need to be no nearer to where they are placed.
NEAR = Close(1e-4, 2e-3)


class Reading(NamedTuple):
    """What is known of weights: solutions, and the weight of each."""

    weights: Array
    solutions: list[Solution]
    nodes: list[Node]
    terms: Terms | None
    log_evidence: float  # of a prior that is integrated over

    def observe(self, likelihood: Likelihood) -> Likelihood:
        """The likelihood with parameters that stand for all: the means of their powers."""
        return self._observe(likelihood, self.weights)

    def observe_each(self, likelihood: Likelihood) -> list[Likelihood]:
        """The likelihood with the parameters of each node."""
        return [self._observe(likelihood, weights) for weights in np.eye(len(self.weights))]

    def _observe(self, likelihood: Likelihood, weights: Array) -> Likelihood:
        if self.terms is None or not self.terms.parameters:
            return likelihood
        logs = np.array([self.terms.phi(node.at) for node in self.nodes])
        each = zip(self.terms.parameters, logs.T, strict=True)
        return likelihood.with_parameters(
            np.array([average(t, weights, one.power) for one, t in each])
        )


class Likeliest(NamedTuple):
    """Coordinates of the largest evidence; shape and rate of the noise's precision there."""

    at: Array
    noise: tuple[float, float]


class Fit:
    """One search for the prior of a :class:`SparsePosterior`."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self._taken: float | None = None  # where they are known to stay as they are
        self._n_scales = 0  # of priors in units of the targets: the noise's has as many powers more
        self.data, self.centres = centre_at_means(of._data, of.centres)
        rows = not of.likelihood.is_gaussian
        self.close = Close(NEGLIGIBLE_A_ROW * len(of.targets) if rows else NEGLIGIBLE)
        numbers = np.arange(len(of.owners))
        tied = np.isin(of.owners, [c for term in of.terms or () for c in term]) & (numbers > 0)
        self.met: Indices = np.union1d(self.data.features, np.flatnonzero(tied))
        self.owners = of.owners[self.met]

    # ---- the likeliest prior of each column ------------------------------------------------------

    def maximize(self) -> Reading:
        """The posterior under the prior precisions of the largest evidence."""
        columns = self._describe_columns()
        self.flat = columns.few[self.owners]
        rows = self._gather(self.of._find_pattern)
        # Numbers as if signal and noise were as large as each other: many could meet all rows.
        count = np.count_nonzero(columns.numbers)
        begun = np.log(np.where(columns.numbers, count, self.of.found[:, 0])[columns.learned])
        found = search(rows, columns, begun, self.noise_precision, self.close)
        precisions = columns.complete(found.at)
        each = precisions * columns.scale
        one = self._solve(found, columns, each[self.of.owners], precisions, each)
        return Reading(np.ones(1), [one], [], None, np.nan)

    def _describe_columns(self) -> Columns:
        """Return the columns of the features met, and what is known of their scales.

        Of labels or counts that is the scale 1. Of Gaussian noise, columns of few weights are given
        the others; of k weights in these, and n rows, they draw to 0 by a share of (k / n)^2.
        """
        of, size = self.of, len(self.of.squares)
        numbers = np.bincount(self.owners, minlength=size)
        learned = (numbers > 0) & (np.arange(size) > 0) & of.learns
        single = find_numbers(np.where(learned, numbers, 0))
        if of.likelihood.is_gaussian:  # more of them would take the noise for effects
            single &= np.count_nonzero(single) <= MOST_NUMBERS * of.n_effective
        few = learned & ~single & (numbers < ENOUGH_WEIGHTS) & of.likelihood.is_gaussian
        scale = np.where(of.learns, self.mean_squares, 1.0)
        known, usual = np.full(size, KNOWN_WEIGHTS), 1.0
        if of.likelihood.is_gaussian:
            known = np.where(single, KNOWN_WEIGHTS, np.where(few, ENOUGH_WEIGHTS - numbers, 0.0))
            usual = max(float(numbers[few].sum()), 1.0) ** 2 / max(of.n_effective, 1.0)
        given = np.where(np.arange(size) > 0, of.start, of.found[:, 0])
        of_columns = np.flatnonzero(learned), scale, known, usual, few, given, single
        return Columns(self.owners, *of_columns)

    # ---- nodes over the prior of terms -----------------------------------------------------------

    def integrate(self) -> Reading:
        """The posterior under nodes over the covariances of terms."""
        terms, rows = self._describe_terms()
        self._n_scales = sum(len(term.columns) for term in terms.terms)
        # Always from there, so that the order of rows does not matter.
        found = search(rows, terms, terms.start, self.noise_precision, NEAR)
        self._taken = self._count_taken(found.sweep, np.where(self.flat, terms.given, 0.0))
        mode = self._make_node(terms, rows, found)
        placed = Placed([mode], np.ones(1), mode.log_density)
        tau = self.noise_precision(found.sweep, terms.prior(found.at))
        if terms.size and tau is not None:

            def slope(node: Node) -> tuple[Array, Array]:
                prior = terms.prior(node.at)
                tau = self.noise_precision(node.found.sweep, prior)
                return terms.score(node.at, node.found.sweep, tau or 1.0)

            def evaluate(at: Array, near: Found) -> Node:
                if (terms.limit(at) != at).any():
                    return Node(at, -np.inf, near)
                rule, nothing = GivenPrior(terms.prior(at)), np.zeros(0)
                settings = rows, rule, nothing, self.noise_precision, NEAR, near.sites
                node = self._make_node(terms, rows, search(*settings)._replace(at=at))
                # A likelihood that is steep there has no sites that quadrature would find.
                return node if np.isfinite(node.log_density) else Node(at, -np.inf, near)

            placed = place_nodes(mode, evaluate, slope)
        solutions = [self._solve_terms(terms, node.found) for node in placed.nodes]
        log_evidence = placed.log_integral + self._log_constant(terms, mode.found)
        return Reading(placed.weights, solutions, placed.nodes, terms, log_evidence)

    def find_likeliest(self) -> tuple[Terms, Likeliest]:
        """The covariances of the largest evidence: restricted maximum likelihood."""
        terms, rows = self._describe_terms()
        terms = replace(terms, trust=0.0)
        found = search(rows, terms, terms.start, self.noise_precision, Close(NEGLIGIBLE))
        return terms, Likeliest(found.at, self.noise(found.sweep, terms.prior(found.at)))

    def _describe_terms(self) -> tuple[Terms, ProductSums | SiteRows]:
        """Terms of the features met, and the rows in a pattern that has what these tie."""
        of, noise = self.of, self.of.likelihood.is_gaussian
        self.flat = ~np.isin(self.owners, [0, *(c for term in of.terms or () for c in term)])
        tied = [
            np.stack([np.flatnonzero(self.owners == column) for column in columns], axis=1)
            for columns in of.terms or ()
        ]
        ends = [np.zeros((0, 2), dtype=np.intp)]
        for features in tied:
            one, two = np.triu_indices(features.shape[1], 1)
            ends.append(np.stack([features[:, one], features[:, two]], axis=2).reshape(-1, 2))
        pairs = np.concatenate(ends)

        def find(matrix: csc_array) -> SparsityPattern:
            both = np.concatenate([pairs, pairs[:, ::-1]]).T
            links = csc_array((np.ones(both.shape[1]), tuple(both)), matrix.shape)
            return of._find_pattern(csc_array(abs(matrix) + links) if len(pairs) else matrix)

        rows = self._gather(find)
        terms = []
        for columns, features in zip(of.terms or (), tied, strict=True):
            places = np.broadcast_arrays(features[:, :, None], features[:, None, :])
            entries = rows.pattern.find_entries(*(place.ravel() for place in places))
            shape = *features.shape, features.shape[1]
            gram, squares = self._sum_products(features), self.mean_squares[list(columns)]
            unit = scale_columns(gram, of.n_effective, squares)
            terms.append(Term(columns, features, entries.reshape(shape), unit))
        weak = WEAK if noise else 1.0 / of.likelihood.vague_variance
        given = weak * self.mean_squares[self.owners]
        given[self.owners == 0] = of.found[0, 0]
        return Terms(tuple(terms), given, self._spread(), parameters=of.likelihood.learned), rows

    def _sum_products(self, features: Indices) -> Array:
        """(k, k) sums of products of columns, of their features (levels, k) among those met."""
        k, found = features.shape[1], np.zeros(2 * features.shape[1:])
        each = self.met[features].T
        for i, j in zip(*np.tril_indices(k * (k > 1)), strict=True):
            found[i, j] = found[j, i] = self._products[each[i], each[j]].sum()
        return found

    @cached_property
    def _products(self) -> Any:
        return self.data.products

    def _spread(self) -> float:
        """Standard deviation of the targets in units of eta; 1 of labels and counts."""
        if not self.of.likelihood.is_gaussian:
            return 1.0
        n, known = max(self.of.n_effective, 1.0), 0.0 if self.of.noise else 1.0
        square = max(self.of.square - self.of.targets[:1].sum() ** 2 / n, 0.0) / n
        return float(np.sqrt(max(square, known / self.of.known_precision)))

    def _make_node(self, terms: Terms, rows: ProductSums | SiteRows, found: Found) -> Node:
        shape, rate = self.noise(found.sweep, terms.prior(found.at))
        tau = self.of._noise_precision(shape, rate)
        if tau is None:
            return Node(found.at, 0.0, found)
        height = rows.log_evidence(terms.prior(found.at), found.sweep, found.sites)
        height += 0.5 * terms.log_determinant(found.at) + terms.log_prior(found.at, tau)
        if self.of.noise is not None:
            height -= shape * np.log(rate)
        else:
            height += 0.5 * tau * found.sweep.explained
        return Node(found.at, height, found)

    def _log_constant(self, terms: Terms, found: Found) -> float:
        """What the log densities of nodes leave out of the log evidence, the same at all.

        Flat directions, of the constant and of the log of the noise's precision, have density 1.
        """
        shape, rate = self.noise(found.sweep, terms.prior(found.at))
        if self.of._noise_precision(shape, rate) is None:  # rows say nothing of it
            return np.nan
        of, given = self.of, terms.given[self.flat | (self.owners == 0)]
        constant = 0.5 * float(np.log(given[given > 0.0]).sum()) + terms.log_constant
        if not of.likelihood.is_gaussian:
            return constant
        flat = int(np.sum(given == 0.0))
        constant += 0.5 * (flat - of.n_effective) * LOG_2PI
        if of.noise is not None:
            return constant + float(gammaln(shape))
        tau = of.known_precision
        return constant + 0.5 * ((of.n_effective - flat) * np.log(tau) - tau * of.square)

    def _solve_terms(self, terms: Terms, found: Found) -> Solution:
        of, weak = self.of, np.zeros(len(self.of.squares))
        np.maximum.at(weak, self.owners, terms.given)
        each = np.where(weak > 0.0, weak, WEAK)
        each[0] = of.found[0, 0]
        covariances = [
            (term.columns, covariance)
            for term, covariance in zip(terms.terms, terms.covariances(found.at), strict=True)
        ]
        for columns, covariance in covariances:
            each[list(columns)] = 1.0 / covariance.diagonal()
        relative = np.where(np.arange(len(each)) > 0, each / self.mean_squares, each)
        one = self._solve(found, terms, each[of.owners], relative, each)
        return one._replace(tied=covariances)

    # ---- both ------------------------------------------------------------------------------------

    def noise(self, sweep: Sweep, prior: PriorPrecision) -> tuple[float, float]:
        """Shape and rate of the noise's precision."""
        flat = np.where(self.flat, prior.diagonal, 0.0)
        return self.of._noise(sweep, flat, self._count_taken(sweep, flat) + self._n_scales)

    def _count_taken(self, sweep: Sweep, prior: Array) -> float:
        """The degrees of freedom that weights with a nearly flat prior take."""
        some = prior > 0.0
        if self._taken is None and some.any():
            return float(np.sum(1.0 - prior[some] * sweep.variance[some]))
        return self._taken or 0.0

    def noise_precision(self, sweep: Sweep, prior: PriorPrecision) -> float | None:
        """The noise's precision; None before data tell of it."""
        return self.of._noise_precision(*self.noise(sweep, prior))

    @cached_property
    def mean_squares(self) -> Array:
        """(columns,) mean squares of columns' values, of numbers that are centred."""
        (sums, counts), squares = self.of.squares.T.copy(), self.data.squares
        features, weights = self.centres.weigh(squares, float(self.data.sums[0]))
        if len(features):
            owners, size = self.of.owners[features], len(sums)
            sizes = np.bincount(owners, weights, size)
            touched = sizes > 0.0
            sums = np.where(touched, np.bincount(owners, squares[features], size), sums)
            counts = np.where(touched, sizes, counts)
        some = (counts > 0.0) & (sums > 0.0) & (np.arange(len(counts)) > 0)
        return np.where(some, sums / np.where(some, counts, 1.0), 1.0)

    def _gather(self, find: Find) -> Any:
        return self.data.gather(self.of.likelihood, self.met, find)

    def _solve(
        self, found: Found, rule: PriorRule, prior: Array, precisions: Array, each: Array
    ) -> Solution:
        sweep, mean = found.sweep, np.zeros(len(self.of.owners))
        mean[self.met] = sweep.mean
        mean[0] -= self.data.offset_centre
        return Solution(
            self.met,
            precisions[:, None],
            each,
            prior,
            mean,
            sweep.factor,
            *self.noise(sweep, rule.prior(found.at)),
            self.centres,
            rule,
        )


__all__ = ["Fit", "Reading"]
