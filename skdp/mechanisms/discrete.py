"""Exact draws of integers: discrete Laplace and Gaussian, L2 Laplace, coins of weight exp(-x).

Nothing here uses a floating-point operation on what is drawn: uniform integers come from random
bytes, and every probability is a product of fractions [1]_.

References
----------
.. [1] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
   NeurIPS 2020.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count
from skdp.core.types import ByteSource

MAX_SCALE = 2**52  # largest scale of the integer noise, which keeps it within int64
Flip = Callable[[NDArray[np.intp]], NDArray[np.bool_]]  # a coin for each index
Digits = Callable[[int, int], int]  # (i, bits) -> floor(2**bits x_i), of any number x_i


def discrete_laplace(scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw integers Z with ``P(Z = z)`` proportional to ``exp(-abs(z) / scale)``, exactly.

    Every operation is on integers. A magnitude X = U + scale V is built from U below `scale`,
    with probability proportional to exp(-U / scale), and from V with P(V = v) proportional to
    exp(-v); so P(X = x) is proportional to exp(-x / scale). A fair sign follows, and a negative
    zero is drawn again, so that zero is not counted twice (algorithm 2 of Canonne et al.).

    Values that would leave int64 are cut within `scale` of its end. `Lattice.to_floats` sends all
    of those to one and the same value, so nothing of the law is lost.
    """
    check_count("scale", scale, "discrete_laplace", at_most=MAX_SCALE)
    largest = (2**63 - scale) // scale  # largest V for which X stays within int64
    signs, low, high = _laplace_parts(scale, size, source)
    return signs * (low + scale * np.minimum(high, largest))


