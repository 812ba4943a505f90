"""Spend: a row of a ledger."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skdp.core.exact import above, finite
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee

if TYPE_CHECKING:
    from skdp.accounting.composition import PrivacyLossDistribution


@dataclass(frozen=True)
class Spend:
    """A release, as it is written into the ledger."""

    time: str
    label: str | None
    epsilon: float
    delta: float
    gamma: float
    relation: str
    law: str
    parameter: float
    assumed: str | None
    seeded: int

    @classmethod
    def of(
        cls, guarantee: PrivacyGuarantee, law: NoiseLaw | None = None, label: str | None = None
    ) -> Spend:
        """Make the row of a release, or refuse a law that is not that of its guarantee."""
        epsilon, delta = float(guarantee.epsilon), float(guarantee.delta)
        law = law or NoiseLaw("pure", epsilon)
        if law.kind == "gaussian":
            keeps = delta > 0 and loss_of(law).delta(epsilon) <= delta * (1 + 1e-6)
        else:  # a guarantee alone has its delta as a coin
            keeps = law.parameter == epsilon and (delta == 0 or law == NoiseLaw("pure", epsilon))
        if not keeps:
            raise ValueError(
                f"The 'law' of a spend must be that of its guarantee, epsilon={epsilon:g} and "
                f"delta={delta:g}. Got {law}."
            )
        # With probability c over the sampler a share of at most gamma of the pairs is not covered,
        # so over both the probability is at most 1 - c (1 - gamma).
        sure = 1.0 if guarantee.confidence is None else guarantee.confidence
        return cls(
            time=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            label=label,
            epsilon=epsilon,
            delta=delta,
            gamma=above(1 - finite(sure) * (1 - finite(guarantee.gamma))),
            relation=guarantee.relation.value,
            law=law.kind,
            parameter=law.parameter,
            assumed=guarantee.assumed,
            seeded=int(guarantee.seeded),
        )


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
