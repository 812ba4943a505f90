"""Audits of a release: the noise that a mechanism adds to two exact values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.audit.lower_bound import AuditResult, audit_epsilon
from skdp.audit.outputs import Outputs, as_outputs
from skdp.audit.rules import MANY_COLUMNS
from skdp.mechanisms.base import Mechanism


@dataclass(frozen=True)
class _NoisyRelease:
    """Releases of two exact values, each with the number that tells the values apart best.

    That number is the distance to one value minus the distance to the other in the norm of the
    mechanism. For Laplace and Gaussian noise it is equivalent to the likelihood ratio of the noise,
    so that only the digits of the release can tell more. Any function of an output is as private as
    the output, so a bound on this number and the digits holds for the release.
    """

    values: tuple[NDArray[np.float64], NDArray[np.float64]]
    mechanism: Mechanism
    sensitivity: float
    stacked: bool

    def __call__(self, which: int, n: int, rng: np.random.Generator) -> NDArray | Outputs:
        """Return n outputs on x (0) or x' (1), reduced."""
        value, release = self.values[which], self.mechanism.release
        if self.stacked:
            copies = np.broadcast_to(value, (n, *value.shape))
            outputs = np.asarray(release(copies, self.sensitivity, rng))
        else:
            outputs = np.array([release(value, self.sensitivity, rng) for _ in range(n)])
        if outputs.shape[1:] != value.shape:
            return outputs  # a choice, not a noisy value
        x, x_prime = (self._distance(outputs - exact) for exact in self.values)
        # Where all of the change is on one side the score is constant, up to rounding.
        score = as_outputs(np.round((x_prime - x) / self.sensitivity, 9))
        return replace(score, written=outputs.reshape(n, -1)[:, :MANY_COLUMNS])

    def _distance(self, differences: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norm of each difference, squared for the Euclidean one."""
        rows, geometry = differences.reshape(len(differences), -1), self.mechanism.geometry
        if geometry.key == "l2":
            return (rows**2).sum(axis=1) / self.sensitivity
        return geometry.distances(rows, np.zeros_like(rows))


def audit_release(
    value_x: ArrayLike,
    value_y: ArrayLike,
    mechanism: Mechanism,
    sensitivity: float,
    *,
    stacked: bool = False,
    **options: Any,
) -> AuditResult:
    """Audit the noise that a mechanism adds to two exact values.

    The test is "label", or "pair" where the guarantee has a delta. It looks at the distances of the
    releases from the two values, and at the digits of up to 32 numbers of a release.

    Parameters
    ----------
    value_x, value_y : array-like of float, of equal shape
        Exact values of a target on two neighboring datasets.
    mechanism : Mechanism
        Its guarantee is the claim.
    sensitivity : float
        Sensitivity that the noise is calibrated to. The claim need not hold when the norm of the
        difference of the two values exceeds it.
    stacked : bool, default=False
        Draw many outputs by one release of a stack of copies, which is hundreds of times faster,
        but right only where the noise is independent from value to value, as for LaplaceMechanism
        and GaussianMechanism.
    **options : dict
        The options `n_search` (here 2,000 runs), `n_final` (10,000 runs), `alpha` and `rng` of
        :func:`skdp.audit.audit_epsilon`.

    Returns
    -------
    AuditResult
        As from :func:`skdp.audit.audit_epsilon`.

    Raises
    ------
    ValueError
        If the values differ in shape.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.audit import audit_release
    >>> mechanism = LaplaceMechanism(epsilon=1.0)
    >>> result = audit_release([0.0, 0.0], [0.0, 2.0], mechanism, 1.0, stacked=True, rng=0)
    >>> result.violated, 1.8 < result.lower_bound < 2.0
    (True, True)
    """
    values = np.asarray(value_x, dtype=np.float64), np.asarray(value_y, dtype=np.float64)
    if values[0].shape != values[1].shape:
        raise ValueError(
            "The two values of audit_release must have the same shape. "
            f"Got {values[0].shape} and {values[1].shape}."
        )
    claim = mechanism.guarantee()
    return audit_epsilon(
        _NoisyRelease(values, mechanism, sensitivity, stacked),
        [(0, 1)],
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        method="pair" if claim.delta else "label",
        **{"n_search": 2000, "n_final": 10_000} | options,
    )
