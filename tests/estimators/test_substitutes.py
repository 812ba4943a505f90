"""Substitutes compute what the classes do whose place they take, and can be released."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import FactorAnalysis, FastICA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.bounds import svm_bound
from skdp.core.dataset import Dataset
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.substitutes import DiscriminantProjection, StandardizedPowerTransformer


def records(seed, n_records=60):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_records)
    centers = np.array([[0.0, 0, 0, 1], [4, 0, 1, 1], [0, 4, -1, 1]])
    return centers[y] + rng.normal(size=(n_records, 4)), y


def response(seed):
    X, _ = records(seed)
    return X, X @ [1.0, -2.0, 0.5, 1.0]


def private(estimator, public, epsilon=1.0, **options):
    sampler = SensitivitySampler(PublicDataOracle(*public), gamma=0.25, n_pairs=3, random_state=0)
    options = {"sensitivity": sampler, "random_state": 0} | options
    return PrivateEstimator(estimator, mechanism=LaplaceMechanism(epsilon), **options)


def with_gaps(X):
    X = X.copy()
    X[::7, 1] = np.nan
    return X


PAIRS = [
    (StandardizedPowerTransformer(), PowerTransformer()),
    (StandardizedPowerTransformer(method="box-cox"), PowerTransformer(method="box-cox")),
    (DiscriminantProjection(), LinearDiscriminantAnalysis()),
    (
        DiscriminantProjection(solver="eigen", shrinkage=0.2, n_components=1),
        LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.2, n_components=1),
    ),
]


CASES = [
    *itertools.product(PAIRS, ["array", "single", "frame"]),
    *((pair, "gaps") for pair in PAIRS if isinstance(pair[1], PowerTransformer)),
]


@pytest.mark.parametrize(
    ("mine", "theirs", "container"),
    [(*pair, container) for pair, container in CASES],
    ids=[f"{container}-{type(pair[0]).__name__}" for pair, container in CASES],
)
def test_substitute_computes_the_same(mine, theirs, container):
    X, y = records(0)
    new, _ = records(1)
    X, new = np.abs(X) + 0.1, np.abs(new) + 0.1
    convert = {
        "array": np.asarray,
        "single": np.float32,
        "frame": lambda values: pd.DataFrame(values, columns=list("abcd")),
        "gaps": with_gaps,
    }[container]
    mine, theirs = (clone(one).fit(convert(X), y) for one in (mine, theirs))
    precision = 1e-3 if container == "single" else 1e-9
    output, expected = (one.transform(convert(new)) for one in (mine, theirs))
    np.testing.assert_allclose(output, expected, rtol=precision, atol=precision)
    if container != "frame" and hasattr(mine, "lambdas_"):
        output, expected = (one.inverse_transform(theirs.transform(new)) for one in (mine, theirs))
        np.testing.assert_allclose(output, expected, rtol=precision, atol=precision)
    assert isinstance(mine, type(theirs))
    assert mine.get_params().items() >= theirs.get_params().items()
    if container == "frame":
        names = mine.get_feature_names_out()
        assert list(names) == list(theirs.get_feature_names_out())
        framed = mine.set_output(transform="pandas").transform(convert(new))
        assert framed.columns.tolist() == list(names)


LINES = [
    make_pipeline(KMeans(3, random_state=0, n_init=1), Ridge()),
    make_pipeline(FastICA(2, random_state=0, max_iter=1000, tol=1e-3), Ridge()),
    make_pipeline(make_union(FactorAnalysis(2), StandardScaler()), Ridge()),
]
LINES.append(BaggingRegressor(LINES[0], 3, random_state=0, max_features=2))
LINES.append(RegressorChain(LINES[0], order=[1, 0]))


@pytest.mark.parametrize("line", LINES, ids=lambda line: type(line).__name__)
def test_later_steps_are_fitted_to_aligned_components(line):
    """Ridge does not care for signs and order, so the prediction is that of the plain pipeline."""
    public, own, new = response(0), response(1), response(2)[0]
    if isinstance(line, RegressorChain):
        public, own = ((X, np.column_stack([y, y**2])) for X, y in (public, own))
    target = ParameterTarget(line, "auto", without_side_effects(line).fit(*public))
    restored = target.restore(target(*own, seed=0))
    ordered = reorder(Dataset(*own), seed=0).parts if order_matters(line) else own
    expected = clone(line).fit(*ordered).predict(new)
    np.testing.assert_allclose(restored.predict(new), expected, rtol=1e-6, atol=1e-6)


def test_landmarks_are_those_of_the_public_fit(leak_search):
    public, own = records(0), records(1)
    line = make_pipeline(Nystroem(n_components=6, random_state=0), LogisticRegression())
    model = private(line, public).fit(*own)
    landmarks = model.estimator_[0].components_
    assert all(any(np.array_equal(row, one) for one in public[0]) for row in landmarks)
    assert leak_search(model, own[0].ravel()) == []
    frozen = FrozenEstimator(Nystroem(n_components=6, random_state=0).fit(public[0]))
    public_fit = without_side_effects(line).fit(*public)
    target = ParameterTarget(line, "auto", public_fit)
    expected = make_pipeline(frozen, LogisticRegression()).fit(*own)
    restored = target.restore(target(*own, seed=0))
    np.testing.assert_allclose(restored.predict_proba(own[0]), expected.predict_proba(own[0]))


def test_members_with_other_landmarks_are_refused():
    line = make_pipeline(Nystroem(n_components=6), Ridge())
    with pytest.raises(ValueError, match="members of BaggingRegressor see different landmarks"):
        private(BaggingRegressor(line, 2), response(0)).fit(*response(1))


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(
    "options", [{}, {"decision_function_shape": "ovo"}, {"break_ties": True}], ids=str
)
def test_a_linear_kernel_needs_no_support_vectors(kind, container, options):
    is_regressor = kind in (SVR, NuSVR)
    X, y = response(0) if is_regressor else records(0)
    machine = kind(kernel="linear", **({} if is_regressor else options))
    for labels in (y,) if is_regressor else (y, np.array(["a", "b"])[y % 2]):
        substitute = without_side_effects(machine).fit(container(X), labels)
        plain = clone(machine).fit(container(X), labels)
        outputs = [each.predict(container(X)) for each in (substitute, plain)]
        if is_regressor:
            np.testing.assert_allclose(*outputs, atol=1e-8)
        else:
            np.testing.assert_array_equal(*outputs)
            margins = (each.decision_function(container(X)) for each in (substitute, plain))
            np.testing.assert_allclose(*margins, atol=1e-6)
        assert isinstance(substitute, kind)
        assert not {name for name in vars(substitute) if "support" in name or "dual" in name}


def test_the_bound_of_a_machine_covers_its_release():
    X, y = records(0)
    X, y = np.clip(X / 8 + 0.5, 0, 1), y % 2
    machine = SVC(kernel="linear", C=1e-4, tol=1e-6)
    options = {"sensitivity": svm_bound(machine, len(X), 4), "classes": [0, 1]}
    model = private(machine, (X,), 1e6, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, clone(machine).fit(X, y).coef_, atol=1e-3)
    assert model.guarantee_.gamma == 0
    assert model.predict(X).shape == y.shape
