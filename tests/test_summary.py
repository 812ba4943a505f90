"""What a release says of itself: the summary, the folder, the card."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    LaplaceMechanism,
    PublicDataOracle,
    RandomTaskOracle,
    UniformOracle,
    load,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.functions import BernsteinTarget
from skdp.results.summary import ReleaseSummary
from tests import helpers
from tests.helpers import sampler

pd = pytest.importorskip("pandas", reason="needs the 'dataframe' extra")

IRIS = load_iris(return_X_y=True, as_frame=True)
PUBLIC, PRIVATE = ([part[half::2] for part in IRIS] for half in (0, 1))


def private(estimator, oracle=None, release="auto", **options):
    options = {"mechanism": LaplaceMechanism(**{"epsilon": 2.0} | options)}
    known = sampler(oracle or PublicDataOracle(*PUBLIC), n_pairs=9)
    return helpers.private(estimator, release=release, sensitivity=known, **options)


@pytest.fixture(scope="module")
def model():
    scaler = FrozenEstimator(StandardScaler().fit(PUBLIC[0]))
    return private(make_pipeline(scaler, RidgeClassifier())).fit(*PRIVATE)


def test_each_released_number_stands_beside_its_standard_error(model):
    frame = model.summary().to_frame()
    assert frame.shape == (15, 5)
    row = frame.loc["ridgeclassifier__coef_[2, petal length (cm)]"]
    assert row["value"] == model.estimator_[-1].coef_[2, 2]
    assert row["standard error"] == model.standard_errors_["ridgeclassifier__coef_"][2, 2]
    assert row["ratio"] == abs(row["value"]) / row["standard error"]
    assert frame["learned"].between(0, 1).all()


@pytest.mark.slow
def test_a_number_that_was_not_learned_is_said_to_be_the_oracles():
    coded, plain = (
        private(RidgeClassifier(), epsilon=0.02, code=code).fit(*PRIVATE).summary()
        for code in ("auto", None)
    )
    assert coded.learned.max() < 0.1
    near = np.abs(plain.values) < 2 * plain.errors
    assert near.any()
    assert [note == "may be 0" for note in plain.notes] == near.tolist()
    assert "shift" in coded.remark
    assert "shift" not in plain.remark


@pytest.mark.worth
def test_a_solver_that_stops_early_is_named_where_a_smaller_tolerance_would_help():
    oracle = RandomTaskOracle(PUBLIC[0], classes=[0, 1, 2])
    loose = private(LogisticRegression(), oracle, epsilon=1e-4)
    with pytest.warns(UserWarning, match="smaller tol"):
        loose.plan(75)


def test_a_number_has_one_verdict_at_most():
    """Of a decoded number `learned` is the weight of the records beside that of the prior."""
    for value, error, learned, inside, note, share in (
        (9.0, 1.0, 0.09, np.nan, "", "9%"),
        (1.0, 1.0, 0.49, 2.0, "model has 2", "49%"),
        (9.0, np.nan, 0.0, np.nan, "the same in all public fits", "0%"),
        (1.9999, 1.0, 0.9, np.nan, "may be 0", "90%"),
        (2.0, 1.0, 0.9, np.nan, "", "90%"),
    ):
        numbers = (np.array([each]) for each in (value, error, learned, inside))
        summary = ReleaseSummary("", ["a"], *numbers)
        assert summary.notes == [note]
        assert share in str(summary).splitlines()[2].split()
    plain = ReleaseSummary("", ["a"], np.ones(1), np.ones(1), np.ones(1))
    assert "from your data" not in str(plain)


def test_what_is_learned_is_what_was_planned_also_of_records_that_contradict():
    """Their errors are larger, and so is the prior that they are compared with."""
    rng = np.random.default_rng(0)
    oracle = PublicDataOracle(rng.normal(size=(500, 3)))
    model = private(StandardScaler(), oracle, epsilon=1.0, shift=0.0)
    learned, errors = [], []
    for mean in (0.0, 3.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the second one is unlike the oracle, as it says
            table = model.fit(rng.normal(mean, size=(400, 3))).summary().to_frame()
        learned.append(table["learned"])
        errors.append(table["standard error"])
    assert (errors[1] > 1.5 * errors[0]).any()
    np.testing.assert_allclose(learned[1], learned[0], atol=1e-6)
    assert (learned[0] > 0.1).any()


def test_numbers_that_public_records_of_other_people_decide_are_marked(tmp_path):
    """Their standard errors are too small for them; with a shift of 1 they are the records' own."""
    rng = np.random.default_rng(0)
    oracle, older = PublicDataOracle(rng.normal(size=(500, 9))), rng.normal(1.0, size=(400, 9))
    marked = {}
    for shift in (0.2, 1.0):
        model = private(StandardScaler(), oracle, epsilon=0.1, shift=shift).fit(older)
        means = model.summary().to_frame().filter(like="mean_[", axis=0)
        marked[shift] = (means["learned"] < 0.5).mean()
        model.save(tmp_path / str(shift))
        for summary in (model.summary(), load(tmp_path / str(shift)).summary()):
            assert "`shift`" in summary.remark
    assert marked[0.2] > 0.7
    assert marked[1.0] < 0.3


