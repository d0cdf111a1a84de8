# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Checked binding of posterity_relevance.h: walkers over sets of strong features."""

import numpy as np

cimport numpy as cnp

cnp.import_array()

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        pass

cdef extern from "posterity_relevance.h" nogil:
    ctypedef struct pk_walk:
        Py_ssize_t m, rank, most, count
        Py_ssize_t n_places[2]
        const double *directions
        const double *turned
        const double *projections
        const double *left
        const double *log_determinants
        const double *lengths
        const double *products
        const double *log_sizes
        const double *slabs
        const double *log_priors[2]
        double known, shape, full_energy, smallest_energy
        double **rows
        double *low
        double *mean
        double *whitened
        double *inner
        double *gains
        double *pulls
        bitgen_t *random
        Py_ssize_t *members
        Py_ssize_t *sizes
        Py_ssize_t *places
        double *values
        double *rates
        Py_ssize_t *proposed
        double *uniforms
    int pk_start_walk(pk_walk *w, Py_ssize_t longest)
    int pk_move_walkers(pk_walk *w)
    void pk_name_walkers(const pk_walk *w, uint64_t *states, double *heights)


cdef class SetWalkers:
    """Walkers that draw sets of strong features from their posterior.

    ``evidence`` has the data (:class:`posterity.evidence.relevance_state.Evidence`), ``slabs`` (s,) are log variances,
    and ``log_priors`` those of the places on the grids of background and slab. ``random`` is a bit generator, ``count``
    how many walkers there are, and ``longest`` the size up to which the sets of half of them are grown at the start.
    """

    cdef pk_walk walk
    cdef list kept
    cdef object random
    cdef readonly object members, sizes, places
    cdef object values

    def __cinit__(self, evidence, slabs, log_priors, random, Py_ssize_t count, Py_ssize_t longest):
        cdef pk_walk *w = &self.walk
        cdef Py_ssize_t b = len(log_priors[0]), m = evidence.lengths.shape[1], rank = len(evidence.projections)
        cdef Py_ssize_t most = evidence.most
        cdef int failed
        if count < 1 or not 0 <= longest <= most <= m or most < 1:
            raise ValueError(f"{count} walkers, sets of {longest} at first and {most} at most: expected up to {m} features")
        self.kept, self.random = [], random
        w.m, w.rank, w.most, w.count, w.n_places[0], w.n_places[1] = m, rank, most, count, b, len(slabs)
        w.directions, w.turned = self._read(evidence.directions, (rank, m)), self._read(evidence.directions.T, (m, rank))
        w.projections, w.left = self._read(evidence.projections, (rank,)), self._read(evidence.left, (b, rank))
        w.log_determinants = self._read(evidence.log_determinants, (b,))
        w.lengths, w.products = self._read(evidence.lengths, (b, m)), self._read(evidence.products, (b, m))
        w.log_sizes, w.slabs = self._read(evidence.log_sizes, (most + 2,)), self._read(slabs, (len(slabs),))
        w.log_priors[0], w.log_priors[1] = self._read(log_priors[0], (b,)), self._read(log_priors[1], (len(slabs),))
        w.known, w.shape = evidence.known, evidence.shape
        w.full_energy, w.smallest_energy = evidence.full_energy, evidence.smallest_energy
        w.low, w.mean, w.whitened = self._make(most * most), self._make(most), self._make(most)
        w.inner, w.gains, w.pulls = self._make(most * (m + most)), self._make(m), self._make(m)
        w.rates, w.uniforms = self._make(count * m), self._make(3 * count)
        w.random = <bitgen_t *>PyCapsule_GetPointer(random.capsule, "BitGenerator")
        w.rows = <double **>calloc(b * m, sizeof(double *))
        self.members, self.sizes = np.zeros((count, most), dtype=np.intp), np.zeros(count, dtype=np.intp)
        self.places, self.values = np.zeros((count, 2), dtype=np.intp), np.zeros(count)
        proposed = np.zeros(most + 1, dtype=np.intp)
        self.kept.append(proposed)
        w.members, w.sizes, w.places = _places(self.members), _places(self.sizes), _places(self.places)
        w.proposed, w.values = _places(proposed), <double *>cnp.PyArray_DATA(self.values)
        if not w.rows:
            raise MemoryError
        with nogil:
            failed = pk_start_walk(w, longest)
        if failed:
            raise MemoryError

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.walk.rows:
            for i in range(self.walk.n_places[0] * self.walk.m):
                free(self.walk.rows[i])
            free(self.walk.rows)

    cdef double *_make(self, Py_ssize_t size) except NULL:
        """Room for numbers, and whole vectors of them."""
        room = np.empty(size + 15)
        self.kept.append(room)
        return <double *>cnp.PyArray_DATA(room) + ((-(<Py_ssize_t>cnp.PyArray_DATA(room)) // 8) & 7)

    cdef const double *_read(self, values, tuple shape) except NULL:
        values = np.ascontiguousarray(values, dtype=np.float64)
        if values.shape != shape:
            raise ValueError(f"an array of the evidence has shape {values.shape}: expected {shape}")
        self.kept.append(values)
        return <const double *>cnp.PyArray_DATA(values)

    def move(self, Py_ssize_t rounds):
        """Numbers (rounds, K) of where each walker is after each round of steps, equal for equal sets, and the log
        posterior there, up to a constant."""
        cdef cnp.ndarray states = np.empty((rounds, self.walk.count), dtype=np.uint64)
        cdef cnp.ndarray heights = np.empty((rounds, self.walk.count))
        cdef uint64_t *names = <uint64_t *>cnp.PyArray_DATA(states)
        cdef double *values = <double *>cnp.PyArray_DATA(heights)
        cdef Py_ssize_t i
        cdef int failed = 0
        with nogil:
            for i in range(rounds):
                failed = pk_move_walkers(&self.walk)
                if failed:
                    break
                pk_name_walkers(&self.walk, names + i * self.walk.count, values + i * self.walk.count)
        if failed:
            raise MemoryError
        return states, heights

    def take(self, which):
        """Put the walkers ``which`` (K,) in the places of all."""
        for values in (self.members, self.sizes, self.places, self.values):
            values[:] = values[which]


cdef Py_ssize_t *_places(values):
    return <Py_ssize_t *>cnp.PyArray_DATA(values)
