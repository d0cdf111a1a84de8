# Likelihoods as the C headers have them.

cdef extern from "posterity_families.h" nogil:
    enum: PK_RATINGS
    enum: PK_BASE
    enum: PK_HURDLE
    enum: PK_MOST_CUTS
    ctypedef struct pk_likelihood:
        int code, moments
        double a, b, c
        double *cuts

cdef pk_likelihood _likelihood(int code, object parameters, bint moments) except *:
    """The likelihood of this code; of ratings the parameters from the fourth on are cut points."""
    cdef pk_likelihood likelihood
    if not (1 <= (code & PK_BASE) <= PK_RATINGS and code <= PK_HURDLE + PK_BASE):
        raise ValueError(f"the kernel knows no likelihood {code}")
    likelihood.code, likelihood.moments = code, moments
    likelihood.a, likelihood.b, likelihood.c = parameters[:3]
    for place, cut in enumerate(parameters[3 : 3 + PK_MOST_CUTS]):
        likelihood.cuts[place] = cut
    return likelihood
