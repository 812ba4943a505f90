"""What many releases cost together: published numbers, and the best adversary of the filters."""

import math
from functools import cache

import pytest
from numpy.testing import assert_allclose

from skdp import BudgetExceededError, GaussianMechanism, LaplaceMechanism, PrivacyGuarantee
from skdp.accounting import NoiseLaw, PrivacyAccountant
from skdp.accounting.tally import MOST_LAWS, compose
from skdp.risk import GaussianLoss, PureLoss, privacy_loss_distribution


def ledger(epsilon=math.inf, **limits):
    return PrivacyAccountant(":memory:", epsilon=epsilon, **limits)


def exhaust(accountant, guarantee):
    """Spend until there is nothing left, and return the error that says so."""
    while True:
        try:
            accountant.spend(guarantee)
        except BudgetExceededError as error:
            return error


@pytest.mark.parametrize(
    ("epsilon", "n", "slack", "expected"),
    [(0.05, 20, 1e-3, 0.7613352285668463), (2**-9, 700, 2**-25, 0.27832280615743646)],
)
def test_a_total_is_below_the_published_advanced_composition(epsilon, n, slack, expected):
    accountant = ledger(epsilon=n * epsilon, delta=slack)
    for _ in range(n):
        accountant.spend(PrivacyGuarantee(epsilon=epsilon))
    total = accountant.total(fixed=True)
    assert (total.composition, total.delta) == ("numerical", slack)
    assert total.epsilon < expected


def test_a_slack_admits_more_small_releases_and_reports_the_limit():
    counts = []
    for slack in (0.0, 1e-5, 2e-5):
        accountant = ledger(epsilon=1.0, delta=2e-5, slack=slack)
        error = exhaust(accountant, PrivacyGuarantee(epsilon=0.02))
        counts.append(accountant.total().n_releases)
        assert error.left == accountant.remaining() < 0.02
    assert counts[0] == 50 < counts[1] < counts[2]
    total = accountant.total()
    assert (total.epsilon, total.delta, total.composition) == (1.0, 2e-5, "filter")
    with pytest.raises(BudgetExceededError):  # the whole delta is kept back
        accountant.spend(PrivacyGuarantee(epsilon=1e-9, delta=1e-12))


@pytest.mark.parametrize(
    ("epsilon", "n", "expected"),
    [(0.1, 1, 0.100), (0.1, 10, 0.990), (0.1, 100, 4.220), (0.1, 300, 8.160), (1.0, 300, 167.3)],
)
def test_numerical_composition_of_laplace_noise(epsilon, n, expected):
    accountant = ledger()
    guarantee, law = PrivacyGuarantee(epsilon=epsilon), NoiseLaw("laplace", epsilon)
    for _ in range(n):
        accountant.spend(guarantee, law=law)
    total = accountant.total(delta=1e-5, fixed=True)
    assert round(total.epsilon, 1 if expected > 100 else 3) == expected
    assert total.delta == (0.0 if total.composition == "basic" else 1e-5)
    exact = privacy_loss_distribution(LaplaceMechanism(epsilon)).self_compose(n).epsilon(1e-5)
    assert 0 <= total.epsilon - exact < 1e-4 * n * epsilon


def test_laws_of_several_kinds_are_composed_with_the_coins_of_the_others():
    accountant = ledger(delta=1.0)
    gaussian = GaussianMechanism(1.0, 1e-6)
    mu = privacy_loss_distribution(gaussian).mu
    for _ in range(5):
        accountant.spend(gaussian.guarantee(), law=NoiseLaw("gaussian", mu))
        accountant.spend(PrivacyGuarantee(epsilon=0.2))
    accountant.spend(PrivacyGuarantee(epsilon=0.2, delta=1e-7))
    total = accountant.total(delta=1e-5, fixed=True)
    laws = GaussianLoss(mu * math.sqrt(5)).compose(PureLoss(0.2).self_compose(6))
    assert laws.epsilon(1e-5) < total.epsilon < laws.epsilon(0.98e-5)
    assert total.composition == "numerical"
    assert total.epsilon < accountant.total().epsilon == 6.2


def test_gaussian_noise_costs_the_filter_its_own_squares():
    mechanism = GaussianMechanism(0.5, 1e-8)
    law = NoiseLaw("gaussian", privacy_loss_distribution(mechanism).mu)
    left = []
    for given in (None, law):
        accountant = ledger(epsilon=3.0, delta=1e-4, slack=5e-5)
        for _ in range(6):
            accountant.spend(mechanism.guarantee(), law=given)
        left.append(accountant.remaining())
    assert left[0] == 0
    assert left[1] > 0.5


