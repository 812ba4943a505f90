"""The three calibrations against the numbers of theory and against exact arithmetic."""

import math
import pickle
import re
from dataclasses import FrozenInstanceError, asdict, replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw
from scipy.stats import binom, poisson

from skdp.sensitivity.calibration import OrderStatistic, order_statistic

CALIBRATIONS = ["exact", "dkw", "conditional"]
N_EXAMPLES = 15  # where one takes long; they differ from run to run
gammas = st.integers(1, 999).map(lambda thousandths: thousandths / 1000)
calibrations = st.sampled_from(CALIBRATIONS)


# Numbers worked out beforehand


@pytest.mark.loop(
    ("gamma", "n_pairs"), [(0.2, 61), (0.1, 285), (0.05, 1305), (0.01, 41971), (0.001, 5486187)]
)
def test_dkw_fewest_pairs(gamma, n_pairs):
    statistic = order_statistic(gamma, calibration="dkw")
    assert (statistic.n_pairs, statistic.k) == (n_pairs, n_pairs)
    # Row 1 of Table 1 in closed form, with its own rho, is the same number.
    rho = math.exp(lambertw(-gamma / (2 * math.sqrt(math.e)), -1).real + 0.5)
    assert math.ceil(-math.log(rho) / (2 * (gamma - rho) ** 2)) == n_pairs


@pytest.mark.loop(
    ("calibration", "gamma", "n_pairs", "k"),
    [
        ("dkw", 0.05, 1500, 1496),
        ("dkw", 0.1, 8000, 7374),
        # Origin: ceil(.95 (1e7 + 1)); row 2 of Table 1; binom.ppf(.95, 1e7, .95) + 1.
        ("exact", 0.05, 10**7, 9500001),
        ("dkw", 0.05, 10**7, 9507513),
        ("conditional", 0.05, 10**7, 9501134),
    ],
)
def test_index(calibration, gamma, n_pairs, k):
    assert order_statistic(gamma, n_pairs, calibration=calibration).k == k


@pytest.mark.loop(
    ("n_pairs", "gamma"), [(50, 0.2170), (100, 0.1597), (1500, 0.0469), (50000, 0.0092)]
)
def test_dkw_attainable_gamma(n_pairs, gamma):
    statistic = order_statistic(n_pairs=n_pairs, calibration="dkw")
    assert (round(statistic.gamma, 4), statistic.k) == (gamma, n_pairs)
    assert statistic.rho < statistic.gamma


@pytest.mark.parametrize(("gamma", "fewest"), [(0.1, 9), (0.05, 19), (0.01, 99), (0.001, 999)])
def test_exact_numbers(gamma, fewest):
    assert order_statistic(gamma, fewest).k == fewest
    assert order_statistic(n_pairs=fewest).gamma == gamma
    usual = order_statistic(gamma)
    assert (usual.n_pairs, usual.k) == (10 * (fewest + 1) - 1, 10 * fewest)
    with pytest.raises(ValueError, match=f"Raise n_pairs to at least {fewest}[.]$"):
        order_statistic(gamma, fewest - 1)


@pytest.mark.parametrize(
    ("gamma", "confidence", "n_pairs"),
    [(0.05, 0.95, 59), (0.01, 0.95, 299), (0.1, 0.95, 29), (0.01, 0.99, 459)],
)
def test_conditional_fewest_pairs(gamma, confidence, n_pairs):
    statistic = order_statistic(gamma, calibration="conditional", confidence=confidence)
    assert (statistic.n_pairs, statistic.k) == (n_pairs, n_pairs)
    assert math.ceil(math.log(1 - confidence) / math.log(1 - gamma)) == n_pairs


@pytest.mark.loop("confidence", [0.5, 0.95, 0.999])
@pytest.mark.loop("gamma", [0.001, 0.05, 0.3, 0.7, 0.999])
@pytest.mark.loop("n_pairs", [8000, 10**5, 10**7])
def test_conditional_index_against_scipy(n_pairs, gamma, confidence):
    statistic = order_statistic(gamma, n_pairs, calibration="conditional", confidence=confidence)
    assert statistic.k == binom.ppf(confidence, n_pairs, 1 - gamma) + 1


def test_conditional_index_where_gamma_is_lost_beside_one():
    """Pairs beyond gamma are Poisson of 9.45; with 1 - gamma in doubles they would be of 8.99."""
    n_pairs = 9 * 10**15
    statistic = order_statistic(1.05e-15, n_pairs, calibration="conditional", confidence=0.9)
    assert statistic.k == n_pairs - 5
    assert poisson.cdf(5, 9.45) < 0.1 < poisson.cdf(6, 9.45)


# The side of rounding, in exact arithmetic


