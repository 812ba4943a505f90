"""Code that others put around estimators: it sees no private fit, or the fit is refused."""

import functools
import sys
import threading
from types import FunctionType

import lightgbm
import numpy as np
import pytest
import sklearn
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import all_estimators

from skdp import (
    ClipNorm,
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    SampleAndAggregate,
    SensitivitySampler,
    release,
)
from skdp.accounting import PrivacyAccountant

RNG = np.random.default_rng(0)
X, X_PUBLIC = RNG.normal(size=(200, 2)), RNG.normal(size=(100, 2))
Y, Y_PUBLIC = (np.where(records[:, 0] > 0, 1, 0) for records in (X, X_PUBLIC))
ORACLE = PublicDataOracle(X_PUBLIC, Y_PUBLIC)
SAMPLER = SensitivitySampler(ORACLE, gamma=0.4, n_pairs=4, random_state=0)
MODEL = make_pipeline(StandardScaler(), LogisticRegression())
CLIPPED = make_pipeline(ClipNorm(2.0), LogisticRegression(solver="liblinear"))


def private(estimator, sensitivity, **options):
    mechanism = LaplaceMechanism(epsilon=1.0)
    return PrivateEstimator(estimator, mechanism=mechanism, sensitivity=sensitivity, **options)


def coefficients(features, labels):
    return LogisticRegression().fit(features, labels).coef_


def released(function=coefficients, **options):
    mechanism = LaplaceMechanism(epsilon=1.0)
    return release(function, X, Y, mechanism=mechanism, sensitivity=9.0, **options)


def nested(features, labels):
    release(np.mean, features, mechanism=LaplaceMechanism(epsilon=1.0), sensitivity=9.0)
    return coefficients(features, labels)


BLOCKS = SampleAndAggregate(n_blocks=4, random_state=0)
WAYS = {
    "sampled": lambda: private(MODEL, SAMPLER).fit(X, Y),
    "predictions": lambda: private(MODEL, SAMPLER, release="predictions").fit(X, Y),
    "known": lambda: private(CLIPPED, "known", classes=[0, 1]).fit(X, Y),
    "aggregate": lambda: private(MODEL, BLOCKS, prior=ORACLE).fit(X, Y),
    "function": released,
    "nested": lambda: released(FunctionTarget(nested, key="nested")),
    "search": lambda: PrivateSearchCV(
        private(MODEL, SAMPLER), {"estimator__logisticregression__C": [1.0]}, n_runs=2
    ).fit(X, Y),
}


@pytest.fixture
def n_logged(tmp_path, monkeypatch):
    """Switch mlflow's autologger on, and return how many fits it has stored."""
    for name in ("MLFLOW_ALLOW_FILE_STORE", "MLFLOW_DISABLE_TELEMETRY"):
        monkeypatch.setenv(name, "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("fits")
    mlflow.sklearn.autolog(silent=True, log_models=False)
    yield lambda: len(mlflow.search_runs(output_format="list"))
    mlflow.sklearn.autolog(disable=True)
    sys.modules["mlflow.utils.autologging_utils.safety"].revert_patches("sklearn")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # mlflow uses what is deprecated
def test_no_autologger_sees_a_fit(n_logged):
    """In whatever way; afterwards it is on again."""
    for name, run in WAYS.items():
        run()
        assert n_logged() == 0, name
    coefficients(X, Y)
    assert n_logged() == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_last_thread_switches_an_autologger_on(n_logged):
    """A fit that ends does not open one that another thread still makes."""
    started, ended = threading.Event(), threading.Event()

    def waiting(features, labels):
        if len(features) == len(X):  # the private ones
            started.set()
            assert ended.wait(60)
        return coefficients(features, labels)

    target = FunctionTarget(waiting, key="waiting")
    thread = threading.Thread(target=released, args=(target,))
    thread.start()
    assert started.wait(60)
    SAMPLER.sample(FunctionTarget(coefficients, key="coefficients"), 50, "l1")
    ended.set()
    thread.join()
    assert n_logged() == 0


def seeing(method, seen):
    """Wrap a method, as autologgers do."""

    @functools.wraps(method)
    def wrapped(self, *args, **options):
        seen.append(args)
        return method(self, *args, **options)

    return wrapped


@pytest.mark.parametrize("kind", [LogisticRegression, lightgbm.LGBMClassifier])
@pytest.mark.parametrize("name", ["fit", "predict"])
def test_a_replaced_method_is_refused_before_payment(kind, name, monkeypatch):
    """Also one of a class that is named nowhere: a function may use it, or an ensemble."""
    plan, seen = private(MODEL, SAMPLER).plan(200), []
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)
    monkeypatch.setattr(kind, name, seeing(getattr(kind, name), seen))
    with accountant.as_default():
        for run in (*WAYS.values(), lambda: plan.execute(X, Y)):
            with pytest.raises(RuntimeError, match=f"{name} was replaced by code of tests") as told:
                run()
    assert accountant.total().epsilon == 0
    assert not seen
    path = f"{kind.__module__}.{kind.__name__}.{name}"
    line = str(told.value).partition("or write ")[2].rstrip(".")
    assert line == f"{path} = {path}.__wrapped__"
    exec(line, {"sklearn": sklearn, "lightgbm": lightgbm})
    assert released(accountant=accountant).value.shape == (1, 2)


def test_a_method_without_a_way_back_is_refused(monkeypatch):
    monkeypatch.setattr(StandardScaler, "transform", lambda self, X: X)
    with pytest.raises(RuntimeError, match=r"Start Python without that code\.$"):
        released()


def test_foreign_code_inside_a_function_of_the_own_module_is_refused(monkeypatch):
    method = StandardScaler.transform
    own = FunctionType(method.__code__, method.__wrapped__.__globals__, closure=method.__closure__)
    monkeypatch.setattr(StandardScaler, "transform", own)
    assert released().value.shape == (1, 2)
    own.__wrapped__ = seeing(method, [])
    with pytest.raises(RuntimeError, match="transform was replaced by code of tests"):
        released()


class Own(LogisticRegression):
    """A class of the user, whose methods may be decorated by anything."""

    fit = seeing(LogisticRegression.fit, [])


def test_what_packages_and_users_define_is_not_refused():
    assert len(all_estimators()) > 150  # all are loaded
    assert issubclass(xgboost.XGBClassifier, xgboost.XGBModel)
    assert Own().fit(X, Y)
    assert released().value.shape == (1, 2)
