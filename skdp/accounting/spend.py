"""Spend: a row of a ledger."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdp.accounting.exact import Exact, above, exact, finite, power_below
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee

if TYPE_CHECKING:
    from skdp.accounting.composition import PrivacyLossDistribution


@dataclass(frozen=True)
class Spend:
    """A release, or a series of equal releases that was fixed in advance."""

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
    label: str | None
    partition: str
    part: str

    @classmethod
    def of(
        cls,
        guarantee: PrivacyGuarantee,
        law: NoiseLaw | None = None,
        n_releases: int = 1,
        *,
        sensitivity_key: str | None = None,
        label: str | None = None,
        partition: str = "",
        part: str = "",
    ) -> Spend:
        """Make the row of a release, or of several that are counted one by one."""
        if law is None:
            law = NoiseLaw("pure", guarantee.epsilon)
        else:
            check_law(law, guarantee)
        for name, text in (("sensitivity_key", sensitivity_key), ("label", label)):
            if not isinstance(text, str | None):
                raise TypeError(
                    f"The {name!r} parameter of PrivacyAccountant.spend must be a string. Got an "
                    f"object of type {type(text).__name__}."
                )
        sure = guarantee.confidence
        return cls(
            time=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            epsilon=above(exact(guarantee.epsilon) * n_releases),
            delta=above(1 - power_below(1 - finite(guarantee.delta), n_releases)),
            gamma=float(guarantee.gamma),
            confidence=None if sure is None else float(sure),
            relation=guarantee.relation.value,
            n_releases=n_releases,
            each_epsilon=float(guarantee.epsilon),
            each_delta=float(guarantee.delta),
            law=law.kind,
            parameter=law.parameter,
            n_samples=guarantee.n_samples,
            oracle=guarantee.oracle,
            assumed=guarantee.assumed,
            seeded=int(guarantee.seeded),
            sensitivity_key=sensitivity_key,
            label=label,
            partition=partition,
            part=part,
        )

    @property
    def square(self) -> Exact:
        """Twice the rho of zero-concentrated privacy, apart from where a coin of delta falls."""
        if self.law == "gaussian" or not self.each_delta:
            return self.n_releases * exact(self.parameter) ** 2
        return exact(self.epsilon) ** 2

    @property
    def coin(self) -> float:
        """The delta of each release that its law does not account for."""
        return 0.0 if self.law == "gaussian" else self.each_delta


def short_label(label: str, widest: int = 60) -> str:
    """Shorten a label: the estimator comes first, and attributes that do not fit are counted."""
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
    """Return the law of the privacy loss, no better than that of noise on a lattice."""
    from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss  # scipy takes time

    if law.kind == "gaussian":
        return GaussianLoss(law.parameter)
    if law.kind == "pure":
        return PureLoss(law.parameter)
    # Of one number, the curve of discrete Laplace noise of step w joins points of the continuous
    # one, 2 w apart; that of a distance longer by 2 ln cosh(w / 2) <= w^2 / 4 lies above it. Of
    # several numbers, at most epsilon / w of which differ, each takes as much; w <= epsilon / 2^14.
    return LaplaceLoss(law.parameter * (1 + law.parameter * 2**-15 + 2**-50))
