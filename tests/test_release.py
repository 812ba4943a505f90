"""release(): one path for any function."""

import datetime
import pickle
import traceback
import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.neighbors import KernelDensity

from skdp import (
    AdditiveTarget,
    BernsteinTarget,
    BernsteinTransformer,
    ExponentialMechanism,
    FunctionTarget,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PrivateEvaluationError,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
    load,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant, default_accountant
from skdp.bounds import mean_bound
from skdp.core.target import as_target

ORACLE = UniformOracle([(0, 1), (0, 1)])
X = np.random.default_rng(0).uniform(size=(60, 2))
LAPLACE = LaplaceMechanism(epsilon=1.0)
FEW_PAIRS = SensitivitySampler(ORACLE, n_pairs=19, random_state=0)


def column_means(X):
    return X.mean(axis=0)


column_means.__skdp_key__ = "column-means-v1"


def named(key, function):
    return FunctionTarget(function, key=key)


def slope(X, y):
    return float(np.polyfit(X[:, 0], y, 1)[0])


def test_value_has_the_shape_of_the_target_and_noise_on_every_coordinate():
    released = release(column_means, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))
    assert released.value.shape == (2,)
    assert np.all(released.value != column_means(X))
    assert np.ndim(release(np.mean, X, mechanism=LAPLACE, sensitivity=0.1).value) == 0


def test_infinite_epsilon_gives_the_exact_value_and_says_so():
    released = release(column_means, X, mechanism=LaplaceMechanism(np.inf), sensitivity=0.1)
    np.testing.assert_array_equal(released.value, column_means(X))
    assert "no privacy" in str(released.guarantee)


@pytest.mark.parametrize("sensitivity", [FEW_PAIRS, 0.1], ids=["sampled", "known"])
@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(1e-300),
        GaussianMechanism(1e-300, 1e-300),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_cannot_be_released_is_not_evaluated(mechanism, sensitivity):
    def target(records):
        assert not np.array_equal(records, X)
        return column_means(records)

    with pytest.raises(ValueError, match=r"epsilon|sigma|noise"):
        release(target, X, mechanism=mechanism, sensitivity=sensitivity)


def test_guarantee_of_a_sampled_sensitivity():
    sampler = SensitivitySampler(ORACLE, gamma=0.1, calibration="conditional", confidence=0.9)
    guarantee = release(column_means, X, mechanism=LAPLACE, sensitivity=sampler).guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.gamma) == (1.0, 0.0, 0.1)
    assert (guarantee.confidence, guarantee.n_samples, guarantee.seeded) == (0.9, 60, False)
    assert guarantee.oracle.startswith("UniformOracle")


def test_guarantee_of_a_known_sensitivity_is_plain():
    promise = (
        "epsilon=1 differential privacy, replace-one, n=60, "
        "sensitivity 0.0166667 asserted by the caller"
    )
    alone = ", this release alone: others of the same data add up, see skdp.accounting"
    limited = PrivacyAccountant(":memory:", epsilon=1.0)
    for accountant, end in ((default_accountant(), alone), (limited, "")):
        released = release(
            column_means, X, mechanism=LAPLACE, sensitivity=1 / 60, accountant=accountant
        )
        assert str(released.guarantee) == promise + end


def test_seeded_noise_repeats_and_is_said():
    first, second = (
        release(column_means, X, mechanism=LAPLACE, sensitivity=0.1, random_state=7)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.value, second.value)
    assert first.guarantee.seeded
    assert "whoever knows the seed" in str(first.guarantee)


def test_one_seed_shows_the_difference_of_neighbors_and_the_guarantee_says_so():
    values, neighbor = [], np.vstack([X[:-1], [0.25, 0.75]])
    for records in (X, neighbor):
        released = release(
            column_means, records, mechanism=LAPLACE, sensitivity=2 / 60, random_state=7
        )
        values.append(released.value)
    shown = values[1] - values[0]
    np.testing.assert_allclose(shown, column_means(neighbor) - column_means(X), atol=1e-5)
    assert "second release uses the seed the promise holds for no one" in str(released.guarantee)


