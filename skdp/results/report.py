"""The report of a release for people who must approve it: what an attacker gains, in words."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from skdp.accounting.spend import loss_of
from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import wrapped
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.results.names import percent, versions

FALSE_POSITIVE_RATES = (0.01, 0.001)
SUSPICIONS = (0.01, 0.1, 0.5)
SURELY = 0.999  # probability of the loss that suspicions suppose where it has no bound
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy")

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;"
    "margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.4rem}"
    "h2{font-size:1.1rem}table{border-collapse:collapse;width:100%}"
    "td{border-top:1px solid #8886;padding:.35rem 0}"
    "td+td{text-align:right;padding-left:1rem}td+td,span{white-space:nowrap}"
)
NUMBER = re.compile(r"\d[\d.]*e-\d+")  # a browser would break it at the hyphen


@dataclass(frozen=True)
class PrivacyReport:
    """What a release promises, and what an attacker gains who knows all other records.

    Made by :meth:`skdp.Release.report`. Printing gives a text; a notebook shows a page.

    Parameters
    ----------
    title : str
        What was released.
    guarantee : PrivacyGuarantee
        The promise.
    advantage : float in [0, 1]
        The largest difference between the true and the false positive rate of a test that tells two
        neighboring datasets apart by the release: the total variation distance.
    true_positive_rates : dict of float to float
        By false positive rate, the largest true positive rate of such a test.
    suspicions : dict of float to float
        By probability that an attacker assigned to a record or a person beforehand, the largest one
        afterwards. Where the loss has no bound, it is that of a loss that occurs with probability
        0.999.
    budget : BudgetTotal
        The promise of all releases of the ledger together.
    checks : tuple of str
        Results of audits.
    versions : dict of str to str
        Versions of the software.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> report = released.report()
    >>> round(report.advantage, 3), round(report.true_positive_rates[0.01], 4)
    (0.393, 0.0272)
    """

    title: str
    guarantee: PrivacyGuarantee
    advantage: float
    true_positive_rates: dict[float, float]
    suspicions: dict[float, float]
    budget: BudgetTotal
    checks: tuple[str, ...]
    versions: dict[str, str]

    @property
    def lines(self) -> tuple[str, ...]:
        """What an attacker gains at most who knows all other records, and what that leaves open."""
        return (*(f"{said}: {number}." for said, number in self._gains()), *self._limits())

    def _gains(self) -> Iterator[tuple[str, str]]:
        """Yield what an attacker gains at most: a sentence and a number."""
        right = percent(0.5 + self.advantage / 2)
        unit = self.guarantee.unit
        yield f"Right guesses between two candidates for a {unit} (a coin: 50%)", right
        yield "Advantage: true positive rate minus false positive rate", percent(self.advantage)
        for rate, found in self.true_positive_rates.items():
            said = f"Largest true positive rate at a false positive rate of {percent(rate)}"
            yield said, percent(found)
        for before, after in self.suspicions.items():
            yield f"A suspicion of {percent(before)} becomes at most", percent(after)

    def _limits(self) -> Iterator[str]:
        promise = self.guarantee
        if math.isinf(promise.epsilon):
            yield "Nothing is hidden: the release is exact."
        if promise.gamma:
            share = percent(promise.gamma)
            yield f"The numbers hold for all but {share} of the pairs that the oracle may draw."
        if promise.delta:
            yield "What a suspicion becomes is exceeded with a probability of at most 0.001."
        yield "The time and the memory that the fit took are not covered."

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
        """Yield each heading with its paragraphs, or with its rows of a sentence and a number."""
        short, *sentences = self.guarantee.sentences()
        promised = filter(None, (short, " ".join(sentences)))
        used = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        checks = self.checks or ("None was passed to the report.",)
        yield "What was promised", [(said,) for said in promised]
        others = f"all other {self.guarantee.unit}s"
        yield f"What an attacker gains at most who knows {others}", [*self._gains()]
        yield "What this leaves open", [(said,) for said in self._limits()]
        yield "All releases that were counted together", [(together(self.guarantee, self.budget),)]
        yield "Checks that ran", [(said,) for said in checks]
        yield "Software", [(used,)]

    def __str__(self) -> str:
        lines = [wrapped(f"Privacy report: {self.title}")]
        for heading, listed in self._sections():
            lines += ["", heading]
            for said, *number in listed:
                lines += [f"  {said:<66}{number[0]:>8}" if number else wrapped(said, "  ")]
        return "\n".join(lines)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as a page, and write it to a file if one is named.

        Parameters
        ----------
        path : str, Path or None, default=None
            Where to write it.

        Returns
        -------
        str
            A whole document, without scripts.
        """
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        head += f"<title>Privacy report</title><style>{STYLE}</style>"
        body = self._repr_html_()
        page = f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _repr_html_(self) -> str:
        parts = [f"<h1>Privacy report: {html.escape(self.title)}</h1>"]
        for heading, listed in self._sections():
            parts += [f"<h2>{heading}</h2>"]
            for said, *number in listed:
                row = f"<table><tr><td>{said}</td><td>{''.join(number)}</td></tr></table>"
                paragraph = NUMBER.sub(r"<span>\g<0></span>", html.escape(said))
                parts += [row if number else f"<p>{paragraph}</p>"]
        return "".join(parts).replace("</table><table>", "")

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain Python numbers and texts.

        Returns
        -------
        dict
            By the name of the field.
        """
        return {
            "title": self.title,
            "guarantee": self.guarantee.to_dict(),
            "advantage": self.advantage,
            "true_positive_rates": {str(k): v for k, v in self.true_positive_rates.items()},
            "suspicions": {str(k): v for k, v in self.suspicions.items()},
            "budget": str(self.budget),
            "checks": list(self.checks),
            "versions": self.versions,
        }

    def to_json(self) -> str:
        """Return the report as JSON.

        Returns
        -------
        str
            An object with the fields of `to_dict`.
        """
        return json.dumps(self.to_dict(), indent=2)


def together(promise: PrivacyGuarantee, budget: BudgetTotal) -> str:
    """Describe the promise of a release and the charged ones before it."""
    if promise.alone:
        start = "It was charged to no ledger. All such releases of its process, up to this one,"
        return f"{start} cost together {budget}."
    of_record = ", for one record" if promise.unit == "person" else ""
    return f"With all earlier releases of its ledger{of_record}: {budget}."


def make_report(
    title: str,
    guarantee: PrivacyGuarantee,
    law: NoiseLaw | None,
    budget: BudgetTotal,
    checks: tuple[str, ...],
) -> PrivacyReport:
    """Compute what an attacker gains from the law of the noise, or from epsilon and delta."""
    delta, surely = _curve(guarantee, law)
    return PrivacyReport(
        title,
        guarantee,
        float(delta(0.0)),
        {rate: true_positive_rate(delta, surely, rate) for rate in FALSE_POSITIVE_RATES},
        # by the rule of Bayes, after the largest loss
        {before: 1 / (1 + (1 - before) / before * math.exp(-surely)) for before in SUSPICIONS},
        budget,
        checks,
        versions(LIBRARIES),
    )


def _curve(
    guarantee: PrivacyGuarantee, law: NoiseLaw | None
) -> tuple[Callable[[float], float], float]:
    """Return delta as a function of epsilon, and a level that the loss surely does not exceed."""
    from skdp.accounting.laws import PureLoss  # scipy takes time

    if math.isinf(guarantee.epsilon):
        return (lambda _: 1.0), math.inf
    if law is not None and not math.isinf(law.parameter):
        loss = loss_of(law)
        return loss.delta, min(loss.bound, loss.quantile(SURELY))
    # P(loss > t) (1 - exp(epsilon - t)) <= delta
    fails, pure = guarantee.delta, PureLoss(guarantee.epsilon)
    surely = math.inf
    if fails < 1 - SURELY:
        surely = guarantee.epsilon - math.log1p(-fails / (1 - SURELY))
    return (lambda level: fails + (1 - fails) * pure.delta(level)), surely


def true_positive_rate(
    delta: Callable[[float], float], reach: float, false_positive_rate: float
) -> float:
    """Return the largest true positive rate of a test: the least of all bounds that hold."""
    from scipy.optimize import minimize_scalar  # it takes time

    reach = min(reach, 50.0)

    def bound(level: float) -> float:  # which every epsilon gives, of either sign
        return math.exp(level) * false_positive_rate + float(delta(level))

    levels = np.linspace(-reach, reach, 401)
    bounds = [bound(level) for level in levels]
    best = int(np.argmin(bounds))
    ends = levels[max(0, best - 1)], levels[min(best + 1, 400)]
    found = minimize_scalar(bound, bounds=ends, method="bounded", options={"xatol": 1e-10})
    return float(min(1.0, bounds[best], found.fun))
