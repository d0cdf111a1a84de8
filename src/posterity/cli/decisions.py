"""Verbs for decisions: options and help; the work is imported when one runs."""

from __future__ import annotations

from typing import Any

import click

from posterity.cli import group
from posterity.cli.group import ReadingOption, Verb, run_guarded
from posterity.cli.options import COLUMNS, READING_OPTIONS, options
from posterity.cli.outputs import InputPath

EXPERIMENT = """\b
Examples:
  posterity experiment visits.csv --arm variant --reward bought
  posterity experiment visits.parquet --arm variant --reward spent --covariates age,device
  posterity experiment visits.csv --arm variant --reward bought --model logistic --covariates age
  posterity experiment visits.csv --arm variant --reward bought --shares A=0.8,B=0.2
  posterity experiment users.csv --arm variant --reward spent --per sessions --segment country
  posterity experiment users.csv --arm variant --reward bought --also spent --guardrail seconds=5
  posterity experiment chosen.csv --reward bought --propensities 'p_*' --report page.html"""

OFF_POLICY = """\b
Examples:
  posterity off-policy decisions.csv --propensity p --report page.html
  posterity off-policy decisions.csv --propensity p --policy uniform --policy red
  posterity off-policy decisions.parquet --propensities 'p_*' --policy new.posterity
  posterity off-policy decisions.csv --propensity p --policy uniform --method dr --json
  posterity off-policy personalizer.dsjson --policy uniform --report page.html"""

table = click.argument("file", type=InputPath())
every_propensity = click.option(
    "--propensities",
    metavar="PATTERN",
    help="Columns of the probabilities of all arms: 'p_*' for p_red, p_blue and so on.",
)
missing = click.option(
    "--missing",
    cls=ReadingOption,
    default="error",
    type=click.Choice(["error", "skip"]),
    help="Missing values: stop, or leave the row out.",
)
arm = click.option("--arm", default="arm", metavar="COLUMN", help="Column of the chosen arm.")
reward = click.option(
    "--reward",
    default="reward",
    metavar="COLUMN",
    help="Column of what it earned: numbers, or true and false.",
)


@click.command(
    cls=Verb, epilog=EXPERIMENT, short_help="Compare the arms of an experiment at any time."
)
@table
@arm
@reward
@click.option(
    "--per",
    metavar="COLUMN",
    help="What rewards are divided by, for a ratio of sums: with a row for each user, spent per "
    "sessions.",
)
@click.option(
    "--also", **COLUMNS, help="Other metrics, which are shown beside the reward and do not decide."
)
@click.option(
    "--guardrail",
    "guardrails",
    metavar="COLUMN=5,...",
    multiple=True,
    callback=group.named_numbers,
    help="Metrics that may not become worse, and the change beside the control that is allowed: "
    "seconds=5 allows a rise by 5, spent=-0.1 a fall by 0.1.",
)
@click.option(
    "--segment",
    metavar="COLUMN",
    help="A column such as the country, between whose values the effect may differ.",
)
@click.option(
    "--covariates",
    **COLUMNS,
    help="Columns known before the arm was chosen. They make intervals narrower.",
)
@click.option(
    "--control", metavar="ARM", help="Arm that others are compared with.  [default: the first]"
)
@click.option(
    "--shares",
    metavar="A=0.5,B=0.5",
    multiple=True,
    callback=group.named_numbers,
    help="Planned share of each arm.  [default: equal shares]",
)
@every_propensity
@click.option(
    "--smallest-effect",
    default=0.0,
    type=click.FloatRange(0.0),
    help="Smallest difference worth having, in the unit of the reward (0.002 is 0.2 percentage "
    "points): the experiment also ends when no arm is better than the one taken by as much.",
)
@click.option(
    "--planned-rows",
    type=click.FloatRange(0.0, min_open=True),
    help="Rows that were planned before the first, as `posterity plan` finds them: intervals are "
    "narrowest then.",
)
@click.option(
    "--reward-range",
    metavar="LOW,HIGH",
    callback=group.pair,
    help="Least and largest possible reward: then an arm need not have shown its largest ones.",
)
@click.option(
    "--cap",
    type=float,
    help="Rewards above it count as it: chosen before the first row, it keeps a few large "
    "purchases from drowning the effect on all others.",
)
@click.option(
    "--sample-ratio-level",
    default=0.001,
    type=click.FloatRange(0.0, 1.0, max_open=True),
    help="No verdict below this p-value of the shares of arms; 0 decides all the same.",
)
@options("model", "level", "missing")
@options(*READING_OPTIONS, "report", "as_json", "quiet")
def experiment(**settings: Any) -> None:
    """Compare the arms of an experiment in FILE, with intervals that hold at all times.

    A row is a visitor, with the arm that was chosen at random and its reward. Intervals hold at all
    times and for all arms together, so you may look as often as the file grows, and stop the
    experiment as soon as it is decided. FILE is read as by evaluate.
    """
    from posterity.cli.experiment import Settings, run

    run_guarded(run, Settings(**settings))


