"""Sensitivities known on paper: formulas, attained cases, adversarial search, refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from skdp import KnownSensitivity
from skdp.bounds import mean_bound, svm_bound


def test_a_mean_of_columns_of_other_units_is_pointed_out():
    mean_bound(100, ranges=[(0, 1), (0, 10)])
    with pytest.warns(UserWarning, match="'ranges' of mean_bound .* 10 times as wide"):
        mean_bound(100, ranges=[(18, 99), (0, 30_000)])


@settings(max_examples=60, deadline=None)
@given(
    n_samples=st.integers(1, 10**6),
    box=st.lists(
        st.tuples(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6)).map(lambda t: (t[0], t[0] + t[1])),
        min_size=1,
        max_size=6,
    ),
)
@pytest.mark.filterwarnings("ignore:.*'ranges' of mean_bound")  # they are drawn at random
def test_mean_is_attained_and_rounds_up(n_samples, box):
    bound = mean_bound(n_samples, len(box), ranges=box)
    rounding = (n_samples + 8) * 2.0**-52 * np.abs(box).max(axis=1).sum()
    exact = sum(Fraction(high) - Fraction(low) for low, high in box) / n_samples
    l1, l2 = (Fraction(bound.for_geometry(norm, n_samples)) for norm in ("l1", "l2"))
    assert exact <= l1 <= (exact + Fraction(rounding)) * (1 + Fraction(1, 10**13))
    square = sum((Fraction(high) - Fraction(low)) ** 2 for low, high in box) / n_samples**2
    assert square <= l2**2
    assert float(l2) <= (float(square) ** 0.5 + rounding) * (1 + 1e-13)


@pytest.mark.parametrize("n_samples", [2, 3, 7, 19])
@pytest.mark.parametrize("width", [1, 2, 3, 11, 10_000])
def test_the_bound_of_a_mean_holds_among_the_smallest_numbers(n_samples, width):
    """A quotient of such numbers is rounded by up to half of the smallest."""
    high = width * 5e-324
    bound = mean_bound(n_samples, ranges=(0, high))
    ones = np.tri(n_samples + 1, n_samples, -1) * high
    means = [float(np.mean(row)) for row in ones]
    assert max(np.diff(means)) <= bound.value


def change_of_svm(X, y, X_new, y_new, C):
    return change_of(SVC(kernel="linear", C=C, tol=1e-9), X, y, X_new, y_new)


def change_of(machine, X, y, X_new, y_new):
    fits = [clone(machine).fit(*data) for data in ((X, y), (X_new, y_new))]
    first, second = (np.append(fit.coef_, fit.intercept_) for fit in fits)
    return first - second


def is_within(change, bound):
    """In both norms."""
    norms = {1: bound.for_geometry("l1", bound.n_samples), 2: bound.in_norm(2).value}
    return all(np.linalg.norm(change, order) <= most for order, most in norms.items())


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
        change = change_of_svm(X, y, X_new, y_new, C)
        assert np.abs(change[:-1]).sum() <= 2 * C * d + 1e-6
        assert is_within(change, svm_bound(SVC(kernel="linear", C=C, tol=1e-9), n, d))
        jumps += np.abs(change).sum() > 6 * C * d
    assert jumps >= 2


def linear(**parameters):
    return SVC(kernel="linear", **{"tol": 0} | parameters)


def hinge(**parameters):
    return LinearSVC(loss="hinge", **parameters)


@pytest.mark.loop(
    ("machine", "solver_error", "l1", "l2"),
    [
        (linear(C=1e-3), None, 2.018, math.hypot(0.002 * math.sqrt(3), 2.012)),
        (linear(C=0.1), None, 2 + 6 * 0.1 * 3, math.hypot(0.2 * math.sqrt(3), 3.2)),
        (hinge(C=0.5), 0, 4, 2),
        (hinge(C=0.5, intercept_scaling=2), 0.1, 7.2, 2 * math.sqrt(7) + 0.2),
        (hinge(C=0.1, fit_intercept=False), 0, 0.6, 0.2 * math.sqrt(3)),
    ],
)
def test_bounds_of_machines_are_those_of_the_formulas(machine, solver_error, l1, l2):
    bound = svm_bound(machine, 50, 3, solver_error=solver_error)
    assert bound.for_geometry("l1", 50) == pytest.approx(l1)
    assert bound.for_geometry("l2", 50) == pytest.approx(l2)


class Tuned(SVC):
    pass


def test_the_two_is_attained():
    """With all records at one place the intercept is the majority label."""
    X = np.full((3, 2), 0.5)
    change = change_of_svm(X, [1, 1, -1], X, [1, -1, -1], C=1e-3)
    assert np.abs(change) == pytest.approx([0, 0, 2], abs=1e-6)
    assert svm_bound(SVC(kernel="linear", C=1e-3, tol=0), 3, 2).value == pytest.approx(2.012)


@pytest.mark.slow
def test_penalized_intercept_bound_survives_a_search():
    """A third of the bound is exceeded, so that the search is one; and the free machine breaks it,
    so that the two must not be confused."""
    beyond_third = confused = 0
    for X, y, X_new, y_new, C in adversarial_pairs(80, seed=1):
        machine = LinearSVC(loss="hinge", C=C, tol=1e-9, max_iter=10**6, random_state=0)
        bound = svm_bound(machine, *X.shape, solver_error=1e-5)
        change = change_of(machine, X, y, X_new, y_new)
        assert is_within(change, bound)
        beyond_third += np.abs(change).sum() > bound.value / 3
        confused += np.abs(change_of_svm(X, y, X_new, y_new, C)).sum() > bound.value
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
    bounds = [svm_bound(SVC(kernel="linear", C=C, tol=tol), n, d).value for tol in (0.1, 0)]
    granted = (bounds[0] - bounds[1]) / 2
    assert 1e-3 < error.item() < granted


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
        (lambda: mean_bound(0, ranges=(0, 1)), "'n_samples' parameter of mean_bound"),
        (lambda: mean_bound(10, 0, ranges=(0, 1)), "'n_features' parameter of mean_bound"),
        (lambda: mean_bound(10, 2, ranges=(1, 0)), r"low at most high.*Got \(1.0, 0.0\)"),
        (lambda: mean_bound(10, 2, ranges=(0, math.inf)), "finite"),
        (lambda: mean_bound(10, 2, ranges=[(0, 1)] * 3), r"shape \(2, 2\)"),
        (lambda: svm_bound(SVC(kernel="linear"), 0, 2), "'n_samples'"),
        (lambda: svm_bound(SVC(kernel="linear"), 9, 0), "'n_features'"),
        (lambda: svm_bound(SVC(kernel="linear", C=0), 9, 2), r"'C' .* in \(0, inf\)"),
        (lambda: svm_bound(SVC(kernel="linear", tol=-1), 9, 2), "'tol'"),
        (lambda: svm_bound(hinge(), 9, 2, solver_error=-1), "'solver_error'"),
        (lambda: svm_bound(hinge(), 9, 2), "'solver_error'"),
        (
            lambda: svm_bound(hinge(intercept_scaling=-1), 9, 2, solver_error=0),
            "'intercept_scaling'",
        ),
        *(
            (lambda machine=machine: svm_bound(machine, 50, 3, solver_error=0), message)
            for machine, message in (
                (LogisticRegression(), "knows SVC and LinearSVC"),
                (Tuned(kernel="linear"), "knows SVC and LinearSVC"),
                (SVC(), r"SVC\(kernel='linear'\). Got 'rbf'"),
                (linear(class_weight="balanced"), "class_weight=None"),
                (linear(max_iter=5), "max_iter=-1"),
                (LinearSVC(), r"LinearSVC\(loss='hinge'\)"),
                (hinge(penalty="l1"), "penalty='l2'"),
                (hinge(class_weight={0: 2}), "class_weight=None"),
            )
        ),
        *(
            (lambda ranges=ranges: KnownSensitivity(1.0, "l1", 5, ranges=ranges), "'ranges'")
            for ranges in ((0, 1), [(1, 0)], [(0, np.inf)], [(np.nan, 1)], [(0, 1, 2)])
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.loop(("norm", "l2_value"), [("l2", 0.01), ("l1", 0.2)])
def test_a_bound_in_l2_beside_a_larger_one_in_l1(norm, l2_value):
    with pytest.raises(ValueError, match="'l2_value' parameter"):
        KnownSensitivity(0.1, norm, 100, l2_value=l2_value)
