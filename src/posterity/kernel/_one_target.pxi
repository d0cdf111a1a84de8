# Arrays as the C headers have them: of rows, and of a triangle of one target.

cdef const double *_given(const double[::1] array, Py_ssize_t n, str name) except? NULL:
    if array is None:
        return NULL
    if array.shape[0] != n:
        raise ValueError(f"{name} has length {array.shape[0]}: expected {n}")
    return &array[0] if n else NULL


cdef pk_shape _shape_of(const double[:, ::1] triangle) except *:
    cdef pk_shape shape
    shape.q, shape.ld, shape.k = triangle.shape[0], triangle.shape[1], 1
    shape.p = shape.q - 1
    if shape.p < 0 or shape.ld != (shape.q + PK_LINE - 1) // PK_LINE * PK_LINE:
        raise ValueError(f"triangle has shape ({shape.q}, {shape.ld}): it is none of one target")
    return shape


cdef pk_rows _rows_of(const double[:, :] X, bint intercept, pk_shape shape) except *:
    """The features alone."""
    cdef pk_rows rows
    rows.n, rows.columns, rows.intercept = X.shape[0], X.shape[1], intercept
    rows.x_stride = X.strides[0] // <Py_ssize_t> sizeof(double)
    rows.x_step = X.strides[1] // <Py_ssize_t> sizeof(double)
    if rows.columns + rows.intercept != shape.p:
        raise ValueError(f"X has {rows.columns} columns: the triangle expects {shape.p - rows.intercept}")
    rows.X = &X[0, 0] if rows.n and rows.columns else NULL
    rows.Y, rows.weights, rows.discounts, rows.held, rows.each = NULL, NULL, NULL, NULL, NULL
    return rows
