"""The package of adapters imports nothing by itself, and says what is missing."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import posterity.adapters


def test_importing_the_package_imports_none_of_them() -> None:
    code = (
        "import sys, posterity.adapters\n"
        "named = {'river', 'arviz', 'mlflow', 'onnx', 'skops', 'pandas', 'numpy', 'pyspark'}\n"
        "print(sorted(named & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names_are_there() -> None:
    assert posterity.adapters.to_arviz.__module__ == "posterity.adapters.arviz"
    assert posterity.adapters.to_onnx.__module__ == "posterity.adapters.onnx"
    assert {"to_arviz", "to_onnx"} <= set(dir(posterity.adapters))
    with pytest.raises(AttributeError, match="has no attribute 'to_nothing'"):
        posterity.adapters.to_nothing  # noqa: B018


@pytest.mark.parametrize("library", ["river", "arviz", "onnx", "mlflow", "spark", "sktime"])
def test_a_missing_library_is_named_with_its_extra(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = posterity.BayesianLinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0])
    module = {"spark": "pyspark"}.get(library, library)
    for name in list(sys.modules):
        if name.split(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    for name in ("river", "sktime"):
        monkeypatch.delitem(sys.modules, f"posterity.adapters.{name}", raising=False)
    ask = {
        "river": lambda: importlib.import_module("posterity.adapters.river"),
        "sktime": lambda: importlib.import_module("posterity.adapters.sktime"),
        "arviz": lambda: posterity.adapters.to_arviz(model, [[0.0]], [0.0]),
        "onnx": lambda: posterity.adapters.to_onnx(model),
        "mlflow": lambda: importlib.import_module("posterity.adapters.mlflow").save_model(
            model, "x"
        ),
        "spark": lambda: importlib.import_module("posterity.adapters.spark").fit(model, None, "y"),
    }[library]
    with pytest.raises(ImportError, match=rf'pip install "posterity\[{library}\]"'):
        ask()
