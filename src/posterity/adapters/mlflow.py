"""posterity as a flavour of MLflow: log, load and serve mean, standard deviation and interval.

What is stored is posterity's own model file, which holds no code; MLflow serves it through pyfunc.
The functions have the names that MLflow's flavours have.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from posterity import __version__, files
from posterity.adapters._extras import require_module
from posterity.aliases import DataFrame
from posterity.kernel.tables import find_table
from posterity.linear.named import list_feature_names

__all__ = ["load_model", "log_model", "save_model"]

FILE_NAME = "model.posterity"
LEVEL = 0.95


class ServedModel:
    """The model that MLflow calls: it returns predictions as a table."""

    def __init__(self, model: BaseEstimator) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> DataFrame:
        """A data frame with a row for each of ``data``.

        Columns of a regression: ``mean``, ``std``, ``lower`` and ``upper`` (the interval of the
        probability ``params["level"]``); of a classifier: ``label`` and a probability for each.
        """
        pandas = require_module("pandas", "mlflow")
        model, index, table = self.model, getattr(data, "index", None), find_table(data)
        names = list_feature_names(model)
        if table is not None:
            data = table.select([*_keys(model), *names]) if names else data.to_numpy()
        if hasattr(model, "predict_proba"):
            predictions = model.predict_distribution(data)
            columns = {"label": predictions.mode()}
            columns |= {str(label): predictions.pmf(label) for label in model.classes_.tolist()}
            return pandas.DataFrame(columns, index=index)
        level = float((params or {}).get("level", LEVEL))
        predictions = model.predict_distribution(data)
        low, high = predictions.interval(level)
        columns = {"mean": predictions.mean(), "std": predictions.std()}
        columns |= {"lower": low, "upper": high}
        return pandas.DataFrame(columns, index=index)


def save_model(model: BaseEstimator, path: str | Path, **options: Any) -> None:
    """Write an estimator of posterity to a folder as an MLflow model.

    Parameters
    ----------
    model : estimator
        One that has learned.
    path : path
        The folder, which must not be there.
    **options
        As ``mlflow.pyfunc.save_model`` takes them. ``signature`` and ``pip_requirements`` are made
        from the model if they are not given.

    Raises
    ------
    ImportError
        Without MLflow: ``pip install "posterity[mlflow]"``.
    posterity.files.ModelFileError
        If the model holds what a model file can't.

    Examples
    --------
    >>> save_model("model", "folder")  # doctest: +SKIP
    """
    pyfunc = require_module("mlflow.pyfunc", "mlflow")
    with _write_model_file(model) as data:
        pyfunc.save_model(path=str(path), **_options(model, data, options))


def log_model(model: BaseEstimator, name: str = "model", **options: Any) -> Any:
    """Log an estimator of posterity to MLflow's active run; returns MLflow's ``ModelInfo``.

    Parameters as of :func:`save_model`; options are those of ``mlflow.pyfunc.log_model``.
    """
    pyfunc = require_module("mlflow.pyfunc", "mlflow")
    with _write_model_file(model) as data:
        return pyfunc.log_model(name=name, **_options(model, data, options))


def load_model(model_uri: str) -> Any:
    """The estimator itself, from a folder or any URI that MLflow knows."""
    artifacts = require_module("mlflow.artifacts", "mlflow")
    models = require_module("mlflow.models", "mlflow")
    folder = Path(artifacts.download_artifacts(str(model_uri)))
    flavor = models.Model.load(str(folder)).flavors["python_function"]
    if flavor.get("loader_module") != __name__:
        raise ValueError(
            f"{model_uri} was not written by {__name__}: load it with mlflow.pyfunc.load_model"
        )
    return files.load(folder / flavor["data"])


def _load_pyfunc(path: str) -> ServedModel:
    """MLflow's entry: the name is part of its protocol."""
    return ServedModel(files.load(path))


@contextmanager
def _write_model_file(model: BaseEstimator) -> Iterator[Path]:
    """The path of the model's file, for as long as MLflow copies it."""
    with tempfile.TemporaryDirectory(prefix="posterity-") as folder, warnings.catch_warnings():
        # MLflow would like an input example to test the signature with, and to keep with the
        # model: the signature is the model's own, and data are not ours to keep.
        warnings.filterwarnings("ignore", message=".*[Ii]nput example")
        path = Path(folder) / FILE_NAME
        files.save(model, path)
        yield path


def _options(model: BaseEstimator, data: Path, given: dict[str, Any]) -> dict[str, Any]:
    return {
        "loader_module": __name__,
        "data_path": str(data),
        "pip_requirements": [f"posterity[mlflow]=={__version__}"],
        "signature": _make_signature(model),
        **given,
    }


def _keys(model: BaseEstimator) -> list[str]:
    """The columns of groups, which are no features."""
    by = getattr(model, "by", None)
    return [by] if isinstance(by, str) else list(by or [])


def _make_signature(model: BaseEstimator) -> Any:
    """Features in, predictions out, and the level of the interval as a parameter."""
    models = require_module("mlflow.models", "mlflow")
    types = require_module("mlflow.types", "mlflow")
    names = list_feature_names(model)
    if not names:
        tensor = types.TensorSpec(np.dtype(np.float64), (-1, model.n_features_in_))
        inputs = types.Schema([tensor])
    else:
        any_type = require_module("mlflow.types.schema", "mlflow").AnyType()
        keys = [types.ColSpec(any_type, name) for name in _keys(model)]
        inputs = types.Schema([*keys, *(types.ColSpec("double", str(name)) for name in names)])
    if hasattr(model, "predict_proba"):
        return models.ModelSignature(inputs=inputs)
    columns = ("mean", "std", "lower", "upper")
    outputs = types.Schema([types.ColSpec("double", name) for name in columns])
    level = types.ParamSpec("level", "double", LEVEL)
    return models.ModelSignature(inputs, outputs, types.ParamSchema([level]))
