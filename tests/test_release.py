"""release(): one path for any function."""

import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdp import (
    ExponentialMechanism,
    FunctionTarget,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEvaluationError,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
    load,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.functions import AdditiveTarget

ORACLE = UniformOracle([(0, 1), (0, 1)])
X = np.random.default_rng(0).uniform(size=(60, 2))
LAPLACE = LaplaceMechanism(epsilon=1.0)
FEW_PAIRS = SensitivitySampler(ORACLE, n_pairs=19, random_state=0)


def column_means(X):
    return X.mean(axis=0)


column_means.__skdp_key__ = "column-means-v1"


def named(key, function):
    return FunctionTarget(function, key=key)


@pytest.mark.parametrize("sensitivity", [FEW_PAIRS, 0.1], ids=["sampled", "known"])
@pytest.mark.parametrize(
    "mechanism", [LaplaceMechanism(1e-300), GaussianMechanism(1e-300, 1e-300)], ids=["l1", "l2"]
)
def test_what_cannot_be_released_is_not_evaluated(mechanism, sensitivity):
    def target(records):
        assert not np.array_equal(records, X)
        return column_means(records)

    with pytest.raises(ValueError, match=r"epsilon|sigma|noise"):
        release(target, X, mechanism=mechanism, sensitivity=sensitivity)


def test_one_seed_shows_the_difference_of_neighbors_and_the_guarantee_says_so():
    neighbor = np.vstack([X[:-1], [0.25, 0.75]])
    options = {"mechanism": LAPLACE, "sensitivity": 2 / 60, "random_state": 7}
    first, again, other = (release(column_means, each, **options) for each in (X, X, neighbor))
    np.testing.assert_array_equal(first.value, again.value)
    shown = other.value - first.value
    np.testing.assert_allclose(shown, column_means(neighbor) - column_means(X), atol=1e-5)
    assert first.guarantee.seeded
    assert "seed" in str(first.guarantee)
    unseeded = release(column_means, X, **options | {"random_state": None})
    assert not unseeded.guarantee.seeded
    assert np.all(unseeded.value != first.value)


WEAK = SensitivitySampler(ORACLE, calibration="conditional", confidence=0.01)


@pytest.mark.parametrize(
    ("mechanism", "sensitivity", "words"),
    [
        (LaplaceMechanism(20.5), 0.1, ["epsilon=20.5"]),
        (ExponentialMechanism(21), 0.1, ["epsilon=21"]),
        (GaussianMechanism(1.0, 0.02), 0.1, ["0.0167"]),  # one over the number of records
        (LAPLACE, SensitivitySampler(ORACLE, gamma=0.6, n_pairs=9), ["gamma=0.6"]),
        (LAPLACE, SensitivitySampler(ORACLE, gamma=None, n_pairs=1), []),
        (LAPLACE, WEAK, ["confidence=0.01"]),
        (LAPLACE, KnownSensitivity(0.006, "l1", 60, gamma=0.7), ["gamma=0.7"]),
        (GaussianMechanism(50.0, 0.1), 0.1, ["epsilon=50", "delta=0.1"]),
        (LaplaceMechanism(20), 0.1, []),
        (GaussianMechanism(1.0, 1 / 60), 0.1, []),
        (LaplaceMechanism(np.inf), 0.1, []),
    ],
)
def test_a_weak_promise_is_pointed_out_once_and_before_any_evaluation(
    mechanism, sensitivity, words, recwarn
):
    shown = []

    def target(records):
        shown.append(len(recwarn))
        return column_means(records)

    warnings.simplefilter("always")
    known = FunctionTarget(target, key="column means")  # by its content it would be another one now
    released = release(known, X, mechanism=mechanism, sensitivity=sensitivity)
    assert len(recwarn) == len(words) == min(shown)
    for warning, word in zip(recwarn, words, strict=True):
        assert word in str(warning.message)
        assert warning.filename == __file__
    is_exact = mechanism.epsilon == np.inf
    if not isinstance(mechanism, ExponentialMechanism):
        np.testing.assert_array_equal(released.value == column_means(X), is_exact)
    assert ("No privacy" in str(released.guarantee)) == is_exact


@pytest.mark.parametrize(
    ("function", "records", "sensitivity", "words"),
    [
        (column_means, X[:50], "estimate", "number of records"),
        (np.mean, X, "estimate", "another target"),
        (column_means, X, KnownSensitivity(0.1, "l1", 59), "n_samples=59"),
        (column_means, X, KnownSensitivity(0.1, "l2", 60), "'l1'"),
        (column_means, X, KnownSensitivity(0.0, "l1", 60), "zero"),
        (column_means, X[:, :1], FEW_PAIRS, "oracle"),
        (column_means, X.ravel(), FEW_PAIRS, "oracle"),
    ],
)
def test_a_sensitivity_of_something_else_is_refused(function, records, sensitivity, words):
    if sensitivity == "estimate":
        sensitivity = FEW_PAIRS.sample(column_means, 60, LAPLACE.geometry)
    with pytest.raises(ValueError, match=words):
        release(function, records, mechanism=LAPLACE, sensitivity=sensitivity)


def test_infinite_sensitivity_names_the_causes_and_releases_nothing():
    def fail(X):
        raise FloatingPointError("did not converge")

    with pytest.raises(ValueError, match="did not converge"):
        release(fail, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))


