"""Every estimator of scikit-learn is decided about, and what is supported holds what it says."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.utils import all_estimators

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    release,
)
from skdp.audit import find_leaks
from skdp.core.dataset import Dataset
from skdp.estimators.catalog import CATALOG, is_stateless, refused_classes
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.parameters import ParameterTarget
from tests.estimator_cases import (
    COMPOSED,
    N_RECORDS,
    OWN,
    QUIET,
    SUPPORTED,
    VARIED,
    assert_same_up_to_order,
    evaluate,
    missing,
    outputs,
)

pytestmark = QUIET

# Outputs that need more than is released: they raise AttributeError rather than mislead.
UNSERVED = {
    "IncrementalPCA": {"score_samples"},
    "LinearDiscriminantAnalysis": {"transform"},
    "PCA": {"score_samples"},
    "SimpleImputer": {"inverse_transform"},  # undoes indicators, which are refused
}
# Of several labels, each with a probability of its own.
MULTILABEL = {"OneVsRestClassifier"}
CONFIGURED = [
    *SUPPORTED,
    *COMPOSED,
    *(pytest.param(case, marks=pytest.mark.slow) for case in VARIED),
]


def name_of(case):
    return case.name + "".join(f"-{value}" for value in case.parameters.values())


for_every_configuration = pytest.mark.parametrize("case", CONFIGURED, ids=name_of)


def decisions(entry):
    """Return the ways in which the class of an entry is released, or refused."""
    ways = {
        "attributes": entry.attributes is not None,
        "members": entry.members is not None,
        "leaves": entry.tree,
        "refused": isinstance(entry.refuse, str),
        "nothing": entry.learns_nothing,
    }
    return [way for way, is_taken in ways.items() if is_taken]


# Searches, which are there when an experimental module has been imported.
EXPERIMENTAL = {"HalvingGridSearchCV", "HalvingRandomSearchCV"}


def test_every_estimator_of_scikit_learn_is_decided_about():
    """A class that a new scikit-learn brings fails here until somebody decides."""
    undecided = []
    for name, kind in all_estimators():
        if name in EXPERIMENTAL:
            continue
        if kind not in CATALOG and not is_stateless(stateless_example(kind)):
            undecided.append(name)
    assert undecided == []
    assert len(OWN) >= 70


def test_every_entry_is_one_decision():
    """What is released in one way is not released in another, and not refused."""
    assert {kind for kind, entry in CATALOG.items() if len(decisions(entry)) != 1} == set()


def stateless_example(kind):
    return kind(np.eye(2)) if kind.__name__ == "SparseCoder" else kind()


@pytest.mark.loop("reason", sorted({entry.refuse for entry in refused_classes().values()}))
def test_a_refusal_says_what_is_possible(reason):
    ways = (" use ", "choose ", "fit its", "can be used", "release its function")
    assert any(way in f" {reason.lower()}" for way in ways)
    assert not reason.endswith(".")


@for_every_configuration
def test_a_release_computes_what_the_private_fit_does_and_noise_breaks_nothing(case):
    """At epsilon = .01 the noise is far larger than the values."""
    target, private = case.target()
    vector, unserved = target(*private, seed=0), UNSERVED.get(case.name, ())
    assert_computes_the_same(case, target.restore(vector), private)
    mechanism = LaplaceMechanism(epsilon=0.01)
    size = 0.02 if case.name == "PowerTransformer" else 0.2  # whose exponents may overflow
    for seed in range(2):
        restored = target.restore(mechanism.release(vector, size, np.random.default_rng(seed)))
        for name, output in outputs(restored, unserved, private[0]).items():
            assert output.dtype.kind not in "fc" or np.isfinite(output).all(), name
            if name == "predict_proba":
                assert output.min() >= 0
                if case.name not in MULTILABEL:
                    np.testing.assert_allclose(output.sum(axis=-1), 1)
        assert_in_range(restored)


def test_every_composition_is_tested():
    tested = {type(case.make()) for case in COMPOSED}
    for case in COMPOSED:
        tested.update(map(type, case.make().get_params().values()))
    assert tested >= CATALOG.where(lambda entry: entry.members is not None).keys()


def assert_computes_the_same(case, restored, private):
    estimator = case.make()
    ordered = reorder(Dataset(*private), seed=0).parts if order_matters(estimator) else private
    fitted = clone(estimator).fit(*ordered)
    unserved = UNSERVED.get(case.name, ())
    found, expected = (outputs(model, unserved, private[0]) for model in (restored, fitted))
    assert expected
    for name, output in expected.items():
        if CATALOG[case.kind].align is None or name == "inverse_transform":
            np.testing.assert_allclose(found[name], output, rtol=1e-6, atol=1e-6, err_msg=name)
        else:
            assert_same_up_to_order(found[name], output)
    for name in unserved:
        with pytest.raises((AttributeError, NotImplementedError, ValueError)):
            evaluate(restored, name, private[0])


POSITIVE = ("var_", "scale_", "explained_variance_", "max_abs_")


def assert_in_range(restored):
    """Variances are positive, covariances positive definite, weights sum to one, knots sorted."""
    attributes = vars(restored)
    for name in POSITIVE:
        if attributes.get(name) is not None:
            assert not np.any(np.asarray(attributes[name]) <= 0), name
    for name in ("weights_", "class_prior_", "priors_"):
        if name in attributes:
            np.testing.assert_allclose(np.sum(attributes[name]), 1)
            assert np.all(attributes[name] >= 0)
    for name in {"covariance_", "precision_"} & attributes.keys():
        if attributes[name] is None:
            continue
        for matrix in np.reshape(attributes[name], (-1, *np.shape(attributes[name])[-2:])):
            np.testing.assert_allclose(matrix, matrix.T)
            assert np.linalg.eigvalsh(matrix).min() > 0
    if isinstance(restored, PCA | IncrementalPCA | TruncatedSVD):
        products = restored.components_ @ restored.components_.T
        np.testing.assert_allclose(products, np.eye(len(products)), atol=1e-6)


SLOW = {  # they iterate, for each pair
    *("MinCovDet", "LogisticRegressionCV", "PowerTransformer")
}


# Their public fit needs records such as theirs; that of the others is made without any.
NEEDS_RECORDS = {*("CategoricalNB", "OneHotEncoder", "OrdinalEncoder", "TfidfTransformer")}


def release_privately(case):
    """Fit privately at epsilon = 1, for a number where that will do.

    What a sampler leaves behind is searched in test_leaks.py, and here with as few pairs as can be.
    """
    public, private = case.datasets()
    options = {"sensitivity": 0.1}
    if case.name in NEEDS_RECORDS:
        oracle = PublicDataOracle(*public)
        sampler = SensitivitySampler(oracle, gamma=0.25, n_pairs=3, random_state=0)
        options = {"sensitivity": sampler}
    elif len(private) > 1 and private[1].dtype.kind == "i":
        options["classes"] = np.unique(private[1])
    mechanism = LaplaceMechanism(1.0, code=None)
    model = PrivateEstimator(case.make(), mechanism=mechanism, random_state=0, **options)
    return model.fit(*private)


def release_incomplete(case):
    """The same for records with missing values, which an oracle does not yield."""
    target, private = case.target()
    sensitivity = KnownSensitivity(0.1, "l1", N_RECORDS)
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sensitivity}
    return release(target, *private, random_state=0, **options).value


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (case.name in SLOW)) for case in SUPPORTED],
    ids=name_of,
)
def test_released_object_holds_no_secret(case):
    public, private = case.datasets()
    model = (release_incomplete if case.generate is missing else release_privately)(case)
    exact_fit = clone(case.make()).fit(*private)
    public_fit = without_side_effects(case.make()).fit(*public)
    vector = ParameterTarget(case.make(), "auto", public_fit)(*private, seed=0)

    def found_in(thing, known=None):  # without the public fit's own: as many entries as records
        leaks = find_leaks(thing, *private[:2], parameters=(exact_fit, vector), public=known)
        return [leak for leak in leaks if leak.kind != "one per record"]

    assert found_in(exact_fit)
    known = [public, public_fit]
    leaks = found_in(model, known)
    if leaks:  # what a plan holds that never saw the private records is public
        leaks = found_in(model, [*known, model.plan(len(private[0]), like=public)])
    assert leaks == []
    released = getattr(model, "estimator_", model)
    target = ParameterTarget(case.make(), "auto", released)
    equal = target.flatten(released) == target(*private, seed=0)
    assert not np.any(equal & (target.flatten(released) != 0))  # zero is where some repairs end
