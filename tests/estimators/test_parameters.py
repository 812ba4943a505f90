"""Fitted attributes to a vector and back, and how much each number matters to the output."""

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC, LinearSVC

from skdp import register
from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.target import values_of
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import reorder
from skdp.estimators.parameters import ParameterTarget

TABLE, LABELS = make_classification(
    n_samples=120, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0
)
X, y, X_other, y_other = TABLE[:60], LABELS[:60], TABLE[60:], LABELS[60:]


def make_target(estimator, release="auto", y_public=y_other):
    return ParameterTarget(estimator, release, clone(estimator).fit(X_other, y_public))


def output(estimator, X):
    for method in ("decision_function", "predict", "transform"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X)
    raise AssertionError("no output")


LINEAR = [LinearRegression, LinearSVC, LogisticRegression, Ridge, SGDClassifier, StandardScaler]


def configurations():
    for kind in LINEAR:
        yield kind()
        if "fit_intercept" in kind().get_params():
            yield kind(fit_intercept=False)
    yield StandardScaler(with_mean=False)
    yield StandardScaler(with_std=False)
    yield SGDClassifier(average=True)
    yield make_pipeline(StandardScaler(), LinearSVC())
    yield make_pipeline(Normalizer(), "passthrough", StandardScaler(), None, LinearRegression())
    yield make_pipeline(make_pipeline(StandardScaler()), LogisticRegression())


# of each parameter, also those with which a fit does not converge
# a few steps are enough here
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", list(configurations()), ids=repr)
def test_every_released_number_matters(estimator):
    """The set of attributes is the smallest: changing any number changes the output."""
    target = make_target(estimator)
    vector = target(X, y, seed=0)
    expected = output(target.restore(vector), X)
    for i in range(len(vector)):
        changed = vector.copy()
        changed[i] += 0.5
        assert not np.array_equal(output(target.restore(changed), X), expected), i


def test_single_precision_is_kept_and_nowhere_infinite():
    public, private = X_other.astype(np.float32), X.astype(np.float32)
    target = ParameterTarget(Ridge(), "auto", Ridge().fit(public, y_other.astype(np.float32)))
    vector = target(private, y.astype(np.float32), seed=0)
    restored = target.restore(vector)
    assert restored.coef_.dtype == np.float32
    np.testing.assert_allclose(restored.coef_, vector[:-1], rtol=1e-6)
    far = target.restore(np.copysign(1e300, vector)).coef_
    np.testing.assert_array_equal(far, np.copysign(np.finfo(np.float32).max, vector[:-1]))


@pytest.mark.parametrize("name", ["coefs_", "classes_", "step__coef_", "n_iter"])
def test_names_of_no_float_attribute_are_refused(name):
    with pytest.raises(ValueError, match=r"fitted attributes.* has: coef_, intercept_\.$"):
        make_target(LogisticRegression(), [name])
    with pytest.raises(ValueError, match=r"Got 'coef_'. SVC has: .*intercept_"):  # it is computed
        make_target(SVC(kernel="linear"), ["coef_", "intercept_"])


def test_estimator_that_learns_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to release"):
        make_target(make_pipeline(Normalizer(), "passthrough"))


def test_other_classes_or_shapes_are_refused():
    target = make_target(LogisticRegression())
    with pytest.raises(ValueError, match="a class is missing"):
        target(X, y % 2, seed=0)
    with pytest.raises(ValueError, match="shape of a fitted attribute changed"):
        target(X[:, :4], y, seed=0)


def test_open_seeds_are_given_and_fixed_ones_kept():
    free = make_target(SGDClassifier(max_iter=5, tol=None))
    assert np.array_equal(free(X, y, seed=1), free(X, y, seed=1))
    assert not np.array_equal(free(X, y, seed=1), free(X, y, seed=2))
    fixed = SGDClassifier(max_iter=5, tol=None, random_state=3)
    expected = clone(fixed).fit(*reorder(Dataset(X, y), seed=1).parts)
    assert np.array_equal(make_target(fixed)(X, y, seed=1)[:5], expected.coef_[0])
    shared = make_target(SGDClassifier(max_iter=5, tol=None, random_state=np.random.RandomState(3)))
    assert np.array_equal(shared(X, y, seed=1), shared(X, y, seed=1))


def test_fits_write_no_cache_and_print_nothing(tmp_path, capfd):
    memory = joblib.Memory(tmp_path, verbose=0)
    pipeline = make_pipeline(
        StandardScaler(), SGDClassifier(verbose=1), memory=memory, verbose=True
    )
    quiet = without_side_effects(pipeline)
    assert pipeline.memory is memory
    assert (quiet.memory, quiet.verbose, quiet[-1].verbose) == (None, False, 0)
    ParameterTarget(pipeline, "auto", quiet.fit(X, y))(X, y, seed=0)
    assert not any(tmp_path.rglob("*.pkl"))
    assert capfd.readouterr().out == ""