@pytest.mark.slow
def test_no_adversary_beats_the_two_filters():
    """Dynamic programming over all that may be asked next, given all that came out.

    Each step is randomized response at .1 or .2, a coin that shows all with probability .02, or
    the end; each is taken while the ledger admits it. The largest mean of max(0, 1 - exp(E - L))
    must be at most D.
    """
    E, slack, coin = 1.5, 0.05, 0.02
    D = 2 * coin + slack

    @cache
    def most_coins(n_small, n_large):
        """How many come after these, fewer than none where these are refused."""
        accountant = ledger(epsilon=E, delta=round(D, 12), slack=slack)
        steps = [(0.1, 0.0)] * n_small + [(0.2, 0.0)] * n_large + [(1e-9, coin)] * 9
        for place, (epsilon, delta) in enumerate(steps):
            try:
                accountant.spend(PrivacyGuarantee(epsilon=epsilon, delta=delta))
            except BudgetExceededError:
                return place - n_small - n_large
        raise AssertionError("no limit was met")

    def admitted(n_small, n_large, n_coins):
        return n_coins <= most_coins(n_small, n_large)

    @cache
    def value(loss, n_small, n_large, n_coins):
        best = max(0.0, 1 - math.exp(E - 0.1 * loss))
        for small, large, coins in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            state = (n_small + small, n_large + large, n_coins + coins)
            if not admitted(*state):
                continue
            if coins:
                best = max(best, coin + (1 - coin) * value(loss, *state))
                continue
            step = small + 2 * large
            up = 1 / (1 + math.exp(-0.1 * step))
            best = max(
                best, up * value(loss + step, *state) + (1 - up) * value(loss - step, *state)
            )
        return best

    assert 0.04 < value(0, 0, 0, 0) <= D
    assert admitted(29, 0, 2)  # twice what the sum would allow
    assert not admitted(29, 0, 3)


@pytest.mark.loop(
    ("spends", "expected"),
    [
        ([(0.05, None), (0.05, None)], 0.1),
        ([(0.05, 0.9), (0.1, 0.95)], 1 - 0.95 * 0.9 + 1 - 0.9 * 0.95),
        ([(0.05, 0.9), (0.1, None)], 1 - 0.95 * 0.9 + 0.1),
        ([(0.05, 0.5), (0.1, 0.4)], 1),
    ],
)
def test_gammas_add_up_over_pairs_and_samplers(spends, expected):
    accountant = ledger()
    for gamma, confidence in spends:
        accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=gamma, confidence=confidence))
    assert_allclose(accountant.total().gamma, expected, rtol=1e-14)


@pytest.mark.loop(
    ("sampled", "expected"),
    [
        ([(0.05, 0.9), (0.1, 0.95)], (0.15, 0.85)),
        ([(0.05, 0.9), (0.0, None)], (0.05, 0.9)),
        ([(0.05, 0.9), (0.1, None)], (0.245, None)),
        ([(0.05, 0.5), (0.1, 0.4)], (1 - 0.95 * 0.5 + 1 - 0.9 * 0.4, None)),
        ([(0.05, None), (0.1, None)], (0.15, None)),
    ],
)
def test_two_guarantees_together_keep_their_confidence_where_both_have_one(sampled, expected):
    each = [PrivacyGuarantee(0.3, 1e-6, gamma, confidence) for gamma, confidence in sampled]
    if expected[0] >= 1:
        with pytest.raises(ValueError, match="'gamma'"):
            compose(*each)
        return
    found = compose(*each)
    assert (found.epsilon, found.delta, found.gamma, found.confidence) == (0.6, 2e-6, *expected)


PLAIN, WITH_DELTA = PrivacyGuarantee(epsilon=1.0), PrivacyGuarantee(epsilon=1.0, delta=1e-5)


@pytest.mark.loop(
    ("call", "word"),
    [
        (lambda: ledger().spend(PLAIN, law=NoiseLaw("laplace", 0.1)), "must be that of its"),
        (lambda: ledger().spend(WITH_DELTA, law=NoiseLaw("laplace", 1.0)), "must be that of its"),
        (lambda: ledger().spend(WITH_DELTA, law=NoiseLaw("gaussian", 1.0)), "must be that of its"),
        (lambda: ledger().spend(PLAIN, law=NoiseLaw("gaussian", 1.0)), "must be that of its"),
        (lambda: NoiseLaw("cauchy", 1.0), "NoiseLaw"),
        (lambda: NoiseLaw("pure", 0.0), "NoiseLaw"),
        (lambda: NoiseLaw("pure", math.nan), "NoiseLaw"),
        (lambda: ledger().total(delta=0.01), "fixed=True"),
        (lambda: exhausted_delta().total(delta=0.01, fixed=True), "at least 0"),
    ],
)
def test_wrong_calls_are_refused(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def exhausted_delta():
    accountant = ledger(delta=0.3)
    for _ in range(3):
        accountant.spend(PrivacyGuarantee(epsilon=0.1, delta=0.1))
    total = accountant.total()
    assert (total.epsilon, total.delta, total.composition) == (0.3, 0.3, "basic")
    with pytest.raises(BudgetExceededError, match="no delta"):
        accountant.spend(PrivacyGuarantee(epsilon=0.1, delta=1e-9))
    return accountant


def test_a_fixed_total_of_too_many_laws_is_the_sum_or_the_limit():
    for slack, composition in ((0.0, "basic"), (1e-3, "filter")):
        accountant = ledger(epsilon=1.0, delta=1e-3, slack=slack)
        for i in range(MOST_LAWS + 1):
            accountant.spend(PrivacyGuarantee(epsilon=(0.02 + 0.02 * bool(slack)) + i * 1e-6))
        assert accountant.total(fixed=True) == accountant.total()
        assert accountant.total().composition == composition
