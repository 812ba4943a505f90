"""Random streams: each a function of the seed of the sampling and of what it is for only."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from numbers import Integral

import numpy as np
from numpy.random import BitGenerator, Generator, SeedSequence
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from skdp.core.checks import shown
from skdp.core.types import Seed

Key = tuple[int, ...]

# Every stream of public records, by its spawn key. Streams under different keys are independent,
# and no two rows share a key: so pilots never calibrate, and the public fit sees neither.
#
#   (i,)                   pair i, which calibrates
#   (i, 2)                 pilot pair i, from which a basis is learned
#   (b, 3)                 block b of pairs of two records, which calibrate
#   (0, 1, a)              public dataset a < 2^31, such as that of the public fit
#   (0, 1, 2^31)           the public dataset on which the output is examined
#   (0, 1, 2^31 + 1 + t)   trial t of an oracle, before it is used
#   (1, 1, i)              pair i of an audit
OUTPUT_DATASET = 2**31
AUDIT = (1, 1)

# Constants of SeedSequence, which numpy keeps for good: streams must not change.
_HASH_POOL, _STEP_POOL = 0x43B0D7E5, 0x931E8875
_HASH_STATE, _STEP_STATE = 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = 0xCA01F9DD, 0x4973F715
_WORD = 2**32

_STATE_WORDS = 8
"""Words of 32 bits that seed the default generator."""


def pair_key(pair: int) -> Key:
    """Return the key of a calibrating pair."""
    return (pair,)


def pilot_key(pair: int) -> Key:
    """Return the key of a pilot pair."""
    return (pair, 2)


def block_key(block: int) -> Key:
    """Return the key of a block of pairs of two records."""
    return (block, 3)


def public_key(dataset: int) -> Key:
    """Return the key of a public dataset."""
    return (0, 1, dataset)


def trial_key(trial: int) -> Key:
    """Return the key of a trial of an oracle."""
    return public_key(OUTPUT_DATASET + 1 + trial)


def streams(seed: int, key: Key) -> tuple[Generator, int]:
    """Return the generator of the records, and a seed for the target.

    `key` says what they are for; those under other keys are independent. The seed is in [0, 2^31).
    """
    rng = np.random.default_rng(SeedSequence(seed, spawn_key=key))
    return rng, int(rng.integers(2**31))


def public_seed(source: Seed, name: str, owner: str) -> int:
    """Reduce a source of randomness to one integer that can be reported."""
    if isinstance(source, Integral) and not isinstance(source, bool):
        if source < 0:
            raise ValueError(
                f"The {name!r} parameter of {owner} must not be negative. Got {source}."
            )
        return int(source)
    if source is None:
        return secrets.randbits(128)
    if hasattr(source, "bytes"):
        return int.from_bytes(source.bytes(16), "little")
    raise ValueError(
        f"The {name!r} parameter of {owner} must be None, an integer, a numpy Generator or a "
        f"RandomState. Got {shown(source)}."
    )


def streams_of_pairs(seed: int, pairs: range) -> Iterator[Generator]:
    """Yield the generator of the records of each pair, as :func:`streams` does under
    its :func:`pair_key`.

    Hashing the key is most of the cost of a generator, so that is done for all pairs at once. What
    comes out is compared with numpy's own for the first pair; if they differ, numpy's are used.
    There is at least one number, and all are below 2^32. The generators cannot spawn others.
    """
    known = streams(seed, pair_key(pairs.start))[0].bit_generator
    generators = _generators(seed, pairs, type(known))
    if str(next(generators).bit_generator.state) != str(known.state):
        yield from (streams(seed, pair_key(pair))[0] for pair in pairs)
        return
    yield from _generators(seed, pairs, type(known))


def _generators(seed: int, pairs: range, kind: type[BitGenerator]) -> Iterator[Generator]:
    hashed = _Hashed()  # numpy takes any ISeedSequence, and its annotation names one of them
    for hashed.state in _states(seed, np.arange(pairs.start, pairs.stop, dtype=np.uint32)):
        rng = Generator(kind(hashed))  # type: ignore[arg-type]  # see above
        rng.random(dtype=np.float32)  # as many bits as the seed of the target, in half the time
        yield rng


class _Hashed(ISeedSequence):
    """A seed sequence whose words are known already."""

    state: NDArray[np.uint64]

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray:
        """Return the words, which are as many as the default generator asks for."""
        if dtype is not np.uint64 or n_words != len(self.state):
            return np.zeros(n_words, dtype)  # another generator: the comparison will tell
        return self.state


def _states(seed: int, keys: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return what ``SeedSequence(seed, spawn_key=(key,)).generate_state(4, np.uint64)`` does.

    The seed alone fills the pool of the sequence; the key is then mixed into each of its words.
    """
    parent = SeedSequence(seed)
    n_words = max(-(-seed.bit_length() // 32), parent.pool_size)
    # one hash per word of the seed and per word of the pool it goes to
    constant = _HASH_POOL * pow(_STEP_POOL, parent.pool_size * n_words, _WORD) % _WORD
    pool = []
    for word in parent.pool.tolist():
        hashed, constant = _hash(keys, constant, _STEP_POOL)
        mixed = np.uint32(word * _LEFT % _WORD) - hashed * np.uint32(_RIGHT)
        pool.append(mixed ^ (mixed >> np.uint32(16)))
    constant, words = _HASH_STATE, []
    for place in range(_STATE_WORDS):
        hashed, constant = _hash(pool[place % len(pool)], constant, _STEP_STATE)
        words.append(hashed)
    return np.column_stack(words).astype("<u4").view("<u8").astype(np.uint64)


def _hash(values: NDArray[np.uint32], constant: int, step: int) -> tuple[NDArray[np.uint32], int]:
    following = constant * step % _WORD
    mixed = (values ^ np.uint32(constant)) * np.uint32(following)
    return mixed ^ (mixed >> np.uint32(16)), following
