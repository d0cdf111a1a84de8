"""Models of many features: the options --structure, --hash and --interactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from posterity.aliases import Document, Estimator
from posterity.cli.tables import TableSettings
from posterity.words import parse_one

FAMILIES = {"": "Linear", "linear": "Linear", "logistic": "Logistic", "poisson": "Poisson"}
MOST_SHOWN = 30
PREFIXES = {"diagonal": "Diagonal", "sparse": "Sparse"}
# Settings of tables and scores that are for few features, and what they are where not given.
FEW_FEATURE_DEFAULTS = {
    "lags": (), "dates": "error", "category_levels": {}, "log_target": False, "report": None,
    "slices": (), "period": None, "delay": 0,
}  # fmt: skip
OPTION_NAMES = {"lags": "lag", "category_levels": "levels", "slices": "slice"}


@dataclass(frozen=True, kw_only=True)
class ModelSettings(TableSettings):
    """Options of a model, beside those of its table, one field each."""

    model: str
    prior_precision: float | str
    noise: str
    forgetting: str
    no_intercept: bool
    log_target: bool
    structure: str
    hash_size: int | None
    interactions: int | list[tuple[str, str]] | None

    @property
    def is_wide(self) -> bool:
        """True if columns stay as they are, with as many levels as come."""
        return self.structure != "full"

    def check_wide(self) -> None:
        """Raise ``ValueError`` for options that do not go with the structure."""
        if not self.is_wide:
            if self.hash_size is not None or self.interactions is not None:
                option = "--interactions" if self.hash_size is None else "--hash"
                raise ValueError(f"{option} is for --structure diagonal or sparse: give one")
            return
        for name, usual in FEW_FEATURE_DEFAULTS.items():
            if getattr(self, name, usual) != usual:
                option = OPTION_NAMES.get(name, name.replace("_", "-"))
                raise ValueError(
                    f"--{option} does not go with --structure {self.structure}: leave it out"
                )


def build_wide(
    settings: ModelSettings, *, noise_precision: float | None, noise: str, **common: Any
) -> Estimator:
    """The estimator of many features.

    Raises
    ------
    ValueError
        A family, a basis or noise that these models don't have.
    """
    from posterity import sparse

    words, structure = parse_one(settings.model), settings.structure
    if words.family not in FAMILIES or words.basis:
        other = words.basis or words.family
        raise ValueError(
            f"{other} does not go with --structure {structure}: take linear, poisson or logistic"
        )
    if words.prior or words.forgetting:
        raise ValueError(
            f"{words.prior or words.forgetting} in --model does not go with --structure: give "
            "--prior-precision and --forgetting"
        )
    if noise != "constant":
        raise ValueError(f"--noise {noise} does not go with --structure {structure}: leave it out")
    family = FAMILIES[words.family]
    if family == "Linear":
        common["noise_precision"] = noise_precision
    elif noise_precision is not None:
        raise ValueError(f"a {words.family} model has no noise precision: leave it out")
    return getattr(sparse, f"{PREFIXES[structure]}{family}Regression")(
        **common,
        hash_size=settings.hash_size,
        interactions=settings.interactions,
        categorical_features=settings.categories or "auto",
        missing="level" if settings.missing == "level" else "error",
    )


def open_wide_table(settings: ModelSettings, path: str, *, labels: bool) -> Any:
    """The table at the path, where FILE was put, with its columns as they are."""
    from posterity.io.reading import ROLES, ReadSettings, take
    from posterity.io.targets import make_target
    from posterity.io.wide import open_wide

    reading = ReadSettings(**take(settings, "batch_rows", "memory", "missing", *ROLES))
    goal = make_target(settings.target, labels=labels)
    columns = settings.features, settings.drop
    return open_wide(path, goal, reading, columns=columns, text=settings.text)


def describe_wide(model: Estimator, level: float) -> Document:
    """The coefficients that are furthest from 0 in units of their std, and each column's prior."""
    mean, std = model.coef_, model.coef_std_
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(-np.abs(mean / std), kind="stable")[:MOST_SHOWN]
    names = model.feature_names_
    reach = float(ndtri(0.5 + 0.5 * level))
    return {
        "n_features": model.n_features_,
        "prior_scales": model.prior_scales_,
        "prior_std_learned": [],
        "coefficients": [
            {
                "name": names[place], "mean": float(mean[place]), "std": float(std[place]),
                "lower": float(mean[place] - reach * std[place]),
                "upper": float(mean[place] + reach * std[place]),
            }
            for place in order
        ],
    }  # fmt: skip
