"""What a plan prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from skdp.accounting.spend import short_label
from skdp.core.checks import wrapped
from skdp.core.target import Target, replaces
from skdp.estimators.catalog.compositions import is_frozen
from skdp.results.names import axis_labels, flat_names, flat_numbers
from skdp.results.summary import FIXED
from skdp.results.writing import two_digits

LONGEST_NAME = 200


def plan_text(plan: Any) -> str:
    """Describe a plan: its promise, its cost, and what the release would be worth."""
    known, target, oracle = plan.sensitivity, plan.target, plan.oracle
    code = plan.mechanism.geometry.code
    rows = [("guarantee", plan.guarantee.short)]
    if getattr(known, "assumed", None):
        rows += [("rests on", known.assumed)]
        if oracle is not None:
            rows += [("prior", f"{oracle.description}, for utility only")]
    seconds = f" ({two_digits(plan.seconds)} s)" if plan.seconds >= 1 else ""
    n_reused = getattr(plan.sensitivity, "n_reused", 0)
    seconds += f", {n_reused} of them reused" if n_reused else ""
    n_public = plan.n_evaluations or getattr(target, "n_public_fits", 0)
    public = f"{n_public} evaluations on public records{seconds}, then " if n_public else ""
    n_private = getattr(target, "n_fits", "one evaluation" if not n_public else "one")
    rows += [("cost", f"{public}{n_private} on the private records")]
    rows += [("released", getattr(target, "released", ""))]
    noise = type(plan.mechanism).__name__.removesuffix("Mechanism")
    if code is not None:
        noise += f" in {code.n_released} of {code.size} directions"
        if code.n_released < code.size:
            noise += "; public fits supply the rest"
    rows += [("noise", noise)]
    if plan.expected_score is not None:
        rows += [("expected score", str(plan.expected_score))]
    elif code is not None:
        rows += [("learned", f"{plan.share_learned:.0%} of what public fits leave open")]
    rows += [("advice", plan.advice)]
    if replaces(target, "by_name") or not hasattr(target, "released"):  # else nobody reads them
        rows += [("std. errors", said) for said in _errors(plan)]
    lines = (wrapped(said, f"  {name:<16}") for name, said in rows if said)
    title = f"{short_label(_title(target), LONGEST_NAME)}, {plan.n_samples} private records"
    return "\n".join([f"Plan: {title}", *lines])


def _errors(plan: Any) -> Iterator[str]:
    """Describe the standard errors of each attribute: the smallest and the largest."""
    errors, has_code = plan.standard_errors, plan.mechanism.geometry.code is not None
    if errors is None:
        return
    fitted = getattr(plan.target, "public_fit", None)
    given = plan.mechanism.standard_errors(plan.sensitivity.shape, plan.sensitivity.value)
    labels = axis_labels(plan.names, plan.target, given, fitted)
    for name, values in (errors if isinstance(errors, dict) else {"value": errors}).items():
        numbers, names = flat_numbers({name: values}), flat_names({name: values}, labels)
        noisy = np.flatnonzero(numbers != 0) if has_code else np.arange(len(numbers))
        if not len(noisy):
            yield f"{name} {FIXED}"
            continue
        at = noisy[numbers[noisy].argmin()], noisy[numbers[noisy].argmax()]
        ends = [two_digits(numbers[i]) for i in at]
        if ends[0] != ends[1]:
            inner = (names[i].removeprefix(name) for i in at)
            ends = [" ".join(pair) for pair in zip(ends, inner, strict=True)]
        yield f"{name} {' to '.join(dict.fromkeys(ends))}"


def _title(target: Target) -> str:
    """Name the estimator of a target by its steps, or any other target by its description."""
    estimator = getattr(target, "estimator", None)
    if estimator is None:
        return " ".join(target.description.split())
    steps = ", ".join(_class_of(step) for _, step in getattr(estimator, "steps", ()))
    return f"{type(estimator).__name__}({steps})" if steps else type(estimator).__name__


def _class_of(step: Any) -> str:
    """Name the class of a step, of a frozen one that of what was fitted."""
    return type(step.estimator if is_frozen(step) else step).__name__