@pytest.mark.parametrize(
    ("mechanism", "sensitivity", "messages"),
    [
        (LaplaceMechanism(20.5), 0.1, ["epsilon=20.5 is above 20"]),
        (ExponentialMechanism(21), 0.1, ["epsilon=21 is above 20"]),
        (GaussianMechanism(1.0, 0.02), 0.1, ["above one over the number of records, 0.0167"]),
        (LAPLACE, SensitivitySampler(ORACLE, gamma=0.6, n_pairs=9), ["gamma=0.6 is above 0.5"]),
        (LAPLACE, SensitivitySampler(ORACLE, gamma=None, n_pairs=1), []),
        (
            LAPLACE,
            SensitivitySampler(ORACLE, calibration="conditional", confidence=0.01),
            ["confidence=0.01 is below 0.5"],
        ),
        (LAPLACE, KnownSensitivity(0.006, "l1", 60, gamma=0.7), ["gamma=0.7 is above 0.5"]),
        (GaussianMechanism(50.0, 0.1), 0.1, ["epsilon=50 ", "delta=0.1 "]),
        (LaplaceMechanism(20), 0.1, []),
        (GaussianMechanism(1.0, 1 / 60), 0.1, []),
        (LaplaceMechanism(np.inf), 0.1, []),
    ],
)
def test_a_weak_promise_is_pointed_out_once_and_before_any_evaluation(
    mechanism, sensitivity, messages, recwarn
):
    shown = []

    def target(records):
        shown.append(len(recwarn))
        return column_means(records)

    warnings.simplefilter("always")
    known = FunctionTarget(target, key="column means")  # by its content it would be another one now
    release(known, X, mechanism=mechanism, sensitivity=sensitivity)
    assert len(recwarn) == len(messages) == min(shown)
    for warning, message in zip(recwarn, messages, strict=True):
        assert warning.category is UserWarning
        assert message in str(warning.message)
        assert "Choose" in str(warning.message)
        assert warning.filename == __file__


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
def test_noise_comes_from_no_generator_object(kind):
    def target(records):
        raise AssertionError("evaluated")

    with pytest.raises(TypeError, match="'random_state' parameter of a release must be None or"):
        release(target, X, mechanism=LAPLACE, sensitivity=0.1, random_state=kind(0))


def test_noise_has_the_scale_of_the_sensitivity():
    """Mean absolute deviation of 2,000 Laplace draws: its standard error is 1/sqrt(2000) of it.

    Five standard errors on either side: false positives below 1e-6; a factor 1.3 is caught.
    """

    def means(X):
        return np.full(2000, X.mean())

    options = {"mechanism": LaplaceMechanism(2.0), "sensitivity": 0.3, "random_state": 0}
    deviation = np.abs(release(means, X, **options).value - X.mean()).mean()
    assert deviation == pytest.approx(0.15, rel=5 / np.sqrt(2000))


def test_response_reaches_the_target():
    rng = np.random.default_rng(1)
    y = 2 * X[:, 0] + rng.normal(scale=0.1, size=60)
    oracle = PublicDataOracle(rng.uniform(size=(200, 2)), rng.uniform(size=200))
    released = release(
        slope,
        X,
        y,
        mechanism=LaplaceMechanism(100.0),
        sensitivity=SensitivitySampler(oracle, random_state=0),
        random_state=0,
    )
    assert released.value == pytest.approx(slope(X, y), abs=0.05)


def test_estimate_serves_again():
    first = release(column_means, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))
    again = release(column_means, X, mechanism=LaplaceMechanism(3.0), sensitivity=first.sensitivity)
    assert again.sensitivity is first.sensitivity
    assert (again.guarantee.epsilon, again.guarantee.gamma) == (3.0, 0.05)


