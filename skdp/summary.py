"""ReleaseSummary: what was released, number by number, beside its standard error."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import AxisLabels, Labels, Values

# A number whose release took away less of its prior variance is as the oracle had it, and with less
# than a half nearer to that than to what the records say; one that is nearer to zero than so many
# standard errors may be zero, or have the other sign.
LEAST_LEARNED = 0.1
HALF_LEARNED = 0.5
TOLD_FROM_ZERO = 2.0

AS_ORACLE = "indistinguishable from the oracle"
MOSTLY_ORACLE = "mostly the oracle's"
FIXED = "the same in all public fits"

LIKE_THE_ORACLE = (
    "Standard errors are of the noise alone, not of drawing the private records, and suppose that "
    "these are like the oracle's, up to the `shift` of the mechanism."
)
MORE_SHIFT = (
    "Where a public table is of other people or years they may be too small, most of all where "
    "little was read off the records: `shift=1` allows for that."
)
ERR_TOGETHER = (
    "Numbers that were decoded together may err together: what is made of several, such as a "
    "prediction, may be known better or worse than each."
)

MOST_ROWS = 40

# A number in brackets belongs to the attribute if more of its name follows.
ENTRY = re.compile(r"((?:[^\[\]]|\[\d+\](?=[\[_]))+)\[(.*)\]", re.DOTALL)


@dataclass(frozen=True, eq=False)
class ReleaseSummary:
    """What was released, number by number. It is made of released and public numbers only.

    Printed, it shows the first numbers of each attribute, about twenty in all; in a notebook it is
    a table of these.

    Parameters
    ----------
    promise : str
        What was promised.
    names : list of str
        What each number is: an attribute and, where they are known, its column and class.
    values : ndarray of shape (n_numbers,)
        The released numbers, before any repair.
    errors : ndarray of shape (n_numbers,)
        Their standard errors; NaN where they are not known, or all public fits are the same.
    learned : ndarray of shape (n_numbers,)
        Which share of the prior variance of each number the release took away, in [0, 1]: near 0 it
        is as the oracle had it. 1 without a public code, where there is no prior.
    repaired : ndarray of shape (n_numbers,) or None, default=None
        The numbers as they are in the model, where they were brought into range; else NaN.
    remark : str, default=""
        How to read them, below the table: of two classes, for which one the coefficients speak;
        what a density is made of them.

    See Also
    --------
    PrivateEstimator.summary : Makes that of a fitted model.
    Release.summary : Makes that of any release.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 2))
    >>> mechanism = LaplaceMechanism(1.0)
    >>> means = lambda X: X.mean(axis=0)
    >>> released = release(
    ...     means, X, mechanism=mechanism, sensitivity=0.02, names=["age", "income"], random_state=0
    ... )
    >>> print(released.summary())
    epsilon=1 differential privacy, replace-one, n=100, ...
               released   std. error    ratio
    value
      age     ...
      income  ...
    """

    promise: str
    names: list[str]
    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    learned: NDArray[np.float64]
    repaired: NDArray[np.float64] | None = None
    remark: str = ""

    @property
    def ratios(self) -> NDArray[np.float64]:
        """How many standard errors each number is from zero."""
        size = np.abs(self.values)
        out = np.where(size > 0, np.inf, 0.0)
        return np.divide(size, self.errors, out=out, where=self.errors != 0)

    @property
    def notes(self) -> list[str]:
        """What to beware of, number by number; mostly empty."""
        as_oracle = self.learned < LEAST_LEARNED
        fixed = as_oracle & np.isnan(self.errors)  # the prior leaves it no room
        mostly = (self.learned < HALF_LEARNED) & ~as_oracle
        near = (self.ratios < TOLD_FROM_ZERO) & ~as_oracle
        repaired = np.full(len(fixed), np.nan) if self.repaired is None else self.repaired
        found = {FIXED: fixed, AS_ORACLE: as_oracle & ~fixed, MOSTLY_ORACLE: mostly}
        found["not told from 0"] = near
        notes = [[note for note, holds in found.items() if holds[i]] for i in range(len(fixed))]
        for i in np.flatnonzero(~np.isnan(repaired)):
            notes[i].append(f"{repaired[i]:.4g} in the model")
        return list(map("; ".join, notes))

    def to_frame(self) -> Any:
        """Return all rows as a data frame.

        Returns
        -------
        pandas.DataFrame
            Columns ``released``, ``standard error``, ``ratio``, ``learned`` and ``note``, with the
            names as the index.
        """
        import pandas as pd

        columns = {
            "released": self.values,
            "standard error": self.errors,
            "ratio": self.ratios,
            "learned": self.learned,
            "note": self.notes,
        }
        return pd.DataFrame(columns, index=pd.Index(self.names, name="name"))

    def __str__(self) -> str:
        return f"{self.promise}\n{self.table()}"

    def table(self, most_rows: int = MOST_ROWS) -> str:
        """Write the first numbers of each attribute below each other.

        Parameters
        ----------
        most_rows : int, default=40
            About how many; all of them if there are no more.

        Returns
        -------
        str
            As printed, without the promise.
        """
        rows = list(self._rows(most_rows))
        width = max((len(name) for name, *numbers in rows if numbers), default=0)
        lines = [f"{'':{width}}  {'released':>11}{'std. error':>13}{'ratio':>9}"]
        for name, *cells in rows:
            value, error, ratio, note = cells or [""] * 4
            line = f"{name:{width}}  {value:>11}{error:>13}{ratio:>9}  {note}"
            lines.append(line.rstrip())
        return "\n".join([*lines, *filter(None, [self.remark])])

    def _repr_html_(self) -> str:
        heads = ("", "released", "standard error", "ratio", "")
        head = "".join(f"<th>{text}</th>" for text in heads)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        promise, remark = (
            f"<p>{html.escape(said)}</p>" if said else "" for said in (self.promise, self.remark)
        )
        return f"{promise}<table><tr>{head}</tr>{body}</table>{remark}"

    def _rows(self, most_rows: int = MOST_ROWS) -> Iterator[tuple[str, ...]]:
        """The first rows below each attribute, and how many are left out."""
        attributes: dict[str, list[tuple[int, str]]] = {}
        for i, name in enumerate(self.names):
            attribute, entry = split_entry(name)
            attributes.setdefault(attribute, []).append((i, entry))
        sizes = np.array([len(rows) for rows in attributes.values()])
        most = 2
        while most < most_rows and np.minimum(sizes, most + 1).sum() <= most_rows:
            most += 1
        ratios, notes = self.ratios, self.notes
        for attribute, rows in attributes.items():
            if len(rows) > 1:
                yield (attribute,)
            shown = rows if len(rows) == most + 1 else rows[:most]  # in place of "1 more"
            for i, entry in shown:
                name = f"  {entry}" if len(rows) > 1 else self.names[i]
                is_near = ratios[i] < TOLD_FROM_ZERO  # which 1.96 is, so that it is no 2
                ratio = min(ratios[i], 1.9) if is_near else ratios[i]
                errors = map(two_digits, (self.errors[i], ratio))
                known = ("", "") if notes[i].startswith(FIXED) else errors
                yield name, f"{self.values[i]:.4g}", *known, notes[i]
            if len(rows) > len(shown):
                yield (f"  ... {len(rows) - len(shown)} more: see to_frame()",)


def two_digits(number: float) -> str:
    """Write a number of which no more than two digits matter, below 10,000 without an exponent."""
    return f"{number:.0f}" if 10 <= number < 1e4 else f"{number:.2g}"


def split_entry(name: str) -> tuple[str, str]:
    """Split "estimators_[0]__coef_[age]", say, into the attribute and its entry."""
    found = ENTRY.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def flat_names(
    numbers: NDArray[np.float64] | Values, labels: AxisLabels | None = None
) -> list[str]:
    """Name each number: by its attribute, and by class and column where `labels` has them."""
    names = []
    for attribute, name, part in _arrays(numbers):
        names += _indexed(name, np.shape(part), (labels or {}).get(attribute, (None, None)))
    return names


def remark_on_sign(numbers: NDArray[np.float64] | Values, labels: AxisLabels | None) -> str:
    """Say for which of two classes coefficients speak that are kept once for both."""
    for attribute, name, part in _arrays(numbers):
        classes, _ = (labels or {}).get(attribute, (None, None))
        is_once = name.endswith("coef_") and np.shape(part)[:-1] in ((), (1,))
        is_of_part = "[" in name  # which has made up labels for its two sides
        if is_once and not is_of_part and classes is not None and len(classes) == 2:
            return f"In {name}, above 0 speaks for class {classes[1]}, below 0 for {classes[0]}."
    return ""


def flat_numbers(numbers: NDArray[np.float64] | Values) -> NDArray[np.float64]:
    """Join the numbers in the order of `flat_names`."""
    parts = [np.ravel(part).astype(np.float64) for *_, part in _arrays(numbers)]
    return np.concatenate(parts)


def _arrays(numbers: NDArray[np.float64] | Values) -> Iterator[tuple[str, str, Any]]:
    """Each array with the attribute that it belongs to and its own name."""
    for name, values in (numbers if isinstance(numbers, dict) else {"value": numbers}).items():
        if isinstance(values, list):
            yield from ((name, f"{name}[{i}]", part) for i, part in enumerate(values))
        else:
            yield name, name, values


def _indexed(name: str, shape: tuple[int, ...], labels: tuple[Labels, Labels]) -> list[str]:
    """Write the index of each entry of an array; labels are of its first and of its last axis."""
    of_first, of_last = labels
    axes: list[Sequence[str]] = [[str(i) for i in range(n)] for n in shape]
    if len(shape) > 1 and of_first is not None and len(of_first) == shape[0]:
        axes[0] = of_first
    if shape and of_last is not None and len(of_last) == shape[-1]:
        axes[-1] = of_last
    has_name = of_first is not None and len(of_first) == 1
    if len(shape) > 1 and shape[0] == 1 and not has_name:  # as of two classes
        axes, shape = axes[1:], shape[1:]
    if not has_name and of_last is not None and len(of_last) == math.prod(shape):
        return [f"{name}[{label}]" for label in of_last]
    entries = np.ndindex(*shape)
    inner = (", ".join(axis[i] for axis, i in zip(axes, at, strict=True)) for at in entries)
    return [f"{name}[{at}]" if at else name for at in inner]
