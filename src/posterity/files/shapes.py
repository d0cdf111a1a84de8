"""Shapes of the arrays of an object, which go together.

A letter stands for the same length in all fields of an object, a number for itself, and a star for
any more axes. An array that is None has no shape to check; so has a field that is not listed.
"""

from __future__ import annotations

import numpy as np

SHAPES: dict[str, dict[str, str]] = {
    "AdaptedTails": {
        "levels": "L", "tails": "L", "temperatures": "L", "rates": "K", "aims": "2 L K",
        "weights": "2 L K", "ordered": "W", "recent": "W", "count": "2",
    },
    "TrackedTails": {
        "levels": "L", "tails": "L", "steps": "L", "bounds": "2 L", "integrals": "2 L",
        "scale": "3",
    },
    "ProbabilityMap": {"counts": "B", "waiting": "B"},
    "RunningScales": {"mean": "m", "squares": "m"},
    "RareFeatureScales": {"mean": "m", "squares": "m", "low": "m", "high": "m"},
    "Choice": {
        "precisions": "K m", "weights": "K", "pinned": "m", "shapes": "K", "contrasts": "K b m",
    },
    "ContrastPrior": {"center": "c", "squares": "c"},
    "StartRows": {"X": "n p", "y": "n *", "weights": "n", "offsets": "n"},
    "SkewedRows": {
        "X": "n m", "y": "n *", "weights": "n", "offsets": "n", "precision": "n", "shift": "n",
    },
    "StoredRows": {"X": "n p", "y": "n", "weights": "n", "elapsed": "n"},
    "WarmStart": {"coefficients": "p"},
    "WindowRows": {"X": "n m", "y": "n *", "weights": "n", "times": "n", "offsets": "n"},
    "RecentRows": {"X": "n m", "labels": "n", "weights": "n"},
    "EvidencePosterior": {"mean": "m", "shapes": "l m"},
    "EvidenceState": {"clock": "2"},
    "NoiseStatistics": {"centre": "m", "at": "m", "clock": "2"},
    "Ledger": {"recent": "M K"},
    "SharedArms": {"features": "K a"},
    "HeldDecision": {"context": "m"},
    "Ensemble": {"log_prior": "k", "scores": "k"},
    "TwoLevelWeights": {"members": "a k", "rates": "r"},
    "Switching": {"noises": "k 4 m"},
    "Regimes": {"first": "k", "probability": "k", "learned": "k", "last": "1 m", "found": "n"},
    "Targets": {"count": "1", "mean": "1", "squares": "1"},
    "BankedRuns": {
        "first": "c", "probability": "c", "learned": "c", "residual_df": "c", "found": "n",
    },
    "GroupBelief": {"mean": "p", "free": "p"},
    "GroupSample": {
        "rows": "g p q", "counts": "g", "residuals": "g", "noise": "g", "effects": "g",
    },
    "GroupSites": {"root": "p p"},
    "GroupedRows": {
        "X": "n m", "y": "n", "weights": "n", "numbers": "n", "slots": "g", "offsets": "n",
    },
    "SharedPrior": {
        "root": "p p", "mean": "p", "priors": "k q l", "own_noise": "j 2", "ratio": "j",
    },
    "Centres": {"features": "f", "values": "f", "sums": "f", "counts": "f", "products": "e 3"},
    "Panel": {"values": "S T", "ends": "S", "columns": "S T m"},
    "SparseRows": {"starts": "s", "features": "e", "columns": "e", "values": "e"},
    "SparsePosterior": {
        "owners": "P", "squares": "c 2", "found": "c 1", "targets": "n *", "row_weights": "w",
        "row_offsets": "w",
    },
    "DiagonalPosterior": {
        "owners": "P", "precision": "c k", "information": "c k", "squares": "c 2", "scores": "k",
        "rates": "k", "start": "k", "clocks": "P",
    },
    "FeatureLevels": {"features": "F"},
    "FactorizationPosterior": {
        "y": "n", "weights": "n", "codes": "n s", "values": "n s", "prior_means": "s p",
        "prior_precisions": "s p",
    },
    "Fourier": {"domain_": "m 2", "period_": "m", "_origin": "m"},
    "HilbertSpaceGP": {"boundary_": "m", "indices_": "k m", "length_scales_": "a b"},
    "Polynomial": {"domain_": "m 2", "powers_": "k m"},
    "RadialBasis": {"domain_": "m 2", "width_": "m"},
    "RandomFourier": {"domain_": "m 2", "frequencies_": "k m", "amplitudes_": "k"},
    "Spline": {"domain_": "m 2"},
    "AutoBasis": {"domain_": "m 2"},
}  # fmt: skip


def have_shapes(name: str, made: object) -> bool:
    """Return True if the arrays of an object have the shapes of its class.

    Examples
    --------
    >>> from posterity.evidence import RunningScales
    >>> have_shapes("RunningScales", RunningScales(3.0, np.zeros(2), np.ones(2)))
    True
    >>> have_shapes("RunningScales", RunningScales(3.0, np.zeros(2), np.ones(3)))
    False
    """
    lengths: dict[str, int] = {}
    for field, letters in SHAPES.get(name, {}).items():
        array, each = getattr(made, field, None), letters.removesuffix(" *").split()
        if array is None:
            continue
        more = np.ndim(array) - len(each)
        if more < 0 or (more and not letters.endswith("*")):
            return False
        for letter, length in zip(each, np.shape(array), strict=False):
            expected = int(letter) if letter.isdigit() else lengths.setdefault(letter, length)
            if length != expected:
                return False
    return True
