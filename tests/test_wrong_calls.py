"""Wrong calls over the whole public interface: refused, in words, before anything happens.

Each message names the parameter and the rule. No record of the caller is in it, nothing is spent,
and the object is as it was.
"""

import math
import re
import traceback
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomDensityOracle,
    RandomTaskOracle,
    SensitivitySampler,
    UniformOracle,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from tests import helpers

RNG = np.random.default_rng(0)
PUBLIC = RNG.normal(size=(60, 3)), RNG.integers(0, 2, 60)
X = RNG.normal(size=(60, 3)) + math.pi
Y = np.r_[0, 1, RNG.integers(0, 2, 58)]
NAN, INF = math.nan, math.inf


class CountingOracle(PublicDataOracle):
    """Count the draws."""

    n_draws = 0

    def __call__(self, n_samples, rng):
        type(self).n_draws += 1
        return super().__call__(n_samples, rng)


def sampler(oracle=None, **options):
    oracle = CountingOracle(*PUBLIC) if oracle is None else oracle
    return SensitivitySampler(oracle, **{"gamma": 0.2, "n_pairs": 9, "random_state": 0} | options)


def model(estimator=None, **options):
    """An estimator without a seed, as most users have it."""
    estimator = LogisticRegression() if estimator is None else estimator
    return helpers.private(estimator, **{"sensitivity": sampler(), "random_state": None} | options)


def fit(**options):
    """A fit with one wrong parameter."""
    return lambda: model(**options).fit(X, Y)


def fit_to(*data, estimator=None, **options):
    """A fit to wrong data."""
    return lambda: model(estimator, **options).fit(*data)


def of_oracle(draw, estimator=None):
    """A fit with an oracle that draws what it must not."""
    return lambda: model(estimator, sensitivity=sampler(draw)).fit(X, Y)


def changed(values, at, to):
    values = np.array(values, dtype=np.float64)
    values[at] = to
    return values


def labels(n, rng):
    return rng.integers(0, 2, n)


def of_function(function, **options):
    usual = {"mechanism": NOISE, "sensitivity": sampler(UniformOracle([(0, 1)] * 3))}
    return lambda: release(function, X, **usual | options)


calls = iter(range(10**9))


INCOME = 61234.5
TABLE = pd.DataFrame({"age": [31.0, 42.0, 53.0], "income": INCOME, "height": 1.8})
RECORDS = TABLE.to_numpy().tolist()
# In the place of any parameter they may hold records, and are named by type and shape.
CONTAINERS = [
    *(TABLE, TABLE.to_numpy(), RECORDS, tuple(RECORDS), TABLE["income"]),
    [list(map(str, record)) for record in RECORDS],
]


def each(label, words, values, make, containers=CONTAINERS):
    """A call for each value of one parameter: (name, call, words of the message)."""
    cases = [(f"{label}={value!r:.20}", make(value), words) for value in values]
    return [*cases, *((f"{label}={type(it).__name__}", make(it), "") for it in containers)]


def mechanism(**options):
    return fit(mechanism=LaplaceMechanism(1.0, **options))


def sampling(**options):
    return fit(sensitivity=sampler(**options))


def planned(n):
    usual = {"mechanism": NOISE, "sensitivity": sampler(ONE_COLUMN)}
    return lambda: plan_release(np.mean, n_samples=n, **usual)


ONE_COLUMN, NOISE = UniformOracle([(0, 1)]), LaplaceMechanism(1.0)
GENERATORS = np.random.RandomState(0), np.random.default_rng(0)

