"""Sources of random bytes, and the power-of-two lattice on which noise is added.

Noise drawn in floating point leaks the value it hides, through the gaps between floating-point
numbers (Mironov, "On Significance of the Least Significant Bits For Differential Privacy", CCS
2012). Here a value is rounded to a multiple of a public step, the noise is a whole number of steps
from `skdp.mechanisms.discrete`, and what the rounding can change is charged.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_rules, is_whole
from skdp.core.types import ByteSource, Seed
from skdp.mechanisms.discrete import MAX_SCALE

# A value is clipped to +-_MAX_VALUE steps and noise to +-_MAX_NOISE. A noisy value beyond
# +-MAX_NOISY is released as NaN. Noise that reaches _MAX_NOISE ends there whatever the value was,
# so cutting it cannot be seen; and a value that was clipped ends there unless the noise is as large
# as 2^60 steps, which has a probability below exp(-255), so no wrong number is released.
_MAX_VALUE = 2**61
_MAX_NOISE = 3 * 2**61 - 1
MAX_NOISY = 2**60

_FINENESS = 14  # the step is at most 2^-14 of the sensitivity: rounding costs under .02 % of it


class OperatingSystemBytes:
    """The secret source of randomness: the generator of the operating system."""

    def bytes(self, length: int) -> bytes:
        """Return `length` random bytes that nobody can draw again."""
        return os.urandom(length)


def byte_source(random_state: Seed = None) -> ByteSource:
    """Turn a `random_state` into a source of random bytes."""
    if random_state is None:
        return OperatingSystemBytes()
    if not is_whole(random_state):
        raise TypeError(
            "The 'random_state' parameter of a release must be None or an integer, as a generator "
            "is copied with its state and then gives two releases the same noise. Got an object of "
            f"type {type(random_state).__name__}. Leave it None, so that nobody knows the noise."
        )
    check_rules("a release", random_state=(random_state, random_state >= 0, "be at least 0"))
    return np.random.default_rng(int(random_state))


def check_value(value: ArrayLike) -> NDArray[np.float64]:
    """Copy a private value into doubles, or refuse it without showing it."""
    value = np.array(value, dtype=np.float64)
    if not np.isfinite(value).all():
        raise ValueError("The value to release must be finite, but it holds NaN or infinity.")
    return value


@dataclass(frozen=True)
class Lattice:
    """The multiples of ``2**exponent``, between which a value is rounded and noise is added.

    The step depends on public numbers only (sensitivity, number of values, epsilon), never on
    the value. Three facts make the release as private as its integer noise.

    *Rounding is charged.* Rounding to the nearest integer moves a number by at most 1/2, so two
    values that differ by x steps differ by at most \\|x\\| + 1 after it, however ties are broken.
    Over d values with L1 norm at most Delta this adds up to at most Delta/step + d; in the L2
    norm, by Minkowski's inequality, to at most Delta/step + sqrt(d). Both are at most
    ``integer_sensitivity(Delta, charge)`` with charge = d or the rounded-up sqrt(d).

    *Clipping is free.* The rounded value is clipped to +-2^61: a projection of each coordinate,
    which never makes a difference larger. The noisy value becomes NaN beyond +-2^60 or where it
    overflows, and else the nearest double of 53 bits, which is a multiple of the step again (unless
    below 2^-1074): functions of the noisy integer alone.

    *Scaling is exact.* `ldexp` changes the exponent of a double and nothing else. Where it
    underflows, rounding to 0 gives the right answer.
    """

    exponent: int

    @classmethod
    def fine(cls, sensitivity: float, parts: float = 1.0) -> Lattice:
        """Choose a step of at most ``sensitivity / (2**14 * parts)``, and more than a quarter."""
        # frexp: sensitivity >= 2^(first - 1) and parts < 2^second
        first, second = math.frexp(sensitivity)[1], math.frexp(parts)[1]
        return cls(first - 1 - _FINENESS - second)

    def integer_sensitivity(self, sensitivity: float, charge: int) -> int:
        """Bound the change of the rounded value, in steps; `charge` is what the rounding can add.

        The last unit pays for the floating-point error of the norm, which is relative and below
        2^-50, as long as sensitivity / step is below 2^50.
        """
        return math.ceil(Fraction(sensitivity) / Fraction(2) ** self.exponent) + charge + 1

    def to_integers(self, value: ArrayLike) -> NDArray[np.int64]:
        """Round a value to the lattice and clip it to +-2^61; it may be infinite, but not NaN."""
        return np.asarray(np.clip(self._steps(value), -_MAX_VALUE, _MAX_VALUE)).astype(np.int64)

    def to_gaps(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Round scores to the lattice, and return how far each is below the best, at most 2^61.

        That raises scores to 2^61 below the best, so that none changes by more than they all did.
        """
        largest = np.finfo(np.float64).max
        integers = [int(step) for step in np.clip(self._steps(scores), -largest, largest)]
        best = max(integers)
        return np.array([min(best - each, _MAX_VALUE) for each in integers], dtype=np.int64)

    def _steps(self, value: ArrayLike) -> NDArray[np.float64]:
        with np.errstate(over="ignore", under="ignore"):  # callers clip to the lattice
            return np.asarray(np.rint(np.ldexp(np.asarray(value, np.float64), -self.exponent)))

    def to_floats(self, integers: ArrayLike, noise: ArrayLike) -> NDArray[np.float64]:
        """Add noise to a rounded value and scale back; NaN is beyond the range of the lattice."""
        noise = np.clip(np.asarray(noise, dtype=np.int64), -_MAX_NOISE, _MAX_NOISE)
        noisy = np.asarray(integers, dtype=np.int64) + noise
        with np.errstate(over="ignore", under="ignore"):  # what is not finite becomes NaN below
            released = np.ldexp(noisy.astype(np.float64), self.exponent)
        usable = (np.abs(noisy) <= MAX_NOISY) & np.isfinite(released)
        return np.where(usable, released, np.nan)


def lattice_scale(
    sensitivity: float,
    charge: int,  # what rounding can add to the norm, in steps
    epsilon: float,
    owner: str,
    *,
    parts: float = 1.0,
    factor: int = 1,
    most: int = MAX_SCALE,
) -> tuple[Lattice, int]:
    """Choose the lattice and the integer scale of the noise, from public numbers.

    With s the integer sensitivity of the lattice the scale is t = ceil(factor s / epsilon), in
    exact fractions, so factor s / t is never above epsilon. The step is so fine that the rounding
    of the value and of t together cost less than .1 % of noise; where that would take a scale above
    `most`, it is coarser.
    """
    epsilon = float(epsilon)  # numpy's numbers overflow, or are no rationals
    # A large epsilon needs a fine step too, or rounding t up would cost; 2^32 is fine enough.
    lattice = Lattice.fine(sensitivity, max(parts, charge, min(epsilon, 2.0**32)))
    while True:
        steps = lattice.integer_sensitivity(sensitivity, charge)
        scale = math.ceil(factor * steps / Fraction(epsilon))
        if scale <= most:
            return lattice, scale
        if steps <= 4 * charge:
            break
        lattice = Lattice(lattice.exponent + 1)
    raise ValueError(
        f"The 'epsilon' parameter of {owner} is too small: rounding to a lattice would cost "
        f"as much as the noise. Raise it at least {scale / most:.3g} times."
    )
