"""The folder of a release: whole or as it was, without a record, readable without skdp."""

import json
import pickle
import platform
import subprocess
import sys
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import (
    BernsteinTransformer,
    ClipBox,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    load,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.audit import find_leaks

IRIS = load_iris(return_X_y=True)
PUBLIC, PRIVATE = [part[::2] for part in IRIS], [part[1::2] for part in IRIS]
ORACLE = UniformOracle([(0, 1)], y_bounds=(0, 1))
x = np.linspace(0, 1, 60)[:, None]


def private(estimator, oracle=ORACLE, **options):
    sampler = SensitivitySampler(oracle, gamma=0.2, n_pairs=9, random_state=0)
    options = {"mechanism": LaplaceMechanism(2.0), "sensitivity": sampler} | options
    return PrivateEstimator(estimator, random_state=0, **options)


@pytest.fixture(scope="module")
def model():
    scaler = FrozenEstimator(StandardScaler().fit(PUBLIC[0]))
    pipeline = make_pipeline(scaler, RidgeClassifier())
    return private(pipeline, PublicDataOracle(*PUBLIC)).fit(*PRIVATE)


def save_mean(folder, name="mean", **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 0.1, "random_state": 0} | options
    names = None if name is None else [name]
    release(np.mean, np.ones(20), names=names, **options).save(folder)


def card_of(folder):
    return (folder / "README.md").read_text()


def facts_of(folder):
    return json.loads((folder / "release.json").read_text())


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


IN_ANOTHER_PROCESS = """
import sys, numpy as np
{forbid}
print(*{load}.predict(np.load(sys.argv[2])))
"""
FORBID = "sys.modules['skdp'] = None"  # an import of it fails
LOADERS = {
    "release.joblib": "__import__('skdp').load(sys.argv[1]).value",
    "estimator.joblib": "__import__('joblib').load(sys.argv[1] + '/estimator.joblib')",
    "estimator.skops": "__import__('skops.io').io.load(sys.argv[1] + '/estimator.skops')",
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_saved_model_predicts_alike_in_another_process(model, tmp_path, monkeypatch, name):
    """A plain model also where skdp cannot be imported."""
    if name == "estimator.skops":
        pytest.importorskip("skops", reason="needs the 'skops' extra")
    elif name == "estimator.joblib":
        monkeypatch.setitem(sys.modules, "skops", None)  # as where it is not installed
    model.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", PRIVATE[0])
    forbid = FORBID if name.startswith("estimator") else ""
    script = IN_ANOTHER_PROCESS.format(forbid=forbid, load=LOADERS[name])
    command = [sys.executable, "-c", script, str(tmp_path / "model"), str(tmp_path / "X.npy")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == list(map(str, model.predict(PRIVATE[0])))
    assert f"`{name}`" in card_of(tmp_path / "model")
    assert load(tmp_path / "model").guarantee == model.guarantee_


@pytest.mark.parametrize(
    "estimator", [make_pipeline(ClipBox(0, 1), Ridge()), KernelDensity()], ids=["clip", "density"]
)
def test_a_model_with_a_part_of_skdp_is_in_the_release_only(estimator, tmp_path):
    box = BernsteinTransformer(degree=3, feature_range=(0, 1))
    is_density = isinstance(estimator, KernelDensity)
    options = {"release": box} if is_density else {"sensitivity": 1.0}
    model = private(estimator, UniformOracle([(0, 1)]), **options)
    (model.fit(x) if is_density else model.fit(x, x[:, 0])).save(tmp_path)
    assert contents(tmp_path).keys() == {"README.md", "release.json", "release.joblib"}
    assert "estimator." not in card_of(tmp_path)


@pytest.mark.parametrize("skops", [False, True])
def test_the_folders_of_neighbors_differ_in_what_was_released_only(tmp_path, monkeypatch, skops):
    """Two records beyond a clip are the same within, so the same is released, under a seed."""
    if skops:
        pytest.importorskip("skops", reason="needs the 'skops' extra")
    else:
        monkeypatch.setitem(sys.modules, "skops", None)
    folders = []
    for beyond in (7.5, 90000.25):
        X, folder = np.r_[x, [[beyond]]], tmp_path / str(beyond)
        within, pays = np.minimum(X, 1), partial(PrivacyAccountant, ":memory:", epsilon=9)
        clipped = make_pipeline(ClipBox(0, 1), StandardScaler())
        private(clipped, sensitivity="known", accountant=pays()).fit(X).save(folder / "clipped")
        plain = private(Ridge(), sensitivity=1e-3, accountant=pays()).fit(within, within[:, 0])
        plain.save(folder / "plain")
        noise = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 1, "random_state": 0}
        mean = release(lambda X: np.clip(X, 0, 1).mean(), X, accountant=pays(), **noise)
        mean.save(folder / "mean")
        folders.append({path.name: contents(path) for path in folder.iterdir()})
    assert folders[0] == folders[1]
    assert ("estimator.skops" in folders[0]["plain"]) == skops


def test_no_record_is_in_the_folder(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))  # numbers that differ, to be searched for
    oracle = UniformOracle([(-3, 3)] * 3, y_bounds=(-3, 3))
    y = X[:, 0] - X[:, 1]
    private(Ridge(), oracle).fit(X, y).save(tmp_path, n_draws=9)
    assert len(contents(tmp_path)) == 4
    assert not find_leaks(tmp_path, X, y, parameters=Ridge().fit(X, y))


def test_the_card_and_the_facts_say_what_was_promised(model, tmp_path):
    model.save(tmp_path)
    card, facts = card_of(tmp_path), facts_of(tmp_path)
    assert card.startswith("# Pipeline, released privately\n")
    assert card.count(str(model.guarantee_)) == 1
    for said in (*model.report().lines, "std. error", "released.report()"):
        assert said in card
    assert facts["guarantee"] == model.guarantee_.to_dict()
    assert facts["budget"]["n_releases"] == model.budget_.n_releases
    assert facts["plan"] == str(model.plan_)
    assert facts["versions"]["joblib"] == joblib.__version__
    assert facts["versions"]["Python"] == platform.python_version()
    save_mean(tmp_path / "exact", mechanism=LaplaceMechanism(np.inf))
    assert facts_of(tmp_path / "exact")["guarantee"]["epsilon"] == "inf"
    assert load(tmp_path / "exact").value == 1
    gamma = {"gamma": np.float32(0.25), "preconditions": "draws"}
    save_mean(tmp_path / "draws", sensitivity=KnownSensitivity(np.float32(0.2), "l1", 20, **gamma))
    assert facts_of(tmp_path / "draws")["guarantee"]["gamma"] == 0.25


FOREIGN = [
    {"mine.txt": "mine"},
    {"README.md": "mine"},
    {"release.json": '{"mine": 1}', "release.joblib": "mine", "README.md": "mine"},
    {"release.json": '["mine"]', "release.joblib": "mine"},
    {"release.json": '{"sha256": {}}', "release.joblib": "mine"},
]


@pytest.mark.parametrize("held", FOREIGN, ids=len)
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path, held):
    for name, text in held.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match="must be empty, or hold an earlier release"):
        save_mean(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == held
    with pytest.raises(ValueError, match=r"lacks|not the file that was saved"):
        load(tmp_path)


def names_in(folder):
    (name,) = load(folder).summary().names
    assert name in card_of(folder)
    assert len(contents(folder)) == 3
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    return name


def test_an_earlier_release_is_replaced_but_no_file_beside_it(tmp_path):
    """As a script does that is run again: what it has paid for must not be lost."""
    folder = tmp_path / "model"
    save_mean(folder, "first")
    save_mean(folder, "second")
    assert names_in(folder) == "value[second]"
    (folder / "README.md").unlink()
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds something else"):
        save_mean(folder, "third")
    assert (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("nth", range(3))
def test_a_save_that_fails_leaves_what_was_there(tmp_path, monkeypatch, nth):
    """At each of its three files; a first save leaves nothing."""
    folder, calls = tmp_path / "model", []
    save_mean(folder, "first")

    def fails_once(method):
        def wrapped(*args, **kwargs):
            calls.append(method)
            if len(calls) == nth + 1:
                raise KeyboardInterrupt
            return method(*args, **kwargs)

        return wrapped

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", fails_once(Path.write_bytes))
        with pytest.raises(KeyboardInterrupt):
            save_mean(folder, "second")
        assert names_in(folder) == "value[first]"
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            save_mean(tmp_path / "new", "second")
        assert contents(tmp_path / "new") == {}


@pytest.mark.parametrize("name", ["release.joblib", "estimator.joblib"])
def test_a_file_that_was_changed_is_refused(model, tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "skops", None)
    model.save(tmp_path)
    (tmp_path / name).write_bytes(pickle.dumps(print))
    with pytest.raises(ValueError, match="not the file that was saved"):
        load(tmp_path)


def test_functions_that_no_other_process_finds(tmp_path):
    """One without a name is refused, with a remedy that costs nothing."""
    logs = FunctionTransformer(lambda X: np.log1p(X), feature_names_out="one-to-one")
    model = private(make_pipeline(logs, Ridge())).fit(x, x[:, 0])
    with pytest.raises(ValueError, match=r"unharmed.*in the estimator_ .* such as numpy.log1p"):
        model.save(tmp_path)
    html = model._repr_html_()  # scikit-learn 1.9 draws no such fitted step
    assert "UniformOracle" in html
    assert "<span>Fitted</span>" in html
    assert "Not fitted" not in html
    model.estimator_.set_params(functiontransformer__func=np.log1p)
    model.save(tmp_path)
    assert load(tmp_path).value.predict(x).shape == (60,)


@pytest.mark.worth
@pytest.mark.parametrize("name", ["share\n(percent)", "```", "_|*<b>"])
def test_a_name_breaks_neither_the_table_nor_the_card(name, tmp_path):
    pd = pytest.importorskip("pandas", reason="needs the 'dataframe' extra")
    frame = pd.DataFrame(np.random.default_rng(0).uniform(size=(90, 2)), columns=[name, "other"])
    labels = np.where(frame["other"] > 0.5, name, "low")
    oracle = PublicDataOracle(frame[:45], labels[:45])
    model = private(LogisticRegression(), oracle).fit(frame[45:], labels[45:])
    summary = model.summary()
    assert len(set(summary.names)) == 3
    assert len(summary.table().splitlines()) == 7
    assert len(str(model.plan_).splitlines()) == 10
    model.save(tmp_path)
    lines = card_of(tmp_path).splitlines()
    fences = {line.removesuffix("text") for line in lines if line.endswith("`text")}
    assert sum(map(lines.count, fences | {"```"})) == 3  # the third ends an example
    assert sum(line.startswith("## ") for line in lines) == 3