# What is wrong can be seen before a record is drawn.
EARLY = [
    *each("epsilon", "'epsilon'.*above 0", (0, -1, NAN, "1", None, [1.0], -INF, True),
          lambda e: fit(mechanism=LaplaceMechanism(e))),
    *each("epsilon", "'epsilon'.*above 0", (0, NAN, "1"),
          lambda e: fit(mechanism=GaussianMechanism(e, 1e-6))),
    *each("delta", "'delta'", (0, 1, 2, -0.1, NAN, "a", None),
          lambda d: fit(mechanism=GaussianMechanism(1.0, d))),
    *each("code", "'code'", ("foo", 3.5, [[1.0, 2.0]], True),
          lambda c: fit(mechanism=LaplaceMechanism(1.0, code=c))),
    *each("shift", "'shift'", (-0.1, 1.1, "a", None, NAN, True), lambda s: mechanism(shift=s)),
    *each("mechanism", "'mechanism'", (None, LaplaceMechanism, 1.0, "laplace"),
          lambda m: fit(mechanism=m)),
    *each("gamma", "'gamma'", (0, 1, -0.1, 1.5, NAN, "a", [0.1], True),
          lambda g: sampling(gamma=g)),
    *each("n_pairs", "'n_pairs'", (0, -1, 2.5, "a", True, 2**60), lambda n: sampling(n_pairs=n)),
    *each("calibration", "'calibration'", ("x", None, 3), lambda c: sampling(calibration=c)),
    *each("confidence", "'confidence'", (0, 1, 2, "a", NAN),
          lambda c: sampling(calibration="conditional", confidence=c)),
    *each("seed of pairs", "'random_state'", ("a", -1, 1.5, True),
          lambda s: sampling(random_state=s)),
    *each("seed of noise", "'random_state'", ("a", -1, 1.5, True, *GENERATORS),
          lambda s: fit(random_state=s)),
    *each("oracle", "oracle", (3, "a", Ridge(), np.zeros((5, 3)), object()),
          lambda o: sampling(oracle=o)),
    *each("estimator", "'estimator'", ("svm", LogisticRegression, 3, len, [LogisticRegression()]),
          lambda e: fit(estimator=e)),
    *each("release", "release", (3, "coef_", [], ["coef_", 3], object(), [3], np.mean),
          lambda r: fit(release=r)),
    *each("classes", "'classes'|label", ("ab", 3, []), lambda c: fit(classes=c),
          containers=()),  # labels are public
    ("classes of a regressor", fit(estimator=Ridge(), classes=[0, 1]), "'classes'"),
    *each("sensitivity", "sensitivity|'value'", (None, "a", -1.0, NAN, INF, [0.1], ONE_COLUMN),
          lambda s: fit(sensitivity=s, classes=[0, 1])),
    *each("accountant", "'accountant'", ("x", 3, PrivacyAccountant), lambda a: fit(accountant=a)),
    *each("n_samples", "'n_samples'", (0, -1, 2.5, "a", None, True),
          lambda n: lambda: model().plan(n)),
    *((f"X {name}", fit_to(x, Y), words) for name, x, words in (
        ("None", None, "X"), ("of one dimension", X[:, 0], "two-dimensional"),
        ("of three dimensions", X[:, :, None], "two-dimensional"), ("empty", X[:0], "0 sample"),
        ("without a column", X[:, :0], "0 feature"), ("complex", X + 1j, "[Cc]omplex"),
        ("missing", changed(X, (3, 1), NAN), "NaN.*imputer"),
        ("infinite", changed(X, (3, 1), INF), "infinity"),
        ("ragged", [[1.0, 2.0], [3.0]], "inhomogeneous|ragged|two-dimensional"),
        ("of text", "abc", "X|array"), ("a number", 3.0, "X|array"),
        ("a dictionary", {"a": [1.0]}, "X|float|array"),
        ("a series", pd.Series(X[:, 0]), "dimension"))),
    *((f"y {name}", fit_to(X, y), words) for name, y, words in (
        ("None", None, "requires y"), ("too few", Y[:-1], "60 records"),
        ("too many", np.r_[Y, 0], "60 records"), ("real numbers", X[:, 0], "continuous"),
        ("missing", changed(Y, 3, NAN), "NaN"),
        ("another label", np.where(np.arange(60) == 9, int(INCOME), Y), "not public"))),
    ("weights without y", fit_to(X, None, np.ones(60), estimator=KMeans(2)), "sample_weight"),
    ("too few weights", fit_to(X, Y, np.ones(59)), "weight"),
    ("missing weight", fit_to(X, Y, changed(np.ones(60), 3, NAN)), "weight|NaN"),
    *each("target", "'target'", ("mean", None, 3, [np.mean]), of_function),
    ("responses of noise", of_function(np.mean, responses=["a"]), "'responses'"),
    ("unfit parts", lambda: release(np.mean, X, Y[:3], mechanism=NOISE, sensitivity=1.0),
     "as many responses"),
    *each("mechanism of a release", "'mechanism'", (None, 1.0, LaplaceMechanism),
          lambda m: of_function(np.mean, mechanism=m)),
    *each("sensitivity of a release", "ensitivity", ("small", ONE_COLUMN, SensitivitySampler),
          lambda s: of_function(np.mean, sensitivity=s)),
    *each("seed of a release", "'random_state'", GENERATORS,
          lambda s: of_function(np.mean, random_state=s)),
    *each("n_samples of plan_release", "'n_samples'", (0, 1.5, "a"), planned),
    *((f"{name} for {type(estimator).__name__}", of_oracle(draw, estimator), words)
      for name, estimator, draw, words in (
        ("labels", Ridge(), RandomTaskOracle(PUBLIC[0], classes=[0, 1]), "draws labels.*'y_sc"),
        ("labels", Ridge(), UniformOracle([(0, 1)] * 3, classes=[0, 1]), "draws labels.*'y_b"),
        ("numbers", None, UniformOracle([(0, 1)] * 3, y_bounds=(0, 1)), "draws numbers.*'classes'"),
        ("numbers", None, RandomTaskOracle(PUBLIC[0], y_scale=1.0), "draws numbers.*'classes'"))),
    ("a prior of labels for Ridge", fit(estimator=Ridge(), sensitivity="aggregate",
        prior=RandomTaskOracle(PUBLIC[0], classes=[0, 1])), "draws labels"),
    ("an unknown word", fit(sensitivity="knwon"), "SampleAndAgg.*'aggregate'.*'known'.*knwon"),
    ("a prior beside an oracle", fit(prior=PublicDataOracle(*PUBLIC)), "'prior'"),
    *((f"{label} of records", partial(make, it), "") for it in CONTAINERS for label, make in (
        ("classes of an oracle", lambda it: RandomTaskOracle(np.eye(2), classes=it)),
        ("shares", lambda it: RandomTaskOracle(np.eye(2), classes=[0, 1], class_shares=it)),
        ("bounds", UniformOracle), ("widths", lambda it: RandomDensityOracle((0, 1), widths=it)),
        ("ranges", lambda it: KnownSensitivity(1.0, "l1", 10, ranges=it)),
        ("ranges of a mean", lambda it: mean_bound(it, 2, ranges=(0, 1))),
        ("feature_range", lambda it: BernsteinTransformer(feature_range=it).fit([[0.1]])))),
    ("widths of mean_bound", lambda: mean_bound(9, 3, ranges=(-8e307, 8e307)), "is finite"),
    ("no epsilon", lambda: LaplaceMechanism(), "^LaplaceMechanism.*epsilon"),
    ("no epsilon in L2", lambda: L2LaplaceMechanism(), "^L2LaplaceMechanism.*epsilon"),
    ("a delta for Laplace noise", lambda: LaplaceMechanism(1.0, 1e-5), "^Laplace.*positional"),
    ("no limit", lambda: PrivacyAccountant("x.db"), "epsilon"),
    ("no mechanism", lambda: PrivateEstimator(Ridge(), sensitivity=1.0), "mechanism"),
    ("positional", lambda: PrivateEstimator(Ridge(), NOISE, 1.0), "positional"),
    ("an epsilon", lambda: PrivateEstimator(Ridge(), epsilon=1), "'epsilon'"),
    ("epsilon of the estimator", lambda: model().set_params(epsilon=2), "'mechanism'"),
]  # fmt: skip


