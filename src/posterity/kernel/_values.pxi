# Within which bounds numbers of single rows lie.

# As posterity.factor.usable has them: of values times the roots of their weights, and of weights.
cdef double LARGEST = 1e75
cdef double SMALLEST_WEIGHT = 1e-100, LARGEST_WEIGHT = 1e100

cdef int _check_weight(double weight) except -1:
    if not (SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT or weight == 0.0):
        raise ValueError(
            f"weight is {weight}: it must be finite and not negative, and unless it is 0 lie between "
            f"{SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        )
    return 0