@pytest.mark.loop(
    ("gamma", "n_pairs", "k"),
    [
        (0.3, 9, 7),
        (0.1, 9, 9),
        (0.05, 19, 19),
        (0.03, 99, 97),
        (0.172, 249, 207),
        (0.059, 999, 941),
    ],
)
def test_gamma_is_the_decimal_that_was_typed(gamma, n_pairs, k):
    # The binary value of gamma is one off at .03, the floating-point product at .172.
    assert order_statistic(gamma, n_pairs).k == k
    assert order_statistic(np.float64(gamma), np.int64(n_pairs)) == order_statistic(gamma, n_pairs)


@settings(deadline=None)
@given(st.integers(1, 9999), st.integers(1, 10**6))
def test_exact_index_is_the_smallest(ten_thousandths, n_pairs):
    gamma = Fraction(ten_thousandths, 10_000)
    if gamma * (n_pairs + 1) < 1:
        with pytest.raises(ValueError, match="must be at least"):
            order_statistic(ten_thousandths / 10_000, n_pairs)
        return
    k = order_statistic(ten_thousandths / 10_000, n_pairs).k
    assert 1 - Fraction(k, n_pairs + 1) <= gamma < 1 - Fraction(k - 1, n_pairs + 1)


@settings(deadline=None)
@given(st.integers(1, 10**9))
def test_exact_gamma_is_the_smallest_float(n_pairs):
    gamma = order_statistic(n_pairs=n_pairs).gamma
    below = math.nextafter(gamma, 0)
    assert Fraction(repr(below)) < Fraction(1, n_pairs + 1) <= Fraction(repr(gamma))


def lower_binomial(k, n_pairs, gamma):
    """Pr(Binomial(n_pairs, 1 - gamma) <= k - 1) as a fraction, term by term."""
    terms = (math.comb(n_pairs, i) * (1 - gamma) ** i * gamma ** (n_pairs - i) for i in range(k))
    return sum(terms, Fraction(0))


@settings(deadline=None, max_examples=N_EXAMPLES)
@given(st.integers(1, 99), st.sampled_from([50, 75, 80, 90, 95, 99]), st.integers(1, 60))
def test_conditional_index_is_the_smallest(hundredths, percent, n_pairs):
    gamma, confidence = Fraction(hundredths, 100), Fraction(percent, 100)
    call = {"calibration": "conditional", "confidence": percent / 100}
    if lower_binomial(n_pairs, n_pairs, gamma) < confidence:
        with pytest.raises(ValueError, match="must be at least"):
            order_statistic(hundredths / 100, n_pairs, **call)
        return
    k = order_statistic(hundredths / 100, n_pairs, **call).k
    assert lower_binomial(k - 1, n_pairs, gamma) < confidence
    assert lower_binomial(k, n_pairs, gamma) >= confidence


@settings(deadline=None, max_examples=N_EXAMPLES)
@given(st.integers(1, 1000), st.sampled_from([0.01, 0.5, 0.95, 0.999, 0.999999999]))
def test_conditional_gamma_is_the_smallest_float(n_pairs, confidence):
    call = {"calibration": "conditional", "confidence": confidence}
    gamma = order_statistic(n_pairs=n_pairs, **call).gamma
    beta = 1 - Fraction(repr(confidence))
    below = math.nextafter(gamma, 0)
    assert (1 - Fraction(repr(gamma))) ** n_pairs <= beta < (1 - Fraction(repr(below))) ** n_pairs


def test_doubt_is_settled_toward_privacy():
    # Pr(Binomial(m, 1/2) <= (m - 1)/2) is 1/2 for odd m. Up to 1000 pairs the tie is decided in
    # integers; beyond, no float can tell, and the index is one higher rather than one lower.
    call = {"calibration": "conditional", "confidence": 0.5}
    assert order_statistic(0.5, 999, **call).k == 500
    assert order_statistic(0.5, 1001, **call).k == 502
    assert order_statistic(0.75, 1, calibration="conditional", confidence=0.75).k == 1


@settings(deadline=None)
@given(st.integers(2, 10**9), gammas)
def test_dkw_is_right_to_the_last_digits(n_pairs, gamma):
    statistic = order_statistic(n_pairs=n_pairs, calibration="dkw")
    with localcontext() as context:
        context.prec = 50
        rho = Decimal(statistic.rho)
        bound = rho + (-rho.ln() / (2 * n_pairs)).sqrt()
        assert bound <= Decimal(repr(statistic.gamma)) <= bound * (1 + Decimal("1e-14"))
        for other in (rho * Decimal("0.999"), rho * Decimal("1.001")):
            assert other + (-other.ln() / (2 * n_pairs)).sqrt() > bound
        if gamma >= statistic.gamma:
            k = order_statistic(gamma, n_pairs, calibration="dkw").k
            exact = n_pairs * (1 - Decimal(repr(gamma)) + bound)
            assert exact <= k <= exact + 1 + n_pairs * Decimal("1e-14")


