"""Releases with seeds, compared with those that were stored in ``releases.json``.

Each case goes through public names from records to a release. What is stored is the promise, the
sensitivity and all released numbers with what the released model says of public records. One test
compares the promise exactly and the numbers to 1e-9, another one each bit: a change that fails only
the second one has moved last bits. Last bits also depend on the processor and on the versions of
scikit-learn, numpy and scipy, which the file names; of the number of threads nothing depends, since
each release keeps to one.

``python tests/golden/test_golden.py``, with the repository in PYTHONPATH, writes the file anew;
names of cases as arguments write these cases only.
"""

import functools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy
import sklearn
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.mixture import GaussianMixture
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    ExponentialMechanism,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    RandomDensityOracle,
    RandomTaskOracle,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.bounds import mean_bound
from skdp.functions import AdditiveTarget, BernsteinTarget

FILE = Path(__file__).with_name("releases.json")
N = 60  # private records, and as many public ones


def drawn(n_columns=4, seed=0):
    """Draw records near four places, their labels and a response, twice as many as are private."""
    rng = np.random.default_rng(seed)
    labels = np.arange(2 * N) % 3
    X = rng.normal(size=(2 * N, n_columns)) + 2.5 * np.eye(3, n_columns)[labels]
    return X, labels, X @ np.arange(1.0, n_columns + 1) + rng.normal(size=2 * N)


X, LABELS, RESPONSE = drawn()
TWO = (LABELS > 0).astype(int)
PAIR = np.column_stack([RESPONSE, X[:, 0] - RESPONSE])
COUNTS = np.floor(np.abs(X) * 2)
MIXED = pd.DataFrame(X[:, :2], columns=["age", "income"]).assign(
    city=pd.Categorical.from_codes(LABELS, categories=["Bern", "Oslo", "Rome"])
)
MIXED.loc[::9, "age"] = np.nan


def sampler(*public, **options):
    settings = {"gamma": 0.2, "random_state": 0} | options
    oracle = public[0] if callable(public[0]) else PublicDataOracle(*public)
    return SensitivitySampler(oracle, **settings)


def halves(*parts):
    """Return the first records of each part, which are public, and the others."""
    return tuple(zip(*((part[:N], part[N:]) for part in parts), strict=True))


def fitted(estimator, *parts, mechanism=None, sensitivity=None, **options):
    """Fit privately, and return what is compared."""
    public, private = halves(*parts)
    model = PrivateEstimator(
        estimator,
        mechanism=mechanism or LaplaceMechanism(1.0),
        sensitivity=sensitivity or sampler(*public),
        random_state=1,
        **options,
    )
    return of_model(model.fit(*private), private[0])


def of_model(model, records):
    """Return promise, sensitivity, and the released numbers with what the model says."""
    says = ["predict_proba", "decision_function", "predict", "transform", "score_samples"]
    said = [np.ravel(getattr(model, name)(records[:3])) for name in says if hasattr(model, name)]
    said = [each for each in said if each.dtype.kind in "if"]  # and no labels that are words
    numbers = np.concatenate([model.summary().values, *said])
    return model.guarantee_, model.sensitivity_.value, numbers


def released(function, *private, mechanism=None, sensitivity, at=None, **options):
    """Release the value of a function, and return what is compared."""
    outcome = release(
        function,
        *private,
        mechanism=mechanism or LaplaceMechanism(1.0),
        sensitivity=sensitivity,
        random_state=1,
        **options,
    )
    value = outcome.value if at is None else outcome.value.predict(at)
    return outcome.guarantee, outcome.sensitivity.value, np.ravel(value)


def weighted(n_samples, rng):
    """Yield public records with weights."""
    return *simulated(n_samples, rng), 1 + rng.integers(3, size=n_samples)


def simulated(n_samples, rng):
    """Draw records and responses of a linear rule."""
    records = rng.normal(size=(n_samples, 4))
    return records, records @ rng.normal(size=4) + rng.normal(size=n_samples)