BOX = BernsteinTransformer(degree=2, feature_range=(0, 1))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.mean, np.sum),
        (partial(np.quantile, q=0.5), partial(np.quantile, q=1.0)),
        (AdditiveTarget(np.sin), AdditiveTarget(np.cos)),
        (
            BernsteinTarget(named("mean", lambda X, points: points[:, 0] * X.mean()), BOX),
            BernsteinTarget(named("sum", lambda X, points: points[:, 0] * X.sum()), BOX),
        ),
    ],
    ids=["function", "partial", "additive", "box"],
)
def test_functions_of_one_name_do_not_share_an_estimate(first, second):
    """Else noise for a mean would hide a sum."""
    sampler = SensitivitySampler(ORACLE, gamma=0.1, random_state=0)
    estimate = sampler.sample(first, 60, LAPLACE.geometry)
    assert release(first, X, mechanism=LAPLACE, sensitivity=estimate).sensitivity is estimate
    with pytest.raises(ValueError, match="made for another target"):
        release(second, X, mechanism=LAPLACE, sensitivity=estimate)


@pytest.mark.parametrize(
    ("target", "records", "what"),
    [(column_means, X[:50], "number of records"), (np.mean, X, "target")],
)
def test_estimate_of_something_else_is_refused(target, records, what):
    estimate = SensitivitySampler(ORACLE).sample(column_means, 60, LAPLACE.geometry)
    with pytest.raises(ValueError, match=f"made for another {what}"):
        release(target, records, mechanism=LAPLACE, sensitivity=estimate)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (KnownSensitivity(0.1, "l1", 59), "n_samples=59"),
        (KnownSensitivity(0.1, "l2", 60), "The mechanism needs 'l1'"),
        (KnownSensitivity(0.0, "l1", 60), "sensitivity is zero"),
    ],
)
def test_known_sensitivity_of_something_else_is_refused(known, message):
    with pytest.raises(ValueError, match=message):
        release(column_means, X, mechanism=LAPLACE, sensitivity=known)


def test_known_sensitivity_brings_its_gamma():
    """Example 6 of the ICML paper: the mean of exponential records."""
    bound = KnownSensitivity(0.05, "l1", 60, gamma=0.05, preconditions="Exp(rate=1)")
    guarantee = release(np.mean, X, mechanism=LAPLACE, sensitivity=bound).guarantee
    assert guarantee.gamma == 0.05
    assert guarantee.oracle == bound.preconditions


def test_sensitivity_must_be_one():
    with pytest.raises(TypeError, match="'sensitivity' parameter must be a SensitivitySampler"):
        release(column_means, X, mechanism=LAPLACE, sensitivity="small")


@pytest.mark.parametrize("sensitivity", [ORACLE, SensitivitySampler, lambda n, rng: rng.random(n)])
def test_oracle_in_place_of_a_sampler_is_told_where_to_go(sensitivity):
    with pytest.raises(TypeError, match=r"Pass an oracle as SensitivitySampler\(oracle\)"):
        release(column_means, X, mechanism=LAPLACE, sensitivity=sensitivity)


@pytest.mark.parametrize("mechanism", [1.0, LaplaceMechanism])
def test_mechanism_must_be_one(mechanism):
    with pytest.raises(TypeError, match="'mechanism' parameter of release must be a Mechanism"):
        release(column_means, X, mechanism=mechanism, sensitivity=0.1)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_oracle_of_arrays_stands_in_for_a_frame(frame):
    def difference(records):
        return np.mean(np.asarray(records["b"]) - np.asarray(records["a"]))

    sampler = SensitivitySampler(UniformOracle([(0, 1), (100, 101)]), random_state=0)
    records = frame({"a": X[:, 0], "b": 100 + X[:, 1]})
    released = release(difference, records, mechanism=LaplaceMechanism(100.0), sensitivity=sampler)
    assert 95 < released.value < 105


def counting(function):
    def counted(X):
        counted.sizes.append(len(X))
        return function(X)

    counted.sizes = []
    return counted


def test_zero_sensitivity_releases_nothing():
    target = counting(lambda X: 3.0)
    with pytest.raises(ValueError, match="sensitivity is zero"):
        release(target, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))
    assert len(target.sizes) == 2 * 199


def test_infinite_sensitivity_names_the_causes_and_releases_nothing():
    def fail(X):
        raise FloatingPointError("did not converge")

    target = counting(fail)
    message = "199 failed.*did not converge.*leaves room for 9.*Change the oracle or the target"
    with pytest.raises(ValueError, match=message):
        release(target, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))
    assert len(target.sizes) == 199  # each fails at once