COLD = [LogisticRegression(), SGDClassifier(), SGDClassifier(warm_start=True)]
COLD.append(make_pipeline(StandardScaler(), SGDClassifier()))


@pytest.mark.parametrize("estimator", COLD, ids=str)
def test_a_pair_is_two_cold_fits_with_one_seed(estimator):
    target, records = make_target(estimator), Dataset(X, y)
    values = values_of(target, neighboring_pair(records), seed=3)
    values_of(
        target, neighboring_pair(Dataset(X[::-1], y)), seed=4
    )  # of which nothing is remembered
    for value, dataset in zip(values, neighboring_pair(records), strict=True):
        np.testing.assert_array_equal(value, target(*dataset.parts, seed=3))
    assert not np.array_equal(*values)
    assert not hasattr(target.estimator, "classes_")


class Doubling(LinearSVC):
    """Changes its parameter in each fit."""

    def fit(self, X, y, sample_weight=None):
        self.class_weight[1] *= 2
        return super().fit(X, y, sample_weight)


register(Doubling, ["coef_", "intercept_"])


def test_parameters_that_a_fit_might_change_are_cloned():
    weights = {0: 1.0, 1: 2.0, 2: 1.0}
    target = make_target(Doubling(class_weight=weights))
    np.testing.assert_array_equal(target(X, y, seed=3), target(X, y, seed=3))
    assert weights == {0: 1.0, 1: 2.0, 2: 1.0}


# The output metric: finite differences against closed forms


def target_of_all(estimator, y=LABELS):
    return ParameterTarget(estimator, "auto", clone(estimator).fit(TABLE, y))


def second_moments(X):
    with_one = np.column_stack([X, np.ones(len(X))])
    return with_one.T @ with_one / len(X)


def test_each_class_has_a_block_of_its_own():
    metric = target_of_all(LogisticRegression()).output_metric(TABLE, LABELS)
    moments = second_moments(TABLE)
    expected = np.zeros((18, 18))
    expected[:15, :15] = np.kron(np.eye(3), moments[:5, :5])
    expected[:15, 15:] = np.kron(np.eye(3), moments[:5, 5:])
    expected[15:, :15] = expected[:15, 15:].T
    expected[15:, 15:] = np.eye(3)
    np.testing.assert_allclose(metric, expected, atol=1e-6)


def test_public_steps_before_the_model_are_applied():
    scaler = FrozenEstimator(StandardScaler().fit(TABLE))
    metric = target_of_all(make_pipeline(scaler, LinearSVC())).output_metric(TABLE)
    np.testing.assert_allclose(np.diag(metric), 1, atol=1e-6)


def test_transformed_records_count_as_output():
    """z = (x - mean) / sqrt(var): the squared slope in the mean is 1 / var."""
    target = target_of_all(StandardScaler())
    metric = target.output_metric(TABLE).matrix
    np.testing.assert_allclose(np.diag(metric)[:5], 1 / target.public_fit.var_, rtol=1e-4)


def test_directions_that_bend_are_believed_by_half():
    """A released scaler before a model: null directions of J'J matter for large changes."""
    target = target_of_all(make_pipeline(StandardScaler(), LinearSVC()))
    metric = target.output_metric(TABLE).matrix
    scale = np.sqrt(np.diag(metric))
    correlations = metric / np.outer(scale, scale)
    off_diagonal = correlations - np.eye(len(scale))
    assert 0.4 < np.abs(off_diagonal).max() < 0.5 + 1e-9
    assert np.linalg.eigvalsh(correlations)[0] > 0.5 - 1e-9
    fixed = FrozenEstimator(StandardScaler().fit(TABLE))
    straight = target_of_all(make_pipeline(fixed, LinearSVC())).output_metric(TABLE)
    assert np.linalg.matrix_rank(straight) == 18


def test_zero_parameters_are_moved_too():
    target = target_of_all(Ridge(), LABELS.astype(float))
    target.public_fit.coef_[2] = 0.0
    np.testing.assert_allclose(target.output_metric(TABLE), second_moments(TABLE), atol=1e-6)
    target.public_fit.coef_[:] = 0.0
    target.public_fit.intercept_ = np.float64(0.0)
    np.testing.assert_allclose(target.output_metric(TABLE), second_moments(TABLE), atol=1e-6)
