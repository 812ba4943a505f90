"""The exponential mechanism: a private choice among finitely many."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_real, check_rules, is_real
from skdp.core.geometry import Geometry
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.types import ByteSource
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.discrete import below, bernoulli_exp, bernoulli_exp_power, certain, coins
from skdp.mechanisms.noise import OperatingSystemBytes, check_value, lattice_scale

_PARTS = 2.0**10  # a step of at most 2^-24 of the sensitivity: the law is exact to six digits
_BATCH = 4096
_NEVER = 2**61  # steps below the best, at a scale of 1


class ExponentialMechanism(Mechanism):
    """A random choice that prefers high scores, calibrated to the sup norm.

    Response r of score u(r) is chosen with probability proportional to
    exp(epsilon u(r) / (2 Delta)) [1]_. When no score changes by more than Delta, neither
    factor of that probability, weight and normalization, changes by more than exp(epsilon / 2).

    It is drawn without floating-point error. Scores are rounded to a power-of-two lattice, where
    a score changes by at most s steps (with the rounding charged); t = ceil(2 s / epsilon) in exact
    fractions. Responses are drawn uniformly until one is accepted. One that is k steps below the
    best is accepted by a coin of weight exp(-k / t), made of fair bits [2]_.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` takes the first best response.

    Notes
    -----
    The number of coins that are flipped depends on the scores, and so does the time that a choice
    takes: do not let anyone measure it.

    References
    ----------
    .. [1] McSherry and Talwar, "Mechanism Design via Differential Privacy", FOCS 2007, theorem 6.
    .. [2] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020, algorithm 1.

    Examples
    --------
    >>> from skdp import ExponentialMechanism
    >>> mechanism = ExponentialMechanism(epsilon=1.0)
    >>> mechanism.release([3.0, 5.0, 1000.0], sensitivity=1.0)
    2
    >>> mechanism.probabilities([0.0, 0.0, 2.0], sensitivity=1.0).round(4)
    array([0.2119, 0.2119, 0.5761])
    """

    geometry: ClassVar[Geometry] = Geometry(math.inf)
    chooses: ClassVar[bool] = True

    def __init__(self, epsilon: float):
        self.epsilon = epsilon

    def release(self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None) -> int:
        gaps, scale = self._gaps(value, sensitivity)
        source = OperatingSystemBytes() if rng is None else rng
        while True:  # the best is always accepted, so n draws do on average
            drawn = below(gaps.size, min(gaps.size, _BATCH), source).astype(np.intp)
            whole, rest = np.divmod(gaps[drawn], scale)
            heads = bernoulli_exp(coins(rest, scale, source), drawn.size, source)
            accepted = drawn[heads & bernoulli_exp_power(certain, whole, source)]
            if accepted.size:
                return int(accepted[0])

    def probabilities(self, scores: ArrayLike, sensitivity: float) -> NDArray[np.float64]:
        """Return the law of `release`. It is NOT private: for tests and teaching only.

        Parameters
        ----------
        scores : array-like of shape (n_responses,)
            The private scores.
        sensitivity : float in (0, inf)
            Largest change of a score.

        Returns
        -------
        ndarray of float64 of shape (n_responses,)
            The probability of each response; they show the private scores to anybody.
        """
        gaps, scale = self._gaps(scores, sensitivity)
        weights = np.exp(-gaps / scale)
        return weights / weights.sum()

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        self._check()
        return PrivacyGuarantee(epsilon=float(self.epsilon), gamma=gamma)

    def _gaps(self, scores: ArrayLike, sensitivity: float) -> tuple[NDArray[np.int64], int]:
        """Return how many steps each response is below the best, and the scale t."""
        self._check()
        check_real("sensitivity", sensitivity, "ExponentialMechanism", 0.0)
        scores = check_value(scores)
        if scores.ndim != 1 or scores.size == 0:
            raise ValueError(
                "ExponentialMechanism needs a vector with one score for each response. "
                f"Got an array of shape {scores.shape}."
            )
        if math.isinf(self.epsilon):
            return np.where(np.arange(scores.size) == np.argmax(scores), 0, _NEVER), 1
        lattice, scale = lattice_scale(
            sensitivity, 1, self.epsilon, "ExponentialMechanism", parts=_PARTS, factor=2
        )
        return lattice.to_gaps(scores), scale

    def _check(self) -> None:
        epsilon = self.epsilon
        positive = "be a number above 0 (or inf, which takes the best; a spent budget leaves 0)"
        rule = (epsilon, is_real(epsilon) and epsilon > 0, positive)
        check_rules("ExponentialMechanism", epsilon=rule)
