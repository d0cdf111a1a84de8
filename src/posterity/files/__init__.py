"""Model files: a model's whole state, in safetensors, without code.

A file has the model's arrays and a document that says what they are: class, parameters,
strategies, feature names, counts. It is read by a closed list of classes, so that loading runs no
code, and a checksum over all of it tells whether it is what was written.

Examples
--------
>>> from posterity import BayesianLinearRegression
>>> from posterity.files import dumps, loads
>>> model = BayesianLinearRegression().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
>>> dumps(loads(dumps(model))) == dumps(model)
True
"""

from posterity.files.errors import ModelFileError
from posterity.files.store import dumps, load, load_with_notes, loads, loads_with_notes, save

__all__ = [
    "ModelFileError",
    "dumps",
    "load",
    "load_with_notes",
    "loads",
    "loads_with_notes",
    "save",
]
