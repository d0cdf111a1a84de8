"""What the columns are that a pipeline gives its last step: their names and their units."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from posterity.aliases import Array
from posterity.distributions.affine_map import compute_affine_map


def name_columns(steps: Any) -> list[str]:
    """Names of the columns, without those of the steps that they come from."""
    return [str(name).rpartition("__")[2] for name in steps.get_feature_names_out()]


def find_units(steps: Any) -> Array:
    """(k,) what each column changes by as the column that it comes from does by 1.

    1 for columns that come from several, or from text.
    """
    last = steps[-1] if len(steps) == 1 else steps
    units = np.ones(len(last.get_feature_names_out()))
    whole = [("", last, None)]
    places = getattr(last, "output_indices_", {"": slice(None)})
    for name, part, _ in getattr(last, "transformers_", whole):
        with contextlib.suppress(ValueError, AttributeError):  # of text; dropped, or passed through
            slopes = compute_affine_map(part)[0]
            own = np.diagonal(slopes)
            if np.array_equal(slopes, np.diag(own)):
                units[places[name]] = own
    return units
