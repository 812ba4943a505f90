"""What a plan prints, and the table of the released numbers beside their standard errors."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.spend import short_label
from skdp.core.checks import wrapped
from skdp.core.target import Target, replaces
from skdp.core.types import Container, Estimator
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.results.names import (
    axis_labels,
    by_attribute,
    flat_names,
    flat_numbers,
    split_entry,
    two_digits,
)

AWAY_FROM_ZERO = 2.0  # a number of fewer standard errors may be 0, or have the other sign
LEAST_LEARNED = 0.1  # a number of which less is from private data is the oracle's
AS_ORACLE = "nearly that of public fits"
FIXED = "the same in all public fits"
NEAR_ZERO = "may be 0"
MOST_ROWS, MOST_ROWS_OF_CARD = 40, 100
LONGEST_NAME = 200
FEW_RANGES = 4  # that a plan says


@dataclass(frozen=True, eq=False)
class ReleaseSummary:
    """A table of the released numbers with their standard errors, made of public numbers only.

    Parameters
    ----------
    promise : str
        The promise.
    names : list of str
        The attribute of each number, with its column and class where they are known.
    values : ndarray of shape (n_numbers,)
        The released numbers, before any repair.
    errors : ndarray of shape (n_numbers,)
        Their standard errors. NaN where they are not known, or where all public fits agree.
    learned : ndarray of shape (n_numbers,)
        The share of the prior variance of each number that the release removed, in [0, 1]. 1
        without a public code.
    repaired : ndarray of shape (n_numbers,) or None, default=None
        The numbers in the model that were brought into range. NaN for the others.
    remark : str, default=""
        How to read the numbers, below the table.
    title : str, default=""
        What was released, above the names.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X, mechanism = np.random.default_rng(0).uniform(size=100), LaplaceMechanism(1.0)
    >>> released = release(np.mean, X, mechanism=mechanism, sensitivity=0.01, names=["age"])
    >>> print(released.summary())
    Differential privacy: epsilon=1
    ...
                      value   std. error
    value[age]       0...          0.014
    ...
    """

    promise: str
    names: list[str]
    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    learned: NDArray[np.float64]
    repaired: NDArray[np.float64] | None = None
    remark: str = ""
    title: str = ""

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Size of each number in standard errors."""
        size = np.abs(self.values)
        out = np.where(size > 0, np.inf, 0.0)
        return np.divide(size, self.errors, out=out, where=self.errors != 0)

    @property
    def notes(self) -> list[str]:
        """One verdict on each number; most are empty."""
        fixed = np.isnan(self.errors) & (self.learned < 1)  # the prior has no variance there
        notes = np.select([fixed, self.ratios < AWAY_FROM_ZERO], [FIXED, NEAR_ZERO], "").tolist()
        if self.repaired is not None:
            for i in np.flatnonzero(~np.isnan(self.repaired)):
                notes[i] = f"model has {self.repaired[i]:.4g}"
        return notes

    def to_frame(self) -> Container:
        """Return all rows as a data frame, with the names as the index."""
        import pandas as pd

        columns = {
            "value": self.values,
            "standard error": self.errors,
            "ratio": self.ratios,
            "learned": self.learned,
            "note": self.notes,
        }
        return pd.DataFrame(columns, index=pd.Index(self.names, name="name"))

    def __str__(self) -> str:
        return f"{self.promise}\n{self.table()}"

    def table(self, most_rows: int = MOST_ROWS) -> str:
        """Write about so many rows, the first of each attribute, without the promise."""
        rows, has_code = list(self._rows(most_rows)), bool((self.learned < 1).any())
        width = max((len(name) for name, *numbers in rows if numbers), default=0)
        width = max(width, len(self.title))
        share = f"{'from your data':>16}" if has_code else ""
        lines = [f"{self.title:{width}}  {'value':>10}{'std. error':>12}{share}"]
        for name, *cells in rows:
            value, error, learned, note = cells or [""] * 4
            share = f"{learned:>16}" if has_code else ""
            lines.append(f"{name:{width}}  {value:>10}{error:>12}{share}  {note}".rstrip())
        return "\n".join([*lines, *filter(None, [wrapped(self.remark)])])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _rows(self, most_rows: int) -> Iterator[tuple[str, ...]]:
        """Yield the first rows below each attribute, and how many are left out."""
        attributes: dict[str, list[tuple[int, str]]] = {}
        for i, name in enumerate(self.names):
            attribute, entry = split_entry(name)
            attributes.setdefault(attribute, []).append((i, entry))
        sizes = np.array([len(rows) for rows in attributes.values()])
        most = 2
        while most < most_rows and np.minimum(sizes, most + 1).sum() <= most_rows:
            most += 1
        notes = self.notes
        for attribute, rows in attributes.items():
            if len(rows) > 1:
                yield (attribute,)
            listed = rows if len(rows) == most + 1 else rows[:most]  # in place of "1 more"
            for i, entry in listed:
                name = f"  {entry}" if len(rows) > 1 else self.names[i]
                is_fixed = notes[i] == FIXED
                error = "" if np.isnan(self.errors[i]) else two_digits(self.errors[i])
                share = "0%" if is_fixed else f"{self.learned[i]:.0%}"
                yield name, f"{self.values[i]:.4g}", error, share, notes[i]
            if len(rows) > len(listed):
                yield (f"  ... {len(rows) - len(listed)} more: see to_frame()",)


