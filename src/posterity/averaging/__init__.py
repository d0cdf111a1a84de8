"""Several models as one, each weighed by how probable it is."""

from __future__ import annotations

from posterity.averaging.averaged import Averaged

__all__ = ["Averaged"]
