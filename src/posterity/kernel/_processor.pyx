# cython: language_level=3
"""The instruction sets of this processor; compiled for any."""

cdef extern from "posterity_processor.h" nogil:
    int pk_processor_level()


def level():
    """1, 3 or 4: the level of x86-64 that the processor offers; 1 on others."""
    return pk_processor_level()
