"""Verbs for decisions: options and help; the work is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from posterity.cli import group
from posterity.cli.group import describe_command, run_guarded
from posterity.cli.options import options

EXPERIMENT = """\b
Examples:
  posterity experiment visits.csv --arm variant --reward bought
  posterity experiment visits.parquet --arm variant --reward spent --covariates age,device
  posterity experiment visits.csv --arm variant --reward bought --model logistic --covariates age
  posterity experiment visits.csv --arm variant --reward bought --shares A=0.8,B=0.2
  posterity experiment chosen.csv --reward bought --propensities 'p_*' --report page.html"""

OFF_POLICY = """\b
Examples:
  posterity off-policy decisions.csv --propensity p --policy uniform --policy red
  posterity off-policy decisions.parquet --propensities 'p_*' --policy new.posterity
  posterity off-policy decisions.csv --propensity p --method dr --method snips --json
  posterity off-policy personalizer.dsjson --policy uniform --report page.html"""

table = click.argument("file", type=click.Path(allow_dash=True))
level = click.option(
    "--level",
    default=0.95,
    show_default=True,
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    help="Level of the intervals.",
)
every_propensity = click.option(
    "--propensities",
    metavar="PATTERN",
    help="Columns of the probabilities of all arms: 'p_*' for p_red, p_blue and so on.",
)
missing = click.option(
    "--missing",
    default="error",
    show_default=True,
    type=click.Choice(["error", "skip"]),
    help="Missing values: stop, or leave the row out.",
)
arm = click.option(
    "--arm", default="arm", show_default=True, metavar="COLUMN", help="Column of the chosen arm."
)
reward = click.option(
    "--reward",
    default="reward",
    show_default=True,
    metavar="COLUMN",
    help="Column of what it earned: numbers, or true and false.",
)


@click.command(epilog=EXPERIMENT, short_help="Compare the arms of an experiment at any time.")
@table
@arm
@reward
@click.option(
    "--covariates",
    metavar="a,b,...",
    multiple=True,
    callback=group.names,
    help="Columns known before an arm was chosen: what they explain makes no interval wider.",
)
@click.option("--control", metavar="ARM", help="What others are compared with.  [default: first]")
@click.option(
    "--shares",
    metavar="A=0.5,B=0.5",
    callback=group.shares,
    help="How often each arm was to be chosen.  [default: all alike]",
)
@every_propensity
@click.option(
    "--smallest-effect",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0.0),
    help="A difference that would not matter: the experiment may end for lack of a larger one.",
)
@options("model")
@level
@missing
@options("report", "as_json", "quiet")
def experiment(**settings: Any) -> None:
    """Say which arm of FILE earns most, and whether that is sure.

    A row is a visitor: the arm that was chosen at random, and what it earned. Intervals hold at all
    times and for all arms together, so the file may be looked at as often as it grows, and the
    experiment be stopped as soon as it is decided. FILE is read as by evaluate.
    """
    from posterity.cli.experiment import Settings, run

    run_guarded(run, Settings(**settings, command=describe_command()))


@click.command("off-policy", epilog=OFF_POLICY, short_help="Judge policies by another one's log.")
@table
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="POLICY",
    help="uniform, logged (what the log did), an arm, or the model file of a bandit. May be given "
    "more than once.",
)
@arm
@reward
@click.option("--propensity", metavar="COLUMN", help="Probability that the chosen arm had.")
@every_propensity
@options("features", "drop")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(["replay", "ips", "snips", "dm", "dr", "switch_dr", "dr_shrinkage"]),
    help="How values are estimated. May be given more than once.  [default: snips and dr]",
)
@click.option(
    "--reward-range",
    metavar="LOW,HIGH",
    callback=group.pair,
    help="What rewards can be: the anytime interval of ips is then exact.",
)
@level
@missing
@options("report", "as_json", "quiet")
def off_policy(**settings: Any) -> None:
    """Say what policies would have earned, from the log of another one.

    A row of FILE is a decision: its context, the arm that was chosen, with what probability, and
    what it earned. Where the log has no support for a policy the answer is a reason, not a number.
    FILE is read as by evaluate; a .dsjson file is one of Vowpal Wabbit or Azure Personalizer.
    """
    from posterity.cli.off_policy import Settings, run

    run_guarded(run, Settings(**settings, command=describe_command()))


VERBS = (experiment, off_policy)
