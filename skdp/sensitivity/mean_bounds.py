"""Sensitivities of means, known on paper. None of these functions looks at a dataset."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from skdp.core.checks import check_count, check_real, floats, shown, warn
from skdp.core.geometry import ROUND_UP
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.preconditions import Ranges, as_ranges

OF_MEAN = "that the target is the mean of each column"
MOST_UNLIKE = 10
"""By how much the widths of ranges may differ without a warning."""
PAIN_FREE = "Rubinstein and Aldà, Pain-Free Random Differential Privacy, ICML 2017"


def mean_l1(
    n_samples: int, n_features: int | None = None, *, ranges: ArrayLike
) -> KnownSensitivity:
    """Bound the L1 norm of the change of a mean of bounded records.

    Parameters
    ----------
    n_samples : int
        Number of records n.
    n_features : int or None, default=None
        Number of columns. None takes as many as there are ranges, 1 for a pair.
    ranges : pair of float, or array-like of shape (n_features, 2)
        Lowest and highest value, of all columns or column by column. Each column gets noise for the
        sum of their widths: bring columns of other units to [0, 1] by their ranges first, and the
        released means back. No default: the private records are clipped to them. Declare them, and
        never take them from these records. Missing numbers count as 0, clipped: fill them with a
        public value first where that is no good one.

    Returns
    -------
    KnownSensitivity
        Sum of the widths over n, attained by a record that moves from corner to corner.

    Raises
    ------
    ValueError
        If a number or a range is not possible.

    Warns
    -----
    UserWarning
        If one range is more than ten times as wide as another.

    Examples
    --------
    >>> from skdp import mean_l1
    >>> round(mean_l1(100, ranges=[(0, 1), (-1, 2)]).value, 9)
    0.04
    """
    box = _box(ranges, n_features, "mean_l1")
    size = math.fsum(high - low for low, high in box)
    return _mean_bound(size, "l1", n_samples, "mean_l1", box)


def mean_l2(
    n_samples: int, n_features: int | None = None, *, ranges: ArrayLike
) -> KnownSensitivity:
    """Bound the L2 norm of the change of a mean of bounded records.

    Parameters
    ----------
    n_samples : int
        Number of records n.
    n_features : int or None, default=None
        Number of columns. None takes as many as there are ranges, 1 for a pair.
    ranges : pair of float, or array-like of shape (n_features, 2)
        As for :func:`mean_l1`.

    Returns
    -------
    KnownSensitivity
        Length of the diagonal of the box over n, attained.

    Raises
    ------
    ValueError
        If a number or a range is not possible.

    Warns
    -----
    UserWarning
        If one range is more than ten times as wide as another.

    Examples
    --------
    >>> from skdp import mean_l2
    >>> round(mean_l2(100, ranges=[(0, 3), (0, 4)]).value, 9)
    0.05
    """
    box = _box(ranges, n_features, "mean_l2")
    size = math.hypot(*(high - low for low, high in box))
    return _mean_bound(size, "l2", n_samples, "mean_l2", box)


def exponential_mean(n_samples: int, gamma: float, rate: float) -> KnownSensitivity:
    """Bound the change of the mean of exponential records, except with probability gamma.

    The difference of two independent records is Laplace distributed, its absolute value
    exponential with the same rate, so ``Pr(change > t) = exp(-rate n t)``.

    Parameters
    ----------
    n_samples : int
        Number of records n.
    gamma : float in (0, 1)
        Probability that a pair of datasets is not covered; it becomes part of the guarantee.
    rate : float
        Rate of the exponential law, one over its mean. Public.

    Returns
    -------
    KnownSensitivity
        ``ln(1 / gamma) / (rate n)``, with its gamma.

    Raises
    ------
    ValueError
        If a number is out of range.

    References
    ----------
    Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
    ICML 2017, example 6.

    Examples
    --------
    >>> from skdp import exponential_mean
    >>> round(exponential_mean(100, gamma=0.05, rate=2.0).value, 7)
    0.0149787
    """
    check_count("n_samples", n_samples, "exponential_mean")
    check_real("rate", rate, "exponential_mean", 0.0)
    check_real("gamma", gamma, "exponential_mean", 0.0, 1.0)
    return KnownSensitivity(
        ROUND_UP * -math.log(gamma) / (rate * n_samples),
        "l1",
        n_samples,
        gamma=gamma,
        preconditions=f"mean of one column, records drawn from Exp(rate={rate:g})",
        source=f"{PAIN_FREE}, example 6",
    )


def _mean_bound(
    size: float, norm: str, n_samples: int, owner: str, box: Ranges
) -> KnownSensitivity:
    check_count("n_samples", n_samples, owner)
    widths = np.diff(box)
    if widths.max() > MOST_UNLIKE * widths.min():
        warn(
            f"One of the 'ranges' of {owner} is more than {MOST_UNLIKE} times as wide as another, "
            "and each column gets noise for all of them: too much for the narrow one. Bring the "
            "columns to [0, 1] first, by (X - low) / (high - low) with the public ranges, and the "
            "released means back."
        )
    return KnownSensitivity(
        ROUND_UP * size / n_samples,
        norm,
        n_samples,
        preconditions=OF_MEAN,
        source="two records differ by at most the widths of the ranges",
        ranges=box,
        shape=(len(box),) if len(box) > 1 else None,  # the mean of one column may be a number
    )


def _box(ranges: ArrayLike, n_features: int | None, owner: str) -> Ranges:
    """Declare the range of each column, where one may stand for all."""
    box = floats(ranges)
    if n_features is None:
        n_features = len(box) if box is not None and box.ndim == 2 else 1
    check_count("n_features", n_features, owner)
    if box is not None and box.shape == (2,):
        box = np.tile(box, (n_features, 1))
    with np.errstate(over="ignore", invalid="ignore"):
        if box is None or box.shape != (n_features, 2) or not np.isfinite(np.diff(box).sum()):
            raise ValueError(
                f"The 'ranges' parameter of {owner} must be a pair (low, high) or an array of "
                f"shape ({n_features}, 2), of finite widths. Got {shown(ranges)}."
            )
    return as_ranges(box, owner)
