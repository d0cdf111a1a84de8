"""Conversion of models to bytes and files, and back."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from posterity.aliases import Document, Estimator
from posterity.files import container, schemas
from posterity.files.errors import ModelFileError
from posterity.files.writing import replace_atomically


def dumps(model: Estimator, notes: Mapping[str, Any] | None = None) -> bytes:
    """Return the content of a model file, for a database or a message.

    Parameters
    ----------
    model : estimator of posterity
    notes : mapping of str to plain values or arrays, optional
        Whatever else should be kept with the model; :func:`loads_with_notes` gives it back.

    Returns
    -------
    bytes
        The same for the same model.

    Raises
    ------
    ModelFileError
        As :func:`save`.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
    >>> bool(loads(dumps(model)).coef_ == model.coef_)
    True
    """
    if not isinstance(model, type | BaseEstimator) and hasattr(model, "to_estimator"):
        model = model.to_estimator()  # river's is posterity's own inside
    if isinstance(model, type) or not isinstance(model, BaseEstimator):
        what = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ModelFileError(f"{what} is not a model: give an estimator of posterity")
    return container.pack(*schemas.write(model, notes or {}))


def loads(content: bytes) -> Any:
    """Read a model from the content of a model file; raises as :func:`load`.

    Examples
    --------
    >>> loads(b"something else")
    Traceback (most recent call last):
    posterity.files.errors.ModelFileError: this is not a model file of posterity, ...
    """
    return loads_with_notes(content)[0]


def loads_with_notes(content: bytes) -> tuple[Any, Document]:
    """Read a model and its notes from the content of a model file.

    Examples
    --------
    >>> from posterity import BayesianLinearRegression
    >>> content = dumps(BayesianLinearRegression(), notes={"target": "fare"})
    >>> loads_with_notes(content)[1]
    {'target': 'fare'}
    """
    return schemas.read(*container.unpack(content))


def save(
    model: Estimator,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, Any] | None = None,
    durable: bool = True,
) -> None:
    """Write a model to a file, atomically.

    The file is written beside ``path`` under another name, brought to disk, and then takes its
    place: whoever reads ``path`` finds the old model or the new one.

    Parameters
    ----------
    model : estimator of posterity
        With all that it has learned, whatever the way it forgets. Of one of
        ``posterity.adapters.river`` its ``to_estimator()`` is written; ``from_estimator`` of its
        class leads back.
    path : path
        An existing file is replaced; what a link points to is, and not the link. A pipe or a device
        is written as it is.
    notes : mapping of str to plain values or arrays, optional
        Whatever else should be kept with the model; :func:`load_with_notes` gives it back.
    durable : bool, default True
        Whether to wait until the disk has it, so that not even a power cut can undo it. Without,
        a process that is killed still leaves the old model or the new one, and saving takes a
        millisecond; but the machine itself must not go down in the seconds after.

    Raises
    ------
    ModelFileError
        If the model holds anything that a file can't: a basis, strategy or likelihood that is not
        posterity's own, a pipeline, a random state.
    OSError
        If the file can't be written; one that was there stays.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from posterity import BayesianLinearRegression
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "line.safetensors"
    >>> model = BayesianLinearRegression().fit([[0.0], [1.0], [3.0]], [0.0, 1.0, 2.0])
    >>> save(model, path)
    >>> again = load(path).partial_fit([[4.0]], [2.5])
    >>> bool(again.coef_ == model.partial_fit([[4.0]], [2.5]).coef_)
    True
    >>> folder.cleanup()
    """
    if hasattr(path, "get_params"):
        raise TypeError(f"path is {type(path).__name__}: the model comes first, save(model, path)")
    content = dumps(model, notes)
    with replace_atomically(path, durable=durable) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file, without running code.

    Parameters
    ----------
    path : path
        A file that :func:`save` wrote, of this version of posterity or an older one.

    Returns
    -------
    estimator
        It goes on bit for bit as the model that was saved would.

    Raises
    ------
    ModelFileError
        A ``ValueError`` that names the file: it is damaged, too new, or no model file.
    OSError
        If there is no such file, or it can't be read.

    Examples
    --------
    See :func:`save`.

    >>> load("no-such-file.safetensors")
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-file.safetensors'
    """
    return load_with_notes(path)[0]


def load_with_notes(path: str | os.PathLike[str]) -> tuple[Any, Document]:
    """Read a model from a file, and its notes; as :func:`load`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from posterity import BayesianLinearRegression
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name) / "line.safetensors"
    >>> save(BayesianLinearRegression(), path, notes={"target": "fare"})
    >>> load_with_notes(path)[1]
    {'target': 'fare'}
    >>> folder.cleanup()
    """
    try:
        return loads_with_notes(_read_content(Path(path)))
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error


def _read_content(path: Path) -> bytes:
    """Read all bytes of a file, once its first ones say that it is a model."""
    # Without waiting: what else writes into a pipe may never come.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ModelFileError(
                "this is a pipe or a device and not a file: read its bytes first, and give them "
                "to posterity.files.loads"
            )
        start = file.read(container.BEGINNING)
        container.check_beginning(start, status.st_size)
        return start + file.read()
