"""Floor 0: rotations of rows into and out of a triangle, in C, with a NumPy twin as the oracle."""

from posterity.kernel._kernel import (
    RowPath,
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

__all__ = [
    "RowPath",
    "append_block",
    "average_members",
    "empty_triangle",
    "fading_counts",
    "leading_dimension",
    "learn_bank",
    "learn_directional",
    "learn_rows",
    "learn_stabilized",
    "learn_wandering",
    "predict_rows",
    "remove_rows",
    "slide",
]
