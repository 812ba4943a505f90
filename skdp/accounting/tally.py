"""What many releases promise together.

A *filter* holds whatever made the analyst choose the next epsilon, and only filters decide whether
a release is within the limit. A composition of *fixed* releases holds if no epsilon was chosen by
the outcome of an earlier release; it is smaller, and for reports.

Two filters are used side by side. Each (epsilon, delta) release is an epsilon-private one, but for
a coin that falls with probability delta and lets it do anything [1]_. Along every path the ledger
stops while the deltas of all releases add up to at most D - slack; so some coin falls with at most
that probability. If none falls, the loss is at most the sum of the epsilons: that is the basic
filter [2]_. The other filter is that of concentrated privacy [3]_: with V the sum of the squares,
epsilon_i^2 or, for Gaussian noise, mu_i^2, the loss exceeds ``V / 2 + sqrt(2 V ln(1 / slack))``,
where that is at most E, with probability at most slack. Which of the two admits the last release is
seen from the outcomes, so the failures of both, at most D together, are all that can happen.

References
----------
.. [1] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", ICML 2015.
.. [2] Rogers, Roth, Ullman and Vadhan, "Privacy Odometers and Filters: Pay-as-you-Go
   Composition", NeurIPS 2016.
.. [3] Whitehouse, Ramdas, Rogers and Wu, "Fully-Adaptive Composition in Differential Privacy",
   ICML 2023: the filters for approximate and for concentrated privacy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce

from skdp.accounting.spend import Spend, loss_of
from skdp.core.checks import check_real, check_rules
from skdp.core.exact import Exact, above, below, exact, finite
from skdp.core.guarantee import ASSERTED, UNITS, NoiseLaw, PrivacyGuarantee

ROUNDED = 1 + 1e-12  # the rounding errors of a formula in floats are smaller
OTHER_PAIRS = (
    "A release for persons that was sampled does not add up with those for records, since its "
    "gamma is about other pairs. Count it in a PrivacyAccountant with unit='person'."
)
MOST_LAWS = 24  # convolving so many laws takes a few seconds
MOST_EPSILON = 10**6  # above it no composition gains anything


@dataclass(frozen=True)
class Limits:
    """How much may be spent; without numbers, any amount."""

    epsilon: float = math.inf
    delta: float = 1.0
    gamma: float | None = None
    slack: float = 0.0
    unit: str = "record"

    @property
    def numbers(self) -> dict[str, float | None]:
        """The limits and the slack, by name."""
        return {name: value for name, value in vars(self).items() if name != "unit"}

    def __str__(self) -> str:
        given = {name: value for name, value in self.numbers.items() if value is not None}
        said = [f"{n}={v:g}" for n, v in given.items() if v or n == "epsilon"]
        return ", ".join(said + ["unit='person'"] * (self.unit == "person"))

    @property
    def free_delta(self) -> Fraction:
        """The delta that releases may have: the slack is kept back for their composition."""
        return finite(self.delta) - finite(self.slack)


def check_limits(
    epsilon: float, delta: float, gamma: float | None, slack: float, unit: str
) -> Limits:
    """Return the limits of an accountant, or refuse numbers out of range."""
    owner = "PrivacyAccountant"
    delta = check_real("delta", delta, owner, 0.0, 1.0, closed="lr")
    check_rules(owner, unit=(unit, unit in [*UNITS], "be 'record' or 'person'"))
    return Limits(
        check_real("epsilon", epsilon, owner, 0.0, closed="r"),
        delta,
        None if gamma is None else check_real("gamma", gamma, owner, 0.0, 1.0, closed="lr"),
        check_real("slack", slack, owner, 0.0, min(delta, 1 - 2**-53), closed="lr"),
        unit,
    )


@dataclass(frozen=True)
class BudgetTotal:
    """The promise of all releases of a ledger together.

    Parameters
    ----------
    epsilon : float of at least 0
        Bound on the total privacy loss.
    delta : float in [0, 1]
        Probability mass on which the bound may fail.
    gamma : float in [0, 1]
        Probability, over pairs and samplers, that some pair of datasets is not covered by its
        sensitivity: the sum over the releases, where an estimate with a confidence c counts as
        ``1 - c (1 - gamma)``. It holds if no estimate was chosen by the outcome of a release.
    composition : {"basic", "filter", "numerical"}
        The theorem that gave epsilon and delta. A numerical total holds only if no epsilon was
        chosen by an earlier outcome.
    n_releases : int
        Number of releases.
    assumed : tuple of str, default=()
        What nobody checked.

    Examples
    --------
    >>> from skdp import PrivacyGuarantee
    >>> from skdp.accounting import PrivacyAccountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> ledger.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05))
    >>> ledger.spend(PrivacyGuarantee(epsilon=0.5, gamma=0.05))
    >>> print(ledger.total())
    (epsilon=1.5, gamma=0.1) for 2 releases, by basic composition
    """

    epsilon: float
    delta: float
    gamma: float
    composition: str
    n_releases: int
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = {"epsilon": self.epsilon, "delta": self.delta, "gamma": self.gamma}
        numbers = [f"{name}={value:g}" for name, value in names.items() if value]
        some = "release" if self.n_releases == 1 else "releases"
        parts = [f"({', '.join(numbers) or 'epsilon=0'}) for {self.n_releases} {some}"]
        if self.n_releases:
            how = "the limit of the filter" if self.composition == "filter" else ""
            parts.append(f"by {how or self.composition + ' composition'}")
        if self.composition == "numerical":
            parts.append("if no epsilon was chosen by an outcome")
        return ", ".join([*parts, *self.assumed])


@dataclass
class Tally:
    """Running sums over the rows of a ledger."""

    n_releases: int = 0
    epsilon: Exact = Fraction(0)
    square: Exact = Fraction(0)  # twice the rho of concentrated privacy, where no coin falls
    delta: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)
    relation: str | None = None
    n_seeded: int = 0
    n_asserted: int = 0
    laws: Counter[tuple[str, float, float]] = field(default_factory=Counter)

    @classmethod
    def of(cls, spends: Iterable[Spend]) -> Tally:
        """Add up rows."""
        tally = cls()
        for spend in spends:
            tally.add(spend)
        return tally

    def copy(self) -> Tally:
        """Return a tally to which further rows can be added."""
        return replace(self, laws=self.laws.copy())

    def add(self, spend: Spend) -> Tally:
        """Count a row, and return self."""
        self.n_releases += 1
        self.epsilon += exact(spend.epsilon)
        self.square += exact(spend.parameter) ** 2
        self.delta = min(self.delta + finite(spend.delta), Fraction(1))  # a probability
        # By the union bound, the gammas of releases add up, also those of one estimate: each
        # release has a pair of its own, of other columns, other responses or with another seed.
        self.gamma += finite(spend.gamma)
        self.relation = spend.relation
        self.n_seeded += spend.seeded
        self.n_asserted += ASSERTED in (spend.assumed or "")
        coin = 0.0 if spend.law == "gaussian" else spend.delta  # which the law does not hold
        self.laws[spend.law, spend.parameter, coin] += 1
        return self

    def admitted_by(self, limits: Limits) -> str | None:
        """Name the filter that admits the sums, if one does."""
        if limits.gamma is not None and self.gamma > finite(limits.gamma):
            return None
        if self.delta > limits.free_delta:
            return None
        if self.epsilon <= exact(limits.epsilon):
            return "basic"
        if limits.slack and filtered(self.square, limits.slack) <= limits.epsilon:
            return "filter"
        return None

    def total(self, limits: Limits = Limits()) -> BudgetTotal:
        """Return the total that holds whatever made the analyst choose each epsilon."""
        if self.admitted_by(limits) == "filter":
            return self._total(limits.epsilon, limits.delta, "filter")
        return self._total(above(self.epsilon), above(self.delta), "basic")

    def void(self, limits: Limits) -> list[str]:
        """Name the numbers of the total that promise nothing."""
        total = self.total(limits)
        return [f"{name}=1" for name in ("delta", "gamma") if getattr(total, name) == 1]

    def fixed_total(self, limits: Limits, delta: float | None = None) -> BudgetTotal:
        """Return the least total that holds if no epsilon was chosen by an outcome."""
        plain = self.total(limits)
        if delta is None:
            delta = limits.delta if limits.delta < 1 else plain.delta
        found = [plain] if plain.delta <= delta else []
        if 0 < len(self.laws) <= MOST_LAWS and self.epsilon <= MOST_EPSILON:
            found.append(self._total(numerical(self.laws, delta), delta, "numerical"))
        best = min(found, key=lambda total: total.epsilon, default=None)
        if best is None or (best is not plain and math.isinf(best.epsilon)):
            raise ValueError(
                f"The 'delta' parameter of total must be at least {plain.delta:g}, that of the "
                f"releases. Got {delta:g}."
            )
        return best

    def _total(self, epsilon: float, delta: float, composition: str) -> BudgetTotal:
        assumed = {
            "with noise from a seeded generator": self.n_seeded,
            "with a sensitivity that the caller asserts": self.n_asserted,
        }
        return BudgetTotal(
            epsilon,
            min(1.0, delta),
            min(1.0, above(self.gamma)),
            composition,
            self.n_releases,
            tuple(f"{n} {what}" for what, n in assumed.items() if n),
        )


def compose(*guarantees: PrivacyGuarantee) -> PrivacyGuarantee:
    """Compose releases of the same records, by basic composition; two-level where all are."""
    total = Tally.of(map(Spend.of, guarantees)).total()
    sampled = [each for each in guarantees if each.gamma]
    sure = [finite(each.confidence) for each in sampled if each.confidence is not None]
    gamma, confidence = total.gamma, None
    # All statements hold together with at least this probability over the samplers.
    together = 1 - sum(1 - each for each in sure)
    if 0 < len(sure) == len(sampled) and together > 0:
        gamma = min(1.0, above(sum((finite(each.gamma) for each in sampled), Fraction(0))))
        confidence = below(together)

    def joined(said: Iterable[str | None]) -> str | None:
        return " and ".join(dict.fromkeys(filter(None, said))) or None

    of_records = [each for each in guarantees if each.unit == "record"]
    if of_records and any(each.unit == "person" for each in sampled):
        raise ValueError(OTHER_PAIRS)
    return replace(
        (of_records or guarantees)[-1],  # what holds for persons holds for records
        epsilon=total.epsilon,
        delta=total.delta,
        gamma=gamma,
        confidence=confidence,
        oracle=joined(each.oracle for each in guarantees),
        assumed=joined(each.assumed for each in guarantees),
        seeded=any(each.seeded for each in guarantees),
    )


def filtered(square: Exact, slack: float) -> float:
    """Return the epsilon of the filter, from the sum of the squares."""
    total = above(square)
    return (total / 2 + math.sqrt(-2 * total * math.log(slack))) * ROUNDED


def largest_square(epsilon: float, slack: float) -> float:
    """Return the sum of squares at which the filter arrives at an epsilon."""
    root = math.sqrt(-2 * math.log(slack))
    return (2 * epsilon / (math.sqrt(root * root + 2 * epsilon) + root)) ** 2


def numerical(laws: Counter[tuple[str, float, float]], delta: float) -> float:
    """Return the epsilon of releases that were fixed in advance, from their laws."""
    from skdp.accounting.laws import GaussianLoss  # scipy takes time

    # That the noise is discrete is charged: with M the sum of the mu^2, discrete Gaussian noise on
    # lattices of step 1 / 2^14 or less of the sensitivity has at most exp(M / 2^30) times the delta
    # of continuous noise, at an epsilon that is M / 2^13 less (see
    # `skdp.mechanisms.gaussian.lattice_delta`, for all numbers of all releases as one vector).
    square, coins = 0.0, Fraction(0)
    others: Counter[NoiseLaw] = Counter()
    for (kind, parameter, coin), n in laws.items():
        coins += n * finite(coin)
        if kind == "gaussian":
            square += n * parameter**2
        else:
            others[NoiseLaw(kind, parameter)] += n
    left = below(finite(delta) - coins) * math.exp(-square * 2**-30)
    if left < 0 or (left == 0 and square):
        return math.inf
    losses = [loss_of(law).self_compose(n) for law, n in others.items()]
    losses += [GaussianLoss(math.sqrt(square))] if square else []
    total = reduce(lambda one, other: one.compose(other), losses)
    return total.epsilon(left) + square * 2**-13
