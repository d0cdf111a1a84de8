"""Types that skops must trust, to load estimators that it has saved.

skops writes an estimator as a zip of JSON and arrays, and creates on loading only objects of types
that the caller trusts. :func:`posterity.save` needs neither skops nor trust; this is for pipelines
that are kept as skops files anyway.
"""

from __future__ import annotations

from typing import Any

from scipy.interpolate import BSpline

from posterity.files.registry import HOMES, class_of

__all__ = ["trusted_types"]

# Triangles, which model files hold as arrays.
FACTORS = {
    "posterity.factor.factor.Factor",
    "posterity.factor.bank.FactorBank",
    "posterity.factor.grouped.GroupBank",
}
# What was read last, or is computed from the rest, which model files do not hold.
CACHE_TYPES = {
    "posterity.basis.spline.PiecewisePolynomials",
    "posterity.grouped.index._Numbers",
    "posterity.grouped.index._Objects",
}


def trusted_types() -> list[str]:
    """The types of posterity that its estimators consist of, for ``trusted=`` of ``skops.io``.

    Returns
    -------
    list of str
        Full names, sorted: data classes and estimators, none of which runs code of the file's, and
        what SciPy's splines consist of.

    Examples
    --------
    >>> "posterity.linear.regression.BayesianLinearRegression" in trusted_types()
    True
    """
    kinds = (class_of(name) for name in HOMES)
    named = {f"{kind.__module__}.{kind.__qualname__}" for kind in kinds}
    return sorted(named | FACTORS | CACHE_TYPES | _parts_of_splines())


def _parts_of_splines() -> set[str]:
    """Names of what a spline of SciPy holds: its class, and what some versions hold."""
    spline: Any = BSpline([0.0, 1.0, 2.0, 3.0], [1.0, 1.0], 1)
    held = (one for one in vars(spline).values() if callable(one))
    named = (one if hasattr(one, "__qualname__") else type(one) for one in held)
    return {f"{one.__module__}.{one.__qualname__}" for one in (BSpline, *named)}
