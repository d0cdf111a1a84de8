"""Models logged with MLflow and loaded back, in a local folder: no server, no network."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posterity import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    GroupedRegression,
    forgetting,
)
from posterity.adapters import mlflow as adapted

mlflow: Any = pytest.importorskip("mlflow", reason="needs MLflow: pip install 'posterity[mlflow]'")
pd: Any = pytest.importorskip("pandas")
pytest.importorskip("mlflow.pyfunc")  # here, where its warnings about itself are no errors

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning"
)  # MLflow's


@pytest.fixture(autouse=True)
def folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())


@pytest.fixture(scope="module")
def frame() -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "c"])
    return X, 1.0 + X.to_numpy() @ [1.0, -2.0, 0.0] + rng.normal(size=50)


@pytest.mark.parametrize(
    "settings",
    [{}, {"noise_precision": 1.0}, {"forgetting": forgetting.Adaptive()}],
    ids=str,
)
def test_a_round_trip_serves_the_same(settings: dict[str, Any], frame: Any, tmp_path: Path) -> None:
    X, y = frame
    model = BayesianLinearRegression(**settings).fit(X, y)
    adapted.save_model(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    queries = X.iloc[:7]
    for level, params in ((0.95, None), (0.5, {"level": 0.5})):
        predictive = served.predict(queries, params=params)
        wanted = model.predict_distribution(queries)
        np.testing.assert_array_equal(predictive["mean"], wanted.mean())
        np.testing.assert_array_equal(predictive["std"], wanted.std())
        interval = model.predict_interval(queries, level=level)
        np.testing.assert_array_equal(predictive[["lower", "upper"]], interval)
        assert predictive.index.equals(queries.index)
    # By name: more columns, or another order, change nothing.
    pd.testing.assert_frame_equal(
        served.predict(queries[["c", "b", "a"]].assign(more=0.0)), served.predict(queries)
    )


def test_the_estimator_itself_comes_back_and_goes_on(frame: Any, tmp_path: Path) -> None:
    X, y = frame
    model = BayesianLinearRegression().fit(X[:30], y[:30])
    adapted.save_model(model, tmp_path / "model")
    again = adapted.load_model(str(tmp_path / "model")).partial_fit(X[30:], y[30:])
    np.testing.assert_array_equal(again.coef_, model.partial_fit(X[30:], y[30:]).coef_)


@pytest.mark.parametrize("kind", [int, str])
def test_the_key_of_groups_comes_along(kind: Any, frame: Any, tmp_path: Path) -> None:
    X, y = frame
    table = X.assign(shop=(np.arange(50) % 4).astype(kind))
    model = GroupedRegression(by="shop").fit(table, y)
    adapted.save_model(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(served.predict(table)["mean"], model.predict(table))


def test_logged_in_a_run(frame: Any) -> None:
    X, y = frame
    model = BayesianLinearRegression().fit(X, y)
    with mlflow.start_run():
        info = adapted.log_model(model, name="regression")
    predictive = mlflow.pyfunc.load_model(info.model_uri).predict(X)
    np.testing.assert_array_equal(predictive["std"], model.predict_distribution(X).std())
    assert [column.name for column in info.signature.inputs.inputs] == ["a", "b", "c"]


def test_scored_as_mlflows_server_does(frame: Any, tmp_path: Path) -> None:
    """The request handler of ``mlflow models serve``, without the sockets."""
    server = pytest.importorskip("mlflow.pyfunc.scoring_server")
    X, y = frame
    model = BayesianLinearRegression().fit(X, y)
    adapted.save_model(model, tmp_path / "model")
    served = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    request = {"dataframe_split": X.iloc[:3].to_dict(orient="split"), "params": {"level": 0.8}}
    answer = server.invocations(
        json.dumps(request), "application/json", served, served.metadata.get_input_schema()
    )
    assert answer.status == 200, answer.response
    predictive = pd.DataFrame(json.loads(answer.response)["predictions"])
    np.testing.assert_allclose(
        predictive[["lower", "upper"]], model.predict_interval(X.iloc[:3], level=0.8), rtol=1e-12
    )


def test_rows_without_names(frame: Any, tmp_path: Path) -> None:
    X, y = frame
    model = BayesianLinearRegression().fit(X.to_numpy(), y)
    adapted.save_model(model, tmp_path / "model")
    predictive = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(X.to_numpy())
    np.testing.assert_array_equal(
        predictive["mean"], model.predict_distribution(X.to_numpy()).mean()
    )


def test_a_classifier_serves_labels_and_probabilities(frame: Any, tmp_path: Path) -> None:
    X, y = frame
    model = BayesianLogisticRegression().fit(X, np.where(y > 1.0, "yes", "no"))
    adapted.save_model(model, tmp_path / "model")
    predictive = mlflow.pyfunc.load_model(str(tmp_path / "model")).predict(X)
    assert predictive.columns.tolist() == ["label", "no", "yes"]
    assert predictive["label"].tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(predictive[["no", "yes"]], model.predict_proba(X))


def test_the_folder_holds_a_model_file_and_no_pickle(frame: Any, tmp_path: Path) -> None:
    X, y = frame
    adapted.save_model(BayesianLinearRegression().fit(X, y), tmp_path / "model")
    names = [path.name for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert "model.posterity" in names
    assert not [name for name in names if name.endswith((".pkl", ".pickle", ".joblib"))]


def test_models_of_others_are_refused(tmp_path: Path) -> None:
    class Nothing(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
            return model_input

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow of its own signatures
        mlflow.pyfunc.save_model(str(tmp_path / "other"), python_model=Nothing())
    with pytest.raises(
        ValueError, match=r"was not written by posterity\.adapters\.mlflow: load it"
    ):
        adapted.load_model(str(tmp_path / "other"))
