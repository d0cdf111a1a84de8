"""Floor 0: rotations of rows into and out of a triangle, in C, with a NumPy twin as the oracle."""

from posterity.kernel.instructions import FOLDER, instruction_set

# Compiled modules are found in the folder of the instruction set that is used.
__path__.append(str(FOLDER / instruction_set()))

# ruff: noqa: E402
from posterity.kernel._calibration import adapt, normal_scores, targets_at, track
from posterity.kernel._choice import MOST_COLUMNS, MOST_NODES, choose_ratios
from posterity.kernel._groups import (
    KeyTable,
    SortedRows,
    count_rows,
    learn_groups,
    merge_groups,
    number_keys,
    number_range,
    predict_groups,
    solve_groups,
    stack_groups,
    tell_groups,
    whiten_groups,
)
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
    track_noise,
)
from posterity.kernel._members import FadingMember, LearnedPrior, MemberNoise, MembersPath
from posterity.kernel._paths import (
    ArmsPath,
    GroupPath,
    NodesPath,
    RowPath,
    SitePath,
    SoftmaxPath,
    TargetsPath,
    look_at_labels,
)
from posterity.kernel._scores import running_mean, running_steps, t_half_widths, t_scores
from posterity.kernel._sites import (
    expected_labels,
    find_moments,
    find_sites,
    learn_sites,
    total_density,
    working_rows,
)

__all__ = [
    "MOST_COLUMNS",
    "MOST_NODES",
    "ArmsPath",
    "FadingMember",
    "GroupPath",
    "KeyTable",
    "LearnedPrior",
    "MemberNoise",
    "MembersPath",
    "NodesPath",
    "RowPath",
    "SitePath",
    "SoftmaxPath",
    "SortedRows",
    "TargetsPath",
    "adapt",
    "append_block",
    "average_members",
    "choose_ratios",
    "count_rows",
    "empty_triangle",
    "expected_labels",
    "fading_counts",
    "find_moments",
    "find_sites",
    "instruction_set",
    "leading_dimension",
    "learn_bank",
    "learn_directional",
    "learn_groups",
    "learn_rows",
    "learn_sites",
    "learn_stabilized",
    "learn_wandering",
    "look_at_labels",
    "merge_groups",
    "normal_scores",
    "number_keys",
    "number_range",
    "predict_groups",
    "predict_rows",
    "remove_rows",
    "running_mean",
    "running_steps",
    "slide",
    "solve_groups",
    "stack_groups",
    "t_half_widths",
    "t_scores",
    "targets_at",
    "tell_groups",
    "total_density",
    "track",
    "track_noise",
    "whiten_groups",
    "working_rows",
]