def plan_text(plan: Any) -> str:
    """Describe a plan: its promise, its cost, and what the release would be worth."""
    known, target, oracle = plan.sensitivity, plan.target, plan.oracle
    code = plan.mechanism.geometry.code
    rows = [("guarantee", plan.guarantee.short)]
    if known.assumed:
        rows += [("rests on", known.assumed)]
        if oracle is not None:
            rows += [("prior", f"{oracle.description}, for utility only")]
    seconds = f" ({two_digits(plan.seconds)} s)" if plan.seconds >= 1 else ""
    seconds += f", {known.n_reused} of them reused" if known.n_reused else ""
    n_public = plan.n_evaluations or target.n_public_fits
    public = f"{n_public} evaluations on public records{seconds}, then " if n_public else ""
    n_private = target.n_fits or ("one" if n_public else "one evaluation")
    rows += [("cost", f"{public}{n_private} on the private records")]
    rows += [("shares", str(plan.shares)), ("released", target.released)]
    rows += [("components", said) for said in _components(target.estimator)]
    if plan.unit == "person" and not target.sums_persons:
        rows += [("of each person", "one record, drawn anew by each release")]
    noise = type(plan.mechanism).__name__.removesuffix("Mechanism")
    if code is not None:
        noise += f" in {code.n_released} of {code.size} directions"
        if code.n_released < code.size:
            is_most = code.n_released == plan.mechanism.most_values
            noise += ", its most: compare LaplaceMechanism" if is_most else ""
            noise += "; public fits supply the rest"
    rows += [("noise", noise), ("range", plan.limit), ("oracle's ranges", _ranges(plan))]
    expected = plan.expected_score
    table = [] if expected is None or expected.expect else expected.lines
    if expected is not None:
        rows += [("expected score", table[0] if table else expected.line)]
    elif code is not None:
        rows += [("learned", f"{plan.share_learned:.0%} of what public fits leave open")]
    rows += [("advice", plan.advice)]
    if not target.adds_noise and (replaces(target, "by_name") or not target.released):
        rows += [("std. errors", said) for said in _errors(plan)]
    lines = [wrapped(said, f"  {name:<16}") for name, said in rows if said]
    if table:
        place = next(i for i, line in enumerate(lines) if line.startswith("  expected score"))
        lines[place] = "\n    ".join([lines[place], *table[1:]])
    title = f"{short_label(_title(target), LONGEST_NAME)}, {plan.n_samples} private {plan.unit}s"
    return "\n".join([f"Plan: {title}", *lines])


def _ranges(plan: Any) -> str:
    """Describe the ranges of the first columns to which records are clipped."""
    ranges = plan.ranges
    said = [f"{name}: {low:.4g} to {high:.4g}" for name, low, high in ranges[:FEW_RANGES]]
    if len(ranges) > FEW_RANGES:
        said.append(f"{len(ranges) - FEW_RANGES} more in plan.ranges")
    return "; ".join(said)


def _errors(plan: Any) -> Iterator[str]:
    """Describe the standard errors of each attribute: the smallest and the largest."""
    errors, has_code = plan.standard_errors, plan.mechanism.geometry.code is not None
    if errors is None:
        return
    given = plan.mechanism.standard_errors(plan.sensitivity.shape, plan.sensitivity.value)
    labels = axis_labels(plan.names, plan.target, given, plan.target.public_fit)
    for name, values in by_attribute(errors).items():
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


def _components(estimator: Estimator) -> Iterator[str]:
    """Describe the public components in an estimator, whose number a plan has set."""
    members = {} if estimator is None else estimator.get_params(deep=True)
    steps = (each for each in members.values() if not is_frozen(each))
    yield from filter(None, (getattr(each, "description_", "") for each in steps))


def _title(target: Target) -> str:
    """Name the estimator of a target by its steps, or any other target by its description."""
    estimator = target.estimator
    if estimator is None:
        return " ".join(target.description.split())
    steps = dict(estimator.steps).values() if is_pipeline(estimator) else ()
    named = (type(each.estimator if is_frozen(each) else each).__name__ for each in steps)
    inside = ", ".join(named)
    return f"{type(estimator).__name__}({inside})" if inside else type(estimator).__name__
