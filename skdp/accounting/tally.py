"""What many releases promise together.

A *filter* holds whatever made the analyst choose the next epsilon, and only filters decide whether
a release is within the limit. A composition of *fixed* releases holds if no epsilon was chosen by
the outcome of an earlier release; it is smaller, and for reports.

Two filters are used side by side. Each (epsilon, delta) release is an epsilon-private one, but for
a coin that falls with probability delta and lets it do anything [1]_. Along every path the ledger
stops while the deltas of all releases are at most D - slack together; so some coin falls with at
most that probability (1 / prod(1 - delta_i) while none has fallen, and then 0, is a martingale). If
none falls, the loss is at most the sum of the epsilons: that is the basic filter [2]_. The other
filter is that of concentrated privacy [3]_: with V the sum of the squares, epsilon_i^2 or, for
Gaussian noise, mu_i^2, the loss exceeds ``V / 2 + sqrt(2 V ln(1 / slack))``, where that is at most
E, with probability at most slack. Which of the two admits the last release is seen from the
outcomes, so the failures of both, at most D together, are all that can happen.

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
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from skdp.accounting.exact import Exact, above, below, exact, finite, product_below
from skdp.accounting.spend import Spend, loss_of
from skdp.core.checks import check_real
from skdp.core.guarantee import ASSERTED, NoiseLaw, PrivacyGuarantee

if TYPE_CHECKING:
    from skdp.accounting.composition import PrivacyLossDistribution

ROUNDED = 1 + 1e-12  # the rounding errors of a formula in floats are smaller
MOST_LAWS = 24  # convolving so many laws takes a few seconds
MOST_CHAINS = 10_000  # so does composing so many choices of one part of each partition
MOST_COMPARED = 1000  # so many parts are compared, each with each
MOST_EPSILON = 10**6  # above it no composition gains anything


@dataclass(frozen=True)
class Limits:
    """How much may be spent; without numbers, any amount."""

    epsilon: float = math.inf
    delta: float = 1.0
    gamma: float | None = None
    slack: float = 0.0

    def __str__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return ", ".join(f"{n}={v:g}" for n, v in given.items() if v or n == "epsilon")

    @property
    def free_delta(self) -> Fraction:
        """The delta that releases may have: the slack is kept back for their composition."""
        return finite(self.delta) - finite(self.slack)


def check_limits(epsilon: float, delta: float, gamma: float | None, slack: float) -> Limits:
    """Return the limits of an accountant, or refuse numbers out of range."""
    owner = "PrivacyAccountant"
    delta = check_real("delta", delta, owner, 0.0, 1.0, closed="lr")
    return Limits(
        check_real("epsilon", epsilon, owner, 0.0, closed="r"),
        delta,
        None if gamma is None else check_real("gamma", gamma, owner, 0.0, 1.0, closed="lr"),
        check_real("slack", slack, owner, 0.0, min(delta, 1 - 2**-53), closed="lr"),
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
        Probability that some pair of datasets is not covered by its sensitivity: the sum over the
        releases, and of disjoint parts that of the worst. The probability is joint over the pairs
        and the samplers, or with a `confidence` over the pairs alone. It holds if no estimate was
        chosen by the outcome of a release.
    confidence : float in (0, 1) or None
        Probability of the two-level statement; None for a joint one.
    composition : {"nothing", "basic", "filter", "advanced", "numerical"}
        The theorem that gave epsilon and delta.
    fixed : bool
        Whether the total holds only if no epsilon was chosen by an earlier outcome.
    n_releases : int
        Number of releases.
    n_estimates : int
        Number of different sampled sensitivities.
    assumed : tuple of str, default=()
        Declarations that nobody checked.

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
    confidence: float | None
    composition: str
    fixed: bool
    n_releases: int
    n_estimates: int
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        names = {"epsilon": self.epsilon, "delta": self.delta, "gamma": self.gamma}
        numbers = [f"{name}={value:g}" for name, value in names.items() if value]
        some = "release" if self.n_releases == 1 else "releases"
        parts = [f"({', '.join(numbers) or 'epsilon=0'}) for {self.n_releases} {some}"]
        if self.confidence is not None:
            parts.append(f"with confidence {self.confidence:g} over the sampled sensitivities")
        if self.n_releases:
            how = "the limit of the filter" if self.composition == "filter" else ""
            parts.append(f"by {how or self.composition + ' composition'}")
        if self.fixed:
            parts.append("if no epsilon was chosen by an outcome")
        return ", ".join([*parts, *self.assumed])


class Sums(NamedTuple):
    """The sums over the releases that see one part of the records, or all parts."""

    epsilon: Exact = Fraction(0)
    square: Exact = Fraction(0)
    kept: Fraction = Fraction(1)  # probability that no coin of a delta falls
    gamma: Fraction = Fraction(0)  # share of the pairs that is not covered
    joint_gamma: Fraction = Fraction(0)  # probability of that, over pairs and samplers

    def plus(self, other: Sums) -> Sums:
        """Add the sums over other releases."""
        return Sums(
            self.epsilon + other.epsilon,
            self.square + other.square,
            product_below(self.kept, other.kept),
            self.gamma + other.gamma,
            self.joint_gamma + other.joint_gamma,
        )

    @property
    def delta(self) -> Fraction:
        """Probability that a coin falls."""
        return 1 - self.kept


@dataclass
class Tally:
    """Running sums over the rows of a ledger, by partition and part."""

    n_releases: int = 0
    n_seeded: int = 0
    n_asserted: int = 0
    relation: str | None = None
    parts: dict[tuple[str, str], Sums] = field(default_factory=dict)
    rows: Counter = field(default_factory=Counter)
    n_estimates: int = 0
    estimates: set = field(default_factory=set)
    doubt: Fraction | None = Fraction(0)

    def copy(self) -> Tally:
        """Return a tally to which further rows can be added."""
        return replace(
            self,
            parts=dict(self.parts),
            rows=self.rows.copy(),
            estimates=set(self.estimates),
        )

    def add(self, spend: Spend) -> Tally:
        """Count a row, and return self."""
        self.n_releases += spend.n_releases
        self.n_seeded += spend.seeded * spend.n_releases
        self.n_asserted += (ASSERTED in (spend.assumed or "")) * spend.n_releases
        self.relation = spend.relation
        where = spend.partition, spend.part
        gammas = self._gammas(spend) if spend.gamma else ()
        added = Sums(exact(spend.epsilon), spend.square, 1 - finite(spend.delta), *gammas)
        self.parts[where] = self.parts.get(where, Sums()).plus(added)
        row = (spend.law, spend.parameter, spend.each_epsilon, spend.each_delta, spend.coin)
        self.rows[*where, row] += spend.n_releases
        return self

    def _gammas(self, spend: Spend) -> tuple[Fraction, Fraction]:
        """Return the gamma and the joint gamma of a row, and count its estimates."""
        # By the union bound, the gammas of releases add up, also those of one estimate: each
        # release has a pair of its own, of other columns, other responses or with another seed.
        # With probability c over the sampler a share of at most gamma of the pairs is not covered,
        # so the joint probability is at most 1 - c (1 - gamma). Where all estimates have a
        # confidence, all of their statements hold together with probability 1 - sum (1 - c), over
        # the estimates that differ, of whatever parts.
        gamma, n, confidence = finite(spend.gamma), spend.n_releases, spend.confidence
        estimate = (spend.sensitivity_key, spend.gamma, confidence)
        n_new = n if spend.sensitivity_key is None else int(estimate not in self.estimates)
        if spend.sensitivity_key is not None:
            self.estimates.add(estimate)
        self.n_estimates += n_new
        if confidence is None:
            self.doubt = None
            return n * gamma, n * gamma
        if self.doubt is not None:
            self.doubt += n_new * (1 - finite(confidence))
        return n * gamma, n * (1 - finite(confidence) * (1 - gamma))

    def seen_by(self, partition: str, part: str) -> Tally:
        """Leave out the other parts of a partition."""
        seen = {
            name: sums
            for name, sums in self.parts.items()
            if not partition or name[0] != partition or name[1] == part
        }
        return replace(self, parts=seen)

    @property
    def sums(self) -> Sums:
        """The sums over all releases; of each partition only the worst part counts."""
        # Releases of parts without the record that differs are the same for both datasets.
        partitions: dict[str, list[Sums]] = {}
        for (partition, _), sums in self.parts.items():
            partitions.setdefault(partition, []).append(sums)
        total = Sums()
        for parts in partitions.values():
            epsilon, square, kept, gamma, joint = zip(*parts, strict=True)
            worst = Sums(max(epsilon), max(square), min(kept), max(gamma), max(joint))
            total = total.plus(worst)
        return total

    def admitted_by(self, limits: Limits) -> str | None:
        """Name the filter that admits the sums, if one does."""
        sums = self.sums
        if limits.gamma is not None and sums.joint_gamma > finite(limits.gamma):
            return None
        if sums.delta > limits.free_delta:
            return None
        if sums.epsilon <= exact(limits.epsilon):
            return "basic"
        if limits.slack and filtered(sums.square, limits.slack) <= limits.epsilon:
            return "filter"
        return None

    def total(self, limits: Limits = Limits()) -> BudgetTotal:
        """Return the total that holds whatever made the analyst choose each epsilon."""
        if self.admitted_by(limits) == "filter":
            return self._total(limits.epsilon, limits.delta, "filter")
        how = "basic" if self.n_releases else "nothing"
        return self._total(above(self.sums.epsilon), above(self.sums.delta), how)

    def void(self, limits: Limits) -> list[str]:
        """Name the numbers of the total that promise nothing."""
        total = self.total(limits)
        return [f"{name}=1" for name in ("delta", "gamma") if getattr(total, name) == 1]

    def fixed_total(self, limits: Limits, delta: float | None = None) -> BudgetTotal:
        """Return the least total that holds if no epsilon was chosen by an outcome."""
        sums = self.sums
        if not self.n_releases or sums.epsilon > MOST_EPSILON:
            return self.total(limits)
        least = above(sums.delta)
        if delta is None:
            delta = limits.delta if limits.delta < 1 else least
        found = {"basic": (above(sums.epsilon), least)} if finite(delta) >= sums.delta else {}
        groups: dict[str, dict[str, Counter]] = {}
        for (partition, part, row), n in self.rows.items():
            groups.setdefault(partition, {}).setdefault(part, Counter())[row] += n
        chains: list[Counter] = []
        unlike = [_unlike(parts.values()) for parts in groups.values()]
        if math.prod(map(len, unlike)) <= MOST_CHAINS:
            chains += (sum(chain, Counter()) for chain in product(*unlike))
        for name, composition in (("advanced", advanced), ("numerical", numerical)):
            if chains and (name == "advanced" or sum(map(len, chains)) <= MOST_LAWS):
                found[name] = max(composition(chain, delta) for chain in chains), delta
        if not found or all(math.isinf(epsilon) for epsilon, _ in found.values()):
            raise ValueError(
                f"The 'delta' parameter of total must be at least {least:g}, that of the releases. "
                f"Got {delta:g}."
            )
        best = min(found, key=lambda name: found[name][0])
        return self._total(*found[best], best, fixed=best != "basic")

    def _total(
        self, epsilon: float, delta: float, composition: str, fixed: bool = False
    ) -> BudgetTotal:
        declared = sorted({repr(partition) for partition, _ in self.parts if partition})
        assumed = [f"the parts of {name} declared disjoint" for name in declared]
        if self.n_seeded:
            assumed.append(f"{self.n_seeded} with noise from a seeded generator")
        if self.n_asserted:
            assumed.append(f"{self.n_asserted} by what the caller asserts")
        sums, doubt = self.sums, self.doubt
        confidence = below(1 - doubt) if doubt is not None and 0 < doubt < 1 else None
        gamma = sums.joint_gamma if confidence is None else sums.gamma
        return BudgetTotal(
            epsilon,
            delta,
            min(1.0, above(gamma)),
            confidence,
            composition,
            fixed,
            self.n_releases,
            self.n_estimates,
            tuple(assumed),
        )


def compose(*guarantees: PrivacyGuarantee) -> BudgetTotal:
    """Return what releases promise together, by basic composition."""
    tally = Tally()
    for guarantee in guarantees:
        tally.add(Spend.of(guarantee))
    return tally.total()


def filtered(square: Exact, slack: float) -> float:
    """Return the epsilon of the filter, from the sum of the squares."""
    total = above(square)
    return (total / 2 + math.sqrt(-2 * total * math.log(slack))) * ROUNDED


def largest_square(epsilon: float, slack: float) -> float:
    """Return the sum of squares at which the filter arrives at an epsilon."""
    root = math.sqrt(-2 * math.log(slack))
    return (2 * epsilon / (math.sqrt(root * root + 2 * epsilon) + root)) ** 2


def advanced(rows: Counter, delta: float) -> float:
    """Return the epsilon of releases that were fixed in advance: Kairouz et al., theorem 3.5."""
    slack = _left(((each_delta, n) for (_, _, _, each_delta, _), n in rows.items()), delta)
    if slack <= 0:
        return math.inf
    square = math.fsum(n * row[2] ** 2 for row, n in rows.items())
    mean = math.fsum(n * row[2] * math.tanh(row[2] / 2) for row, n in rows.items())
    spread = min(math.log(math.e + math.sqrt(square) / slack), -math.log(slack))
    return (mean + math.sqrt(2 * square * spread)) * ROUNDED


def numerical(rows: Counter, delta: float) -> float:
    """Return the epsilon of releases that were fixed in advance, from their laws."""
    from skdp.accounting.laws import GaussianLoss  # scipy takes time

    # That the noise is discrete is charged: with M the sum of the mu^2, discrete Gaussian noise on
    # lattices of step 1 / 2^14 or less of the sensitivity has at most exp(M / 2^30) times the delta
    # of continuous noise, at an epsilon that is M / 2^13 less (see
    # `skdp.mechanisms.gaussian.lattice_delta`, for all numbers of all releases as one vector).
    left = _left(((coin, n) for (*_, coin), n in rows.items()), delta)
    square = math.fsum(n * row[1] ** 2 for row, n in rows.items() if row[0] == "gaussian")
    laws: list[PrivacyLossDistribution] = [GaussianLoss(math.sqrt(square))] if square else []
    others: Counter[NoiseLaw] = Counter()
    for (kind, parameter, *_), n in rows.items():
        if kind != "gaussian":
            others[NoiseLaw(kind, parameter)] += n
    laws += [loss_of(law).self_compose(n) if n > 1 else loss_of(law) for law, n in others.items()]
    left *= math.exp(-square * 2**-30)
    if left <= 0 and (square or left < 0):
        return math.inf
    total = laws[0]
    for law in laws[1:]:
        total = total.compose(law)
    return total.epsilon(left) + square * 2**-13


def _unlike(parts: Collection[Counter]) -> list[Counter]:
    """Leave out each part whose rows another part holds too: the other one costs no less."""
    unlike = list({frozenset(part.items()): part for part in parts}.values())
    if len(unlike) > MOST_COMPARED:
        return unlike
    return [part for part in unlike if not any(part < other for other in unlike)]


def _left(deltas: Iterable[tuple[float, int]], delta: float) -> float:
    """Return the delta that is left for the losses beside the coins."""
    kept = math.exp(math.fsum(n * math.log1p(-each) for each, n in deltas if each))
    return delta if kept == 1 else (1 - (1 - delta) / kept) / ROUNDED
