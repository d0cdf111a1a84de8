# Numbers of single rows: within which bounds, and which of them are read without running any Python.

# As posterity.factor.usable has them: of values times the roots of their weights, and of weights.
cdef double LARGEST = 1e75
cdef double SMALLEST_WEIGHT = 1e-100, LARGEST_WEIGHT = 1e100

cdef extern from "Python.h":
    bint PyFloat_Check(PyObject *value)
    bint PyLong_CheckExact(PyObject *value)
    bint PyBool_Check(PyObject *value)
    bint PyUnicode_CheckExact(PyObject *value)
    ctypedef struct PyTypeObject:
        pass
    bint PyObject_TypeCheck(PyObject *value, PyTypeObject *kind)
    int PyDict_Next(PyObject *dictionary, Py_ssize_t *place, PyObject **key, PyObject **value)

cdef object FLOATING = np.floating, INTEGER = np.integer, SPAN = np.timedelta64  # which is an integer to NumPy


cdef inline bint _is_plain_number(PyObject *value) noexcept:
    """Return True for a number whose conversion runs no Python, and so lets no other thread in."""
    return (PyFloat_Check(value) or PyLong_CheckExact(value) or PyBool_Check(value)
            or PyObject_TypeCheck(value, <PyTypeObject *> FLOATING)
            or (PyObject_TypeCheck(value, <PyTypeObject *> INTEGER) and not PyObject_TypeCheck(value, <PyTypeObject *> SPAN)))


cdef inline bint _is_plain_dict(object x) noexcept:
    """Return True for a dict of plain numbers by text."""
    cdef Py_ssize_t place = 0
    cdef PyObject *key
    cdef PyObject *value
    if type(x) is not dict:
        return False
    while PyDict_Next(<PyObject *> x, &place, &key, &value):
        if not (PyUnicode_CheckExact(key) and _is_plain_number(value)):
            return False
    return True


cdef inline bint _is_plain_array(object x, Py_ssize_t size) noexcept:
    """Return True for an array (size,) of doubles that lie as C has them, in this machine's order of bytes."""
    return (cnp.PyArray_Check(x) and cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE and cnp.PyArray_ISCARRAY_RO(x)
            and cnp.PyArray_NDIM(x) == 1 and cnp.PyArray_DIM(x, 0) == size)


cdef int _check_weight(double weight) except -1:
    if not (SMALLEST_WEIGHT <= weight <= LARGEST_WEIGHT or weight == 0.0):
        raise ValueError(
            f"weight is {weight}: it must be finite and not negative, and unless it is 0 lie between "
            f"{SMALLEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        )
    return 0
