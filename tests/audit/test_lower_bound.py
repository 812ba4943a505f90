"""audit_epsilon: level on honest mechanisms, power on broken ones, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdp.audit import audit_epsilon
from skdp.audit.certificates import label_bound
from skdp.audit.outputs import as_outputs
from tests.gallery import BROKEN, HONEST, Case, GaussianNoise, LaplaceNoise, RandomizedResponse

REPETITIONS = 100
# 24 tests of a bound whose level is .05 or less: more than this many of 100 repetitions above the
# truth have probability 1e-6 in each, 3e-5 in all. A bound that is above the truth in a quarter of
# the repetitions is found with probability .93, in a third with probability .999. Of this, .04 and
# .005 are lost because repetitions end where at most 2 of the first 24 are above.
MOST = int(stats.binom.isf(1e-6, REPETITIONS, 0.05))
N_FIRST, FEW = 24, 2
STRICT = {"claimed_epsilon": 1.0, "alpha": 1e-4, "rng": 0}
EACH = ("label", "pair", "local")
UNSUITED = {("histogram", "pair"), ("histogram", "local"), ("sparse vector", "local")}


def audit(case, seed, **options):
    options = {"claimed_epsilon": case.claimed_epsilon} | options
    return audit_epsilon(case.mechanism, [case.pair], rng=seed, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method"),
    [(name, method) for name in HONEST for method in EACH if (name, method) not in UNSUITED],
)
def test_bound_is_below_the_truth(name, method):
    """The local bound is approximate: a level of .08, at sizes that let a density be estimated."""
    repetitions, level, sizes = REPETITIONS, 0.05, {"n_search": 500, "n_final": 2000}
    if method == "local":
        repetitions, level, sizes = 40, 0.08, {"n_search": 5000, "n_final": 25_000}
    if name == "histogram":  # each audit learns three classifiers
        repetitions = 12
    case, above = HONEST[name], 0
    for seed in range(repetitions):
        if seed == N_FIRST and above <= FEW:
            break
        above += audit(case, seed, method=method, **sizes).lower_bound > case.true_epsilon + 1e-12
    assert above <= stats.binom.isf(1e-6, repetitions, level)


def test_the_same_runs_for_search_and_bound_would_be_caught():
    # The mistake that audits are prone to: report the best of many thresholds, seen on one sample.
    case, above = HONEST["Laplace"], 0
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        x, y = (np.sort(case.mechanism(dataset, 2000, rng)) for dataset in case.pair)
        right = np.searchsorted(x, x, side="right")
        wrong = np.searchsorted(y, x, side="right")
        above += label_bound(right, right + wrong, 0.05).max() > case.true_epsilon
    assert above > MOST


# What the rules reached in each of twelve seeds, less some slack.
REACHED = {
    "Laplace, half the noise": 1.8,
    "max value": 1.9,
    "sparse vector, no cutoff": 1.5,
    "sparse vector, no query noise": 8.0,
    "prefix sums": 0.35,
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanism_is_caught(name):
    case = BROKEN[name]
    result = audit(case, seed=0, n_search=5000, n_final=50_000)
    assert result.violated
    assert str(result).startswith("violation found")
    assert result.lower_bound <= case.true_epsilon + 0.05
    assert result.lower_bound > REACHED.get(name, case.claimed_epsilon)


@pytest.mark.parametrize("method", EACH)
def test_each_method_catches_the_broken_and_sees_the_honest_clearly(method):
    # At alpha 1e-4 and nine tests the false-positive rate is below 1e-3.
    for name in ("Laplace, half the noise", "coin-flip response", "max value"):
        assert audit(BROKEN[name], seed=0, method=method).violated
    for name in ("Laplace", "10-ary response", "Laplace clamped"):
        result = audit(HONEST[name], seed=0, method=method, alpha=1e-4)
        assert not result.violated
        assert 0.85 < result.lower_bound < 1.0
        assert re.match("none found above .* cannot see beyond .* shows in none of", str(result))
        assert "verified" not in str(result)


def test_delta_is_audited_by_the_pair_test():
    # N(x, sigma) at the analytic sigma of (1, .01) is honest and at half of it is not.
    honest, broken = (Case(GaussianNoise(s * 1.877876), (0.0, 1.0)) for s in (1, 0.5))
    options = {"delta": 0.01, "method": "pair", "alpha": 1e-4}
    result = audit(honest, 0, **options)
    assert not result.violated
    assert result.lower_bound > 0.5
    assert "delta=0.01" in str(result)
    assert audit(broken, 0, **options).violated


def test_several_pairs_cost_no_confidence_and_the_worst_is_found():
    pairs = [(0.0, 0.1), (0.0, 1.0), (0.0, 0.5)]
    result = audit_epsilon(LaplaceNoise(0.5), pairs, claimed_epsilon=1.0, rng=0)
    assert (result.pair, result.violated, result.sizes["n_pairs"]) == (1, True, 3)


def test_the_seed_repeats_the_audit():
    case = HONEST["geometric clipped"]
    for rng in (None, np.random.default_rng(1)):
        result = audit(case, rng, n_search=1000, n_final=1000)
        assert audit(case, result.seed, n_search=1000, n_final=1000) == result
    few = audit(Case(RandomizedResponse(0.75), (0, 1)), 0, n_search=100, n_final=1)
    assert 0.0 <= few.lower_bound <= few.resolution


BIG = 2**60 + 1
SAME = [
    [0, 1, 3],
    np.array([0, 1, 3], dtype=np.float16),
    np.array([0, 1, 3], dtype=object),
    np.array(["0", "1.0", "3"]),
    [np.array(0.0), np.array(1), np.array(3)],
    pd.Series([0, 1, 3], dtype="Int64"),
    pd.Categorical([0, 1, 3]),
]


@pytest.mark.loop("sample", SAME)
def test_an_output_is_the_same_in_every_container(sample):
    """What numpy makes of a whole sample must not tell the datasets apart."""
    outputs = as_outputs(sample)
    assert outputs.values.ravel().tolist() == [0.0, 1.0, 3.0]
    assert outputs.rows.tolist() == as_outputs([0.0, 1.0, 3.0]).rows.tolist()


def test_outputs_that_differ_stay_apart():
    wide = [[BIG, BIG - 1], np.array([BIG, BIG - 1], np.uint64), [str(BIG), BIG - 1]]
    keys = {tuple(as_outputs(sample).rows) for sample in wide}
    assert len(keys) == 1
    assert len(set(*keys)) == 2
    assert as_outputs([True, False]).rows.tolist() == as_outputs(["True", 0]).rows.tolist()
    assert as_outputs([10**400, "a"]).values[0] == np.inf
    words = (
        [[1], [1, 2], [1]],
        np.array([1j, 2j, 1j]),
        np.array(["2020", "NaT", "2020"], "M8[D]"),
        np.array([(1, 0.5), (2, 0.5), (1, 0.5)], dtype="i4,f4"),
    )
    assert [len(set(as_outputs(each).rows)) for each in words] == [2] * 4
    assert len(set(as_outputs(np.array([0.0, -0.0, np.nan, -np.nan, np.inf])).rows)) == 4


def laplace(x, n, rng):
    return np.round(x + rng.laplace(size=n), 6)


@pytest.mark.parametrize("kind", [np.float16, np.longdouble, object, str])
def test_outputs_of_any_type_are_audited(kind):
    """Half the noise is found in any type, and none where the noise is honest."""
    for method in EACH:
        broken, honest = (
            audit_epsilon(
                lambda x, n, rng: laplace(x, n, rng).astype(kind), [(0, change)], method=method,
                n_search=1000, n_final=4000, **STRICT,
            ).violated
            for change in (2, 1)
        )  # fmt: skip
        assert (broken, honest) == (True, False)


def with_bit(k):
    """Put the dataset, 0 or 1, into the k-th last bit of a value that is noise alone."""

    def mechanism(x, n, rng):
        bits = rng.laplace(scale=3.0, size=n).view(np.int64)
        return ((bits & ~(1 << k)) | (int(x) << k)).view(np.float64)

    return mechanism


def on_lattice(step, offset):
    """Return multiples of a step, plus an offset on the second dataset."""

    def mechanism(x, n, rng):
        return step * np.round(rng.laplace(scale=3.0 / step, size=n)) + x * offset

    return mechanism


def sometimes(special, share):
    """Return the dataset itself, or something special on the first one, now and then."""

    def mechanism(x, n, rng):
        outputs, found = laplace(x, n, rng), rng.random(n) < share
        if special is None:
            return np.where(found, x, outputs)
        return np.where(found, special, outputs) if x == 0 else outputs

    return mechanism


SPECIAL, DIGITS = (np.nan, -np.inf), ("label", "pair")
LEAKS = {
    "last bit": (with_bit(0), DIGITS, 4.0, "trailing zeros"),
    "a further bit": (with_bit(5), DIGITS, 4.0, "trailing zeros"),
    "coarse lattice": (on_lattice(0.2, 0.1), DIGITS, 4.0, "residues|atoms"),
    "lattice of bits": (on_lattice(2.0**-40, 2.0**-42), DIGITS, 4.0, "residues|trailing zeros"),
    "bit of a column": (
        lambda x, n, rng: np.stack([rng.laplace(size=n), with_bit(0)(x, n, rng)], axis=1),
        *(DIGITS, 4.0, "trailing zeros"),
    ),
    **{f"always {each}": (sometimes(each, 1.0), EACH, 6.0, "") for each in SPECIAL},
    **{f"rarely {each}": (sometimes(each, 0.05), EACH, 4.0, "") for each in SPECIAL},
    # one output in a thousand is the exact value; the pair test counts on one side only
    "rarely exact": (sometimes(None, 0.001), ("label",), 2.0, ""),
    "twice as often": (sometimes(None, 0.002), ("pair",), 2.0, ""),
    "a word among numbers": (
        lambda x, n, rng: [v if v > -2 - 3 * x else None for v in laplace(x, n, rng)],
        *(("label",), 1.5, ""),
    ),
    "sign of zero": (lambda x, n, rng: np.copysign(np.zeros(n), x - 0.5), EACH, 6.0, ""),
    "large integers": (lambda x, n, rng: np.full(n, 2**60 + int(x)), EACH, 6.0, ""),
}


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, each in LEAKS.items() for method in each[1]]
)
def test_a_leak_in_digits_or_special_outputs_is_found(name, method):
    leak, _, least, word = LEAKS[name]
    fewer = {"n_search": 5000, "n_final": 50_000}
    options = STRICT | ({"alpha": 0.05} if least == 2.0 else fewer)
    result = audit_epsilon(leak, [(0.0, 1.0)], method=method, **options)
    assert result.lower_bound > least
    assert re.search(word, result.event)
    sizes = {"n_search": 2000, "n_final": 20_000}
    assert not audit_epsilon(leak, [(1.0, 1.0)], method=method, **sizes, **STRICT).violated


@pytest.mark.parametrize(
    "written",
    [lambda v: np.rint(1000 * v).astype(int), lambda v: np.clip(v, 0, 1).astype(np.float16)],
    ids=["thousandths", "float16 with atoms"],
)
def test_the_local_method_sees_densities_in_low_resolution(written):
    """As in full resolution: in all of six seeds each, at sizes of the defaults."""
    for seed in range(2):
        result = audit_epsilon(
            lambda x, n, rng: written(x + rng.laplace(size=n)), [(0.0, 1.0)],
            claimed_epsilon=1.0, method="local", rng=seed, alpha=0.01,
        )  # fmt: skip
        assert 0.9 < result.lower_bound <= 1.02


def word_on_one(x, n, rng):
    """On one dataset a word turns all numbers of a sample into text."""
    outputs = rng.integers(5, size=n).tolist()
    return np.array(["none", *outputs[1:]] if x else outputs)


@pytest.mark.parametrize(
    "mechanism",
    [lambda x, n, rng: np.zeros(n), lambda x, n, rng: rng.normal(size=n), word_on_one],
    ids=["constant", "noise alone", "conversion of a sample"],
)
def test_a_mechanism_that_ignores_its_data_is_not_accused(mechanism):
    options = STRICT | {"claimed_epsilon": 0.1, "n_search": 2000, "n_final": 5000}
    for method in EACH:
        assert not audit_epsilon(mechanism, [(0, 1)], method=method, **options).violated


def columns(width, method="label"):
    """An audit of a mechanism whose outputs have so many columns, on a dataset and in n runs."""
    return {"mechanism": lambda x, n, rng: rng.random((n, width(x, n))), "method": method}


@pytest.mark.loop(
    ("options", "message"),
    [
        ({"pairs": []}, "'pairs'"),
        ({"pairs": [0.0, 1.0]}, "'pairs'"),
        ({"claimed_epsilon": -1.0}, "'claimed_epsilon'"),
        ({"delta": 1.0, "method": "pair"}, "'delta' .* Got 1.0"),
        ({"delta": 0.1}, "'delta' .* Got 0.1"),
        ({"delta": 0.1, "method": "local"}, "'delta'"),
        ({"n_search": 99}, "'n_search' .* at least 100. Got 99"),
        ({"n_final": 0}, "'n_final' .* at least 1. Got 0"),
        ({"alpha": 0.0}, "'alpha' .* Got 0.0"),
        ({"method": "guess"}, "'method' .* Got 'guess'"),
        ({"mechanism": lambda x, n, rng: np.zeros(n + 1)}, "return n=500"),
        ({"mechanism": lambda x, n, rng: 0.0}, "return n=500"),
        (columns(lambda x, n: 5, "local"), "one column"),
        *((columns(lambda x, n: 2 + int(x), method), "one shape") for method in EACH),
        *((columns(lambda x, n: 2 + (n > 500), method), "one shape") for method in DIGITS),
    ],
)
def test_bad_calls_are_refused(options, message):
    """Also where shapes differ between the datasets, and between search runs and final ones."""
    usual = {"mechanism": LaplaceNoise(1.0), "pairs": [(0.0, 1.0)], "claimed_epsilon": 1.0}
    with pytest.raises(ValueError, match=message):
        audit_epsilon(**(usual | {"n_search": 500, "n_final": 600, "rng": 0} | options))