PLAN = """\b
Examples:
  posterity plan --baseline 0.05 --effect 0.005
  posterity plan --baseline 20 --effect 2 --standard-deviation 30 --arms 3"""


@click.command(cls=Verb, epilog=PLAN, short_help="Find how many rows an experiment takes.")
@click.option(
    "--baseline", required=True, callback=group.number, help="Mean reward of the control."
)
@click.option(
    "--effect",
    required=True,
    callback=group.number,
    help="The difference worth finding, in the same unit.",
)
@click.option(
    "--power",
    default=0.9,
    type=group.SHARE,
    help="Probability with which it is found.",
    show_default=True,
)
@click.option(
    "--standard-deviation",
    type=float,
    help="Of rewards within an arm.  [default: that of yes and no]",
)
@click.option("--arms", default=2, type=click.IntRange(2), help="Their number.")
@options("level")
def plan(**settings: Any) -> None:
    """Find how many rows to plan for an experiment, before it begins.

    Arms come equally often, and you may look at any time. Give the number to `posterity experiment`
    as --planned-rows.
    """

    def run(settings: dict[str, Any]) -> None:
        from posterity.experiments import plan

        click.echo(f"{plan(**settings):,} rows of all arms together")

    run_guarded(run, settings)


@click.command(
    "off-policy",
    cls=Verb,
    epilog=OFF_POLICY,
    short_help="Evaluate policies from the log of another one.",
)
@table
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="POLICY",
    type=InputPath("the bandit"),  # where it is a file
    help="uniform, an arm, or the model file of a bandit. May be given more than once.  "
    "[default: each arm, and uniform]",
)
@arm
@reward
@click.option(
    "--propensity", metavar="COLUMN", help="Column with the probability of the chosen arm."
)
@every_propensity
@options("features", "drop")
@click.option(
    "--method",
    "methods",
    multiple=True,
    type=click.Choice(["replay", "ips", "snips", "dm", "dr", "switch_dr", "dr_shrinkage"]),
    help="Method of estimation. May be given more than once.  [default: dr and snips]",
)
@click.option(
    "--reward-range",
    metavar="LOW,HIGH",
    callback=group.pair,
    help="Least and largest possible reward; makes the anytime interval of ips exact.",
)
@options("level")
@missing
@options(*READING_OPTIONS, "report", "as_json", "quiet")
def off_policy(**settings: Any) -> None:
    """Estimate what policies would have earned, from the log of another one.

    A row of FILE is a decision, with its context, the arm that was chosen, the probability of that
    choice, and the reward. The answer says what the log's policy earned, which other one would have
    earned more, and what to do next. If the log has no support for a policy, the answer is a reason
    instead of a number. The page also draws how probable each arm was along the log, and what it
    earned. FILE is read as by evaluate; a .dsjson file is a log of Vowpal Wabbit or Azure
    Personalizer.
    """
    from posterity.cli.off_policy import Settings, run

    run_guarded(run, Settings(**settings))


VERBS = (experiment, plan, off_policy)
