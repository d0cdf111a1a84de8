"""The error of a damaged model file, or of a model that a file can't hold."""

from __future__ import annotations

from posterity.safety import escaped


class ModelFileError(ValueError):
    """A model file that is damaged, too new or not one; or a model that can't be saved."""

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))
