"""Each row of docs/user_guide/other_tools.md runs, where its package is installed."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import RocCurveDisplay
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    Category,
    ClassTables,
    LaplaceMechanism,
    PrivacyAccountant,
    PrivateEstimator,
    Schema,
)
from tests import helpers

PAGE = (Path(__file__).parents[1] / "docs" / "user_guide" / "other_tools.md").read_text()
X = np.random.default_rng(0).normal(size=(400, 3))
Y = (X[:, 0] + np.random.default_rng(1).normal(size=400) > 0).astype(int)
X_PUBLIC, Y_PUBLIC, X_PRIVATE, Y_PRIVATE = X[:200], Y[:200], X[200:], Y[200:]


def unfitted(estimator=None):
    estimator = (
        make_pipeline(StandardScaler(), LogisticRegression()) if estimator is None else estimator
    )
    return helpers.private(estimator, X_PUBLIC, Y_PUBLIC)


@pytest.fixture(scope="module")
def model():
    return unfitted().fit(X_PRIVATE, Y_PRIVATE)


def run_mlflow(model, monkeypatch, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    needed = "infer_pip_requirements"  # in a process of its own, which takes seconds
    monkeypatch.setattr(mlflow.models, needed, lambda *_, **__: ["scikit-learn"])
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.set_experiment("models")  # another test may have set one, in its own folder
    recipe = re.search(r"```python\n(with mlflow.*?)```", PAGE, re.S)[1]
    assert len(recipe.strip().splitlines()) == 5
    exec(recipe, {"mlflow": mlflow, "model": model})
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.tags["guarantee"] == "random differential privacy, epsilon=1, gamma=0.2"
    written = {path.name for path in (tmp_path / "runs").rglob("*")}
    assert {"report.html", "release.json", "README.md"} <= written
    assert "scikit-learn" in next((tmp_path / "runs").rglob("requirements.txt")).read_text()
    (folder,) = {path.parent for path in (tmp_path / "runs").rglob("MLmodel")}
    loaded = mlflow.sklearn.load_model(folder.as_uri())
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


# No extra has most of these packages: where one is installed, its row runs.
def run_skops(model, **_):
    skops = pytest.importorskip("skops.io")
    loaded = skops.loads(skops.dumps(model.estimator_))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    dumped = skops.dumps(model)
    untrusted = skops.get_untrusted_types(data=dumped)
    with pytest.raises(TypeError):  # if it is read one day, the page is to say so
        skops.loads(dumped, trusted=untrusted)


def run_onnx(model, **_):
    skl2onnx, onnxruntime = map(pytest.importorskip, ("skl2onnx", "onnxruntime"))
    options = {id(model.estimator_): {"zipmap": False}}
    made = skl2onnx.to_onnx(model.estimator_, X_PUBLIC[:1].astype(np.float32), options=options)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (labels,) = session.run(["label"], {"X": X.astype(np.float32)})
    assert np.mean(labels == model.predict(X)) > 0.99


def run_shap(model, **_):
    shap = pytest.importorskip("shap")
    explained = shap.Explainer(model.estimator_.predict_proba, X_PUBLIC[:20])(X_PUBLIC[:2])
    assert explained.values.shape == (2, 3, 2)


def run_displays(model, **_):
    assert RocCurveDisplay.from_estimator(model.estimator_, X_PUBLIC, Y_PUBLIC).roc_auc > 0.5


def run_optuna(model, **_):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        tried = LogisticRegression(C=trial.suggest_float("C", 0.01, 1.0))
        return tried.fit(X_PUBLIC[:100], Y_PUBLIC[:100]).score(X_PUBLIC[100:], Y_PUBLIC[100:])

    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=2)
    assert 0.01 <= study.best_params["C"] <= 1.0


def run_mapie(model, **_):
    mapie = pytest.importorskip("mapie.classification")
    sets = mapie.SplitConformalClassifier(model.estimator_, confidence_level=0.8, prefit=True)
    _, members = sets.conformalize(X_PUBLIC, Y_PUBLIC).predict_set(X_PUBLIC)
    assert members.any()


def run_calibrators(model, **_):
    frozen = FrozenEstimator(model.estimator_)
    for outer in (CalibratedClassifierCV, TunedThresholdClassifierCV):
        assert outer(frozen).fit(X_PUBLIC, Y_PUBLIC).score(X_PUBLIC, Y_PUBLIC) > 0.5


def run_fairlearn(model, **_):
    fairlearn = pytest.importorskip("fairlearn.postprocessing")
    group = X_PUBLIC[:, 1] > 0
    fair = fairlearn.ThresholdOptimizer(
        estimator=model.estimator_, prefit=True, predict_method="predict_proba"
    )
    fair.fit(X_PUBLIC, Y_PUBLIC, sensitive_features=group)
    assert set(fair.predict(X_PUBLIC, sensitive_features=group)) <= {0, 1}


def run_ensembles(model, **_):
    ledger = PrivacyAccountant(":memory:", epsilon=10.0)
    options = {"classes": [0, 1], "accountant": ledger}
    mechanism = LaplaceMechanism(1.0)
    inner = PrivateEstimator(RidgeClassifier(), mechanism=mechanism, sensitivity=0.1, **options)
    outers = [VotingClassifier([("a", inner), ("b", inner)]), OneVsRestClassifier(inner)]
    for outer in outers:
        assert outer.fit(X_PRIVATE, Y_PRIVATE).predict(X).shape == (400,)
    assert ledger.total().n_releases == 3


def run_stacking(model, **_):
    whole = StackingClassifier([("a", LogisticRegression())], LogisticRegression(), cv=2)
    assert isinstance(unfitted(whole).fit(X_PRIVATE, Y_PRIVATE).estimator_, StackingClassifier)


def run_imbalanced(model, **_):
    balanced = unfitted(LogisticRegression(class_weight="balanced")).fit(X_PRIVATE, Y_PRIVATE)
    assert balanced.estimator_.class_weight == "balanced"
    samplers = pytest.importorskip("imblearn.over_sampling")
    more, labels = samplers.RandomOverSampler(random_state=0).fit_resample(X_PUBLIC, Y_PUBLIC)
    assert helpers.private(LogisticRegression(), more, labels).fit(X_PRIVATE, Y_PRIVATE)


def run_encoders(model, **_):
    words = pd.DataFrame({"word": np.where(X[:, 0] > 0, "a", "b")})
    schema = Schema({"word": Category(["a", "b"])}, classes=[0, 1])
    encoders = [pytest.importorskip("category_encoders").TargetEncoder()]
    encoders += [pytest.importorskip("feature_engine.encoding").MeanEncoder()]
    for encoder in encoders:
        private = PrivateEstimator(
            make_pipeline(encoder, LogisticRegression()),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=ClassTables(schema),
        )
        assert private.fit(words, Y).score(words, Y) > 0.6


ROWS = {
    "MLflow": run_mlflow,
    "skops": run_skops,
    "ONNX": run_onnx,
    "shap": run_shap,
    "displays": run_displays,
    "Optuna": run_optuna,
    "MAPIE": run_mapie,
    "calibrators": run_calibrators,
    "fairlearn": run_fairlearn,
    "`VotingClassifier`": run_ensembles,
    "`StackingClassifier`": run_stacking,
    "samplers": run_imbalanced,
    "category_encoders": run_encoders,
}


def test_each_row_of_the_page_has_a_case():
    table = PAGE.split("|---|---|---|\n")[1].split("\n\n")[0]
    assert [re.split(r"[ ,]", row[2:])[0] for row in table.splitlines()] == list(ROWS)


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize("row", ROWS)
def test_a_row_of_the_page(row, model, monkeypatch, tmp_path):
    ROWS[row](model, monkeypatch=monkeypatch, tmp_path=tmp_path)