def _laplace_parts(scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw the sign, U and V of `discrete_laplace`, in three rows."""
    kept = np.empty((3, 0), dtype=np.int64)
    while kept.shape[1] < size:
        # Candidates are independent, so the first accepted ones have the law of an accepted one.
        low = below(scale, int(1.7 * (size - kept.shape[1])) + 8, source).astype(np.int64)
        low = low[bernoulli_exp(coins(low, scale, source), low.size, source)]
        high = _geometric(low.size, source)
        negative = below(2, low.size, source) == 1
        parts = np.array([np.where(negative, -1, 1), low, high])
        kept = np.concatenate([kept, parts[:, ~(negative & (low == 0) & (high == 0))]], axis=1)
    return kept[:, :size]


def discrete_l2_laplace(
    scale: int, size: int, source: ByteSource, n_draws: int = 1
) -> NDArray[np.int64]:
    """Draw vectors Z of integers with ``P(Z = z)`` proportional to ``exp(-norm(z) / scale)``.

    The norm is the Euclidean one, and the draw is exact. With t the scale, k the size and T an
    integer of at least sqrt(k) t, candidates are k discrete Laplace variables of scale T. One is
    accepted with probability exp(-x), where x = norm(z) / t - sum(abs(z)) / T is not negative, as
    the sum is at most sqrt(k) times the norm. The product of both is proportional to
    exp(-norm(z) / t). The draws are rows. A coordinate beyond int64 is cut at its end.
    """
    wide = math.isqrt(size * scale * scale - 1) + 1
    check_count("sqrt(size) * scale", wide, "discrete_l2_laplace", at_most=MAX_SCALE)
    kept = np.empty((0, size), dtype=np.int64)
    while len(kept) < n_draws:
        # Candidates are independent, so the first accepted ones have the law of an accepted one.
        n_candidates = math.ceil(1.3 * (n_draws - len(kept)) / _share_accepted(size)) + 1
        signs, low, high = _laplace_parts(wide, n_candidates * size, source)
        rows = (signs * low + wide * (signs * high).astype(object)).reshape(-1, size)
        sums, squares = np.abs(rows).sum(axis=1), (rows**2).sum(axis=1)
        excess = partial(excess_digits, squares.tolist(), sums.tolist(), scale, wide)
        accepted = rows[bernoulli_exp_of(excess, len(rows), source)]
        kept = np.concatenate([kept, np.clip(accepted, -(2**63) + 1, 2**63 - 1).astype(np.int64)])
    return kept[:n_draws]


def excess_digits(
    squares: list[int], sums: list[int], scale: int, wide: int, i: int, bits: int
) -> int:
    """Return the floor of 2^bits (sqrt(squares_i) / scale - sums_i / wide), in whole numbers.

    That is (sqrt(4^bits wide^2 squares) - 2^bits scale sums) / (scale wide), where the floor of the
    root will do: what is taken off and what it is divided by are integers.
    """
    root = math.isqrt(squares[i] * wide**2 << 2 * bits)
    return (root - (scale * sums[i] << bits)) // (scale * wide)


def _share_accepted(size: int) -> float:
    """Return the ratio of the integrals of exp(-norm(z)) and exp(-sum(abs(z)) / sqrt(size))."""
    sphere = 2 * math.pi ** (size / 2) / math.gamma(size / 2)
    return sphere * math.gamma(size) / (2 * math.sqrt(size)) ** size


def discrete_gaussian(sigma: int, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw integers Y with ``P(Y = y)`` proportional to ``exp(-y**2 / (2 sigma**2))``, exactly.

    A discrete Laplace draw y of scale sigma is kept with probability
    exp(-(abs(y) - sigma)^2 / (2 sigma^2)): the product of the two is proportional to
    exp(-y^2 / (2 sigma^2)), because the mixed term is exp(abs(y) / sigma) (algorithm 3 of
    Canonne et al., with sigma an integer). With abs(abs(y) - sigma) = q sigma + p, the coin is a
    product of q^2 coins of weight exp(-1/2), q of weight exp(-p / sigma) and one of weight
    exp(-p^2/(2 sigma^2)), so that no number outgrows 64 bits.
    """
    check_count("sigma", sigma, "discrete_gaussian", at_most=MAX_SCALE)
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
    """Make coins of which number i shows heads with probability ``weights[i] / bound``."""
    return lambda index: below(bound, index.size, source) < weights[index]


def bernoulli_exp(flip: Flip, size: int, source: ByteSource) -> NDArray[np.bool_]:
    """Flip coins that show heads with probability exp(-p_i), given coins that do with p_i.

    Coin i goes on from round k with probability p_i / k, as the product of two independent
    coins. It reaches round k with probability p_i^(k-1) / (k-1)!, so it stops in an odd round
    with probability 1 - p_i + p_i^2/2! - ... = exp(-p_i) (algorithm 1 of Canonne et al.).
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
    """Flip coins that show heads with probability exp(-p_i)^powers_i, up to the first tail."""
    heads = np.ones(powers.size, dtype=bool)
    alive = np.flatnonzero(powers > 0)
    flipped = 0
    while alive.size:
        passed = bernoulli_exp(_among(alive, flip), alive.size, source)
        heads[alive[~passed]] = False
        flipped += 1
        alive = alive[passed & (powers[alive] > flipped)]
    return heads


def bernoulli_exp_of(
    digits: Digits, size: int, source: ByteSource, bits: int = 52
) -> NDArray[np.bool_]:
    """Flip coins that show heads with probability exp(-x_i), x_i >= 0 known by its binary digits.

    That is a coin of weight exp(-1) for each whole one in x_i, and one whose weight has the rest p
    as its exponent. A coin of weight p shows heads where a uniform number is below p: both are
    compared in so many `bits`, and in more where these are the same.
    """
    known = [digits(i, bits) for i in range(size)]
    whole = np.array([number >> bits for number in known], dtype=np.int64)
    rest = np.array([number & (1 << bits) - 1 for number in known], dtype=np.int64)

    def flip(index: NDArray[np.intp]) -> NDArray[np.bool_]:
        uniform = below(1 << bits, index.size, source).astype(np.int64)
        heads = uniform < rest[index]
        for place in np.flatnonzero(uniform == rest[index]).tolist():
            heads[place] = decide(int(index[place]), int(uniform[place]))
        return heads

    def decide(i: int, uniform: int) -> bool:
        for more in itertools.count(bits + 8, 8):
            uniform = (uniform << 8) + source.bytes(1)[0]
            part = digits(i, more) & (1 << more) - 1
            if uniform != part:
                break
        return uniform < part

    survives = bernoulli_exp_power(certain, whole, source)
    return survives & bernoulli_exp(flip, size, source)


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

    Bits are cut to the length of ``bound - 1``, at most 53, and numbers outside the range thrown
    away: what is left is uniform, where a remainder would not be.
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
        words = words[words < bound]
        kept = np.concatenate([kept, words]) if kept.size else words
    return kept[:size]
