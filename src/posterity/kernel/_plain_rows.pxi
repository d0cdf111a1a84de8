# Rows that are read without running any Python, and so without letting another thread in.

cdef extern from "Python.h":
    bint PyFloat_CheckExact(PyObject *value)
    bint PyFloat_Check(PyObject *value)
    double PyFloat_AS_DOUBLE(PyObject *value)
    double PyFloat_AsDouble(PyObject *value)
    PyObject *PyErr_Occurred()
    void PyErr_Clear()
    bint PyLong_CheckExact(PyObject *value)
    bint PyBool_Check(PyObject *value)
    bint PyUnicode_CheckExact(PyObject *value)
    ctypedef struct PyTypeObject:
        pass
    bint PyObject_TypeCheck(PyObject *value, PyTypeObject *kind)
    PyObject *PyTuple_GET_ITEM(PyObject *items, Py_ssize_t place)
    PyObject **PySequence_Fast_ITEMS(PyObject *items)
    int PyDict_Next(PyObject *dictionary, Py_ssize_t *place, PyObject **key, PyObject **value)

cdef object FLOATING = np.floating, INTEGER = np.integer, SPAN = np.timedelta64  # which is an integer to NumPy


cdef inline bint _is_plain_number(PyObject *value) noexcept:
    """Return True for a number whose conversion runs no Python, and so lets no other thread in."""
    return (PyFloat_Check(value) or PyLong_CheckExact(value) or PyBool_Check(value)
            or PyObject_TypeCheck(value, <PyTypeObject *> FLOATING)
            or (PyObject_TypeCheck(value, <PyTypeObject *> INTEGER) and not PyObject_TypeCheck(value, <PyTypeObject *> SPAN)))


cdef inline bint _read_number(PyObject *value, double *number) noexcept:
    """Read a plain number; False for others, and for whole numbers beyond all floats."""
    if PyFloat_CheckExact(value):
        number[0] = PyFloat_AS_DOUBLE(value)
        return True
    if not _is_plain_number(value):
        return False
    number[0] = PyFloat_AsDouble(value)
    if number[0] == -1.0 and PyErr_Occurred():
        PyErr_Clear()
        return False
    return True


cdef inline bint _is_plain_array(object x, Py_ssize_t size) noexcept:
    """Return True for an array (size,) of doubles that lie as C has them, in this machine's order of bytes."""
    return (cnp.PyArray_Check(x) and cnp.PyArray_TYPE(x) == cnp.NPY_DOUBLE and cnp.PyArray_ISCARRAY_RO(x)
            and cnp.PyArray_NDIM(x) == 1 and cnp.PyArray_DIM(x, 0) == size)


cdef inline bint _read_numbers(PyObject **values, Py_ssize_t size, double *row) noexcept:
    cdef Py_ssize_t i
    for i in range(size):
        if not _read_number(values[i], row + i):
            return False
    return True


cdef inline bint _read_by_name(dict x, tuple names, dict places, double *row) noexcept:
    """Read a plain number for each of the ``names``, of which there are as many, in whatever order they come."""
    cdef Py_ssize_t at = 0, i = 0, place
    cdef PyObject *key
    cdef PyObject *value
    cdef PyObject *found
    while PyDict_Next(<PyObject *> x, &at, &key, &value):
        place = i
        if key != PyTuple_GET_ITEM(<PyObject *> names, i):
            found = PyDict_GetItem(places, <object> key) if PyUnicode_CheckExact(key) else NULL
            if found is NULL:
                return False
            place = <Py_ssize_t> <object> found
        if not _read_number(value, row + place):
            return False
        i += 1
    return True


cdef bint _read_row(object x, Py_ssize_t size, tuple names, dict places, double *row) noexcept:
    """Read a row of ``size`` numbers, by name or in order; False, with anything in ``row``, where that may run Python."""
    if type(x) is dict:
        return (names is not None and len(<dict> x) == size and len(names) == size
                and _read_by_name(<dict> x, names, places, row))
    if type(x) is list:
        return len(<list> x) == size and _read_numbers(PySequence_Fast_ITEMS(<PyObject *> x), size, row)
    if type(x) is tuple:
        return len(<tuple> x) == size and _read_numbers(PySequence_Fast_ITEMS(<PyObject *> x), size, row)
    if not _is_plain_array(x, size):
        return False
    memcpy(row, cnp.PyArray_DATA(x), size * sizeof(double))
    return True
