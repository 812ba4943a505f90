"""The model card: what was released, what is promised for it, and how to use it."""

from __future__ import annotations

import math

from sklearn.base import BaseEstimator, is_classifier, is_regressor

from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import shown
from skdp.core.guarantee import PrivacyGuarantee
from skdp.folder import OBJECT, versions
from skdp.functions.released import ReleasedFunction
from skdp.summary import AS_ORACLE, FIXED, MOSTLY_ORACLE, TOLD_FROM_ZERO, ReleaseSummary

ROWS = 100
LEGEND = (
    "The standard error is what the noise leaves open of a number; the ratio says how many of them "
    f"it is from zero, and below {TOLD_FROM_ZERO:g} it is not told from 0."
)
OF_STEPS = (
    " What a step of a pipeline has learned is in the units in which the steps before it leave the "
    "columns, such as logarithms, whatever these are called."
)
OF_ORACLE = (
    " A number is indistinguishable from the oracle if it is nearly what public records alone "
    "would say. Its standard error is then mostly the room for private records that are unlike the "
    "oracle's, the `shift` of the mechanism: where they are like them, the number is much nearer "
    "to the exact one."
)
OF_MOSTLY = (
    " A number that is mostly the oracle's is nearer to what public records would say than to what "
    "the private ones do, where these differ."
)
OF_ALL = (
    " A number that is the same in all public fits is released as that, whatever the private "
    "records say: it has no standard error."
)


def model_card(
    value: object,
    promise: PrivacyGuarantee,
    budget: BudgetTotal,
    summary: ReleaseSummary | None,
    plan: str,
    is_ready: bool,
    warning: str = "",
) -> str:
    """Write the card in Markdown; `is_ready` says whether a release can be simulated again."""
    numbers = []
    if summary is not None:
        notes = " ".join(summary.notes)
        legend = LEGEND + (OF_ORACLE if AS_ORACLE in notes else "")
        legend += OF_MOSTLY if MOSTLY_ORACLE in notes else ""
        legend += OF_ALL if FIXED in notes else ""
        legend += OF_STEPS if any("__" in name for name in summary.names) else ""
        numbers = ["## What was released", _code(summary.table(ROWS)), legend]
    elif not isinstance(value, BaseEstimator):
        numbers = ["## What was released", _code(shown(value))]
    first, *lines = plan.splitlines()  # of which one repeats the promise
    described = "\n".join([first, *(line for line in lines if not line.startswith("  promise: "))])
    is_estimator = isinstance(value, BaseEstimator)
    what = type(value).__name__ if is_estimator else first.removeprefix("ReleasePlan of ")
    kind, good = (
        ("model", "well the model does") if is_estimator else ("value", "exact the value is")
    )
    seen = "released.summary()  # its numbers beside their standard errors\n" if summary else ""
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [
        f"# {what}, released privately",
        "## What is promised",
        f"{promise}.",
        together(promise, budget),
        _in_words(promise),
        f"It says nothing about how {good}, nor about people who are like those of the records.",
        *numbers,
        *([f"**{warning}**"] if warning else []),
        "## How it came about",
        _code(described),
        "## How to load it",
        '```python\nimport skdp\n\nreleased = skdp.load("this folder")\n'
        f"released.value  # the {kind}\n{seen}```",
        *_advice(value, summary is not None, is_ready),
        f"`{OBJECT}` is a pickle, written by joblib: loading it executes what is in it, so "
        f"load only what you trust. Written with {used}.",
    ]
    return "\n\n".join(parts) + "\n"


def together(promise: PrivacyGuarantee, budget: BudgetTotal) -> str:
    """Say what a release and those before it promise, if somebody counted them."""
    if promise.alone:
        others = "what else was released of the same records adds up"
        counted = f"With those of its process that were charged to none before: {budget}"
        return f"It was charged to no ledger. {counted}; {others}."
    return f"With all earlier releases of its ledger: {budget}."


def _advice(value: object, has_numbers: bool, is_ready: bool) -> list[str]:
    """Say what a loaded model can be asked, and that to fit it is no private fit."""
    lines = []
    for name, kind in (("predict_interval", is_regressor), ("predict_stability", is_classifier)):
        if has_numbers and hasattr(value, "predict") and kind(value):
            says = (
                "says what the noise leaves open of a prediction."
                if is_ready
                else "is not available: the release was saved without `n_draws`."
            )
            lines.append(f"`released.{name}(X)` {says}")
    if hasattr(value, "fit") and not isinstance(value, ReleasedFunction):
        lines.append("`released.value.fit` would fit anew, without any noise: do not call it.")
    return lines


def _in_words(promise: PrivacyGuarantee) -> str:
    """The promise without its terms."""
    if math.isinf(promise.epsilon):
        return "What is released is exact: nothing is hidden."
    words = (
        "The promise is about the records that it was fitted to: what is released would be at most "
        f"exp({promise.epsilon:g}) times as likely if one of them had been another"
        f"{f', but for noise of probability {promise.delta:g}' if promise.delta else ''}."
    )
    if promise.gamma:
        sure = promise.confidence
        words += (
            " It is for pairs of datasets that the oracle might draw, and fails for one with a "
            f"probability of at most {promise.gamma:g}"
            f"{'' if sure is None else f', which is said with confidence {sure:g}'}."
        )
    if promise.basis:
        words += (
            " Directions are the combinations of numbers that got noise; public fits say the rest, "
            "and the promise does not depend on them."
        )
    return words


def _code(thing: object) -> str:
    return f"```text\n{thing}\n```"
