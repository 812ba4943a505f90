"""Learn a public basis from pilot pairs: in which coordinates noise does the least harm.

Let T be any invertible matrix that does not depend on private data. Measuring T (f(D) - f(D')),
adding noise to T f(D) and going back by T^-1 promises the same for every T, since going back is
post-processing. What T changes is the error. All that is learnt here comes from public pairs that
calibrate nothing.

The Lp norm of the mechanism (p = 1 for Laplace, 2 for Gaussian) is calibrated to a quantile of
the norms of T v over pairs, v = f(D) - f(D'). With z = R v such that the squared change of the
output is the squared length of z, Q orthogonal and ``T = diag(1 / w) Q' R``, noise on the
coordinates changes the output by a squared length that is proportional to

    (typical norm of T v)^2 sum_j w_j^2,    about (sum_j (a_j / w_j)^p)^(2/p) sum_j w_j^2,

where a_j = (mean of abs(j-th coordinate of Q' z)^p)^(1/p). Setting the derivative to zero gives
w_j^(p+2) proportional to a_j^p: the cube root of a_j for Laplace, the square root for Gaussian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skdp._basis import PublicBasis

KINDS = ("identity", "diagonal", "predictive")

# Beyond this many values a predictive basis is low rank plus diagonal.
MAX_DENSE = 2000
MAX_RANK = 100

_LEAST_METRIC = 1e-4  # of the largest eigenvalue: directions said to matter less are not believed
_LEAST_CHANGE = 1e-3  # of the largest a_j: coordinates said to change less are not believed
_N_FOLDS = 5
_LEVEL = 0.95  # of the norms that are compared, as a calibration at gamma = .05 would


class Learnt(NamedTuple):
    """A basis and ``sum_j w_j^2``, the output error of unit noise on its coordinates."""

    basis: PublicBasis
    spread: float


def learn_basis(
    kind: str,
    differences: NDArray[np.float64],
    metric: NDArray[np.float64] | None,
    order: int,
) -> PublicBasis:
    """Learn a basis from the differences of pilot pairs.

    Parameters
    ----------
    kind : {"identity", "diagonal", "predictive", "auto"}
        "auto" takes the one with the least expected squared error of the output; each is judged
        on pilot pairs that did not learn it.
    differences : ndarray of shape (n_pilot_pairs, d)
        Finite. Where all are zero, or there are none, the answer is the identity.
    metric : ndarray of shape (d, d) or (d,), or None
        The squared change of the output is ``v' metric v``; a vector is a diagonal, None the
        identity.
    order : {1, 2}
        p of the norm that the mechanism is calibrated to.

    Returns
    -------
    PublicBasis
        With the number of pilot pairs on record.

    Raises
    ------
    ValueError
        If the shapes disagree or a number is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms.basis import learn_basis
    >>> differences = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 8.0]
    >>> basis = learn_basis("diagonal", differences, None, order=1)
    >>> 1.8 < basis.scale[0] / basis.scale[1] < 2.2
    True
    """
    differences, metric = _check(differences, metric)
    n_pilot_pairs = len(differences)
    if not differences.any():
        return PublicBasis("identity", n_pilot_pairs)
    if kind == "auto":
        errors = expected_errors(differences, metric, order)
        kind = min(errors, key=errors.__getitem__)
    return _LEARNERS[kind](differences, metric, order).basis


def expected_errors(
    differences: NDArray[np.float64], metric: NDArray[np.float64] | None, order: int
) -> dict[str, float]:
    """Estimate the squared output error of each kind of basis, by cross-fitting.

    Parameters
    ----------
    differences : ndarray of shape (n_pilot_pairs, d)
        Finite, not all zero.
    metric : ndarray of shape (d, d) or (d,), or None
        As in `learn_basis`.
    order : {1, 2}
        p of the norm.

    Returns
    -------
    dict of str to float
        By kind, the square of the .95 quantile of the norms of held-out differences, times the
        spread, up to a constant that is common to all kinds.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms.basis import expected_errors
    >>> differences = np.random.default_rng(0).normal(size=(100, 2)) * [1.0, 100.0]
    >>> errors = expected_errors(differences, None, order=1)
    >>> errors["diagonal"] < 0.8 * errors["identity"]
    True
    """
    folds = [slice(first, None, _N_FOLDS) for first in range(min(_N_FOLDS, len(differences)))]
    errors = {}
    for kind, learn in _LEARNERS.items():
        norms = []
        for fold in folds:
            rest = np.delete(differences, fold, axis=0)
            learnt = learn(rest if rest.any() else differences, metric, order)
            for difference in differences[fold]:
                size = np.linalg.norm(learnt.basis.forward(difference), order)
                norms.append(size * np.sqrt(learnt.spread))
        errors[kind] = float(np.quantile(norms, _LEVEL)) ** 2
    return errors


def _check(
    differences: NDArray, metric: NDArray | None
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    differences = np.asarray(differences, dtype=np.float64)
    if differences.ndim != 2 or not np.isfinite(differences).all():
        raise ValueError(
            "The pilot differences must be a finite array of shape (n_pilot_pairs, d). "
            f"Got shape {differences.shape}."
        )
    if metric is None:
        return differences, None
    d = differences.shape[1]
    metric = np.asarray(metric, dtype=np.float64)
    if metric.shape not in ((d,), (d, d)) or not np.isfinite(metric).all():
        raise ValueError(
            f"The metric of the output must be a finite array of shape ({d},) or ({d}, {d}). "
            f"Got shape {metric.shape}."
        )
    return differences, metric if metric.any() else None


def _identity(differences: NDArray, metric: NDArray | None, order: int) -> Learnt:
    spread = differences.shape[1] if metric is None else _diagonal_of(metric).sum()
    return Learnt(PublicBasis("identity", len(differences)), float(spread))


def _diagonal(differences: NDArray, metric: NDArray | None, order: int) -> Learnt:
    units, metric = _in_units(differences, metric)
    root = np.sqrt(_diagonal_of(metric))
    weights = _weights(root * differences / units, order)
    basis = PublicBasis("diagonal", len(differences), scale=root / units / weights)
    return Learnt(basis, float(np.sum(weights**2)))


def _predictive(differences: NDArray, metric: NDArray | None, order: int) -> Learnt:
    if differences.shape[1] > MAX_DENSE:
        return _low_rank(differences, metric, order)
    units, metric = _in_units(differences, metric)
    if metric.ndim == 1:
        root = np.diag(np.sqrt(metric))
    else:
        values, vectors = np.linalg.eigh(metric)
        values = np.maximum(values, _LEAST_METRIC * values[-1])
        root = (vectors * np.sqrt(values)) @ vectors.T
    z = differences / units @ root
    rotation = np.linalg.eigh(z.T @ z)[1]
    weights = _weights(z @ rotation, order)
    matrix = (rotation / weights).T @ root / units
    basis = PublicBasis("predictive", len(differences), matrix=matrix)
    return Learnt(basis, float(np.sum(weights**2)))


def _low_rank(differences: NDArray, metric: NDArray | None, order: int) -> Learnt:
    """Rotate the leading directions of change only, and take the metric for a diagonal."""
    units, metric = _in_units(differences, metric)
    root = np.sqrt(_diagonal_of(metric))
    z = differences * (root / units)
    rank = min(MAX_RANK, len(z))
    leading = linalg.svd(z, full_matrices=False)[2][:rank].T
    reflectors = np.tril(linalg.qr(leading, mode="raw")[0][0], -1)
    reflectors[np.diag_indices(rank)] = 1.0
    rotated = PublicBasis(reflectors=reflectors)
    weights = _weights(np.array([rotated.forward(row) for row in z]), order)
    basis = PublicBasis(
        "predictive", len(z), scale=root / units, reflectors=reflectors, weights=weights
    )
    return Learnt(basis, float(np.sum(weights**2)))


_LEARNERS: dict[str, Callable[[NDArray, NDArray | None, int], Learnt]] = {
    "identity": _identity,
    "diagonal": _diagonal,
    "predictive": _predictive,
}


def _diagonal_of(metric: NDArray) -> NDArray[np.float64]:
    return metric if metric.ndim == 1 else np.diag(metric)


def _in_units(
    differences: NDArray, metric: NDArray | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give each value the unit of its own mean change, and floor the metric in these units.

    Then nothing that is learnt depends on the units in which the values came.
    """
    units = np.abs(differences).mean(axis=0)
    units[units == 0] = np.median(units[units > 0])
    if metric is None:
        metric = np.ones(len(units))
    if metric.ndim == 1:
        metric = metric * units**2
        return units, np.maximum(metric, _LEAST_METRIC * metric.max())
    metric = units[:, None] * metric * units
    diagonal = np.diag_indices(len(units))
    metric[diagonal] = np.maximum(metric[diagonal], _LEAST_METRIC * metric[diagonal].max())
    return units, metric


def _weights(coordinates: NDArray, order: int) -> NDArray[np.float64]:
    """The weights of the coordinates with the least expected error; see the module."""
    sizes = np.mean(np.abs(coordinates) ** order, axis=0) ** (1 / order)
    sizes = np.maximum(sizes, _LEAST_CHANGE * sizes.max())
    return (sizes / sizes.max()) ** (order / (order + 2))
