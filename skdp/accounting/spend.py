"""Spend: a row of a ledger, in decimals as they were typed."""

from __future__ import annotations

import datetime
import math
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee

if TYPE_CHECKING:
    from skdp.accounting.loss import PrivacyLossDistribution

# Sums are of decimals as they were typed, and exact whatever floats they are of: ten times .1 is 1.
UP = Context(prec=700, rounding=ROUND_CEILING)
DOWN = Context(prec=700, rounding=ROUND_FLOOR)
# So many digits any float keeps: a third of .1, times three, is .1 again.
SHORT_UP = Context(prec=15, rounding=ROUND_CEILING)
SHORT_DOWN = Context(prec=15, rounding=ROUND_FLOOR)


@lru_cache(1024)
def exact(number: float) -> Decimal:
    """Return a float as the shortest decimal that is it."""
    return Decimal(repr(float(number)))


def above(number: Decimal) -> float:
    """Return the smallest float whose decimal is not below a number."""
    found = float(number)
    return found if exact(found) >= number else math.nextafter(found, math.inf)


def below(number: Decimal) -> float:
    """Return the largest float whose decimal is not above a number."""
    found = float(number)
    return found if exact(found) <= number else math.nextafter(found, -math.inf)


@dataclass(frozen=True)
class Spend:
    """One row of a ledger: a release, or a series of equal releases that was fixed in advance."""

    time: str
    epsilon: float
    delta: float
    gamma: float
    confidence: float | None
    relation: str
    n_releases: int
    each_epsilon: float
    each_delta: float
    law: str
    parameter: float
    n_samples: int | None
    oracle: str | None
    assumed: str | None
    seeded: int
    sensitivity_key: str | None
    plan_key: str | None
    label: str | None
    partition: str
    part: str

    @classmethod
    def of(
        cls,
        guarantee: PrivacyGuarantee,
        law: NoiseLaw | None,
        n_releases: int,
        *,
        n_samples: int | None,
        partition: str,
        part: str,
        **texts: str | None,
    ) -> Spend:
        """Make the row of a release, or of several that are counted one by one."""
        if law is None:
            law = NoiseLaw("pure", guarantee.epsilon)
        else:
            check_law(law, guarantee)
        for name, text in texts.items():
            if not isinstance(text, str | None):
                raise TypeError(
                    f"The {name!r} parameter of PrivacyAccountant.spend must be a string. Got an "
                    f"object of type {type(text).__name__}."
                )
        if texts["oracle"] is None:
            texts["oracle"] = guarantee.oracle
        kept = DOWN.power(DOWN.subtract(1, exact(guarantee.delta)), n_releases)
        return cls(
            time=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            epsilon=above(UP.multiply(exact(guarantee.epsilon), Decimal(n_releases))),
            delta=float(guarantee.delta) if n_releases == 1 else above(UP.subtract(1, kept)),
            gamma=float(guarantee.gamma),
            confidence=None if guarantee.confidence is None else float(guarantee.confidence),
            relation=guarantee.relation.value,
            n_releases=n_releases,
            each_epsilon=float(guarantee.epsilon),
            each_delta=float(guarantee.delta),
            law=law.kind,
            parameter=law.parameter,
            n_samples=guarantee.n_samples if n_samples is None else int(n_samples),
            assumed=guarantee.assumed,
            seeded=int(guarantee.seeded),
            partition=partition,
            part=part,
            **texts,
        )

    @property
    def square(self) -> Decimal:
        """Twice the rho of zero-concentrated privacy, apart from where a coin of delta falls."""
        if self.law == "gaussian" or not self.each_delta:
            each = UP.multiply(exact(self.parameter), exact(self.parameter))
            return UP.multiply(Decimal(self.n_releases), each)
        return UP.multiply(exact(self.epsilon), exact(self.epsilon))

    @property
    def coin(self) -> float:
        """The delta of each release that its law does not account for."""
        return 0.0 if self.law == "gaussian" else self.each_delta


def short_label(label: str, widest: int = 60) -> str:
    """Shorten what a release is called: of a model, its estimator stands before its attributes.

    Of a list of these as many are left as fit, and the number of the others.
    """
    label = label if len(label) <= widest else estimator_first(label)
    if len(label) <= widest:
        return label
    names = label.split(", ")
    shorter = [
        f"{', '.join(names[:n_left])} and {len(names) - n_left} more"
        for n_left in range(len(names) - 1, 0, -1)
    ]
    model, colon, _ = names[0].rpartition(": ")
    shorter += [f"{model}: {len(names)} attributes"] if colon and shorter else []
    fitting = [each for each in shorter if len(each) <= widest and "(" not in each]
    return fitting[0] if fitting else f"{label[: widest - 4]} ..."


def estimator_first(label: str) -> str:
    """Write the class of a model before its attributes, and leave out its parameters."""
    released, _, configured = label.partition(" of ")
    classes = re.findall(r"[A-Z]\w*(?=\()", configured)
    if not classes:
        return label
    ends = classes[-1:] if classes[0] == "Pipeline" else (classes[0], classes[-1])
    return f"{' ... '.join(dict.fromkeys(ends))}: {released}"


def check_law(law: NoiseLaw, guarantee: PrivacyGuarantee) -> None:
    """Refuse a law that is not that of the guarantee."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if law.kind == "gaussian":
        keeps = delta > 0 and loss_of(law).delta(epsilon) <= delta * (1 + 1e-6)
    else:
        keeps = delta == 0 and law.parameter == epsilon
    if not keeps:
        raise ValueError(
            f"The 'law' of a spend must be that of its guarantee, epsilon={epsilon:g} and "
            f"delta={delta:g}. Got {law}."
        )


def loss_of(law: NoiseLaw) -> PrivacyLossDistribution:
    """Return the law of the privacy loss, no better than that of noise on a lattice.

    Of one number, the curve of discrete Laplace noise of step w joins points of the continuous
    one, 2 w apart; that of a distance longer by ``2 ln cosh(w / 2) <= w^2 / 4`` lies above it. Of
    several numbers, at most epsilon / w of which differ, each takes as much; w is at most
    ``epsilon / 2^14``.
    """
    from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss  # scipy takes time

    if law.kind == "gaussian":
        return GaussianLoss(law.parameter)
    if law.kind == "pure":
        return PureLoss(law.parameter)
    return LaplaceLoss(law.parameter * (1 + law.parameter * 2**-15 + 2**-50))