def test_responses_must_be_as_many_as_records():
    with pytest.raises(ValueError, match=r"as many responses .* Got parts of \[60, 59\]"):
        release(slope, X, X[1:, 0], mechanism=LAPLACE, sensitivity=0.1)


def test_gaps_are_for_the_function_to_judge():
    """Of 60 values of a column 54 are missing: the change of its mean is ten times larger."""
    gaps = np.random.default_rng(1).uniform(size=(1000, 2))
    gaps[np.arange(1000) % 10 > 0, 1] = np.nan
    sampler = SensitivitySampler(PublicDataOracle(gaps), random_state=0)
    full = SensitivitySampler(ORACLE, random_state=0)
    mechanism = LaplaceMechanism(1.0, code=None)
    sampled = [
        release(
            lambda X: np.nanmean(X, axis=0)[1], X, mechanism=mechanism, sensitivity=each
        ).sensitivity.value
        for each in (sampler, full)
    ]
    assert sampled[0] > 3 * sampled[1]
    with pytest.raises(ValueError, match=r"199 failed .*'the value is not finite'"):
        release(np.mean, X, mechanism=LAPLACE, sensitivity=sampler)


def test_larger_gamma_is_advised_where_it_may_help():
    def choosy(X):
        assert X[-1, 0] > 0.5
        return X.mean()

    with pytest.raises(ValueError, match="the target, allow a larger gamma, or take more"):
        release(choosy, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (lambda X: None, "returned None"),
        (
            lambda X: X[X[:, 0] > 0.5, 0],
            "must return as many values on every|the shape of the value changed",
        ),
    ],
    ids=["none", "ragged"],
)
def test_target_that_returns_something_else_is_told(target, message):
    with pytest.raises(ValueError, match=message):
        release(target, X, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))


def test_labels_of_a_value_are_refused_before_anything_is_spent():
    """They follow the records: which groups there are, and in the order of their counts."""
    day = datetime.datetime(2000, 1, 1)
    table = {"age": X[:, 0].tolist(), "group": list("abc") * 20, "day": [day] * 60}
    cases = [
        (pd.DataFrame, lambda X: X["group"].value_counts(), "pandas.Series"),
        (pd.DataFrame, lambda X: X.mean(numeric_only=True), "pandas.Series"),
        (pd.DataFrame, lambda X: [X.groupby("group")[["age"]].mean()], "pandas.DataFrame"),
        (
            lambda table: pd.DataFrame(table).astype({"group": "category"}),
            lambda X: X["group"].cat.codes.value_counts(),
            "pandas.Series",
        ),
        (lambda table: pd.Series(table["group"]), lambda X: dict(X.value_counts()), "dict"),
        (pl.DataFrame, lambda X: X.group_by("group").len()["len"], "polars.Series"),
    ]
    ledger = PrivacyAccountant(":memory:", epsilon=2.0)
    sensitivities = [SensitivitySampler(PublicDataOracle(cases[0][0](table))), *[2.0] * 5]
    for (made_of, counts, kind), sensitivity in zip(cases, sensitivities, strict=True):
        options = {"mechanism": LAPLACE, "sensitivity": sensitivity, "accountant": ledger}
        with pytest.raises(TypeError, match=rf"lambda> returned a {kind}\. .*reindex\("):
            release(counts, made_of(table), **options)
    assert not ledger.rows()
    with pytest.raises(TypeError, match=r"a dict\."):
        release(lambda X: {"n": len(X)}, X, **options | {"sensitivity": FEW_PAIRS})
    tables = options | {"sensitivity": sensitivities[0]}
    share = AdditiveTarget(lambda X: X["group"] == "a")
    assert release(share, pd.DataFrame(table), **tables).value.shape == ()
    with pytest.raises(TypeError, match=r"a pandas.DataFrame\."):
        release(AdditiveTarget(lambda X: pd.get_dummies(X["group"])), pd.DataFrame(table), **tables)


def test_bad_mechanism_is_refused_before_any_evaluation():
    target = counting(np.mean)
    with pytest.raises(ValueError, match="'epsilon'"):
        release(target, X, mechanism=LaplaceMechanism(-1.0), sensitivity=SensitivitySampler(ORACLE))
    assert not target.sizes


