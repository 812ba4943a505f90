"""Leaf values: counts of the records in the leaves of public trees."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from skdp import (
    GaussianMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.core.identity import key_of
from skdp.estimators.catalog import CATALOG
from skdp.estimators.trees import LeafTarget

X, y = make_classification(
    n_samples=240, n_features=4, n_informative=3, n_redundant=0, n_classes=3, random_state=0
)
X_public, y_public, X, y = X[:120], y[:120], X[120:], y[120:]
every_tree = pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(max_depth=3, random_state=0),
        ExtraTreeClassifier(max_leaf_nodes=6, random_state=0),
        RandomForestClassifier(4, max_depth=3, random_state=0),
        ExtraTreesClassifier(4, max_depth=3, random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)


def trees_of(fitted):
    return getattr(fitted, "estimators_", [fitted])


def target_of(estimator, X=X_public, y=y_public, *weights):
    return LeafTarget(estimator, clone(estimator).fit(X, y, *weights))


@every_tree
def test_leaves_hold_the_shares_of_the_private_records(estimator):
    """An independent way to the same numbers: group the records by leaf."""
    target = target_of(estimator)
    restored, columns, total = target.restore(target(X, y, seed=0)), y[:, None] == np.unique(y), 0
    for tree in trees_of(target.public_fit):
        leaves = tree.apply(X)
        means = {leaf: columns[leaves == leaf].mean(axis=0) for leaf in np.unique(leaves)}
        total = total + np.array([means[leaf] for leaf in leaves])
    expected = total / len(trees_of(target.public_fit))
    np.testing.assert_allclose(restored.predict_proba(X), expected)
    np.testing.assert_array_equal(restored.predict(X), restored.predict_proba(X).argmax(axis=1))


@every_tree
def test_a_record_changes_no_more_than_its_bound(estimator):
    """L1: 2 a tree."""
    target, rng, norms = target_of(estimator), np.random.default_rng(0), []
    for _ in range(20):
        other, labels = X.copy(), y.copy()
        other[-1], labels[-1] = rng.normal(size=4) * 3, rng.integers(3)
        norms.append(np.abs(target(X, y, seed=0) - target(other, labels, seed=0)).sum())
    bound = 2 * len(trees_of(target.public_fit))
    assert 0.9 * bound < max(norms) <= bound


@every_tree
def test_every_number_is_noised_and_no_secret_is_kept(estimator, leak_search):
    oracle = PublicDataOracle(X_public, y_public)
    sampler = SensitivitySampler(oracle, gamma=0.25, n_pairs=3, random_state=0)
    mechanism = LaplaceMechanism(1.0, code=None)  # a decoder fills in what no public fit differs in
    model = PrivateEstimator(estimator, mechanism=mechanism, sensitivity=sampler)
    plan = model.fit(X, y).plan_
    exact = plan.target(X, y, seed=0)
    assert not np.isclose(plan.execute(X, y).numbers, exact, rtol=1e-9).any()
    assert leak_search(pickle.dumps(model), X.ravel()) == []
    assert leak_search(pickle.dumps((model, exact, X)), X.ravel())


@every_tree
@pytest.mark.parametrize("mechanism", [LaplaceMechanism(0.01), GaussianMechanism(0.01, 1e-5)])
def test_noisy_releases_stay_valid(estimator, mechanism):
    target = target_of(estimator)
    vector = target(X, y, seed=0)
    for seed in range(5):
        noisy = mechanism.release(vector, 4.0, np.random.default_rng(seed))
        probabilities = target.restore(noisy).predict_proba(X)
        assert probabilities.min() >= 0
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)


def test_empty_leaves_take_the_value_above_them():
    target = target_of(DecisionTreeClassifier(max_depth=2), [[0], [1], [2], [3]], [0, 1, 0, 1])
    tree = target.public_fit
    sums = np.zeros((tree.get_n_leaves(), 2))
    np.testing.assert_array_equal(target.restore(sums.ravel()).predict_proba([[0]]), [[0.5, 0.5]])
    sums[0] = [3.0, 1.0]
    sums[1] = [0.4, -7.0]  # less than half a record
    leaf, sibling = np.flatnonzero(tree.tree_.children_left < 0)[:2]
    value = target.restore(sums.ravel()).tree_.value[:, 0]
    np.testing.assert_allclose(value[leaf], [0.75, 0.25])
    np.testing.assert_allclose(value[sibling], [3.4 / 4.4, 1 / 4.4])  # as the root has


DEPTH = {"max_depth": 3, "random_state": 0}


@pytest.mark.loop(
    ("tree", "data"),
    [
        (DecisionTreeClassifier(**DEPTH), (X, y)),
        (RandomForestClassifier(4, bootstrap=False, **DEPTH), (X, y)),
        (DecisionTreeClassifier(**DEPTH), (X, y, np.random.default_rng(0).uniform(0, 2, size=120))),
        (DecisionTreeClassifier(**DEPTH), (sparse.csr_array(X), y)),
        (DecisionTreeClassifier(**DEPTH), (np.where(X > 2, np.nan, X), np.array(list("abc"))[y])),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier(**DEPTH)), (X, y)),
        (make_pipeline(make_pipeline(StandardScaler(), ExtraTreeClassifier(**DEPTH))), (X, y)),
    ],
)
def test_leaves_refilled_with_the_records_that_grew_them_are_those_of_the_fit(tree, data):
    target = target_of(tree, *data)
    restored = target.restore(target(*data, seed=0))
    found, expected = (each.predict_proba(data[0]) for each in (restored, target.public_fit))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("kind", list(CATALOG.where(lambda entry: entry.tree)))
@pytest.mark.parametrize("imputed", [True, False])
def test_missing_values_are_routed_by_the_public_tree(kind, imputed):
    """By an imputer of the public fit, or by the trees; in private fits and on all pairs."""
    gaps, public_gaps = (np.where(X > 1.5, np.nan, X) for X in (X, X_public))
    tree = kind(**DEPTH)
    if "n_estimators" in tree.get_params():
        tree.set_params(n_estimators=4)
    oracle = PublicDataOracle(public_gaps, y_public)
    model = PrivateEstimator(
        make_pipeline(SimpleImputer(), tree) if imputed else tree,
        mechanism=LaplaceMechanism(1e9, code=None),
        sensitivity=SensitivitySampler(oracle, gamma=0.25, n_pairs=3, random_state=0),
        random_state=0,
    ).fit(gaps, y)
    assert model.sensitivity_.failures == {}
    target = model.plan_.target
    exact = target.restore(target(gaps, y, seed=0))
    np.testing.assert_allclose(model.predict_proba(gaps), exact.predict_proba(gaps), atol=1e-3)


def test_steps_before_the_tree_are_those_of_the_public_fit():
    target = target_of(make_pipeline(StandardScaler(), DecisionTreeClassifier(**DEPTH)))
    restored = target.restore(target(X, y, seed=0))
    np.testing.assert_array_equal(restored[0].mean_, target.public_fit[0].mean_)


def test_labels_of_several_outputs_are_refused():
    with pytest.raises(ValueError, match="Release each output by itself"):
        target_of(DecisionTreeClassifier(), X, np.column_stack([y, y]))


def test_an_estimate_serves_only_the_trees_it_was_made_for():
    """They may differ in their records, or only in where gaps go."""
    tree, gaps = DecisionTreeClassifier(max_depth=1, random_state=0), [[0.0], [1], [np.nan]]
    data = [(X, y), (X_public, y_public), (gaps, [0, 1, 0]), (gaps, [0, 1, 1]), (X, y)]
    targets = [target_of(tree, *each) for each in data]
    thresholds = [each.public_fit.tree_.threshold for each in targets]
    np.testing.assert_array_equal(*thresholds[2:4])
    keys = [key_of(each) for each in targets]
    assert len(set(keys)) == 4
    assert keys[0] == keys[-1]