def test_labels_of_a_value_are_refused_before_anything_is_spent():
    """They follow the records: which groups there are, and in the order of their counts."""
    table = pd.DataFrame({"age": X[:, 0], "group": list("abc") * 20})
    coded, polars = table.astype({"group": "category"}), pl.DataFrame(table.to_dict("list"))
    sampled = SensitivitySampler(PublicDataOracle(table.copy()))
    ledger = PrivacyAccountant(":memory:", epsilon=2.0)
    for records, counts, kind, sensitivity in [
        (table, lambda X: X["group"].value_counts(), "pandas.Series", sampled),
        (table, lambda X: X.mean(numeric_only=True), "pandas.Series", 2.0),
        (table, lambda X: [X.groupby("group")[["age"]].mean()], "pandas.DataFrame", 2.0),
        (table, AdditiveTarget(lambda X: pd.get_dummies(X["group"])), "pandas.DataFrame", sampled),
        (coded, lambda X: X["group"].cat.codes.value_counts(), "pandas.Series", 2.0),
        (table["group"], lambda X: dict(X.value_counts()), "dict", 2.0),
        (polars, lambda X: X.group_by("group").len()["len"], "polars.Series", 2.0),
        (X, lambda X: {"n": len(X)}, "dict", FEW_PAIRS),
    ]:
        options = {"mechanism": LAPLACE, "sensitivity": sensitivity, "accountant": ledger}
        with pytest.raises(TypeError, match=rf"returned a {kind}\. .*reindex\("):
            release(counts, records, **options)
    assert not ledger.rows()
    share = AdditiveTarget(lambda X: X["group"] == "a")
    assert release(share, table, **options | {"sensitivity": sampled}).value.shape == ()


SECRET = 0.123456789


@pytest.mark.parametrize(
    "fail",
    [
        lambda X: (_ for _ in ()).throw(ValueError(f"bad record {X[0, 0]}")),
        lambda X: np.array([X[0, 0], np.nan]),
        lambda X: X[0],
        lambda X: [X[0, 0], "x"],
        lambda X: warnings.warn(f"{X[0, 0]}", stacklevel=1) or print(X[0, 0]) or np.log(-1.0),
    ],
    ids=["raises", "not finite", "another shape", "no numbers", "talks"],
)
def test_private_failure_says_nothing_of_the_data(fail, capfd):
    """The target works on the oracle's records and fails on the private ones."""
    private = X.copy()
    private[0, 0] = SECRET

    def target(X):
        return fail(X) if X[0, 0] == SECRET else X.mean()

    sampler = SensitivitySampler(ORACLE, gamma=0.5)
    with pytest.raises(PrivateEvaluationError, match="nothing is released") as caught:
        release(target, private, mechanism=LAPLACE, sensitivity=sampler)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert str(SECRET) not in "".join(traceback.format_exception(error))
    assert capfd.readouterr() == ("", "")


def unit_length(records):
    column = records[:, 0]
    return np.array([np.linalg.norm(column / np.linalg.norm(column)), 5.0])


@pytest.mark.parametrize(
    "target",
    [
        named("length", unit_length),
        named("shares", lambda X: (X / X.sum()).sum()),  # which add up to 1, and to nothing else
        AdditiveTarget(named("sums", lambda X: X[:, :1] * 1e-15 + 1.0)),
    ],
    ids=["length", "shares", "sums"],
)
def test_a_sensitivity_of_rounding_errors_is_refused(target):
    """Noise of that size would hide nothing, and the lattice ends before the value is reached."""
    sampler = SensitivitySampler(ORACLE, random_state=0)
    estimate = sampler.sample(target, 60, LAPLACE.geometry)
    assert 0 <= estimate.value < 1e-13
    assert estimate.n_rounding >= estimate.order_statistic.k
    for sensitivity in (sampler, SensitivityEstimate.from_dict(estimate.to_dict())):
        with pytest.raises(ValueError, match=r"sensitivity is zero|is one of rounding errors"):
            release(target, X, mechanism=LAPLACE, sensitivity=sensitivity)


