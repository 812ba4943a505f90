"""The report of a release for people who must approve it, in words that need no statistics."""

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
from skdp.core.checks import shown, wrapped
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.results.expected import ScoreAt
from skdp.results.names import percent, versions

FALSE_POSITIVE_RATES = (0.01, 0.001)
SUSPICIONS = (0.01, 0.1, 0.5)
SURELY = 0.999  # probability of the loss that suspicions suppose where it has no bound
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy")

ASKED = {
    "record": "One record is",
    "purpose": "It is released for",
    "public_records": "Public records and declared ranges come from",
    "contact": "Questions are answered by",
}
"""What only the owner of the records knows: parameters of `report`, and the words before them."""

PUBLISHED = {
    "Google, searches for symptoms: a person and day": ("1.68", 1.68),
    "Apple, words and emoji typed: a person and day": ("4 to 16", 4.0),
    "Israel, births of the year 2014: a birth": ("9.98", 9.98),
}
"""The epsilon of others, and its least value, by who published what and what it protects."""
SOURCES = (
    "Sources: arXiv:2009.01265, arXiv:2405.00267 and the list of deployments at "
    "desfontain.es/blog/real-world-differential-privacy.html. The guideline NIST SP 800-226 sets "
    "no number."
)
ALTERNATIVES = (
    "The same without noise promises nothing. A smaller epsilon shows less and is less exact. A "
    "model of public records alone shows nothing of the private ones. The expected score in the "
    "plan of a model says what each is worth. Who approves decides whether that justifies the "
    "release."
)

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;"
    "margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}h1{font-size:1.4rem}"
    "h2{font-size:1.1rem}table{border-collapse:collapse;width:100%}"
    "td{border-top:1px solid #8886;padding:.35rem 0}"
    "td+td{text-align:right;padding-left:1rem}td+td,span{white-space:nowrap}"
    "@media print{body{font-size:9pt;line-height:1.2;margin:0;max-width:none}h1{margin:0;font-size:"
    "1.2em}h2{margin:.3rem 0 0;font-size:1.1em}p{margin:.05rem 0}td{padding:0}}"  # one page
)
NUMBER = re.compile(r"\d[\d.]*e-\d+")  # a browser would break it at the hyphen


