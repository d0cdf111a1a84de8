"""Many features, of which a row has few: clicks, words, users and items.

Diagonal models keep a mean and a variance of each weight, for millions of features; sparse ones all
covariances, for thousands. Rows come as sparse matrices, data frames with text, mappings whose keys
come and go, or lists of tokens.

Examples
--------
>>> from posterity.sparse import DiagonalLogisticRegression
>>> rows = [{"site": "a", "ad": "x"}, {"site": "b", "ad": "x"}, {"site": "a", "ad": "y"}]
>>> model = DiagonalLogisticRegression().fit(rows, [1, 0, 1])
>>> model.feature_names_
['site=a', 'site=b', 'ad=x', 'ad=y']
"""

from posterity.sparse.exact import (
    SparseLinearRegression,
    SparseLogisticRegression,
    SparsePoissonRegression,
)
from posterity.sparse.linear import DiagonalLinearRegression
from posterity.sparse.logistic import DiagonalLogisticRegression
from posterity.sparse.poisson import DiagonalPoissonRegression

__all__ = [
    "DiagonalLinearRegression",
    "DiagonalLogisticRegression",
    "DiagonalPoissonRegression",
    "SparseLinearRegression",
    "SparseLogisticRegression",
    "SparsePoissonRegression",
]
