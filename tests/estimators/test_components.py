"""Public components: few columns, learned from public records alone, so many as a plan says."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

import skdp
from skdp import (
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    PrivateSearchCV,
    PublicComponents,
    RandomTaskOracle,
    SampleAndAggregate,
    SensitivitySampler,
)
from skdp.core.dataset import Dataset
from skdp.planning.checks import check_parameters
from skdp.planning.components import n_components, with_components

RNG = np.random.default_rng(0)
MIX = RNG.normal(size=(6, 6)) * np.geomspace(1, 100, 6)
PUBLIC = 50 + RNG.normal(size=(120, 6)) @ MIX
PRIVATE = 50 + RNG.normal(size=(200, 6)) @ MIX
LABELS = (PRIVATE[:, 0] > 50).astype(int)
FEW = {"gamma": 0.2, "n_pairs": 4, "random_state": 0}


def sampler(classes=(0, 1)):
    oracle = RandomTaskOracle(PUBLIC, classes=list(classes), least_share=0.8 / len(classes))
    return SensitivitySampler(oracle, **FEW)


def private(*steps, epsilon=1.0, mechanism=LaplaceMechanism, sensitivity=None, **options):
    return PrivateEstimator(
        make_pipeline(*steps) if len(steps) > 1 else steps[0],
        mechanism=mechanism(epsilon=epsilon, code=None),
        sensitivity=sensitivity or sampler(),
        **options,
    )


def learned_in(plan):
    return plan.target.estimator.named_steps["publiccomponents"].estimator


@pytest.mark.loop(
    ("n", "epsilon", "n_classes", "number"),
    [
        (284, 0.3, 2, 3),
        (22130, 1.0, 2, 40),  # 47 before the cap
        (4000, 1.0, 2, 20),
        (900, 3.0, 10, 7),
        (900, 0.1, 10, 2),  # one component does not order three classes
        (90, 0.1, 3, 2),
        (20, 0.1, 2, 1),
        (20, np.inf, 2, 40),
    ],
)
def test_rule(n, epsilon, n_classes, number):
    assert n_components(n, epsilon, n_classes) == number


def test_the_plan_sets_the_number_by_records_epsilon_and_classes():
    few, logistic = PublicComponents(PUBLIC), LogisticRegression(C=0.1)
    plan = private(few, logistic, epsilon=0.5).plan(200)  # sqrt(200 * 0.5 / 10)
    assert "components      3 of 6: sqrt(n epsilon / 10), for n = 200 and epsilon = 0.5" in str(
        plan
    )
    assert learned_in(plan).components_.shape == (3, 6)
    assert "coef_" in " ".join(plan.standard_errors)
    three = private(few, logistic, epsilon=0.5, sensitivity=sampler([0, 1, 2])).plan(200)
    assert "3 of 6: sqrt(n epsilon / 15)" in str(three)
    assert "all" not in str(plan)
    many = private(few, logistic, epsilon=20.0).plan(200)
    assert learned_in(many).components_.shape == (6, 6)
    given = private(PublicComponents(PUBLIC, 2), logistic).plan(200)
    assert "components      2 of 6: as given" in str(given)


def test_a_regression_counts_as_two_classes():
    oracle = RandomTaskOracle(PUBLIC, y_mean=0, y_scale=1)
    chosen = SensitivitySampler(oracle, **FEW)
    plan = private(PublicComponents(PUBLIC), Ridge(), epsilon=0.5, sensitivity=chosen).plan(200)
    assert "3 of 6: sqrt(n epsilon / 10)" in str(plan)


def test_components_are_those_of_standardized_public_records():
    made = PublicComponents(PUBLIC, 2).fit(PRIVATE)
    Z = (PUBLIC - PUBLIC.mean(axis=0)) / PUBLIC.std(axis=0)
    values, vectors = np.linalg.eigh(Z.T @ Z)
    leading = vectors[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(made.components_ @ leading), np.eye(2), atol=1e-9)
    scores = made.transform(PUBLIC)
    np.testing.assert_allclose((scores**2).sum(axis=0), values[::-1][:2])
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(made.transform(sparse.csr_array(PUBLIC)), scores, atol=1e-9)


@pytest.mark.loop("front", [StandardScaler(), MinMaxScaler(), FrozenEstimator(MinMaxScaler())])
def test_components_are_learned_behind_the_steps_in_front(front):
    """In the units in which private records come, whatever a step in front makes of them."""
    if isinstance(front, FrozenEstimator):
        front = FrozenEstimator(front.estimator.fit(PUBLIC[:50]))
    alone = learned_in(private(PublicComponents(PUBLIC, 2), LogisticRegression()).plan(200))
    plan = private(front, PublicComponents(PUBLIC, 2), LogisticRegression()).plan(200)
    behind, seen = learned_in(plan), make_pipeline(clone(front)).fit(PUBLIC).transform(PUBLIC)
    np.testing.assert_allclose(behind.components_, alone.components_, atol=1e-9)
    np.testing.assert_allclose(behind.mean_, seen.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(behind.transform(seen), alone.transform(PUBLIC), atol=1e-8)


def test_words_are_encoded_in_front():
    frame = pd.DataFrame(PUBLIC[:, :3], columns=list("abc"))
    frame["word"] = np.where(PUBLIC[:, 4] > 50, "left", "right")
    words = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]), remainder=StandardScaler()
    )
    oracle = RandomTaskOracle(frame, classes=[0, 1], least_share=0.4)
    chosen = SensitivitySampler(oracle, **FEW)
    model = private(words, PublicComponents(frame), LogisticRegression(C=0.1), sensitivity=chosen)
    assert "3 of 5: sqrt" in str(model.plan(100))
    with pytest.raises(
        ValueError, match=r"'X_public' parameter .*to float: .* Encode words and fill"
    ):
        PublicComponents(frame, 1).fit(frame)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames(kind):
    names = list("abcdef")
    frame = kind(dict(zip(names, PUBLIC.T, strict=True)))
    made = PublicComponents(frame, 2).fit(frame)
    bare = PublicComponents(PUBLIC, 2).fit(frame)
    np.testing.assert_allclose(made.transform(frame), bare.transform(frame), atol=1e-9)
    np.testing.assert_allclose(made.transform(PUBLIC), bare.transform(PUBLIC), atol=1e-9)
    assert list(made.get_feature_names_out()) == ["publiccomponents0", "publiccomponents1"]
    assert list(made.feature_names_in_) == names
    assert made.set_output(transform="pandas").transform(frame).shape == (120, 2)
    oracle = RandomTaskOracle(frame, classes=[0, 1], least_share=0.4)
    chosen = SensitivitySampler(oracle, **FEW)
    model = private(PublicComponents(frame), LogisticRegression(C=0.1), sensitivity=chosen)
    private_frame = kind(dict(zip(names, PRIVATE.T, strict=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", skdp.UtilityWarning)
        fitted = model.fit(private_frame, LABELS)
    assert fitted.predict(private_frame).shape == (200,)


def test_members_are_learned_before_the_steps_behind_them():
    """And what was settled of a fit, such as its unit, stays."""
    table = make_column_transformer((PublicComponents(PUBLIC[:, :3], 2), slice(0, 3)))
    model = private(table, PublicComponents(PUBLIC), LogisticRegression(), epsilon=0.5)
    way = check_parameters(model)
    way.unit = "person"
    sized = with_components(way, Dataset(PRIVATE, LABELS))
    assert sized.unit == "person"
    steps = sized.given.estimator.steps
    assert [step.estimator.n_components for _, step in steps[1:2]] == [2]
    assert isinstance(steps[0][1].transformers[0][1], FrozenEstimator)
    assert way.given is model
    assert sized.given.mechanism is model.mechanism


def test_known_aggregate_and_search():
    few = PublicComponents(PUBLIC)
    moments = private(
        few, ClipNorm(3.0), MomentClassifier(), sensitivity="known", classes=[0, 1], epsilon=0.5
    )
    plan = moments.plan(200, like=(PRIVATE, LABELS))
    assert "3 of 6: sqrt(n epsilon / 10)" in str(plan)
    assert plan.guarantee.gamma == 0
    assert moments.fit(PRIVATE, LABELS).predict(PRIVATE).shape == (200,)
    blocks = private(
        few,
        DecisionTreeClassifier(max_depth=2),
        mechanism=L2LaplaceMechanism,
        sensitivity=SampleAndAggregate(n_blocks=5, random_state=0),
        prior=RandomTaskOracle(PUBLIC, classes=[0, 1], least_share=0.4),
        epsilon=0.5,
    )
    assert "3 of 6" in str(blocks.plan(200))
    grid = {"estimator__logisticregression__C": [0.1, 1.0]}
    oracle = RandomTaskOracle(PUBLIC, classes=[0, 1], least_share=0.4)
    chosen = SensitivitySampler(oracle, n_pairs=9, gamma=0.2, random_state=0)
    search = private(few, LogisticRegression(), sensitivity=chosen)
    search = PrivateSearchCV(search, grid, n_runs=2)
    search.fit(PRIVATE, LABELS)
    assert "of 6: sqrt(n epsilon / 10), for n = " in str(search.plan_)
    gaussian = PrivateEstimator(
        make_pipeline(few, LogisticRegression(C=0.1)),
        mechanism=GaussianMechanism(epsilon=0.5, delta=1e-6, code=None),
        sensitivity=sampler(),
    )
    assert "3 of 6" in str(gaussian.plan(200))


def test_public_records_do_not_stay_in_a_release(tmp_path):
    model = private(StandardScaler(), PublicComponents(PUBLIC), LogisticRegression(C=0.1))
    model.fit(PRIVATE, LABELS)
    written = pickle.dumps(model.estimator_)
    assert PUBLIC[3].tobytes() not in written
    assert PUBLIC[:, 2].tobytes() not in written
    assert model.estimator.named_steps["publiccomponents"].X_public is PUBLIC
    assert not hasattr(model.estimator.named_steps["publiccomponents"], "components_")
    model.save(tmp_path / "model")
    loaded = skdp.load(tmp_path / "model").value
    np.testing.assert_array_equal(loaded.predict(PRIVATE), model.predict(PRIVATE))
    assert clone(model).estimator.get_params()["publiccomponents__n_components"] is None


def test_what_is_private_changes_nothing_of_the_components():
    model = private(StandardScaler(), PublicComponents(PUBLIC), LogisticRegression(C=0.1))
    other = PRIVATE.copy()
    other[0] = 1e6
    plans = [model.plan(200, like=(X, LABELS)) for X in (PRIVATE, other)]
    first, second = map(learned_in, plans)
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.mean_, second.mean_)


def test_refusals():
    with pytest.raises(ValueError, match="'n_components' parameter of PublicComponents must be gi"):
        make_pipeline(PublicComponents(PUBLIC), LogisticRegression()).fit(PRIVATE, LABELS)
    for wrong in (0, 7, 1.5, True, "2"):
        with pytest.raises(ValueError, match="must be an integer from 1 to 6, the number of col"):
            PublicComponents(PUBLIC, wrong).fit(PRIVATE)
        with pytest.raises(ValueError, match="must be an integer from 1 to 6, the number of col"):
            private(PublicComponents(PUBLIC, wrong), LogisticRegression()).plan(200)
    with pytest.raises(ValueError, match="NaN"):
        PublicComponents(np.where(PUBLIC > 200, np.nan, PUBLIC), 1).fit(PRIVATE)
    with pytest.raises(ValueError, match="6 features"):
        PublicComponents(PUBLIC, 1).fit(PRIVATE[:, :5])
    with pytest.raises(ValueError, match="nothing to release"):
        private(PublicComponents(PUBLIC, 2)).plan(200)
    members = make_column_transformer((PublicComponents(PRIVATE[:, :3]), [0, 1, 2]))
    for step in (PublicComponents(PRIVATE[:100]), members):
        with pytest.raises(ValueError, match=r"'X_public' parameter .* must hold public records"):
            private(step, LogisticRegression(C=0.1)).fit(PRIVATE, LABELS)


class OfWhatComes(PublicComponents):
    """Take the records of a check for public ones, whose columns differ from check to check."""

    def fit(self, X, y=None):
        self.__dict__.update(vars(PublicComponents(X, 1).fit(X)) | self.get_params())
        return self


@pytest.mark.loop(
    ("made", "check"),
    [
        pytest.param(made, check, id=check.func.__name__)
        for made, check in estimator_checks_generator(OfWhatComes(None))
        # the former needs libraries that skdp has no use for, the latter is refused by its type
        if not any(part in check.func.__name__ for part in ("array_api", "complex"))
    ],
)
def test_check_estimator(made, check):
    check(made)