@pytest.mark.parametrize(
    ("ensemble", "labels"), [(VotingClassifier, [1, 2]), (None, [True, False])]
)
def test_of_two_classes_it_is_said_for_which_one_coefficients_speak(ensemble, labels):
    """Members of an ensemble are given numbers of classes, but named after them."""
    _, high = sorted(labels)
    whole = ensemble([("line", RidgeClassifier())]) if ensemble else RidgeClassifier()
    two = [(X, np.where(y == 0, *labels)) for X, y in (PUBLIC, PRIVATE)]
    model = private(whole, PublicDataOracle(*two[0]), code=None, epsilon=1e6).fit(*two[1])
    assert f"Classifier (positive: class {high})" in str(model.summary())
    member = model.estimator_.named_estimators_["line"] if ensemble else model.estimator_
    toward = 100 * np.atleast_2d(member.coef_)
    assert model.predict(pd.DataFrame(toward, columns=two[0][0].columns)) == high
    of_three = private(RidgeClassifier()).fit(*PRIVATE).summary()
    assert "positive" not in str(of_three)


@pytest.mark.parametrize("of_noise", [True, False])
def test_a_summary_says_what_becomes_of_the_values_of_a_density(of_noise, tmp_path):
    """Half of the mass is below 0, outside of the box; rounding is no name for it."""
    X = np.linspace(-1, 1, 4001)[:, None]
    model = private(KernelDensity(bandwidth=0.1), release=lattice(0, 3.3, degree=33))
    model.set_params(sensitivity="known", mechanism__epsilon=1.0 if of_noise else 1e9)
    model.fit(X).save(tmp_path)
    summary = model.summary()
    divided = float(re.search(r"was divided by ([\d.]+)", summary.remark)[1])
    assert divided == pytest.approx(0.5, abs=0.1 if of_noise else 0.03)
    exact = KernelDensity(bandwidth=0.1).fit(X)
    ratio = np.exp(exact.score_samples([[0.5]]) - model.score_samples([[0.5]]))
    assert divided == pytest.approx(ratio[0], rel=0.3 if of_noise else 0.05)
    assert load(tmp_path).summary().remark == summary.remark
    assert summary.remark in " ".join((tmp_path / "README.md").read_text().split())
    wide = KernelDensity(bandwidth=0.5)  # which the lattice resolves
    model.set_params(release=lattice(-3.1, 2.9, degree=60), mechanism=LaplaceMechanism(1e9))
    assert "divided" not in clone(model).set_params(estimator=wide).fit(X).summary().remark
    names = model.set_params(release=lattice(-1, 2.3, degree=33)).fit(X).summary().names
    assert names[10] == "value[0]"


def release_of(function, X, **others):
    return release(function, X, mechanism=LaplaceMechanism(1.0), sensitivity=0.1, **others)


def table_of(X):
    return np.ones((2, 2))


def column_means(X):
    return X.mean(axis=0)


def lattice(*box, degree=1):
    return BernsteinTransformer(degree=degree, feature_range=box)


ON_BOX = BernsteinTarget(
    lambda X, points: np.hstack([points.sum(axis=1, keepdims=True)] * 2), lattice((0, 1), (10, 20))
)

LEVELS = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])
NAMED = [
    (column_means, None, ["0", "1"]),
    (lambda X: X.mean(axis=0, keepdims=True), ["a", "b"], ["a", "b"]),
    (table_of, ["a", "b"], ["0, a", "0, b", "1, a", "1, b"]),
    (table_of, list("abcd"), list("abcd")),
    *((column_means, names, ["('a', 'x')", "('a', 'y')"]) for names in (LEVELS, list(LEVELS))),
    (column_means, map(str, LEVELS), ["('a', 'x')", "('a', 'y')"]),
    (ON_BOX, None, [f"{at}, {i}" for at in ("0, 10", "0, 20", "1, 10", "1, 20") for i in (0, 1)]),
]


@pytest.mark.parametrize(("function", "names", "expected"), NAMED)
def test_names_are_of_the_last_axis_or_one_by_one(function, names, expected):
    found = release_of(function, np.ones((20, 2)), names=names).summary().names
    assert found == [f"value[{name}]" for name in expected]


@pytest.mark.parametrize(
    ("function", "names", "word"),
    [
        (column_means, ["age"], "Got 1 names"),
        (column_means, "ab", "one list"),
        (column_means, {"a", "b"}, "set"),
        (table_of, [["up", "down"], ["left", "right"]], "one list"),
        (table_of, list("abc"), "4 numbers"),
    ],
)
def test_other_names_are_refused_before_anything_is_paid(function, names, word):
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    with pytest.raises(ValueError, match=word):
        release_of(function, np.ones((20, 2)), names=names, accountant=accountant)
    choose = {"mechanism": ExponentialMechanism(1.0), "sensitivity": 1, "accountant": accountant}
    with pytest.raises(ValueError, match="releases none"):
        release(lambda X: [X.sum(), -X.sum()], np.ones((20, 1)), names=["up", "down"], **choose)
    assert accountant.total().n_releases == 0


