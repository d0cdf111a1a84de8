# What the C headers declare, as more than one module needs it; and memory that vectors start in.

cdef extern from "posterity_flight.h" nogil:
    enum: PK_LINE
    enum: PK_PANEL
    ctypedef struct pk_shape:
        Py_ssize_t p, k, q, ld
    Py_ssize_t PK_EACH
    ctypedef enum pk_kind:
        PK_DOUBLE
        PK_SINGLE
        PK_INT8
        PK_INT16
        PK_INT32
        PK_INT64
        PK_UINT8
        PK_UINT16
        PK_UINT32
        PK_UINT64
    ctypedef struct pk_column:
        const char *at
        Py_ssize_t step
        pk_kind kind
    ctypedef struct pk_rows:
        const double *X
        const double *Y
        const double *weights
        const double *discounts
        double *held
        Py_ssize_t n, columns, x_stride, x_step
        int intercept
        const pk_column *each
    ctypedef struct pk_before:
        double *error
        double *leverage
        double *residual
    Py_ssize_t PK_FLIGHT_SIZE(pk_shape shape)

cdef extern from "posterity_forgetting.h" nogil:
    ctypedef struct pk_walk:
        const double *variance
        const double *elapsed
        Py_ssize_t slope
        double *step
        double *work
    Py_ssize_t PK_WALK_SIZE(pk_shape shape)

cdef extern from "posterity_average.h" nogil:
    ctypedef struct pk_expert_weights:
        Py_ssize_t rates, members, lanes
        const double *persistence
        double outer_persistence
        double *scores
        double *outer
        double *work
    double pk_average(pk_expert_weights *standing, Py_ssize_t n, const double *densities, const unsigned char *ranks, double *weights)

cdef _aligned(Py_ssize_t size):
    cdef cnp.ndarray storage = np.zeros(size + 7)
    cdef Py_ssize_t offset = (-(<Py_ssize_t> cnp.PyArray_DATA(storage)) // 8) & 7
    return storage[offset:offset + size]
