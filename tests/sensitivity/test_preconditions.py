"""What a bound on paper supposes is checked, made true, or said; never taken on trust."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skdp import (
    BernsteinTransformer,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    plan_release,
    release,
)
from skdp.bounds import mean_bound, svm_bound
from skdp.sensitivity.preconditions import clip

N = 40
X = np.random.default_rng(0).uniform(size=(N, 2))
y = (X[:, 0] > 0.5).astype(int)
BOX = ((0.0, 1.0), (-2.0, 3.0))
NOISELESS = LaplaceMechanism(np.inf)
MACHINE = LinearSVC(loss="hinge", C=0.01, tol=1e-10, max_iter=10**5, random_state=0)
BOUND = svm_bound(MACHINE, N, 2, solver_error=1e-6)
NO_INTERCEPT = svm_bound(LinearSVC(loss="hinge", fit_intercept=False), N, 2, solver_error=0)


def column_means(X):
    return np.asarray(X).mean(axis=0)


def never(*dataset):
    raise AssertionError("private records were looked at")


# Wild numbers: out of the box on both sides, missing, infinite.
WILD = np.array([[7.0, -9.0], [0.5, np.nan], [-np.inf, 2.5], [np.nan, np.inf]])
TAMED = np.array([[1.0, -2.0], [0.5, 0.0], [0.0, 2.5], [0.0, 3.0]])
CONTAINERS = {
    "array": np.array,
    "float32": lambda X: np.array(X, dtype=np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=["a", "b"], index=[5, 3, 3, 9]),
    "unnamed": pd.DataFrame,
    "nullable": lambda X: pd.DataFrame(X).astype("Float64"),
    "polars": lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
    "nulls": lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}).fill_nan(None),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "stored twice": lambda X: sparse.csr_array(
        (np.repeat(X, 2) / 2, np.repeat([0, 1] * 4, 2), np.arange(0, 17, 4)), shape=(4, 2)
    ),
}


@pytest.mark.loop("dtype", ["int64", "uint8", "bool", "float16"])
@pytest.mark.loop("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_numbers_of_every_kind_become_doubles(dtype, container):
    if dtype != "float16" or container is np.asarray:
        numbers = container(np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype))
        clipped = clip(numbers, ((0, 0.5), (0, 1)))
        dense = clipped.toarray() if sparse.issparse(clipped) else np.asarray(clipped)
        np.testing.assert_array_equal(dense, [[0, 1], [0.5, 0], [0.5, 1]])


@pytest.mark.loop("container", CONTAINERS)
def test_every_container_is_clipped_alike(container):
    wild = CONTAINERS[container](WILD)
    clipped = clip(wild, BOX)
    assert type(clipped) is type(wild)
    dense = clipped.toarray() if sparse.issparse(clipped) else np.asarray(clipped)
    np.testing.assert_array_equal(dense, TAMED)
    assert dense.dtype == np.float64
    for name in ("columns", "format"):
        assert list(getattr(clipped, name, ())) == list(getattr(wild, name, ()))
    again = clip(clipped, BOX)
    np.testing.assert_array_equal(again.toarray() if sparse.issparse(again) else again, TAMED)


@pytest.mark.parametrize(
    "column",
    [
        np.array([-1.0, 0.5, np.nan, 2.0]),
        pd.Series([-1.0, 0.5, np.nan, 2.0], name="a", index=list("wxyz")),
        pl.Series("a", [-1.0, 0.5, None, 2.0]),
    ],
    ids=lambda column: type(column).__module__.split(".")[0],
)
def test_single_values_are_clipped(column):
    clipped = clip(column, ((0.25, 1.0),))
    assert type(clipped) is type(column)
    assert getattr(clipped, "name", None) == getattr(column, "name", None)
    assert list(clipped) == [0.25, 0.5, 0.25, 1.0]
    bound = mean_bound(4, ranges=(0.25, 1))
    released = release(column_means, column, mechanism=NOISELESS, sensitivity=bound)
    assert released.value == 0.5


wide = st.floats(width=64, allow_nan=True, allow_infinity=True)


@given(records=arrays(np.float64, (6, 2), elements=wide))
def test_clipping_is_a_map_of_single_records_into_the_box(records):
    clipped = clip(records, BOX)
    assert ((clipped >= [0, -2]) & (clipped <= [1, 3])).all()
    each = np.vstack([clip(record[None], BOX) for record in records])
    np.testing.assert_array_equal(clipped, each)
    inside = clipped.copy()
    np.testing.assert_array_equal(clip(inside, BOX), inside)


def test_a_mean_is_that_of_clipped_records():
    """A bound for records in [0, 1] was accepted with records in [0, 1000]."""
    bound = mean_bound(N, 2, ranges=(0, 1))
    mechanism = LaplaceMechanism(np.inf, code=None)
    neighbor = np.vstack([1000 * X[:-1], [[-1e9, 1e9]]])
    values = [
        release(column_means, records, mechanism=mechanism, sensitivity=bound).value
        for records in (1000 * X, neighbor)
    ]
    np.testing.assert_array_equal(values[0], np.clip(1000 * X, 0, 1).mean(axis=0))
    assert np.linalg.norm(values[0] - values[1], ord=1) <= mean_bound(N, 2, ranges=(0, 1)).value


@pytest.mark.loop(
    ("records", "message"),
    [
        (X[:, :1], r"2 column\(s\), .* shape \(1,\)"),
        (X[:, 0], r"shape \(1,\)"),
        (np.ones((N, 3)), r"shape \(3,\). Declare the 'ranges'"),
        (np.ones((N, 2, 2)), r"shape \(2, 2\)"),
        (X.astype(str), "X must hold numbers only"),
        (X.astype(object), "X must hold numbers only"),
        (pd.DataFrame({"a": X[:, 0], "b": "x"}), "X must hold numbers only"),
        (pd.DataFrame({"a": X[:, 0], "b": pd.Categorical([1] * N)}), "numbers only"),
        (pl.DataFrame({"a": X[:, 0], "b": ["x"] * N}), "numbers only"),
        (sparse.csr_array(X), "has a range without 0"),
        ((X, y, X[:, 1]), r"for records without weights\. Got sample_weight"),
    ],
)
def test_records_that_cannot_be_clipped_are_refused_unseen(records, message):
    bound = mean_bound(N, 2, ranges=[(0, 1), (1, 2)])
    X, *rest = records if isinstance(records, tuple) else (records,)
    weights = {"sample_weight": rest.pop()} if rest else {}
    with pytest.raises(ValueError, match=message):
        release(never, X, *rest, mechanism=NOISELESS, sensitivity=bound, **weights)


# A machine that is not the one of the bound, with what the refusal says.
OTHERS = [
    (LinearSVC(loss="hinge", C=1000), {}, r"LinearSVC\(C<=0.01\). Got 1000"),
    (LinearSVC(loss="hinge", C=0.01, intercept_scaling=9), {}, "intercept_scaling<=1"),
    (LinearSVC(C=0.01), {}, "loss='hinge'"),
    (LinearSVC(loss="hinge", C=0.01, class_weight="balanced"), {}, "class_weight=None"),
    (LinearSVC(loss="hinge", C=0.01, multi_class="crammer_singer"), {}, "multi_class='ovr'"),
    (SVC(kernel="linear", C=0.01), {"release": ["intercept_"]}, "for LinearSVC itself. Got SVC"),
    (LogisticRegression(), {}, "for LinearSVC itself. Got LogisticRegression"),
    (make_pipeline(StandardScaler(), MACHINE), {}, "for LinearSVC itself. Got Pipeline"),
    (MACHINE, {"release": BernsteinTransformer(feature_range=(0, 1))}, "'release' parameter"),
    (MACHINE, {"release": ["coef_", "intercept_", "n_iter_"]}, "'release' parameter"),
    (MACHINE, {"classes": [0, 1, 2]}, "for 2 classes. Got 3"),
    (MACHINE, {"sensitivity": NO_INTERCEPT}, "fit_intercept=False"),
]


@pytest.mark.loop(("estimator", "options", "message"), OTHERS)
def test_a_bound_serves_only_the_machine_that_it_was_made_for(estimator, options, message):
    options = {"sensitivity": BOUND, "classes": [0, 1]} | options
    model = PrivateEstimator(estimator, mechanism=NOISELESS, **options)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "guarantee_")


@pytest.mark.loop(
    ("sensitivity", "said"),
    [
        (1e-9, "sensitivity 1e-09 asserted by the caller"),
        (np.float64(0.25), "sensitivity 0.25 asserted by the caller"),
        (
            mean_bound(N, 2, ranges=(-1, -0.5)),
            "records are clipped to [-1, -0.5]; missing numbers count as -0.5",
        ),
        (mean_bound(N, 2, ranges=BOX), "clipped to their ranges; missing numbers count as 0, cl"),
        (
            KnownSensitivity(0.1, "l1", N, gamma=0.1, preconditions="Exp(rate=2)", source="here"),
            "Exp(rate=2): sensitivity 0.1 known on paper",
        ),
        (
            svm_bound(SVC(kernel="linear", C=0.5), N, 2),
            "assuming that the target is coef_ and intercept_ of SVC(kernel='linear', "
            "class_weight=None, max_iter=-1, C<=0.5, tol<=0.001), 2 classes and both classes "
            "present",
        ),
        (
            KnownSensitivity(0.5, "l1", N, preconditions="nobody is taller than 3 m"),
            "sensitivity 0.5 asserted by the caller, assuming nobody is taller than 3 m",
        ),
    ],
)
def test_what_remains_assumed_is_said(sensitivity, said):
    plan = plan_release(
        column_means, n_samples=N, like=X, mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity
    )
    oracle = f"{plan.guarantee.oracle}: " if plan.guarantee.oracle else ""
    assert said in f"{oracle}{plan.guarantee.assumed}"


@pytest.mark.parametrize(
    ("estimator", "release"),
    [
        (MACHINE, "auto"),
        (MACHINE, ["coef_"]),
        (LinearSVC(loss="hinge", C=0.001), "auto"),
        (LinearSVC(loss="hinge", C=0.01, fit_intercept=False), "auto"),
        (LinearSVC(loss="hinge", C=0.01, dual=True, verbose=0), ("coef_", "intercept_")),
    ],
)
def test_a_bound_serves_smaller_parameters_too(estimator, release):
    model = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=BOUND,
        classes=[0, 1],
        release=release,
    ).fit(X, y)
    assert model.sensitivity_.value == BOUND.value
    said = "assuming both classes present, a solver within 1e-06 of the minimizer; records are"
    assert said in model.plan_.guarantee.assumed


def test_a_machine_sees_clipped_records():
    """Made for C=1e-4 and the unit cube, a bound was accepted with 50 times the records."""
    model = PrivateEstimator(MACHINE, mechanism=NOISELESS, sensitivity=BOUND, classes=[0, 1])
    model.fit(50 * X - 10, y)
    fitted = LinearSVC(**MACHINE.get_params()).fit(np.clip(50 * X - 10, 0, 1), y)
    np.testing.assert_allclose(model.estimator_.coef_, fitted.coef_, rtol=1e-6)
    target = model.sensitivity_.bounded(model.plan_.target)  # what an audit evaluates
    clipped = target(np.clip(50 * X, 0, 1), y, seed=0)
    np.testing.assert_array_equal(target(50 * X, y, seed=0), clipped)
