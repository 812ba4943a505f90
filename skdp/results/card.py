"""The card of a saved release, for people."""

from __future__ import annotations

import platform
import re
from importlib.metadata import version

from sklearn.base import BaseEstimator, is_classifier, is_regressor

from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import shown
from skdp.core.guarantee import PrivacyGuarantee
from skdp.functions.released import ReleasedFunction

CARD, FACTS, OBJECT = "README.md", "release.json", "release.joblib"
MODEL, SAFE_MODEL = "estimator.joblib", "estimator.skops"
LIBRARIES = ("skdp", "scikit-learn", "numpy", "scipy", "joblib")
ALONE = {
    MODEL: f"`{MODEL}` is a pickle of the model alone: `joblib.load` needs no skdp.",
    SAFE_MODEL: f"`{SAFE_MODEL}` is the model alone: `skops.io.load` needs no skdp, runs no code.",
}


def model_card(
    value: object,
    promise: PrivacyGuarantee,
    budget: BudgetTotal,
    plan: str,
    files: list[str],
    *,
    table: str | None,
    attacker: tuple[str, ...],
    warning: str,
    can_simulate: bool,
) -> str:
    """Write the card in Markdown; `attacker` says in sentences what an attacker gains."""
    what, kind, good = plan.partition("\n")[0].removeprefix("Plan: "), "value", "exact the value is"
    if isinstance(value, BaseEstimator):
        what, kind, good = type(value).__name__, "model", "well the model does"
    chosen = (line for line in plan.splitlines() if line.startswith("Chosen: "))
    has_numbers = table is not None or kind == "value"
    numbers = ["## What was released", _code(table or shown(value))] if has_numbers else []
    seen = "released.summary()  # its numbers beside their standard errors\n" if table else ""
    used = ", ".join(f"{name} {number}" for name, number in versions().items())
    parts = [
        f"# {what}, released privately",
        "## What is promised",
        _code(str(promise)),
        together(promise, budget),
        "\n".join(f"- {said}" for said in attacker),
        f"It says nothing about how {good}, nor about people who are like those of the records.",
        *numbers,
        *chosen,
        f"**{warning}**" if warning else "",
        "## How to load it",
        '```python\nimport skdp\n\nreleased = skdp.load("this folder")\n'
        f"released.value  # the {kind}\n{seen}released.report()  # what an attacker gains\n```",
        *_advice(value, table is not None, can_simulate),
        f"`{OBJECT}` is a pickle, written by joblib: loading it executes what is in it, so "
        f"load only what you trust. Written with {used}.",
        *(text for name, text in ALONE.items() if name in files),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def together(promise: PrivacyGuarantee, budget: BudgetTotal) -> str:
    """Describe the promise of a release and the charged ones before it."""
    if promise.alone:
        return (
            "It was charged to no ledger. With those of its process that were charged to none "
            f"before: {budget}; what else was released of the same records adds up."
        )
    return f"With all earlier releases of its ledger: {budget}."


def versions() -> dict[str, str]:
    """Return the versions of the libraries that decide what is computed."""
    return {"Python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def _advice(value: object, has_numbers: bool, can_simulate: bool) -> list[str]:
    """Describe the methods of a loaded release, and warn of `fit`."""
    kinds = {"predict_interval": is_regressor, "predict_stability": is_classifier}
    predicts = has_numbers and hasattr(value, "predict")
    says = "is not available: the release was saved without `n_draws`."
    if can_simulate:
        says = "shows how uncertain the noise makes a prediction."
    lines = [f"`released.{n}(X)` {says}" for n, kind in kinds.items() if predicts and kind(value)]
    if hasattr(value, "fit") and not isinstance(value, ReleasedFunction):
        lines.append("`released.value.fit` would fit anew, without any noise: do not call it.")
    return lines


def _code(text: str) -> str:
    """Quote a text in Markdown, whatever backticks are in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return f"{fence}text\n{text}\n{fence}"
