"""Exact draws of integers: discrete Laplace, discrete Gaussian, coins of weight exp(-x).

Nothing here uses a floating-point operation on what is drawn: uniform integers come from random
bytes, and every probability is a product of fractions [1]_.

References
----------
.. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
   NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.mechanisms.base import ByteSource

MAX_SCALE = 2**52
"""Largest scale of the integer noise, which keeps it within int64."""

Flip = Callable[[NDArray[np.intp]], NDArray[np.bool_]]
"""Flips one coin for each index that it is given, independently."""


def discrete_laplace(scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw integers Z with ``P(Z = z)`` proportional to ``exp(-abs(z) / scale)``, exactly.

    Every operation is on integers. A magnitude X = U + scale V is built from U below `scale`,
    with probability proportional to exp(-U / scale), and from V with P(V = v) proportional to
    exp(-v); so P(X = x) is proportional to exp(-x / scale). A fair sign follows, and a negative
    zero is drawn again, so that zero is not counted twice (Algorithm 2 of [1]_).

    `scale` is in [1, 2^52]. Values that would leave int64 are cut within `scale` of its end; the
    chance of one is below exp(-2046) at any scale up to 2^52, and `Lattice.to_floats` sends all of
    those to one and the same value anyway, so nothing of the law is lost.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.
    """
    _check_scale("scale", scale, "discrete_laplace")
    largest = (2**63 - scale) // scale  # largest V for which X stays within int64
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        # Candidates are independent, so the first accepted ones have the law of an accepted one.
        low = below(scale, int(1.7 * (size - kept.size)) + 8, source).astype(np.int64)
        low = low[bernoulli_exp(coins(low, scale, source), low.size, source)]
        magnitude = low + scale * np.minimum(_geometric(low.size, source), largest)
        negative = below(2, low.size, source) == 1
        noise = np.where(negative, -magnitude, magnitude)
        kept = np.concatenate([kept, noise[~(negative & (magnitude == 0))]])
    return kept[:size]