def drawn(n, rng, columns=3):
    return rng.normal(size=(n, columns))


NO_RNG = np.random.default_rng()

# What is wrong shows in the records of the oracle.
DRAWN = [
    *((f"oracle: {name}", of_oracle(draw), f"oracle.*{words}") for name, words, draw in (
        ("strings", "form", lambda n, rng: (np.full((n, 3), "a"), labels(n, rng))),
        ("nothing", "tuple", lambda n, rng: None),
        ("five parts", "tuple", lambda n, rng: (drawn(n, rng),) * 5),
        ("too few", "60 records", lambda n, rng: (drawn(n - 1, rng), labels(n - 1, rng))),
        ("too few labels", "60 resp", lambda n, rng: (drawn(n, rng), labels(n - 1, rng))),
        ("missing numbers", "missing|same", lambda n, rng: (np.full((n, 3), NAN), labels(n, rng))),
        ("other columns", "2 columns", lambda n, rng: (drawn(n, rng, 2), labels(n, rng))),
        ("one dimension more", "dim", lambda n, rng: (drawn(n, rng)[..., None], labels(n, rng))),
        ("one class", "several classes", lambda n, rng: (drawn(n, rng), np.zeros(n, dtype=int))),
        ("always the same", "same records", lambda n, rng: (np.ones((n, 3)), np.arange(n) % 2)),
        ("by chance", "other records", lambda n, rng: (drawn(n, NO_RNG), labels(n, rng))))),
    ("no labels", of_oracle(drawn), r"Give it y too.*RandomTaskOracle\(X, cl"),
    ("a table of one class", of_oracle(PublicDataOracle(PUBLIC[0], np.ones_like(PUBLIC[1]))),
     "PublicDataOracle.* several classes"),
    ("labels of an ensemble", lambda: VotingClassifier([("one", model(classes=[1, 2],
        sensitivity=sampler(PublicDataOracle(PUBLIC[0], PUBLIC[1] + 1))))]).fit(X, Y + 1),
     "public ones are .1, 2.*VotingClassifier.*LabelEncoder"),
    ("other labels", of_oracle(lambda n, rng: (drawn(n, rng), 5 + labels(n, rng))), "not public"),
    ("labels not declared", fit(classes=[0]), "oracle.*label 1"),
    ("labels of another type", fit(classes=["a", "b"]), "oracle.*label 0"),
    ("too many classes", fit(classes=[0, 1, 2]), "oracle must yield every class"),
    ("too few records", fit_to(X[:1], Y[:1]), "oracle must yield"),
    ("columns of the data", fit_to(X[:, :2], Y), "oracle.*2 columns"),
    ("sparse and dense", fit_to(sparse.csr_matrix(X), Y, sensitivity=sampler(
        lambda n, rng: ([["a"] * 3] * n, labels(n, rng)))), "oracle"),
    ("text of the data", fit_to(np.full((60, 3), f"owns {INCOME}"), Y), "does not convert"),
    ("an option of the estimator", fit(estimator=LogisticRegression(C=-1)), "'C'"),
    ("names to release", fit(release=["coefs_"]), "'release'.*coef_, intercept_"),
    ("a choosing mechanism", fit(mechanism=ExponentialMechanism(1.0)), "chooses"),
    ("a target of None", of_function(lambda X: None), "NoneType"),
    ("a target of text", of_function(lambda X: "a"), "returned a str"),
    ("a target of NaN", of_function(lambda X: NAN), "infinite"),
    ("a target of changing length", of_function(lambda X: np.zeros(2 + next(calls) % 3)),
     "shape|another size|infinite|values"),
    ("a target that does not change", of_function(lambda X: 1.0), "sensitivity.*zero|is 0"),
    ("a bandwidth", fit(estimator=KernelDensity(bandwidth=-1.0), sensitivity=sampler(
        UniformOracle([(0, 1)] * 3)), release=BernsteinTransformer(2, feature_range=(0, 1))),
     "bandwidth"),
]  # fmt: skip


