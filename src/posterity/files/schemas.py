"""The versions of the document in a model file: one writer, for the newest, and a reader for each.

A file says which version it is. A change that older readers would not understand makes a new
version, with a reader beside the old ones; a file of each version is kept with the tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from posterity import __version__
from posterity.aliases import AnyArray, Document, Estimator
from posterity.files.decoding import Decoder
from posterity.files.encoding import Encoder
from posterity.files.errors import ModelFileError
from posterity.files.registry import name_of

FORMAT = "posterity model"
NEWEST = 1


def write(model: Estimator, notes: Mapping[str, Any]) -> tuple[str, dict[str, AnyArray]]:
    """The document, in the newest version, and the arrays of a model."""
    encoder = Encoder()
    root = encoder.value(model, "")
    about = encoder.value(dict(notes), "notes")
    names = getattr(model, "feature_names_in_", None)
    parts = {
        "format": FORMAT,
        "schema": NEWEST,
        "library": __version__,
        "class": name_of(type(model)),
        "features": None if names is None else [str(name) for name in names],
        "model": root,
        "notes": about,
        "objects": encoder.objects,
    }
    return json.dumps(parts, separators=(",", ":"), allow_nan=False), encoder.arrays


def read(document: str, arrays: Mapping[str, AnyArray]) -> tuple[Any, Document]:
    """The model and the notes of a document of any version.

    Raises
    ------
    ModelFileError
        For a document of a version to come, and one that is not understood.
    """
    try:
        parts = json.loads(document)
        if not isinstance(parts, dict) or parts.get("format") != FORMAT:
            raise ValueError("it is not marked as a model")
        schema = parts["schema"]
        if type(schema) is int and schema > NEWEST:
            writer = f"{parts.get('library')!s:.40}"
            raise ModelFileError(
                f"the file has schema {schema}, written by posterity {writer}; this "
                f"is posterity {__version__}, which reads schemas up to {NEWEST}: upgrade posterity"
            )
        return READERS[schema](parts, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a document that nobody wrote may lead to
        message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ModelFileError(f"the file's content can't be read: {message}") from error


def _read_1(parts: Document, arrays: Mapping[str, AnyArray]) -> tuple[Any, Document]:
    with np.errstate(all="ignore"):
        decoder = Decoder(parts["objects"], arrays)
    model, notes = decoder.value(parts["model"]), decoder.value(parts["notes"])
    if not hasattr(model, "get_params") or name_of(type(model)) != parts["class"]:
        raise ValueError(f"a {type(model).__name__} is not a model")
    if not isinstance(notes, dict):
        raise TypeError("its notes are not a mapping")
    return model, notes


READERS: dict[Any, Callable[[Document, Mapping[str, AnyArray]], tuple[Any, Document]]]
READERS = {1: _read_1}
