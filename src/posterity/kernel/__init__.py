"""Floor 0: rotations of rows into and out of a triangle, in C, with a NumPy twin as the oracle."""

from posterity.kernel._calibration import adapt, normal_scores, targets_at, track
from posterity.kernel._kernel import (
    append_block,
    average_members,
    empty_triangle,
    fading_counts,
    leading_dimension,
    learn_bank,
    learn_directional,
    learn_rows,
    learn_stabilized,
    learn_wandering,
    predict_rows,
    remove_rows,
    slide,
)
from posterity.kernel._paths import RowPath, SitePath
from posterity.kernel._sites import (
    expected_labels,
    find_sites,
    learn_sites,
    total_density,
    working_rows,
)

__all__ = [
    "RowPath",
    "SitePath",
    "adapt",
    "append_block",
    "average_members",
    "empty_triangle",
    "expected_labels",
    "fading_counts",
    "find_sites",
    "leading_dimension",
    "learn_bank",
    "learn_directional",
    "learn_rows",
    "learn_sites",
    "learn_stabilized",
    "learn_wandering",
    "normal_scores",
    "predict_rows",
    "remove_rows",
    "slide",
    "targets_at",
    "total_density",
    "track",
    "working_rows",
]
