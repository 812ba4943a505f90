"""Bounds on sensitivities that are proved on paper, without a look at a record."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.core.checks import check_count, check_real, floats, shown, warn
from skdp.core.classes import public_name
from skdp.core.geometry import ROUND_UP
from skdp.core.types import Estimator
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.preconditions import OF_COUNTS, OF_MEAN, EstimatorRule, Ranges, as_ranges

__all__ = ["count_bound", "mean_bound", "svm_bound"]

MOST_UNLIKE = 10  # ranges whose widths differ by a larger factor get a warning

LEAST_BOUND = 2.0**-960  # the rounding of numbers near the smallest ones is no share of them

_FREE, _PENALIZED = "sklearn.svm.SVC", "sklearn.svm.LinearSVC"
_NEEDS: dict[str, tuple[tuple[str, object], ...]] = {
    _FREE: (("kernel", "linear"), ("class_weight", None), ("max_iter", -1)),
    _PENALIZED: (
        ("loss", "hinge"),
        ("penalty", "l2"),
        ("class_weight", None),
        ("multi_class", "ovr"),  # the other one is another problem, for two classes too
    ),
}
_FLOAT32_KERNEL = 2.0**-22
"""Four times the relative error of single precision, in which libsvm keeps kernel values."""


def mean_bound(
    n_samples: int, n_features: int | None = None, *, ranges: ArrayLike
) -> KnownSensitivity:
    """Bound the change of a mean of bounded records, in the L1 and in the L2 norm.

    Parameters
    ----------
    n_samples : int
        Number of records n.
    n_features : int or None, default=None
        Number of columns. None takes as many as there are ranges, 1 for a pair.
    ranges : pair of float, or array-like of shape (n_features, 2)
        Lowest and highest value, of all columns or column by column. The private records are
        clipped to them, so never take them from these records. Each column gets noise for the
        widths of all: bring columns of other units to [0, 1] first. Missing numbers count as 0,
        clipped: fill them with a public value first where 0 is no good value.

    Returns
    -------
    KnownSensitivity
        In the L1 norm the sum of the widths over n, in the L2 norm their Euclidean length over n,
        both with the rounding of the two computed means: at most n + 8 units in the last place of
        the largest value that the ranges allow, in any order of addition.

    Raises
    ------
    ValueError
        If a number or a range is not possible.

    Warns
    -----
    UserWarning
        If one range is more than ten times as wide as another, or if rounding is most of the bound.

    Examples
    --------
    >>> from skdp.bounds import mean_bound
    >>> bound = mean_bound(100, ranges=[(0, 3), (0, 4)])
    >>> round(bound.for_geometry("l1", 100), 9), round(bound.for_geometry("l2", 100), 9)
    (0.07, 0.05)
    """
    check_count("n_samples", n_samples, "mean_bound")
    box = _box(ranges, n_features, n_samples)
    widths, farthest = np.diff(box).ravel(), np.abs(box).max(axis=1)
    if widths.max() > MOST_UNLIKE * widths.min():
        warn(
            f"One of the 'ranges' of mean_bound is more than {MOST_UNLIKE} times as wide as "
            "another, and each column gets noise for all of them: too much for the narrow one. "
            "Bring the columns to [0, 1] first, by (X - low) / (high - low) with the public "
            "ranges, and the released means back."
        )
    unit = (n_samples + 8) * 2.0**-52
    if widths.sum() / n_samples < unit * farthest.sum():
        warn(
            "The 'ranges' of mean_bound are so narrow and so far from 0 that most of the bound is "
            "the rounding of the mean. Subtract the middle of the ranges from the records first, "
            "and add it to what is released."
        )
    least = LEAST_BOUND if farthest.any() else 0.0
    l1, l2 = (
        ROUND_UP * max(norm(*widths.tolist()) / n_samples + unit * norm(*farthest.tolist()), least)
        for norm in (lambda *sizes: math.fsum(sizes), math.hypot)
    )
    return KnownSensitivity(
        l1,
        "l1",
        n_samples,
        preconditions=OF_MEAN,
        source="two records differ by at most the widths of the ranges",
        ranges=box,
        shape=(len(box),) if len(box) > 1 else None,  # the mean of one column may be a number
        l2_value=min(l1, l2),
    )


def count_bound(n_samples: int, n_tables: int = 1) -> KnownSensitivity:
    """Bound the change of counts by declared cells, such as histograms, in the L1 and L2 norm.

    Parameters
    ----------
    n_samples : int
        Number of records.
    n_tables : int, default=1
        Number of tables in what is released. A record counts in at most one cell of each.

    Returns
    -------
    KnownSensitivity
        In the L1 norm 2 for each table, in the L2 norm the square root of that: a replaced record
        leaves a cell of each table and enters another, so two counts of a table move by 1.

    Raises
    ------
    ValueError
        If a number is less than 1.

    Examples
    --------
    >>> from skdp.bounds import count_bound
    >>> bound = count_bound(500, n_tables=2)
    >>> bound.for_geometry("l1", 500), round(bound.for_geometry("l2", 500), 9)
    (4.0, 2.0)
    """
    l1 = 2.0 * check_count("n_tables", n_tables, "count_bound")
    return KnownSensitivity(
        l1,
        "l1",
        check_count("n_samples", n_samples, "count_bound"),
        preconditions=OF_COUNTS,
        source="a replaced record moves two counts of each table by 1",
        l2_value=ROUND_UP * math.sqrt(l1),
    )


def svm_bound(
    estimator: Estimator,
    n_samples: int,
    n_features: int,
    *,
    solver_error: float | None = None,
) -> KnownSensitivity:
    """Bound the change of (w, b) of a linear support vector machine, in the L1 and the L2 norm.

    The records are in the unit cube, and there are two classes. The free intercept of
    ``SVC(kernel="linear")`` may jump from -1 to 1 when one record changes its label, so its bound
    is never below 2. ``LinearSVC(loss="hinge")`` penalizes the intercept, the weight of a constant
    column s, its `intercept_scaling`, and is far more stable.

    Parameters
    ----------
    estimator : SVC or LinearSVC
        The machine as it will be fitted. Only its parameters are read.
    n_samples : int
        Number of records n.
    n_features : int
        Number of columns d.
    solver_error : float or None, default=None
        Largest L1 distance from the returned (w, b) of a LinearSVC to the minimizer; the bound
        grows by twice that. ``LinearSVC.tol`` does not bound it, but a ``tol`` of 1e-10 with a
        large enough ``max_iter`` leaves far less than any noise. An SVC has a proof from its
        ``tol``.

    Returns
    -------
    KnownSensitivity
        For an exact SVC ``2 + 6 C d`` in the L1 norm, for an exact LinearSVC ``2 C (d + s^2)``,
        proved in the user guide, with smaller bounds in the L2 norm.

    Raises
    ------
    TypeError
        If the estimator is not one of the two.
    ValueError
        If a parameter makes it another machine, such as ``loss="squared_hinge"``, or a number is
        out of range.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from skdp.bounds import svm_bound
    >>> machine = LinearSVC(loss="hinge", C=0.003, tol=1e-10)
    >>> round(svm_bound(machine, n_samples=1000, n_features=8, solver_error=1e-6).value, 6)
    0.054002
    """
    kind = public_name(type(estimator))
    if kind not in _NEEDS:
        raise TypeError(
            f"svm_bound knows SVC and LinearSVC. Got {type(estimator).__name__}. "
            "Sample the sensitivity instead."
        )
    n, d = (
        check_count(name, value, "svm_bound")
        for name, value in (("n_samples", n_samples), ("n_features", n_features))
    )
    params = estimator.get_params()
    C = check_real("C", params["C"], "svm_bound", 0.0)
    needs, at_most, supposed = _NEEDS[kind], [("C", C)], "both classes present"
    if kind == _FREE:
        tol = check_real("tol", params["tol"], "svm_bound", 0.0, closed="l")
        at_most.append(("tol", tol))
        # L1 distance from what the solver returns to a minimizer, for each of the two fits
        slack = tol + _FLOAT32_KERNEL * n * C * d if tol else 0.0
        solver_error = slack + 2 * math.sqrt(d * n * C * slack)
        l1, l2 = 2 + 6 * C * d, math.hypot(2 * C * math.sqrt(d), 2 + 4 * C * d)
        source = "exchange argument, user guide, 'Sensitivities on paper'"
    else:
        if solver_error is None:
            raise ValueError(
                "The 'solver_error' parameter of svm_bound must be given for a LinearSVC. Got None."
            )
        check_real("solver_error", solver_error, "svm_bound", 0.0, closed="l")
        scaling = 0.0
        if params["fit_intercept"]:
            scaling = check_real(
                "intercept_scaling", params["intercept_scaling"], "svm_bound", 0.0, closed="l"
            )
        if scaling:
            at_most.append(("intercept_scaling", scaling))
        else:
            needs = (*needs, ("fit_intercept", False))
        length = d + scaling**2
        l1, l2 = 2 * C * length, 2 * C * math.sqrt(length) * max(1.0, scaling)
        supposed += f", a solver within {solver_error:g} of the minimizer"
        source = "strong convexity, user guide, 'Sensitivities on paper'"
    rule = EstimatorRule(kind, needs, tuple(at_most))
    rule.check(estimator)
    l1, l2 = (ROUND_UP * (exact + 2 * solver_error) for exact in (l1, l2))
    return KnownSensitivity(
        l1,
        "l1",
        n,
        preconditions=supposed,
        source=source,
        ranges=((0.0, 1.0),) * d,
        estimator=rule,
        l2_value=min(l1, l2),
    )


def _box(ranges: ArrayLike, n_features: int | None, n_samples: int) -> Ranges:
    """Declare the range of each column, where one may stand for all."""
    box = floats(ranges)
    if n_features is None:
        n_features = len(box) if box is not None and box.ndim == 2 else 1
    check_count("n_features", n_features, "mean_bound")
    if box is not None and box.shape == (2,):
        box = np.tile(box, (n_features, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        # a sum over records must not overflow, which would tell of them
        sums = math.inf if box is None else 2 * n_samples * np.abs(box).sum()
        if box is None or box.shape != (n_features, 2) or not np.isfinite(sums):
            raise ValueError(
                "The 'ranges' parameter of mean_bound must be a pair (low, high) or an array of "
                f"shape ({n_features}, 2), whose sum over {n_samples} records is finite. "
                f"Got {shown(ranges)}."
            )
    return as_ranges(box, "mean_bound")
