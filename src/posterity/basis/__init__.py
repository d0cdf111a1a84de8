"""Basis functions: scikit-learn transformers with which a linear model fits curves.

A model that is linear in functions of x, ``y = intercept + sum_j w_j phi_j(x) + noise``, is
learned exactly as one that is linear in x. The transformers here make the columns ``phi_j(x)``.
None makes a constant column: the model has an intercept of its own. (Those of a Gaussian process
that stand for what is not known outside of the domain are 0 inside of it.)

Which one:

=========================  ======================================================================
:class:`HilbertSpaceGP`    a smooth function, and honest uncertainty: Gaussian-process
                           regression with a few dozen columns; one to three features, or a sum
                           of functions of many
:class:`RandomFourier`     the same for more features at once
:class:`Spline`            a smooth function of each feature that goes on as a straight line outside
:class:`RadialBasis`       bumps that die out: far from all of them the model falls back to its mean
:class:`Fourier`           what repeats itself with a known period: hours of a day, days of a week
:class:`Polynomial`        few rows, low degrees, interactions of features
:class:`ByColumn`          a basis of its own for each column; a mapping alone will do in a model
:class:`AutoBasis`         whatever it is: lines, curves, interactions and a smooth function of all
                           features, as much of each as the targets ask for; ``basis="auto"``
=========================  ======================================================================

Streams. ``fit`` fixes everything: the domain (given as ``domain=``, or else the range of each
feature in the batch that ``fit`` sees), knots, centres, frequencies, length scales. ``transform``
never learns, so rows may come in batches of any size, and a value has the same columns whenever it
comes. Where batches are small, or models are to be merged, give the domain. A :class:`Spline` that
is given none gets more knots where a model learns rows outside (:class:`GrowingBasis`). What is
done with other rows outside of the domain is ``outside``, one parameter of each:

- ``"extend"``: the functions go on outside the domain, in the way that the basis documents;
- ``"clip"``: the value is moved to the domain's nearest end, so that curves go on as constants;
- ``"raise"``: a ``ValueError`` names feature, value and row.

The contract. Any stateless scikit-learn transformer can be a basis (:class:`Basis`). What a model
does with it is ``clone(basis).fit(X, y)`` on the first batch, once, and then ``transform(X)`` for
every batch that it learns or predicts. Where the transformer also has ``prior_precisions()``
(:class:`BasisWithPrior`), that is called once after ``fit``, and says what the coefficients' prior
is; where it has not, the columns are on a par.

Examples
--------
>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> from posterity import BayesianLinearRegression
>>> from posterity.basis import Spline
>>> x = np.linspace(0.0, 1.0, 200)[:, None]
>>> y = np.sin(2.0 * np.pi * x[:, 0])
>>> model = make_pipeline(Spline(), BayesianLinearRegression(prior_precision=1e-6)).fit(x, y)
>>> bool(np.abs(model.predict(x) - y).max() < 0.01)
True
"""

from __future__ import annotations

from posterity.basis.automatic import AutoBasis
from posterity.basis.by_column import ByColumn
from posterity.basis.contract import Basis, BasisWithPrior, GrowingBasis
from posterity.basis.fourier import Fourier
from posterity.basis.hilbert_space import HilbertSpaceGP
from posterity.basis.polynomial import Polynomial
from posterity.basis.radial import RadialBasis
from posterity.basis.random_fourier import RandomFourier
from posterity.basis.spline import Spline

__all__ = [
    "AutoBasis",
    "Basis",
    "BasisWithPrior",
    "ByColumn",
    "Fourier",
    "GrowingBasis",
    "HilbertSpaceGP",
    "Polynomial",
    "RadialBasis",
    "RandomFourier",
    "Spline",
]
