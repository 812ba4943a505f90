"""Machines with a linear kernel release coefficients, and keep no support vector."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, NuSVC

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler
from skdp.audit import find_leaks
from skdp.bounds import svm_bound

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=60)
X = np.array([[0.1, 0.3], [0.5, 0.1], [0.3, 0.5]])[Y] + RNG.random((60, 2)) / 2
NAMES, RESPONSE = np.array(["a", "b"])[Y % 2], X[:, 0] - Y
CONTAINERS = [np.asarray, lambda X: pd.DataFrame(X, columns=["age", "size"]), sparse.csr_array]
MACHINES = [(SVC(class_weight="balanced"), NAMES), (NuSVC(nu=0.2), Y), (SVR(), RESPONSE)]


def private(machine, y, epsilon, **options):
    options = {"sensitivity": 0.1, "classes": np.unique(y) if y is not RESPONSE else None} | options
    mechanism = LaplaceMechanism(epsilon, code=None)
    return PrivateEstimator(machine, mechanism=mechanism, random_state=0, **options)


@pytest.mark.parametrize(("machine", "y"), MACHINES)
@pytest.mark.parametrize("container", CONTAINERS)
def test_the_release_computes_what_the_machine_does_and_holds_no_secret(machine, y, container):
    machine, records = clone(machine).set_params(kernel="linear"), container(X)
    exact = clone(machine).fit(records, y)
    released = pickle.loads(pickle.dumps(private(machine, y, np.inf).fit(records, y).estimator_))
    assert isinstance(released, type(machine))
    np.testing.assert_allclose(released.intercept_, exact.intercept_, atol=1e-9)
    assert released.score(records, y) == pytest.approx(exact.score(records, y))
    method = "predict" if y is RESPONSE else "decision_function"
    found, expected = (getattr(each, method)(records) for each in (released, exact))
    np.testing.assert_allclose(found, expected, atol=1e-9)

    noisy = private(machine, y, 1.0).fit(records, y)
    secrets = np.concatenate([X.ravel(), released.coef_.ravel(), exact.intercept_])
    assert not [each for each in secrets if each.tobytes() in pickle.dumps(noisy.estimator_)]
    assert find_leaks(noisy, X, y, parameters=secrets) == []
    assert find_leaks(exact, X, y)


def test_a_pipeline_with_a_sampled_sensitivity():
    oracle = RandomTaskOracle(RNG.random((200, 2)), classes=[0, 1, 2])
    sampler = SensitivitySampler(oracle, gamma=0.25, n_pairs=4, random_state=0)
    line = make_pipeline(StandardScaler(), SVC(kernel="linear"))
    model = private(line, Y, 1e9, sensitivity=sampler).fit(X, Y)
    np.testing.assert_allclose(model.estimator_[1].coef_, line.fit(X, Y)[1].coef_, 1e-5)


@pytest.mark.parametrize(
    ("machine", "options", "message"),
    [
        (SVC(), {}, "training records that support it.*release='predictions'"),
        (SVC(kernel="linear", probability=True), {}, "without probabilities"),
        (SVC(), {"release": ["coef_"]}, "Got 'coef_'"),
        (SVC(kernel="linear"), {"release": ["dual_coef_"]}, "has: coef_, intercept_"),
        (SVC(kernel="linear"), {"sensitivity": "known"}, "pass skdp.bounds.svm_bound"),
    ],
)
def test_refused_before_private_records_are_read(machine, options, message):
    with pytest.raises(ValueError, match=message):
        private(machine, NAMES, 1.0, **options).fit(X, NAMES)


@pytest.mark.parametrize("release", ["auto", ["intercept_"]])
def test_the_bound_of_a_machine_covers_its_release(release):
    machine = SVC(kernel="linear", C=1e-2, tol=1e-6)
    options = {"sensitivity": svm_bound(machine, *X.shape), "release": release}
    model = private(machine, NAMES, 1e6, **options).fit(X, NAMES)
    np.testing.assert_allclose(model.intercept_, machine.fit(X, NAMES).intercept_, atol=1e-3)
    assert "both classes present" in " ".join(str(model.guarantee_).split())
