"""Leaf values: sums over the records in the leaves of public trees."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from skdp import (
    GaussianMechanism,
    LaplaceMechanism,
    LeafTarget,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.core.identity import key_of
from skdp.estimators.catalog import CATALOG
from skdp.planning.checks import check_release

X, y = make_classification(
    n_samples=240, n_features=4, n_informative=3, n_redundant=0, n_classes=3, random_state=0
)
X_public, y_public, X, y = X[:120], y[:120], X[120:], y[120:]
RESPONSE = X @ [1.0, -1.0, 2.0, 0.0] + np.random.default_rng(0).normal(size=120)
PUBLIC_RESPONSE = X_public @ [1.0, -1.0, 2.0, 0.0]
RANGE = (-20.0, 20.0)

TREES = CATALOG.where(lambda entry: entry.tree)
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=3, random_state=0),
    ExtraTreeClassifier(max_leaf_nodes=6, random_state=0),
    RandomForestClassifier(4, max_depth=3, random_state=0),
    ExtraTreesClassifier(4, max_depth=3, random_state=0),
]
REGRESSORS = [
    DecisionTreeRegressor(max_depth=3, random_state=0),
    ExtraTreeRegressor(max_leaf_nodes=6, random_state=0),
    RandomForestRegressor(4, max_depth=3, random_state=0),
    ExtraTreesRegressor(4, max_depth=3, random_state=0),
]
every_tree = pytest.mark.parametrize(
    "estimator", CLASSIFIERS + REGRESSORS, ids=lambda e: type(e).__name__
)


def is_regressor(estimator):
    return estimator.__sklearn_tags__().estimator_type == "regressor"


def case(estimator):
    """Return the target, the public and the private responses."""
    if is_regressor(estimator):
        return LeafTarget(y_range=RANGE), PUBLIC_RESPONSE, RESPONSE
    return LeafTarget(), y_public, y


def trees_of(fitted):
    return getattr(fitted, "estimators_", [fitted])


def restored_from(estimator, X, y, release, X_public_fit=None, y_public_fit=None):
    """Release without noise: structure from the one dataset, leaves from the other."""
    public_fit = clone(estimator).fit(
        X if X_public_fit is None else X_public_fit, y if y_public_fit is None else y_public_fit
    )
    target = release.bind(estimator, public_fit)
    return target.restore(target(X, y, seed=0)), public_fit


@every_tree
def test_on_the_records_that_grew_it_a_tree_is_what_scikit_learn_fits(estimator):
    """Without bootstrap, leaves refilled with the same records are the leaves of the fit."""
    if "bootstrap" in estimator.get_params():
        estimator = clone(estimator).set_params(bootstrap=False)
    release, _, response = case(estimator)
    restored, public_fit = restored_from(estimator, X, response, release)
    for method in ("predict", "predict_proba"):
        if hasattr(public_fit, method):
            np.testing.assert_allclose(getattr(restored, method)(X), getattr(public_fit, method)(X))
    for tree, expected in zip(trees_of(restored), trees_of(public_fit), strict=True):
        np.testing.assert_allclose(tree.tree_.value, expected.tree_.value, atol=1e-12)


@every_tree
def test_leaves_hold_the_means_of_the_private_records(estimator):
    """An independent way to the same numbers: group the records by leaf."""
    release, public, private = case(estimator)
    restored, public_fit = restored_from(estimator, X, private, release, X_public, public)
    columns = private[:, None] if is_regressor(estimator) else private[:, None] == np.unique(y)
    total = 0
    for tree in trees_of(public_fit):
        leaves = tree.apply(X)
        means = {leaf: columns[leaves == leaf].mean(axis=0) for leaf in np.unique(leaves)}
        total = total + np.array([means[leaf] for leaf in leaves])
    expected = total / len(trees_of(public_fit))
    if is_regressor(estimator):
        np.testing.assert_allclose(restored.predict(X), expected[:, 0])
    else:
        np.testing.assert_allclose(restored.predict_proba(X), expected)
        np.testing.assert_array_equal(restored.predict(X), restored.predict_proba(X).argmax(axis=1))


@every_tree
def test_a_record_changes_no_more_than_its_bound(estimator):
    """L1: 2 a tree for counts, 4 with a sum of one output; each number in [-1, 1] of a record."""
    release, public, private = case(estimator)
    target = release.bind(estimator, clone(estimator).fit(X_public, public))
    rng = np.random.default_rng(0)
    n_trees = len(trees_of(target.public_fit))
    bound = (4 if is_regressor(estimator) else 2) * n_trees
    norms = []
    for _ in range(20):
        other, labels = X.copy(), private.copy()
        other[-1], labels[-1] = rng.normal(size=4) * 3, rng.choice(private) * 5 % 3
        norms.append(np.abs(target(X, private, seed=0) - target(other, labels, seed=0)).sum())
    assert 0 < max(norms) <= bound + 1e-12
    assert is_regressor(estimator) or max(norms) > 0.9 * bound


@every_tree
def test_every_number_is_noised_and_no_secret_is_kept(estimator, leak_search):
    release, public, private = case(estimator)
    oracle = PublicDataOracle(X_public, public)
    sampler = SensitivitySampler(oracle, gamma=0.25, n_pairs=3, random_state=0)
    mechanism = LaplaceMechanism(1.0, code=None)  # a decoder fills in what no public fit differs in
    model = PrivateEstimator(estimator, mechanism=mechanism, sensitivity=sampler, release=release)
    plan = model.fit(X, private).plan_
    exact = plan.target(X, private, seed=0)
    assert not np.isclose(plan.execute(X, private).numbers, exact, rtol=1e-9).any()
    secrets = X.ravel()
    if is_regressor(estimator):  # counts are small whole numbers, which are everywhere
        secrets = np.concatenate([secrets, RESPONSE, exact[exact % 1 != 0]])
    assert leak_search(pickle.dumps(model), secrets) == []
    assert leak_search(pickle.dumps((model, exact, X)), secrets)


@every_tree
@pytest.mark.parametrize("mechanism", [LaplaceMechanism(0.01), GaussianMechanism(0.01, 1e-5)])
def test_noisy_releases_stay_valid(estimator, mechanism):
    release, public, private = case(estimator)
    target = release.bind(estimator, clone(estimator).fit(X_public, public))
    vector = target(X, private, seed=0)
    for seed in range(5):
        noisy = mechanism.release(vector, 4.0, np.random.default_rng(seed))
        restored = target.restore(noisy)
        if is_regressor(estimator):
            prediction = restored.predict(X)
            assert prediction.min() >= RANGE[0]
            assert prediction.max() <= RANGE[1]
        else:
            probabilities = restored.predict_proba(X)
            assert probabilities.min() >= 0
            np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_empty_leaves_take_the_value_above_them():
    tree = DecisionTreeClassifier(max_depth=2).fit([[0], [1], [2], [3]], [0, 1, 0, 1])
    target = LeafTarget().bind(DecisionTreeClassifier(max_depth=2), tree)
    n_leaves = tree.get_n_leaves()
    sums = np.zeros((n_leaves, 2))
    np.testing.assert_array_equal(target.restore(sums.ravel()).predict_proba([[0]]), [[0.5, 0.5]])
    sums[0] = [3.0, 1.0]
    sums[1] = [0.4, -7.0]  # less than half a record
    leaf, sibling = np.flatnonzero(tree.tree_.children_left < 0)[:2]
    value = target.restore(sums.ravel()).tree_.value[:, 0]
    np.testing.assert_allclose(value[leaf], [0.75, 0.25])
    np.testing.assert_allclose(value[sibling], [3.4 / 4.4, 1 / 4.4])  # as the root has


def test_responses_are_clipped_and_means_stay_in_range():
    release = LeafTarget(y_range=(0, 1))
    tree = DecisionTreeRegressor(max_depth=1)
    restored, _ = restored_from(tree, X, RESPONSE * 100, release)
    assert restored.predict(X).min() >= 0
    assert restored.predict(X).max() <= 1
    np.testing.assert_allclose(
        restored.tree_.value[0], np.clip(RESPONSE * 100, 0, 1).mean(), rtol=1e-12
    )


WEIGHTS = np.random.default_rng(0).uniform(0, 2, size=120)
DEPTH = {"max_depth": 3, "random_state": 0}
TWO = np.column_stack([RESPONSE, -2 * RESPONSE])
REFILLED = [
    (DecisionTreeClassifier(**DEPTH, class_weight={0: 5.0, 2: 0.5}), None, (X, y)),
    (DecisionTreeClassifier(**DEPTH, class_weight="balanced"), None, (X, y)),
    (DecisionTreeClassifier(**DEPTH), None, (X, y, WEIGHTS)),
    (DecisionTreeRegressor(**DEPTH), RANGE, (X, RESPONSE, WEIGHTS)),
    (DecisionTreeClassifier(**DEPTH), None, (sparse.csr_array(X), y)),
    (DecisionTreeClassifier(**DEPTH), None, (np.where(X > 2, np.nan, X), y)),
    (DecisionTreeClassifier(**DEPTH), None, (X, np.column_stack([y, y % 2 + 5]))),
    (ExtraTreesRegressor(3, **DEPTH), [(-20, 20), (-50, 50)], (X, TWO)),
]


@pytest.mark.loop(("tree", "y_range", "data"), REFILLED)
def test_weights_containers_and_several_outputs(tree, y_range, data):
    """Leaves refilled with the records that grew the tree are the leaves of the fit."""
    weights = {"sample_weight": data[2]} if len(data) > 2 else {}
    public_fit = clone(tree).fit(*data[:2], **weights)
    target = LeafTarget(y_range).bind(tree, public_fit)
    restored = target.restore(target(*data, seed=0))
    np.testing.assert_allclose(restored.predict(data[0]), public_fit.predict(data[0]))
    if hasattr(restored, "predict_proba") and data[1].ndim == 1:
        found, expected = (each.predict_proba(data[0]) for each in (restored, public_fit))
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("kind", list(TREES))
@pytest.mark.parametrize("imputed", [True, False])
def test_missing_values_are_routed_by_the_public_tree(kind, imputed):
    """By an imputer of the public fit, or by the trees; in private fits and on all pairs."""
    gaps, public_gaps = (np.where(X > 1.5, np.nan, X) for X in (X, X_public))
    is_classifier = "Classifier" in kind.__name__
    size = (
        {} if kind.__name__.endswith(("TreeClassifier", "TreeRegressor")) else {"n_estimators": 2}
    )
    tree = kind(max_depth=3, random_state=0, **size)
    options = {} if is_classifier else {"release": LeafTarget(RANGE)}
    responses = (y_public, y) if is_classifier else (PUBLIC_RESPONSE, RESPONSE)
    model = PrivateEstimator(
        make_pipeline(SimpleImputer(), tree) if imputed else tree,
        mechanism=LaplaceMechanism(1e9, code=None),
        sensitivity=SensitivitySampler(
            PublicDataOracle(public_gaps, responses[0]), gamma=0.25, n_pairs=3, random_state=0
        ),
        random_state=0,
        **options,
    ).fit(gaps, responses[1])
    assert model.sensitivity_.failures == {}
    target = model.plan_.target
    exact = target.restore(target(gaps, responses[1], seed=0))
    method = "predict_proba" if is_classifier else "predict"
    values, expected = (getattr(each, method)(gaps) for each in (model, exact))
    np.testing.assert_allclose(values, expected, atol=1e-3)


def test_steps_before_the_tree_are_those_of_the_public_fit():
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=0))
    for estimator in (pipeline, make_pipeline(pipeline), make_pipeline(pipeline[-1])):
        restored, public_fit = restored_from(estimator, X, y, LeafTarget())
        np.testing.assert_allclose(restored.predict_proba(X), public_fit.predict_proba(X))
    restored, public_fit = restored_from(pipeline, X, y, LeafTarget(), X_public, y_public)
    np.testing.assert_array_equal(restored[0].mean_, public_fit[0].mean_)


MEDIANS = DecisionTreeRegressor(criterion="absolute_error")
ORDERED = DecisionTreeRegressor(monotonic_cst=[1, 0, 0, 0])


@pytest.mark.loop(
    ("estimator", "release", "message"),
    [
        (Ridge(), LeafTarget(), "LeafTarget releases DecisionTree.*Got Ridge"),
        (MEDIANS, LeafTarget((0, 1)), "hold medians"),
        (MEDIANS, "auto", "hold medians"),
        (ORDERED, LeafTarget((0, 1)), "does not keep the order"),
    ],
)
def test_what_is_no_sum_is_refused_before_any_fit(estimator, release, message):
    with pytest.raises(ValueError, match=message):
        check_release(estimator, release)


@pytest.mark.loop(
    ("tree", "labels", "y_range", "message"),
    [
        *(
            (DecisionTreeRegressor(), RESPONSE, each, "'y_range' parameter of LeafTarget must be")
            for each in (None, (1, 0), (0, np.inf), (0, 1, 2), [(0, 1), (0, 1)])
        ),
        (DecisionTreeClassifier(), y, (0, 1), "is for regressors"),
        (
            DecisionTreeClassifier(class_weight="balanced"),
            np.column_stack([y, y]),
            None,
            "'class_weight' parameter of DecisionTreeClassifier",
        ),
    ],
)
def test_ranges_and_weights_that_do_not_fit_are_refused(tree, labels, y_range, message):
    fitted = clone(tree).fit(X, labels)
    with pytest.raises(ValueError, match=message):
        LeafTarget(y_range).bind(tree, fitted)


def test_an_estimate_serves_only_the_trees_it_was_made_for():
    """They may differ in their records, or only in where gaps go."""
    tree, gaps = DecisionTreeClassifier(max_depth=1, random_state=0), [[0.0], [1], [np.nan]]
    data = [(X, y), (X_public, y_public), (gaps, [0, 1, 0]), (gaps, [0, 1, 1]), (X, y)]
    fitted = [clone(tree).fit(*each) for each in data]
    np.testing.assert_array_equal(fitted[2].tree_.threshold, fitted[3].tree_.threshold)
    keys = [key_of(LeafTarget().bind(tree, each)) for each in fitted]
    assert len(set(keys)) == 4
    assert keys[0] == keys[-1]