LINE, LETTERS = np.linspace(0, 1, 90)[:, None], np.repeat(["a", "b", "c"], 30)
AGES, NUMBERS = pd.DataFrame(LINE, columns=["age"]), UniformOracle([(0, 1)], y_bounds=(0, 1))
NETWORK = MLPRegressor(hidden_layer_sizes=2, max_iter=3, random_state=0)
STUMPS = ExtraTreesClassifier(n_estimators=2, max_depth=1, random_state=0)
LEAVES = [f"tree {tree}, leaf {leaf}" for tree in (0, 1) for leaf in (1, 2)]
PRIORS = [f"class_prior_[{label}]" for label in "abc"]
TWO_COLUMNS = FrozenEstimator(SelectKBest(k=2).fit(*PUBLIC))
OF_AGE = make_column_transformer((StandardScaler(), ["age"]))
CALLED = [  # an estimator, what is released of it, the records, and the first names
    (Ridge(), "auto", (LINE, LINE[:, 0]), ["coef_[0]", "intercept_"]),
    (GaussianNB(), "auto", (AGES, LETTERS), [*PRIORS, "theta_[a, age]"]),
    (NETWORK, ["coefs_"], (LINE, LINE[:, 0]), ["coefs_[0][0]", "coefs_[0][1]", "coefs_[1][0, 0]"]),
    (KernelDensity(), lattice(0, 1, degree=2), (LINE,), [f"value[{x}]" for x in ("0", "0.5", "1")]),
    (
        *(LogisticRegression(), lattice(0, 1), (AGES, LETTERS)),
        [f"value[age={x}, {label}]" for x in (0, 1) for label in "abc"],
    ),
    (STUMPS, "auto", (LINE, LETTERS), [f"value[{leaf}, {y}]" for leaf in LEAVES for y in "abc"]),
    (
        *(make_pipeline(OF_AGE, RidgeClassifier()), "auto", (AGES, LETTERS)),
        ["columntransformer__standardscaler__mean_[age]"],
    ),
    (
        *(make_pipeline(TWO_COLUMNS, StandardScaler(), RidgeClassifier()), "auto", PRIVATE),
        [f"standardscaler__mean_[petal {what} (cm)]" for what in ("length", "width")],
    ),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few steps are enough
@pytest.mark.parametrize(("estimator", "what", "data", "expected"), CALLED)
def test_numbers_are_called_by_column_class_point_or_leaf(estimator, what, data, expected):
    oracle = UniformOracle([(0, 1)]) if len(data) == 1 else NUMBERS
    if is_classifier(estimator):
        oracle = PublicDataOracle(*(part.copy() for part in data))
    names = private(estimator, oracle, what).fit(*data).summary().names
    assert names[: len(expected)] == expected


def test_a_number_that_was_brought_into_range_says_what_it_is_in_the_model():
    noise = {"epsilon": 0.05, "code": None}
    model = private(make_pipeline(StandardScaler(), RidgeClassifier()), **noise).fit(*PRIVATE)
    summary, inside = model.summary(), model.estimator_[0].var_
    is_variance = np.array([name.startswith("standardscaler__var_") for name in summary.names])
    low = summary.values[is_variance] <= 0
    assert low.any()
    for note, value in zip(np.array(summary.notes)[is_variance][low], inside[low], strict=True):
        assert f"model has {value:.4g}" in note
    assert np.isnan(np.array(summary.repaired)[~is_variance]).all()


@pytest.mark.parametrize(
    ("estimator", "units"),
    [
        (Ridge(), 1e-7),  # the other columns'
        (make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression()), 1e6),
    ],
)
def test_what_public_fits_vary_by_rounding_is_not_read_to_its_last_digit(estimator, units):
    """The coefficient of a column that is constant in public, and not in private records."""

    def records(n_samples, rng):
        X = rng.normal(size=(n_samples, 3)) * [units, units, 0] + [0, 0, 0.1]
        return X, (X[:, 0] - X[:, 1] > rng.normal(size=n_samples) * 0.3 * units).astype(int)

    X, y = records(600, np.random.default_rng(0))
    X[:100, 2], y[:100] = 0.2, 1
    noise = LaplaceMechanism(1.0)
    model = private(estimator, records).set_params(
        mechanism=noise, sensitivity__n_pairs=None, sensitivity__clip=None
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "What was released contradicts")  # other numbers do
        summary = model.fit(X, y).summary()
    (place,) = (i for i, name in enumerate(summary.names) if name.endswith("coef_[2]"))
    assert summary.notes[place] == "the same in all public fits"
    assert summary.values[place] == pytest.approx(0, abs=1e-9)
    assert np.isnan(summary.errors[place])
    assert np.isnan(model.value_interval(level=0.8, n_draws=19)[place]).all()
