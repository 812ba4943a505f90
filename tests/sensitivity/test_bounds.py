"""Sensitivities known on paper: formulas, attained cases, adversarial search, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from skdp import (
    KnownSensitivity,
    exponential_mean,
    linear_svc_l1,
    linear_svm_l1,
    mean_l1,
    mean_l2,
    svm_l1,
)


def test_a_mean_of_columns_of_other_units_is_pointed_out():
    for bound in (mean_l1, mean_l2):
        bound(100, ranges=[(0, 1), (0, 10)])
        with pytest.warns(UserWarning, match=rf"'ranges' of {bound.__name__} .* 10 times as wide"):
            bound(100, ranges=[(18, 99), (0, 30_000)])


@settings(max_examples=60, deadline=None)
@given(
    n_samples=st.integers(1, 10**6),
    box=st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)).map(lambda t: (t[0], t[0] + t[1])),
        min_size=1,
        max_size=6,
    ),
)
@pytest.mark.filterwarnings("ignore:One of the 'ranges'")  # they are drawn at random
def test_mean_is_attained_and_rounds_up(n_samples, box):
    exact = sum(Fraction(high) - Fraction(low) for low, high in box) / n_samples
    bound = mean_l1(n_samples, len(box), ranges=box).value
    assert exact <= Fraction(bound) <= exact * (1 + Fraction(1, 10**13))
    square = sum((Fraction(high) - Fraction(low)) ** 2 for low, high in box) / n_samples**2
    bound = mean_l2(n_samples, len(box), ranges=box).value
    assert square <= Fraction(bound) ** 2 <= square * (1 + Fraction(1, 10**13))


def test_mean_of_the_unit_cube():
    assert mean_l1(500, 4, ranges=(0, 1)).value == pytest.approx(4 / 500, rel=1e-13)
    assert mean_l2(500, 4, ranges=(0, 1)).value == pytest.approx(2 / 500, rel=1e-13)
    corner, opposite = np.zeros(4), np.ones(4)
    assert np.abs(corner - opposite).sum() / 500 <= mean_l1(500, 4, ranges=(0, 1)).value


def test_exponential_mean():
    bound = exponential_mean(100, gamma=0.05, rate=2.0)
    assert bound.value == pytest.approx(math.log(20) / 200, rel=1e-13)
    assert bound.gamma == 0.05
    assert "Exp(rate=2)" in bound.preconditions
    # Exceedance of the bound, exact: Pr(|X - X'| > n Delta) of a Laplace variable.
    laplace = stats.laplace(scale=1 / 2.0)
    assert 2 * laplace.sf(100 * bound.value) <= 0.05
    assert 2 * laplace.sf(100 * bound.value * 0.999) > 0.05


def change_of_svm(X, y, X_new, y_new, C):
    fits = [SVC(kernel="linear", C=C, tol=1e-9).fit(*data) for data in ((X, y), (X_new, y_new))]
    w = fits[0].coef_ - fits[1].coef_
    b = fits[0].intercept_ - fits[1].intercept_
    return np.abs(w).sum(), np.abs(b).sum()


def adversarial_pairs(n_pairs, seed):
    """Small datasets on corners, edges and inside of the cube, any balance, any C."""
    rng = np.random.default_rng(seed)
    while n_pairs:
        n, d = int(rng.integers(3, 9)), int(rng.choice([1, 2, 4, 9]))
        X = rng.random((n + 1, d))
        if rng.random() < 0.5:
            X = X.round()
        y = np.where(rng.random(n + 1) < rng.choice([0.2, 0.5, 0.8]), 1, -1)
        X_new, y_new = X[[*range(n - 1), n]], y[[*range(n - 1), n]]
        X, y = X[:n], y[:n]
        if abs(y.sum()) < n and abs(y_new.sum()) < n:
            n_pairs -= 1
            yield X, y, X_new, y_new, float(10 ** rng.uniform(-2.5, 0.3))


@pytest.mark.slow
def test_free_intercept_bound_survives_a_search():
    """Both parts of the proof, the sum, and that without its 2 the bound is false."""
    jumps = 0
    for X, y, X_new, y_new, C in adversarial_pairs(50, seed=0):
        n, d = X.shape
        of_w, of_b = change_of_svm(X, y, X_new, y_new, C)
        assert of_w <= 2 * C * d + 1e-6
        assert of_w + of_b <= linear_svm_l1(n, d, C, tol=1e-9).value
        jumps += of_w + of_b > 6 * C * d
    assert jumps >= 2


def test_the_two_is_attained():
    """With all records at one place the intercept is the majority label."""
    X = np.full((3, 2), 0.5)
    of_w, of_b = change_of_svm(X, [1, 1, -1], X, [1, -1, -1], C=1e-3)
    assert (of_w, of_b) == pytest.approx((0, 2), abs=1e-6)
    assert linear_svm_l1(3, 2, 1e-3, tol=0).value == pytest.approx(2.012)


@pytest.mark.slow
def test_penalized_intercept_bound_survives_a_search():
    """A third of the bound is exceeded, so that the search is one; and the free machine breaks it,
    so that the two must not be confused."""
    beyond_third = confused = 0
    for X, y, X_new, y_new, C in adversarial_pairs(80, seed=1):
        machine = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=10**6, random_state=0)
        bound = svm_l1(machine, *X.shape, solver_error=1e-5).value
        w, b = machine.fit(X, y).coef_.copy(), machine.intercept_.copy()
        machine.fit(X_new, y_new)
        change = np.abs(w - machine.coef_).sum() + np.abs(b - machine.intercept_).sum()
        assert change <= bound
        beyond_third += change > bound / 3
        confused += sum(change_of_svm(X, y, X_new, y_new, C)) > bound
    assert beyond_third >= 5
    assert confused >= 5


def test_solver_tolerance_is_paid_for():
    """Two stopping points of the same problem differ by no more than the bound grants them."""
    rng = np.random.default_rng(0)
    n, d, C = 300, 8, 0.01
    y = rng.choice([-1, 1], n)
    X = np.clip(0.5 + 0.2 * y[:, None] + 0.2 * rng.normal(size=(n, d)), 0, 1)
    fine, coarse = (SVC(kernel="linear", C=C, tol=tol).fit(X, y) for tol in (1e-9, 0.1))
    error = np.abs(fine.coef_ - coarse.coef_).sum() + np.abs(fine.intercept_ - coarse.intercept_)
    granted = (linear_svm_l1(n, d, C, tol=0.1).value - linear_svm_l1(n, d, C, tol=0).value) / 2
    assert 1e-3 < error.item() < granted


def test_published_proposition():
    bound = linear_svm_l1(1000, 8, 3 / 1000, tol=0, proof="published").value
    assert bound == pytest.approx(2 + 2 * 3 * math.sqrt(8) + 4 * 3 * 8 / 1000)
    for n, d in ((1000, 8), (11, 100), (1000, 64)):
        published = linear_svm_l1(n, d, 0.1, proof="published").value
        assert linear_svm_l1(n, d, 0.1).value <= published
    with pytest.raises(ValueError, match="n_samples=9 and n_features=100"):
        linear_svm_l1(9, 100, 0.1, proof="published")
    with pytest.raises(ValueError, match="Got 'short'"):
        linear_svm_l1(100, 10, 0.1, proof="short")


def test_linear_svc():
    assert linear_svc_l1(10, 3, 0.5, solver_error=0).value == pytest.approx(4)
    scaled = linear_svc_l1(10, 3, 0.5, solver_error=0.1, intercept_scaling=2)
    assert scaled.value == pytest.approx(7.2)


def test_estimator_parameters_decide():
    free = SVC(kernel="linear", C=0.1, tol=1e-4)
    assert svm_l1(free, 50, 3) == linear_svm_l1(50, 3, 0.1, tol=1e-4)
    penalized = LinearSVC(loss="hinge", C=0.1, fit_intercept=False)
    assert svm_l1(penalized, 50, 3, solver_error=0).value == pytest.approx(0.6)


@pytest.mark.loop(
    ("estimator", "message"),
    [
        (SVC(), r"SVC\(kernel='linear'\). Got 'rbf'"),
        (SVC(kernel="linear", class_weight="balanced"), "class_weight=None"),
        (SVC(kernel="linear", max_iter=5), "max_iter=-1"),
        (LinearSVC(), r"LinearSVC\(loss='hinge'\)"),
        (LinearSVC(loss="hinge", penalty="l1"), "penalty='l2'"),
        (LinearSVC(loss="hinge", class_weight={0: 2}), "class_weight=None"),
    ],
)
def test_other_machines_are_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        svm_l1(estimator, 50, 3, solver_error=0)


def test_other_estimators_are_refused():
    class Tuned(SVC):
        pass

    for estimator in (LogisticRegression(), Tuned(kernel="linear")):
        with pytest.raises(TypeError, match="knows SVC and LinearSVC"):
            svm_l1(estimator, 50, 3)
    with pytest.raises(ValueError, match="'solver_error'"):
        svm_l1(LinearSVC(loss="hinge"), 50, 3)


def test_norms_and_number_of_records():
    bound = KnownSensitivity(0.5, "l2", 10)
    assert bound.for_geometry("l2", 10) == bound.for_geometry("sup", 10) == 0.5
    with pytest.raises(ValueError, match=r"neither larger norms .* mechanism needs 'l1'"):
        bound.for_geometry("l1", 10)
    with pytest.raises(ValueError, match=r"n_samples=10\. Got 11"):
        bound.for_geometry("l2", 11)
    with pytest.raises(TypeError):
        float(bound)


@pytest.mark.loop(
    ("call", "message"),
    [
        (lambda: KnownSensitivity(-1, "l1", 10), r"'value' .* in \[0, inf\). Got -1"),
        (lambda: KnownSensitivity(math.inf, "l1", 10), "Got inf"),
        (lambda: KnownSensitivity(math.nan, "l1", 10), "Got nan"),
        (lambda: KnownSensitivity("1", "l1", 10), "real number"),
        (lambda: KnownSensitivity(True, "l1", 10), "'value' .* Got True"),
        (lambda: KnownSensitivity(1, "l1", 10, gamma=np.array([0.5])), "'gamma' .* real number"),
        (lambda: KnownSensitivity(1, "l3", 10), "'geometry'"),
        (lambda: KnownSensitivity(1, "l1", 10, gamma=1), "'gamma' .* Got 1"),
        (lambda: KnownSensitivity(1, "l1", 0), "'n_samples'"),
        (lambda: mean_l1(0, ranges=(0, 1)), "'n_samples' parameter of mean_l1"),
        (lambda: mean_l2(10, 0, ranges=(0, 1)), "'n_features' parameter of mean_l2"),
        (lambda: mean_l1(10, 2, ranges=(1, 0)), r"low at most high.*Got \(1.0, 0.0\)"),
        (lambda: mean_l1(10, 2, ranges=(0, math.inf)), "finite"),
        (lambda: mean_l1(10, 2, ranges=[(0, 1)] * 3), r"shape \(2, 2\)"),
        (lambda: exponential_mean(10, 0, 1), "'gamma' .* Got 0"),
        (lambda: exponential_mean(10, 1.0, 1), "'gamma'"),
        (lambda: exponential_mean(10, 0.1, 0), r"'rate' .* in \(0, inf\)"),
        (lambda: exponential_mean(0, 0.1, 1), "'n_samples'"),
        (lambda: linear_svm_l1(0, 2, 1), "'n_samples'"),
        (lambda: linear_svm_l1(9, 0, 1), "'n_features'"),
        (lambda: linear_svm_l1(9, 2, 0), r"'C' .* in \(0, inf\)"),
        (lambda: linear_svm_l1(9, 2, 1, tol=-1), "'tol'"),
        (lambda: linear_svc_l1(0, 2, 1, solver_error=0), "'n_samples'"),
        (lambda: linear_svc_l1(9, 0, 1, solver_error=0), "'n_features'"),
        (lambda: linear_svc_l1(9, 2, math.inf, solver_error=0), "'C'"),
        (lambda: linear_svc_l1(9, 2, 1, solver_error=-1), "'solver_error'"),
        (lambda: linear_svc_l1(9, 2, 1, solver_error=0, intercept_scaling=-1), "'intercept_sc"),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