def state(thing):
    return {name: repr(value) for name, value in vars(thing).items()}


def refused(call, words):
    """Return the message; nothing is spent, and it holds no private number."""
    accountant = PrivacyAccountant(":memory:", epsilon=100.0, delta=0.5)
    with accountant.as_default(), pytest.raises((ValueError, TypeError)) as refusal:
        call()
    message = "\n".join([str(refusal.value), *getattr(refusal.value, "__notes__", ())])
    assert re.search(words, message, re.DOTALL), message
    assert accountant.total().n_releases == 0
    assert str(INCOME)[:5] not in "".join(traceback.format_exception(refusal.value))
    written = set(re.findall(r"\d\.\d{4,}", message))
    private = {f"{number:.4f}"[:6] for number in np.abs(X).ravel()}
    assert not {number[:6] for number in written} & private
    return message


def named(cases):
    return [pytest.param(call, words, id=name) for name, call, words in cases]


@pytest.mark.loop(("call", "words"), named(EARLY))
def test_what_can_be_seen_is_refused_before_a_pair_is_drawn(call, words):
    CountingOracle.n_draws = 0
    refused(call, words)
    # the form of its records may be looked at, and a public fit made; no pair has been evaluated
    assert CountingOracle.n_draws < 9


@pytest.mark.parametrize(("call", "words"), named(DRAWN))
@pytest.mark.filterwarnings("ignore:.*sparse.*")  # some formats are slow to compare
def test_what_an_oracle_or_target_shows_is_refused(call, words):
    refused(call, words)


def test_an_object_is_as_it_was():
    unfitted = model(estimator=LogisticRegression(C=-1))
    fitted = model(random_state=0).fit(X, Y)
    for each, data in ((unfitted, (X, Y)), (fitted, (X[:, :2], Y)), (fitted, (X, Y + 5))):
        before = state(each)
        with pytest.raises((ValueError, TypeError)):
            each.fit(*data)
        assert state(each) == before
    before = repr(fitted.get_params())
    with pytest.raises(ValueError, match="Invalid parameter"):
        fitted.set_params(epsilon=3.0)
    assert repr(fitted.get_params()) == before


def test_an_attribute_that_is_not_there_is_named():
    fitted = model(random_state=0).fit(X, Y)
    names = ["guarantee_", "estimator_", "budget_", "coef_", "classes_"]
    for each, missing in ((model(), names), (fitted, ["coefs_", "transform"])):
        for name in missing:
            with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
                getattr(each, name)
