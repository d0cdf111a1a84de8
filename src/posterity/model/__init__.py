"""Models that are described by a formula, with effects of groups."""

from posterity.model.model import Model

__all__ = ["Model"]
