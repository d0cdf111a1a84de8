/* Square-root least squares: rotate rows into, and out of, an upper-triangular factor.
 *
 * The factor of a stack of rows (x, y), x of length p and y of length k, is the triangle
 *
 *     T = [ R  Z ]    R (p, p)   R'R = X'X
 *         [ 0  S ]    Z (p, k)   R^-1 Z = least-squares coefficients
 *                     S (k, k)   S'S = residual sums of squares and products
 *
 * stored by rows: T (q, ld), q = p + k, with ld a multiple of PK_LINE. Everything below the
 * diagonal and in columns q..ld is exactly zero, which lets every sweep start and stop at whole
 * vectors. A row in flight is a buffer of ld doubles with the same zero padding.
 *
 * Functions that can fail return 0 for success and r > 0 for trouble at the 1-based row r
 * (LAPACK's convention). None of them allocates or touches global state.
 */
#ifndef POSTERITY_KERNEL_H
#define POSTERITY_KERNEL_H

#include "posterity_average.h"
#include "posterity_noise.h"
#include "posterity_flight.h"
#include "posterity_forgetting.h"
#include "posterity_givens.h"
#include "posterity_panel.h"
#include "posterity_removal.h"
#include "posterity_rows.h"
#include "posterity_window.h"

#endif