def discrete_gaussian(sigma: int, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw integers Y with ``P(Y = y)`` proportional to ``exp(-y**2 / (2 sigma**2))``, exactly.

    A discrete Laplace draw y of scale sigma is kept with probability
    exp(-(abs(y) - sigma)^2 / (2 sigma^2)): the product of the two is proportional to
    exp(-y^2 / (2 sigma^2)), because the mixed term is exp(abs(y) / sigma) (Algorithm 3 of [1]_,
    with sigma an integer). With abs(abs(y) - sigma) = q sigma + p, the coin is a product of q^2
    coins of weight exp(-1/2), q of weight exp(-p / sigma) and one of weight exp(-p^2/(2 sigma^2)),
    so that no number outgrows 64 bits.

    `sigma` is in [1, 2^52]; the standard deviation is at most sigma. A draw beyond 2000 sigma may
    be cut as in `discrete_laplace`; the chance of one is below exp(-1000000).

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.
    """
    _check_scale("sigma", sigma, "discrete_gaussian")
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        noise = discrete_laplace(sigma, int(1.4 * (size - kept.size)) + 8, source)
        q, p = np.divmod(np.abs(np.abs(noise) - sigma), sigma)
        less, half = coins(p, sigma, source), coins(np.ones_like(p), 2, source)
        noise = noise[
            bernoulli_exp(_all_of(less, less, half), noise.size, source)
            & bernoulli_exp_power(less, q, source)
            & bernoulli_exp_power(half, q * q, source)
        ]
        kept = np.concatenate([kept, noise])
    return kept[:size]


def coins(weights: NDArray[np.int64], bound: int, source: ByteSource) -> Flip:
    """Make coins of which number i shows heads with probability ``weights[i] / bound``.

    The weights are in [0, bound], and `bound` in [1, 2^53]. What is returned takes indices, and
    flips the coin of each one anew.
    """
    return lambda index: below(bound, index.size, source) < weights[index]


def bernoulli_exp(flip: Flip, size: int, source: ByteSource) -> NDArray[np.bool_]:
    """Flip coins that show heads with probability exp(-p_i), given coins that do with p_i.

    Coin i goes on from round k with probability p_i / k, as the product of two independent
    coins. It reaches round k with probability p_i^(k-1) / (k-1)!, so it stops in an odd round
    with probability 1 - p_i + p_i^2/2! - ... = exp(-p_i) (Algorithm 1 of Canonne et al.).

    `flip` takes indices, and flips the coin of each, heads with probability p_i in [0, 1].
    """
    heads = np.zeros(size, dtype=bool)
    alive = np.arange(size)
    k = 1
    while alive.size:
        goes_on = flip(alive)
        if k > 1:
            goes_on &= below(k, alive.size, source) == 0
        heads[alive[~goes_on]] = k % 2 == 1
        alive = alive[goes_on]
        k += 1
    return heads


def bernoulli_exp_power(
    flip: Flip, powers: NDArray[np.int64], source: ByteSource
) -> NDArray[np.bool_]:
    """Flip coins that show heads with probability exp(-p_i)^powers_i.

    All of powers_i independent coins of `bernoulli_exp` have to show heads. The flipping stops
    at the first tail, so large powers cost no more than small ones.

    `flip` is as there; the powers are at least 0.
    """
    heads = np.ones(powers.size, dtype=bool)
    alive = np.flatnonzero(powers > 0)
    flipped = 0
    while alive.size:
        passed = bernoulli_exp(_among(alive, flip), alive.size, source)
        heads[alive[~passed]] = False
        flipped += 1
        alive = alive[passed & (powers[alive] > flipped)]
    return heads


def _all_of(*flips: Flip) -> Flip:
    """Multiply weights: heads when all of these independent coins show heads."""
    return lambda index: np.logical_and.reduce([flip(index) for flip in flips])


def _among(chosen: NDArray[np.intp], flip: Flip) -> Flip:
    """Number the chosen coins anew, from 0."""
    return lambda index: flip(chosen[index])


def certain(index: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Flip coins that always show heads."""
    return np.ones(index.size, dtype=bool)


def _geometric(size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw V with P(V = v) proportional to exp(-v): runs of heads of coins with heads exp(-1).

    The runs are read off one unbroken sequence of independent coins, in order; dropping an
    unfinished run at the end of a batch would leave too many short ones.
    """
    tails = np.empty(0, dtype=np.intp)
    flipped = 0
    while tails.size < size:
        batch = int(1.7 * (size - tails.size)) + 16
        heads = bernoulli_exp(certain, batch, source)
        tails = np.concatenate([tails, np.flatnonzero(~heads) + flipped])
        flipped += batch
    return np.diff(tails[:size], prepend=-1).astype(np.int64) - 1


def below(bound: int, size: int, source: ByteSource) -> NDArray:
    """Draw uniform integers in [0, bound).

    Bits are cut to the length of ``bound - 1`` and numbers outside the range thrown away: what
    is left is uniform, where a remainder would not be.

    `bound` is in [1, 2^53]. The type of the draws holds them.
    """
    mask = (1 << (bound - 1).bit_length()) - 1
    if mask == 0:
        return np.zeros(size, dtype=np.uint8)
    kept = np.empty(0, dtype="<u1" if mask < 256 else "<i8")
    while kept.size < size:
        missing = size - kept.size
        spare = 0 if mask + 1 == bound else 2 * math.isqrt(missing) + 4
        count = missing * (mask + 1) // bound + spare
        words = np.frombuffer(
            source.bytes(kept.itemsize * count), dtype=kept.dtype
        ) & kept.dtype.type(mask)
        kept = np.concatenate([kept, words[words < bound]])
    return kept[:size]


def _check_scale(name: str, scale: int, owner: str) -> None:
    if not 1 <= scale <= MAX_SCALE:
        raise ValueError(
            f"The {name!r} parameter of {owner} must be an integer in [1, 2**52]. Got {scale!r}."
        )
