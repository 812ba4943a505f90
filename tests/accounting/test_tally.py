"""What many releases cost together: published numbers, and the best adversary of the filters."""

import math
from collections import Counter
from functools import cache

import pytest
from numpy.testing import assert_allclose

from skdp import BudgetExceededError, GaussianMechanism, LaplaceMechanism, PrivacyGuarantee
from skdp.accounting import NoiseLaw, PrivacyAccountant
from skdp.accounting.tally import advanced
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
    found = advanced(Counter({("pure", epsilon, epsilon, 0.0, 0.0): n}), slack)
    assert_allclose(found, expected, rtol=1e-11)
    assert found >= expected
    accountant = ledger(epsilon=n * epsilon, delta=slack)
    accountant.spend(PrivacyGuarantee(epsilon=epsilon), n_releases=n)
    total = accountant.total(fixed=True)
    assert total.fixed
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
    accountant = ledger(epsilon=1.0, delta=2e-5, slack=2e-5)
    exhaust(accountant.part("town", "a"), PrivacyGuarantee(epsilon=0.02))
    accountant.part("town", "b").spend(PrivacyGuarantee(epsilon=0.02))
    with pytest.raises(BudgetExceededError):  # who is in "a" is in all
        accountant.spend(PrivacyGuarantee(epsilon=0.02))


@pytest.mark.parametrize(
    ("epsilon", "n", "expected"),
    [(0.1, 1, 0.100), (0.1, 10, 0.990), (0.1, 100, 4.220), (0.1, 300, 8.160), (1.0, 300, 167.3)],
)
def test_numerical_composition_of_laplace_noise(epsilon, n, expected):
    accountant = ledger()
    guarantee, law = PrivacyGuarantee(epsilon=epsilon), NoiseLaw("laplace", epsilon)
    accountant.spend(guarantee, law=law, n_releases=n)
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
    D = 1 - 0.98**2 + slack

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
        ([(0.05, None, "a"), (0.05, None, "b")], (0.1, None, 2)),
        ([(0.05, None, "a"), (0.05, None, "a")], (0.1, None, 1)),
        ([(0.05, None, None), (0.05, None, None)], (0.1, None, 2)),
        ([(0.05, 0.9, "a"), (0.1, 0.95, "b")], (0.15, 0.85, 2)),
        ([(0.05, 0.9, "a"), (0.05, 0.9, "a")], (0.1, 0.9, 1)),
        ([(0.05, 0.9, "a"), (0.05, 0.9, None)], (0.1, 0.8, 2)),
        ([(0.05, 0.9, "a"), (0.1, None, "b")], (1 - 0.95 * 0.9 + 0.1, None, 2)),
        ([(0.05, 0.5, "a"), (0.1, 0.4, "b")], (1 - 0.95 * 0.5 + 1 - 0.9 * 0.4, None, 2)),
    ],
)
def test_gammas_add_up_by_release_and_doubts_by_estimate(spends, expected):
    accountant = ledger()
    for gamma, confidence, key in spends:
        guarantee = PrivacyGuarantee(epsilon=1.0, gamma=gamma, confidence=confidence)
        accountant.spend(guarantee, sensitivity_key=key)
    total = accountant.total()
    gamma, confidence, n_estimates = expected
    assert_allclose(total.gamma, min(1.0, gamma), rtol=1e-14)
    assert total.confidence == confidence
    assert total.n_estimates == n_estimates


def test_gammas_of_disjoint_parts_and_of_all_records():
    """A record is in one part, so it meets those of its part and of all; samplers are shared."""
    accountant = ledger(gamma=0.13)
    each = PrivacyGuarantee(epsilon=0.1, gamma=0.02, confidence=0.99)
    accountant.spend(each)
    for part in "abc":
        accountant.part("town", part).spend(each, n_releases=2 if part == "c" else 1)
    accountant.part("week", "1").spend(each)
    total = accountant.total()
    assert_allclose([total.gamma, total.confidence], [0.08, 0.94])
    with pytest.raises(BudgetExceededError, match=r"counts as gamma=0\.0596"):
        # jointly each is 1 - .99 (1 - .02) = .0298
        accountant.part("town", "a").spend(each, n_releases=2)
    accountant.part("town", "a").spend(PrivacyGuarantee(epsilon=0.1))


def test_disjoint_parts_compose_by_their_maximum():
    accountant = ledger(epsilon=3.0, delta=0.1)
    accountant.spend(PrivacyGuarantee(epsilon=1.0))
    for part, epsilon in (("a", 1.0), ("b", 2.0), ("a", 0.5)):
        guarantee = PrivacyGuarantee(epsilon=epsilon, delta=0.01, gamma=0.1)
        accountant.part("town", part).spend(guarantee)
    total = accountant.total()
    assert (total.epsilon, total.delta) == (3.0, 0.0199)
    assert total.gamma == 0.2  # of "a", twice
    assert total.n_estimates == 3
    assert total.assumed == ("the parts of 'town' declared disjoint",)
    assert accountant.total(fixed=True, delta=0.1).epsilon <= 3.0
    with pytest.raises(BudgetExceededError):
        accountant.part("town", "b").spend(PrivacyGuarantee(epsilon=0.1))
    accountant.part("town", "a").spend(PrivacyGuarantee(epsilon=0.5))