@pytest.mark.parametrize("records", [X[:, :1], X.ravel()])
def test_oracle_of_another_schema_is_refused_before_any_evaluation(records):
    target = counting(np.mean)
    with pytest.raises(ValueError, match="The oracle UniformOracle"):
        release(target, records, mechanism=LAPLACE, sensitivity=SensitivitySampler(ORACLE))
    assert not target.sizes


SECRET = 0.123456789


@pytest.mark.parametrize(
    "fail",
    [
        lambda X: (_ for _ in ()).throw(ValueError(f"bad record {X[0, 0]}")),
        lambda X: np.array([X[0, 0], np.nan]),
        lambda X: X[0],
        lambda X: [X[0, 0], "x"],
    ],
    ids=["raises", "not finite", "another shape", "no numbers"],
)
def test_private_failure_says_nothing_of_the_data(fail):
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


def test_success_on_public_records_is_claimed_only_where_there_were_some():
    def fail(X):
        raise ValueError(f"bad record {SECRET}")

    with (
        pytest.warns(UserWarning, match="raised ValueError on made-up numbers"),
        pytest.raises(PrivateEvaluationError, match=r"Try it on public records first\.$"),
    ):
        release(fail, X, mechanism=LAPLACE, sensitivity=0.1)


def test_private_warnings_are_silent(recwarn):
    def warn(X):
        np.log(-X.mean())
        import warnings

        warnings.warn(f"record {X[0, 0]}", RuntimeWarning, stacklevel=1)
        return X.mean()

    release(warn, X, mechanism=LAPLACE, sensitivity=0.1)
    assert not recwarn.list


def unit_length(records):
    column = records[:, 0]
    return np.array([np.linalg.norm(column / np.linalg.norm(column)), 5.0])


def shares(records):
    """Numbers that add up to 1, and to nothing else."""
    return (records / records.sum()).sum()


@pytest.mark.parametrize(
    "target",
    [
        named("length", unit_length),
        named("shares", shares),
        AdditiveTarget(named("sums", lambda X: X[:, :1] * 1e-15 + 1.0)),
    ],
    ids=["length", "shares", "sums"],
)
def test_a_sensitivity_of_rounding_errors_is_refused(target):
    """Noise of that size would hide nothing, and the lattice ends before the value is reached."""
    sampler = SensitivitySampler(ORACLE, random_state=0)
    estimate = sampler.sample(target, 60, LAPLACE.geometry)
    assert 0 <= estimate.value < 1e-13
    assert estimate.is_rounding
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
    assert not plan.sensitivity.is_rounding


def test_a_trial_shows_no_category_of_the_data(capfd):
    def talkative(X):
        print(X["kind"].cat.categories.tolist())
        warnings.warn(str(X["kind"].cat.categories), stacklevel=1)
        return len(X)

    X = pd.DataFrame({"kind": pd.Categorical(["rare disease"] * 3)})
    release(talkative, X, mechanism=LaplaceMechanism(1.0), sensitivity=1)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_saved_release_shows_no_category_of_the_data(tmp_path, kind):
    """Pandas reads them off the records, and one may be of a single person."""
    towns = ["north", "south"] * 30 + ["Xanadu"]
    if kind == "pandas":
        towns = pd.Series(towns).astype("category")
    else:
        towns = pl.Series(towns, dtype=pl.Enum(["north", "south", "Xanadu"]))
    counts = release(
        lambda t: np.array([sum(x == "north" for x in t), sum(x == "south" for x in t)]),
        towns,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=2,
    )
    counts.save(tmp_path / "counts")
    for file in (tmp_path / "counts").iterdir():
        assert b"Xanadu" not in file.read_bytes()
    assert b"Xanadu" not in pickle.dumps(counts.simulator.schema)
    assert load(tmp_path / "counts").value_interval(0.9).shape == (2, 2)


def test_a_function_is_called_by_the_name_that_it_was_given():
    given = lambda X: X.sum()  # noqa: E731 - as in a loop that names what it makes
    given.__name__ = "count_rooms"
    described = [as_target(each).description for each in (given, partial(partial(np.sum), axis=0))]
    assert described == [f"{__name__}.count_rooms", "numpy.sum"]


