"""What many releases promise together.

Two statements are kept apart. A *filter* holds whatever made the analyst choose the next epsilon,
and only filters decide whether a release is within the limit. A composition of *fixed* releases
holds if no epsilon was chosen by the outcome of an earlier release; it is smaller, and for reports.

Why the two filters may be used side by side. Each (epsilon, delta) release is an epsilon-private
one, but for a coin that falls with probability delta and lets it do anything [1]_. Along every path
the ledger stops while the deltas of all releases are at most D - slack together; so some coin falls
with at most that probability (1 / prod(1 - delta_i) while none has fallen, and then 0, is a
martingale). If none falls, the loss is at most the sum of the epsilons: that is the basic filter
[2]_. The other one is that of concentrated privacy [3]_: with V the sum of the squares, epsilon_i^2
or, for Gaussian noise, mu_i^2, the loss exceeds ``V / 2 + sqrt(2 V ln(1 / slack))``, where that is
at most E, with probability at most slack. Which of the two admits the last release is seen from
the outcomes, so the failures of both, at most D together, are all that can happen.

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
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

from skdp.accounting.spend import DOWN, UP, Spend, above, below, exact, loss_of
from skdp.core.checks import check_rules, is_real, shown
from skdp.core.guarantee import ASSERTED, NoiseLaw

if TYPE_CHECKING:
    from skdp.accounting.loss import PrivacyLossDistribution

ROUNDED = 1 + 1e-12  # more than the rounding errors of a formula in floats
MOST_LAWS = 24  # so many laws are convolved in a few seconds
MOST_CHAINS = 10_000  # as are so many choices of one part of each partition
MOST_COMPARED = 1000  # parts, each with each
NOTHING = Decimal(0), Decimal(0), Decimal(1), Decimal(0), Decimal(0)
MOST_EPSILON = 10**6  # beyond, no composition gains anything


@dataclass(frozen=True)
class Limits:
    """How much may be spent."""

    epsilon: float
    delta: float
    gamma: float | None
    slack: float

    @property
    def free_delta(self) -> Decimal:
        """What releases may have; the slack is for how they compose."""
        return DOWN.subtract(exact(self.delta), exact(self.slack))


def check_limits(epsilon: float, delta: float, gamma: float | None, slack: float) -> Limits:
    """Return the limits of an accountant, or refuse what are none."""
    given = {"epsilon": epsilon, "delta": delta, "slack": slack}
    for name, number in (given if gamma is None else given | {"gamma": gamma}).items():
        if not is_real(number):
            raise TypeError(
                f"The {name!r} parameter of PrivacyAccountant must be a number. Got "
                f"{shown(number)}."
            )
    check_rules(
        "PrivacyAccountant",
        epsilon=(epsilon, epsilon > 0, "be above 0 (or inf)"),
        delta=(delta, 0 <= delta <= 1, "be in [0, 1]"),
        gamma=(gamma, gamma is None or 0 <= gamma <= 1, "be None or in [0, 1]"),
        slack=(slack, 0 <= slack <= delta and slack < 1, "be in [0, delta] and below 1"),
    )
    whole = None if gamma is None else float(gamma)
    return Limits(float(epsilon), float(delta), whole, float(slack))


@dataclass(frozen=True)
class BudgetTotal:
    """What all releases of a ledger promise together.

    Parameters
    ----------
    epsilon : float of at least 0
        Bound on the total privacy loss.
    delta : float in [0, 1]
        Probability mass on which the bound may fail.
    gamma : float in [0, 1]
        Probability that some pair of datasets is not covered by its sensitivity: the sum over the
        releases, whatever their pairs have to do with each other, since one estimate may cover a
        person's record in one release and not in the next; of disjoint parts by the worst. It is
        the joint probability over the pairs and the samplers, or with a `confidence` over the pairs
        alone. It holds if no estimate was chosen by the outcome of a release; who chose one of
        several pays for them all.
    confidence : float in (0, 1) or None
        Probability of the two-level statement; None for a joint one.
    composition : {"nothing", "basic", "filter", "advanced", "numerical"}
        Which theorem gave epsilon and delta.
    fixed : bool
        Whether it holds only if no epsilon was chosen by the outcome of an earlier release.
    n_releases : int
        Number of releases.
    n_estimates : int
        Number of different sampled sensitivities.
    assumed : tuple of str, default=()
        What was declared and nobody checked.

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