# Relations between the three questions


@settings(deadline=None, max_examples=N_EXAMPLES)
@given(st.integers(2, 10**7), calibrations)
def test_attainable_gamma_is_the_smallest_and_is_named(n_pairs, calibration):
    statistic = order_statistic(n_pairs=n_pairs, calibration=calibration)
    assert statistic.k == n_pairs
    assert order_statistic(statistic.gamma, n_pairs, calibration=calibration) == statistic
    if calibration != "exact":
        assert order_statistic(statistic.gamma, calibration=calibration).n_pairs <= n_pairs
    with pytest.raises(ValueError, match=re.escape(f"at least {statistic.gamma!r} for")):
        order_statistic(math.nextafter(statistic.gamma, 0), n_pairs, calibration=calibration)


# The value, and what is refused


def test_order_statistic_is_a_plain_frozen_value():
    statistic = order_statistic(0.05, calibration="conditional")
    assert statistic == OrderStatistic(59, 59, 0.05, "conditional", confidence=0.95)
    assert OrderStatistic(**asdict(statistic)) == statistic
    assert pickle.loads(pickle.dumps(statistic)) == statistic
    assert hash(statistic) == hash(replace(statistic))
    with pytest.raises(FrozenInstanceError):
        statistic.k = 1


@pytest.mark.loop(
    ("changes", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 200}, "k"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.0}, "gamma"),
        ({"gamma": math.nan}, "gamma"),
        ({"calibration": "bootstrap"}, "calibration"),
        ({"confidence": 0.95}, "confidence"),
        ({"calibration": "conditional", "confidence": 1.0}, "confidence"),
    ],
)
def test_order_statistic_refuses(changes, name):
    values = {"n_pairs": 199, "k": 190, "gamma": 0.05, "calibration": "exact"} | changes
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OrderStatistic must"):
        OrderStatistic(**values)


@pytest.mark.loop("calibration", ["exact", "dkw", "conditional"])
@pytest.mark.loop(("gamma", "n_pairs"), [(0.05, None), (0.3, 400), (0.02, 2**15)])
def test_a_level_that_the_order_does_not_attain_is_refused(calibration, gamma, n_pairs):
    """The first of 20 norms was taken for one that 99 % do not exceed."""
    values = asdict(order_statistic(gamma, n_pairs, calibration=calibration))
    least = order_statistic(n_pairs=values["n_pairs"], calibration=calibration).gamma
    OrderStatistic(**values | {"k": values["n_pairs"]})
    for changes in ({"k": values["k"] - 1}, {"k": 1}, {"gamma": math.nextafter(least, 0)}):
        with pytest.raises(ValueError, match=r"'gamma' parameter .* a level that k="):
            OrderStatistic(**values | changes)


CONDITIONAL = {"gamma": 0.05, "calibration": "conditional"}
REFUSED = [
    *(
        (error, name, CONDITIONAL | {name: value})
        for error, values in (
            (TypeError, [True, "0.05", [0.05], 0.05j, np.array([0.05])]),
            (ValueError, [0, 1.0, -0.1, math.nan, math.inf, 10**400, Fraction(1, 10**400)]),
        )
        for name in ("gamma", "confidence")
        for value in values
    ),
    *(
        (TypeError, "n_pairs", {"n_pairs": value})
        for value in (True, 199.0, math.nan, "199", Fraction(199), np.float64(199))
    ),
    *((ValueError, "n_pairs", {"n_pairs": value}) for value in (0, -5, 2**53 + 1)),
    *(
        (ValueError, "n_pairs", {"n_pairs": 1, "calibration": "dkw"} | g)
        for g in ({}, {"gamma": 0.05})
    ),
    *((ValueError, "calibration", {"calibration": value}) for value in ("DKW", None, ["exact"])),
    *(
        (ValueError, "confidence", {"gamma": 0.05, "calibration": value, "confidence": 0.95})
        for value in ("exact", "dkw")
    ),
    (ValueError, "gamma", {}),
    (ValueError, "gamma", {"gamma": 0.05, "n_pairs": 50, "calibration": "dkw"}),
    *((ValueError, "gamma", {"gamma": 1e-300, "calibration": each}) for each in CALIBRATIONS),
]


@pytest.mark.loop(("error", "name", "parameters"), REFUSED)
def test_what_is_refused(error, name, parameters):
    with pytest.raises(error, match=f"'{name}' parameter of Sampler must"):
        order_statistic(**parameters, owner="Sampler")
