"""Choice of arms by a policy in n contexts, and the source of their probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from posterity.aliases import Array, Indices, Mask
from posterity.bandits.arms import Arms
from posterity.bandits.beliefs import StudentBeliefs
from posterity.bandits.decisions import Numbers, draw_rankings
from posterity.bandits.policies import compute_student_propensities
from posterity.bandits.rising import AnyBeliefs
from posterity.kernel import ArmsPath


def compute_beliefs(
    contexts: Array, mask: Mask, arms: Arms, arms_path: ArmsPath | None, numbers: Numbers
) -> AnyBeliefs:
    """Return the posterior of each arm's expected reward, by compiled code where possible."""
    if arms_path is None:
        return arms.beliefs(contexts, mask, numbers)
    _, mean, scale = arms_path.decide_rows(contexts, mask.view(np.uint8), (1, 0.0), 0.0, 0, 0)
    return StudentBeliefs(mean, scale, np.full(mean.shape, arms_path.df), mask, arms_path.first)


def choose_arms(
    contexts: Array,
    mask: Mask,
    arms: Arms,
    arms_path: ArmsPath | None,
    *,
    policy: Any,
    k: int | None,
    numbers: Numbers,
) -> tuple[Indices, Array, tuple[Any, ...]]:
    """Choose arms (n,), or rankings (n, k); with means (n, K), and the source of probabilities.

    The last is a function and its arguments, as :class:`Decisions` has them: probabilities are
    worked out when they are asked for.
    """
    how = None if arms_path is None or k is not None else policy.find_kernel_policy(arms_path.df)
    if arms_path is not None and how is not None:
        places, mean, scale = arms_path.decide_rows(
            contexts, mask.view(np.uint8), how, policy.floor, numbers.seed, numbers.number
        )
        about = arms_path.df, mean, scale, mask, arms_path.first
        return places, mean, (compute_student_propensities, policy, *about)
    beliefs = compute_beliefs(contexts, mask, arms, arms_path, numbers)
    if k is None:
        places, chances = policy.choose(beliefs, numbers)
    else:
        chances = policy.propensities(beliefs, numbers.rng)
        places = draw_rankings(chances, k, numbers.rng)
    alone = policy.propensities, beliefs, np.random.default_rng(0)
    return places, beliefs.mean, alone if chances is None else (np.asarray, chances)
