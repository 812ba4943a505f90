"""The exponential mechanism and permute-and-flip: a private choice among finitely many."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_real, check_rules, is_real
from skdp.core.geometry import Geometry
from skdp.core.guarantee import PrivacyGuarantee
from skdp.mechanisms.base import ByteSource, Mechanism
from skdp.mechanisms.discrete import below, bernoulli_exp, bernoulli_exp_power, certain, coins
from skdp.mechanisms.noise import (
    OperatingSystemBytes,
    check_value,
    lattice_scale,
)

_PARTS = 2.0**10  # a step of at most 2^-24 of the sensitivity: the law is exact to six digits
_BATCH = 4096


class ExponentialMechanism(Mechanism):
    """A random choice that prefers high scores, calibrated to the sup norm.

    Response r of score u(r) is chosen with probability proportional to
    exp(epsilon u(r) / (2 Delta)) [1]_. When no score changes by more than Delta, neither
    factor of that probability, weight and normalization, changes by more than exp(epsilon / 2).

    Permute-and-flip goes through the responses in random order and takes each with probability
    exp(epsilon (u(r) - max u) / (2 Delta)), until one is taken. It is as private, and its expected
    score is never lower [2]_.

    Both are drawn without floating-point error. Scores are rounded to a power-of-two lattice, where
    a score changes by at most s steps (with the rounding charged); t = ceil(2 s / epsilon) in exact
    fractions, and a response that is k steps below the best is accepted by a coin of weight
    exp(-k / t), made of fair bits [3]_. The exponential mechanism draws responses uniformly until
    one is accepted: it is permute-and-flip with replacement.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` takes the first best response.
    method : {"exponential", "permute-and-flip"}, default="exponential"
        How to choose.

    Notes
    -----
    The number of coins that are flipped depends on the scores, and so does the time that a choice
    takes: do not let anyone measure it.

    References
    ----------
    .. [1] McSherry and Talwar, "Mechanism Design via Differential Privacy", FOCS 2007, theorem 6.
    .. [2] McKenna and Sheldon, "Permute-and-Flip: A New Mechanism for Differentially Private
       Selection", NeurIPS 2020, theorems 1 and 2.
    .. [3] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
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

    def __init__(
        self,
        epsilon: float,
        *,
        method: Literal["exponential", "permute-and-flip"] = "exponential",
    ):
        self.epsilon = epsilon
        self.method = method

    def release(self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None) -> int:
        scores = self._check_scores(value, sensitivity)
        if math.isinf(self.epsilon):
            return int(np.argmax(scores))
        gaps, scale = self._gaps(scores, sensitivity)
        source = OperatingSystemBytes() if rng is None else rng
        choose = _permute_and_flip if self.method == "permute-and-flip" else _reject
        return choose(gaps, scale, source)

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
        scores = self._check_scores(scores, sensitivity)
        if math.isinf(self.epsilon):
            return (np.arange(scores.size) == np.argmax(scores)).astype(np.float64)
        gaps, scale = self._gaps(scores, sensitivity)
        weights = np.exp(-gaps / scale)
        if self.method == "permute-and-flip":
            weights = _permute_and_flip_law(weights)
        return weights / weights.sum()

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        self._check()
        return PrivacyGuarantee(epsilon=float(self.epsilon), gamma=gamma)

    def _check_scores(self, scores: ArrayLike, sensitivity: float) -> NDArray[np.float64]:
        self._check()
        check_real("sensitivity", sensitivity, "ExponentialMechanism", 0.0)
        scores = check_value(scores)
        if scores.ndim != 1 or scores.size == 0:
            raise ValueError(
                "ExponentialMechanism needs a vector with one score for each response. "
                f"Got an array of shape {scores.shape}."
            )
        return scores

    def _gaps(
        self, scores: NDArray[np.float64], sensitivity: float
    ) -> tuple[NDArray[np.int64], int]:
        """Return how many steps each response is below the best, and the scale t."""
        lattice, scale = lattice_scale(
            sensitivity, 1, self.epsilon, "ExponentialMechanism", parts=_PARTS, factor=2
        )
        return lattice.to_gaps(scores), scale

    def _check(self) -> None:
        epsilon, methods = self.epsilon, ("exponential", "permute-and-flip")
        positive = "be a number above 0 (or inf, which takes the best; a spent budget leaves 0)"
        check_rules(
            "ExponentialMechanism",
            epsilon=(epsilon, is_real(epsilon) and epsilon > 0, positive),
            method=(self.method, self.method in methods, f"be one of {methods}"),
        )


def _accept(gaps: NDArray[np.int64], scale: int, source: ByteSource) -> NDArray[np.bool_]:
    """Flip one coin of weight exp(-gap / scale) for each gap."""
    whole, rest = np.divmod(gaps, scale)
    heads = bernoulli_exp(coins(rest, scale, source), gaps.size, source)
    return heads & bernoulli_exp_power(certain, whole, source)


def _reject(gaps: NDArray[np.int64], scale: int, source: ByteSource) -> int:
    """Draw uniformly until one is accepted; the best always is, so n draws do on average."""
    while True:
        drawn = below(gaps.size, min(gaps.size, _BATCH), source).astype(np.intp)
        accepted = drawn[_accept(gaps[drawn], scale, source)]
        if accepted.size:
            return int(accepted[0])


def _permute_and_flip(gaps: NDArray[np.int64], scale: int, source: ByteSource) -> int:
    """Take the first response in random order whose coin shows heads; that of the best does."""
    order = _permutation(gaps.size, source)
    return int(order[np.argmax(_accept(gaps[order], scale, source))])


def _permutation(size: int, source: ByteSource) -> NDArray[np.intp]:
    """Sort random keys. Given that no two are equal, all orders are equally likely."""
    while True:
        keys = below(2**53, size, source)
        if np.unique(keys).size == size:
            return np.argsort(keys)


def _permute_and_flip_law(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Integrate P(r) = w_r \int_0^1 prod_{j != r} (1 - x w_j) dx.

    Let each response arrive at a uniform time. r is chosen when its coin shows heads and no other
    arrived before it, at time x, with heads. The integrand may fall off like exp(-n x), so the
    interval is halved toward 0 until its last piece is below 1 / n.
    """
    nodes, node_weights = np.polynomial.legendre.leggauss(32)
    halvings = 2 + math.ceil(math.log2(weights.size + 1))
    edges = np.concatenate([[0.0], 0.5 ** np.arange(halvings, -1, -1)])
    law = np.zeros_like(weights)
    for left, right in itertools.pairwise(edges):
        for node, node_weight in zip(nodes, node_weights, strict=True):
            x = left + (right - left) * (node + 1) / 2
            logs = np.log1p(-x * weights)
            law += node_weight * (right - left) / 2 * np.exp(logs.sum() - logs)
    return weights * law