def test_no_budget_is_missed_by_what_is_refused(tmp_path):
    PrivacyAccountant(tmp_path / "ledger.db", epsilon=1.0)
    with pytest.raises(TypeError, match="returned a dict"):  # and no warning, which were an error
        release(lambda X: {"a": 1.0}, X, mechanism=LaplaceMechanism(1.0), sensitivity=1.0)


@pytest.mark.loop("mechanism", [LAPLACE, L2LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5)])
@pytest.mark.loop(("value", "sensitivity"), [(14.0, 1e-15), (-1.7e18, 1e-3), (1e300, 1.0)])
def test_a_value_beyond_the_noise_is_paid_for_and_not_released(mechanism, value, sensitivity):
    """It was clipped in silence: 14 with a sensitivity of 1e-15 came out as .0625 +- 1e-15."""
    ledger = PrivacyAccountant(":memory:", epsilon=5, delta=0.1)
    noise = {"mechanism": mechanism, "sensitivity": sensitivity, "accountant": ledger}
    with pytest.raises(PrivateEvaluationError, match="beyond the range of the noise") as caught:
        release(lambda X: np.array(value), X, **noise)
    assert f"{value:g}" not in str(caught.value)
    assert ledger.total().epsilon == 1.0


@pytest.mark.loop(
    ("low", "width", "n"), [(1.7e9, 86400, 1000), (1.7e18, 1e9, 1000), (-1e9, 1.0, 10_000)]
)
@pytest.mark.loop("mechanism", [LAPLACE, GaussianMechanism(1.0, 1e-5)])
def test_a_mean_far_from_zero_pays_for_its_rounding(low, width, n, mechanism):
    records = low + width * np.random.default_rng(0).uniform(size=n)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The 'ranges' of mean_bound")
        bound = mean_bound(n, ranges=(low, low + width))
    released = release(np.mean, records, mechanism=mechanism, sensitivity=bound)
    assert abs(released.value - records.mean()) < 40 * released.standard_errors
    neighbor = np.append(records[1:], low + width)[np.random.default_rng(1).permutation(n)]
    assert abs(np.mean(records) - np.mean(neighbor)) <= bound.value


def test_a_mean_that_the_noise_cannot_hold_is_refused_in_the_plan():
    known = KnownSensitivity(1e-6, "l1", 3, ranges=[(1e9, 1e9 + 2e-6)])
    ledger = PrivacyAccountant(":memory:", epsilon=5)
    with pytest.raises(ValueError, match="Subtract the middle of the ranges"):
        release(np.mean, np.full(3, 1e9), mechanism=LAPLACE, sensitivity=known, accountant=ledger)
    assert not ledger.rows()
    with pytest.warns(UserWarning, match="Subtract the middle of the ranges"):
        mean_bound(10**6, ranges=(1.7e12, 1.7e12 + 1000))


def underflowing(X):
    return np.mean(np.exp(-1e4 * X) + X)


@pytest.mark.parametrize("state", ["ignore", "raise"])
def test_how_the_caller_treats_floating_point_errors_changes_nothing(state):
    """The kernels of a density far from a lattice point underflow, and so does this function."""
    records = np.random.default_rng(0).beta(2, 5, (60, 1))
    box = BernsteinTransformer(10, feature_range=(0, 1))

    def outcome():
        density = PrivateEstimator(
            KernelDensity(bandwidth=0.1),
            mechanism=LAPLACE,
            sensitivity="known",
            release=box,
            random_state=0,
        ).fit(records)
        sampler = SensitivitySampler(UniformOracle([(0, 1)]), n_pairs=19, random_state=0)
        options = {"mechanism": LAPLACE, "sensitivity": sampler, "random_state": 0}
        return (
            density.standard_errors_,
            density.score_samples(records),
            release(underflowing, records, **options).value,
        )

    usual = outcome()
    with np.errstate(all=state):
        again = outcome()
    for one, other in zip(usual, again, strict=True):
        np.testing.assert_array_equal(one, other)
