"""The promise that comes with a release, as a frozen value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import Enum

from skdp.core.checks import check_count, check_real, check_rules, wrapped

# A promise beyond these numbers is weak, so it comes with a warning.
MOST_EPSILON = 20
MOST_GAMMA = 0.5
LEAST_CONFIDENCE = 0.5


class NeighboringRelation(Enum):
    """Which two datasets count as neighboring.

    Examples
    --------
    >>> from skdp import PrivacyGuarantee
    >>> from skdp.accounting import NeighboringRelation
    >>> PrivacyGuarantee(epsilon=1.0).relation is NeighboringRelation.REPLACE_ONE
    True
    """

    REPLACE_ONE = "replace-one"
    """Both have n records, or persons with their records, and differ in one; n is public."""


RELEASED_LAW = "law released for"  # words for an oracle that was learned from private data
STRATA = {
    "classes": "The promise holds as surely where {one} or both are of the rarest class.",
    "labels": "The promise holds as surely where {one} or both are of the rarest class, and where "
    "{two} differ in the label alone.",
    "thirds": "The promise holds as surely for each third of the responses.",
}
BESIDE_STRATA = {  # such pairs are in no stratum
    "classes": "Two {unit}s that differ in the label alone may not be covered.",
    "thirds": "Two {unit}s that differ in the response alone may not be covered.",
}
TWO = {
    "record": {"one": "the record, its replacement", "two": "the two"},
    "person": {"one": "a record drawn of the person, one of the replacement", "two": "the persons"},
}
ENDS = "A number outside the range of the oracle's records is moved to the end of that range."
CLIPPED = {
    "record": f"{ENDS} A record far outside is replaced by one of the oracle's.",
    "person": f"{ENDS} A person with a record far outside, or with far more records, is replaced "
    "by one of the oracle's. Records beyond the most of the oracle's persons are left out.",
}
AS_THEY_ARE = "Numbers outside the ranges of the oracle's records count as they are."
UNITS = {  # what else is replaced, and what a promise says of persons
    "record": ("", "A person with several records is not covered."),
    "person": (", with all of that person's records,", "A record of a person is covered too."),
}
UNMEASURED = "What a single record of a person shows was not measured."
ASSERTED = "asserted by the caller"  # words for a sensitivity that nobody has proved or checked


@dataclass(frozen=True)
class PrivacyGuarantee:
    """(epsilon, delta, gamma)-random differential privacy, and under which conditions.

    On a pair of neighboring datasets drawn from the oracle, (epsilon, delta)-differential
    privacy holds with probability at least ``1 - gamma``. The probability is over the pair and
    over the pairs from which the sensitivity was sampled; with a `confidence` it is over the
    pair alone, and holds for all but a share ``1 - confidence`` of such samples. ``gamma = 0``
    is plain differential privacy.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` means that no noise was added.
    delta : float in [0, 1), default=0.0
        Probability mass on which the bound may fail.
    gamma : float in [0, 1), default=0.0
        Probability that a pair drawn from the oracle is not covered. 0 when the sensitivity was
        not sampled.
    confidence : float in (0, 1) or None, default=None
        Confidence of the two-level statement (``calibration="conditional"``); None when gamma is
        the joint probability over the pair and the sampler.
    relation : NeighboringRelation, default=NeighboringRelation.REPLACE_ONE
        Which datasets are neighboring.
    n_samples : int or None, default=None
        Number of records of the private dataset, or of its persons, which is public.
    oracle : str or None, default=None
        Description of the source of plausible records; None when the sensitivity was not sampled.
    seeded : bool, default=False
        Whether the noise came from a seeded generator. Whoever knows the seed can then subtract
        the noise, and with a second release from that seed the promise holds against no one: the
        difference of the releases is that of the exact values.
    code : str or None, default=None
        The public code in which the noise was added, and from how many public fits it was learned;
        None where the noise was added to the value as it is.
    strata : {"classes", "labels", "thirds"} or None, default=None
        In which strata of pairs gamma holds, each by itself; None where all pairs are one.
    least_share : float or None, default=None
        Smallest share of a class in the oracle's datasets, where strata are of classes.
    clipped : bool or None, default=None
        Whether records are clipped to the ranges of the oracle's, and those far outside replaced.
        None where the sensitivity was not sampled.
    assumed : str or None, default=None
        The assumptions that nobody checked: a sensitivity that the caller asserts, or those of its
        proof. None when it was sampled.
    unit : {"record", "person"}, default="record"
        What is replaced in a neighboring dataset: a record, or a person with all records.
    alone : bool, default=False
        Whether no budget of the user counted the release together with others of the same data.
        Comparisons ignore it.

    Raises
    ------
    ValueError
        If a number is outside its range, or `confidence` comes without a gamma.

    References
    ----------
    Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
    ICML 2017, definition 4.

    Examples
    --------
    >>> from skdp import PrivacyGuarantee
    >>> print(PrivacyGuarantee(epsilon=1.0, gamma=0.05, n_samples=199, oracle="PublicDataOracle"))
    Random differential privacy: epsilon=1, gamma=0.05
      Replacing one of 199 records changes the probability of any result by a factor
      of at most 2.72, with probability 0.95 over pairs of datasets from
      PublicDataOracle. Records unlike these may not be covered.
      A person with several records is not covered.
    >>> print(PrivacyGuarantee(epsilon=0.5, n_samples=100))
    Differential privacy: epsilon=0.5
      Replacing one of 100 records changes the probability of any result by a factor
      of at most 1.65.
      A person with several records is not covered.
      It rests on: sensitivity asserted by the caller.
    """

    epsilon: float
    delta: float = 0.0
    gamma: float = 0.0
    confidence: float | None = None
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE
    n_samples: int | None = None
    oracle: str | None = None
    seeded: bool = False
    code: str | None = None
    strata: str | None = None
    least_share: float | None = None
    clipped: bool | None = None
    assumed: str | None = None
    unit: str = "record"
    alone: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.n_samples is not None:
            check_count("n_samples", self.n_samples, "PrivacyGuarantee")
        check_real("epsilon", self.epsilon, "PrivacyGuarantee", 0.0, closed="r")
        for name in ("delta", "gamma"):
            check_real(name, getattr(self, name), "PrivacyGuarantee", 0.0, 1.0, "l")
        if self.confidence is not None:
            check_real("confidence", self.confidence, "PrivacyGuarantee", 0.0, 1.0)
            rule = "be None where there is no gamma"
            check_rules("PrivacyGuarantee", confidence=(self.confidence, self.gamma > 0, rule))
        rule = "be 'record' or 'person'"
        check_rules("PrivacyGuarantee", unit=(self.unit, self.unit in UNITS, rule))
        object.__setattr__(self, "relation", NeighboringRelation(self.relation))

    @property
    def short(self) -> str:
        """The kind of the promise and its numbers, in a few words."""
        if math.isinf(self.epsilon):
            return "no privacy, no noise was added"
        kind = "random differential privacy" if self.gamma else "differential privacy"
        numbers = {"epsilon": self.epsilon, "delta": self.delta, "gamma": self.gamma}
        said = (f"{name}={number:g}" for name, number in numbers.items() if number)
        return ", ".join([kind, *said])

    def __str__(self) -> str:
        first, *others = self.sentences()
        return "\n".join([first, *(wrapped(each, "  ") for each in others)])

    def sentences(self) -> Iterator[str]:
        """Yield the kind of the promise with its numbers, then in whole sentences what it means."""
        kind, _, numbers = self.short.partition(", ")
        yield f"{kind[0].upper()}{kind[1:]}{numbers and ': '}{numbers}"
        if math.isinf(self.epsilon):
            return
        n, unit = self.n_samples, self.unit
        replaced = f"one {unit}" if n is None else f"one of {n} {unit}s"
        fails = f", but for a probability of {self.delta:g}" if self.delta else ""
        promise = (
            f"Replacing {replaced}{UNITS[unit][0]} changes the probability of any result by a "
            f"factor of at most {math.exp(min(self.epsilon, 700)):.3g}{fails}"
        )
        if self.gamma:
            sure = self.confidence
            source = "the oracle" if self.oracle is None else self.oracle
            promise += f", with probability {1 - self.gamma:g} over pairs of datasets from {source}"
            is_twice = self.strata in ("classes", "labels") and not self.least_share
            promise += " in which each class occurs at least twice" if is_twice else ""
            promise += f", said with confidence {sure:g}" if sure is not None else ""
            yield f"{promise}. {unit.capitalize()}s unlike these may not be covered."
            if self.strata in STRATA:
                yield STRATA[self.strata].format(**TWO[unit])
            if self.strata in BESIDE_STRATA:
                yield BESIDE_STRATA[self.strata].format(unit=unit)
            if self.clipped is not None:
                yield CLIPPED[unit] if self.clipped else AS_THEY_ARE
            if RELEASED_LAW in source:
                yield (
                    "The law was released from private records, which are no draws of it: gamma "
                    "says nothing about them. For all records only the promise of the law holds, "
                    "and both epsilons add up."
                )
            if self.least_share:
                rare = f"{100 * self.least_share:.2g} %"
                yield f"Classes near or below {rare} of the records may not be covered."
        else:
            yield f"{promise}."
        yield UNMEASURED if self.gamma and unit == "person" else UNITS[unit][1]
        assumed = self.assumed or (None if self.gamma else f"sensitivity {ASSERTED}")
        if assumed is not None:
            yield f"It rests on: {assumed}."
        if self.seeded:
            yield "The noise has a seed: whoever knows the seed can remove the noise."
        if self.alone:
            yield "Other releases of the same data add up: see the budget."

    def to_dict(self) -> dict:
        """Return the parameters as plain values, ready for JSON."""
        return asdict(self) | {"relation": self.relation.value}

    @classmethod
    def from_dict(cls, values: dict) -> PrivacyGuarantee:
        """Make an equal guarantee from the values of :meth:`to_dict`."""
        return cls(**values)


def weaknesses(promise: PrivacyGuarantee, n_samples: int) -> list[str]:
    """Name the numbers that make a promise weak; none where epsilon is infinite."""
    unit = promise.unit
    rules = {
        f"epsilon={promise.epsilon:g} is above {MOST_EPSILON}, so that one {unit} may make an "
        "outcome 485 million times as likely and more. Choose one below 10, best around 1": (
            promise.epsilon > MOST_EPSILON
        ),
        f"delta={promise.delta:g} is above one over the number of {unit}s, {1 / n_samples:.3g}. "
        f"To publish a {unit} at random would keep such a promise. Choose a delta far below": (
            promise.delta > 1 / n_samples
        ),
        f"gamma={promise.gamma:g} is above {MOST_GAMMA:g}, so that the promise may hold for less "
        "than half of the oracle's pairs. Choose one of .1 or less, with more pairs": (
            promise.gamma > MOST_GAMMA
        ),
        f"confidence={promise.confidence} is below {LEAST_CONFIDENCE:g}, so that most samples of "
        "the sensitivity may break it. Choose one of .9 or more, with more pairs": (
            promise.confidence is not None and promise.confidence < LEAST_CONFIDENCE
        ),
    }
    if math.isinf(promise.epsilon):
        return []
    return [weakness for weakness, applies in rules.items() if applies]


@dataclass(frozen=True)
class NoiseLaw:
    """The law of the noise of a release, as far as composition goes.

    Parameters
    ----------
    kind : {"laplace", "gaussian", "pure"}
        Laplace noise; Gaussian noise; or any release with an epsilon, of which no more is known.
    parameter : float in (0, inf]
        The epsilon of the release; for Gaussian noise the largest L2 distance of two values that
        is covered, in standard deviations of the noise.

    Examples
    --------
    >>> from skdp.accounting import NoiseLaw
    >>> NoiseLaw("laplace", 0.5)
    NoiseLaw(kind='laplace', parameter=0.5)
    """

    kind: str
    parameter: float

    def __post_init__(self) -> None:
        known = self.kind in ("laplace", "gaussian", "pure")
        check_rules(
            "NoiseLaw",
            kind=(self.kind, known, "be 'laplace', 'gaussian' or 'pure'"),
            parameter=(self.parameter, self.parameter > 0, "be above 0"),
        )
        object.__setattr__(self, "parameter", float(self.parameter))