def with_weights():
    model = PrivateEstimator(
        make_pipeline(StandardScaler(), Ridge()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler(weighted),
        random_state=1,
    )
    return of_model(model.fit(X[N:], RESPONSE[N:], 1 + np.arange(N) % 3), X[N:])


def reused():
    """Sample the sensitivity once, and use the estimate for another fit."""
    model = PrivateEstimator(
        Ridge(),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler(X[:N], RESPONSE[:N]),
        random_state=1,
    )
    estimate = model.plan(n_samples=N).sensitivity
    again = PrivateEstimator(
        Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=estimate, random_state=2
    )
    return of_model(again.fit(X[N:], RESPONSE[N:]), X[N:])


def searched():
    """Choose the parameter of a classifier privately."""
    draws = sampler(X[:N], TWO[:N])
    model = PrivateEstimator(
        RidgeClassifier(), mechanism=LaplaceMechanism(1.0), sensitivity=draws, random_state=2
    )
    search = PrivateSearchCV(model, {"estimator__alpha": [0.1, 10.0]}, n_runs=4)
    return of_model(search.fit(X[N:], TWO[N:]), X[N:])


def share_below(records, points):
    return np.mean(records[:, 0] < points, axis=1)


def squares(records):
    return np.column_stack([records, records**2])


def occupied(records):
    return [np.sum(records[:, 0] < place) for place in (-1, 0, 1, 2)]


scaled = functools.partial(make_pipeline, StandardScaler())
clipped = functools.partial(make_pipeline, ClipNorm(2.0))
known = functools.partial(fitted, sensitivity="known")
unit = np.random.default_rng(5).beta(2, 4, size=(2 * N, 1))
box = BernsteinTransformer(8, feature_range=(0, 1))
POINTS = np.array([[0.1], [0.5], [0.8]])
MIXED_PIPELINE = make_pipeline(
    ColumnTransformer(
        [
            ("number", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
            ("category", OneHotEncoder(categories=[["Bern", "Oslo", "Rome"]]), ["city"]),
        ]
    ),
    LogisticRegression(),
)

CASES = {
    # estimators, with a code
    "ridge": lambda: fitted(scaled(Ridge()), X, RESPONSE),
    "ridge of two responses": lambda: fitted(Ridge(), X, PAIR),
    "lasso": lambda: fitted(scaled(Lasso(0.1)), X, RESPONSE),
    "logistic regression": lambda: fitted(scaled(LogisticRegression()), X, LABELS),
    "linear SVM": lambda: fitted(scaled(LinearSVC(C=0.1)), X, TWO),
    "SGD": lambda: fitted(SGDClassifier(max_iter=50, tol=None, random_state=0), X, TWO),
    "Gaussian naive Bayes": lambda: fitted(GaussianNB(), X, LABELS),
    "multinomial naive Bayes": lambda: fitted(MultinomialNB(), COUNTS, LABELS),
    "discriminant": lambda: fitted(LinearDiscriminantAnalysis(), X, LABELS),
    "tree": lambda: fitted(DecisionTreeClassifier(max_leaf_nodes=4, random_state=0), X, LABELS),
    "forest": lambda: fitted(
        RandomForestClassifier(3, max_leaf_nodes=4, random_state=0), X, LABELS
    ),
    "k-means": lambda: fitted(KMeans(3, n_init=1, random_state=0), X),
    "PCA": lambda: fitted(PCA(2), X),
    "mixture": lambda: fitted(GaussianMixture(3, random_state=0), X),
    "neural network": lambda: fitted(MLPClassifier((3,), max_iter=40, random_state=0), X, TWO),
    "frozen scaler": lambda: fitted(
        make_pipeline(FrozenEstimator(StandardScaler().fit(X[:N])), LogisticRegression()), X, TWO
    ),
    "one model a response": lambda: fitted(MultiOutputRegressor(Ridge()), X, PAIR),
    "transformed response": lambda: fitted(
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()), X, RESPONSE
    ),
    "private search": searched,
    # forms of records
    "mixed frame": lambda: fitted(MIXED_PIPELINE, MIXED, TWO),
    "polars frame": lambda: fitted(scaled(Ridge()), pl.DataFrame(X, schema=list("abcd")), RESPONSE),
    "single precision": lambda: fitted(Ridge(), X.astype(np.float32), RESPONSE),
    "sparse": lambda: fitted(LogisticRegression(), sparse.csr_array(COUNTS), TWO),
    "labels that are words": lambda: fitted(GaussianNB(), X, np.array(["no", "yes"])[TWO]),
    "weights": with_weights,
    # oracles, calibrations, estimates
    "random task": lambda: fitted(
        scaled(LogisticRegression()),
        X,
        TWO,
        sensitivity=sampler(RandomTaskOracle(X[:N], classes=[0, 1])),
    ),
    "simulator": lambda: fitted(Ridge(), X, RESPONSE, sensitivity=sampler(simulated)),
    "dkw": lambda: fitted(
        Ridge(), X, RESPONSE, sensitivity=sampler(X[:N], RESPONSE[:N], calibration="dkw")
    ),
    "conditional": lambda: fitted(
        Ridge(),
        X,
        RESPONSE,
        sensitivity=sampler(X[:N], RESPONSE[:N], calibration="conditional", confidence=0.9),
    ),
    "reused estimate": reused,
    # mechanisms and codes
    "as published": lambda: fitted(
        scaled(Ridge()), X, RESPONSE, mechanism=LaplaceMechanism(1.0, code=None)
    ),
    "shift": lambda: fitted(Ridge(), X, RESPONSE, mechanism=LaplaceMechanism(1.0, shift=1.0)),
    "L2 Laplace": lambda: fitted(Ridge(), X, RESPONSE, mechanism=L2LaplaceMechanism(1.0)),
    "Gaussian": lambda: fitted(Ridge(), X, RESPONSE, mechanism=GaussianMechanism(1.0, 1e-4)),
    "without noise": lambda: fitted(Ridge(), X, RESPONSE, mechanism=LaplaceMechanism(np.inf)),
    # known sensitivities
    "known moments of classes": lambda: known(
        clipped(MomentClassifier()), X, LABELS, classes=[0, 1, 2]
    ),
    "known moments of a response": lambda: known(
        clipped(MomentRegressor(y_range=(-10, 30))), X, RESPONSE
    ),
    "known naive Bayes": lambda: known(
        make_pipeline(ClipBox(-2, 4), GaussianNB()), X, LABELS, classes=[0, 1, 2]
    ),
    "known scaler": lambda: known(
        clipped(StandardScaler()), X, mechanism=GaussianMechanism(1.0, 1e-4)
    ),
    "known with a prior": lambda: known(
        clipped(MomentClassifier()), X, TWO, classes=[0, 1], prior=PublicDataOracle(X[:N], TWO[:N])
    ),
    "known SVM": lambda: known(
        clipped(LinearSVC(loss="hinge", C=0.1, fit_intercept=False)), X, TWO, classes=[0, 1]
    ),
    # densities and functions on a box
    "known density": lambda: known(KernelDensity(bandwidth=0.1), unit, release=box),
    "sampled density": lambda: fitted(
        KernelDensity(bandwidth=0.1),
        unit,
        release=box,
        sensitivity=sampler(RandomDensityOracle([(0, 1)])),
    ),
    "decision function": lambda: fitted(
        SVC(C=1.0), unit, (unit[:, 0] > 0.3).astype(int), release=box
    ),
    "function on a box": lambda: released(
        BernsteinTarget(share_below, box), unit[N:], sensitivity=9 / N, at=POINTS
    ),
    # functions
    "median": lambda: released(
        np.median,
        unit[N:],
        sensitivity=sampler(UniformOracle([(0, 1)])),
        mechanism=LaplaceMechanism(2.0),
    ),
    "median with a code": lambda: released(
        np.median,
        unit[N:],
        sensitivity=sampler(UniformOracle([(0, 1)])),
        mechanism=LaplaceMechanism(2.0, code="learned"),
    ),
    "sums over records": lambda: released(
        AdditiveTarget(squares),
        X[N:],
        sensitivity=sampler(X[:N]),
        mechanism=LaplaceMechanism(1.0, code=None),
    ),
    "mean of known sensitivity": lambda: released(
        functools.partial(np.mean, axis=0), unit[N:], sensitivity=mean_bound(N, ranges=(0, 1))
    ),
    "mean of known L2 sensitivity": lambda: released(
        functools.partial(np.mean, axis=0),
        X[N:],
        sensitivity=mean_bound(N, ranges=[(-3, 5)] * 4),
        mechanism=L2LaplaceMechanism(1.0),
    ),
    "asserted sensitivity": lambda: released(
        len, X[N:], sensitivity=KnownSensitivity(1.0, "l1", n_samples=N)
    ),
    "choice": lambda: released(
        occupied,
        X[N:],
        mechanism=ExponentialMechanism(1.0),
        sensitivity=1.0,
        responses=[10, 20, 30, 40],
    ),
}


@functools.cache
def result(name):
    """Make a release in the form in which it is stored."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of small fits that need not converge
        promise, sensitivity, numbers = CASES[name]()
    fields = ("epsilon", "delta", "gamma", "confidence")
    return {
        "guarantee": {field: getattr(promise, field) for field in fields},
        "sensitivity": float(sensitivity),
        "numbers": np.asarray(numbers, dtype=float).tolist(),
    }


@functools.cache
def stored():
    return json.loads(FILE.read_text())["releases"]


def test_each_case_is_stored():
    assert list(CASES) == list(stored())


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_promise_and_numbers(name):
    now, then = result(name), stored()[name]
    assert now["guarantee"] == then["guarantee"]
    for what in ("sensitivity", "numbers"):
        np.testing.assert_allclose(now[what], then[what], rtol=1e-9, err_msg=what)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_last_bits(name):
    now, then = result(name), stored()[name]
    for what in ("sensitivity", "numbers"):
        assert np.array(now[what]).tobytes() == np.array(then[what]).tobytes(), what


def main(names):
    """Write the releases, of all cases or of those named."""
    unchanged = stored() if names else {}
    rows = {name: result(name) if name in names or not names else unchanged[name] for name in CASES}
    versions = {each.__name__: each.__version__ for each in (sklearn, np, scipy, pd, pl)}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    FILE.write_text(f'{{"versions": {json.dumps(versions)}, "releases": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    main(sys.argv[1:])