@dataclass
class Tally:
    """Running sums over the rows of a ledger, each over the worst part of every partition."""

    n_releases: int = 0
    n_seeded: int = 0
    n_asserted: int = 0
    relation: str | None = None
    parts: dict[tuple[str, str], list[Decimal]] = field(default_factory=dict)
    rows: Counter = field(default_factory=Counter)
    n_estimates: int = 0
    estimates: set = field(default_factory=set)
    doubt: Decimal | None = Decimal(0)

    def copy(self) -> Tally:
        """Return a tally to try further spends on."""
        parts = {name: list(sums) for name, sums in self.parts.items()}
        values = vars(self) | {"parts": parts}
        return Tally(**values | {"rows": self.rows.copy(), "estimates": set(self.estimates)})

    def add(self, spend: Spend) -> Tally:
        """Count a row, and return self."""
        self.n_releases += spend.n_releases
        self.n_seeded += spend.seeded * spend.n_releases
        self.n_asserted += (ASSERTED in (spend.assumed or "")) * spend.n_releases
        self.relation = spend.relation
        epsilon, square, kept, gamma, joint_gamma = self.parts.get(
            (spend.partition, spend.part), NOTHING
        )
        new_gamma, new_joint_gamma = self._gammas(spend) if spend.gamma else (Decimal(0),) * 2
        self.parts[spend.partition, spend.part] = [
            UP.add(epsilon, exact(spend.epsilon)),
            UP.add(square, spend.square),
            DOWN.multiply(kept, DOWN.subtract(1, exact(spend.delta))),
            UP.add(gamma, new_gamma),
            UP.add(joint_gamma, new_joint_gamma),
        ]
        row = (spend.law, spend.parameter, spend.each_epsilon, spend.each_delta, spend.coin)
        self.rows[spend.partition, spend.part, row] += spend.n_releases
        return self

    def _gammas(self, spend: Spend) -> tuple[Decimal, Decimal]:
        """Return what the pairs of so many releases add by the union bound, and count estimates.

        Each release has a pair of its own, of other columns, other responses or with another seed,
        and an estimate that covers one need not cover the next. With probability c over the sampler
        a share of at most gamma of the pairs is not covered, so jointly at most ``1 - c (1 -
        gamma)``. Where all estimates have a confidence, all of their statements hold together with
        probability 1 - sum (1 - c), over the estimates that differ, of whatever parts.

        The promise is about two datasets that differ in one record. Releases of parts without it
        are the same for both, and need no cover: so of disjoint parts the worst counts.
        """
        gamma, n = exact(spend.gamma), Decimal(spend.n_releases)
        estimate = (spend.sensitivity_key, spend.gamma, spend.confidence)
        if spend.sensitivity_key is None:
            n_new = spend.n_releases
        else:
            n_new = int(estimate not in self.estimates)
            self.estimates.add(estimate)
        self.n_estimates += n_new
        kept = DOWN.subtract(1, gamma)
        if spend.confidence is None:
            self.doubt = None
        else:
            confidence = exact(spend.confidence)
            kept = DOWN.multiply(kept, confidence)
            if self.doubt is not None:
                new = UP.multiply(Decimal(n_new), UP.subtract(1, confidence))
                self.doubt = UP.add(self.doubt, new)
        return UP.multiply(n, gamma), UP.multiply(n, UP.subtract(1, kept))

    def seen_by(self, partition: str, part: str) -> Tally:
        """Return the sums of one part of a partition, with the worst of the others' parts."""
        seen = self.copy()
        if partition:
            others = [name for name in seen.parts if name[0] == partition and name[1] != part]
            for name in others:
                del seen.parts[name]
        return seen

    def worst(self, which: int) -> Decimal:
        """Add up one of the sums over the partitions, each by the worst of its parts."""
        by_partition: dict[str, list[Decimal]] = {}
        for (partition, _), sums in self.parts.items():
            by_partition.setdefault(partition, []).append(sums[which])
        total = Decimal(which == 2)
        for values in by_partition.values():
            total = DOWN.multiply(total, min(values)) if which == 2 else UP.add(total, max(values))
        return total

    @property
    def epsilon(self) -> Decimal:
        """The sum of the epsilons."""
        return self.worst(0)

    @property
    def delta(self) -> Decimal:
        """Probability that a coin falls."""
        return UP.subtract(1, self.worst(2))

    @property
    def gamma(self) -> Decimal:
        """Share of the pairs that is not covered, if all estimates are as good as they say."""
        return self.worst(3)

    @property
    def joint_gamma(self) -> Decimal:
        """Probability over pairs and samplers that a pair is not covered."""
        return self.worst(4)

    def admitted_by(self, limits: Limits) -> str | None:
        """Name the filter that the sums are within, if there is one."""
        gamma = limits.gamma
        if gamma is not None and self.joint_gamma > exact(gamma):
            return None
        if self.delta > limits.free_delta:
            return None
        if self.epsilon <= exact(limits.epsilon):
            return "basic"
        if limits.slack and filtered(self.worst(1), limits.slack) <= limits.epsilon:
            return "filter"
        return None

    def total(self, limits: Limits) -> BudgetTotal:
        """Return what holds though every epsilon may hang on earlier outcomes."""
        if self.admitted_by(limits) == "filter":
            return self._total(limits.epsilon, limits.delta, "filter", fixed=False)
        how = "basic" if self.n_releases else "nothing"
        return self._total(above(self.epsilon), above(self.delta), how, fixed=False)

    def fixed_total(self, limits: Limits, delta: float | None = None) -> BudgetTotal:
        """Return the least that holds if no epsilon hung on an earlier outcome."""
        basic = self.total(limits)
        if not self.n_releases or self.epsilon > MOST_EPSILON:
            return basic
        if delta is None:
            delta = limits.delta if limits.delta < 1 else above(self.delta)
        found = {}
        if exact(delta) >= self.delta:
            found["basic"] = above(self.epsilon), above(self.delta)
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
                f"The 'delta' parameter of total must be at least {above(self.delta):g}, that of "
                f"the releases. Got {delta:g}."
            )
        best = min(found, key=lambda name: found[name][0])
        return self._total(*found[best], best, fixed=best != "basic")

    def _total(self, epsilon: float, delta: float, composition: str, fixed: bool) -> BudgetTotal:
        declared = sorted({repr(partition) for partition, _ in self.parts if partition})
        assumed = [f"the parts of {name} declared disjoint" for name in declared]
        if self.n_seeded:
            assumed.append(f"{self.n_seeded} with noise from a seeded generator")
        if self.n_asserted:
            assumed.append(f"{self.n_asserted} by what the caller asserts")
        sure = self.doubt is not None and 0 < self.doubt < 1
        gamma = self.gamma if sure else self.joint_gamma
        return BudgetTotal(
            epsilon,
            delta,
            min(1.0, above(gamma)),
            below(DOWN.subtract(1, self.doubt or Decimal(0))) if sure else None,
            composition,
            fixed,
            self.n_releases,
            self.n_estimates,
            tuple(assumed),
        )


def filtered(square: Decimal, slack: float) -> float:
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
    """Return the epsilon of releases that were fixed in advance, from their laws.

    That the noise is discrete is charged: with M the sum of the mu^2, discrete Gaussian noise on
    lattices of step ``1 / 2^14`` or less of the sensitivity has at most ``exp(M / 2^30)`` times the
    delta of continuous noise, at an epsilon that is ``M / 2^13`` less (see
    `skdp.mechanisms.gaussian.lattice_delta`, for all numbers of all releases as one vector).
    """
    from skdp.accounting.laws import GaussianLoss

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
    """Leave out parts of which another one holds all rows: that is never better."""
    unlike = list({frozenset(part.items()): part for part in parts}.values())
    if len(unlike) > MOST_COMPARED:
        return unlike
    return [part for part in unlike if not any(part < other for other in unlike)]


def _left(deltas: Iterable[tuple[float, int]], delta: float) -> float:
    """Return how much of a delta is left for the losses, where the coins take the others."""
    kept = math.exp(math.fsum(n * math.log1p(-each) for each, n in deltas if each))
    return delta if kept == 1 else (1 - (1 - delta) / kept) / ROUNDED
