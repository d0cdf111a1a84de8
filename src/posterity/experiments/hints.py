"""What other libraries call what an experiment has."""

from __future__ import annotations

TEXT_HINT = "observe(frame, covariates=[...]) takes text and missing values, too"
_OBSERVE_HINT = "observe_rows(arms, rewards), or observe(frame, arm=..., reward=...)"
# What they call attributes.
OUR_NAMES = {
    **dict.fromkeys(("add", "fit", "learn", "learn_one", "partial_fit", "update"), _OBSERVE_HINT),
    **dict.fromkeys(("decide", "winner"), "decision_, the verdict"),
    **dict.fromkeys(("conf_int", "confint", "interval"), "interval_"),
    **dict.fromkeys(("p_value", "pvalue"), "interval_, which holds at any look, or decision_"),
    **dict.fromkeys(("result", "results", "summary"), "report(), or to_frame()"),
    "plot": "effects_over_time(), whose table has rows, effect, low and high of each arm",
}
# Of several metrics: the first one's attributes, and the others'.
METRICS_NAMES = {
    **dict.fromkeys(OUR_NAMES, "report(), or to_frame()"),
    **dict.fromkeys(
        ("add", "fit", "learn", "observe_rows", "partial_fit", "update"),
        "observe(frame, arm=...), whose columns are the metrics",
    ),
    **dict.fromkeys(
        ("decide", "decision_", "winner"), "primary.decision_, the first metric's verdict"
    ),
    **dict.fromkeys(
        ("effect_", "interval_", "mean_", "segments_"), "experiments[name], which has those of each"
    ),
}

_ARMS_HINT = "arms= takes their names, and the first one is the control"
_METRICS_HINT = "Metrics({column: Experiment(arms), ...}) takes several, the first of which decides"
# What other libraries call arguments.
OTHER_ARGUMENTS = {
    **dict.fromkeys(("baseline", "control", "groups", "variants"), _ARMS_HINT),
    **dict.fromkeys(("guardrails", "metrics", "outcomes"), _METRICS_HINT),
    **dict.fromkeys(("group", "treatment", "variant"), "observe(frame, arm=...) names the column"),
    **dict.fromkeys(
        ("metric", "outcome", "target", "y"), "observe(frame, reward=...) names the column"
    ),
    **dict.fromkeys(("denominator", "denominators"), "observe(frame, per=...) names the column"),
    **dict.fromkeys(("by", "country", "segments"), "observe(frame, segment=...) names the column"),
    **dict.fromkeys(("X", "features"), "observe(frame, covariates=[...]) names the columns"),
    **dict.fromkeys(("n", "sample_size"), "planned_rows= takes it"),
    "alpha": "level= is 1 - alpha",
    "confidence": "level= takes it",
    "power": "plan(baseline, effect, power) says how many rows to plan",
}