@dataclass(frozen=True)
class PrivacyReport:
    """What a release promises, what it can show of one record, and what is not covered.

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
    stated : dict of str to str
        What the owner of the records stated, by the parameter of `report`. The report asks for
        what is empty.
    score : ScoreAt or None, default=None
        The accuracy on the private records, if a share of epsilon paid for it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=1 / 100)
    >>> report = released.report(record="the income of one household")
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
    stated: dict[str, str]
    score: ScoreAt | None = None

    @property
    def lines(self) -> tuple[str, ...]:
        """What others can learn at most about one record, and what is not covered."""
        return (*(f"{said}: {number}." for said, number in self._gains()), *self._limits())

    def _facts(self) -> Iterator[str]:
        """Yield what the owner states, and ask for the rest by name."""
        if not math.isinf(self.guarantee.epsilon):
            yield "Made of private records, with noise. None of the records is part of it."
        if self.score is not None:
            yield f"Share of the private records for which it is right: {self.score}."
        for name, said in ASKED.items():
            stated = self.stated[name] or f'(please state it: report({name}="..."))'
            yield f"{said}: {stated}"

    def _promise(self) -> Iterator[str]:
        """Yield the promise without terms of the field."""
        promise = self.guarantee
        if math.isinf(promise.epsilon):
            yield "Nothing is hidden: the release is exact."
            return
        unit, whole = promise.unit, " with all records" if promise.unit == "person" else ""
        one = unit if promise.n_samples is None else f"of the {promise.n_samples} {unit}s"
        yield (
            f"If one {one} is replaced by another{whole}, the probability of each possible "
            f"result changes by a factor of at most {math.exp(min(promise.epsilon, 700)):.3g} "
            f"(epsilon={promise.epsilon:g})."
        )
        if promise.delta:
            cases = math.floor((1 + 1e-9) / promise.delta)
            yield f"This may fail by chance in 1 of {cases:,} cases (delta={promise.delta:g})."
        if promise.gamma:
            yield (
                f"How much one {unit} can change was measured on records of a public source (the "
                "oracle), which stands for the private ones. The promise is for tables of such "
                f"records. It may fail for {percent(promise.gamma)} of the pairs of tables that "
                f"differ in one {unit} (gamma)."
            )
        else:
            yield f"This holds for every {unit}, also for an unusual one."

    def _gains(self) -> Iterator[tuple[str, str]]:
        """Yield what can be learned at most about one record: a sentence and a number."""
        right = percent(0.5 + self.advantage / 2)
        unit = self.guarantee.unit
        yield f"Right guesses which of two candidates the {unit} is (a coin: 50%)", right
        for before, after in self.suspicions.items():
            yield (
                f"Somebody who was {percent(before)} sure of a fact becomes at most",
                percent(after),
            )
        for rate, found in self.true_positive_rates.items():
            said = (
                f"{unit.capitalize()}s found by a test that names {percent(rate)} of others wrongly"
            )
            yield said, percent(found)

    def _limits(self) -> Iterator[str]:
        """Yield what the numbers leave open."""
        promise = self.guarantee
        if promise.gamma:
            yield (
                f"For {percent(promise.gamma)} of the pairs of tables (gamma) nothing is promised: "
                f"the release may show more of the {promise.unit} in which they differ. Each "
                f"{promise.unit} like the public ones has this chance. Unusual ones are at risk, "
                "and those unlike the public ones may not be covered."
            )
        if promise.delta:
            yield "With a probability of at most 0.001 somebody becomes surer than that."
        yield "What many records have in common is not hidden."
        yield (
            f"The number of {promise.unit}s, the names and types of the columns, the class labels "
            "and all settings count as public."
        )
        yield "The time and the memory that the fit took are not covered."

    def _usual(self) -> Iterator[tuple[str, ...]]:
        """Yield the epsilons that others published, with that of the release in its place."""
        own = self.guarantee.epsilon
        yield ("A smaller epsilon shows less. It protects what stands beside it:",)
        rows = PUBLISHED | {f"This release: one {self.guarantee.unit}": (f"{own:g}", own)}
        for said, (number, _) in sorted(rows.items(), key=lambda row: row[1][1]):
            yield said, number
        theirs = "The others promise it for all records, without a gamma. "
        yield (theirs * (self.guarantee.gamma > 0) + SOURCES,)

    def _sections(self) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
        """Yield each heading with its paragraphs, or with its rows of a sentence and a number."""
        kind, *said_of_it = self.guarantee.sentences()
        formal = said_of_it[:1]
        conditions = [said for said in said_of_it[1:] if not said.startswith("Other releases")]
        used = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        more = "Each further release of the same records adds to what can be learned."
        checks = self.checks or (
            "No attack on the release was tried. The promise does not need one, but an attack "
            "can find errors of the software: skdp.audit tries it, report(audit=...) shows how.",
        )
        unit = self.guarantee.unit
        known = f"By somebody who has the release, all other {unit}s, and any computer"
        gamma = percent(self.guarantee.gamma)
        known += f". For {gamma} it may be more:" if self.guarantee.gamma else ":"
        average = (
            "The share of right guesses is an average over all results that the noise can give. "
            "How sure somebody becomes is for the one result that shows most."
        )
        yield "What was released", [(said,) for said in self._facts()]
        yield "What is promised", [(said,) for said in self._promise()]
        learned = f"What can be learned at most about one {unit}"
        yield learned, [(known,), *self._gains(), (average,)]
        limits = (*conditions, *self._limits())
        yield "What it rests on, and what is not covered", [(said,) for said in limits]
        yield "Is this usual?", [*self._usual()]
        yield "Other releases", [(more,), (together(self.guarantee, self.budget),)]
        yield "How it was checked", [(said,) for said in checks]
        yield "What else could be done", [(ALTERNATIVES,)]
        yield "For experts", [(f"{kind}. {' '.join(formal)}",), (used,)]

    def __str__(self) -> str:
        lines = [wrapped(f"Privacy report: {self.title}")]
        for heading, listed in self._sections():
            lines += ["", heading]
            for said, *number in listed:
                lines += [f"  {said:<66}{number[0]:>8}" if number else wrapped(said, "  ")]
        return "\n".join(lines)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the report as a whole page without scripts, and write it to a given path."""
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
        """Return all fields as plain numbers and texts, by name."""
        return {
            "title": self.title,
            "guarantee": self.guarantee.to_dict(),
            "advantage": self.advantage,
            "true_positive_rates": {str(k): v for k, v in self.true_positive_rates.items()},
            "suspicions": {str(k): v for k, v in self.suspicions.items()},
            "budget": str(self.budget),
            "checks": list(self.checks),
            "versions": self.versions,
            "stated": self.stated,
            "score": self.score and self.score._asdict(),
        }

    def to_json(self) -> str:
        """Return the fields of `to_dict` as JSON."""
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
    checks: tuple[str, ...] = (),
    score: ScoreAt | None = None,
    **stated: str,
) -> PrivacyReport:
    """Compute what an attacker gains from the law of the noise, or from epsilon and delta."""
    for name, said in {"title": title, **stated}.items():
        if not isinstance(said, str):
            raise TypeError(
                f"The {name!r} parameter of report must be a string, in words for those who "
                f"approve. Got {shown(said)}."
            )
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
        {name: stated.get(name, "") for name in ASKED},
        score,
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
