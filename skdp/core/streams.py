"""The random stream of each pair: a function of the seed and of the number of the pair only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.random import BitGenerator, Generator, SeedSequence
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

# Constants of SeedSequence, which numpy keeps for good: streams must not change.
_HASH_POOL, _STEP_POOL = 0x43B0D7E5, 0x931E8875
_HASH_STATE, _STEP_STATE = 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = 0xCA01F9DD, 0x4973F715
_WORD = 2**32

_STATE_WORDS = 8
"""Words of 32 bits that seed the default generator."""


def streams(seed: int, key: tuple[int, ...]) -> tuple[Generator, int]:
    """Return the generator of the records, and a seed for the target.

    `key` says what they are for; those under other keys are independent. The seed is in [0, 2^31).
    """
    rng = np.random.default_rng(SeedSequence(seed, spawn_key=key))
    return rng, int(rng.integers(2**31))


def streams_of_pairs(seed: int, pairs: range) -> Iterator[Generator]:
    """Yield the generator of the records of each pair, as :func:`streams` does under ``(pair,)``.

    Hashing the key is most of the cost of a generator, so that is done for all pairs at once. What
    comes out is compared with numpy's own for the first pair; if they differ, numpy's are used.
    There is at least one number, and all are below 2^32. The generators cannot spawn others.
    """
    known = streams(seed, (pairs.start,))[0].bit_generator
    generators = _generators(seed, pairs, type(known))
    if str(next(generators).bit_generator.state) != str(known.state):
        yield from (streams(seed, (pair,))[0] for pair in pairs)
        return
    yield from _generators(seed, pairs, type(known))


def _generators(seed: int, pairs: range, kind: type[BitGenerator]) -> Iterator[Generator]:
    hashed = _Hashed()  # numpy takes any ISeedSequence, and its annotation names one of them
    for hashed.state in _states(seed, np.arange(pairs.start, pairs.stop, dtype=np.uint32)):
        rng = Generator(kind(hashed))  # type: ignore[arg-type]
        rng.random(dtype=np.float32)  # as many bits as the seed of the target, in half the time
        yield rng


class _Hashed(ISeedSequence):
    """A seed sequence whose words are known already."""

    state: NDArray[np.uint64]

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray:
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
