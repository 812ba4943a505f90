"""The streams of many pairs at once against numpy's own, one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp.core import streams as seeding
from skdp.core.streams import (
    AUDIT,
    OUTPUT_DATASET,
    block_key,
    pair_key,
    pilot_key,
    public_key,
    streams,
    streams_of_pairs,
    trial_key,
)

KINDS = (pair_key, pilot_key, block_key, public_key, trial_key)


def same(left, right):
    return left.bit_generator.state == right.bit_generator.state


@given(seed=st.integers(0, 2**300), start=st.integers(0, 2**32 - 3))
def test_hashed_words_are_those_of_numpy(seed, start):
    keys = range(start, start + 3)
    hashed = seeding._states(seed, np.array(keys, dtype=np.uint32))
    for key, words in zip(keys, hashed, strict=True):
        sequence = np.random.SeedSequence(seed, spawn_key=(key,))
        np.testing.assert_array_equal(words, sequence.generate_state(4, np.uint64))


def test_no_two_purposes_share_a_stream():
    """What a seed gives may not change either, so the keys themselves are frozen."""
    keys = [kind(i) for kind in KINDS for i in range(100)]
    keys += [public_key(OUTPUT_DATASET), *((*AUDIT, i) for i in range(100))]
    assert len(set(keys)) == len(keys)
    assert [kind(5) for kind in KINDS] == [(5,), (5, 2), (5, 3), (0, 1, 5), (0, 1, 2**31 + 6)]
    assert (public_key(OUTPUT_DATASET), AUDIT) == ((0, 1, 2**31), (1, 1))


@pytest.mark.loop("seed", [0, 7, 2**32, 2**64 - 1, 2**128 + 3])
def test_generators_of_pairs_are_those_of_single_pairs(seed):
    found = list(streams_of_pairs(seed, range(5, 40)))
    assert len(found) == 35
    for pair, rng in enumerate(found, start=5):
        assert same(rng, streams(seed, (pair,))[0])


def test_fast_generators_are_used():
    """Else the comparison would hide that they have become wrong."""
    rng = next(streams_of_pairs(0, range(1)))
    assert not isinstance(rng.bit_generator.seed_seq, np.random.SeedSequence)


def test_other_words_than_numpys_are_noticed(monkeypatch):
    monkeypatch.setattr(seeding, "_LEFT", seeding._LEFT + 2)
    found = list(streams_of_pairs(3, range(2, 6)))
    assert all(same(rng, streams(3, (pair,))[0]) for pair, rng in enumerate(found, start=2))


def test_another_default_generator_is_noticed(monkeypatch):
    """As if a later numpy took one that asks for other words."""
    monkeypatch.setattr(
        np.random, "default_rng", lambda seed: np.random.Generator(np.random.Philox(seed))
    )
    found = list(streams_of_pairs(3, range(3)))
    expected = [streams(3, (pair,))[0] for pair in range(3)]
    assert [rng.random() for rng in found] == [rng.random() for rng in expected]