@pytest.mark.parametrize("scale", [1e-300, 1e-16, 1.0, 1e300])
@pytest.mark.parametrize("kind", [AdditiveTarget, lambda function: function])
def test_small_numbers_are_no_rounding_errors(scale, kind):
    """Beside a constant they are measured as they are: their norms are not made smaller."""

    def small(records):
        return np.column_stack([np.full(len(records), 3.0), scale * records[:, 0]])

    target = kind(small) if kind is AdditiveTarget else lambda X: small(X).mean(axis=0)
    mechanism = LaplaceMechanism(1.0, code=None)
    plan = plan_release(target, n_samples=60, mechanism=mechanism, sensitivity=FEW_PAIRS)
    assert 0 < plan.sensitivity.value <= scale / 60 * (1 + 1e-9)
    assert plan.sensitivity.value > scale / 120
    assert plan.sensitivity.n_rounding < plan.sensitivity.order_statistic.k


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_saved_release_shows_no_category_of_the_data(tmp_path, kind):
    """Pandas reads them off the records, and one may be of a single person."""
    towns = ["north", "south"] * 30 + ["Xanadu"]
    if kind == "pandas":
        towns = pd.Series(towns).astype("category")
    else:
        towns = pl.Series(towns, dtype=pl.Enum(["north", "south", "Xanadu"]))

    def count(towns):
        return np.array([sum(each == name for each in towns) for name in ("north", "south")])

    counts = release(count, towns, mechanism=LAPLACE, sensitivity=2)
    counts.save(tmp_path)
    stored = [file.read_bytes() for file in tmp_path.iterdir()]
    assert not any(b"Xanadu" in each for each in [*stored, pickle.dumps(counts.simulator.schema)])
    assert load(tmp_path).value_interval(0.9, n_draws=99).shape == (2, 2)


@pytest.mark.loop("mechanism", [LAPLACE, L2LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5)])
@pytest.mark.loop(("value", "sensitivity"), [(14.0, 1e-15), (-1.7e18, 1e-3), (1e300, 1.0)])
def test_a_value_beyond_the_noise_is_paid_for_and_not_released(mechanism, value, sensitivity):
    """It was clipped in silence: 14 with a sensitivity of 1e-15 came out as .0625 +- 1e-15."""
    ledger = PrivacyAccountant(":memory:", epsilon=5, delta=0.1)
    noise = {"mechanism": mechanism, "sensitivity": sensitivity, "accountant": ledger}
    with pytest.raises(PrivateEvaluationError, match="beyond the range of the noise") as caught:
        release(lambda X: np.array(value) * np.any(X % 1), X, **noise)  # made-up ones are whole
    assert f"{value:g}" not in str(caught.value)
    assert ledger.total().epsilon == 1.0


def test_the_range_of_the_noise_is_named_where_a_value_may_reach_it():
    options = {"n_samples": 60, "like": X, "sensitivity": 1.0}
    plan = plan_release(np.sum, mechanism=LaplaceMechanism(1e8), **options)
    for text in (plan, plan.guarantee):
        assert "numbers beyond 5.2e+05 are not released" in " ".join(str(text).split())
    with pytest.raises(PrivateEvaluationError, match=r"the noise, which is 5.2e\+05, and"):
        plan.execute(1e6 * X)
    assert "beyond" not in str(plan_release(np.sum, mechanism=LAPLACE, **options))


@pytest.mark.loop(
    ("low", "width", "n"), [(1.7e9, 86400, 1000), (1.7e18, 1e9, 1000), (-1e9, 1.0, 10_000)]
)
@pytest.mark.loop("mechanism", [LAPLACE, GaussianMechanism(1.0, 1e-5)])
def test_a_mean_far_from_zero_pays_for_its_rounding(low, width, n, mechanism):
    records = low + width * np.random.default_rng(0).uniform(size=n)
    with warnings.catch_warnings():
        # they are far from 0 on purpose
        warnings.filterwarnings("ignore", "The 'ranges' of mean_bound")
        bound = mean_bound(n, ranges=(low, low + width))
    released = release(np.mean, records, mechanism=mechanism, sensitivity=bound)
    assert abs(released.value - records.mean()) < 40 * released.standard_errors
    changes, rng = [], np.random.default_rng(1)
    for _ in range(20):
        others = low + width * rng.uniform(size=n - 1)
        ends = np.append(others, low + width), np.append(low, others)
        changes.append(np.subtract(*map(np.mean, ends)))
    assert width / n * (1 + 1e-14) < max(changes) <= bound.value


def test_a_mean_that_the_noise_cannot_hold_is_refused_in_the_plan():
    known = KnownSensitivity(1e-6, "l1", 3, ranges=[(1e9, 1e9 + 2e-6)])
    ledger = PrivacyAccountant(":memory:", epsilon=5)
    with pytest.raises(ValueError, match=r"too large for a .* Subtract a public"):
        release(np.mean, np.full(3, 1e9), mechanism=LAPLACE, sensitivity=known, accountant=ledger)
    assert not ledger.rows()
    with pytest.warns(UserWarning, match="Subtract the middle of the ranges"):
        mean_bound(10**6, ranges=(1.7e12, 1.7e12 + 1000))


@pytest.mark.parametrize("state", ["ignore", "raise"])
def test_how_the_caller_treats_floating_point_errors_changes_nothing(state):
    """As where the kernels of a density far from a lattice point underflow."""
    target = named("underflowing", lambda X: np.mean(np.exp(-1e4 * X) + X))
    options = {"mechanism": LAPLACE, "sensitivity": FEW_PAIRS, "random_state": 0}
    usual = release(target, X, **options).value
    with np.errstate(all=state):  # of a user, which changes nothing
        assert release(target, X, **options).value == usual
