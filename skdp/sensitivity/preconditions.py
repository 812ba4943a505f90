"""Preconditions of bounds known on paper, as far as they can be checked or made true.

The parameters of an estimator are checked. Records are clipped to a box, which keeps neighbors
neighbors. No check reads the records, since its outcome would leak.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import check_ranges, check_rules, shown
from skdp.core.classes import public_name
from skdp.core.dataset import Elsewhere, belongs_to
from skdp.core.dtypes import DType, holds_numbers
from skdp.core.plain import as_doubles, is_table
from skdp.core.target import Target, is_auto
from skdp.core.types import Container, Estimator

Ranges = tuple[tuple[float, float], ...]

OF_MEAN = "that the target is the mean of each column"  # the precondition of a bound of a mean
OF_COUNTS = "that the target counts each record in at most one cell of each table"


@dataclass(frozen=True)
class EstimatorRule:
    """The linear classifiers of two classes that a bound was proved for."""

    kind: str  # the class of scikit-learn, with its module
    equal: tuple[tuple[str, object], ...]  # parameters that must have a value
    at_most: tuple[tuple[str, float], ...] = ()  # parameters in which the bound grows

    attributes: ClassVar[tuple[str, ...]] = ("coef_", "intercept_")

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.kind.rpartition(".")[2]

    def __str__(self) -> str:
        rules = [f"{name}={value!r}" for name, value in self.equal]
        rules += [f"{name}<={value:g}" for name, value in self.at_most]
        return f"{' and '.join(self.attributes)} of {self.name}({', '.join(rules)}), 2 classes"

    def check(self, estimator: Estimator) -> None:
        """Refuse another estimator, also a pipeline, whose first steps would leave the box."""
        if public_name(type(estimator)) != self.kind:
            self._refuse(f"{self.name} itself", type(estimator).__name__)
        params = estimator.get_params()
        broken = {name: f"{name}={v!r}" for name, v in self.equal if params.get(name, v) != v}
        broken |= {name: f"{name}<={v!r}" for name, v in self.at_most if not params[name] <= v}
        for name, rule in broken.items():
            self._refuse(f"{self.name}({rule})", shown(params[name]))

    def check_classes(self, classes: Sequence[NDArray]) -> None:
        """Refuse another number of classes, output by output."""
        numbers = [len(labels) for labels in classes]
        if numbers != [2]:
            self._refuse("2 classes", ", ".join(map(str, numbers)))

    def _refuse(self, wanted: str, got: str) -> NoReturn:
        raise ValueError(
            f"The known sensitivity is for {wanted}. Got {got}. Make the bound for this estimator, "
            "or sample the sensitivity."
        )

    def check_release(self, release: object) -> None:
        """Refuse to release attributes that the bound does not cover."""
        named = isinstance(release, Sequence) and set(release) <= set(self.attributes)
        some = f"some of {list(self.attributes)}, which the known sensitivity bounds"
        rule = (release, named or is_auto(release), f"be 'auto' or list {some}")
        check_rules("PrivateEstimator", release=rule)


def as_ranges(ranges: object, owner: str) -> Ranges:
    """Check the ranges of columns: finite, and low at most high in each."""
    return tuple((low, high) for low, high in check_ranges("ranges", ranges, owner).tolist())


def check_clippable(X: Container, dtypes: Iterable[DType], ranges: Ranges) -> None:
    """Refuse records whose form does not fit the ranges; no entry is read."""
    record = getattr(X, "shape", (0,))[1:] or (1,)
    if record != (len(ranges),):
        raise ValueError(
            f"The known sensitivity has ranges for {len(ranges)} column(s), to which records are "
            f"clipped. Got records of shape {record}. Declare the 'ranges' of each column."
        )
    if not (isinstance(X, Elsewhere) or all(map(holds_numbers, dtypes))):
        raise ValueError(
            "The known sensitivity has ranges, to which records are clipped, so X must hold "
            "numbers only. Got columns of another type. Encode them first, by a public rule."
        )
    if sparse.issparse(X) and any(not low <= 0 <= high for low, high in ranges):
        raise ValueError(
            "The known sensitivity has a range without 0, so clipping would fill the sparse X. "
            "Pass X dense, or choose 'ranges' that hold 0."
        )


def clip(X: Container, ranges: Ranges) -> Container:
    """Move records to the nearest ones in the box, as doubles; a missing number counts as 0."""
    if isinstance(X, Elsewhere):  # where the engine clips
        return X
    low, high = np.array(ranges, dtype=np.float64).T
    if sparse.issparse(X):
        rows = X.astype(np.float64).tocsr(copy=True)
        rows.sum_duplicates()
        rows.data = _clip(rows.data, low[rows.indices], high[rows.indices])
        return rows.asformat(X.format)
    clipped = _clip(as_doubles(X), low, high)
    if not belongs_to(X, "pandas", "polars"):
        return clipped
    names = X.columns if is_table(X) else X.name
    if belongs_to(X, "polars"):
        return type(X)(clipped, schema=names) if is_table(X) else type(X)(names, clipped)
    return type(X)(clipped, **{"columns" if is_table(X) else "name": names})


def _clip(numbers: NDArray[np.float64], low: NDArray, high: NDArray) -> NDArray[np.float64]:
    return np.clip(np.where(np.isnan(numbers), 0.0, numbers), low, high)


class ClippedTarget(Target):
    """A target that sees records clipped to ranges."""

    def __init__(self, target: Target, ranges: Ranges):
        self.target = target
        self.ranges = ranges
        self.description, self.is_mean = target.description, target.is_mean

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the target on the clipped records."""
        X, *others = dataset
        return self.target(clip(X, self.ranges), *others, seed=seed)