def test_the_total_of_a_block_is_what_its_releases_promise_by_themselves():
    accountant = ledger(epsilon=9.0)
    for day, epsilon in (("Monday", 1.0), ("Mon", 2.0)):
        with accountant.as_default(day) as labeled:
            for part in "ab":
                labeled.part("town", part).spend(PrivacyGuarantee(epsilon=epsilon), label="mean")
    accountant.spend(PrivacyGuarantee(epsilon=4.0), label="Monday")
    totals = [accountant.total(label=label) for label in ("Mon", "Monday", "mean", "Mon: mean")]
    assert [(each.epsilon, each.n_releases) for each in totals] == [(2, 2), (5, 3), (3, 4), (2, 2)]
    with pytest.warns(UserWarning, match="no release .* 'Tuesday'"):
        assert accountant.total(label="Tuesday").n_releases == 0
    with pytest.raises(TypeError, match=r"'label' parameter of PrivacyAccountant\.total must be"):
        accountant.total(label=5)
    assert accountant.total().epsilon == 7.0


def test_a_refusal_in_a_part_says_what_is_left_there():
    accountant = ledger(epsilon=3.0, gamma=0.1)
    one, other = (accountant.part("town", part) for part in "ab")
    one.spend(PrivacyGuarantee(epsilon=2.0, gamma=0.1))
    for part, left, none in ((one, 1.0, True), (other, 3.0, False)):
        assert part.remaining() == left
        refuses = pytest.raises(BudgetExceededError, match=f"Left is epsilon={left:g} ")
        with refuses as refused:
            part.spend(PrivacyGuarantee(epsilon=9.0))
        assert refused.value.left == left
        assert ("no gamma" in str(refused.value)) == none
    other.spend(PrivacyGuarantee(epsilon=3.0, gamma=0.1))
    assert accountant.total().epsilon == 3.0


def test_a_series_is_counted_as_a_whole():
    accountant = ledger(epsilon=5.0, delta=1e-5)
    guarantee, law = PrivacyGuarantee(epsilon=0.1, gamma=1e-4), NoiseLaw("laplace", 0.1)
    accountant.spend(guarantee, law=law, n_releases=100, composed_at=1e-5, sensitivity_key="a")
    total = accountant.total()
    assert round(total.epsilon, 3) == 4.220
    assert (total.delta, total.gamma, total.n_releases) == (1e-5, 0.01, 100)
    assert total.n_estimates == 1
    assert not total.fixed
    with pytest.raises(BudgetExceededError):
        accountant.spend(guarantee, law=law, n_releases=10)
    single = ledger()
    single.spend(guarantee, n_releases=3)
    assert (single.total().epsilon, single.total().gamma) == (0.3, 3e-4)


PLAIN, WITH_DELTA = PrivacyGuarantee(epsilon=1.0), PrivacyGuarantee(epsilon=1.0, delta=1e-5)


@pytest.mark.loop(
    ("call", "word"),
    [
        (lambda: ledger().spend(PLAIN, law=NoiseLaw("laplace", 0.1)), "must be that of its"),
        (lambda: ledger().spend(WITH_DELTA, law=NoiseLaw("pure", 1.0)), "must be that of its"),
        (lambda: ledger().spend(WITH_DELTA, law=NoiseLaw("gaussian", 1.0)), "must be that of its"),
        (lambda: ledger().spend(PLAIN, law=NoiseLaw("gaussian", 1.0)), "must be that of its"),
        (lambda: NoiseLaw("cauchy", 1.0), "NoiseLaw"),
        (lambda: NoiseLaw("pure", 0.0), "NoiseLaw"),
        (lambda: NoiseLaw("pure", math.nan), "NoiseLaw"),
        (lambda: ledger().spend(PLAIN, n_releases=9, composed_at=-0.1), "'composed_at'"),
        (lambda: ledger().spend(PLAIN, n_releases=9, composed_at=1.0), "'composed_at'"),
        (lambda: ledger().part("", "north"), "strings"),
        (lambda: ledger().part("town", 3), "strings"),
        (lambda: ledger().total(delta=0.01), "fixed=True"),
        (lambda: exhausted_delta().total(delta=0.01, fixed=True), "at least 0"),
    ],
)
def test_wrong_calls_are_refused(call, word):
    with pytest.raises(ValueError, match=word):
        call()


def exhausted_delta():
    accountant = ledger(delta=0.271)
    for _ in range(3):
        accountant.spend(PrivacyGuarantee(epsilon=0.1, delta=0.1))
    total = accountant.total()  # by their exact product
    assert (total.epsilon, total.delta, total.composition) == (0.3, 0.271, "basic")
    with pytest.raises(BudgetExceededError, match="no delta"):
        accountant.spend(PrivacyGuarantee(epsilon=0.1, delta=1e-9))
    return accountant


@pytest.mark.parametrize("n_parts", [2, 40])
def test_like_parts_are_composed_as_one(n_parts):
    """And one of which another holds all rows is left out: it is never better off."""
    ledgers = []
    for n in (1, n_parts):
        ledger = PrivacyAccountant(":memory:", epsilon=9.0, delta=1e-5)
        for epsilon in [0.1] * 20 + [0.02] * 10 + [0.05]:
            ledger.spend(PrivacyGuarantee(epsilon), law=NoiseLaw("laplace", epsilon))
        for i in range(n):
            for epsilon in [0.3] + [0.2] * (i != 1) + [0.01] * (n_parts - max(i, n_parts // 2)):
                law = NoiseLaw("laplace", epsilon)
                ledger.part("canton", str(i)).spend(PrivacyGuarantee(epsilon), law=law)
        ledgers.append(ledger.total(fixed=True))
    one, many = ledgers
    assert one.composition == many.composition == "numerical"
    assert one.epsilon == many.epsilon < 2.85 + n_parts / 100
